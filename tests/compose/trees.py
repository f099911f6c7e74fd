"""What a tree in a container looks like: every path, its attributes, its content."""

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
"""The root itself is left out: a downstream's staging stands in it."""


def mirror_lines(stack: Stack) -> list[str]:
    """The upstream's tree, also while `mirror-update` is stopped."""
    return _sorted(stack.once("sh", "-c", _LIST, "list", MIRROR[1]))


def copy_lines(stack: Stack, service: str) -> list[str]:
    """The tree of a downstream."""
    return _sorted(stack.inside(service, "sh", "-c", _LIST, "list", COPIES[service]))


def wait_until_equal(stack: Stack, *, seconds: float = 60) -> int:
    """Both downstreams come to equal the mirror; returns how many lines tell so."""
    wanted = mirror_lines(stack)
    if len(wanted) < len(COPIES) or any(not line.strip() for line in wanted):
        raise ComposeError(f"the mirror is empty: {wanted}")
    for service in COPIES:
        wait_for(
            f"{service} equals the mirror",
            partial(_differences, stack, service, wanted),
            lambda differences: not differences,
            seconds=seconds,
        )
    return len(wanted)


def _differences(stack: Stack, service: str, wanted: list[str]) -> str:
    try:
        found = copy_lines(stack, service)
    except ComposeError as error:
        return str(error)  # while it changes, what was named may be gone before it is read
    lines = [f"missing: {line}" for line in sorted({*wanted} - {*found})]
    lines += [f"too much: {line}" for line in sorted({*found} - {*wanted})]
    return "\n".join(lines[:_SHOWN])


def _sorted(text: str) -> list[str]:
    return sorted(text.splitlines())
