"""TLS of `serve` itself, with certificates that openssl made: clients, renewal, private modules."""

import os
import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from huai_server.config.tables import Tls
from huai_server.http.asgi.tls import TlsContext
from tests.integration.test_events import subscribed
from tests.support.certificate import make_certificate
from tests.support.committing import ENVIRONMENT, SECONDS, git, run_server
from tests.support.prepared import CLIENT, ran
from tests.support.processes import run_program
from tests.support.serving import Serving, serving

NAME = "m"


def openssl(*arguments: str | Path) -> None:
    run_program("openssl", *arguments, check=True)


def signed(folder: Path, ca: tuple[Path, Path], subject: str) -> tuple[Path, Path]:
    """A client's certificate and key, by the authority `ca`."""
    folder.mkdir()
    request, certificate, key = (folder / name for name in ("request", "certificate", "key"))
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", *new, "-subj", subject, "-keyout", key, "-out", request)
    by = ("-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial", "-days", "2")
    openssl("x509", "-req", "-in", request, *by, "-out", certificate)
    return certificate, key


def fingerprint(certificate: Path) -> str:
    return sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def clients(
    tmp_path_factory: pytest.TempPathFactory, ca: tuple[Path, Path]
) -> dict[str, tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("clients")
    return {name: signed(folder / name, ca, f"/O=x/CN={name}") for name in ("one", "two", "three")}


@pytest.fixture(scope="module")
def root(
    tmp_path_factory: pytest.TempPathFactory,
    ca: tuple[Path, Path],
    clients: dict[str, tuple[Path, Path]],
) -> Path:
    """A public module and a private one, which two of three clients may see."""
    folder = tmp_path_factory.mktemp("upstream")
    (folder / "tree").mkdir()
    (folder / "tree/file").write_text("content")
    root = folder / "state"
    run_server(root, "add", "private", str(folder / "tree"), "--private")
    run_server(root, "add", NAME, str(folder / "tree"), "--serve-content")
    certificate, key = make_certificate(folder)
    names = f'["CN=one", "sha256:{fingerprint(clients["two"][0])}"]'
    text = (root / "server.toml").read_text()
    text = text.replace("[modules.private]", f"[modules.private]\ncertificates = {names}")
    tls = f'certificate = "{certificate}", key = "{key}", client_ca = "{ca[0]}"'
    limits = "max_connections = 4\nmax_connections_per_address = 4\nproxies = []\n"
    (root / "server.toml").write_text(f"[listen]\n{limits}tls = {{{tls}}}\n{text}")
    for name in ("private", NAME):
        assert run_server(root, "commit", name).returncode == 0
    return root


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Serving]:
    with serving(root) as server:
        yield server


@pytest.fixture
def trusted(root: Path) -> ssl.SSLContext:
    """A context that trusts the server."""
    return ssl.create_default_context(cafile=root.parent / "certificate.pem")


def clone(url: str, to: Path, **options: Path) -> None:
    """Clone with git, by options of `http`."""
    settings = [word for name, value in options.items() for word in ("-c", f"http.{name}={value}")]
    command = ["git", *settings, "clone", "-q", "--bare", url, str(to)]
    run_program(*command, env=ENVIRONMENT, check=True)


def test_git_and_a_downstream_speak_it(server: Serving, root: Path, tmp_path: Path) -> None:
    certificate = root.parent / "certificate.pem"
    clone(f"{server.url}/git/{NAME}.git", tmp_path / "clone", sslCAInfo=certificate)
    newest = git(root / "modules" / NAME / "repository.git", "rev-parse", "main")
    assert git(tmp_path / "clone", "rev-parse", "main") == newest

    def client(environment: dict[str, str], *arguments: str) -> int:
        place = ["--root", str(tmp_path / "client"), *arguments]
        return ran(CLIENT, place, environment, SECONDS).returncode

    trusting = {**ENVIRONMENT, "SSL_CERT_FILE": str(certificate)}
    content = f"{server.url}/content/{NAME}"
    (tmp_path / "copy").mkdir()
    added = ("add", NAME, server.url, str(tmp_path / "copy"), "--content-url", content)
    assert client(trusting, *added) == 0
    assert client(ENVIRONMENT, "sync", NAME) == 10
    assert client(trusting, "sync", NAME) == 0
    assert (tmp_path / "copy/file").read_text() == "content"


