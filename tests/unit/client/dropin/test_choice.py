"""Which filter rules, owners and modes huai takes for its own."""

import os
import shlex
from pathlib import Path

import pytest

from huai_client.config import Module
from huai_client.dropin.call import Call
from huai_client.dropin.choice import (
    check_in_part,
    check_modes,
    check_owners,
    unfit,
)
from huai_client.dropin.command_line import parse
from huai_client.dropin.filtering import as_filter, rules
from huai_client.dropin.handover import RealRsyncError
from huai_client.plans.operations import Plan, Stage
from huai_client.state import State
from huai_schema.entries import Directory, File
from huai_schema.paths import ROOT, RelPath


def call(options: str) -> Call:
    """A whole mirror run with more options."""
    found = parse(["-a", *shlex.split(options), "h::m", "/srv/x"])
    assert isinstance(found, Call), found
    return found


def reason(options: str, folder: Path, **settings: tuple[str, ...]) -> str:
    """Why a call with these options is not huai's."""
    module = Module(url="", dest="", **settings)  # type: ignore[arg-type]
    found = call(options)
    return unfit(found, rules(found, folder, module.protect), module, folder)


@pytest.mark.parametrize(
    "options",
    [
        "--filter 'risk .~tmp~/' --exclude .~tmp~/",
        "-f 'R .~tmp~' --exclude='- .~tmp~/'",
        "--exclude-from=temporary",
        "--filter='merge temporary'",
        "--filter='. nothing'",
    ],
)
def test_the_folder_of_delayed_updates_does_not_count(options: str, tmp_path: Path) -> None:
    (tmp_path / "temporary").write_text("- .~tmp~/\n")
    (tmp_path / "nothing").write_text("# only this\n\n")
    assert reason(f"--delete {options}", tmp_path) == ""
    assert reason(f"--delete {options}", tmp_path, filter=("- *.iso",))


def test_the_rules_have_to_be_the_filter(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("*.iso\n/old/\n")
    same = ("- *.iso", "- /old/")
    assert reason("--delete --exclude-from=list", tmp_path, filter=same) == ""
    assert reason("--delete --exclude=*.iso --exclude=/old/", tmp_path, filter=same) == ""
    assert reason("--delete-excluded --exclude-from=list", tmp_path, filter=same) == ""
    assert reason("--delete --exclude=/old/ --exclude=*.iso", tmp_path, filter=same)
    assert reason("--delete --exclude=*.iso", tmp_path, filter=same)
    assert reason("--delete", tmp_path, filter=same)
    assert reason("--delete --exclude-from=list", tmp_path)


def test_a_call_can_become_the_filter(tmp_path: Path) -> None:
    options = "--delete --include='*/' --include=/a* --exclude=' odd' -f 'S,! [b]' --exclude='*'"
    found = rules(call(options), tmp_path)
    assert found
    assert reason(options, tmp_path, filter=as_filter(found)) == ""
    with pytest.raises(RealRsyncError):
        as_filter(rules(call("--exclude=\udcff"), tmp_path) or ())


def test_what_is_protected_has_to_stand_in_protect(tmp_path: Path) -> None:
    options = "--delete --filter='P /trace/here' --exclude=/mark"
    assert reason(options, tmp_path, protect=("/trace/here", "/mark", "/more")) == ""
    assert reason(options, tmp_path, protect=("/trace/here",))
    assert reason(options, tmp_path, protect=("/mark",))


@pytest.mark.parametrize(
    "option", ["-f ': .rules'", "-f '-/ /abs'", "--exclude-from=missing", "--exclude-from=-"]
)
def test_rules_that_are_not_huais(option: str, tmp_path: Path) -> None:
    assert reason(f"--delete {option}", tmp_path) == "its filter has rules that are not huai's"
    assert reason(option, tmp_path) == "its filter has rules that are not huai's"


def test_a_part_may_leave_out_anything(tmp_path: Path) -> None:
    assert reason("--exclude=*.iso", tmp_path) == ""
    assert reason("", tmp_path, filter=("- *.iso",))


def test_a_part_belongs_to_something_whole() -> None:
    applied = "1" * 40
    check_in_part(State(applied=applied))
    check_in_part(State(applied=applied, attempted=("2" * 40,) * 8))
    with pytest.raises(RealRsyncError):
        check_in_part(State(attempted=("2" * 40,)))
    with pytest.raises(RealRsyncError):
        check_in_part(State(applied=applied, attempted=("2" * 40,) * 9))


@pytest.mark.parametrize("option", ["--no-owner", "--no-g", "--numeric-ids"])
def test_owners_that_root_would_keep_in_another_way(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(RealRsyncError):
        check_owners(call(option))
    for fine in ("", "--no-o --no-g", "--numeric-ids --no-o --no-g"):
        check_owners(call(fine))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check_owners(call(option))


def test_modes_have_to_be_the_upstreams() -> None:
    def plan(file: int, directory: int) -> Plan:
        stage = Stage("payload", fetches=[File(RelPath(b"a"), 1, 0, mode=file)])
        folders = [Directory(ROOT, 0, mode=directory)]
        return Plan([], [], [], [stage], [], folders)

    asked = call("--chmod=D755,F644")
    check_modes(asked, plan(0o644, 0o755))
    check_modes(call(""), plan(0o600, 0o700))
    for other in (plan(0o755, 0o755), plan(0o644, 0o775)):
        with pytest.raises(RealRsyncError):
            check_modes(asked, other)
