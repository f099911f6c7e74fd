"""The state that all streams of one transfer share.

Made once for each transfer.  Streams are threads: they change this state by thread-safe calls.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field

from huai_client.diff.files import paths, without
from huai_client.staging import Staging
from huai_client.transfer.batch import ENOUGH_FILES, MAX_FILES_COMPARED, SMALL, Batch, batches
from huai_client.transfer.limits import Admission, BusyBackoff
from huai_client.transfer.listener import Tally
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.arguments import trusts_sender
from huai_client.transfer.rsync.run import ProcessGroup, require_rsync
from huai_client.transfer.sources import Sources
from huai_schema.entries import File
from huai_schema.paths import RelPath

NOT_READABLE = "permission denied at the upstream"
_FEW_FILES = 100
"""Fewer files are not worth a connection of their own; more are spread evenly over the streams."""

_TURNS = 8
"""Batches for each stream, where URLs take turns."""


@dataclass(slots=True)
class Shared:
    """One transfer: its files, its sources and its limits."""

    files: InitVar[Sequence[File]]
    sources: Sources
    staging: Staging
    options: TransferOptions
    tally: Tally
    compare_dest: bytes
    """The tree with older content, as an absolute path."""
    lock: int
    """The handle of the staging area's lock."""
    uses_rsync: bool
    """True if rsync is run at all."""
    queue: deque[Batch] = field(init=False)
    """Batches that no stream has taken yet."""
    width: int = field(init=False)
    """Runs of rsync at a time."""
    processes: ProcessGroup = field(init=False)
    busy: BusyBackoff = field(init=False)
    admission: Admission = field(init=False)
    refusals: dict[RelPath, str] = field(default_factory=dict)
    """The reasons why files were not served, by path; another URL may have them."""
    by_name: bool = False
    """True if directories hold far more than the metadata list: only files are requested."""
    newer: dict[RelPath, File] = field(default_factory=dict)
    """Volatile files that differ from the metadata, as they arrived."""

    def __post_init__(self, files: Sequence[File]) -> None:
        """Cut `files` into batches, and share the limits among the streams.

        Raises `RsyncRequirementError` if rsync is needed and unusable.
        """
        options = self.options
        parts = options.streams * (_TURNS if self.sources.divides else 1)
        even = max(_FEW_FILES, -(-len(files) // parts))
        max_files = options.batch_files
        if self.uses_rsync and not trusts_sender(require_rsync(options.program)):
            max_files = min(max_files, MAX_FILES_COMPARED)
        enough = min(ENOUGH_FILES, even)
        if self.sources.divides:  # else one URL would serve all of a large directory
            max_files = min(max_files, enough)
        limits = {"enough": enough, "max_files": max_files, "max_bytes": options.batch_bytes}
        large = self.staging.comparable(files, SMALL, _FEW_FILES) if self.uses_rsync else []
        rest = without(files, {*paths(large)}) if large else files
        self.queue = deque(Batch(part, compares=True) for part in batches(large, **limits))
        self.queue.extend(map(Batch, batches(rest, **limits)))
        self.width = max(1, min(options.streams, len(self.queue)))
        self.processes = ProcessGroup(options.deadline)
        self.busy = BusyBackoff(options.patience, options.backoff)
        self.admission = Admission(options, self.width, self.busy, self.tally, self.queue)
