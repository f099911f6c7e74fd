"""The functions and names in the tables of docs/ARCHITECTURE.md are defined where it says."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| .+ \| (`\w+`(?:, `\w+`)*) \| `([^`|]+\.py)` \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)


def test_every_row_is_read() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    tables = PAGE.count("\n| --- |")
    assert len(ROWS) == len(lines) - 2 * tables
    assert len(ROWS) > 30


def test_a_name_is_defined_where_the_page_says(subtests: pytest.Subtests) -> None:
    for names, file in ROWS:
        text = (TOP / file).read_text(encoding="utf-8")
        for name in names.strip("`").split("`, `"):
            with subtests.test(name=name, file=file):
                definition = rf"^\s*(?:class|def) {name}\b|^{name}\b.* = "
                assert re.search(definition, text, re.MULTILINE), f"no {name} in {file}"


def test_each_file_that_the_page_names_exists() -> None:
    files = re.findall(r"`((?:client|native|schema|server)/[\w./]+)`", PAGE)
    assert len(files) > 40
    assert [file for file in files if not (TOP / file).exists()] == []
