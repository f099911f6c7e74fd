"""Payload, indices, pointers: judged in the repository around a path."""

import pytest

from huai_client.plan.operations import PAYLOAD, POINTERS
from huai_client.plan.order import PublishOrder
from huai_client.plan.profiles import profiles
from huai_schema.codec.publish_rules import own_rules
from huai_schema.entries import Symlink
from huai_schema.paths import ROOT, RelPath, ancestors
from huai_server.export.dialects import NAMES, all_paths
from huai_server.export.source import ExportRequest
from tests.support.local_trees import at
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import Tree, directory, file, snapshot, tree_of

INDICES = PAYLOAD + 1
MIRROR = {
    # An apt archive, with files that only look like those of other kinds.
    b"debian/dists/sid/InRelease": POINTERS,
    b"debian/dists/sid/Release": POINTERS,
    b"debian/dists/sid/Release.gpg": POINTERS,
    b"debian/dists/sid/main/binary-amd64/Packages.xz": INDICES,
    b"debian/dists/sid/main/binary-amd64/Release": INDICES,
    b"debian/dists/sid/main/by-hash/SHA256/Release": INDICES,
    b"debian/dists/stable": POINTERS,  # a symlink
    b"debian/pool/a/latest.deb": PAYLOAD,
    b"debian/pool/simple/x.db": PAYLOAD,
    b"debian/project/trace/host.example": POINTERS,
    b"debian/ls-lR.gz": INDICES,
    # A flat one.
    b"flat/InRelease": POINTERS,
    b"flat/Packages.gz": INDICES,
    b"flat/all/x.deb": PAYLOAD,
    # rpm, two repositories, and files next to them.
    b"fedora/os/repodata/repomd.xml": POINTERS,
    b"fedora/os/repodata/repomd.xml.asc": POINTERS,
    b"fedora/os/repodata/ab-primary.xml.gz": INDICES,
    b"fedora/os/Packages/current-1.rpm": PAYLOAD,
    b"fedora/os/images/latest": PAYLOAD,
    b"fedora/source/repodata/repomd.xml": POINTERS,
    b"fedora/fullfiletimelist-fedora": INDICES,
    b"fedora/old/repodata/primary.xml.gz": PAYLOAD,  # no repository: no repomd.xml
    # pacman.
    b"arch/core/core.db": POINTERS,
    b"arch/core/core.db.tar.gz.sig": POINTERS,
    b"arch/core/core.files": POINTERS,
    b"arch/core/latest-1.pkg.tar.zst": PAYLOAD,
    b"arch/core/x.db.pkg.tar.zst": PAYLOAD,
    b"arch/lastupdate": POINTERS,
    # apk, conda, pypi.
    b"alpine/v3.20/x86_64/APKINDEX.tar.gz": POINTERS,
    b"alpine/v3.20/x86_64/a.apk": PAYLOAD,
    b"conda/main/linux-64/repodata.json": POINTERS,
    b"conda/main/linux-64/repodata.json.zst": POINTERS,
    b"conda/main/linux-64/current_repodata.json": POINTERS,
    b"conda/main/linux-64/a.conda": PAYLOAD,
    b"conda/main/noarch/repodata.json": POINTERS,
    b"conda/main/channeldata.json": POINTERS,
    b"pypi/simple/pip/index.html": INDICES,
    b"pypi/simple/index.html": POINTERS,
    b"pypi/json/pip": INDICES,
    b"pypi/pypi/pip/json": INDICES,
    b"pypi/packages/ab/pip.whl": PAYLOAD,
    b"pypi/last-modified": POINTERS,
    # No repository at all.
    b"iso/latest": POINTERS,
    b"iso/latest-installer": POINTERS,  # a symlink
    b"iso/latest-installer.iso": PAYLOAD,
    b"iso/SHA256SUMS": INDICES,
    b"iso/sub/simple/x": PAYLOAD,
    b"iso/sub/foo.db": PAYLOAD,
    b"iso/dists/README": PAYLOAD,
    b"docs/repodata/readme": PAYLOAD,
    b"TIME": POINTERS,
    b"timestamp.txt": POINTERS,
    b"OVERTIME": PAYLOAD,
}
SYMLINKS = {b"debian/dists/stable", b"iso/latest-installer"}
FOUND = {
    b"alpine/v3.20/x86_64": "apk",
    b"arch/core": "pacman",
    b"conda/main": "conda",
    b"conda/main/linux-64": "conda",
    b"conda/main/noarch": "conda",
    b"debian": "apt",
    b"fedora/os": "rpm",
    b"fedora/source": "rpm",
    b"flat": "apt",
    b"pypi": "pypi",
}


def grown(names: dict[bytes, int], padding: int) -> Tree:
    """Make a tree with these leaves; `padding` more in each directory vary the layouts."""
    tree = tree_of()
    for name in names:
        path = at(name)
        for above in ancestors(path)[:-1]:
            tree[above] = directory(above)
        tree[path] = Symlink(path, b"x", 0) if name in SYMLINKS else file(path)
    for folder in [path for path in tree if path not in names]:
        for number in range(padding):
            extra = RelPath((folder + b"/" if folder else b"") + b"zz%d" % number)
            tree[extra] = file(extra)
    return tree


