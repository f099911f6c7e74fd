"""The output of `huai-server token` about tokens."""

import time
from datetime import UTC, datetime

from huai_server.state.tokens import Token


def token_values(token: Token) -> dict[str, object]:
    """Return a token for JSON, without its secret."""
    return {
        "id": token.id,
        "modules": list(token.modules),
        "scopes": list(token.scopes),
        "created": token.created,
        "expires": token.expires,
        "expired": not token.holds(time.time()),
        "comment": token.comment,
    }


def token_line(token: Token) -> str:
    """Return a token as a line for people."""
    ends = "does not expire"
    if token.expires is not None:
        day = datetime.fromtimestamp(token.expires, UTC)
        ends = f"{'until' if token.holds(time.time()) else 'EXPIRED'} {day:%Y-%m-%d %H:%M} UTC"
    parts = [token.id, ",".join(token.modules), ",".join(token.scopes), ends, token.comment]
    return "  ".join(part for part in parts if part)
