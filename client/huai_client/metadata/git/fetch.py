"""One fetch: ask, receive, complete the pack, see that nothing is missing.

Only composes.  Order of writes: the pack, its index, then the list of shallow commits; the
ref is the caller's, and moves last.  Nothing is written that is not complete: a pack that lacks
something never gets its name.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from huai_client.metadata.git.connectivity import CommitHead, check_connected, read_commit
from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import Work
from huai_client.metadata.git.objects import MissingObjectError, Packed, WithReceived
from huai_client.metadata.git.protocol import ask_for_pack, encode_request, receive_pack
from huai_client.metadata.http import Asked
from huai_client.metadata.newest import Newest
from huai_client.run.deadline import NEVER, Deadline
from huai_program.durable import replace_file
from huai_schema.errors import FormatError

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


class LocalRepository(NamedTuple):
    """The bare repository that a commit is brought to."""

    path: Path
    objects: Packed
    """Reads it."""
    complete: Collection[str]
    """The commits (hex ids) that refs name; everything but history is here of each."""
    older: Collection[str] = ()
    """Others of that kind.  The upstream is not told of them: what clients that stand at one
    commit ask for has to be the same, whatever each of them has kept."""
    deadline: Deadline = NEVER
    """What has not come by then is not waited for."""
    refused: Callable[[FormatError], object] = lambda _: None
    """Called with what is wrong with a pack that came whole."""

    def install(
        self, pack: IncomingPack, commit: str, complete: Collection[bytes], work: Work
    ) -> tuple[CommitHead, Path | None]:
        """Check that `pack` and the trees `complete` hold all of `commit`, and install it."""
        try:
            objects = WithReceived(pack.complete(self.objects, work), self.objects)
            head = read_commit(commit, objects)
            check_connected(head.tree, complete, objects, work)
        except FormatError as error:
            self.refused(error)
            raise
        return head, pack.install()


class Fetch:
    """Of one commit and all that it holds, without its history: what is missing here is asked for.

    `timeout`, `deadline`: see `ask_for_pack`.  Methods raise `UpstreamError`, `FormatError`,
    `TimeUpError`, or an `OSError` of the disk's; then the caller has nothing to record.
    """

    def __init__(self, newest: Newest, here: LocalRepository, *, timeout: float) -> None:
        """Send the question, if there is one."""
        self.newest = newest
        self._here = here
        self._timeout = timeout
        self._work = Work(deadline=here.deadline)
        self._known: dict[str, CommitHead] = {}
        self._asked: Asked | None = None
        if newest.commit not in here.complete and newest.commit not in here.older:
            self._known = {commit: read_commit(commit, here.objects) for commit in here.complete}
            self._asked = self._ask(self._known)

    def complete(self) -> tuple[Path, ...]:
        """Take the answer; the packs that are new."""
        if self._asked is None:
            return ()
        newest, here, known = self.newest, self._here, self._known
        older = {commit: read_commit(commit, here.objects) for commit in here.older}
        try:
            head, pack = self._receive(self._asked, known)
        except MissingObjectError:
            if not known:
                raise
            # Either side may be wrong about what is here: all of it, from nothing, settles that.
            head, pack = self._receive(self._ask({}), {})
        write_shallow(here.path, shallow_of({**older, **known, newest.commit: head}))
        return (pack,) if pack else ()

    def _ask(self, known: dict[str, CommitHead]) -> Asked:
        newest = self.newest
        request = encode_request(newest.commit, known, shallow_of(known))
        return ask_for_pack(
            newest.found,
            request,
            timeout=self._timeout,
            deadline=self._here.deadline,
        )

    def _receive(
        self, asked: Asked, known: dict[str, CommitHead]
    ) -> tuple[CommitHead, Path | None]:
        """Take and check an answer that relies on the commits in `known`."""
        here = self._here
        with IncomingPack(here.path / "objects" / "pack") as pack:
            receive_pack(asked, pack.write)
            trees = {head.tree for head in known.values()}
            return here.install(pack, self.newest.commit, trees, self._work)


def shallow_of(commits: dict[str, CommitHead]) -> set[str]:
    """Those that have a history.  It is never fetched, and never relied on if it is here."""
    return {commit for commit, head in commits.items() if head.has_parents}
