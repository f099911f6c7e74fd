"""The files of the client's own, each with hostile bytes in it.

What can be read is told as `status` and `log` tell it, and written again as a run does that.
So a malformed file ends in an error of huai's own or in a fresh start, with any reader.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import islice

import msgspec

from huai_client.cli.commands.status import _ModuleStatus
from huai_client.config.load import Module
from huai_client.diff.marks import tree_exists
from huai_client.huai_rsync import cache as memory
from huai_client.huai_rsync import discovery
from huai_client.huai_rsync.parse import parse_arguments
from huai_client.huai_rsync.request import RsyncRequest
from huai_client.inspect.format import run_values, run_words
from huai_client.state import delayed_record, history
from huai_client.state import last_run as last
from huai_client.state import state as states
from huai_client.state.history import RunRecord as Run
from huai_client.state.paths import ModulePlaces, module_places
from huai_client.state.upstreams import UpstreamHealth, UpstreamSpeed
from huai_client.state.verification import KnownPart, Unfinished, VerificationRecord
from huai_client.verify.summary import times_of
from huai_program.durations import Duration
from huai_program.humanize import moment
from huai_program.locking import holder
from huai_schema.errors import HuaiError
from huai_schema.paths import ROOT, RelPath
from tests.fuzz.folder import folder
from tests.fuzz.target import Target

_NOW = 1_700_000_000
_COMMIT = "0123456789abcdef0123456789abcdef01234567"
_MODULE = Module(url="http://h", dest="/m", max_age=Duration("7d"))
_FAILED = Run(kind="sync", time=_NOW, code=10, reason="f", before=_COMMIT, commit=_COMMIT)
_INSIDE = RelPath(b"a/b")
_DAMAGE = [b"[", b"]", b"{", b"}", b"1e999", b"null", b'"\\ud800"', b"-1", b"99999999999999999999"]


def _show_status(places: ModulePlaces) -> None:
    """As `status` does."""
    standing = _ModuleStatus("m", _MODULE, places)
    json.dumps(standing.values())
    _ = *standing.remarks(), *(json.dumps(top.values()) for top in standing.tops)


def _state(places: ModulePlaces, data: bytes) -> object:
    places.state.write_bytes(data)
    state = states.load(places.state)
    _show_status(places)
    states.save(places.state, state)
    assert states.load(places.state) == state
    return state.attempts, state.first_seen(_COMMIT, _NOW), tree_exists("/", state)


def _delayed(places: ModulePlaces, data: bytes) -> object:
    places.delayed.write_bytes(data)
    _show_status(places)
    delayed = delayed_record.load(places.delayed)
    delayed_record.save(places.delayed, delayed, now=_NOW)
    again = delayed_record.load(places.delayed)
    assert again == [each._replace(since=each.since or _NOW) for each in delayed]
    return delayed_record.head(places.delayed).due(5, _NOW)


def _history(places: ModulePlaces, data: bytes) -> object:
    places.history.write_bytes(data)
    newest = history.last(places.history)
    alike = _FAILED if newest is None else msgspec.structs.replace(newest, time=_NOW)
    history.append(places.history, alike)
    runs = history.read(places.history)
    serials = {run.commit: run.serial for run in runs}
    for run in runs:
        run_words(run, serials)
        json.dumps(run_values(run, serials))
    return last.interruption(places.history, None)


def _last(places: ModulePlaces, data: bytes) -> object:
    places.last.write_bytes(data)
    _show_status(places)
    last.save(places.last, _FAILED, _NOW)
    return last.load(places.last) is not None


def _verified(places: ModulePlaces, data: bytes) -> object:
    places.verified.write_bytes(data)
    _show_status(places)
    times_of(places.verified, _INSIDE)
    with VerificationRecord(places.verified) as record:
        record.begin_run()
        with record.writing():
            record.record_applied(_COMMIT, "")
            if record.find_part(_INSIDE) is None:
                record.add(_INSIDE, KnownPart(b"t" * 20, b"i" * 16))
            record.change(ROOT, KnownPart(b"T" * 20, b"I" * 16))
            for child in islice(record.children(ROOT), 100):
                record.drop(child)
            middle = record.unfinished(content=False) or Unfinished(_INSIDE, 1, b"", 0)
            record.record_position(middle, content=True)
            record.record_finished(middle, b"i" * 16, content=False)
            record.record_damage(_INSIDE, 3)
        due_paths = record.due(ROOT, content=True, damaged_first=True, most=10)
        return due_paths, record.left(ROOT)


def _upstreams(places: ModulePlaces, data: bytes) -> object:
    place = places.root / "upstreams.json"
    place.write_bytes(data)
    health = UpstreamHealth(place, lambda: _NOW)
    for failure in health.failing():
        moment(failure.since), moment(failure.until), json.dumps(failure._asdict())
        health.failed_lately(failure.service)
        health.failed(failure.service, failure.reason)
        health.succeeded(failure.service)
    return UpstreamHealth(place, lambda: _NOW).failing()


def _speeds(places: ModulePlaces, data: bytes) -> object:
    place = places.root / "speeds.json"
    place.write_bytes(data)
    speed = UpstreamSpeed(place, lambda: _NOW)
    estimate = speed.of_service("https://h")
    speed.observe("https://h", 1 << 20, 2.0, 0.5)
    again = UpstreamSpeed(place, lambda: _NOW).of_service("https://h")
    assert again is not None
    assert again.expected > 0
    return estimate


def _rsync(places: ModulePlaces, data: bytes) -> object:
    (places.folder / "rsync.json").write_bytes(data)
    arguments = memory.remembered(places)
    if arguments is None:
        return None
    memory.remember(places, arguments)
    assert memory.remembered(places) == arguments
    return arguments.kinds and arguments.kinds.text(2)


def _sources(places: ModulePlaces, data: bytes) -> object:
    place = places.root / "rsync-sources.json"
    place.write_bytes(data)
    discovery.record_refusal(_CALL, places.root)
    return str(_CALL.source) in json.loads(place.read_bytes())


def _lock(places: ModulePlaces, data: bytes) -> object:
    places.lock.write_bytes(data)
    return holder(places.lock)


def _call() -> RsyncRequest:
    arguments = parse_arguments(["-a", "h::m", "/d"])
    assert isinstance(arguments, RsyncRequest)
    return arguments


def _seed_of_the_record() -> bytes:
    """As small as SQLite writes one."""
    path = folder("record") / "verified"
    with VerificationRecord(path) as record, record.writing():
        record.record_applied(_COMMIT, "")
        for part in (ROOT, RelPath(b"a"), _INSIDE, RelPath(b"x")):
            record.add(part, KnownPart(b"t" * 20, b"i" * 16))
        record.record_position(Unfinished(_INSIDE, 7, b"\0x\0", 2), content=False)
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA page_size = 512; VACUUM")
    return path.read_bytes()


_CALL = _call()
_STATE = json.dumps(
    {
        "version": 1,
        "applied": _COMMIT,
        "serial": 3,
        "attempted": [_COMMIT],
        "attempted_filters": ["modes safe\n- x\n"],
        "time": _NOW,
        "total_bytes": 17,
        "committed": _NOW,
        "entries": 9,
        "filter": "modes safe\n- x\n",
        "held": _COMMIT,
        "trash": _NOW,
        "identity": "0" * 32,
        "marks": ["usr", "proc"],
    }
).encode()
_RUNS = b"".join(
    msgspec.json.encode(each) + b"\n"
    for each in (
        Run(kind="sync", time=_NOW, commit=_COMMIT, serial=3, done={"add": 2}, received=2000),
        Run(kind="verify", time=_NOW, content=True, differences=2, process=5, ended=False),
        msgspec.structs.replace(_FAILED, times=4, last=_NOW + 60),
    )
)
_SPEEDS = json.dumps([["https://h", 0.25, 1e6, _NOW - 60], ["x", 0, 7, 5]])
_UPSTREAMS = json.dumps([["http://h:1", 2, _NOW - 900, _NOW + 60, "r"], ["x", 1, 5, _NOW, "r"]])


def _target(
    name: str, run: Callable[[ModulePlaces, bytes], object], *seeds: bytes, refuses: bool = False
) -> Target:
    places = module_places(folder(name), "m")
    places.folder.mkdir(parents=True)
    errors = (HuaiError,) if refuses else ()
    return Target(lambda data: run(places, data), errors, seeds, _DAMAGE)


STATE_FILES = {
    "state": _target("state", _state, _STATE, refuses=True),
    "state-delayed": _target(
        "state-delayed",
        _delayed,
        b"huai-delayed 1 2 5\n5\tf\ta\\x0ab\n7\td\tx/y\n",
        b"huai-delayed 1 0 0\n",
        refuses=True,
    ),
    "state-history": _target("state-history", _history, _RUNS),
    "state-last": _target(
        "state-last", _last, msgspec.json.encode(last.LastRun(_NOW, _NOW, 10, "f", _NOW, _NOW))
    ),
    "state-verified": _target("state-verified", _verified, _seed_of_the_record(), refuses=True),
    "state-upstreams": _target("state-upstreams", _upstreams, _UPSTREAMS.encode()),
    "state-speeds": _target("state-speeds", _speeds, _SPEEDS.encode()),
    "state-rsync": _target(
        "state-rsync",
        _rsync,
        msgspec.json.encode(memory.Memory(_COMMIT, ("rsync://h/m",), (1, 2, 3), _NOW)),
    ),
    "state-sources": _target("state-sources", _sources, b'{"rsync://h/m": 99999999999}'),
    "state-lock": _target("state-lock", _lock, b"1\n", b"999999999\n"),
}
