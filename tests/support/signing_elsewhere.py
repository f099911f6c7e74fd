"""An upstream that has one of the keys it needs, and the operator elsewhere who has the other."""

from pathlib import Path

from msgspec import structs

from huai_program.durations import TimeLimit
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import list_of
from huai_server.commit.commit import commit_tree
from huai_server.commit.next_commit import CommitSettings
from huai_server.commit.result import USUAL, CommitOptions
from huai_server.config.tables import Cosigner, Signing
from huai_server.signing import cosigned, pending
from huai_server.signing.keys import ServerKeys, open_keys
from huai_server.signing.signer import from_private
from huai_server.store.repository import Head
from tests.support.committing import NAME, Upstream
from tests.support.keys import key, write_key


class Elsewhere:
    """Serial 1 is committed if it is `begun`; what changes then waits for the key 2."""

    def __init__(
        self, folder: Path, numbers: tuple[int, ...] = (2,), *, begun: bool = True
    ) -> None:
        self.up, self.folder, self.operator = Upstream(folder), folder, folder / "operator"
        self.up.root.mkdir(exist_ok=True)
        paths = [write_key(folder / f"key{number}", key(number)) for number in (1, *numbers)]
        local = tuple(Cosigner(str(path)) for path in paths[1:])
        self.signing = Signing(
            str(paths[0]),
            cosigners=local,
            threshold=len(paths),
            pending=True,
            validity=TimeLimit("1h"),
        )
        assert self.keys
        if begun:
            self.commit("1")
        absent = tuple(Cosigner(f"{path}.pub", ("/bin/false",)) for path in paths[1:])
        self.signing = structs.replace(self.signing, cosigners=absent)

    @property
    def keys(self) -> ServerKeys:
        return open_keys(self.up.root, self.signing)

    def commit(self, content: str = "") -> Head:
        if content:
            self.up.write("file", content, mtime=len(content))
        return self._commit(USUAL)

    def commit_listed(self, path: str) -> Head:
        """Look at one path only."""
        paths = [RelPath(path.encode())]
        return self._commit(CommitOptions(lists=lambda root: list_of(root, paths)))

    def _commit(self, options: CommitOptions) -> Head:
        up, settings = self.up, CommitSettings(self.up.module, self.keys)
        return commit_tree(NAME, up.module, up.places, options, lambda: settings).head

    def write_request(self, name: str = "request") -> Path:
        pending.write_request(self.up.repository, NAME, self.folder / name)
        return self.folder / name

    def cosign(self, request: Path, number: int = 2) -> bytes:
        return cosigned.sign(self.operator, request, from_private(key(number)))[1]

    def attach(self, signature: bytes) -> Head | None:
        return pending.add_signature(self.up.repository, NAME, self.keys, signature)[1]

    @property
    def state(self) -> tuple[int, int, int]:
        """The newest serial, that of the commit that waits, or 0, and the signatures of that."""
        pending_commit = self.up.repository.pending()
        waits = (
            (pending_commit[1].info.serial, len(pending_commit[1].signatures))
            if pending_commit
            else (0, 0)
        )
        return (self.up.head.info.serial, *waits)
