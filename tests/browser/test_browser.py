"""The pages in a browser: accessible, live, across a restart, with the keyboard, on a phone.

They need the packages chromium and chromium-driver.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from huai_server.config import load as server_config
from huai_server.config.tables import Module
from tests.support.browsers import set_colors, set_size
from tests.support.upstream import Upstream, serving

SECONDS = 100
PAGES = (
    *(
        "/",
        "/?lang=zh",
        "/?q=m&sort=size",
        "/modules/m",
        "/modules/m?period=year",
        "/mirrors",
        "/search?q=more",
        "/operator",
        "/api",
        "/modules/m/tree/2",
        "/modules/m/tree/2/pool/large?start=200",
    ),
    *(
        "/modules/m/tree/latest/more?history=1",
        "/modules/m/tree/2?q=1",
        "/modules/m/diff/1..2",
        "/modules/none",
    ),
)

pytestmark = [pytest.mark.slow]


def wait(browser: Chrome, happens: Callable[[], object]) -> None:
    WebDriverWait(browser, SECONDS, poll_frequency=0.2).until(lambda _: happens())


def errors(browser: Chrome) -> list[str]:
    """Return the new messages of the console, except for responses that are errors."""
    log: list[dict[str, Any]] = browser.get_log("browser")  # type: ignore[no-untyped-call] # selenium has no types for it
    return [each["message"] for each in log if "/modules/none" not in each["message"]]


def text(browser: Chrome, selector: str) -> str:
    return str(browser.execute_script(f"return document.querySelector('{selector}')?.textContent"))


def accessibility_violations(browser: Chrome) -> list[dict[str, Any]]:
    """Return the findings of axe-core; of its package for another browser driver only that file."""
    script = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_script(script)
    violations: list[dict[str, Any]] = browser.execute_async_script(
        "axe.run().then((results) => arguments[0](results.violations))"
    )
    return violations


def in_chinese(path: str) -> str:
    return ("&" if "?" in path else "?") + "lang=zh"


def serial(browser: Chrome) -> str:
    return text(browser, "#modules tbody td:nth-of-type(3)")


def until_serial(browser: Chrome, number: str) -> None:
    wait(browser, lambda: serial(browser) == number)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_each_page(browser: Chrome, served: str, scheme: str) -> None:
    set_colors(browser, scheme)
    for path in PAGES:
        browser.get(served + path + (in_chinese(path) if scheme == "dark" else ""))
        violations = accessibility_violations(browser)
        faults = [(each["id"], [node["html"] for node in each["nodes"]]) for each in violations]
        assert faults == [], path
    assert errors(browser) == []


def test_a_page_follows_the_commits(browser: Chrome, own: Upstream) -> None:
    with serving(own.root) as (_, url):
        browser.get(url)
        browser.execute_script("window.same = true")
        assert serial(browser) == "1"
        browser.find_element(By.CSS_SELECTOR, "tbody a").send_keys("")
        for number in ("2", "3"):
            own.put(b"file" + number.encode())
            own.commit()
            until_serial(browser, number)
        assert browser.execute_script("return window.same")
        assert browser.switch_to.active_element.text == "m"
        assert errors(browser) == []


def test_only_what_changed_flashes(browser: Chrome, own: Upstream, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    server_config.add_module(own.root, "unchanged", Module(path=str(other)))
    Upstream("unchanged", other, own.root).put(b"a")
    Upstream("unchanged", other, own.root).commit()
    with serving(own.root) as (_, url), counting(browser):
        browser.get(url)
        wait(browser, lambda: browser.execute_script("return window.fetched > 0"))
        own.put(b"more")
        own.commit()
        until_serial(browser, "2")
        fresh = browser.find_elements(By.CSS_SELECTOR, ".fresh")
        assert "unchanged" not in " ".join(each.text for each in fresh)
        assert "m" in [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".fresh th a")]


def test_a_page_outlives_its_server(browser: Chrome, own: Upstream) -> None:
    with serving(own.root) as (process, url):
        browser.get(url)
        process.terminate()
        process.wait(SECONDS)
    wait(browser, lambda: "does not answer" in text(browser, "#live"))
    assert serial(browser) == "1"
    own.put(b"second")
    own.commit()
    with serving(own.root, "--port", url.rpartition(":")[2]):
        until_serial(browser, "2")
        wait(browser, lambda: "does not answer" not in text(browser, "#live"))


def test_the_keyboard_is_enough(browser: Chrome, served: str) -> None:
    browser.get(served)

    def press(*keys: str) -> str:
        ActionChains(browser).send_keys(*keys).perform()
        return str(browser.execute_script("return document.activeElement.textContent"))

    assert press(Keys.TAB) == "Skip to the content"
    script = "return document.activeElement.getBoundingClientRect().left >= 0"
    assert browser.execute_script(script)
    press(Keys.ENTER)
    reached = [press(Keys.TAB) for _ in range(9)]
    assert reached == [
        "",
        "Show",
        "Search all modules",
        "1 fresh",
        "State",
        "Committed",
        "Entries",
        "Size",
        "m",
    ]
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.execute_script(outline) == "solid"
    press(Keys.ENTER)
    wait(browser, lambda: browser.current_url.endswith("/modules/m"))
    browser.get(f"{served}/modules/m/tree/2")
    browser.find_element(By.ID, "q").send_keys("more", Keys.ENTER)
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "tbody th a"))
    assert text(browser, "tbody th a") == "more"


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("pixels", [360, 768, 1280])
def test_no_page_needs_sideways_scrolling(browser: Chrome, served: str, pixels: int) -> None:
    set_size(browser, pixels)
    for path in PAGES:
        for language in ("", in_chinese(path)):
            browser.get(served + path + language)
            wide = "return document.documentElement.scrollWidth - window.innerWidth"
            assert browser.execute_script(wide) <= 0, path


def test_a_command_can_be_copied_with_the_address_of_the_page(browser: Chrome, served: str) -> None:
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": served}
    browser.execute_cdp_cmd("Browser.grantPermissions", grant)
    browser.get(f"{served}/modules/m")
    browser.execute_script("window.clip = navigator.clipboard")
    first, *_, last = browser.find_elements(By.CSS_SELECTOR, "button.copy")
    assert copied(browser, first) == f"huai-client add m {served} /srv/mirror/m\nhuai-client sync m"
    # As on a page that came without TLS.
    browser.execute_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    assert copied(browser, last) == f"git clone --bare {served}/git/m.git"


def copied(browser: Chrome, button: WebElement) -> str:
    """Return what a click on a button copies."""
    wait(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "button.done"))
    button.click()
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "button.done"))
    return str(browser.execute_script("return window.clip.readText()"))


def test_favourites_are_remembered_by_the_browser_alone(browser: Chrome, served: str) -> None:
    browser.get(served)
    assert not browser.find_element(By.ID, "favourites").is_displayed()
    for pressed in ("true", "false"):
        browser.find_element(By.CSS_SELECTOR, "table .star").click()
        # By scripts: the page may replace its elements at any moment.
        focus = browser.execute_script("return document.activeElement.ariaLabel")
        assert focus == "Favourite m"
        browser.get(served)
        star, favourites = browser.execute_script(
            "return [document.querySelector('table .star').ariaPressed,"
            " document.getElementById('favourites').innerText]"
        )
        assert star == pressed
        expected = "★m fresh" if pressed == "true" else ""
        assert favourites.replace("\n", "") == expected
    assert browser.get_cookies() == []
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(served)
    assert browser.find_elements(By.CSS_SELECTOR, ".star") == []


def test_a_slash_leads_to_the_search(browser: Chrome, served: str) -> None:
    browser.get(f"{served}/modules/m/tree/2")
    ActionChains(browser).send_keys("/", "more").perform()
    assert browser.switch_to.active_element.get_attribute("value") == "more"


@pytest.mark.usefixtures("operator")
def test_all_is_there_without_a_script(browser: Chrome, served: str) -> None:
    for path in PAGES:
        texts = []
        for disabled in (False, True):
            browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": disabled})
            browser.get(served + path)
            texts.append(words_of(browser))
        assert texts[0] == texts[1] != [], path
    browser.get(served)
    assert "2" in browser.find_element(By.CSS_SELECTOR, "tbody tr").text
    browser.find_element(By.CSS_SELECTOR, "tbody a").click()
    assert len(browser.find_elements(By.CSS_SELECTOR, "tbody tr")) == 2


def words_of(browser: Chrome) -> list[str]:
    """Return the headings and links to entries that a page shows."""
    elements = browser.find_elements(By.CSS_SELECTOR, "main :is(h1, h2, dt, tbody a)")
    return [each.text for each in elements]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_page_of_a_downstream(
    browser: Chrome, downstream_pages: list[str], scheme: str
) -> None:
    set_colors(browser, scheme)
    for address in downstream_pages:
        browser.get(address)
        assert accessibility_violations(browser) == [], address
    browser.find_element(By.CSS_SELECTOR, "nav a").click()
    wait(browser, lambda: text(browser, "h1") == "Mirror status")
    assert errors(browser) == []


def test_a_tab_that_is_open_for_a_day_does_not_grow(browser: Chrome, own: Upstream) -> None:
    """Send the script a thousand events of a server that comes and goes."""
    with serving(own.root) as (_, url), counting(browser):
        browser.get(url)
        wait(browser, lambda: browser.execute_script("return window.fetched > 0"))
        before = grown(browser)
        for round_ in range(10):
            own.put(b"file%d" % round_)
            own.commit()
            browser.execute_script(
                "for (let i = 0; i < 100; i++) {"
                "  window.source.dispatchEvent(new MessageEvent('commit', { data: '{}' }));"
                "  if (i % 10 === 0) window.source.dispatchEvent(new Event('error'));"
                "}"
            )
            until_serial(browser, str(round_ + 2))
        until_serial(browser, "11")
        after = grown(browser)
        assert after["sources"] == before["sources"] == 1
        assert after["fetched"] < 60, "one look for many events"
        # One more commit is one more point of the picture, and no more elements.
        assert after["elements"] <= before["elements"] + 5
        assert after["nodes"] <= before["nodes"] + 50
        assert after["listeners"] <= before["listeners"] + 2
        assert errors(browser) == []


COUNTED = """
window.sources = 0; window.fetched = 0;
const Source = window.EventSource, ask = window.fetch;
window.EventSource = class extends Source {
  constructor(...given) { super(...given); window.sources++; window.source = this; }
};
window.fetch = (...given) => { window.fetched++; return ask(...given); };
"""


@contextmanager
def counting(browser: Chrome) -> Iterator[None]:
    """Let each page that is loaded count its requests and event streams."""
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTED})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def grown(browser: Chrome) -> dict[str, int]:
    """Return the counts that grow in a page that leaks, after a garbage collection."""
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    counts = browser.execute_cdp_cmd("Memory.getDOMCounters", {})
    return {
        "nodes": counts["nodes"],
        "listeners": counts["jsEventListeners"],
        **{
            name: browser.execute_script(f"return {code}")
            for name, code in (
                ("sources", "window.sources"),
                ("fetched", "window.fetched"),
                ("elements", "document.querySelectorAll('*').length"),
            )
        },
    }
