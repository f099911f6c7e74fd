"""The cost that signing adds to a commit, to a sync, and to the first one of each.

The listing hash is the part that could grow with the tree: after a change it is measured next to
the same hash from nothing.  The signature is compared with ssh-keygen's.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from huai_native._native import PrivateKey, verify_signature
from huai_program.listing_hashes import listing_hash
from huai_schema.codec.signing import NAMESPACE
from huai_server.store.repository import Repository
from tests.bench.figures import Figure
from tests.bench.stand import Stand

_TIMES = 20


def figures(stand: Stand) -> Iterator[Figure]:
    """Hash after a change and from nothing; sign, verify."""
    assert stand.modules
    path = stand.server.root / "modules" / "digests" / "repository.git"
    cache = stand.folder / "listing-hashes"
    first, later, small = [], [], []
    for _ in range(stand.rounds):
        cache.unlink(missing_ok=True)
        first.append(_hashed(path, cache))
        stand.churn()
        stand.commit("digests")
        later.append(_hashed(path, cache))
        stand.change(change_one)
        stand.commit("digests")
        small.append(_hashed(path, cache))
    size = cache.stat().st_size
    name = "listing hash, 0.5 % changed"
    yield Figure(name, median(later), "s", "from nothing", median(first))
    name = "listing hash, one entry changed"
    yield Figure(name, median(small), "s", "from nothing", median(first))
    yield Figure("hashes that are kept, an entry", size / stand.entries, "B")
    key, message = PrivateKey.generate(bytes(32), "bench"), bytes(1000)
    file = stand.folder / "key"
    file.write_text(key.encode())
    file.chmod(0o600)
    signature = key.sign(NAMESPACE, message).encode()
    words = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(file)]

    def peer() -> None:
        subprocess.run(words, input=message, capture_output=True, check=True)

    theirs = _microseconds(peer)
    yield Figure(
        "sign", _microseconds(lambda: key.sign(NAMESPACE, message)), "µs", "ssh-keygen", theirs
    )
    yield Figure(
        "verify", _microseconds(lambda: verify_signature(NAMESPACE, message, signature)), "µs"
    )


def change_one(tree: Path) -> None:
    """Change one file, another content each time."""
    (tree / "one-file").write_text(str(perf_counter()))


def _hashed(path: Path, cache: Path) -> float:
    """Seconds for the newest commit, in a repository that was just opened."""
    repository = Repository(path)
    head = repository.head()
    assert head is not None
    began = perf_counter()
    listing_hash(cache, bytes.fromhex(head.tree), repository)
    return perf_counter() - began


def _microseconds(call: Callable[[], object]) -> float:
    """Microseconds of a call."""
    began = perf_counter()
    for _ in range(_TIMES):
        call()
    return (perf_counter() - began) / _TIMES * 1e6
