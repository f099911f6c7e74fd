"""What must hold before a sync touches anything; each check raises its own error."""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from huai_client.observe import observe
from huai_client.state import State
from huai_client.store import Commit
from huai_client.transfer import ContentUrl, ContentUrlError
from huai_client.transfer.urls import Transport
from huai_client.tree import DestinationError, View
from huai_schema.descriptor import Descriptor
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import ROOT, RelPath
from huai_schema.snapshot import Snapshot, decode_listing

_SAMPLES = 32


class WrongModuleError(HuaiError):
    """The repository is of another module."""

    exit_code = ExitCode.UNKNOWN_MODULE


class RolledBackError(HuaiError):
    """The upstream offers an older state than it did before."""

    exit_code = ExitCode.ROLLED_BACK


class NoSpaceError(HuaiError):
    """The destination has no room for what is to come."""

    exit_code = ExitCode.NO_SPACE


def check_module(commit: Commit, name: str) -> None:
    """The metadata has to be of the module that was asked for."""
    if commit.descriptor.module != name:
        raise WrongModuleError(
            f"the upstream's repository is of module {commit.descriptor.module!r}, not {name!r}",
            hint=f"if that is right, set upstream_name = {commit.descriptor.module!r}",
        )


def check_serial(commit: Commit, state: State) -> None:
    """The serial only grows; a commit that was accepted before is fine."""
    if commit.id == state.applied or commit.id in state.attempted:
        return
    if commit.info.serial <= state.serial:
        raise RolledBackError(
            f"the upstream offers serial {commit.info.serial}, "
            f"and {state.serial} was accepted before",
            hint="its metadata was restored or replaced; if that is right: --accept-rollback",
        )


def check_destination(view: View, applied: Snapshot) -> None:
    """The destination has to hold something of what was applied: else its disk is not mounted."""
    listing = applied.listing(ROOT)
    if listing is None:
        return
    names = [entry.path for entry in islice(decode_listing(listing), 1, _SAMPLES)]
    own = applied.own_directory(ROOT, applied.tree)
    names += [RelPath(name) for name in islice(own.children, _SAMPLES)]
    if names and all(observe(view, path) is None for path in names):
        raise DestinationError(
            f"{view.dest} holds nothing of what was synced there before",
            hint="is its disk mounted?  "
            "--adopt compares the whole tree and fetches what is missing",
        )


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
            hint="make room, or mirror less",
        )
    if free.f_files and count > free.f_favail:
        raise NoSpaceError(
            f"{dest}: {count:,} inodes are needed and {free.f_favail:,} are free; "
            "nothing was touched",
            hint="make room, or mirror less",
        )


def content_urls(configured: Iterable[str], descriptor: Descriptor) -> list[ContentUrl]:
    """Where the content is: as configured here, else as the upstream says.

    An upstream may only name rsync daemons: a local path or a shell login that it chose
    would make this machine hand out its own files, or its keys.
    """
    own = [ContentUrl.parse(text) for text in configured]
    if own:
        return own
    named = [ContentUrl.parse(text) for text in descriptor.content_urls]
    usable = [url for url in named if url.transport is Transport.DAEMON]
    if not usable:
        raise ContentUrlError(
            "no content URL is known that could be used",
            hint="the upstream sets one with `huai-server add --content-url rsync://HOST/MODULE`; "
            "here content_urls in client.toml does",
        )
    return usable
