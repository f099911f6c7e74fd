"""The values of a request: what a command line of rsync asks for.

Pure.
"""

from dataclasses import dataclass
from typing import NamedTuple

from huai_client.huai_rsync.source import Source


class FilterOption(NamedTuple):
    """One of `--filter`, `--include`, `--exclude` and those that read files."""

    option: str
    """Its name, without the dashes."""
    text: str


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """What is printed, and how numbers are shown."""

    verbosity: int = 0
    quiet: bool = False
    stats: bool = False
    """The block of `--stats`, and the two lines of totals."""
    totals: bool = False
    """Those two lines at least."""
    format: str = ""
    """The format for each change (`log_format.Format`); empty: changes are not shown."""
    deletions: bool = False
    """Whether deletions are shown if other changes are not."""
    human: int = 1
    """As `numbers.format_number` takes it."""
    log: str = ""
    """The file of `--log-file`, or none."""
    log_format: str = ""
    """As `format`, for that file."""

    @property
    def names(self) -> bool:
        """Whether single changes are shown, or written to a log."""
        shown = not self.quiet and bool(self.format or self.deletions)
        return shown or bool(self.log and self.log_format)


@dataclass(frozen=True, slots=True)
class RsyncRequest:
    """A mirror run that huai may do."""

    source: Source
    dest: str
    delete: bool
    delete_excluded: bool
    filters: tuple[FilterOption, ...]
    """In their order, which counts."""
    max_delete: str | None
    bwlimit: int | None
    """KiB/s."""
    timeout: int | None
    """Seconds."""
    rsync_options: tuple[str, ...]
    """For the runs of rsync that fetch content."""
    owner: bool
    group: bool
    numeric_ids: bool
    safe_links: bool
    perms: bool
    """Modes are kept, as with `--perms`; else new files get them, less the umask."""
    modes: tuple[int, int] | None
    """Of directories and files, as `--chmod` wants them; None: the upstream's."""
    dry_run: bool
    style: OutputStyle

    @property
    def targets(self) -> tuple[str, ...]:
        """Where it writes, as for `Passthrough`."""
        return (self.dest,)

    @property
    def harmless(self) -> bool:
        """Whether it surely changes nothing."""
        return self.dry_run

    @property
    def deletes(self) -> bool:
        """As for `Passthrough`."""
        return self.delete

    @property
    def quiet(self) -> bool:
        """As for `Passthrough`."""
        return self.style.quiet

    @property
    def owners(self) -> bool:
        """Whether files are given away, as far as the user may."""
        return self.owner and self.group


@dataclass(frozen=True, slots=True)
class Passthrough:
    """A command line that the real rsync carries out."""

    reason: str
    targets: tuple[str, ...]
    """Operands that may be where it writes."""
    harmless: bool = False
    """It surely changes nothing, as with `--list-only`."""
    file: str = ""
    """The one source if it may be a single file, and every option is understood."""
    deletes: bool = False
    """Whether it deletes what the source does not have."""
    quiet: bool = False
    """Whether only errors are printed."""
