"""Brings the static files of a module to its newest commit, at the cost of what changed.

Only composes.  Order of writes: packs, lists and, in a copy, block indices, each under its name
only when it is complete; all of them durable; then the head, by one rename.  A run that is killed
leaves files that nothing names, which go later (`unused`), and the head as it was.

Rule: one run at a time for a place; the caller holds a lock.  The module's own lock is not needed:
no object goes within an hour of the moment at which its pack was replaced.
"""

from itertools import takewhile
from typing import NamedTuple

from huai_schema.codec.static_files import (
    FOLDER,
    HEAD,
    NOTHING,
    STATIC_BYTES,
    Static,
    StaticFile,
    Step,
    cheapest,
)
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_server.config.retention import Retention
from huai_server.static.catalog import (
    COMMITS,
    add_list,
    advance,
    begin,
    cut,
    front,
    is_outdated,
    is_small,
    list_of_rest,
    set_whole,
    sources,
    unite,
    whole,
)
from huai_server.static.folder import Folder
from huai_server.static.target import Draft, Target, drafted
from huai_server.static.unused import remove_unused
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repository import Head, Repository, StoreError

_NAME = f"{FOLDER}/{HEAD}"
_BLOCKS = "blocks"
_MORE, _OF = 5, 4
"""A new pack of all is made when a first copy would cost so much more than that pack alone."""


class NothingCommittedError(HuaiError):
    """There is no commit yet."""

    exit_code = ExitCode.UNKNOWN_MODULE


class Published(NamedTuple):
    """What was done."""

    head: Head
    """The commit that downstreams see now."""
    files: int
    """How many were written, the head apart."""
    bytes: int
    """In them."""
    removed: int
    """Files that nobody needs any more."""


def publish(
    repository: Repository,
    target: Target | None,
    retention: Retention,
    *,
    now: float,
    content_urls: tuple[str, ...] = (),
) -> Published:
    """Bring the files in `target` to the newest commit of `repository`; None: its own files.

    `now` in seconds since the epoch.  `content_urls`: where a relay has the content.
    """
    newest = repository.head()
    if newest is None:
        raise NothingCommittedError(
            f"{repository.path}: nothing is committed yet", hint="run huai-server commit first"
        )
    place = target or Folder(repository.path, repository.path)
    place.begin()
    publication = _Publication(repository, place, content_urls)
    floor = _floor(repository, newest, retention)
    return publication.run(newest, floor, now, blocks=target is not None)


