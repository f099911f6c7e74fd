"""The cost of catching up from static files after missed commits, compared with git.

Both sides go through a proxy that counts: huai-client's fetch of static files, and git's own of the
same repository by `serve`, which keeps the history that it is sent.  Each commit changes five of
three thousand files.
"""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository
from tests.bench.figures import Figure
from tests.bench.stand import Stand
from tests.support.committing import ENVIRONMENT, NAME
from tests.support.counting_proxy import counting
from tests.support.http_fixtures import running
from tests.support.static_files import Publisher

_FILES = 3000
_CHANGED = 5
_BEHIND = (999, 30, 1)
_SECONDS = 600


def figures(stand: Stand) -> Iterator[Figure]:
    """Bytes and requests for downstreams that missed more and more."""
    folder = stand.folder / "static"
    folder.mkdir()
    publisher = Publisher(folder)
    served = publisher.repositories(folder / "served")
    chance = random.Random(1)
    publisher.upstream.configure(keep="forever")
    publisher.change(*range(_FILES))
    publisher.publish()
    with running(served) as server:
        for missed, after in zip(_BEHIND, (*_BEHIND[1:], 0), strict=True):
            if missed == _BEHIND[0]:
                publisher.change(0)
                publisher.publish()
            copies = folder / f"ours{missed}", folder / f"git{missed}"
            for copy in copies:
                _fetch(server.url, copy)
            for _ in range(missed - after):
                publisher.change(*chance.sample(range(_FILES), _CHANGED))
                publisher.publish()
        for missed in reversed(_BEHIND):
            counts = []
            for name in ("ours", "git"):
                with counting(server.url) as counted:
                    _fetch(counted.url, folder / f"{name}{missed}")
                counts.append(counted)
            title = f"{missed} commits missed"
            sizes = [each.received for each in counts]
            yield Figure(f"{title}: bytes", sizes[0], "B", peer="git fetch", theirs=sizes[1])
            requests = [len(each.requests) for each in counts]
            yield Figure(
                f"{title}: requests", requests[0], "", peer="git fetch", theirs=requests[1]
            )


def _fetch(url: str, copy: Path) -> None:
    """Bring a copy to the newest commit: by the client, or by git if its name says so."""
    place = f"{url}/git/{NAME}.git"
    if copy.name.startswith("git"):
        if not copy.exists():
            _git("clone", "-q", "--bare", place, str(copy))
        _git("-C", str(copy), "fetch", "-q", place, "+main:main")
        return
    repository = Repository(copy)
    repository.keep([repository.fetch(MetadataUrl(place)).id])


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], env=ENVIRONMENT, timeout=_SECONDS, check=True)
