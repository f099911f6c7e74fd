"""What a downstream holds: said after a sync, believed by its upstream, and by nobody if forged."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.state.state import save
from huai_schema.codec.attestation import BYTES_MAX, FILE_NAME
from huai_server.mirrors.record import Holding, holding_place, read_holding
from huai_server.state.paths import mirrors_folder
from tests.support.attesting import HOST, Attesting, allow, attesting
from tests.support.keys import key
from tests.support.rsync_calls import program, run
from tests.support.upstream import Site, serving, site


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with mirrors of its own."""
    with site(tmp_path_factory.mktemp("mirrors") / "site") as found:
        yield found


@pytest.fixture
def one(own: Site) -> Attesting:
    """A downstream that attested once."""
    made = attesting(own)
    allow(own, ("m-1", made.signer, (HOST,)))
    made.down.synced()
    return made


def held(one: Attesting) -> Holding | None:
    """What the upstream keeps of it."""
    folder = mirrors_folder(one.up.root)
    return read_holding(holding_place(folder, one.up.name, "m-1"), one.signer.public)


def test_a_sync_is_attested_beside_the_tree_and_at_the_upstream(one: Attesting) -> None:
    said, state = one.signed.said, one.down.state
    assert (said.module, said.serial, said.commit) == (one.up.name, state.serial, state.applied)
    assert said.urls == (f"https://{HOST}/{one.up.name}",)
    assert not said.partial
    kept = held(one)
    assert kept is not None
    assert kept.text == one.file.read_bytes()
    before = one.file.read_bytes()
    (event,) = one.down.run("sync", "--json", one.up.name).events("sync")
    assert not event["changed"]
    assert one.file.read_bytes() == before  # nothing is new, and it was said lately


def test_the_file_is_no_part_of_the_tree_and_is_never_deleted(one: Attesting) -> None:
    os.unlink(one.up.at(b"a"))
    one.up.put(b"b", b"second")
    one.up.put(FILE_NAME.encode(), b"that of the upstream itself")
    one.up.commit()
    (event,) = one.down.run("sync", "--json", one.up.name).events("attestation")
    assert (event["sent"], event["failure"], event["serial"]) == (
        True,
        None,
        one.signed.said.serial,
    )
    assert one.signed.said.serial == 2
    assert one.down.verify().code == 0
    assert one.down.dest.stat().st_mtime_ns == one.up.tree.stat().st_mtime_ns
    assert not (one.down.dest / ".~tmp~").exists()
    kept = held(one)
    assert kept is not None
    assert kept.attestation.serial == 2
    assert kept.since == kept.attestation.time


def test_a_sync_in_place_of_rsync_is_attested_too(one: Attesting, tmp_path: Path) -> None:
    def called(*options: str) -> tuple[int, int]:
        words = ("-aH", *options, source, f"{one.down.dest}/")
        roots = {"HUAI_CLIENT_ROOT": str(one.down.root), "HUAI_RSYNC_FALLBACK": "no"}
        return run(program(tmp_path), *words, environment=roots).code, one.signed.said.serial

    source = f"{one.place.content_url}/{one.up.name}/"
    one.up.put(b"b", b"second")
    one.up.commit()
    assert called("--delete", "--dry-run") == (0, 1)
    assert called("--delete") == (0, 2)
    kept = held(one)
    assert kept is not None
    assert kept.attestation.serial == 2


