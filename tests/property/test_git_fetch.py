"""Any input gives objects or an error of ours; packs of git give git's ids."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import WorkLimit
from huai_native._native import Packs
from tests.support.examples import examples
from tests.support.git_objects import object_id
from tests.support.http_fixtures import git
from tests.support.packs import (
    PackObjects,
    read_index,
    resolve,
)
from tests.support.schema.strategies import RANDOMS


def family(random: Random, size: int) -> list[bytes]:
    """Make contents from each other, so that deltas of all shapes occur."""
    blobs = [random.randbytes(random.randrange(3000)) for _ in range(2)]
    while len(blobs) < size:
        before = random.choice(blobs)
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(before) + 1)
            cut = at + random.choice([0, 0, 10, 70_000])
            new = random.choice([b"", random.randbytes(random.choice([1, 200, 70_000]))])
            before = before[:at] + new + before[cut:]
        blobs.append(before)
    return blobs


@examples(15)
@given(
    RANDOMS,
    st.sampled_from(["--delta-base-offset", "--no-reuse-delta"]),
    st.sampled_from(["--depth=50", "--depth=4095", "--depth=1"]),
    st.sampled_from([0, 10_000, 1 << 30]),
)
def test_what_git_packs(random: Random, form: str, depth: str, room: int) -> None:
    with TemporaryDirectory() as folder:
        top = Path(folder)
        git("init", "-q", "--bare", top / "all")
        contents = family(random, 25)
        for number, content in enumerate(contents):
            (top / str(number)).write_bytes(content)
        names = git(
            "-C", top / "all", "hash-object", "-w", "--stdin-paths",
            stdin="".join(f"{top}/{number}\n" for number in range(len(contents))).encode(),
        )  # fmt: skip
        options = ("--window=20", "-q", form, depth)
        base = top / "all" / "objects" / "pack" / "pack"
        name = git("-C", top / "all", "pack-objects", *options, base, stdin=names.encode())
        packed = Path(f"{base}-{name}.pack").read_bytes()
        index = read_index(Path(f"{base}-{name}.idx").read_bytes())
        assert resolve(packed, room=room, work=1 << 40) == index
        assert index.keys() == {bytes.fromhex(line) for line in names.split()}
        packs = Packs(1 << 20)
        packs.add(bytes(base.parent))
        for oid, content in zip(names.split(), contents, strict=True):
            assert packs.find(bytes.fromhex(oid)) == ("blob", content)
        check_thin(random, packs, names.split(), top)


def check_thin(random: Random, packs: Packs, names: list[str], top: Path) -> None:
    """Pack some of the objects against the others, which a second repository has."""
    store = PackObjects()
    old = random.sample(sorted(set(names)), len(set(names)) // 2)
    for name in old:
        location = packs.find(bytes.fromhex(name))
        assert location is not None
        assert store.add(*location).hex() == name
    tree = make_tree(top, old)
    assert (
        store.tree(**{f"{at:03}": bytes.fromhex(each) for at, each in enumerate(old)}).hex() == tree
    )
    target = make_tree(top, sorted(set(names)))
    texts = [make_commit(top, tree), make_commit(top, target)]
    commits = [object_id("commit", text).hex() for text in texts]
    store.add("commit", texts[0])
    folder = top / "received"
    with IncomingPack(folder) as incoming:
        incoming.write(pack_thin(top, *commits))
        path, _ = incoming.install(store, WorkLimit())
    new = {*names} - {*old} | {target, commits[1]}
    assert path is not None
    index = path.with_suffix(".idx")
    assert {bytes.fromhex(oid) for oid in new} <= read_index(index.read_bytes()).keys()
    git("verify-pack", index)


def make_tree(top: Path, names: list[str]) -> str:
    lines = "".join(f"100644 blob {name}\t{number:03}\n" for number, name in enumerate(names))
    return git("-C", top / "all", "mktree", stdin=lines.encode())


def make_commit(top: Path, tree: str) -> bytes:
    head = f"tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n"
    git("-C", top / "all", "hash-object", "-t", "commit", "-w", "--stdin", stdin=head.encode())
    return head.encode()


def pack_thin(top: Path, old: str, new: str) -> bytes:
    """Return the thin pack from `old` to `new`: a bundle is a few lines and such a pack."""
    git("-C", top / "all", "update-ref", "refs/heads/old", old)
    git("-C", top / "all", "update-ref", "refs/heads/main", new)
    git("-C", top / "all", "bundle", "create", "-q", top / "bundle", "main", "^old")
    bundle = (top / "bundle").read_bytes()
    return bundle[bundle.index(b"\n\n") + 2 :]
