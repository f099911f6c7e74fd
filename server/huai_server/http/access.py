"""Access control: which modules a request may see.

A private module needs a token for it, or a client certificate that server.toml names.

A missing module and one that the client may not see get the same response: 401 without a token,
because git sends its own only after that status, and 404 with a valid one.  A browser would ask its
user for a login at each mistyped address, so the login's own address alone makes it ask.

Rules:

- What a request may see is decided here.  `Served.modules`, which other code reads, has public
  modules only: code that forgets to ask here shows too little, never too much.
- A request without a token costs nothing extra: a poll of a public module looks up no private one.
- `Credentials` keep a token as text, never show it and check it again at each use, so that a
  revoked one ends there.
"""

import asyncio
import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from huai_server.config.tables import Listen
from huai_server.http.asgi.accept import prefers_html
from huai_server.http.asgi.connection import EXTENSION
from huai_server.http.asgi.connections import address_of, client_address
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Send
from huai_server.http.settings import Registry
from huai_server.state.tokens import Scope, token_form

_KEY = "huai.credentials"
"""The key of the `Credentials` in the scope of a request, if it sends any."""
_HEADER_BYTES = 1024
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="huai", charset="UTF-8"'}
_SILENT_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="huai"'}
"""Browsers do not ask their users for a bearer token: they show the page."""
_IN_QUERY = re.compile(rb"huai_[0-9a-f]{12}_|(?:^|&)(?:access_|private_)?token=")
_SEEN = re.compile(r"huai_[0-9a-f]{12}_[\w.~%+-]*|(?<=token=)[^&\s]+")
_PART = re.compile(r"[^/?&\s]+")
_FAILURES, _FAILURES_EACH, _PENALTY_SECONDS = 64, 4, 1.0
"""Wrong tokens checked at once, in all and from one address; each response waits so long."""


class Credentials:
    """The token and the certificate names that a client has shown; empty without any."""

    __slots__ = ("_names", "_token")

    def __init__(self, token: str = "", names: frozenset[str] = frozenset()) -> None:
        self._token = token
        self._names = names

    def has(self, registry: Registry, scope: Scope) -> bool:
        """True if the token is valid now, for a scope."""
        grant = registry.grant(self._token) if self._token else None
        return grant is not None and scope in grant.scopes

    def sees(self, registry: Registry, scope: Scope) -> Mapping[str, Path]:
        """Map each private module that these credentials open now for a scope to its repository."""
        grant, served = registry.grant(self._token) if self._token else None, registry.served()
        opened = set(grant.modules) if grant and scope in grant.scopes else set()
        if self._names:
            certificates = served.certificates.items()
            opened |= {name for name, names in certificates if not names.isdisjoint(self._names)}
        return {name: at for name, at in served.private.items() if name in opened}


_ANONYMOUS = Credentials()


