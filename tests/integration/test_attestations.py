"""Attestations: made after a sync, believed by the upstream, and refused if forged."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from huai_client.state.state import save
from huai_native._native import PrivateKey
from huai_schema.codec.attestation import BYTES_MAX, FILE_NAME
from huai_server.mirrors.record import Holding, holding_path, read_holding, write_holding
from huai_server.state.paths import mirrors_folder
from tests.support.attesting import HOST, Attesting, allow, attesting
from tests.support.keys import key
from tests.support.rsync_calls import program, run
from tests.support.upstream import Site, serving, site


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with its own mirrors."""
    with site(tmp_path_factory.mktemp("mirrors") / "site") as own:
        yield own


@pytest.fixture
def one(own: Site) -> Attesting:
    """A downstream that attested once."""
    one = attesting(own)
    allow(own, ("m-1", one.signer, (HOST,)))
    one.down.synced()
    return one


def read_record(one: Attesting) -> Holding:
    """Return the record of the upstream."""
    folder = mirrors_folder(one.up.root)
    holding = read_holding(holding_path(folder, one.up.name, "m-1"), one.signer.public)
    assert holding is not None
    return holding


def update(one: Attesting, content: bytes = b"second") -> None:
    one.up.put(b"b", content)
    one.up.commit()


def test_a_sync_is_attested_in_the_tree_and_at_the_upstream(one: Attesting) -> None:
    claim, state = one.signed.attestation, one.down.state
    assert (claim.module, claim.serial, claim.commit) == (one.up.name, state.serial, state.applied)
    assert claim.urls == (f"https://{HOST}/{one.up.name}",)
    assert not claim.partial
    before = one.file.read_bytes()
    assert read_record(one).text == before
    (event,) = one.down.run("sync", "--json", one.up.name).events("sync")
    assert not event["changed"]
    assert one.file.read_bytes() == before  # nothing is new, and the last one is recent


def test_the_file_is_not_a_part_of_the_tree_and_is_never_deleted(one: Attesting) -> None:
    os.unlink(one.up.at(b"a"))
    one.up.put(FILE_NAME.encode(), b"that of the upstream itself")
    update(one)
    (event,) = one.down.run("sync", "--json", one.up.name).events("attestation")
    assert (event["sent"], event["failure"], event["serial"]) == (True, None, 2)
    assert one.signed.attestation.serial == 2
    assert one.down.verify().code == 0
    assert one.down.dest.stat().st_mtime_ns == one.up.tree.stat().st_mtime_ns
    assert not (one.down.dest / ".~tmp~").exists()
    record = read_record(one)
    assert record.attestation.serial == 2
    assert record.since == record.attestation.time


def test_a_sync_in_place_of_rsync_is_attested_too(one: Attesting, tmp_path: Path) -> None:
    def call(*options: str) -> tuple[int, int]:
        words = ("-aH", *options, source, f"{one.down.dest}/")
        roots = {"HUAI_CLIENT_ROOT": str(one.down.root), "HUAI_RSYNC_FALLBACK": "no"}
        return run(program(tmp_path), *words, environment=roots).code, one.signed.attestation.serial

    source = f"{one.place.content_url}/{one.up.name}/"
    update(one)
    assert call("--delete", "--dry-run") == (0, 1)
    assert call("--delete") == (0, 2)
    assert read_record(one).attestation.serial == 2


