"""Scrubbing a module: reading files with a digest again, to check that they still match it.

A file whose size or mtime differs from the newest commit is left to the next commit.  One with the
same size and mtime but other content, or that the disk cannot read, is damaged.  The tree and the
commits are never changed here; a commit that finds content recorded as damage keeps the old entry
(`ReadingPolicy.is_damage`).

A round reads all files in tree order, spread over nine tenths of the period in which each must be
read again, so runs may be as far apart as the last tenth.  The progress of a round is a path and
some numbers, whatever the number of files.  A new file in the part already read was read since, for
its digest.

Order of writes: the record, after each batch, with the findings of the batch.  A killed run loses
one batch, which the next run reads again.  Takes a lock of its own, not the module's.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from huai_native._native import Digested, Pace, Scrub
from huai_program.locking import locked
from huai_program.priority import idle_disk
from huai_program.record_file import RecordFile
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, tree_order
from huai_server.commit.file_lists import NO_RESULT, ListTask, Read, Reader, opened_reader
from huai_server.commit.read_limits import TOO_LARGE, ReadLimits
from huai_server.commit.tree_reader import require_digests
from huai_server.config.tables import Module
from huai_server.config.volatile import Volatile
from huai_server.scan.root import empty_root_error, holds_anything
from huai_server.scan.types import Problem, root_error
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.module_state import newest_commit
from huai_server.store.repository import Head
from huai_server.store.scrub_record import (
    MOST_DAMAGE,
    Damage,
    Round,
    ScrubRecord,
    read_record,
    write_record,
)

OTHER_CONTENT = "its content does not match its digest, under the same size and time"
UNREAD = "it is not compared with its digest"
FILE_COST = 64 << 10
"""The bytes that can be read in the time that finding one file takes."""
EVERYTHING = 1 << 62

_Digested: TypeAlias = tuple[bytes, int, int, bytes]
_Finding: TypeAlias = tuple[tuple[bytes, int, int] | None, int]
"""Rows, as `_native.pyi` lists them."""
_FILES = 4096
_BYTES = 256 << 20
_UNREADABLE = (errno.EIO, errno.EBADMSG, errno.EUCLEAN, errno.ENODATA)
"""The errors of disks and file systems for lost content."""


class TooMuchDamageError(HuaiError):
    """More files are damaged than single faults explain."""

    exit_code = ExitCode.DAMAGED


class _ListFindings(NamedTuple):
    """The result of reading a list of files."""

    done: int
    """The number of files that were read."""
    differing: list[tuple[int, _Finding]]
    """The files that differ, by their place in the list."""


class ScrubResult(NamedTuple):
    """The result of a run."""

    head: Head
    files: int
    bytes: int
    """The files that this run read, and their bytes."""
    changed: int
    """Files that differ from the commit in size or mtime, and wait for the next one."""
    record: ScrubRecord
    """The progress of the round, and all known damage."""
    due: int
    """Bytes that are still due, as `due` counts them."""
    problems: tuple[Problem, ...]
    """Files that this user may not read."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code: `DAMAGED` if damage is known, `INCOMPLETE` for problems, else `OK`."""
        if self.record.damage:
            return ExitCode.DAMAGED
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK


def scrub_tree(
    name: str,
    module: Module,
    places: ModulePlaces,
    limits: ReadLimits,
    *,
    full: bool = False,
    engine: str = "",
) -> ScrubResult:
    """Compare files that are due, or with `full` the rest, with their digests; record damage.

    The processes of `engine` (a URL, empty for the configured one, if any) read the files.  Raises
    `LockedError` while another scrub runs, `UsageError`, `NoCommitError`, an error for an empty
    tree, `TooMuchDamageError`, and `EngineError`.
    """
    require_digests(name, module)
    with storage_errors(places.folder), locked(places.scrubbing):
        head, past = newest_commit(name, places)
        _check_root(Path(module.path))
        pace = limits.pace()
        run = _Run(name, module, places, head, past, pace)
        with idle_disk():
            run.recheck()
        with opened_reader((name, module, places), limits, pace, _READER, engine) as read:
            return run.continue_round(read, full=full, again=bool(engine or module.engine.url))


def _read(
    module: Module, _places: ModulePlaces, pace: Pace, files: list[_Digested]
) -> _ListFindings:
    """Compare files with their digests; raises an error if the tree is empty or unreadable."""
    _check_root(Path(module.path))
    return _ListFindings(*Scrub(os.fsencode(module.path)).read(files, pace))


