"""Text from outside is quoted in one line."""

import pytest

from huai_program.quoting import quoted


def test_what_is_shown(subtests: pytest.Subtests) -> None:
    for text, expected in [
        ("", ""),
        ("plain, ü and 中", "plain, ü and 中"),
        ("a\nFAKE", "a\\nFAKE"),
        ("a\tb\r\x1b[2J\x00", "a\\tb\\r\\x1b[2J\\x00"),
        ("\u2028\u202e\udcff", "\\u2028\\u202e\\udcff"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 297 + "..."),
        ("\n" * 10_000, "\\n" * 148 + "\\..."),
    ]:
        with subtests.test(text=text, shown=expected):
            assert quoted(text) == expected
            assert quoted(text).isprintable()
            assert len(quoted(text)) <= 300
