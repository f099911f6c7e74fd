"""A page from its template: escaped, in the reader's language, with protective headers.

Rule: autoescape is on, and no template marks anything as safe; a path is printed by `show`, so that
no control character, broken byte or change of direction in a name reaches the page.
"""

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from urllib.parse import quote, urlsplit

from fastapi import Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from huai_program.humanize import human
from huai_program.words import ENGLISH, LANGUAGES, load_words
from huai_schema import __version__
from huai_schema.entries import Directory, Symlink
from huai_schema.paths import basename, show
from huai_server.http.asgi.accept import weights
from huai_server.http.asgi.conditions import respond
from huai_server.http.pages.state import Due

_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, the last that Python can print."""
_HOST = re.compile(r"[\w.-]{1,255}(:\d{1,5})?|\[[0-9a-fA-F:.]{2,45}\](:\d{1,5})?", re.ASCII)
_UNITS = (("d", 86400), ("h", 3600), ("min", 60))
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_GUARDS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_MEDIA_TYPES = {
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load."""

    content: bytes
    media_type: str
    version: str
    """A hash of the content, part of the address, so that an address never changes its content."""


def _asset(name: str, media_type: str) -> Asset:
    content = files(__package__).joinpath("assets", name).read_bytes()
    return Asset(content, media_type, sha256(content).hexdigest()[:12])


ASSETS = {name: _asset(name, media_type) for name, media_type in _MEDIA_TYPES.items()}


@cache
def _environment() -> Environment:
    """Return the templates' environment, with the filters, tests and globals that they use."""
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": "{:,}".format, "size": human, "path": show, "stamp": _stamp}
    environment.filters["last"] = basename
    environment.filters |= {"span": _span, "took": _took}
    environment.filters |= {"matches": _matches, "runs": _runs}
    environment.filters["host"] = lambda url: urlsplit(url).netloc
    # As a shell takes it; for a name that is not printable text, its display form.
    environment.filters["quoted"] = lambda name: shlex.quote(show(name))
    environment.tests["link"] = lambda entry: isinstance(entry, Symlink)
    environment.tests["folder"] = lambda entry: isinstance(entry, Directory)
    environment.globals["version"] = __version__
    environment.globals["languages"] = LANGUAGES
    return environment


