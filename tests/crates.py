"""Compares the crates of the engine with `native/deny.toml`.

Each crate must be listed there, each listed one in use, and each licence allowed.  `./dev lint`
runs it; cargo-deny reads the same file, and checks more.
"""

import sys
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from native.cargo import NATIVE, read_metadata


class Crate(NamedTuple):
    """A crate with its licence."""

    name: str
    licence: str


def find_faults(crates: list[Crate], names: list[str], licences: list[str]) -> Iterator[str]:
    """Yield the differences between the crates and the lists."""
    used = {crate.name for crate in crates}
    yield from (f"crate {name} is not in the list" for name in sorted(used - {*names}))
    yield from (f"crate {name} is in the list and not used" for name in names if name not in used)
    for crate in crates:
        if not is_allowed(crate.licence, licences):
            yield f"crate {crate.name} has the licence {crate.licence!r}"


def is_allowed(expression: str, licences: list[str]) -> bool:
    """Return True if the allowed licences suffice; OR binds more tightly than AND."""
    text = expression.replace("(", "").replace(")", "").replace("/", " OR ")
    return all(
        any(term.strip() in licences for term in part.split(" OR ")) for part in text.split(" AND ")
    )


def read_crates() -> list[Crate]:
    """Return all crates that cargo builds for this machine, also for tests."""
    packages = read_metadata()["packages"]
    return [Crate(each["name"], each["license"] or "none") for each in packages]


def main() -> int:
    """Print the faults; return 1 if there are any."""
    lists = tomllib.loads((NATIVE / "deny.toml").read_text(encoding="utf-8"))
    faults = list(find_faults(read_crates(), lists["bans"]["allow"], lists["licenses"]["allow"]))
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
