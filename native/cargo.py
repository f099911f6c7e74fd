"""The metadata of the workspace, as cargo has it for this machine."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

NATIVE = Path(__file__).parent


def read_metadata() -> dict[str, Any]:
    """`cargo metadata`: packages, and which of them needs which; asks no network."""
    version = subprocess.check_output(["rustc", "-vV"], text=True)
    host = next(line.removeprefix("host: ") for line in version.splitlines() if "host: " in line)
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version=1"]
    output = subprocess.check_output([*command, f"--filter-platform={host}"], cwd=NATIVE)
    metadata: dict[str, Any] = json.loads(output)
    return metadata


def read_checksums() -> dict[tuple[str, str], str]:
    """SHA-256 of the source packages, by name and version; none for crates of this workspace."""
    lock = tomllib.loads((NATIVE / "Cargo.lock").read_text(encoding="utf-8"))
    return {
        (each["name"], each["version"]): each["checksum"]
        for each in lock["package"]
        if "checksum" in each
    }
