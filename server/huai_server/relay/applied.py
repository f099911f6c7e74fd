"""The applied commit of a huai-client, and whether its tree is the whole mirror.

Reads `modules/NAME/applied` in the state root of huai-client, which a sync replaces in one step
after publishing everything.  The commits are in `modules/NAME/repository.git`.  Writes nothing
there.
"""

from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.applied import BYTES_MAX, FILE_NAME, AppliedRecord
from huai_schema.errors import ExitCode, FormatError, HuaiError


class NotWholeError(HuaiError):
    """The tree is not synced yet, or only a part of the mirror."""

    exit_code = ExitCode.DIFFERS


class AppliedStateError(HuaiError):
    """The state of huai-client cannot be read."""

    exit_code = ExitCode.FILE_IO


class Applied(NamedTuple):
    """The applied commit of a module."""

    commit: str
    """Hex id."""
    repository: Path


class Downstream(NamedTuple):
    """A module of huai-client, by the state root of huai-client and its name there."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """The folder of the module's state."""
        return self.root / "modules" / self.name

    @property
    def record(self) -> Path:
        """The file that is replaced for each applied commit."""
        return self.folder / FILE_NAME

    def read(self) -> Applied:
        """Return the applied commit.

        Raises `NotWholeError` if the tree was never synced or is partial, and `AppliedStateError`
        if the record cannot be read.
        """
        try:
            with self.record.open("rb") as file:
                record = AppliedRecord.decode(file.read(BYTES_MAX + 1))
        except FileNotFoundError:
            raise NotWholeError(
                f"{self.record}: missing: {self.name} was never synced",
                hint="its first sync must succeed",
            ) from None
        except OSError as error:
            raise AppliedStateError(
                f"{self.record}: {error.strerror}",
                hint="run huai-server as the user that runs huai-client: only that user may read "
                "the state of huai-client",
            ) from error
        except FormatError as error:
            raise AppliedStateError(
                f"{self.record}: {error.reason}",
                hint="use the same version of huai-client and huai-server",
            ) from error
        if record.left_out:
            raise NotWholeError(
                f"{self.root}: {self.name} is a partial mirror: {record.left_out}",
                hint="mirror all of it, or do not relay it",
            )
        return Applied(record.commit, self.folder / "repository.git")
