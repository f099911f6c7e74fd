"""The modules that an upstream serves, if it is a huai server (JSON.md, "HTTP API").

The list is for people: it is limited, and made printable.
"""

import json
from typing import Any, NamedTuple

import msgspec

from huai_client.config.mirror import Mirror
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.http import (
    ListedUrl,
    MetadataUrl,
    NotServedError,
    Request,
    UpstreamError,
    is_http,
    metadata_urls,
    send,
    server_and_module,
)
from huai_program.configuration import closest
from huai_schema.errors import HuaiError

_LIST = "api/v1/modules"
_BYTES_MAX = 4 << 20
_PROBE_SECONDS = 5.0
_SHOWN = 12


class ServedModule(NamedTuple):
    """A module of an upstream; None for a value that the upstream does not report."""

    name: str
    serial: int | None
    entries: int | None
    bytes: int | None
    committed: int | None
    """Seconds since the epoch."""


def list_modules(url: MetadataUrl, *, timeout: float) -> list[ServedModule]:
    """Request the modules of the huai server of `url`, its own or a repository's; sorted by name.

    `timeout`: see `send`.  Raises `UpstreamError` without a list.
    """
    base = msgspec.structs.replace(url, url=server_and_module(url.url, "")[0])
    if not is_http(base.url):
        raise UpstreamError(
            f"{base}: only a huai server lists its modules", hint="give its http:// address"
        )
    try:
        with send(base, Request(_LIST), timeout=timeout) as response:
            body = response.read_all(_BYTES_MAX)
    except NotServedError as error:
        raise NotServedError(
            f"{base} has no list of modules: static files have none",
            hint="add a module by its name: huai-client add --help",
        ) from error
    return decode_modules(body, str(base))


def decode_modules(body: bytes, place: str) -> list[ServedModule]:
    """Decode the response of the server at `place`, sorted; raises `UpstreamError` if malformed."""
    try:
        return sorted(_decode_module(item) for item in json.loads(body)["modules"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UpstreamError(
            f"{place}: this is not a huai server",
            hint="give its base address, without /git/NAME.git",
        ) from None


def suggest_module(url: MetadataUrl, name: str) -> str:
    """Return a hint about an upstream without `name`, after one request, which may fail."""
    try:
        names = [each.name for each in list_modules(url, timeout=_PROBE_SECONDS)]
    except HuaiError:
        return "check the URL and the module's name"
    near = closest(name, names)
    if near.startswith("did you mean"):
        return f"{near}  (set upstream_name in client.toml to the upstream's name)"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"the upstream has {', '.join(names[:_SHOWN]) or 'no module yet'}{more}"


def check_first_url(mirror: Mirror) -> tuple[str, str]:
    """Return how the first URL of a module is listed if it has no metadata, and a warning.

    Both are texts for people, and may be empty; takes requests of a few seconds.
    """
    from huai_client.metadata.newest import find_newest

    url = metadata_urls(mirror)[0]
    try:
        if isinstance(url, ListedUrl):
            from huai_client.metadata.source.fetch import describe_listing

            return describe_listing(url, _PROBE_SECONDS).text, ""
        find_newest(url, timeout=_PROBE_SECONDS)
    except NotServedError as error:
        is_listed = isinstance(url, ListedUrl)
        hint = error.hint if is_listed else suggest_module(url, mirror.upstream_name)
        return "", f"warning: {error.message}\n  {hint}"
    except HuaiError as error:
        return "", f"warning: {error.message}\n  {error.hint or 'sync tries again'}"
    return "", ""


def _decode_module(value: dict[str, Any]) -> ServedModule:
    """Decode an element of the list; raises `LookupError` or `TypeError` if it is malformed."""
    totals = value.get("totals") or {}
    return ServedModule(
        printable(str(value["name"])),
        _number(value.get("serial")),
        _number(totals.get("entries")),
        _number(totals.get("bytes")),
        _number(value.get("committed")),
    )


def _number(value: object) -> int | None:
    """Return an integer of a JSON document; None for another type."""
    return value if isinstance(value, int) else None