def test_what_is_not_true_is_refused(one: Attesting, own: Site) -> None:
    now, good = one.signed.said.time, one.file.read_bytes()
    other = own.upstream()
    other.put(b"a", b"first")
    other.commit()
    later = {"time": now + 1}
    cases = {
        "replayed": (one.post(good), 409, "not newer"),
        "older": (one.post(one.again(time=now - 5)), 409, "not newer"),
        "forged": (one.post(good.replace(b"serial 1", b"serial 2")), 403, "not of these bytes"),
        "unsigned": (one.post(good[:-200]), 403, "attestation"),
        "no form": (one.post(good[:20]), 400, "not the lines"),
        "other module": (one.post(one.again(**later), other.name), 409, "another module"),
        "its identity": (
            one.post(one.again(**later, module=other.name), other.name),
            409,
            "another identity",
        ),
        "future": (one.post(one.again(time=now + 86_400)), 409, "more than 300 s"),
        "past": (one.post(one.again(time=now - 86_400)), 409, "more than 300 s"),
        "oversize": (one.post(b"x" * (BYTES_MAX + 1)), 413, "more than"),
        "unknown key": (one.post(one.again(key(9), **later)), 403, "none of the allowed"),
        "serial": (one.post(one.again(**later, serial=7)), 409, "no commit"),
        "commit": (one.post(one.again(**later, commit="0" * 40)), 409, "no commit"),
        "host": (one.post(one.again(**later, urls=("https://o.example/",))), 403, "may not claim"),
        "port": (
            one.post(one.again(**later, urls=(f"https://{HOST}:8443/",))),
            403,
            "may not claim",
        ),
        "no address": (
            one.post(one.again(**later, urls=("http://[::::]/",))),
            403,
            "may not claim",
        ),
        "no module": (one.post(good, "nope"), 404, "no such module"),
    }
    for case, ((status, text), wanted, words) in cases.items():
        assert (case, status) == (case, wanted), text
        assert words in text, case
    kept = held(one)
    assert kept is not None
    assert kept.text == good
    allow(own)
    assert one.post(one.again(**later))[0] == 403  # revoked
    allow(own, ("m-1", one.signer, (HOST,)))
    assert one.post(one.again(**later)) == (204, "")


def test_a_refusal_is_said_once_and_fails_nothing(own: Site) -> None:
    one = attesting(own, 2)
    allow(own)
    first = one.down.sync()
    assert first.code == 0
    assert first.err.count("the attestation was not taken") == 1
    again = one.down.sync()
    assert (again.code, again.err.count("not taken")) == (0, 0)
    assert one.signed.said.serial == 1
    allow(own, ("m-2", one.signer, (HOST,)))
    (event,) = one.down.run("sync", "--json", one.up.name).events("attestation")
    assert event["sent"]


def test_a_filtered_tree_is_attested_as_a_part_and_a_key_is_checked(own: Site) -> None:
    one = attesting(own, 3, send=False)
    one.down.configure(filter=("- *.iso",))
    one.down.synced()
    assert one.signed.said.partial
    (own.folder / "attest3").chmod(0o644)
    one.down.configure(filter=())  # a table that was found right is not looked at again
    refused = one.down.sync()
    assert (refused.code, "others may read this private key" in refused.err) == (40, True)


def test_what_is_left_out_is_what_the_state_says(own: Site) -> None:
    one = attesting(own, 4, send=False)

    def holds() -> tuple[int, bool]:
        one.down.synced()
        return one.signed.said.serial, one.signed.said.partial

    one.down.configure(filter=("- *.iso",))
    assert holds() == (1, True)
    one.down.configure(filter=())
    assert holds() == (1, False)  # though the same commit was attested lately
    one.down.configure(protect=("/a",))
    one.up.put(b"b", b"second")
    one.up.commit()
    assert holds() == (2, True)
    one.down.configure(protect=())
    one.up.put(b"b", b"the third")
    one.up.commit()
    assert holds() == (3, False)
    save(one.down.state_file, replace(one.down.state, partial=None))
    assert holds() == (3, True)  # nothing is known of what an older release left out


def test_what_was_taken_survives_a_kill(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        one = attesting(place)
        allow(place, ("m-1", one.signer, (HOST,)))
        one.down.synced()
        sent = one.again(time=int(time.time()) + 2)
        assert one.post(sent) == (204, "")
        place.server.send_signal(signal.SIGKILL)
        place.server.wait()
        with serving(place.folder / "server") as (_, url):
            place.url = url
            assert one.post(sent)[0] == 409
            kept = held(one)
            assert kept is not None
            assert kept.text == sent