def scrub_files(text: str) -> None:
    """Compare a list of files with their digests, a `ListTask` in JSON."""
    _READER.run(text)


def _split(
    files: list[_Digested], label_of: Callable[[bytes], str]
) -> Iterator[tuple[str, list[_Digested]]]:
    """Yield the label and the files of each part of a list."""
    for label, part in groupby(files, lambda file: label_of(file[0])):
        yield label, list(part)


_READER = Reader(
    _read, ListTask[list[_Digested]], RecordFile(_ListFindings, durable=False), scrub_files, _split
)


def _check_root(root: Path) -> None:
    """Raise `EmptyRootError` if the tree is empty, `ScanError` if it is unreadable or missing."""
    try:
        holds = holds_anything(root)
    except OSError as error:
        raise root_error(root, error) from None
    if not holds:
        raise empty_root_error(root, "there is nothing to read")


class _Run:
    """One scrub of a module; the caller holds the lock for scrubs."""

    def __init__(
        self,
        name: str,
        module: Module,
        places: ModulePlaces,
        head: Head,
        past: Snapshot,
        pace: Pace,
    ) -> None:
        self._name = name
        self._span = module.scrub_span
        self._volatile = Volatile(module.volatile)
        self._place = places.scrub
        self._head = head
        self._past = past
        self._pace = pace
        self._engine = Scrub(os.fsencode(module.path))
        self._now = int(time.time())
        record = read_record(places.scrub)
        self._written = record
        self._finished = record.finished
        self._round = record.current or Round(self._now)
        self._damage = {each.path: each for each in record.damage}
        self._former: dict[bytes, Damage] = {}
        """Damage of files that are read once more."""
        self._files = self._bytes = self._changed = 0
        self._is_at_end = False
        self._problems: list[Problem] = []

    def recheck(self) -> None:
        """Forget damage whose file is gone or committed otherwise; read changed files again.

        Saves the record.  Damage of a file that cannot be examined stays.
        """
        for damage in tuple(self._damage.values()):
            try:
                identity = self._engine.identity(damage.path)
            except OSError:
                continue
            if not self._is_committed(damage) or identity is None:
                del self._damage[damage.path]
            elif identity != damage.identity:
                file = damage.path, damage.size, damage.mtime, damage.expected
                done, findings = self._engine.read([file], self._pace)
                if done and not findings:
                    del self._damage[damage.path]
                for _, finding in findings:
                    if finding[0] is not None:
                        self._record_finding(file, finding)
        self._save_record()

    def _is_committed(self, damage: Damage) -> bool:
        """True if the newest commit still has the recorded state of the file."""
        entry = self._past.leaf(RelPath(damage.path))
        return isinstance(entry, File) and (entry.size, entry.mtime, entry.digest) == (
            damage.size,
            damage.mtime,
            damage.expected,
        )

    def continue_round(
        self, read: Read[list[_Digested], _ListFindings], *, full: bool, again: bool
    ) -> ScrubResult:
        """Read what is due, or with `full` the rest of the round; raises `TooMuchDamageError`.

        `again`: read what differs again here, as another node may lack a mount.
        """
        if full and self._round.after is None:
            self._round = Round(self._now)
        for batch, findings in read(self._batches(EVERYTHING if full else self._due_bytes())):
            confirmed = self._confirm(batch, findings) if again and findings else findings
            done = self._add(batch, confirmed)
            self._save_record()
            self._check_damage()  # an engine takes many batches before the first result
            if done < len(batch):
                self._report_too_large(batch[0][0])
                break
        else:
            if self._is_at_end:
                self._finished = int(time.time())
                self._round = following_round(self._round, self._span, self._finished)
                self._save_record()
        return ScrubResult(
            self._head,
            self._files,
            self._bytes,
            self._changed,
            self._written,
            self._due_bytes(),
            tuple(self._problems),
        )

    def _due_bytes(self) -> int:
        """Return the bytes of the round to read now; 0 without a schedule."""
        totals = self._head.info.totals
        if self._span is None:
            return 0
        return due(self._round, totals.files, totals.bytes, self._span, int(time.time()))

    def _batches(self, left: int) -> Iterator[list[_Digested]]:
        """Yield the next files of the round, until their cost (`cost`) is `left`.

        Raises `TooMuchDamageError`.
        """
        files = Digested(self._past.arguments, self._round.after)
        if left:
            self._check_damage()
        while left:
            batch = files.batch(min(_FILES, 1 + left // FILE_COST), min(_BYTES, left))
            if not batch:
                self._is_at_end = True
                return
            yield batch
            left = max(0, left - cost(len(batch), sum(file[1] for file in batch)))

    def _confirm(self, batch: list[_Digested], findings: _ListFindings) -> _ListFindings:
        """Read the files that differ again, while there is time; return the present findings."""
        places = [place for place, _ in findings.differing]
        done, rows = self._engine.read([batch[place] for place in places], self._pace)
        present = [(places[row], finding) for row, finding in rows]
        return findings._replace(differing=[*present, *findings.differing[done:]])

    def _add(self, batch: list[_Digested], findings: _ListFindings | None) -> int:
        """Record progress and findings of a batch; return the number of files read.

        Without findings each file is a problem, and counts as read.
        """
        if findings is None:
            self._problems += (Problem(RelPath(file[0]), NO_RESULT, UNREAD) for file in batch)
            self._round = self._round.passed(batch[-1][0], 0, 0)
            return len(batch)
        done, differing = findings
        if not done:
            return 0
        size, last = sum(file[1] for file in batch[:done]), batch[done - 1][0]
        self._forget_until(last)
        for place, finding in differing:
            self._record_finding(batch[place], finding)
        self._round = self._round.passed(last, done, size)
        self._files += done
        self._bytes += size
        return done

    def _forget_until(self, last: bytes) -> None:
        """Move damage in the batch that ends with `last` to `_former`: found again, or repaired."""
        after = self._round.after
        begin = b"" if after is None else tree_order(after, directory=False)
        end = tree_order(last, directory=False)
        for path in tuple(self._damage):
            if begin < tree_order(path, directory=False) <= end:
                self._former[path] = self._damage.pop(path)

    def _record_finding(self, file: _Digested, finding: _Finding) -> None:
        """Record damage or a problem, or count a file that changed since the commit."""
        path, size, mtime, expected = file
        actual, number = finding
        if actual is not None and not self._volatile(path):
            digest, inode, ctime = actual
            new = Damage(path, size, mtime, expected, digest, OTHER_CONTENT, self._now)
            self._record_damage(replace(new, identity=(inode, ctime)))
        elif number in _UNREADABLE:
            reason = os.strerror(number)
            self._record_damage(Damage(path, size, mtime, expected, None, reason, self._now))
        elif number:
            self._problems.append(Problem(RelPath(path), os.strerror(number), UNREAD))
        else:
            self._changed += 1

    def _record_damage(self, damage: Damage) -> None:
        """Record damage, with the time at which it was first found."""
        former = self._damage.get(damage.path) or self._former.get(damage.path)
        self._damage[damage.path] = replace(damage, since=former.since) if former else damage

    def _report_too_large(self, path: bytes) -> None:
        """Record that limits are too low for a file, if they allowed no other one."""
        if not self._files:
            self._problems.append(Problem(RelPath(path), TOO_LARGE, UNREAD))

    def _save_record(self) -> None:
        """Save the record, if it changed."""
        record = ScrubRecord(self._round, self._finished, tuple(self._damage.values()))
        if record != self._written:
            write_record(self._place, record)
            self._written = record

    def _check_damage(self) -> None:
        """Raise `TooMuchDamageError` if there are as many damaged files as the record may hold."""
        if len(self._damage) >= MOST_DAMAGE:
            raise TooMuchDamageError(
                f"{self._name}: {len(self._damage):,} files are damaged: the scrub stops here",
                hint="check the disk, its cables and the memory of this machine first; "
                "huai-server status shows the number",
            )


def due(current: Round, files: int, size: int, span: int, now: int) -> int:
    """Return the cost (`cost`) of what should be read now, of `files` with `size` bytes.

    `span` and `now` are in seconds; after the planned end of the round it is `EVERYTHING`.
    """
    length, elapsed = _round_seconds(span), now - current.begun
    if elapsed >= length:
        return EVERYTHING
    share = cost(files, size) * max(0, elapsed) // length
    return max(0, share - cost(current.files, current.size))


def cost(files: int, size: int) -> int:
    """Return the bytes that can be read in the time of reading `files` files with `size` bytes."""
    return size + FILE_COST * files


def following_round(current: Round, span: int | None, now: int) -> Round:
    """Return the round after a finished one; it begins when that one was planned to end.

    If that is long ago, it begins at `now`.  `span` is the period in seconds, None without one.
    """
    length = _round_seconds(span) if span else 0
    planned = current.begun + length
    return Round(planned if planned > now - length else now)


def _round_seconds(span: int) -> int:
    """Return the planned length of a round in seconds: nine tenths of the period `span`."""
    return max(1, span * 9 // 10)
