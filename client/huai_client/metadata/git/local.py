"""The bare repository that a commit is fetched into.

Order of writes: the pack, its index, then the list of shallow commits; the caller moves the ref,
last.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from huai_client.metadata.git.connectivity import read_commit
from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import WorkLimit
from huai_client.metadata.git.objects import Objects
from huai_client.run.options import NEVER, Deadline
from huai_schema.codec.commits import CommitObject, decode_commit
from huai_schema.errors import FormatError


class LocalRepository(NamedTuple):
    """The repository, and the commits known to be in it."""

    path: Path
    objects: Objects
    """The reader of its objects."""
    complete: Collection[str]
    """Commits (hex ids) that refs name; all their objects but the history are here."""
    older: Collection[str] = ()
    """Earlier commits of that kind, which a fetch does not build on."""
    deadline: Deadline = NEVER
    """The time at which the fetch ends."""
    refused: Callable[[FormatError], object] = lambda _: None
    """Called with the error of a pack that was received completely."""
    borrowed: Collection[Path] = ()
    """Repositories whose objects are read as well."""

    def heads(self, commits: Iterable[str]) -> dict[str, CommitObject]:
        """Return `commits` by id; raises `MissingObjectError` if one is not here."""
        return {commit: read_commit(commit, self.objects) for commit in commits}

    def install(
        self, pack: IncomingPack, commit: str, complete: Collection[bytes], work: WorkLimit
    ) -> tuple[CommitObject, Path | None]:
        """Check that `pack` and the trees `complete` hold all of `commit`, and install it.

        Returns the commit, and the pack's path, None if it adds no file.  Raises `FormatError` for
        a refused pack, after calling `refused`.
        """
        try:
            path, data = pack.install(self.objects, work, (bytes.fromhex(commit), [*complete]))
            return decode_commit(data), path
        except FormatError as error:
            self.refused(error)
            raise


def shallow_of(commits: dict[str, CommitObject]) -> set[str]:
    """Return the commits with parents: history is never fetched, and never used if it is here."""
    return {commit for commit, head in commits.items() if head.parents}
