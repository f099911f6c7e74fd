"""Git, as the client starts it: found on PATH, for upstreams that have no static files.

Rules: no configuration but what is written here, no hook and no prompt, and no login on a command
line.  `process` bounds what it costs.  What git and the upstream print reaches the user as one
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
from huai_client.metadata.git.objects import MissingObjectError
from huai_client.metadata.git.process import BoundedProcess
from huai_client.metadata.http import (
    LOGIN_HINT,
    MetadataUrl,
    NotServedError,
    UpstreamDownError,
    UpstreamError,
    UpstreamTimeoutError,
    basic,
    is_http,
)
from huai_client.run.deadline import Deadline
from huai_program.urls import split_url
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import BRANCH

_NO_SUCH_REF = 2
"""Exit code of `git ls-remote --exit-code`."""
_OPTIONS = (
    ("core.bigFileThreshold", "64m"),  # larger ones are no objects of ours: never in memory
    ("core.hooksPath", "/dev/null"),
    ("credential.helper", ""),
    ("fetch.unpackLimit", "1"),  # the engine reads packs only
    ("fetch.writeCommitGraph", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("http.followRedirects", "false"),  # a login and a request go to the URL of client.toml alone
    ("pack.threads", "2"),
    ("pack.writeReverseIndex", "false"),
)
_SSH = ("HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT")
"""Variables of ours that concern ssh."""
_SSH_COMMAND = "ssh -o BatchMode=yes -o ConnectTimeout=30"
_READ_LOCAL = "git -c safe.directory='*' upload-pack"
"""Reads a repository on this machine whoever owns it, as git-upload-pack(1), SECURITY, allows."""
_PROGRESS = re.compile(r"\d% \(|: \d+, done|objects: \d|^remote: *$|^remote: Total ")
_URL_HINT = "look at the URL"
_FULL = re.compile("No space left on device|Disk quota exceeded")
_FAILURES: tuple[tuple[str, type[HuaiError], str], ...] = (
    (r"early EOF|hung up|unexpected disconnect", UpstreamDownError, "run again"),
    (r"did not send all necessary|unresolved deltas", MissingObjectError, ""),
    (r"[Oo]ut of memory|File too large|died of signal|index-pack", FormatError, ""),
    (r"Authentication failed|could not read (Username|Password)|error: 40[13]", UpstreamError,
     LOGIN_HINT),
    (r"error: 3\d\d", UpstreamError, "write the address that it redirects to into client.toml"),
    (r"repository '.*' not found", NotServedError, "look at the URL and the module's name"),
    (r"onnect|esolve|look ?up|timed out|error: 5\d\d", UpstreamDownError,
     "check that the upstream is running, and the URL"),
)  # fmt: skip
"""Words of git's, the error, and its hint; the first that fits counts."""


class GitMissingError(UpstreamError):
    """There is no git to run, and the upstream has no static files."""

    exit_code = ExitCode.REQUIREMENT


