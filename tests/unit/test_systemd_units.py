"""The systemd units, by systemd's checks and by the options of the programs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from docs.man.pages import PROGRAMS, command_line
from huai_schema.errors import ExitCode

TOP = Path(__file__).parents[2]
FOLDER = TOP / "hooks" / "systemd"
UNITS = sorted(
    path for path in FOLDER.iterdir() if path.suffix in {".service", ".path", ".timer", ".mount"}
)
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
TIMERS = [unit for unit in UNITS if unit.suffix == ".timer"]
INSTALLED = "/usr/local/bin/"
PROGRAMS_HERE = f"{Path(sys.executable).parent}/"
REQUEST = FOLDER / "huai-commit-request@.service"
EROFS = FOLDER / "huai-fallback-erofs.conf"
COMMON = FOLDER / "huai-.service.d" / "10-hardening.conf"
MOST_EXPOSED = {
    "huai-server.service": 15,
    "huai-server-maintain.service": 15,
    "huai-server-scrub.service": 15,
    "huai-server-probe.service": 15,
    "huai-watch@.service": 15,
    "huai-commit@.service": 15,
    "huai-commit-request@.service": 15,
    "huai-client.service": 20,
    "huai-client@.service": 20,
    "huai-client-watch.service": 20,
    "huai-verify@.service": 20,
    "huai-fallback.service": 35,
}
"""The exposure in tenths, of 100; a service without any protection has 96."""
WITH_EROFS = 50
ASSIGNMENT = re.compile(r"^([A-Z][A-Za-z]+)=(.*)$", re.MULTILINE)
INSTANCE = "tools"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Install the units as their comments say, for the programs of this checkout."""
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace(INSTALLED, PROGRAMS_HERE)
        name = unit.name.replace("@.", f"@{INSTANCE}.")
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copytree(COMMON.parent, tmp_path / COMMON.parent.name)
    return tmp_path


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert shutil.which("systemd-analyze"), "systemd is missing: run this by ./dev test"
    return subprocess.run(
        ["systemd-analyze", "--man=no", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def verify(folder: Path) -> subprocess.CompletedProcess[str]:
    return analyze("verify", *sorted(path for path in folder.iterdir() if path.is_file()))


def exposure(unit: Path, threshold: int) -> int:
    """Return the exit code: 0 for less exposure than `threshold`, in tenths."""
    return analyze("security", "--offline=true", f"--threshold={threshold}", unit).returncode


def values(unit: Path, key: str) -> list[str]:
    """Return the values of a key, in the order of the file."""
    assignments = ASSIGNMENT.findall(unit.read_text(encoding="utf-8"))
    return [value for name, value in assignments if name == key]


def test_systemd_finds_nothing_to_say(installed: Path) -> None:
    done = verify(installed)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("break_it", ["Restrat=on-failure", "ExecStart=/no/such/program"])
def test_systemd_would_find_a_mistake(installed: Path, break_it: str) -> None:
    unit = installed / "huai-server.service"
    text = unit.read_text(encoding="utf-8").replace("[Service]\n", f"[Service]\n{break_it}\n")
    unit.write_text(text, encoding="utf-8")
    done = verify(installed)
    assert done.stderr


def test_the_variant_for_images_is_sound_too(installed: Path) -> None:
    folder = installed / "huai-fallback.service.d"
    folder.mkdir()
    shutil.copy(EROFS, folder / "erofs.conf")
    done = verify(installed)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    with (folder / "erofs.conf").open("a") as file:
        file.write("PrivateDevises=no\n")
    assert "PrivateDevises" in verify(installed).stderr


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_service_is_exposed_little(unit: Path, installed: Path) -> None:
    instance = installed / unit.name.replace("@.", f"@{INSTANCE}.")
    assert exposure(instance, MOST_EXPOSED[unit.name]) == 0
    bare = installed / "bare.service"
    bare.write_text(f"[Service]\nExecStart={PROGRAMS_HERE}huai-server serve\n", encoding="utf-8")
    assert exposure(bare, MOST_EXPOSED[unit.name]) != 0


def test_mounting_costs_what_it_says(installed: Path) -> None:
    unit = installed / "huai-fallback.service"
    (installed / "huai-fallback.service.d").mkdir()
    shutil.copy(EROFS, installed / "huai-fallback.service.d" / "erofs.conf")
    assert exposure(unit, WITH_EROFS) == 0
    assert exposure(unit, MOST_EXPOSED[unit.name]) != 0


def test_every_hardening_has_its_reason(subtests: pytest.Subtests) -> None:
    texts = {COMMON.parent.name: COMMON.read_text(encoding="utf-8").split("[Service]")[1]}
    for unit in SERVICES:
        hardening = unit.read_text(encoding="utf-8").split("\n# --")[1].split("\n[Install]")[0]
        texts[unit.name] = f"#{hardening}\n"
    for name, text in texts.items():
        with subtests.test(name):
            blocks = re.findall(r"((?:^#.*\n)*)((?:^[A-Z].*\n)+)", text, re.MULTILINE)
            assert blocks
            assert [settings for reason, settings in blocks if not reason] == []


def test_who_installs_a_service_installs_what_all_do_without() -> None:
    for unit in SERVICES:
        for command in re.findall(r"cp .*/etc/systemd/system", unit.read_text(encoding="utf-8")):
            assert command.startswith(f"cp -r {COMMON.parent.name} ")


def test_it_starts_a_command_that_exists(subtests: pytest.Subtests) -> None:
    for unit in [unit for unit in SERVICES if unit != REQUEST]:
        with subtests.test(unit=unit):
            (command,) = values(unit, "ExecStart")
            program, *words = command.removeprefix(INSTALLED).split()
            assert program in PROGRAMS
            called = command_line(program)
            while words and isinstance(called, click.Group):
                below = called.get_command(click.Context(called), words.pop(0))
                assert below is not None, command
                called = below
            assert not isinstance(called, click.Group), command
            options = {option for parameter in called.params for option in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= options


def test_the_exit_codes_are_those_of_the_programs(subtests: pytest.Subtests) -> None:
    for unit in SERVICES:
        with subtests.test(unit=unit):
            codes = {str(code.value) for code in ExitCode}
            for key in ("SuccessExitStatus", "RestartPreventExitStatus"):
                for value in values(unit, key):
                    assert value
                    assert set(value.split()) <= codes


def test_the_timer_means_a_time(subtests: pytest.Subtests) -> None:
    for timer in TIMERS:
        for key in ["OnCalendar", "RandomizedDelaySec"]:
            with subtests.test(timer=timer, key=key):
                (value,) = values(timer, key)
                verb = "calendar" if key == "OnCalendar" else "timespan"
                assert analyze(verb, value).returncode == 0


def test_one_module_and_all_are_synced_under_the_same_rules() -> None:
    own = ("Description", "ExecStart", "SuccessExitStatus")
    one, every = (
        [pair for pair in ASSIGNMENT.findall(unit.read_text()) if pair[0] not in own]
        for unit in (FOLDER / "huai-client@.service", FOLDER / "huai-client.service")
    )
    assert one == every
    watch = FOLDER / "huai-client-watch.service"
    hardened = watch.read_text().split("\n# --")[1].split("\n[Install]")[0].strip()
    assert hardened == (FOLDER / "huai-client.service").read_text().split("\n# --")[1].strip()
    timers = [ASSIGNMENT.findall(timer.read_text()) for timer in TIMERS]
    assert timers[0][1:] == timers[1][1:]


def test_the_memory_of_clients_is_bounded_beyond_the_attr_trees() -> None:
    settings = dict(ASSIGNMENT.findall((FOLDER / "huai-fallback.service").read_text()))
    mount = (FOLDER / "run-huai-fallback.mount").read_text()
    trees = re.search(r"size=(\d+)%%", mount)
    bounds = [int(settings[key].removesuffix("%")) for key in ("MemoryHigh", "MemoryMax")]
    assert trees
    assert int(trees[1]) < bounds[0] < bounds[1] < 100
    assert settings["OOMPolicy"] == "continue"


def test_the_users_of_the_services_are_made() -> None:
    created = set(
        re.findall(r"^u (\S+)", (FOLDER / "huai.sysusers.conf").read_text(), re.MULTILINE)
    )
    users = {user for unit in SERVICES for user in values(unit, "User")}
    assert users == created


def test_the_mount_is_where_the_fallback_looks() -> None:
    from huai_server.config.tables import Fallback

    assert values(FOLDER / "run-huai-fallback.mount", "Where") == [Fallback().folder]
    assert values(FOLDER / "huai-fallback.service", "RequiresMountsFor") == [Fallback().folder]


def test_the_timer_starts_the_commit_of_its_module() -> None:
    assert values(FOLDER / "huai-commit@.timer", "Unit") == []  # the default, the service
    (command,) = values(FOLDER / "huai-commit@.service", "ExecStart")
    assert command.endswith("huai-server commit --wait 3600 %i")


def test_a_stamp_asks_for_a_commit_that_takes_the_request_before_it_begins() -> None:
    stamp, request = FOLDER / "huai-commit@.path", FOLDER / "huai-commit-request@.path"
    assert values(stamp, "Unit") == ["huai-commit-request@%i.service"]
    assert values(stamp, "Wants") == ["huai-commit-request@%i.path"]
    assert values(request, "Unit") == ["huai-commit@%i.service"]
    state = "/var/lib/" + values(REQUEST, "StateDirectory")[0]
    assert values(request, "PathExists") == [f"{state}/%i"]
    folder = "%S/" + values(REQUEST, "StateDirectory")[0]
    assert values(REQUEST, "ExecStart") == [f"/bin/touch {folder}/%i"]
    removal, wait = values(FOLDER / "huai-commit@.service", "ExecStartPre")
    assert removal == f"+/bin/rm -f {folder}/%i"
    assert REQUEST.name.replace("@", "@%i") in wait
