"""What an administrator is told: values, a subject, a text.

Pure, but for the names of exit codes and the local time zone.  Rule: texts of others (names, paths,
error messages) stand in one line each, without control characters, so that none begins a header or
a line of ours.
"""

from typing import Literal, NamedTuple

from huai_program.humanize import counted, moment
from huai_program.quoting import quoted
from huai_schema.errors import ExitCode

_VERSION = 1
_MOST = 1000
"""Characters of a text of others."""
_WIDTH = 13
_VERBS = {"signature": ("runs out", "is renewed")}
"""Of work that is no run: what is said of it while it fails, and when it is over."""


class Subject(NamedTuple):
    """What runs, whatever comes of it."""

    program: str
    """`huai-client` or `huai-server`."""
    host: str
    module: str
    work: Literal["sync", "commit", "scrub", "publish", "signature"]
    facts: tuple[tuple[str, str], ...] = ()
    """More lines: what, and its value."""
    advice: str = ""
    """What to run to learn more."""


class Failure(NamedTuple):
    """How the last run failed."""

    code: int
    reason: str
    hint: str = ""


class Notification(NamedTuple):
    """One that is sent."""

    about: Subject
    runs: int
    """How many failed in a row."""
    since: int
    """When the first one did, seconds since the epoch."""
    failure: Failure | None
    """None: it works again."""

    @property
    def event(self) -> str:
        """`failed` or `recovered`."""
        return "failed" if self.failure else "recovered"

    @property
    def title(self) -> str:
        """One line."""
        about = self.about
        verb = self._verbs[0 if self.failure else 1]
        return one_line(f"{about.module}: {about.work} {verb} on {about.host}")

    @property
    def _verbs(self) -> tuple[str, str]:
        return _VERBS.get(self.about.work, ("fails", "works again"))

    @property
    def text(self) -> str:
        """For people."""
        about = self.about
        lines = [f"{self.title}.", ""]
        named = [("module", about.module), ("host", about.host), *about.facts]
        named += [("failed runs", f"{self.runs:,}"), ("since", moment(self.since))]
        if self.failure:
            named += [("exit code", meaning(self.failure.code)), ("reason", self.failure.reason)]
            named += [("hint", self.failure.hint)] if self.failure.hint else []
        lines += [f"{name + ':':{_WIDTH}}{one_line(value)}" for name, value in named]
        if self.failure:
            lines += ["", about.advice] if about.advice else []
            lines += ["", f"The next message comes when {about.work} {self._verbs[1]}."]
        else:
            failed = counted(self.runs, "run", "runs")
            lines += ["", f"The last run ended well, after {failed} that had failed."]
        return "\n".join(lines) + "\n"

    def values(self) -> dict[str, object]:
        """For programs (docs/NOTIFICATIONS.md)."""
        failure, about = self.failure, self.about
        return {
            "v": _VERSION,
            "type": self.event,
            "program": about.program,
            "host": one_line(about.host),
            "module": about.module,
            "work": about.work,
            "runs": self.runs,
            "since": self.since,
            "code": failure.code if failure else 0,
            "reason": one_line(failure.reason) if failure else "",
            "hint": one_line(failure.hint) if failure else "",
            "text": f"{self.title}\n\n{self.text}",
        }


def one_line(text: str) -> str:
    """`text` without control characters and what begins a line, cut where it is too long."""
    return quoted(text, _MOST)


def meaning(code: int) -> str:
    """An exit code in words."""
    known = next((known for known in ExitCode if known == code), None)
    return f"{code}, {known.meaning}" if known else str(code)
