"""Brings the static files of a module to its newest commit, at the cost of what changed.

Only composes.  Order of writes: packs, lists and, in a copy, block indices, each under its name
only when it is complete; all of them durable; then the head, by one rename.  A killed run leaves
unnamed files, which are removed later (`unused`), and the former head.

Rule: one run at a time for a place; the caller holds a lock.  The module's own lock is not needed:
no object is removed within an hour of the replacement of its pack.
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
from huai_schema.errors import FormatError
from huai_server.config.retention import Retention
from huai_server.static.catalog import (
    COMMITS,
    add_list,
    advance,
    drop_older,
    find_full_pack,
    first_head,
    is_outdated,
    is_small,
    list_of_rest,
    make_front,
    set_full_pack,
    sources,
    unite,
)
from huai_server.static.folder import StaticFolder
from huai_server.static.target import Draft, Target, open_draft
from huai_server.static.unused import is_file_lost, remove_unused
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repository import Head, NoCommitError, Repository, StoreError

_NAME = f"{FOLDER}/{HEAD}"
_BLOCKS = "blocks"
_MORE, _OF = 5, 4
"""A new full pack is made when a first copy would cost more than that share of the pack alone."""


class Published(NamedTuple):
    """The result of a publication."""

    head: Head
    """The commit that downstreams see now."""
    files: int
    """The number of files written, without the head."""
    bytes: int
    """The bytes of these files."""
    removed: int
    """The number of unused files that were deleted."""


def publish(
    repository: Repository,
    target: Target | None,
    retention: Retention,
    *,
    now: float,
    content_urls: tuple[str, ...] = (),
) -> Published:
    """Write the static files of the newest commit that are missing, and delete those long unused.

    A `target` of None is the repository itself.  The caller holds the lock of the place.  `now` is
    in seconds since the epoch.  `content_urls` are for the head; none by default.  Raises
    `NoCommitError`, `StoreError` or `FormatError` for damaged metadata, and the errors of the
    target.
    """
    newest = repository.head()
    if newest is None:
        raise NoCommitError(repository.path.parent.name)
    place = target or StaticFolder(repository.path, repository.path)
    place.begin()
    publication = _Publication(repository, place, content_urls)
    floor = _floor(repository, newest, retention)
    return publication.run(floor, now, blocks=target is not None)


class _Publication:
    """One publication to a target, whose lock the caller holds."""

    def __init__(
        self, repository: Repository, target: Target, content_urls: tuple[str, ...]
    ) -> None:
        self._repository = repository
        self._content_urls = content_urls
        self._target = target
        self._files = self._bytes = 0
        self._rest: tuple[Static, StaticFile] | None = None
        """The list of the rest that the head does not name, and its file."""

    def run(self, floor: int, now: float, *, blocks: bool) -> Published:
        """Write files for the newest commit, with steps from the serial `floor` on; then the head.

        With `blocks`, writes block indices too.  `now` is in seconds since the epoch.  Deletes
        files that have been unused for `GRACE` seconds.  Raises `StoreError` if the history has no
        commit from `floor` on.
        """
        text = self._target.read(_NAME, STATIC_BYTES + 1)
        head = self._read_published(text)
        new = self._new_commits(head, floor)
        is_lost = head is not None and not new and is_file_lost(self._target, head)
        if new is None or is_lost:  # of another history, steps from its commits are useless
            head, new, self._rest = None, self._kept_commits(floor), None
        for commit in reversed(new):
            head = self._add_commit(head, commit)
        if head is None:
            raise StoreError(f"{self._repository.path}: the history has no commit")
        # The history is read once: a commit may be made meanwhile.
        newest = self._repository.head_of(head.commits[head.newest])
        head = self._with_full_pack(drop_older(head, floor), newest)
        if blocks:
            self._copy_blocks()
        front = self._front_of(head)._replace(content_urls=self._content_urls)
        encoded = front.encode()
        if encoded != text:
            self._target.replace(_NAME, encoded)
        removed = remove_unused(self._target, front, now)
        return Published(newest, self._files, self._bytes, removed)

    def _read_published(self, text: bytes | None) -> Static | None:
        """Parse the published head, and join its list of the rest; None unless both are valid."""
        head = _parse_static(text, _NAME)
        rest_list = list_of_rest(head) if head else None
        if head is None or rest_list is None:
            return head
        rest = self._read_list(rest_list.file)
        if rest is None:
            return None
        self._rest = rest, rest_list.file
        return unite(head, rest)

    def _front_of(self, head: Static) -> Static:
        """Return the head to publish, after writing the list of the rest if that is due."""
        if is_small(head):
            return head
        if self._rest is None or is_outdated(self._rest[0], head):
            self._rest = head, self._add_list(head)
        return make_front(head, *self._rest)

    def _new_commits(self, head: Static | None, floor: int) -> list[Head] | None:
        """Return the commits after the published one, newest first.

        None if nothing is published, or the history has not the published commit, or it is below
        `floor`.
        """
        if head is None:
            return None
        new: list[Head] = []
        for commit in self._repository.history():
            if commit.info.serial <= head.newest:
                same = head.commits[head.newest] == commit.commit
                return new if same and head.newest >= floor else None
            new.append(commit)
        return None

    def _kept_commits(self, floor: int) -> list[Head]:
        """Return the commits from the serial `floor` on, newest first."""
        history = self._repository.history()
        return list(takewhile(lambda each: each.info.serial >= floor, history))

    def _add_commit(self, head: Static | None, new: Head) -> Static:
        """Write the steps to a commit; return the head with them.

        If a block is finished, its steps are written to a list, and taken out of the head.
        """
        serial = new.info.serial
        if head is None:
            return first_head(serial, new.commit)
        steps = []
        for old in sources(head.commits, serial):
            file = self._make_step(head.commits[old], new)
            if file is not None:
                steps.append(Step(old, serial, file))
        advanced = advance(head, serial, new.commit, steps)
        if advanced.closed is None:
            return advanced.head
        return add_list(advanced.head, advanced.closed, self._add_list(advanced.closed))

    def _make_step(self, old: str, new: Head) -> StaticFile | None:
        """Write the pack from one commit to another; None if the old one cannot be read."""
        with open_draft(self._target.drafts) as draft:
            try:
                since = bytes.fromhex(self._repository.head_of(old).tree)
                content = self._repository.content(new)
                self._repository.packs.send(*content, draft.write, since=since)
            except (FormatError, StoreError):
                return None
            return self._add_pack(draft)

    def _with_full_pack(self, head: Static, newest: Head) -> Static:
        """Return the head with a full pack; writes a new one if steps from the old cost much.

        They do if the old one and they have more than 5/4 of its bytes.
        """
        step = find_full_pack(head)
        if step is not None:
            way = cheapest(self._near_steps(head, step), [NOTHING], head.newest)
            if way and sum(each.file.size for each in way) * _OF <= step.file.size * _MORE:
                return head
        with open_draft(self._target.drafts) as draft:
            self._repository.packs.send(*self._repository.content(newest), draft.write)
            return set_full_pack(head, self._add_pack(draft))

    def _near_steps(self, head: Static, step: Step) -> list[Step]:
        """Return the steps of the head, and those of the list that continues from `step`."""
        steps = list(head.steps)
        for entry in head.lists:
            if entry.first <= step.new <= entry.last:
                listed = self._read_list(entry.file)
                steps += listed.steps if listed else ()
        return steps

    def _copy_blocks(self) -> None:
        """Write the repository's block indices that are missing, and delete all others."""
        old = self._target.names(_BLOCKS)
        for digest, path in BlockIndices(self._repository.path).stored().items():
            name = f"{_BLOCKS}/{digest.hex()[:2]}/{digest.hex()}"
            if old.pop(name, None) is None:
                with open_draft(self._target.drafts) as draft:
                    draft.write(path.read_bytes())
                    self._add_file(name, draft, draft.finish())
        for name in old:
            self._target.remove(name)

    def _add_list(self, content: Static) -> StaticFile:
        """Write a list to the target; return its size and digest."""
        with open_draft(self._target.drafts) as draft:
            draft.write(content.encode())
            file = draft.finish()
            self._add_file(f"{FOLDER}/{file.list_name}", draft, file)
            return file

    def _read_list(self, file: StaticFile) -> Static | None:
        """Read a list of the target; None if missing or malformed."""
        name = f"{FOLDER}/{file.list_name}"
        return _parse_static(self._target.read(name, STATIC_BYTES + 1), name)

    def _add_pack(self, draft: Draft) -> StaticFile:
        """Finish a pack, and move it to the target; return its size and digest."""
        file = draft.finish()
        self._add_file(f"{FOLDER}/{file.pack_name}", draft, file)
        return file

    def _add_file(self, name: str, draft: Draft, file: StaticFile) -> None:
        """Move a finished draft to the target under `name`, and count it."""
        self._target.add(name, draft.path)
        self._files += 1
        self._bytes += file.size


def _parse_static(text: bytes | None, name: str) -> Static | None:
    """Parse a head or a list; None if it is missing or malformed."""
    try:
        return Static.decode(text, name) if text else None
    except FormatError:
        return None


def _floor(repository: Repository, newest: Head, retention: Retention) -> int:
    """Return the oldest serial from which packs are made: that of the oldest kept commit, or 1.

    They are made from at most the newest `COMMITS` commits.
    """
    most = newest.info.serial - COMMITS + 1
    ends = repository.ends()
    if retention.seconds is None or not ends:
        return max(most, 1)
    return max(ends[-1][0] - retention.commits + 1, most, 1)
