"""The fallback as a service: attr trees, self-test, configuration, and a stock rsync daemon.

Rule to keep: the daemon starts after the self-test has passed with the same rsync.  Rsync reads its
configuration again for each connection, so a change of modules does not end connections.
"""

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from msgspec.structs import replace

from huai_program.durable import replace_file
from huai_program.durations import seconds
from huai_program.locking import locked
from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.load import ServerConfig, config_path, load
from huai_server.config.tables import Fallback
from huai_server.fallback import programs
from huai_server.fallback.attr.ensure import AttrTreeResult
from huai_server.fallback.attr.generations import make_folder
from huai_server.fallback.conf import render
from huai_server.fallback.erofs.resident import ResidentImages
from huai_server.fallback.redirect import preload_library
from huai_server.fallback.selftest import self_test
from huai_server.fallback.trees import Trees
from huai_server.state.errors import storage_errors
from huai_server.state.file_stamp import file_stamp
from huai_server.state.paths import unconfined_file

_TICK_SECONDS = 1.0
_LONGEST_PAUSE = 30.0
_CALM_SECONDS = 60.0
"""A daemon that ran longer is restarted at once, another one after a pause."""


class _StopError(BaseException):
    """SIGTERM arrived during a build, which is aborted."""


class ConfinementError(HuaiError):
    """Connections cannot be confined, and the configuration requires it."""

    exit_code = ExitCode.REQUIREMENT


class Callbacks(NamedTuple):
    """The functions that the service calls."""

    listening: Callable[[str, int], None]
    """Called with address and port, once connections are accepted."""
    attr_tree: Callable[[str, AttrTreeResult], None]
    """Called with a module's name and result after its attr tree was built or updated."""
    error: Callable[[str], None]
    """Called with the message of an error that does not end the service."""
    log: Callable[[str], None]
    """Called with each line of rsync's output, such as those of its transfer log."""


class Configuration(NamedTuple):
    """The configuration for administrators who run rsyncd themselves."""

    text: str
    """The text of rsyncd.conf, for the modules that have an attr tree."""
    preload_library: Path
    """The value for LD_PRELOAD."""
    left_out: tuple[tuple[str, str], ...]
    """The modules that are left out, each with the reason."""
    unconfined: str | None
    """The reason that connections cannot be confined; None if they can."""


def configuration(root: Path, *, test: bool) -> Configuration:
    """Return the configuration for an rsync daemon that another program starts.

    With `test`, makes the folder of the fallback, and raises `SelfTestError` unless this rsync
    serves correctly.  Raises `ConfinementError`, and `NotBuiltError` without the preload library.
    """
    config = load(root)
    folder = Path(config.fallback.folder)
    preload = preload_library()
    if test:
        with storage_errors(folder):
            make_folder(folder)
            self_test(config.fallback, programs.find(config.fallback.rsync), preload)
    unconfined = check_confinement(config.fallback, preload)
    trees, settings = Trees(root, config), config.fallback
    # The other program sets its standard error, which systemd does not allow to open as a file.
    if settings.log_file == Fallback().log_file:
        settings = replace(settings, log_file="")
    return Configuration(
        _render_text(trees, settings), preload, tuple(trees.left_out()), unconfined
    )


def serve_fallback(root: Path, callbacks: Callbacks) -> None:
    """Serve until SIGTERM or SIGINT; then wait at most `shutdown_grace` for transfers to finish.

    Keeps attr trees up to date meanwhile.  Raises an error if it cannot start, `LockedError` if
    another process serves from the folder.
    """
    config = load(root)
    folder = Path(config.fallback.folder)
    with storage_errors(folder):
        make_folder(folder)
        with locked(folder / "serve.lock"):
            _Service(root, config, callbacks).run()


