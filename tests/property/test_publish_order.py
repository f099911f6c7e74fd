"""The engine finds repositories and stages like a search path by path, from names alone."""

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from huai_client.plan.order import GENERIC, Profile, PublishOrder
from huai_schema.codec.publish_rules import StageRule, VolatileRule, own_rules, parse_rule
from huai_schema.entries import Directory
from huai_schema.paths import ROOT, RelPath, ancestors, join, parent
from tests.property.test_publish_patterns import matches, name_fits
from tests.support.examples import examples
from tests.support.schema.trees import Tree, directory, file, snapshot, tree_of

T = TypeVar("T", StageRule, VolatileRule)
NAMES = st.sampled_from(["a", "b", "ab", "ba", "a.b"])
GLOBS = st.sampled_from(["a", "b", "*", "a*", "*b", "?", "a.*"])
MARKERS = st.tuples(st.lists(GLOBS, min_size=1, max_size=3), st.sampled_from(["", "/"])).map(
    lambda parts: "/".join(parts[0]) + parts[1]
)
TOPS = st.lists(st.lists(MARKERS, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple)
STAGES = st.sampled_from(["payload", "indices", "pointers"])
RULES = st.lists(
    st.tuples(
        STAGES,
        st.sampled_from(["", "/"]),
        st.lists(GLOBS, min_size=1, max_size=2),
        st.sampled_from(["", "/", "@", "/**/a"]),
    ).map(lambda parts: f"{parts[0]} {parts[1]}{'/'.join(parts[2])}{parts[3]}"),
    max_size=3,
)


@st.composite
def some_trees(draw: st.DrawFn) -> Tree:
    tree, folders = tree_of(), [ROOT]
    for _ in range(draw(st.integers(0, 12))):
        path = join(draw(st.sampled_from(folders)), draw(NAMES).encode())
        if path not in tree and draw(st.booleans()):
            tree[path] = directory(path)
            folders.append(path)
        elif path not in tree:
            tree[path] = file(path)
    return tree


@st.composite
def some_profiles(draw: st.DrawFn) -> dict[str, Profile]:
    def rules() -> tuple[StageRule, ...]:
        rules = map(parse_rule, draw(RULES))
        return tuple(rule for rule in rules if isinstance(rule, StageRule))

    kinds = [Profile(GENERIC, (), rules()), *(Profile(n, draw(TOPS), rules()) for n in "xy")]
    return {each.name: each for each in kinds}


def has(tree: Tree, folder: RelPath, marker: str) -> bool:
    for path, entry in tree.items():
        inside = path[len(folder) + 1 if folder else 0 :]
        below = path != folder and path.startswith(folder + b"/" if folder else b"")
        globs, names = marker.removesuffix("/").split("/"), inside.decode().split("/")
        kind = isinstance(entry, Directory) == marker.endswith("/")
        fits = len(globs) == len(names) and all(map(name_fits, globs, names))
        if below and kind and fits:
            return True
    return False


def fits(rule: StageRule | VolatileRule, path: RelPath, *, symlink: bool) -> bool:
    names = path.decode().split("/")
    kind = symlink or not rule.pattern.symlinks
    return kind and matches(list(rule.pattern.components), names)


def first(rules: Iterable[T], path: bytes, *, symlink: bool) -> T | None:
    matching = (rule for rule in rules if fits(rule, RelPath(path), symlink=symlink))
    return next(matching, None)


class PathByPath:
    """An implementation of the rules in the docstring of `order`."""

    def __init__(
        self,
        tree: Tree,
        profiles: dict[str, Profile],
        own: list[str],
        assigned: dict[RelPath, str],
        volatile: list[VolatileRule],
    ) -> None:
        self.tree, self.profiles, self.assigned = tree, profiles, assigned
        self.stated = [rule for rule in own_rules(tuple(own)) if isinstance(rule, StageRule)]
        self.volatile = volatile

    def around(self, folder: RelPath) -> list[tuple[RelPath, str]]:
        outer = self.around(parent(folder)) if folder else []
        if folder in self.assigned:
            kind = self.assigned[folder]
            return [] if kind == GENERIC else [(folder, kind)]
        if any(above in self.assigned for above in ancestors(folder)):
            return outer
        for profile in self.profiles.values():
            for markers in profile.tops:
                if all(has(self.tree, folder, marker) for marker in markers):
                    return [*outer, (folder, profile.name)]
        return outer

    def placement(self, path: RelPath, *, symlink: bool) -> tuple[int, str, RelPath | None]:
        inside = self.around(parent(path))
        innermost = inside[-1][0] if inside else None

        volatile = None if symlink else first(self.volatile, path, symlink=False)
        if volatile is not None:
            return 2, volatile.text, innermost
        stated = first(self.stated, path, symlink=symlink)
        if stated is not None:
            return stated.stage, stated.text, innermost
        for top, kind in inside or [(ROOT, GENERIC)]:
            below = path[len(top) + 1 :] if top else path
            rule = first(self.profiles[kind].rules, below, symlink=symlink)
            if rule is not None:
                return rule.stage, rule.text, top if inside else None
        return 0, "", innermost


@examples(300)
@given(some_trees(), some_profiles(), RULES, st.data())
def test_stages(
    tree: Tree, profiles: dict[str, Profile], own: list[str], data: st.DataObject
) -> None:
    kinds = data.draw(
        st.dictionaries(st.sampled_from(list(tree)), st.sampled_from("xy"), max_size=2)
    )
    if data.draw(st.booleans()):
        kinds = dict.fromkeys(kinds, GENERIC)
    volatile = [VolatileRule(rule.pattern, rule.text) for rule in profiles["x"].rules[:1]]
    expected = PathByPath(tree, profiles, own, kinds, volatile)
    put = [f"profile {kind} /{path.decode()}" for path, kind in kinds.items()]
    order = PublishOrder(snapshot(tree), profiles, own_rules((*own, *put)), [], volatile)
    paths = [join(folder, b"a") for folder in tree] + [path for path in tree if path]
    queries = [(path, symlink) for path in paths for symlink in (False, True)]
    assert list(order.stages_of(queries)) == [
        expected.placement(path, symlink=symlink)[0] for path, symlink in queries
    ]
    for path, symlink in queries:
        placement = order.placement_of(path, symlink=symlink)
        top = placement.repository.top if placement.repository else None
        assert (placement.stage, placement.rule, top) == expected.placement(path, symlink=symlink)
        outermost = expected.around(parent(path))[:1]
        assert order.repository_of(path) == (outermost[0][0] if outermost else None)
        assert order.has_entry(path) == (path in tree)
        assert order.is_directory(path) == isinstance(tree.get(path), Directory)
