"""What is kept of each mirror: its last attestation, its lag since, what a probe found.

`FOLDER/MODULE/DOWNSTREAM.json` is written by `serve` alone, `FOLDER/MODULE/DOWNSTREAM.probe` by
`probe` alone, each as a whole.  A file that is missing or damaged counts as none, and so does an
attestation whose signature is none of the key that is allowed now.
"""

import os
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from huai_program.durable import replace_file
from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_schema.errors import FormatError
from huai_server.mirrors.lag import ROWS_MAX, LagHistory
from huai_server.state.errors import storage_errors

_BYTES = 1 << 20
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


def holding_place(folder: Path, module: str, downstream: str) -> Path:
    """The file of a holding; both names are checked ones."""
    return folder / module / f"{downstream}.json"


def probe_place(folder: Path, module: str, downstream: str) -> Path:
    """The file of what a probe found."""
    return folder / module / f"{downstream}.probe"


def read_holding(place: Path, key: str) -> Holding | None:
    """What a downstream with this public key said last."""
    try:
        stored = msgspec.json.decode(_read(place), type=_Stored)
        text = stored.attestation.encode()
        signed = SignedAttestation.decode(text)
    except (OSError, ValueError, FormatError):  # msgspec's errors are of the second kind
        return None
    if signed.key != key:
        return None
    return Holding(signed, text, stored.since, LagHistory(stored.begun, stored.rows))


def write_holding(place: Path, holding: Holding) -> None:
    """Replace it in one durable step."""
    begun, rows = holding.history
    stored = _Stored(holding.text.decode("ascii"), holding.since, begun, rows)
    _write(place, msgspec.json.encode(stored))


def read_probe(place: Path) -> Probe | None:
    """What the last probe found."""
    try:
        return msgspec.json.decode(_read(place), type=Probe)
    except (OSError, ValueError):
        return None


def write_probe(place: Path, probe: Probe) -> None:
    """Replace it in one durable step."""
    _write(place, msgspec.json.encode(probe))


def _read(place: Path) -> bytes:
    with place.open("rb") as file:
        return file.read(_BYTES)


def _write(place: Path, data: bytes) -> None:
    with storage_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        replace_file(place, data + b"\n", temporary, permissions=_MODE)
