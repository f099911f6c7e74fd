from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, final, overload

_Kind: TypeAlias = Literal["blob", "tree", "commit"]

class _Writer(Protocol):
    def write(self, kind: _Kind, data: bytes, /) -> bytes: ...

class _Reader(Protocol):
    def read(self, oid: bytes, kind: _Kind, /) -> bytes: ...

_Snapshot: TypeAlias = tuple[_Reader, bytes, int]
"""A reader of its objects, the id of its root tree, and the most entries it may have."""
_Batch: TypeAlias = tuple[bytes, bytes, tuple[bytes, ...]]
"""See huai_schema.codec.columns."""

_AnyEntry: TypeAlias = (
    _File | tuple[bytes, bytes, int, int, bytes, bytes] | tuple[bytes, int, int, bytes, bytes]
)
"""See huai_schema.entries: File, Symlink, Directory."""
_T_co = TypeVar("_T_co", covariant=True)

@final
class Candidates:
    """A table of the paths that may have to change, with their local, wanted and former entries."""

    def __new__(
        cls,
        candidate: type,
        entries: tuple[type, type, type],
        remove: type,
        modes: tuple[type[int], type[int]],
        names: tuple[Callable[[int], bytes], Callable[[int], bytes]] | None,
    ) -> Candidates:
        """Create an empty table that builds values of these classes.

        `entries` are the classes of files, directories and symlinks; `modes` those of reduced and
        of kept modes.  `names` return the names of a user and of a group.
        """

    def add(
        self,
        places: Sequence[tuple[bytes, _AnyEntry | None, Sequence[_AnyEntry]]],
    ) -> None:
        """Add paths with their wanted entry and their former ones; the local entry is unknown."""

    def compare(
        self, old: _Snapshot, new: _Snapshot, selection: tuple[Filter, _Modes]
    ) -> list[tuple[bytes, bytes]] | None:
        """Add all paths that the filter mirrors and in which two snapshots differ.

        Returns old and new path of the moved directories; None, and adds nothing, if the filter
        treats a moved directory differently at its new path.
        """

    def merge(self) -> None:
        """Merge the rows of each path, in tree order: the last wanted, the first local entry."""

    def wanted(self, path: bytes) -> tuple[bool, Any]:
        """Return True if the table has a path, and its wanted entry, if any; after `merge`."""

    def has_below(self, path: bytes) -> bool:
        """Return True if the table has a path below a directory; valid after `merge`."""

    def vacate(self, paths: Sequence[bytes]) -> None:
        """Record that nothing is at these paths; ignores those without a row; after `merge`."""

    def parents(self) -> list[bytes]:
        """Return the parent directories of all paths, each once."""

    def extend(self, candidates: Iterable[tuple[Any, ...]]) -> None:
        """Add candidates whose local entry is known, as tuples of the class `candidate`."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> Any: ...
    def unhashed(self) -> int:
        """Return the number of files that only a digest can compare; valid after `Tree.survey`."""

    def set_digest(self, place: int, digest: bytes) -> None:
        """Set the digest of the local content of the candidate at `place`, if there is one."""

    def having(self, paths: AbstractSet[bytes]) -> list[bytes]:
        """Return the paths of `paths` that the table has, in any order."""

    def expected_directories(self) -> list[bytes]:
        """Return the former directories, each once, that are missing, or that miss an entry."""

    def linked(self) -> list[bytes]:
        """Return the paths whose wanted entry is a hardlink."""

    def leaders(self) -> list[bytes]:
        """Return the leaders of all wanted hardlinks, each once, in any order."""

    def replaced(self) -> list[bytes]:
        """Return the paths whose local file has several names and gets another inode."""

    def shared(self) -> list[Any]:
        """Return the candidates whose local file has several names."""

    def part(self, paths: AbstractSet[bytes]) -> None:
        """Mark the files at `paths` as needing a separate inode."""

    def symlinks(self) -> list[Any]:
        """Return the candidates whose wanted entry is a symlink."""

    def files(self, sizes: AbstractSet[int]) -> list[tuple[Any, bytes | None, bool]]:
        """Return the candidates with a local file of one of these sizes in bytes.

        Each comes with its digest, None if it is unknown, and True if its content is the wanted
        one.
        """

    def unequal(self) -> tuple[int, int]:
        """Return the number of paths without a local entry, and of those without a wanted one."""

    def plan(self) -> Plan:
        """Return the operations that give each path its wanted entry."""

@final
class Plan(Sequence[tuple[Any, bool]]):
    """The operations of a plan.

    As a sequence, the paths in the tree that need a stage of publishing, with True for a symlink.
    """

    @overload
    def __getitem__(self, place: int) -> tuple[Any, bool]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[tuple[Any, bool]]: ...
    def __len__(self) -> int: ...
    @property
    def clear(self) -> Rows[Any]:
        """The removals that make way for an entry of another type, deepest first."""

    @property
    def make(self) -> Rows[Any]:
        """The paths of new directories, parents first."""

    @property
    def removals(self) -> Rows[Any]:
        """All other removals, deepest first."""

    @property
    def directories(self) -> Rows[Any]:
        """The directories that get their final attributes, deepest first."""

    def in_stages(
        self, count: int, stages: bytes
    ) -> list[tuple[Rows[Any], Rows[Any], Rows[Any], Rows[Any]]]:
        """Return the fetches, hardlinks, symlinks and attribute changes of each stage.

        `stages` has one byte for each item of this sequence: the number of its stage.
        """

@final
class Rows(Sequence[_T_co]):
    """Candidates of a table as entries, paths or removals, which are built when accessed."""

    @overload
    def __getitem__(self, place: int) -> _T_co: ...
    @overload
    def __getitem__(self, place: slice) -> Rows[_T_co]: ...
    def __len__(self) -> int: ...
    def joined(self, others: Sequence[Rows[_T_co]]) -> Rows[_T_co] | None:
        """Return these rows followed by `others`; None if they are not from one table."""

    def paths(self) -> list[bytes]:
        """Return the path of each row."""

    def sizes(self) -> list[int]:
        """Return the size of each row; only for files."""

    def digests(self) -> list[bytes | None]:
        """Return the digest of each row, None if it is unknown; only for files."""

    def pick(self, places: Sequence[int]) -> Rows[_T_co]:
        """Return the rows at `places`, in that order."""

    def parents(self) -> list[bytes]:
        """Return the parent directories of all paths, each once."""

    def reduced(self) -> list[_T_co]:
        """Return the entries whose mode was reduced from the one in the metadata."""

@final
class Renames:
    """A map from paths after directories are moved, all at once, to the paths before."""

    def __new__(cls, moves: Sequence[tuple[bytes, bytes]]) -> Renames:
        """Map moves from an old to a new path, none of which is inside another."""

    def before(self, path: bytes) -> bytes | None:
        """Return the present path of what will be at `path`; None if nothing will be there."""

    def arrives(self, path: bytes) -> bool:
        """Return True if `path` will be in a moved directory."""

@final
class Comparison:
    """A comparison of two snapshots.

    Exceptions of the readers are passed on unchanged.
    """

    def __new__(cls, old: _Snapshot, new: _Snapshot) -> Comparison: ...
    def batch(self, most: int) -> _Batch | None:
        """Return about `most` further differences; None if there are no more."""

def check_hardlinks(reader: _Reader, tree: bytes, limit: int) -> bool:
    """Return True if a file of the root tree `tree` has several names.

    Raises `FormatError` if a leader is missing or is a hardlink itself, if a hardlink differs from
    its leader, and for more than `limit` entries.
    """

def count_changes(old: _Snapshot, new: _Snapshot) -> _Changes:
    """Return the changes; new bytes are those of files that are new or have other content."""

@final
class BlockIndex:
    """The block index of a large file, which proves each block (FORMAT.md, "Block indices")."""

    @staticmethod
    def decode(data: bytes, size: int, digest: bytes) -> BlockIndex:
        """Decode an index; raises `FormatError` unless the file has this size and digest."""

    @staticmethod
    def of_file(handle: int, block: int, threads: int) -> BlockIndex | None:
        """Index an open file by blocks of `block` bytes; None if it is too small or was changed."""

    @staticmethod
    def length(size: int) -> int:
        """Return the number of bytes of the index of a file of `size` bytes."""

    def unknown_bytes(self, older: BlockIndex | None) -> int:
        """Return the bytes in blocks that a local file with the index `older` does not have."""

    def changed_ranges(self, older: BlockIndex) -> list[tuple[int, int]]:
        """Return begin and end of the ranges that differ from `older`, place by place."""

    def assemble(
        self,
        target: int,
        sources: tuple[BlockIndex | None, int | None, int | None, bool],
        threads: int,
        hear: Callable[[int], bool],
    ) -> tuple[list[tuple[int, int]], tuple[int, int, int], bool]:
        """Fill the empty open file `target` with the blocks that local files have.

        `sources`: the index and the file of the older version, whose blocks are used unread at the
        same place and proved anywhere else; the file of an interrupted run; and True to copy blocks
        at the same place that cannot be shared, False to make the file a patch.  `hear` gets the
        number of bytes done; if it returns False, the call ends with an `OSError`.

        Returns begin and end of the missing ranges; the bytes found at the same place, found
        elsewhere, and zero; and True if the new file shares blocks with the old one.
        """

    @property
    def block_size(self) -> int:
        """The size in bytes of each block but the last."""

    def digest(self) -> bytes:
        """Return the digest of the file."""

    def encode(self) -> bytes:
        """Return the encoded index."""

    def wrong_ranges(
        self, handle: int, ranges: list[tuple[int, int]], threads: int
    ) -> list[tuple[int, int]]:
        """Return begin and end of the blocks in `ranges` that an open file does not have."""

@final
class Pace:
    """A limit on the rate and the duration of reading, which begins when it is created."""

    def __new__(cls, rate: int, seconds: float | None) -> Pace:
        """Limit reading to `rate` bytes a second on average (0: no limit) and to `seconds`."""

    def is_over(self) -> bool: ...

def progress_so_far() -> tuple[int, int]:
    """Return the files that this process has scanned, and the bytes of content it has read."""

def find_undigested(
    lent: _Snapshot, most: int, before: tuple[int, bytes] | None, bounds: tuple[int, int]
) -> tuple[int, int, tuple[int, bytes] | None, list[bytes]]:
    """Find the files of a snapshot that have no digest, and keep the `most` newest of them.

    Returns their number and their bytes; and of those that follow `before` the mtime and path of
    the last that was kept, and lists of the kept paths, each ended by NUL.  A list has at most the
    files and bytes of `bounds`.
    """

@final
class FoundDigests:
    """Digests that were computed after their files were committed."""

    def __new__(cls) -> FoundDigests: ...
    def __len__(self) -> int: ...
    def gather(self, path: bytes, leaves: bytes, digests: bytes) -> None:
        """Add the files of a directory that have a digest."""

    def write(self, past: _Snapshot, writer: _Writer | None) -> bytes:
        """Write a snapshot's objects with its missing digests; returns the id of its root tree.

        A digest is used if all other fields of its file are unchanged; a hardlink has its leader's.
        Without a writer only ids are computed.
        """

_Digested: TypeAlias = tuple[bytes, int, int, bytes]
"""A path, size, mtime and digest."""

@final
class Digested:
    """The files of a snapshot with digests, in tree order; of a hardlink group the first name."""

    def __new__(cls, lent: _Snapshot, after: bytes | None) -> Digested:
        """Begin after the path `after`, which may be missing; None begins at the first file."""

    def batch(self, files: int, size: int) -> list[_Digested]:
        """Return at most `files` further files, and no more once they have `size` bytes together.

        The list is empty at the end.
        """

@final
class Scrub:
    """A reader of the files below one root that compares them with their digests."""

    def __new__(cls, root: bytes) -> Scrub: ...
    def identity(self, path: bytes) -> tuple[int, int] | None:
        """Return inode and ctime in nanoseconds of an entry, None if it is missing.

        Raises `OSError` if the entry cannot be examined.
        """

    def read(
        self, files: Sequence[_Digested], pace: Pace
    ) -> tuple[int, list[tuple[int, tuple[tuple[bytes, int, int] | None, int]]]]:
        """Return the number of files read before `pace` was over, and the files that differ.

        Each has its place; then digest, inode and ctime if size and time are as expected, else
        None; and an errno, 0 if size or time differ or the file is gone.  A shortage of memory or
        file handles is an `OSError`.
        """

@final
class ChangeList:
    """The paths of one module that lists of changes name."""

    def __new__(cls, roots: Sequence[bytes]) -> ChangeList:
        """Create an empty list of the module whose directory sources spell as one of `roots`."""

    def begin_source(self, spelling: str) -> None:
        """Begin a source in a format of `huai_server.commit.change_lists.SPELLINGS`."""

    def feed(self, data: bytes) -> None:
        """Parse further bytes of the source; the first ones show if NUL or newline ends a path."""

    def end_source(self) -> None:
        """End the source; parses its last line, even if that is incomplete."""

    def remarks(self) -> tuple[int, list[tuple[bytes, bool]], bool]:
        """Return the number of lines without a path of the module, and the first of them.

        Each line has True if it is outside the module, False if no file can have that name.  The
        last value is True for a log that is cut.
        """

    def close(self) -> int:
        """Close the list to further sources; returns the number of named paths, each once."""

@final
class Entries:
    """The entries of one listing, with the directory itself if it has attributes.

    With `selected`, only entries that this filter mirrors; a hardlink whose leader is left out
    becomes a separate file.
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
        """Return about `most` further entries; None if there are no more."""

