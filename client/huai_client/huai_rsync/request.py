"""The values of a request: the meaning of a command line of rsync.  Pure."""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

_PORT = 873
_USER = r"(?:(?P<user>[^@/:]+)@)?"
_HOST = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*)"
_URL = re.compile(rf"rsync://{_USER}{_HOST}(?::(?P<port>[0-9]{{1,5}}))?/(?P<path>.+)")
_COLONS = re.compile(rf"{_USER}{_HOST}::(?P<path>.+)")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f*?\[\]\\\udc80-\udcff]+")


@dataclass(frozen=True, slots=True)
class RsyncSource:
    """A folder of an rsync daemon whose content is copied."""

    host: str
    path: str
    """The daemon's module and the path in it, without slashes at the ends."""
    port: int = _PORT
    user: str = ""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse rsync's source argument; None for another kind of source, or a single file."""
        url = _URL.fullmatch(text)
        match = url or _COLONS.fullmatch(text)
        if match is None:
            return None
        path = match["path"].rstrip("/")
        parts = path.split("/")
        plain = _PLAIN.fullmatch(path) and not {"", ".", ".."}.intersection(parts)
        # Without a trailing slash rsync copies the folder itself, except for a daemon's module.
        if not plain or path.startswith(("-", ":")) or (parts[1:] and match["path"][-1] != "/"):
            return None
        port = int(url["port"] or _PORT) if url else _PORT
        return cls(match["host"].lower(), path, port, match["user"] or "")

    @property
    def name(self) -> str:
        """The last part of its path: the likely name of its module."""
        return self.path.rpartition("/")[2]

    def same_place(self, other: "RsyncSource") -> bool:
        """Return True if both are the same folder, for any user."""
        return replace(self, user="") == replace(other, user="")

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port != _PORT else ""
        return f"rsync://{user}{self.host}{port}/{self.path}"


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

    source: RsyncSource
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
        """True if both owner and group are set, as far as the user may."""
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
