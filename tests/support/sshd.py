"""A real sshd of openssh-server on loopback, for as long as a test needs it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path

from tests.support.ports import logging_server
from tests.support.rsyncd import IS_ROOT
from tests.support.upstream import ENVIRONMENT, SECONDS

_SEPARATION = Path("/run/sshd")
"""The folder that sshd of Debian needs; its unit makes it."""


@contextmanager
def secure_shell(folder: Path) -> Iterator[str]:
    """Serve logins of this user; yields the command of ssh, without the host."""
    for name in ("host", "user"):
        command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        subprocess.run(command, check=True, timeout=SECONDS)
    if IS_ROOT:
        _SEPARATION.mkdir(exist_ok=True)

    def command_of(port: int) -> tuple[str, ...]:
        settings = (
            f"Port={port}",
            "ListenAddress=127.0.0.1",
            f"HostKey={folder}/host",
            f"AuthorizedKeysFile={folder}/user.pub",
            f"PidFile={folder}/pid",
            "StrictModes=no",
            "UsePAM=no",
        )
        options = [f"-o{each}" for each in settings]
        return "/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *options

    with logging_server(command_of, folder / "sshd.log", ENVIRONMENT) as port:
        options = ("-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oLogLevel=ERROR")
        hosts = f"-oUserKnownHostsFile={folder}/known"
        login = f"-i {folder}/user -l {getuser()} -p {port}"
        yield f"ssh -F /dev/null {' '.join(options)} {hosts} {login}"
