"""A sync of an upstream that does not run huai."""

from dataclasses import dataclass

from tests.fault.killing import Ground, Hit
from tests.fault.story import finish, first, second
from tests.support.plain_upstream import Listed, Plain, Recorded, serving_plainly
from tests.support.upstream import Downstream


@dataclass
class Listing:
    """A downstream at an upstream's first list, or at none; the upstream has changed since."""

    up: Plain
    down: Downstream

    def __post_init__(self) -> None:
        self.folders = [self.down.dest, self.down.root]


def _changed(ground: Ground, kind: type[Plain]) -> Listing:
    place = ground.enter(serving_plainly(ground.folder / "plain"))
    up = place.upstream(kind)
    first(up)
    up.publish()
    down = place.downstream(up, content_urls=(str(up.tree),), max_delete="100%")
    down.synced()
    second(up)
    up.publish()
    return Listing(up, down)


def of_all(ground: Ground) -> Listing:
    return _changed(ground, Plain)


def of_changes(ground: Ground) -> Listing:
    return _changed(ground, Listed)


def of_events(ground: Ground) -> Listing:
    return _changed(ground, Recorded)


def run(scene: Listing) -> int:
    return scene.down.sync().code


def is_finished(scene: Listing, _: Hit) -> None:
    finish(scene.down, scene.up)
