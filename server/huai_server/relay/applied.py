"""The applied commit of a huai-client, and whether its tree is the whole mirror.

Reads `modules/NAME/applied` in the state root of huai-client, which a sync replaces in one step
after publishing everything.  The commits are in `modules/NAME/repository.git`.  Writes nothing
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
_SYNC = "its first sync must succeed"
_VERSIONS = "use the same version of huai-client and huai-server"


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
    """A module of huai-client."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """The folder of the module's state."""
        return self.root / "modules" / self.name

    @property
    def record(self) -> Path:
        """The file that is replaced for each applied commit."""
        record = self.folder / FILE_NAME
        return record if os.path.lexists(record) else self.folder / _STATE

    def read(self) -> Applied:
        """Return the applied commit; raises `NotWholeError` if the tree is incomplete."""
        place = self.record
        data = self._read_file(place)
        decode = self._decode_state if place.name == _STATE else _decode_record
        record = decode(place, data)
        if record.left_out:
            raise NotWholeError(
                f"{self.root}: {self.name} is not the whole mirror: {record.left_out}",
                hint="mirror all of it, or do not relay it",
            )
        return Applied(record.commit, self.folder / "repository.git")

    def _read_file(self, place: Path) -> bytes:
        try:
            with place.open("rb") as file:
                return file.read(_BYTES_MAX)
        except FileNotFoundError:
            raise NotWholeError(
                f"{place}: missing: {self.name} was never synced", hint=_SYNC
            ) from None
        except OSError as error:
            raise AppliedStateError(
                f"{place}: {error.strerror}",
                hint="run it as the user of huai-client; other users may not read its state",
            ) from error

    def _decode_state(self, place: Path, data: bytes) -> AppliedRecord:
        """Decode the state of an older client, which writes no record."""
        values = _values(place, data)
        commit, partial = values.get("applied"), values.get("partial")
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise NotWholeError(f"{place}: nothing is applied yet", hint=_SYNC)
        if not isinstance(partial, str):
            raise NotWholeError(
                f"{place}: an older huai-client, which did not record what it leaves out, wrote it",
                hint=f"run: huai-client sync {self.name} --adopt",
            )
        return AppliedRecord(commit, partial)


def _decode_record(place: Path, data: bytes) -> AppliedRecord:
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
        raise AppliedStateError(f"{place}: not a state file of a known version", hint=_VERSIONS)
    return values
