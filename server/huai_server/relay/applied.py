"""What `huai-client` says of its tree: which commit that equals, and whether it is all of it.

Read of the state root of huai-client: `modules/NAME/applied`, which is replaced in one step when a
sync has published everything, and the commits in `modules/NAME/repository.git`.  Nothing is written
there.  An older client has only its own `state.json`.
"""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.applied import FILE_NAME, AppliedRecord
from huai_schema.errors import ExitCode, FormatError, HuaiError

_VERSION = 1
_COMMIT = re.compile("[0-9a-f]{40}")
_BYTES_MAX = 64 << 20
_STATE = "state.json"
_SYNC = "its first sync has to end well"
_VERSIONS = "use the same version of huai-client and huai-server"


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
    def record(self) -> Path:
        """The file that is replaced with each commit that is applied."""
        record = self.folder / FILE_NAME
        return record if os.path.lexists(record) else self.folder / _STATE

    def read(self) -> Applied:
        """Return the applied commit; `NotWholeError` if the tree is not what it says."""
        place = self.record
        data = self._content(place)
        found = self._of_state(place, data) if place.name == _STATE else _of_record(place, data)
        if found.left_out:
            raise NotWholeError(
                f"{self.root}: {self.name} is not the whole mirror: {found.left_out}",
                hint="downstreams would miss that; mirror all of it, or do not relay it",
            )
        return Applied(found.commit, self.folder / "repository.git")

    def _content(self, place: Path) -> bytes:
        try:
            with place.open("rb") as file:
                return file.read(_BYTES_MAX)
        except FileNotFoundError:
            raise NotWholeError(
                f"{place}: is not there: {self.name} was never synced", hint=_SYNC
            ) from None
        except OSError as error:
            raise AppliedStateError(
                f"{place}: {error.strerror}",
                hint="run it as the user of huai-client, whose state nobody else may read",
            ) from error

    def _of_state(self, place: Path, data: bytes) -> AppliedRecord:
        """The same of the state of a client that wrote no record yet."""
        values = _values(place, data)
        commit, partial = values.get("applied"), values.get("partial")
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise NotWholeError(f"{place}: nothing is applied yet", hint=_SYNC)
        if not isinstance(partial, str):
            raise NotWholeError(
                f"{place}: was written before huai-client told what it leaves out",
                hint=f"run: huai-client sync {self.name} --adopt",
            )
        return AppliedRecord(commit, partial)


def _of_record(place: Path, data: bytes) -> AppliedRecord:
    try:
        return AppliedRecord.decode(data)
    except FormatError as error:
        raise AppliedStateError(f"{place}: {error.reason}", hint=_VERSIONS) from error


def _values(place: Path, data: bytes) -> dict[str, object]:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or values.get("version") != _VERSION:
        raise AppliedStateError(
            f"{place}: not a state file that this version knows", hint=_VERSIONS
        )
    return values
