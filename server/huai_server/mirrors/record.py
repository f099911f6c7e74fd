"""What is kept of each mirror: its last attestation, and its lag since.

`FOLDER/MODULE/DOWNSTREAM.json` is written by `serve` alone, as a whole.  A file that is missing or
damaged counts as none, and so does an attestation whose signature is none of the key that is
allowed now.
"""

import os
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_schema.errors import FormatError
from huai_schema.program.durable import replace_file
from huai_server.errors import storage_errors
from huai_server.mirrors.lag import ROWS_MAX, LagHistory

_BYTES = 1 << 20
_MODE = 0o644
_Moment = Annotated[int, Meta(ge=0, le=1 << 40)]


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


class _Stored(msgspec.Struct, frozen=True):
    attestation: str
    since: _Moment
    begun: _Moment
    rows: Annotated[tuple[tuple[_Moment, _Moment], ...], Meta(max_length=ROWS_MAX)] = ()


def holding_place(folder: Path, module: str, downstream: str) -> Path:
    """The file of a holding; both names are checked ones."""
    return folder / module / f"{downstream}.json"


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


def _read(place: Path) -> bytes:
    with place.open("rb") as file:
        return file.read(_BYTES)


def _write(place: Path, data: bytes) -> None:
    with storage_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        replace_file(place, data + b"\n", temporary, permissions=_MODE)
