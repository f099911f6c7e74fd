"""The filter rules, owners and modes that huai accepts."""

import os
import shlex
from pathlib import Path

import pytest

from huai_client.config.load import Module
from huai_client.config.modes import Modes
from huai_client.huai_rsync.eligibility import (
    check_in_part,
    check_numbers,
    check_owners,
    modes_of,
    why_not,
)
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_client.huai_rsync.filters import as_filter, rules, undeletable
from huai_client.huai_rsync.parse import parse_arguments
from huai_client.huai_rsync.request import RsyncRequest
from huai_client.plan.operations import Plan, Stage
from huai_client.state.state import State
from huai_schema.entries import Directory, File
from huai_schema.paths import ROOT, RelPath


def call(options: str) -> RsyncRequest:
    """Return a complete mirror run with more options."""
    request = parse_arguments(["-a", *shlex.split(options), "h::m", "/srv/x"])
    assert isinstance(request, RsyncRequest), request
    return request


def reason(options: str, folder: Path, **settings: tuple[str, ...]) -> str:
    """Return why a call with these options is left to rsync."""
    module = Module(url="", dest="", **settings)  # type: ignore[arg-type]
    request = call(options)
    return why_not(request, rules(request, folder, module.protect), module, folder)


@pytest.mark.parametrize(
    "options",
    [
        *("--filter 'risk .~tmp~/' --exclude .~tmp~/", "-f 'R .~tmp~' --exclude='- .~tmp~/'"),
        *("--exclude-from=temporary", "--filter='merge temporary'", "--filter='. nothing'"),
    ],
)
def test_the_folder_of_delayed_updates_does_not_count(options: str, tmp_path: Path) -> None:
    (tmp_path / "temporary").write_text("- .~tmp~/\n")
    (tmp_path / "nothing").write_text("# only this\n\n")
    assert reason(f"--delete {options}", tmp_path) == ""
    assert reason(f"--delete {options}", tmp_path, filter=("- *.iso",))


def test_all_but_that_folder_counts(tmp_path: Path) -> None:
    assert reason("--delete --filter='-! .~tmp~/'", tmp_path)
    assert reason("--delete --filter='-! /mark'", tmp_path, protect=("/mark",))


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
    request = rules(call(options), tmp_path)
    assert request
    assert reason(options, tmp_path, filter=as_filter(request)) == ""
    with pytest.raises(RsyncNeededError):
        as_filter(rules(call("--exclude=\udcff"), tmp_path) or ())


def test_what_only_keeps_from_deletion_needs_no_protect(tmp_path: Path) -> None:
    options = "--delete --filter='P /trace/here' --filter=protect_/project/ --exclude=/mark"
    assert reason(options, tmp_path, protect=("/mark", "/more")) == ""
    assert reason(options, tmp_path, filter=("- /mark",)) == ""
    assert "'- /mark'" in reason(options, tmp_path)
    request = undeletable(rules(call(options), tmp_path))
    assert request
    assert request.protects(b"project", directory=True)
    assert not request.protects(b"project/trace", directory=True)
    excluded = undeletable(rules(call("--delete-excluded --exclude=/mark -f 'P /x'"), tmp_path))
    assert excluded
    assert not excluded.protects(b"mark", directory=False)
    assert undeletable(rules(call("--delete-excluded --exclude=/mark"), tmp_path)) is None


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("-f ': .rules'", ": .rules"),
        ("-f '-/ /abs'", "'-/ /abs'"),
        ("--exclude-from=missing", "missing"),
        ("--exclude-from=-", "standard input"),
    ],
)
def test_a_rule_that_is_not_huais_is_named(option: str, place: str, tmp_path: Path) -> None:
    for options in (f"--delete {option}", option):
        with pytest.raises(RsyncNeededError) as caught:
            rules(call(options), tmp_path)
        assert place in caught.value.reason


def test_the_rule_that_differs_from_the_filter_is_named(tmp_path: Path) -> None:
    same = ("- *.iso", "- /old/")
    request = reason("--delete --exclude=*.iso --exclude=/new/", tmp_path, filter=same)
    assert request.endswith("'- /new/' here is '- /old/' in the filter of client.toml")
    request = reason("--delete --exclude=*.iso", tmp_path, filter=same)
    assert request.endswith("no rule here is '- /old/' in the filter of client.toml")


def test_a_part_leaves_out_no_less_than_the_filter(tmp_path: Path) -> None:
    own = ("- *.iso", "+ /keep", "- /old/")
    complete = "--exclude=*.iso --include=/keep --exclude=/old/"
    assert reason("--exclude=*.iso", tmp_path) == ""
    assert reason(complete, tmp_path, filter=own) == ""
    assert (
        reason(f"--exclude=Release* {complete} --include=*.diff/ --exclude=x", tmp_path, filter=own)
        == ""
    )
    assert "is missing" in reason("", tmp_path, filter=own)
    assert "is missing" in reason("--exclude=/old/ --exclude=*.iso", tmp_path, filter=own)
    assert "'+ *.diff/'" in reason(f"--include=*.diff/ {complete}", tmp_path, filter=own)


def test_a_part_belongs_to_something_whole() -> None:
    applied = "1" * 40
    check_in_part(State(applied=applied))
    check_in_part(State(applied=applied, attempted=("2" * 40,) * 8))
    with pytest.raises(RsyncNeededError):
        check_in_part(State(attempted=("2" * 40,)))
    with pytest.raises(RsyncNeededError):
        check_in_part(State(applied=applied, attempted=("2" * 40,) * 9))


@pytest.mark.parametrize("option", ["--no-owner", "--no-g"])
def test_owners_that_root_would_keep_in_another_way(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(RsyncNeededError):
        check_owners(call(option))
    for fine in ("", "--no-o --no-g", "--numeric-ids --no-o --no-g"):
        check_owners(call(fine))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check_owners(call(option))


def test_a_number_is_not_guessed_from_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(owner: bytes) -> Plan:
        stage = Stage("payload", links=[File(RelPath(b"a"), 1, 0, owner=owner)])
        return Plan([], [], [], [stage], [], [Directory(ROOT, 0, group=b"#7")])

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    options = call("--numeric-ids")
    check_numbers(options, plan(b"root"))
    check_numbers(options, plan(b"#1000"))
    check_numbers(call(""), plan(b"mirror"))
    with pytest.raises(RsyncNeededError) as caught:
        check_numbers(options, plan(b"mirror"))
    assert "mirror" in caught.value.reason
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check_numbers(options, plan(b"mirror"))


def test_modes_are_rsyncs(subtests: pytest.Subtests) -> None:
    for options, modes in [
        ("", Modes.EXACT),
        ("--chmod=D755,F644", Modes.PLAIN),
        ("--chmod=D0755,F644", Modes.PLAIN),
        ("--no-p", Modes.LOCAL),
    ]:
        with subtests.test(options=options, modes=modes):
            assert modes_of(call(options)) is modes