def check_confinement(settings: Fallback, library: Path) -> str | None:
    """Return why the processes of connections cannot be confined; None if they can.

    The preload library confines them as far as the kernel permits (FALLBACK.md, "Security").  This
    tries the same before rsync starts, to report a lack.

    Raises `ConfinementError` instead if `settings` require confinement.
    """
    reason = None
    if not settings.use_chroot:
        reason = "fallback.use_chroot is false"
    elif ctypes.CDLL(str(library)).huai_can_confine() != 1:
        reason = (
            "no Landlock (Linux 5.13, and a seccomp filter that permits landlock_*), "
            "and no CAP_SYS_ADMIN for detached mounts"
        )
    if reason is not None and settings.confine == "require":
        raise ConfinementError(
            f"connections cannot be confined, and fallback.confine requires it: {reason}",
            hint="remedy that, or remove the key confine from [fallback] in server.toml",
        )
    return reason


def _render_text(trees: Trees, settings: Fallback) -> str:
    """Return the rsyncd.conf of the modules that can be served now; raises as `render` does."""
    folder = Path(settings.folder)
    return render(settings, trees.served(), folder, privileged=os.geteuid() == 0)


class _Service:
    """The running fallback of one state root; the caller holds the lock of its folder."""

    def __init__(self, root: Path, config: ServerConfig, callbacks: Callbacks) -> None:
        self._root = root
        self._callbacks = callbacks
        self._trees = Trees(root, config, callbacks.attr_tree, callbacks.error, self._building)
        self._resident = ResidentImages(callbacks.error)
        self._program = programs.find(config.fallback.rsync)
        self._library = preload_library()
        self._daemon: programs.Daemon | None = None
        self._started = 0.0
        self._pause = 0.0
        self._groups: list[int] = []
        self._written = ""
        self._unwritable = ""
        self._stamp = file_stamp(config_path(self._root))
        self._checked = time.monotonic()
        self._wake = threading.Event()
        self._stopping = False
        self._is_building = False

    def run(self) -> None:
        """Run the self-test, then serve until a signal; at last end running transfers.

        SIGHUP reads server.toml again.  Raises `DaemonListenError` or `SelfTestError` before it
        serves.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._reload_now)
        # Check first that it can listen; commits continue to update existing attr trees.
        if self._settings.port:
            programs.check_free(self._settings.address, self._settings.port)
        self_test(self._settings, self._program, self._library)
        try:
            self._report_confinement()
            with suppress(_StopError):
                self._serve()
        finally:
            self._end_transfers()
            self._unconfined.unlink(missing_ok=True)

    def _serve(self) -> None:
        """Start the daemon, and look after it and the attr trees until the end."""
        self._trees.refresh()
        self._resident.keep(self._trees.images())
        self._write_conf()
        self._start_daemon()
        while not self._stopping:
            self._wake.wait(_TICK_SECONDS)
            self._wake.clear()
            if not self._stopping:
                self._tick()

    def _report_confinement(self) -> None:
        """Report why connections are not confined, and write it to a file; else delete the file."""
        reason = check_confinement(self._settings, self._library)
        if reason is None:
            self._unconfined.unlink(missing_ok=True)
            return
        self._callbacks.error(f"connections are not confined: {reason}")
        path = self._unconfined
        new = path.with_suffix(".new")
        mark = f"{os.getpid()}\n{reason}".encode()
        replace_file(path, mark, new, permissions=0o644, durable=False)

    @property
    def _unconfined(self) -> Path:
        return unconfined_file(Path(self._settings.folder))

    @property
    def _settings(self) -> Fallback:
        return self._trees.config.fallback

    def _tick(self) -> None:
        """Restart an ended daemon, reload server.toml, update and check attr trees, all if due.

        Then replaces rsyncd.conf if its text changed.
        """
        self._restart_if_ended()
        self._reload()
        self._trees.refresh()
        self._resident.keep(self._trees.images())
        self._trees.look_for_changes()
        interval = seconds(self._settings.check_interval)
        if interval and time.monotonic() - self._checked > interval:
            self._trees.check_all()
            self._checked = time.monotonic()
        self._write_conf()

    def _start_daemon(self) -> None:
        """Start rsync's daemon, wait until it listens, and report its address.

        Raises `DaemonListenError` or `ProgramError`.
        """
        self._started = time.monotonic()
        address, port = self._endpoint(self._settings)
        port = port or programs.free_port(address or "127.0.0.1")
        config = Path(self._settings.folder) / "rsyncd.conf"
        self._daemon = programs.Daemon(self._program, config, (address, port), self._library)
        # Connections of a replaced daemon continue in its group.
        self._groups = [*filter(programs.is_running, self._groups), self._daemon.group]
        self._daemon.log_output(self._callbacks.log)
        self._daemon.wait_until_ready()
        self._callbacks.listening(address or "*", port)

    def _endpoint(self, settings: Fallback) -> tuple[str, int]:
        """Return the address and port to listen on; port 0 is that of the last daemon, if any."""
        return settings.address, settings.port or (self._daemon.port if self._daemon else 0)

    def _restart_if_ended(self) -> None:
        """Restart a daemon that ended, at once or after a growing pause."""
        if self._daemon is None or (status := self._daemon.exit_status()) is None:
            return
        lived = time.monotonic() - self._started
        if lived < self._pause:
            return
        self._pause = 0.0 if lived > _CALM_SECONDS else min(_LONGEST_PAUSE, self._pause * 2 + 1)
        self._callbacks.error(f"rsync ended with status {status}; starting it again")
        self._start_again()

    def _start_again(self) -> None:
        """Restart the daemon; a failure is reported, and `_restart_if_ended` tries again."""
        try:
            self._start_daemon()
        except HuaiError as error:
            self._callbacks.error(f"{error.message} ({error.hint})")

    def _reload(self) -> None:
        """Read server.toml again after a change, and restart the daemon if its address changed.

        An error is reported, and the former configuration stays; so it does if `folder` changed.
        """
        stamp = file_stamp(config_path(self._root))
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            config = load(self._root)
            check_confinement(config.fallback, self._library)
        except HuaiError as error:
            self._callbacks.error(f"{error.message}; the old configuration remains in effect")
            return
        before = self._settings
        if config.fallback.folder != before.folder:
            self._callbacks.error("fallback.folder: takes effect when the service is restarted")
            return
        self._trees.config = config
        if config.fallback.use_chroot != before.use_chroot:
            self._report_confinement()
        if self._daemon is not None and self._endpoint(before) != self._endpoint(config.fallback):
            self._write_conf()
            self._daemon.stop_listening()
            self._pause = 0.0
            self._start_again()

    def _write_conf(self) -> None:
        """Replace rsyncd.conf if its text changed; an error is reported, and the old text stays.

        The first time it is raised instead.
        """
        try:
            text = _render_text(self._trees, self._settings)
            self._unwritable = ""
        except HuaiError as error:
            if not self._written:
                raise  # the file of an earlier run must not be served instead
            text = self._written
            if error.message != self._unwritable:
                self._unwritable = error.message
                self._callbacks.error(f"{error.message}; the modules are unchanged")
        path = Path(self._settings.folder) / "rsyncd.conf"
        if text != self._written or not path.exists():
            make_folder(path.parent)
            replace_file(path, text.encode(), path.with_suffix(".new"), durable=False)
            self._written = text

    def _end_transfers(self) -> None:
        """Stop listening, wait at most `shutdown_grace` for transfers, and end those left."""
        if self._daemon is not None:
            self._daemon.stop_listening()
        deadline = time.monotonic() + seconds(self._settings.shutdown_grace)
        while time.monotonic() < deadline and any(map(programs.is_running, self._groups)):
            time.sleep(0.05)
        for group in self._groups:
            programs.end_group(group)

    @contextmanager
    def _building(self) -> Iterator[None]:
        """Let SIGTERM abort the block, a build that may take minutes, by `_StopError`."""
        if self._stopping:
            raise _StopError
        self._is_building = True
        try:
            yield
        finally:
            self._is_building = False

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """End the loop after SIGTERM or SIGINT; raise `_StopError` inside a build."""
        self._stopping = True
        self._wake.set()
        if self._is_building:
            self._is_building = False
            raise _StopError

    def _reload_now(self, _number: int, _frame: FrameType | None) -> None:
        """Let the loop read server.toml again at once, after SIGHUP."""
        self._stamp = ()
        self._wake.set()
