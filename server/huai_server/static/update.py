"""What became of the static files that go with a commit: a value, which loads nothing."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import ExitCode, HuaiError, worst_exit_code

if TYPE_CHECKING:
    from huai_server.static.publish import Published


class StaticUpdate(NamedTuple):
    """What became of the static files that go with a commit."""

    published: tuple[tuple[str, "Published"], ...] = ()
    """Copies: where, and what was done."""
    failures: tuple[HuaiError, ...] = ()
    """The commit was made all the same; the next one publishes both."""

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return worst_exit_code(failure.exit_code for failure in self.failures)
