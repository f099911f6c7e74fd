"""The metrics that a running server exports, and that pages and rules use no others."""

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import httpx
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from huai_client.inspect.prometheus import MEANINGS
from huai_server.state.paths import ModulePlaces
from huai_server.store.scrub_record import Damage, ScrubRecord, write_record
from tests.support.http_fixtures import Repository, Server, git

DOCS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"\bhuai_[a-z_]+\b")
Values = dict[tuple[str, ...], float]


def values(text: str) -> Values:
    """Each sample by its name and the values of its labels."""
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    return {(each.name, *each.labels.values()): each.value for each in samples}


def scraped(client: httpx.Client) -> Values:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return values(answer.text)


def test_a_module_is_told_as_its_newest_commit_says(
    repository: Repository, client: httpx.Client
) -> None:
    repository.commit(b"more")
    Repository.create(repository.path.parent, "empty")
    samples = scraped(client)
    assert samples["huai_module_serial", "m"] == 2
    assert samples["huai_module_entries", "m"] == 3
    assert samples["huai_module_bytes", "m"] == 5
    assert samples["huai_module_commit_timestamp_seconds", "m"] == 1_700_000_002
    assert samples["huai_module_readable", "empty"] == 1
    assert ("huai_module_serial", "empty") not in samples
    broken = Repository.create(repository.path.parent, "broken")
    broken.commit(b"lost")
    (broken.path / "HEAD").unlink()
    samples = scraped(client)
    assert samples["huai_module_readable", "broken"] == 0
    assert samples["huai_module_serial", "m"] == 2


def test_damage_missing_digests_and_the_fallback_are_told(
    repository: Repository, client: httpx.Client
) -> None:
    folder = repository.path.parent
    place = ModulePlaces(folder).scrub
    damage = Damage(b"a", 1, 1, b"e" * 32, None, "it cannot be read", 1)
    write_record(place, ScrubRecord(damage=(damage, replace(damage, path=b"b"))))
    locks = folder / "m.slots"
    locks.touch()
    script = (
        "import fcntl, sys, time; file = open(sys.argv[1], 'r+b'); "
        "[fcntl.lockf(file, fcntl.LOCK_EX, 4, 4 * slot) for slot in (0, 3)]; "
        "print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(locks)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        samples = scraped(client)
        front = client.get("/").text
        daemon.communicate()
    assert samples["huai_module_damaged_files", "m"] == 2
    assert samples["huai_fallback_clients", "m"] == 2
    assert ("huai_module_undigested_files", "m") not in samples
    assert "2 files damaged" in front
    assert scraped(client)["huai_fallback_clients", "m"] == 0
    locks.unlink()
    assert ("huai_fallback_clients", "m") not in scraped(client)


def test_requests_are_counted_by_kind_and_status(client: httpx.Client) -> None:
    sent_bytes = len(client.get("/healthz").content)
    for path in ("/api/v1/modules", "/api/v1/nope", "/", "/git/m.git/nope"):
        client.get(path)
    samples = scraped(client)
    counted = {
        key[1:]: value for key, value in samples.items() if key[0] == "huai_http_requests_total"
    }
    assert counted == {
        ("health", "200"): 1,
        ("api", "200"): 1,
        ("api", "404"): 1,
        ("page", "200"): 1,
        ("git", "404"): 1,
    }
    assert samples["huai_http_sent_bytes_total", "health"] == sent_bytes
    assert samples["huai_http_requests_running", "metrics"] == 1
    assert samples["huai_http_requests_running", "page"] == 0
    assert samples["huai_http_requests_running", "events"] == 0


def test_transfers_are_counted_while_they_run(
    server: Server, client: httpx.Client, tmp_path: Path
) -> None:
    git("clone", "--quiet", "--bare", f"{server.url}/git/m.git", tmp_path / "clone", protocol=0)
    samples = scraped(client)
    assert samples["huai_http_requests_total", "git", "200"] >= 2
    assert samples["huai_git_transfers_running",] == 0


def test_open_metrics_are_given_to_whoever_asks(client: httpx.Client) -> None:
    kind = "application/openmetrics-text; version=1.0.0"
    answer = client.get("/metrics", headers={"Accept": kind})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert [*open_metrics(answer.text)]  # type: ignore[no-untyped-call] # the library has none


def exported(client: httpx.Client) -> set[str]:
    """The names of all that a server and a client export."""
    client.get("/healthz")
    text = client.get("/metrics").text
    declared = set(re.findall(r"^# TYPE (huai_\w+)", text, re.MULTILINE))
    return declared | {f"huai_client_{what}" for what in MEANINGS}


def test_the_page_names_each_metric(client: httpx.Client) -> None:
    page = (DOCS / "MONITORING.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(huai_\w+)` \|", page, re.MULTILINE))
    assert documented == exported(client)


def test_rules_and_dashboard_ask_for_what_there_is(client: httpx.Client) -> None:
    for file in ("alerts.yml", "dashboard.json"):
        used = set(NAME.findall((DOCS / "monitoring" / file).read_text(encoding="utf-8")))
        assert len(used) > 5
        assert used <= exported(client)


def test_the_page_tells_what_to_do_about_each_alert() -> None:
    rules = (DOCS / "monitoring" / "alerts.yml").read_text(encoding="utf-8")
    page = (DOCS / "MONITORING.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(Huai\w+)` \|", page, re.MULTILINE)
    assert documented == re.findall(r"alert: (\w+)", rules)


def test_the_dashboard_is_sound() -> None:
    text = (DOCS / "monitoring" / "dashboard.json").read_text(encoding="utf-8")
    board = json.loads(text)
    declared = {each["name"] for each in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]\w*)", text)) == declared == {"source", "instance", "module"}
    cells: list[tuple[int, int]] = []
    for panel in board["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells += product(columns, range(place["y"], place["y"] + place["h"]))
        assert columns.stop <= 24
        assert len({each["refId"] for each in panel["targets"]}) == len(panel["targets"]) > 0
    assert len(set(cells)) == len(cells)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) > 0
