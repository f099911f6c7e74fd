"""Refusal of an empty tree, which is most likely a disk that is not mounted."""

import os
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError


class EmptyRootError(HuaiError):
    """The tree is empty or missing."""

    exit_code = ExitCode.EMPTY_ROOT


def empty_root_error(
    root: Path, otherwise: str = "--allow-empty commits an empty tree"
) -> EmptyRootError:
    """Return the error for an empty `root`; `otherwise` advises if it is empty on purpose."""
    return EmptyRootError(
        f"{root}: the tree is empty",
        hint=f"check that its file system is mounted; {otherwise}",
    )


def holds_anything(root: Path) -> bool:
    """Return True unless the directory is empty; raises `OSError` if it cannot be read."""
    with os.scandir(root) as entries:
        return next(entries, None) is not None
