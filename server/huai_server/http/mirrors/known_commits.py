"""The commits of modules by serial, read again only as far as they are new.

Reads repositories, so it is asked in threads.
"""

from itertools import islice
from pathlib import Path
from threading import Lock

from huai_server.http.git.branch_state import read_branch_state
from huai_server.mirrors.judge import Commits
from huai_server.store.repository import Repository

_KEPT = 5000
"""The newest of a module that are known: an attestation of an older one is refused."""
_NONE = Commits("", {})


class KnownCommits:
    """Those of all modules."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[bytes, Commits]] = {}
        self._turn = Lock()

    def read(self, repository: Path) -> Commits:
        """Those of one module; `HuaiError` for a damaged repository."""
        with self._turn:
            state = read_branch_state(repository)
            known = self._known.get(repository)
            if known is not None and known[0] == state:
                return known[1]
            if state is None or not repository.exists():
                return _NONE
            found = _read(Repository(repository), known[1] if known else _NONE)
            self._known[repository] = (state, found)
            return found

    def forget_all_but(self, repositories: set[Path]) -> None:
        """Keep no more than the modules there are."""
        with self._turn:
            for repository in self._known.keys() - repositories:
                del self._known[repository]


def _read(repository: Repository, known: Commits) -> Commits:
    """Newest first, down to one that is known; those before it are as they were, or gone."""
    newest = repository.head()
    if newest is None:
        return _NONE
    times: dict[int, tuple[str, int]] = {}
    for head in islice(repository.history(), _KEPT):
        serial = head.info.serial
        if known.times.get(serial, ("",))[0] == head.commit:
            times.update((n, each) for n, each in known.times.items() if n <= serial)
            break
        times[serial] = (head.commit, head.time)
    kept = dict(sorted(times.items())[-_KEPT:])
    return Commits(repository.snapshot(newest)[0].identity, kept)
