"""The order in which a snapshot is published that holds nothing but some repositories."""

from collections.abc import Iterable

from huai_client.plan.order import PublishOrder
from huai_client.plan.profiles import known_volatile, profiles
from huai_schema.codec.publish_rules import own_rules
from huai_schema.paths import RelPath, ancestors
from tests.support.local_trees import at
from tests.support.schema.trees import Tree, directory, file, snapshot, tree_of

APT, RPM = b"dists/some/Release", b"repodata/repomd.xml"


def order_of(*rules: str, apt: Iterable[bytes] = (), rpm: Iterable[bytes] = ()) -> PublishOrder:
    """By `rules` of client.toml; `apt` and `rpm` are tops of repositories."""
    tree: Tree = tree_of()
    for tops, marker in ((apt, APT), (rpm, RPM)):
        for top in tops:
            path = at(top + b"/" + marker if top else marker)
            _add(tree, path)
    return PublishOrder(snapshot(tree), profiles(), own_rules(rules), [], known_volatile())


def _add(tree: Tree, path: RelPath) -> None:
    for above in ancestors(path):
        if above:
            tree[above] = directory(above)
    tree[path] = file(path)
