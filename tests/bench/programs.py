"""The programs that are measured: huai's own, as installed, and their servers.

Every measurement starts the program again: imports are part of its cost.
"""

import compileall
import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import end_process

_GRACE = 20


def install(folder: Path, parts: Iterable[Path]) -> Path:
    """A folder of programs that start as installed ones do, of huai's packages in `parts`.

    Not those of the editable installation: what finds its parts takes 15 ms at each start.  The
    first start writes the bytecode of other packages, whatever the caller's environment.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    venv.create(folder, symlinks=True)
    bin_folder = folder / "bin"
    paths = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    for part in parts:
        for package in part.glob("huai_*/"):
            shutil.copytree(package, packages / package.name)
            compileall.compile_dir(packages / package.name, quiet=1)
    for program in Path(sys.executable).parent.glob("huai-*"):
        text = program.read_text().replace(sys.executable, str(bin_folder / "python"), 1)
        (bin_folder / program.name).write_text(text)
        (bin_folder / program.name).chmod(0o755)
    return bin_folder


class Program(NamedTuple):
    """`huai-server` or `huai-client` with its state root."""

    name: str
    root: Path

    def command(self, *arguments: str | Path) -> list[str]:
        """Return the command line that starts the program, by its name."""
        return [self.name, "--root", str(self.root), *map(str, arguments)]

    def run(self, *arguments: str | Path) -> str:
        """Run a command that is not measured; its output, or an error with its words."""
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(
                f"{self.name} {arguments} ended with {done.returncode}: {done.stderr}"
            )
        return done.stdout


class Serving(NamedTuple):
    """A running `huai-server serve`."""

    port: int
    process: int


@contextlib.contextmanager
def serving(server: Program) -> Iterator[Serving]:
    """Run `huai-server serve`."""
    process = subprocess.Popen(
        server.command("serve", "--host", "127.0.0.1", "--port", "0", "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("huai-server serve did not start")
        yield Serving(int(json.loads(line)["port"]), process.pid)
    finally:
        end_process(process, _GRACE)
        process.stdout.close()
