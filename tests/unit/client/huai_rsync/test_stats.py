"""rsync's numbers and closing lines; the expected ones were copied from rsync 3.5.0."""

import pytest

from huai_client.cli.numbers import format_number, kibibytes
from huai_client.huai_rsync.request import OutputStyle
from huai_client.huai_rsync.stats import Kinds, Stats


def test_the_limits_of_bandwidth(subtests: pytest.Subtests) -> None:
    for text, value in [
        ("0", 0),
        ("100", 100),
        ("1.5m", 1536),
        ("1MB", 977),
        ("2g", 2 << 20),
        ("1024B", 1),
        ("fast", None),
        ("100B", None),
        ("-1", None),
    ]:
        with subtests.test(text=text, value=value):
            assert kibibytes(text) == value


def test_numbers_as_rsync_shows_them(subtests: pytest.Subtests) -> None:
    for number, human, text in [
        (1234567, 0, "1234567"),
        (1234567, 1, "1,234,567"),
        (1234567, 2, "1.23M"),
        (1234567, 3, "1.18M"),
        (999, 2, "999"),
        (1024, 3, "1.00K"),
        (5 * 10**18, 2, "5000.00P"),
    ]:
        with subtests.test(number=number, human=human, text=text):
            assert format_number(number, human) == text


def test_closing_lines() -> None:
    stats = Stats(total=1_000_000, received=2000)
    lines = list(stats.lines(OutputStyle(totals=True), seconds=0.5, dry_run=False))
    assert lines == [
        "",
        "sent 0 bytes  received 2,000 bytes  2,000.00 bytes/sec",
        "total size is 1,000,000  speedup is 500.00",
    ]


def test_statistics() -> None:
    stats = Stats(
        total=19,
        entries=Kinds(2, 2, 4),
        created=Kinds(0, 0, 3),
        deleted=Kinds(2, 1),
        transferred=1,
        transferred_bytes=2,
        received=191,
    )
    lines = "\n".join(stats.lines(OutputStyle(stats=True), seconds=0, dry_run=True))
    assert lines.startswith(
        "\nNumber of files: 8 (reg: 2, dir: 2, link: 4)\n"
        "Number of created files: 3 (link: 3)\n"
        "Number of deleted files: 3 (reg: 2, dir: 1)\n"
        "Number of regular files transferred: 1\n"
        "Total file size: 19 bytes\n"
        "Total transferred file size: 2 bytes\n"
        "Literal data: 2 bytes\n"
        "Matched data: 0 bytes\n"
    )
    assert lines.endswith("total size is 19  speedup is 0.10 (DRY RUN)")


def test_silence() -> None:
    assert not list(Stats(total=1).lines(OutputStyle(), seconds=0, dry_run=False))
    assert not list(Stats().lines(OutputStyle(stats=True), seconds=0, dry_run=False))
    assert not list(Stats().log_lines(OutputStyle(stats=True), seconds=0, dry_run=False))


def test_the_log_has_the_total_size() -> None:
    """The log has the line that ftpsync's sed reads, with any output on the screen."""
    lines = Stats(total=9, received=2000)
    short = list(lines.log_lines(OutputStyle(quiet=True), seconds=0, dry_run=False))
    assert short == ["sent 0 bytes  received 2000 bytes  total size 9"]
    complete = list(lines.log_lines(OutputStyle(stats=True, human=0), seconds=0, dry_run=False))
    assert complete[-2:] == [
        "sent 0 bytes  received 2000 bytes  4000.00 bytes/sec",
        "total size is 9  speedup is 0.00",
    ]
    assert "" not in complete
