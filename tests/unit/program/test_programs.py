"""The end, the output and the inheritance of an administrator's program."""

import os
import signal
from pathlib import Path

import pytest

from huai_program import programs
from huai_program.locking import locked
from huai_program.programs import run_program
from tests.support.processes import interrupted_start, is_running, until

LONG = 60.0
ENVIRONMENT = {"PATH": os.environ["PATH"]}


def run(*command: str, seconds: float = LONG) -> tuple[str, list[str]]:
    """Run a command; return the reason of its failure, and its output lines."""
    lines: list[str] = []
    failure = run_program(command, ENVIRONMENT, seconds=seconds, on_line=lines.append)
    return failure, lines


def shell(text: str, seconds: float = LONG) -> tuple[str, list[str]]:
    return run("/bin/sh", "-c", text, seconds=seconds)


def test_both_streams_are_heard_line_by_line() -> None:
    assert shell("echo one; echo two >&2; printf three") == ("", ["one", "two", "three"])


@pytest.mark.parametrize("code", [0, 3])
def test_errors_are_heard_apart(code: int) -> None:
    lines, errors = list[str](), list[str]()
    failure = run_program(
        ("/bin/sh", "-c", f"echo one; echo two >&2; echo three; printf four >&2; exit {code}"),
        ENVIRONMENT,
        seconds=LONG,
        on_line=lines.append,
        on_error_line=errors.append,
    )
    assert (lines, errors) == (["one", "three"], ["two", "four"])
    assert failure == (f"exit code {code}: four" if code else "")


def test_a_failure_is_told_with_the_last_line() -> None:
    assert shell("exit 3")[0] == "exit code 3"
    assert shell("echo it is broken; echo; exit 1")[0] == "exit code 1: it is broken"
    assert shell("kill -9 $$")[0] == "killed by signal 9"


def test_what_cannot_be_started(tmp_path: Path) -> None:
    """A script without an interpreter gets no shell."""
    script = tmp_path / "script"
    assert run(str(script)) == (f"{script} cannot be started: No such file or directory", [])
    script.write_text("echo no\n")
    assert run(str(script)) == (f"{script} cannot be started: Permission denied", [])
    script.chmod(0o755)
    assert run(str(script)) == (f"{script} cannot be started: Exec format error", [])


def test_a_hanging_program_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = f"sleep 1000 & echo $! >{pids}; (trap '' TERM; sleep 1000) & echo $! >>{pids}; wait"
    failure, _ = shell(text, 1)
    assert failure == "it was ended after its time-out of 1 s"
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 2
    until(lambda: not any(map(is_running, started)))


def test_one_that_heeds_no_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_GRACE", 0.2)
    pid = tmp_path / "pid"
    failure, _ = shell(f"trap '' TERM INT; echo $$ >{pid}; while :; do sleep 0.1; done", 1)
    assert "time-out" in failure
    assert not is_running(int(pid.read_text()))


def test_one_that_hangs_without_its_streams_is_ended() -> None:
    assert "time-out" in shell("exec >&- 2>&-; sleep 1000", 1)[0]


def test_one_that_closes_its_streams_is_waited_for(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert shell(f"exec >&- 2>&-; sleep 0.5; echo >{mark}") == ("", [])
    assert mark.exists()


def test_what_it_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert shell(f"sleep 1000 & echo $! >{pid}; echo done") == ("", ["done"])
    left = int(pid.read_text())
    assert is_running(left)
    os.kill(left, signal.SIGKILL)


def test_megabytes_are_read_and_not_passed_on() -> None:
    failure, lines = shell("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo at the end; exit 1")
    assert failure == "exit code 1: at the end"
    assert sum(map(len, lines)) < 70_000
    assert "bytes more" in lines[-1]


def test_many_lines_are_read_and_not_passed_on() -> None:
    failure, lines = shell("yes line | head -n 1000000")
    assert failure == ""
    assert 10_000 < len(lines) < 15_000
    assert lines[0] == "line"
    assert lines[-1].endswith("bytes more)")


def test_no_control_character_gets_to_the_terminal() -> None:
    _, lines = shell("printf '\\033[2J \\377 ok\\r\\n'")
    assert lines == ["\\x1b[2J \\xff ok"]


def test_no_lock_and_no_handle_is_inherited(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"), (tmp_path / "other").open("w") as other:
        os.set_inheritable(other.fileno(), True)  # noqa: FBT003 - os takes it by position only
        failure, lines = run("/bin/ls", "-l", "/proc/self/fd")
    assert failure == ""
    assert not [line for line in lines if str(tmp_path) in line]


def test_it_stands_at_the_top_and_reads_nothing() -> None:
    assert shell("pwd; cat") == ("", ["/"])


def test_it_has_a_group_of_its_own() -> None:
    _, (group, own) = shell("ps -o pgid= -p $$; echo $$")
    assert int(group) == int(own) != os.getpgrp()


def test_one_that_no_signal_ends_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose disk hangs."""
    monkeypatch.setattr(programs, "_GRACE", 0.1)
    with monkeypatch.context() as harmless:
        harmless.setattr(os, "killpg", lambda *_: None)
        with programs.started(["sleep", "600"]) as process:
            pass
    assert process.poll() is None
    process.kill()
    process.wait()


def test_an_exception_ends_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def stop(_line: str) -> None:
        raise KeyboardInterrupt

    command = ("/bin/sh", "-c", f"echo $$ >{pid}; echo now; sleep 1000")
    with pytest.raises(KeyboardInterrupt):
        run_program(command, ENVIRONMENT, seconds=LONG, on_line=stop)
    assert not is_running(int(pid.read_text()))


def test_a_signal_during_the_start_ends_the_program() -> None:
    with interrupted_start():
        run("/bin/sleep", "100")
