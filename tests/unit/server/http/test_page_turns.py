"""The turns of pages that read commits, and the pauses in which the event loop runs."""

import asyncio
import threading

import pytest

from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.browse import Browser
from huai_server.http.pages.reading import with_pauses

SECONDS = 60
CROWD = 60


def test_one_address_takes_half_of_the_turns_and_of_the_line() -> None:
    async def run() -> None:
        browser, go = Browser(lambda *_: asyncio.sleep(0)), threading.Event()

        def slow() -> bool:
            return go.wait(SECONDS)

        crowd = [asyncio.ensure_future(browser.read("10.0.0.1/32", slow)) for _ in range(CROWD)]
        for _ in range(9):
            assert await browser.read("10.0.0.2/32", lambda: "page") == "page"
        go.set()
        done = await asyncio.gather(*crowd, return_exceptions=True)
        refused = [each for each in done if isinstance(each, HttpError)]
        assert {each.status for each in refused} == {503}
        assert (done.count(True), len(refused)) == (17, CROWD - 17)

    asyncio.run(run())


@pytest.mark.parametrize(("milliseconds", "pauses"), [(0.0, 0), (0.5, 25), (1.0, 50), (5.0, 100)])
def test_work_pauses_by_time_and_not_by_items(milliseconds: float, pauses: int) -> None:
    now, paused = [0.0], list[float]()

    def clock() -> float:
        return now[0]

    for _ in with_pauses(range(100), clock, paused.append):
        now[0] += milliseconds / 1000 + 1e-9
    assert len(paused) == pauses
