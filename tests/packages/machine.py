"""A Debian that is booted: systemd as process 1, in a container of systemd-nspawn.

The base of each release is kept below build/. A machine writes to memory, and leaves nothing.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.compose.engine import CACHE, ComposeError, run
from tests.compose.image import apt_mirror

_UNIT = """\
[Unit]
Requires=multi-user.target
After=multi-user.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart={command}
StandardOutput=file:{log}
StandardError=inherit
"""
# On a machine that has control groups of version 1 too, the container gets those of version 2.
_START = """\
umount --recursive --lazy /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=/sys/fs/cgroup/huai-test.$1
mkdir "$group"
echo $$ >"$group/cgroup.procs"
systemd-nspawn "${@:2}"
status=$?
echo $$ >/sys/fs/cgroup/cgroup.procs
find "$group" -depth -type d -exec rmdir {} +
exit $status
"""
_INSIDE = Path("/packages")
_SHOWN = 40
"""The number of lines of a failed script that are shown."""


def find_obstacle() -> str:
    """Return why no machine can be booted here; empty if one can."""
    if os.geteuid() != 0:
        return "systemd-nspawn needs root"
    missing = [name for name in ("systemd-nspawn", "debootstrap") if shutil.which(name) is None]
    return f"{' and '.join(missing)} not installed" if missing else ""


def run_booted(
    release: str,
    folder: Path,
    script: str,
    *arguments: str,
    binds: Mapping[Path, Path],
    seconds: float,
) -> str:
    """Run `folder`/`script` as root on a fresh machine; return its output.

    `folder` is /packages there; `binds` gives further folders of this machine, read-only, with
    their places there. Raises `ComposeError` if the script fails.
    """
    base = _base(release)
    log, unit = folder / "log", folder / "story.service"
    log.unlink(missing_ok=True)
    command = " ".join(["/bin/sh", str(_INSIDE / script), *arguments])
    unit.write_text(_UNIT.format(command=command, log=_INSIDE / log.name), encoding="utf-8")
    options = [
        *("--quiet", "--register=no", "--keep-unit", "--volatile=overlay", "--console=pipe"),
        *(f"--directory={base}", f"--machine=huai-{release}", f"--bind={folder}:{_INSIDE}"),
        f"--bind-ro={unit}:/etc/systemd/system/{unit.name}",
        *(f"--bind-ro={here}:{there}" for here, there in binds.items()),
        *("--boot", f"systemd.unit={unit.name}"),
    ]
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    start = [*namespaces, "bash", "-c", _START, "bash", str(os.getpid()), *options]
    try:
        done = subprocess.run(
            start,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        code: int | None = done.returncode
    except subprocess.TimeoutExpired:
        code = None
    output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if code != 0:
        ended = "did not end in time" if code is None else f"ended with exit code {code}"
        last_lines = "\n".join(output.splitlines()[-_SHOWN:])
        raise ComposeError(f"{script} {' '.join(arguments)} on {release} {ended}:\n{last_lines}")
    return output


def _base(release: str) -> Path:
    """Return the folder of the release, as debootstrap makes it."""
    base = CACHE / "machines" / release
    if not base.exists():
        print(f"  debootstrap makes {release}", flush=True)
        fresh = base.with_name(f"{release}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.parent.mkdir(parents=True, exist_ok=True)
        packages = "--include=dbus,systemd,systemd-sysv"
        options = ["--variant=minbase", packages, release, str(fresh), *apt_mirror()]
        run(["debootstrap", *options], seconds=1800)
        shutil.rmtree(fresh / "var/cache/apt/archives")
        fresh.rename(base)
    return base
