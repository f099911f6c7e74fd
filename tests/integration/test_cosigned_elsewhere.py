"""A second key that is on another machine: commits wait for it, and downstreams see none before."""

import json
import subprocess
from pathlib import Path
from typing import Any

from huai_server.static.newest import newest_published
from huai_server.store.check import check_repository
from huai_server.store.repository import Head, Repository
from tests.support.committing import run_server
from tests.support.keys import key, write_key
from tests.support.upstream import Upstream, rsync_differences, site

Ended = subprocess.CompletedProcess[str]


class Elsewhere:
    """An upstream with one key, and an operator with the other; each has a machine of its own."""

    def __init__(self, up: Upstream, folder: Path) -> None:
        self.up, self.folder, self.operator = up, folder, folder / "operator"
        self.second = write_key(folder / "second", key(2))
        write_key(folder / "first", key(1))
        self.toml = up.root / "server.toml"
        self.without = self.toml.read_text()
        self.sign_with(f'key = "{self.second}"')
        self.server("key", "show", code=0)
        self.commit(b"1", code=0)
        self.sign_with(f'key = "{self.second}.pub"\ncommand = ["/bin/false"]')
        self.operator.mkdir()
        (self.operator / "server.toml").write_text(f'[signing]\nkey = "{self.second}"\n')

    def sign_with(self, cosigner: str, threshold: int = 2) -> None:
        self.toml.write_text(
            f'{self.without}\n[signing]\nkey = "{self.folder / "first"}"\n'
            f"threshold = {threshold}\npending = true\n[[signing.cosigners]]\n{cosigner}\n"
        )

    def server(self, *arguments: str, code: int) -> Ended:
        done = run_server(self.up.root, *arguments)
        assert done.returncode == code, done
        return done

    def commit(self, content: bytes, code: int = 57) -> Ended:
        self.up.put(b"file", content)
        return self.server("commit", self.up.name, code=code)

    def write_request(self, name: str) -> Path:
        self.server("key", "pending", self.up.name, str(self.folder / name), code=0)
        return self.folder / name

    def cosign(self, request: Path, code: int = 0) -> tuple[Path, Ended]:
        signature = self.folder / f"{request.name}.sig"
        words = ("key", "cosign", str(request), "--output", str(signature))
        done = run_server(self.operator, *words)
        assert done.returncode == code, done
        return signature, done

    def attach(self, signature: Path, code: int = 0) -> Ended:
        return self.server("key", "attach", self.up.name, str(signature), code=code)

    @property
    def repository(self) -> Repository:
        return Repository(self.up.places.repository)

    @property
    def head(self) -> Head:
        head = self.repository.head()
        assert head is not None
        return head

    @property
    def waiting(self) -> int:
        """The serial of the commit that waits, or 0."""
        pending = self.repository.pending()
        return pending[1].info.serial if pending else 0


def test_a_commit_is_published_when_it_was_signed_elsewhere(short_path: Path) -> None:
    with site(short_path / "site") as place:
        tree = place.upstream()
        up, keys = Elsewhere(tree, short_path), (key(1).public, key(2).public)
        down = place.downstream(tree, verify="require", keys=keys, threshold=2)
        down.synced()
        assert "waits for 1 more of 2 signatures" in up.commit(b"22").stderr
        assert (up.head.info.serial, up.waiting) == (1, 2)
        assert down.synced()["serial"] == 1
        status = up.server("status", tree.name, code=0).stdout
        assert "serial 1, committed" in status
        assert ", serial 2 waits for signatures since" in status
        assert json.loads(up.server("status", "--json", code=0).stdout)["pending"] == 2
        request = up.write_request("request")
        output = run_server(up.operator, "key", "cosign", str(request), "--json").stdout
        event: dict[str, Any] = json.loads(output)
        assert (event["serial"], event["since"], event["signed"]) == (2, None, False)
        assert event["totals"]["entries"] == 2
        signature, _ = up.cosign(request)
        assert newest_published(up.repository.path) == up.head.commit
        up.attach(signature)
        assert (up.head.info.serial, up.waiting) == (2, 0)
        assert newest_published(up.repository.path) == up.head.commit
        assert json.loads(up.server("status", "--json", code=0).stdout)["pending"] is None
        assert down.synced()["serial"] == 2
        assert rsync_differences(tree, down) == ""
        assert check_repository(tree.name, up.repository).faults == ()
        up.commit(b"333")
        error = up.attach(signature, code=57).stderr
        assert "not a signature of the commit with serial 3" in error
        _, done = up.cosign(up.write_request("next"))
        assert "since serial 2: 0 added, 1 changed, 0 removed" in done.stdout
        assert "serial 3 was signed before" in up.cosign(request, code=57)[1].stderr
