"""One fetch: ask, receive, complete the pack, see that nothing is missing.

Only composes.  Order of writes: the pack, its index, then the list of shallow commits; the
ref is the caller's, and moves last.  Nothing is written that is not complete: a pack that lacks
something never gets its name.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.git.connectivity import CommitHead, check_connected, read_commit
from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import Work
from huai_client.metadata.git.objects import MissingObjectError, Packed, WithReceived
from huai_client.metadata.git.protocol import encode_request, receive_pack
from huai_client.metadata.http import Newest
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


def fetch_commit(newest: Newest, here: LocalRepository, *, timeout: float) -> Path | None:
    """Bring a commit here and all that it holds, without its history; the pack that is new.

    `timeout`: see `receive_pack`.  Raises `UpstreamError`, `FormatError`, `TimeUpError`, or an
    `OSError` of the disk's; then the caller has nothing to record.
    """
    if newest.commit in here.complete or newest.commit in here.older:
        return None
    older = {commit: read_commit(commit, here.objects) for commit in here.older}
    known = {commit: read_commit(commit, here.objects) for commit in here.complete}
    try:
        head, pack = _receive(newest, here, known, timeout)
    except MissingObjectError:
        if not known:
            raise
        # Either side may be wrong about what is here: all of it, from nothing, settles that.
        head, pack = _receive(newest, here, {}, timeout)
    write_shallow(here.path, _shallow({**older, **known, newest.commit: head}))
    return pack


def _receive(
    newest: Newest, here: LocalRepository, known: dict[str, CommitHead], timeout: float
) -> tuple[CommitHead, Path | None]:
    """Fetch and check, relying on the commits in `known`."""
    request = encode_request(newest.commit, known, _shallow(known))
    work = Work(deadline=here.deadline)
    with IncomingPack(here.path / "objects" / "pack") as pack:
        receive_pack(newest.found, request, pack.write, timeout=timeout, deadline=here.deadline)
        objects = WithReceived(pack.complete(here.objects, work), here.objects)
        head = read_commit(newest.commit, objects)
        check_connected(head.tree, {each.tree for each in known.values()}, objects, work)
        return head, pack.install()


def _shallow(commits: dict[str, CommitHead]) -> set[str]:
    """Those that have a history.  It is never fetched, and never relied on if it is here."""
    return {commit for commit, head in commits.items() if head.has_parents}
