"""Who sees which module: public ones everybody, private ones whoever may.

A token for a module opens it, or a client certificate that server.toml names.

A name that does not exist and one that the asker may not see get the same answer: 401 without a
token, as git sends its own only when it is asked for it, and 404 with a valid one.  A browser would
ask its user for a login at each mistyped address; it is asked at the address of the login only.

Rules:

- What a request may see comes from here.  `Registry.modules` alone, which others read, has the
  public modules only: a place that forgets to ask shows too little, never too much.
- Whoever shows no token pays for none of this: a poll of a public module looks up no private one.
- A token is kept as text in an `Asker`, which shows it to nobody, and asked about again each time:
  one that is revoked ends here.
"""

import asyncio
import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from huai_server.http.asgi.accept import prefers_html
from huai_server.http.asgi.connection import EXTENSION
from huai_server.http.asgi.connections import address_of, client_address
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Send
from huai_server.http.settings import Registry, ServeSettings
from huai_server.state.tokens import Scope, token_form

_KEY = "huai.asker"
"""Where the scope of a request has its `Asker`, if it shows a token."""
_HEADER_BYTES = 1024
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="huai", charset="UTF-8"'}
_SILENT_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="huai"'}
"""No browser asks its user for a bearer token: the page is shown."""
_IN_QUERY = re.compile(rb"huai_[0-9a-f]{12}_|(?:^|&)(?:access_|private_)?token=")
_SEEN = re.compile(r"huai_[0-9a-f]{12}_[\w.~%+-]*|(?<=token=)[^&\s]+")
_PART = re.compile(r"[^/?&\s]+")
_FAILURES, _FAILURES_EACH, _PENALTY_SECONDS = 64, 4, 1.0
"""Wrong tokens at a time, altogether and of one address; each is answered after so long."""


class Asker:
    """Who asks: whoever has this token, and a certificate of these names."""

    __slots__ = ("_names", "_token")

    def __init__(self, token: str = "", names: frozenset[str] = frozenset()) -> None:
        """Empty: anybody."""
        self._token = token
        self._names = names

    def sees(self, registry: Registry, scope: Scope) -> Mapping[str, Path]:
        """The private modules that these open at this moment, for this purpose."""
        found = registry.grant(self._token) if self._token else None
        opened = set(found.modules) if found and scope in found.scopes else set()
        if self._names:
            named = registry.certificates().items()
            opened |= {name for name, names in named if not names.isdisjoint(self._names)}
        return {name: at for name, at in registry.private().items() if name in opened}


_ANYBODY = Asker()