class _Publication:
    def __init__(
        self, repository: Repository, target: Target, content_urls: tuple[str, ...]
    ) -> None:
        self._repository = repository
        self._content_urls = content_urls
        self._target = target
        self._files = self._bytes = 0
        self._rest: tuple[Static, StaticFile] | None = None
        """The list of what the head does not say itself, and its file."""

    def run(self, newest: Head, floor: int, now: float, *, blocks: bool) -> Published:
        text = self._target.read(_NAME, STATIC_BYTES + 1)
        head = self._known(text)
        new = self._new(head, floor)
        if new is None:  # another history: what leads from its commits is of no use
            head, new, self._rest = None, self._kept(floor), None
        for each in reversed(new):
            head = self._add(head, each)
        if head is None:
            raise StoreError(f"{self._repository.path}: the history has no commit")
        head = self._with_whole(cut(head, floor), newest)
        if blocks:
            self._copy_blocks()
        said = self._front(head)._replace(content_urls=self._content_urls)
        encoded = said.encode()
        if encoded != text:
            self._target.replace(_NAME, encoded)
        removed = remove_unused(self._target, said, now)
        return Published(newest, self._files, self._bytes, removed)

    def _known(self, text: bytes | None) -> Static | None:
        """All that is published; None if that is nothing that can be gone on from."""
        said = _decoded(text, _NAME)
        named = list_of_rest(said) if said else None
        if said is None or named is None:
            return said
        rest = self._read_list(named.file)
        if rest is None:
            return None
        self._rest = rest, named.file
        return unite(said, rest)

    def _front(self, head: Static) -> Static:
        """What the head says itself; the rest is in a list."""
        if is_small(head):
            return head
        if self._rest is None or is_outdated(self._rest[0], head):
            self._rest = head, self._list(head)
        return front(head, *self._rest)

    def _new(self, head: Static | None, floor: int) -> list[Head] | None:
        """The commits after the one that is published, newest first; None: it is not here."""
        if head is None:
            return None
        found: list[Head] = []
        for each in self._repository.history():
            if each.info.serial <= head.newest:
                same = head.commits[head.newest] == each.commit
                return found if same and head.newest >= floor else None
            found.append(each)
        return None

    def _kept(self, floor: int) -> list[Head]:
        """The commits from which steps lead, newest first."""
        history = self._repository.history()
        return list(takewhile(lambda each: each.info.serial >= floor, history))

    def _add(self, head: Static | None, new: Head) -> Static:
        serial = new.info.serial
        if head is None:
            return begin(serial, new.commit)
        made = []
        for old in sources(head.commits, serial):
            file = self._step(head.commits[old], new)
            if file is not None:
                made.append(Step(old, serial, file))
        found = advance(head, serial, new.commit, made)
        if found.closed is None:
            return found.head
        return add_list(found.head, found.closed, self._list(found.closed))

    def _step(self, old: str, new: Head) -> StaticFile | None:
        """The pack from one commit to another; None: the old one is not here any more."""
        with drafted(self._target.drafts) as draft:
            try:
                since = self._repository.tree_of(old)
                wanted = self._repository.content(new)
                self._repository.packs.send(*wanted, draft.write, since=since)
            except (FormatError, StoreError):
                return None
            return self._pack(draft)

    def _with_whole(self, head: Static, newest: Head) -> Static:
        """The head with a pack of all from which a first copy is not far from here."""
        step = whole(head)
        if step is not None:
            way = cheapest(self._near(head, step), [NOTHING], head.newest)
            if way and sum(each.file.size for each in way) * _OF <= step.file.size * _MORE:
                return head
        with drafted(self._target.drafts) as draft:
            self._repository.packs.send(*self._repository.content(newest), draft.write)
            return set_whole(head, self._pack(draft))

    def _near(self, head: Static, step: Step) -> list[Step]:
        """The steps of the head, and those of the list that leads on from `step`."""
        steps = list(head.steps)
        for each in head.lists:
            if each.first <= step.new <= each.last:
                found = self._read_list(each.file)
                steps += found.steps if found else ()
        return steps

    def _copy_blocks(self) -> None:
        """Publish the block indices of the repository, and no others."""
        old = self._target.names(_BLOCKS)
        for digest, path in BlockIndices(self._repository.path).stored().items():
            name = f"{_BLOCKS}/{digest.hex()[:2]}/{digest.hex()}"
            if old.pop(name, None) is None:
                with drafted(self._target.drafts) as draft:
                    draft.write(path.read_bytes())
                    self._put(name, draft, draft.finish())
        for name in old:
            self._target.remove(name)

    def _list(self, said: Static) -> StaticFile:
        """Write a list."""
        with drafted(self._target.drafts) as draft:
            draft.write(said.encode())
            file = draft.finish()
            self._put(f"{FOLDER}/{file.list}", draft, file)
            return file

    def _read_list(self, file: StaticFile) -> Static | None:
        name = f"{FOLDER}/{file.list}"
        return _decoded(self._target.read(name, STATIC_BYTES + 1), name)

    def _pack(self, draft: Draft) -> StaticFile:
        file = draft.finish()
        self._put(f"{FOLDER}/{file.pack}", draft, file)
        return file

    def _put(self, name: str, draft: Draft, file: StaticFile) -> None:
        self._target.put(name, draft.path)
        self._files += 1
        self._bytes += file.size


def _decoded(text: bytes | None, name: str) -> Static | None:
    """What a head or a list says; None if that is nothing."""
    try:
        return Static.decode(text, name) if text else None
    except FormatError:
        return None


def _floor(repository: Repository, newest: Head, retention: Retention) -> int:
    """The serial of the oldest commit from which steps lead: as long as commits are kept."""
    most = newest.info.serial - COMMITS + 1
    past = repository.past()
    if retention.seconds is None or not past:
        return max(most, 1)
    return max(past[-1].info.serial - retention.commits + 1, most, 1)
