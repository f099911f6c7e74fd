"""`[modules.NAME.hooks]`: what is run around a sync, with what, and what its failure means."""

import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from huai_client.config import load as client_config
from huai_client.config.hooks import Hooks
from tests.support.processes import is_running, until
from tests.support.upstream import CLIENT, Downstream, Ended, Site, Upstream, ended
from tests.unit.test_readme import rows, section

PAGE = (Path(__file__).parents[2] / "docs" / "CLIENT-HOOKS.md").read_text(encoding="utf-8")
NAMES = ("before", "on_change", "on_failure", "after")
RECORD = """#!/usr/bin/env python3
import json, os, sys
lists = {
    name: [os.fsdecode(part) for part in open(path, "rb").read().split(b"\\0")]
    for name, path in os.environ.items()
    if name.endswith("_LIST")
}
ours = {name: value for name, value in os.environ.items() if name.startswith("HUAI_")}
with open(sys.argv[1], "a") as log:
    log.write(json.dumps([ours, lists, sys.argv[2:]]) + "\\n")
"""


class Recorder:
    """A program that writes down each time that it is run, and scripts for hooks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "runs"
        self.program = folder / "record"
        self.program.write_text(RECORD)
        self.program.chmod(0o755)

    def script(self, text: str) -> str:
        path = self.folder / "script"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def hooks(self, **settings: Any) -> Hooks:
        """Return hooks that record, except those of `settings`."""
        recording = {name: (str(self.program), str(self.log), name) for name in NAMES}
        return Hooks(**{**recording, **settings})

    def sync(self, down: Downstream, **settings: Any) -> Ended:
        """Sync with these hooks, and a log file."""
        down.configure(hooks=self.hooks(**settings))
        return down.sync("--log-file", str(self.folder / "log"))

    def runs(self) -> list[tuple[dict[str, str], dict[str, list[str]]]]:
        """Return variables and lists of each run since the last call."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        records = [json.loads(line) for line in lines]
        assert all(words == [variables["HUAI_HOOK"]] for variables, _, words in records)
        return [(variables, lists) for variables, lists, _ in records]

    def names(self) -> list[str]:
        return [variables["HUAI_HOOK"] for variables, _ in self.runs()]


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


@pytest.fixture
def down(place: Site, up: Upstream, recorder: Recorder) -> Downstream:
    return place.downstream(up, hooks=recorder.hooks())


@pytest.fixture
def synced(down: Downstream, recorder: Recorder) -> Downstream:
    down.synced()
    recorder.runs()
    return down


def test_the_variables_are_described(down: Downstream, recorder: Recorder) -> None:
    down.synced()
    variables_of = {variables["HUAI_HOOK"]: set(variables) for variables, _ in recorder.runs()}
    tables: dict[str, set[str]] = {}
    for first, names, _ in rows(section("What a hook gets", PAGE))[1:]:
        group = tables.setdefault(first or list(tables)[-1], set())
        group.update(re.findall(r"`(\w+)`", names))
    everywhere, later, lists = tables["all"], tables["all but `before`"], tables["`on_change`"]
    assert variables_of == {
        "before": everywhere,
        "on_change": everywhere | later | lists,
        "after": everywhere | later,
    }


def test_a_run_that_changes_something(up: Upstream, down: Downstream, recorder: Recorder) -> None:
    first = down.synced()
    before, change, after = recorder.runs()
    assert before[0] == {
        "HUAI_HOOK": "before",
        "HUAI_MODULE": down.name,
        "HUAI_DEST": str(down.dest),
        "HUAI_CLIENT_ROOT": str(down.root),
        "HUAI_COMMIT_BEFORE": "",
        "HUAI_SERIAL_BEFORE": "0",
    }
    assert change[1]["HUAI_WRITTEN_LIST"] == ["folder", "folder/0", "folder/1", "folder/2", ""]
    assert after[0]["HUAI_WRITTEN"] == "4"
    assert after[0]["HUAI_COMMIT"] == first["commit"]
    up.put(b"new", b"1")
    up.at(b"folder/1").unlink()
    up.at(b"folder/2").chmod(0o600)
    up.commit()
    second = down.synced()
    _, (variables, lists), _ = recorder.runs()
    assert lists["HUAI_WRITTEN_LIST"] == ["new", ""]
    assert lists["HUAI_DELETED_LIST"] == ["folder/1", ""]
    assert sorted(lists["HUAI_ATTRIBUTES_LIST"]) == ["", ".", "folder", "folder/2"]
    assert variables["HUAI_COMMIT_BEFORE"] == first["commit"]
    assert variables["HUAI_COMMIT"] == second["commit"]
    assert (variables["HUAI_SERIAL_BEFORE"], variables["HUAI_SERIAL"]) == ("1", "2")
    assert (variables["HUAI_EXIT_CODE"], variables["HUAI_REASON"]) == ("0", "")
    assert (variables["HUAI_CHANGED"], variables["HUAI_INTERRUPTED"]) == ("1", "0")
    assert variables["HUAI_TOTAL_BYTES"] == str(second["total_bytes"])
    assert not list(down.state_file.parent.glob("changes*"))


