"""Names of other issues of one file."""

import pytest

from huai_client.transfer.large.older import namesakes

NAMES = (
    *(b"a-1.2.iso", b"a-1.10.iso", b"a-1.9.iso", b"a-2.0.iso", b"a-1.9.iso.sig", b"a-x.iso"),
    *(b"b-1.9.iso", b"a\\x0a1", b"a\\x0a2", b"a-1.9", b"no-number", b"a-1" * 30 + b"9" * 5000),
)
LEAVES = b"".join(name + b"\t5\t0\n" for name in NAMES) + b"a-1.8.iso\t>a-1.9.iso\t0\n"


def test_the_next_older_ones_come_first(subtests: pytest.Subtests) -> None:
    for name, expected in [
        (b"a-1.11.iso", [b"a-1.10.iso", b"a-1.9.iso", b"a-1.8.iso"]),
        (b"a-1.9.iso", [b"a-1.8.iso", b"a-1.2.iso", b"a-1.10.iso"]),
        (b"a-0.1.iso", [b"a-1.2.iso", b"a-1.8.iso", b"a-1.9.iso"]),
        (b"a-1.12.iso.sig", [b"a-1.9.iso.sig"]),
        (b"a\n3", [b"a\n2", b"a\n1"]),
        (b"no-number", []),
        (b"c-1.9.iso", []),
        (b"9" * 5000, []),
    ]:
        with subtests.test(name=name, found=expected):
            assert namesakes(name, LEAVES) == expected
