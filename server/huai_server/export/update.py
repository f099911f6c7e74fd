"""The result of the export that goes with a commit.  A value only, which is quick to import."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import HuaiError

if TYPE_CHECKING:  # few commits export anything
    from huai_server.export.export import ExportResult
    from huai_server.store.repository import Head


class ExportUpdate(NamedTuple):
    """The result of the export after a commit."""

    result: "ExportResult | None" = None
    described: "Head | None" = None
    """The commit that the files describe; None for the new one."""
    failure: HuaiError | None = None
    """The error of the export, in spite of which the commit was made."""
    seconds: float = 0
