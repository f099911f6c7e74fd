"""House rules that no linter checks: speaking names, and no copied functions."""

import ast
from collections import defaultdict
from pathlib import Path

TOP = Path(__file__).parents[2]
PRODUCT = sorted(
    path for side in ("schema", "server", "client") for path in (TOP / side).rglob("*.py")
)
FEWEST_STATEMENTS = 4
"""The least statements of a copy: shorter functions may be equal by chance."""
TWINS = ("repository.py", "options.py")
"""Each side has its own, because how they open one, and click, have no place in the schema."""
EMPTY_NAMES = {"utils", "util", "helpers", "common", "misc", "manager"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def body_of(function: Function) -> list[ast.stmt]:
    """Return the statements of a function, without its docstring."""
    return function.body[1:] if ast.get_docstring(function) else function.body


def statements(body: list[ast.stmt]) -> int:
    """Count statements, the inner ones included."""
    return sum(isinstance(node, ast.stmt) for part in body for node in ast.walk(part))


def copies(sources: dict[str, str]) -> list[list[str]]:
    """Return groups of functions with equal bodies, whatever their names."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, Function):
                body = body_of(node)
                if statements(body) >= FEWEST_STATEMENTS:
                    dumped = ast.dump(ast.Module(body, []))
                    places[dumped].append(f"{name}:{node.lineno} {node.name}")
    groups = [group for group in places.values() if len(group) > 1]
    return [group for group in groups if not any(_twins(name, group) for name in TWINS)]


def _twins(name: str, group: list[str]) -> bool:
    return all(f"/{name}:" in place for place in group)


def test_no_function_is_written_twice() -> None:
    sources = {str(p.relative_to(TOP)): p.read_text(encoding="utf-8") for p in PRODUCT}
    assert len(sources) > 1
    assert copies(sources) == []


def test_a_function_written_twice_is_seen() -> None:
    body = "    a = x + 1\n    b = a * 2\n    if b:\n        a = b\n    return a\n"
    one = f'def one(x: int) -> int:\n    """First."""\n{body}'
    two = f"def two(x: int) -> int:\n{body}"
    assert copies({"one.py": one, "two.py": two}) == [["one.py:1 one", "two.py:1 two"]]
    assert copies({"one.py": one, "two.py": two.replace("* 2", "* 3")}) == []


def test_no_name_of_a_file_is_empty_of_meaning() -> None:
    assert [path for path in PRODUCT if path.stem in EMPTY_NAMES] == []
