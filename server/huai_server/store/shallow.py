"""Commits that are here without those before them: the file `shallow` of a repository.

A relay has some; git and its libraries read the file, and clone from such a repository what is
there.  A repository that makes its own commits never has the file.
"""

from collections.abc import Iterable
from pathlib import Path

from huai_program.durable import replace_file

_NAME = "shallow"


def read_shallow(repository: Path) -> frozenset[str]:
    """The hex ids."""
    try:
        return frozenset((repository / _NAME).read_text("ascii").split())
    except FileNotFoundError:
        return frozenset()


def write_shallow(repository: Path, commits: Iterable[str]) -> None:
    """Let it be exactly these, durably."""
    wanted = frozenset(commits)
    if wanted != read_shallow(repository):
        text = "".join(f"{commit}\n" for commit in sorted(wanted))
        replace_file(repository / _NAME, text.encode(), repository / f"{_NAME}.new")
