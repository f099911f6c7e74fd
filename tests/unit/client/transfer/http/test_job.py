"""How far the bytes of a file have come, over broken connections."""

from huai_client.transfer.http.answer import Answer, Asked, Meaning
from huai_client.transfer.http.job import Job

TAKE = Answer(Meaning.TAKE, most=10)


class Kept:
    """What was written."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def begin(self, position: int) -> None:
        del self.bytes[position:]

    def write(self, position: int, data: bytes) -> None:
        assert position == len(self.bytes)
        self.bytes += data


def test_what_broke_is_asked_for_the_rest() -> None:
    kept = Kept()
    job = Job("", Asked(0, 10, 10), kept)
    job.begin(TAKE)
    job.take(b"0123")
    assert job.breaks() == 0
    assert job.asked.header == "4-9"
    assert [job.breaks(), job.breaks()] == [1, 2]
    job.begin(TAKE._replace(begins=4))
    job.take(b"456789")
    assert job.is_whole
    assert kept.bytes == b"0123456789"


def test_the_whole_instead_of_the_rest() -> None:
    kept = Kept()
    kept.bytes += b"wrong"
    job = Job("", Asked(0, 10, 10), kept, 5)
    assert job.asked.header == "5-9"
    job.begin(TAKE)
    job.take(b"0123456789")
    assert kept.bytes == b"0123456789"


def test_without_a_digest_parts_are_not_put_together() -> None:
    job = Job("", Asked(0, 10, 10, proved=False), Kept())
    job.begin(TAKE)
    job.take(b"0123")
    job.breaks()
    assert job.asked.header == ""


def test_what_may_have_changed_ends_where_it_ends() -> None:
    job = Job("", Asked(0, 10, 10, proved=False, changes=True), Kept())
    job.begin(TAKE)
    job.take(b"012")
    assert job.is_whole