class Page:
    """A request for a page: its language, and addresses relative to it."""

    def __init__(
        self, request: Request, client: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        """Addresses are relative, so that a proxy may serve the pages below any folder.

        `client` is the client's address; `clock` returns seconds since the epoch.
        """
        self.module: str | None = getattr(request.state, "module", None)
        """The module of the page, once the reader is known to be allowed to see it."""
        self.client = client
        """The client's address for limits; empty if unknown."""
        self.now = int(clock())
        """Seconds since the epoch."""
        self._request = request
        language = request.query_params.get("lang")
        self._explicit = language if language in LANGUAGES else None
        tag = self._explicit or preferred_language(request.headers.get("accept-language"))
        self.words = load_words(__package__, tag)
        # The raw path: an escaped slash separates nothing for a browser either.
        self._place = request.scope["raw_path"].decode("latin-1").lstrip("/")
        self._base = "../" * (request.scope["raw_path"].count(b"/") - 1) or "./"

    def render(
        self,
        template: str,
        values: Mapping[str, object],
        status: int = 200,
        media_type: str = "text/html",
    ) -> Response:
        """Return the page made from a template, or status 304 if the request names its ETag."""
        text = (
            _environment()
            .get_template(template)
            .render(
                values,
                _=self.words.translate,
                language=self.words.tag,
                to=self.address,
                asset=self._asset,
                module_of_page=self.module,
                place=self._place,
                query=dict(self._request.query_params),
                age=self.age,
                until=self.until,
                base=self._own_url(),
            )
        )
        headers = {
            "Vary": "Accept-Language",
            "Content-Language": self.words.tag,
            **_GUARDS,
        }
        return respond(self._request, text, f"{media_type}; charset=utf-8", headers, status)

    def address(self, *parts: str | bytes, **query: object) -> str:
        """Return the address of a place on this server, in the requested language."""
        place = "/".join(quote(part, safe="/" if isinstance(part, bytes) else "") for part in parts)
        language = {"lang": self._explicit} if self._explicit and "lang" not in query else {}
        query_text = "&".join(
            f"{key}={quote(value if isinstance(value, bytes) else str(value), safe='')}"
            for key, value in {**language, **query}.items()
        )
        return f"{self._base}{place}{'?' + query_text if query_text else ''}"

    def below(self, path: bytes) -> str:
        """Return the address of a path below the page's own address, in few bytes."""
        folder = self._place.rpartition("/")[2]
        start = f"./{folder}/" if ":" in folder else f"{folder}/" if folder else "./"
        language = f"?lang={self._explicit}" if self._explicit else ""
        return f"{start}{quote(path, safe='/')}{language}"

    def age(self, seconds: int) -> str:
        """Return how long ago `seconds` (since the epoch) was, translated, in one unit.

        One unit, so that the page rarely changes; "just now" for less than a minute, and for the
        future.
        """
        past = max(0, self.now - seconds)
        for size, text in (
            (86400, "{n} days ago"),
            (3600, "{n} h ago"),
            (60, "{n} min ago"),
        ):
            if past >= 2 * size:
                return self.words.translate(text, n=past // size)
        return self.words.translate("just now") if past < 60 else self.words.translate("1 min ago")

    def until(self, due: Due) -> tuple[bool, str]:
        """Return True if the next commit is late, and how long ago or ahead it is expected."""
        left = due.time - self.now
        if left >= 60:
            return False, self.words.translate("next in {span}", span=_span(left, least=60))
        if self.now < due.late + 60:
            return False, self.words.translate("next about now")
        return True, self.words.translate("overdue by {span}", span=_span(-left, least=60))

    def _own_url(self) -> str:
        """Return this server's URL as far as the request tells it; the script has the true one.

        A proxy may serve the pages by another scheme, or below a folder.
        """
        host = self._request.headers.get("host", "")
        return f"{self._request.url.scheme}://{host if _HOST.fullmatch(host) else 'SERVER'}"

    def _asset(self, name: str) -> str:
        return f"{self._base}pages/{name}?v={ASSETS[name].version}"


def preferred_language(header: str | None) -> str:
    """Return the known language that an Accept-Language header prefers; English without one.

    See RFC 9110, section 12.5.4.
    """
    best, most = ENGLISH, 0.0
    for tag, weight in weights(header or ""):
        main = tag.partition("-")[0]
        if main in LANGUAGES and weight > most:
            best, most = main, weight
    return best


def _stamp(seconds: int, form: str = "%Y-%m-%d %H:%M") -> str:
    return f"{datetime.fromtimestamp(max(0, min(seconds, _LAST_SECOND)), UTC):{form}}"


def _matches(text: str, needle: str) -> Iterator[tuple[str, bool]]:
    """Split a text at the places of `needle`, compared without case; True for these."""
    for place, part in enumerate(re.split(f"({re.escape(needle)})", text, flags=re.IGNORECASE)):
        yield part, place % 2 == 1


def _runs(rows: Sequence[Mapping[str, object]], key: str) -> list[tuple[object, list[object]]]:
    """Group rows that follow each other by the value of a key."""
    return [(value, [*run]) for value, run in groupby(rows, lambda row: row[key])]


def _span(seconds: int, least: int = 1) -> str:
    """Format a duration in one unit, whose symbol is the same in all languages.

    `least`: the seconds of the smallest unit.
    """
    for unit, size in _UNITS:
        if seconds >= 2 * size or size == least:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _took(seconds: float) -> str:
    """Format a measured time, with hundredths of a second below ten."""
    return f"{seconds:.2f} s" if seconds < 10 else _span(round(seconds))
