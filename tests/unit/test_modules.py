"""Cycles and wrong order among the modules of a crate are found."""

from pathlib import Path

import pytest

from tests.modules import Crate, expand_use


@pytest.mark.parametrize(
    ("tree", "paths"),
    [
        ("crate::a", ["crate::a"]),
        ("crate::a as b", ["crate::a"]),
        ("a::{b, c::{self, D}}", ["a::b", "a::c::self", "a::c::D"]),
        ("a::{\n    b,\n    c as d,\n}", ["a::b", "a::c"]),
    ],
)
def test_paths_of_a_use(tree: str, paths: list[str]) -> None:
    assert list(expand_use(tree)) == paths


def find_faults(crate: Path, texts: dict[str, str]) -> list[str]:
    """Write a crate with two groups, `low` and `high`, and check it."""
    source = crate / "src"
    own = {"lib.rs": "mod low;\n\npub mod high;\n", "low.rs": "", "high/mod.rs": "mod a;\nmod b;\n"}
    for name, text in ({"high/a.rs": "", "high/b.rs": ""} | own | texts).items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(Crate(source).find_faults())


@pytest.mark.parametrize(
    "texts",
    [
        {"high/a.rs": "use super::b::B;\nuse crate::low;\n"},
        {"high/a.rs": "use crate::high::b;\n", "high/b.rs": "// as crate::high::a does\n"},
        {"high/a.rs": "fn a() { crate::low::a(); std::fs::a() }\n"},
        {"low.rs": "#[cfg(test)]\nmod tests {\n    use crate::high::A;\n}\n"},
        {"low.rs": "pub(in crate::high) fn a() {}\n"},
    ],
)
def test_what_is_allowed(tmp_path: Path, texts: dict[str, str]) -> None:
    assert find_faults(tmp_path / "x", texts) == []


@pytest.mark.parametrize(
    "text", ["use crate::{a, high::b::B};\n", "fn a() { crate::high::b::b() }\n"]
)
def test_a_use_of_a_later_group(tmp_path: Path, text: str) -> None:
    faults = find_faults(tmp_path / "x", {"low.rs": text})
    assert faults == ["x/src/low.rs uses x/src/high/b.rs, which is listed after it"]


@pytest.mark.parametrize(
    ("texts", "circle"),
    [
        (
            {"high/a.rs": "use super::b::B;\n", "high/b.rs": "use crate::high::a::{self, A};\n"},
            {"x/src/high/a.rs", "x/src/high/b.rs"},
        ),
        (
            {
                "high/mod.rs": "mod a;\nmod b;\npub use a::A;\n",
                "high/a.rs": "fn a() { super::c() }\n",
            },
            {"x/src/high/a.rs", "x/src/high/mod.rs"},
        ),
    ],
)
def test_a_circle(tmp_path: Path, texts: dict[str, str], circle: set[str]) -> None:
    (fault,) = find_faults(tmp_path / "x", texts)
    first, *rest = fault.split(" uses ")
    assert rest[-1] == first
    assert {*rest} == circle


def test_a_circle_of_folders_whose_modules_form_none(tmp_path: Path) -> None:
    texts = {
        "lib.rs": "mod high;\nmod low;\n",
        "low.rs": "use crate::high::a::A;\n",
        "high/b.rs": "use crate::low;\n",
    }
    (fault,) = find_faults(tmp_path / "x", texts)
    assert {*fault.split(" uses ")} == {"x/src/low.rs", "x/src/high/mod.rs"}
