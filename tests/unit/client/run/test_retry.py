"""Retries: their number, and their pauses."""

import pytest

from huai_client.run.retry import Backoff, retry

BACKOFF = Backoff(retries=4, first=1.0, longest=3.0)


class _PassingError(Exception):
    def __init__(self, retry_after: float = 0.0) -> None:
        super().__init__()
        self.retry_after = retry_after


class Work:
    """An action that fails with each of the errors in turn, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.pauses: list[float] = []

    def __call__(self) -> str:
        if self._errors:
            raise self._errors.pop(0)
        return "done"

    def retry(self) -> str:
        return retry(self, _PassingError, BACKOFF, self.pauses.append)


def test_pauses_double_up_to_the_longest() -> None:
    work = Work(*(_PassingError() for _ in range(4)))
    assert work.retry() == "done"
    bounds = [(1, 2), (2, 3), (3, 4), (3, 4)]
    for pause, (least, most) in zip(work.pauses, bounds, strict=True):
        assert least <= pause <= most


def test_no_pause_is_shorter_than_what_was_asked_for() -> None:
    work = Work(_PassingError(50.0), _PassingError(0.5))
    assert work.retry() == "done"
    assert 51.0 <= work.pauses[0] <= 52.0
    assert 2.5 <= work.pauses[1] <= 3.5


def test_the_last_error_is_the_end() -> None:
    errors = [_PassingError() for _ in range(6)]
    work = Work(*errors)
    with pytest.raises(_PassingError) as caught:
        work.retry()
    assert caught.value is errors[4]
    assert len(work.pauses) == 4


@pytest.mark.parametrize("before", [0, 2])
def test_what_does_not_pass_is_not_repeated(before: int) -> None:
    work = Work(*(_PassingError() for _ in range(before)), ValueError("lasting"))
    with pytest.raises(ValueError, match="lasting"):
        work.retry()
    assert len(work.pauses) == before


@pytest.mark.parametrize("retry_after", [0.0, 20.0])
def test_two_clients_do_not_come_back_together(retry_after: float) -> None:
    works = [Work(_PassingError(retry_after)) for _ in range(5)]
    for work in works:
        work.retry()
    assert len({work.pauses[0] for work in works}) > 1
