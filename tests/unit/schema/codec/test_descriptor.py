import pytest

from huai_schema.codec.descriptor import Descriptor, read_root, write_root
from huai_schema.codec.module_name import check_module
from huai_schema.errors import FormatError
from huai_schema.git.objects import TreeItem, encode_tree
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import snapshot, tree_of

GOOD = b"format\t1\nmodule\tcentos\ndigest\tblake3\ncontent\trsync://h/centos/\n"


def test_unknown_keys_in_lower_case_are_ignored() -> None:
    text = GOOD.replace(b"digest", b"order\tpool\ndigest") + b"x-new\tanything\n"
    assert Descriptor.decode(text) == Descriptor("centos", ("rsync://h/centos/",))


def test_a_descriptor_that_breaks_a_rule_is_refused(subtests: pytest.Subtests) -> None:
    for text, reason in [
        (b"", "too long, or truncated"),
        (GOOD[:-1], "too long, or truncated"),
        (GOOD + b"x\t" + b"y" * 65536 + b"\n", "too long, or truncated"),
        (GOOD.replace(b"format\t1", b"format\t2"), "version 2 is unknown; this program reads 1"),
        (GOOD.replace(b"format\t1", b"format\t01"), "version 01 is unknown"),
        (GOOD.replace(b"format\t1\n", b""), "version none is unknown"),
        (GOOD.replace(b"format\t1\n", b"format\t1\nformat\t1\n"), "version 1, 1 is unknown"),
        (GOOD + b"Encrypted\tyes\n", "the key Encrypted is required"),
        (GOOD.replace(b"blake3", b"md5"), "digest algorithm"),
        (GOOD.replace(b"centos\nd", b"cent/os\nd"), "cannot be a module's name"),
        (GOOD.replace(b"module\tcentos\n", b""), "exactly one module"),
        (GOOD + b"module\tcentos\n", "exactly one module"),
        (GOOD + b"content\t--rsh=evil\n", "content URL"),
        (GOOD + b"content\t\n", "content URL"),
        (GOOD + b"content\trsync://h/m/\n" * 16, "more than 16 content URLs"),
        (GOOD.replace(b"digest", b"identity\tx\ndigest"), "identity"),
        (GOOD.replace(b"digest", b"identity\t" + b"A" * 32 + b"\ndigest"), "identity"),
        (GOOD.replace(b"digest", (b"identity\t" + b"a" * 32 + b"\n") * 2 + b"digest"), "identity"),
        (GOOD + b"identity\t" + b"a" * 32 + b"\n", "out of order"),
        (GOOD + b"blocks\t0\n", "blocks must be a number"),
        (GOOD + b"blocks\t07\n", "blocks must be a number"),
        (GOOD + b"blocks\t1\nblocks\t1\n", "blocks must be a number"),
        (GOOD + b"blocks\t1" + b"0" * 19 + b"\n", "blocks must be a number"),
        (GOOD.replace(b"digest", b"blocks\t7\ndigest"), "out of order"),
        (GOOD + b"content\ta\\x0ab\n", "content URL"),
        (GOOD + b"mirror\t-e\n", "content URL"),
        (GOOD + b"mirror\thttp://h/\n" * 65, "more than 64 mirrors"),
        (GOOD.replace(b"content", b"mirror\thttp://h/\ncontent"), "out of order"),
        (GOOD + b"content\t\xff\n", "not UTF-8"),
        (GOOD + b"\xff\ta\n", "not UTF-8"),
        (GOOD + b"novalue\n", "key, tab, value"),
        (GOOD + b"\tv\n", "key, tab, value"),
        (GOOD + b"1\tv\n", "key, tab, value"),
        (GOOD + b"\n", "key, tab, value"),
        (GOOD + b"k\t\\x41\n", "stray backslash"),
        (b"digest\tblake3\nformat\t1\nmodule\tcentos\n", "out of order"),
    ]:
        with subtests.test(text=text, reason=reason):
            with pytest.raises(FormatError, match=f"^descriptor: .*{reason}"):
                Descriptor.decode(text)


def test_an_identity_is_told_or_not() -> None:
    complete = Descriptor("m", ("rsync://h/m/",) * 16, ("pointers /a",), "0123456789abcdef" * 2)
    mirrors = ("https://h/m", "rsync://o/m") * 32
    changes = ({"identity": ""}, {"blocks": 16 << 20}, {"mirrors": mirrors})
    for descriptor in (complete, *(complete._replace(**each) for each in changes)):
        assert Descriptor.decode(descriptor.encode()) == descriptor


def test_names_that_are_no_modules(subtests: pytest.Subtests) -> None:
    for name in ["", ".git", "-x", "a/b", "a b", "x.git", "ü", "a\n", "a" * 129]:
        with subtests.test(name=name):
            with pytest.raises(FormatError):
                check_module(name)


def test_the_root_comes_back() -> None:
    objects = MemoryObjects()
    tree = snapshot(tree_of(), objects).tree
    root = write_root(Descriptor("m"), tree, objects)
    assert read_root(root, objects) == (Descriptor("m"), tree)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], "not a huai metadata repository"),
        ([(b"tree", True)], "not a huai metadata repository"),
        ([(b"huai", True), (b"tree", True)], "not a huai metadata repository"),
        ([(b"huai", False)], "the tree of entries is missing"),
        ([(b"huai", False), (b"tree", False)], "the tree of entries is missing"),
        ([(b"huai", False), (b"tree", True), (b"Huai", False)], "unknown item 'Huai'"),
        ([(b"huai", False), (b"tree", True), (b".x", True)], "unknown item '.x'"),
    ],
)
def test_other_commits_are_refused(items: list[tuple[bytes, bool]], reason: str) -> None:
    objects = MemoryObjects()
    blob = objects.write("blob", Descriptor("m").encode())
    root = objects.write("tree", encode_tree(TreeItem(name, blob, kind) for name, kind in items))
    with pytest.raises(FormatError, match=f"commit: .*{reason}"):
        read_root(root, objects)


def test_items_in_lower_case_are_for_later_versions() -> None:
    objects = MemoryObjects()
    blob = objects.write("blob", Descriptor("m").encode())
    items = [TreeItem(b"huai", blob, False), TreeItem(b"tree", blob, True)]  # noqa: FBT003
    items.append(TreeItem(b"signature", blob, is_tree=False))
    root = objects.write("tree", encode_tree(items))
    assert read_root(root, objects) == (Descriptor("m"), blob)


def test_a_commit_tree_is_small() -> None:
    objects = MemoryObjects()
    items = [TreeItem(b"x%060d" % number, bytes(20), is_tree=False) for number in range(1000)]
    root = objects.write("tree", encode_tree(items))
    with pytest.raises(FormatError, match="more than 65536 bytes"):
        read_root(root, objects)