def test_old_versions_and_plain_http_are_refused(
    server: Serving, root: Path, trusted: ssl.SSLContext
) -> None:
    with httpx.Client(verify=trusted) as client:
        assert client.get(server.url + "/healthz").json()["status"] == "ok"
    files = Tls(str(root.parent / "certificate.pem"), str(root.parent / "key.pem"))
    assert TlsContext(files).context.minimum_version == ssl.TLSVersion.TLSv1_2
    old = ssl.create_default_context(cafile=root.parent / "certificate.pem")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with (
        socket.create_connection(("127.0.0.1", server.port), SECONDS) as plain,
        pytest.raises(ssl.SSLError),
    ):
        old.wrap_socket(plain, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"ok" not in plain.recv(1 << 16)


def test_a_client_that_never_finishes_a_handshake_gives_way(
    server: Serving, trusted: ssl.SSLContext
) -> None:
    silent = [socket.socket() for _ in range(4)]
    try:
        for number, client in enumerate(silent, 2):
            client.bind((f"127.0.0.{number}", 0))
            client.settimeout(SECONDS)
            client.connect(("127.0.0.1", server.port))
            client.sendall(b"\x16\x03\x01")
        with httpx.Client(verify=trusted) as http:
            assert http.get(server.url + "/healthz").status_code == 200
        with suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""
    finally:
        for client in silent:
            client.close()


def test_a_client_certificate_opens_a_private_module(
    server: Serving, root: Path, clients: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    def ask(name: str = "") -> int:
        context = ssl.create_default_context(cafile=root.parent / "certificate.pem")
        if name:
            context.load_cert_chain(*clients[name])
        with httpx.Client(verify=context) as client:
            listed = {module["name"] for module in client.get(place).json()["modules"]}
            status = client.get(f"{place}/private").status_code
            assert ("private" in listed) == (status == 200)
            return status

    place = f"{server.url}/api/v1/modules"
    assert [ask("one"), ask("two"), ask("three"), ask()] == [200, 200, 401, 401]
    certificate, key = clients["one"]
    authority = root.parent / "certificate.pem"
    url = f"{server.url}/git/private.git"
    clone(url, tmp_path / "c", sslCAInfo=authority, sslCert=certificate, sslKey=key)
    stranger = make_certificate(tmp_path)
    context = ssl.create_default_context(cafile=root.parent / "certificate.pem")
    context.load_cert_chain(*stranger)
    with httpx.Client(verify=context) as client, pytest.raises(httpx.TransportError):
        client.get(place)


def test_a_renewed_certificate_is_taken_in_while_old_connections_stay(
    server: Serving, root: Path, trusted: ssl.SSLContext, tmp_path: Path
) -> None:
    def present_certificate() -> bytes:
        anybody = ssl._create_unverified_context()  # noqa: S323 - compared by hand
        with (
            socket.create_connection(("127.0.0.1", server.port), SECONDS) as plain,
            closing(anybody.wrap_socket(plain)) as tls,
        ):
            return tls.getpeercert(binary_form=True) or b""

    place, key = root.parent / "certificate.pem", root.parent / "key.pem"
    new, new_key = make_certificate(tmp_path)
    before = present_certificate()
    with (
        httpx.Client(verify=trusted) as client,
        subscribed(server.url, NAME, verify=trusted) as events,
    ):
        assert client.get(server.url + "/healthz").status_code == 200
        assert events.next()["serial"] == 1
        os.replace(new, place)
        server.wait_until(lambda: "stays in use" in server.log.read_text())
        assert present_certificate() == before
        os.replace(new_key, key)
        server.wait_until(lambda: present_certificate() != before)
        assert present_certificate() == ssl.PEM_cert_to_DER_cert(place.read_text())
        assert client.get(server.url + "/healthz").status_code == 200
        (root.parent / "tree/more").touch()
        run_server(root, "commit", NAME)
        assert events.next()["serial"] == 2


def refusal(root: Path) -> str:
    done = run_server(root, "serve", "--port", "0")
    assert done.returncode == 40
    return done.stderr


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    root = tmp_path / "state"
    root.mkdir()
    certificate, key = make_certificate(tmp_path)
    (other := tmp_path / "other").mkdir()
    _, stranger = make_certificate(other)
    locked = tmp_path / "locked"
    openssl("ec", "-in", key, "-aes128", "-passout", "pass:x", "-out", locked)
    for path in (key, stranger, locked):
        path.chmod(0o600)

    def configured(key: Path, certificate: Path = certificate) -> Path:
        tls = f'{{certificate = "{certificate}", key = "{key}"}}'
        (root / "server.toml").write_text(f"[listen]\ntls = {tls}\n")
        return root

    assert str(certificate) in refusal(configured(stranger))
    assert "passphrase" in refusal(configured(locked))
    assert "missing" in refusal(configured(tmp_path / "missing"))
    assert "missing" in refusal(configured(key, tmp_path / "missing"))
    key.chmod(0o644)
    assert "every user" in refusal(configured(key))
