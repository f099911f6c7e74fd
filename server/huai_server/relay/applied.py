"""What `huai-client` says of its tree: which commit that equals, and whether it is all of it.

Read of the state root of huai-client: `modules/NAME/state.json`, which is replaced in one step when
a sync has published everything, and the commits in `modules/NAME/repository.git`.  Nothing is
written there.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import ExitCode, HuaiError

_VERSION = 1
_COMMIT = re.compile("[0-9a-f]{40}")
_BYTES_MAX = 64 << 20
_SYNC = "its first sync has to end well"


class NotWholeError(HuaiError):
    """A tree that others cannot copy from: it is not there yet, or a part of a mirror."""

    exit_code = ExitCode.DIFFERS


class AppliedStateError(HuaiError):
    """The state of huai-client cannot be read."""

    exit_code = ExitCode.FILE_IO


class Applied(NamedTuple):
    """The applied commit of a module."""

    commit: str
    """Hex id."""
    repository: Path
    """Where it is."""


class Downstream(NamedTuple):
    """A module of huai-client."""

    root: Path
    """The state root of huai-client."""
    name: str
    """What the module is called there."""

    @property
    def folder(self) -> Path:
        """The state of the module."""
        return self.root / "modules" / self.name

    @property
    def state(self) -> Path:
        """What is replaced with each commit that is applied."""
        return self.folder / "state.json"

    def read(self) -> Applied:
        """The applied commit; `NotWholeError` if the tree is not what it says."""
        values = self._values()
        commit, partial = values.get("applied"), values.get("partial")
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise NotWholeError(f"{self.state}: nothing is applied yet", hint=_SYNC)
        if not isinstance(partial, str):
            raise NotWholeError(
                f"{self.state}: was written before huai-client told what it leaves out",
                hint=f"run: huai-client sync {self.name} --adopt",
            )
        if partial:
            raise NotWholeError(
                f"{self.root}: {self.name} is not the whole mirror: {partial}",
                hint="whoever copies from it would miss that; mirror all of it, or do not relay it",
            )
        return Applied(commit, self.folder / "repository.git")

    def _values(self) -> dict[str, object]:
        try:
            with self.state.open("rb") as file:
                values = json.loads(file.read(_BYTES_MAX))
        except FileNotFoundError:
            raise NotWholeError(
                f"{self.state}: is not there: {self.name} was never synced", hint=_SYNC
            ) from None
        except OSError as error:
            raise AppliedStateError(
                f"{self.state}: {error.strerror}",
                hint="run it as the user of huai-client, whose state nobody else may read",
            ) from error
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or values.get("version") != _VERSION:
            raise AppliedStateError(
                f"{self.state}: not a state file that this version knows",
                hint="use the same version of huai-client and huai-server",
            )
        return values
