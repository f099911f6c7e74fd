"""Checks the uses between modules of each crate of the engine by the order in its `lib.rs`.

`lib.rs` lists the modules in groups, the lowest first.  A module uses its own group and those
listed before it, and neither modules nor folders use each other in a circle.  The tests inside a
file do not count, nor does what `lib.rs` itself uses.  `./dev lint` runs it.
"""

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from native.cargo import NATIVE

CRATES = ("git", "format", "plan", "export", "source", "sys", "tree", "python")

Name = tuple[str, ...]
"""The path of a module below `crate`, which itself is ()."""

_IGNORED = re.compile(
    r"^#\[cfg\(test\)\]\n(?:#\[[^]]*\]\n)?(?:pub\S* )?mod \w+ \{.*?^\}\n|//[^\n]*|pub\(in [^)]*\)",
    re.MULTILINE | re.DOTALL,
)
_USE = re.compile(r"\buse\s+([^;]+);")
_QUALIFIED = re.compile(r"(?<![\w:])\w+(?:::\w+)+")
_DECLARED = re.compile(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", re.MULTILINE)


class Crate:
    """The modules of a crate, and the modules that each uses."""

    def __init__(self, source: Path) -> None:
        """Read the files below `source`, the folder of `lib.rs`."""
        self._source = source
        self._files = {
            _name_module(path.relative_to(source)): path for path in source.rglob("*.rs")
        }
        self._uses = {name: {*self._find_uses(name)} for name in sorted(self._files) if name}

    def find_faults(self) -> Iterator[str]:
        """Yield uses of modules in later groups, a circle of folders and one of modules."""
        groups = (self._source / "lib.rs").read_text(encoding="utf-8").split("\n\n")
        levels = {
            name: level for level, group in enumerate(groups) for name in _DECLARED.findall(group)
        }
        for user, used_modules in self._uses.items():
            for used in sorted(used_modules):
                if levels[used[0]] > levels[user[0]]:
                    yield f"{self._show(user)} uses {self._show(used)}, which is listed after it"
        for depth in (1, None):
            uses: dict[Name, set[Name]] = {user[:depth]: set() for user in self._uses}
            for user, used_modules in self._uses.items():
                uses[user[:depth]] |= {used[:depth] for used in used_modules} - {user[:depth]}
            try:
                TopologicalSorter(uses).prepare()
            except CycleError as error:
                yield " uses ".join(self._show(name) for name in reversed(error.args[1]))

    def _find_uses(self, user: Name) -> Iterator[Name]:
        text = _IGNORED.sub("", self._files[user].read_text(encoding="utf-8"))
        paths = [path for tree in _USE.findall(text) for path in expand_use(tree)]
        for path in (*paths, *_QUALIFIED.findall(_USE.sub("", text))):
            used = self._resolve(user, path)
            if used not in {user, ()}:
                yield used

    def _resolve(self, user: Name, path: str) -> Name:
        """Return the innermost module on a path; one of another crate seems to be below `user`."""
        parts = [*user]
        for part in path.split("::"):
            if part == "crate":
                parts.clear()
            elif part == "super":
                parts.pop()
            elif part != "self":
                parts.append(part)
        while tuple(parts) not in self._files:
            parts.pop()
        return tuple(parts)

    def _show(self, name: Name) -> str:
        return str(self._files[name].relative_to(self._source.parents[1]))


def expand_use(tree: str) -> Iterator[str]:
    """Yield each path of a `use`, such as `a::b` and `a::c` of `a::{b, c as d}`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree.partition(" as ")[0].strip()
        return
    for part in _split(rest.rstrip().removesuffix("}")):
        yield from (head.strip() + path for path in expand_use(part))


def _split(trees: str) -> list[str]:
    """Split at the commas that are in no braces."""
    parts = [""]
    depth = 0
    for char in trees:
        depth += (char == "{") - (char == "}")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part.strip()]


def _name_module(path: Path) -> Name:
    parts = path.with_suffix("").parts
    return parts[:-1] if path.name in {"lib.rs", "mod.rs"} else parts


def main() -> int:
    """Print the faults; return 1 if there are any."""
    faults = [fault for name in CRATES for fault in Crate(NATIVE / name / "src").find_faults()]
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
