"""The sums that a listener gets while content arrives."""

from huai_client.transfer.listener import Tally
from huai_schema.entries import File
from huai_schema.paths import rel_path
from tests.support.transfers import Recorder

FILES = [File(rel_path(b"%d" % number), 100, 0) for number in range(4)]


def test_files_are_counted_as_they_arrive_and_once() -> None:
    listener = Recorder()
    tally = Tally(listener)
    tally.in_flight(0, 150, 1)
    tally.in_flight(1, 120, 1)
    tally.in_flight(0, 200, 2)
    tally.completed(0, 230)
    tally.arrived(FILES[:2])
    tally.completed(1, 0)
    tally.in_flight(1, 10)  # it was interrupted, and is repeated
    tally.arrived(FILES[2:])
    assert listener.sizes == [150, 270, 320, 410]
    assert listener.files == [1, 2, 3, 4]


def test_a_verified_file_of_a_running_batch_is_counted_once() -> None:
    listener = Recorder()
    tally = Tally(listener)
    tally.in_flight(0, 250)
    tally.arrived(FILES[:2], stream=0)
    tally.in_flight(0, 60)
    tally.completed(0, 260)
    assert listener.sizes == [250, 250, 260]
    tally.started(1, 100)  # the next large file
    tally.in_flight(0, 30)
    assert listener.sizes[3:] == [30]
