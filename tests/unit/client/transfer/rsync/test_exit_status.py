import pytest

from huai_client.config.proxies import rsync_proxy
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    DiskFullError,
    DroppedError,
    LocalWriteError,
    NameRefusedError,
    OptionRefusedError,
    UnansweredError,
    UnreachableError,
    UpstreamFullError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.rsync.exit_status import classify_exit
from huai_client.transfer.rsync.output import RsyncOutput
from huai_client.transfer.urls import ContentUrl
from huai_schema.errors import ExitCode, HuaiError

URL = ContentUrl.parse("rsync://h/m")
FULL = b"@ERROR: max connections (25) reached -- try again later\n"
UNKNOWN = b"@ERROR: Unknown module 'm'\n"
NO_ROOM = b'rsync: [receiver] write failed on "/d/x": No space left on device (28)\n'
NO_ROOM_313 = b'rsync: write failed on "/d/x": No space left on device (28)\n'
QUOTA = b'rsync: [receiver] mkstemp "/d/.x.abcdef" failed: Disk quota exceeded (122)\n'
READ_ONLY = b'rsync: [receiver] mkstemp "/d/.x.abcdef" failed: Read-only file system (30)\n'
GONE = b'rsync: [sender] link_stat "/x" (in m) failed: No such file or directory (2)\n'
DENIED = b'rsync: [sender] send_files failed to open "/x" (in m): Permission denied (13)\n'
THEIR_DISK = b'rsync: [sender] write failed on "/log": No space left on device (28)\n'


def test_a_run_that_was_ended_for_its_trickle() -> None:
    talk = _talk(b"rsync error: received SIGINT, SIGTERM, or SIGHUP (code 20)\n")
    talk.trickles = True
    failure = classify_exit(20, talk, URL)
    assert isinstance(failure, UnansweredError)
    assert failure.message == "rsync://h/m/: does not answer, or sends too slowly"
    talk.progress = 1
    failure = classify_exit(20, talk, URL)
    assert type(failure) is UpstreamSilentError
    assert failure.message == "rsync://h/m/: sends too slowly"


def test_a_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSYNC_PROXY", "me:secret@proxy:3128")
    talk = _talk(b"rsync: [Receiver] failed to connect to proxy (::1): Connection refused (111)\n")
    failure = classify_exit(10, talk, URL, rsync_proxy())
    assert isinstance(failure, UnreachableError)
    assert "proxy:3128 of RSYNC_PROXY: " in failure.message
    assert "RSYNC_PROXY" in failure.hint
    assert "secret" not in failure.message


@pytest.mark.parametrize("option", ["--inplace", "--sparse", "--sparse (-S)"])
def test_an_option_that_can_be_left_out(option: str) -> None:
    message = f"rsync: The server is configured to refuse {option}\n".encode()
    reset = b"rsync: [Receiver] read error: Connection reset by peer (104)\n"
    failure = classify_exit(10, _talk(message + reset), URL)
    assert isinstance(failure, OptionRefusedError)
    assert failure.option == option.partition(" ")[0]


@pytest.mark.parametrize(("progress", "kind"), [(0, DroppedError), (1, ConnectionBrokenError)])
def test_a_connection_that_was_dropped_before_anything_came(
    progress: int, kind: type[HuaiError]
) -> None:
    # rsync 3.1's message about a refused option.
    talk = _talk(b"rsync: read error: Connection reset by peer (104)\n")
    talk.progress = progress
    assert type(classify_exit(10, talk, URL)) is kind


def _talk(errors: bytes) -> RsyncOutput:
    talk = RsyncOutput()
    talk.read_errors(errors)
    return talk


def test_every_end_has_its_meaning(subtests: pytest.Subtests) -> None:
    for code, message, expected in [
        (0, b"", None),
        (23, GONE, None),
        (23, DENIED, None),
        (23, THEIR_DISK, None),
        (24, b"", None),
        (5, FULL, UpstreamFullError),
        (5, UNKNOWN, UpstreamRefusedError),
        (5, b"rsync: did not see server greeting\n", ConnectionBrokenError),
        (3, b"", UpstreamRefusedError),
        (4, b"", NameRefusedError),
        (1, b"rsync: --nonsense: unknown option\n", UpstreamRefusedError),
        (127, b"sh: rsync: not found\n", UpstreamRefusedError),
        (10, b"", ConnectionBrokenError),
        (12, b"", ConnectionBrokenError),
        (20, b"", ConnectionBrokenError),
        (-9, b"", ConnectionBrokenError),
        (255, b"ssh: connect to host h port 22: refused\n", UnreachableError),
        (30, b"", UnansweredError),
        (35, b"", UnansweredError),
        (11, NO_ROOM, DiskFullError),
        (12, NO_ROOM_313, DiskFullError),
        (23, QUOTA, DiskFullError),
        (23, READ_ONLY, LocalWriteError),
        (11, b"", LocalWriteError),
    ]:
        with subtests.test(code=code, said=message, expected=expected):
            error = classify_exit(code, _talk(message), URL)
            assert type(error) is (expected or type(None))


def test_errors_carry_what_a_person_and_a_wrapper_need() -> None:
    silent = classify_exit(30, _talk(b"x\n"), URL)
    full = classify_exit(11, _talk(NO_ROOM), URL)
    broken = classify_exit(12, _talk(b"rsync: connection unexpectedly closed\n"), URL)
    assert silent is not None
    assert full is not None
    assert broken is not None
    assert silent.exit_code == ExitCode.TIMEOUT
    assert full.exit_code == ExitCode.FILE_IO
    assert broken.exit_code == ExitCode.NETWORK
    assert "rsync://h/m/: rsync: connection unexpectedly closed (rsync exit 12)" in broken.message
    assert all(error.hint for error in (silent, full, broken))


def test_progress_and_stats_are_read_in_any_pieces() -> None:
    message = (
        b"     1000   1%  100.00kB/s    0:00:09 (xfr#12, to-chk=3/20)\r"
        b"   8519680  28%    3.91MB/s    0:00:05\r\n"
        b"Total bytes received: 123456\n"
    )
    for cut in range(len(message)):
        talk = RsyncOutput()
        talk.read_output(message[:cut])
        talk.read_output(message[cut:])
        assert (talk.progress, talk.files, talk.received) == (8519680, 12, 123456)


def test_an_upstream_cannot_write_to_the_terminal_or_fill_memory() -> None:
    talk = _talk(b"\x1b]0;owned\x07 hello\n")
    assert talk.summary().isprintable()
    for _ in range(100):
        talk.read_errors(b"x" * 100_000)
        talk.read_output(b"y" * 100_000)
    talk.read_errors(b"\n" * 100_000)
    assert len(talk.summary()) < 1000


def test_the_summary_prefers_the_cause_to_the_epilogue() -> None:
    talk = _talk(UNKNOWN + b"rsync error: error starting client-server protocol (code 5)\n")
    assert talk.summary() == "@ERROR: Unknown module 'm'"
    assert _talk(b"").summary() == "rsync printed no message"


def test_a_login_that_is_refused_is_not_tried_again() -> None:
    talk = RsyncOutput()
    talk.read_errors(b"Password: @ERROR: auth failed on module m\n")
    failure = classify_exit(5, talk, ContentUrl.parse("rsync://u@h/m"))
    assert isinstance(failure, UpstreamRefusedError)
    assert "--password-file" in failure.hint
