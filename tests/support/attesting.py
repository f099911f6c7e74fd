"""A downstream that attests what it holds, and the upstream that believes it."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tomlkit

from huai_client.config.load import Attest
from huai_native._native import PrivateKey
from huai_schema.codec.attestation import FILE_NAME, SignedAttestation
from tests.support.keys import key, write_key
from tests.support.upstream import SECONDS, Downstream, Site, Upstream

HOST = "mirror.example"


@dataclass
class Attesting:
    """One module at an upstream, and a downstream that is allowed to attest it."""

    place: Site
    up: Upstream
    down: Downstream
    signer: PrivateKey

    @property
    def file(self) -> Path:
        """The file that the downstream publishes with its tree."""
        return self.down.dest / FILE_NAME

    @property
    def signed(self) -> SignedAttestation:
        """The same, read."""
        return SignedAttestation.decode(self.file.read_bytes())

    def again(self, by: PrivateKey | None = None, /, **values: Any) -> bytes:
        """Sign its attestation again with other values, and by another key if one is given."""
        return self.signed.attestation._replace(**values).signed((by or self.signer).sign)

    def post(self, data: bytes, module: str = "") -> tuple[int, str]:
        """Status, and what is wrong."""
        path = f"/api/v1/modules/{module or self.up.name}/attestations"
        request = urllib.request.Request(self.place.url + path, data)  # noqa: S310 (our own)
        request.add_header("Content-Type", "text/plain")
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)["error"]

    def get(self, path: str) -> Any:
        """An answer of the API."""
        with urllib.request.urlopen(self.place.url + path, timeout=SECONDS) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if "json" in answer.headers["content-type"] else text.decode()


def allow(
    place: Site,
    *tables: tuple[str, PrivateKey, tuple[str, ...]],
    keys: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
    **settings: object,
) -> None:
    """Let these downstreams, and no others, attest to a site: name, key, hosts.

    `keys`: further keys of their tables, by name.
    """
    path = place.folder / "server" / "server.toml"
    document = tomlkit.parse(path.read_text())
    document["mirrors"] = settings
    document["allowed_downstreams"] = {
        name: {"key": signer.public, "hosts": list(hosts), **keys.get(name, {})}
        for name, signer, hosts in tables
    }
    new = path.with_suffix(".new")
    new.write_text(tomlkit.dumps(document))
    new.replace(path)


def attesting(place: Site, number: int = 1, up: Upstream | None = None, **table: Any) -> Attesting:
    """A downstream in step with its upstream, that has attested so; `number` chooses its key."""
    signer = key(number)
    up = up or place.upstream()
    if not up.at(b"a").exists():
        up.put(b"a", b"first")
        up.commit()
    path = write_key(place.folder / f"attest{number}", signer)
    urls = table.pop("urls", (f"https://{HOST}/{up.name}",))
    down = place.downstream(up, attest=Attest(str(path), urls, **table))
    return Attesting(place, up, down, signer)
