"""The last run of each command and web hook, as the operator's page of a real `serve` shows it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from huai_program.locking import locked
from huai_schema.errors import ExitCode
from huai_server.state.paths import module_places
from huai_server.state.runs import Run, read_runs, save_run
from tests.support.committing import run_server
from tests.support.hook_receiver import receiver, status
from tests.support.html import parse
from tests.support.processes import until
from tests.support.serving import serving

NAME = "tools"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A module that exports to a folder outside of its tree."""
    for folder in ("tree", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tree" / "file").write_text("content")
    root = tmp_path / "state"
    assert run_server(root, "add", NAME, str(tmp_path / "tree")).returncode == 0
    with (root / "server.toml").open("a") as file:
        file.write(f'\n[modules.{NAME}.export]\nfiles = ["timestamp"]\nfolder = "{tmp_path}/out"\n')
    return root


def runs(root: Path) -> dict[str, Run]:
    return read_runs(module_places(root, NAME))


def rows(root: Path, url: str) -> Iterator[str]:
    done = run_server(root, "token", "new", NAME, "--scope", "operator", "--json")
    headers = {"Authorization": f"Bearer {json.loads(done.stdout)['token']}"}
    page = parse(httpx.get(f"{url}/operator", headers=headers).text)
    return (row.text for row in page.all("tr"))


def test_a_commit_and_its_export_are_recorded_and_failed_ones_are_first(
    root: Path, tmp_path: Path
) -> None:
    assert run_server(root, "commit", NAME).returncode == 0
    assert {work: run.exit_code for work, run in runs(root).items()} == {"commit": 0, "export": 0}
    (tmp_path / "tree" / "file").write_text("other content")
    os.rename(tmp_path / "out", tmp_path / "away")
    (tmp_path / "out").write_text("not a folder")
    assert run_server(root, "commit", NAME).returncode == ExitCode.DESTINATION
    assert run_server(root, "maintain", NAME).returncode == 0
    failed = runs(root)["export"]
    assert failed.exit_code == ExitCode.DESTINATION
    assert "out" in failed.error
    assert runs(root)["commit"].error == failed.error
    assert 0 < failed.seconds < runs(root)["commit"].seconds
    with serving(root) as server:
        lines = [row for row in rows(root, server.url) if row.startswith(NAME)]
    assert ["export" in row or "commit" in row for row in lines[:3]] == [True, True, False]
    assert failed.error in lines[0]
    assert "maintain good" in lines[2]


def test_what_did_not_run_is_not_recorded(root: Path) -> None:
    assert run_server(root, "export", NAME, "--only", "nothing").returncode != 0
    (folder := module_places(root, NAME).folder).mkdir(exist_ok=True)
    with locked(module_places(root, NAME).lock):
        assert run_server(root, "commit", NAME).returncode == ExitCode.LOCKED
    assert runs(root) == {}
    assert [path for path in folder.iterdir() if path.name.startswith("run-")] == []


def test_an_error_is_recorded_by_its_last_line_and_torn_records_are_left_out(root: Path) -> None:
    places = module_places(root, NAME)
    save_run(places, "commit", Run(1, 0.5, 1, "first\n" + "x" * 999))
    save_run(places, "probe", Run(1, 0.5, 0))
    (places.folder / "run-probe").write_text("[1,")
    (places.folder / "run-scrub.new").write_text('[1, 2, 3, ""]')
    assert runs(root) == {"commit": Run(1, 0.5, 1, "x" * 300)}


def test_the_last_delivery_to_a_web_hook_is_shown_without_its_path(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a secret")
    with receiver() as good, receiver(status(410)) as bad:
        text = (root / "server.toml").read_text()
        tables = "".join(
            f'{{url = "{each.url}/private", secret_file = "{tmp_path}/secret", internal = true}}, '
            for each in (good, bad)
        )
        head = f"[modules.{NAME}]\n"
        (root / "server.toml").write_text(text.replace(head, f"{head}webhooks = [{tables}]\n"))
        assert run_server(root, "commit", NAME).returncode == 0
        with serving(root) as server:
            until(lambda: any(f"{bad.url} 10 HTTP 410" in row for row in rows(root, server.url)))
            until(lambda: any(f"{good.url} good" in row for row in rows(root, server.url)))
            assert not any("private" in row for row in rows(root, server.url))
