"""Signed commits on a downstream: what is believed, what is refused, and what is kept of it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from huai_client.state import state as states
from huai_server.signing.keys import revoke, rotate
from tests.support.keys import allow, key
from tests.support.signed_upstream import SignedUpstream
from tests.support.upstream import Downstream, Site

Pair = tuple[SignedUpstream, Downstream]
DAY = 86_400
KEYS = (key(1).public,)


@pytest.fixture(name="pair")
def signed_pair(place: Site, tmp_path: Path) -> Pair:
    up = place.upstream()
    up.many(b"folder", 300)
    signed = SignedUpstream(up, tmp_path / "keys")
    signed.commit(b"1")
    return signed, place.downstream(up)


@pytest.fixture(name="synced")
def synced_pair(pair: Pair) -> Pair:
    pair[1].synced()
    return pair


def trusted(down: Downstream) -> dict[str, object] | None:
    """Return what is recorded of keys."""
    path = down.state_file.with_name("trusted")
    return dict(json.loads(path.read_bytes())) if path.exists() else None


def refused(down: Downstream, *words: str, code: int = 57) -> None:
    """A sync is refused; nothing is stored of what was offered, and nothing is changed."""

    def stored() -> object:
        packs = sorted(path.name for path in down.repository.rglob("pack-*"))
        return down.state, trusted(down), packs, sorted(down.dest.rglob("*"))

    before = stored()
    ended = down.sync()
    assert ended.code == code, ended
    assert all(word in ended.err for word in words), ended.err
    assert stored() == before


# ---------------------------------------------------------------- whom to believe


def test_a_sync_pins_the_first_key_and_says_so_and_a_plan_does_not(pair: Pair) -> None:
    up, down = pair
    assert down.plan()
    assert trusted(down) is None
    ended = down.sync()
    assert ended.code == 0
    assert "first keys" in ended.err
    assert key(1).public in ended.err
    assert trusted(down) == {
        "version": 1,
        "keys_version": 1,
        "threshold": 1,
        "keys": [key(1).public],
        "anchors": [],
    }
    assert down.state.valid_until == up.promise.valid_until
    up.commit(b"2")
    ended = down.sync()
    assert (ended.code, "first keys" in ended.err) == (0, False)
    assert down.verify("--content").code == 0


def test_an_upstream_that_signed_once_may_not_come_unsigned(synced: Pair) -> None:
    up, down = synced
    up.strip()
    refused(down, "not signed", "verify")
    refused(down, "not signed")
    down.configure(verify="off")
    down.synced()
    down.configure(verify="pin")
    up.commit(b"2")
    down.synced()


def test_an_upstream_that_begins_to_sign_is_pinned(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.put(b"file", b"1")
    down = place.synced_downstream(up)
    assert (trusted(down), down.state.valid_until) == (None, 0)
    signed = SignedUpstream(up, tmp_path / "keys")
    signed.commit(b"1")
    assert "first keys" in down.sync().err
    signed.strip()
    refused(down, "not signed")


@pytest.mark.parametrize("first", [False, True])
def test_keys_of_the_configuration(pair: Pair, tmp_path: Path, *, first: bool) -> None:
    up, down = pair
    if first:
        down.synced()
        up.commit(b"2")
    down.configure(keys=(key(2).public,))
    refused(down, key(1).public, "not trusted")
    down.configure(keys=(), signers=str(allow(tmp_path / "signers", key(2).public)))
    refused(down, "not trusted")
    allow(tmp_path / "signers", key(2).public, key(1).public)
    assert "first keys" not in down.sync().err
    assert trusted(down) is not None
    up.strip()
    refused(down, "not signed")


def test_require_takes_nothing_unsigned(place: Site) -> None:
    up = place.upstream()
    up.put(b"file", b"1")
    up.commit()
    down = place.downstream(up, verify="require", keys=KEYS)
    refused(down, "not signed")


def test_a_wrong_configuration_is_an_error(
    pair: Pair, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    _, down = pair
    for values, word in (
        ({"verify": "require"}, "needs keys"),
        ({"keys": ("ssh-rsa AAAA",)}, "keys"),
        ({"keys": ("ssh-ed25519 AAAA",)}, "keys"),
        ({"signers": "/nonexistent"}, "signers"),
    ):
        with subtests.test(values=values):
            down.configure(**{"verify": "pin", "keys": (), "signers": "", **values})
            ended = down.sync()
            assert ended.code == 40, ended
            assert word in ended.err
    signers = tmp_path / "signers"
    down.configure(verify="pin", keys=(), signers=str(signers))
    for line in (
        "",
        "# only a comment\n",
        f'huai namespaces="file" {key(1).public}\n',
        f"huai cert-authority {key(1).public}\n",
        f'huai valid-before="20300101" {key(1).public}\n',
    ):
        with subtests.test(line=line):
            signers.write_text(line)
            assert down.sync().code == 40


# ---------------------------------------------------------------- what is wrong with a commit


def test_a_forged_commit_is_refused(synced: Pair, subtests: pytest.Subtests) -> None:
    up, down = synced
    other = up.promise._replace(identity="0" * 32)
    with subtests.test("signed by another key"):
        up.forge(key(2))
        refused(down, key(2).public, "not trusted")
    with subtests.test("of another module"):
        up.forge(key(1), promise=other)
        refused(down, "another module")
    with subtests.test("with a serial that leaps"):
        up.forge(key(1), serial=(1 << 32) + 10)
        refused(down, "jumps", code=46)


def test_a_signature_by_rsa(synced: Pair, tmp_path: Path) -> None:
    up, down = synced
    up.commit(b"2")
    data = up.raw()
    begin, end = data.index(b"gpgsig"), data.index(b"\n\n")
    payload = data[:begin] + data[end + 1 :]
    path = tmp_path / "rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", path], check=True)
    words = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(path)]
    signature = subprocess.run(words, input=payload, capture_output=True, check=True).stdout
    up.replace(data[:begin] + b"gpgsig " + signature.strip().replace(b"\n", b"\n ") + data[end:])
    refused(down, "ssh-rsa")


def test_a_tree_that_was_not_signed(synced: Pair) -> None:
    up, down = synced
    before, promise = up.up.head.tree, up.promise
    up.commit(b"2")
    up.forge(key(1), promise=promise)
    refused(down, "not the signed one")
    up.forge(key(1), tree=before, promise=promise)
    down.synced()


def test_a_listing_that_was_not_signed(synced: Pair) -> None:
    """Whatever its id is: hashes that were kept of what was refused do not count for the next."""
    up, down = synced
    up.up.put(b"folder/new", b"1")
    up.commit(b"2")
    promise = up.promise
    up.forge(key(1), promise=promise._replace(listing=bytes(32)))
    refused(down, "not the signed one")
    assert not (down.repository / "listing-hashes").exists()
    up.forge(key(1), promise=promise)
    down.synced()
    assert (down.repository / "listing-hashes").exists()


# ---------------------------------------------------------------- other keys


def test_a_downstream_that_slept_through_three_rotations(synced: Pair) -> None:
    up, down = synced
    for number in range(3):
        rotate(up.root, up.signing, "new")
        up.commit(b"%d" % number)
    ended = down.sync()
    assert (ended.code, "version 4" in ended.err) == (0, True)
    record = trusted(down)
    assert record is not None
    assert (record["keys_version"], record["keys"]) == (4, [up.keys.signer.public])
    up.commit(b"more")
    down.synced()
    up.forge(key(1))
    refused(down, "not trusted")


def test_keys_of_the_configuration_lead_to_newer_ones(pair: Pair) -> None:
    up, down = pair
    down.configure(verify="require", keys=KEYS)
    for number in range(3):
        rotate(up.root, up.signing, "new")
        up.commit(b"%d" % number)
    down.synced()
    up.forge(key(1))
    refused(down, "not trusted")


def test_a_rotation_that_nobody_agreed_to(synced: Pair, tmp_path: Path) -> None:
    """A thief of nothing: his own keys from the first version on."""
    up, down = synced
    other = SignedUpstream(up.up, tmp_path / "other")
    shutil.copy(up.root / "keys", tmp_path / "saved")
    (other.root / "key").write_text(key(5).encode())
    other.commit(b"2")
    refused(down, "does not follow")


def test_keys_never_go_back(pair: Pair) -> None:
    up, down = pair
    tree, promise = up.up.head.tree, up.promise
    rotate(up.root, up.signing, "new")
    up.commit(b"2")
    down.synced()
    up.forge(key(1), tree=tree, promise=promise)
    refused(down, "version 1, and 2 was accepted")


def test_recovery_from_a_stolen_key(synced: Pair, tmp_path: Path) -> None:
    """docs/SIGNING.md, "A stolen key": who met the new keys first is safe, the others get help."""
    up, down = synced
    late_root = tmp_path / "late"
    shutil.copytree(down.root, late_root)
    late = Downstream(down.name, tmp_path / "late-dest", late_root)
    late.dest.mkdir()
    late.configure(dest=str(late.dest))
    late.synced("--adopt")
    thief = tmp_path / "thief"
    shutil.copytree(up.root, thief)
    # The upstream replaces the key, and one downstream hears of it.
    rotate(up.root, up.signing, "new")
    up.commit(b"honest")
    down.synced()
    # The thief holds the old key, makes a key of his own follow it, and shows that to both.
    stolen = SignedUpstream(up.up, tmp_path / "stolen")
    shutil.rmtree(stolen.root)
    shutil.copytree(thief, stolen.root)
    rotate(stolen.root, stolen.signing, "evil")
    stolen.commit(b"evil")
    refused(down, "does not follow")
    late.synced()
    assert (late.dest / "new").read_bytes() == b"evil"
    # The upstream is itself again; the deceived one refuses it until its administrator steps in.
    up.commit(b"honest again")
    down.synced()
    refused(late, "does not follow")
    late.configure(keys=(up.keys.signer.public,))
    late.synced()
    assert (late.dest / "new").read_bytes() == b"honest again"
    stolen.commit(b"evil again")
    refused(late, "does not follow")
    refused(down, "does not follow")


def test_a_key_that_is_revoked(pair: Pair) -> None:
    up, down = pair
    rotate(up.root, up.signing, "new", keep=True)
    up.commit(b"2")
    down.synced()
    up.forge(key(1))
    down.synced()
    revoke(up.root, up.signing, key(1).public)
    up.commit(b"3")
    down.synced()
    up.forge(key(1))
    refused(down, "not trusted")


def test_lost_keys_are_no_reason_to_trust_the_next(synced: Pair) -> None:
    _, down = synced
    down.state_file.with_name("trusted").write_bytes(b"{")
    ended = down.sync("--adopt")
    assert (ended.code, "trusted" in ended.err) == (11, True)


# ---------------------------------------------------------------- the clock


def test_a_renewal_is_a_sync_without_changes(synced: Pair) -> None:
    up, down = synced
    before = down.state
    up.forge(key(1), days=14)
    assert down.synced()["changed"] is False
    assert down.state.serial == before.serial + 1
    assert down.state.valid_until > before.valid_until


@pytest.mark.parametrize("verify", ["pin", "require"])
def test_nothing_new_counts_while_the_commit_is_valid(pair: Pair, verify: str) -> None:
    _, down = pair
    down.configure(verify=verify, keys=KEYS)
    down.synced()
    assert down.synced()["stale"] is False
    past = down.state.committed - DAY
    states.save(down.state_file, replace(down.state, valid_until=past))
    ended = down.sync("--json")
    assert ended.code == (54 if verify == "require" else 0)
    assert ended.events("sync")[0]["stale"] is True
    assert "held back" in ended.err
    assert down.run("status").code == 54
    down.configure(verify="off")
    assert down.synced()["stale"] is False


@pytest.mark.parametrize("verify", ["pin", "require"])
def test_a_clock_that_is_a_year_off_is_said(pair: Pair, verify: str) -> None:
    """To a machine a year ahead, every commit was valid until a year ago."""
    up, down = pair
    down.configure(verify=verify, keys=KEYS)
    up.forge(key(1), offset=365)
    refused(down, "is dated", "clock", code=54)
    up.forge(key(1), offset=-365)
    if verify == "require":
        refused(down, "was valid until", "clock", code=54)
    else:
        ended = down.sync()
        assert (ended.code, "was valid until" in ended.err) == (0, True)


@pytest.mark.parametrize("years", [1, -1])
@pytest.mark.parametrize("verify", ["pin", "require"])
def test_the_upstream_s_clock_was_a_year_off(pair: Pair, verify: str, years: int) -> None:
    """Its next commit sets that right, though nothing changed, and times go back."""
    up, down = pair
    down.configure(verify=verify, keys=KEYS)
    down.synced()
    up.forge(key(1), offset=365 * years)
    wrong = up.up.head
    if (verify, years) != ("pin", -1):
        refused(down, "clock", code=54)
    else:
        assert "was valid until" in down.sync().err
    up.commit()
    assert up.up.head.info.serial == wrong.info.serial + 1
    assert up.up.head.tree == wrong.tree
    assert (up.up.head.time < wrong.time) == (years > 0)
    assert down.synced()["stale"] is False
    assert down.state.serial == up.up.head.info.serial
    right = up.up.head
    up.commit()
    assert up.up.head == right


def test_clocks_may_differ_by_less_than_an_hour(pair: Pair) -> None:
    up, down = pair
    down.configure(verify="require", keys=KEYS)
    up.forge(key(1), offset=0.04)
    down.synced()
    up.forge(key(1), promise=up.promise._replace(valid_until=up.up.head.time - 4000))
    down.synced()


# ---------------------------------------------------------------- content


def test_content_without_a_digest(place: Site, tmp_path: Path) -> None:
    up = place.upstream(digest="off")
    up.put(b"folder/empty")
    signed = SignedUpstream(up, tmp_path / "keys")
    signed.commit(b"1")
    down = place.downstream(up, keys=KEYS)
    ended = down.sync()
    assert ended.code == 57
    assert "no digest" in ended.err
    assert "undigested" in ended.err
    assert list(down.dest.iterdir()) == []
    down.configure(undigested="allow")
    down.synced()
    pinned = place.downstream(up)
    pinned.synced()


def test_a_second_upstream_has_what_the_first_one_forged(
    pair: Pair, place: Site, tmp_path: Path
) -> None:
    up, down = pair
    down.synced()
    up.commit(b"2")
    copy = tmp_path / "copy.git"
    shutil.copytree(up.up.places.repository, copy)
    up.resign(key(2))
    down.configure(url=(place.url, str(copy)))
    ended = down.sync()
    assert ended.code == 0, ended
    assert "not trusted" in ended.err
    assert (down.dest / "new").read_bytes() == b"2"


def test_doctor_believes_no_stranger(synced: Pair) -> None:
    up, down = synced
    assert down.run("doctor", down.name).code == 0
    up.forge(key(2))
    ended = down.run("doctor", down.name)
    assert ended.code == 57, ended
    assert "not trusted" in ended.out
