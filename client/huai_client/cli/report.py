"""Formats plans, results and differences as text for people and as values for JSON."""

from collections.abc import Iterator

from huai_client.cli.console import Console
from huai_client.config.modes import Reduced
from huai_client.diff.candidate import Difference
from huai_client.diff.symlinks import points_outside
from huai_client.plan.prepared import PlanSummary, PreparedPlan, reduced_modes
from huai_client.publish.report import Report
from huai_client.sync.result import SyncResult, failures
from huai_client.transfer.fetch import Outcome
from huai_client.transfer.local import Reused
from huai_client.verify.check import VerifyTotals
from huai_client.verify.queue import VerifyRequest
from huai_client.verify.run import VerifyRun
from huai_native._native import progress_so_far
from huai_program.humanize import counted, human
from huai_schema.paths import path_as_text, show

_FAILURES_JSON = 1000
_REUSED = ("file that is", "files that are")
_EXTRANEOUS = ("path is in no snapshot and stays", "paths are in no snapshot and stay")
_BY_STAT = ("path that is here is compared", "paths that are here are compared")
_STAGES = {
    "payload": ("file of the payload", "files of the payload"),
    "indices": ("index", "indices"),
    "pointers": ("pointer", "pointers"),
}
"""Nouns for one and several changes of a stage."""
_SHOWN = 3
"""The number of extraneous paths that a sync lists; `verify` lists all."""


def summary_line(summary: PlanSummary) -> str:
    """Summarize a plan in one line."""
    if summary.nothing:
        return "nothing to do"
    parts = (
        (
            summary.fetches,
            f"{counted(summary.fetches, 'file')} to fetch ({human(summary.fetch_bytes)})",
        ),
        (
            summary.reused,
            f"{counted(summary.reused, *_REUSED)} here already ({human(summary.reused_bytes)})",
        ),
        (summary.moves, f"{counted(summary.moves, 'directory', 'directories')} to move"),
        (
            summary.new_directories,
            counted(summary.new_directories, "new directory", "new directories"),
        ),
        (summary.links, counted(summary.links, "hardlink")),
        (summary.symlinks, counted(summary.symlinks, "symlink")),
        (summary.attributes, f"{summary.attributes:,} to touch"),
        (summary.deletions, f"{summary.deletions:,} to delete"),
        (summary.delayed, f"{summary.delayed:,} to delete later"),
    )
    return ", ".join(text for count, text in parts if count)


def selection_values(prepared: PreparedPlan) -> dict[str, int]:
    """Return the entries and bytes that the filter selects, and the totals."""
    totals = prepared.commit.info.totals
    return {
        "entries": prepared.extent.entries,
        "bytes": prepared.extent.bytes,
        "of_entries": totals.entries,
        "of_bytes": totals.bytes,
    }


def selection_line(prepared: PreparedPlan) -> str:
    """Describe the selection of the filter in words."""
    entries, size, of_entries, of_size = selection_values(prepared).values()
    return (
        f"the filter selects {entries:,} of {counted(of_entries, 'entry', 'entries')}, "
        f"{human(size)} of {human(of_size)}"
    )


def published_line(report: Report) -> str:
    """Describe how long it took to publish each stage."""
    parts = (
        f"{counted(each.changes, *_STAGES[each.stage])} in {1000 * each.seconds:.1f} ms"
        for each in report.published
    )
    return f"published {', '.join(parts)}"


def reused_line(reused: Reused) -> str:
    """Describe the files that were reused instead of transferred."""
    parts = ((reused.linked, "linked"), (reused.cloned, "cloned"), (reused.copied, "copied"))
    how = ", ".join(f"{count:,} {word}" for count, word in parts if count)
    return f"reused {counted(reused.files, 'file')} ({human(reused.bytes)}): {how}"


def volatile_line(outcome: Outcome) -> str:
    """Describe the volatile files that differ from their metadata; empty if none does."""
    parts = (
        (len(outcome.newer), "newer than their metadata and published as they arrived"),
        (len(outcome.unchanged), "left as they were"),
    )
    texts = ", ".join(f"{count:,} {text}" for count, text in parts if count)
    return f"volatile files: {texts}" if texts else ""


def by_stat_line(prepared: PreparedPlan) -> str:
    """Describe the paths that were compared by size and time alone; empty if none were."""
    if prepared.by_stat <= 0:
        return ""
    count = counted(prepared.by_stat, *_BY_STAT)
    return f"{count} by size and time, as rsync does (verify --content compares the content)"


def warnings(prepared: PreparedPlan) -> Iterator[str]:
    """Yield a line for each kind of thing in a plan that an administrator should know.

    For example: symlinks that lead out of the tree, modes made safe, extraneous entries.
    """
    for path in prepared.unlimited:
        yield f"max_delete_in: the tree has no directory /{show(path)}: its limit has no effect"
    symlinks = (each for stage in prepared.plan.stages for each in stage.symlinks)
    unsafe = [each.path for each in symlinks if points_outside(each.path, each.target)]
    if unsafe:
        verb = "leads" if len(unsafe) == 1 else "lead"
        count = counted(len(unsafe), "symlink")
        yield f"{count} {verb} out of the tree, for example {show(unsafe[0])}"
    if reduced := reduced_modes(prepared.plan):
        path, mode = reduced[0].path, reduced[0].mode
        stated = mode.stated if isinstance(mode, Reduced) else mode
        yield (
            f"{counted(len(reduced), 'mode is', 'modes are')} made safe, for example of "
            f"{show(path or b'.')}: {mode:04o}, not {stated:04o} "
            '(modes = "exact" in client.toml keeps those of the upstream)'
        )
    extraneous = prepared.diff.extraneous
    if extraneous:
        first = ", ".join(map(show, extraneous[:_SHOWN]))
        yield (
            f"{counted(len(extraneous), *_EXTRANEOUS)}, for example "
            f"{first} (--delete-extraneous deletes them)"
        )