def test_a_false_attestation_is_refused(
    one: Attesting, own: Site, subtests: pytest.Subtests
) -> None:
    now, good = one.signed.attestation.time, one.file.read_bytes()
    other = own.upstream()
    other.put(b"a", b"first")
    other.commit()

    def later(by: PrivateKey | None = None, **values: object) -> bytes:
        return one.again(by, time=now + 1, **values)

    for case, data, code, words in [
        ("replayed", good, 409, "not newer"),
        ("older", one.again(time=now - 5), 409, "not newer"),
        ("forged", good.replace(b"serial 1", b"serial 2"), 403, "not of these bytes"),
        ("unsigned", good[:-200], 403, "attestation"),
        ("no form", good[:20], 400, "not the lines"),
        ("future", one.again(time=now + 86_400), 409, "more than 300 s"),
        ("past", one.again(time=now - 86_400), 409, "more than 300 s"),
        ("oversize", b"x" * (BYTES_MAX + 1), 413, "exceeds"),
        ("unknown key", later(key(9)), 403, "does not belong to an allowed"),
        ("serial", later(serial=7), 409, "no commit"),
        ("commit", later(commit="0" * 40), 409, "no commit"),
        ("host", later(urls=("https://o.example/",)), 403, "may not claim"),
        ("port", later(urls=(f"https://{HOST}:8443/",)), 403, "may not claim"),
        ("no address", later(urls=("http://[::::]/",)), 403, "may not claim"),
    ]:
        with subtests.test(case):
            status, text = one.post(data)
            assert status == code, text
            assert words in text
    for data, module, code, words in [
        (later(), other.name, 409, "another module"),
        (later(module=other.name), other.name, 409, "another identity"),
        (good, "nope", 404, "no such module"),
    ]:
        with subtests.test(module=module, words=words):
            status, text = one.post(data, module)
            assert (status, words in text) == (code, True), text
    assert read_record(one).text == good
    allow(own)
    assert one.post(later())[0] == 403  # revoked
    allow(own, ("m-1", one.signer, (HOST,)))
    assert one.post(later()) == (204, "")


def test_an_attestation_from_the_future_does_not_bar_later_ones(one: Attesting) -> None:
    """Both clocks were a year ahead, and were set right."""
    now = one.signed.attestation.time
    early = one.again(time=now + 365 * 86_400)
    path = holding_path(mirrors_folder(one.up.root), one.up.name, "m-1")
    write_holding(path, read_record(one)._replace(text=early))
    assert one.post(one.again(time=now + 1)) == (204, "")


def test_a_refusal_is_reported_once_and_is_not_a_failure(own: Site) -> None:
    one = attesting(own, 2)
    allow(own)
    first = one.down.sync()
    assert first.code == 0
    assert first.err.count("the attestation was not accepted") == 1
    again = one.down.sync()
    assert (again.code, again.err.count("not taken")) == (0, 0)
    assert one.signed.attestation.serial == 1
    allow(own, ("m-2", one.signer, (HOST,)))
    (event,) = one.down.run("sync", "--json", one.up.name).events("attestation")
    assert event["sent"]


def test_an_attestation_is_partial_if_the_state_says_so(own: Site) -> None:
    one = attesting(own, 4, send=False)

    def sync() -> tuple[int, bool]:
        one.down.synced()
        return one.signed.attestation.serial, one.signed.attestation.partial

    one.down.configure(filter=("- *.iso",))
    assert sync() == (1, True)
    one.down.configure(filter=())
    assert sync() == (1, False)  # though the same commit was attested lately
    one.down.configure(protect=("/a",))
    update(one)
    assert sync() == (2, True)
    one.down.configure(protect=())
    update(one, b"the third")
    assert sync() == (3, False)
    save(one.down.state_file, replace(one.down.state, partial=None))
    assert sync() == (3, True)  # an older release may have left paths out
    (own.folder / "attest4").chmod(0o644)
    one.down.configure(filter=("- *.txt",))  # a table that was found right is not looked at again
    refused = one.down.sync()
    assert (refused.code, "others may read this private key" in refused.err) == (40, True)


def test_a_record_survives_a_kill(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        one = attesting(place)
        allow(place, ("m-1", one.signer, (HOST,)))
        one.down.synced()
        attestation = one.again(time=int(time.time()) + 2)
        assert one.post(attestation) == (204, "")
        place.server.send_signal(signal.SIGKILL)
        place.server.wait()
        with serving(place.folder / "server") as (_, url):
            place.url = url
            assert one.post(attestation)[0] == 409
            assert read_record(one).text == attestation
