"""The man pages of the configuration files have every key, and no warning of troff."""

import shutil
import subprocess

import msgspec
import pytest

from docs.man.pages import FILES, file_page
from docs.man.troff import escape
from huai_client.config import load as client
from huai_server.config import tables as server

STRUCTS: dict[str, type[msgspec.Struct]] = {
    "huai-client.toml": client.Module,
    "huai-server.toml": server.Module,
}


@pytest.mark.parametrize("name", FILES)
def test_every_key_is_on_the_page(name: str) -> None:
    text = file_page(name, "1.2")
    keys = {field.name for field in msgspec.structs.fields(STRUCTS[name])}
    assert keys
    # These tables have their own pages.
    missing = {key for key in keys if f"\\fB{escape(key)}\\fP" not in text}
    assert missing == keys & {"attest", "engine", "fallback", "export", "hooks", "static"}


@pytest.mark.parametrize("name", FILES)
def test_a_page_has_its_head_and_no_markdown_is_left(name: str) -> None:
    text = file_page(name, "1.2")
    assert text.startswith(f'.TH {escape(name).upper()} 5 "" "huai 1.2" "huai"\n.SH NAME\n')
    assert "`" not in text
    assert "](" not in text
    assert "\n.SH CONFIGURATION\n" in text
    assert not [line for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", FILES)
def test_troff_understands_it(name: str) -> None:
    assert shutil.which("groff"), "groff is missing: run this by ./dev test"
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-z"],
        input=file_page(name, "1.2"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
