"""The environment variables of `huai-rsync`: a table.

Data only.  rsync's command line cannot have options of huai, so these are variables.
"""

from typing import Final

EXPLAIN: Final = "HUAI_RSYNC_EXPLAIN"
FALLBACK: Final = "HUAI_RSYNC_FALLBACK"
DISCOVER: Final = "HUAI_RSYNC_DISCOVER"
UPSTREAM: Final = "HUAI_RSYNC_UPSTREAM"
COMPARE: Final = "HUAI_RSYNC_COMPARE"
ROOT: Final = "HUAI_CLIENT_ROOT"

COMPARE_USUAL: Final = "1d"

SETTINGS: Final = {
    EXPLAIN: "`yes`: say for every call why the real rsync runs; `no`: for none",
    FALLBACK: "`no`: an error where the metadata cannot be had, instead of the real rsync",
    DISCOVER: "`no`: use the modules of client.toml only, and ask no source for its metadata",
    UPSTREAM: "the metadata's base address, believed without asking the source for it; its module "
    "has the name of the source's last folder",
    COMPARE: "how often the whole tree is compared and repaired: `12h`, or `0` for each call; "
    f"`{COMPARE_USUAL}` unless set",
    ROOT: "the folder with client.toml and all state, as for `huai-client --root`",
}
"""The purpose of each variable, in Markdown, for huai-rsync(1)."""
