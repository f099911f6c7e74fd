"""Tells systemd that a service is ready and what it does (sd_notify(3)).

Without a service manager nothing is told.
"""

import os
import socket
from contextlib import suppress


def notify(*lines: str) -> None:
    """Send assignments such as READY=1 or STATUS=text."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        suppress(OSError),  # a service works on if nobody listens
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
    ):
        channel.connect(address)
        channel.send("\n".join(lines).encode())


def watchdog_seconds() -> float | None:
    """How often to send WATCHDOG=1: half of what the service manager allows; None: never."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    process = os.environ.get("WATCHDOG_PID", "")
    if not allowed.isdecimal() or (process and process != str(os.getpid())):
        return None
    return max(0.1, int(allowed) / 2_000_000)
