"""`[status]`: what a sync writes down of how the modules stand, and never fails about."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from huai_client.config.hooks import Hooks
from huai_client.inspect import status_page
from huai_client.inspect.prometheus import MEANINGS
from huai_client.state import state as states
from huai_client.state.run_record import Kind
from huai_program.words import load_words
from huai_schema.errors import ExitCode
from tests.support.html import parse
from tests.support.upstream import Downstream, Site


def told(file: Path) -> dict[str, dict[str, float]]:
    """By module, each metric without what all begin with."""
    found: dict[str, dict[str, float]] = {}
    families = text_string_to_metric_families(file.read_text())
    for family in families:
        for sample in family.samples:
            values = found.setdefault(sample.labels["module"], {})
            values[sample.name.removeprefix("huai_client_")] = sample.value
    return found


def write_to(down: Downstream, file: Path) -> None:
    """Let each sync write its metrics."""
    with (down.root / "client.toml").open("a") as config:
        config.write(f'\n[status]\nprometheus = "{file}"\n')


@pytest.fixture
def down(place: Site) -> Downstream:
    up = place.upstream()
    up.put(b"a", b"12345")
    up.commit()
    return place.downstream(up)


def test_a_sync_tells_prometheus_how_it_ended(down: Downstream, tmp_path: Path) -> None:
    file = tmp_path / "huai.prom"
    write_to(down, file)
    down.synced()
    good = told(file)[down.name]
    assert good.keys() == MEANINGS.keys()
    assert (good["last_exit_code"], good["serial"], good["bytes"], good["stale"]) == (0, 1, 5, 0)
    assert good["last_success_timestamp_seconds"] >= good["commit_timestamp_seconds"] > 0
    assert file.stat().st_mode & 0o777 == 0o644
    down.configure(url="http://127.0.0.1:1")
    assert down.sync().code == 10
    bad = told(file)[down.name]
    assert bad["last_exit_code"] == 10
    assert bad["last_success_timestamp_seconds"] == good["last_success_timestamp_seconds"]
    assert [each.name for each in tmp_path.iterdir()] == ["huai.prom"]


def test_a_module_that_was_never_synced_is_told_too(down: Downstream, tmp_path: Path) -> None:
    file = tmp_path / "huai.prom"
    assert down.run("status", "--prometheus", str(file)).code == 0
    assert set(told(file)[down.name].values()) == {0}


def test_a_sync_does_not_fail_for_a_file_that_cannot_be_written(
    down: Downstream, tmp_path: Path
) -> None:
    write_to(down, tmp_path / "missing" / "huai.prom")
    ended = down.sync()
    assert ended.code == 0
    assert "status.prometheus" in ended.err
    assert f"create {tmp_path / 'missing'}" in ended.err
    assert down.run("status", "--prometheus", str(tmp_path / "missing" / "x")).code == 11


def test_a_damaged_state_is_told_by_the_exit_code(down: Downstream, tmp_path: Path) -> None:
    file = tmp_path / "huai.prom"
    write_to(down, file)
    down.synced()
    down.state_file.write_bytes(b"{")
    code = down.sync().code
    assert code != 0
    assert told(file)[down.name]["last_exit_code"] == code


@pytest.mark.parametrize("value", ['"huai.prom"', "7", '["/a"]'])
def test_what_is_no_absolute_path_is_refused(down: Downstream, value: str) -> None:
    with (down.root / "client.toml").open("a") as config:
        config.write(f"\n[status]\nprometheus = {value}\n")
    ended = down.sync()
    assert ended.code == 40
    assert "[status]: prometheus" in ended.err


def test_a_page_tells_how_the_modules_stand(down: Downstream, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    with (down.root / "client.toml").open("a") as config:
        config.write(f'\n[status]\nhtml = "{tmp_path}"\n')
    down.synced()
    modules, runs = parse(page.read_text()).all("tbody")
    assert [cell.text for cell in modules.one("tr").all("th", "td")][:3] == [
        down.name,
        "in step",
        "1",
    ]
    assert [cell.text for cell in runs.one("tr").all("td")][1:4] == [down.name, "sync", "OK"]
    down.configure(url="http://user:secret@127.0.0.1:1")
    assert down.sync().code == 10
    text = page.read_text()
    assert "last run failed (10" in parse(text).text
    assert "secret" not in text
    assert str(down.dest) not in text
    assert len(text) < 20_000


def test_a_page_of_modules_that_were_never_synced(down: Downstream, tmp_path: Path) -> None:
    assert down.run("status", "--html", str(tmp_path)).code == 0
    assert "never synced" in parse((tmp_path / "index.html").read_text()).text
    assert down.run("status", "--html", str(tmp_path / "missing")).code == 11


def test_a_first_sync_that_was_interrupted_has_no_serial_yet(
    down: Downstream, tmp_path: Path
) -> None:
    down.state_file.parent.mkdir(parents=True, exist_ok=True)
    states.save(down.state_file, states.State(serial=6, attempted=("ab" * 20,)))
    assert down.run("status", "--html", str(tmp_path)).code == 0
    modules, _ = parse((tmp_path / "index.html").read_text()).all("tbody")
    labelled = {cell["data-label"]: cell.text for cell in modules.all("td")}
    assert labelled.pop("State") == "never synced"
    assert len(labelled) == 5
    assert set(labelled.values()) == {"\N{EN DASH}"}
    assert json.loads(down.run("status", "--json").out)["serial"] is None
    assert down.run("status", "--prometheus", str(tmp_path / "prom")).code == 0
    assert told(tmp_path / "prom")[down.name]["serial"] == 0


def test_a_page_for_each_language_leads_to_the_others(down: Downstream, tmp_path: Path) -> None:
    down.configure(hooks=Hooks(before="/bin/false"))
    assert down.sync().code == 56
    assert down.run("status", "--html", str(tmp_path)).code == 0
    english, chinese = (
        parse((tmp_path / name).read_text()) for name in ("index.html", "index.zh.html")
    )
    assert (english.one("html")["lang"], chinese.one("html")["lang"]) == ("en", "zh")
    assert (english.one("a")["href"], chinese.one("a")["href"]) == ("index.zh.html", "index.html")
    assert chinese.one("h1").text == "镜像状态"
    assert "56: 钩子失败" in chinese.text
    assert "{{" not in english.text + chinese.text
    assert "$" not in english.text + chinese.text


def test_each_sentence_of_the_page_is_there_in_chinese() -> None:
    folder = Path(status_page.__file__).parent
    page = (folder / "status_page.html").read_text()
    source = Path(status_page.__file__).read_text()
    said = {*re.findall(r"{{(.+?)}}", page), *re.findall(r'words.say\(\s*"(.+?)"', source)}
    said |= {code.meaning for code in ExitCode} | {*get_args(Kind)}
    assert load_words("huai_client.inspect", "zh").catalogue.keys() == said
