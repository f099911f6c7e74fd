"""What the tests of `verify` share: ways to spoil a tree, and what is said of it then."""

import os
from collections.abc import Iterator
from typing import Any, Self

from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.diff.findings import Difference
from huai_client.run.deadline import Deadline
from huai_client.verify.request import VerifyRequest
from huai_client.verify.run import VerifyRun
from tests.support.upstream import Downstream, Ended


def spoil(down: Downstream, path: str) -> None:
    """Change a file's content, and neither its size nor its time."""
    damaged = down.dest / path
    status = damaged.stat()
    damaged.write_bytes(b"X" * status.st_size)
    os.utime(damaged, ns=(status.st_atime_ns, status.st_mtime_ns))


def cut(down: Downstream, path: str) -> None:
    """Change a file so that anybody sees it."""
    (down.dest / path).write_bytes(b"")


def found(ended: Ended) -> list[str]:
    """The paths that differ."""
    assert ended.code == (47 if ended.events("difference") else 0), ended
    return sorted(event["path"] for event in ended.events("difference"))


def totals(ended: Ended) -> dict[str, Any]:
    """The last word."""
    return ended.events("verified")[0]


def standing(down: Downstream) -> dict[str, Any]:
    """What `status` says of it."""
    verified = down.run("status", "--json").events("module")[0]["verified"]
    assert isinstance(verified, dict)
    return verified


def parts(down: Downstream) -> dict[str, dict[str, Any]]:
    """What `status --parts` says of each directory of the top level."""
    events = down.run("status", "--parts", "--json").events("part")
    return {event["path"]: event for event in events}


def patrol(down: Downstream, request: VerifyRequest) -> tuple[VerifyRun, list[Difference]]:
    """A run of `verify` in this process, and what it tells."""
    told: list[Difference] = []
    module = load(down.root).module(down.name)
    return VerifyRun(Mirror.of(down.root, down.name, module), request, told.append), told


class Steps(Deadline):
    """Over when it was looked at so often."""

    number: int

    @classmethod
    def counted(cls, number: int) -> Self:
        made = cls(0.0)
        made.number = number
        return made

    @property
    def over(self) -> bool:
        self.number -= 1
        return self.number < 0


def bit_by_bit(down: Downstream, entries: int, **request: Any) -> Iterator[list[Difference]]:
    """Runs that get on by about so many entries each, until every part was verified."""
    kind = "content" if request.get("content") else "metadata"
    for _ in range(100):
        run, told = patrol(down, VerifyRequest(deadline=Steps.counted(entries), **request))
        run.run(wait=0)
        yield told
        if standing(down)[kind]["never"] == 0:
            return
    raise AssertionError("does not get on")
