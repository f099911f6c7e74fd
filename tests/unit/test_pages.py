"""The pages, headings, files, commands, options and folders in the pages exist."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from docs.man.pages import PROGRAMS, command_line

TOP = Path(__file__).parents[2]
DOCS = sorted((TOP / "docs").glob("*.md"))
PAGES = {page: page.read_text(encoding="utf-8") for page in (*DOCS, *sorted(TOP.glob("*.md")))}
FOLDERS = ["client", "docs", "hooks", "packaging", "requirements", "schema", "server", "tests"]


CALL = re.compile(r"\b(huai-client|huai-server) ([a-z][^ #;|]*(?: [^ #;|]+)*)")
"""A program and its arguments, up to two blanks."""


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub derives them from its headings."""
    prose = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def is_there(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_links_lead_somewhere() -> None:
    links = {
        (page, link)
        for page, text in PAGES.items()
        for link in re.findall(r"\]\(([^)\s]+)\)", text)
        if "://" not in link
    }
    assert {(page.name, link) for page, link in links if not is_there(page, link)} == set()


def test_files_of_the_project_exist() -> None:
    linked = {
        (page.name, file)
        for page, text in PAGES.items()
        for file in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", text)
    }
    assert {(page, file) for page, file in linked if not (TOP / file).exists()} == set()


def known_options() -> dict[str, set[str]]:
    """Return the options of each `PROGRAM COMMAND`, groups included."""
    calls: dict[str, set[str]] = {}

    def walk(name: str, command: click.Command) -> None:
        calls[name] = {each for parameter in command.params for each in parameter.opts} | {"--help"}
        if isinstance(command, click.Group):
            context = click.Context(command)
            for below in command.list_commands(context):
                child = command.get_command(context, below)
                assert child is not None
                walk(f"{name} {below}", child)

    for program in PROGRAMS:
        walk(program, command_line(program))
    return calls


KNOWN = known_options()


def calls(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each call in code of a page: program and command, and its options."""
    code = re.findall(
        r"^```.*?^```|(?<=`)huai-[^`]+(?=`)|^    [^\n]*", text, re.DOTALL | re.MULTILINE
    )
    for line in "\n".join(code).splitlines():
        for program, rest in CALL.findall(line):
            words = rest.split()
            name = f"{program} {words[0]}"
            if f"{name} {''.join(words[1:2])}" in KNOWN:
                name = f"{name} {words[1]}"
            yield name, {word for word in words if re.fullmatch(r"--[a-z][a-z-]+", word)}


def test_calls_can_be_made() -> None:
    wrong = [
        (page.name, name, given)
        for page, text in PAGES.items()
        for name, given in calls(text)
        if name not in KNOWN or not given <= KNOWN[name]
    ]
    assert wrong == []


def test_calls_are_found() -> None:
    page = "`huai-client sync --all`\n```\nhuai-server fallback build a --rebuild  # b --c\n```\n"
    page += "huai-client is\n\n    huai-client plan a | grep --count b\n"
    assert [*calls(page)] == [
        ("huai-client sync", {"--all"}),
        ("huai-server fallback build", {"--rebuild"}),
        ("huai-client plan", set()),
    ]


def test_the_index_names_each_page() -> None:
    index = TOP / "docs" / "README.md"
    linked = re.findall(r"^\| \[[^]]*\]\((.*?)\)", index.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(linked) == [page.name for page in DOCS if page != index]


FIGURE = (TOP / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
COLUMN = FIGURE.splitlines()[1].index("DOWNSTREAM")
BOTH, ENGINE = FIGURE.index(" BOTH"), FIGURE.index(" ENGINE")


@pytest.mark.parametrize(
    ("package", "column"),
    [
        ("server/huai_server", [line[:COLUMN] for line in FIGURE[:BOTH].splitlines()]),
        ("client/huai_client", [line[COLUMN:] for line in FIGURE[:BOTH].splitlines()]),
        ("schema/huai_schema", FIGURE[BOTH:ENGINE].splitlines()),
    ],
)
def test_the_architecture_shows_each_folder_in_its_layer(package: str, column: list[str]) -> None:
    folders = [re.findall(r"(?:^ ?|  )(\w+)/ ", line) for line in column]
    lines = {folder: number for number, line in enumerate(folders) for folder in line}
    assert {*lines} == {each.parent.name for each in (TOP / package).glob("*/__init__.py")}
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        each["layers"]
        for each in project["tool"]["importlinter"]["contracts"]
        if each.get("containers") == [Path(package).name]
    )
    order = [lines[each] for layer in layers for each in re.findall(r"\w+", layer) if each in lines]
    assert order == sorted(order)


def test_the_architecture_shows_each_crate_above_those_it_uses() -> None:
    crates = re.findall(r"^ (\w+)/ ", FIGURE[ENGINE:], re.MULTILINE)
    workspace = tomllib.loads((TOP / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    assert sorted(crates) == sorted(workspace["workspace"]["members"])
    for number, crate in enumerate(crates):
        manifest = tomllib.loads(
            (TOP / "native" / crate / "Cargo.toml").read_text(encoding="utf-8")
        )
        used = [name.removeprefix("huai-") for name in manifest.get("dependencies", {})]
        assert {*used} & {*crates} <= {*crates[number + 1 :]}