def order(tree: Tree, own: tuple[str, ...] = (), upstream: tuple[str, ...] = ()) -> PublishOrder:
    return PublishOrder(snapshot(tree), profiles(), own_rules(own), own_rules(upstream))


@pytest.mark.parametrize("padding", [0, 20, 300])
def test_every_path_in_its_subtree(padding: int) -> None:
    tree = grown(MIRROR, padding)
    judge = order(tree)
    stages = {name: judge.stage_of(at(name), symlink=name in SYMLINKS) for name in MIRROR}
    assert stages == MIRROR
    met = {each.top: each.profile for each in judge.repositories()}
    assert met == {**FOUND, b"debian/dists/sid/main/binary-amd64": "apt"}


def test_only_repositories_around_indices_and_pointers_are_looked_for() -> None:
    judge = order(grown(MIRROR, 0))
    judge.stages_of([(at(b"debian/pool/main/a.deb"), False)])
    assert judge.repositories() == []
    judge.stages_of([(at(b"debian/dists/sid/InRelease"), False)])
    (repository,) = judge.repositories()
    assert (repository.top, repository.profile) == (b"debian", "apt")


def test_every_rule_of_a_profile_can_be_met() -> None:
    for profile in profiles().values():
        for rule in profile.rules:
            names = [name.replace("*", "x").replace("?", "x") for name in rule.pattern.components]
            path = at("/".join(name for name in names).encode())
            tree = grown({path: 0}, 0)
            judge = order(tree, own=(f"profile {profile.name} /",))
            verdict = judge.placement_of(path, symlink=rule.pattern.symlinks)
            assert verdict.rule, (profile.name, rule)


def test_the_upstream_and_the_client_know_better() -> None:
    tree = grown(MIRROR, 0)
    judge = order(
        tree,
        own=("payload /debian/ls-lR.gz", "profile generic /arch"),
        upstream=("pointers /debian/ls-lR.gz", "indices fedora/old/", "profile rpm /docs"),
    )
    assert judge.stage_of(at(b"debian/ls-lR.gz")) == PAYLOAD
    assert judge.stage_of(at(b"fedora/old/x")) == INDICES
    assert judge.stage_of(at(b"docs/repodata/readme")) == INDICES
    assert judge.stage_of(at(b"arch/core/core.db")) == PAYLOAD
    assert judge.placement_of(at(b"docs/repodata/readme")).rule == "indices /repodata/"
    assert judge.placement_of(at(b"debian/ls-lR.gz")).rule == "payload /debian/ls-lR.gz"


def test_a_profile_that_is_not_known_is_ignored() -> None:
    judge = order(grown(MIRROR, 0), upstream=("profile ostree /debian",))
    assert judge.stage_of(at(b"debian/dists/sid/InRelease")) == POINTERS


def test_what_is_gone_is_judged_by_what_is_left() -> None:
    judge = order(grown(MIRROR, 0))
    assert judge.stage_of(at(b"debian/dists/old/InRelease")) == POINTERS
    assert judge.stage_of(at(b"nowhere/dists/old/InRelease")) == PAYLOAD


def test_detection_costs_what_is_asked_for() -> None:
    tree = grown(MIRROR, 0)
    for number in range(6000):
        for name in (b"%d" % (number // 150), b"%d/%d" % (number // 150, number)):
            path = at(b"large/" + name)
            tree[path] = directory(path) if name.count(b"/") == 0 else file(path)
    tree[at(b"large")] = directory(b"large")
    objects = MemoryObjects()
    judge = PublishOrder(snapshot(tree, objects), profiles(), [], [])
    for _ in range(3):
        assert judge.stage_of(at(b"debian/pool/a/latest.deb")) == PAYLOAD
    assert len(objects.read_ids) < 20
    assert len(objects.objects) > 80


@pytest.mark.parametrize("padding", [0, 20, 600])
def test_what_is_there(padding: int) -> None:
    judge = order(grown(MIRROR, padding))
    assert judge.is_directory(ROOT)
    assert judge.is_directory(at(b"debian/pool"))
    assert not judge.is_directory(at(b"debian/pool/a/latest.deb"))
    assert not judge.is_directory(at(b"debian/poo"))
    assert judge.has_entry(ROOT)
    assert judge.has_entry(at(b"debian/pool"))
    assert judge.has_entry(at(b"debian/pool/a/latest.deb"))
    assert not judge.has_entry(at(b"debian/pool/a/latest"))
    assert not judge.has_entry(at(b"debian/pool/*"))
    assert not judge.has_entry(at(b"nowhere/at/all"))


@pytest.mark.parametrize("dialect", NAMES)
def test_downstreams_publish_exports_after_what_they_describe(dialect: str) -> None:
    export = ExportRequest((dialect,), "m", "host.example", "", 0, (at(b"pool"),))
    judge = order(grown(dict.fromkeys(all_paths(export), PAYLOAD), 0))
    stages = {path: judge.stage_of(path) for path in all_paths(export)}
    assert min(stages.values()) > PAYLOAD, stages
