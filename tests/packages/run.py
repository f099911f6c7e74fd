"""`./dev test-deb`: the Debian packages of two versions, through their life in a clean container.

Looks at what they hold, prepares and reports; what is tried stands in story.sh, which the container
runs.
"""

import sys
import tempfile
import zipfile
from pathlib import Path

from tests.compose.engine import TOP, ComposeError, Engine, find_engine, run
from tests.compose.image import base_image

_STORY = TOP / "tests" / "packages" / "story.sh"
_HOOKS = TOP / "hooks"
_ELSEWHERE = ("compose", "huai.sysusers.conf")
"""Those of docker-compose.yml, and what debhelper renames."""
_NAMED = 10
_SECONDS = 1500
"""For the whole story in the container; a quiet machine needs a small part of it."""


def main(arguments: list[str]) -> int:
    """0 where all is proved, and where there is no engine, which is said loudly; else 1."""
    engine = find_engine()
    if isinstance(engine, str):
        print(f"deb: NOT TESTED: no container engine ({engine})", flush=True)
        return 0
    try:
        _check_content(arguments[-1])
        print(_tell(engine, *arguments), end="")
    except ComposeError as error:
        print(f"deb: FAILED: {error}", flush=True)
        return 1
    print("deb: proved", flush=True)
    return 0


def _check_content(version: str) -> None:
    """Each file of the wheel and of hooks/ is in a package, or `ComposeError` names what is not."""
    (wheel,) = (TOP / "dist").glob("huai-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        wanted = {each for each in opened.namelist() if not each.endswith("/")}
    hooks = (each.relative_to(_HOOKS) for each in _HOOKS.rglob("*") if each.is_file())
    wanted |= {each.name for each in hooks if not {*each.parts} & {*_ELSEWHERE}}
    missing = wanted - _held(version)
    if missing:
        first = ", ".join(sorted(missing)[:_NAMED])
        raise ComposeError(f"no package holds {len(missing)} files, of them {first}")
    print(f"  {len(wanted)} files of the wheel and of hooks/ are in the packages", flush=True)


def _held(version: str) -> set[str]:
    """What the packages of a version hold: paths as a wheel has them, and names."""
    paths: set[str] = set()
    for package in sorted((TOP / "dist").glob(f"huai*_{version}_*.deb")):
        listing = run(["dpkg-deb", "--contents", str(package)], seconds=60).splitlines()
        paths |= {line.split(maxsplit=5)[5] for line in listing}
    folders = ("./usr/lib/huai/", "./usr/lib/huai-server/")
    held = {path.removeprefix(folder) for path in paths for folder in folders}
    return held | {path.rpartition("/")[2] for path in paths}


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
