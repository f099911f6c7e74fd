import pytest

from huai_schema.commits import CommitInfo, Counts, Totals
from huai_schema.errors import FormatError

INFO = CommitInfo("centos", 7, Totals(1, 2, 3, 4), Counts(5, 6, 7, 8), 9)
MESSAGE = INFO.encode()


def test_totals_and_counts_add_up() -> None:
    assert (INFO.totals.entries, INFO.counts.total) == (6, 26)


def test_other_lines_are_ignored() -> None:
    more = MESSAGE + "Huai-Later: yes\nSigned-off-by: someone\n\nfree text\n"
    assert CommitInfo.decode(more) == INFO


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "subject and trailers"),
        (MESSAGE.replace("\n\n", "\n"), "subject and trailers"),
        (MESSAGE.rstrip("\n"), "subject and trailers"),
        (MESSAGE.replace("centos 7:", "centos:"), "subject and trailers"),
        (MESSAGE.replace("centos 7:", "cent/os 7:"), "cannot be a module's name"),
        (MESSAGE.replace("centos 7:", "centos 8:"), "something else than the trailers"),
        (MESSAGE.replace("+5", "+6"), "something else than the trailers"),
        (MESSAGE.replace("Huai-Bytes: 4\n", ""), "Huai-Bytes is missing"),
        (MESSAGE + "Huai-Bytes: 4\n", "repeated or out of order"),
        (MESSAGE.replace("Huai-Bytes: 4", "Huai-Bytes: 04"), "Huai-Bytes is not a number"),
        (MESSAGE.replace("Huai-Bytes: 4", "Huai-Bytes: -4"), "Huai-Bytes is not a number"),
        (MESSAGE.replace("Huai-Bytes: 4", "Huai-Bytes: ٤"), "Huai-Bytes is not a number"),
        (MESSAGE.replace("Huai-Bytes: 4", f"Huai-Bytes: {1 << 63}"), "Huai-Bytes is not a number"),
        (MESSAGE + "x" * 65_536 + "\n", "too long"),
    ],
)
def test_a_message_that_breaks_a_rule_is_refused(message: str, reason: str) -> None:
    with pytest.raises(FormatError, match=f"commit: .*{reason}"):
        CommitInfo.decode(message)
