"""Lists trees in containers: every path with attributes and content."""

from functools import partial

from tests.compose.engine import ComposeError
from tests.compose.stack import Stack, wait_for

MIRROR = ("mirror-update", "/srv/mirror/sample")
COPIES = {"downstream": "/srv/copy/sample", "plain": "/srv/plain/sample"}
_SHOWN = 12
_LIST = r"""
cd "$1"
find . -mindepth 1 -path ./.~tmp~ -prune -o \
  -type f -printf 'f %m %u %n %s %T@ %P\n' -o -printf '%y %m %u %T@ %P -> %l\n'
find . -path ./.~tmp~ -prune -o -type f -print0 | xargs --null --no-run-if-empty sha256sum
"""
"""The script that lists a tree; without its root, which a downstream's staging changes."""


def mirror_lines(stack: Stack) -> list[str]:
    """List the upstream's tree, also while `mirror-update` is stopped."""
    return _sorted(stack.once("sh", "-c", _LIST, "list", MIRROR[1]))


def copy_lines(stack: Stack, service: str) -> list[str]:
    """List the tree of a downstream."""
    return _sorted(stack.inside(service, "sh", "-c", _LIST, "list", COPIES[service]))


def wait_until_equal(stack: Stack, *, seconds: float = 60) -> int:
    """Wait until both downstreams equal the mirror; return the number of lines."""
    expected = mirror_lines(stack)
    if len(expected) < len(COPIES) or any(not line.strip() for line in expected):
        raise ComposeError(f"the mirror is empty: {expected}")
    for service in COPIES:
        wait_for(
            f"{service} equals the mirror",
            partial(_differences, stack, service, expected),
            lambda differences: not differences,
            seconds=seconds,
        )
    return len(expected)


def _differences(stack: Stack, service: str, expected: list[str]) -> str:
    try:
        copied = copy_lines(stack, service)
    except ComposeError as error:
        return str(error)  # a listed path may be gone before it is read
    lines = [f"missing: {line}" for line in sorted({*expected} - {*copied})]
    lines += [f"too much: {line}" for line in sorted({*copied} - {*expected})]
    return "\n".join(lines[:_SHOWN])


def _sorted(text: str) -> list[str]:
    return sorted(text.splitlines())
