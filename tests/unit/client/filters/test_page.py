"""FILTERS.md is true."""

import re
from pathlib import Path

import pytest

from huai_client.filters import FilterError, Rules, load_rules
from huai_schema.paths import RelPath

TEXT = (Path(__file__).parents[4] / "docs/FILTERS.md").read_text(encoding="utf-8")


def first_cells(heading: str) -> list[str]:
    """Return the code in the first column of the first table after a heading."""
    table = TEXT.split(heading)[1].split("\n| ---")[1].split("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()[1:]]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def test_every_rule_in_the_table_is_one(tmp_path: Path) -> None:
    (tmp_path / "FILE").write_text("# none\n")
    spelt = first_cells("## Rules")
    assert len(spelt) > 15
    for rule in spelt:
        load_rules([rule], tmp_path)


def test_what_it_says_is_refused_is_refused(tmp_path: Path) -> None:
    spelt = [each for each in first_cells("## What differs") if not each.startswith("--delete")]
    rules = [f"{each} x" for each in spelt if len(each) <= 2 and each not in ("-H", "r")]
    rules += ["protect x", "risk x", "dir-merge x", "-r x", ": FILE"]
    letters = next(each for each in spelt if each.startswith("/ C"))
    rules += [f"-{letter} x" for letter in letters.split()]
    assert len(rules) > 12
    for rule in rules:
        with pytest.raises(FilterError):
            load_rules([rule], tmp_path)


def example(number: int) -> Rules:
    blocks = TEXT.split("## Examples")[1].split("```")[1::2]
    return Rules.parse(blocks[number].strip().encode().splitlines())


def test_what_the_examples_mirror(subtests: pytest.Subtests) -> None:
    for number, path, mirrored in [
        (0, "dists/bookworm/InRelease", True),
        (0, "dists/bookworm/main/binary-amd64/Packages.xz", True),
        (0, "dists/bookworm/main/source/Sources.xz", True),
        (0, "dists/bookworm/main/binary-arm64/Packages.xz", False),
        (0, "dists/bookworm/main/binary-i386/Packages.xz", False),
        (0, "dists/bookworm/contrib/source/Sources.xz", False),
        (0, "dists/sid/InRelease", False),
        (0, "pool/main/a/apt/apt_2_amd64.deb", True),
        (0, "pool/main/a/apt/apt_2_all.deb", True),
        (0, "pool/main/a/apt/apt_2_i386.deb", False),
        (0, "pool/main/a/apt/apt_2.dsc", True),
        (1, "images/a.iso", False),
        (1, "os/debug/x", False),
        (1, "os/bash-debuginfo-5.rpm", False),
        (1, "os/bash-5.rpm", True),
        (2, "releases/9/os/x", True),
        (2, "releases/8/os/x", False),
        (2, "keys/a", True),
        (2, "README", False),
    ]:
        with subtests.test(number=number, path=path, mirrored=mirrored):
            assert example(number).reaches(RelPath(path.encode()), directory=False) == mirrored
