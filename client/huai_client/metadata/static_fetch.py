"""Brings a commit here by the packs that a head names.

Order of writes: for each step its pack, the list of shallow commits, then the ref of how far it
came, so that a run that is killed is taken up there.  The ref of the commit is the caller's, and
moves last.

Rules: no more is read of a file than it is said to have, and what has another digest is refused.
After each step all of its tree is here.  A way that leads nowhere is followed by that from nothing,
and that by an error.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from huai_client.metadata.files import Files
from huai_client.metadata.git.connectivity import CommitHead
from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import REPLY_BYTES, Work
from huai_client.metadata.git.local import LocalRepository, shallow_of, write_shallow
from huai_client.metadata.http import (
    IncompleteCopyError,
    NotServedError,
    UpstreamDownError,
    UpstreamError,
)
from huai_client.metadata.newest import Newest
from huai_native._native import Blake3
from huai_schema.codec.commits import decode_commit
from huai_schema.codec.static_files import (
    FOLDER,
    NOTHING,
    STATIC_BYTES,
    Static,
    StaticFile,
    cheapest,
)
from huai_schema.errors import FormatError

_READ = 1 << 18
_REQUEST = 16_384
"""Bytes that take as long as a request."""
_STEPS = 256
"""Of one way: an honest one has a few for each time that what was missed grows eightfold."""


_LISTS = 3
"""One after the other: one of all that the head does not say, and that of a commit."""


class _MissingFileError(UpstreamError):
    """A file that the head, or a list, names is not there."""


class _Hop(NamedTuple):
    """One step of a way."""

    file: StaticFile
    commit: str
    """Where it leads."""


class StaticFetch:
    """Fetches one commit and all that it holds, without its history.

    Methods raise `UpstreamError`, `FormatError`, `TimeUpError`, or an `OSError` of the disk's.
    """

    def __init__(
        self,
        newest: Newest,
        static: Static,
        here: LocalRepository,
        *,
        timeout: float,
        came: Callable[[str], object],
    ) -> None:
        """`static` is what the head says; `came` is told of each commit on the way."""
        self.newest = newest
        self._static = static
        self._here = here
        self._came = came
        self._url = newest.found
        self._work = Work(deadline=here.deadline)
        self._files = Files(timeout=timeout, deadline=here.deadline)
        self._packs: list[Path] = []

    def complete(self) -> tuple[Path, ...]:
        """Take the packs; those that are new.

        A missing file is an `IncompleteCopyError`: the head that names it has just been read, so
        whoever copies the folder has copied the head first.
        """
        try:
            return self._complete()
        except _MissingFileError as error:
            raise IncompleteCopyError(error.message) from error

    def _complete(self) -> tuple[Path, ...]:
        here, commit = self._here, self.newest.commit
        if commit in here.complete or commit in here.older:
            return ()
        known = here.heads(here.complete)
        serials = {self._serial(each): each for each in known}
        way = self._way(serials)
        try:
            self._follow(way, known, known)
        except UpstreamDownError:
            raise
        except (UpstreamError, FormatError):
            whole = self._way({})
            if way == whole:
                raise
            # Either side may be wrong about what is here: all of it settles that.
            self._follow(whole, {}, known)
        return tuple(self._packs)

    def _way(self, have: dict[int, str]) -> list[_Hop]:
        """The cheapest way from the commits that are here, by serial, or from nothing."""
        static = self._static
        if have:
            static = self._with_lists(static, max(have), lambda said: bool(_mine(said, have)))
        way = _cheapest(static, have)
        if way is None:
            static = self._with_lists(static, NOTHING, lambda said: _whole(said) != NOTHING)
            ways = partial(_cheapest, have=have)
            static = self._with_lists(static, _whole(static), lambda said: bool(ways(said)))
            way = _cheapest(static, have)
        place = f"{self._url}/{FOLDER}/head"
        if way is None or len(way) > _STEPS:
            raise FormatError("no way leads to the newest commit", place)
        if sum(hop.file.size for hop in way) > REPLY_BYTES:
            raise FormatError(f"packs of more than {REPLY_BYTES} bytes", place)
        return way

    def _with_lists(self, static: Static, serial: int, enough: Callable[[Static], bool]) -> Static:
        """With the lists that are said to have a serial in them, until that is enough."""
        for _ in range(_LISTS):
            named = next((each for each in static.lists if each.first <= serial <= each.last), None)
            if named is None or enough(static):
                break
            found = self._list(named.file)
            # The newest one stays the first, and what the head says of a serial counts.
            commits = {**static.commits, **found.commits, **static.commits}
            others = tuple(each for each in static.lists if each != named)
            static = Static(commits, static.steps + found.steps, others + found.lists)
        return static

    def _follow(
        self, way: list[_Hop], based: dict[str, CommitHead], known: dict[str, CommitHead]
    ) -> None:
        """Take the steps; they rely on the commits in `based`, and those in `known` are here."""
        here = self._here
        older = here.heads(here.older)
        for hop in way:
            head, pack = self._step(hop, {each.tree for each in based.values()})
            if pack:
                self._packs.append(pack)
            based = {**based, hop.commit: head}
            write_shallow(here.path, shallow_of({**older, **known, hop.commit: head}))
            if hop != way[-1]:
                self._came(hop.commit)

    def _step(self, hop: _Hop, trees: set[bytes]) -> tuple[CommitHead, Path | None]:
        here = self._here
        with IncomingPack(here.path / "objects" / "pack") as pack:
            self._read(hop.file, hop.file.pack, pack.write)
            return here.install(pack, hop.commit, trees, self._work)

    def _list(self, file: StaticFile) -> Static:
        parts: list[bytes] = []
        if file.size > STATIC_BYTES:
            raise FormatError(f"more than {STATIC_BYTES} bytes", f"{self._url}/{FOLDER}")
        self._read(file, file.list, parts.append)
        return Static.decode(b"".join(parts), f"{self._url}/{FOLDER}/{file.list}")

    def _read(self, file: StaticFile, name: str, put: Callable[[bytes], object]) -> None:
        """All of a file; `FormatError` if it is not what it should be."""
        place = f"{FOLDER}/{name}"
        digest, left = Blake3(), file.size
        try:
            with self._files.get(self._url, place) as answer:
                while data := answer.read(min(_READ, left + 1)):
                    left -= len(data)
                    if left < 0:
                        break
                    digest.update(data)
                    put(data)
        except NotServedError as error:
            raise _MissingFileError(
                f"{self._url}: {FOLDER}/head names {place}, which is missing"
            ) from error
        if left or digest.digest() != file.digest:
            raise FormatError("not the file that its name says", f"{self._url}/{place}")

    def _serial(self, commit: str) -> int:
        found = self._here.objects.find(bytes.fromhex(commit))
        return decode_commit(found.data).info().serial if found else NOTHING


def _mine(static: Static, have: dict[int, str]) -> list[int]:
    """The commits that are here and there."""
    return [serial for serial in have if static.commits.get(serial) == have[serial]]


def _whole(static: Static) -> int:
    """The newest commit of which there is a pack of all; `NOTHING`: none is named."""
    return max((step.new for step in static.steps if step.old == NOTHING), default=NOTHING)


def _cheapest(static: Static, have: dict[int, str]) -> list[_Hop] | None:
    mine = [*_mine(static, have), NOTHING]
    way = cheapest(static.steps, mine, static.newest, request=_REQUEST)
    return None if way is None else [_Hop(step.file, static.commits[step.new]) for step in way]
