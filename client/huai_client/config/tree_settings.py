"""The settings of a module that determine its tree, and the detection of their changes.

The cost of a change of modes or filter grows with the difference between the two selections.  For
any other key only the tree itself shows which paths it concerns, so the whole tree is compared.

Imports very little, because each poll compares records.
"""

import json
from collections.abc import Callable, Mapping

from huai_client.config.load import Module
from huai_client.config.settings_record import LINE, TreeSettings

RECORDED: Mapping[str, Callable[[Module], object]] = {
    "attest": lambda module: module.attest.on,  # huai's own file is protected
    "dest": lambda module: module.dest,
    "duplicates": lambda module: module.duplicates,
    "owners": lambda module: module.owners,
    "protect": lambda module: list(module.protect),
    "safe_links": lambda module: module.safe_links,
    "volatile": lambda module: module.volatile and list(module.volatile),
}
"""The keys that determine the tree, besides `filter` and `modes`, with their recorded values."""


def record_settings(module: Module, rules_key: str) -> str:
    """Return the record for `module`; `rules_key` is the key of its filter and modes."""
    return f"{LINE}{_keys(module)}\n{rules_key}"


def changed_keys(module: Module, *records: str) -> list[str]:
    """Return the keys in `RECORDED` whose values differ from any of `records`, sorted.

    Returns all of them if a record has no such line, or a malformed one.  Raises
    `UnknownModesError` for a record with a policy for modes of another version.
    """
    now = _keys(module)
    changed: set[str] = set()
    for keys in {TreeSettings.parse(record).keys for record in records} - {now}:
        before, current = _values(keys), json.loads(now)
        changed.update(key for key in RECORDED if before.get(key, ...) != current[key])
    return sorted(changed)


def _keys(module: Module) -> str:
    return json.dumps({key: value(module) for key, value in RECORDED.items()}, sort_keys=True)


def _values(keys: str | None) -> dict[str, object]:
    """Decode a JSON object; an empty one if it is malformed."""
    try:
        values = json.loads(keys or "{}")
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
