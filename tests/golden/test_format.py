"""The examples of FORMAT.md, compared with the program and with git; and ids that never change."""

import os
import re
import subprocess
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

import pytest
from blake3 import blake3

from huai_native._native import BlockIndex
from huai_schema import limits
from huai_schema.codec import commits, descriptor, keys, static_files
from huai_schema.codec import publish_rules as publishing
from huai_schema.codec.commits import CommitInfo, Counts, Totals
from huai_schema.codec.descriptor import Descriptor, read_root, write_root
from huai_schema.entries import Directory, File, Symlink
from huai_schema.git.objects import TreeItem, encode_tree
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath
from tests.support.git_objects import object_id
from tests.support.schema.block_index import block_index
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.oracle import piece_key
from tests.support.schema.trees import Tree, directory, file, files, random_tree, snapshot, tree_of

PAGE = (Path(__file__).parents[2] / "docs" / "FORMAT.md").read_text(encoding="utf-8")
ENGINE = [
    Path(__file__).parents[2] / "native" / crate / "src" / "limits.rs"
    for crate in ("git", "format")
]
IDS = Path(__file__).parent / "format" / "ids"
SECOND = 10**9
START = 1_700_000_000 * SECOND


class ShownObject(NamedTuple):
    """An object on the page."""

    kind: str
    oid: str
    data: bytes


