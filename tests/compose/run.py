"""`./dev test-compose`: the services of docker-compose.yml, built, run, killed and compared.

Only decides whether it can be told at all; what is told stands in `story`.
"""

import fcntl
import signal
import sys
from types import FrameType

from tests.compose.engine import CACHE, ComposeError, find_engine
from tests.compose.story import run_story


def main() -> int:
    """Return 0 if all is proved, or without an engine, which is reported; else 1."""
    signal.signal(signal.SIGTERM, _terminated)
    engine = find_engine()
    if isinstance(engine, str):
        print(f"compose: NOT TESTED: no container engine ({engine})", flush=True)
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "compose.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # all runs share the project's name
        try:
            run_story(engine)
        except ComposeError as error:
            print(f"compose: FAILED: {error}", flush=True)
            return 1
    print("compose: proved", flush=True)
    return 0


def _terminated(_number: int, _frame: FrameType | None) -> None:
    # Like Ctrl-C, so that the services are taken down.
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
