"""A bucket of object storage with the S3 protocol (`Target`).

Order of writes: see `target`; an object is stored as a whole or not at all, durably once the
response has come, and is replaced as a whole.  A killed run leaves at most the parts of an upload,
which no client sees.

Credentials and region come from the environment, as obstore reads them.  Rules: only this module
loads obstore.  A separate thread waits for each response, so that a signal ends the wait.
(Asynchronous calls of the library may abort a program that ends.)
"""

import html
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from huai_program.packs import TEMPORARY
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import show
from huai_server.config.place import BucketAddress, NoBucketError

if TYPE_CHECKING:
    from obstore.store import S3Config

_TYPE = "application/octet-stream"
_FOREVER = "public, max-age=31536000, immutable"
_SECONDS = "public, max-age=10"
_PART = 8 << 20
"""Bytes; a file may have 10,000 such parts."""
_PARTS = 4
"""Parts sent at a time."""
_REQUEST = 300
"""Seconds for a request, enough for a part on a slow line."""
_RETRIES = 5
_RETRY = timedelta(seconds=60)
_READ = 4096
"""Characters; a response may have any length."""
_STATUS = re.compile(r"status code: (\d{3}[^:\n]*)")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_LOGIN = re.compile(r"//[^/@\s]*@")
_SHOWN = 300
_Result = TypeVar("_Result")


class BucketRefusedError(HuaiError):
    """The bucket refuses the credentials."""

    exit_code = ExitCode.DESTINATION


class BucketDownError(HuaiError):
    """The bucket cannot be reached, or fails."""

    exit_code = ExitCode.NETWORK


