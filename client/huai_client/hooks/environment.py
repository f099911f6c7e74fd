"""The variables that a hook gets: a table (docs/CLIENT-HOOKS.md).

Pure.  Rule to keep: a variable is never removed and never changes its meaning; new ones may come.
"""

from huai_client.config.mirror import Mirror
from huai_client.hooks.changes import Changes, Kind
from huai_client.state.run_record import RunRecord
from huai_program.quoting import quoted

_REASON = 4096


def before_variables(hook: str, mirror: Mirror, began: RunRecord) -> dict[str, str]:
    """Those of every hook; `began` is the record of the run when it began."""
    return {
        "HUAI_HOOK": hook,
        "HUAI_MODULE": mirror.name,
        "HUAI_DEST": mirror.config.dest,
        "HUAI_CLIENT_ROOT": str(mirror.root),
        "HUAI_COMMIT_BEFORE": began.before,
        "HUAI_SERIAL_BEFORE": str(began.serial),
    }


def ended_variables(record: RunRecord, changes: Changes) -> dict[str, str]:
    """Those of hooks that are run after the sync, besides."""
    return {
        "HUAI_EXIT_CODE": str(record.code),
        "HUAI_REASON": quoted(record.reason, _REASON),
        "HUAI_COMMIT": record.commit,
        "HUAI_SERIAL": str(record.serial),
        "HUAI_RECEIVED": str(record.received),
        "HUAI_TOTAL_BYTES": str(record.total_bytes),
        "HUAI_CHANGED": str(int(changes.any)),
        **{f"HUAI_{kind.upper()}": str(changes.counts[kind]) for kind in Kind},
    }


def list_variables(changes: Changes) -> dict[str, str]:
    """Those of `on_change`, besides."""
    lists = {f"HUAI_{kind.upper()}_LIST": str(changes.path(kind)) for kind in Kind}
    return {**lists, "HUAI_INTERRUPTED": str(int(changes.interrupted))}
