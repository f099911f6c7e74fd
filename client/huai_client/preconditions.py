"""What must hold before a sync touches anything; each check raises its own error."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from huai_client.config import Module
from huai_client.filters.selection import Selection
from huai_client.state import State
from huai_client.store import Commit
from huai_client.surveying.observe import observe
from huai_client.transfer import ContentUrl, ContentUrlError
from huai_client.transfer.urls import Transport
from huai_client.tree import DestinationError, View
from huai_schema.budget import Budget
from huai_schema.commits import SERIAL_STEP, Totals
from huai_schema.descriptor import Descriptor
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.listing import Listing
from huai_schema.paths import ROOT, RelPath, parent
from huai_schema.snapshot import decode_listing

_SAMPLES = 32
_GROWTH = 10
"""Times what is applied."""
_SMALL_ENTRIES, _SMALL_BYTES = 1_000_000, 1 << 40
"""What a module may grow to, however small it was."""
_STEPS = 1000
"""Directories that are gone through to find those of the top: small ones stand with all below."""


class WrongModuleError(HuaiError):
    """The repository is of another module."""

    exit_code = ExitCode.UNKNOWN_MODULE


class RolledBackError(HuaiError):
    """The upstream offers an older state than it did before."""

    exit_code = ExitCode.ROLLED_BACK


class TooLargeError(HuaiError):
    """The upstream announces more than the administrator has agreed to."""

    exit_code = ExitCode.FORMAT


class NoSpaceError(HuaiError):
    """The destination has no room for what is to come."""

    exit_code = ExitCode.NO_SPACE

    def __init__(self, message: str, *, bytes_short: int = 0, inodes_short: int = 0) -> None:
        """`message` says where and how much; the numbers are what is lacking."""
        super().__init__(message, hint="make room, or mirror less")
        self.bytes_short = bytes_short
        self.inodes_short = inodes_short


def check_module(commit: Commit, name: str) -> None:
    """The metadata has to be of the module that was asked for."""
    if commit.descriptor.module != name:
        raise WrongModuleError(
            f"the upstream's repository is of module {commit.descriptor.module!r}, not {name!r}",
            hint=f"if that is right, set upstream_name = {commit.descriptor.module!r}",
        )


def check_serial(commit: Commit, state: State) -> None:
    """The serial only grows, step by step, in one module.

    A commit that was accepted before is fine while it is the newest.
    """
    if reason := _refusal(commit, state):
        raise RolledBackError(
            reason,
            hint="its metadata was restored or replaced, or url now names another upstream; "
            "if that is right: --accept-rollback",
        )


def is_rollback(commit: Commit, state: State) -> bool:
    """Whether a commit is no successor of what was accepted before."""
    return bool(_refusal(commit, state))


def _refusal(commit: Commit, state: State) -> str:
    serial, identity = commit.info.serial, commit.descriptor.identity
    known = commit.id == state.applied or commit.id in state.attempted
    if serial < state.serial or (serial == state.serial and not known):
        return f"the upstream offers serial {serial}, and {state.serial} was accepted before"
    if state.identity and identity != state.identity:
        return (
            f"the upstream's module is another one than was synced before: its identity is "
            f"{identity or 'not told'}, and {state.identity} was accepted"
        )
    if serial - state.serial > SERIAL_STEP:
        # Each commit of an honest upstream would be refused from then on.
        return f"the upstream's serial leaps from {state.serial} to {serial}"
    return ""


def check_totals(commit: Commit, module: Module, applied: Totals | None) -> None:
    """What a commit announces bounds what reading it may cost, so it is judged first.

    `applied`: what the applied commit has; None: there is none, or any growth is agreed to.
    """
    totals = commit.info.totals
    for count, what, most, key in (
        (totals.entries, "entries", module.max_entries, "max_entries"),
        (totals.bytes, "bytes", module.max_bytes, "max_bytes"),
    ):
        if count > most:
            raise TooLargeError(
                f"the upstream announces {count:,} {what}, more than {key} = {most:,} allows; "
                "nothing was touched",
                hint=f"if that is right, raise {key} in client.toml",
            )
    if applied is None:
        return
    for count, before, what, small in (
        (totals.entries, applied.entries, "entries", _SMALL_ENTRIES),
        (totals.bytes, applied.bytes, "bytes", _SMALL_BYTES),
    ):
        if count > max(_GROWTH * before, small):
            raise TooLargeError(
                f"the upstream announces {count:,} {what} after {before:,}, more than {_GROWTH} "
                "times as many; nothing was touched",
                hint="if that is right: --adopt",
            )


def check_destination(view: View, past: Iterable[Selection]) -> None:
    """The destination has to hold something of what was put there: else its disk is not mounted."""
    samples = [list(_samples(selection)) for selection in past]
    # A filter may have let nothing through; then an empty destination is one that is right.
    if all(samples) and all(observe(view, path) is None for paths in samples for path in paths):
        raise DestinationError(
            f"{view.dest} holds nothing of what was synced there before",
            hint="is its disk mounted?  --adopt compares everything and fetches what is missing",
        )


def _samples(selection: Selection) -> Iterator[RelPath]:
    """What stands in the top directory, as far as it is quickly known: of each kind some.

    Never what is below one directory alone: somebody may have taken that one away.
    """
    snapshot, rules = selection.snapshot, selection.rules
    for step in islice(snapshot.level(ROOT, snapshot.tree, Budget(snapshot.limit)), _STEPS):
        if isinstance(step, Listing) and step.path == ROOT:
            leaves = (entry.path for entry in decode_listing(step) if entry.path)
            shown = (path for path in leaves if rules.reaches(path, directory=False))
            yield from islice(shown, _SAMPLES)
            continue
        path = step.path if isinstance(step, Listing) else step[0]
        if parent(path) == ROOT and not rules.excludes_whole(path):
            yield path
    own = sorted(snapshot.own_directory(ROOT, snapshot.tree).children)
    spread = (RelPath(name) for name in own[:: max(1, len(own) // _SAMPLES)])
    yield from islice((path for path in spread if not rules.excludes_whole(path)), _SAMPLES)


def check_space(dest: Path, files: Iterable[File]) -> None:
    """There has to be room for everything before the first byte."""
    needed = count = 0
    for file in files:
        needed += file.size
        count += 1
    free = os.statvfs(dest)
    room = free.f_bavail * free.f_frsize
    if needed > room:
        raise NoSpaceError(
            f"{dest}: {needed:,} bytes are needed and {room:,} are free; nothing was touched",
            bytes_short=needed - room,
        )
    if free.f_files and count > free.f_favail:
        raise NoSpaceError(
            f"{dest}: {count:,} inodes are needed and {free.f_favail:,} are free; "
            "nothing was touched",
            inodes_short=count - free.f_favail,
        )


def upstream_urls(descriptor: Descriptor) -> list[ContentUrl]:
    """Where the upstream says that the content is.

    An upstream may only name rsync daemons: a local path or a shell login that it chose
    would make this machine hand out its own files, or its keys.
    """
    usable = [url for text in descriptor.content_urls for url in _daemon(text)]
    if not usable:
        raise ContentUrlError(
            "the upstream names no content URL that may be used",
            hint="the upstream sets one with `huai-server add --content-url rsync://HOST/MODULE`; "
            "here content_urls in client.toml does",
        )
    return usable


def _daemon(text: str) -> Iterator[ContentUrl]:
    """The URL if it is of an rsync daemon; other kinds may come with later versions."""
    with suppress(ContentUrlError):
        url = ContentUrl.parse(text)
        if url.transport is Transport.DAEMON:
            yield url
