"""The progress of a file, over broken connections."""

from huai_client.transfer.http.job import Job, Sink
from huai_client.transfer.http.verdict import Meaning, RequestedRange, Verdict


def test_without_a_digest_parts_are_not_put_together() -> None:
    for is_proved, rest in ((True, "4-9"), (False, "")):
        job = Job("", RequestedRange(0, 10, 10, proved=is_proved), Sink())
        job.begin(Verdict(Meaning.TAKE, most=10))
        job.write(b"0123")
        job.record_break()
        assert job.requested.header == rest