class Access:
    """Judges the requests of one server."""

    def __init__(self, settings: ServeSettings, registry: Registry) -> None:
        """Modules and tokens come from `registry`, which may change at any time."""
        self._registry = registry
        self._address_of = address_of(settings.proxies)
        self._failures = Limiter(_FAILURES, 0, 0, each=_FAILURES_EACH)

    def client(self, scope: Mapping[str, Any]) -> str:
        """Return the client's address for limits; empty if it is unknown."""
        return client_address(scope, self._address_of)

    async def admit(self, scope: dict[str, Any], send: Send) -> Send:
        """Look at what a request shows; returns what its answer is to be sent by.

        Raises `HttpError` for a token that is not valid, or that stands in the address.
        """
        query = scope["query_string"]
        if query and _IN_QUERY.search(unquote_to_bytes(query)):
            raise HttpError(
                400,
                "a token does not belong into an address, which logs keep",
                hint="revoke it; send another one in a header, Authorization: Bearer TOKEN",
            )
        token = ""
        for name, value in scope["headers"]:
            if name == b"authorization":
                # Another login is for a server in front.
                token = _token_of(value) or ""
                await self._judge(scope, token)
                break
        names = self._certified(scope) if scope["scheme"] == "https" else frozenset[str]()
        if not token and not names:
            return send
        scope[_KEY] = Asker(token, names)
        return _private(send)

    async def _judge(self, scope: dict[str, Any], token: str) -> None:
        if token and self._registry.grant(token) is None:
            async with self._failures.slot(self.client(scope)):
                await asyncio.sleep(_PENALTY_SECONDS)
            raise HttpError(
                401,
                "the token is not valid",
                hint="it may have expired, or been revoked: ask the upstream for another one",
                headers=_CHALLENGE,
            )

    def _certified(self, scope: dict[str, Any]) -> frozenset[str]:
        """The names of the client's certificate, as far as they open anything."""
        wanted = self._registry.certificates()
        # Without our own TLS the scheme is what a proxy says, and nobody's certificate is here.
        connection = scope["extensions"].get(EXTENSION) if wanted else None
        if connection is None:
            return frozenset()
        names: frozenset[str] = connection.certificate_names()
        return names & frozenset().union(*wanted.values())

    def modules(self, scope: Mapping[str, Any], purpose: Scope = "read") -> Mapping[str, Path]:
        """Name of each module that the request may see to its repository."""
        asker = asker_of(scope)
        return self.seen_by(asker, purpose)

    def seen_by(self, asker: Asker, purpose: Scope = "read") -> Mapping[str, Path]:
        """The same, for who stays connected."""
        public = self._registry.modules()
        if asker is _ANYBODY:
            return public
        return {**public, **asker.sees(self._registry, purpose)}

    def repository(self, scope: Mapping[str, Any], name: str) -> Path:
        """Where the repository of a module is; `HttpError` if there is none for who asks."""
        found = self._registry.modules().get(name)
        if found is None and _KEY in scope:
            found = asker_of(scope).sees(self._registry, "read").get(name)
        if found is None:
            raise self.unknown(scope)
        return found

    def unknown(self, scope: Mapping[str, Any]) -> HttpError:
        """What is said of a module that is not there, or not for who asks."""
        if _KEY not in scope and self._registry.private():
            silent = prefers_html(scope["headers"])
            return _unauthorized(_SILENT_CHALLENGE if silent else _CHALLENGE)
        return HttpError(404, "no such module", hint="see /api/v1/modules for their names")

    def check_login(self, scope: Mapping[str, Any]) -> None:
        """Raise an `HttpError` that makes a browser ask for a token, unless one was sent."""
        if _KEY not in scope and self._registry.private():
            raise _unauthorized(_CHALLENGE)


def _unauthorized(challenge: Mapping[str, str]) -> HttpError:
    return HttpError(
        401,
        "no such module, or one that asks for a token",
        hint="send it in a header: Authorization: Bearer TOKEN, or as the password",
        headers=challenge,
    )


def asker_of(scope: Mapping[str, Any]) -> Asker:
    """Who sent a request."""
    found = scope.get(_KEY, _ANYBODY)
    assert isinstance(found, Asker)  # noqa: S101 - the type of what `admit` put there
    return found


def is_anybody(scope: Mapping[str, Any]) -> bool:
    """Whether a request shows nothing that opens a private module."""
    return _KEY not in scope


def without_tokens(text: str) -> str:
    """Return a text for a log, in which no token can be read, percent-encoded or not."""
    if "%" in text:
        text = _PART.sub(_without_encoded, text)
    return _SEEN.sub("***", text) if "huai_" in text or "token=" in text else text


def _without_encoded(part: re.Match[str]) -> str:
    return "***" if "%" in part[0] and _SEEN.search(unquote(part[0])) else part[0]


def _token_of(header: bytes) -> str | None:
    """The token in an Authorization header: a bearer's, or the password of a login."""
    kind, _, value = header[:_HEADER_BYTES].decode("latin-1").strip().partition(" ")
    token = value.strip()
    if kind.lower() == "basic":
        try:
            token = b64decode(token, validate=True).decode("latin-1").partition(":")[2]
        except ValueError:  # of characters beyond ASCII as well
            return None
    elif kind.lower() != "bearer":
        return None
    return token if token_form(token) else None


def _private(send: Send) -> Send:
    """Let no cache that others share keep the answer."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            kept = [each for each in message.get("headers", ()) if each[0] != b"cache-control"]
            said = b", ".join(v for k, v in message.get("headers", ()) if k == b"cache-control")
            words = [word for word in said.split(b", ") if word not in {b"", b"public"}]
            words = words if b"private" in words else [b"private", *words]
            more = [(b"cache-control", b", ".join(words)), (b"vary", b"Authorization")]
            message = {**message, "headers": [*kept, *more]}
        await send(message)

    return sending
