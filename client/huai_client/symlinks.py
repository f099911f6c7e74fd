"""Which symlinks lead out of the tree.

Pure.  Such a symlink is kept as it is and never followed; the administrator is told.
"""

from collections.abc import Iterator

from huai_client.operations import Plan
from huai_schema.paths import RelPath


def leads_out(path: RelPath, target: bytes) -> bool:
    """Whether a symlink at `path` points to an absolute path or above the module."""
    if target.startswith(b"/"):
        return True
    depth = path.count(b"/")
    for name in target.split(b"/"):
        if name == b"..":
            depth -= 1
        elif name not in (b"", b"."):
            depth += 1
        if depth < 0:
            return True
    return False


def unsafe_symlinks(plan: Plan) -> Iterator[RelPath]:
    """Those that the plan creates or changes."""
    for stage in plan.stages:
        for symlink in stage.symlinks:
            if leads_out(symlink.path, symlink.target):
                yield symlink.path
