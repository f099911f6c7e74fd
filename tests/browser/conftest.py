"""A real browser over a real server: Chromium, which `./dev test` installs where apt has it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from huai_client.config import load as client_config
from huai_client.config.hooks import Hooks
from huai_server.config import load as server_config
from huai_server.config.tables import Module
from tests.support.upstream import Downstream, Upstream, serving

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # root has none, and the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--force-prefers-reduced-motion",  # a colour that is on its way has no contrast of its own
)


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    """The one browser of all tests."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program, "there is no chromium: `./dev test tests/browser` installs it"
    assert driver, "there is no chromedriver: `./dev test tests/browser` installs it"
    options = ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for each in _OPTIONS:
        options.add_argument(each)
    made = Chrome(options=options, service=Service(driver))
    try:
        made.set_page_load_timeout(60)
        yield made
    finally:
        made.quit()


@pytest.fixture
def browser(chrome: Chrome) -> Iterator[Chrome]:
    """The browser, as it is when it starts."""
    yield chrome
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.get("about:blank")
    chrome.get_log("browser")  # type: ignore[no-untyped-call] # selenium has no types for it


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    """A module with two commits, and names of all kinds."""
    folder = tmp_path_factory.mktemp("browser")
    for name in ("server", "tree"):
        (folder / name).mkdir()
    module = Module(path=str(folder / "tree"))
    server_config.add_module(folder / "server", "m", module)
    made = Upstream("m", folder / "tree", folder / "server")
    made.many(b"pool/large", 210)
    made.put(b"<script>alert(1)<")
    made.at(b"link").symlink_to("away")
    made.commit()
    made.put(b"more", b"12345")
    made.commit()
    return made


@pytest.fixture(scope="session")
def served(mirror: Upstream) -> Iterator[str]:
    """The address of a server of it."""
    with serving(mirror.root) as (_, url):
        yield url


@pytest.fixture
def own(tmp_path: Path) -> Upstream:
    """A module of one test alone."""
    for name in ("server", "tree"):
        (tmp_path / name).mkdir()
    server_config.add_module(tmp_path / "server", "m", Module(path=str(tmp_path / "tree")))
    made = Upstream("m", tmp_path / "tree", tmp_path / "server")
    made.put(b"first")
    made.commit()
    return made


@pytest.fixture
def downstream_pages(tmp_path: Path) -> list[str]:
    """The addresses of the pages that a downstream with a failing module writes."""
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
