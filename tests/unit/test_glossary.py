"""The folder and the name of each term in docs/GLOSSARY.md exist."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([^|`]+) \| .+ \| (`[^|]+/`) \| (?:`(\w+)` )?\|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)


def defines(folder: Path, name: str) -> bool:
    """Return True if a module in `folder` has a class, function, field or variable of that name."""
    definition = re.compile(
        rf"\b(class|def|struct|enum) {name}\b|\b{name}: |^\s*{name} = ", re.MULTILINE
    )
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.[pr][ys]")]
    return any(definition.search(text) for text in texts)


def test_every_row_is_read() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    tables = PAGE.count("\n| --- |")
    assert len(ROWS) == len(lines) - 2 * tables
    assert len(ROWS) > 50


def test_a_term_lives_where_it_says(subtests: pytest.Subtests) -> None:
    for term, folders, name in ROWS:
        with subtests.test(term=term, folders=folders, name=name):
            for folder in folders.strip("`").split("`, `"):
                assert (TOP / folder).is_dir(), term
                assert not name or defines(TOP / folder, name), f"{term}: no {name} in {folder}"


def test_no_term_stands_twice() -> None:
    terms = [row[0] for row in ROWS]
    assert sorted(set(terms)) == sorted(terms)
