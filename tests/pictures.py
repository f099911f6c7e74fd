"""`./dev pictures`: pictures of all pages, of made-up modules with a month of history.

Real commits by `huai-server`, dated by faketime; real records of mirrors, signed by keys of tests;
a real browser.  All go to build/pictures, and smaller ones for pages of docs/ to docs/pictures.
"""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import tomlkit
from selenium.webdriver import Chrome

from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_server.mirrors.lag import LagHistory
from huai_server.mirrors.record import (
    Holding,
    Probe,
    holding_path,
    probe_path,
    write_holding,
    write_probe,
)
from huai_server.state.paths import module_places
from huai_server.state.tokens import new_token
from huai_server.store.repository import Repository
from tests.support.browsers import browsing, set_colors, set_size
from tests.support.keys import key
from tests.support.upstream import serving

TOP = Path(__file__).parents[1]
HOUR, DAY = 3600, 86400
HEIGHT_MAX, DOCUMENTED_HEIGHT = 2600, 1000
HOSTS = ("ftp.uni.example", "mirrors.city.example", "mirror.isp.example", "rsync.lab.example")
COUNTRIES = ("DE", "CN", "FR", "US")
SPONSORS = ("University of Example", "City of Example", "Example Internet", "Example Labs")
PAGES = {
    "front": "/",
    "module": "/modules/debian",
    "year": "/modules/pypi?period=year",
    "tree": "/modules/debian/tree/latest",
    "search": "/modules/debian/tree/latest?q=lib*-1*.deb",
    "search-all": "/search?q=new-1",
    "file": "/modules/debian/tree/latest/dists/stable/Release?history=1",
    "diff": "/modules/debian/diff/29..30",
    "mirrors": "/mirrors",
    "api": "/api",
    "operator": "/operator",
    "error": "/modules/debian/tree/latest/none",
}
DOCUMENTED = {"front", "module", "mirrors"}


class History(NamedTuple):
    """The commits of a made-up module."""

    name: str
    gap: int
    """Seconds between two commits."""
    commits: int
    age: int = 600
    """Seconds since the last one."""


HISTORIES = (
    History("centos-stream", DAY, 20),
    History("cran", DAY, 8, age=6 * DAY),
    History("debian", DAY, 30),
    History("pypi", 6 * HOUR, 30),
)


def write(random: Random, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(random.randbytes(random.randrange(50, 9000)))


def change(random: Random, tree: Path, number: int) -> None:
    """Add, remove and change some files."""
    for place in range(random.randrange(25)):
        write(
            random, tree / "pool" / f"lib{random.choice('abcdefgh')}" / f"new-{number}-{place}.deb"
        )
    files = sorted((tree / "pool").rglob("*.deb"))
    for path in random.sample(files, random.randrange(9)):
        path.unlink()
    for path in random.sample(sorted((tree / "pool").rglob("*.deb")), random.randrange(12)):
        write(random, path)
    write(random, tree / "dists" / "stable" / "Release")


def make_module(random: Random, root: Path, trees: Path, history: History, now: int) -> None:
    tree = trees / history.name
    for number in range(300):
        write(random, tree / "pool" / f"lib{chr(97 + number % 26)}" / f"lib-{number}.deb")
    write(random, tree / "dists" / "stable" / "main" / "binary-amd64" / "Packages")
    (tree / "stable").symlink_to("dists/stable")
    server: list[str | Path] = [TOP / ".venv/bin/huai-server", "--root", root]
    urls = (f"https://mirror.example/{history.name}", f"rsync://mirror.example/{history.name}")
    options = [word for url in urls for word in ("--content-url", url)]
    subprocess.run([*server, "add", history.name, tree, *options], check=True, capture_output=True)
    for number in range(history.commits):
        change(random, tree, number)
        when = now - history.age - (history.commits - 1 - number) * history.gap
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))
        command = ["faketime", date, *server, "commit", history.name]
        subprocess.run(command, check=True, capture_output=True)


