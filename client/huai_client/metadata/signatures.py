"""Verifies that a commit is the upstream's, before anything else of it is trusted.

FORMAT.md, "What a reader of signed commits checks".  Rules: after a signed commit no unsigned one
is accepted, keys never return to an earlier version, and nothing is recorded (`keep`) of a commit
that did not pass both `judge` and `prove`.
"""

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from huai_client.config.mirror import Mirror
from huai_client.metadata.failover import UntrustedError
from huai_client.metadata.signers import configured_keys
from huai_client.run.ages import why_expired
from huai_client.state.state import StateError, read_file, replace_durably
from huai_program.humanize import moment
from huai_program.listing_hashes import prove_listing
from huai_schema.codec.commits import decode_commit
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.keys import KeyChain, Keys, read_keys
from huai_schema.codec.signing import Promise, signers_of, split_commit
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import ObjectReader
from huai_schema.limits import CLOCK_SKEW


class TrustedKeys(NamedTuple):
    """The accepted keys, and the keys that they were accepted by."""

    keys: Keys
    anchors: tuple[str, ...] = ()
    """The keys of client.toml from which they followed; empty for those of the first commit."""


class _Record(msgspec.Struct, frozen=True):
    version: Literal[1]
    keys_version: int
    keys: tuple[str, ...]
    anchors: tuple[str, ...]
    threshold: Annotated[int, msgspec.Meta(ge=1)] = 1


def load_trusted(path: Path) -> TrustedKeys | None:
    """Return the keys, or None if none are accepted yet; raises `StateError` for a damaged file."""
    data = read_file(path)
    if data is None:
        return None
    try:
        record = msgspec.json.decode(data, type=_Record)
    except (ValueError, RecursionError) as error:
        # Without it a stranger's key might be accepted as the first one.
        raise StateError(
            f"{path}: not a file of trusted keys ({error})",
            hint="name the upstream's keys in client.toml, then move the file away",
        ) from error
    return TrustedKeys(Keys(record.keys_version, record.keys, record.threshold), record.anchors)


def save_trusted(path: Path, trusted: TrustedKeys) -> None:
    """Replace the keys in one durable step; raises `StateError` if they cannot be written."""
    number, keys, threshold = trusted.keys
    replace_durably(path, msgspec.json.encode(_Record(1, number, keys, trusted.anchors, threshold)))


_NEW_KEYS = (
    "if the upstream has new keys, and you received them by another way than this: "
    "keys = [...] in client.toml"
)


class ExpiredError(HuaiError):
    """A commit whose signature has expired, or that is dated in the future."""

    exit_code = ExitCode.STALE


class _Verdict(NamedTuple):
    promise: Promise
    root: bytes
    """The id of its commit tree."""
    time: int
    """The time of the commit, seconds since the epoch."""
    trusted: TrustedKeys
    """The trusted keys from this commit on."""


