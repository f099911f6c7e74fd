"""Where static files go, as server.toml and `--to` say it: into a folder, or into a bucket."""

import re
from typing import NamedTuple

from huai_schema.errors import ExitCode, HuaiError

BUCKET = r"s3://[A-Za-z0-9][A-Za-z0-9._-]{1,62}(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._-]+)*/?"
"""A bucket, and perhaps a prefix of the names in it."""
_SCHEME = "s3://"
_BUCKET = re.compile(BUCKET)


class NoBucketError(HuaiError):
    """What is no address of a bucket, or there is no such bucket."""

    exit_code = ExitCode.DESTINATION


class BucketPlace(NamedTuple):
    """A part of a bucket."""

    bucket: str
    prefix: str
    """What all names in it begin with, without slashes around it; empty: all of the bucket."""


def is_bucket(to: str) -> bool:
    """Whether it is meant to be a bucket."""
    return to.startswith(_SCHEME)


def bucket_place(to: str) -> BucketPlace:
    """The bucket that is meant; `NoBucketError` if it is none."""
    if not _BUCKET.fullmatch(to):
        raise NoBucketError(
            f"{to}: that is not a bucket", hint="write s3://BUCKET or s3://BUCKET/DIR"
        )
    bucket, _, prefix = to.removeprefix(_SCHEME).partition("/")
    return BucketPlace(bucket, prefix.rstrip("/"))
