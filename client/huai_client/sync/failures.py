"""The failures of a sync, as lines for people, the history and JSON."""

from collections.abc import Iterator

from huai_client.publish.report import Report
from huai_client.sync.result import SyncResult
from huai_client.transfer import Outcome
from huai_program.humanize import counted
from huai_schema.paths import RelPath, show

_MOST = 20
"""The number of failures of a kind that are listed."""
_LASTING_MISMATCH = (
    "the upstream changed the content without a commit; if its next commit does not fix this, run "
    "huai-server scrub --full NAME there, which finds such files"
)


def failures(result: SyncResult, most: int = _MOST) -> Iterator[str]:
    """Yield a line for each failed path, at most `most` of a kind and then their number.

    Failures that the administrator can repair come first.
    """
    for proved in result.unproved:
        yield proved.refused()
    if result.nothing_at:
        count = len(result.outcome.missing) if result.outcome else 0
        urls = ", ".join(result.nothing_at)
        yield f"check the content URL: {urls} has none of the {counted(count, 'file')}"
    if result.outcome:
        yield from _missing_files(result.outcome, most)
    if result.report:
        yield from _failed_changes(result.report, most)


def _missing_files(outcome: Outcome, most: int) -> Iterator[str]:
    yield from _capped([(file.path, "vanished upstream") for file in outcome.missing], most)
    mismatched = "the content does not match the metadata"
    yield from _capped([(file.path, mismatched) for file in outcome.mismatched], most)
    if outcome.mismatched:
        yield _LASTING_MISMATCH
    yield from _capped([(each.file.path, each.reason) for each in outcome.refused], most)
    if late := len(outcome.late):
        yield (
            f"time is up: {counted(late, 'file is', 'files are')} still to come; "
            "the next run continues from here"
        )


def _failed_changes(report: Report, most: int) -> Iterator[str]:
    yield from _capped([(each.path, each.reason) for each in report.problems], most)
    if report.withheld:
        yield (
            f"{counted(report.withheld, 'more path waits', 'more paths wait')} for failed ones, so "
            "that no index names a missing file; the next sync tries them again"
        )
    kept_reason = "kept, because it contains files that are in no snapshot"
    yield from _capped([(path, kept_reason) for path in report.extraneous], most)
    for name in sorted(report.unknown_users | report.unknown_groups):
        yield f"owner {show(name)} is unknown on this machine; those entries keep their owner"


def _capped(pairs: list[tuple[RelPath, str]], most: int) -> Iterator[str]:
    for path, reason in pairs[:most]:
        yield f"{show(path)}: {reason}"
    if len(pairs) > most:
        yield f"and {len(pairs) - most:,} more like the last one"
