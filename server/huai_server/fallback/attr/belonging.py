"""Whose an attr tree is: it belongs to one state root, and lists one path.

The folder of the fallback is the same for every state root unless server.toml says otherwise, so
a trial with another root meets what production serves.  Rule to keep: nothing of an attr tree is
changed, replaced or deleted before one of these was asked.
"""

import os

from huai_server.config import Module
from huai_server.fallback.kind import AttrTreeError
from huai_server.paths import FallbackPlaces, ModulePlaces


class ForeignTreeError(AttrTreeError):
    """An attr tree of the same name that another state root has made."""

    def __init__(self, name: str, fallback: FallbackPlaces, owner: str) -> None:
        """Say whose it is, and both ways out."""
        super().__init__(
            f"{fallback.folder}: this attr tree of {name!r} belongs to the state root {owner}",
            hint="let [fallback] folder in this root's server.toml name another folder; or, if "
            f"that one is not wanted any more: huai-server --root {owner} fallback remove {name}",
        )


def owner(fallback: FallbackPlaces) -> str | None:
    """The state root that it belongs to; None: there is none, or nobody knows whose it is."""
    return _target(os.fspath(fallback.root))


def is_own(places: ModulePlaces, fallback: FallbackPlaces) -> bool:
    """Whether there is one, and it belongs to the root of `places`."""
    return owner(fallback) == _root(places)


def check_own(name: str, places: ModulePlaces, fallback: FallbackPlaces) -> None:
    """`ForeignTreeError` if it belongs to another root."""
    found = owner(fallback)
    if found not in (None, _root(places)):
        raise ForeignTreeError(name, fallback, found)


def check_path(name: str, module: Module, fallback: FallbackPlaces) -> None:
    """`AttrTreeError` if it lists another path than the module's."""
    listed = _target(os.fspath(fallback.real))
    if listed not in (None, module.path):
        raise AttrTreeError(
            f"{fallback.folder}: this attr tree of {name!r} lists {listed}, and the module's "
            f"path is {module.path}",
            hint="if the module was moved there on purpose, say so once: "
            f"huai-server fallback build --rebuild {name}",
        )


def claim(places: ModulePlaces, fallback: FallbackPlaces) -> None:
    """It belongs to the root of `places` from now on."""
    if not is_own(places, fallback):
        fallback.root.symlink_to(_root(places))


def _root(places: ModulePlaces) -> str:
    return os.path.realpath(places.root)


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None
