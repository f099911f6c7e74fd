"""Any bytes give a value or a FormatError; each value has one spelling."""

import re
from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from huai_schema.codec.commits import CommitInfo, Counts, Totals
from huai_schema.codec.descriptor import CONTENT_URLS, Descriptor
from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import FormatError
from huai_schema.git.objects import decode_tree, encode_tree
from huai_schema.limits import TOTAL_ENTRIES
from huai_schema.paths import RelPath
from tests.support.schema.damage import damaged
from tests.support.schema.lines import encode_directory, encode_leaf
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.single import manifest_text, read_manifest, read_own_directory
from tests.support.schema.strategies import RANDOMS, directories, leaves, trees
from tests.support.schema.trees import Tree, listings, snapshot

HERE = RelPath(b"some/where")
UNKNOWN = re.compile(rb"\t[a-fi-ln-tv-z][^\t\n]*")
NUMBERS = st.integers(0, (1 << 63) - 1)
MODULES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True).filter(
    lambda name: not name.endswith(".git")
)


def decodes(decode: Callable[[], object]) -> bool:
    try:
        decode()
    except FormatError:
        return False
    return True


def respelled(text: bytes) -> bytes:
    """Decode the leaves of `text`, and encode them again."""
    return b"".join(encode_leaf(entry) for entry in decode_leaves(HERE, text))


@given(st.binary())
def test_escaping_has_an_inverse(raw: bytes) -> None:
    assert unescape(escape(raw)) == raw


@given(st.one_of(st.binary(), st.text("\\x0157cf\x01").map(str.encode)))
def test_unescaping_is_canonical(text: bytes) -> None:
    if decodes(lambda: unescape(text)):
        assert escape(unescape(text)) == text


@given(leaves(RelPath(b"some/where/leaf")))
def test_leaves_come_back(leaf: File | Symlink) -> None:
    column = (leaf.digest or bytes(32)) if isinstance(leaf, File) else b""
    assert list(decode_leaves(HERE, encode_leaf(leaf), column)) == [leaf]


@given(directories(HERE))
def test_directories_come_back(directory: Directory) -> None:
    assert decode_directory(HERE, encode_directory(directory)) == directory


@given(trees(), RANDOMS)
def test_damaged_leaves_are_canonical_or_refused(tree: Tree, random: Random) -> None:
    for listing in listings(tree.values()):
        text = damaged(listing.leaves, random)
        if decodes(lambda text=text: list(decode_leaves(HERE, text))):  # type: ignore[misc]
            assert respelled(text) == UNKNOWN.sub(b"", text)
        attributes = damaged(listing.attributes, random)
        if decodes(lambda some=attributes: decode_directory(HERE, some)):  # type: ignore[misc]
            again = encode_directory(decode_directory(HERE, attributes))
            assert again == UNKNOWN.sub(b"", attributes)


@given(trees(), RANDOMS)
def test_damaged_objects_are_canonical_or_refused(tree: Tree, random: Random) -> None:
    objects = MemoryObjects()
    snapshot(tree, objects)
    for kind, data in objects.objects.values():
        broken = damaged(data, random)
        if kind == "tree" and decodes(lambda broken=broken: list(decode_tree(broken))):  # type: ignore[misc]
            assert encode_tree(decode_tree(broken)) == broken
        decodes(lambda broken=broken: read_own_directory(HERE, broken))  # type: ignore[misc]
        if decodes(lambda broken=broken: read_manifest(broken)):  # type: ignore[misc]
            assert manifest_text(read_manifest(broken)) == broken


@given(
    MODULES, st.lists(st.from_regex(r"rsync://[a-z./ü]*", fullmatch=True), max_size=CONTENT_URLS)
)
def test_descriptors_come_back(module: str, urls: list[str]) -> None:
    descriptor = Descriptor(module, tuple(urls))
    assert Descriptor.decode(descriptor.encode()) == descriptor


@given(MODULES, RANDOMS)
def test_damaged_descriptors_are_canonical_or_refused(module: str, random: Random) -> None:
    data = damaged(Descriptor(module, ("rsync://h/m/", "/srv/m")).encode(), random)
    if decodes(lambda: Descriptor.decode(data)):
        known_lines = re.sub(rb"(?m)^(?!(format|module|digest|content)\t).*\n", b"", data)
        assert Descriptor.decode(data).encode() == known_lines


def infos() -> st.SearchStrategy[CommitInfo]:
    totals = st.builds(Totals, *[st.integers(0, TOTAL_ENTRIES // 3)] * 3, NUMBERS)
    counts = st.builds(Counts, *[NUMBERS] * 4, st.none() | NUMBERS)
    return st.builds(CommitInfo, MODULES, NUMBERS, totals, counts, NUMBERS)


@given(infos())
def test_commit_messages_come_back(info: CommitInfo) -> None:
    assert CommitInfo.decode(info.encode()) == info


@given(infos(), RANDOMS)
def test_damaged_messages_are_canonical_or_refused(info: CommitInfo, random: Random) -> None:
    message = damaged(info.encode().encode(), random).decode("utf-8", "replace")
    if decodes(lambda: CommitInfo.decode(message)):
        head, _, trailers = message.partition("\n\n")
        known_lines = re.findall(
            "(?m)^Huai-(?:Serial|Files|Directories|Symlinks|Bytes"
            "|Skipped|Added|Removed|Changed|Moved|New-Bytes): .*\n",
            trailers,
        )
        assert CommitInfo.decode(message).encode() == head + "\n\n" + "".join(known_lines)
