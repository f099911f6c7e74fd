"""Commits without their parents: the file `shallow` of a repository.

A repository that makes its own commits never has the file.  Git and its libraries read it, and can
clone such a repository.
"""

from collections.abc import Iterable
from pathlib import Path

from huai_program.durable import replace_file


def read_shallow(repository: Path) -> frozenset[str]:
    """Return the hex ids of the commits whose parents are missing."""
    try:
        return frozenset((repository / "shallow").read_text("ascii", "replace").split())
    except FileNotFoundError:
        return frozenset()


def write_shallow(repository: Path, commits: Iterable[str]) -> None:
    """Replace the ids in the file `shallow` by `commits`, durably; without any it is deleted."""
    new, path = sorted(commits), repository / "shallow"
    if not new:
        path.unlink(missing_ok=True)
    elif read_shallow(repository) != frozenset(new):
        text = "".join(f"{commit}\n" for commit in new)
        replace_file(path, text.encode(), repository / "shallow.lock")
