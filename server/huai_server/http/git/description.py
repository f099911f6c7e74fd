"""The part of `/openapi.json` about git's addresses, which bypass the framework."""

from typing import Any

_REPOSITORY = "/git/{name}.git"
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_BYTES: dict[str, Any] = {"type": "string", "format": "binary"}
_HEX = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_ERROR = {"text/plain": {"schema": {"type": "string"}}}
_SERVICE = "git-upload-pack"
_REFUSALS = {403: "git may only read here", 404: "there is nothing at this address"}


def _digest(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _HEX}


def _answers(media_type: str, **more: str) -> dict[str, Any]:
    """Describe a successful response and refusals; `more` has further ones by `s` and status."""
    responses: dict[str, Any] = {
        "200": {"description": "the file or refs", "content": {media_type: {"schema": _BYTES}}}
    }
    for status, words in {
        **_REFUSALS,
        **{int(key[1:]): text for key, text in more.items()},
    }.items():
        responses[str(status)] = {"description": words}
        if status != 304:
            responses[str(status)]["content"] = _ERROR
    return responses


def _file(summary: str, name: str, parameters: list[dict[str, Any]], **more: str) -> dict[str, Any]:
    return {
        "get": {
            "tags": ["git"],
            "summary": summary,
            "operationId": name,
            "parameters": [_NAME, *parameters],
            "responses": _answers("application/octet-stream", **more),
        }
    }


_BUSY = "too many are being served"
DESCRIPTIONS: dict[str, Any] = {
    f"{_REPOSITORY}/info/refs": {
        "get": {
            "tags": ["git"],
            "summary": "The newest commit (gitprotocol-http)",
            "operationId": "refs",
            "parameters": [
                _NAME,
                {
                    "name": "service",
                    "in": "query",
                    "required": True,
                    "schema": {"type": "string", "enum": [_SERVICE]},
                },
            ],
            "responses": _answers(f"application/x-{_SERVICE}-advertisement", s503=_BUSY),
        }
    },
    f"{_REPOSITORY}/{_SERVICE}": {
        "post": {
            "tags": ["git"],
            "summary": "A fetch (gitprotocol-http)",
            "operationId": "fetch",
            "parameters": [_NAME],
            "requestBody": {
                "required": True,
                "content": {f"application/x-{_SERVICE}-request": {"schema": _BYTES}},
            },
            "responses": _answers(
                f"application/x-{_SERVICE}-result",
                s400="it is not a request of git",
                s408="it did not arrive in time",
                s413="it is too large",
                s415="it is of another type or encoding",
                s503=_BUSY,
            ),
        }
    },
    f"{_REPOSITORY}/static/head": _file(
        "The newest head (FORMAT.md, Static transport)", "head", [], s304="it is unchanged"
    ),
    f"{_REPOSITORY}/static/packs/{{digest}}.pack": _file(
        "A pack that the head names", "pack", [_digest("digest")]
    ),
    f"{_REPOSITORY}/static/lists/{{digest}}": _file(
        "A list that the head names", "list", [_digest("digest")]
    ),
    f"{_REPOSITORY}/blocks/{{start}}/{{digest}}": _file(
        "The block index of a file (FORMAT.md)",
        "blocks",
        [
            {
                "name": "start",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": "^[0-9a-f]{2}$"},
                "description": "The first two digits of the digest.",
            },
            _digest("digest"),
        ],
    ),
}
"""The operations, by path."""
