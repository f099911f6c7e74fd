r"""rsync's lines for the changes in a plan: letters, name, and the target of a link.

Pure.  Source: rsync(1), "--itemize-changes".  rsync does not rename directories: a rename shows as
one deletion and one new directory.  Rule to keep: names come from the upstream, so control
characters in them are escaped.
"""

import re
from collections.abc import Iterable

from huai_client.diff.candidate import Candidate
from huai_client.huai_rsync.log import Item, Items, PlanStep
from huai_client.plan.operations import Plan, StepKind
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\udc80-\udcff"  # controls, C1's too; what is not UTF-8
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # bidirectional marks and line breaks
    r"|\\(?=#[0-7]{3})"  # a backslash that would look like an escape
)
_DELETED = b"*deleting  "
_NEW = b"+" * 9
_LETTERS = (("size", b"s"), ("mtime", b"t"), ("mode", b"p"), ("owner", b"o"), ("group", b"g"))


def items(plan: Plan, candidates: Iterable[Candidate]) -> Items:
    """Return the lines of rsync, by step, for `plan`, which was made from `candidates`."""
    by_path = {candidate.path: candidate for candidate in candidates}
    lines: Items = {}
    new_directories = {*plan.make, *(move.new for move in plan.moves)}
    for kind, entry in plan.steps():
        if kind is StepKind.DIRECTORY and entry.path in new_directories:
            continue
        step = PlanStep(kind, entry.path)
        item = _item(step, entry, by_path.get(step.path))
        if item is not None:
            lines[step] = [item]
    for move in plan.moves:
        lines[PlanStep("move", move.new)].insert(0, Item(_DELETED, _name(Directory(move.old, 0))))
    _turn_links(plan, by_path, lines)
    return lines


def _turn_links(plan: Plan, by_path: dict[RelPath, Candidate], lines: Items) -> None:
    """Change `lines`: a new name of an old inode is a hardlink, even if it is huai's leader."""
    new = {file.path for stage in plan.stages for file in stage.fetches}
    for file in (file for stage in plan.stages for file in stage.links):
        leader, member = by_path.get(file.link or RelPath(b"")), by_path.get(file.path)
        if leader is None or member is None or leader.have is not None or leader.path not in new:
            continue
        if isinstance(member.have, File) and member.differing == {"link"}:
            lines.pop(PlanStep("link", file.path), None)
            items = lines.get(PlanStep("publish", leader.path), [])
            lines[PlanStep("publish", leader.path)] = [
                item._replace(itemized=b"hf" + _NEW, tail=b" => " + _printable(file.path))
                for item in items
            ]


def _item(step: PlanStep, entry: Entry, candidate: Candidate | None) -> Item | None:
    """Return the line for a step; None if rsync shows nothing."""
    name = _name(entry)
    if step.kind in ("clear", "remove"):
        return Item(_DELETED, name)
    itemized = _itemized(step, entry, candidate)
    brief = _is_named(step, candidate)
    if not itemized and not brief:
        return None
    size = entry.size if isinstance(entry, File) else 0
    return Item(itemized, name, _tail(step, entry), brief, size, entry.mtime)


def _is_named(step: PlanStep, candidate: Candidate | None) -> bool:
    """Return True if `-v` shows a step: not if only mode or owner change."""
    changed = candidate.differing if candidate else frozenset[str]()
    if step.kind == "attributes":
        return "mtime" in changed
    return step.kind != "directory" or bool(changed)


def _itemized(step: PlanStep, entry: Entry, candidate: Candidate | None) -> bytes:
    """Return the letters of `-i`; empty if nothing changes that they cover."""
    kind = b"d" if isinstance(entry, Directory) else b"L" if isinstance(entry, Symlink) else b"f"
    exists = candidate is not None and type(candidate.have) is type(entry)
    changed = candidate.differing if candidate and exists else frozenset[str]()
    if step.kind in ("attributes", "directory"):
        update = b"."
    else:
        update = {"publish": b">", "link": b"h"}.get(step.kind, b"c")
    if not exists and update != b".":
        return update + kind + _NEW
    if not changed:
        return b""
    letters = b"".join(letter if attribute in changed else b"." for attribute, letter in _LETTERS)
    return update + kind + (b"c" if "target" in changed else b".") + letters + b"..."


def _tail(step: PlanStep, entry: Entry) -> bytes:
    """Return the target of a symlink or hardlink, with rsync's arrow."""
    if isinstance(entry, Symlink):
        return b" -> " + _printable(entry.target)
    if step.kind == "link" and isinstance(entry, File) and entry.link is not None:
        return b" => " + _printable(entry.link)
    return b""


def _name(entry: Entry) -> bytes:
    """Return the path as rsync prints it, a directory with a slash."""
    name = _printable(entry.path or b".")
    return name + b"/" if isinstance(entry, Directory) else name


def _printable(text: bytes) -> bytes:
    r"""Escape unprintable characters as `\#OCTAL`, byte by byte, as rsync does."""

    def escaped(match: re.Match[str]) -> str:
        return "".join(f"\\#{byte:03o}" for byte in match[0].encode("utf-8", "surrogateescape"))

    return _UNPRINTABLE.sub(escaped, text.decode("utf-8", "surrogateescape")).encode()