_Exported: TypeAlias = tuple[Sequence[bytes], int]
"""The paths of files to leave out, and the mtime in seconds to show for their directories."""

@final
class FileList(Iterator[bytes]):
    """A list of all entries as text, in pieces.

    `times` is the list of Fedora's mirrors as `create-filelist` of quick-fedora-mirror writes it,
    with times, types and sizes.  With endings it has only the paths with one of them, or all.
    Directories of files that are left out are left out too.  `ls-lR` is the output of `ls -lR`, in
    the C locale and in UTC.
    """

    def __new__(
        cls,
        lent: _Snapshot,
        own: _Exported,
        style: Literal["times", "ls-lR"] | Sequence[bytes],
    ) -> FileList: ...
    def __iter__(self) -> FileList: ...
    def __next__(self) -> bytes: ...
    @property
    def left_out(self) -> int:
        """The number of names so far that no line can hold; a directory counts once."""

@final
class Filter:
    """A list of rsync's filter rules; the first matching rule of a side decides about a path."""

    def __new__(cls, rules: Sequence[tuple[bytes, bool, bool, bool, bool]]) -> Filter:
        """Create a filter; a rule is a pattern, then flags: include, sender, receiver, negated."""

    def reaches(self, path: bytes, *, directory: bool) -> bool:
        """Return True if `path` and all directories above it are mirrored."""

    def protects(self, path: bytes, *, directory: bool) -> bool:
        """Return True if a rule that matches `path` itself protects it from deletion."""

    def why(self, path: bytes, *, directory: bool) -> tuple[int, bytes] | None:
        """Return the place of the rule that decides about `path`, and the path that it matched.

        That is `path` or its topmost excluded ancestor.  Returns None if no rule matches.
        """

    def is_alike_below(self, one: bytes, other: bytes) -> bool:
        """Return True if the filter decides alike below two directories; False if in doubt."""

