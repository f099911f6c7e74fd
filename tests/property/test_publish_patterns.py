"""Patterns of publish rules, compared with a slow and obvious matcher."""

from hypothesis import given
from hypothesis import strategies as st

from huai_client.plan.order import Matcher
from huai_schema.codec.publish_rules import Pattern
from huai_schema.paths import RelPath

NAMES = st.text("ab*?", min_size=1, max_size=5).filter(lambda name: "**" not in name)
COMPONENTS = st.lists(st.one_of(NAMES, st.just("**")), min_size=1, max_size=5)
PATHS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5)


def name_fits(glob: str, name: str) -> bool:
    if not glob or not name:
        return not name and not glob.strip("*")
    if glob[0] == "*":
        return name_fits(glob[1:], name) or name_fits(glob, name[1:])
    return glob[0] in ("?", name[0]) and name_fits(glob[1:], name[1:])


def fits(components: list[str], names: list[str]) -> bool:
    if not components:
        return not names
    if components[0] == "**":
        return any(fits(components[1:], names[n:]) for n in range(len(names) + 1))
    return bool(names) and name_fits(components[0], names[0]) and fits(components[1:], names[1:])


def matches(written: list[str], names: list[str]) -> bool:
    components = [n for i, n in enumerate(written) if not i or n != "**" or written[i - 1] != "**"]
    if components[-1] == "**":  # everything below, not the directory itself
        return any(fits(components[:-1], names[:n]) for n in range(len(names)))
    return fits(components, names)


@given(COMPONENTS, PATHS, st.booleans(), st.booleans())
def test_patterns(components: list[str], names: list[str], symlink: bool, symlinks: bool) -> None:
    pattern = Pattern(tuple(components), symlinks)
    matcher = Matcher([(pattern, "found")])
    rule = matcher.find(RelPath("/".join(names).encode()), symlink=symlink)
    assert (rule is not None) == (matches(components, names) and (symlink or not symlinks))


@given(st.lists(COMPONENTS, max_size=4), PATHS)
def test_the_first_counts(patterns: list[list[str]], names: list[str]) -> None:
    matcher = Matcher((Pattern(tuple(each), symlinks=False), n) for n, each in enumerate(patterns))
    first = next((n for n, each in enumerate(patterns) if matches(each, names)), None)
    assert matcher.find(RelPath("/".join(names).encode()), symlink=False) == first


def test_no_pattern_takes_for_ever() -> None:
    """A matcher that backtracks over stars would exceed any time limit."""
    stars = Pattern.parse("/" + "*a" * 60 + "b")
    assert Matcher([(stars, 1)]).find(RelPath(b"a" * 255), symlink=False) is None
    deep = Pattern.parse("/" + "**/a/" * 60 + "b")
    assert Matcher([(deep, 1)]).find(RelPath(b"/".join([b"a"] * 2000)), symlink=False) is None
