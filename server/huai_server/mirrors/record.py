"""What is kept of each mirror: its last attestation, its lag since, what a probe found.

`FOLDER/MODULE/DOWNSTREAM.json` is written by `serve` alone, `FOLDER/MODULE/DOWNSTREAM.probe` by
`probe` alone, each as a whole.  A file that is missing or damaged counts as none, and so does an
attestation whose signature is none of the key that is allowed now.
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
    """That a mirror holds a commit."""

    signed: SignedAttestation
    text: bytes
    """As it came."""
    since: int
    """When it first attested this commit, seconds since the epoch."""
    history: LagHistory

    @property
    def said(self) -> Attestation:
        """What it says."""
        return self.signed.said


class Probe(msgspec.Struct, frozen=True):
    """What a probe found at a mirror."""

    time: _Moment
    verdict: Verdict
    serial: int
    """That the mirror attested then."""
    files: int = 0
    """How many were compared."""
    path: str = ""
    """The first that was wrong or missing, as it is shown; empty: none was."""
    reason: str = ""
    """What is wrong; empty: nothing."""

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against naming the mirror to others."""
        return self.verdict not in {"lies", "stale"}


class _Stored(msgspec.Struct, frozen=True):
    attestation: str
    since: _Moment
    begun: _Moment
    rows: Annotated[tuple[tuple[_Moment, _Moment], ...], Meta(max_length=ROWS_MAX)] = ()


_HOLDING = RecordFile(_Stored, needed=False, permissions=_MODE)
_PROBE = RecordFile(Probe, needed=False, permissions=_MODE)


def holding_place(folder: Path, module: str, downstream: str) -> Path:
    """The file of a holding; both names are checked ones."""
    return folder / module / f"{downstream}.json"


def probe_place(folder: Path, module: str, downstream: str) -> Path:
    """The file of what a probe found."""
    return folder / module / f"{downstream}.probe"


def read_holding(place: Path, key: str) -> Holding | None:
    """What a downstream with this public key said last."""
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
    """Replace it in one durable step."""
    begun, rows = holding.history
    stored = _Stored(holding.text.decode("ascii"), holding.since, begun, rows)
    with _folder_of(place):
        _HOLDING.save(place, stored)


def read_probe(place: Path) -> Probe | None:
    """What the last probe found."""
    return _PROBE.load(place)


def write_probe(place: Path, probe: Probe) -> None:
    """Replace it in one durable step."""
    with _folder_of(place):
        _PROBE.save(place, probe)


@contextmanager
def _folder_of(place: Path) -> Iterator[None]:
    """Make the folder that a file is about to be written into."""
    with storage_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        yield
