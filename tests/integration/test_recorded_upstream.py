"""Upstreams that record events as File::Rsync::Mirror::Recent does: only what has one is listed."""

import os
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from huai_client.metadata.source.record import load_record, save_record
from huai_schema.errors import ExitCode
from tests.integration.test_plain_upstream import (
    CHANGES,
    WHOLE,
    assert_equal,
    grown,
    synced,
)
from tests.support.local_trees import fingerprint
from tests.support.plain_upstream import Place, Recorded, differences, serving_plainly
from tests.support.upstream import T0

OF_DIRECTORIES = {"modes", "times"}
"""Changes of directories, which have no events."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving_plainly(tmp_path_factory.mktemp("plain")) as place:
        yield place


def test_changes_arrive_by_their_events(plain: Place, subtests: pytest.Subtests) -> None:
    up, down = grown(plain, Recorded)
    for name, change in CHANGES.items():
        if name in OF_DIRECTORIES:
            continue
        change(up)
        up.publish()
        with up.sending() as sizes:
            down.synced("--max-delete=100%")
        with subtests.test(name):
            assert differences(up, down) == ""
            # What a directory of this name had before has no events.
            assert max(sizes) < WHOLE or name == "file becomes directory"
    for name in OF_DIRECTORIES:
        CHANGES[name](up)
    up.publish()
    down.synced()
    assert differences(up, down) != ""
    record = load_record(down.repository, up.url)
    assert record is not None
    save_record(down.repository, replace(record, all_listed=record.all_listed - 8 * 86_400))
    up.put(b"pool/new", b"another")
    up.publish()
    down.synced()
    assert_equal(up, down)


def test_files_of_events_that_cannot_be_used_change_nothing(
    plain: Place, subtests: pytest.Subtests
) -> None:
    up, down = synced(plain, Recorded)
    assert isinstance(up, Recorded)
    former = up.recorded(5)
    up.put(b"pool/new", b"1")
    up.publish()
    newest = up.at(b"RECENT-1h.json")
    right = newest.read_text()
    before = fingerprint(down.dest)
    for number, (wrong, code, words) in enumerate(
        (
            (right[:-20], ExitCode.FORMAT, "cut off"),
            ("<html>", ExitCode.FORMAT, "not a list of events"),
            (right.replace("pool/new", "../new"), ExitCode.FORMAT, "an unsafe path"),
            (
                former.replace('"epoch": 17', '"epoch": 16'),
                ExitCode.ROLLED_BACK,
                "older than the last",
            ),
        )
    ):
        with subtests.test(words):
            newest.write_text(wrong)
            os.utime(newest, ns=(T0, T0 + number))
            ended = down.sync()
            assert ended.code == code, ended
            assert words in ended.err
            assert fingerprint(down.dest) == before
    down.synced("--accept-rollback")
    newest.write_text(right)
    down.synced()
    assert_equal(up, down)


def test_an_upstream_that_is_behind_its_events_catches_up_without_another(plain: Place) -> None:
    """A mirror that rsync makes has the newest events before the files."""
    up, down = synced(plain, Recorded)
    assert isinstance(up, Recorded)
    up.put(b"pool/late", b"1")
    up.put(b"pool/new", b"1")
    up.publish()
    late = up.at(b"pool/late").rename(up.tree.with_name("late"))
    down.synced()
    assert (down.dest / "pool/new").exists()
    late.rename(up.at(b"pool/late"))
    up.put(b"pool/other", b"1")
    up.record(b"pool/other", "new")
    up.at(b"RECENT-1h.json").write_text(up.recorded(10))
    down.synced()
    assert (down.dest / "pool/late").exists()


def test_a_gap_of_the_events_lists_the_whole_tree(plain: Place) -> None:
    up, down = grown(plain, Recorded)
    assert isinstance(up, Recorded)
    for changes, is_whole in ((20, False), (200, True)):
        for number in range(changes):
            up.put(b"many/%d" % number, b"%d" % changes)
        up.publish()
        with up.sending() as sizes:
            down.synced()
        assert (max(sizes) > WHOLE) == is_whole
        assert_equal(up, down)
    up.dirtymark += 1  # older events were added
    up.put(b"pool/unrecorded", b"1")
    up.publish()
    up.at(b"many/1").unlink()
    up.put(b"many/2", b"another")
    with up.sending() as sizes:
        down.synced()
    assert max(sizes) > WHOLE
    assert_equal(up, down)
