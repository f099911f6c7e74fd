from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, final, overload

_Problem: TypeAlias = tuple[bytes, int]
"""A name (empty: the directory itself) and a reason."""
_Unreadable: TypeAlias = tuple[bytes, int]
"""Path and reason."""
_Directory: TypeAlias = tuple[
    bytes, bytes, bytes, bytes, bool, int, list[_Problem], int, int, int, int
]
"""Path, attributes, leaves, identities, hardlinks, skipped, problems, unreadable, device, inode,
file system."""

_Kind: TypeAlias = Literal["blob", "tree", "commit"]

class _Writer(Protocol):
    def write(self, kind: _Kind, data: bytes, /) -> bytes: ...

class _Reader(Protocol):
    def read(self, oid: bytes, kind: _Kind, /) -> bytes: ...

_Snapshot: TypeAlias = tuple[_Reader, bytes, int]
"""Where its objects are, the id of its root's tree, how many entries it may have."""
_Batch: TypeAlias = tuple[bytes, bytes, tuple[bytes, ...]]
"""See huai_schema.codec.columns."""

_AnyEntry: TypeAlias = (
    _File | tuple[bytes, bytes, int, int, bytes, bytes] | tuple[bytes, int, int, bytes, bytes]
)
"""See huai_schema.entries: File, Symlink, Directory."""
_T_co = TypeVar("_T_co", covariant=True)

