"""Holds the crates that the engine is built from against `native/deny.toml`.

Each crate has to be listed there, each listed one in use, and each licence allowed.  `./dev lint`
runs it; cargo-deny, where there is one, knows the same file and more.
"""

import sys
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from native.cargo import NATIVE, read_metadata


class Crate(NamedTuple):
    """A crate as cargo tells it."""

    name: str
    licence: str


def find_faults(crates: list[Crate], names: list[str], licences: list[str]) -> Iterator[str]:
    """What is not as the lists say."""
    used = {crate.name for crate in crates}
    yield from (f"crate {name} is not in the list" for name in sorted(used - {*names}))
    yield from (f"crate {name} is in the list and not used" for name in names if name not in used)
    for crate in crates:
        if not is_allowed(crate.licence, licences):
            yield f"crate {crate.name} has the licence {crate.licence!r}"


def is_allowed(expression: str, licences: list[str]) -> bool:
    """Whether the allowed licences are enough; brackets count as set around each OR."""
    text = expression.replace("(", "").replace(")", "").replace("/", " OR ")
    return all(
        any(term.strip() in licences for term in part.split(" OR ")) for part in text.split(" AND ")
    )


def read_crates() -> list[Crate]:
    """All that cargo builds for this machine, tests included."""
    packages = read_metadata()["packages"]
    return [Crate(each["name"], each["license"] or "none") for each in packages]


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    lists = tomllib.loads((NATIVE / "deny.toml").read_text(encoding="utf-8"))
    faults = list(find_faults(read_crates(), lists["bans"]["allow"], lists["licenses"]["allow"]))
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
