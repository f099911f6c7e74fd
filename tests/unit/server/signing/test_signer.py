"""The signers: a file, an agent, a command; and their faults."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from huai_native._native import verify_signature
from huai_program.durations import TimeLimit
from huai_schema.errors import ExitCode
from huai_server.config.tables import Signing
from huai_server.signing.signer import SigningError, open_signer
from tests.support.keys import agent, allow, key, ssh_keygen_accepts, write_key
from tests.support.processes import interrupted_start

MESSAGE = b"a message"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return write_key(tmp_path / "key", key(1))


@pytest.fixture
def public(private: Path) -> Path:
    """Write only the public key, since ssh-keygen would find a private one next to it."""
    return private.with_name("key.pub").rename(private.with_name("alone.pub"))


def refusal(path: Path, *command: str, timeout: str = "20s") -> SigningError:
    signing = Signing(str(path), command, timeout=TimeLimit(timeout))
    with pytest.raises(SigningError) as caught:
        open_signer(signing).sign("git", MESSAGE)
    assert caught.value.exit_code == ExitCode.UNSIGNED
    assert caught.value.hint
    return caught.value


def test_a_key_file_signs(private: Path) -> None:
    signer = open_signer(Signing(str(private)))
    signature = signer.sign("git", MESSAGE)
    assert verify_signature("git", MESSAGE, signature) == signer.public == key(1).public
    allowed = allow(private.with_name("allowed"), signer.public)
    assert ssh_keygen_accepts(allowed, "git", MESSAGE, signature)


def test_a_key_file_of_ssh_keygen_signs(tmp_path: Path) -> None:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    signer = open_signer(Signing(str(path)))
    assert signer.public in path.with_name("key.pub").read_text()
    signer.sign("git", MESSAGE)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o660])
def test_a_key_that_others_may_read_is_refused(private: Path, mode: int) -> None:
    private.chmod(mode)
    error = refusal(private)
    assert "other users may read" in error.message
    assert "chmod 600" in error.hint


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_another_kind_of_key_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True)
    refusal(path)
    refusal(path.with_name("key.pub"))


def test_a_key_with_a_passphrase_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", path], check=True)
    error = refusal(path)
    assert "passphrase" in error.message
    assert "agent" in error.hint


@pytest.mark.parametrize("content", [b"", b"x", b"ssh-ed25519 AAAA\n", b"\xff" * 20_000])
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    refusal(path)


def test_a_missing_key_and_a_folder_are_refused(tmp_path: Path) -> None:
    refusal(tmp_path / "none")
    refusal(tmp_path)


def test_an_agent_signs(
    private: Path, public: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent(short_path, private) as place:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        signer = open_signer(Signing(str(public)))
        assert verify_signature("git", MESSAGE, signer.sign("git", MESSAGE)) == key(1).public


def test_an_agent_without_the_key_is_an_error(
    public: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent(short_path) as place:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        assert "exit code" in refusal(public).message


def test_an_agent_that_hangs_is_given_up(
    public: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(short_path / "silent"))
        silent.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(short_path / "silent"))
        assert "hangs" in refusal(public, timeout="1s").message


def test_a_command_signs(private: Path, public: Path) -> None:
    words = ("ssh-keygen", "-q", "-Y", "sign", "-n", "{namespace}", "-f", str(private))
    signing = Signing(str(public), words)
    for namespace in ("git", "huai-keys"):
        signature = open_signer(signing).sign(namespace, MESSAGE)
        assert verify_signature(namespace, MESSAGE, signature) == key(1).public


def test_a_command_is_told_the_key(public: Path) -> None:
    words = (sys.executable, "-c", "import sys; sys.exit(sys.argv[1])", "{key}")
    assert str(public) in refusal(public, *words).message


@pytest.mark.parametrize(
    ("program", "reason", "timeout"),
    [
        ("", "not a signature", "1m"),
        ("print('no')", "not a signature", "1m"),
        ("import sys; sys.exit(3)", "exit code 3", "1m"),
        ("import time; time.sleep(600)", "hangs", "1s"),
    ],
)
def test_a_command_that_does_not_sign(
    public: Path, program: str, reason: str, timeout: str
) -> None:
    assert reason in refusal(public, sys.executable, "-c", program, timeout=timeout).message


def test_a_signal_during_the_start_ends_the_command(public: Path) -> None:
    signer = open_signer(Signing(str(public), ("/bin/sleep", "100")))
    with interrupted_start():
        signer.sign("git", MESSAGE)


def test_a_command_that_is_not_there(public: Path, tmp_path: Path) -> None:
    assert "No such file" in refusal(public, str(tmp_path / "none")).message


def test_a_command_with_another_key(public: Path, tmp_path: Path) -> None:
    other = write_key(tmp_path / "other", key(2))
    words = ("ssh-keygen", "-q", "-Y", "sign", "-n", "{namespace}", "-f", str(other))
    assert "not by" in refusal(public, *words).message


def test_a_command_needs_no_private_key(private: Path) -> None:
    assert "must be a public one" in refusal(private, "true").message
