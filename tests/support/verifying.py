"""Ways to spoil a tree, and the results of `verify` for it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Difference
from huai_client.run.options import Deadline
from huai_client.verify.queue import VerifyRequest
from huai_client.verify.run import VerifyRun
from tests.support.upstream import Downstream, Ended


def spoil(down: Downstream, path: str) -> None:
    """Change the content of a file of the copy, and neither its size nor its time."""
    spoil_file(down.dest / path)


def spoil_file(path: Path) -> None:
    """Change a file's content, and neither its size nor its time."""
    status = path.stat()
    path.write_bytes(b"X" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def cut(down: Downstream, path: str) -> None:
    """Empty a file, so that its size differs."""
    (down.dest / path).write_bytes(b"")


def differing_paths(ended: Ended) -> list[str]:
    """Return the paths that differ."""
    assert ended.code == (47 if ended.events("difference") else 0), ended
    return sorted(event["path"] for event in ended.events("difference"))


def totals(ended: Ended) -> dict[str, Any]:
    """Return the totals of a run."""
    return ended.events("verified")[0]


def standing(down: Downstream) -> dict[str, Any]:
    """Return the module's `verified` of `status`."""
    verified = down.run("status", "--json").events("module")[0]["verified"]
    assert isinstance(verified, dict)
    return verified


def parts(down: Downstream) -> dict[str, dict[str, Any]]:
    """Return the parts of `status --parts` by top-level directory."""
    events = down.run("status", "--parts", "--json").events("part")
    return {event["path"]: event for event in events}


def patrol(down: Downstream, request: VerifyRequest) -> tuple[VerifyRun, list[Difference]]:
    """Return a run of `verify` in this process, and its list of differences."""
    differences: list[Difference] = []
    module = load(down.root).module(down.name)
    return VerifyRun(
        Mirror.of(down.root, down.name, module), request, differences.append
    ), differences


class Steps(Deadline):
    """A deadline that is over after a number of checks."""

    number: int

    @classmethod
    def counted(cls, number: int) -> Self:
        deadline = cls(0.0)
        deadline.number = number
        return deadline

    @property
    def over(self) -> bool:
        self.number -= 1
        return self.number < 0


def bit_by_bit(down: Downstream, entries: int, **request: Any) -> Iterator[list[Difference]]:
    """Yield the differences of runs of about so many entries, until every part is verified."""
    kind = "content" if request.get("content") else "metadata"
    for _ in range(100):
        run, differences = patrol(down, VerifyRequest(deadline=Steps.counted(entries), **request))
        run.run(wait=0)
        yield differences
        if standing(down)[kind]["never"] == 0:
            return
    raise AssertionError("does not get on")
