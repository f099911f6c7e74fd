"""Notifies systemd of the state of a service (sd_notify(3)).

Without a service manager it does nothing.
"""

import os
import socket
from contextlib import suppress


def notify(*lines: str) -> None:
    """Send assignments such as READY=1 or STATUS=text to systemd, if it runs this program."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        suppress(OSError),  # a service works without a service manager, too
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
    ):
        channel.connect(address)
        channel.send("\n".join(lines).encode())


def watchdog_seconds() -> float | None:
    """Return the interval of WATCHDOG=1, half of the limit, or None without a watchdog."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    process = os.environ.get("WATCHDOG_PID", "")
    if not allowed.isdecimal() or (process and process != str(os.getpid())):
        return None
    return max(0.1, int(allowed) / 2_000_000)
