"""The output of `verify`, while it runs and at its end."""

from huai_client.cli.console import Console
from huai_client.diff.findings import Difference
from huai_client.verify.request import VerifyRequest
from huai_client.verify.run import VerifyRun
from huai_program.humanize import counted, human
from huai_schema.paths import exact, show


def show_difference(console: Console, difference: Difference) -> None:
    """Print a difference as a result."""
    detail = ", ".join(difference.attributes) or difference.reason
    text = f"{difference.kind:10} {show(difference.path)}"
    console.result(text + (f"  ({detail})" if detail else ""))
    console.event(
        "difference",
        path=exact(difference.path),
        difference=str(difference.kind),
        attributes=list(difference.attributes),
        reason=difference.reason,
    )


def show_end(console: Console, run: VerifyRun, request: VerifyRequest, differences: int) -> None:
    """Print the number of compared entries, and the verdict."""
    tally = run.tally
    console.event(
        "verified",
        differences=differences,
        entries=tally.entries,
        files=tally.files,
        read=tally.hashed,
        bytes=tally.bytes,
        undigested=tally.undigested,
        left=run.left,
        sample=request.sample,
        seed=None if request.sample is None else request.seed,
    )
    if request.content and tally.undigested:
        console.warning(
            f"{counted(tally.undigested, 'file has', 'files have')} no digest, or may not be read "
            "by their owner: only their size and time were compared, as in a transfer"
        )
    for line in _lines(run, request, differences):
        console.info(f"{console.module}: {line}")


def unreadable_line(unreadable: list[Difference]) -> str:
    """Describe the paths that stay unreadable, and name one."""
    count = counted(len(unreadable), "path cannot be read and is", "paths cannot be read and are")
    return f"{count} not repaired, for example {show(unreadable[0].path)}: {unreadable[0].reason}"


def _lines(run: VerifyRun, request: VerifyRequest, differences: int) -> list[str]:
    tally = run.tally
    compared = f"{counted(tally.entries, 'entry', 'entries')} looked at"
    if tally.hashed:
        compared += f", {counted(tally.hashed, 'file')} read ({human(tally.bytes)})"
    is_complete = not (run.left or request.path or request.sample is not None)
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