_Listing: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""A path, attributes, leaves and digests."""

def write_image(
    path: bytes,
    listings: tuple[Iterable[_Listing], Iterable[_Listing]],
    pair: Callable[[bytes, bytes], tuple[int, int]],
    uuid: bytes,
) -> tuple[int | None, int]:
    """Write an EROFS image to the empty file at `path`.

    `listings` are all directories with hardlinks, then all directories in tree order.  `pair`
    returns the numbers of a user and a group.  Exceptions of both are passed on unchanged; an error
    of the disk is an `OSError`, a hardlink to a missing file a `FormatError`.

    Returns the number of blocks, None if they exceed 16 TiB, and the number of entries.
    """

def plan_shards(
    lent: _Snapshot, most: int, known: Mapping[bytes, int], labelled: Sequence[bytes]
) -> list[tuple[bytes, int]]:
    """Return the largest directories with at most `most` entries that are worth a scan each.

    Each has its path and entries.  `known` has the entries of trees by their ids.  The `labelled`
    directories, none of which is in another one, are returned whatever they hold.
    """

def write_tree(listings: Iterable[_Listing], writer: _Writer | None) -> bytes:
    """Write the git objects of a module, whose listings are in tree order; returns its root tree.

    A listing without attributes has more leaves of the one before.  Objects are written as soon as
    they are complete; without a writer only ids are computed.  Exceptions of both are passed on
    unchanged; `FormatError` for listings in another order, or without a root.
    """

class _BinaryFile(Protocol):
    def read(self, count: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...
    def seek(self, offset: int, whence: int, /) -> int: ...

@final
class EntryList:
    """The entries of a list that another program made, in any order."""

    def __new__(cls, store: _BinaryFile, limit: int) -> EntryList:
        """Keep entries in `store`, an empty file; adding more than `limit` is a `FormatError`."""

    @property
    def skipped(self) -> int:
        """The number of entries that no commit can hold."""

    @property
    def has_links(self) -> bool:
        """True if a file has several names."""

    def entries(self) -> list[tuple[bytes, str, int, int]]:
        """Return path, type, size and mtime in nanoseconds of all entries but the root.

        A type is "file", "directory" or "symlink".  Directories are in tree order; all entries are
        held in memory.
        """

    def write_tree(self, writer: _Writer | None) -> tuple[bytes, _Counts]:
        """Write the git tree of all entries, as the last use of the list.

        Returns the id and the totals.  Raises `FormatError` for a list that is not a tree.
        """

    def amend(
        self, past: _Snapshot, removed_paths: Sequence[bytes], writer: _Writer | None
    ) -> tuple[bytes, _Counts, _Counts]:
        """Write the git tree of `past` with these entries added or replaced, as `write_tree` does.

        Entries at `removed_paths` are removed; the directories that they were in must be among
        these entries.  Returns the id, and the totals of what was added and removed.
        """

@final
class RsyncList:
    """A decoder of the file list that an rsync sender sends."""

    def __new__(cls, protocol: int, entries: EntryList) -> RsyncList:
        """Add the listed entries to `entries`; the sender must run with -lHDogpt.

        Raises `FormatError` for another `protocol` than 30 to 40.
        """

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes from the sender; returns the bytes to send to it.

        `FormatError` for bytes that are not a file list.
        """

    @property
    def is_complete(self) -> bool:
        """True at the end of the list; the sender then closes the connection."""

    @property
    def is_partial(self) -> bool:
        """True if the sender could not read a part of its tree."""

    def messages(self) -> list[bytes]:
        """Return the last messages of the sender, at most a hundred."""

@final
class TextList:
    """A decoder of a list that a program printed, as JSON or as mtree."""

    def __new__(cls, entries: EntryList) -> TextList:
        """Add the listed entries to `entries`."""

    def feed(self, data: bytes) -> None:
        """Decode the next bytes; `FormatError` for bytes that are not such a list."""

    def finish(self) -> None:
        """Add the directories that are not listed; `FormatError` if the list is not complete."""

    @property
    def has_other_digests(self) -> bool:
        """True if a file had a digest, but not of the kind that proves content."""

def compare_file_lists(old: _BinaryFile, new: _BinaryFile) -> tuple[list[bytes], list[bytes], bool]:
    """Compare two complete lists of quick-fedora-mirror.

    Returns the paths of new and changed lines, those of removed ones, both sorted, and True if
    lines differ from which a newline or a tab in a name hides the path.  Raises `FormatError` if a
    list is incomplete.
    """

def read_recent(
    file: _BinaryFile, since: str | None
) -> tuple[str | None, bool, bytes, list[bytes], list[tuple[bytes, bool]]]:
    """Read a file of File::Rsync::Mirror::Recent; `FormatError` if it is not complete.

    Returns the epoch of its newest event, None without one; True if it has all events after the
    epoch `since`; its dirtymark; the intervals of the files of the same tree; and the paths of the
    events after `since`, newest first, with True for a new or changed entry.
    """