class Signatures:
    """Judges the commits that one module is offered in one run."""

    def __init__(self, mirror: Mirror) -> None:
        """Read the trusted keys, of client.toml and of former commits, unless verification is off.

        Raises `ConfigError` or `StateError` if they cannot be read or are malformed.
        """
        self._path = mirror.paths.trusted
        self._config = mirror.config
        self._floor = mirror.config.threshold
        self._off = mirror.config.verify == "off"
        self._anchors = () if self._off else configured_keys(mirror.config)
        former = None if self._off else load_trusted(self._path)
        self._former = former
        # Other keys in client.toml take precedence: the administrator wrote them.
        is_other = former and self._anchors and sorted(former.anchors) != sorted(self._anchors)
        self._accepted = None if is_other else former
        self._verdicts: dict[str, _Verdict] = {}

    @property
    def basis(self) -> object:
        """The facts on which `judge` depends."""
        return self._anchors, self._former

    def judge(self, commit: str, data: bytes, objects: ObjectReader) -> None:
        """Verify a commit's signatures, unless verification is off, and keep the result here.

        `commit` is its id, `data` its content, `objects` reads its tree and keys.  An unsigned one
        passes if no keys are known.  Raises `UntrustedError` for a commit that is not trusted,
        `FormatError` for `data` that are not a commit.
        """
        if self._off:
            return
        head = decode_commit(data)
        try:
            signed = split_commit(data)
            if signed is None:
                self._refuse_unsigned()
                return
            signers = signers_of(signed)
            chain = read_keys(head.tree, objects)
            promise = Promise.decode(head.message.decode("utf-8", "replace"))
        except FormatError as error:
            raise UntrustedError(
                f"the signature of the upstream's commit is not valid: {error.message}",
                hint="it was changed on the way, or the upstream is damaged",
            ) from None
        trusted = self._trusted(signers[0], chain)
        self._require(signers, trusted.keys)
        self._verdicts[commit] = _Verdict(promise, head.tree, head.time, trusted)

    def check(self, commit: str, descriptor: Descriptor) -> None:
        """Compare the promise of a signed commit with its descriptor and the clock.

        Raises `UntrustedError` if it is signed for another module, and `ExpiredError` if the
        promise is over (with `verify = "require"`) or the signature is dated in the future.
        """
        verdict = self._verdicts.get(commit)
        if verdict is None:
            return
        if verdict.promise.identity != descriptor.identity:
            raise UntrustedError(
                "the upstream's commit is signed for another module",
                hint="two modules of the upstream may be mixed up",
            )
        now = time.time()
        if verdict.time > now + CLOCK_SKEW:
            raise ExpiredError(
                f"the upstream's commit is dated {moment(verdict.time)}, and here it is "
                f"{moment(int(now))}",
                hint="set the clock of this machine, or notify the upstream's administrator",
            )
        over = why_expired(verdict.promise.valid_until, now)
        if over and self._config.verify == "require":
            raise ExpiredError(over, hint="ask the upstream's administrator")

    def prove(self, commit: str, hashes: Path, objects: ObjectReader, stated: bytes) -> None:
        """Raise `UntrustedError` if a listing of a signed commit has not the signed hash.

        `hashes` is a file with the hashes of objects, which is extended.  `stated` has records of
        trees that `objects` lacks.
        """
        verdict = self._verdicts.get(commit)
        if verdict is None:
            return
        try:
            prove_listing(hashes, verdict.root, objects, verdict.promise.listing, stated)
        except FormatError as error:
            raise UntrustedError(
                f"the signature of the upstream's commit is not valid: {error.message}",
                hint="an object was replaced by another one of the same id: notify the upstream",
            ) from None

    def keep(self, commit: str) -> None:
        """Record the keys of `commit`, which is accepted, if they changed; raises `StateError`."""
        verdict = self._verdicts.get(commit)
        if verdict is not None and verdict.trusted != self._former:
            save_trusted(self._path, verdict.trusted)
            self._former = self._accepted = verdict.trusted

    def valid_until(self, commit: str) -> int:
        """Return the time until which a commit is valid, seconds since the epoch; 0 if unsigned."""
        verdict = self._verdicts.get(commit)
        return verdict.promise.valid_until if verdict else 0

    def news(self, commit: str) -> str:
        """Return a message about the new keys that a commit brings; empty if there are none."""
        verdict = self._verdicts.get(commit)
        if verdict is None or verdict.trusted == self._former:
            return ""
        keys = ", ".join(f'"{key}"' for key in verdict.trusted.keys.keys)
        if self._former is None and not self._anchors:
            return f"from now on only signed commits are accepted; first keys: keys = [{keys}]"
        return f"the upstream's keys, version {verdict.trusted.keys.version}: [{keys}]"

    def _refuse_unsigned(self) -> None:
        """Raise `UntrustedError` if keys are configured or earlier commits were signed."""
        if self._anchors or self._accepted:
            reason = "and keys are configured" if self._anchors else "and earlier ones were"
            raise UntrustedError(
                f"the upstream's commit is not signed, {reason}",
                hint="the signature was removed on the way, or the upstream ended signing: "
                'if that is right, verify = "off" in client.toml',
            )

    def _require(self, signers: Sequence[str], keys: Keys) -> None:
        """Raise `UntrustedError` unless enough of `keys` signed, one of them git's signature."""
        if signers[0] not in keys.keys:
            raise UntrustedError(
                f"the upstream's commit is signed by {signers[0]}, which is not trusted",
                hint=_NEW_KEYS,
            )
        if not _agree(keys, signers, self._floor):
            raise UntrustedError(
                f"the upstream's commit is signed by {len(set(signers) & set(keys.keys))} of the "
                f"trusted keys, and {max(keys.threshold, self._floor)} must sign it",
                hint=_NEW_KEYS,
            )

    def _trusted(self, key: str, chain: KeyChain | None) -> TrustedKeys:
        """Return the keys to trust after a commit by `key` with `chain`; raises as `follow`."""
        if self._accepted is not None:
            return self._accepted._replace(keys=follow(self._accepted.keys, chain, self._floor))
        if self._anchors:
            configured = Keys(0, self._anchors, self._floor)
            return TrustedKeys(follow(configured, chain, self._floor), self._anchors)
        return TrustedKeys(chain.newest if chain else Keys(0, (key,)))


def follow(accepted: Keys, chain: KeyChain | None, floor: int = 1) -> Keys:
    """Return the newest keys of `chain`; raises `UntrustedError` unless they follow `accepted`.

    Returns `accepted` without a chain, or if it has no version and signed none of the chain.
    Each step needs as many signatures as the previous version requires, and at least `floor`.
    """
    if chain is None:
        return accepted
    newest, begin = chain.newest, accepted
    if accepted.version == 0:  # keys without a version follow the first that they signed
        vouched = [each.keys for each in chain.versions if _agree(accepted, each.signers, floor)]
        if not vouched:
            return accepted
        begin = vouched[0]
    if chain.follows(begin, floor):
        return newest
    reason = f"version {newest.version}, which does not follow from {accepted.version}"
    if newest.version < accepted.version:
        reason = f"version {newest.version}, and {accepted.version} was accepted before"
    raise UntrustedError(f"the upstream's keys are of {reason}", hint=_NEW_KEYS)


def _agree(keys: Keys, signers: Collection[str], floor: int) -> bool:
    """Return True if enough of the keys signed: their threshold, and at least `floor`."""
    return keys._replace(threshold=max(keys.threshold, floor)).agrees(signers)