@final
class Candidates:
    """What may have to change in a tree: a row for each path, as it is, should be, and was."""

    def __new__(
        cls,
        candidate: type,
        entries: tuple[type, type, type],
        remove: type,
        modes: tuple[type[int], type[int]],
        names: tuple[Callable[[int], bytes], Callable[[int], bytes]] | None,
    ) -> Candidates:
        """The classes of what it gives: candidates, files, directories, symlinks, removals.

        `modes`: that of reduced ones, that of kept ones.  `names` give those of users and groups.
        """

    def add(
        self,
        places: Sequence[tuple[bytes, _AnyEntry | None, Sequence[_AnyEntry]]],
    ) -> None:
        """Add paths to look at: what is wanted there, and what was."""

    def compare(
        self, old: _Snapshot, new: _Snapshot, selection: tuple[Filter, _Modes]
    ) -> list[tuple[bytes, bytes]] | None:
        """Add all paths in which two snapshots differ; the moved directories.

        None, and nothing is added: the filter treats one of them differently at its two places.
        """

    def merge(self) -> None:
        """Bring the rows of each path together, in tree order; what is wanted last counts."""

    def wanted(self, path: bytes) -> tuple[bool, Any]:
        """Whether a path is among them, and what is wanted there; after `merge`."""

    def has_below(self, path: bytes) -> bool:
        """Whether anything below a directory is among them; after `merge`."""

    def vacate(self, paths: Sequence[bytes]) -> None:
        """Say that nothing will stand at these paths; after `merge`."""

    def parents(self) -> list[bytes]:
        """The directories that their names are in, each once."""

    def extend(self, candidates: Iterable[tuple[Any, ...]]) -> None:
        """Add candidates of which all is known."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> Any: ...
    def unhashed(self) -> int:
        """How many files there are of which only the content can tell if it is the wanted one.

        To be asked once all is looked at.
        """

    def set_digest(self, place: int, digest: bytes) -> None:
        """Say what the digest of the content at `place` is."""

    def having(self, paths: AbstractSet[bytes]) -> list[bytes]:
        """Those of `paths` that it has."""

    def expected_directories(self) -> list[bytes]:
        """Directories that were there, and that it shows to be missing, or perhaps missing."""

    def linked(self) -> list[bytes]: ...
    def leaders(self) -> list[bytes]:
        """The leaders of all hardlinks that are wanted."""

    def replaced(self) -> list[bytes]:
        """The files that share their inode, lead their group and get another one."""

    def shared(self) -> list[Any]:
        """The candidates with a file that shares its inode."""

    def part(self, paths: AbstractSet[bytes]) -> None:
        """Say that the files at `paths` need an inode of their own."""

    def symlinks(self) -> list[Any]:
        """The candidates that want a symlink."""

    def files(self, sizes: AbstractSet[int]) -> list[tuple[Any, bytes | None, bool]]:
        """The candidates with a file of one of these sizes.

        With its digest, as far as that is known, and whether it has the wanted content.
        """

    def unequal(self) -> tuple[int, int]:
        """At how many paths nothing stands, and at how many nothing should."""

    def plan(self) -> Plan:
        """What has to be done about them."""

@final
class Plan(Sequence[tuple[Any, bool]]):
    """Operations; and those of which the stage is asked for: path, and whether it is a symlink."""

    @overload
    def __getitem__(self, place: int) -> tuple[Any, bool]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[tuple[Any, bool]]: ...
    def __len__(self) -> int: ...
    @property
    def clear(self) -> Rows[Any]:
        """Removals that make way for an entry of another type, deepest first."""

    @property
    def make(self) -> Rows[Any]:
        """The paths of directories to make, parents first."""

    @property
    def removals(self) -> Rows[Any]:
        """All other removals, deepest first."""

    @property
    def directories(self) -> Rows[Any]:
        """Directories that get their final attributes, deepest first."""

    def in_stages(
        self, count: int, stages: bytes
    ) -> list[tuple[Rows[Any], Rows[Any], Rows[Any], Rows[Any]]]:
        """Fetches, hardlinks, symlinks, attributes of each stage.

        `stages` has the number of each that is asked for, in one byte.
        """

@final
class Rows(Sequence[_T_co]):
    """Some of the candidates, as entries, paths or removals that are made when asked for."""

    @overload
    def __getitem__(self, place: int) -> _T_co: ...
    @overload
    def __getitem__(self, place: slice) -> Rows[_T_co]: ...
    def __len__(self) -> int: ...
    def joined(self, others: Sequence[Rows[_T_co]]) -> Rows[_T_co] | None:
        """These and the `others` behind them; None: they are not of one table."""

    def paths(self) -> list[bytes]:
        """The path of each."""

    def sizes(self) -> list[int]:
        """The size of each, of files."""

    def digests(self) -> list[bytes | None]:
        """The digest of each, of files; None: it is not known."""

    def pick(self, places: Sequence[int]) -> Rows[_T_co]:
        """Those at `places`, in that order."""

    def parents(self) -> list[bytes]:
        """The directories that their names are in, each once."""

    def reduced(self) -> list[_T_co]:
        """Those whose mode is a safer one than what the metadata state."""

@final
class Renames:
    """Where paths are before directories are moved, all at once."""

    def __new__(cls, moves: Sequence[tuple[bytes, bytes]]) -> Renames:
        """Of moves from old to new path, of which none is inside of another."""

    def before(self, path: bytes) -> bytes | None:
        """The path at which now is what will be at `path`; None: nothing will be there."""

    def arrives(self, path: bytes) -> bool:
        """Whether `path` will be in a directory that moves."""

@final
class Comparison:
    """Two snapshots that are being compared.

    Exceptions of the readers come through unchanged.
    """

    def __new__(cls, old: _Snapshot, new: _Snapshot) -> Comparison: ...
    def batch(self, most: int) -> _Batch | None:
        """The next differences, about so many; None if there are no more."""

def check_hardlinks(reader: _Reader, tree: bytes, limit: int) -> None:
    """Refuse a snapshot with a hardlink group that is not whole."""

def count_changes(old: _Snapshot, new: _Snapshot) -> tuple[int, int, int, int]:
    """How many entries were added, removed, changed, and came along below a moved directory."""

@final
class BlockIndex:
    """What proves each block of a large file (FORMAT.md, "Block indices")."""

    @staticmethod
    def decode(data: bytes, size: int, digest: bytes) -> BlockIndex:
        """Of the file of `size` bytes with this digest; `FormatError` if it is of another."""

    @staticmethod
    def of_file(handle: int, block: int, threads: int) -> BlockIndex | None:
        """Of an open file, in blocks of `block` bytes; None: it is too small, or was changed."""

    @staticmethod
    def length(size: int) -> int:
        """How many bytes the index of a file of `size` bytes has."""

    def places(self, older: BlockIndex | None) -> BlockPlaces:
        """Where each block comes from, if a file of `older` is here."""

    @property
    def size(self) -> int:
        """Bytes of the file."""

    @property
    def block_size(self) -> int:
        """Bytes of each block but the last."""

    def digest(self) -> bytes:
        """The digest of the file."""

    def encode(self) -> bytes:
        """The bytes that spell it."""

    def wrong_ranges(
        self, handle: int, ranges: list[tuple[int, int]], threads: int
    ) -> list[tuple[int, int]]:
        """Those of `ranges` of an open file that are not what this says, as whole blocks."""

@final
class BlockPlaces:
    """Where each block of one file comes from, as far as the indices tell."""

    @property
    def unknown(self) -> int:
        """Bytes of the blocks that do not stand in the older version."""

    def changed_ranges(self) -> list[tuple[int, int]]:
        """Begin and end of all blocks that are not at their place in the older version."""

    def assemble(
        self,
        target: int,
        sources: tuple[int | None, int | None, bool],
        threads: int,
        hear: Callable[[int], bool],
    ) -> tuple[list[tuple[int, int]], tuple[int, int, int], bool]:
        """Fill the empty file that is open as `target` with what is here of this one.

        `sources`: the older version, where blocks at their place are taken unread and all others
        are proved; one that an interrupted run left; whether those at their place are copied where
        they cannot be shared: else the file is a patch.  `hear` is told how many bytes are done,
        and ends it by saying false: an `OSError`.

        Begin and end of what is missing; bytes that stood at their place, elsewhere, and that are
        zeros; whether the new file shares the blocks of the old one.
        """

@final
class Pace:
    """How fast, and until when, content may be read, from when it was made."""

    def __new__(cls, rate: int, seconds: float | None) -> Pace:
        """`rate` bytes a second on average, 0: as fast as it goes; None: without an end."""

    def is_over(self) -> bool: ...

@final
class Undigested:
    """The files of a snapshot that have no digest."""

    files: int
    size: int
    """How many they are, and bytes of their content."""
    last: tuple[int, bytes] | None
    """The mtime and the path of the last one that was kept."""

    def __new__(cls, lent: _Snapshot, most: int, before: tuple[int, bytes] | None) -> Undigested:
        """Keeps the `most` newest of those that come after the one `before`, an earlier `last`."""

    def lists(self, files: int, size: int) -> list[bytes]:
        """Their paths, each ended by NUL; a list has at most so many, of so much content."""

@final
class FoundDigests:
    """Files with digests that were found out after they were committed."""

    def __new__(cls) -> FoundDigests: ...
    def __len__(self) -> int: ...
    def write(self, past: _Snapshot, writer: _Writer | None) -> bytes:
        """Write the objects of a snapshot with those that it lacks; the id of its root's tree.

        A digest counts as long as all else that a line says of its file is the same; a hardlink
        has that of its leader.
        """

_Digested: TypeAlias = tuple[bytes, int, int, bytes]
"""Path, size, mtime, digest."""

@final
class DigestedBatch:
    """Some files with digests."""

    def __new__(cls, rows: Sequence[_Digested]) -> DigestedBatch: ...
    def __len__(self) -> int: ...
    def size(self, count: int) -> int:
        """Bytes of the first `count` of them together."""

    def file(self, number: int) -> tuple[bytes, int]:
        """The path and the size of one of them."""

@final
class Digested:
    """The files of a snapshot that have digests, in tree order; a hardlink group's first names."""

    def __new__(cls, lent: _Snapshot, after: bytes | None) -> Digested:
        """`after`: only those that come after this path; it need not be there."""

    def batch(self, files: int, size: int) -> DigestedBatch:
        """The next ones, at most so many, and none after so many bytes; empty at the end."""

@final
class Scrub:
    """Reads files below one root, to compare them with their digests."""

    def __new__(cls, root: bytes) -> Scrub: ...
    def identity(self, path: bytes) -> tuple[int, int] | None:
        """Inode and ctime of what is there; None: nothing is.  Raises `OSError`."""

    def read(
        self, batch: DigestedBatch, pace: Pace
    ) -> tuple[int, list[tuple[*_Digested, tuple[bytes, int, int] | None, int]]]:
        """How many were read before the time was over, and those that are not as they should be.

        Of each: what was expected; the digest that it has, its inode and its ctime, if it has the
        size and the time that were expected; or an errno, 0: it has not, or is gone.
        """

