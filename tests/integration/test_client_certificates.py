"""A downstream that shows a certificate and believes an authority of its own, at real servers."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from huai_client.cli.watch.listener import group_by_upstream
from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.metadata.events import listen
from tests.integration.test_tls import signed
from tests.support.certificate import make_certificate
from tests.support.committing import ENVIRONMENT, SECONDS, run_server
from tests.support.keys import key, write_key
from tests.support.nginx import nginx
from tests.support.prepared import CLIENT, ran
from tests.support.serving import Serving, serving

Completed = subprocess.CompletedProcess[str]
NAME = "private"
HOST = "mirror.example"
URL = f"https://{HOST}/tree"


@dataclass
class Scene:
    """An upstream with a private module, and the files of those who may read it."""

    folder: Path
    server: Serving
    ca: tuple[Path, Path]
    """That of the clients, with its key."""
    client: tuple[Path, Path]

    @property
    def trust(self) -> tuple[str, str]:
        """The option with the authority of the server."""
        return "--tls-ca", str(self.folder / "certificate.pem")

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The options with the certificate and the key of the client."""
        return "--tls-certificate", str(self.client[0]), "--tls-key", str(self.client[1])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("upstream")
    ca = make_certificate(tmp_path_factory.mktemp("authority"))
    client = signed(folder / "client", ca, "/CN=one")
    client[1].chmod(0o600)
    (folder / "tree").mkdir()
    (folder / "tree/file").write_text("content")
    root = folder / "state"
    run_server(root, "add", NAME, str(folder / "tree"), "--private", "--serve-content")
    certificate, own_key = make_certificate(folder)
    tls = f'{{certificate = "{certificate}", key = "{own_key}", client_ca = "{ca[0]}"}}'
    text = (root / "server.toml").read_text()
    text = text.replace(f"[modules.{NAME}]", f'[modules.{NAME}]\ncertificates = ["CN=one"]')
    allowed = f'[allowed_downstreams.one]\nkey = "{key(1).public}"\nhosts = ["{HOST}"]\n'
    (root / "server.toml").write_text(f"[listen]\ntls = {tls}\n{text}\n{allowed}")
    assert run_server(root, "commit", NAME).returncode == 0
    with serving(root) as server:
        yield Scene(folder, server, ca, client)


@dataclass
class Downstream:
    """A downstream of this module alone."""

    folder: Path

    def run(self, *arguments: str) -> Completed:
        """Run huai-client, in an environment that names no authority."""
        return ran(CLIENT, ["--root", str(self.folder / "state"), *arguments], ENVIRONMENT, SECONDS)

    def add(self, url: str, *options: str) -> Completed:
        """Add the module of the server at `url`, with content from there."""
        (self.folder / "copy").mkdir(exist_ok=True)
        content = ("--content-url", f"{url}/content/{NAME}")
        return self.run("add", NAME, url, str(self.folder / "copy"), *content, *options)

    @property
    def content(self) -> str:
        return (self.folder / "copy/file").read_text()


@pytest.fixture
def down(tmp_path: Path) -> Downstream:
    return Downstream(tmp_path)


def test_a_certificate_opens_metadata_content_and_attestations(
    scene: Scene, down: Downstream
) -> None:
    assert down.add(scene.server.url, *scene.trust, *scene.identity).stderr == ""
    attesting = write_key(down.folder / "attest", key(1))
    with (down.folder / "state/client.toml").open("a") as file:
        file.write(f'[attest]\nkey = "{attesting}"\nurls = ["{URL}"]\n')
    done = down.run("sync", NAME)
    assert (done.returncode, down.content) == (0, "content"), done.stderr
    assert "attest" not in done.stderr, done.stderr  # no complaint
    assert down.run("doctor", NAME).returncode == 0
    assert down.run("sync", NAME).returncode == 0


def test_events_are_received_with_a_certificate(scene: Scene, down: Downstream) -> None:
    down.add(scene.server.url, *scene.trust, *scene.identity)
    root = down.folder / "state"
    (source,) = group_by_upstream([Mirror.of(root, NAME, load(root).module(NAME))])
    event = next(event for event in listen(source.urls[0], [NAME]) if event is not None)
    assert event.module == NAME


def test_without_one_nothing_is_opened(scene: Scene, down: Downstream) -> None:
    assert "self-signed certificate" in down.add(scene.server.url).stderr
    done = down.run("sync", NAME)
    assert (done.returncode, "tls = {ca = FILE}" in done.stderr) == (10, True)
    down.run("remove", NAME)
    down.add(scene.server.url, *scene.trust)
    done = down.run("sync", NAME)
    assert (done.returncode, "401" in done.stderr) == (10, True), done.stderr


def test_static_files_behind_a_web_server_that_asks_for_certificates(
    scene: Scene, down: Downstream
) -> None:
    www = down.folder / "www"
    (www / "content").mkdir(parents=True)
    root = scene.folder / "state"
    assert run_server(root, "publish", NAME, "--to", str(www)).returncode == 0
    (www / f"content/{NAME}").symlink_to(scene.folder / "tree")
    tls = (scene.folder / "certificate.pem", scene.folder / "key.pem")
    asking = f"ssl_client_certificate {scene.ca[0]}; ssl_verify_client on;"
    with nginx(www, tls=tls, outside=asking) as proxy:
        down.add(proxy.url, *scene.trust)
        done = down.run("sync", NAME)
        assert (done.returncode, "tls = {certificate = FILE" in done.stderr) == (10, True)
        down.run("remove", NAME)
        down.add(proxy.url, *scene.trust, *scene.identity)
        done = down.run("sync", NAME)
        assert (done.returncode, down.content) == (0, "content"), done.stderr
        assert any("/static/head" in line for line in proxy.requests)


def test_a_key_that_others_may_read_is_refused(scene: Scene, down: Downstream) -> None:
    scene.client[1].chmod(0o644)
    done = down.add(scene.server.url, *scene.trust, *scene.identity)
    assert (done.returncode, "every user may read" in done.stderr) == (40, True)
    scene.client[1].chmod(0o600)
    down.add(scene.server.url, *scene.trust, *scene.identity)
    assert down.run("sync", NAME).returncode == 0
    scene.client[1].chmod(0o644)
    done = down.run("sync", NAME)
    scene.client[1].chmod(0o600)
    assert (done.returncode, "chmod o=" in done.stderr) == (40, True)