def result_values(result: SyncResult) -> dict[str, object]:
    """Return a result for JSON."""
    values: dict[str, object] = {
        "commit": result.commit,
        "serial": result.serial,
        "committed": result.committed,
        "total_bytes": result.total_bytes,
        "changed": result.prepared is not None and not result.prepared.summary.nothing,
    }
    if result.prepared:
        values["delayed"] = len(result.prepared.waiting)
        values["extraneous"] = len(result.prepared.diff.extraneous)
        values["reduced_modes"] = len(reduced_modes(result.prepared.plan))
        values["summary"] = result.prepared.summary._asdict()
    if result.outcome:
        values["received"] = result.outcome.bytes_received
        values["late"] = len(result.outcome.late)
        values["refused"] = len(result.outcome.refused)
        values["volatile"] = {
            "newer": len(result.outcome.newer),
            "kept": len(result.outcome.unchanged),
        }
    if result.reused:
        values["reused"] = {"files": result.reused.files, **result.reused._asdict()}
    if result.report:
        values["withheld"] = result.report.withheld
        values["done"] = result.report.counts._asdict()
        values["published"] = [
            {
                "stage": each.stage,
                "changes": each.changes,
                "milliseconds": round(1000 * each.seconds, 3),
            }
            for each in result.report.published
        ]
        values["mixed_milliseconds"] = round(1000 * result.report.mixed_seconds, 3)
    values["plans"] = result.plans
    values["failures"] = list(failures(result, _FAILURES_JSON))
    return values


def show_difference(console: Console, difference: Difference) -> None:
    """Print a difference as a line of text, or as a JSON event."""
    detail = ", ".join(difference.attributes) or difference.reason
    text = f"{difference.kind:10} {show(difference.path)}"
    console.result(text + (f"  ({detail})" if detail else ""))
    console.event(
        "difference",
        path=path_as_text(difference.path),
        difference=str(difference.kind),
        attributes=list(difference.attributes),
        reason=difference.reason,
    )


def show_end(console: Console, run: VerifyRun, request: VerifyRequest, differences: int) -> None:
    """Print the verdict and the counts of a `verify`; warn of files compared without a digest."""
    tally = run.tally
    console.event(
        "verified",
        differences=differences,
        entries=tally.entries,
        files=tally.files,
        read=tally.hashed,
        bytes=tally.bytes,
        seen=tally.seen_files,
        undigested=tally.undigested,
        left=run.left + run.failed,
        sample=request.sample,
        seed=None if request.sample is None else request.seed,
    )
    if run.unopened:
        console.warning(f"without the digests seen on arrival: {run.unopened}")
    if request.content and tally.undigested:
        console.warning(
            f"{counted(tally.undigested, 'file has', 'files have')} no digest, or may not be read "
            "by their owner: only their size and time were compared, as in a transfer"
        )
    if run.failed:
        console.warning(
            f"{counted(run.failed, 'part was', 'parts were')} not compared, because the processes "
            "that should do it failed; look into their logs and the kernel's, and verify again"
        )
    for line in _lines(run, request, differences):
        console.info(f"{console.module}: {line}")


def verifying_line(tally: VerifyTotals) -> str:
    """Return what a `verify` has done so far."""
    entries = counted(tally.entries, "entry", "entries")
    return f"{entries} looked at, {human(max(progress_so_far()[1], tally.bytes))} read"


def unreadable_line(unreadable: list[Difference]) -> str:
    """Describe the paths that stay unreadable, and name one."""
    count = counted(len(unreadable), "path cannot be read and is", "paths cannot be read and are")
    return f"{count} not repaired, for example {show(unreadable[0].path)}: {unreadable[0].reason}"


def _lines(run: VerifyRun, request: VerifyRequest, differences: int) -> list[str]:
    """Return the lines that sum up a verification."""
    tally = run.tally
    compared = f"{counted(tally.entries, 'entry', 'entries')} looked at"
    if tally.hashed:
        compared += f", {counted(tally.hashed, 'file')} read ({human(tally.bytes)})"
    if tally.seen_files:
        compared += f", {tally.seen_files:,} of them compared with their digests as seen on arrival"
    is_complete = not (run.left or run.failed or request.path or request.sample is not None)
    if differences:
        verdict = counted(differences, "path differs", "paths differ")
    else:
        verdict = "equals the applied commit" if is_complete else "nothing differs"
    lines = [f"{verdict}; {compared}"]
    if request.sample is not None:
        share = f"{request.sample * 100:.6f}".rstrip("0").rstrip(".")
        lines.append(f"a sample of {share}% of the files, which --seed {request.seed} picks again")
    if run.left:
        rest = "all of it was" if run.left == 1 else f"{run.left:,} parts were"
        advice = "" if request.sample is not None else "; the next run continues"
        lines.append(f"the time was over before {rest} looked at{advice}")
    return lines