@final
class Lookup:
    """A lookup of paths in a snapshot of at most `limit` entries, whose root has the tree `tree`.

    Exceptions of the reader are passed on unchanged.
    """

    def __new__(cls, reader: _Reader, tree: bytes, limit: int) -> Lookup: ...
    def own_tree(self, path: bytes) -> bytes | None:
        """Return the id of the tree of an own directory; None for any other path."""

    def leaf(self, path: bytes) -> tuple[bytes, bytes] | None:
        """Return the line of a file or symlink, and its digest, empty if that is unknown.

        Returns None if there is neither at `path`.
        """

    def attributes(self, path: bytes) -> bytes | None:
        """Return the attribute fields of a directory; None without a directory at `path`."""

    def part(
        self, path: bytes, start: int, most: int
    ) -> tuple[_Listing, _Batch | None, int] | None:
        """Return a directory, some of its entries from number `start` on, and the number of all.

        Subdirectories come first, then files and symlinks, by name.  None without a directory.
        """

    def subtree(self, path: bytes, filters: Sequence[Filter] = ...) -> Walk[_Listing]:
        """Return the listings of a directory and all below it, whole ones; none if it is missing.

        With `filters`, only those of directories that at least one of them mirrors.
        """

    def check_hardlinks(self, paths: Sequence[bytes]) -> None:
        """Raise `FormatError` for a hardlink at `paths` without a leader, or unlike its leader."""

    def level(self, path: bytes, tree: bytes) -> Walk[_Listing | tuple[bytes, bytes]]:
        """Return one own directory in tree order; own subdirectories are path and id."""

@final
class SubtreeTotals:
    """Sums of what is below directories of any snapshots; `most` of them are kept.

    They are kept by the ids of trees, so what is unchanged since another commit is not read again.
    One thread counts at a time.
    """

    def __new__(cls, most: int) -> SubtreeTotals: ...
    def count(
        self, lookup: Lookup, paths: Sequence[bytes], seconds: float
    ) -> list[tuple[int, int, int] | None]:
        """Return the files, symlinks and bytes below each directory, 0 for a missing one.

        None for those that `seconds` do not suffice to read; a later call continues.  Raises
        `FormatError` if metadata are damaged; exceptions of the reader are passed on unchanged.
        """

@final
class NameIndex:
    """The names of a module's snapshots, which keeps about `most` bytes for searches to come.

    Names of what is unchanged since another commit are not read again.  One thread searches at a
    time.
    """

    def __new__(cls, most: int) -> NameIndex: ...
    def search(
        self, lent: _Snapshot, query: tuple[bytes, bytes, int], seconds: float
    ) -> tuple[_Batch | None, Literal["hits", "time"] | None, int]:
        """Find entries below a directory, by a text, in tree order; `query` ends with their most.

        Names must have the text, or paths, if it has a slash.  With `*` or `?` the whole name must
        match, or the end of the path.  ASCII letters are compared without case.  A search takes
        `seconds` at most.  Returns the limit that ended the search before all was searched, and the
        bytes that are kept, about, as well.  Raises `FormatError` if metadata are damaged;
        exceptions of the reader are passed on unchanged.
        """

@final
class BundleReader:
    """A reader of small files of a snapshot for one response (FORMAT.md, "Bundles").

    `paths` are each ended by NUL.  All results of `read` have about `most` bytes together.
    """

    def __new__(
        cls, snapshot: tuple[_Reader, bytes, int], root: bytes, paths: bytes, most: int
    ) -> BundleReader: ...
    def read(self, enough: int) -> bytes:
        """Return the next bytes, at least `enough` unless they are the last; empty at the end."""

def read_own_directory(
    reader: _Reader, path: bytes, tree: bytes
) -> tuple[dict[bytes, bytes], list[bytes | None]]:
    """Decode the git tree of an own directory, which its parent's manifest does not have.

    Returns the raw names of own subdirectories with the ids of their trees, in byte order; and the
    ids of its manifest, the manifest's digests, other pieces, and their digests.
    """

_Owners: TypeAlias = tuple[Callable[[int], bytes], Callable[[int], bytes]]
"""Functions that return the names of a user and of a group."""

_Counts: TypeAlias = tuple[int, int, int, int]
"""The numbers of files, directories, symlinks and bytes."""
_Changes: TypeAlias = tuple[int, int, int, int, int]
"""The entries added, removed, changed, and moved with their directory; the bytes of new content."""
_Hashed: TypeAlias = tuple[int, int, list[bytes]]
"""The files read, their bytes, and the paths without a digest because of their holes."""
_Report: TypeAlias = tuple[
    list[tuple[bytes, int, int]], list[tuple[int, int, list[bytes]]], _Hashed
]
"""The problems, the remarks, and what was read.

A problem has a path, a reason, and 0 if the old entry stays, 1 if it is left out, 2 if its time is
clamped.  A reason is an errno, or: -1 keeps changing, -2 size or time out of range, -3 the
directory's time out of range, -4 a reserved name, -5 a temporary file of rsync, -6 changed while it
was read, -7 damaged, -8 a mount point that is not entered, -9 mounted over, -10 not mounted, -11 a
shard without a result, -12 a shard of another directory.  A remark has 0 for temporary, 1 for
reserved or 2 for not readable by others, a number of paths, and the first of them."""

_View: TypeAlias = tuple[int, int]
"""The file system and inode of a directory, as one machine sees it."""
_Shard: TypeAlias = tuple[bytes, _View, tuple[bytes, int] | None]
"""The path and view of a shard, and the id of its tree with its entries; None if it failed."""
_Edges: TypeAlias = tuple[_View, list[tuple[bytes, bytes]], list[bytes]]
"""The top's view; the inode (16 bytes) and leader of files with names elsewhere; the shards."""

def relink(
    snapshot: _Snapshot, groups: Sequence[Sequence[bytes]], writer: _Writer | None
) -> tuple[bytes, bytes]:
    """Set the hardlink fields of files with names in several parts.

    Each group has all names of a file.  Returns the id of the new root tree, and lines of the
    record of hardlink groups.
    """

