"""The destination of static files in server.toml and `--to`: a folder or a bucket."""

import re
from typing import NamedTuple

from huai_schema.errors import ExitCode, HuaiError

BUCKET = r"s3://[A-Za-z0-9][A-Za-z0-9._-]{1,62}(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._-]+)*/?"
"""The address of a bucket, with an optional prefix of its keys."""
_SCHEME = "s3://"
_BUCKET = re.compile(BUCKET)


class NoBucketError(HuaiError):
    """The address of a bucket is malformed, or the bucket does not exist."""

    exit_code = ExitCode.DESTINATION


class BucketAddress(NamedTuple):
    """A bucket, or the part of it below a prefix."""

    bucket: str
    prefix: str
    """The prefix of all keys, without slashes around it; empty for the whole bucket."""


def is_bucket(to: str) -> bool:
    """Return True if `to` has the scheme of a bucket."""
    return to.startswith(_SCHEME)


def parse_bucket(to: str) -> BucketAddress:
    """Parse the address of a bucket; raises `NoBucketError` if it is malformed."""
    if not _BUCKET.fullmatch(to):
        raise NoBucketError(
            f"{to}: not the address of a bucket", hint="write s3://BUCKET or s3://BUCKET/DIR"
        )
    bucket, _, prefix = to.removeprefix(_SCHEME).partition("/")
    return BucketAddress(bucket, prefix.rstrip("/"))