def shown_objects() -> list[ShownObject]:
    blocks = re.findall(r"^```object (\w+) (\w{40})\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [ShownObject(kind, oid, data_of(kind, text)) for kind, oid, text in blocks]


def data_of(kind: str, text: str) -> bytes:
    if kind == "tree":
        rows = [re.fullmatch(r"\d{6} (\w+) (\w{40}) (.*)", row) for row in text.splitlines()]
        assert all(rows)
        return encode_tree(
            TreeItem(raw(row[3]), bytes.fromhex(row[2]), row[1] == "tree") for row in rows if row
        )
    if re.fullmatch(r"([0-9a-f]{64}\n)+", text):
        return bytes.fromhex(text)
    return raw(text)


def raw(text: str) -> bytes:
    """Convert the notation of the page to bytes."""
    data = text.replace("→", "\t").encode()
    return re.sub("«(..)»".encode(), lambda code: bytes.fromhex(code[1].decode()), data)


def example() -> Tree:
    """Return the tree that the page describes in words."""
    digest = blake3(b"abc").digest()
    pool = RelPath(b"pool/a.deb")
    hello = file(b"hello.txt", 6, START + 123_456_789, digest=blake3(b"hello\n").digest())
    odd = RelPath(b"odd\t\n\\\xff")
    return tree_of(
        Directory(ROOT, START),
        hello,
        Symlink(RelPath(b"latest"), pool, START + SECOND // 2),
        File(odd, 5, -1_500_000_000, 0o600, b"#1234", b"staff"),
        Directory(RelPath(b"empty"), START + SECOND, 0o2775, group=b"staff"),
        Directory(RelPath(b"pool"), START + 2 * SECOND),
        file(pool, 3, START, digest=digest),
        file(b"pool/b.deb", 3, START, link=pool, digest=digest),
    )


def cut_example() -> Tree:
    return tree_of(directory(b"big"), *(file(b"big/f%03d" % n) for n in range(300)))


def test_every_object_has_the_id_it_is_shown_with() -> None:
    objects = shown_objects()
    assert len(objects) == 10
    for kind, oid, data in objects:
        assert object_id(kind, data).hex() == oid  # type: ignore[arg-type]


def test_the_example_is_what_the_program_writes() -> None:
    objects = MemoryObjects()
    tree = snapshot(example(), objects).tree
    root = write_root(Descriptor("demo", ("rsync://mirror.example/demo/",)), tree, objects)
    page = shown_objects()[:6]
    *rest, commit = page
    assert {(kind, data) for kind, _, data in rest} == set(objects.objects.values())
    headers, _, message = commit.data.decode().partition("\n\n")
    assert headers.startswith(f"tree {root.hex()}\n")
    info = CommitInfo("demo", 1, Totals(4, 3, 1, 17), Counts(added=8))
    assert message == info.encode()
    assert CommitInfo.decode(message) == info


def test_the_example_reads_back_from_the_page() -> None:
    objects = MemoryObjects()
    for kind, _, data in shown_objects():
        objects.write(kind, data)  # type: ignore[arg-type]
    descriptor, tree = read_root(bytes.fromhex(shown_objects()[4].oid), objects)
    assert descriptor == Descriptor("demo", ("rsync://mirror.example/demo/",))
    assert {entry.path: entry for entry in Snapshot(objects, tree).entries()} == example()


def test_the_cut_example_is_what_the_program_writes() -> None:
    objects = MemoryObjects()
    tree = snapshot(cut_example(), objects).tree
    page = shown_objects()[6:]
    assert page[-1].oid == tree.hex()
    for kind, oid, data in page:
        assert objects.objects[bytes.fromhex(oid)] == (kind, data)
    rows = re.findall(
        r"^\| (\S+) \| `(\w+)` \| (\d+) \| `(.*)` \| `(.*)` \| `(\w{40})` \|$",
        PAGE,
        re.MULTILINE,
    )
    assert len(rows) == 2
    for start, key, lines, first, last, oid in rows:
        _, text = objects.objects[bytes.fromhex(oid)]
        assert text.count(b"\n") == int(lines)
        assert text.startswith(raw(first) + b"\n")
        assert text.endswith(b"\n" + raw(last) + b"\n")
        begins = text.partition(b"\t")[0]
        assert begins == (b"./" if start == "(empty)" else start.strip("`").encode())
        assert key == ("m" if begins == b"./" else piece_key(begins).decode())
    assert {entry.path: entry for entry in Snapshot(objects, tree).entries()} == cut_example()
    assert len(objects.objects) == len(page) + len(rows)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--bare")
    return tmp_path


def git(repository: Path, *arguments: str, data: bytes = b"") -> bytes:
    settings = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        input=data,
        capture_output=True,
        timeout=60,
        check=True,
        env={"PATH": os.environ["PATH"], **settings},
    )
    return done.stdout


def test_git_gives_the_ids_of_the_page_and_finds_no_fault(repository: Path) -> None:
    for kind, oid, data in shown_objects()[:6]:
        written = git(repository, "hash-object", "-w", "-t", kind, "--stdin", data=data)
        assert written.decode().strip() == oid
        assert git(repository, "cat-file", kind, oid) == data
    commit = shown_objects()[5].oid
    git(repository, "update-ref", "refs/heads/main", commit)
    assert b"error" not in git(repository, "fsck", "--strict", "--full")
    listed = git(repository, "ls-tree", "-r", "--name-only", "main").decode().split()
    assert listed == ["huai", "tree/d", "tree/m"]


def test_git_finds_no_fault_in_odd_and_cut_trees(repository: Path) -> None:
    objects = MemoryObjects()
    tree: Tree = random_tree(Random(7), 3000)
    for name in (b".git", b"=", b"m", b"git~1", b".GIT", b"a\nb\xff", b".gitmodules"):
        tree[RelPath(name)] = directory(name)
        tree.update((e.path, e) for e in files(name, 150))
    tree.update((e.path, e) for e in files(b"", 12_000))
    root = write_root(Descriptor("odd"), snapshot(tree, objects).tree, objects)
    for kind, data in objects.objects.values():
        folder = repository / "objects" / object_id(kind, data).hex()[:2]
        folder.mkdir(exist_ok=True)
    stream = b"".join(_import_commands(objects))
    git(repository, "fast-import", "--quiet", "--force", data=stream)
    for kind, data in objects.objects.values():
        if kind == "tree":
            git_id = git(repository, "hash-object", "-w", "-t", "tree", "--stdin", data=data)
            assert git_id.decode().strip() == object_id("tree", data).hex()
    commit = git(
        repository,
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "commit-tree",
        root.hex(),
        data=b"m",
    )
    git(repository, "update-ref", "refs/heads/main", commit.decode().strip())
    assert b"error" not in git(repository, "fsck", "--strict", "--full")


def _import_commands(objects: MemoryObjects) -> list[bytes]:
    blobs = [data for kind, data in objects.objects.values() if kind == "blob"]
    return [b"blob\ndata %d\n%s\n" % (len(data), data) for data in blobs]


def test_the_table_of_limits_says_what_the_program_does() -> None:
    table = PAGE[PAGE.index("## Limits") : PAGE.index("## Retention")]
    written = {
        name: int(value)
        for name, value in re.findall(r"^\| `(\w+)` \| (\d+) \|", table, re.MULTILINE)
    }
    modules = (limits, descriptor, publishing, commits, keys, static_files)
    defined = {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and not name.startswith("_")
    }
    for name in ("FORMAT_VERSION", "NOTHING"):
        del defined[name]
    engine = {name: value for name, value in engine_limits().items() if name in written}
    assert written == defined | engine
    assert all(engine[name] == defined[name] for name in engine.keys() & defined.keys())


def engine_limits() -> dict[str, int]:
    """Return the limits of the engine, which has more, for packs."""
    text = "".join(file.read_text(encoding="utf-8") for file in ENGINE)
    text = text.replace("i64::MAX", "(1 << 63) - 1")
    numbers = re.findall(r"^pub const (\w+): \w+ = ([\d_<() -]+);$", text, re.MULTILINE)
    return {name: int(eval(number)) for name, number in numbers}  # noqa: S307 - digits and shifts


def test_every_constant_the_page_names_is_in_its_table() -> None:
    words = set(re.findall(r"`([A-Z]+_[A-Z_]+|FANOUT)`", PAGE))
    limits_on = PAGE[PAGE.index("## Limits") : PAGE.index("## Retention")]
    assert words == set(re.findall(r"^\| `(\w+)` \|", limits_on, re.MULTILINE))


def golden_trees() -> dict[str, Tree]:
    """Return trees whose ids never change; add more, and change none."""
    digest = b"d" * 32
    flat = files(b"", 10_000, START)
    some = [e._replace(digest=digest if n % 3 else None) for n, e in enumerate(files(b"", 9000))]
    deep = [directory(b"/".join([b"d"] * n)) for n in range(1, 400)]
    small = [directory(b"p%05d" % n, n) for n in range(2000)]
    inside = [file(each.path + b"/index.html", n, n) for n, each in enumerate(small)]
    long = [file(b"n%05d" % n, owner=b"\\" * 250, group=b"\x7f" * 250) for n in range(1500)]
    uncut = [name for name in (b"%06d" % n for n in range(9000)) if crc32(name) % 128]
    wide = [file(name, owner=b"\\" * 250, group=b"\n" * 250) for name in uncut[:1500]]
    return {
        "cut-by-lines": tree_of(*map(file, uncut)),
        "cut-by-bytes": tree_of(*wide),
        "example": example(),
        "cut-example": cut_example(),
        "empty": tree_of(),
        "flat": tree_of(*flat),
        "flat-with-digests": tree_of(*some),
        "deep": tree_of(*deep),
        "many-small": tree_of(*small, *inside),
        "long-lines": tree_of(*long),
        "thresholds": tree_of(
            *(e for n in (126, 127, 128, 254, 255, 256) for e in _filled(b"d%d" % n, n))
        ),
    }


def _filled(name: bytes, count: int) -> list[Directory | File]:
    return [directory(name, count), *files(name, count)]


@pytest.mark.parametrize("name", list(golden_trees()))
def test_a_tree_has_the_id_it_always_had(name: str) -> None:
    ids = dict(line.split() for line in IDS.read_text(encoding="ascii").splitlines())
    assert ids.keys() == golden_trees().keys()
    assert snapshot(golden_trees()[name]).tree.hex() == ids[name]


def test_the_block_index_that_is_shown() -> None:
    (text,) = re.findall(r"^```index\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    content = b"a" * 131_072 + b"b"
    assert bytes.fromhex(text) == block_index(content)
    assert blake3(content).hexdigest() in PAGE
    BlockIndex.decode(bytes.fromhex(text), len(content), blake3(content).digest())
