"""Room is judged by the size to fetch, if that is known."""

import pytest

from huai_client.inspect.doctor.finding import Result
from huai_client.inspect.doctor.machine import judge_room
from huai_schema.errors import ExitCode

BOUNDS = (16, 10_000)


def test_room(subtests: pytest.Subtests) -> None:
    for free, size, needed, result in [
        (8, 40, None, Result.FAIL),
        (8, 40, 9, Result.FAIL),
        (8, 40, 8, Result.WARN),
        (8, 40, 0, Result.WARN),
        (0, 40, 0, Result.WARN),
        (0, 40, -5, Result.WARN),
        (20, 40, 30, Result.FAIL),
        (20, 40, 0, Result.OK),
        (20, 401, 0, Result.WARN),
        (20_000, 1 << 30, 0, Result.OK),
    ]:
        with subtests.test(free=free, size=size, needed=needed, result=result):
            findings = judge_room("text", free, size, BOUNDS, needed)
            assert findings.result is result
            assert findings.code == (ExitCode.NO_SPACE if result is Result.FAIL else ExitCode.OK)
