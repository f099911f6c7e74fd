"""`./dev demo`: a full round on real files of this machine, in about a minute.

Only finds the rest: what is told stands in `story`.
"""

import sys
from pathlib import Path


def main() -> int:
    """Run as a script, from any folder."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.demo.story import run_demo

    return run_demo(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
