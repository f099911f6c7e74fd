"""Fetches a commit by the program `git`, from an upstream that has no static files.

Git receives the pack, completes it, and lists the shallow commits.  It moves no ref: the caller
does so, last.  Packs that git installed are removed if the commit is not complete.
"""

from pathlib import Path

from huai_client.metadata.git.connectivity import check_connected, read_commit
from huai_client.metadata.git.limits import WORK_BYTES, WorkLimit
from huai_client.metadata.git.local import LocalRepository, shallow_of
from huai_client.metadata.git.program import GitProgram
from huai_client.metadata.newest import Newest
from huai_client.metadata.packs import list_packs
from huai_program.packs import remove_packs, remove_unfinished
from huai_program.shallow import write_shallow
from huai_schema.codec.commits import CommitObject
from huai_schema.errors import FormatError, MissingObjectError


class GitFetch:
    """Fetches one commit and all its objects, without its history.

    Methods raise as those of `StaticFetch` do.
    """

    def __init__(self, newest: Newest, local: LocalRepository, *, timeout: float) -> None:
        """`timeout`: see `GitProgram`."""
        self._newest = newest
        self._local = local
        self._git = GitProgram(newest.url, timeout=timeout, deadline=local.deadline)
        self._work = WorkLimit(WORK_BYTES, local.deadline)

    def complete(self) -> tuple[Path, ...]:
        """Fetch the commit, and return the new packs, none if it is here already.

        If it is not complete, they are removed.  Also removes what a killed fetch left.
        """
        local, commit = self._local, self._newest.commit
        if commit in local.complete or commit in local.older:
            return ()
        complete_heads = local.heads(local.complete)
        heads = {**local.heads(local.older), **complete_heads}
        write_shallow(local.path, shallow_of(heads))
        remove_unfinished(local.path / "objects" / "pack")
        before = set(list_packs(local.path))
        try:
            try:
                head = self._receive(complete_heads)
            except MissingObjectError:
                if not complete_heads:
                    raise
                # Either side may be wrong about the local objects: a full fetch settles that.
                head = self._receive({})
        except BaseException as error:
            remove_packs(set(list_packs(local.path)) - before)
            if isinstance(error, FormatError):
                local.refused(error)
            raise
        write_shallow(local.path, shallow_of({**heads, commit: head}))
        return tuple(sorted(set(list_packs(local.path)) - before))

    def _receive(self, bases: dict[str, CommitObject]) -> CommitObject:
        """Fetch the commit, check that all its objects are here, and return it.

        `bases` are complete here, so only what differs from them is checked; without any, git uses
        no local objects.  Raises `MissingObjectError` if an object is missing.
        """
        local, commit = self._local, self._newest.commit
        self._git.fetch(local.path, commit, local.borrowed, refetch=not bases)
        head = read_commit(commit, local.objects)
        check_connected(
            head.tree, {base.tree for base in bases.values()}, local.objects, self._work
        )
        return head
