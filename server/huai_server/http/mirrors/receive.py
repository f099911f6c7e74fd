"""`POST /api/v1/modules/NAME/attestations`: a downstream attests what it holds.

Rules:

- Nothing is believed before the signature proves to be an allowed downstream's, and no 204 is sent
  before the attestation is on the disk.
- A request is limited in bytes and in seconds; one module is written by one request at a time.
"""

import asyncio
import logging
import re
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from fastapi import APIRouter, Request, Response

from huai_program.durations import seconds
from huai_schema.codec.attestation import BYTES_MAX, SIGNED_PATTERN, SignedAttestation
from huai_schema.errors import FormatError
from huai_server.http.access import Access
from huai_server.http.api import ErrorModel
from huai_server.http.asgi.body import BEGIN_SECONDS, Body
from huai_server.http.asgi.errors import ClientGoneError, HttpError
from huai_server.http.asgi.threads import in_thread
from huai_server.http.branch_cache import BranchCache
from huai_server.http.mirrors.known import NO_COMMITS
from huai_server.http.settings import Registry
from huai_server.mirrors.judge import Commits, RefusedError, check_attestation, next_holding
from huai_server.mirrors.record import holding_path, read_holding, write_holding

if TYPE_CHECKING:
    from huai_server.config.mirrors import Mirrors

_BODY = {
    "requestBody": {
        "required": True,
        "description": "an attestation (FORMAT.md): 400 if malformed; 403 without a valid "
        "signature of an allowed downstream; 409 if it is not true",
        "content": {
            "text/plain": {
                "schema": {"type": "string", "maxLength": BYTES_MAX, "pattern": SIGNED_PATTERN}
            }
        },
    }
}
_ANSWERS: dict[int | str, dict[str, object]] = {
    each: {"model": ErrorModel} for each in (400, 401, 403, 404, 408, 409, 413)
}
_FORM = re.compile(SIGNED_PATTERN.encode())
_log = logging.getLogger(__name__)


def router(registry: Registry, access: Access, commits: BranchCache[Commits]) -> APIRouter:
    """Return the route; modules and downstreams come from `registry`, which may change."""
    routes = APIRouter(prefix="/api/v1", tags=["mirrors"])
    turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @routes.post(
        "/modules/{name}/attestations",
        status_code=204,
        response_class=Response,
        responses=_ANSWERS,
        openapi_extra=_BODY,
    )
    async def attestations(name: str, request: Request) -> Response:
        """Accept a downstream's attestation: signed by an allowed key, fresh, and true."""
        repository = access.repository(request.scope, name)
        text = await _read_body(request)
        try:
            signed = SignedAttestation.decode(text)
        except FormatError as error:
            status = 403 if _FORM.match(text) else 400
            raise HttpError(status, error.message) from None
        mirrors = registry.served().mirrors
        downstream = mirrors.find_name(signed.key)
        if downstream is None:
            raise HttpError(
                403,
                "the signing key does not belong to an allowed downstream",
                hint="allowed_downstreams in the upstream's server.toml has the keys",
            )
        committed = await commits.get(repository) or NO_COMMITS
        received = _Received(name, downstream, signed, text)
        async with turns[name]:
            try:
                await in_thread(lambda: _store(received, mirrors, committed))
            except RefusedError as error:
                _log.warning("%s: attestation of %s: %s", name, downstream, error.message)
                status = 403 if error.forbidden else 409
                raise HttpError(status, error.message, hint=error.hint) from None
        return Response(status_code=204)

    return routes


class _Received(NamedTuple):
    module: str
    downstream: str
    signed: SignedAttestation
    text: bytes


def _store(received: _Received, mirrors: "Mirrors", committed: Commits) -> None:
    """Check an attestation, and write its record, durably; raises `RefusedError` to reject it."""
    now = int(time.time())
    allowed = mirrors.allowed[received.downstream]
    tolerance = seconds(mirrors.settings.clock_tolerance)
    check_attestation(received.signed, received.module, allowed, committed, now, tolerance)
    place = holding_path(mirrors.folder, received.module, received.downstream)
    before = read_holding(place, allowed.key)
    if before and before.attestation.time > now + tolerance:  # both clocks were wrong then
        before = None
    write_holding(place, next_holding(before, received.signed, received.text, committed, now))


async def _read_body(request: Request) -> bytes:
    """Read the body; raises status 413 if it is too long, 408 if late, 400 if incomplete."""
    body = Body(request.receive, b"", BYTES_MAX, BEGIN_SECONDS)
    try:
        await body.open()
    except ClientGoneError as error:
        raise HttpError(400, error.message) from None
    return body.head
