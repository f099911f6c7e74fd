r"""rsync's lines for the changes in a plan: letters, name, and the target of a link.

Pure.  Source: rsync(1), "--itemize-changes".  rsync does not rename directories: a rename shows as
one deletion and one new directory.  Rule to keep: names come from the upstream, so control
characters in them are escaped.
"""

import re
from collections.abc import Iterable, Iterator

from huai_client.diff.candidate import Candidate, Remove
from huai_client.huai_rsync.log import Item, Items, PlanStep
from huai_client.plan.operations import Plan, Stage
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\udc80-\udcff"  # controls, C1's too; what is not UTF-8
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # what turns a line round, or breaks it
    r"|\\(?=#[0-7]{3})"  # what would look like one that was escaped
)
_DELETED = b"*deleting  "
_NEW = b"+" * 9
_LETTERS = (("size", b"s"), ("mtime", b"t"), ("mode", b"p"), ("owner", b"o"), ("group", b"g"))


def items(plan: Plan, candidates: Iterable[Candidate]) -> Items:
    """What rsync prints for `plan`, which was made from `candidates`."""
    known = {candidate.path: candidate for candidate in candidates}
    found: Items = {}
    for step, entry in _steps(plan):
        item = _item(step, entry, known.get(step.path))
        if item is not None:
            found[step] = [item]
    for move in plan.moves:
        found[PlanStep("move", move.new)].insert(0, Item(_DELETED, _shown(Directory(move.old, 0))))
    _turn_links(plan, known, found)
    return found


def _turn_links(plan: Plan, known: dict[RelPath, Candidate], found: Items) -> None:
    """Show a new name of an old inode as a hardlink, even if huai has it as the leader."""
    new = {file.path for stage in plan.stages for file in stage.fetches}
    for file in (file for stage in plan.stages for file in stage.links):
        leader, member = known.get(file.link or RelPath(b"")), known.get(file.path)
        if leader is None or member is None or leader.have is not None or leader.path not in new:
            continue
        if isinstance(member.have, File) and member.differing == {"link"}:
            found.pop(PlanStep("link", file.path), None)
            told = found.get(PlanStep("publish", leader.path), [])
            found[PlanStep("publish", leader.path)] = [
                item._replace(itemized=b"hf" + _NEW, tail=b" => " + _printable(file.path))
                for item in told
            ]


def _steps(plan: Plan) -> Iterator[tuple[PlanStep, Entry]]:
    """Each step, with the entry that it makes or removes."""
    yield from (_removal("clear", item) for item in plan.clear)
    for path in plan.make:
        yield PlanStep("make", path), Directory(path, 0)
    for move in plan.moves:
        yield PlanStep("move", move.new), Directory(move.new, 0)
    for stage in plan.stages:
        yield from _steps_of(stage)
    yield from (_removal("remove", item) for item in plan.removals)
    made = {*plan.make, *(move.new for move in plan.moves)}
    for directory in plan.directories:
        if directory.path not in made:
            yield PlanStep("directory", directory.path), directory


def _removal(kind: str, item: Remove) -> tuple[PlanStep, Entry]:
    gone = Directory(item.path, 0) if item.directory else File(item.path, 0, 0)
    return PlanStep(kind, item.path), gone


def _steps_of(stage: Stage) -> Iterator[tuple[PlanStep, Entry]]:
    yield from ((PlanStep("publish", file.path), file) for file in stage.fetches)
    yield from ((PlanStep("link", file.path), file) for file in stage.links)
    yield from ((PlanStep("symlink", symlink.path), symlink) for symlink in stage.symlinks)
    yield from ((PlanStep("attributes", entry.path), entry) for entry in stage.attributes)


def _item(step: PlanStep, entry: Entry, candidate: Candidate | None) -> Item | None:
    name = _shown(entry)
    if step.kind in ("clear", "remove"):
        return Item(_DELETED, name)
    itemized = _itemized(step, entry, candidate)
    named = _is_named(step, candidate)
    if not itemized and not named:
        return None
    size = entry.size if isinstance(entry, File) else 0
    return Item(itemized, name, _tail(step, entry), named, size, entry.mtime)


def _is_named(step: PlanStep, candidate: Candidate | None) -> bool:
    """Whether `-v` shows it: not if only mode or owner change."""
    changed = candidate.differing if candidate else frozenset[str]()
    if step.kind == "attributes":
        return "mtime" in changed
    return step.kind != "directory" or bool(changed)


def _itemized(step: PlanStep, entry: Entry, candidate: Candidate | None) -> bytes:
    """The letters of `-i`; none if nothing changed that they could tell."""
    kind = b"d" if isinstance(entry, Directory) else b"L" if isinstance(entry, Symlink) else b"f"
    here = candidate is not None and type(candidate.have) is type(entry)
    changed = candidate.differing if candidate and here else frozenset[str]()
    if step.kind in ("attributes", "directory"):
        update = b"."
    else:
        update = {"publish": b">", "link": b"h"}.get(step.kind, b"c")
    if not here and update != b".":
        return update + kind + _NEW
    if not changed:
        return b""
    letters = b"".join(letter if attribute in changed else b"." for attribute, letter in _LETTERS)
    return update + kind + (b"c" if "target" in changed else b".") + letters + b"..."


def _tail(step: PlanStep, entry: Entry) -> bytes:
    if isinstance(entry, Symlink):
        return b" -> " + _printable(entry.target)
    if step.kind == "link" and isinstance(entry, File) and entry.link is not None:
        return b" => " + _printable(entry.link)
    return b""


def _shown(entry: Entry) -> bytes:
    name = _printable(entry.path or b".")
    return name + b"/" if isinstance(entry, Directory) else name


def _printable(text: bytes) -> bytes:
    r"""What does not go to a terminal as `\#OCTAL`, byte by byte, as rsync shows it."""

    def escaped(found: re.Match[str]) -> str:
        return "".join(f"\\#{byte:03o}" for byte in found[0].encode("utf-8", "surrogateescape"))

    return _UNPRINTABLE.sub(escaped, text.decode("utf-8", "surrogateescape")).encode()
