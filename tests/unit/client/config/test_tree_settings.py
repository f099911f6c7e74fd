"""The record of the settings that determine a tree: every key of client.toml is classified."""

import json
from typing import Any

import msgspec
import pytest

from huai_client.config.load import Attest, Module
from huai_client.config.modes import Modes
from huai_client.config.settings_record import TreeSettings
from huai_client.config.tree_settings import RECORDED, changed_keys, record_settings

BY_SELECTION = {"filter", "modes"}
"""The keys in `Rules.key`, the rest of a record."""
NOT_OF_THE_TREE = {
    # where it comes from, and what is believed
    *("url", "upstream_name", "content_urls", "mirrors", "keys", "signers", "threshold", "verify"),
    *("source", "list_every", "list_command", "list_url", "probe"),
    *("undigested", "max_age", "max_entries", "max_bytes", "allow_networks", "tls", "proofs"),
    # how it is transferred
    *("streams", "batch_files", "batch_size", "connections", "queue_time", "bwlimit", "timeout"),
    *("rsync_options", "http_headers", "in_place", "reuse_from", "reuse_check"),
    # when it is published and deleted, and what is kept in addition
    *("publish", "max_delete", "max_delete_in", "delete_after", "trash", "keep_commits", "hooks"),
}
"""Keys that change no entry of a tree in step."""
OTHERS: dict[str, Any] = {
    "attest": Attest(key="/etc/huai/attest", urls=("http://mirror.example",)),
    "dest": "/srv/other",
    "duplicates": "hardlink",
    "owners": False,
    "protect": ("/x",),
    "safe_links": True,
    "volatile": (),
}
MODULE = Module(url="http://mirror.example", dest="/srv/tools")
RULES = "modes safe\n- *.iso\n"


def test_every_key_of_a_module_is_classified() -> None:
    classes = [set(RECORDED), BY_SELECTION, NOT_OF_THE_TREE]
    assert set().union(*classes) == set(Module.__struct_fields__)
    assert sum(map(len, classes)) == len(Module.__struct_fields__)


def test_another_value_of_a_recorded_key_is_a_change_both_ways(subtests: pytest.Subtests) -> None:
    for key in RECORDED:
        with subtests.test(key=key):
            other = msgspec.structs.replace(MODULE, **{key: OTHERS[key]})
            records = [record_settings(module, RULES) for module in (MODULE, other)]
            assert records[0] != records[1]
            assert changed_keys(other, records[0]) == changed_keys(MODULE, records[1]) == [key]
            assert changed_keys(MODULE, records[0]) == []
            assert changed_keys(MODULE, *records) == [key]


def test_a_record_says_modes_and_rules_too() -> None:
    parsed = TreeSettings.parse(record_settings(MODULE, RULES))
    assert json.loads(parsed.keys or "") == {key: value(MODULE) for key, value in RECORDED.items()}
    assert (parsed.modes, parsed.rules) == (Modes.SAFE, "- *.iso\n")


def test_a_record_without_keys_is_a_change_of_all(subtests: pytest.Subtests) -> None:
    for keys in ["", "tree\n", "tree \n", "tree []\n", "tree {\n", "tree 1\n"]:
        with subtests.test(keys=keys):
            assert changed_keys(MODULE, keys + RULES) == sorted(RECORDED)
