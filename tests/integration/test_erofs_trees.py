"""Whatever a snapshot can hold, the kernel shows the same of its image."""

import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from huai_schema.paths import ROOT, parent
from tests.support.erofs_trees import dots, expected_listing, mounted, read_listing
from tests.support.mounting import needs_mounts
from tests.support.schema.strategies import RANDOMS, trees
from tests.support.schema.trees import Tree, random_tree

pytestmark = needs_mounts


def prove(tree: Tree) -> None:
    with TemporaryDirectory() as folder, mounted(tree, Path(folder)) as top:
        listing = read_listing(top)
        expected = expected_listing(tree)
        assert listing.keys() == expected.keys()
        for path, facts in expected.items():
            assert listing[path] == facts, path
            if facts.size is None and path:
                own, above = os.stat(top + path).st_ino, os.stat(top + parent(path)).st_ino
                assert dots(top + path) == {b".": own, b"..": above}
        root = os.stat(top).st_ino
        assert dots(top) == {b".": root, b"..": root}
        assert ROOT in listing


@given(tree=trees())
def test_extreme_attributes_and_odd_names(tree: Tree) -> None:
    prove(tree)


@settings(max_examples=20)
@given(random=RANDOMS)
def test_crowded_and_nested_trees(random: Random) -> None:
    prove(random_tree(random, random.choice([10, 300, 2000])))