@final
class ChangeList:
    """What lists of changed paths name of one module."""

    def __new__(cls, root: bytes) -> ChangeList:
        """`root`: the module's tree, as absolute paths in lists name it."""

    def begin(self, spelling: str) -> None:
        """A source comes: `auto`, `lines`, `nul`, `itemized` or `names`."""

    def feed(self, data: bytes) -> None:
        """The next bytes of it; from the first is seen what ends a path."""

    def end(self) -> None:
        """That was all of it."""

    def remarks(self) -> tuple[int, list[tuple[bytes, bool]], bool]:
        """How many lines name no path of the module; the first of them; whether a log is cut.

        With a line comes whether it leads out of the module; else no file can have that name.
        """

    def close(self) -> int:
        """How many paths were named; no source can follow."""

@final
class Entries:
    """The entries of one listing, with the directory itself if it has attributes.

    With `selected`: those that it mirrors, of a directory that it mirrors; a hardlink whose leader
    is left out becomes a file of its own.
    """

    def __new__(
        cls,
        path: bytes,
        attributes: bytes | None,
        leaves: bytes,
        digests: bytes,
        selected: Filter | None = None,
    ) -> Entries: ...
    def batch(self, most: int) -> _Batch | None:
        """The next entries, about so many; None if there are no more."""

@final
class EntryLimit:
    """What one look at a snapshot may cost: so many entries, and bytes in proportion."""

    def __new__(cls, limit: int) -> EntryLimit: ...

_Exported: TypeAlias = tuple[Sequence[bytes], int]
"""Paths of files that are left out, and the seconds that their directories show as their time."""

@final
class FileList:
    """A file list of Fedora's mirrors: what `create-filelist` of quick-fedora-mirror writes.

    Without the directories that the files which are left out stand in.
    """

    def __new__(cls, lent: _Snapshot, own: _Exported, endings: Sequence[bytes] | None) -> FileList:
        """With times, types and sizes; or only paths that have one of `endings` (none: all)."""

    def part(self) -> bytes | None:
        """The next lines; None if there are no more."""

    @property
    def left_out(self) -> int:
        """How many names no line could hold so far; a directory counts once."""

@final
class Ls:
    """What `ls -lR` says, in the C locale and in UTC."""

    def __new__(cls, lent: _Snapshot, own: _Exported) -> Ls: ...
    def part(self) -> bytes | None:
        """The next lines; None if there are no more."""

@final
class Filter:
    """rsync's filter rules: the first of a side that matches decides about a path."""

    def __new__(cls, rules: Sequence[tuple[bytes, bool, bool, bool, bool]]) -> Filter:
        """Of each: its pattern, whether it includes, is of the sender, of the receiver, negated."""

    def reaches(self, path: bytes, *, directory: bool) -> bool:
        """Whether `path` and all directories above it are mirrored."""

    def protects(self, path: bytes, *, directory: bool) -> bool:
        """Whether `path` is kept from deletion."""

    def why(self, path: bytes, *, directory: bool) -> tuple[int, bytes] | None:
        """The place of the rule that decides about `path`, and what it matched."""

    def is_alike_below(self, one: bytes, other: bytes) -> bool:
        """Whether it decides alike below two directories, whatever they hold."""

_Listing: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""Path, attributes, leaves, digests."""

@final
class ImageBuilder:
    """Builds an EROFS image from listings in tree order, the root first."""

    def __new__(cls, path: bytes, pair: Callable[[bytes, bytes], tuple[int, int]]) -> ImageBuilder:
        """Into the empty file at `path`; `pair` knows the numbers of a user and a group.

        Exceptions of `pair` come through unchanged; what the disk refuses is an `OSError`.
        """

    @property
    def entries(self) -> int:
        """How many paths were placed so far."""

    def count_links(self, path: bytes, leaves: bytes) -> None:
        """Count the names of the hardlink groups of a directory: of all, before the first `add`."""

    def add(self, path: bytes, attributes: bytes, leaves: bytes) -> None:
        """The next directory; a hardlink to no file is a `FormatError`."""

    def finish(self, uuid: bytes) -> int | None:
        """Complete the image; its number of blocks, None if it would be larger than 16 TiB."""

    def close(self) -> None:
        """Let go of the file, whatever has become of it."""

@final
class Layout:
    """The git objects of a module, made of its directories in tree order.

    Objects leave as soon as they are complete.  Exceptions of the writer come through unchanged;
    without a writer only ids are found.
    """

    def __new__(cls, writer: _Writer | None) -> Layout: ...
    def add(self, path: bytes, attributes: bytes, leaves: bytes, digests: bytes) -> None:
        """The next directory: `FormatError` if it is not the next one in tree order.

        Without attributes: more leaves of the last one.
        """

    def finish(self) -> bytes:
        """The id of the root's tree; `FormatError` if there is no root."""

