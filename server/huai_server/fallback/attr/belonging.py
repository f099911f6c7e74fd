"""The owner of an attr tree: it belongs to one state root, and lists one path.

Two state roots may name the same folder for the fallback.  So a trial with a second root may meet
the attr trees of production.  The attr tree of a root that is gone may be replaced or deleted by
any other.  Rule to keep: call one of these checks before an attr tree is changed, replaced or
deleted.
"""

import os

from huai_server.config.tables import Module
from huai_server.fallback.attr.generations import replace_link
from huai_server.fallback.kind import AttrTreeError
from huai_server.state.paths import FallbackPlaces, ModulePlaces


class ForeignTreeError(AttrTreeError):
    """An attr tree of this name belongs to another state root."""

    def __init__(self, name: str, fallback: FallbackPlaces, owner: str) -> None:
        """`owner` is that other state root."""
        super().__init__(
            f"{fallback.folder}: this attr tree of {name!r} belongs to the state root {owner}",
            hint="let [fallback] folder in this root's server.toml name another folder; or, if "
            f"that one is not wanted any more: huai-server --root {owner} fallback remove {name}",
        )


def owner(fallback: FallbackPlaces) -> str | None:
    """The state root that the attr tree belongs to; None: there is no attr tree, or no record."""
    return _target(os.fspath(fallback.root))


def is_own(places: ModulePlaces, fallback: FallbackPlaces) -> bool:
    """Whether there is an attr tree, and it belongs to the state root of `places`."""
    return owner(fallback) == _root(places)


def check_own(name: str, places: ModulePlaces, fallback: FallbackPlaces) -> None:
    """Raise `ForeignTreeError` for an attr tree of another state root that exists."""
    found = owner(fallback)
    if found not in (None, _root(places)) and not is_orphan(fallback):
        raise ForeignTreeError(name, fallback, found)


def is_orphan(fallback: FallbackPlaces) -> bool:
    """True if the state root that the attr tree belongs to is gone."""
    found = owner(fallback)
    return found is not None and not os.path.lexists(found)


def check_path(name: str, module: Module, fallback: FallbackPlaces) -> None:
    """Raise `AttrTreeError` for an attr tree that lists another path than the module's.

    The path that an orphan lists does not count.
    """
    listed = _target(os.fspath(fallback.real))
    if listed not in (None, module.path) and not is_orphan(fallback):
        raise AttrTreeError(
            f"{fallback.folder}: this attr tree of {name!r} lists {listed}, and the module's "
            f"path is {module.path}",
            hint="if the module was moved there on purpose, say so once: "
            f"huai-server fallback build --rebuild {name}",
        )


def claim(places: ModulePlaces, fallback: FallbackPlaces) -> None:
    """Record that the attr tree belongs to the state root of `places`."""
    if not is_own(places, fallback):
        replace_link(fallback.root, _root(places))


def _root(places: ModulePlaces) -> str:
    return os.path.realpath(places.root)


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None
