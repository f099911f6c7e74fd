"""`/openapi.json`: what the framework knows of its routes, and what goes past it.

Rule: each status that an address may answer with is described, and no other; a test compares them
with what a server says.
"""

from typing import Any

from fastapi import FastAPI

from huai_server.http.content import description as content
from huai_server.http.events import description as events
from huai_server.http.events.app import PATH as EVENTS
from huai_server.http.git import description as git

_REF = "#/components/schemas/ErrorModel"
_ERROR = {"application/json": {"schema": {"$ref": _REF}}}
_ALWAYS = {
    400: "a token stands in the address, or the request is malformed",
    401: "the token is not valid; or there is no such module, or it needs one",
    405: "the address is for other methods",
    500: "metadata cannot be read; the server's log says why",
    503: "the server is busy",
}
"""What any address may answer with."""
_UNUSED = ("422",)
"""Every text is a value here, and whatever is none of an address is not found."""
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "a token for private modules"},
    "login": {"type": "http", "scheme": "basic", "description": "the same, as the password"},
}


class DescribedApi(FastAPI):
    """The framework's part, which describes all others as well."""

    def openapi(self) -> dict[str, Any]:
        """All addresses with what they answer."""
        if self.openapi_schema is None:
            found = super().openapi()
            found["paths"] |= {
                content.PATH: content.DESCRIPTION,
                EVENTS: events.DESCRIPTION,
                **git.DESCRIPTIONS,
            }
            for path, methods in found["paths"].items():
                for operation in methods.values():
                    _complete(path, operation)
            components = found["components"]
            components["securitySchemes"] = _SCHEMES
            for name in ("HTTPValidationError", "ValidationError"):
                components["schemas"].pop(name, None)
            self.openapi_schema = found
        return self.openapi_schema


def _complete(path: str, operation: dict[str, Any]) -> None:
    """Add what every address may say, and that a token may be shown."""
    said = operation["responses"]
    for unused in _UNUSED:
        said.pop(unused, None)
    body = {"text/plain": {"schema": {"type": "string"}}} if path.startswith("/git/") else _ERROR
    for status, words in _ALWAYS.items():
        said.setdefault(str(status), {"description": words, "content": body})
    operation["security"] = [{}, *({name: []} for name in _SCHEMES)]
