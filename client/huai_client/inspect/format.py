"""Entries, steps and runs, as text for people and as values for programs.

Pure, except that times are shown in the local time zone.
"""

from collections.abc import Mapping

from huai_client.inspect.comparison import Sign, SnapshotChange
from huai_client.state.history import RunRecord
from huai_program.humanize import counted, human, moment
from huai_schema.entries import Entry, File, Symlink, entry_values, kind_name
from huai_schema.paths import path_as_text, show

_SECOND = 1_000_000_000
_DIGEST_SHOWN = 16
_DONE = {
    "made": ("new directory", "new directories"),
    "symlinked": ("symlink", ""),
    "attributes": ("change of attributes", "changes of attributes"),
    "directories": ("directory touched", "directories touched"),
}
"""The words for steps whose name in a `RunRecord` is not a participle."""
_MARKS = {Sign.ADDED: "+", Sign.REMOVED: "-", Sign.CHANGED: "~", Sign.MOVED: "=>"}


def entry_words(entry: Entry) -> str:
    """Return type and attributes in one line."""
    parts = [kind_name(entry)]
    if isinstance(entry, File):
        parts.append(counted(entry.size, "byte"))
    elif isinstance(entry, Symlink):
        parts.append(f"to {show(entry.target)}")
    parts += [
        f"changed {moment(entry.mtime // _SECOND)}",
        f"mode {entry.mode:o}",
        f"{show(entry.owner)}:{show(entry.group)}",
    ]
    if isinstance(entry, File) and entry.link is not None:
        parts.append(f"a hardlink of {show(entry.link)}")
    if isinstance(entry, File) and entry.digest is not None:
        parts.append(f"digest {entry.digest.hex()[:_DIGEST_SHOWN]}…")
    return ", ".join(parts)


def step_line(step: SnapshotChange) -> str:
    """Return a change in one line that begins with a mark."""
    detail = ""
    if step.source is not None:
        detail = f"  (from {show(step.source)})"
    elif step.attributes:
        detail = f"  ({', '.join(step.attributes)})"
    return f"{_MARKS[step.sign]:2} {show(step.path)}{detail}"


def step_words(step: SnapshotChange) -> str:
    """Return a change in words, without the path."""
    if step.source is not None:
        return f"{step.sign} from {show(step.source)}"
    if step.sign is Sign.CHANGED:
        return f"{step.sign} ({', '.join(step.attributes)})"
    return str(step.sign)


def step_values(step: SnapshotChange) -> dict[str, object]:
    """Return a change for JSON; for a moved directory only its paths."""
    return {
        "change": str(step.sign),
        "path": path_as_text(step.path),
        "source": None if step.source is None else path_as_text(step.source),
        "attributes": list(step.attributes),
        "old": entry_values(step.old),
        "new": entry_values(step.new),
    }


def run_words(record: RunRecord, serials: Mapping[str, int], *, running: bool = False) -> str:
    """Return a run in one line; `serials` are by commit id; `running` if it may still run."""
    parts = [moment(record.time), f"{record.kind:9}", _way(record, serials), _counts(record)]
    if record.received:
        parts.append(f"{human(record.received)} received")
    if record.ended:
        parts.append(f"{record.seconds:.1f} s")
        parts.append(
            "ok" if record.succeeded else f"{record.outcome} ({record.code}): {record.reason}"
        )
    else:
        parts.append("runs now" if running else "interrupted")
    if record.times > 1:
        parts.append(f"{record.times:,} times, last {moment(record.until)}")
    return "  ".join(part for part in parts if part)


def run_values(
    record: RunRecord, serials: Mapping[str, int], *, running: bool = False
) -> dict[str, object]:
    """Return a run for JSON; `serials` and `running` as in `run_words`."""
    return {
        "run": record.kind,
        "time": record.time,
        "last": record.until,
        "times": record.times,
        "seconds": record.seconds,
        "code": record.code if record.ended else None,
        "outcome": "RUNNING" if running and not record.ended else record.outcome,
        "reason": record.reason,
        "from_commit": record.before or None,
        "from_serial": serials.get(record.before),
        "to_commit": record.commit or None,
        "to_serial": record.serial or None,
        "done": record.done,
        "received": record.received,
        "total_bytes": record.total_bytes,
        "differences": record.differences,
        "content": record.content,
    }


def _way(record: RunRecord, serials: Mapping[str, int]) -> str:
    """Return "serial OLD → NEW" of a run, as far as known."""
    new = str(record.serial) if record.serial else "?"
    if record.commit == record.before:
        return f"serial {new}" if record.serial else ""
    if not record.before:
        return f"nothing → serial {new}"
    return f"serial {serials.get(record.before, '?')} → {new}"


def _counts(record: RunRecord) -> str:
    """Return what a run did, as text; of `verify`, how many paths differ."""
    if record.kind == "verify":
        how = "content too" if record.content else "attributes"
        return f"{counted(record.differences, 'path differs', 'paths differ')} ({how})"
    done = ", ".join(_step_count(name, int(count)) for name, count in record.done.items())
    return done or ("nothing done" if record.succeeded else "")


def _step_count(name: str, count: int) -> str:
    return counted(count, *_DONE[name]) if name in _DONE else f"{count:,} {name}"
