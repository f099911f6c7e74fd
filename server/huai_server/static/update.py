"""The result of updating static files after a commit: a value, which loads nothing."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import ExitCode, HuaiError, worst_exit_code

if TYPE_CHECKING:
    from huai_server.static.publish import Published


class StaticUpdate(NamedTuple):
    """The result of updating static files after a commit."""

    published: tuple[tuple[str, "Published"], ...] = ()
    failures: tuple[HuaiError, ...] = ()
    """The failures; the commit was made all the same, and the next one publishes both."""

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code for the program."""
        return worst_exit_code(failure.exit_code for failure in self.failures)
