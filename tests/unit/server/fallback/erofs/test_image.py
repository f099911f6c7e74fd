"""Image files: reproducible, and written as a whole or not at all."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, File
from huai_schema.errors import FormatError
from huai_schema.paths import ROOT, RelPath
from huai_server.fallback.erofs.image import BLOCK, write_image
from huai_server.state.errors import StorageError
from tests.support.erofs_trees import OWNERS, make_image
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


def test_its_size_is_whole_blocks(tmp_path: Path) -> None:
    image = tmp_path / "image"
    make_image(TREE, image)
    assert image.stat().st_size % BLOCK == 0


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
