"""Commits without their parents: the file `shallow` of a repository.

A relay has such commits; git and its libraries read the file, and can clone such a repository.
A repository that makes its own commits never has the file.
there.  A repository that makes its own commits never has the file.
"""

from collections.abc import Iterable
from pathlib import Path

from huai_program.durable import replace_file

_NAME = "shallow"


def read_shallow(repository: Path) -> frozenset[str]:
    """Return the hex ids."""
    try:
        return frozenset((repository / _NAME).read_text("ascii").split())
    except FileNotFoundError:
        return frozenset()


def write_shallow(repository: Path, commits: Iterable[str]) -> None:
    """Replace the ids durably."""
    new = frozenset(commits)
    if new != read_shallow(repository):
        text = "".join(f"{commit}\n" for commit in sorted(new))
        replace_file(repository / _NAME, text.encode(), repository / f"{_NAME}.new")
