"""What libgit2 does for the client: URLs that are not HTTP, and packing anew.

The only module of the client that knows pygit2.  It takes as long to load as many a sync takes in
all, so a sync over HTTP does without it.
"""

from collections.abc import Iterable
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError


class LibraryError(HuaiError):
    """Libgit2 does not start: it wants certificates, even where no connection is made."""

    exit_code = ExitCode.REQUIREMENT


try:
    import pygit2
    from pygit2.enums import Option
except ImportError:
    raise
except Exception as failure:  # its class stands in what cannot be imported
    raise LibraryError(
        f"libgit2 does not start: {failure}",
        hint="install the certificates of the system (ca-certificates), or correct SSL_CERT_FILE",
    ) from failure

FAILURES = (pygit2.GitError, KeyError, ValueError, OSError)
"""What pygit2 raises, depending on libgit2's code."""
_CONNECT_SECONDS = 60


class Library:
    """The bare repository at `path`, opened; each method may raise one of `FAILURES`."""

    def __init__(self, path: Path, timeout: int) -> None:
        """`timeout`: seconds without any data after which a fetch fails."""
        # The state root protects these files, whoever owns them.  Ids are verified when objects
        # arrive; what decays on the disk later fails zlib's own checksum.
        pygit2.option(Option.SET_OWNER_VALIDATION, False)
        pygit2.option(Option.ENABLE_STRICT_HASH_VERIFICATION, False)
        pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
        pygit2.option(Option.SET_SERVER_CONNECT_TIMEOUT, _CONNECT_SECONDS * 1000)
        pygit2.option(Option.SET_SERVER_TIMEOUT, timeout * 1000)
        self._git = pygit2.Repository(str(path))

    def remote_refs(self, url: str) -> dict[str, str]:
        """The refs at `url`, and the hex ids they name."""
        remote = self._git.remotes.create_anonymous(url)
        return {str(head.name): str(head.oid) for head in remote.list_heads()}

    def fetch(self, url: str, refspec: str) -> None:
        """Bring what `refspec` says."""
        remote = self._git.remotes.create_anonymous(url)
        remote.fetch([refspec], callbacks=_Interruptible())

    def write_pack(self, folder: Path, commits: Iterable[str]) -> None:
        """Write one pack, into `folder`, of all that `commits` (hex ids) hold."""
        builder = pygit2.PackBuilder(self._git)
        for commit in commits:
            builder.add_recur(pygit2.Oid(hex=commit))
        builder.write(str(folder))


class _Interruptible(pygit2.RemoteCallbacks):
    """Lets Python see a signal while libgit2 receives."""

    def transfer_progress(self, stats: object) -> None:
        """Called with every piece that came; an exception raised by a signal ends the fetch."""
