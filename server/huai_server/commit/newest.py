"""The newest commit of a module, for actions that need one."""

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_server.state.paths import ModulePlaces
from huai_server.store.repository import Head, Repository


class NoCommitError(HuaiError):
    """A module without a commit."""

    exit_code = ExitCode.USAGE


def newest_commit(name: str, places: ModulePlaces) -> tuple[Head, Snapshot]:
    """Return the newest commit of a module; raises `NoCommitError` without one."""
    repository = Repository(places.repository) if places.repository.exists() else None
    head = repository.head() if repository else None
    if repository is None or head is None:
        raise no_commit(name)
    return head, repository.snapshot(head)[1]


def no_commit(name: str) -> NoCommitError:
    """Return the error for a module that needs a commit first."""
    return NoCommitError(
        f"{name}: the module has no commit yet", hint=f"run: huai-server commit {name}"
    )
