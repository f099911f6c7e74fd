"""Give parsers hostile inputs: `python -m tests.fuzz.harness TARGET[,…] COUNT SEED [FOLDER]`.

The invariant: any bytes give a value or an error of the parser's own, within a second and within
`MEMORY_BYTES`. The first input that breaks it is written to FOLDER and named; exit code 1.
What guides the mutator: an input that ends at a line of the source, or with words of an error,
where none ended before is kept; the engine has no lines. A run can be repeated by its seed.
"""

import re
import resource
import signal
import sys
import traceback
from hashlib import sha256
from pathlib import Path
from types import FrameType

from tests.fuzz.mutator import Mutator
from tests.fuzz.target import Outcome, Target

_NUMBERS = re.compile("[0-9a-f]*[0-9][0-9a-f]*")
SECONDS = 1.0
"""CPU seconds of this process for one input, so that a busy machine gives no finding."""
MEMORY_BYTES = 256 << 20
"""Beyond what the process has before the first input."""


class SlowError(BaseException):
    """An input took too long; no parser catches it."""


class BrokenInvariantError(Exception):
    """An input that gave something else than a value or a refusal."""

    def __init__(self, data: bytes, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.data = data


def check(target: Target, data: bytes) -> object:
    """The result of one input, used for guidance only."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        value = target.run(data)
        return value if isinstance(value, Outcome) else type(value)
    except target.refuses as error:
        return _place(error)
    except (Exception, SlowError) as error:
        raise BrokenInvariantError(data, error) from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def fuzz(target: Target, count: int, seed: int) -> int:
    """How many different ends `count` inputs had; `BrokenInvariantError` for the first bad one."""
    mutator = Mutator(seed, target.seeds, target.words)
    ends = {check(target, data) for data in target.seeds}
    for _ in range(count):
        data = mutator.next()
        end = check(target, data)
        if end not in ends:
            ends.add(end)
            mutator.learn(data)
    return len(ends)


def limit() -> None:
    """Bound the memory and the time of this process."""
    signal.signal(signal.SIGVTALRM, _too_slow)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise SlowError(f"more than {SECONDS} s")


def _place(error: BaseException) -> object:
    """The lines of the source where it was raised and called: cheap to find, and telling."""
    trace, before = error.__traceback__, None
    while trace is not None and trace.tb_next is not None:
        before, trace = trace, trace.tb_next
    lines = [each and (each.tb_frame.f_code.co_name, each.tb_lineno) for each in (before, trace)]
    return type(error), *lines, _NUMBERS.sub("", str(error))


def main() -> int:
    """The program."""
    from tests.fuzz.targets import TARGETS

    names, count, seed = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
    limit()
    failed = 0
    for name in names:
        try:
            ends = fuzz(TARGETS[name], count, seed)
        except BrokenInvariantError as broken:
            failed = 1
            traceback.print_exception(broken.__cause__)
            print(f"{name}: {broken}: {broken.data!r}")
            if len(sys.argv) > 4:
                place = Path(sys.argv[4]) / f"{name}-{sha256(broken.data).hexdigest()[:12]}"
                place.write_bytes(broken.data)
                print(f"keep it: {place} belongs into tests/fuzz/found")
        else:
            print(f"{name}: {count} inputs, {ends} ends")
    return failed


if __name__ == "__main__":
    sys.exit(main())
