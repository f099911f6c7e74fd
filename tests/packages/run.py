"""`./dev test-deb`: the Debian packages of two versions, through their life in a clean container.

Only prepares and reports; what is tried stands in story.sh, which the container runs.
"""

import sys
import tempfile
from pathlib import Path

from tests.compose.engine import TOP, ComposeError, Engine, find_engine
from tests.compose.image import base_image

_STORY = TOP / "tests" / "packages" / "story.sh"
_SECONDS = 400


def main(arguments: list[str]) -> int:
    """0 where all is proved, and where there is no engine, which is said loudly; else 1."""
    engine = find_engine()
    if isinstance(engine, str):
        print(f"deb: NOT TESTED: no container engine ({engine})", flush=True)
        return 0
    try:
        print(_tell(engine, *arguments), end="")
    except ComposeError as error:
        print(f"deb: FAILED: {error}", flush=True)
        return 1
    print("deb: proved", flush=True)
    return 0


def _tell(engine: Engine, *versions: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "story.sh").write_bytes(_STORY.read_bytes())
        for version in versions:
            for package in sorted((TOP / "dist").glob(f"huai*_{version}_*.deb")):
                Path(folder, package.name).write_bytes(package.read_bytes())
        Path(folder).chmod(0o755)
        return engine.docker(
            *("run", "--rm", "--volume", f"{folder}:/packages:ro", base_image(engine)),
            *("sh", "/packages/story.sh", *versions),
            seconds=_SECONDS,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
