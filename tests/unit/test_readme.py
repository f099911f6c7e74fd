"""The pages are right about exit codes, configuration keys and commands; the README is short."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import msgspec

from docs.man.pages import PROGRAMS, command_line
from huai_client.config import hooks as hook_table
from huai_client.config import load as client
from huai_program.notify.settings import Mail, Notify, Web
from huai_schema.errors import ExitCode
from huai_server.config import mirrors as tables
from huai_server.config import tables as server

TOP = Path(__file__).parents[2]
TEXT = (TOP / "README.md").read_text(encoding="utf-8")
INDEX = (TOP / "docs/README.md").read_text(encoding="utf-8")
JSON = (TOP / "docs/JSON.md").read_text(encoding="utf-8")
CLIENT = (TOP / "docs/CLIENT-CONFIGURATION.md").read_text(encoding="utf-8")
SERVER = (TOP / "docs/SERVER-CONFIGURATION.md").read_text(encoding="utf-8")
HOOKS = (TOP / "docs/CLIENT-HOOKS.md").read_text(encoding="utf-8")
FALLBACK = (TOP / "docs/FALLBACK.md").read_text(encoding="utf-8")
MONITORING = (TOP / "docs/MONITORING.md").read_text(encoding="utf-8")
MIRRORS = (TOP / "docs/MIRRORS.md").read_text(encoding="utf-8")
UPDATES = (TOP / "docs/HOOKS.md").read_text(encoding="utf-8")
SCALE = (TOP / "docs/SCALE.md").read_text(encoding="utf-8")
BENCH = TOP / "tests" / "bench"
REQUIRED = object()


def section(title: str, text: str) -> str:
    """Return the text below a heading."""
    return text.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the tables in a text, without separator lines."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split(" |")] for line in lines if "---" not in line]


def test_the_table_of_exit_codes_is_the_one_of_the_programs() -> None:
    codes = [(int(code), text) for code, text in rows(section("Exit codes", JSON))[1:]]
    assert codes == [(code.value, code.meaning) for code in ExitCode]


def described(file: str, page: str, title: str) -> dict[str, object]:
    """Return the defaults on a page about a configuration file, by `TABLE.KEY`."""
    text = section(title, page).split(f"{file}`")[1].split("\n\n`/")[0]
    settings: dict[str, object] = {}
    table = ""
    for first, keys, defaults, _ in rows(text)[1:]:
        table = first.strip("`[]") or table
        values = re.findall(r"`([^`]*)`", defaults)
        for number, key in enumerate(re.findall(r"`(\w+)`", keys)):
            settings[f"{table}.{key}"] = msgspec.json.decode(values[number]) if values else REQUIRED
    return settings


def real(tables: dict[str, type[msgspec.Struct]]) -> dict[str, object]:
    """Return the defaults in the program, by `TABLE.KEY`."""
    defaults: dict[str, object] = {}
    for table, struct in tables.items():
        for field in msgspec.structs.fields(struct):
            default = REQUIRED if field.default is msgspec.NODEFAULT else field.default
            if field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            if isinstance(default, msgspec.Struct):
                continue  # documented as a separate table
            defaults[f"{table}.{field.name}"] = (
                [*default] if isinstance(default, tuple) else default
            )
    return defaults


SETTINGS: tuple[tuple[str, str, str, dict[str, type[msgspec.Struct]]], ...] = (
    (
        *("server.toml", SERVER, "Configuration"),
        {
            "listen": server.Listen,
            "signing": server.Signing,
            "modules.NAME": server.Module,
            "modules.NAME.engine": server.ModuleEngine,
        },
    ),
    (
        *("client.toml", CLIENT, "Configuration"),
        {
            "modules.NAME": client.Module,
            "watch": client.WatchSettings,
            "status": client.StatusFiles,
        },
    ),
    (
        *("client.toml", HOOKS, "Configuration"),
        {"modules.NAME.hooks": hook_table.Hooks, "modules.NAME.proofs.PROFILE": hook_table.Proof},
    ),
    (
        *("server.toml", FALLBACK, "Configuration"),
        {"fallback": server.Fallback, "modules.NAME.fallback": server.ModuleFallback},
    ),
    (
        *("server.toml", UPDATES, "Exports with each commit"),
        {"modules.NAME.export": server.ModuleExport},
    ),
    (
        *("server.toml", MONITORING, "Notifications"),
        {"notify": Notify, "mail": Mail, "web": Web},
    ),
    ("client.toml", MIRRORS, "Configuration", {"attest": client.Attest}),
    (
        *("server.toml", MIRRORS, "Configuration"),
        {"mirrors": tables.MirrorSettings, "allowed_downstreams.NAME": tables.AllowedDownstream},
    ),
)


def test_every_key_is_described_with_its_default() -> None:
    for name, page, title, structs in SETTINGS:
        assert described(name, page, title) == real(structs), structs


def test_every_command_of_both_programs_is_in_the_index() -> None:
    for program in PROGRAMS:
        group = command_line(program)
        assert isinstance(group, click.Group)
        mentioned = set(re.findall(r"`(\w+)", INDEX)) | set(re.findall(rf"{program} (\w+)", INDEX))
        assert set(group.list_commands(click.Context(group))) - mentioned == set()


def test_every_option_is_on_a_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (TOP / "docs").glob("*.md"))
    mentioned = set(re.findall(r"--[a-z][a-z0-9-]*|(?<=`)-[a-z](?= )", TEXT + pages))
    for program in PROGRAMS:
        assert options(command_line(program)) - mentioned == {"--version"}, program


def options(command: click.Command) -> set[str]:
    """Return the long options of a command and its subcommands."""
    existing = {
        max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)
    }
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            existing |= options(below)
    return existing


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 120


def test_each_drawing_has_its_own_ground_and_the_title_that_a_page_gives_it() -> None:
    pages = TEXT.replace("](docs/", "](") + SCALE
    for path in (TOP / "docs").glob("*.svg"):
        drawing = ET.parse(path).getroot()  # noqa: S314 (our own)
        title, *shapes = (each for each in drawing if not each.tag.endswith("marker"))
        assert f"![{title.text}]({path.name})" in pages
        # Else the words would be unreadable on a dark page.
        ground, size = shapes[0].get, drawing.get
        expected = (size("width"), size("height"), "#ffffff")
        assert (ground("width"), ground("height"), ground("fill")) == expected


def test_each_figure_names_the_bench_that_measures_it() -> None:
    figures = rows(section("Figures", TEXT))[1:]
    benches = [re.findall(r"`\./dev bench (\w+)", command) for *_, command in figures]
    assert len(figures) == 5
    assert [names for names in benches if not names or not is_bench(names[0])] == []


def test_each_bench_has_a_figure_on_a_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (TOP / "docs").glob("*.md"))
    calls = re.findall(r"\./dev bench ([\w ]+)", TEXT + pages)
    table = [row[-1].strip("`") for row in rows(section("Next to stock tools", SCALE))[1:]]
    mentioned = {name for call in calls for name in call.split()} | {*table}
    assert {
        path.stem.removesuffix("_bench") for path in BENCH.glob("*_bench.py")
    } - mentioned == set()


def is_bench(name: str) -> bool:
    return (BENCH / f"{name}_bench.py").exists()
