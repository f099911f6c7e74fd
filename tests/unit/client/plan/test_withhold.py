"""Operations that wait after a failure, and those that continue, case by case."""

from dataclasses import replace

from huai_client.diff.candidate import Move, Remove
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.order import PublishOrder
from huai_client.plan.withhold import Withholding, withhold
from huai_schema.codec.publish_rules import STAGES
from huai_schema.entries import Directory, File, Symlink
from tests.support.local_trees import at, file, linked, symlink
from tests.support.orders import order_of


def order(*rules: str) -> PublishOrder:
    """Return the order of a snapshot in which `deb` is an apt archive and `rpm` one of packages."""
    return order_of(*rules, apt=[b"deb"], rpm=[b"rpm"])


def plan_of(
    *entries: File | Symlink,
    removals: tuple[bytes, ...] = (),
    clear: tuple[Remove, ...] = (),
    make: tuple[bytes, ...] = (),
    moves: tuple[Move, ...] = (),
    directories: tuple[Directory, ...] = (),
    by: PublishOrder | None = None,
) -> Plan:
    """Return a plan with each entry in its stage."""
    by = by or order()
    fetches: list[list[File]] = [[] for _ in STAGES]
    stages = [Stage(*named) for named in zip(STAGES, fetches, strict=True)]
    for entry in entries:
        number = by.stage_of(entry.path, symlink=isinstance(entry, Symlink))
        if isinstance(entry, Symlink):
            stages[number].symlinks.append(entry)
        else:
            (stages[number].links if entry.link else fetches[number]).append(entry)
    deletions = [Remove(at(path), directory=path.endswith(b"/dir")) for path in removals]
    new = [at(path) for path in make]
    return Plan([*clear], new, [*moves], stages, deletions, [*directories])


def left(plan: Plan, *failed: bytes, by: PublishOrder | None = None) -> set[bytes]:
    """Return the published and deleted (with a minus) paths, although `failed` did not arrive."""
    withholding = Withholding(by or order())
    for path in failed:
        withholding.fail(at(path))
    part = withhold(plan, withholding)
    done: set[bytes] = {b"-" + item.path for item in (*part.clear, *part.removals)}
    done |= {move.new for move in part.moves} | set(part.make)
    for stage in part.stages:
        done |= {each.path for each in (*stage.fetches, *stage.links)}
        done |= {each.path for each in stage.symlinks}
    return done


def test_one_repository_does_not_hold_up_another() -> None:
    paths = [b"%b/%b" % (top, name) for top in (b"deb", b"rpm") for name in (b"a", b"b")]
    indices = [b"deb/dists/s/Packages", b"deb/dists/s/Release"]
    other = [b"rpm/repodata/x.xml", b"rpm/repodata/repomd.xml"]
    plan = plan_of(
        *(file(path) for path in (*paths, *indices, *other)),
        removals=(b"deb/old", b"rpm/old", b"elsewhere/old"),
    )
    assert left(plan, b"deb/a") == {
        *(path for path in paths if path != b"deb/a"),
        *other,
        b"-rpm/old",
        b"-elsewhere/old",
    }


def test_an_index_that_failed_keeps_the_indices_and_pointers_beside_it() -> None:
    plan = plan_of(
        file(b"deb/pool/a"),
        file(b"deb/dists/s/Packages"),
        file(b"deb/dists/s/Sources"),
        file(b"deb/dists/s/Release"),
        removals=(b"deb/pool/old",),
    )
    assert left(plan, b"deb/dists/s/Packages") == {b"deb/pool/a"}
    assert left(plan, b"deb/dists/s/Release") == {b"deb/pool/a"}


LIST = file(b"ls-lR")


def test_outside_of_repositories_the_directory_counts() -> None:
    plan = plan_of(
        file(b"iso/1.iso"),
        file(b"iso/SHA256SUMS"),
        symlink(b"iso/latest", b"1.iso"),
        file(b"src/SHA256SUMS"),
        LIST,
        removals=(b"iso/0.iso", b"src/0.tar", b"iso/deep/0"),
    )
    done = {b"src/SHA256SUMS"}
    # The list of everything waits, and so do the files that it names.
    assert left(plan, b"iso/1.iso") == done
    indices = plan.stages[1]
    plan.stages[1] = replace(indices, fetches=[each for each in indices.fetches if each != LIST])
    # The sums that wait may name files below them, too.
    assert left(plan, b"iso/1.iso") == {*done, b"-src/0.tar"}


def test_a_rule_of_the_administrator_may_name_anything() -> None:
    by = order("pointers /current.json")
    plan = plan_of(file(b"x/1"), file(b"current.json"), removals=(b"y/1",), by=by)
    assert left(plan, b"x/1", by=by) == set()


def test_volatile_files_wait_for_others_and_nothing_for_them() -> None:
    plan = plan_of(file(b"deb/pool/a"), file(b"lastsync"), removals=(b"deb/pool/old",))
    assert left(plan, b"lastsync") == {b"deb/pool/a", b"-deb/pool/old"}
    assert left(plan, b"deb/pool/a") == set()
    plan = plan_of(file(b"a/f"), file(b"b/f"), file(b"a/lastsync"), file(b"b/lastsync"))
    assert left(plan, b"a/f") == {b"b/f", b"b/lastsync"}


def test_what_is_moved_waits_with_all_that_depends_on_it() -> None:
    plan = plan_of(
        file(b"one/f"),
        symlink(b"old", b"new/d"),
        linked(b"z/l", file(b"new/d/f")),
        file(b"new/other"),
        moves=(Move(at(b"old"), at(b"new/d")),),
    )
    assert left(plan, b"one/f") == {b"old", b"z/l", b"new/other", b"new/d"}
    # In the directory that is moved away, that would be a deletion.
    assert left(plan, b"other") == {b"one/f", b"new/other"}


def test_without_a_failure_the_plan_is_the_plan() -> None:
    plan = plan_of(file(b"a"), removals=(b"b",))
    assert withhold(plan, Withholding(order())) is plan
