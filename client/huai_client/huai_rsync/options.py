"""The known options of rsync with their treatment: a table.

Data only.  The real rsync runs for an option that is not in it.
"""

from enum import Enum, auto
from typing import Final, NamedTuple


class Treatment(Enum):
    """The ways in which huai treats an option of rsync: ignored, passed on, meant or refused."""

    IGNORED = auto()
    """Without effect, for the reason in its group."""
    PASSED = auto()
    """Passed on to the runs of rsync that fetch content."""
    MEANT = auto()
    """Carried out by huai, as `parse` defines."""
    REFUSED = auto()
    """Left to the real rsync: huai cannot do it."""
    HARMLESS = auto()
    """Left to the real rsync, and certain not to change a tree."""


class Option(NamedTuple):
    """The treatment of a long option, and if it takes a value."""

    use: Treatment
    valued: bool
    """True if it takes a value."""


class OptionGroup(NamedTuple):
    """A group of options with the same treatment and reason."""

    use: Treatment
    why: str
    flags: str = ""
    """Long names, separated by spaces."""
    valued: str = ""
    """The long names of options that take a value."""


GROUPS: Final = (
    OptionGroup(
        Treatment.MEANT,
        "done by huai as rsync does it",
        "archive recursive links times owner group safe-links dry-run verbose quiet stats "
        "human-readable itemize-changes no-recursive no-links no-times no-owner no-group "
        "no-safe-links no-dry-run no-verbose no-human-readable no-itemize-changes "
        "numeric-ids no-numeric-ids perms no-perms executability",
        "info port out-format log-format log-file log-file-format",
    ),
    OptionGroup(
        Treatment.MEANT,
        "huai always deletes at the very end",
        "delete del delete-before delete-during delete-delay delete-after delete-excluded "
        "no-max-delete",
        "max-delete",
    ),
    OptionGroup(
        Treatment.MEANT,
        "compared with the module's filter",
        valued="filter include exclude include-from exclude-from",
    ),
    OptionGroup(
        Treatment.MEANT,
        "instead of what client.toml says",
        "no-timeout no-bwlimit",
        "timeout bwlimit",
    ),
    OptionGroup(Treatment.MEANT, "`D755,F644` with --perms, and no other modes", valued="chmod"),
    OptionGroup(
        Treatment.PASSED,
        "given to the rsyncs that fetch content",
        "compress no-compress old-compress new-compress ipv4 ipv6",
        "compress-choice zc compress-level zl compress-threads zt skip-compress password-file "
        "address sockopts",
    ),
    OptionGroup(
        Treatment.MEANT,
        "given to them as well, if the source is HOST::MODULE: a daemon behind a remote shell",
        valued="rsh",
    ),
    OptionGroup(
        Treatment.IGNORED,
        "huai does so always",
        "hard-links sparse delay-updates partial force no-relative "
        "no-implied-dirs no-dirs no-checksum no-append no-inplace no-backup no-super "
        "inc-recursive i-r",
        "partial-dir",
    ),
    OptionGroup(
        Treatment.IGNORED,
        "huai stages in DEST itself, on the file system where it publishes",
        valued="temp-dir",
    ),
    OptionGroup(
        Treatment.IGNORED,
        "the result is whole and exact without",
        "no-hard-links no-sparse no-delay-updates no-partial whole-file no-whole-file "
        "fuzzy no-fuzzy ignore-errors no-inc-recursive no-i-r preallocate no-preallocate",
        "block-size checksum-choice cc",
    ),
    OptionGroup(
        Treatment.IGNORED,
        "devices and special files are never mirrored",
        "devices no-devices specials no-specials D no-D",
    ),
    OptionGroup(
        Treatment.IGNORED,
        "about talk, or how rsync speaks to rsync",
        "progress no-progress P no-motd 8-bit-output secluded-args no-secluded-args "
        "protect-args no-protect-args old-args trust-sender no-contimeout",
        "max-alloc outbuf stderr debug contimeout",
    ),
    OptionGroup(Treatment.HARMLESS, "only shows something", "list-only version help sender"),
    OptionGroup(
        Treatment.REFUSED,
        "asks for another result",
        "checksum relative backup update inplace append append-verify dirs old-dirs mkpath "
        "copy-links copy-unsafe-links munge-links copy-dirlinks keep-dirlinks acls xattrs "
        "copy-devices write-devices atimes open-noatime crtimes omit-dir-times omit-link-times "
        "super fake-super one-file-system existing ignore-non-existing "
        "ignore-existing remove-source-files ignore-missing-args delete-missing-args "
        "prune-empty-dirs ignore-times size-only cvs-exclude F from0 blocking-io daemon server",
        "backup-dir suffix rsync-path max-size min-size usermap groupmap chown "
        "modify-window compare-dest copy-dest link-dest files-from copy-as "
        "write-batch only-write-batch read-batch protocol "
        "iconv checksum-seed stop-after stop-at time-limit early-input remote-option confine-root",
    ),
)
"""All known options; huai-rsync(1) lists them."""

OPTIONS: Final = {
    name: Option(group.use, valued)
    for group in GROUPS
    for names, valued in ((group.flags, False), (group.valued, True))
    for name in names.split()
}
"""The options by long name, without the dashes."""

_LETTERS: Final = (
    "v=verbose q=quiet c=checksum a=archive r=recursive R=relative b=backup u=update d=dirs "
    "l=links L=copy-links k=copy-dirlinks K=keep-dirlinks H=hard-links p=perms E=executability "
    "A=acls X=xattrs o=owner g=group D=D t=times U=atimes N=crtimes O=omit-dir-times "
    "J=omit-link-times S=sparse n=dry-run W=whole-file x=one-file-system B=block-size e=rsh "
    "I=ignore-times @=modify-window T=temp-dir y=fuzzy z=compress C=cvs-exclude f=filter F=F "
    "0=from0 s=secluded-args 8=8-bit-output h=human-readable P=P i=itemize-changes M=remote-option "
    "m=prune-empty-dirs 4=ipv4 6=ipv6 V=version"
)
SHORT: Final = {letter: name for letter, _, name in (x.partition("=") for x in _LETTERS.split())}
"""The long name of each letter."""
