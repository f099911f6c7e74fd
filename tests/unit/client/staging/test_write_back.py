"""Writing arrived files to disk while more arrive."""

import os
from pathlib import Path

import pytest

from huai_client.staging.area import WriteBack
from tests.support.system_calls import Call, supervise

_ENOUGH = 16 << 20


def test_what_is_asked_for_meanwhile_is_written_once(tmp_path: Path) -> None:
    begun, begins = os.pipe()
    requests, asks = os.pipe()
    handle = os.open(tmp_path, os.O_RDONLY)
    write_back = WriteBack(handle)

    def work() -> None:
        write_back.arrived(1, _ENOUGH)
        os.read(begun, 1)
        for _ in range(5):
            write_back.arrived(1, _ENOUGH)
        os.write(asks, b"-")
        write_back.close()

    def hold_the_first(call: Call) -> None:
        if call.step == 1:
            os.write(begins, b"-")
            os.read(requests, 1)

    assert len(supervise(["syncfs"], work, hold_the_first).calls) in {1, 2}
    for descriptor in (begun, begins, requests, asks, handle):
        os.close(descriptor)


def test_nothing_begins_once_it_is_over(tmp_path: Path) -> None:
    def work() -> None:
        handle = os.open(tmp_path, os.O_RDONLY)
        write_back = WriteBack(handle)
        write_back.close()
        write_back.arrived(1, _ENOUGH)
        write_back.close()
        os.close(handle)

    assert supervise(["syncfs"], work, lambda _: None).calls == []


@pytest.mark.parametrize("left", [0, 1])
def test_it_begins_once_enough_is_there(tmp_path: Path, left: int) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    begun, begins = os.pipe()

    def work() -> None:
        write_back = WriteBack(handle)
        write_back.arrived(1000, 0)
        write_back.arrived(1000, _ENOUGH - 2000 * 4096 - left)
        if not left:
            os.read(begun, 1)
        write_back.close()

    def release(_: Call) -> None:
        os.write(begins, b"-")

    assert len(supervise(["syncfs"], work, release).calls) == 1 - left
    for descriptor in (handle, begun, begins):
        os.close(descriptor)


def test_an_error_ends_nothing(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    os.close(handle)
    write_back = WriteBack(handle)
    write_back.arrived(1, _ENOUGH)
    write_back.close()
