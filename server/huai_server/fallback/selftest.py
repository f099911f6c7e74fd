"""A test before the service starts: does this rsync send content, and never a hole?

A module of a few files is listed from an attr tree and fetched over loopback, with the settings of
the real daemon.  Some files were changed after they were listed: these must not arrive.  Then the
same without the library: rsync must refuse the module.
"""

import os
import shutil
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.tables import Fallback, Module, ModuleFallback
from huai_server.fallback import programs
from huai_server.fallback.attr import generations
from huai_server.fallback.conf import FallbackModule, render
from huai_server.state.paths import fallback_places

_NAME = "probe"
_SIZE = 70_000
_GOOD, _SHORT, _OTHER, _LINKED = "good", "shortened", "replaced", "behind-a-symlink"
_SECONDS = 30.0
_VANISHED = (23, 24)
_PROGRAM_INTERPRETER = 3


class SelfTestError(HuaiError):
    """The redirection to content does not work here, so no module may be served."""

    exit_code = ExitCode.REQUIREMENT


def self_test(settings: Fallback, program: Path, library: Path) -> None:
    """Raise `SelfTestError` if `program` with `library` does not serve correctly."""
    _check_binaries(program, library)
    folder = Path(settings.folder)
    with TemporaryDirectory(prefix=".probe-", dir=folder) as place:
        Path(place).chmod(0o755)
        _SelfTest(settings, program, Path(place)).run(library)


class _SelfTest:
    def __init__(self, settings: Fallback, program: Path, place: Path) -> None:
        self._program = program
        self._place = place
        self._real = place / "real"
        self._content = os.urandom(_SIZE)
        self._places = fallback_places(place, _NAME)
        # Access rules and users are not tested here.
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
        self._make()
        code, said = self._fetched(library)
        good = self._copy / _GOOD
        if code not in (0, *_VANISHED) or not good.exists():
            raise self._failed(f"rsync could not fetch a file through it (exit {code})", said)
        if good.read_bytes() != self._content:
            raise self._failed("a file arrived with other content", said)
        wrong = [name for name in (_SHORT, _OTHER, _LINKED) if (self._copy / name).exists()]
        if wrong:
            raise self._failed(f"files that are not as listed were sent: {', '.join(wrong)}", said)
        shutil.rmtree(self._copy)
        code, said = self._fetched(None)
        if code == 0 or (self._copy / _GOOD).exists():
            raise self._failed("the module was served without the library", said)

    @property
    def _copy(self) -> Path:
        return self._place / "copy"

    def _make(self) -> None:
        """A real tree, its attr tree, and then changes that the attr tree does not know."""
        generation = self._places.generations / "1"
        generations.make_own_folder(self._places)
        for folder in (generation, self._real):
            generations.make_folder(folder)
        for name in (_GOOD, _SHORT, _OTHER, _LINKED):
            real, listed = self._real / name, generation / name
            real.write_bytes(self._content)
            listed.touch()
            for path in (real, listed):
                path.chmod(0o644)  # whatever the umask: the user of the transfers has to read it
            os.truncate(listed, _SIZE)
            times = real.stat()
            os.utime(listed, ns=(times.st_atime_ns, times.st_mtime_ns))
        os.truncate(self._real / _SHORT, _SIZE // 2)
        (self._real / _OTHER).write_bytes(os.urandom(_SIZE))
        os.utime(self._real / _OTHER, (0, 0))
        (self._real / _LINKED).unlink()
        (self._real / _LINKED).symlink_to(self._real / _GOOD)
        generations.serve_generation(self._places, "1", str(self._real))

    def _fetched(self, library: Path | None) -> tuple[int, list[str]]:
        config = self._place / "rsyncd.conf"
        module = Module(path=str(self._real), fallback=ModuleFallback())
        served = {_NAME: FallbackModule(module, self._places.served)}
        config.write_text(
            render(self._settings, served, self._place, privileged=os.geteuid() == 0),
            encoding="utf-8",
        )
        port = programs.free_port("127.0.0.1")
        with programs.daemon(self._program, config, ("127.0.0.1", port), library) as said:
            url = f"rsync://127.0.0.1:{port}/{_NAME}/"
            code = programs.fetch_all(self._program, url, self._copy, seconds=_SECONDS)
        return code, said

    def _failed(self, what: str, said: list[str]) -> SelfTestError:
        words = "; ".join(line for line in said[-3:] if line)
        return SelfTestError(
            f"{self._program}: the redirection to content does not work: {what}"
            + (f"; rsync says: {words}" if words else ""),
            hint=_likely_cause(self._settings),
        )


def _check_binaries(program: Path, library: Path) -> None:
    """Raise `SelfTestError` for known reasons why a program does not load a library."""
    try:
        binary, loaded = inspect(program), inspect(library)
    except OSError as error:
        raise SelfTestError(
            f"{error.filename}: {error.strerror}", hint="make it readable for this user"
        ) from error
    if loaded is None:
        raise SelfTestError(f"{library}: no library", hint="install huai anew")
    if binary is None:
        return  # a script that starts rsync, perhaps: the test will tell
    (machine, is_dynamic), (wanted, _) = binary, loaded
    if not is_dynamic:
        raise SelfTestError(
            f"{program}: is linked statically and loads no library",
            hint="install the distribution's rsync, or set fallback.rsync to another one",
        )
    if machine != wanted:
        raise SelfTestError(
            f"{program}: is of another architecture than {library}",
            hint="install an rsync of the same architecture as Python",
        )
    if os.stat(program).st_mode & 0o6000:
        raise SelfTestError(
            f"{program}: runs with another user's rights, and so loads no library",
            hint=f"run: chmod u-s,g-s {program}",
        )


def _likely_cause(settings: Fallback) -> str:
    if not Path("/proc/self/fd").is_dir():
        return "mount /proc: the redirection needs it"
    if settings.use_chroot and os.geteuid() != 0:
        return "only root can chroot: set fallback.use_chroot to false"
    return "nothing is served; see what rsync says, and whether the folder is mounted noexec"


def inspect(path: Path) -> tuple[bytes, bool] | None:
    """Return what machine an ELF file is for, and whether it asks for a dynamic loader.

    The machine is class, byte order and processor, which a library must have as the program has.
    The loader is what preloads libraries.  None: it is not an ELF file (a script, perhaps).
    """
    with path.open("rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:4] != b"\x7fELF":
            return None
        wide, mark = header[4] == 2, "<" if header[5] == 1 else ">"
        (offset,) = struct.unpack_from(f"{mark}{'Q' if wide else 'I'}", header, 32 if wide else 28)
        size, count = struct.unpack_from(f"{mark}HH", header, 54 if wide else 42)
        file.seek(offset)
        table = file.read(size * count)
    kinds = (struct.unpack_from(f"{mark}I", table, at)[0] for at in range(0, len(table), size or 1))
    return header[4:6] + header[18:20], _PROGRAM_INTERPRETER in kinds
