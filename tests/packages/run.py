"""`./dev test-deb`: the Debian packages of two versions, through their life on booted machines.

On each release they are built with its own debhelper and Python, and looked through; what is tried
then stands in story.sh, which a fresh machine runs.
"""

import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.compose.engine import TOP, ComposeError, run
from tests.compose.image import download
from tests.packages.machine import find_obstacle, run_booted

_RELEASES = {"bookworm": "3.11", "trixie": "3.13"}
"""The releases, with their versions of Python."""
_SYSTEM = Path("/usr")
"""A Python for which each release has its own version."""
_OLD, _NEW = "0.0.1-1", "0.0.2-1"
_SCRIPTS = ("build.sh", "story.sh")
_HOOKS = TOP / "hooks"
_ELSEWHERE = ("compose", "huai.sysusers.conf")
"""The files in no package: those of docker-compose.yml, and those that debhelper renames."""
_NAMED = 10
_SECONDS = 1500
"""Seconds for a build or the whole story; an idle machine needs a small part of it."""


def main() -> int:
    """Return 0 if all is proved, or if no machine can be booted, which is reported; else 1."""
    if obstacle := find_obstacle():
        print(f"deb: NOT TESTED: {obstacle}", flush=True)
        return 0
    try:
        for release in _RELEASES:
            _prove(release)
    except ComposeError as error:
        print(f"deb: FAILED: {error}", flush=True)
        return 1
    print("deb: proved", flush=True)
    return 0


def _prove(release: str) -> None:
    tools = Path(sys.base_prefix)
    if tools == _SYSTEM and _RELEASES[release] != "{}.{}".format(*sys.version_info):
        print(f"  {release}: NOT TESTED: the Python of this machine's release does not run there")
        return
    with tempfile.TemporaryDirectory() as place:
        built, wheels = Path(place, "packages"), Path(place, "wheels")
        built.mkdir()
        for script in _SCRIPTS:
            shutil.copy(TOP / "tests/packages" / script, built)
        download(wheels, TOP / "requirements/server.lock", python=_RELEASES[release])
        binds = {TOP: TOP, wheels: Path("/wheels")}
        if tools != _SYSTEM:
            binds[tools] = tools
        arguments = (str(TOP), sys.executable, _OLD, _NEW)
        print(f"  {release}: building", flush=True)
        run_booted(release, built, "build.sh", *arguments, binds=binds, seconds=_SECONDS)
        _check_content(built)
        _check_run_paths(built)
        print(f"  {release}: installing, upgrading, removing and purging", flush=True)
        story = run_booted(release, built, "story.sh", _OLD, _NEW, binds={}, seconds=_SECONDS)
        print("".join(f"  {release}: {line}\n" for line in story.splitlines()), end="", flush=True)


def _check_content(built: Path) -> None:
    """Raise `ComposeError` if a file of the wheel or of hooks/ is in no package."""
    (wheel,) = (TOP / "dist").glob("huai-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        expected = {name for name in opened.namelist() if not name.endswith("/")}
    hooks = (path.relative_to(_HOOKS) for path in _HOOKS.rglob("*") if path.is_file())
    expected |= {path.name for path in hooks if not {*path.parts} & {*_ELSEWHERE}}
    missing = expected - _packed_files(built)
    if missing:
        first = ", ".join(sorted(missing)[:_NAMED])
        raise ComposeError(f"no package holds {len(missing)} files, of them {first}")
    print(f"  {len(expected)} files of the wheel and of hooks/ are in the packages", flush=True)


def _packed_files(built: Path) -> set[str]:
    """Return the files of the packages: paths as a wheel has them, and names."""
    paths: set[str] = set()
    for package in built.glob(f"huai*_{_NEW}_*.deb"):
        listing = run(["dpkg-deb", "--contents", str(package)], seconds=60).splitlines()
        paths |= {line.split(maxsplit=5)[5] for line in listing}
    folders = ("./usr/lib/huai/", "./usr/lib/huai-server/")
    relative = {path.removeprefix(folder) for path in paths for folder in folders}
    return relative | {path.rpartition("/")[2] for path in paths}


def _check_run_paths(built: Path) -> None:
    """Raise `ComposeError` if a library looks for others outside of its own package."""
    count = 0
    for package in built.glob(f"huai*_{_NEW}_*.deb"):
        opened = built / package.stem
        opened.mkdir()
        run(["dpkg-deb", "--extract", str(package), str(opened)], seconds=60)
        for library in (path for path in opened.rglob("*.so*") if path.is_file()):
            section = run(["readelf", "--dynamic", "--wide", str(library)], seconds=60)
            folders = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", section)
            if not all(folder.startswith("$ORIGIN") for folder in folders):
                raise ComposeError(f"{library.relative_to(opened)}: the run path is {folders}")
            count += 1
    print(f"  {count} libraries have no run path outside of the packages", flush=True)


if __name__ == "__main__":
    sys.exit(main())
