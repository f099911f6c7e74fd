"""HUAI-RSYNC.md has the tables of the program."""

from pathlib import Path

from huai_client.huai_rsync.environment import SETTINGS
from huai_client.huai_rsync.exit_codes import ENDINGS
from huai_client.huai_rsync.options import GROUPS, OPTIONS, SHORT, Use
from huai_schema.errors import ExitCode

PAGE = (Path(__file__).parents[4] / "docs/HUAI-RSYNC.md").read_text(encoding="utf-8")
WORDS = {
    Use.MEANT: "understood",
    Use.PASSED: "passed on",
    Use.IGNORED: "ignored",
    Use.HARMLESS: "real rsync",
    Use.REFUSED: "real rsync",
}


def section(title: str) -> str:
    """Return the text under a heading."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def option_rows() -> list[list[str]]:
    """Return the table of options, made from the program's."""
    rows = []
    for group in GROUPS:
        names = [*group.flags.split(), *(f"{name}=" for name in group.valued.split())]
        text = " ".join(f"`{name}`" for name in names)
        rows.append([WORDS[group.use], group.why, text])
    return rows


def test_options() -> None:
    assert rows(section("Options")) == option_rows()


def test_each_option_stands_in_one_group() -> None:
    names = [name for group in GROUPS for name in f"{group.flags} {group.valued}".split()]
    assert len(names) == len(set(names)) == len(OPTIONS)
    assert set(SHORT.values()) <= set(names)


def test_exit_codes() -> None:
    text = [(int(code), huai) for huai, code, _ in rows(section("Exit codes"))]
    assert sorted(text) == sorted((end.code, f"{int(c)} {c.name}") for c, end in ENDINGS.items())
    falls_back = {huai for huai, _, instead in rows(section("Exit codes")) if instead}
    assert falls_back == {f"{int(c)} {c.name}" for c, end in ENDINGS.items() if end.falls_back}


def test_every_code_of_huai_has_one_of_rsync() -> None:
    assert set(ENDINGS) == set(ExitCode)
    options = {0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 25, 30, 35}
    assert {ending.code for ending in ENDINGS.values()} <= options


def test_variables() -> None:
    assert rows(section("Environment")) == [[f"`{name}`", why] for name, why in SETTINGS.items()]
