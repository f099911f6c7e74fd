"""No directory loses more than its limit, and paths that are in no snapshot stay."""

import pytest

from tests.support.local_trees import fingerprint
from tests.support.upstream import Site, rsync_differences


def test_limits_of_directories(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 20)
    up.put(b"dists/sid/InRelease", b"pointer")
    down = place.synced_downstream(up, max_delete_in={"/pool": "10%", "/dists": 1})
    for number in range(3):
        up.at(b"pool/%d" % number).unlink()
    up.commit()
    before = fingerprint(down.dest)
    ended = down.sync()
    assert ended.code == 25
    assert "3 of 21 entries in /pool would be deleted" in ended.err
    assert "--max-delete-in /pool=3" in ended.err
    assert fingerprint(down.dest) == before
    assert down.sync("--max-delete", "100%").code == 25
    assert down.run("plan", down.name).code == 25
    assert down.sync("--max-delete-in", "/pool=3").code == 0
    assert rsync_differences(up, down) == ""


def test_a_limit_of_a_directory_that_does_not_exist_is_warned_of(place: Site) -> None:
    up = place.upstream()
    up.put(b"pool/a", b"text")
    up.put(b"dists/sid/InRelease", b"pointer")
    limits: dict[str, str | int] = {"/pool": 0, "/nosuch": 0, "/pool/a": 1, "/*": "100%"}
    down = place.downstream(up, max_delete_in=limits)
    up.commit()
    ended = down.sync()
    assert ended.code == 0
    for path in ("nosuch", "pool/a"):
        assert f"the tree has no directory /{path}: its limit has no effect" in ended.err
    assert ended.err.count("has no effect") == 2
    assert "published 1 file of the payload in" in ended.err
    assert ", 1 pointer in" in ended.err


def test_options_are_checked_also_where_nothing_is_new(
    place: Site, subtests: pytest.Subtests
) -> None:
    up = place.upstream()
    up.put(b"a", b"text")
    down = place.synced_downstream(up)
    for options, code in [
        ("--max-delete ten", 40),
        ("--max-delete-in /pool=ten", 40),
        ("--max-delete-in pool", 40),
        ("--bwlimit fast", 1),
        ("--bwlimit 10m", 0),
        ("--bwlimit 1.5MB", 0),
        ("-o streams=0", 1),
        ("-o streams", 1),
        ("-o dest=/srv", 1),
        ("-o batch_size=4x", 1),
        ("-o batch_size=4G -o timeout=60", 0),
    ]:
        with subtests.test(options):
            ended = down.sync(*options.split())
            assert ended.code == code
            assert ("nothing new" in ended.err) == (code == 0)


def test_extraneous_files_are_named(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    down = place.downstream(up)
    names = [f"unknown{number}" for number in range(5)]
    for name in names:
        (down.dest / name).write_text("whose?")
    assert down.run("plan", down.name, "--delete-extraneous").err.count("extraneous") == 0
    ended = down.sync()
    assert "5 paths are in no snapshot and stay" in ended.err
    assert "unknown0, unknown1, unknown2 (" in ended.err
    assert [line.split()[1] for line in down.verify().out.splitlines()] == names
    assert down.verify("--repair").code == 0
    assert all((down.dest / name).exists() for name in names)
    assert down.synced("--adopt")["extraneous"] == 5
    assert down.synced("--adopt", "--delete-extraneous")["extraneous"] == 0
    assert not any((down.dest / name).exists() for name in names)
