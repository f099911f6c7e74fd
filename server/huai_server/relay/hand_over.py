"""Brings a relayed module to the commit that huai-client applied.

The branch moves only to an applied commit, so downstreams hear of it when the tree is published.
The commit stays what it is, to the byte: serial, identity and signatures are the upstream's.

Rule: it never goes back, and never to another history, unless the administrator says so; then its
downstreams refuse it until theirs do (FORMAT.md, "Commits").
"""

from pathlib import Path
from typing import NamedTuple

from huai_program.locking import locked
from huai_schema.codec.descriptor import Descriptor
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_server.config.tables import Module
from huai_server.relay.applied import Applied, Downstream
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.repository import Head, Repository, StoreError
from huai_server.store.take import Source, take

_TRIES = 3
"""huai-client may have gone on, and dropped the commit, while it was read."""


class WentBackError(HuaiError):
    """What was applied is older than what is served, or another module."""

    exit_code = ExitCode.ROLLED_BACK


class OtherNameError(HuaiError):
    """The commits are of a module with another name."""

    exit_code = ExitCode.CONFIG


class HandedOver(NamedTuple):
    """What was done."""

    head: Head
    """The commit that downstreams see now."""
    former: Head | None
    """The one before."""

    @property
    def new(self) -> bool:
        """Whether there was anything to do."""
        return self.former is None or self.former.commit != self.head.commit


def downstream_of(name: str, module: Module) -> Downstream:
    """The module of huai-client that the module `name` hands on."""
    return Downstream(Path(module.relay), module.relay_name or name)


def hand_over(
    name: str, module: Module, places: ModulePlaces, *, accept_rollback: bool, wait: float
) -> HandedOver:
    """Serve the commit that was applied; one that is served already costs two small reads."""
    downstream = downstream_of(name, module)
    places.folder.mkdir(parents=True, exist_ok=True)
    with storage_errors(places.repository), locked(places.lock, wait=wait):
        repository = Repository.create(places.repository)
        repository.remove_unfinished()
        former, applied = repository.head(), downstream.read()
        for left in reversed(range(_TRIES)):
            if former is not None and former.commit == applied.commit:
                return HandedOver(former, former)
            try:
                return HandedOver(
                    _take(name, repository, applied, former, back=accept_rollback), former
                )
            except (StoreError, FormatError):
                before, applied = applied, downstream.read()
                if applied == before or not left:
                    raise
        raise AssertionError(name)


def _take(
    name: str, repository: Repository, applied: Applied, former: Head | None, *, back: bool
) -> Head:
    source = Source(applied.repository)
    both = source.open(repository)
    head = both.head_of(applied.commit)
    descriptor, _ = both.snapshot(head)
    if descriptor.module != name:
        raise OtherNameError(
            f"{name}: the upstream calls this module {descriptor.module!r}",
            hint=f"huai-server add {descriptor.module}: downstreams refuse it under another name",
        )
    if former is not None and not back:
        _check_order(name, head, former, descriptor, both.snapshot(former)[0])
    return take(repository, source, applied.commit, former)


def _check_order(
    name: str, head: Head, former: Head, descriptor: Descriptor, served: Descriptor
) -> None:
    hint = f"if that is meant: huai-server relay {name} --accept-rollback"
    if served.identity and descriptor.identity != served.identity:
        raise WentBackError(
            f"{name}: the applied commit is of another module of this name than the one served",
            hint=hint,
        )
    new, old = head.info.serial, former.info.serial
    if new <= old:
        raise WentBackError(
            f"{name}: serial {new} is applied here, and serial {old} is served already", hint=hint
        )
