"""Checks docstrings, comments, messages, names and commit subjects by CONTRIBUTING.md, "Words".

`./dev lint` runs it, with the lists of `prose.toml`.  Where a sentence or a name is better with
what a rule forbids, its line says why: `# prose: REASON`.

    python -m tests.prose [PATH…]      list the offences, or those below some paths
"""

import ast
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import NamedTuple

_TOP = Path(__file__).resolve().parent.parent
_SOURCES = ("*.py", "*.rs", "*.md")
_EXCUSE = "prose: "
_COMMITS = 30
"""The number of commits whose subjects are checked."""

_RULES = tomllib.loads(Path(__file__).with_name("prose.toml").read_text(encoding="utf-8"))
_OPENING = re.compile(rf"({'|'.join(_RULES['openings'])})\b")
_EMPTY = re.compile("|".join(_RULES["empty"]))
_WORDS = re.compile(rf"\b({'|'.join(_RULES['words'])})\b", re.IGNORECASE)
_NAMES = frozenset(_RULES["names"].split())
_FUNCTIONS = _NAMES | frozenset(_RULES["functions"].split())
_TYPES = frozenset(_RULES["types"].split())
_RUST_NAME = re.compile(r"\blet (?:mut )?(\w+)\b|\bfn (\w+)|\b(?:struct|enum|trait|type) (\w+)")
_RUST_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_RUST_TYPE = re.compile(r"^pub (?:struct|enum|trait|type) (\w+)", re.MULTILINE)
_SUBJECT = re.compile(r"[a-z0-9_./, -]+: \S")


class Offence(NamedTuple):
    """A place that breaks a rule; `line` counts from 1."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def find_offences(path: str, source: str) -> Iterator[Offence]:
    """Yield the offences in a file, except those with an excuse."""
    kinds = {".py": _read_python, ".rs": _read_rust, ".md": _read_page}
    lines = source.splitlines()
    for line, text in kinds[Path(path).suffix](source):
        if _EXCUSE not in lines[line - 1]:
            yield Offence(path, line, text)


def _read_python(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                match statement:
                    case ast.Expr(ast.Constant(str(text)) as constant):
                        docstrings.add(constant)
                        yield from _read_docstring(constant.lineno, text)
        for name in _bound_names(node):
            yield getattr(node, "lineno", 1), f"the name {name!r}"
    for node in ast.walk(tree):
        match node:
            case ast.Constant(str(text)) if node not in docstrings:
                yield from _read_words(node.lineno, text)
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _read_words(token.start[0], token.string)


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield names that a node binds and that say nothing of their value, comprehensions aside."""
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
            arguments = chain(node.args.posonlyargs, node.args.args, node.args.kwonlyargs)
            yield from (each.arg for each in arguments if each.arg in _NAMES)
            yield from {name.lstrip("_")} & _FUNCTIONS
        case ast.ClassDef(name):
            yield from {name.lstrip("_")} & _TYPES
    for part in chain.from_iterable(map(ast.walk, _targets(node))):
        match part:
            case ast.Name(name, ast.Store()) | ast.Attribute(_, name, ast.Store()):
                yield from {name.lstrip("_")} & _NAMES


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign():
            return node.targets
        case ast.AnnAssign() | ast.For() | ast.AsyncFor() | ast.NamedExpr():
            return [node.target]
        case ast.With() | ast.AsyncWith():
            return [item.optional_vars for item in node.items if item.optional_vars]
    return []


def _read_rust(source: str) -> Iterator[tuple[int, str]]:
    former = ("", "")
    for line, text in enumerate(source.splitlines(), 1):
        mark, _, words = text.strip().partition(" ")
        is_continued = former[0] == mark and former[1] != ""
        if mark in {"///", "//!"} and not is_continued:
            yield from _read_docstring(line, words)
        elif mark in {"///", "//!", "//"}:
            yield from _read_words(line, words)
        else:
            for match in _RUST_NAME.finditer(text):
                variable, function, type_ = match.groups()
                if variable in _NAMES or function in _FUNCTIONS or type_ in _TYPES:
                    yield line, f"the name {variable or function or type_!r}"
            for match in _RUST_TEXT.finditer(text):
                yield from _read_words(line, match[1])
        former = mark, words


def _read_page(source: str) -> Iterator[tuple[int, str]]:
    return _read_words(1, source)


def _read_docstring(line: int, text: str) -> Iterator[tuple[int, str]]:
    if opening := _OPENING.match(text):
        yield line, f"a docstring that opens with {opening[0]!r}"
    if _EMPTY.match(text):
        yield line, "a docstring that says nothing"
    yield from _read_words(line, text)


def _read_words(line: int, text: str) -> Iterator[tuple[int, str]]:
    for offset, part in enumerate(text.splitlines()):
        for match in _WORDS.finditer(part):
            yield line + offset, f"the words {match[0]!r}"


def _sources(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files in git below some paths, relative to the top."""
    command = ["git", "ls-files", "-z", "--", *paths]
    listed = subprocess.run(command, cwd=_TOP, stdout=subprocess.PIPE, check=True)
    for path in listed.stdout.decode().split("\0"):
        if any(map(Path(path).match, _SOURCES)) and "CHANGELOG" not in path:
            yield path


def _repeated_types(sources: dict[str, str]) -> Iterator[Offence]:
    """Yield public Rust types that share a name."""
    places: dict[str, str] = {}
    for path, source in sources.items():
        for match in _RUST_TYPE.finditer(source) if path.endswith(".rs") else ():
            first = places.setdefault(match[1], path)
            end = source.find("\n", source.find("\n", match.end()) + 1)
            if first != path and _EXCUSE not in source[match.start() : end]:
                line = source.count("\n", 0, match.start()) + 1
                yield Offence(path, line, f"the type {match[1]!r} is also in {first}")


def _subjects() -> Iterator[Offence]:
    command = ["git", "log", f"--max-count={_COMMITS}", "--format=%h %s", "--no-merges"]
    listed = subprocess.run(command, cwd=_TOP, stdout=subprocess.PIPE, check=True)
    for line in listed.stdout.decode().splitlines():
        commit, _, subject = line.partition(" ")
        if not _SUBJECT.match(subject):
            yield Offence(commit, 1, f"a subject without an area: {subject}")


def main(paths: list[str]) -> int:
    """Print the offences; returns 1 if there are any."""
    sources = {path: (_TOP / path).read_text(encoding="utf-8") for path in _sources(paths)}
    offences = [each for path, source in sources.items() for each in find_offences(path, source)]
    offences += [*_repeated_types(sources), *_subjects()]
    sys.stdout.writelines(f"{offence}\n" for offence in offences)
    return int(bool(offences))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
