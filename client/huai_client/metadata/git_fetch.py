"""Brings a commit here by the program `git`, from an upstream that has no static files.

Git receives the pack, completes it, and lists the shallow commits.  It moves no ref: that is the
caller's, and moves last.  What it installed goes again if not all of the commit is here.
"""

from pathlib import Path

from huai_client.metadata.git.connectivity import CommitHead, check_connected, read_commit
from huai_client.metadata.git.limits import WORK_BYTES, Work
from huai_client.metadata.git.local import LocalRepository, shallow_of, write_shallow
from huai_client.metadata.git.objects import MissingObjectError
from huai_client.metadata.git.program import GitProgram
from huai_client.metadata.newest import Newest
from huai_client.metadata.packs import list_packs, remove_packs
from huai_program.packs import remove_unfinished
from huai_schema.errors import FormatError


class GitFetch:
    """Fetches one commit and all that it holds, without its history.

    Methods raise as `StaticFetch` does.
    """

    def __init__(self, newest: Newest, here: LocalRepository, *, timeout: float) -> None:
        """`timeout`: see `GitProgram`."""
        self._newest = newest
        self._here = here
        self._git = GitProgram(newest.found, timeout=timeout, deadline=here.deadline)
        self._work = Work(WORK_BYTES, here.deadline)

    def complete(self) -> tuple[Path, ...]:
        """Fetch; the packs that are new."""
        here, commit = self._here, self._newest.commit
        if commit in here.complete or commit in here.older:
            return ()
        known = here.heads(here.complete)
        heads = {**here.heads(here.older), **known}
        write_shallow(here.path, shallow_of(heads))
        remove_unfinished(here.path / "objects" / "pack")
        before = set(list_packs(here.path))
        try:
            try:
                head = self._receive(known)
            except MissingObjectError:
                if not known:
                    raise
                # Either side may be wrong about what is here: all of it settles that.
                head = self._receive({})
        except BaseException as error:
            remove_packs(set(list_packs(here.path)) - before)
            if isinstance(error, FormatError):
                here.refused(error)
            raise
        write_shallow(here.path, shallow_of({**heads, commit: head}))
        return tuple(sorted(set(list_packs(here.path)) - before))

    def _receive(self, known: dict[str, CommitHead]) -> CommitHead:
        """Fetch what the commits in `known` lack, and check that it is all."""
        here, commit = self._here, self._newest.commit
        self._git.fetch(here.path, commit, here.borrowed, whole=not known)
        head = read_commit(commit, here.objects)
        check_connected(head.tree, {each.tree for each in known.values()}, here.objects, self._work)
        return head
