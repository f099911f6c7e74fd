"""The preferences of a request: the lists of its Accept headers (RFC 9110, section 12.5).

Pure.
"""

from collections.abc import Iterable, Iterator

_HEADER_LENGTH = 256
"""Longer text is not such a list: a header may hold anything."""
_HTML, _JSON = "text/html", "application/json"


def weights(header: str) -> Iterator[tuple[str, float]]:
    """Parse an Accept header to its values, in lower case and in its order, with weights (q).

    A value without a weight has 1, one with a malformed weight 0.  Only 256 characters are read.
    """
    for part in header[:_HEADER_LENGTH].split(","):
        value, *parameters = part.split(";")
        yield value.strip().lower(), _weight(parameters)


def _weight(parameters: Iterable[str]) -> float:
    """Parse parameters to the weight q: 1 if it is missing, 0 if it is malformed."""
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def prefers_html(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """True if the Accept headers weigh HTML above JSON, as those of browsers do."""
    accepted = {_HTML: 0.0, _JSON: 0.0}
    for name, value in headers:
        if name == b"accept":
            for media_type, weight in weights(value.decode("latin-1")):
                if media_type in accepted:
                    accepted[media_type] = max(accepted[media_type], weight)
    return accepted[_HTML] > accepted[_JSON]
