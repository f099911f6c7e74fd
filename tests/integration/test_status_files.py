"""`[status]`: what a sync writes down of how the modules stand, and never fails about."""

import json
import re
import time
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree as ET

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from huai_client.config.hooks import Hooks
from huai_client.inspect import status_page
from huai_client.inspect.prometheus import MEANINGS
from huai_client.state import last_run
from huai_client.state import state as states
from huai_client.state.history import Kind
from huai_client.state.paths import module_places
from huai_program.record_file import RecordFile
from huai_program.words import load_words
from huai_schema.errors import ExitCode
from tests.support.html import parse
from tests.support.upstream import Downstream, Site


def read_metrics(file: Path) -> dict[str, dict[str, float]]:
    """Return each module's metrics, by name without their common prefix."""
    metrics: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(file.read_text()):
        for sample in family.samples:
            values = metrics.setdefault(sample.labels["module"], {})
            values[sample.name.removeprefix("huai_client_")] = sample.value
    return metrics


def configure_status(down: Downstream, **values: object) -> None:
    """Let each sync write its metrics, or a page."""
    with (down.root / "client.toml").open("a") as config:
        config.write("\n[status]\n")
        config.writelines(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


@pytest.fixture
def down(place: Site) -> Downstream:
    up = place.upstream()
    up.put(b"a", b"12345")
    up.commit()
    return place.downstream(up)


def test_a_sync_writes_for_prometheus_how_it_ended(down: Downstream, tmp_path: Path) -> None:
    file = tmp_path / "huai.prom"
    assert down.run("status", "--prometheus", str(file)).code == 0
    assert set(read_metrics(file)[down.name].values()) == {0}, "never synced"
    configure_status(down, prometheus=str(file))
    down.synced()
    good = read_metrics(file)[down.name]
    assert good.keys() == MEANINGS.keys()
    assert (good["last_exit_code"], good["serial"], good["bytes"], good["stale"]) == (0, 1, 5, 0)
    assert good["last_success_timestamp_seconds"] >= good["commit_timestamp_seconds"] > 0
    assert file.stat().st_mode & 0o777 == 0o644
    down.configure(url="http://127.0.0.1:1")
    assert down.sync().code == 10
    bad = read_metrics(file)[down.name]
    assert bad["last_exit_code"] == 10
    assert bad["last_success_timestamp_seconds"] == good["last_success_timestamp_seconds"]
    assert [path.name for path in tmp_path.iterdir()] == ["huai.prom"]
    down.state_file.write_bytes(b"{")
    code = down.sync().code
    assert code not in (0, 10)
    assert read_metrics(file)[down.name]["last_exit_code"] == code, "of a damaged state"


def test_a_sync_does_not_fail_for_a_file_that_cannot_be_written(
    down: Downstream, tmp_path: Path
) -> None:
    configure_status(down, prometheus=str(tmp_path / "missing" / "huai.prom"))
    ended = down.sync()
    assert ended.code == 0
    assert "status.prometheus" in ended.err
    assert f"create {tmp_path / 'missing'}" in ended.err
    assert down.run("status", "--prometheus", str(tmp_path / "missing" / "x")).code == 11


def test_a_value_that_is_not_an_absolute_path_is_refused(down: Downstream) -> None:
    config = down.root / "client.toml"
    before = config.read_text()
    for value in ("huai.prom", 7, ["/a"]):
        config.write_text(before)
        configure_status(down, prometheus=value)
        ended = down.sync()
        assert (ended.code, "[status]: prometheus" in ended.err) == (40, True), value


def test_a_page_shows_the_state_of_the_modules(down: Downstream, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    assert down.run("status", "--html", str(tmp_path)).code == 0
    assert "never synced" in parse(page.read_text()).text
    assert down.run("status", "--html", str(tmp_path / "missing")).code == 11
    configure_status(down, html=str(tmp_path))
    down.synced()
    modules, runs = parse(page.read_text()).all("tbody")
    cells = [cell.text for cell in modules.one("tr").all("th", "td")]
    assert (*cells[:2], cells[3]) == (down.name, "in step", "1")
    assert "1 of 1 modules is in step" in parse(page.read_text()).text
    (day,) = modules.all("rect")
    assert (day["class"], day.text[10:]) == ("good", ": 0 failed")
    assert [cell.text for cell in runs.one("tr").all("td")][1:4] == [down.name, "sync", "OK"]
    down.configure(url="http://user:secret@127.0.0.1:1")
    assert down.sync().code == 10
    text = page.read_text()
    assert "last run failed (10" in parse(text).text
    assert parse(text).all("rect")[-1]["class"] == "bad"
    assert "secret" not in text
    assert str(down.dest) not in text
    assert len(text) < 20_000


def test_a_page_says_when_the_next_run_is_due_and_has_a_badge(
    down: Downstream, tmp_path: Path
) -> None:
    configure_status(down, html=str(tmp_path))
    down.synced()
    place = module_places(down.root, down.name).last
    last = last_run.load(place)
    assert last is not None
    earlier = msgspec.structs.replace(last, began=last.began - 6 * 3600)
    RecordFile(last_run.LastRun).save(place, earlier)
    badge = ET.fromstring((tmp_path / "badge.svg").read_text())  # noqa: S314 (our own)
    assert badge.get("aria-label") == "mirror: 1/1 in step"
    down.configure(url="http://127.0.0.1:1")
    assert down.sync().code == 10
    run = last_run.load(place)
    assert run is not None
    assert run.gap == run.began - earlier.began >= 6 * 3600
    due = time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.began + run.gap))
    modules, _ = parse((tmp_path / "index.html").read_text()).all("tbody")
    labelled = {cell["data-label"]: cell.text for cell in modules.all("td")}
    assert labelled["Next run, about (UTC)"] == due
    assert "0/1 in step" in (tmp_path / "badge.svg").read_text()