class GitProgram:
    """Git, for one upstream.

    Methods raise `UpstreamError`, `FormatError` or `TimeUpError`.  `timeout` (s) is for each pause
    in which nothing comes, and for a whole answer of a few bytes.
    """

    def __init__(self, metadata: MetadataUrl, *, timeout: float, deadline: Deadline) -> None:
        """Find the program: `GitMissingError`."""
        self._metadata = metadata
        self._timeout, self._deadline = timeout, deadline
        self._program = shutil.which("git") or ""
        if not self._program:
            raise GitMissingError(
                f"{metadata}: there are no static files, and git, which asks any other upstream, "
                "is not in PATH",
                hint="look at the URL and the module's name; for a git server install git",
            )

    def newest(self) -> str:
        """Return the hex id of the commit that the branch names."""
        url = self._metadata.address
        arguments = ("ls-remote", "--exit-code", *self._local(), "--", url, BRANCH)
        try:
            printed = self._run(arguments, {"GIT_DIR": "/nonexistent"})
        except OSError as error:  # nothing of ours is written
            raise UpstreamError(
                f"{self._metadata}: git failed: {error.strerror}", hint="run again"
            ) from error
        refs = (line.split("\t") for line in printed.decode("ascii", "replace").splitlines())
        found = next((commit for commit, *name in refs if name == [BRANCH]), "")
        if not re.fullmatch("[0-9a-f]{40}", found):
            raise FormatError(f"{printable(found)!r} is not a commit's id", str(self._metadata))
        return found

    def fetch(
        self, repository: Path, commit: str, borrowed: Collection[Path] = (), *, whole: bool = False
    ) -> None:
        """Bring `commit` into `repository`, without its history and without a ref.

        `borrowed`: repositories whose objects are there too.  `whole`: rely on nothing that is.
        """
        packs = repository / "objects" / "pack"
        before = _size_of(packs)
        arguments = (
            *("fetch", "--depth=1", "--no-tags", "--no-write-fetch-head", "--progress"),
            *(*self._local(), "--", self._metadata.address, commit),
        )
        objects = ":".join(str(each / "objects") for each in borrowed)
        variables = {"GIT_DIR": str(repository), "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        options = [("fetch.negotiationAlgorithm", "noop")] if whole else []
        self._run(arguments, variables, options, lambda: _size_of(packs) - before)

    def _local(self) -> list[str]:
        is_local = self._metadata.url.startswith(("/", "file:"))
        return [f"--upload-pack={_READ_LOCAL}"] if is_local else []

    def _run(
        self,
        arguments: Sequence[str],
        variables: dict[str, str],
        options: Sequence[tuple[str, str]] = (),
        received: Callable[[], int] = lambda: 0,
    ) -> bytes:
        """Return what it prints; `received` counts the bytes of packs that came."""
        environment = {**self._environment([*_OPTIONS, *options]), **variables}
        process = BoundedProcess([self._program, *arguments], environment)
        try:
            process.run(self._timeout, self._deadline, received)
        except TimeoutError as error:
            said = str(error) or "no answer in time"
            raise UpstreamTimeoutError(
                f"{self._metadata}: {said}", hint="try again later"
            ) from None
        except FormatError as error:
            raise error.within(str(self._metadata)) from None
        if process.code:
            raise git_error(self._metadata, process.code, process.errors)
        return process.output

    def _environment(self, options: Sequence[tuple[str, str]]) -> dict[str, str]:
        given = [*options, *(self._http_options() if is_http(self._metadata.url) else ())]
        found = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": "/nonexistent",  # no .netrc: what is in it comes as an option
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_COUNT": str(len(given)),
            "GIT_ALLOW_PROTOCOL": "http:https:ssh:git:file",
            "GIT_TERMINAL_PROMPT": "0",
        }
        for number, (key, value) in enumerate(given):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        if not is_http(self._metadata.url):
            found |= {name: os.environ[name] for name in _SSH if name in os.environ}
            if "GIT_SSH" not in found:
                found.setdefault("GIT_SSH_COMMAND", _SSH_COMMAND)
        return found

    def _http_options(self) -> Iterator[tuple[str, str]]:
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
            yield f"http.{metadata.address}.extraHeader", f"Authorization: {basic(login)}"


def git_error(metadata: MetadataUrl, code: int, printed: bytes) -> HuaiError | OSError:
    """Return the error for git's exit code and what it printed; pure.

    An `OSError` for a full disk.
    """
    if code == _NO_SUCH_REF:
        return NotServedError(
            f"{metadata}: nothing is committed there yet",
            hint="look at the URL, and run huai-server commit on the upstream",
        )
    text = printed.decode(errors="replace").replace(metadata.url, str(metadata))
    if _FULL.search(text):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = [line for line in re.split("[\r\n]+", text) if not _PROGRESS.search(line)]
    said = f"git says: {printable(' '.join(lines)) or f'exit code {code}'}"
    for words, kind, hint in _FAILURES:
        if not re.search(words, text):
            continue
        if issubclass(kind, FormatError):
            return kind(said, str(metadata))
        return kind(f"{metadata}: {said}", hint=hint)
    return UpstreamError(f"{metadata}: {said}", hint=_URL_HINT)


def _size_of(folder: Path) -> int:
    """Return the bytes of all files in `folder`, one of which may just go."""
    size = 0
    for entry in os.scandir(folder):
        with suppress(OSError):
            size += entry.stat().st_size
    return size
