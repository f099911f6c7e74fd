"""Which modules an upstream has, as far as it is a huai server and says so (JSON.md, "HTTP").

What it says is for people: it is bounded, and made printable.
"""

import json
import re
from typing import Any, NamedTuple

from huai_client.config.mirror import Mirror
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.http import MetadataUrl, Question, UpstreamError, ask, is_http
from huai_program.configuration import closest
from huai_schema.errors import HuaiError

_LIST = "api/v1/modules"
_BYTES_MAX = 4 << 20
_PROBE_SECONDS = 5.0
_SHOWN = 12
_REPOSITORY = re.compile(r"/git/[^/]+\.git/?$")


class ServedModule(NamedTuple):
    """One module of an upstream; None: it does not say."""

    name: str
    serial: int | None
    entries: int | None
    bytes: int | None
    committed: int | None
    """Seconds since the epoch."""


def list_modules(url: MetadataUrl, *, timeout: float) -> list[ServedModule]:
    """The modules of the huai server at `url`, by name; `UpstreamError` if it does not say."""
    base = url._replace(url=_REPOSITORY.sub("", url.url.rstrip("/")))
    if not is_http(base.url):
        raise UpstreamError(
            f"{base}: only a huai server says what it has", hint="give its http:// address"
        )
    with ask(base, Question(_LIST), timeout=timeout) as answer:
        body = answer.whole(_BYTES_MAX)
    return decode_modules(body, str(base))


def decode_modules(body: bytes, place: str) -> list[ServedModule]:
    """Decode the answer of the server at `place`; `UpstreamError` for any other bytes."""
    try:
        return sorted(_one(each) for each in json.loads(body)["modules"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UpstreamError(
            f"{place}: this is not a huai server",
            hint="give its base address, without /git/NAME.git",
        ) from None


def offered(url: MetadataUrl, name: str, *, timeout: float = _PROBE_SECONDS) -> str:
    """What to do about an upstream that does not have `name`; asks it once."""
    try:
        names = [each.name for each in list_modules(url, timeout=timeout)]
    except HuaiError:
        return "look at the URL and the module's name"
    near = closest(name, names)
    if near.startswith("did you mean"):
        return f"{near}  (upstream_name in client.toml says what it is called there)"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"the upstream has {', '.join(names[:_SHOWN]) or 'no module yet'}{more}"


def url_warning(mirror: Mirror) -> str:
    """What is wrong with the first URL of a module, as one short question finds; empty: nothing."""
    from huai_client.metadata.http import NotServedError
    from huai_client.metadata.newest import find_newest

    url = MetadataUrl.of(mirror.config.urls[0], mirror.upstream_name, mirror.tls)
    try:
        find_newest(url, timeout=_PROBE_SECONDS)
    except NotServedError as error:
        hint = offered(url, mirror.upstream_name)
        return f"warning: {error.message}\n  {hint}"
    except HuaiError as error:
        return f"warning: {error.message}\n  {error.hint or 'sync asks again'}"
    return ""


def _one(value: dict[str, Any]) -> ServedModule:
    totals = value.get("totals") or {}
    return ServedModule(
        printable(str(value["name"])),
        _number(value.get("serial")),
        _number(totals.get("entries")),
        _number(totals.get("bytes")),
        _number(value.get("committed")),
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
