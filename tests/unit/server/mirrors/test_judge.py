"""The settings of `[mirrors]` for the clocks and the silence of downstreams."""

import os
import time
from pathlib import Path

import pytest

from huai_program import durations
from huai_program.durations import Duration
from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_server.config.mirrors import AllowedDownstream, Mirrors, MirrorSettings
from huai_server.mirrors.judge import Commits, RefusedError, check_attestation, next_holding
from huai_server.mirrors.record import (
    Probe,
    holding_path,
    probe_path,
    write_holding,
    write_probe,
)
from huai_server.mirrors.states import MirrorStates
from tests.support.keys import key

TIME = 1_700_000_000
COMMIT = "1" * 40
COMMITS = Commits("", {1: (COMMIT, TIME)})
SAID = Attestation("m", "", 1, COMMIT, TIME, False, ("https://mirror.example/m/",))  # noqa: FBT003
SIGNED = SAID.signed(key(1).sign)
ALLOWED = AllowedDownstream(key(1).public, ("mirror.example",))


@pytest.mark.parametrize("tolerance", ["5m", "2h"])
def test_a_clock_may_differ_by_clock_tolerance(tolerance: str) -> None:
    seconds = durations.seconds(MirrorSettings(clock_tolerance=Duration(tolerance)).clock_tolerance)
    signed = SignedAttestation.decode(SIGNED)
    for now in (TIME - seconds, TIME + seconds):
        check_attestation(signed, "m", ALLOWED, COMMITS, now, seconds)
    for now in (TIME - seconds - 1, TIME + seconds + 1):
        with pytest.raises(RefusedError, match=f"more than {seconds} s") as refused:
            check_attestation(signed, "m", ALLOWED, COMMITS, now, seconds)
        assert refused.value.hint == "set the clock of the downstream"


@pytest.mark.parametrize(("silence", "seconds"), [("90m", 5400), ("2d", 172_800)])
def test_a_mirror_is_offered_until_max_silence(tmp_path: Path, silence: str, seconds: int) -> None:
    mirrors = Mirrors(tmp_path, {"one": ALLOWED}, MirrorSettings(max_silence=Duration(silence)))
    signed = SignedAttestation.decode(SIGNED)
    write_holding(
        holding_path(tmp_path, "m", "one"), next_holding(None, signed, SIGNED, COMMITS, 0)
    )
    offered = [
        each.offered
        for now in (TIME, TIME + seconds, TIME + seconds + 1, TIME - seconds - 1)
        for each in MirrorStates().read(mirrors, "m", COMMITS, now)
    ]
    assert offered == [True, True, False, False]  # the last: clocks were wrong at TIME


@pytest.mark.parametrize("settled", [True, False])
def test_a_replaced_record_counts_whatever_the_time_of_its_folder(
    tmp_path: Path, settled: bool
) -> None:
    """Two renames within a tick of the clock leave the same time."""
    mirrors = Mirrors(tmp_path, {"one": ALLOWED}, MirrorSettings())
    signed = SignedAttestation.decode(SIGNED)
    write_holding(
        holding_path(tmp_path, "m", "one"), next_holding(None, signed, SIGNED, COMMITS, 0)
    )
    states, now, offered = MirrorStates(), time.time_ns(), list[bool]()
    good, bad = Probe(TIME, "good", 1), Probe(TIME, "lies", 1)
    for number, probe in enumerate((good, bad, good)):
        write_probe(probe_path(tmp_path, "m", "one"), probe)
        moment = TIME + number if settled else now
        os.utime(tmp_path / "m", ns=(moment, moment))
        offered += [each.offered for each in states.read(mirrors, "m", COMMITS, TIME)]
    assert offered == [True, False, True]
