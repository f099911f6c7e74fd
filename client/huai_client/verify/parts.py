"""The parts of a tree, each with a record of when it was verified.

A part is a directory with a separate git tree, and the small directories below it that are in its
manifest.  Ids show a change of a part without reading its manifest.

The record follows the applied commit.  This compares ids and skips equal ones, so the cost grows
with the difference between the commits; only the first time, and after a change of the filter, it
looks up every part.
"""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.selection import Selection
from huai_client.state.state import StateError
from huai_client.state.verification import KnownPart, VerificationRecord
from huai_schema.paths import ROOT, RelPath, join

_IDENTITY_BYTES = 16


class Part(NamedTuple):
    """A part in one commit."""

    path: RelPath
    tree: bytes
    """The git id of its tree; it stays equal while nothing in or below the part changes."""
    identity: bytes
    """16 bytes, which are equal if the entries of the part itself are equal."""
    children: dict[RelPath, bytes]
    """The parts directly in it, with their trees."""

    @property
    def child_paths(self) -> frozenset[RelPath]:
        """The paths of the parts directly in it, which do not belong to this part."""
        return frozenset(self.children)


def part_at(selection: Selection, path: RelPath) -> Part | None:
    """Return the part at `path`; None if the directory is not a part, or is excluded."""
    if not selection.rules.reaches(path, directory=True):
        return None
    tree = selection.snapshot.own_tree(path)
    return None if tree is None else make_part(selection, path, tree)


def make_part(selection: Selection, path: RelPath, tree: bytes) -> Part:
    """Return the part at `path` with the git id `tree`."""
    own = selection.snapshot.own_directory(path, tree)
    paths = ((join(path, name), oid) for name, oid in own.children.items())
    reaches = selection.rules.reaches
    included = {below: oid for below, oid in paths if reaches(below, directory=True)}
    identity = sha256(b"".join(oid or b"-" for oid in own.ids)).digest()[:_IDENTITY_BYTES]
    return Part(path, tree, identity, included)


def keep_in_step(path: Path, commit: str, selection: Selection) -> None:
    """Update the record at `path`, if it exists, to `commit`; errors are left to `verify`."""
    if path.exists():
        with suppress(StateError), VerificationRecord(path) as record:
            follow_selection(record, commit, selection)


def follow_selection(record: VerificationRecord, commit: str, selection: Selection) -> None:
    """Replace the parts of `record` with those of `selection`, of the applied commit `commit`.

    Changed parts have to be verified again; those that are gone are dropped.
    """
    with record.writing():
        refiltered = record.record_applied(commit, selection.rules.key())
        pending = [(ROOT, selection.snapshot.tree)]
        while pending:
            path, tree = pending.pop()
            recorded = record.find_part(path)
            if recorded is None or refiltered or recorded.tree != tree:
                part = make_part(selection, path, tree)
                _note(record, part, recorded)
                pending += part.children.items()


def _note(record: VerificationRecord, part: Part, recorded: KnownPart | None) -> None:
    """Add or change a part in `record`, and drop the parts in it that are gone."""
    now = KnownPart(part.tree, part.identity)
    if recorded is None:
        record.add(part.path, now)
        return
    record.change(part.path, now)
    for child in [child for child in record.children(part.path) if child not in part.children]:
        record.drop(child)
