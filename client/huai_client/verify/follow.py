"""Keeps the record of parts in step with what is applied.

Compares by ids and skips what is equal, so it costs what the commits differ by; only the first
time, and after a change of the filter, every part is looked up.
"""

from contextlib import suppress
from pathlib import Path

from huai_client.diff.selection import Selection
from huai_client.state.state import StateError
from huai_client.state.verification import Known, Record
from huai_client.verify.parts import Part, make_part
from huai_schema.paths import ROOT


def keep_in_step(path: Path, commit: str, selection: Selection) -> None:
    """Follow a sync, if there is a record at `path`; where that fails, the next `verify` does."""
    if path.exists():
        with suppress(StateError), Record(path) as record:
            follow(record, commit, selection)


def follow(record: Record, commit: str, selection: Selection) -> None:
    """Make the parts of `record` those of `selection`, the applied one, which is of `commit`.

    What a commit changed is to be verified anew.
    """
    with record.writing():
        refiltered = record.applied(commit, selection.rules.key())
        pending = [(ROOT, selection.snapshot.tree)]
        while pending:
            path, tree = pending.pop()
            known = record.known(path)
            if known is None or refiltered or known.tree != tree:
                part = make_part(selection, path, tree)
                _note(record, part, known)
                pending += part.children.items()


def _note(record: Record, part: Part, known: Known | None) -> None:
    now = Known(part.tree, part.identity)
    if known is None:
        record.add(part.path, now)
        return
    record.change(part.path, now)
    for child in [child for child in record.children(part.path) if child not in part.children]:
        record.drop(child)
