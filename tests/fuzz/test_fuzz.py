"""Hostile inputs for whatever takes bytes from outside: thousands each time, millions if asked.

`HUAI_TEST_FUZZ` is how many in total, `HUAI_TEST_SEED` begins another row of them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import harness
from tests.fuzz.harness import BrokenInvariantError, check, fuzz
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

TOP = Path(__file__).parents[2]
PATH = os.pathsep.join(
    str(TOP / part) for part in ("", "native/python", "schema", "server", "client")
)
FOUND = sorted((Path(__file__).parent / "found").glob("*-*"))
COUNT = int(os.environ.get("HUAI_TEST_FUZZ", "10000")) // len(TARGETS)
SEED = int(os.environ.get("HUAI_TEST_SEED", "1"))
PROCESSES = 4
"""Among which the targets are divided: to start one costs more than the inputs of a usual run."""
INPUTS_A_SECOND = 50
"""Inputs that the slowest target takes in a second on a busy machine."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.harness", *arguments],
        env={**os.environ, "PYTHONPATH": PATH},
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(120 + COUNT * len(TARGETS) // PROCESSES // INPUTS_A_SECOND)
@pytest.mark.parametrize("first", range(PROCESSES))
def test_any_bytes_give_a_value_or_a_refusal(first: int, tmp_path: Path) -> None:
    done = run(",".join([*TARGETS][first::PROCESSES]), str(COUNT), str(SEED), str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_found_once_is_refused() -> None:
    for path in FOUND:
        check(TARGETS[path.name.rpartition("-")[0]], path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_accepted(name: str) -> None:
    """A mutator that begins with refused inputs gets nowhere."""
    target = TARGETS[name]
    accepted = 0
    for data in target.seeds:
        try:
            target.run(data)
        except target.refuses:
            continue
        accepted += 1
    assert accepted


def nested(data: bytes) -> object:
    """A parser with a mistake behind two decisions."""
    if not data.startswith(b"key="):
        raise ValueError("no key")
    value = data[4:]
    if not value.endswith(b";"):
        raise ValueError("no end")
    if b"/" in value:
        return value.split(b"/")[2]  # one slash: IndexError
    return value


PLANTED = {
    "error": nested,
    "memory": lambda data: bytes(1 << 40) if data.count(b"\0") > 2 else data,
    "time": lambda data: all(zero == 0 for zero in iter(int, 1)) if b"//" in data else data,
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    program = (
        "from tests.fuzz import harness, target, test_fuzz; import sys\n"
        "fuzzed = target.Target(test_fuzz.PLANTED[sys.argv[1]], (ValueError,), [b'key=value'])\n"
        "harness.limit()\n"
        "try: harness.fuzz(fuzzed, 100_000, 1)\n"
        "except harness.BrokenInvariantError as broken: print(repr(broken.__cause__))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, fault],
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    expected = {"error": "IndexError", "memory": "MemoryError", "time": "SlowError"}[fault]
    assert done.stdout.startswith(expected), done.stdout + done.stderr


def test_the_same_seed_gives_the_same_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        inputs: list[bytes] = []
        fuzz(Target(inputs.append, (), [b"abc"]), 500, seed)
        return inputs

    assert inputs(3) == inputs(3) != inputs(4)


def test_one_bad_input_is_handed_back() -> None:
    with pytest.raises(BrokenInvariantError, match="IndexError") as caught:
        check(Target(nested, (ValueError,), [b"key="]), b"key=/;")
    assert caught.value.data == b"key=/;"
    assert harness.SECONDS > 0