def test_a_first_sync_that_was_interrupted_has_no_serial_yet(
    down: Downstream, tmp_path: Path
) -> None:
    down.state_file.parent.mkdir(parents=True, exist_ok=True)
    states.save(down.state_file, states.State(serial=6, attempted=("ab" * 20,)))
    assert down.run("status", "--html", str(tmp_path)).code == 0
    modules, _ = parse((tmp_path / "index.html").read_text()).all("tbody")
    labelled = {cell["data-label"]: cell.text for cell in modules.all("td")}
    assert labelled.pop("State") == "never synced"
    assert labelled.pop("Thirty days") == ""
    assert len(labelled) == 6
    assert set(labelled.values()) == {"\N{EN DASH}"}
    assert json.loads(down.run("status", "--json").out)["serial"] is None
    assert down.run("status", "--prometheus", str(tmp_path / "prom")).code == 0
    assert read_metrics(tmp_path / "prom")[down.name]["serial"] == 0


def test_a_page_for_each_language_leads_to_the_others(down: Downstream, tmp_path: Path) -> None:
    down.configure(hooks=Hooks(before="/bin/false"))
    assert down.sync().code == 56
    assert down.run("status", "--html", str(tmp_path)).code == 0
    english, chinese = (
        parse((tmp_path / name).read_text()) for name in ("index.html", "index.zh.html")
    )
    assert (english.one("html")["lang"], chinese.one("html")["lang"]) == ("en", "zh")
    assert [page.one("nav").one("a")["href"] for page in (english, chinese)] == [
        "index.zh.html",
        "index.html",
    ]
    assert chinese.one("h1").text == "镜像状态"
    assert "56: 钩子失败" in chinese.text
    assert "{{" not in english.text + chinese.text
    assert "$" not in english.text + chinese.text


def test_each_sentence_of_the_page_is_there_in_chinese() -> None:
    folder = Path(status_page.__file__).parent
    page = (folder / "status_page.html").read_text()
    source = Path(status_page.__file__).read_text()
    sentences = {
        *re.findall(r"{{(.+?)}}", page),
        *re.findall(r'words.translate\(\s*"(.+?)"', source),
    }
    sentences |= {code.meaning for code in ExitCode} | {*get_args(Kind)}
    assert load_words("huai_client.inspect", "zh").catalogue.keys() == sentences
