"""A check that this machine can confine the processes of connections (FALLBACK.md, "Security").

The preload library confines them and does without what it lacks.  This tries the same before rsync
starts, so that a lack is said, or refused.
"""

import ctypes
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.tables import Fallback


class ConfinementError(HuaiError):
    """Connections cannot be confined, and the configuration requires it."""

    exit_code = ExitCode.REQUIREMENT


def check_confinement(settings: Fallback, library: Path) -> str | None:
    """Return why connections cannot be confined; None if they can.

    Raises `ConfinementError` instead if `settings` require it.
    """
    reason = _lack(settings, library)
    if reason is not None and settings.confine == "require":
        raise ConfinementError(
            f"connections cannot be confined, and fallback.confine requires it: {reason}",
            hint="remove the reason, or remove the key confine from [fallback] in server.toml",
        )
    return reason


def _lack(settings: Fallback, library: Path) -> str | None:
    if not settings.use_chroot:
        return "fallback.use_chroot is false"
    if ctypes.CDLL(str(library)).huai_can_confine() != 1:
        return (
            "no Landlock (Linux 5.13, and a seccomp filter that permits landlock_*), "
            "and no CAP_SYS_ADMIN for detached mounts"
        )
    return None
