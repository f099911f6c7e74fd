"""Image files: reproducible, sealed, and written as a whole or not at all."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, File
from huai_schema.errors import FormatError
from huai_schema.paths import ROOT, RelPath
from huai_server.fallback.erofs.image import BLOCK, image_damage, write_image
from huai_server.state.errors import StorageError
from tests.support.erofs_trees import OWNERS, Numbered, make_image
from tests.support.schema.lines import encode_directory, encode_leaf
from tests.support.schema.trees import directory, file, files, snapshot, tree_of

TREE = tree_of(
    *files(b"d", 300),
    directory(b"d"),
    file(b"f", 5, owner=b"ftp", group=b"a\tb"),
    file(b"g", 5, owner=b"www\xff"),
)


def test_equal_trees_give_equal_images(tmp_path: Path) -> None:
    other = dict(reversed(TREE.items()))
    for name, tree in (("a", TREE), ("b", other), ("c", {**TREE, RelPath(b"h"): file(b"h")})):
        make_image(tree, tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_it_is_what_it_says(tmp_path: Path) -> None:
    image = tmp_path / "image"
    make_image(TREE, image)
    assert image.stat().st_size % BLOCK == 0
    assert image_damage(image, snapshot(TREE).tree, OWNERS) is None


def test_every_damage_is_seen(tmp_path: Path) -> None:
    image, tree = tmp_path / "image", snapshot(TREE).tree
    make_image(TREE, image)
    content = image.read_bytes()
    seal = content.rindex(b"blake3 ") + 72
    for place in [*range(0, seal, 97), 1024, 1060, seal - 1]:
        image.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert image_damage(image, tree, OWNERS)
    for size in (0, 1, 1200, BLOCK, len(content) - BLOCK, seal - 1):
        image.write_bytes(content[:size])
        assert image_damage(image, tree, OWNERS)
    image.write_bytes(content)
    assert image_damage(image, tree, OWNERS) is None


def test_the_image_of_another_tree_is_refused(tmp_path: Path) -> None:
    make_image(TREE, tmp_path / "image")
    assert image_damage(tmp_path / "image", bytes(20), OWNERS) == "an image of another tree"


@pytest.mark.parametrize(("kind", "name"), [("user", b"www\xff"), ("group", b"a\tb")])
def test_an_owner_with_another_number_now_is_seen(tmp_path: Path, kind: str, name: bytes) -> None:
    class Changed(Numbered):
        def _uid(self, requested: bytes) -> int:
            return super()._uid(requested) + (kind == "user" and requested == name)

        def _gid(self, requested: bytes) -> int:
            return super()._gid(requested) + (kind == "group" and requested == name)

    make_image(TREE, tmp_path / "image")
    reason = image_damage(tmp_path / "image", snapshot(TREE).tree, Changed())
    assert re.fullmatch(f"the {kind} .* has another id now", reason or "")


def test_a_build_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_text("before")

    def listings() -> Iterator[Listing]:
        yield from snapshot(TREE).listings()
        raise FormatError("damaged")

    with pytest.raises(FormatError):
        write_image(listings, bytes(20), image, OWNERS)
    assert os.listdir(tmp_path) == ["image"]
    assert image.read_text() == "before"


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    root = encode_directory(Directory(ROOT, 0))
    link = encode_leaf(File(RelPath(b"b"), 1, 1, link=RelPath(b"a")))
    with pytest.raises(FormatError, match="hardlink to no file"):
        write_image(lambda: [Listing(ROOT, root, link)], bytes(20), tmp_path / "image", OWNERS)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere"):
        make_image(TREE, tmp_path / "nowhere" / "image")
