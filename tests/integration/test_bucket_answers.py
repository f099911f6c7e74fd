"""Errors of a service that refuses, with answers that no server of the tests gives at will.

They were recorded from Garage 2.5.0.
"""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from huai_server.config.place import NoBucketError, parse_bucket
from huai_server.static.bucket import Bucket, BucketDownError, BucketRefusedError
from tests.support.answering import QuietHandler, answering
from tests.support.buckets import CREDENTIALS

QUOTA = (
    403,
    "AccessDenied",
    "Forbidden: Bucket size quota is reached, maximum total size of objects for this bucket: 1024.",
)
Answer = tuple[int, str, str]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


def service(answers: dict[str, Answer]) -> AbstractContextManager[str]:
    """Serve failures by method, and success for all others; yield the address.

    `COMPLETE` is the POST that ends an upload.
    """

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            completing = self.command == "POST" and "uploadId=" in self.path
            status, code, message = answers.get(
                "COMPLETE" if completing else self.command, (200, "", "")
            )
            text = f"<Code>{code}</Code><Message>{message}</Message>"
            root = "Error" if code else "InitiateMultipartUploadResult"
            text = text if code else "<UploadId>1</UploadId>"
            body = f'<?xml version="1.0"?>\n<{root}>{text}</{root}>'.encode()
            self.send_response(status)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = _answer

    return answering(Handler)


def target(endpoint: str, folder: Path) -> Bucket:
    return Bucket(parse_bucket("s3://mirror/huai"), "tools", endpoint=endpoint, drafts=folder)


def fail_to_write(folder: Path, answer: Answer) -> BucketRefusedError:
    with service({"PUT": answer}) as endpoint, pytest.raises(BucketRefusedError) as failed:
        target(endpoint, folder).replace("static/head", b"x")
    return failed.value


def test_a_quota_is_reported_in_the_words_of_the_service(tmp_path: Path) -> None:
    """Without the words of the library, which filled the line."""
    error = fail_to_write(tmp_path, QUOTA)
    assert error.message == f"s3://mirror/huai: 403 Forbidden: AccessDenied: {QUOTA[2]}"
    assert "quota" in error.hint


def test_an_answer_cannot_steer_the_terminal(tmp_path: Path) -> None:
    error = fail_to_write(tmp_path, (403, "X", "a\x1b[2J &#10; b"))
    assert error.message == "s3://mirror/huai: 403 Forbidden: X: a\\x1b[2J b"


def test_a_key_that_may_not_list_is_refused(tmp_path: Path) -> None:
    """It was taken for a failure in passing."""
    refused = (403, "AccessDenied", "Forbidden: Operation is not allowed for this key.")
    with service({"GET": refused}) as endpoint, pytest.raises(BucketRefusedError) as failed:
        target(endpoint, tmp_path).names("static")
    assert failed.value.exit_code == ExitCode.DESTINATION
    assert "Operation is not allowed for this key." in failed.value.message


def test_a_missing_upload_is_not_a_missing_bucket(tmp_path: Path) -> None:
    """Garage ends one that would not fit, and the library shows only that it is gone."""
    missing = (404, "NoSuchUpload", "Upload not found")
    (tmp_path / "draft").write_bytes(os.urandom(9 << 20))
    with (
        service({"COMPLETE": QUOTA, "DELETE": missing}) as endpoint,
        pytest.raises(BucketDownError) as failed,
    ):
        target(endpoint, tmp_path).add("static/packs/x", tmp_path / "draft")
    assert failed.value.message == "s3://mirror/huai: 404 Not Found: NoSuchUpload: Upload not found"


def test_a_missing_bucket(tmp_path: Path) -> None:
    missing = (404, "NoSuchBucket", "Bucket not found: mirror")
    with (
        service({"PUT": missing}) as endpoint,
        pytest.raises(NoBucketError, match="the bucket does not exist"),
    ):
        target(endpoint, tmp_path).replace("static/head", b"x")


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
def test_an_endpoint_of_the_environment_may_be_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with service({}) as url:
        monkeypatch.setenv(name, url)
        target("", tmp_path).replace("static/head", b"1")
