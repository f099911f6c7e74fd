"""A real Chromium, and the screens that it pretends to have."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # root has none, and the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--force-prefers-reduced-motion",  # a colour in transition has no contrast of its own
    "--hide-scrollbars",
)


@contextmanager
def browsing() -> Iterator[Chrome]:
    """Run a browser."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program, "chromium is missing: `./dev test tests/browser` installs it"
    assert driver, "chromedriver is missing: `./dev test tests/browser` installs it"
    options = ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in _OPTIONS:
        options.add_argument(option)
    chrome = Chrome(options=options, service=Service(driver))
    try:
        chrome.set_page_load_timeout(60)
        yield chrome
    finally:
        chrome.quit()


def set_colors(browser: Chrome, scheme: str) -> None:
    """Prefer `light` or `dark`."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def set_size(browser: Chrome, width: int, height: int = 700) -> None:
    """Set the size of the screen in pixels."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
