"""Fetches the inputs of the image, for builds without access to a registry or package index.

- The base image that the Dockerfile names, by a pull; where that fails, the same system by
  debootstrap from the mirror that this machine's own apt uses.
- The Python packages of the lock files, fetched by this machine's own pip, which knows how.
- The crates of the engine, fetched by this machine's own cargo.

All are kept, and fetched again only when their sources have changed.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compose.engine import CACHE, TOP, ComposeError, Engine, run

BASE = "debian:12-slim"
_RELEASE, _PYTHON = "bookworm", "3.11"
"""The release and Python of `BASE`, for debootstrap and pip."""
_MADE = "huai-compose-base"
_LABEL = "huai.test-compose=base"
_WHEELS = CACHE / "wheels"
_CRATES = CACHE / "crates"
"""The folders from which the Dockerfile copies."""
_BUILD_LOCK = "build.lock"


def base_image(engine: Engine) -> str:
    """Return the name of a local base image."""
    for name in (BASE, _MADE):
        if engine.docker("image", "ls", "--quiet", name).strip():
            return name
    try:
        engine.docker("pull", "--quiet", BASE, seconds=120)
    except ComposeError:
        print(f"  {BASE} cannot be pulled: debootstrap makes the same system", flush=True)
        _debootstrap()
        return _MADE
    return BASE


def wheels() -> None:
    """Fill the folder from which the Dockerfile installs packages."""
    locks = [TOP / "requirements" / f"{name}.lock" for name in ("server", "dev")]
    checksum = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    stamp = CACHE / "wheels.stamp"
    if _WHEELS.is_dir() and stamp.exists() and stamp.read_text() == checksum:
        return
    shutil.rmtree(_WHEELS, ignore_errors=True)
    _WHEELS.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        build_lock = Path(folder, _BUILD_LOCK)
        build_lock.write_text(_builders(locks[1].read_text(encoding="utf-8")), encoding="utf-8")
        download(_WHEELS, locks[0], build_lock)
    stamp.write_text(checksum)


def crates() -> None:
    """Fill the folder from which the Dockerfile builds crates."""
    lock = TOP / "native" / "Cargo.lock"
    checksum = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = CACHE / "crates.stamp"
    if _CRATES.is_dir() and stamp.exists() and stamp.read_text() == checksum:
        return
    shutil.rmtree(_CRATES, ignore_errors=True)
    manifest = f"--manifest-path={lock.with_name('Cargo.toml')}"
    run(["cargo", "vendor", "--quiet", "--locked", manifest, str(_CRATES)], seconds=300)
    stamp.write_text(checksum)


def download(folder: Path, *locks: Path, python: str = _PYTHON) -> None:
    """Fetch the packages of the lock files, as a Python of version `python` needs them."""
    machine = platform.machine()
    systems = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes"),
        *("--only-binary=:all:", f"--python-version={python}", "--implementation=cp"),
        *(f"--abi={abi}" for abi in (f"cp{python.replace('.', '')}", "abi3", "none")),
        *(f"--platform={system}_{machine}" for system in systems),
        *(f"--requirement={lock}" for lock in locks),
        f"--dest={folder}",
    ]
    run(command, seconds=300)


def _builders(lock: str) -> str:
    """Return the lines of the lock file for the packages that build huai itself."""
    name = "(?:semantic-version|setuptools(?:-rust)?)"
    requirements = re.findall(rf"^{name}==(?:.*\\\n)*.*\n", lock, re.MULTILINE)
    if len(requirements) != 3:
        raise ComposeError(
            f"requirements/dev.lock names {len(requirements)} of 3 packages to build with"
        )
    return "".join(requirements)


def _debootstrap() -> None:
    if os.geteuid() != 0:
        raise ComposeError(f"pull {BASE} for this user, or run as root: debootstrap needs that")
    if shutil.which("debootstrap") is None:
        run(["apt-get", "-qq", "update"], seconds=120)
        run(["apt-get", "-qq", "install", "--yes", "debootstrap"], seconds=120)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        command = ["debootstrap", "--variant=minbase", _RELEASE, str(root), *apt_mirror()]
        run(command, seconds=1200)
        for leftover in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(root / leftover)
            Path(root, leftover, "partial").mkdir(parents=True)
        _import(root)


def apt_mirror() -> list[str]:
    """Return the URL from which this machine's apt has Debian; nothing if it has none."""
    targets = run(["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"], seconds=60)
    match = re.search(r"^Debian (\S+)$", targets, re.MULTILINE)
    return [match[1]] if match else []


def _import(root: Path) -> None:
    pack = ["tar", "--directory", str(root), "--create", "."]
    take = ["docker", "import", "--change", f"LABEL {_LABEL}", "-", _MADE]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
        done = subprocess.run(
            take, stdin=packing.stdout, capture_output=True, timeout=300, check=False
        )
    if packing.returncode or done.returncode:
        raise ComposeError(f"docker import failed: {done.stderr.decode(errors='replace')}")
