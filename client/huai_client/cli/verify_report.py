"""The output of `verify`, while it runs and at its end."""

from itertools import chain

from huai_client.cli.console import Console
from huai_client.diff.files import paths
from huai_client.diff.findings import Difference, Kind
from huai_client.plan.operations import Plan
from huai_client.verify.request import VerifyRequest
from huai_client.verify.run import VerifyRun
from huai_schema.errors import ExitCode
from huai_schema.paths import exact, show
from huai_schema.program.humanize import counted, human


class VerifyReport:
    """Prints each difference, and keeps those that have to be repaired."""

    def __init__(self, console: Console, request: VerifyRequest) -> None:
        """Nothing was found yet."""
        self._console = console
        self._request = request
        self.differences = 0
        self.damage: list[Difference] = []
        """What was found, if it is to be repaired."""

    def difference(self, found: Difference) -> None:
        """One more."""
        self.differences += 1
        if self._request.repair:
            self.damage.append(found)
        what = ", ".join(found.attributes) or found.reason
        self._console.result(
            f"{found.kind:10} {show(found.path)}" + (f"  ({what})" if what else "")
        )
        self._console.event(
            "difference",
            path=exact(found.path),
            difference=str(found.kind),
            attributes=list(found.attributes),
            reason=found.reason,
        )

    def conclude(self, run: VerifyRun) -> ExitCode:
        """Print the end of the run; returns the exit code if nothing is repaired."""
        tally = run.tally
        self._console.event(
            "verified",
            differences=self.differences,
            entries=tally.entries,
            files=tally.files,
            read=tally.hashed,
            bytes=tally.bytes,
            undigested=tally.undigested,
            left=run.left,
        )
        if self._request.content and tally.undigested:
            self._console.warning(
                f"{counted(tally.undigested, 'file carries', 'files carry')} no digest, or may not "
                "be read by their owner: "
                "of them only size and time were compared, as a transfer does"
            )
        for line in self._lines(run):
            self._console.info(f"{self._console.module}: {line}")
        return ExitCode.DIFFERS if self.differences else ExitCode.OK

    def unread(self, plan: Plan) -> list[Difference]:
        """Return what could not be read and is not replaced by `plan`."""
        links = (stage.links for stage in plan.stages)
        replaced = {*paths(plan.fetches), *(link.path for link in chain.from_iterable(links))}
        unreadable = (each for each in self.damage if each.kind is Kind.UNREADABLE)
        return [each for each in unreadable if each.path not in replaced]

    @staticmethod
    def unread_line(unread: list[Difference]) -> str:
        """Say how many paths stay unreadable, and name one."""
        count = counted(len(unread), "path cannot be read and is", "paths cannot be read and are")
        return f"{count} not repaired, for example {show(unread[0].path)}: {unread[0].reason}"

    def _lines(self, run: VerifyRun) -> list[str]:
        tally, request = run.tally, self._request
        seen = f"{counted(tally.entries, 'entry', 'entries')} looked at"
        if tally.hashed:
            seen += f", {counted(tally.hashed, 'file')} read ({human(tally.bytes)})"
        whole = not (run.left or request.path or request.sample is not None)
        if self.differences:
            verdict = counted(self.differences, "path differs", "paths differ")
        else:
            verdict = "equals the applied commit" if whole else "nothing differs"
        lines = [f"{verdict}; {seen}"]
        if run.left:
            what = "all of it was" if run.left == 1 else f"{run.left:,} parts were"
            goes_on = "" if request.sample is not None else "; the next run goes on"
            lines.append(f"the time is over before {what} looked at{goes_on}")
        return lines