def test_odd_names_and_a_renamed_directory(
    up: Upstream, synced: Downstream, recorder: Recorder
) -> None:
    odd = [b"a\nb", b" lead", b"-rf", b"q'\"$(x)`", b"\xff\xfe", b"tab\t", b"*"]
    for name in odd:
        up.put(name, b"1")
    up.many(b"big", 200)
    up.commit()
    synced.synced()
    _, lists = recorder.runs()[1]
    assert {*odd, b"big"} <= {os.fsencode(path) for path in lists["HUAI_WRITTEN_LIST"]}
    up.at(b"big").rename(up.at(b"large"))
    up.commit()
    synced.synced()
    variables, lists = recorder.runs()[1]
    assert lists["HUAI_DELETED_LIST"] == ["big/", ""]
    assert lists["HUAI_WRITTEN_LIST"] == ["large/", ""]
    assert (variables["HUAI_DELETED"], variables["HUAI_WRITTEN"]) == ("1", "1")


def test_a_poll_runs_those_of_each_run(synced: Downstream, recorder: Recorder) -> None:
    assert "nothing new" in synced.sync().err
    _, (after, _) = recorder.runs()
    assert (after["HUAI_HOOK"], after["HUAI_CHANGED"]) == ("after", "0")
    assert after["HUAI_COMMIT"] == after["HUAI_COMMIT_BEFORE"] == synced.state.applied


def test_a_run_that_fails(down: Downstream, recorder: Recorder) -> None:
    down.configure(url="http://127.0.0.1:9")
    assert down.sync().code == 10
    variables = [variables for variables, _ in recorder.runs()]
    assert [each["HUAI_HOOK"] for each in variables] == ["before", "on_failure", "after"]
    _, failure, after = variables
    assert failure["HUAI_EXIT_CODE"] == after["HUAI_EXIT_CODE"] == "10"
    assert "127.0.0.1:9" in failure["HUAI_REASON"]
    done = recorder.sync(down, after=recorder.script("exit 4"))
    assert done.code == 10
    assert "the hook after failed: exit code 4" in done.err


def test_a_run_that_fails_in_part_lists_its_changes(
    up: Upstream, down: Downstream, recorder: Recorder
) -> None:
    up.at(b"folder/1").unlink()
    assert down.sync().code == 24
    variables, lists = recorder.runs()[1]
    assert (variables["HUAI_HOOK"], variables["HUAI_EXIT_CODE"]) == ("on_change", "24")
    assert {"folder/0", "folder/2"} <= {*lists["HUAI_WRITTEN_LIST"]}
    assert "folder/1" not in lists["HUAI_WRITTEN_LIST"]


def test_a_dry_run_runs_no_hook(down: Downstream, recorder: Recorder) -> None:
    assert down.sync("--dry-run").code == 0
    assert down.run("plan", down.name).code == 0
    assert recorder.names() == []
    assert not (down.dest / "folder").exists()


def test_no_hook_is_run_without_the_lock(
    tmp_path: Path, down: Downstream, recorder: Recorder
) -> None:
    mark = tmp_path / "mark"
    holding = recorder.script(f"echo >{mark}; while [ -e {mark} ]; do sleep 0.1; done")
    down.configure(hooks=recorder.hooks(before=holding))
    process = down.spawn("sync", down.name)
    until(mark.exists)
    assert down.sync().code == 43
    assert recorder.names() == []
    mark.unlink()
    assert ended(process).code == 0
    assert recorder.names() == ["on_change", "after"]


def test_a_hook_may_ask_but_not_sync(down: Downstream, recorder: Recorder) -> None:
    text = shlex.join(CLIENT)
    hook = recorder.script(f'{text} status "$HUAI_MODULE" && {text} sync "$HUAI_MODULE"')
    down.configure(hooks=recorder.hooks(after=hook))
    done = down.process("sync", down.name)
    assert done.code == 56
    assert f"after: {down.name}" in done.err
    assert "exit code 43" in done.err


@pytest.mark.parametrize("failure", ["fail", "warn"])
def test_a_failing_before_refuses_the_sync(
    tmp_path: Path, down: Downstream, recorder: Recorder, failure: str
) -> None:
    refuse = recorder.script("echo the disk is not mounted; exit 3")
    done = recorder.sync(down, before=refuse, failure=failure)
    assert done.code == 56
    assert "the hook before failed: exit code 3: the disk is not mounted" in done.err
    assert f"{down.name}: before: the disk is not mounted\n" in done.err
    (failed, _), (after, _) = recorder.runs()
    assert failed["HUAI_EXIT_CODE"] == after["HUAI_EXIT_CODE"] == "56"
    assert not (down.dest / "folder").exists()
    assert f"{down.name}: before: the disk is not mounted\n" in (tmp_path / "log").read_text()
    (status,) = down.run("status", down.name, "--json").events("module")
    assert status["last_code"] == 56


