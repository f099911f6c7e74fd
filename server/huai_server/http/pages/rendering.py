"""A page from its template: escaped, in the reader's language, with protective headers.

Rule: autoescape is on, and no template marks anything as safe; a path is printed by `show`, so that
no control character, broken byte or change of direction in a name reaches the page.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from urllib.parse import quote

from fastapi import Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from huai_program.humanize import human
from huai_program.words import ENGLISH, LANGUAGES, load_words
from huai_schema import __version__
from huai_schema.entries import Symlink
from huai_schema.paths import basename, show
from huai_server.http.asgi.accept import weights
from huai_server.http.asgi.conditions import respond

_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, the last that Python can print."""
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
    "live.js": "text/javascript; charset=utf-8",
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
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": "{:,}".format, "size": human, "path": show, "stamp": _stamp}
    environment.filters["last"] = basename
    environment.filters["span"] = _span
    environment.tests["link"] = lambda entry: isinstance(entry, Symlink)
    environment.globals["version"] = __version__
    environment.globals["languages"] = LANGUAGES
    return environment


class Page:
    """A request for a page: its language, and addresses relative to it."""

    def __init__(
        self, request: Request, client: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        """Addresses are relative, so that a proxy may serve the pages below any folder."""
        self.module: str | None = getattr(request.state, "module", None)
        """The module of the page, once the reader is known to be allowed to see it."""
        self.follows = "huai-follows" in request.headers
        """True if a page that receives events itself sent the request (`live.js`)."""
        self.client = client
        """The client's address for limits; empty if unknown."""
        self._request = request
        self._clock = clock
        language = request.query_params.get("lang")
        self._explicit = language if language in LANGUAGES else None
        tag = self._explicit or preferred_language(request.headers.get("accept-language"))
        self.words = load_words(__package__, tag)
        # The raw path: an escaped slash separates nothing for a browser either.
        self._place = request.scope["raw_path"].decode("latin-1").lstrip("/")
        self._base = "../" * (request.scope["raw_path"].count(b"/") - 1) or "./"

    def render(self, template: str, values: Mapping[str, object], status: int = 200) -> Response:
        """Return the page, or 304 if the client has the same already."""
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
            )
        )
        headers = {
            "Vary": "Accept-Language",
            "Content-Language": self.words.tag,
            **_GUARDS,
        }
        return respond(self._request, text, "text/html; charset=utf-8", headers, status)

    def address(self, *parts: str | bytes, **query: object) -> str:
        """Return the address of a place on this server, in the requested language."""
        place = "/".join(quote(part, safe="/" if isinstance(part, bytes) else "") for part in parts)
        language = {"lang": self._explicit} if self._explicit and "lang" not in query else {}
        query_text = "&".join(
            f"{key}={quote(value if isinstance(value, bytes) else str(value), safe='')}"
            for key, value in {**language, **query}.items()
        )
        return f"{self._base}{place}{'?' + query_text if query_text else ''}"

    def age(self, seconds: int) -> str:
        """Return how long ago a time was, in one unit, so that the page rarely changes."""
        past = max(0, int(self._clock()) - seconds)
        for size, text in (
            (86400, "{n} days ago"),
            (3600, "{n} h ago"),
            (60, "{n} min ago"),
        ):
            if past >= 2 * size:
                return self.words.translate(text, n=past // size)
        return self.words.translate("just now") if past < 60 else self.words.translate("1 min ago")

    def until(self, seconds: int) -> tuple[bool, str]:
        """Return True if a time has passed, and how long ago or ahead it is."""
        left = seconds - int(self._clock())
        if abs(left) < 60:
            return False, self.words.translate("next about now")
        if left < 0:
            return True, self.words.translate("overdue by {span}", span=_span(-left, least=60))
        return False, self.words.translate("next in {span}", span=_span(left, least=60))

    def _asset(self, name: str) -> str:
        return f"{self._base}pages/{name}?v={ASSETS[name].version}"


def preferred_language(header: str | None) -> str:
    """Return the language that an Accept-Language header prefers (RFC 9110, section 12.5.4)."""
    best, most = ENGLISH, 0.0
    for tag, weight in weights(header or ""):
        main = tag.partition("-")[0]
        if main in LANGUAGES and weight > most:
            best, most = main, weight
    return best


def _stamp(seconds: int) -> str:
    when = datetime.fromtimestamp(max(0, min(seconds, _LAST_SECOND)), UTC)
    return f"{when:%Y-%m-%d %H:%M}"


def _span(seconds: int, least: int = 1) -> str:
    """Format a duration in one unit, whose symbol is the same in all languages.

    `least`: the seconds of the smallest unit.
    """
    for unit, size in _UNITS:
        if seconds >= 2 * size or size == least:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
