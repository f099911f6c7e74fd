"""A sync of an upstream that does not run huai."""

from dataclasses import dataclass

from tests.fault.killing import Ground, Hit
from tests.fault.story import finish, first, second
from tests.integration.test_list_command import Place as Printing
from tests.integration.test_list_command import without_links
from tests.support.nginx import nginx
from tests.support.plain_upstream import Listed, Plain, Recorded, serving_plainly
from tests.support.upstream import Downstream


@dataclass
class Listing:
    """A downstream at an upstream's first list, or at none; the upstream has changed since."""

    up: Plain
    down: Downstream

    def __post_init__(self) -> None:
        self.folders = [self.down.dest, self.down.root]


def of_equal_files(ground: Ground) -> Listing:
    scene = _changed(ground, Plain, duplicates="hardlink")
    scene.up.put(b"stays/equal", b"rewritten 2", mtime=2)
    return scene


def _changed(ground: Ground, kind: type[Plain], **settings: object) -> Listing:
    place = ground.enter(serving_plainly(ground.folder / "plain"))
    up = place.upstream(kind)
    first(up)
    up.publish()
    down = place.downstream(up, content_urls=(str(up.tree),), max_delete="100%", **settings)
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


def of_mtree(ground: Ground) -> Listing:
    place = _printing(ground)
    web = ground.enter(nginx(place.folder))
    place.print_mtree()
    return _printed(place, place.downstream((), list_url=f"{web.url}/list", modes="exact"))


def of_lines(ground: Ground) -> Listing:
    place = _printing(ground)
    return _printed(place, place.printing(modes="exact"))


def _printing(ground: Ground) -> Printing:
    folder = ground.folder / "printing"
    folder.mkdir()
    place = Printing(folder)
    first(place.up)
    return place


def _printed(place: Printing, down: Downstream) -> Listing:
    is_mtree = place.printed.read_bytes().startswith(b"#")
    down.configure(max_delete="100%")
    down.synced()
    second(place.up)
    if is_mtree:
        place.print_mtree()
    else:
        place.print_lines()
    return Listing(place.up, down)


def run(scene: Listing) -> int:
    return scene.down.sync().code


def is_finished(scene: Listing, _: Hit) -> None:
    finish(scene.down, scene.up)


def is_finished_without_links(scene: Listing, _: Hit) -> None:
    """No such list states that files are one."""
    finish(scene.down, scene.up, without_links)
