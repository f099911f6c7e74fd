"""Runs Chromium, which `./dev test` installs if apt has it, over a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from huai_client.config import load as client_config
from huai_client.config.hooks import Hooks
from huai_server.config import load as server_config
from huai_server.config.tables import Module
from huai_server.state.tokens import new_token
from tests.support.browsers import browsing
from tests.support.upstream import Downstream, Upstream, serving


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    """Start the browser of all tests."""
    with browsing() as chrome:
        yield chrome


@pytest.fixture
def browser(chrome: Chrome) -> Iterator[Chrome]:
    """Reset the browser to its state at the start."""
    yield chrome
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.get("about:blank")
    chrome.get_log("browser")  # type: ignore[no-untyped-call] # selenium has no types for it


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    """Create a module with two commits, and names of all kinds."""
    folder = tmp_path_factory.mktemp("browser")
    for name in ("server", "tree"):
        (folder / name).mkdir()
    module = Module(path=str(folder / "tree"), serve_content=True)
    server_config.add_module(folder / "server", "m", module)
    upstream = Upstream("m", folder / "tree", folder / "server")
    upstream.many(b"pool/large", 210)
    upstream.put(b"<script>alert(1)<")
    upstream.put(b"README", b"Long lines do not widen the page. " * 9)
    upstream.at(b"link").symlink_to("away")
    upstream.commit()
    upstream.put(b"more", b"12345")
    upstream.commit()
    return upstream


@pytest.fixture(scope="session")
def served(mirror: Upstream) -> Iterator[str]:
    """Serve the module; return its URL."""
    with serving(mirror.root) as (_, url):
        yield url


@pytest.fixture
def operator(browser: Chrome, mirror: Upstream) -> Iterator[None]:
    """Send the token of an operator with each request."""
    _, token = new_token(mirror.root, ["m"], ["operator"])
    headers = {"Authorization": f"Bearer {token}"}
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": headers})
    yield
    browser.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {}})


@pytest.fixture
def own(tmp_path: Path) -> Upstream:
    """Create a module for one test alone."""
    for name in ("server", "tree"):
        (tmp_path / name).mkdir()
    server_config.add_module(tmp_path / "server", "m", Module(path=str(tmp_path / "tree")))
    upstream = Upstream("m", tmp_path / "tree", tmp_path / "server")
    upstream.put(b"first")
    upstream.commit()
    return upstream


@pytest.fixture
def downstream_pages(tmp_path: Path) -> list[str]:
    """Return the URLs of the pages that a downstream with a failing module writes."""
    module = client_config.Module(
        url="http://127.0.0.1:1", dest=str(tmp_path / "tree"), hooks=Hooks(before="/bin/false")
    )
    root = tmp_path / "client"
    root.mkdir()
    client_config.add_module(root, "m", module)
    downstream = Downstream("m", tmp_path / "tree", root)
    assert downstream.sync().code == 56
    assert downstream.run("status", "--html", str(tmp_path)).code == 0
    return [(tmp_path / name).as_uri() for name in ("index.html", "index.zh.html")]
