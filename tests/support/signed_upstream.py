"""An upstream of a site that signs: a real tree, real keys, and what others would do to it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from huai_native._native import PrivateKey
from huai_schema.codec.signing import COSIGNED, NAMESPACE, Promise, join_commit, split_commit
from huai_server.actions.publish import publish_after_commit
from huai_server.commit.commit import commit_tree
from huai_server.commit.next_commit import CommitSettings
from huai_server.config import load as server_config
from huai_server.config.tables import Signing
from huai_server.signing.keys import ServerKeys, open_keys
from huai_server.store.repository import Seal
from tests.support.keys import key, write_key
from tests.support.rewriting import Rewriting
from tests.support.upstream import Upstream


@dataclass
class SignedUpstream:
    """One module of a site whose commits are signed; its keys are its own."""

    up: Upstream
    root: Path
    """The folder of its keys."""
    signing: Signing = field(init=False)

    def __post_init__(self) -> None:
        """Make the first key."""
        self.root.mkdir()
        self.signing = Signing(str(write_key(self.root / "key", key(1))))

    @property
    def keys(self) -> ServerKeys:
        """The keys that count."""
        return open_keys(self.root, self.signing)

    @property
    def promise(self) -> Promise:
        """The promise of the newest commit."""
        return Promise.decode(self.raw().decode("utf-8", "replace"))

    def raw(self) -> bytes:
        """The newest commit's bytes."""
        return self.up.repository.read(bytes.fromhex(self.up.head.commit), "commit")

    def commit(self, content: bytes | None = None) -> None:
        """Commit the tree; with a file `new` of this content."""
        if content is not None:
            self.up.put(b"new", content)
        module = server_config.load(self.up.root).module(self.up.name)
        settings = CommitSettings(module, self.keys)
        commit_tree(self.up.name, module, self.up.places, load_settings=lambda: settings)
        self._publish()

    def forge(
        self,
        signer: PrivateKey,
        *,
        days: int = 7,
        offset: float = 0,
        promise: Promise | None = None,
        serial: int | None = None,
        tree: str = "",
        cosigners: Sequence[PrivateKey] = (),
    ) -> None:
        """One more commit, of the newest tree or `tree`, dated `offset` days from now."""
        head, now = self.up.head, int(time.time() + offset * 86_400)
        sealed = promise or self.promise._replace(valid_until=now + days * 86_400)
        info = head.info._replace(serial=serial or head.info.serial + 1)
        seal = Seal(sealed, partial(_sign, signer), partial(_cosign, cosigners))
        root = bytes.fromhex(tree or head.tree)
        self.up.repository.commit(root, info, head, seal=seal, now=now)
        self._publish()

    def replace(self, data: bytes) -> None:
        """Let the branch name these bytes as a commit."""
        git = Rewriting(self.up.places.repository)
        git.point(git.write("commit", data))

    def strip(self) -> None:
        """One more commit of the newest tree, without a signature."""
        head = self.up.head
        info = head.info._replace(serial=head.info.serial + 1)
        self.up.repository.commit(bytes.fromhex(head.tree), info, head)
        self._publish()

    def _publish(self) -> None:
        publish_after_commit(self.up.root, self.up.name)

    def resign(self, signer: PrivateKey) -> None:
        """The newest commit, with a signature of this key in the place of its own."""
        signed = split_commit(self.raw())
        assert signed is not None
        self.replace(join_commit(signed.payload, _sign(signer, signed.payload)))


def _cosign(signers: Sequence[PrivateKey], text: bytes) -> list[bytes]:
    return [signer.sign(COSIGNED, text).encode() for signer in signers]


def _sign(signer: PrivateKey, text: bytes) -> bytes:
    return signer.sign(NAMESPACE, text).encode()
