import pytest

from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import TreeItem, decode_tree, encode_tree, object_id
from huai_schema.paths import RelPath
from tests.support.git_objects import object_id as expected_id
from tests.support.schema.single import read_own_directory

OID = b"i" * 20
HERE = RelPath(b"pool")


def item(mode: bytes, name: bytes, oid: bytes = OID) -> bytes:
    return mode + b" " + name + b"\0" + oid


def blob(name: bytes) -> bytes:
    return item(b"100644", name)


def tree(name: bytes) -> bytes:
    return item(b"40000", name)


def test_ids_are_gits() -> None:
    assert object_id("blob", b"").hex() == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert object_id("tree", b"").hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert object_id("commit", OID * 99) == expected_id("commit", OID * 99)


def test_git_sorts_a_tree_as_if_it_ended_in_a_slash() -> None:
    names = [TreeItem(b"a", OID, is_tree=True), TreeItem(b"a.b", OID, is_tree=False)]
    assert encode_tree(names) == blob(b"a.b") + tree(b"a")
    assert list(decode_tree(blob(b"a.b") + tree(b"a"))) == names[::-1]


def test_a_git_tree_that_breaks_a_rule_is_refused(subtests: pytest.Subtests) -> None:
    for data in [
        b"x",
        blob(b"a")[:-1],
        blob(b""),
        blob(b"a/b"),
        item(b"100755", b"a"),
        item(b"120000", b"a"),
        item(b"160000", b"a"),
        item(b"040000", b"a"),
        blob(b"b") + blob(b"a"),
        blob(b"a") + blob(b"a"),
        tree(b"a") + tree(b"a"),
        tree(b"a") + blob(b"a.b"),
        blob(b"a") + tree(b"a"),
        blob(b"a") + blob(b"a.b") + tree(b"a"),
    ]:
        with subtests.test(data=data):
            with pytest.raises(FormatError, match=r"place: a .*git tree"):
                list(decode_tree(data, "place"))


def test_an_own_directory_that_breaks_a_rule_is_refused(subtests: pytest.Subtests) -> None:
    for items in [
        b"",
        tree(b"=a"),
        tree(b"m"),
        blob(b"p"),
        blob(b"d"),
        tree(b"p"),
        blob(b"m") + tree(b"q"),
        blob(b"d") + tree(b"p"),
        tree(b"q"),
        blob(b"m") + blob(b"x"),
        blob(b"=a") + blob(b"m"),
        tree(b"=") + blob(b"m"),
        tree(b"=.") + blob(b"m"),
        tree(b"=..") + blob(b"m"),
        tree(b"=" + b"n" * 256) + blob(b"m"),
    ]:
        with subtests.test(items=items):
            with pytest.raises(FormatError, match=r"^pool: "):
                read_own_directory(HERE, items)


def test_the_depth_of_own_directories_is_bounded_by_their_path() -> None:
    deep = RelPath(b"/".join([b"d" * 255] * 15 + [b"d" * 252]))
    assert read_own_directory(deep, tree(b"=nn") + blob(b"m")).children == {b"nn": OID}
    with pytest.raises(FormatError, match="4095"):
        read_own_directory(deep, tree(b"=nnn") + blob(b"m"))


def test_an_error_says_where_and_what_to_do() -> None:
    error = FormatError("reason", "inner").within("outer")
    assert str(error) == "outer: inner: reason"
    assert isinstance(error, HuaiError)
    assert error.hint
    assert error.exit_code is ExitCode.FORMAT


def test_exit_codes_keep_rsyncs_meaning_below_40() -> None:
    ours = {code.name: int(code) for code in ExitCode}
    assert (ours["OK"], ours["PARTIAL"], ours["VANISHED"]) == (0, 23, 24)
    assert (ours["MAX_DELETE"], ours["TIMEOUT"]) == (25, 30)
    assert all(code.meaning for code in ExitCode)
