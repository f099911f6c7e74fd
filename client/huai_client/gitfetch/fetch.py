"""One fetch: ask, receive, complete the pack, see that nothing is missing.

Only composes.  Order of writes: the pack, its index, then the list of shallow commits; the
ref is the caller's, and moves last.
"""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from huai_client.deadline import NEVER, Deadline
from huai_client.gitfetch.bounds import Work
from huai_client.gitfetch.connected import CommitHead, check_connected, read_commit
from huai_client.gitfetch.exchange import receive_pack
from huai_client.gitfetch.incoming import IncomingPack
from huai_client.gitfetch.objects import MissingObjectError, Objects
from huai_client.gitfetch.request import encode_request
from huai_client.gitfetch.shallow import write_shallow
from huai_client.lines.upstream import Newest


class Here(NamedTuple):
    """The bare repository that a commit is brought to."""

    path: Path
    objects: Objects
    """Reads it."""
    complete: Collection[str]
    """The commits (hex ids) that refs name; everything but history is here of each."""
    older: Collection[str] = ()
    """Others of that kind.  The upstream is not told of them: what clients that stand at one
    commit ask for has to be the same, whatever each of them has kept."""
    deadline: Deadline = NEVER
    """What has not come by then is not waited for."""


def fetch_commit(newest: Newest, here: Here, *, timeout: float) -> None:
    """Bring a commit here and all that it holds, without its history.

    `timeout`: see `receive_pack`.  Raises `UpstreamError`, `FormatError`, `TimeUpError`, or an
    `OSError` of the disk's; then the caller has nothing to record.
    """
    if newest.commit in here.complete or newest.commit in here.older:
        return
    older = {commit: read_commit(commit, here.objects) for commit in here.older}
    known = {commit: read_commit(commit, here.objects) for commit in here.complete}
    try:
        head = _receive(newest, here, known, timeout)
    except MissingObjectError:
        if not known:
            raise
        # Either side may be wrong about what is here: all of it, from nothing, settles that.
        head = _receive(newest, here, {}, timeout)
    write_shallow(here.path, _shallow({**older, **known, newest.commit: head}))


def _receive(
    newest: Newest, here: Here, known: dict[str, CommitHead], timeout: float
) -> CommitHead:
    """Fetch and check, relying on the commits in `known`."""
    request = encode_request(newest.commit, known, _shallow(known))
    with IncomingPack(here.path / "objects" / "pack") as pack:

        def write(data: bytes) -> None:
            here.deadline.check("the metadata did not come in time, and nothing was changed")
            pack.write(data)

        receive_pack(newest.found, request, write, timeout=timeout)
        received = pack.install(here.objects, Work())
    head = read_commit(newest.commit, here.objects)
    check_connected(head.tree, {each.tree for each in known.values()}, received, here.objects)
    return head


def _shallow(commits: dict[str, CommitHead]) -> set[str]:
    """Those that have a history.  It is never fetched, and never relied on if it is here."""
    return {commit for commit, head in commits.items() if head.has_parents}
