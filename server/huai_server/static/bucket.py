"""A bucket of object storage that speaks S3's protocol (`Target`).

Order of writes: see `target`; an object is there as a whole or not at all, for good when the answer
has come, and is replaced as a whole.  A run that is killed leaves at most the parts of an upload,
which nobody sees.

Credentials and region come from the environment, as obstore takes them.  Rules: only this module
loads obstore.  A signal ends the wait for an answer: a thread of its own waits for it.
(Asynchronous calls of the library may abort a program that ends.)
"""

import os
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
from huai_server.config.place import BucketPlace, NoBucketError
from huai_server.static.s3_answers import is_refused, is_upload_gone, said

if TYPE_CHECKING:
    from obstore.store import S3Config

_TYPE = "application/octet-stream"
_FOREVER = "public, max-age=31536000, immutable"
_SECONDS = "public, max-age=10"
_PART = 8 << 20
"""Bytes: of 10,000 such parts a file may be made."""
_PARTS = 4
"""At a time."""
_REQUEST = 300
"""Seconds for a request, so that a slow line gets its parts through."""
_RETRIES = 5
_RETRY = timedelta(seconds=60)
_Result = TypeVar("_Result")


class BucketRefusedError(HuaiError):
    """Who asks may not do it."""

    exit_code = ExitCode.DESTINATION


class BucketDownError(HuaiError):
    """The bucket cannot be reached, or fails."""

    exit_code = ExitCode.NETWORK


class Bucket:
    """The static files of one module in it (`Target`)."""

    def __init__(self, place: BucketPlace, name: str, *, endpoint: str, drafts: Path) -> None:
        """Of the module `name`; no request is made yet.

        `endpoint` is the URL of a service, empty: as the environment says.  `drafts` is a folder of
        this machine where files are made.
        """
        self.drafts = drafts
        self._place = place
        # Not all services take lists of what to delete, and here it is one at a time.
        options: dict[str, Any] = {"timeout": f"{_REQUEST}s", "disable_bulk_delete": True}
        if endpoint:
            options["endpoint"] = endpoint
        named = endpoint or os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT", "")
        if named.lower().startswith("http://"):
            options["allow_http"] = True  # whoever writes http:// means it
        config: S3Config = cast("Any", options)  # its type leaves out what is of HTTP
        prefix = f"{place.prefix}/git/{name}.git".lstrip("/")
        with self._failures():
            self._store = S3Store(
                place.bucket,
                prefix=prefix,
                config=config,
                retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY},
            )

    def begin(self) -> None:
        """As `Target` says."""
        self.drafts.mkdir(exist_ok=True)
        for path in self.drafts.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def read(self, name: str, limit: int) -> bytes | None:
        """As `Target` says."""
        with suppress(FileNotFoundError):
            return self._run(lambda: self._beginning(name, limit))
        return None

    def put(self, name: str, path: Path) -> None:
        """As `Target` says."""
        self._write(name, path, _FOREVER)

    def replace(self, name: str, content: bytes) -> None:
        """As `Target` says."""
        self._write(name, content, _SECONDS)

    def names(self, folder: str) -> dict[str, float]:
        """As `Target` says."""
        with self._present():
            found = self._run(lambda: obstore.list(self._store, folder).collect())
        return {each["path"]: each["last_modified"].timestamp() for each in found}

    def remove(self, name: str) -> None:
        """As `Target` says."""
        with suppress(FileNotFoundError):
            self._run(lambda: obstore.delete(self._store, name))

    def _write(self, name: str, content: Path | bytes, caching: str) -> None:
        attributes = {"Content-Type": _TYPE, "Cache-Control": caching}
        with self._present():
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
        found = bytearray()
        for data in obstore.get(self._store, name).stream():
            found += memoryview(data)[: limit - len(found)]
            if len(found) >= limit:
                break
        return bytes(found)

    def _run(self, call: Callable[[], _Result]) -> _Result:
        """What comes of a call; `FileNotFoundError`: there is no such object, or no such bucket."""
        result: Future[_Result] = Future()
        Thread(target=_fulfil, args=(result, call), daemon=True).start()
        with self._failures():
            return result.result()

    @contextmanager
    def _present(self) -> Iterator[None]:
        """What needs no object, but a bucket."""
        try:
            yield
        except FileNotFoundError as error:
            if is_upload_gone(error):
                raise self._down(error) from error
            raise NoBucketError(
                f"{self}: there is no such bucket", hint="make it, or name another one"
            ) from error

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._refused(error) from error
        except (BaseError, ValueError) as error:
            if is_refused(error):
                raise self._refused(error) from error
            raise self._down(error) from error

    def _refused(self, error: Exception) -> BucketRefusedError:
        return BucketRefusedError(
            f"{self}: {said(error)}",
            hint="look at the credentials in the environment (AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY), which must be allowed to read, write, list and delete, and at "
            "the quota of the bucket",
        )

    def _down(self, error: Exception) -> BucketDownError:
        return BucketDownError(
            f"{self}: {said(error)}",
            hint="what was published before is still there; look at endpoint in server.toml "
            "and AWS_REGION, or try again later",
        )

    def __str__(self) -> str:
        return f"s3://{self._place.bucket}/{self._place.prefix}".rstrip("/")


def _fulfil(result: Future[_Result], call: Callable[[], _Result]) -> None:
    try:
        result.set_result(call())
    except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
        result.set_exception(error)
