"""The language of a page: the available one that its reader prefers."""

from huai_program.words import ENGLISH, LANGUAGES
from huai_server.http.asgi.accept import weights


def preferred(header: str | None) -> str:
    """Return the language that an Accept-Language header prefers (RFC 9110, section 12.5.4)."""
    best, most = ENGLISH, 0.0
    for tag, weight in weights(header or ""):
        main = tag.partition("-")[0]
        if main in LANGUAGES and weight > most:
            best, most = main, weight
    return best