class _BinaryFile(Protocol):
    def read(self, count: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...
    def seek(self, offset: int, whence: int, /) -> int: ...

@final
class EntryList:
    """The entries of a list that another program made, in any order."""

    def __new__(cls, store: _BinaryFile, limit: int) -> EntryList:
        """Let entries wait in `store`, an empty file; `FormatError` for more than `limit`."""

    @property
    def skipped(self) -> int:
        """The number of entries that no commit can hold."""

    def entries(self) -> list[tuple[bytes, str, int, int]]:
        """Return path, type, size and mtime in nanoseconds of all entries; for small lists."""

    def write_tree(self, writer: _Writer | None) -> tuple[bytes, _Counts]:
        """Write the git tree of all entries; returns its id and the totals.

        `FormatError` for a list that is no tree.
        """

    def amend(
        self, past: _Snapshot, removed_paths: Sequence[bytes], writer: _Writer | None
    ) -> tuple[bytes, _Counts, _Counts]:
        """Write the git tree of `past` with these entries instead of its own.

        Entries at `removed_paths` are removed; the directories that they were in must be among
        these entries.  Returns the id, and the totals of what was added and removed.
        """

@final
class RsyncList:
    """A decoder of the file list that an rsync sender sends."""

    def __new__(cls, protocol: int, entries: EntryList) -> RsyncList:
        """Add what the sender lists to `entries`; it was asked for -lHDogpt and nothing else."""

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes from the sender; returns the bytes to send to it.

        `FormatError` for bytes that are no file list.
        """

    @property
    def is_complete(self) -> bool:
        """True at the end of the list; the sender then closes the connection."""

    @property
    def is_partial(self) -> bool:
        """True if the sender could not read something that belongs into the list."""

    def messages(self) -> list[bytes]:
        """Return the last messages of the sender."""

def compare_file_lists(
    old: _BinaryFile, new: _BinaryFile
) -> tuple[list[bytes], list[bytes], tuple[int, int]]:
    """Compare two complete lists of quick-fedora-mirror.

    Returns the paths of new and changed lines, those of removed ones, and the numbers of entries.
    """

@final
class Level(Iterator[_Listing | tuple[bytes, bytes]]):
    """One own directory, in tree order; a subdirectory with its own tree as path and id."""

    def __new__(cls, reader: _Reader, path: bytes, tree: bytes, limit: EntryLimit) -> Level: ...
    def __iter__(self) -> Level: ...
    def __next__(self) -> _Listing | tuple[bytes, bytes]: ...

@final
class Lookup:
    """Finds what a snapshot has at a path; exceptions of the reader come through unchanged."""

    def __new__(cls, reader: _Reader, tree: bytes, limit: int) -> Lookup: ...
    def own_tree(self, path: bytes) -> bytes | None:
        """The id of the tree that a directory has for itself."""

    def leaf(self, path: bytes) -> tuple[bytes, bytes] | None:
        """The line of a file or symlink, and its digest (empty: none)."""

    def subtree(self, path: bytes, filters: Sequence[Filter] = ...) -> Walk:
        """A directory and all below it, or what one of `filters` mirrors of it."""

@final
class BundleReader:
    """Reads small files of a snapshot for one response (FORMAT.md, "Bundles").

    `paths`: each ended by NUL.  `most`: about as many bytes are in all responses of `read`.
    """

    def __new__(
        cls, snapshot: tuple[_Reader, bytes, int], root: bytes, paths: bytes, most: int
    ) -> BundleReader: ...
    def read(self, enough: int) -> bytes:
        """Return the next bytes, at least `enough` unless they are the last; empty at the end."""

def read_own_directory(
    reader: _Reader, path: bytes, tree: bytes
) -> tuple[dict[bytes, bytes], list[bytes | None]]:
    """Take the git tree of a directory apart that does not stand in its parent's manifest.

    Raw names of subdirectories with trees of their own, to their ids, in byte order; and the ids of
    what it names beside them: manifest, its digests, other pieces, their digests.
    """

_Owners: TypeAlias = tuple[Callable[[int], bytes], Callable[[int], bytes]]
"""Names of a user and of a group."""

@final
class Scan(Iterator[list[_Unreadable | _Directory]]):
    """A whole tree in tree order, in batches.

    A large directory comes in parts, which have no attributes but for the first.
    A reason is an errno, or: -1 keeps changing, -2 size or time out of range, -3 the directory's
    time out of range, -4 a reserved name, -5 a temporary file of rsync, -6 changed while it was
    read, -7 damaged, -8 a mount point that is not entered, -9 mounted over, -10 not mounted.
    A root that cannot be opened, and whatever ends the scan, is an `OSError`.
    """

    def __new__(
        cls,
        root: bytes,
        scan: tuple[Sequence[bytes], int, bool],
        owners: _Owners | None,
        *,
        links: bool = False,
    ) -> Scan:
        """`scan`: patterns, as rsync's --exclude has them, threads, and one file system.

        `owners` give the name of a user and of a group; None: everything belongs to root.  With
        `links` lines have their hardlink fields.
        """

    def __iter__(self) -> Scan: ...
    def __next__(self) -> list[_Unreadable | _Directory]: ...

_Counts: TypeAlias = tuple[int, int, int, int]
"""Files, directories, symlinks, bytes."""
_Hashed: TypeAlias = tuple[int, int, list[bytes]]
"""Files that were read, bytes of them, files without a digest because of their holes."""
_Told: TypeAlias = tuple[list[tuple[bytes, int, int]], list[tuple[int, int, list[bytes]]], _Hashed]
"""Problems: path, reason (as `Scan` has it), and 0 if the old entry stays, 1 if it is left out, 2
if its time is clamped.  Remarks: 0 temporary, 1 reserved, 2 not readable for others; how many; the
first paths.  And what was read."""

@final
class TreeReader:
    """Reads the tree of a module for a commit.

    Exceptions of all that is lent come through unchanged.  What else fails is given to `explain`,
    which returns the exception to raise: "tree" with an `OSError`, if memory or file handles are
    short, "digests" with an `OSError`, if the table cannot be used, and "root" with a reason, or
    with 0 if the root vanished.
    """

    def __new__(
        cls,
        root: bytes,
        scan: tuple[Sequence[bytes], int, bool, bool],
        owners: _Owners | None,
        digests: object | None,
        explain: Callable[[Any, Any], BaseException],
    ) -> TreeReader:
        """`scan`: as `Scan` has it, and whether to remark what others may not read.

        `digests`: a huai_server.commit.tree_reader.DigestOptions; None: no file has one.  A root
        that cannot be opened is an `OSError`.
        """

    def read_whole(
        self,
        past: _Snapshot | None,
        mounts: tuple[set[bytes], bool, bool],
        keep_pairs: Callable[[bytes], None],
        writer: _Writer | None,
    ) -> tuple[bytes, tuple[_Counts, int], _Told, set[bytes]]:
        """Scan everything and write its objects: the id of the root's tree.

        `past`: the last commit, whose entries stay where something cannot be read.  `mounts`: its
        mount points, whether those of now are entered, whether all are accepted.  `keep_pairs` gets
        lines of the record of hardlink groups.  The others: what is in the tree, entries that no
        snapshot holds, and the mount points of now.
        """

    def read_listed(
        self,
        past: _Snapshot,
        named: tuple[ChangeList, bool, bytes],
        check_foreign: Callable[[list[bytes]], None],
        writer: _Writer | None,
    ) -> tuple[bytes, tuple[_Counts, _Counts], _Told, bytes, tuple[int, list[bytes]]] | None:
        """Look at what a list names, and write the objects of `past` with that.

        `named`: the list, whether a new name of a file comes with an old one in it, and the record
        of hardlink groups.  None: it does not, and a file has names that are not known.
        `check_foreign` gets the directories on other file systems.  The others: what was
        added and removed; lines of that record; how many named paths are unknown, the first ones.
        """

    def read_digests(
        self, changes: ChangeList, record: bytes, into: FoundDigests
    ) -> tuple[_Hashed, list[tuple[bytes, int]]]:
        """Put the digests of what a list names into `into`; what cannot be read, and why."""

    def keep_digests(self) -> None:
        """Keep what `read_digests` found out for later commits."""

@final
class TreeWatch:
    """All directories of a tree, watched for changes by inotify(7).

    `fileno()` is readable when something happened.  After events were lost, or when the root is
    gone, another one has to be made.  That the root was deleted is not seen.
    """

    def __new__(
        cls,
        root: bytes,
        patterns: Sequence[bytes],
        *,
        one_file_system: bool,
        most: int,
    ) -> TreeWatch:
        """`patterns` as of `Scan`.  A root that cannot be watched is an `OSError`.

        More than `most` paths that changed are taken as the whole tree.
        """

    def fileno(self) -> int: ...
    def read(self) -> tuple[int, bool, bool]:
        """How many events were there; whether some were lost; whether the root was moved."""

    def take(self) -> tuple[ChangeList, int] | None:
        """The paths that changed since this was asked last, and how many; None: scan the tree.

        None comes first, after too many changes, and as long as directories are not watched.
        """

    def give_back(self, changes: ChangeList | None) -> None:
        """What was taken is to be taken once more; None: the whole tree."""

    def add(self, paths: Sequence[bytes]) -> None:
        """These are to be taken as well, with everything below."""

    @property
    def directories(self) -> int:
        """How many are watched."""

    @property
    def unwatched(self) -> tuple[int, bytes, int] | None:
        """How many directories are not, the path of the first, and its errno; None: none."""

@final
class Maker:
    """Does what records (`huai_server/fallback/sparse/records.py`) say, below one directory.

    With a folder `building` on the same file system each entry is made there and renamed to its
    place, and directories keep their times; without one, entries are made in place and must not
    exist.  What fails is an `OSError` with the path seen from the root.
    """

    def __new__(cls, root: bytes, building: bytes | None, *, privileged: bool) -> Maker:
        """`privileged`: permissions do not matter to this process."""

    def apply(self, records: bytes) -> None:
        """Do all of it in order; a signal may end it between two records."""

    def leave(self) -> None:
        """The last directory that was entered gets its times back."""

    @property
    def unowned(self) -> int:
        """How many entries could not be given their owner."""

@final
class Blake3:
    """BLAKE3-256 of what is handed over piece by piece."""

    def __new__(cls, content: bytes = b"") -> Blake3: ...
    def update(self, content: bytes) -> None: ...
    def digest(self) -> bytes:
        """32 bytes: of all that came so far."""

def patch_file(target: int, patch: int, ranges: list[tuple[int, int]]) -> None:
    """Give an open file the size of `patch`, and what that holds in `ranges`, all on the disk."""

def reserve_patch(target: int, patch: int, ranges: list[tuple[int, int]]) -> None:
    """Reserve the room that `patch_file` needs; the file keeps its size and content."""

def hash_file(handle: int, threads: int) -> bytes:
    """The BLAKE3-256 of an open file; `threads` hash a large one, other calls go on meanwhile."""

@final
class PackWriter:
    """Collects objects that a folder of packs does not have yet, for one pack.

    What the disk refuses is an `OSError`, an index that is damaged a `FormatError`.
    """

    def __new__(cls, folder: bytes, name: bytes, *, threads: int) -> PackWriter:
        """`folder` is some `objects/pack`; unfinished, the pack is called `name` there."""

    def __len__(self) -> int:
        """How many objects were written."""

    def write(self, kind: _Kind, data: bytes) -> bytes:
        """Add an object unless the folder has it; its id."""

    def finish(self) -> bytes | None:
        """Make the pack durable and visible; its name without a suffix, or None if it is empty."""

    def abort(self) -> None:
        """Drop everything; may be called at any time."""

_Pattern: TypeAlias = tuple[Sequence[bytes], bool]
"""Components with `?` and `*`, or `**`; whether it is about symlinks only."""

@final
class PublishPatterns:
    """Patterns of publish rules; none takes more than quadratic time."""

    def __new__(cls, patterns: Sequence[_Pattern]) -> PublishPatterns: ...
    def first(self, paths: Sequence[bytes] | Sequence[_File], *, symlink: bool) -> list[int | None]:
        """For each path the place of the first that matches; None: none does."""

_Places: TypeAlias = tuple[int, int]
"""Where some of the rules begin and end."""

@final
class PublishOrder:
    """In which stage the paths of a snapshot are published; it reads what it is asked for.

    Exceptions of the reader come through unchanged.
    """

    def __new__(
        cls,
        lent: tuple[_Reader, bytes, int],
        rules: Sequence[tuple[_Pattern, int]],
        *,
        volatile: _Places,
        stated: _Places,
        generic: _Places,
        profiles: Sequence[tuple[Sequence[Sequence[bytes]], _Places]],
        assigned: Mapping[bytes, int | None],
    ) -> PublishOrder:
        """`lent`: a reader, the root's tree, how many entries there may be.

        `rules` with their stages, and of which kind they are.  `profiles`: lists of markers, and
        rules.  `assigned`: tops, and the numbers of their profiles (None: no repository).
        """

    def stages(self, items: Sequence[tuple[bytes, bool]]) -> bytes:
        """A byte for each path and whether it is a symlink."""

    def placement(self, path: bytes, *, symlink: bool) -> tuple[int, int | None, int | None]:
        """The stage; the rule that decided; the repository of that rule, or else around `path`."""

    def around(self, folder: bytes) -> list[int]:
        """The repositories that a directory is in, outermost first."""

    def found(self) -> int:
        """How many repositories were found so far."""

    def repository(self, number: int) -> tuple[bytes, int, int | None]:
        """Its top, its profile, which list of markers is there; None: it was assigned."""

    def is_directory(self, path: bytes) -> bool:
        """Whether the snapshot has a directory there."""

    def has_entry(self, path: bytes) -> bool:
        """Whether it has anything there."""

@final
class Packs:
    """The packs of a repository, read by place.

    A pack that comes later is found; a file that cannot be read is an `OSError`, one that is wrong
    a `FormatError`.
    """

    def __new__(cls, keep: int, spare: int = ...) -> Packs:
        """Keep `keep` bytes of the objects that were read last.

        All reads together may cost `spare` bytes of work beyond what they are worth; then they
        are `FormatError`. Without it nothing is counted: packs of one's own.
        """

    def add(self, folder: bytes) -> None:
        """Read the packs in `folder` as well: some `objects/pack`."""

    def forget(self) -> None:
        """Let go of all packs: one of them went, or has another content now."""

    def find(self, oid: bytes) -> tuple[_Kind, bytes] | None:
        """An object, if it is here."""

    def __contains__(self, oid: bytes, /) -> bool: ...
    def send(
        self,
        commit: bytes,
        tree: bytes,
        put: Callable[[bytes], object],
        *,
        since: bytes | None = None,
    ) -> None:
        """Hand the pack of a commit to `put` in pieces; `FormatError` if something is missing.

        `commit` is its content, `tree` the id of its tree.  `since` makes the pack thin: the id of
        a tree of which the other side has everything.
        """

    def pack(self, commits: Sequence[tuple[bytes, bytes]], put: Callable[[bytes], object]) -> None:
        """Hand one pack of all that commits hold to `put`, as `send` does.

        Each is its content and the id of its tree, oldest first: a delta against what an older one
        holds stays a delta.
        """

def decode_tree(data: bytes, place: str) -> list[tuple[bytes, bytes, bool]]:
    """The items of a git tree, as `encode_tree` takes them; `FormatError` at `place`."""

class ListingHashes:
    """The listing hashes of objects that are here (FORMAT.md, "Listing hash")."""

    def __new__(cls, records: bytes) -> Self:
        """`records`: what `added` gave before; what a crash left behind them is ignored."""

    def of_tree(self, tree: bytes, objects: object) -> bytes:
        """The hash of a tree; what of it is not known is read from `objects`, and known then."""

    @property
    def added(self) -> bytes:
        """What was hashed since: a record for each object."""

    @property
    def sound(self) -> int:
        """Bytes of `records` that are such records, from the first on."""

class PrivateKey:
    """A private key of OpenSSH, Ed25519, not encrypted."""

    def __new__(cls, file: bytes) -> Self:
        """Of a key file; `FormatError` for anything else, other kinds of keys included."""

    @staticmethod
    def generate(seed: bytes, comment: str) -> PrivateKey:
        """The key that 32 random bytes make."""

    @property
    def public(self) -> str:
        """The public key, as `parse_public_key` gives it."""

    def encode(self) -> str:
        """Its file."""

    def sign(self, namespace: str, message: bytes) -> str:
        """A signature, as `ssh-keygen -Y sign` makes it."""

def parse_public_key(line: str) -> str:
    """An Ed25519 key, `ssh-ed25519 AAAA…`, without its comment; `FormatError`."""

def verify_signature(namespace: str, message: bytes, armored: bytes) -> str:
    """The public key of whoever signed `message`; `FormatError` if nobody did."""

class _LocalObjects(Protocol):
    """A repository; what its `packs` (`Packs`) hold, if it has any, is not asked for."""

    def find(self, oid: bytes, /) -> tuple[_Kind, bytes] | None: ...
    def __contains__(self, oid: bytes, /) -> bool: ...

def check_connected(
    target: bytes,
    complete: Sequence[bytes],
    objects: _LocalObjects,
    check: Callable[[], None],
    *,
    work: int,
) -> int:
    """Return how much of `work` it took to find everything that the tree `target` holds.

    `MissingObjectError` for the first object that is missing.  `complete` are trees of which
    everything is here.  `work` bounds the bytes of trees that are followed.
    `check` is called ten times a second; an exception of it ends the call.
    """

def install_pack(
    folder: bytes,
    name: bytes,
    objects: _LocalObjects,
    check: Callable[[], None],
    *,
    target: tuple[bytes, Sequence[bytes]] | None,
    work: int,
    room: tuple[int, int],
) -> tuple[bytes | None, bytes, int]:
    """Install the pack that was received as `name` in `folder`, with the bases of its deltas.

    Returns its name if it added a file, the content of the commit `target`, and how much of `work`
    was done.  `FormatError` for a pack that is wrong, `MissingObjectError` for a base that is
    missing, and for an object of the commit; then nothing is visible, but temporary files may be
    left.
    `objects` is called on another thread, and may be asked for the same object again.
    `check`: as of `check_connected`.
    `target`: the id of a commit, and trees of which everything is here.
    `work` bounds the bytes that are inflated and made, repetitions included.
    `room`: bytes of bases in memory, beyond which they are made again; and bytes of trees and
    commits, beyond which the pack is refused.
    """

def encode_tree(items: Sequence[tuple[bytes, bytes, bool]]) -> bytes:
    """A git tree of items: name, id, whether that is a tree's."""

def object_id(kind: _Kind, data: bytes) -> bytes:
    """The id of an object of this place; nobody looks for collisions."""

_File: TypeAlias = tuple[bytes, int, int, int, bytes, bytes, bytes | None, bytes | None]
"""See huai_schema.entries.File."""

def may_compare(root: bytes, files: Sequence[_File]) -> bool:
    """Whether any of these is below `root`, and above all only directories, or nothing."""

def write_back(folder: int) -> None:
    """Write all changes of the file system of an open directory to disk, as they are now.

    An error is an `OSError`, and told to every other handle as well.
    """

def verify_arrived(
    folder: bytes,
    files: Iterable[_File],
    run: tuple[dict[bytes, int], bool, _Finish | None],
    threads: int,
    check: Callable[[], None],
) -> bytes:
    """What is below `folder` for each of `files`, a byte each.

    0 it, 1 nothing, 2 something else, 3 it, which was given all its attributes.
    `run`: inodes that were laid there as a basis, by path; whether what wrote there was
    interrupted; and what owner and mode are known by.  What cannot be read is an `OSError`.
    `check` is called ten times a second; an exception of it ends the call.
    """

@final
class Arrived:
    """Verified files, and the run that brought each; few bytes for each.

    A file is told by path, size, time and digest.
    """

    def __new__(cls) -> Arrived: ...
    def __len__(self) -> int: ...
    def add(self, files: Iterable[_File], run: int) -> None:
        """`files` that `run` brought; their owner, mode and time are still to be set."""

    def finish(self, files: Iterable[_File]) -> None:
        """These have them; those that are not known are left out."""

    def runs(self, files: Iterable[_File]) -> list[int | None]:
        """The run that brought each; None: none did."""

    def directories(self, files: Iterable[_File]) -> list[tuple[bytes, int, int, int | None]]:
        """Consecutive files of one directory that one run brought, or none.

        The directory, the places of the first file and after the last, and the run.
        """

    def has(self, path: bytes, run: int) -> bool:
        """Whether `run` brought the file at `path`."""

    def unfinished(self, files: Iterable[_File]) -> list[int]:
        """The places of those whose owner, mode and time are still to be set."""

_Located: TypeAlias = tuple[Arrived, int, int, dict[int, bytes]]
"""Where verified files lie: open directories of what runs brought, with a folder for each, and of
all others, with the names of these by number.  No symlink is on the way."""

def find_twins(files: Sequence[_File]) -> list[tuple[int, int]]:
    """The places of files that equal another one by digest and size, and that of the first such.

    Files that are empty are left out.
    """

_Area: TypeAlias = tuple[int, int, int]
"""Open directories for copies and for links, to which nobody else writes; threads that copy, or
hash a large file."""
_Hear: TypeAlias = Callable[[int], bool]
"""Told ten times a second how many bytes were read; false ends the call, as an exception does."""
_Ended: TypeAlias = tuple[bytes, int] | None
"""Path and errno of what ended a row before its end."""

_Finish: TypeAlias = tuple[_Number, _Number]
"""The numbers of users and groups by name."""

def copy_files(
    files: Iterable[_File],
    places: tuple[int, int],
    limits: tuple[int, dict[int, int]],
    finish: _Finish | None,
    hear: _Hear,
) -> tuple[bytes, _Ended]:
    """Copy files of an open directory to the same paths below another one: `places`.

    A byte for each: 0 it is here, 1 nothing is there, 2 something else is, 3 it may not be read,
    4 the call ended before, 5 it is here and has owner and mode, as most have with `finish`.
    `limits`: bytes a second (0: as many as there are); files that may be other ones than the
    metadata say, by number, with the bytes that such a one may have: it is copied as it is, and
    stays 2.  What cannot be written ends the row.
    """

@final
class BundleWriter:
    """Stages the files of a bundle below an open directory while it arrives."""

    def __new__(
        cls, files: Iterable[_File], folder: int, finish: _Finish | None
    ) -> BundleWriter: ...
    def begin(self) -> None:
        """Begin another response, with the files that have no verdict."""

    def write(self, data: bytes) -> int:
        """Take the next bytes of the response; return the number of files with a verdict."""

    def verdicts(self) -> bytes:
        """Return the verdicts so far, as of `copy_files`; 4 it is not bundled, 6 it is wrong."""

def copy_twins(
    files: Sequence[_File],
    firsts: tuple[Sequence[_File], _Located],
    keys: Sequence[bytes | None],
    area: _Area,
    hear: _Hear,
) -> tuple[bytes, _Ended]:
    """Stage files with the content of others that are staged, one for each.

    A link gets the key, if there is one.  For the result see `Tree.stage_copies`.
    """

def open_regular(root: bytes, path: bytes) -> int | None:
    """Open the regular file at `path` below the directory `root`, which alone may be a symlink.

    The caller closes it.  None: nothing there is a regular file; what may not be read, and a root
    that cannot be opened, is an `OSError`.
    """

def remove_all(folder: int, name: bytes) -> None:
    """Remove a name in an open directory with everything below it; it may be missing.

    Only for what nobody else can change.  Raises `OSError`.
    """

_Own: TypeAlias = tuple[bytes, bytes, bool]
"""Path and tree of an own directory, and whether all below it belongs to it."""
_Modes: TypeAlias = tuple[tuple[int, int], tuple[int, int], bool]
"""Of files and of directories, bits that stay and bits that are set; modes are not compared."""

@final
class TreeComparison:
    """What stands below an open directory against what a selection of a snapshot holds.

    Exceptions of the reader come through unchanged; other failures are an `OSError`.
    """

    def __new__(
        cls,
        handle: int,
        snapshot: tuple[_Reader, int, _Own | Sequence[_Listing]],
        selection: tuple[Sequence[Filter], _Modes],
        *,
        scope: tuple[bytes, AbstractSet[bytes], bytes],
        owners: tuple[Callable[[bytes], int | None], Callable[[bytes], int | None]] | None,
        content: bool,
        opens_up: bool,
        threads: int,
    ) -> TreeComparison:
        """`snapshot`: where its objects are, how many entries it may have, what of it is wanted.

        All filters have to let an entry through.  `scope`: a path with all below it, directories
        that are apart, the place behind which it begins.  `owners` give the number of a user and
        of a group; None: owners are not compared.  With `content`, files that are to be read come
        too, though nothing may differ.  With `opens_up`, a batch ends at a directory that may not
        be looked into, which is told as a whole.
        """

    def batch(
        self, most: int, steps: int
    ) -> tuple[bytes, bytes, _Batch | None, tuple[int, int, int], bytes, bool]:
        """The next findings, about `most`, of about `steps` entries.

        Records, their text, the entries that are wanted; how many entries and files were compared,
        and how many files without a digest; the place of the last entry; whether that was all.
        """

    def put_into(
        self, candidates: Candidates, steps: int, check: Callable[[], None]
    ) -> tuple[bytes, bytes, bool]:
        """Compare about `steps` entries; `candidates` get what is missing or differs.

        `check` is called ten times a second, and may raise.  Records of the rest, their text;
        whether that was all.
        """

    def waiting(self) -> list[bytes]:
        """Extraneous leaves that were met and are not told of yet."""

    def forget(self, paths: AbstractSet[bytes]) -> None:
        """These need not be told of any more."""

_DirectoryEntry: TypeAlias = tuple[bytes, int, int, bytes, bytes]
_SymlinkEntry: TypeAlias = tuple[bytes, bytes, int, int, bytes, bytes]
"""See huai_schema.entries."""
_Whole: TypeAlias = tuple[
    int,
    bytes,
    bytes,
    tuple[Sequence[_DirectoryEntry], Sequence[tuple[int, bool]]],
    Sequence[tuple[int, bytes, bytes]],
    Sequence[_File],
    Sequence[_SymlinkEntry],
]
"""A new directory, its files prepared: the handle of a directory, the path below, the path it gets.

Then it and all directories below it, deepest first, with how many names each holds where it lies,
and whether it gets its time too; prepared files that lie elsewhere, each with its path; hardlinks
of files below it, and symlinks, all to be made.
"""
_Step: TypeAlias = Literal[
    "make", "prepare", "publish", "attributes", "link", "symlink", "remove", "directory"
]
_Refusal: TypeAlias = Literal[
    "errno",
    "leader differs",
    "leader missing",
    "no directory",
    "no leader",
    "not a file",
    "not a symlink",
    "not empty",
    "not kept",
    "not whole",
    "occupied",
    "reserved",
]
_Row: TypeAlias = tuple[int, tuple[bytes, _Refusal, int, bytes | None] | None]
"""How many were done; path, reason, errno or 0, and another path, of the one that failed."""
_Number: TypeAlias = Callable[[bytes], int | None]
"""The number of a user or group; None: unknown here."""

@final
class Tree:
    """One tree that is worked in: no component of a path that is a symlink is followed.

    A row of operations is done in order until its end or the first that fails, on one thread.
    What fails outside of a row is an `OSError`: ENOENT, ENOTDIR (a symlink or another non-directory
    on the way), EACCES, EBADF after `close`.
    """

    def __new__(
        cls,
        root: int,
        *,
        loosens: int | None,
        umask: int,
        owners: tuple[_Number, _Number] | None,
    ) -> Tree:
        """The tree below the open directory `root`, which stays the caller's.

        Directories of the user `loosens` get u+rwx when they need it, until `restore_modes`.
        Without `owners` no owner is set.  A mode that is kept is for what is made anew, less the
        `umask`; what is there already keeps its own.
        """

    def open(self, path: bytes) -> int:
        """The number of a handle (O_PATH), valid during the next few calls; not to be closed."""

    def make_writable(self, path: bytes) -> bool:
        """Give a directory u+rwx; False if this is not allowed, or it has them."""

    def stage_copies(
        self,
        files: tuple[Sequence[_File], Sequence[tuple[bytes, int, int, bool, bytes | None]]],
        until: int,
        area: _Area,
        hear: _Hear,
    ) -> tuple[bytes, _Ended]:
        """Stage files whose content other files of this tree have.

        A byte for each: 0 it is not staged, 1 as a link, 2 as a clone, 3 as a copy; only a lack of
        room ends the row.  Of each source: path, time, the most names that the inode of a link has,
        whether size and time are enough if it was not changed after `until`, and the key that a
        link gets; None: it does not become one.
        """

    def stage_in(self, area: int) -> None:
        """Make temporary names in the open directory `area`, to which nobody else may write."""

    def keep_below(self, top: bytes) -> None:
        """Keep leaves that are removed or replaced, from now on: at the same path below `top`."""

    def survey(self, candidates: Candidates, renames: Renames) -> tuple[bytes, int | None] | None:
        """Look at all candidates that nobody looked at yet, where they are before `renames`.

        The first that cannot be looked at ends it: its path, or that of a hardlink's leader, and an
        errno; None instead: it is going to be moved.
        """

    def hash(
        self,
        candidates: Candidates,
        renames: Renames,
        hashing: tuple[bytes, int],
        check: Callable[[], None],
    ) -> _Ended:
        """Read each file of which only the content can tell if it is the wanted one.

        Each is read where it is before `renames`.  `hashing`: the digest of one that cannot be
        read, and how many threads read files; as many hash a large one.  `check` is called ten
        times a second, and may raise to end it; and a disk that fails ends it.
        """

    def carry_out(
        self,
        step: _Step,
        items: Sequence[_File | _SymlinkEntry | _DirectoryEntry | tuple[bytes, bool] | bytes],
        places: _Located | None = None,
    ) -> _Row:
        """Do one kind of step, and repeat what was done already.

        "make": directories, unless they exist, with owner and mode, if these are known; their owner
        may write there.  "prepare": set owner, mode and times of the files at `places`.  "publish":
        rename these to their paths.  "link": make hardlinks of the files at `link`, which have to
        be as stated.  "symlink": make symlinks.  Those three replace leaves.  "attributes": set
        owner, mode and times of files and symlinks that are there.  "remove": what exists, an empty
        directory or anything else.  "directory": the final attributes, times included.
        """

    def move_directories(
        self, moves: Sequence[tuple[bytes, bytes]], forwards: Sequence[_SymlinkEntry]
    ) -> _Row:
        """Rename directories, from old to new path where nothing stands.

        Each of `forwards` takes the place of an old one at the same moment.
        """

    def publish_directories(self, items: Sequence[_Whole]) -> _Row:
        """Rename staged directories with all that is below them to paths where nothing stands.

        Those inside that do not lie there are made.  One that fails can be published by its files.
        """

    def restore_modes(self) -> list[bytes]:
        """Restore the modes of directories that got u+rwx; returns the paths where this failed."""

    def sync(self) -> None:
        """Write all changes of the file system to disk: syncfs(2)."""

    def sync_root(self) -> None:
        """Write the names in the root and its attributes to disk: fsync(2)."""

    def refresh(self) -> None:
        """Let go of the handles that are kept, so that renames by others are seen."""

    def close(self) -> None:
        """Let go of all handles."""

def rename_noreplace(folder: int, old: bytes, new: bytes) -> bool:
    """Rename within an open directory; `FileExistsError` if something has the new name.

    False, and nothing done, where kernel or file system cannot refuse that.
    """

@final
class Walk(Iterator[_Listing]):
    """A directory and all below it, in tree order; with filters, what one of them mirrors."""

    def __iter__(self) -> Walk: ...
    def __next__(self) -> _Listing: ...
