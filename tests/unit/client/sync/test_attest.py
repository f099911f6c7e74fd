"""The file of an attestation, in a tree with files that a hostile upstream planted."""

import os
from pathlib import Path

import pytest

from huai_client.sync.attest import _write
from huai_client.tree import STAGING
from huai_schema.codec.attestation import FILE_NAME
from tests.support.plants import Plant, plants


@pytest.mark.timeout(20)
@plants
def test_what_stands_in_its_place_is_replaced(tmp_path: Path, plant: Plant) -> None:
    victim, top = tmp_path / "victim", tmp_path / "dest"
    staging = top / os.fsdecode(STAGING)
    staging.mkdir(parents=True, mode=0o700)
    victim.write_bytes(b"kept")
    plant(victim, staging / FILE_NAME)
    _write(top, b"attested")
    assert ((top / FILE_NAME).read_bytes(), victim.read_bytes()) == (b"attested", b"kept")
    assert not staging.exists()
