"""The program git, found on PATH, for upstreams that have no static files.

Rules: no configuration but the options here, no hook and no prompt, and no login on a command
line.  `process` limits its cost.  The output of git and the upstream reaches the user as one
printable line.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from huai_client.config.proxies import proxy_for
from huai_client.config.tls import check_key
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.git.process import BoundedProcess
from huai_client.metadata.http import (
    LOGIN_HINT,
    MetadataUrl,
    NotServedError,
    UpstreamDownError,
    UpstreamError,
    UpstreamTimeoutError,
    basic_auth,
    is_http,
)
from huai_client.run.options import Deadline
from huai_program.git import git_environment
from huai_program.urls import split_url
from huai_schema.errors import ExitCode, FormatError, HuaiError, MissingObjectError
from huai_schema.git.objects import BRANCH

_NO_SUCH_REF = 2
"""Exit code of `git ls-remote --exit-code`."""
_OPTIONS = (
    ("core.bigFileThreshold", "64m"),  # larger files are not metadata: keep them out of memory
    ("core.hooksPath", "/dev/null"),
    ("credential.helper", ""),
    ("fetch.unpackLimit", "1"),  # the engine reads packs only
    ("fetch.writeCommitGraph", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("http.followRedirects", "false"),  # login and request go to the URL of client.toml alone
    ("pack.threads", "2"),
    ("pack.writeReverseIndex", "false"),
)
_SSH = ("HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT")
"""Environment variables for ssh that are passed on."""
_SSH_COMMAND = "ssh -o BatchMode=yes -o ConnectTimeout=30"
_READ_LOCAL = "git -c safe.directory='*' upload-pack"
"""Reads a local repository of any owner, as git-upload-pack(1), SECURITY, allows."""
_PROGRESS = re.compile(r"\d% \(|: \d+, done|objects: \d|^remote: *$|^remote: Total ")
_URL_HINT = "check the URL"
_FULL = re.compile("No space left on device|Disk quota exceeded")
_FAILURES: tuple[tuple[str, type[HuaiError], str], ...] = (
    (r"early EOF|hung up|unexpected disconnect", UpstreamDownError, "run again"),
    (r"did not send all necessary|unresolved deltas", MissingObjectError, ""),
    (r"[Oo]ut of memory|File too large|died of signal|index-pack", FormatError, ""),
    (r"Authentication failed|could not read (Username|Password)|error: 40[13]", UpstreamError,
     LOGIN_HINT),
    (r"error: 3\d\d", UpstreamError, "write the address that it redirects to into client.toml"),
    (r"repository '.*' not found", NotServedError, "check the URL and the module's name"),
    (r"onnect|esolve|look ?up|timed out|error: 5\d\d", UpstreamDownError,
     "check that the upstream is running, and the URL"),
)  # fmt: skip
"""A pattern of git's output, the error, and its hint; the first match counts."""


class GitMissingError(UpstreamError):
    """Git is not installed, and the upstream has no static files."""

    exit_code = ExitCode.REQUIREMENT


