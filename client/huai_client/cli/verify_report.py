"""The output of `verify`, while it runs and at its end."""

from huai_client.cli.console import Console
from huai_client.diff.findings import Difference
from huai_client.verify.request import VerifyRequest
from huai_client.verify.run import VerifyRun
from huai_program.humanize import counted, human
from huai_schema.paths import exact, show


def show_difference(console: Console, found: Difference) -> None:
    """Print one, as a result."""
    what = ", ".join(found.attributes) or found.reason
    console.result(f"{found.kind:10} {show(found.path)}" + (f"  ({what})" if what else ""))
    console.event(
        "difference",
        path=exact(found.path),
        difference=str(found.kind),
        attributes=list(found.attributes),
        reason=found.reason,
    )


def show_end(console: Console, run: VerifyRun, request: VerifyRequest, differences: int) -> None:
    """Print what was looked at, and the verdict."""
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
            f"{counted(tally.undigested, 'file carries', 'files carry')} no digest, or may not "
            "be read by their owner: "
            "of them only size and time were compared, as a transfer does"
        )
    for line in _lines(run, request, differences):
        console.info(f"{console.module}: {line}")


def unreadable_line(unreadable: list[Difference]) -> str:
    """Say how many paths stay unreadable, and name one."""
    count = counted(len(unreadable), "path cannot be read and is", "paths cannot be read and are")
    return f"{count} not repaired, for example {show(unreadable[0].path)}: {unreadable[0].reason}"


def _lines(run: VerifyRun, request: VerifyRequest, differences: int) -> list[str]:
    tally = run.tally
    seen = f"{counted(tally.entries, 'entry', 'entries')} looked at"
    if tally.hashed:
        seen += f", {counted(tally.hashed, 'file')} read ({human(tally.bytes)})"
    whole = not (run.left or request.path or request.sample is not None)
    if differences:
        verdict = counted(differences, "path differs", "paths differ")
    else:
        verdict = "equals the applied commit" if whole else "nothing differs"
    lines = [f"{verdict}; {seen}"]
    if request.sample is not None:
        share = f"{request.sample * 100:.6f}".rstrip("0").rstrip(".")
        lines.append(f"a sample of {share}% of the files, which --seed {request.seed} picks again")
    if run.left:
        what = "all of it was" if run.left == 1 else f"{run.left:,} parts were"
        goes_on = "" if request.sample is not None else "; the next run goes on"
        lines.append(f"the time is over before {what} looked at{goes_on}")
    return lines
