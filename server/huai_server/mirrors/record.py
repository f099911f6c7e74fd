"""The record of each mirror: its last attestation, its lag, and the result of a probe.

Only `serve` writes `FOLDER/MODULE/DOWNSTREAM.json`, and only `probe` writes
`FOLDER/MODULE/DOWNSTREAM.probe`, each as a whole.  A missing or damaged file counts as no record,
and so does an attestation that is not signed with the key that is allowed now.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from huai_program.record_file import RecordFile
from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_schema.errors import FormatError
from huai_server.mirrors.lag import ROWS_MAX, LagHistory
from huai_server.state.errors import storage_errors

_MODE = 0o644
_Moment = Annotated[int, Meta(ge=0, le=1 << 40)]


Verdict = Literal["good", "stale", "lies", "unreachable"]


class Holding(NamedTuple):
    """The last attestation of a mirror, and the history of its lag."""

    signed: SignedAttestation
    text: bytes
    """The attestation as it was received."""
    since: int
    """The time of the first attestation of this commit, in seconds since the epoch."""
    history: LagHistory

    @property
    def attestation(self) -> Attestation:
        """The content of the signed attestation."""
        return self.signed.attestation


class Probe(msgspec.Struct, frozen=True):
    """The result of probing a mirror."""

    time: _Moment
    verdict: Verdict
    serial: int
    """The serial that the mirror attested then."""
    files: int = 0
    """The number of files that were compared."""
    path: str = ""
    """The first wrong or missing file in display form, or empty."""
    reason: str = ""
    """The fault of the mirror, or empty."""

    @property
    def trusted(self) -> bool:
        """True unless the probe found other content or missing files."""
        return self.verdict not in {"lies", "stale"}


class _Stored(msgspec.Struct, frozen=True):
    attestation: str
    since: _Moment
    begun: _Moment
    rows: Annotated[tuple[tuple[_Moment, _Moment], ...], Meta(max_length=ROWS_MAX)] = ()


_HOLDING = RecordFile(_Stored, needed=False, permissions=_MODE)
_PROBE = RecordFile(Probe, needed=False, permissions=_MODE)


def holding_path(folder: Path, module: str, downstream: str) -> Path:
    """Return the path of a `Holding` below `folder`.

    Neither `module` nor `downstream` may be an unchecked name: it could lead out of the folder.
    """
    return folder / module / f"{downstream}.json"


def probe_path(folder: Path, module: str, downstream: str) -> Path:
    """Return the path of a `Probe`; the parameters are as for `holding_path`."""
    return folder / module / f"{downstream}.probe"


def read_holding(place: Path, key: str) -> Holding | None:
    """Return the record of the last attestation, from the file `place`.

    None if it is missing or damaged, or the public key `key` did not sign the attestation.
    """
    stored = _HOLDING.load(place)
    if stored is None:
        return None
    try:
        text = stored.attestation.encode()
        signed = SignedAttestation.decode(text)
    except (ValueError, FormatError):
        return None
    if signed.key != key:
        return None
    return Holding(signed, text, stored.since, LagHistory(stored.begun, stored.rows))


def write_holding(place: Path, holding: Holding) -> None:
    """Replace the file `place` by the record in one durable step, and make its folder.

    Raises `StorageError`.
    """
    begun, rows = holding.history
    stored = _Stored(holding.text.decode("ascii"), holding.since, begun, rows)
    with _folder_of(place):
        _HOLDING.save(place, stored)


def read_probe(place: Path) -> Probe | None:
    """Return the result of the last probe, or None without a readable one."""
    return _PROBE.load(place)


def write_probe(place: Path, probe: Probe) -> None:
    """Replace the file `place` by the result in one durable step, and make its folder.

    Raises `StorageError`.
    """
    with _folder_of(place):
        _PROBE.save(place, probe)


@contextmanager
def _folder_of(place: Path) -> Iterator[None]:
    """Make the folder for the file `place`, which the block writes; `OSError` is converted."""
    with storage_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        yield
