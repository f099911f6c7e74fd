"""Replaying a plan gives the wanted tree, whatever was there before."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from huai_client.diff.candidate import Candidate, Move
from huai_client.diff.table import CandidateTable
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.order import PublishOrder
from huai_client.plan.pending import DelayPolicy, delay_deletions, read_reappeared
from huai_client.plan.planner import changed_directories, make_plan, with_directories
from huai_client.plan.prepared import summarize
from huai_client.plan.withhold import Withholding, withhold
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_schema.diff.changes import differing
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath, ancestors, join, path_order
from tests.support.examples import examples
from tests.support.memory_tree import Inode, MemoryTree, assert_same, digest_of
from tests.support.orders import order_of

NAMES = st.sampled_from([b"a", b"b", b"c", b"dists", b"Release", b"latest"])
CONTENTS = st.sampled_from([b"1", b"2", b"33", b"44"])


class Described(NamedTuple):
    """A snapshot with the contents of its files."""

    entries: dict[RelPath, Entry]
    contents: dict[RelPath, bytes]

    @property
    def tree(self) -> MemoryTree:
        return MemoryTree.of(list(self.entries.values()), self.contents)


@st.composite
def described(draw: st.DrawFn, *, digests: bool = True) -> Described:
    """Draw a small tree with few names, so that two trees overlap."""
    folders = [RelPath(b"")]
    entries: dict[RelPath, Entry] = {folders[0]: Directory(folders[0], draw(st.integers(1, 3)))}
    contents: dict[RelPath, bytes] = {}
    leaders: list[RelPath] = []
    for _ in range(draw(st.integers(0, 14))):
        path = join(draw(st.sampled_from(folders)), draw(NAMES))
        kind = draw(st.sampled_from(["file", "file", "hardlink", "directory", "symlink"]))
        mtime, mode = draw(st.integers(1, 2)), draw(st.sampled_from([0o644, 0o600]))
        if path in entries:
            continue
        if kind == "directory":
            entries[path] = Directory(path, mtime, draw(st.sampled_from([0o755, 0o555])))
            folders.append(path)
        elif kind == "symlink":
            entries[path] = Symlink(path, draw(NAMES), mtime)
        elif kind == "hardlink" and leaders:
            leader = entries[draw(st.sampled_from(leaders))]
            assert isinstance(leader, File)
            entries[path] = leader._replace(path=path, link=leader.path)
        else:
            content = draw(CONTENTS)
            if not digests:
                mtime += 10 * content[0]  # without digests, a time identifies a content
            digest = digest_of(content) if digests else None
            entries[path] = File(path, len(content), mtime, mode, digest=digest)
            contents[path] = content
            leaders.append(path)
    return Described(entries, contents)


def changed(have: Described, want: Described) -> list[Candidate]:
    """Return the result of comparing the differences between two snapshots."""
    tree = have.tree
    candidates = []
    for path in have.entries.keys() | want.entries.keys():
        old, new = have.entries.get(path), want.entries.get(path)
        if old is None or new is None or differing(old, new):
            candidates.append(tree.candidate(path, new, () if old is None else (old,)))
    return candidates


def compared(have: Described, want: Described) -> list[Candidate]:
    """Return the result of comparing the whole tree, with extraneous paths to delete."""
    tree = have.tree
    paths = have.entries.keys() | want.entries.keys()
    return [tree.candidate(path, want.entries.get(path)) for path in paths]


stages_of = order_of(apt=[b"", b"a", b"b", b"a/b", b"b/a", b"c"]).stages_of


def whole_plan(candidates: list[Candidate], moves: list[Move], want: Described) -> Plan:
    plan = make_plan(candidates, moves, stages_of)
    entries = (want.entries.get(path) for path in changed_directories(plan))
    return with_directories(plan, [entry for entry in entries if isinstance(entry, Directory)])


@given(
    st.tuples(described(), described())
    | st.tuples(described(digests=False), described(digests=False))
)
def test_the_difference_of_two_snapshots(pair: tuple[Described, Described]) -> None:
    have, want = pair
    tree = have.tree
    plan = whole_plan(changed(have, want), [], want)
    tree.execute(plan, want.contents)
    assert_same(tree, want.tree)


@given(described(), described(), described())
def test_a_run_that_was_cut(first: Described, cut: Described, want: Described) -> None:
    """Plan for a tree that is the second, with the first and the second recorded."""
    tree = cut.tree
    candidates = {}
    for past in (first, cut):
        for path in past.entries.keys() | want.entries.keys():
            past_entries = (past.entries.get(path) for past in (first, cut))
            entries = tuple(entry for entry in past_entries if entry is not None)
            candidates[path] = tree.candidate(path, want.entries.get(path), entries)
    tree.execute(whole_plan(list(candidates.values()), [], want), want.contents)
    assert_same(tree, want.tree)


@given(described(), described(), described())
def test_deletions_that_wait(first: Described, second: Described, third: Described) -> None:
    """Run two syncs within the delay, then one after it."""
    tree, waiting = first.tree, list[DelayedDeletion]()
    for have, want, now in ((first, second, 100), (second, third, 105), (third, third, 115)):
        waiting = _sync_with_delay(tree, waiting, have, want, now)
        extra = tree.nodes.keys() - want.entries.keys()
        assert extra == {each.path for each in waiting}
        assert all(each.since + 10 > now for each in waiting if each.path not in _above(waiting))
    assert_same(tree, third.tree)


def _above(waiting: list[DelayedDeletion]) -> set[RelPath]:
    return {above for each in waiting for above in ancestors(each.path)}


def _digest_in(tree: MemoryTree, path: RelPath) -> bytes:
    node = tree.nodes[path]
    assert isinstance(node, Inode)
    return digest_of(node.content)


def _sync_with_delay(
    tree: MemoryTree, waiting: list[DelayedDeletion], have: Described, want: Described, now: int
) -> list[DelayedDeletion]:
    """Carry out a plan with a delay of 10 s; return the waiting deletions."""
    candidates = [
        tree.candidate(path, want.entries.get(path), _past(path, have))
        for path in have.entries.keys() | want.entries.keys()
        if have.entries.get(path) != want.entries.get(path) or not path
    ]
    waits = {each.path for each in waiting}
    candidates = [
        read_reappeared(each, lambda path: _digest_in(tree, path)) if each.path in waits else each
        for each in candidates
    ]
    plan = make_plan(candidates, [], stages_of)
    policy = DelayPolicy(now, 10, lambda _: False, lambda path: path in want.entries)
    changed, left, _ = delay_deletions(plan, waiting, policy)
    entries = (want.entries.get(path) for path in changed_directories(changed))
    tree.execute(
        with_directories(changed, [entry for entry in entries if isinstance(entry, Directory)]),
        want.contents,
    )
    return [each._replace(since=each.since or now) for each in left]


@given(described(digests=False), described(digests=False))
def test_a_tree_of_unknown_origin(have: Described, want: Described) -> None:
    # The comparison, which is not under test, separates two groups that are one here.
    for path, entry in have.entries.items():
        if isinstance(entry, File) and entry.link:
            have.entries[path] = entry._replace(link=None)
            have.contents[path] = have.contents[entry.link]
    tree = have.tree
    tree.execute(whole_plan(compared(have, want), [], want), want.contents)
    assert_same(tree, want.tree)


@given(described(), described(), described(), st.data())
def test_a_directory_that_was_renamed(
    have: Described, want: Described, inside: Described, data: st.DataObject
) -> None:
    """Put a third tree at one place of `have` and at another of `want`."""
    shared = [path for path, entry in have.entries.items() if _is_dir(entry)]
    shared = [path for path in shared if _is_dir(want.entries.get(path))]
    old = join(data.draw(st.sampled_from(shared)), b"old")
    new = data.draw(st.sampled_from([RelPath(b"new"), RelPath(b"made/new")]))
    candidates = changed(have, want)
    instead = data.draw(st.sampled_from([None, Symlink(old, b"elsewhere", 1)]))
    if instead is not None:
        want.entries[old] = instead
        candidates.append(Candidate(old, None, instead))
    if new != b"new":
        want.entries[RelPath(b"made")] = Directory(RelPath(b"made"), 1)
        candidates.append(Candidate(RelPath(b"made"), None, want.entries[RelPath(b"made")]))
    _graft(inside, have, old)
    _graft(inside, want, new)
    tree = have.tree
    plan = whole_plan(candidates, [Move(old, new)], want)
    tree.execute(plan, want.contents)
    assert_same(tree, want.tree)


def _is_dir(entry: Entry | None) -> bool:
    return isinstance(entry, Directory)


def _graft(part: Described, onto: Described, place: RelPath) -> None:
    """Insert a tree into another."""
    for path, entry in part.entries.items():
        target = join(place, path) if path else place
        moved = entry._replace(path=target)
        if isinstance(moved, File) and moved.link:
            moved = moved._replace(link=join(place, moved.link))
        onto.entries[target] = moved
        if path in part.contents:
            onto.contents[target] = part.contents[path]


@given(described())
def test_equal_trees_need_nothing(have: Described) -> None:
    for candidates in (changed(have, have), compared(have, have)):
        assert summarize(whole_plan(candidates, [], have)).nothing


@given(described(), described())
def test_the_order_of_a_plan(have: Described, want: Described) -> None:
    plan = whole_plan(changed(have, want), [], want)
    for removals in (plan.clear, plan.removals):
        paths = [removal.path for removal in removals]
        assert paths == sorted(paths, key=path_order, reverse=True)
    assert [*plan.make] == sorted(plan.make, key=path_order)
    directories = [directory.path for directory in plan.directories]
    assert directories == sorted(directories, key=path_order, reverse=True)
    summary = summarize(plan)
    assert summary.deletions == len(plan.clear) + len(plan.removals)
    assert summary.fetch_bytes == sum(file.size for stage in plan.stages for file in stage.fetches)


@given(described(), described())
def test_what_is_not_proven_is_fetched(have: Described, want: Described) -> None:
    table = CandidateTable.of(changed(have, want))
    for candidate, _, right in table.sources({len(each) for each in have.contents.values()}):
        target = candidate.expected
        if isinstance(target, File) and target.link is None and right:
            present = have.entries[candidate.path]
            assert isinstance(present, File)
            assert have.contents[present.link or present.path] == want.contents[target.path]


TOPS = st.sets(st.sampled_from([b"", b"a", b"b", b"a/b", b"c"]), max_size=3)


@examples(200)
@given(described(), described(), TOPS, st.data())
def test_what_is_withheld(
    have: Described, want: Described, tops: set[bytes], data: st.DataObject
) -> None:
    order = order_of(apt=tops)
    plan = make_plan(changed(have, want), [], order.stages_of)
    entries = (want.entries.get(path) for path in changed_directories(plan))
    plan = with_directories(plan, [entry for entry in entries if isinstance(entry, Directory)])
    fetches = [file for stage in plan.stages for file in stage.fetches]
    failed = data.draw(st.lists(st.sampled_from(fetches), unique=True)) if fetches else []
    withholding = Withholding(order)
    for file in failed:
        withholding.fail(file.path)
    part = withhold(plan, withholding)
    waits = {file.path for file in failed} | withholding.withheld
    _assert_order_is_kept(part, order, waits, want)
    # It can be carried out, and a sync from a repaired upstream finishes it.
    tree = have.tree
    before = dict(tree.nodes)
    tree.execute(part, want.contents)
    for file in failed:
        assert (file.path in tree.nodes) == (file.path in before)
    rest = [
        tree.candidate(path, want.entries.get(path), _past(path, have, want))
        for path in have.entries.keys() | want.entries.keys()
    ]
    tree.execute(whole_plan(rest, [], want), want.contents)
    assert_same(tree, want.tree)


def _assert_order_is_kept(
    part: Plan, order: PublishOrder, waits: set[RelPath], want: Described
) -> None:
    """Assert that no index names a missing file, and no waiting index a deleted one."""
    stages = [(entry, stage) for stage in part.stages[1:] for entry in _published(stage)]
    for entry, _ in stages:
        referenced = order.names_below(entry.path, symlink=isinstance(entry, Symlink))
        absent = [path for path in waits if path in want.entries and not order.is_volatile(path)]
        assert referenced is None or not [path for path in absent if _holds(referenced, path)]
    needed = {
        referenced
        for path in waits
        if (referenced := order.names_below(path, symlink=_is_symlink(want, path))) is not None
        and path in want.entries
        and not order.is_volatile(path)
    }
    for item in (*part.clear, *part.removals):
        assert item.path not in waits
        assert not [top for top in needed if _holds(top, item.path)]


def _is_symlink(described: Described, path: RelPath) -> bool:
    return isinstance(described.entries.get(path), Symlink)


def _published(stage: Stage) -> list[Entry]:
    return [*stage.fetches, *stage.links, *stage.symlinks]


def _holds(folder: RelPath, path: RelPath) -> bool:
    return folder in (path, *ancestors(path))


def _past(path: RelPath, *snapshots: Described) -> tuple[Entry, ...]:
    entries = (snapshot.entries.get(path) for snapshot in snapshots)
    return tuple(entry for entry in entries if entry is not None)