class Bucket:
    """The static files of one module in a bucket (`Target`).

    Requests raise `BucketRefusedError` or `BucketDownError`; those that write or list raise
    `NoBucketError` if the bucket is missing.
    """

    def __init__(self, place: BucketAddress, name: str, *, endpoint: str, drafts: Path) -> None:
        """Open the folder of the module `name`; sends no request.

        `endpoint` is the URL of a service; if empty, the environment decides.  `drafts` is a local
        folder where files are made.
        """
        self.drafts = drafts
        self._place = place
        # Not all services delete lists of objects, and here one at a time is enough.
        options: dict[str, Any] = {"timeout": f"{_REQUEST}s", "disable_bulk_delete": True}
        if endpoint:
            options["endpoint"] = endpoint
        service = (
            endpoint or os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT", "")
        )
        if service.lower().startswith("http://"):
            options["allow_http"] = True  # an http:// URL is explicit enough
        config: S3Config = cast("Any", options)  # its type lacks the HTTP options
        prefix = f"{place.prefix}/git/{name}.git".lstrip("/")
        with self._bucket_errors():
            self._store = S3Store(
                place.bucket,
                prefix=prefix,
                config=config,
                retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY},
            )

    def begin(self) -> None:
        """Make the folder of drafts, and remove the drafts of a killed run."""
        self.drafts.mkdir(exist_ok=True)
        for path in self.drafts.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the first `limit` bytes of an object; None if it or the bucket is missing."""
        with suppress(FileNotFoundError):
            return self._run(lambda: self._beginning(name, limit))
        return None

    def add(self, name: str, path: Path) -> None:
        """Upload a file that never changes, so that caches may keep it."""
        self._write(name, path, _FOREVER)

    def replace(self, name: str, content: bytes) -> None:
        """Upload a file that changes, such as the head; caches may keep it for 10 s."""
        self._write(name, content, _SECONDS)

    def names(self, folder: str) -> dict[str, float]:
        """Return the names of the objects below a folder, with times in seconds since the epoch."""
        with self._requiring_bucket():
            listed = self._run(lambda: obstore.list(self._store, folder).collect())
        return {each["path"]: each["last_modified"].timestamp() for each in listed}

    def remove(self, name: str) -> None:
        """Delete an object, if it exists."""
        with suppress(FileNotFoundError):
            self._run(lambda: obstore.delete(self._store, name))

    def _write(self, name: str, content: Path | bytes, caching: str) -> None:
        """Store an object; `caching` is its Cache-Control.

        Raises `NoBucketError`, `BucketRefusedError` or `BucketDownError`.
        """
        attributes = {"Content-Type": _TYPE, "Cache-Control": caching}
        with self._requiring_bucket():
            self._run(
                lambda: obstore.put(
                    self._store,
                    name,
                    content,
                    attributes=attributes,
                    chunk_size=_PART,
                    max_concurrency=_PARTS,
                )
            )

    def _beginning(self, name: str, limit: int) -> bytes:
        """Return the first `limit` bytes of an object; raises obstore's errors."""
        data = bytearray()
        for chunk in obstore.get(self._store, name).stream():
            data += memoryview(chunk)[: limit - len(data)]
            if len(data) >= limit:
                break
        return bytes(data)

    def _run(self, call: Callable[[], _Result]) -> _Result:
        """Call `call` in a thread, and return its result.

        Raises `FileNotFoundError` if the object or the bucket is missing, `BucketRefusedError` or
        `BucketDownError` for other failures.
        """
        result: Future[_Result] = Future()
        Thread(target=_fulfil, args=(result, call), daemon=True).start()
        with self._bucket_errors():
            return result.result()

    @contextmanager
    def _requiring_bucket(self) -> Iterator[None]:
        """Convert `FileNotFoundError` to `NoBucketError` for a call that needs no object."""
        try:
            yield
        except FileNotFoundError as error:
            if _is_upload_gone(error):
                raise self._down(error) from error
            raise NoBucketError(
                f"{self}: the bucket does not exist", hint="create it, or name another one"
            ) from error

    @contextmanager
    def _bucket_errors(self) -> Iterator[None]:
        """Convert errors of the block to `BucketRefusedError` or `BucketDownError`."""
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._refused(error) from error
        except (BaseError, ValueError) as error:
            if _is_refused(error):
                raise self._refused(error) from error
            raise self._down(error) from error

    def _refused(self, error: Exception) -> BucketRefusedError:
        return BucketRefusedError(
            f"{self}: {_describe_failure(error)}",
            hint="check the credentials in the environment (AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY), which must be allowed to read, write, list and delete, and "
            "the quota of the bucket",
        )

    def _down(self, error: Exception) -> BucketDownError:
        return BucketDownError(
            f"{self}: {_describe_failure(error)}",
            hint="what was published before is still there; check endpoint in server.toml "
            "and AWS_REGION, or try again later",
        )

    def __str__(self) -> str:
        return f"s3://{self._place.bucket}/{self._place.prefix}".rstrip("/")


def _fulfil(result: Future[_Result], call: Callable[[], _Result]) -> None:
    """Set the result of `call`, or its error."""
    try:
        result.set_result(call())
    except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
        result.set_exception(error)


def _is_refused(error: Exception) -> bool:
    """True if the credentials are refused; obstore has no own error for that in listings."""
    return _find_text(_STATUS, error).startswith(("401", "403"))


def _is_upload_gone(error: Exception) -> bool:
    """True if the service has discarded the parts of an upload."""
    return _find_text(_CODE, error) == "NoSuchUpload"


def _describe_failure(error: Exception) -> str:
    """Return status, code and message, or else the first line: as one line, without any login."""
    parts = [_find_text(each, error) for each in (_STATUS, _CODE, _MESSAGE)]
    text = ": ".join(filter(None, parts)) if parts[1] else _text_of(error).partition("\n")[0]
    line = " ".join(html.unescape(text).split())
    return show(_LOGIN.sub("//", line).encode())[:_SHOWN]


def _find_text(pattern: re.Pattern[str], error: Exception) -> str:
    """Return the first group of `pattern` in the text of an error; empty without a match."""
    match = pattern.search(_text_of(error))
    return match[1].strip() if match else ""


def _text_of(error: Exception) -> str:
    return str(error)[:_READ]
