"""What became of the export that goes with a commit.  A value only: quick to import."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:  # few commits export anything
    from huai_server.export.export import ExportResult
    from huai_server.store.repository import Head


class ExportUpdate(NamedTuple):
    """What became of it."""

    result: "ExportResult | None" = None
    described: "Head | None" = None
    """The commit that the files describe; None: the new one."""
    failure: HuaiError | None = None
    """The commit was made all the same."""

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return self.failure.exit_code if self.failure else ExitCode.OK
