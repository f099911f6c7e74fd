"""Commits that are signed, in the eyes of git; renewed in time; made by the command line."""

import json
import time
from functools import partial
from pathlib import Path

import pytest

from huai_native._native import PrivateKey
from huai_program.durations import TimeLimit
from huai_schema.codec.signing import NAMESPACE, Promise
from huai_schema.errors import ExitCode
from huai_server.commit.commit import commit_tree
from huai_server.commit.next_commit import CommitSettings
from huai_server.config.tables import Signing
from huai_server.signing.keys import open_keys, rotate
from huai_server.store.repository import Seal
from tests.support.committing import NAME, Upstream, run_server
from tests.support.keys import allow, git_accepts, key, write_key
from tests.support.schema.listing_hash import listing_hash


class SignedUpstream(Upstream):
    """One that signs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root.mkdir()
        self.signing = Signing(str(write_key(self.root / "key", key(1))))

    def commit_signed(self) -> None:
        """Commit the tree."""
        settings = CommitSettings(self.module, open_keys(self.root, self.signing))
        commit_tree(NAME, self.module, self.places, load_settings=lambda: settings)

    def promise(self) -> Promise:
        """Return the promise of the newest commit."""
        return Promise.decode(self.git("log", "-1", "--format=%B", "main") + "\n")

    def prove(self, *public: str) -> None:
        """Prove the newest commit with git and the oracle."""
        self.prove_sound()
        allowed = allow(self.root / "allowed", *public)
        assert git_accepts(self.places.repository, allowed)
        tree = bytes.fromhex(self.head.tree)
        assert self.promise().listing == listing_hash(tree, self.repository)


@pytest.fixture
def upstream(tmp_path: Path) -> SignedUpstream:
    upstream = SignedUpstream(tmp_path)
    for number in range(300):
        upstream.write(f"d{number % 3}/f{number}", str(number))
    return upstream


def test_each_commit_is_signed(upstream: SignedUpstream) -> None:
    for number in range(3):
        upstream.write("new", "x" * number)
        upstream.commit_signed()
        assert upstream.head.info.serial == number + 1
        upstream.prove(key(1).public)
    assert not git_accepts(
        upstream.places.repository, allow(upstream.root / "others", key(2).public)
    )


def test_an_unsigned_module_begins_to_sign_and_stays_while_that_is_valid(
    upstream: SignedUpstream,
) -> None:
    upstream.commit()
    assert upstream.head.valid_until == 0
    upstream.commit_signed()
    before = upstream.head
    assert before.info.serial == 2
    upstream.prove(key(1).public)
    upstream.commit_signed()
    assert upstream.head == before


def test_a_commit_is_renewed_when_half_of_its_time_is_over(upstream: SignedUpstream) -> None:
    upstream.signing = Signing(upstream.signing.key, validity=TimeLimit("1h"))
    upstream.commit_signed()
    before = upstream.head
    assert before.valid_until > time.time() + 3000
    # Of a commit that holds for another hour a signature for three has less than half left.
    upstream.signing = Signing(upstream.signing.key, validity=TimeLimit("3h"))
    upstream.commit_signed()
    after = upstream.head
    assert (after.tree, after.info.serial) == (before.tree, 2)
    assert after.info.counts.total == 0
    assert after.info.totals == before.info.totals
    assert after.valid_until > before.valid_until + 3600
    upstream.prove(key(1).public)
    upstream.commit_signed()
    assert upstream.head == after


def test_a_rotation_is_a_commit(upstream: SignedUpstream) -> None:
    upstream.commit_signed()
    before, entries = upstream.head, upstream.entries_id
    keys = rotate(upstream.root, upstream.signing, "new")
    upstream.commit_signed()
    assert upstream.head.info.serial == before.info.serial + 1
    assert upstream.entries_id == entries
    upstream.prove(keys.signer.public)
    assert upstream.git("cat-file", "blob", "main:keys") == keys.chain.encode().decode().strip()
    upstream.places.listing_hashes.unlink()  # which is a cache
    upstream.write("new", "new")
    upstream.commit_signed()
    upstream.prove(keys.signer.public)


def test_check_looks_at_the_signature(upstream: SignedUpstream) -> None:
    upstream.commit_signed()
    head, promise = upstream.head, upstream.promise()
    for wrong, reason in (
        (promise._replace(identity="0" * 32), "another module"),
        (promise._replace(listing=bytes(32)), "another listing"),
    ):
        seal = Seal(wrong, partial(_sign, key(1)))
        info = head.info._replace(serial=upstream.head.info.serial + 1)
        upstream.repository.commit(bytes.fromhex(head.tree), info, upstream.head, seal=seal)
        assert reason in "".join(upstream.check().faults)
    for signer, reason in ((key(2), "does not count"), (key(1), "")):
        info = head.info._replace(serial=upstream.head.info.serial + 1)
        seal = Seal(promise, partial(_sign, signer))
        upstream.repository.commit(bytes.fromhex(head.tree), info, upstream.head, seal=seal)
        assert reason in "".join(upstream.check().faults)
    upstream.prove_sound()


def _sign(signer: PrivateKey, text: bytes) -> bytes:
    return signer.sign(NAMESPACE, text).encode()


def test_the_command_line(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("content")
    assert run_server(root, "add", NAME, str(tree)).returncode == 0
    assert run_server(root, "key", "show").returncode == ExitCode.CONFIG
    generated = run_server(root, "key", "new", str(root / "key"))
    assert generated.returncode == 0
    with (root / "server.toml").open("a") as file:
        file.write("\n" + "[signing]" + generated.stdout.partition("[signing]")[2])
    assert run_server(root, "commit", NAME).returncode == 0
    key_event = json.loads(run_server(root, "key", "show", "--json").stdout)
    assert key_event["fingerprint"] in generated.stdout
    allowed = tmp_path / "allowed"
    allowed.write_text(key_event["allowed_signers"] + "\n")
    repository = root / "modules" / NAME / "repository.git"
    assert git_accepts(repository, allowed)
    configured = (root / "server.toml").read_text()
    (root / "server.toml").write_text(configured.partition("[signing]")[0])
    refused = run_server(root, "commit", NAME)  # all downstreams would refuse it
    assert refused.returncode == ExitCode.CONFIG
    assert "[signing] is missing" in refused.stderr
    (root / "server.toml").write_text(configured)
    (root / "key").chmod(0o644)
    (tree / "file").write_text("changed")
    refused = run_server(root, "commit", NAME)
    assert refused.returncode == ExitCode.UNSIGNED
    assert "other users may read" in refused.stderr
    assert git_accepts(repository, allowed)  # the last commit stays
    (root / "server.toml").write_text(configured.partition("[signing]")[0])
    (root / "keys").rename(root / "former-keys")
    assert run_server(root, "commit", NAME).returncode == 0
