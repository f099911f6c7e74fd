"""Hardlinks of equal files from an upstream that states no digests.

Rule: the file that gets another name is read first, so that a damaged one never spreads.  A tree is
on one file system, because content is renamed into it.
"""

import os
from collections import Counter
from dataclasses import replace

from huai_client.diff.files import paths, without
from huai_client.diff.table import compare_path
from huai_client.plan.operations import Plan
from huai_client.state.seen import SeenDigests
from huai_client.tree import PathError, Tree
from huai_client.tree.hashing import digest_of
from huai_schema.entries import File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath

_LINKS_MOST = 10_000
"""The most names that one inode gets from a plan, or has before; ext4 allows 65,000."""


def link_equal(plan: Plan, seen_digests: SeenDigests, tree: Tree, snapshot: Snapshot) -> Plan:
    """Return the plan with hardlinks in the place of staged files that equal another file.

    That has the same digest, size, time, mode and owner, and is one that the plan publishes before,
    or one of `snapshot` that is in the tree already.  Files without a seen digest stay as they are.
    """
    seen_digests.make_index()
    leaders: dict[tuple[bytes, tuple[object, ...]], RelPath] = {}
    names: Counter[RelPath] = Counter()
    fetched = {*paths(plan.fetches)}
    linked = {each.link for stage in plan.stages for each in stage.links}
    stages = []
    for stage in plan.stages:
        links: dict[RelPath, File] = {}
        for file in stage.fetches:
            digest = seen_digests.find(file) if file.digest is None and file.size else None
            if digest is None or file.path in linked:
                continue
            key = digest, file[1:]
            if key not in leaders or names[leaders[key]] >= _LINKS_MOST:
                leaders[key] = file.path
                for path in seen_digests.equal(digest, file):
                    if path not in fetched and _may_lead(path, file, digest, tree, snapshot):
                        leaders[key] = path
                        break
            if leaders[key] != file.path:
                links[file.path] = file._replace(link=leaders[key])
                names[leaders[key]] += 1
        fetches = without(stage.fetches, links)
        stages.append(replace(stage, fetches=fetches, links=[*stage.links, *links.values()]))
    return replace(plan, stages=stages)


def _may_lead(path: RelPath, file: File, digest: bytes, tree: Tree, snapshot: Snapshot) -> bool:
    """Return True if the file at `path` has the content `digest` and the attributes of `file`.

    False if it cannot be read, or has too many names.
    """
    entry = snapshot.leaf(path)
    if entry is None or entry[1:] != file[1:]:
        return False
    try:
        local = compare_path(tree, path, entry)
        if not local.present or local.differing - {"link"} or local.links >= _LINKS_MOST:
            return False
        handle = tree.open_file(path)
        try:
            return digest_of(handle) == digest
        finally:
            os.close(handle)
    except (PathError, OSError):
        return False
