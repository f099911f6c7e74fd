"""Commits that wait for signatures: their replacement, their signers, and refused signatures."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from huai_schema.codec.pending import PendingCommit
from huai_schema.codec.signing import COSIGNED
from huai_schema.errors import ExitCode, FormatError
from huai_server.config.tables import Cosigner
from huai_server.signing.cosigned import examine
from huai_server.signing.keys import configure
from huai_server.signing.signer import SigningError, from_private
from huai_server.store.module_state import newest_commit
from huai_server.store.repository import PendingCommitError
from tests.support.committing import NAME
from tests.support.keys import key, write_key
from tests.support.signing_elsewhere import Elsewhere


@pytest.fixture(name="pair")
def signed_elsewhere(short_path: Path) -> Elsewhere:
    return Elsewhere(short_path)


def waits(pair: Elsewhere, content: str) -> None:
    with pytest.raises(PendingCommitError, match="waits for") as caught:
        pair.commit(content)
    assert caught.value.exit_code == ExitCode.UNSIGNED


def refused(reason: str, run: Callable[[], object]) -> None:
    with pytest.raises(SigningError, match=reason) as caught:
        run()
    assert caught.value.exit_code == ExitCode.UNSIGNED


def test_it_is_published_with_the_signature_that_it_lacks(pair: Elsewhere) -> None:
    waits(pair, "22")
    assert pair.state == (1, 2, 0)
    waits(pair, "22")  # renewing keeps the time and the serial
    assert pair.state == (1, 2, 0)
    head = pair.attach(pair.cosign(pair.write_request()))
    assert head == newest_commit(NAME, pair.up.places)[0]
    assert pair.state == (2, 0, 0)
    pair.up.prove_sound()
    refused("no commit waits", lambda: pair.attach(b""))


def test_the_first_commit_of_a_module_may_wait_too(short_path: Path) -> None:
    pair = Elsewhere(short_path, begun=False)
    waits(pair, "22")
    signature = pair.cosign(pair.write_request())
    waits(pair, "22")  # of the same module
    assert pair.attach(signature) is not None
    assert pair.state == (1, 0, 0)
    pair.up.prove_sound()


def test_what_a_list_named_is_not_forgotten_while_its_commit_waits(pair: Elsewhere) -> None:
    for path in ("listed", "later"):
        pair.up.write(path)
        with pytest.raises(PendingCommitError):
            pair.commit_listed(path)
    pair.attach(pair.cosign(pair.write_request()))
    assert pair.up.paths() == {"file", "later", "listed"}


def test_three_keys_on_three_machines(short_path: Path) -> None:
    pair = Elsewhere(short_path, numbers=(2, 3))
    waits(pair, "22")
    request = pair.write_request()
    for _ in range(2):
        assert pair.attach(pair.cosign(request)) is None  # one key counts once
    assert pair.state == (1, 2, 1)
    waits(pair, "22")
    assert pair.state == (1, 2, 1)
    third = key(3).sign(COSIGNED, _payload(pair)).encode()
    assert pair.attach(third) is not None
    pair.up.prove_sound()


def test_a_newer_commit_takes_its_place(pair: Elsewhere) -> None:
    waits(pair, "22")
    old = pair.write_request("old")
    stale = pair.cosign(old)
    waits(pair, "333")
    assert pair.state == (1, 3, 0)  # no two have one serial: the old one may be signed
    refused("not a signature of the commit with serial 3", lambda: pair.attach(stale))
    new = pair.write_request("new")
    signature = pair.cosign(new)
    assert pair.cosign(new) == signature
    refused("serial 3 was signed before", lambda: pair.cosign(old))
    assert pair.attach(signature) is not None


def test_a_tree_that_is_as_before_lets_nothing_wait(pair: Elsewhere) -> None:
    waits(pair, "22")
    assert pair.commit("1").info.serial == 1
    assert pair.state == (1, 0, 0)
    waits(pair, "22")
    assert pair.state == (1, 3, 0)  # the first one may be signed
    answering = (Cosigner(str(pair.folder / "key2")),)
    pair.signing = structs.replace(pair.signing, cosigners=answering)
    assert pair.commit("22").info.serial == 4  # it answers again
    assert pair.state == (4, 0, 0)


def test_signatures_of_others_are_refused(pair: Elsewhere) -> None:
    waits(pair, "22")
    payload = _payload(pair)
    for signature in (b"\0" * 5000, b"", key(2).sign("git", payload).encode()):
        refused("not a signature of the commit", partial(pair.attach, signature))
    for number in (1, 9):
        foreign = key(number).sign(COSIGNED, payload).encode()
        refused("not one of the cosigners", partial(pair.attach, foreign))
    assert pair.state == (1, 2, 0)
    refused("not one of the trusted keys", lambda: pair.cosign(pair.write_request(), number=9))


def test_what_waited_for_too_long(pair: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    waits(pair, "22")
    request = pair.write_request()
    signature = pair.cosign(request)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    refused("has expired", lambda: pair.attach(signature))
    refused("no longer valid", lambda: pair.cosign(request))
    waits(pair, "22")
    assert pair.state == (1, 3, 0)
    monkeypatch.setattr(time, "time", lambda: now - 3601)
    refused("an hour ahead", lambda: pair.cosign(pair.write_request()))


def test_keys_that_changed_since(pair: Elsewhere) -> None:
    waits(pair, "22")
    signature = pair.cosign(pair.write_request())
    cosigners = tuple(Cosigner(str(pair.folder / f"key{number}")) for number in (2, 3))
    write_key(pair.folder / "key3", key(3))
    pair.signing = structs.replace(pair.signing, cosigners=cosigners)
    configure(pair.up.root, pair.signing)
    refused("the keys changed", lambda: pair.attach(signature))


def test_other_keys_than_those_that_were_signed_before(short_path: Path) -> None:
    (short_path / "a").mkdir()
    (short_path / "b").mkdir()
    pair, thief = Elsewhere(short_path / "a"), Elsewhere(short_path / "b", numbers=(3, 2))
    waits(pair, "22")
    pair.cosign(pair.write_request())
    waits(thief, "22")
    identity, own = (
        each.up.repository.snapshot(each.up.head)[0].identity for each in (pair, thief)
    )
    assert identity != own
    (pair.operator / "cosigned" / str(identity)).rename(pair.operator / "cosigned" / str(own))
    thief.operator = pair.operator
    waits(thief, "333")
    refused("do not follow from version 1", lambda: thief.cosign(thief.write_request()))


def test_a_request_that_is_damaged(pair: Elsewhere) -> None:
    waits(pair, "22")
    request = pair.write_request()
    sound = request.read_bytes()
    for place in (0, 30, 70, len(sound) - 30):
        request.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        refused("refused to sign", lambda: pair.cosign(request))
    request.write_bytes(sound[:-200])
    refused("refused to sign", lambda: pair.cosign(request))
    request.write_bytes(sound)
    assert examine(pair.operator, request, from_private(key(2))).former is None
    assert not list((pair.operator / "cosigned").iterdir())


def test_a_signed_commit_is_none_that_waits(pair: Elsewhere) -> None:
    data = pair.up.repository.read(bytes.fromhex(pair.up.head.commit), "commit")
    with pytest.raises(FormatError, match="already signed"):
        PendingCommit.decode(data)


def _payload(pair: Elsewhere) -> bytes:
    pending = pair.up.repository.pending()
    assert pending is not None
    return pending[1].payload
