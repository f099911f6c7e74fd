"""Several metadata URLs: their order, and the choice between their responses."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_client.metadata.failover import BehindError, Failover
from huai_client.metadata.http import MetadataUrl, NotServedError, UpstreamDownError, UpstreamError
from huai_client.metadata.newest import Newest
from huai_client.run.options import Deadline
from huai_client.state.upstreams import UpstreamHealth
from huai_schema.errors import FormatError, HuaiError

A, B, C = (MetadataUrl(f"https://{name}.example/m.git") for name in "abc")
DOWN = UpstreamDownError("down")
GONE = NotServedError("gone")


class Scene:
    """Upstreams with given responses, which record requests and pauses."""

    def __init__(
        self, *urls: MetadataUrl, health: UpstreamHealth | None = None, **named: Deadline
    ) -> None:
        self.answers: dict[MetadataUrl, int | HuaiError] = {}
        self.requested: list[MetadataUrl] = []
        self.pauses: list[float] = []
        self.messages: list[str] = []
        self.upstreams = Failover(
            urls,
            health or UpstreamHealth(None),
            on_message=self.messages.append,
            pause=self.pauses.append,
            **named,
        )

    def question(self, url: MetadataUrl) -> int:
        self.requested.append(url)
        answer = self.answers[url]
        if isinstance(answer, HuaiError):
            raise answer
        return answer

    def ask(self, behind: Callable[[int], bool] = lambda _: False) -> int:
        return self.upstreams.first_answer(self.question, behind)


@pytest.mark.parametrize("failure", [DOWN, GONE, UpstreamError("login"), FormatError("rubbish")])
def test_whatever_fails_leads_to_the_next_at_once(failure: HuaiError) -> None:
    scene = Scene(A, B, C)
    scene.answers = {A: failure, B: 2, C: 3}
    assert scene.ask() == 2
    assert (scene.requested, scene.pauses, scene.messages) == ([A, B], [], [failure.message])


def test_who_answered_is_asked_first_from_then_on() -> None:
    scene = Scene(A, B)
    scene.answers = {A: GONE, B: 2}
    scene.ask()
    scene.answers[A] = 1
    assert scene.ask() == 2
    assert scene.requested == [A, B, B]


def test_what_was_heard_is_taken_once_and_from_who_said_it() -> None:
    scene = Scene(A, B)
    scene.answers = {A: DOWN, B: 2}
    newest = Newest("1" * 40, B)
    assert scene.ask() == 2
    assert scene.upstreams.take_newest(B) is None
    scene.upstreams.newest = newest
    assert scene.upstreams.take_newest(A) is None
    assert scene.upstreams.take_newest(B) == newest
    assert scene.upstreams.take_newest(B) is None


def test_a_module_that_one_host_lacks_is_no_failure_of_the_host(tmp_path: Path) -> None:
    health = UpstreamHealth(tmp_path / "m")
    scene = Scene(A, B, health=health)
    scene.answers = {A: GONE, B: 2}
    scene.ask()
    assert health.failing() == []


def test_what_may_pass_is_asked_again_after_pauses_that_grow() -> None:
    scene = Scene(A, B)
    scene.answers = {A: DOWN, B: GONE}
    with pytest.raises(UpstreamDownError, match="down"):
        scene.ask()
    assert scene.requested == [A, B, B, A, B, A]  # A is known to be down by then
    assert len(scene.pauses) == 2
    assert 0.5 <= scene.pauses[0] <= 1.0 <= scene.pauses[1] <= 1.5
    assert scene.messages == ["down", "gone"]


def test_what_does_not_pass_is_not_asked_again() -> None:
    scene = Scene(A, B)
    scene.answers = {A: GONE, B: GONE}
    with pytest.raises(NotServedError):
        scene.ask()
    assert (scene.requested, scene.pauses) == ([A, B], [])


def test_a_retry_after_is_honoured() -> None:
    scene = Scene(A)
    scene.answers = {A: UpstreamDownError("busy", retry_after=20)}
    with pytest.raises(UpstreamDownError):
        scene.ask()
    assert all(20 < pause < 22 for pause in scene.pauses)
    assert len(scene.pauses) == 2
    assert re.fullmatch("busy; next attempt in 2[01] s", scene.messages[0])


@pytest.mark.parametrize("after", [61, 10**9])
def test_a_retry_after_that_is_too_long_ends_the_run(after: float) -> None:
    scene = Scene(A)
    scene.answers = {A: UpstreamDownError("busy", retry_after=after)}
    with pytest.raises(UpstreamDownError):
        scene.ask()
    assert (scene.requested, scene.pauses) == ([A], [])


def test_nothing_is_waited_for_beyond_the_deadline() -> None:
    scene = Scene(A, deadline=Deadline.after(10))
    scene.answers = {A: UpstreamDownError("busy", retry_after=20)}
    with pytest.raises(UpstreamDownError):
        scene.ask()
    assert scene.pauses == []


def behind(answer: int) -> bool:
    return answer < 5


def test_one_that_is_behind_gives_way_to_one_that_is_not() -> None:
    for answers in ({A: 4, B: 6}, {B: 6, A: 4}):
        scene = Scene(A, B)
        scene.answers = {**answers}
        assert scene.ask(behind) == 6
        assert scene.messages == [f"{A}: has nothing newer than the local metadata"]


def test_the_first_decides_if_all_are_behind() -> None:
    scene = Scene(A, B)
    scene.answers = {A: 4, B: 3}
    assert scene.ask(behind) == 4
    alone = Scene(A)
    alone.answers = {A: 4}
    assert alone.ask(behind) == 4
    assert alone.messages == []


def test_those_that_are_behind_do_not_stand_in_for_the_first() -> None:
    scene = Scene(A, B, C)
    scene.answers = {A: DOWN, B: 4, C: GONE}
    with pytest.raises(BehindError, match=r"b\.example.*down") as caught:
        scene.ask(behind)
    assert str(A) not in caught.value.message
    assert scene.pauses == []


class FileScene(Scene):
    """Upstreams that have a file, or 0 for one that lacks it."""

    def find(self) -> int | None:
        return self.upstreams.first_found(lambda url: self.question(url) or None)


def test_what_one_lacks_is_asked_of_the_next() -> None:
    scene = FileScene(A, B, C)
    scene.answers = {A: 0, B: 2, C: 3}
    assert scene.find() == 2
    assert (scene.requested, scene.pauses, scene.messages) == ([A, B], [], [])
    assert scene.find() == 2
    assert scene.requested == [A, B, B]


def test_what_nobody_has_is_nothing_and_no_reason_to_ask_again() -> None:
    scene = FileScene(A, B)
    scene.answers = {A: 0, B: DOWN}
    assert scene.find() is None
    assert (scene.requested, scene.pauses) == ([A, B], [])
