import pytest

from huai_schema.codec.commits import (
    COMMIT_TIME_MAX,
    CommitInfo,
    CommitObject,
    Counts,
    Totals,
    decode_commit,
    encode_commit,
)
from huai_schema.errors import FormatError

INFO = CommitInfo("centos", 7, Totals(1, 2, 3, 4), Counts(5, 6, 7, 8), 9)
MESSAGE = INFO.encode()


def test_totals_and_counts_add_up() -> None:
    assert (INFO.totals.entries, INFO.counts.total) == (6, 26)


def test_other_lines_are_ignored() -> None:
    more = MESSAGE + "Huai-Later: yes\nSigned-off-by: someone\n\nfree text\n"
    assert CommitInfo.decode(more) == INFO


def test_new_bytes_are_the_last_number_and_may_be_missing() -> None:
    info = INFO._replace(counts=INFO.counts._replace(new_bytes=11))
    assert info.encode() == MESSAGE + "Huai-New-Bytes: 11\n"
    assert CommitInfo.decode(info.encode()) == info
    with pytest.raises(FormatError, match="repeated or out of order"):
        CommitInfo.decode(MESSAGE.replace("Huai-Bytes", "Huai-New-Bytes: 11\nHuai-Bytes"))


def test_a_message_that_breaks_a_rule_is_refused(subtests: pytest.Subtests) -> None:
    for message, reason in [
        ("", "subject and trailers"),
        (MESSAGE.replace("\n\n", "\n"), "subject and trailers"),
        (MESSAGE.rstrip("\n"), "subject and trailers"),
        (MESSAGE.replace("centos 7:", "centos:"), "subject and trailers"),
        (MESSAGE.replace("centos 7:", "cent/os 7:"), "cannot be a module's name"),
        (MESSAGE.replace("centos 7:", "centos 8:"), "contradicts the trailers"),
        (MESSAGE.replace("+5", "+6"), "contradicts the trailers"),
        (MESSAGE.replace("Huai-Bytes: 4\n", ""), "Huai-Bytes is missing"),
        (MESSAGE + "Huai-Bytes: 4\n", "repeated or out of order"),
        (MESSAGE.replace("Huai-Bytes: 4", "Huai-Bytes: 04"), "Huai-Bytes is not a number"),
        (MESSAGE.replace("Huai-Bytes: 4", "Huai-Bytes: -4"), "Huai-Bytes is not a number"),
        (MESSAGE.replace("Huai-Bytes: 4", "Huai-Bytes: ٤"), "Huai-Bytes is not a number"),
        (MESSAGE.replace("Huai-Bytes: 4", f"Huai-Bytes: {1 << 63}"), "Huai-Bytes is not a number"),
        (MESSAGE.replace("Huai-Files: 1", f"Huai-Files: {1 << 32}"), "entries are announced"),
        (MESSAGE + "x" * 65_536 + "\n", "too long"),
    ]:
        with subtests.test(message=message, reason=reason):
            with pytest.raises(FormatError, match=f"commit: .*{reason}"):
                CommitInfo.decode(message)


def written(date: str = "1700000000 +0000", headers: str = "", message: str = MESSAGE) -> bytes:
    committer = f"huai <huai@localhost> {date}"
    return (
        f"tree {'a' * 40}\n{headers}author {committer}\ncommitter {committer}\n\n{message}".encode()
    )


def test_a_commit_as_git_writes_it() -> None:
    tree = bytes.fromhex("a" * 40)
    assert decode_commit(written()) == CommitObject(
        tree, parents=(), time=1_700_000_000, message=MESSAGE.encode()
    )
    assert encode_commit(tree, None, 1_700_000_000, MESSAGE) == written()
    assert decode_commit(written()).info() == INFO
    child = encode_commit(tree, "b" * 40, 1, MESSAGE)
    assert decode_commit(child).parents == ("b" * 40,)
    parents = f"parent {'b' * 40}\nparent {'c' * 40}\n"
    assert decode_commit(written(headers=parents)).parents == ("b" * 40, "c" * 40)
    signed = written().replace(b"\n\n", b"\ngpgsig -----BEGIN\n abc\n -----END\n\n", 1)
    assert decode_commit(signed).info() == INFO
    assert decode_commit(written(f"{COMMIT_TIME_MAX} -1200")).time == COMMIT_TIME_MAX


def test_a_commit_that_breaks_a_rule_is_refused(subtests: pytest.Subtests) -> None:
    for data, reason in [
        (b"", "as git writes it"),
        (b"tree x\n", "as git writes it"),
        (written().partition(b"\n\n")[0] + b"\n", "as git writes it"),
        (written("x +0000"), "as git writes it"),
        (written("-5 +0000"), "as git writes it"),
        (written("1" * 13 + " +0000"), "as git writes it"),
        (written("0 +0000"), "date is out of range"),
        (written(f"{COMMIT_TIME_MAX + 1} +0000"), "date is out of range"),
        (written(message="x" * 131_072), "more than 131072 bytes"),
    ]:
        with subtests.test(data=data, reason=reason):
            with pytest.raises(FormatError, match=f"commit: .*{reason}"):
                decode_commit(data)


def test_a_message_in_another_encoding() -> None:
    with pytest.raises(FormatError, match="not UTF-8"):
        decode_commit(written() + b"\xff\n").info()
