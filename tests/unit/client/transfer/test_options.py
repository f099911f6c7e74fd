from typing import Any

import pytest

from huai_client.transfer.options import TransferOptions, TransferOptionsError


@pytest.mark.parametrize(
    "values",
    [
        {"streams": 0},
        {"batch_files": 0},
        {"batch_bytes": 0},
        {"timeout": 0},
        {"contimeout": 0},
        {"bwlimit": -1},
        {"retries": -1},
        {"backoff": -0.1},
        {"patience": -1.0},
        {"connections": -1},
        {"extra": ("--delete",)},
        {"extra": ("-v", "--del")},
        {"extra": ("--delete-missing-args",)},
        {"extra": ("--remove-source-files",)},
        {"extra": ("--inplace",)},
        {"extra": ("a\0b",)},
    ],
)
def test_what_makes_no_sense_or_deletes_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(TransferOptionsError):
        TransferOptions(**values)


def test_the_defaults_are_modest() -> None:
    options = TransferOptions()
    assert (options.streams, options.batch_files, options.batch_bytes) == (2, 1_000_000, 1 << 30)
