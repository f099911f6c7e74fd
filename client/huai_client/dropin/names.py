"""Which lines rsync would print of the changes in a plan, with `-v` or with `-i`.

Pure.  Source: rsync(1), "--itemize-changes".  A directory that is renamed as a whole has no
counterpart there: it shows as one deletion and one new directory.
"""

import re
from collections.abc import Iterator

from huai_client.dropin.step import Lines, Step
from huai_client.plans.operations import Plan, Remove, Stage
from huai_client.plans.plan import Candidate
from huai_schema.entries import Directory, Entry, File, Symlink

_UNPRINTABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f\udc80-\udcff]")
"""Control characters, and bytes that are not UTF-8."""
_DELETES = ("clear", "remove")
_NEW = b"+" * 9
_LETTERS = (("size", b"s"), ("mtime", b"t"), ("mode", b"p"), ("owner", b"o"), ("group", b"g"))


def lines(plan: Plan, candidates: list[Candidate], *, itemize: bool) -> Lines:
    """All lines of `plan`, which was made from `candidates`."""
    known = {candidate.path: candidate for candidate in candidates}
    show = _itemized if itemize else _named
    found: Lines = {}
    for step, entry in _steps(plan):
        name = _shown(entry)
        if step.kind in _DELETES:
            line = (b"*deleting   " if itemize else b"deleting ") + name
        else:
            line = show(step, entry, known.get(step.path), name)
        if line:
            found[step] = line
    for move in plan.moves:
        gone = _shown(Directory(move.old, 0))
        deleted = (b"*deleting   " if itemize else b"deleting ") + gone
        found[Step("move", move.new)] = deleted + b"\n" + found[Step("move", move.new)]
    return found


def _steps(plan: Plan) -> Iterator[tuple[Step, Entry]]:
    """Each step, and what it makes or takes away."""
    yield from (_removal("clear", item) for item in plan.clear)
    for path in plan.make:
        yield Step("make", path), Directory(path, 0)
    for move in plan.moves:
        yield Step("move", move.new), Directory(move.new, 0)
    for stage in plan.stages:
        yield from _steps_of(stage)
    yield from (_removal("remove", item) for item in plan.removals)
    made = {*plan.make, *(move.new for move in plan.moves)}
    for directory in plan.directories:
        if directory.path not in made:
            yield Step("directory", directory.path), directory


def _removal(kind: str, item: Remove) -> tuple[Step, Entry]:
    gone = Directory(item.path, 0) if item.directory else File(item.path, 0, 0)
    return Step(kind, item.path), gone


def _steps_of(stage: Stage) -> Iterator[tuple[Step, Entry]]:
    yield from ((Step("publish", file.path), file) for file in stage.fetches)
    yield from ((Step("link", file.path), file) for file in stage.links)
    yield from ((Step("symlink", symlink.path), symlink) for symlink in stage.symlinks)
    yield from ((Step("attributes", entry.path), entry) for entry in stage.attributes)


def _named(step: Step, entry: Entry, candidate: Candidate | None, name: bytes) -> bytes:
    """As with `-v`; nothing for a change of mode or owner alone."""
    changed = candidate.differing if candidate else frozenset[str]()
    if step.kind == "attributes" and "mtime" not in changed:
        return b""
    if step.kind == "directory" and not changed:
        return b""
    return name + _suffix(step, entry)


def _itemized(step: Step, entry: Entry, candidate: Candidate | None, name: bytes) -> bytes:
    """As with `-i`."""
    kind = b"d" if isinstance(entry, Directory) else b"L" if isinstance(entry, Symlink) else b"f"
    here = candidate is not None and type(candidate.have) is type(entry)
    changed = candidate.differing if candidate and here else frozenset[str]()
    if step.kind in ("attributes", "directory"):
        update = b"."
    else:
        update = {"publish": b">", "link": b"h"}.get(step.kind, b"c")
    if here or update == b".":
        if not changed:
            return b""
        letters = b"".join(
            letter if attribute in changed else b"." for attribute, letter in _LETTERS
        )
        flags = (b"c" if "target" in changed else b".") + letters + b"..."
    else:
        flags = _NEW
    return update + kind + flags + b" " + name + _suffix(step, entry)


def _suffix(step: Step, entry: Entry) -> bytes:
    if isinstance(entry, Symlink):
        return b" -> " + _printable(entry.target)
    if step.kind == "link" and isinstance(entry, File) and entry.link is not None:
        return b" => " + _printable(entry.link)
    return b""


def _shown(entry: Entry) -> bytes:
    name = _printable(entry.path or b".")
    return name + b"/" if isinstance(entry, Directory) else name


def _printable(text: bytes) -> bytes:
    r"""What does not go to a terminal as `\#OCTAL`, as rsync shows it."""
    decoded = text.decode("utf-8", "surrogateescape")
    return _UNPRINTABLE.sub(lambda found: f"\\#{ord(found[0]) & 0xFF:03o}", decoded).encode()