class Access:
    """The access control of one server's requests."""

    def __init__(self, settings: Listen, registry: Registry) -> None:
        self._registry = registry
        self._address_of = address_of(settings.proxies)
        self._failures = Limiter(_FAILURES, 0, 0, per_address=_FAILURES_EACH)

    def client(self, scope: Mapping[str, Any]) -> str:
        """Return the client's address for limits, from the ASGI `scope`; empty if it is unknown."""
        return client_address(scope, self._address_of)

    async def admit(self, scope: dict[str, Any], send: Send) -> Send:
        """Check the credentials of a request, keep them in `scope`, and return the `send` to use.

        With credentials it keeps the response out of shared caches.  Raises `HttpError` for a token
        that is not valid (after a pause), or is part of the address.
        """
        query = scope["query_string"]
        if query and _IN_QUERY.search(unquote_to_bytes(query)):
            raise HttpError(
                400,
                "a token must not be in an address: addresses are logged",
                hint="revoke it; send another one in a header, Authorization: Bearer TOKEN",
            )
        token = ""
        for name, value in scope["headers"]:
            if name == b"authorization":
                # Another kind of login is for a server in front.
                token = _token_of(value) or ""
                await self._reject_invalid(scope, token)
                break
        names = self._certificate_names(scope) if scope["scheme"] == "https" else frozenset[str]()
        if not token and not names:
            return send
        scope[_KEY] = Credentials(token, names)
        return _private_send(send)

    async def _reject_invalid(self, scope: dict[str, Any], token: str) -> None:
        """Raise status 401 after a pause for a token that is not valid."""
        if token and self._registry.grant(token) is None:
            async with self._failures.slot(self.client(scope)):
                await asyncio.sleep(_PENALTY_SECONDS)
            raise HttpError(
                401,
                "the token is not valid",
                hint="it may have expired or been revoked: ask the upstream for another one",
                headers=_CHALLENGE,
            )

    def _certificate_names(self, scope: dict[str, Any]) -> frozenset[str]:
        """Return those names of the client's certificate that open a module; may be empty."""
        certificates = self._registry.served().certificates
        # Without our own TLS a proxy says the scheme, and client certificates are its own.
        connection = scope["extensions"].get(EXTENSION) if certificates else None
        if connection is None:
            return frozenset()
        names: frozenset[str] = connection.certificate_names()
        return names & frozenset().union(*certificates.values())

    def modules(self, scope: Mapping[str, Any], purpose: Scope = "read") -> Mapping[str, Path]:
        """Map the name of each module that the request may see to its repository.

        That is each public one, and each private one that its credentials open for `purpose`.
        """
        credentials = credentials_of(scope)
        return self.seen_by(credentials, purpose)

    def seen_by(self, credentials: Credentials, purpose: Scope = "read") -> Mapping[str, Path]:
        """Map each module that `credentials` may see now for a `purpose` to its repository."""
        public = self._registry.served().modules
        if credentials is _ANONYMOUS:
            return public
        return {**public, **credentials.sees(self._registry, purpose)}

    def repository(self, scope: Mapping[str, Any], name: str) -> Path:
        """Return the repository of a module; raises 401 or 404 unless the client may see it."""
        repository = self._registry.served().modules.get(name)
        if repository is None and _KEY in scope:
            repository = credentials_of(scope).sees(self._registry, "read").get(name)
        if repository is None:
            raise self.unknown(scope)
        return repository

    def unknown(self, scope: Mapping[str, Any]) -> HttpError:
        """Return the error for a missing or hidden module: 401 if a token may help, else 404."""
        if _KEY not in scope and self._registry.served().private:
            silent = prefers_html(scope["headers"])
            return _unauthorized(_SILENT_CHALLENGE if silent else _CHALLENGE)
        return HttpError(404, "no such module", hint="see /api/v1/modules for their names")

    def check_operator(self, scope: Mapping[str, Any]) -> None:
        """Raise status 401, so that a browser asks for a token, unless it sent an operator's."""
        if not credentials_of(scope).has(self._registry, "operator"):
            raise HttpError(
                401,
                "this page needs a token of an operator",
                hint="huai-server token new NAME --scope operator makes one",
                headers=_CHALLENGE,
            )

    def check_login(self, scope: Mapping[str, Any]) -> None:
        """Raise status 401, so that a browser asks for a token, unless one was sent.

        Raises nothing if no module is private.
        """
        if _KEY not in scope and self._registry.served().private:
            raise _unauthorized(_CHALLENGE)


def _unauthorized(challenge: Mapping[str, str]) -> HttpError:
    """Return status 401 with the header `challenge`, for a module missing, hidden or private."""
    return HttpError(
        401,
        "the module does not exist, or it needs a token",
        hint="send it in a header: Authorization: Bearer TOKEN, or as the password",
        headers=challenge,
    )


def credentials_of(scope: Mapping[str, Any]) -> Credentials:
    """Return the credentials that `admit` found in a request, empty ones without any."""
    credentials = scope.get(_KEY, _ANONYMOUS)
    assert isinstance(credentials, Credentials)  # noqa: S101 - the type of what `admit` put there
    return credentials


def is_anonymous(scope: Mapping[str, Any]) -> bool:
    """True if a request has neither a token nor a certificate that opens a private module."""
    return _KEY not in scope


def without_tokens(text: str) -> str:
    """Return `text` with its tokens masked for a log, percent-encoded ones too."""
    if "%" in text:
        text = _PART.sub(_without_encoded, text)
    return _SEEN.sub("***", text) if "huai_" in text or "token=" in text else text


def _without_encoded(part: re.Match[str]) -> str:
    """Return `***` for a part with a percent-encoded token, any other part as it was."""
    return "***" if "%" in part[0] and _SEEN.search(unquote(part[0])) else part[0]


def _token_of(header: bytes) -> str | None:
    """Parse an Authorization header to its token: a bearer's, or the password of a login.

    None for another kind, or a text without the form of a token.
    """
    kind, _, value = header[:_HEADER_BYTES].decode("latin-1").strip().partition(" ")
    token = value.strip()
    if kind.lower() == "basic":
        try:
            token = b64decode(token, validate=True).decode("latin-1").partition(":")[2]
        except ValueError:  # for characters beyond ASCII too
            return None
    elif kind.lower() != "bearer":
        return None
    return token if token_form(token) else None


def _private_send(send: Send) -> Send:
    """Return a `send` that marks the response as private, so that shared caches do not store it."""

    async def sending(message: Any) -> None:
        """Send a message, whose response no shared cache may keep."""
        if message["type"] == "http.response.start":
            other_headers = [
                each for each in message.get("headers", ()) if each[0] != b"cache-control"
            ]
            control = b", ".join(v for k, v in message.get("headers", ()) if k == b"cache-control")
            words = [word for word in control.split(b", ") if word not in {b"", b"public"}]
            words = words if b"private" in words else [b"private", *words]
            more = [(b"cache-control", b", ".join(words)), (b"vary", b"Authorization")]
            message = {**message, "headers": [*other_headers, *more]}
        await send(message)

    return sending
