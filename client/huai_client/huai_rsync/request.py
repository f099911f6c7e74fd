"""The values of a request: the meaning of a command line of rsync.  Pure."""

from dataclasses import dataclass
from typing import NamedTuple

from huai_client.huai_rsync.source import Source


class FilterOption(NamedTuple):
    """One of `--filter`, `--include`, `--exclude` and their `-from` forms."""

    option: str
    """The name, without the dashes."""
    text: str


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """The selection of printed lines, and the form of numbers."""

    verbosity: int = 0
    quiet: bool = False
    stats: bool = False
    """True for the block of `--stats`, and the two lines of totals."""
    totals: bool = False
    """True for those two lines."""
    format: str = ""
    """The format for each change (`log.Format`); empty to hide changes."""
    deletions: bool = False
    """True to show deletions even if other changes are hidden."""
    human: int = 1
    """The level of `numbers.format_number`."""
    log: str = ""
    """The file of `--log-file`, or empty."""
    log_format: str = ""
    """The format for that file, as `format`."""

    @property
    def names(self) -> bool:
        """True if single changes are printed or written to a log."""
        printed = not self.quiet and bool(self.format or self.deletions)
        return printed or bool(self.log and self.log_format)


@dataclass(frozen=True, slots=True)
class RsyncRequest:
    """A mirror run that huai may carry out."""

    source: Source
    dest: str
    delete: bool
    delete_excluded: bool
    filters: tuple[FilterOption, ...]
    """The filter options in order, which is significant."""
    max_delete: str | None
    bwlimit: int | None
    """The limit in KiB/s."""
    timeout: int | None
    """The time-out in seconds."""
    rsync_options: tuple[str, ...]
    """Options for the runs of rsync that fetch content."""
    owner: bool
    group: bool
    numeric_ids: bool
    safe_links: bool
    perms: bool
    """True to keep modes, as `--perms` does; otherwise new files get them, less the umask."""
    plain_modes: bool
    """True for `--chmod=D755,F644`; otherwise modes are the upstream's."""
    dry_run: bool
    style: OutputStyle

    @property
    def targets(self) -> tuple[str, ...]:
        """The destination, as for `Passthrough`."""
        return (self.dest,)

    @property
    def harmless(self) -> bool:
        """True if the call certainly changes nothing."""
        return self.dry_run

    @property
    def deletes(self) -> bool:
        """True if the call deletes extraneous entries."""
        return self.delete

    @property
    def quiet(self) -> bool:
        """True if only errors are printed."""
        return self.style.quiet

    @property
    def owners(self) -> bool:
        """True if owners are set, as far as the user may."""
        return self.owner and self.group


@dataclass(frozen=True, slots=True)
class Passthrough:
    """A command line that the real rsync carries out."""

    reason: str
    targets: tuple[str, ...]
    """The operands that may be the destination."""
    harmless: bool = False
    """True if the call certainly changes nothing, as with `--list-only`."""
    file: str = ""
    """The only source, if it may be a single file and all options are known."""
    deletes: bool = False
    """True if the call deletes extraneous entries."""
    quiet: bool = False
    """True if only errors are printed."""
