"""The engine's globs against the C library's fnmatch(3)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_server.scan.exclude import parse_exclude
from huai_server.scan.types import ScanOptions
from tests.support import scan_exclude
from tests.support.scanners import leaves, scan_native

NAMES = [
    *(
        "a",
        "b",
        "ab",
        "ba",
        "aa",
        "aab",
        "abb",
        "]",
        "-",
        "[",
        "!",
        "^",
        "\\",
        "*",
        "?",
        "[a",
        "[a]",
    ),
    *("a-b", "a]", "]a", "a!", "-a", "a\\", "é", "Z9", "a b", "[:alpha:]", "aXb", "b-]", "[!"),
]
PARTS = [
    *("*", "?", "a", "b", "[", "]", "-", "!", "^", "\\", "[a-b]", "[!a]", "[^a]", "[]]", "[!]]"),
    *("[a", "[[:alpha:]]", "[![:upper:]]", "[a-]", "[-a]", "[\\]]", "[[=b=]]", "[[.a.]-b]", "[:"),
]  # fmt: skip

globs = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("globs")
    for name in NAMES:
        (made / name).touch()
    return made


@given(glob=globs, anchored=st.booleans())
def test_what_a_glob_matches(folder: Path, glob: str, anchored: bool) -> None:
    text = glob.encode()
    pattern = b"/" + text if anchored else text
    found = leaves(scan_native(folder, ScanOptions(owners=False, exclude=(pattern,))))
    parsed = (parse_exclude(pattern),)
    with scan_exclude.plain_locale():
        wanted = {
            name.encode()
            for name in NAMES
            if not scan_exclude.left_out(parsed, name.encode(), name.encode(), directory=False)
        }
    assert set(found) == wanted
