"""Payload, indices, pointers."""

import pytest

from huai_client.stages import INDICES, PAYLOAD, POINTERS, RULES, stage_of
from tests.local_trees import at

EXPECTED = {
    b"pool/main/a.deb": PAYLOAD,
    b"dists/sid/main/Packages.gz": INDICES,
    b"debian/dists/sid/Release": POINTERS,
    b"dists/sid/InRelease": POINTERS,
    b"dists/sid/Release.gpg": POINTERS,
    b"os/repodata/primary.xml.gz": INDICES,
    b"os/repodata/repomd.xml": POINTERS,
    b"os/repodata/repomd.xml.asc": POINTERS,
    b"core/os/x86_64/core.db": POINTERS,
    b"core/os/x86_64/core.db.tar.gz.sig": POINTERS,
    b"core/os/x86_64/core.files": POINTERS,
    b"core/os/x86_64/a.pkg.tar.zst": PAYLOAD,
    b"v3.20/main/x86_64/APKINDEX.tar.gz": POINTERS,
    b"main/linux-64/current_repodata.json": POINTERS,
    b"main/linux-64/repodata.json.zst": POINTERS,
    b"simple/pip/index.html": INDICES,
    b"packages/ab/cd/pip.whl": PAYLOAD,
    b"project/trace/host.example": POINTERS,
    b"latest-release": POINTERS,
    b"iso/current": POINTERS,
    b"TIME": POINTERS,
    b"lastsync": POINTERS,
    b"timestamp.txt": POINTERS,
    b"fullfiletimelist-epel": INDICES,
    b"ls-lR.gz": INDICES,
    b"OVERTIME": PAYLOAD,
    b"not-dists/x": PAYLOAD,
}


@pytest.mark.parametrize(("path", "stage"), EXPECTED.items())
def test_a_stage(path: bytes, stage: int) -> None:
    assert stage_of(at(path)) == stage


def test_every_rule_is_met() -> None:
    for rule in RULES:
        assert any(rule.pattern.search(b"/" + path) for path in EXPECTED), rule
