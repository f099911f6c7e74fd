"""The search for files by digest in a whole snapshot."""

from random import Random

import pytest

from huai_client.diff.reuse import BYTES_AN_ENTRY, FEW_ENTRIES, files_with, search_pays_off
from huai_schema.entries import File
from tests.support.schema.trees import directory, file, random_tree, snapshot, tree_of


def test_what_a_look_at_every_entry_finds(subtests: pytest.Subtests) -> None:
    for seed in range(10):
        with subtests.test(seed=seed):
            random = Random(seed)
            tree = random_tree(random, 600)
            present = [
                each.digest for each in tree.values() if isinstance(each, File) and each.digest
            ]
            digests = {*random.sample(present, len(present) // 3), b"\7" * 32}
            files = list(files_with(snapshot(tree), set(digests)))
            expected = [e for e in tree.values() if isinstance(e, File) and e.digest in digests]
            assert files
            assert sorted(files) == sorted(expected)


def test_the_search_ends_with_the_last_digest() -> None:
    digest = b"\1" * 32
    copies = [file(b"d%d/f" % number, digest=digest) for number in range(3)]
    tree = tree_of(*(directory(b"d%d" % number) for number in range(3)), *copies)
    digests = {digest}
    paths = []
    for files in files_with(snapshot(tree), digests):
        paths.append(files.path)
        digests.clear()
    assert paths == [b"d0/f"]


def test_what_it_is_worth() -> None:
    many = FEW_ENTRIES + 1
    assert not search_pays_off(BYTES_AN_ENTRY * many, many)
    assert search_pays_off(BYTES_AN_ENTRY * many + 1, many)
    assert search_pays_off(1, FEW_ENTRIES)
    assert not search_pays_off(0, 0)