@final
class TreeReader:
    """A reader of the tree of a module, for a commit.

    Exceptions of arguments are passed on unchanged.  Any other failure is passed to `explain`,
    which returns the exception to raise: "tree" with an `OSError` if memory or file handles are
    short, "digests" with an `OSError` if the table cannot be used, and "root" with a reason, or
    with 0 if the root vanished.
    """

    def __new__(
        cls,
        root: bytes,
        scan: tuple[Sequence[bytes], int, bool, bool, bytes | None],
        owners: _Owners | None,
        digests: object | None,
        explain: Callable[[Any, Any], BaseException],
    ) -> TreeReader:
        """Read `root`.

        `scan` has patterns as of rsync's --exclude, threads, one file system, True to remark what
        others may not read, and the directory of which `root` is a snapshot.  `owners` return
        names; if None, everything belongs to root.
        `digests` is a huai_server.commit.tree_reader.DigestOptions, or None for no digests.  A root
        that cannot be opened is an `OSError`.
        """

    def read_whole(
        self,
        past: _Snapshot | None,
        mounts: tuple[set[bytes], bool, bool],
        keep_pairs: Callable[[bytes], None],
        writer: _Writer | None,
        scope: tuple[bytes, Sequence[_Shard], _Snapshot | None],
    ) -> tuple[bytes, tuple[_Counts, int], _Report, set[bytes], _Edges]:
        """Scan everything, or a part, and write its objects; digests are stored after errors too.

        `past` is the last commit, whose entries stay where something cannot be read.  `mounts` has
        its mount points, True to enter the present ones, and True to accept all.  `keep_pairs` gets
        lines of the record of hardlink groups.

        `scope` has the path of its top, which gets a tree; the shards, which are not read but
        grafted; and the reader of their objects.

        Returns the id of the top's tree; the totals, and the number of entries that no snapshot can
        hold, without shards; the problems and remarks; and the present mount points; and, of a
        part, what may matter to others.
        """

    def read_listed(
        self,
        past: _Snapshot,
        named: tuple[ChangeList, bool, bytes],
        check_foreign: Callable[[list[bytes]], None],
        writer: _Writer | None,
    ) -> (
        tuple[
            bytes,
            tuple[_Counts, _Counts, _Changes | None],
            _Report,
            bytes,
            tuple[int, list[bytes]],
        ]
        | None
    ):
        """Read the paths that a list names, and write the objects of `past` with them.

        New digests are stored.

        `named` has the list, True if it names an old name of each file that gets a new one, and the
        record of hardlink groups.  `check_foreign` gets the directories on other file systems.

        Returns the id of the root tree; the totals added and removed, and the changes as
        `count_changes` counts them, None if directories may have moved; the problems and remarks;
        lines of that record; and the number of unknown paths, with the first of them.  Returns None
        if a file has names that are unknown.
        """

    def read_digests(
        self, changes: ChangeList, record: bytes
    ) -> tuple[list[tuple[bytes, bytes, bytes]], _Hashed, list[tuple[bytes, int]]]:
        """Compute the digests of the named files.

        Returns path, leaves and digest column of the directories with digests; the counts of what
        was read; and paths not read, with an errno.
        """

    def keep_digests(self) -> None:
        """Store the digests of the last `read_digests`, if any, for later commits."""

@final
class TreeWatch:
    """A watch on all directories of a tree, by inotify(7).

    `fileno()` is readable after an event.  After lost events, or if the root was moved, create
    another watch.  A deletion of the root is not noticed.
    """

    def __new__(
        cls,
        root: bytes,
        patterns: Sequence[bytes],
        *,
        one_file_system: bool,
        most: int,
        is_noted: bool = False,
    ) -> TreeWatch:
        """Watch `root`; `patterns` are as of `Scan`.  With `is_noted`, wait for calls of `note`.

        More than `most` changed paths count as the whole tree.  A root that cannot be watched is an
        `OSError`.
        """

    def fileno(self) -> int: ...
    def read(self) -> tuple[int, bool, bool]:
        """Process all present events, and watch new directories.

        Returns the number of events, True if some were lost, and True if the root was moved.
        """

    def note(self, path: bytes, *, is_directory: bool, all_below: bool) -> bool:
        """Let the next `take` return a path, perhaps with everything below; False if left out."""

    def take(self) -> tuple[ChangeList, int] | None:
        """Return the paths changed since the last call, and their number; None to scan the tree.

        The result is None at first, after too many changes, and while directories are not watched.
        """

    def give_back(self, changes: ChangeList | None) -> None:
        """Let the next `take` return these paths again; None for the whole tree."""

    def add(self, paths: Sequence[bytes]) -> None:
        """Let the next `take` return these paths too, with everything below them."""

    @property
    def directories(self) -> int:
        """The number of watched directories."""

    @property
    def unwatched(self) -> tuple[int, bytes, int] | None:
        """The number of unwatched directories, with path and errno of the first, or None."""

_Attributes: TypeAlias = tuple[int, int, tuple[int, int] | None]
"""The mtime in nanoseconds, the mode, and the numbers of user and group unless these are kept."""

@final
class Maker:
    """A maker of the entries of an attr tree below one directory.

    With a folder `building` on the same file system each entry is created there and renamed to its
    path, and directories keep their times.  Without one, entries are created in place and must not
    exist.  A failure is an `OSError` with the path below the root.  Call `leave` at the end.
    """

    def __new__(cls, root: bytes, building: bytes | None, *, privileged: bool) -> Maker:
        """Work below `root`; `privileged` is True if this process may ignore permissions."""

    def make_file(self, path: bytes, attributes: _Attributes, size: int) -> None: ...
    def make_symlink(self, path: bytes, attributes: _Attributes, target: bytes) -> None: ...
    def make_link(self, path: bytes, leader: bytes) -> None:
        """Make a further name of the file at the path `leader`."""

    def make_directory(self, path: bytes, attributes: _Attributes) -> None:
        """Make an empty directory; without `building` its attributes are set later."""

    def make_leaves(
        self,
        path: bytes,
        lines: bytes,
        owners: Callable[[bytes, bytes], tuple[int, int]] | None,
    ) -> None:
        """Make the leaves of the directory `path`; a signal may end the call between two of them.

        `owners` returns the numbers of a user and a group; None keeps those of the process.
        """

    def set_attributes(self, path: bytes, attributes: _Attributes) -> None:
        """Set the attributes of a directory."""

    def rename_directory(self, old: bytes, new: bytes) -> None:
        """Rename a directory with all below it; needs the folder `building`.

        An entry at the new path that cannot be replaced moves to `building`.
        """

    def remove(self, path: bytes) -> None:
        """Delete a leaf, or move a directory to the folder `building`, which both need."""

    def leave(self) -> None:
        """Restore mode and mtime of the last directory that was changed."""

    @property
    def unowned(self) -> int:
        """The number of times that setting an owner was not permitted."""

@final
class Blake3:
    """A BLAKE3-256 hash of content in pieces."""

    def __new__(cls, content: bytes = b"") -> Blake3: ...
    def update(self, content: bytes) -> None: ...
    def digest(self) -> bytes:
        """Return the digest of the content so far, 32 bytes."""

def patch_file(target: int, patch: int, ranges: list[tuple[int, int]]) -> None:
    """Give an open file the size of `patch` and its content in `ranges`; writes it to disk."""

def reserve_patch(target: int, patch: int, ranges: list[tuple[int, int]]) -> None:
    """Reserve the space that `patch_file` needs; the file keeps its size and content.

    Raises `OSError` if there is too little space.
    """

def hash_file(handle: int, threads: int, check: Callable[[], None] | None = None) -> bytes:
    """Return the BLAKE3-256 of an open file; `threads` threads hash a large one.

    `check` is called ten times a second; an exception of it ends the call, and is raised.
    """

@final
class PackWriter:
    """A writer of one pack, with the objects that a folder of packs does not have yet.

    It ends with `finish`, or with `abort`, which deletes the unfinished pack.  An error of the disk
    is an `OSError`, a damaged index a `FormatError`.
    """

    def __new__(
        cls, folder: bytes, name: bytes, *, threads: int, known: bytes | None = None
    ) -> PackWriter:
        """Write to `folder`, an `objects/pack`; the unfinished pack is called `name` there.

        Objects in the packs of the folder `known`, by default the same one, are left out.
        """

    def __len__(self) -> int:
        """Return the number of objects so far."""

    def write(self, kind: _Kind, data: bytes) -> bytes:
        """Add an object unless the folder has it; returns its id."""

    def finish(self) -> bytes | None:
        """Make the pack durable and visible; returns its name without a suffix, None if empty."""

    def abort(self) -> None:
        """Discard the pack; may be called at any time."""