class GitProgram:
    """The program git for one upstream.

    Methods raise `UpstreamError`, `FormatError` or `TimeUpError`.  `timeout` (s) limits each pause
    without data, and a whole response of a few bytes.
    """

    def __init__(self, metadata: MetadataUrl, *, timeout: float, deadline: Deadline) -> None:
        """Find the program; raises `GitMissingError` if it is not installed."""
        self._metadata = metadata
        self._timeout, self._deadline = timeout, deadline
        self._program = shutil.which("git") or ""
        if not self._program:
            raise GitMissingError(
                f"{metadata}: there are no static files, and git, which any other upstream needs, "
                "is not in PATH",
                hint="check the URL and the module's name; for a git server install git",
            )

    def newest(self) -> str:
        """Return the hex id of the branch's newest commit, by `git ls-remote`.

        Raises `NotServedError` without such a branch.
        """
        url = self._metadata.address
        arguments = ("ls-remote", "--exit-code", *self._local(), "--", url, BRANCH)
        try:
            printed = self._run(arguments, {"GIT_DIR": "/nonexistent"})
        except OSError as error:  # nothing of ours is written
            raise UpstreamError(
                f"{self._metadata}: git failed: {error.strerror}", hint="run again"
            ) from error
        if not printed:  # git ignores that its output could not be written
            raise UpstreamError(f"{self._metadata}: git printed nothing", hint="run again")
        refs = (line.split("\t") for line in printed.decode("ascii", "replace").splitlines())
        commit_id = next((commit for commit, *name in refs if name == [BRANCH]), "")
        if not re.fullmatch("[0-9a-f]{40}", commit_id):
            raise FormatError(f"{printable(commit_id)!r} is not a commit's id", str(self._metadata))
        return commit_id

    def fetch(
        self, repository: Path, commit: str, borrowed: Collection[Path] = (), *, refetch: bool
    ) -> None:
        """Fetch `commit` into `repository`, without its history and without a ref.

        `borrowed` are repositories whose objects are used too.  `refetch`: use no local objects.
        Its packs stay after a failure.  Raises `OSError` for a full disk.
        """
        packs = repository / "objects" / "pack"
        before = _size_of(packs)
        arguments = (
            *("fetch", "--depth=1", "--no-tags", "--no-write-fetch-head", "--progress"),
            *(*self._local(), "--", self._metadata.address, commit),
        )
        objects = ":".join(str(each / "objects") for each in borrowed)
        variables = {"GIT_DIR": str(repository), "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        options = [("fetch.negotiationAlgorithm", "noop")] if refetch else []
        self._run(arguments, variables, options, lambda: _size_of(packs) - before)

    def _local(self) -> list[str]:
        """Return the option to read a local repository of any owner; none for another URL."""
        is_local = self._metadata.url.startswith(("/", "file:"))
        return [f"--upload-pack={_READ_LOCAL}"] if is_local else []

    def _run(
        self,
        arguments: Sequence[str],
        variables: dict[str, str],
        options: Sequence[tuple[str, str]] = (),
        received: Callable[[], int] = lambda: 0,
    ) -> bytes:
        """Run git with `variables` and configuration `options`; return its output.

        Raises `git_error` if it fails, `UpstreamTimeoutError` if it is too slow, `FormatError` for
        too much output, `TimeUpError` at the deadline.  `received` counts the bytes of packs so
        far.
        """
        environment = {**self._environment([*_OPTIONS, *options]), **variables}
        process = BoundedProcess([self._program, *arguments], environment)
        try:
            process.run(self._timeout, self._deadline, received)
        except TimeoutError as error:
            reason = str(error) or "no response in time"
            raise UpstreamTimeoutError(
                f"{self._metadata}: {reason}", hint="try again later"
            ) from None
        except FormatError as error:
            raise error.within(str(self._metadata)) from None
        if process.code:
            raise git_error(self._metadata, process.code, process.errors)
        return process.output

    def _environment(self, options: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return git's environment, with `options` (and `_http_options`) as its configuration."""
        settings = (*options, *(self._http_options() if is_http(self._metadata.url) else ()))
        variables = git_environment(settings, protocols="http:https:ssh:git:file")
        if not is_http(self._metadata.url):
            variables |= {name: os.environ[name] for name in _SSH if name in os.environ}
            if "GIT_SSH" not in variables:
                variables.setdefault("GIT_SSH_COMMAND", _SSH_COMMAND)
        return variables

    def _http_options(self) -> Iterator[tuple[str, str]]:
        """Yield git's options for proxy, certificates and login; raises as `check_key`."""
        metadata = self._metadata
        proxy, files = proxy_for(split_url(metadata.url)), metadata.tls.at(metadata.url)
        check_key(files)
        yield "http.proxy", proxy.url.geturl() if proxy else ""
        if authorities := files.ca or os.environ.get("SSL_CERT_FILE"):
            yield "http.sslCAInfo", authorities
        if files.certificate:
            yield "http.sslCert", files.certificate
            yield "http.sslKey", files.key
        if login := metadata.login:
            yield f"http.{metadata.address}.extraHeader", f"Authorization: {basic_auth(login)}"


def git_error(metadata: MetadataUrl, code: int, printed: bytes) -> HuaiError | OSError:
    """Return the error for git's exit code and output; for a full disk it is an `OSError`."""
    if code == _NO_SUCH_REF:
        return NotServedError(
            f"{metadata}: nothing is committed there yet",
            hint="check the URL, and run huai-server commit on the upstream",
        )
    text = printed.decode(errors="replace").replace(metadata.url, str(metadata))
    if _FULL.search(text):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = [line for line in re.split("[\r\n]+", text) if not _PROGRESS.search(line)]
    message = f"git says: {printable(' '.join(lines)) or f'exit code {code}'}"
    for words, kind, hint in _FAILURES:
        if not re.search(words, text):
            continue
        if issubclass(kind, FormatError):
            return kind(message, str(metadata))
        return kind(f"{metadata}: {message}", hint=hint)
    return UpstreamError(f"{metadata}: {message}", hint=_URL_HINT)


def _size_of(folder: Path) -> int:
    """Return the bytes of all files in `folder`, one of which may be removed meanwhile."""
    size = 0
    for entry in os.scandir(folder):
        with suppress(OSError):
            size += entry.stat().st_size
    return size
