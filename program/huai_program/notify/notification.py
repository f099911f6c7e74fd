"""The content of a notification: values, a subject, a text.

Pure, except for the local time zone.  Rule: each text from outside (names, paths, error messages)
is one line without control characters, so that none begins a header or a line of ours.
"""

from typing import Literal, NamedTuple

from huai_program.humanize import counted, moment
from huai_program.quoting import quoted
from huai_schema.errors import ExitCode

_VERSION = 1
_MOST = 1000
"""The maximal number of characters of a text from outside."""
_WIDTH = 13
_VERBS = {"signature": ("runs out", "is renewed")}
"""The verbs for work that is not a run: while it fails, and when it succeeds again."""


class Subject(NamedTuple):
    """The work that a notification is about."""

    program: str
    """`huai-client` or `huai-server`."""
    host: str
    module: str
    work: Literal["sync", "commit", "scrub", "publish", "signature", "test"]
    """`test` for a test message, which names no module."""
    facts: tuple[tuple[str, str], ...] = ()
    """Further lines of the text, each a name and a value."""
    advice: str = ""
    """A sentence with the commands that show more."""


class Failure(NamedTuple):
    """The failure of the last run."""

    code: int
    """The exit code."""
    reason: str
    hint: str = ""


class Notification(NamedTuple):
    """A notification about a streak of failures, or its end."""

    about: Subject
    runs: int
    """The number of failed runs in a row."""
    since: int
    """The time of the first failure, seconds since the epoch."""
    failure: Failure | None
    """The failure; None if the work succeeds again."""

    @property
    def event(self) -> str:
        """`failed`, `recovered` or `test`."""
        if self.about.work == "test":
            return "test"
        return "failed" if self.failure else "recovered"

    @property
    def title(self) -> str:
        """The subject, in one line."""
        about = self.about
        if self.event == "test":
            return one_line(f"test message of {about.program} on {about.host}")
        verb = self._verbs[0 if self.failure else 1]
        return one_line(f"{about.module}: {about.work} {verb} on {about.host}")

    @property
    def _verbs(self) -> tuple[str, str]:
        return _VERBS.get(self.about.work, ("fails", "works again"))

    @property
    def text(self) -> str:
        """The text for people."""
        about = self.about
        if self.event == "test":
            return f"{self.title}.\n\nFailures will be reported like this.\n"
        lines = [f"{self.title}.", ""]
        fields = [("module", about.module), ("host", about.host), *about.facts]
        fields += [("failed runs", f"{self.runs:,}"), ("since", moment(self.since))]
        if self.failure:
            fields += [("exit code", meaning(self.failure.code)), ("reason", self.failure.reason)]
            fields += [("hint", self.failure.hint)] if self.failure.hint else []
        lines += [f"{name + ':':{_WIDTH}}{one_line(value)}" for name, value in fields]
        if self.failure:
            lines += ["", about.advice] if about.advice else []
            lines += ["", f"The next message comes when {about.work} {self._verbs[1]}."]
        else:
            failed = counted(self.runs, "run", "runs")
            lines += ["", f"The last run ended well, after {failed} that had failed."]
        return "\n".join(lines) + "\n"

    def values(self) -> dict[str, object]:
        """Return the values for programs (docs/MONITORING.md)."""
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
    """Return `text` with control characters and line ends escaped, cut if it is too long."""
    return quoted(text, _MOST)


def meaning(code: int) -> str:
    """Return an exit code and its meaning."""
    exit_code = next((each for each in ExitCode if each == code), None)
    return f"{code}, {exit_code.meaning}" if exit_code else str(code)
