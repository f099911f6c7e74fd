"""Exports of a tree for other tools, into a folder and into the committed tree itself."""

from dataclasses import dataclass
from pathlib import Path

from huai_schema.errors import HuaiError
from huai_server.actions import modules
from huai_server.config.tables import Module, ModuleExport
from huai_server.state.paths import module_places
from huai_server.store.check import check_repository
from huai_server.store.repository import Repository
from tests.fault.killing import Ground, Hit, undone
from tests.support.committing import NAME
from tests.support.exporting import Exporter
from tests.support.mirror_files import names


@dataclass
class Exporting:
    """A folder with lists of an older commit, or with none."""

    exporter: Exporter

    def __post_init__(self) -> None:
        self.folders = [self.exporter.out]
        self.old = contents(self.exporter.out)
        with undone(self.exporter.out):
            assert self.exporter.outside().changed
            self.new = contents(self.exporter.out)


def many_files(ground: Ground) -> Exporter:
    """An upstream with enough files that lists are compressed in parts."""
    exporter = Exporter(ground.folder)
    for number in range(300):
        exporter.upstream.write(f"d{number % 3}/f{number}", "x" * number)
    exporter.upstream.commit()
    return exporter


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def first(ground: Ground) -> Exporting:
    return Exporting(many_files(ground))


def second(ground: Ground) -> Exporting:
    exporter = many_files(ground)
    exporter.outside()
    exporter.upstream.write("d0/new")
    exporter.upstream.commit()
    scene = Exporting(exporter)
    changed = {name for name in scene.new if scene.new[name] != scene.old[name]}
    assert changed >= {"ls-lR.gz", "fullfilelist"}
    return scene


def export(exporter: Exporter, to: Path | None = None) -> str:
    try:
        return str(exporter.export(to or exporter.out).changed)
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"


def run(scene: Exporting) -> str:
    return export(scene.exporter)


def each_list_is_old_or_new(scene: Exporting, hit: Hit) -> str:
    assert hit.killed or hit.word in ("True", "11", "52")
    exported = contents(scene.exporter.out)
    lists = {name: text for name, text in exported.items() if "~" not in name}
    assert scene.old.keys() <= lists.keys() <= scene.new.keys()
    assert all(text in (scene.old.get(name), scene.new[name]) for name, text in lists.items())
    return "amid" if lists not in (scene.old, scene.new) else "before or after"


def all_lists_are_new(scene: Exporting, _: Hit) -> None:
    run(scene)
    assert contents(scene.exporter.out) == scene.new
    assert not list(scene.exporter.out.rglob(".~tmp~"))


LISTS = {"fullfilelist", f"fullfiletimelist-{NAME}", f"imagelist-{NAME}"}


@dataclass
class InTree:
    """A module whose commit writes the lists into the tree."""

    root: Path
    tree: Path

    def __post_init__(self) -> None:
        self.folders = [self.root, self.tree]


def in_tree(ground: Ground) -> InTree:
    scene = InTree(ground.folder / "state", ground.folder / "tree")
    for number in range(200):
        (scene.tree / f"d{number % 3}").mkdir(parents=True, exist_ok=True)
        (scene.tree / f"d{number % 3}/f{number}").write_text("x")
    export = ModuleExport(files=("arch", "fedora", "ls-lR", "trace"), host="mirror.example")
    modules.add(scene.root, NAME, Module(str(scene.tree), export=export))
    assert commit(scene) == 0
    (scene.tree / "d0/new").write_text("new")
    return scene


def commit(scene: InTree) -> int:
    return int(modules.commit(scene.root, NAME).exit_code)


def is_sound(scene: InTree, _: Hit) -> None:
    repository = Repository(module_places(scene.root, NAME).repository)
    assert check_repository(NAME, repository).faults == ()


def lists_name_what_is_there(scene: InTree, hit: Hit) -> None:
    """One more commit is enough."""
    assert commit(scene) == 0
    assert not modules.commit(scene.root, NAME).result.changed
    paths = {str(path.relative_to(scene.tree)) for path in scene.tree.rglob("*")}
    assert set(names((scene.tree / "fullfilelist").read_bytes())) == paths - LISTS
    head = Repository(module_places(scene.root, NAME).repository).head()
    assert head is not None
    assert head.info.totals.entries == len(paths) + 1
    is_sound(scene, hit)
