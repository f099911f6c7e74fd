"""The tables of options and exit codes; huai-rsync(1) is made from them."""

import re
from pathlib import Path

from huai_client.huai_rsync.environment import ENDINGS, SETTINGS
from huai_client.huai_rsync.options import GROUPS, OPTIONS, SHORT
from huai_schema.errors import ExitCode


def test_each_option_stands_in_one_group() -> None:
    names = [name for group in GROUPS for name in f"{group.flags} {group.valued}".split()]
    assert len(names) == len(set(names)) == len(OPTIONS)
    assert set(SHORT.values()) <= set(names)


def test_every_code_of_huai_has_one_of_rsync() -> None:
    assert set(ENDINGS) == set(ExitCode)
    options = {0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 25, 30, 35}
    assert {ending.code for ending in ENDINGS.values()} <= options


def test_the_page_names_each_variable() -> None:
    page = (Path(__file__).parents[4] / "docs/HUAI-RSYNC.md").read_text(encoding="utf-8")
    assert {*re.findall(r"\bHUAI_\w+", page)} == {*SETTINGS}
