"""Commits that several keys sign, on one machine and on two: made, believed, and stolen."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from huai_client.metadata.signatures import load_trusted
from huai_schema.codec.keys import Keys
from huai_schema.codec.signing import COSIGNED, join_commit, split_commit, split_cosigned
from huai_server.config.tables import Cosigner
from huai_server.signing.keys import configure, open_keys, revoke, rotate
from huai_server.signing.signer import SigningError
from huai_server.static.newest import newest_published
from huai_server.store.check import check_repository
from tests.support.committing import run_server
from tests.support.keys import allow, git_accepts, key, ssh_keygen_accepts, write_key
from tests.support.signed_upstream import SignedUpstream
from tests.support.upstream import Downstream, Site, Upstream, rsync_differences, site

Pair = tuple[SignedUpstream, Downstream]
PUBLIC = tuple(key(number).public for number in (1, 2, 3))


@pytest.fixture(name="pair")
def cosigned_pair(place: Site, tmp_path: Path) -> Pair:
    """Two of three keys have to sign; nothing is committed yet."""
    up = place.upstream()
    up.put(b"file", b"1")
    signed = SignedUpstream(up, tmp_path / "keys")
    paths = [write_key(signed.root / f"other{number}", key(number)) for number in (2, 3)]
    cosigners = tuple(Cosigner(str(path)) for path in paths)
    signed.signing = structs.replace(signed.signing, cosigners=cosigners, threshold=2)
    return signed, place.downstream(up)


def trusted(down: Downstream) -> Keys:
    record = load_trusted(down.state_file.with_name("trusted"))
    assert record is not None
    return record.keys


def refused(down: Downstream, reason: str) -> None:
    before = down.state
    ended = down.sync()
    assert ended.code == 57, ended
    assert reason in ended.err, ended.err
    assert down.state == before


def signatures(text: bytes, *numbers: int) -> bytes:
    return b"".join(key(number).sign("huai-keys", text).encode() for number in numbers)


def silent(up: SignedUpstream, *numbers: int) -> None:
    """Let these cosigners not answer any more."""
    changed = list(up.signing.cosigners)
    for number in numbers:
        public = Path(changed[number].key).with_name(f"other{number + 2}.pub")
        changed[number] = Cosigner(str(public), ("/bin/false",))
    up.signing = structs.replace(up.signing, cosigners=tuple(changed))


def test_two_of_three_sign_and_fewer_make_no_commit(pair: Pair, tmp_path: Path) -> None:
    up, down = pair
    up.commit(b"1")
    down.synced()
    assert trusted(down) == Keys(1, PUBLIC, 2)
    allowed = allow(tmp_path / "allowed", key(1).public)
    assert git_accepts(up.up.places.repository, allowed)  # git's signature is the first one
    signed = split_commit(up.raw())
    assert signed is not None
    own, [cosignature] = split_cosigned(signed.payload)
    allow(tmp_path / "allowed", key(2).public)
    assert ssh_keygen_accepts(tmp_path / "allowed", COSIGNED, own, cosignature)
    assert check_repository(up.up.name, up.up.repository).faults == ()
    silent(up, 0)
    up.commit(b"2")
    down.synced()
    before = up.up.head
    silent(up, 0, 1)
    with pytest.raises(SigningError, match="1 of 2 signatures: /bin/false"):
        up.commit(b"3")
    assert up.up.head == before
    down.synced()


def test_one_stolen_key_signs_nothing(pair: Pair) -> None:
    up, down = pair
    up.commit(b"1")
    down.synced()
    for cosigners in ((), (key(1),), (key(9),), (key(1), key(9))):
        up.forge(key(1), cosigners=cosigners)
        refused(down, "signed by 1 of the trusted keys, and 2 must")
    up.forge(key(9), cosigners=(key(1), key(2)))
    refused(down, f"signed by {key(9).public}, which is not trusted")
    up.forge(key(3), cosigners=(key(2),))
    down.synced()


def test_co_signatures_that_are_wrong(pair: Pair) -> None:
    up, down = pair
    up.commit(b"1")
    down.synced()
    old = split_commit(up.raw())
    up.commit(b"2")
    new = split_commit(up.raw())
    assert old is not None and new is not None  # noqa: PT018
    own, [cosignature] = split_cosigned(new.payload)
    line = new.payload[len(own) :]
    for payload, reason in (
        (own + old.payload[len(split_cosigned(old.payload)[0]) :], "not of these bytes"),
        (own + line.replace(b": ", b":  "), "must be the last lines"),
        (own + line + b"More: text\n", "must be the last lines"),
        (own + line * 16, "more than 15"),
        (own + b"Huai-Cosignature: AAAA\n", "signature of the upstream's commit is not valid"),
        (own + line[:-20] + b"\n", "signature of the upstream's commit is not valid"),
    ):
        up.replace(join_commit(payload, key(1).sign("git", payload).encode()))
        refused(down, reason)
    up.replace(join_commit(own, cosignature))  # which is not made for git
    refused(down, "signature of the upstream's commit is not valid")


def test_one_stolen_key_makes_no_keys(pair: Pair) -> None:
    up, down = pair
    up.commit(b"1")
    down.synced()
    text = Keys(2, (key(9).public,)).encode()
    stolen = signatures(text, 1, 9)
    chain = (up.root / "keys").read_bytes()
    (up.root / "keys").write_bytes(chain + text + stolen)
    with pytest.raises(SigningError, match="not signed by 2 keys of the previous version"):
        up.commit(b"2")
    (up.root / "keys").write_bytes(chain)


def test_rotations_are_followed(pair: Pair) -> None:
    up, down = pair
    up.commit(b"1")
    down.synced()
    for _ in range(2):
        rotate(up.root, up.signing, "new")
    up.commit(b"2")
    down.synced()
    assert trusted(down) == Keys(3, (up.keys.signer.public, *PUBLIC[1:]), 2)
    silent(up, 0)
    with pytest.raises(SigningError, match="/bin/false"):
        rotate(up.root, up.signing, "new")
    with pytest.raises(SigningError, match="the key of a cosigner"):
        revoke(up.root, up.signing, key(2).public)
    up.signing = structs.replace(up.signing, cosigners=up.signing.cosigners[1:])
    configure(up.root, up.signing)
    up.commit(b"3")
    down.synced()
    assert trusted(down).keys == (up.keys.signer.public, key(3).public)


def test_an_upstream_that_begins_with_one_key(pair: Pair) -> None:
    up, down = pair
    signing = up.signing
    up.signing = structs.replace(signing, cosigners=(), threshold=1)
    up.commit(b"1")
    down.synced()
    up.signing = signing
    with pytest.raises(SigningError, match="other cosigners") as caught:
        up.commit(b"2")
    assert "key configure" in caught.value.hint
    assert configure(up.root, signing).chain.newest == Keys(2, PUBLIC, 2)
    up.commit(b"2")
    down.synced()
    assert trusted(down) == Keys(2, PUBLIC, 2)
    with pytest.raises(SigningError, match="a threshold of 4 of 3 keys"):
        configure(up.root, structs.replace(signing, threshold=4))
    assert open_keys(up.root, signing).chain.newest.version == 2


def test_a_downstream_may_ask_for_more(pair: Pair) -> None:
    """Also of the next version of the keys, which one key could sign upstream."""
    up, down = pair
    up.signing = structs.replace(up.signing, threshold=1)
    up.commit(b"1")
    down.configure(keys=PUBLIC, threshold=2, verify="require")
    refused(down, "signed by 1 of the trusted keys, and 2 must")
    up.forge(key(1), cosigners=(key(2),))
    down.synced()
    text = Keys(2, (key(8).public, key(9).public)).encode()
    chain = (up.root / "keys").read_bytes()
    (up.root / "keys").write_bytes(chain + text + signatures(text, 1, 9))
    up.signing = structs.replace(
        up.signing,
        key=str(write_key(up.root / "thief", key(9))),
        cosigners=(Cosigner(str(write_key(up.root / "thief2", key(8)))),),
    )
    up.commit(b"2")
    up.forge(key(9), cosigners=(key(8),))
    refused(down, "does not follow")
    down.configure(keys=PUBLIC[:1], threshold=2)
    assert down.sync().code == 40


def test_the_command_line(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("content")
    assert run_server(root, "add", "demo", str(tree)).returncode == 0
    paths = [write_key(tmp_path / f"key{number}", key(number)) for number in (1, 2)]
    with (root / "server.toml").open("a") as file:
        file.write(f'\n[signing]\nkey = "{paths[0]}"\n')
    assert run_server(root, "commit", "demo").returncode == 0
    with (root / "server.toml").open("a") as file:
        file.write(f'threshold = 2\n[[signing.cosigners]]\nkey = "{paths[1]}"\n')
    ended = run_server(root, "commit", "demo")
    assert (ended.returncode, "key configure" in ended.stderr) == (57, True)
    configured = run_server(root, "key", "configure").stdout
    assert "version 2 of the keys, 2 of 2 sign" in configured
    assert "threshold = 2" in configured
    assert run_server(root, "commit", "demo").returncode == 0
    lines = run_server(root, "key", "show", "--json").stdout.splitlines()
    assert [json.loads(line)["key"] for line in lines] == [*PUBLIC[:2]]


Ended = subprocess.CompletedProcess[str]


class Elsewhere:
    """An upstream with one key, and an operator with the other; each has a machine of its own."""

    def __init__(self, up: Upstream, folder: Path) -> None:
        self.up, self.folder, self.operator = up, folder, folder / "operator"
        self.second = write_key(folder / "second", key(2))
        write_key(folder / "first", key(1))
        self.toml = up.root / "server.toml"
        self.without = self.toml.read_text()
        self.sign_with(f'key = "{self.second}"')
        self.server("key", "show", code=0)
        self.commit(b"1", code=0)
        self.sign_with(f'key = "{self.second}.pub"\ncommand = ["/bin/false"]')
        self.operator.mkdir()
        (self.operator / "server.toml").write_text(f'[signing]\nkey = "{self.second}"\n')

    def sign_with(self, cosigner: str, threshold: int = 2) -> None:
        self.toml.write_text(
            f'{self.without}\n[signing]\nkey = "{self.folder / "first"}"\n'
            f"threshold = {threshold}\npending = true\n[[signing.cosigners]]\n{cosigner}\n"
        )

    def server(self, *arguments: str, code: int) -> Ended:
        done = run_server(self.up.root, *arguments)
        assert done.returncode == code, done
        return done

    def commit(self, content: bytes, code: int = 57) -> Ended:
        self.up.put(b"file", content)
        return self.server("commit", self.up.name, code=code)

    def write_request(self, name: str) -> Path:
        self.server("key", "pending", self.up.name, str(self.folder / name), code=0)
        return self.folder / name

    def cosign(self, request: Path, code: int = 0) -> tuple[Path, Ended]:
        signature = self.folder / f"{request.name}.sig"
        words = ("key", "cosign", str(request), "--output", str(signature))
        done = run_server(self.operator, *words)
        assert done.returncode == code, done
        return signature, done

    def attach(self, signature: Path, code: int = 0) -> Ended:
        return self.server("key", "attach", self.up.name, str(signature), code=code)

    @property
    def waiting(self) -> int:
        """The serial of the commit that waits, or 0."""
        pending = self.up.repository.pending()
        return pending[1].info.serial if pending else 0


def test_a_commit_is_published_when_it_was_signed_elsewhere(short_path: Path) -> None:
    with site(short_path / "site") as place:
        tree = place.upstream()
        up, keys = Elsewhere(tree, short_path), (key(1).public, key(2).public)
        down = place.downstream(tree, verify="require", keys=keys, threshold=2)
        down.synced()
        assert "waits for 1 more of 2 signatures" in up.commit(b"22").stderr
        assert (up.up.head.info.serial, up.waiting) == (1, 2)
        assert down.synced()["serial"] == 1
        status = up.server("status", tree.name, code=0).stdout
        assert "serial 1, committed" in status
        assert ", serial 2 waits for signatures since" in status
        assert json.loads(up.server("status", "--json", code=0).stdout)["pending"] == 2
        request = up.write_request("request")
        output = run_server(up.operator, "key", "cosign", str(request), "--json").stdout
        event: dict[str, Any] = json.loads(output)
        assert (event["serial"], event["since"], event["signed"]) == (2, None, False)
        assert event["totals"]["entries"] == 2
        signature, _ = up.cosign(request)
        assert newest_published(up.up.repository.path) == up.up.head.commit
        up.attach(signature)
        assert (up.up.head.info.serial, up.waiting) == (2, 0)
        assert newest_published(up.up.repository.path) == up.up.head.commit
        assert json.loads(up.server("status", "--json", code=0).stdout)["pending"] is None
        assert down.synced()["serial"] == 2
        assert rsync_differences(tree, down) == ""
        assert check_repository(tree.name, up.up.repository).faults == ()
        up.commit(b"333")
        error = up.attach(signature, code=57).stderr
        assert "not a signature of the commit with serial 3" in error
        _, done = up.cosign(up.write_request("next"))
        assert "since serial 2: 0 added, 1 changed, 0 removed" in done.stdout
        assert "serial 3 was signed before" in up.cosign(request, code=57)[1].stderr
