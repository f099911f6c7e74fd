"""The repository's list of commits whose history is not here (gitrepository-layout(5)).

Without it every git would take a commit for damaged whose parents it cannot find.
"""

from collections.abc import Iterable
from pathlib import Path

from huai_schema.program.durable import replace_file

_FILE = "shallow"
_LOCK = "shallow.lock"


def write_shallow(repository: Path, commits: Iterable[str]) -> None:
    """Replace the list in one durable step; `commits` are hex ids."""
    text = "".join(f"{commit}\n" for commit in sorted(commits))
    path, new = repository / _FILE, repository / _LOCK
    if not text:
        path.unlink(missing_ok=True)
        return
    if path.exists() and path.read_text(encoding="ascii", errors="replace") == text:
        return
    replace_file(path, text.encode("ascii"), new)
