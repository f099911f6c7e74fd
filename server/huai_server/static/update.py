"""What became of the static files that go with a commit: a value, which loads nothing."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_server.static.publish import Published


class StaticUpdate(NamedTuple):
    """What became of the static files that go with a commit."""

    published: tuple[tuple[str, "Published"], ...] = ()
    """Where, and what was done."""
    failures: tuple[HuaiError, ...] = ()
    """The commit was made all the same; the next one publishes both."""

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return self.failures[0].exit_code if self.failures else ExitCode.OK
