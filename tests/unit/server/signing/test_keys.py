"""The keys of a server: made once, rotated, revoked; killed anywhere, old or new."""

import shutil
from pathlib import Path

import pytest

from huai_schema.codec.keys import KeyChain
from huai_schema.errors import HuaiError
from huai_server.config import Signing
from huai_server.signing.errors import SigningError
from huai_server.signing.keys import make_key, open_keys, revoke, rotate
from tests.support.keys import key, write_key
from tests.support.system_calls import CHANGING, KILL, at, never, supervise


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    place.mkdir()
    write_key(place / "key", key(1))
    return place


def signing(root: Path) -> Signing:
    return Signing(str(root / "key"))


def test_the_first_version_has_the_key_that_signs(root: Path) -> None:
    keys = open_keys(root, signing(root))
    assert keys.chain.newest == (1, (key(1).public,))
    assert KeyChain.decode((root / "keys").read_bytes()) == keys.chain
    assert open_keys(root, signing(root)).chain == keys.chain


def test_a_key_that_does_not_count_signs_nothing(root: Path) -> None:
    open_keys(root, signing(root))
    write_key(root / "key", key(2))
    with pytest.raises(SigningError, match="none of those that count"):
        open_keys(root, signing(root))


def test_damaged_keys_are_told_of(root: Path) -> None:
    open_keys(root, signing(root))
    (root / "keys").write_bytes((root / "keys").read_bytes()[:-40])
    with pytest.raises(SigningError) as caught:
        open_keys(root, signing(root))
    assert "git cat-file" in caught.value.hint


def test_a_new_key_is_its_owner_s_alone(tmp_path: Path) -> None:
    public = make_key(tmp_path / "new", "somebody")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    assert open_keys(tmp_path, Signing(str(tmp_path / "new"))).signer.public == public
    with pytest.raises(SigningError, match="exists already"):
        make_key(tmp_path / "new", "somebody")


def test_a_rotation_replaces_the_key(root: Path) -> None:
    keys = rotate(root, signing(root), "new")
    assert keys.chain.newest.version == 2
    assert keys.chain.newest.keys == (keys.signer.public,)
    assert keys.signer.public != key(1).public
    again = open_keys(root, signing(root))
    assert (again.signer.public, again.chain) == (keys.signer.public, keys.chain)
    assert (root / "key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in root.iterdir()) == ["key", "key.pub", "keys", "keys.lock"]


def test_a_kept_key_is_revoked(root: Path) -> None:
    keys = rotate(root, signing(root), "new", keep=True)
    assert keys.chain.newest.keys == (keys.signer.public, key(1).public)
    with pytest.raises(SigningError, match="the key that signs"):
        revoke(root, signing(root), keys.signer.public)
    with pytest.raises(SigningError, match="no such key"):
        revoke(root, signing(root), key(9).public)
    left = revoke(root, signing(root), key(1).public)
    assert left.chain.newest == (3, (keys.signer.public,))
    assert open_keys(root, signing(root)).chain == left.chain


def test_an_agent_s_key_is_not_replaced(root: Path) -> None:
    with pytest.raises(HuaiError):
        rotate(root, Signing(str(root / "key.pub"), ("false",)), "new")


def test_a_rotation_that_is_killed_anywhere_leaves_the_old_or_the_new(
    root: Path, tmp_path: Path
) -> None:
    open_keys(root, signing(root))
    saved = tmp_path / "saved"
    shutil.copytree(root, saved)

    def turn() -> int:
        return rotate(root, signing(root), "new").chain.newest.version

    outcome = supervise(CHANGING, turn, never)
    assert outcome.result == 2
    versions = set()
    for call in outcome.calls:
        shutil.rmtree(root)
        shutil.copytree(saved, root)
        cut = supervise(CHANGING, turn, at(call.step, KILL))
        assert cut.killed, call
        found = open_keys(root, signing(root))
        versions.add(found.chain.newest.version)
        assert found.signer.public in found.chain.newest.keys
        assert (found.signer.public == key(1).public) == (found.chain.newest.version == 1), call
        assert rotate(root, signing(root), "next").chain.newest.version in (2, 3)
        assert not list(root.glob("*.next*")), call
    assert versions == {1, 2}
