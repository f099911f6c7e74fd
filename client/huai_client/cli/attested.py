"""Attests after a sync what the tree holds, and says so once."""

import time

from huai_client.cli.console import Console
from huai_client.config.mirror import Mirror
from huai_client.state import state as states
from huai_client.sync.attest import attest
from huai_schema.errors import HuaiError


def say_what_is_held(mirror: Mirror, console: Console) -> None:
    """Attest it, unless it is held back or was said lately; no failure is one of the sync."""
    state = states.load(mirror.paths.state)
    if state.held or state.attempted or not state.applied:
        return
    try:
        done = attest(mirror, state, int(time.time()))
    except HuaiError as error:
        console.warning(f"nothing is attested: {error.message}; {error.hint}")
        return
    if done is None:
        return
    console.event(
        "attestation",
        serial=done.said.serial,
        commit=done.said.commit,
        time=done.said.time,
        sent=done.sent,
        failure=done.failure or None,
    )
    if done.failure and done.is_news:
        console.warning(f"the attestation was not taken: {done.failure}")
