"""A publish that is killed before any of its system calls leaves a head that can be followed."""

import errno
import shutil
from itertools import product
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.errors import storage_errors
from tests.support.static_files import Publisher
from tests.support.system_calls import CHANGING, KILL, at, never, supervise


@pytest.fixture
def publisher(short_path: Path) -> Publisher:
    """At the end of a block: a list is written, too."""
    made = Publisher(short_path)
    for number in range(63):
        made.change(number)
    made.publish()
    made.upstream.configure(block_index=128 << 10)
    (made.upstream.tree / "large").write_bytes(bytes(300_000))
    made.change(1, 2)
    return made


def run(publisher: Publisher) -> str:
    try:
        with storage_errors(publisher.folder):
            return str(publisher.publish().files)
    except HuaiError as error:
        return f"failed: {error.message}"


def prove(publisher: Publisher) -> None:
    """All that the head names is there."""
    for step in publisher.steps(0) + publisher.steps(1):
        assert (publisher.files / "static" / step.file.pack).stat().st_size == step.file.size


def test_at_every_system_call(publisher: Publisher) -> None:
    saved = publisher.folder.with_name("saved")
    shutil.copytree(publisher.folder, saved)
    whole = supervise(CHANGING, lambda: run(publisher), never)
    assert publisher.head.newest == 64
    amid = 0
    for call, outcome in product(whole.calls, (KILL, errno.ENOSPC)):
        shutil.rmtree(publisher.folder)
        shutil.copytree(saved, publisher.folder)
        supervise(CHANGING, lambda: run(publisher), at(call.step, outcome))
        prove(publisher)
        amid += publisher.head.newest == 63
        assert not run(publisher).startswith("failed")
        assert publisher.head.newest == 64
        prove(publisher)
        assert not list(publisher.folder.rglob("tmp_*")), call
    assert amid > 10
