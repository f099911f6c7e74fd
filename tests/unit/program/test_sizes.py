"""Sizes of configuration files and options."""

import pytest

from huai_program.sizes import Size, SomeBytes


def test_a_size_is_bytes(subtests: pytest.Subtests) -> None:
    for value, size in [(5, 5), ("0", 0), ("4096", 4096), ("2k", 2048), ("4G", 4 << 30)]:
        with subtests.test(value=value):
            assert Size.parse(value) == size


def test_what_is_not_a_size(subtests: pytest.Subtests) -> None:
    for value in (-1, 1.5, True, None, "", "G", "-1", "1.5G", "4GB", "4 G", "٣", "9" * 19):
        with subtests.test(value=value):
            with pytest.raises(ValueError, match="not a size"):
                Size.parse(value)
    with pytest.raises(ValueError, match="not a size in bytes above 0"):
        SomeBytes.parse(0)
