"""The trusted keys of a module: the version accepted last, never an earlier one.

Written durably, before the state that names a commit signed by them.
"""

import json
from pathlib import Path
from typing import NamedTuple

from huai_client.state.state import StateError, replace_durably
from huai_schema.codec.keys import Keys

_VERSION = 1


class TrustedKeys(NamedTuple):
    """The accepted keys, and the keys that they were accepted by."""

    keys: Keys
    anchors: tuple[str, ...] = ()
    """The keys of client.toml from which they followed; empty for those of the first commit."""


def load_trusted(path: Path) -> TrustedKeys | None:
    """Return the keys, or None if no keys are accepted yet."""
    try:
        values = json.loads(path.read_bytes())
        if values["version"] != _VERSION:
            raise ValueError("another version")
        number, keys, anchors = values["keys_version"], values["keys"], values["anchors"]
        texts, threshold = (*keys, *anchors), values.get("threshold", 1)
        numbers = {type(number), type(threshold)}
        if numbers != {int} or threshold < 1 or not all(isinstance(text, str) for text in texts):
            raise ValueError("not a version and keys")
        return TrustedKeys(Keys(number, tuple(keys), threshold), tuple(anchors))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(
            f"{path}: {error.strerror}", hint="run as the user that the state belongs to"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # Without it a stranger's key might be accepted as the first one.
        raise StateError(
            f"{path}: not a file of trusted keys ({error})",
            hint="name the upstream's keys in client.toml, then move the file away",
        ) from error


def save_trusted(path: Path, trusted: TrustedKeys) -> None:
    """Replace the keys in one durable step."""
    values = {
        "version": _VERSION,
        "keys_version": trusted.keys.version,
        "keys": trusted.keys.keys,
        "threshold": trusted.keys.threshold,
        "anchors": trusted.anchors,
    }
    replace_durably(path, json.dumps(values, indent=1).encode())
