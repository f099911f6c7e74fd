"""The keys of a server: made once, rotated, revoked; consistent after any kill."""

import shutil
from pathlib import Path

import pytest
from msgspec import structs

from huai_schema.codec.keys import KeyChain, Keys
from huai_server.config.tables import Signing
from huai_server.signing.keys import make_key, open_keys, revoke, rotate
from huai_server.signing.signer import SigningError
from tests.support.keys import agent, key, write_key
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
    assert keys.chain.newest == Keys(1, (key(1).public,))
    assert KeyChain.decode((root / "keys").read_bytes()) == keys.chain
    assert open_keys(root, signing(root)).chain == keys.chain


def test_a_key_that_does_not_count_signs_nothing(root: Path) -> None:
    open_keys(root, signing(root))
    write_key(root / "key", key(2))
    with pytest.raises(SigningError, match="not one of the trusted keys"):
        open_keys(root, signing(root))


def test_damaged_keys_are_told_of(root: Path) -> None:
    open_keys(root, signing(root))
    (root / "keys").write_bytes((root / "keys").read_bytes()[:-40])
    with pytest.raises(SigningError) as caught:
        open_keys(root, signing(root))
    assert "git cat-file" in caught.value.hint


def test_a_new_key_is_its_owner_s_alone(tmp_path: Path) -> None:
    public = make_key(tmp_path / "new", "alice")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    assert open_keys(tmp_path, Signing(str(tmp_path / "new"))).signer.public == public
    with pytest.raises(SigningError, match="exists already"):
        make_key(tmp_path / "new", "alice")


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
    with pytest.raises(SigningError, match="this key signs the commits"):
        revoke(root, signing(root), keys.signer.public)
    with pytest.raises(SigningError, match="not a trusted key"):
        revoke(root, signing(root), key(9).public)
    left = revoke(root, signing(root), key(1).public)
    assert left.chain.newest == Keys(3, (keys.signer.public,))
    assert open_keys(root, signing(root)).chain == left.chain


def elsewhere(root: Path) -> Signing:
    """Configure a program that signs with private keys; the server has the public ones."""
    public = (root / "key.pub").rename(root / "public")
    vault = root.parent / "vault"
    vault.mkdir()
    (root / "key").rename(vault / "old")
    write_key(vault / "new", key(2)).with_name("new.pub").rename(root / "new.pub")
    (vault / "old.pub").write_bytes(public.read_bytes())
    (vault / "new.pub").write_bytes((root / "new.pub").read_bytes())
    program = root.parent / "sign"
    program.write_text(
        "#!/bin/sh\n"
        f'for name in old new; do cmp -s "$2" {vault}/$name.pub && '
        f"exec ssh-keygen -q -Y sign -n $1 -f {vault}/$name; done\nexit 4\n"
    )
    program.chmod(0o755)
    return Signing(str(public), (str(program), "{namespace}", "{key}"))


def test_a_key_elsewhere_is_replaced_by_another_one_there(root: Path) -> None:
    settings = elsewhere(root)
    open_keys(root, settings)
    keys = rotate(root, settings, "new", to=root / "new.pub")
    assert keys.chain.newest == Keys(2, (key(2).public,))
    again = open_keys(root, settings)
    assert (again.signer.public, again.chain) == (key(2).public, keys.chain)
    again.signer.sign("git", b"a message")
    names = ["keys", "keys.lock", "new.pub", "public"]
    assert sorted(path.name for path in root.iterdir()) == names


def test_a_key_elsewhere_that_is_kept_may_come_back(root: Path) -> None:
    settings = elsewhere(root)
    shutil.copy(root / "public", root / "old.pub")
    rotate(root, settings, "new", to=root / "new.pub", keep=True)
    keys = rotate(root, settings, "new", to=root / "old.pub", keep=True)
    assert keys.chain.newest == Keys(3, (key(1).public, key(2).public))


def test_an_agent_s_key_is_replaced(
    root: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Signing(str((root / "key.pub").rename(root / "public")))
    new = write_key(root / "other", key(2))
    public = (root / "other.pub").rename(root / "new.pub")
    with agent(short_path, root / "key") as socket:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        before = open_keys(root, settings)
        with pytest.raises(SigningError, match="exit code"):
            rotate(root, settings, "new", to=public)  # the agent does not have it
        assert open_keys(root, settings).chain == before.chain
    with agent(short_path, root / "key", new) as socket:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        assert rotate(root, settings, "new", to=public).chain.newest == Keys(2, (key(2).public,))
        assert open_keys(root, settings).signer.public == key(2).public


def test_what_cannot_take_the_place_of_a_key(root: Path) -> None:
    write_key(root / "new", key(2))
    with pytest.raises(SigningError, match="--to does not apply"):
        rotate(root, signing(root), "new", to=root / "new.pub")
    settings = Signing(
        str(root / "key.pub"), ("ssh-keygen", "-Y", "sign", "-n", "{namespace}", "-f")
    )
    settings = structs.replace(settings, command=(*settings.command, str(root / "key")))
    before = open_keys(root, settings)
    with pytest.raises(SigningError) as caught:
        rotate(root, settings, "new")
    assert "--to NEW.pub" in caught.value.hint
    for path, reason in (
        (root / "new", "not a public key"),
        (root / "key.pub", "this key signs already"),
        (root / "new.pub", "signed by"),  # the command knows one key only
        (root / "none", "No such file"),
    ):
        with pytest.raises(SigningError, match=reason):
            rotate(root, settings, "new", to=path)
    assert open_keys(root, settings).chain == before.chain
    assert not list(root.glob("*.next*"))


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_rotation_that_is_killed_anywhere_leaves_the_old_or_the_new(
    root: Path, tmp_path: Path, *, is_elsewhere: bool
) -> None:
    own, to = (elsewhere(root), root / "new.pub") if is_elsewhere else (signing(root), None)
    open_keys(root, own)
    saved = tmp_path / "saved"
    shutil.copytree(root, saved)

    def turn() -> int:
        return rotate(root, own, "new", to=to).chain.newest.version

    outcome = supervise(CHANGING, turn, never)
    assert outcome.result == 2
    versions = set()
    for call in outcome.calls:
        shutil.rmtree(root)
        shutil.copytree(saved, root)
        cut = supervise(CHANGING, turn, at(call.step, KILL))
        assert cut.killed, call
        keys = open_keys(root, own)
        versions.add(keys.chain.newest.version)
        assert keys.signer.public in keys.chain.newest.keys
        assert (keys.signer.public == key(1).public) == (keys.chain.newest.version == 1), call
        if keys.chain.newest.version == 1 or not is_elsewhere:
            assert rotate(root, own, "next", to=to).chain.newest.version in (2, 3)
        assert not list(root.glob("*.next*")), call
    assert versions == {1, 2}