def make_mirrors(random: Random, root: Path, now: int) -> None:
    place = root / "server.toml"
    document = tomlkit.parse(place.read_text())
    document["mirrors"] = {"max_lag": "1d"}
    document["allowed_downstreams"] = {
        host: {
            "key": key(number).public,
            "hosts": [host],
            "country": COUNTRIES[number - 1],
            "sponsor": {"name": SPONSORS[number - 1], "url": f"https://{host.partition('.')[2]}/"},
        }
        for number, host in enumerate(HOSTS, 1)
    }
    place.write_text(tomlkit.dumps(document))
    for history in HISTORIES:
        repository = Repository(module_places(root, history.name).repository)
        heads = [*repository.history()]
        identity = repository.snapshot(heads[0])[0].identity
        for number, host in enumerate(HOSTS, 1):
            head = heads[random.choice((0, 0, 0, 1, 3))]
            urls = tuple(f"{scheme}://{host}/{history.name}" for scheme in ("https", "rsync"))
            name, serial, commit = history.name, head.info.serial, head.commit
            statement = Attestation(
                name, identity, serial, commit, now - 60, partial=False, urls=urls
            )
            text = statement.signed(key(number).sign)
            signed, since = SignedAttestation.decode(text), head.time + random.randrange(20, 900)
            lags = LagHistory(now - random.randrange(20, 40) * DAY, tuple(lag_rows(random, now)))
            write_holding(
                holding_path(root / "mirrors", name, host), Holding(signed, text, since, lags)
            )
            write_probe(
                probe_path(root / "mirrors", name, host),
                Probe(now - 5 * HOUR, "good" if number != 4 else "unreachable", serial, 8),
            )


def lag_rows(random: Random, now: int) -> Iterator[tuple[int, int]]:
    """Yield rows of a `LagHistory`."""
    for number in range(60):
        at = now - (60 - number) * DAY // 2
        yield at, random.choice((0, 0, 30, 500, 4000, 40_000, 100_000 if number < 20 else 900))


def save_picture(
    browser: Chrome, url: str, place: Path, width: int, scheme: str, height: int = HEIGHT_MAX
) -> None:
    """Save a picture of a page, at most so high."""
    set_colors(browser, scheme)
    set_size(browser, width)
    browser.get(url)
    time.sleep(0.5)  # events come, and what they change flashes
    page_height = int(browser.execute_script("return document.documentElement.scrollHeight"))
    set_size(browser, width, min(page_height, height))
    place.parent.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(place))


def take_all(browser: Chrome, url: str) -> None:
    for page, path in PAGES.items():
        place = TOP / "build/pictures" / f"{page}.png"
        save_picture(browser, url + path, place, 1280, "light")
        if page in DOCUMENTED:
            place = TOP / "docs/pictures" / f"{page}.png"
            save_picture(browser, url + path, place, 1200, "light", DOCUMENTED_HEIGHT)
        joined = "&" if "?" in path else "?"
        for width, scheme, language in ((360, "dark", "zh"), (768, "dark", "en")):
            place = TOP / "build/pictures" / f"{page}-{width}-{scheme}-{language}.png"
            save_picture(browser, f"{url}{path}{joined}lang={language}", place, width, scheme)


def main() -> None:
    """Make modules and mirrors in a temporary folder, and pictures of their pages."""
    random, now = Random(7), int(time.time())
    with tempfile.TemporaryDirectory() as name:
        root, trees = Path(name) / "server", Path(name) / "trees"
        root.mkdir()
        for history in HISTORIES:
            make_module(random, root, trees, history, now)
        make_mirrors(random, root, now)
        _, token = new_token(root, ["debian"], ["operator"], comment="office")
        headers = {"Authorization": f"Bearer {token}"}
        with serving(root) as (_, url), browsing() as browser:
            browser.execute_cdp_cmd("Network.enable", {})
            browser.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": headers})
            take_all(browser, url)


if __name__ == "__main__":
    main()
