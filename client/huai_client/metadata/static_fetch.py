"""Fetches a commit by the packs that a head of static files names.

Order of writes: for each step its pack, the list of shallow commits, then the ref of the progress,
from which the next run continues after a kill.  The caller moves the ref of the commit, last.

Rules: no more bytes of a file are read than its stated size, and a file with another digest is
refused.  After each step all of its tree is here.  If the steps from a known commit fail, those
from nothing are tried, and then an error is raised.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import REPLY_BYTES, WorkLimit
from huai_client.metadata.git.local import LocalRepository, shallow_of
from huai_client.metadata.http import (
    IncompleteCopyError,
    MetadataUrl,
    NotServedError,
    Request,
    Response,
    UpstreamDownError,
    UpstreamError,
    send,
)
from huai_client.metadata.newest import Newest
from huai_client.run.options import Deadline
from huai_native._native import Blake3
from huai_program.shallow import write_shallow
from huai_schema.codec.commits import CommitObject, decode_commit
from huai_schema.codec.static_files import (
    FOLDER,
    NOTHING,
    STATIC_BYTES,
    Static,
    StaticFile,
    cheapest,
)
from huai_schema.errors import FormatError


class Files:
    """Requests one file after the other; remembers where a URL redirects to."""

    def __init__(self, *, timeout: float, deadline: Deadline) -> None:
        """`timeout` (s): see `send`."""
        self._timeout = timeout
        self._deadline = deadline
        self._targets: dict[MetadataUrl, MetadataUrl] = {}

    @contextmanager
    def get(self, url: MetadataUrl, path: str) -> Iterator[Response]:
        """Request the file at `path` below `url`, and yield its response.

        Raises `NotServedError` if it is missing, and what `send` does.
        """
        with ExitStack() as stack:
            yield self._response(url, path, stack)

    def _response(self, url: MetadataUrl, path: str, stack: ExitStack) -> Response:
        """Request `path` at the last redirect target of `url`, else at `url`; note the target."""
        target = self._targets.pop(url, None)
        if target is not None:
            try:
                response = self._send(target, path, stack)
            except NotServedError:
                raise
            except UpstreamError:  # another file may have another target
                pass
            else:
                self._targets[url] = target
                return response
        response = self._send(url, path, stack)
        target = url.redirected(response.url.removesuffix(f"/{path}"))
        if target != url:
            self._targets[url] = target
        return response

    def _send(self, url: MetadataUrl, path: str, stack: ExitStack) -> Response:
        exchange = send(url, Request(path), timeout=self._timeout, deadline=self._deadline)
        return stack.enter_context(exchange)


_READ = 1 << 18
LARGE = 1 << 20
"""Bytes of metadata that are worth several requests."""
_REQUEST = 16_384
"""Bytes that take as long as one request."""
_STEPS = 256
"""Steps of one way: an honest way has a few for each time that the gap grows eightfold."""


_LISTS = 3
"""Lists in a row: one of all that the head leaves out, and one of a commit."""


class _MissingFileError(UpstreamError):
    """A file that the head or a list names is missing."""


class _Hop(NamedTuple):
    file: StaticFile
    commit: str
    """The commit that it leads to."""


class StaticFetch:
    """Fetches one commit and all its objects, without its history.

    Methods raise `UpstreamError`, `FormatError`, `TimeUpError`, or an `OSError` of the disk.
    """

    def __init__(
        self,
        newest: Newest,
        static: Static,
        local: LocalRepository,
        *,
        timeout: float,
        on_step: Callable[[str], object],
    ) -> None:
        """`static` is the decoded head; `on_step` is called with each commit on the way."""
        self.newest = newest
        self._static = static
        self._local = local
        self._on_step = on_step
        self._url = newest.url
        self._work = WorkLimit(deadline=local.deadline)
        self._files = Files(timeout=timeout, deadline=local.deadline)
        self._packs: list[Path] = []

    def complete(self) -> tuple[Path, ...]:
        """Fetch and install the packs; return the new ones, none if the commit is here already.

        A missing file is an `IncompleteCopyError`: its head has just been read, so the folder was
        copied with the head first.
        """
        try:
            return self._complete()
        except _MissingFileError as error:
            raise IncompleteCopyError(error.message) from error

    def _complete(self) -> tuple[Path, ...]:
        """Fetch the packs of the cheapest way to the newest commit; return their paths.

        If they are wrong, fetches the way that needs no local commit.
        """
        local, commit = self._local, self.newest.commit
        if commit in local.complete or commit in local.older:
            return ()
        bases = local.heads(local.complete)
        serials = {self._serial(each): each for each in bases}
        way = self._find_way(serials)
        try:
            self._follow(way, bases, bases)
        except UpstreamDownError:
            raise
        except (UpstreamError, FormatError):
            full_way = self._find_way({})
            if way == full_way:
                raise
            # Either side may be wrong about the local objects: a full fetch settles that.
            self._follow(full_way, {}, bases)
        return tuple(self._packs)

    def _find_way(self, have: dict[int, str]) -> list[_Hop]:
        """Return the cheapest way from the commits in `have`, by serial, or from nothing.

        Fetches the lists that it needs; raises `FormatError` without a way.
        """
        static = self._static
        if have:
            static = self._add_lists(
                static, max(have), lambda more: bool(_shared_serials(more, have))
            )
        way = _cheapest(static, have)
        if way is None:
            static = self._add_lists(static, NOTHING, lambda more: _newest_full(more) != NOTHING)
            ways = partial(_cheapest, have=have)
            static = self._add_lists(static, _newest_full(static), lambda more: bool(ways(more)))
            way = _cheapest(static, have)
        place = f"{self._url}/{FOLDER}/head"
        if way is None or len(way) > _STEPS:
            raise FormatError("no way leads to the newest commit", place)
        if sum(hop.file.size for hop in way) > REPLY_BYTES:
            raise FormatError(f"packs of more than {REPLY_BYTES} bytes", place)
        return way

    def _add_lists(self, static: Static, serial: int, enough: Callable[[Static], bool]) -> Static:
        """Return `static` with the lists that cover `serial`, fetched until `enough` is True of it.

        At most three are fetched.
        """
        for _ in range(_LISTS):
            entry = next((each for each in static.lists if each.first <= serial <= each.last), None)
            if entry is None or enough(static):
                break
            fetched = self._fetch_list(entry.file)
            # The newest commit stays the first, and the head takes precedence for a serial.
            commits = {**static.commits, **fetched.commits, **static.commits}
            lists = tuple(each for each in static.lists if each != entry)
            static = Static(commits, static.steps + fetched.steps, lists + fetched.lists)
        return static

    def _follow(
        self, way: list[_Hop], bases: dict[str, CommitObject], complete: dict[str, CommitObject]
    ) -> None:
        """Fetch the packs of `way`, in order; call `on_step` after each but the last.

        The first builds on the commits in `bases`.  The objects of those in `complete` are here.
        """
        local = self._local
        older = local.heads(local.older)
        for hop in way:
            head, pack = self._fetch_step(hop, {each.tree for each in bases.values()})
            if pack:
                self._packs.append(pack)
            bases = {**bases, hop.commit: head}
            write_shallow(local.path, shallow_of({**older, **complete, hop.commit: head}))
            if hop != way[-1]:
                self._on_step(hop.commit)

    def _fetch_step(self, hop: _Hop, trees: set[bytes]) -> tuple[CommitObject, Path | None]:
        """Fetch and install the pack of a hop; return its commit and path."""
        local = self._local
        with IncomingPack(local.path / "objects" / "pack") as pack:
            self._read(hop.file, hop.file.pack_name, pack.write)
            return local.install(pack, hop.commit, trees, self._work)

    def _fetch_list(self, file: StaticFile) -> Static:
        """Fetch and decode the list of packs.

        Raises `FormatError` if it is too large or malformed.
        """
        parts: list[bytes] = []
        if file.size > STATIC_BYTES:
            raise FormatError(f"more than {STATIC_BYTES} bytes", f"{self._url}/{FOLDER}")
        self._read(file, file.list_name, parts.append)
        return Static.decode(b"".join(parts), f"{self._url}/{FOLDER}/{file.list_name}")

    def _read(self, file: StaticFile, name: str, write: Callable[[bytes], object]) -> None:
        """Pass all of the file `name` to `write`, in pieces.

        Raises `FormatError` if its size or digest is wrong, `_MissingFileError` if it is missing.
        """
        place = f"{FOLDER}/{name}"
        digest, left = Blake3(), file.size
        try:
            with self._files.get(self._url, place) as response:
                while data := response.read(min(_READ, left + 1)):
                    left -= len(data)
                    if left < 0:
                        break
                    digest.update(data)
                    write(data)
        except NotServedError as error:
            raise _MissingFileError(
                f"{self._url}: {FOLDER}/head names {place}, which is missing"
            ) from error
        if left or digest.digest() != file.digest:
            raise FormatError("not the file with the digest in its name", f"{self._url}/{place}")

    def _serial(self, commit: str) -> int:
        """Return the serial of a local commit; `NOTHING` if it is not here."""
        item = self._local.objects.find(bytes.fromhex(commit))
        return decode_commit(item.data).info().serial if item else NOTHING


def is_large(static: Static | None) -> bool:
    """Return True if a commit takes more than a megabyte without any other, or if unknown."""
    sizes = [step.file.size for step in static.steps if step.old == NOTHING] if static else []
    return not sizes or min(sizes) > LARGE


def _shared_serials(static: Static, have: dict[int, str]) -> list[int]:
    """Return the serials of commits in `have` that the upstream has too."""
    return [serial for serial in have if static.commits.get(serial) == have[serial]]


def _newest_full(static: Static) -> int:
    """Return the serial of the newest commit with a full pack; else `NOTHING`."""
    return max((step.new for step in static.steps if step.old == NOTHING), default=NOTHING)


def _cheapest(static: Static, have: dict[int, str]) -> list[_Hop] | None:
    """Return the packs of fewest bytes to the newest commit, from one in `have` or from nothing.

    `have`: local commits, by serial.  None without a way.
    """
    serials = [*_shared_serials(static, have), NOTHING]
    way = cheapest(static.steps, serials, static.newest, request=_REQUEST)
    return None if way is None else [_Hop(step.file, static.commits[step.new]) for step in way]
