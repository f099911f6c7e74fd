"""The set-up of all tests: signals, the rule on skipped tests, profiles, short paths, goldens.

Rule to keep: with `CI=true` a test that is skipped has failed, for whatever reason it was.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.support")

CI = os.environ.get("CI") == "true"

# A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP: programs under test
# would inherit that.  A handler does not survive exec(2); pytest itself continues without its
# terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# Settings of the machine's own huai, which programs under test would inherit too.
for _name in list(os.environ):
    if _name.startswith("HUAI_") and not _name.startswith("HUAI_TEST_"):
        del os.environ[_name]

# No deadlines, because a slow machine is not a bug.  While editing, a few random examples suffice;
# CI tries more, and its failures must be reproducible.  `tests.support.examples` scales the numbers
# of single tests with these.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("local", _COMMON, max_examples=25)
settings.register_profile("ci", _COMMON, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile("thorough", _COMMON, max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if CI else "local"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-golden",
        action="store_true",
        help="write the golden files instead of comparing with them; read the diff before a commit",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if CI and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"skipped, and a skipped test proves nothing: {report.longrepr}"


class _Guard:
    """A guard that fails tests of some folders if they listen on a port or mount in Python."""

    FOLDERS = ("unit", "property", "golden")
    active = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Check an audit event."""
        if self.active and (_listens(event, arguments) or _mounts(event, arguments)):
            pytest.fail(f"tests of {self.FOLDERS} need no server and no mount: move this one")


def _listens(event: str, arguments: tuple[object, ...]) -> bool:
    families = (socket.AF_INET, socket.AF_INET6)
    return event == "socket.bind" and getattr(arguments[0], "family", None) in families


def _mounts(event: str, arguments: tuple[object, ...]) -> bool:
    if event == "subprocess.Popen":
        return os.path.basename(str(arguments[0])) in {"mount", "umount"}
    return event == "ctypes.dlsym" and arguments[1] == "mount"


_GUARD = _Guard()
sys.addaudithook(_GUARD)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Guard the tests of its folders, with their fixtures."""
    below = item.path.relative_to(item.config.rootpath).parts
    _GUARD.active = below[:1] == ("tests",) and below[1:2][0] in _Guard.FOLDERS
    try:
        return (yield)
    finally:
        _GUARD.active = False


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """Return an empty folder on a disk, for features that a tmpfs lacks.

    The usual temporary files may be on a tmpfs, which never uses the number of an inode again, has
    other limits, and neither punches holes nor shares blocks as a disk's file system does.
    """
    with tempfile.TemporaryDirectory(prefix="h", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def disk_folder() -> Path:
    """Return the parent of `short_path`, which some tests override."""
    return Path(tempfile.gettempdir())


@pytest.fixture
def short_path(disk_folder: Path) -> Iterator[Path]:
    """Yield an empty folder with a short path, for Unix sockets and names near the limits.

    Goes away whatever stands in it: any depth, any mode.
    """
    folder = Path(tempfile.mkdtemp(prefix="h", dir=disk_folder))
    yield folder
    # rm can delete paths beyond PATH_MAX, and at depths at which rmtree runs out of stack.
    if os.geteuid() != 0:
        subprocess.run(["chmod", "-R", "u+rwx", "--", folder], check=True, timeout=60)
    subprocess.run(["rm", "-rf", "--", folder], check=True, timeout=60)


class Golden:
    """A comparison with expected texts, in files next to the tests."""

    def __init__(self, folder: Path, *, renew: bool) -> None:
        self._folder = folder
        self._renew = renew

    def check(self, name: str, text: str) -> None:
        """Assert that the file `name` contains `text`; with `--renew-golden` write it."""
        path = self._folder / name
        if self._renew:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: ./dev test {self._folder} --renew-golden"
        assert text == path.read_text(encoding="utf-8"), f"differs from {path}"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return the golden files in the folder of the test."""
    renew = bool(request.config.getoption("--renew-golden"))
    assert not (renew and CI), "CI compares golden files, it does not make them"
    return Golden(request.path.parent, renew=renew)
