"""Moving a relayed module to the commit that huai-client applied.

The branch moves only to an applied commit, so downstreams see it after the tree was published.
The commit is copied byte for byte, with the serial, identity and signatures of the upstream.

Rule: the branch never goes back, nor to another history, unless the administrator accepts that;
then downstreams refuse it until their administrators accept it too (FORMAT.md, "Commits").
"""

from pathlib import Path
from typing import NamedTuple

from huai_program.listing_hashes import listing_hash
from huai_program.locking import locked
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.signing import split_commit
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_server.config.tables import Module
from huai_server.relay.applied import Applied, Downstream
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.copy_commit import combined_with, copy_commit
from huai_server.store.repository import Head, Repository, StoreError

_TRIES = 3
"""The attempts to read a commit, which huai-client may drop meanwhile."""


class WentBackError(HuaiError):
    """The applied commit is older than the served one, or of another module."""

    exit_code = ExitCode.ROLLED_BACK


class OtherNameError(HuaiError):
    """The commits are of a module with another name."""

    exit_code = ExitCode.CONFIG


class HandedOver(NamedTuple):
    """The result of relaying a module."""

    head: Head
    """The commit that downstreams see now."""
    former: Head | None

    @property
    def new(self) -> bool:
        """True if the branch was moved."""
        return self.former is None or self.former.commit != self.head.commit


def downstream_of(name: str, module: Module) -> Downstream:
    """Return the module of huai-client that the module `name` relays."""
    return Downstream(Path(module.relay), module.relay_name or name)


def hand_over(
    name: str, module: Module, places: ModulePlaces, *, accept_rollback: bool, wait: float
) -> HandedOver:
    """Copy the applied commit, and move the branch to it, unless it is the newest one already.

    Reads it again if the client replaces it meanwhile.  Raises `WentBackError` for an older commit
    or one of another module, unless `accept_rollback`; `OtherNameError`, the errors of
    `Downstream.read`, `StoreError` or `FormatError` for damaged metadata, and `LockedError` after
    `wait` seconds.
    """
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
                    _copy_applied(
                        name, places, repository, applied, former, accept_rollback=accept_rollback
                    ),
                    former,
                )
            except (StoreError, FormatError):
                previous, applied = applied, downstream.read()
                if applied == previous or not left:
                    raise
        raise AssertionError(name)


def _copy_applied(
    name: str,
    places: ModulePlaces,
    repository: Repository,
    applied: Applied,
    former: Head | None,
    *,
    accept_rollback: bool,
) -> Head:
    """Check the applied commit, copy it, and move the branch to it.

    Before that, computes the listing hashes of a signed one, for clients that mirror a part.
    Raises `OtherNameError` if the upstream's name for the module differs, and `WentBackError` for
    an older commit or one of another module, unless `accept_rollback`.
    """
    combined = combined_with(repository, applied.repository)
    head = combined.head_of(applied.commit)
    descriptor, _ = combined.snapshot(head)
    if descriptor.module != name:
        raise OtherNameError(
            f"{name}: the upstream calls this module {descriptor.module!r}",
            hint=f"use that name: huai-server add {descriptor.module}; downstreams refuse another",
        )
    if former is not None and not accept_rollback:
        _check_order(name, head, former, descriptor, combined.snapshot(former)[0])
    if split_commit(combined.content(head)[0]):
        listing_hash(places.listing_hashes, bytes.fromhex(head.tree), combined)
    return copy_commit(repository, applied.repository, applied.commit, former)


def _check_order(
    name: str, head: Head, former: Head, descriptor: Descriptor, served: Descriptor
) -> None:
    """Raise `WentBackError` unless `head` has the same identity and a greater serial."""
    hint = f"if this is intended: huai-server relay {name} --accept-rollback"
    if served.identity and descriptor.identity != served.identity:
        raise WentBackError(
            f"{name}: the applied commit is of another module with the same name",
            hint=hint,
        )
    new, old = head.info.serial, former.info.serial
    if new <= old:
        raise WentBackError(
            f"{name}: the applied serial {new} is not above the served serial {old}", hint=hint
        )
