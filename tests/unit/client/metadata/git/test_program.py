"""git's output, as errors."""

import pytest

from huai_client.metadata.git.program import git_error
from huai_client.metadata.http import MetadataUrl, NotServedError, UpstreamDownError, UpstreamError
from huai_schema.errors import FormatError, MissingObjectError

URL = MetadataUrl("ssh://me:secret@host/m.git")


@pytest.mark.parametrize(
    ("printed", "kind"),
    [
        ("fatal: repository 'http://h/m.git/' not found", NotServedError),
        (
            "fatal: '/m' does not appear to be a git repository",
            UpstreamError,
        ),
        ("fatal: remote error: access denied or repository not exported: /m", UpstreamError),
        (
            "fatal: unable to access URL: The requested URL returned error: 503",
            UpstreamDownError,
        ),
        ("ssh: connect to host h port 22: Connection refused", UpstreamDownError),
        ("ssh: Could not resolve hostname h: Name or service not known", UpstreamDownError),
        ("fatal: early EOF\nfatal: fetch-pack: invalid index-pack output", UpstreamDownError),
        ("fatal: unable to look up h (port 9418)", UpstreamDownError),
        ("fatal: could not read Username for 'http://h': terminal prompts disabled", UpstreamError),
        ("git@h: Permission denied (publickey).", UpstreamError),
        ("fatal: pack has 1 unresolved deltas\nfatal: index-pack failed", MissingObjectError),
        ("fatal: Out of memory, malloc failed\nfatal: index-pack failed", FormatError),
        ("fatal: write error: No space left on device\nfatal: index-pack failed", OSError),
    ],
)
def test_what_it_means(printed: str, kind: type[Exception]) -> None:
    assert type(git_error(URL, 128, printed.encode())) is kind


def test_progress_and_the_password_are_left_out() -> None:
    printed = (
        f"remote: Counting objects: 50% (1/2)\rReceiving objects: 9% (1/9)\nfatal: no {URL.url}"
    )
    error = git_error(URL, 128, printed.encode())
    assert str(error) == "ssh://host/m.git: git says: fatal: no ssh://host/m.git"


def test_a_silent_end() -> None:
    assert "exit code 1" in str(git_error(URL, 1, b""))
