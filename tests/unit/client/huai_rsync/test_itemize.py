"""The lines for a plan: without terminal controls, and with links as rsync reports them."""

import pytest

from huai_client.diff.candidate import Candidate
from huai_client.huai_rsync.itemize import items
from huai_client.huai_rsync.log import ITEMIZED, Format
from huai_client.plan.operations import Plan, Stage
from huai_schema.entries import File, Symlink
from huai_schema.paths import RelPath


def itemized(stage: Stage, *candidates: Candidate) -> list[bytes | None]:
    """Return the lines of `-i` for one stage."""
    lines = items(Plan([], [], [], [stage], [], []), list(candidates))
    return [Format(ITEMIZED).line(item) for each in lines.values() for item in each]


def test_no_name_commands_a_terminal(subtests: pytest.Subtests) -> None:
    for name, printed in [
        (b"plain \xc3\xa4", b"plain \xc3\xa4"),
        (b"a\x1b[2Jb\n", b"a\\#033[2Jb\\#012"),
        (b"\xff", b"\\#377"),
        ("\x9b2J".encode(), b"\\#302\\#2332J"),
        ("gpj.\u202eexe".encode(), b"gpj.\\#342\\#200\\#256exe"),
        ("\u2066x\u2069".encode(), b"\\#342\\#201\\#246x\\#342\\#201\\#251"),
        ("\x85\u2028".encode(), b"\\#302\\#205\\#342\\#200\\#250"),
        (b"\\#033[2J", b"\\#134#033[2J"),
        (b"a\tb\\c", b"a\tb\\c"),
    ]:
        with subtests.test(name=name, printed=printed):
            file = File(RelPath(name), 1, 0)
            assert itemized(Stage("payload", fetches=[file])) == [b">f+++++++++ " + printed]
            link = Symlink(RelPath(b"l"), name, 0)
            assert itemized(Stage("payload", symlinks=[link])) == [b"cL+++++++++ l -> " + printed]


def test_a_new_name_of_an_old_file_is_told_as_that() -> None:
    """Cover a new name that sorts before the old one, and so is the first of its group."""
    first, second = RelPath(b"aaa"), RelPath(b"old")
    new, old = File(first, 5, 7), File(second, 5, 7)
    stage = Stage("payload", fetches=[new], links=[old._replace(link=first)])
    present = Candidate(second, old, old._replace(link=first), differing=frozenset({"link"}))
    assert itemized(stage, Candidate(first, None, new), present) == [b"hf+++++++++ aaa => old"]
    changed = present._replace(differing=frozenset({"link", "mtime"}))
    assert itemized(stage, Candidate(first, None, new), changed) == [
        b">f+++++++++ aaa",
        b"hf..t...... old => aaa",
    ]
