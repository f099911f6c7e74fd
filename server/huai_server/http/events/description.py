"""What `/openapi.json` says about events, which go past the framework that describes others."""

from typing import Any

_TEXT = {"type": "string"}
_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorModel"}}}
_ANSWERS = {
    200: ("server-sent events, until somebody hangs up", {"text/event-stream": {"schema": _TEXT}}),
    414: ("too many modules are named", _ERROR),
    503: ("too many are connected at this moment", _ERROR),
}

DESCRIPTION: dict[str, Any] = {
    "get": {
        "tags": ["modules"],
        "summary": "Events",
        "description": "An event `commit` for the newest commit of each module, and then for each "
        "new one: an object of module, serial, commit, tree and time. A comment at least every 15 "
        "seconds.",
        "operationId": "events",
        "parameters": [
            {
                "name": "module",
                "in": "query",
                "required": False,
                "schema": {"type": "array", "items": _TEXT},
                "description": "Of these alone; all if there is none.",
            },
            {
                "name": "last-event-id",
                "in": "header",
                "required": False,
                "schema": _TEXT,
                "description": "The newest commits that came after this event, not all.",
            },
        ],
        "responses": {
            str(status): {"description": words, "content": content}
            for status, (words, content) in _ANSWERS.items()
        },
    }
}
"""Of the path."""
