"""Content from a web server, compared with rsync from the daemon of the same tree.

10,000 real files of at most 64 KiB, and one of 256 MiB.  The web server is a real nginx under TLS;
huai's own transport by rsync is measured too, as all three verify and publish alike.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.spending import cpu, spend, take_turns, wall
from tests.bench.stand import Stand

_FILES = 10_000
_LARGE = 256 << 20


def figures(stand: Stand) -> Iterator[Figure]:
    """The figures of each tree: HTTP/2, HTTP/1.1 and our rsync, compared with a plain one."""
    yield from _of_tree(stand, "web-small", f"{_FILES:,} small files", trees.copy_real, _FILES)
    yield from _of_tree(stand, "web-large", "a file of 256 MiB", make_large, _LARGE)


def make_large(root: Path, size: int) -> None:
    """One file of random bytes."""
    root.mkdir()
    (root / "large").write_bytes(os.urandom(size))


def _of_tree(
    stand: Stand, module: str, title: str, maker: object, *arguments: float
) -> Iterator[Figure]:
    assert callable(maker)
    client, daemon = stand.first_client(module, maker, *arguments)
    os.environ["SSL_CERT_FILE"] = str(stand.certificate[0])
    tree = stand.folder / module
    names = f"{stand.folder / module}.names"
    with open(names, "wb") as listing:
        for folder, _, leaves in os.walk(os.fsencode(tree)):
            place = os.path.relpath(folder, os.fsencode(tree))
            listing.writelines(os.path.join(place, name) + b"\0" for name in leaves)
    urls = {
        "HTTP/2": stand.web_server(tree, http2=True),
        "HTTP/1.1": stand.web_server(tree, http2=False),
        "huai by rsync": daemon,
    }
    numbers = iter(range(10**6))

    def fresh() -> str:
        dest = stand.folder / f"{module}-{next(numbers)}"
        dest.mkdir()
        return os.fspath(dest)

    def sync(url: str) -> list[str]:
        dest = fresh()
        name = os.path.basename(dest)
        upstream = f"http://127.0.0.1:{stand.port}"
        client.run("add", name, upstream, dest, "--upstream-name", module, "--content-url", url)
        return client.command("sync", name, "--quiet")

    plain = ["rsync", "-a", "--from0", f"--files-from={names}", f"{daemon}/"]
    samples = take_turns(
        {
            **{
                transport: partial(lambda url: spend(sync(url)), url)
                for transport, url in urls.items()
            },
            "rsync": lambda: spend([*plain, fresh()]),
        },
        stand.rounds,
        stand.rest,
    )
    theirs, peer = samples["rsync"], "rsync -a --files-from"
    for transport in urls:
        goal = Goal(1.0, "as fast", ratio=True) if transport == "HTTP/2" else None
        ours = samples[transport]
        yield Figure(f"{title}, {transport}", wall(ours), "s", peer, wall(theirs), goal)
        yield Figure(f"{title}, {transport}, client's CPU", cpu(ours), "s", peer, cpu(theirs))