@pytest.mark.parametrize("name", ["on_change", "after"])
def test_one_that_fails_afterwards_undoes_nothing(
    down: Downstream, recorder: Recorder, name: str
) -> None:
    done = recorder.sync(down, **{name: recorder.script("exit 4")})
    assert done.code == 56
    assert f"the hook {name} failed: exit code 4" in done.err
    assert (down.dest / "folder" / "1").exists()
    assert down.state.applied is not None
    assert recorder.names() == ["before", "after" if name == "on_change" else "on_change"]
    assert down.verify().code == 0
    # Nor does the next run report the change again.
    down.configure(hooks=recorder.hooks())
    assert down.sync().code == 0
    assert recorder.names() == ["before", "after"]


def test_a_failure_may_be_a_warning(down: Downstream, recorder: Recorder) -> None:
    broken = recorder.script("exit 4")
    done = recorder.sync(down, after=broken, on_change=broken, failure="warn")
    assert done.code == 0
    assert "the hook after failed: exit code 4" in done.err
    assert "the hook on_change failed: exit code 4" in done.err
    assert recorder.names() == ["before"]
    hanging = recorder.script("trap '' TERM; while :; do sleep 1; done")
    done = recorder.sync(down, after=hanging, timeout="1s")
    assert done.code == 56
    assert "time-out of 1 s" in done.err


def test_one_that_is_missing(down: Downstream, recorder: Recorder) -> None:
    down.configure(hooks=Hooks(after="/nonexistent/hook"))
    done = down.sync()
    assert (done.code, down.state.applied) == (40, None)
    assert "[modules." in done.err
    assert "/nonexistent/hook" in done.err
    program = recorder.script("exit 0")
    down.configure(hooks=Hooks(before=program))
    down.synced()
    Path(program).unlink()
    done = down.sync()
    assert done.code == 56
    assert "cannot be started: No such file or directory" in done.err


def test_json_has_no_output_of_a_hook(down: Downstream, recorder: Recorder) -> None:
    loud = "yes loud | head -n 200000; yes loud | head -n 100000 >&2; exit 2"
    down.configure(hooks=recorder.hooks(after=recorder.script(loud)))
    done = down.process("sync", down.name, "--json")
    assert done.code == 56
    assert [(event["hook"], event["failure"]) for event in done.events("hook")] == [
        *(("before", ""), ("on_change", ""), ("after", "exit code 2: loud"))
    ]
    assert [event["code"] for event in done.events("error")] == [56]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_hook_and_runs_no_other(
    tmp_path: Path, down: Downstream, recorder: Recorder, number: signal.Signals
) -> None:
    pid = tmp_path / "pid"
    hanging = recorder.script(f"echo $$ >{pid}.new; mv {pid}.new {pid}; sleep 1000")
    down.configure(hooks=recorder.hooks(on_change=hanging))
    process = down.spawn("sync", down.name)
    until(pid.exists)
    process.send_signal(number)
    assert ended(process).code == 128 + number
    until(lambda: not is_running(int(pid.read_text())))
    assert recorder.names() == ["before"]
    assert down.state.applied is not None
    down.configure(hooks=recorder.hooks())
    assert "nothing new" in down.sync().err
    _, (variables, lists), _ = recorder.runs()
    assert (variables["HUAI_HOOK"], variables["HUAI_INTERRUPTED"]) == ("on_change", "1")
    assert {"folder", "folder/1"} <= {*lists["HUAI_WRITTEN_LIST"]}


def test_modules_in_parallel_run_each_their_own(place: Site, recorder: Recorder) -> None:
    downs = []
    for _ in range(2):
        up = place.upstream()
        up.put(b"file", b"1")
        up.commit()
        downs.append(place.downstream(up, hooks=recorder.hooks()))
    first, second = downs
    module = client_config.load(second.root).module(second.name)
    client_config.add_module(first.root, second.name, module)
    done = first.process("sync", "--all", "--parallel", "2")
    assert done.code == 0, done
    runs = [variables for variables, _ in recorder.runs()]
    for down in downs:
        own = [run["HUAI_HOOK"] for run in runs if run["HUAI_MODULE"] == down.name]
        assert own == ["before", "on_change", "after"]


def test_changes_of_an_interrupted_run_are_listed_once(
    down: Downstream, recorder: Recorder
) -> None:
    folder = down.state_file.parent / "changes" / "planned"
    for hooks in (recorder.hooks(on_change=None), recorder.hooks()):
        folder.mkdir(parents=True)
        (folder / "deleted").write_bytes(b"a\0b\0a\0cut")
        down.configure(hooks=hooks)
        down.synced()
        assert not folder.parent.exists()
    _, _, _, (variables, lists), _ = recorder.runs()
    assert lists["HUAI_DELETED_LIST"] == ["a", "b", ""]
    assert (variables["HUAI_DELETED"], variables["HUAI_INTERRUPTED"]) == ("2", "1")
