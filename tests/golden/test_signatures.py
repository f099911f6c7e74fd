"""The signed example of FORMAT.md, compared with the program, git, ssh-keygen and an oracle."""

import re
from pathlib import Path
from random import Random

import pytest

from huai_native._native import ListingHashes, verify_signature
from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_schema.codec.commits import CommitInfo, Counts, Totals, decode_commit
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.codec.keys import ITEM, KeyChain, Keys, begin_chain, read_keys
from huai_schema.codec.keys import NAMESPACE as KEYS_NAMESPACE
from huai_schema.codec.signing import NAMESPACE, Promise, join_commit, split_commit
from tests.golden.test_format import PAGE, data_of, example
from tests.support.committing import git
from tests.support.git_objects import object_id
from tests.support.keys import allow, git_accepts, key, ssh_keygen_accepts
from tests.support.schema.listing_hash import listing_hash
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import Tree, directory, files, random_tree, snapshot, tree_of

IDENTITY = "00112233445566778899aabbccddeeff"
SHOWN = [
    (kind, oid, data_of(kind, text))
    for kind, oid, text in re.findall(
        r"^```signed (\w+) (\w{40})\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
]


def test_the_signed_example_is_what_the_program_writes() -> None:
    objects, signer = MemoryObjects(), key(7)
    tree = snapshot(example(), objects).tree
    first = Keys(1, (signer.public,))
    chain = begin_chain(first, signer.sign(KEYS_NAMESPACE, first.encode()).encode())
    descriptor = Descriptor("demo", ("rsync://mirror.example/demo/",), identity=IDENTITY)
    root = write_root(descriptor, tree, objects, {ITEM: chain.encode()})
    info = CommitInfo("demo", 2, Totals(4, 3, 1, 17), Counts())
    promise = Promise(IDENTITY, 1_700_000_003 + 7 * 86_400, listing_hash(root, objects))
    committer = "huai <huai@localhost> 1700000003 +0000"
    head = f"tree {root.hex()}\nauthor {committer}\ncommitter {committer}\n\n"
    payload = (head + info.encode() + promise.encode()).encode()
    commit = join_commit(payload, signer.sign(NAMESPACE, payload).encode())
    signatures = [
        ("blob", descriptor.encode()),
        ("blob", chain.encode()),
        ("tree", objects.read(root, "tree")),
        ("commit", commit),
    ]
    assert [(kind, data) for kind, _, data in SHOWN] == signatures
    assert [oid for _, oid, _ in SHOWN] == [object_id(*each).hex() for each in signatures]  # type: ignore[arg-type]


def test_the_attested_example_is_what_the_program_writes(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```attestation\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    read = SignedAttestation.decode(block.encode())
    assert read.key == key(7).public
    urls = ("https://mirror.example/demo", "rsync://mirror.example/demo")
    attestation = Attestation(
        "demo", IDENTITY, 2, "8a" * 20, 1_700_000_100, partial=False, urls=urls
    )
    assert read.attestation == attestation
    assert attestation.signed(key(7).sign).decode() == block
    text = attestation.encode()
    allowed = tmp_path / "allowed"
    allowed.write_text(f"huai@localhost {key(7).public}\n")
    signature = block.encode().removeprefix(text)
    assert ssh_keygen_accepts(allowed, "huai-attestation", text, signature)
    assert not ssh_keygen_accepts(allowed, "git", text, signature)


def test_the_signed_example_reads_back() -> None:
    *_, (_, _, commit) = SHOWN
    signed = split_commit(commit)
    assert signed is not None
    assert verify_signature(NAMESPACE, *signed) == key(7).public
    assert decode_commit(commit).info().serial == 2  # like an older reader
    objects = MemoryObjects()
    for kind, _, data in SHOWN:
        objects.write(kind, data)
    chain = read_keys(decode_commit(commit).tree, objects)
    assert chain == KeyChain.decode(SHOWN[1][2])
    assert chain is not None
    assert chain.newest.keys == (key(7).public,)


def test_git_and_ssh_keygen_accept_the_signed_example(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet", "--bare")
    objects = MemoryObjects()
    snapshot(example(), objects)
    below = [(kind, data) for kind, data in objects.objects.values()]
    for kind, data in [*below, *((kind, data) for kind, _, data in SHOWN)]:
        written = git(repository, "hash-object", "-w", "-t", kind, "--stdin", stdin=data)
        assert written == object_id(kind, data).hex()
    commit = SHOWN[-1][1]
    allowed = allow(tmp_path / "allowed", key(7).public)
    assert git_accepts(repository, allowed, commit)
    assert not git_accepts(repository, allow(tmp_path / "others", key(8).public), commit)
    git(repository, "update-ref", "refs/heads/main", commit)
    git(repository, "fsck", "--strict", "--full")
    (version,) = KeyChain.decode(SHOWN[1][2]).versions
    text, (signature,) = version.keys.encode(), version.signatures
    assert ssh_keygen_accepts(allowed, "huai-keys", text, signature)
    assert not ssh_keygen_accepts(allowed, "git", text, signature)


def trees() -> dict[str, Tree]:
    return {
        "empty": tree_of(),
        "example": example(),
        "flat": tree_of(*files(b"", 10_000)),
        "deep": tree_of(*(directory(b"/".join([b"d"] * n)) for n in range(1, 400))),
        "random": random_tree(Random(3), 5_000),
    }


@pytest.mark.parametrize("name", list(trees()))
def test_a_listing_hash_is_the_oracle_s(name: str) -> None:
    objects = MemoryObjects()
    root = write_root(Descriptor("m"), snapshot(trees()[name], objects).tree, objects)
    assert ListingHashes(b"").of_tree(root, objects) == listing_hash(root, objects)
