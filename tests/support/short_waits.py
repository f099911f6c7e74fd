"""The pauses of the product, shortened: between two attempts, and between two looks.

They are constants of their modules, which no user configures.  Most of them are what a test would
have to sleep through before what it is about.  `shorten` replaces them for each test of
`tests/integration` and in each copy of a prepared program; a program that a test starts by its
interpreter has those of its users.

Rule to keep: a constant that bounds how long something may take stays, for a busy machine needs it.
"""

import importlib
from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

_SECONDS: dict[str, dict[str, Any]] = {
    "huai_client.cli.watch.listener": {"_FIRST_PAUSE": 0.1},
    "huai_client.cli.watch.schedule": {"FIRST_PAUSE": 1.0},
    "huai_client.metadata.failover": {"_BACKOFF": 0.02},
    "huai_client.sync.follow": {"_POLL_SECONDS": 0.05},
    "huai_client.transfer.large.range_source": {"_BACKOFF": 0.25},
    "huai_client.transfer.options": {"_BACKOFF": 0.1},
    "huai_client.verify.expected": {"_POLL_SECONDS": 0.02},
    "huai_program.locking": {"_POLL_SECONDS": 0.02},
    "huai_server.http.asgi.tls": {"_LOOK_SECONDS": 0.1},
    "huai_server.http.events.news": {"_LOOK_SECONDS": 0.1},
    "huai_server.http.webhooks.keeper": {"_LONGEST_PAUSE": 0.1, "_LOOK_SECONDS": 0.1},
    "huai_server.relay.follow": {"_FIRST_PAUSE": 0.1, "_LOOK_SECONDS": 0.1},
    "huai_server.watch.watch": {"_LOOK": 0.1},
}
"""By module and constant; of a `Backoff` the first pause."""


def shorten(*packages: str, replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Replace the constants of these packages: each by `replace`."""
    for name, constants in _SECONDS.items():
        if name.startswith(packages):
            module = importlib.import_module(name)
            for constant, seconds in constants.items():
                value = getattr(module, constant)
                is_backoff = isinstance(value, Struct)
                shorter = structs.replace(value, first=seconds) if is_backoff else seconds
                replace(module, constant, shorter)
