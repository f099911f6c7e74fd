"""Asking the upstream for its newest commit: one small request, answered from its memory.

Any git server that speaks the smart HTTP protocol will do (git's own documentation:
gitprotocol-http); the plain advertisement of version 0 is what every one of them can send.
Other transports are left to `store`.
"""

import http.client
import re
import urllib.error
import urllib.request
from typing import NamedTuple

from huai_schema.errors import ExitCode, HuaiError

BRANCH = "refs/heads/main"
_ANSWER_BYTES = 1 << 20
_TIMEOUT_SECONDS = 30.0
_REF = re.compile(rb"^([0-9a-f]{40}) ([^\0\n]+)")


class UpstreamError(HuaiError):
    """The upstream cannot be asked, or its answer is none."""

    exit_code = ExitCode.NETWORK


class UpstreamSilentError(UpstreamError):
    """The upstream does not answer in time."""

    exit_code = ExitCode.TIMEOUT


class NotServedError(UpstreamError):
    """The upstream is there, and has no such module or no commit of it."""

    exit_code = ExitCode.UNKNOWN_MODULE


class MetadataUrl(NamedTuple):
    """Where a module's metadata repository is."""

    url: str

    @classmethod
    def of(cls, url: str, module: str) -> "MetadataUrl":
        """The repository itself, or the base address of a huai server that has `module`."""
        if not is_http(url) or url.rstrip("/").endswith(".git"):
            return cls(url)
        return cls(f"{url.rstrip('/')}/git/{module}.git")


def is_http(url: str) -> bool:
    """Whether `newest_commit` can ask there."""
    return url.startswith(("http://", "https://"))


def newest_commit(metadata: MetadataUrl) -> str:
    """The hex id of the commit that the branch points to; `UpstreamError` if there is none."""
    url = f"{metadata.url.rstrip('/')}/info/refs?service=git-upload-pack"
    request = urllib.request.Request(url, headers={"User-Agent": "huai-client"})  # noqa: S310 - is_http
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
            body = answer.read(_ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        if error.code in (http.client.NOT_FOUND, http.client.GONE):
            raise NotServedError(
                f"{metadata.url}: the upstream has no such module",
                hint="look at the URL and the module's name",
            ) from error
        raise UpstreamError(f"{metadata.url}: HTTP {error.code} {error.reason}") from error
    except TimeoutError as error:
        raise UpstreamSilentError(
            f"{metadata.url}: no answer within {_TIMEOUT_SECONDS:.0f} s", hint="run again later"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            raise UpstreamSilentError(f"{metadata.url}: {reason}") from error
        raise UpstreamError(
            f"{metadata.url}: {reason}", hint="is the upstream running, and the URL right?"
        ) from error
    return _branch(body, metadata.url)


def _branch(body: bytes, url: str) -> str:
    """Find the branch in an advertisement of refs."""
    lines = list(_packets(body))
    if not lines or not lines[0].startswith(b"# service=git-upload-pack"):
        raise UpstreamError(
            f"{url}: this is no git repository served over HTTP", hint="look at the URL"
        )
    for line in lines[1:]:
        found = _REF.match(line)
        if found and found[2] == BRANCH.encode():
            return found[1].decode()
    raise NotServedError(
        f"{url}: nothing is committed there yet", hint="run huai-server commit on the upstream"
    )


def _packets(body: bytes) -> list[bytes]:
    """The payloads of a sequence of pkt-lines; ends quietly where they stop making sense."""
    found = []
    position = 0
    while position + 4 <= len(body):
        try:
            size = int(body[position : position + 4], 16)
        except ValueError:
            break
        found.append(body[position + 4 : position + size])
        position += max(size, 4)
    return found