_Pattern: TypeAlias = tuple[Sequence[bytes], bool]
"""The components, with `?` and `*`, or `**`; and True if it matches symlinks only."""

@final
class PublishPatterns:
    """The patterns of publish rules; matching takes quadratic time at most."""

    def __new__(cls, patterns: Sequence[_Pattern]) -> PublishPatterns: ...
    def first(self, paths: Sequence[bytes] | Sequence[_File], *, symlink: bool) -> list[int | None]:
        """Return the place of the first matching pattern, or None, for each path."""

_Places: TypeAlias = tuple[int, int]
"""The begin and the end of a range of rules."""

@final
class PublishOrder:
    """The publishing order of a snapshot, which is read as far as needed.

    Exceptions of the reader are passed on unchanged.
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
        """Order the snapshot `lent` by `rules`, each with its stage.

        `volatile`, `stated` and `generic` are the ranges of rules of that kind.  `profiles` have
        lists of markers and a range of rules.  `assigned` maps tops to the numbers of their
        profiles, or to None if they are not repositories.
        """

    def stages(self, items: Sequence[tuple[bytes, bool]]) -> bytes:
        """Return the stage of each path as a byte; each comes with True for a symlink."""

    def placement(self, path: bytes, *, symlink: bool) -> tuple[int, int | None, int | None]:
        """Return the stage of a path, the place of the rule that decided, and a repository.

        The number is that of the repository whose rule decided, or of the innermost one around the
        path.
        """

    def around(self, folder: bytes) -> list[int]:
        """Return the numbers of the repositories around a directory, outermost first."""

    def found(self) -> int:
        """Return the number of repositories found so far."""

    def repository(self, number: int) -> tuple[bytes, int, int | None]:
        """Return the top of a repository, and the numbers of its profile and list of markers.

        The last is that of the list that was found at the top, None for an assigned repository.
        """

    def is_directory(self, path: bytes) -> bool:
        """Return True if the snapshot has a directory at `path`."""

    def has_entry(self, path: bytes) -> bool:
        """Return True if the snapshot has an entry at `path`."""

@final
class MissingObjects:
    """A search for what `packs` lack of the directories that `filter` includes.

    It begins at the root's `tree`.  Directories that are equal in one of the trees `bases` are not
    entered: all that the filter includes of them is here.  More than `most` directories are a
    `FormatError`, as a malformed tree is.
    """

    def __new__(
        cls,
        packs: Packs,
        tree: bytes,
        bases: Sequence[bytes],
        filter: Filter,  # noqa: A002
        most: int,
    ) -> MissingObjects: ...
    def next(self) -> list[bytes]:
        """Return the ids of missing objects, sorted; call it again when they have been fetched.

        What these name is searched then.  Empty if nothing is missing.
        """

    @property
    def absent(self) -> list[bytes]:
        """The trees of the excluded directories that were met, and are not here."""

@final
class Packs:
    """The packs of a repository, with random access.

    Packs that are added later are found.  A file that cannot be read is an `OSError`, a wrong one a
    `FormatError`.
    """

    def __new__(cls, keep: int, spare: int = ...) -> Packs:
        """Cache `keep` bytes of the objects that were read last.

        Reads raise `FormatError` once they have cost `spare` bytes of work more than they returned.
        Without `spare` work is not counted, for trusted packs.
        """

    def add(self, folder: bytes) -> None:
        """Also read the packs in `folder`, an `objects/pack`."""

    def forget(self) -> None:
        """Close all packs, after one was removed or replaced."""

    def set_absent(self, trees: Sequence[bytes]) -> None:
        """Read directories with these trees (ids) as empty ones where no pack has them.

        `in` and `send` do not count them.  Replaces those of an earlier call.
        """

    @property
    def left_out(self) -> list[bytes]:
        """The trees of absent directories that `send` and `pack` met, sorted."""

    def find(self, oid: bytes) -> tuple[_Kind, bytes] | None:
        """Return kind and content of an object; None if no pack has it."""

    def __contains__(self, oid: bytes, /) -> bool: ...
    def send(
        self,
        commit: bytes,
        tree: bytes,
        put: Callable[[bytes], object],
        *,
        since: bytes | None = None,
    ) -> None:
        """Pass the pack of a commit to `put` in pieces; `FormatError` if an object is missing.

        `commit` is its content, `tree` the id of its tree.  `since` is the id of a tree that the
        other side has completely; with it the pack is thin.
        """

    def pack(self, commits: Sequence[tuple[bytes, bytes]], put: Callable[[bytes], object]) -> None:
        """Pass one pack of several commits to `put`, as `send` does.

        Each commit is its content and the id of its tree, oldest first, so that deltas against
        objects of an older commit stay deltas.
        """

def decode_tree(data: bytes, place: str) -> list[tuple[bytes, bytes, bool]]:
    """Return the items of a git tree, as of `encode_tree`; a `FormatError` names `place`."""

class ListingHashes:
    """The listing hashes of local objects (FORMAT.md, "Listing hash")."""

    def __new__(cls, records: bytes, stated: bytes = ...) -> Self:
        """Load `records`, from `added` of earlier objects; a torn end is ignored.

        `stated` has records of trees that are not here, which the upstream sent.
        """

    def of_tree(self, tree: bytes, objects: object) -> bytes:
        """Return the hash of a tree; unknown parts are read from `objects`, and recorded."""

    def records(self, trees: bytes) -> bytes:
        """Return the records of those of `trees`, ids one after the other, that are recorded."""

    @property
    def added(self) -> bytes:
        """The records of the objects hashed since."""

    @property
    def sound(self) -> int:
        """The number of bytes at the start of `records` that are whole records."""

class PrivateKey:
    """A private key of OpenSSH, Ed25519, not encrypted."""

    def __new__(cls, file: bytes) -> Self:
        """Parse a key file; `FormatError` for anything else, also for other kinds of keys."""

    @staticmethod
    def generate(seed: bytes, comment: str) -> PrivateKey:
        """Create a key from 32 random bytes."""

    @property
    def public(self) -> str:
        """The public key, as `parse_public_key` returns it."""

    def encode(self) -> str:
        """Return the key as a key file."""

    def sign(self, namespace: str, message: bytes) -> str:
        """Return a signature, as of `ssh-keygen -Y sign`."""

def parse_public_key(line: str) -> str:
    """Return the Ed25519 key in `line`, `ssh-ed25519 AAAA…`, without its comment.

    Raises `FormatError` for anything else.
    """

def verify_signature(namespace: str, message: bytes, armored: bytes) -> str:
    """Return the public key that signed `message`; a wrong signature is a `FormatError`."""

class _LocalObjects(Protocol):
    """A repository; it is not asked for objects of its `packs` (`Packs`), if it has that."""

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
    """Check that all objects of the tree `target` are here; returns how much of `work` that took.

    Raises `MissingObjectError` for the first missing object.  `complete` are trees that are known
    to be complete.  `work` bounds the bytes of trees that are followed.  `check` is called ten
    times a second; an exception of it ends the call.
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
    it took.  Raises `FormatError` for a wrong pack, and `MissingObjectError` for a missing base or
    object of the commit; then nothing is visible, but temporary files may be left.

    `objects` is called on another thread, and may be asked for the same object again.  `check` is
    as of `check_connected`.  `target` is the id of a commit, and trees that are complete.  `work`
    bounds the bytes that are inflated and built, repetitions included.  `room` has the bytes of
    bases in memory, beyond which they are built again, and the bytes of trees and commits, beyond
    which the pack is refused.
    """

def encode_tree(items: Sequence[tuple[bytes, bytes, bool]]) -> bytes:
    """Return a git tree of items: name, id, and True for the id of a tree."""

def object_id(kind: _Kind, data: bytes) -> bytes:
    """Return the id of a local object; collisions are not looked for."""

_File: TypeAlias = tuple[bytes, int, int, int, bytes, bytes, bytes | None, bytes | None]
"""See huai_schema.entries.File."""

def comparable(root: bytes, files: Sequence[_File], least: int, few: int) -> list[int]:
    """Return the positions of `files` above `least` bytes that exist below `root` as regular files.

    With any, also those of the others if they are fewer than `few`.  A file is left out if an
    existing entry above it is not a directory.
    """

def write_back(folder: int) -> None:
    """Write all present changes of the file system of an open directory to disk.

    An error is an `OSError`, and is reported to every other handle too.
    """

def request_names(
    files: Iterable[_File], start: bytes, commit: tuple[_Reader, bytes, int] | None
) -> tuple[bytes, int]:
    """Return the names by which rsync requests `files`, each after `start` and ended by NUL.

    With the snapshot of `commit`, a directory of which all files are requested, and which has no
    subdirectory, is named instead of its files.  Also returns the number of such directories.
    """

def verify_arrived(
    folder: bytes,
    files: Iterable[_File],
    run: tuple[dict[bytes, int], bool, _Finish | None],
    threads: int,
    check: Callable[[], None],
) -> bytes:
    """Verify `files` below `folder`, and set attributes; returns a byte for each, in order.

    0 is the file, 1 nothing, 2 something else, 3 the file with all its attributes set.
    `run` has the inodes that were put there as a basis, by path; True if the writer was
    interrupted; and the functions that find owners, or None to set no attributes.  A file that
    cannot be read is an `OSError`.  `check` is called ten times a second; an exception of it ends
    the call.
    """

@final
class Arrived:
    """A compact record of verified files, and of the run that fetched each.

    A file is identified by path, size, time and digest.
    """

    def __new__(cls) -> Arrived: ...
    def __len__(self) -> int: ...
    def add(self, files: Iterable[_File], run: int) -> None:
        """Add files that `run` fetched; their owner, mode and time are not set yet."""

    def finish(self, files: Iterable[_File]) -> None:
        """Record that owner, mode and time of these files are set; unknown files are ignored."""

    def runs(self, files: Iterable[_File]) -> list[int | None]:
        """Return the run that fetched each file, None for a file that is not recorded."""

    def directories(self, files: Iterable[_File]) -> list[tuple[bytes, int, int, int | None]]:
        """Group consecutive files of one directory by the run that fetched them, None for no run.

        Each group has the directory, the places of the first file and after the last, and the run.
        """

    def has(self, path: bytes, run: int) -> bool:
        """Return True if `run` fetched the file at `path`."""

    def unfinished(self, files: Iterable[_File]) -> list[int]:
        """Return the places of files not recorded, or whose owner, mode and time are not set."""

_Located: TypeAlias = tuple[Arrived, int, int, dict[int, bytes]]
"""The locations of verified files: open directories of fetched files, with a folder for each run,
and of all others, with the names of these by number.  No symlink is on the way."""

def find_twins(files: Sequence[_File]) -> list[tuple[int, int]]:
    """Return the places of files that equal an earlier one by digest and size, with its place.

    Empty files are left out.
    """

_Area: TypeAlias = tuple[int, int, int]
"""The open directories for copies and for links, which no other process changes, and the number of
threads that copy, or hash a large file."""
_Hear: TypeAlias = Callable[[int], bool]
"""A function that gets the bytes read ten times a second; False or an exception ends the call."""
_Ended: TypeAlias = tuple[bytes, int] | None
"""The path and the errno of the failure that ended a row, or None."""

_Finish: TypeAlias = tuple[_Number, _Number]
"""The functions that return the numbers of users and of groups."""

def copy_files(
    files: Iterable[_File],
    places: tuple[int, int],
    limits: tuple[int, dict[int, int]],
    finish: _Finish | None,
    hear: _Hear,
) -> tuple[bytes, _Ended]:
    """Copy files from the first open directory of `places` to the same paths below the second.

    Returns a byte for each: 0 copied, 1 missing, 2 different, 3 not readable, 4 not reached, 5
    copied with owner and mode, as most are with `finish`.
    `limits` has the bytes a second (0: no limit), and the numbers of files that may differ from the
    metadata, each with the most bytes that it may have: such a file is copied, and is 2.  A failure
    to write ends the row.
    """

@final
class BundleWriter:
    """A writer that stages the files of a bundle below an open directory while it arrives.

    `finish` has the functions that find owners; without it, owner and mode are set later.
    """

    def __new__(
        cls, files: Iterable[_File], folder: int, finish: _Finish | None
    ) -> BundleWriter: ...
    def begin(self) -> None:
        """Begin another response, with the files that have no verdict."""

    def write(self, data: bytes) -> int:
        """Stage the files that are complete in the next bytes of the response.

        Returns the number of files with a verdict so far.  Raises `FormatError` for bytes that are
        not a bundle of the files.
        """

    def verdicts(self) -> bytes:
        """Return the verdicts so far, as of `copy_files`; 4 is not bundled, 6 is wrong."""

def copy_twins(
    files: Sequence[_File],
    firsts: tuple[Sequence[_File], _Located],
    keys: Sequence[bytes | None],
    area: _Area,
    hear: _Hear,
) -> tuple[bytes, _Ended]:
    """Stage each of `files` with the content of the staged file of `firsts` at its place.

    A link gets its key from `keys`, if there is one.  The result is as of `Tree.stage_copies`.
    """

def open_regular(root: bytes, path: bytes) -> int | None:
    """Open the regular file at `path` below the directory `root`, which alone may be a symlink.

    The caller closes it.  Returns None if there is no regular file.  A file that may not be read,
    or a root that cannot be opened, is an `OSError`.
    """

def remove_all(folder: int, name: bytes) -> None:
    """Remove a name in an open directory with everything below it; it may be missing.

    Only for folders that no other user can change.  Raises `OSError`.
    """

_Own: TypeAlias = tuple[bytes, bytes, bool]
"""The path and the tree of an own directory, and True if everything below it belongs to it."""
_Modes: TypeAlias = tuple[tuple[int, int], tuple[int, int], bool]
"""The bits kept and set, of files and of directories; and True to compare no modes."""

@final
class TreeComparison:
    """A comparison of the tree below an open directory with a selection of a snapshot.

    Exceptions of the reader are passed on unchanged; other failures are an `OSError`.
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
        """Compare with `snapshot`: a reader, the most entries it may have, and the wanted part.

        An entry must pass all filters.  `scope` has the path whose subtree is compared, the
        directories to leave out, and the place after which to begin.  `owners` return the number of
        a user and of a group; without them owners are not compared.  With `content`, files to be
        read are findings too.  With `opens_up`, a batch ends at a directory that may not be read,
        which is reported as a whole.
        """

    def batch(
        self, most: int, steps: int
    ) -> tuple[bytes, bytes, _Batch | None, tuple[int, int, int], bytes, bool]:
        """Return about `most` findings of about `steps` further entries.

        These are records, their text, and the wanted entries; the numbers of entries, of files, and
        of files without a digest that were compared; the place of the last entry; and True at the
        end.
        """

    def put_into(
        self, candidates: Candidates, steps: int, check: Callable[[], None]
    ) -> tuple[bytes, bytes, bool]:
        """Compare about `steps` entries, and add what is missing or differs to `candidates`.

        `check` is called ten times a second, and may raise.  Returns records of the rest, their
        text, and True at the end.
        """

    def waiting(self) -> list[bytes]:
        """Return the extraneous leaves that were found and are not reported yet."""

    def forget(self, paths: AbstractSet[bytes]) -> None:
        """Drop these extraneous leaves, so that they are not reported."""

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
"""A new directory with prepared files: an open directory, its path below that, and its new path.

Then the directory and all below it, deepest first, each with its number of names where it is
staged, and True to set its time; prepared files that are elsewhere, each with its path; and the
hardlinks of files below it and the symlinks to be made.
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
"""The number of operations done; path, reason, errno or 0, and another path of a failure."""
_Number: TypeAlias = Callable[[bytes], int | None]
"""A function that returns the number of a user or group, None if it is unknown here."""

@final
class Tree:
    """A tree that is changed without following symlinks in any component of a path.

    A row of operations is done in order until its end or the first failure, on one thread.
    The tree holds open directories until `close`.  A failure outside a row is an `OSError`: ENOENT,
    ENOTDIR (a symlink or another non-directory on the way), EACCES, EBADF after `close`.
    """

    def __new__(
        cls,
        root: int,
        *,
        loosens: int | None,
        umask: int,
        owners: tuple[_Number, _Number] | None,
    ) -> Tree:
        """Work below the open directory `root`, which the caller closes.

        Directories of the user `loosens` get u+rwx when they need it, until `restore_modes`.
        Without `owners` no owner is set.  A kept mode applies to new entries, less the `umask`;
        existing entries keep theirs.
        """

    def open(self, path: bytes) -> int:
        """Return a handle (O_PATH) that is valid during the next few calls; do not close it."""

    def make_writable(self, path: bytes) -> bool:
        """Give a directory u+rwx until `restore_modes`; False if that is not allowed or needed."""

    def stage_copies(
        self,
        files: tuple[Sequence[_File], Sequence[tuple[bytes, int, int, bool, bytes | None]]],
        until: int,
        area: _Area,
        hear: _Hear,
    ) -> tuple[bytes, _Ended]:
        """Stage files whose content other files of this tree have.

        Returns a byte for each: 0 not staged, 1 a link, 2 a clone, 3 a copy; only a lack of space
        ends the row.  A source has its path, time, the most names that the inode of a link may
        have, True if size and time are enough unless it was changed after `until`, and the key that
        a link gets, None to make no link.
        """

    def stage_in(self, area: int) -> None:
        """Create temporary names in the open directory `area`, which only this user may change."""

    def keep_below(self, top: bytes) -> None:
        """Keep leaves that are removed or replaced from now on, at the same path below `top`."""

    def survey(self, candidates: Candidates, renames: Renames) -> tuple[bytes, int | None] | None:
        """Read the local entries of candidates that have none yet, at their paths before `renames`.

        The first failure ends the call.  Returns its path, or that of a hardlink's leader, with an
        errno, or with None if it is going to be moved.
        """

    def hash(
        self,
        candidates: Candidates,
        renames: Renames,
        hashing: tuple[bytes, int],
        check: Callable[[], None],
    ) -> _Ended:
        """Hash each file that only a digest can compare, at its path before `renames`.

        `hashing` has the digest to record for a file that cannot be read, and the number of threads
        that read files; as many hash a large one.  `check` is called ten times a second; an
        exception of it ends the call, as a failure of the disk does.
        """

    def carry_out(
        self,
        step: _Step,
        items: Sequence[_File | _SymlinkEntry | _DirectoryEntry | tuple[bytes, bool] | bytes],
        places: _Located | None = None,
    ) -> _Row:
        """Carry out one kind of step; steps that are done already are repeated.

        "make": create missing directories, with owner and mode if these are known, and writable by
        their owner.  "prepare": set owner, mode and times of the files at `places`.  "publish":
        rename these to their paths.  "link": create hardlinks of the files at `link`, which must be
        as stated.  "symlink": create symlinks.  These three replace leaves.  "attributes": set
        owner, mode and times of existing files and symlinks.  "remove": remove an entry, if it
        exists; a directory must be empty.  "directory": set the final attributes, times included.
        """

    def move_directories(
        self, moves: Sequence[tuple[bytes, bytes]], forwards: Sequence[_SymlinkEntry]
    ) -> _Row:
        """Rename directories from an old to a new path, which must be free.

        Each symlink of `forwards` replaces an old directory at the same moment.
        """

    def publish_directories(self, items: Sequence[_Whole]) -> _Row:
        """Rename staged directories, with everything below them, to paths that must be free.

        Missing directories below them are created.  A directory that fails stays staged, and can be
        published file by file.
        """

    def restore_modes(self) -> list[bytes]:
        """Restore the modes of directories that got u+rwx; returns the paths where this failed."""

    def sync(self) -> None:
        """Write all changes of the file system to disk: syncfs(2)."""

    def sync_staged(self, items: Sequence[_File], places: _Located) -> bool:
        """Write the files at `places` to disk: fsync(2); False if one cannot be written."""

    def sync_paths(self, paths: Sequence[bytes]) -> bool:
        """Write files and directories to disk: fsync(2).

        Missing ones are passed over.  False if another one cannot be opened or written.
        """

    def sync_root(self) -> None:
        """Write the names in the root and its attributes to disk: fsync(2)."""

    def refresh(self) -> None:
        """Close cached handles, so that renames by other processes are noticed."""

    def close(self) -> None:
        """Close all handles."""

def rename_noreplace(folder: int, old: bytes, new: bytes) -> bool:
    """Rename within an open directory; `FileExistsError` if something has the new name.

    Returns False and does nothing if kernel or file system do not support such a rename.
    """

@final
class Walk(Iterator[_T_co]):
    """An iterator over a part of a snapshot."""

    def __iter__(self) -> Walk[_T_co]: ...
    def __next__(self) -> _T_co: ...
