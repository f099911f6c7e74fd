"""A tree with nothing in it is most likely a disk that is not mounted: nothing is done with it."""

import os
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError


class EmptyRootError(HuaiError):
    """A tree with nothing in it, or none."""

    exit_code = ExitCode.EMPTY_ROOT


def empty_root(
    root: Path, otherwise: str = "--allow-empty commits an empty tree"
) -> EmptyRootError:
    """The error for an empty tree; `otherwise`: what to do if it is empty on purpose."""
    return EmptyRootError(
        f"{root}: the tree is empty",
        hint=f"check that its file system is mounted; {otherwise}",
    )


def holds_anything(root: Path) -> bool:
    """Whether there is anything in a tree."""
    with os.scandir(root) as entries:
        return next(entries, None) is not None
