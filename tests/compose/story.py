"""The steps of the test of the services, one after the other."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial

from tests.compose.engine import ComposeError, Engine
from tests.compose.image import base_image, crates, wheels
from tests.compose.stack import SERVICES, Stack, wait_for
from tests.compose.trees import COPIES, copy_lines, mirror_lines, wait_until_equal

_LARGE_SIZE = "100M"
"""The size of a file that takes ten seconds at the speed in override.yml."""
_LARGE = "release-large/image.iso"
_STOPPED = 143
"""The exit codes of `repeat` after a signal."""
_PARTS = "find /srv/copy /srv/plain -type f -size +1M"
"""The size that only the large file has, and only when it is complete."""

_STARTED = time.monotonic()


def run_story(engine: Engine) -> None:
    """Run all steps; `ComposeError` for a failed one."""
    _print_step("the base image, the packages, the crates, the image")
    base = base_image(engine)
    wheels()
    crates()
    stack = Stack(engine, _environment(base))
    with _taken_down(stack):
        stack.build()
        _print_step("all services start and become healthy")
        stack.up()
        _rights(stack)
        _loop(stack)
        _changes(stack)
        _committed_only(stack)
        _kill_in_mid_transfer(stack)
        _crash(stack)


def _environment(base: str) -> dict[str, str]:
    return {
        "BASE_IMAGE": base,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "build/wheels",
        "HUAI_UPDATE_EVERY": "3",
        "HUAI_SYNC_EVERY": "1",
        "HUAI_SYNC_JITTER": "1",
    }


@contextlib.contextmanager
def _taken_down(stack: Stack) -> Iterator[None]:
    stack.down()  # left by a killed run
    try:
        yield
    except ComposeError as error:
        raise ComposeError(f"{error}\n{stack.logs()}") from error
    finally:
        stack.down()


def _rights(stack: Stack) -> None:
    _print_step("no service has a capability, another user's rights, or a writable image")
    script = "cat /proc/1/status; id -u; touch /opt/huai/mark 2>&1 || true"
    for service in SERVICES:
        status = stack.inside(service, "sh", "-c", script)
        for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"):
            _must(line in status, f"{service}: {line!r} is not so:\n{status}")
        _must("\n8440\n" in status and "Read-only file system" in status, f"{service}:\n{status}")


def _loop(stack: Stack) -> None:
    _print_step("the mirror changes and is committed by itself, until it is asked to end")
    before = stack.serial()
    wait_for("two more commits", stack.serial, lambda serial: serial >= before + 2, seconds=60)
    state = stack.stop("mirror-update")
    _must(state.exit_code == _STOPPED, f"mirror-update ended with {state.exit_code}")


def _changes(stack: Stack) -> None:
    lines: list[list[str]] = []
    for _ in range(2):
        stack.once("update-sample")
        lines.append(mirror_lines(stack))
        count = wait_until_equal(stack)
        _print_step(f"both downstreams equal the mirror: {count} lines of attributes and digests")
    _must(lines[0] != lines[1], "the sample did not change")


def _committed_only(stack: Stack) -> None:
    _print_step("rsyncd lists what was committed, not what lies in the mirror")
    stack.once("touch", "/srv/mirror/sample/uncommitted")
    listing = stack.inside("rsyncd", "rsync", "rsync://127.0.0.1:8730/sample/")
    _must("lastupdate" in listing and "uncommitted" not in listing, f"rsyncd lists:\n{listing}")


def _kill_in_mid_transfer(stack: Stack) -> None:
    _print_step("upstream and rsyncd are killed while a large file is on its way")
    script = (
        f"mkdir -p /srv/mirror/sample/{_LARGE.rpartition('/')[0]} && "
        f"head -c {_LARGE_SIZE} /dev/urandom >/srv/mirror/sample/{_LARGE} && exec post-sync sample"
    )
    stack.once("sh", "-c", script)
    for service in COPIES:
        wait_for(
            f"the large file is on its way to {service}",
            partial(stack.inside, service, "sh", "-c", _PARTS),
            lambda parts: bool(parts.strip()),
            seconds=30,
        )
    # Only now: the commit may be seen before rsyncd lists it, and then a first run has set what
    # needs no content.
    before = copy_lines(stack, "downstream")
    stack.kill("upstream", "rsyncd")
    for service in COPIES:
        wait_for(
            f"{service} says that its run failed",
            partial(stack.logs, service),
            lambda said: "ended with exit code" in said,
            seconds=60,
        )
    _must(copy_lines(stack, "downstream") == before, "downstream has published half a change")
    stack.start("upstream", "rsyncd")
    stack.wait_until_healthy()
    count = wait_until_equal(stack, seconds=90)
    _print_step(f"started again, they are followed: {count} lines are equal")


def _crash(stack: Stack) -> None:
    _print_step("upstream and rsyncd crash, and are restarted by themselves")
    for service in ("upstream", "rsyncd"):
        stack.crash(service)
    stack.wait_until_healthy()
    stack.once("update-sample")
    count = wait_until_equal(stack)
    _print_step(f"a change after that arrives: {count} lines are equal")


def _must(so: bool, otherwise: str) -> None:
    if not so:
        raise ComposeError(otherwise)


def _print_step(words: str) -> None:
    print(f"{time.monotonic() - _STARTED:5.0f} s  {words}", flush=True)
