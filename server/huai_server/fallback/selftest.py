"""A test before the service starts that this rsync sends content, and never a hole.

A module of a few files is listed from an attr tree and fetched over loopback, with the settings of
the real daemon.  Files that were changed after listing must not arrive.  Without the library rsync
must refuse the module.
"""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.tables import Fallback, Module, ModuleFallback
from huai_server.fallback import programs
from huai_server.fallback.attr import generations
from huai_server.fallback.conf import FallbackModule, render
from huai_server.state.paths import FallbackPlaces

_NAME = "probe"
_SIZE = 70_000
_GOOD, _SHORT, _OTHER, _LINKED = "good", "shortened", "replaced", "behind-a-symlink"
_VANISHED = (23, 24)


class SelfTestError(HuaiError):
    """The redirection to content does not work here, so no module is served."""

    exit_code = ExitCode.REQUIREMENT


def self_test(settings: Fallback, program: Path, library: Path) -> None:
    """Raise `SelfTestError` if rsync (`program`) with the preload library sends a wrong file.

    Runs a daemon on loopback for a moment, below `settings.folder`.
    """
    folder = Path(settings.folder)
    with TemporaryDirectory(prefix=".probe-", dir=folder) as place:
        Path(place).chmod(0o755)
        _SelfTest(settings, program, Path(place)).run(library)


class _SelfTest:
    """One self-test in the folder `place`, which its caller deletes."""

    def __init__(self, settings: Fallback, program: Path, place: Path) -> None:
        self._program = program
        self._place = place
        self._real = place / "real"
        self._content = os.urandom(_SIZE)
        self._places = FallbackPlaces(place / _NAME)
        # The test does not cover access rules and users.
        self._settings = msgspec.structs.replace(
            settings,
            hosts_allow=("127.0.0.1",),
            hosts_deny=(),
            motd_file="",
            secrets_file="",
            log_file="/dev/stderr",
            extra="",
        )

    def run(self, library: Path) -> None:
        """Raise `SelfTestError` unless only unchanged files are sent, and none without library."""
        self._make()
        code, output = self._fetch(library)
        good = self._copy / _GOOD
        if code not in (0, *_VANISHED) or not good.exists():
            raise self._error(f"rsync could not fetch a file through it (exit {code})", output)
        if good.read_bytes() != self._content:
            raise self._error("a file arrived with other content", output)
        wrong = [name for name in (_SHORT, _OTHER, _LINKED) if (self._copy / name).exists()]
        if wrong:
            raise self._error(f"changed files were sent: {', '.join(wrong)}", output)
        shutil.rmtree(self._copy)
        code, output = self._fetch(None)
        if code == 0 or (self._copy / _GOOD).exists():
            raise self._error("the module was served without the library", output)

    @property
    def _copy(self) -> Path:
        return self._place / "copy"

    def _make(self) -> None:
        """Create a real tree and its attr tree, then change all files of the real tree but one."""
        generation = self._places.generations / "1"
        generations.make_own_folder(self._places)
        for folder in (generation, self._real):
            generations.make_folder(folder)
        for name in (_GOOD, _SHORT, _OTHER, _LINKED):
            real, listed = self._real / name, generation / name
            real.write_bytes(self._content)
            listed.touch()
            for path in (real, listed):
                path.chmod(0o644)  # regardless of the umask: the user of transfers must read it
            os.truncate(listed, _SIZE)
            times = real.stat()
            os.utime(listed, ns=(times.st_atime_ns, times.st_mtime_ns))
        os.truncate(self._real / _SHORT, _SIZE // 2)
        (self._real / _OTHER).write_bytes(os.urandom(_SIZE))
        os.utime(self._real / _OTHER, (0, 0))
        (self._real / _LINKED).unlink()
        (self._real / _LINKED).symlink_to(self._real / _GOOD)
        generations.serve_generation(self._places, "1", str(self._real))

    def _fetch(self, library: Path | None) -> tuple[int, list[str]]:
        """Write a configuration, run a daemon, fetch all; return rsync's exit code and output."""
        config = self._place / "rsyncd.conf"
        module = Module(path=str(self._real), fallback=ModuleFallback())
        served = {_NAME: FallbackModule(module, self._places.served)}
        config.write_text(
            render(self._settings, served, self._place, privileged=os.geteuid() == 0),
            encoding="utf-8",
        )
        port = programs.free_port("127.0.0.1")
        with programs.daemon(self._program, config, ("127.0.0.1", port), library) as output:
            url = f"rsync://127.0.0.1:{port}/{_NAME}/"
            code = programs.fetch_all(self._program, url, self._copy)
        return code, output

    def _error(self, reason: str, output: list[str]) -> SelfTestError:
        """Return the error for `reason`, with the last lines of rsync's output."""
        words = "; ".join(line for line in output[-3:] if line)
        return SelfTestError(
            f"{self._program}: the redirection to content does not work: {reason}"
            + (f"; rsync's output: {words}" if words else ""),
            hint=_likely_cause(self._settings),
        )


def _likely_cause(settings: Fallback) -> str:
    """Return a hint why the test may have failed."""
    if not Path("/proc/self/fd").is_dir():
        return "mount /proc: the redirection needs it"
    if settings.use_chroot and os.geteuid() != 0:
        return "only root can chroot: set fallback.use_chroot to false"
    return (
        "check rsync's output, and that the folder is not mounted noexec; rsync must be linked "
        "dynamically, of Python's architecture, and without set-id bits, or it loads no library"
    )
