"""Finds the content of a plan in the trash.

Reads attributes, and content only if nothing else can tell.  A file in the trash is checked like
any other that is reused: with a digest it is read and compared; without one, size and time have to
be right.
"""

from collections.abc import Iterable, Iterator, Sequence
from stat import S_ISREG

from huai_client.diff.candidates import digest_here
from huai_client.diff.renames import Renames
from huai_client.diff.reuse.value import Reuse
from huai_client.plan.operations import Plan
from huai_client.publish.trash.trash import TRASH, TrashBatch
from huai_client.tree import View
from huai_schema.entries import File
from huai_schema.paths import RelPath, join

_NAMES = 1
"""A file with no name outside the trash is moved back; any other one is copied."""


def restore(plan: Plan, batches: Sequence[TrashBatch], view: View) -> tuple[Plan, list[File]]:
    """The plan with the sources of its files, and the files that have none.

    The trash has a file of a directory that is moved back where it was when the directory was away.
    """
    reuses: dict[RelPath, Reuse] = {}
    missing: list[File] = []
    renames = Renames(plan.moves)
    for file in (file for stage in plan.stages for file in stage.fetches):
        found = _kept(file, batches, view)
        away = renames.before(file.path)
        if found is None and away is not None and away != file.path:
            found = _kept(file._replace(path=away), batches, view)
        found = found or _elsewhere(file, plan)
        if found is None:
            missing.append(file)
        else:
            reuses[file.path] = found
    return plan.with_reuses(reuses), missing


def _elsewhere(file: File, plan: Plan) -> Reuse | None:
    """Another path of the tree, or of the plan, that has this content by its digest."""
    found = plan.reuses.get(file.path)
    if found is None or found.twin:
        return found
    return None if file.digest is None else found._replace(sure=False)


def _kept(file: File, batches: Sequence[TrashBatch], view: View) -> Reuse | None:
    """The kept file of this path that may have the wanted content.

    There may be several of the same size, because an interrupted undo keeps files as well.  Only
    then they are read.
    """
    found = list(_of_this_size(file, reversed(batches), view))
    if file.digest is None:
        return next((each for each in found if each.mtime == file.mtime), None)
    if len(found) < 2:
        return found[0] if found else None
    found.sort(key=lambda each: each.mtime != file.mtime)
    return next((each for each in found if digest_here(view, each.source) == file.digest), None)


def _of_this_size(file: File, batches: Iterable[TrashBatch], view: View) -> Iterator[Reuse]:
    seen: set[tuple[int, int]] = set()
    for batch in batches:
        path = RelPath(join(TRASH, batch.name) + b"/" + file.path)
        status = view.stat(path)
        if status is None or not S_ISREG(status.st_mode) or status.st_size != file.size:
            continue
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            yield Reuse(path, status.st_mtime_ns, names=_NAMES, sure=file.digest is None)
