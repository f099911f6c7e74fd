"""The crates and licences that the lint accepts."""

import pytest

from tests.crates import Crate, find_faults, is_allowed


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("GPL-3.0 OR MIT", True),
        ("Unlicense/MIT", True),
        ("(GPL-3.0 OR MIT) AND BSD", False),
        ("(Apache-2.0 OR MIT) AND X", True),
        ("none", False),
    ],
)
def test_licences(licence: str, allowed: bool) -> None:
    assert is_allowed(licence, ["MIT", "X"]) == allowed


def test_the_list_says_all_that_is_used_and_nothing_else() -> None:
    crates = [Crate("a", "MIT"), Crate("b", "GPL-3.0")]
    assert list(find_faults(crates, ["b", "c"], ["MIT"])) == [
        "crate a is not in the list",
        "crate c is in the list and not used",
        "crate b has the licence 'GPL-3.0'",
    ]
    assert not list(find_faults(crates, ["a", "b"], ["MIT", "GPL-3.0"]))
