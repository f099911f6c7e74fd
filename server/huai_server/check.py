"""Proving a metadata repository sound: everything is read, and the newest tree laid out again.

Reads only.  Git's ids are verified by every read; beyond that the descriptor, the trailers,
the hardlinks and the layout itself must be what the format says.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from huai_schema import layout
from huai_schema.commits import Totals
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import FormatError
from huai_schema.gitobjects import Kind, decode_tree, object_id
from huai_schema.listing import Listing
from huai_schema.paths import RelPath, show
from huai_schema.snapshot import Snapshot, decode_listing
from huai_server.store import Head, Repository


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was looked at, and what is wrong with it."""

    commits: int
    objects: int
    entries: int
    faults: tuple[str, ...]


def check(name: str, repository: Repository) -> CheckReport:
    """Read back all of `repository`, which holds the module `name`."""
    return _Check(name, repository).run()


class _HashOnly:
    """An `ObjectWriter` that keeps nothing."""

    def write(self, kind: Kind, data: bytes) -> bytes:
        return object_id(kind, data)


class _Check:
    def __init__(self, name: str, repository: Repository) -> None:
        self._name = name
        self._repository = repository
        self._seen: set[bytes] = set()
        self._faults: list[str] = []
        self._files = self._directories = self._symlinks = self._bytes = 0
        self._leaders: set[RelPath] = set()
        self._links: list[tuple[RelPath, RelPath]] = []

    def run(self) -> CheckReport:
        commits = 0
        newer: Head | None = None
        try:
            for head in self._repository.history():
                commits += 1
                if newer is None:
                    self._check_newest(head)
                elif head.info.serial >= newer.info.serial:
                    self._faults.append(f"{newer.commit}: the serial does not grow")
                newer = head
                self._read_all(head)
        except FormatError as error:
            self._faults.append(error.message)
        entries = self._files + self._directories + self._symlinks
        return CheckReport(commits, len(self._seen), entries, tuple(self._faults))

    def _read_all(self, head: Head) -> None:
        """Read each object below a commit that no newer commit has."""
        pending = [(bytes.fromhex(head.tree), True)]
        while pending:
            oid, is_tree = pending.pop()
            if oid in self._seen:
                continue
            self._seen.add(oid)
            data = self._repository.read(oid, "tree" if is_tree else "blob")
            if is_tree:
                pending.extend((item.oid, item.is_tree) for item in decode_tree(data, oid.hex()))

    def _check_newest(self, head: Head) -> None:
        descriptor, snapshot = self._repository.snapshot(head)
        if descriptor.module != self._name:
            self._faults.append(f"the repository is of module {descriptor.module!r}")
        if layout.build(self._counted(snapshot), _HashOnly()) != snapshot.tree:
            self._faults.append(f"{head.commit}: the layout is not canonical")
        totals = Totals(self._files, self._directories, self._symlinks, self._bytes)
        if totals != head.info.totals:
            self._faults.append(f"{head.commit}: the trailers say {head.info.totals}, not {totals}")
        for path, leader in self._links:
            if leader not in self._leaders:
                self._faults.append(f"{show(path)}: a hardlink to nothing: {show(leader)}")

    def _counted(self, snapshot: Snapshot) -> Iterator[Listing]:
        targets = self._link_targets(snapshot)
        for listing in snapshot.listings():
            for entry in decode_listing(listing):
                match entry:
                    case File():
                        self._files += 1
                        self._bytes += entry.size
                        if entry.path in targets and entry.link is None:
                            self._leaders.add(entry.path)
                    case Directory():
                        self._directories += 1
                    case Symlink():
                        self._symlinks += 1
            yield listing

    def _link_targets(self, snapshot: Snapshot) -> set[RelPath]:
        """First pass: who links where; a second one then finds the leaders in little memory."""
        for listing in snapshot.listings():
            if b"\th" in listing.leaves:
                for entry in decode_listing(listing):
                    if isinstance(entry, File) and entry.link is not None:
                        self._links.append((entry.path, entry.link))
        return {leader for _, leader in self._links}
