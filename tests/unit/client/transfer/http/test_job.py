"""The progress of a file, over broken connections."""

from huai_client.transfer.http.job import Job, Sink
from huai_client.transfer.http.verdict import Meaning, RequestedRange, Verdict

TAKE = Verdict(Meaning.TAKE, most=10)


class RecordingSink(Sink):
    """A sink that records the written data."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def begin(self, position: int) -> None:
        del self.bytes[position:]

    def write(self, position: int, data: bytes) -> None:
        assert position == len(self.bytes)
        self.bytes += data


def test_what_broke_is_asked_for_the_rest() -> None:
    sink = RecordingSink()
    job = Job("", RequestedRange(0, 10, 10), sink)
    job.begin(TAKE)
    job.write(b"0123")
    assert job.record_break() == 0
    assert job.requested.header == "4-9"
    assert [job.record_break(), job.record_break()] == [1, 2]
    job.begin(TAKE._replace(begins=4))
    job.write(b"456789")
    assert job.is_whole
    assert sink.bytes == b"0123456789"


def test_the_whole_instead_of_the_rest() -> None:
    sink = RecordingSink()
    sink.bytes += b"wrong"
    job = Job("", RequestedRange(0, 10, 10), sink, 5)
    assert job.requested.header == "5-9"
    job.begin(TAKE)
    job.write(b"0123456789")
    assert sink.bytes == b"0123456789"


def test_without_a_digest_parts_are_not_put_together() -> None:
    job = Job("", RequestedRange(0, 10, 10, proved=False), RecordingSink())
    job.begin(TAKE)
    job.write(b"0123")
    job.record_break()
    assert job.requested.header == ""


def test_what_may_have_changed_ends_where_it_ends() -> None:
    job = Job("", RequestedRange(0, 10, 10, proved=False, changes=True), RecordingSink())
    job.begin(TAKE)
    job.write(b"012")
    assert job.is_whole
