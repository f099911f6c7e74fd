"""The allowance of one address."""

import pytest

from huai_server.http.asgi import limiter as module
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Allowance
from tests.support.clock import Clock

HERE, THERE = "10.0.0.1/32", "10.0.0.2/32"


def is_refused(allowance: Allowance, address: str) -> bool:
    try:
        allowance.check(address)
    except HttpError as error:
        return error.status == 503
    return False


def test_a_stock_is_spent_and_grows_again() -> None:
    clock = Clock()
    allowance = Allowance(120, 0.2, most=10, clock=clock)
    fetches = 0
    while not is_refused(allowance, HERE):
        allowance.spend(HERE, 4.5)
        fetches += 1
    assert fetches == 27  # the last one began with some stock left
    assert not is_refused(allowance, THERE)
    with pytest.raises(HttpError) as refused:
        allowance.check(HERE)
    clock.now += float(refused.value.headers["Retry-After"])
    assert not is_refused(allowance, HERE)
    hour, fetches = clock.now + 3600, 0
    while clock.now < hour:
        if not is_refused(allowance, HERE):
            allowance.spend(HERE, 4.5)
            fetches += 1
        clock.now += 1
    assert fetches * 4.5 == pytest.approx(3600 * 0.2, abs=10)


def test_a_slow_reader_spends_little_and_an_unknown_address_nothing() -> None:
    clock = Clock()
    allowance = Allowance(120, 0.2, most=10, clock=clock)
    allowance.spend(HERE, 3600)
    assert not is_refused(allowance, HERE)
    for _ in range(100):
        allowance.spend("", 10)
    assert not is_refused(allowance, "")


def test_addresses_with_a_full_stock_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 3)
    clock = Clock()
    allowance = Allowance(10, 1, most=10, clock=clock)
    for number in range(3):
        allowance.spend(str(number), 5)
    clock.now += 5
    for _ in range(2):
        allowance.spend(HERE, 10)
    assert is_refused(allowance, HERE)
    assert [*vars(allowance)["_full_at"]] == [HERE]
