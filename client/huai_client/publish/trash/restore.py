"""Finds the content of a plan in the trash.

Reads attributes, and content only where they do not suffice.  A file in the trash is checked like
any other reused file: with a digest its content is compared; without one, size and time have to
match.
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
"""A file with no other name than in the trash is moved back; any other one is copied."""


def restore(plan: Plan, batches: Sequence[TrashBatch], view: View) -> tuple[Plan, list[File]]:
    """Return the plan with the sources of its files, and the files that have none.

    The trash has the files of a moved directory under the path that it had at the time.
    """
    reuses: dict[RelPath, Reuse] = {}
    missing: list[File] = []
    renames = Renames(plan.moves)
    for file in (file for stage in plan.stages for file in stage.fetches):
        source = _find_kept(file, batches, view)
        former_path = renames.before(file.path)
        if source is None and former_path is not None and former_path != file.path:
            source = _find_kept(file._replace(path=former_path), batches, view)
        source = source or _find_elsewhere(file, plan)
        if source is None:
            missing.append(file)
        else:
            reuses[file.path] = source
    return plan.with_reuses(reuses), missing


def _find_elsewhere(file: File, plan: Plan) -> Reuse | None:
    """Return another path of the tree or of the plan that has this content by its digest."""
    reuse = plan.reuses.get(file.path)
    if reuse is None or reuse.twin:
        return reuse
    return None if file.digest is None else reuse._replace(sure=False)


def _find_kept(file: File, batches: Sequence[TrashBatch], view: View) -> Reuse | None:
    """Return the kept file of this path that may have the wanted content.

    There may be several of the same size, because an interrupted undo keeps files as well.  Only
    then they are read.
    """
    candidates = list(_of_this_size(file, reversed(batches), view))
    if file.digest is None:
        return next((each for each in candidates if each.mtime == file.mtime), None)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    candidates.sort(key=lambda each: each.mtime != file.mtime)
    return next(
        (each for each in candidates if digest_here(view, each.source) == file.digest), None
    )


def _of_this_size(file: File, batches: Iterable[TrashBatch], view: View) -> Iterator[Reuse]:
    inodes: set[tuple[int, int]] = set()
    for batch in batches:
        path = RelPath(join(TRASH, batch.name) + b"/" + file.path)
        status = view.stat(path)
        if status is None or not S_ISREG(status.st_mode) or status.st_size != file.size:
            continue
        if (status.st_dev, status.st_ino) not in inodes:
            inodes.add((status.st_dev, status.st_ino))
            yield Reuse(path, status.st_mtime_ns, names=_NAMES, sure=file.digest is None)
