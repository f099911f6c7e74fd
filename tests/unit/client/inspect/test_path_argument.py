"""Paths as people type them."""

import os

import pytest

from huai_client.cli.options import PathArgumentError, parse_path_argument


def test_a_path_as_the_module_names_it(subtests: pytest.Subtests) -> None:
    for text, path in [
        ("a/b", b"a/b"),
        ("./a//b/", b"a/b"),
        ("/srv/tree/a", b"a"),
        ("/srv/tree", b""),
        ("/a/b", b"a/b"),
        ("/srv/treehouse/a", b"srv/treehouse/a"),
        (".", b""),
        (os.fsdecode(b"\xff\n"), b"\xff\n"),
    ]:
        with subtests.test(text=text, path=path):
            assert parse_path_argument(text, "/srv/tree/") == path


@pytest.mark.parametrize("text", ["..", "a/../b", "/srv/tree/../x"])
def test_what_is_no_path_of_the_module(text: str) -> None:
    with pytest.raises(PathArgumentError):
        parse_path_argument(text, "/srv/tree")
