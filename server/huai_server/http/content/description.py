"""What `/openapi.json` says about content, which goes past the framework that describes others."""

from typing import Any

PATH = "/content/{name}/{path}"

_TEXT = {"type": "string"}
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorModel"}}}
_ANSWERS = {
    200: ("the file", _FILE),
    206: ("ranges of it; several as multipart/byteranges", _FILE),
    304: ("it is the version that the request names", None),
    403: ("the server may not read it", _ERROR),
    404: ("the newest commit names no such file", _ERROR),
    410: ("it was changed or removed since the newest commit", _ERROR),
    412: ("it is not the version that the request names", _ERROR),
    416: ("it has none of these ranges", _ERROR),
    503: ("too many are served at this moment", _ERROR),
}

DESCRIPTION: dict[str, Any] = {
    "get": {
        "tags": ["content"],
        "summary": "Content",
        "description": "A regular file of the newest commit, as long as it is what that says.",
        "operationId": "content",
        "parameters": [
            {"name": "name", "in": "path", "required": True, "schema": _TEXT},
            {
                "name": "path",
                "in": "path",
                "required": True,
                "schema": _TEXT,
                "description": "Its bytes, percent-encoded; slashes separate names.",
            },
            {"name": "range", "in": "header", "required": False, "schema": _TEXT},
        ],
        "responses": {
            str(status): {"description": words} | ({"content": content} if content else {})
            for status, (words, content) in _ANSWERS.items()
        },
    }
}
"""Of the path."""
