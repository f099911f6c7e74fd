"""What rsync's arguments ask for, and which of them are left to rsync."""

import shlex

import pytest

from huai_client.huai_rsync.log import ITEMIZED, NAMED
from huai_client.huai_rsync.parse import parse_arguments
from huai_client.huai_rsync.request import FilterOption, Passthrough, RsyncRequest

ENDS = "rsync://mirror.example/tools/ /srv/copy/tools/"


def call(options: str, ends: str = ENDS) -> RsyncRequest:
    """A command line that has to be understood."""
    found = parse_arguments(shlex.split(f"{options} {ends}"))
    assert isinstance(found, RsyncRequest), found
    return found


def foreign(options: str, ends: str = ENDS) -> Passthrough:
    """A command line that is rsync's."""
    found = parse_arguments(shlex.split(f"{options} {ends}"))
    assert isinstance(found, Passthrough), found
    return found


def test_tunasync() -> None:
    found = call(
        "-aHvh --no-o --no-g --stats --filter 'risk .~tmp~/' --exclude .~tmp~/ --delete "
        "--delete-after --delay-updates --safe-links --timeout=120 -6"
    )
    assert str(found.source) == "rsync://mirror.example/tools"
    assert found.dest == "/srv/copy/tools/"
    assert (found.owner, found.group, found.owners) == (False, False, False)
    assert found.delete
    assert not found.delete_excluded
    assert found.safe_links
    assert found.timeout == 120
    assert found.rsync_options == ("--ipv6",)
    assert found.filters == (FilterOption("filter", "risk .~tmp~/"), ("exclude", ".~tmp~/"))
    assert (found.style.verbosity, found.style.human, found.style.stats) == (1, 2, True)


def test_ftpsync() -> None:
    found = call(
        "-prltvHSB8192 --timeout 3600 --stats --max-delete=40000 --delay-updates --delete "
        "--delete-excluded --bwlimit=1m --chmod=D755,F644"
    )
    assert found.modes == (0o755, 0o644)
    assert (found.max_delete, found.timeout, found.bwlimit) == ("40000", 3600, 1024)
    assert found.delete_excluded
    assert not found.owners


def test_archive_means_what_it_stands_for() -> None:
    found = call("-a")
    assert found.owners
    assert not found.delete
    assert not call("-a --no-owner").owner
    assert call("--no-owner -a").owner, "the later one counts"


@pytest.mark.parametrize("option", ["-c", "--files-from=x", "--link-dest ../y", "-R", "-zi0"])
def test_refused(option: str) -> None:
    found = foreign(f"-a {option}")
    assert found.reason.startswith("--")
    assert found.targets == ("/srv/copy/tools/",)
    assert not found.harmless


def test_not_understood(subtests: pytest.Subtests) -> None:
    for option in [
        "--fancy",
        "-j",
        "--chmod=a+r",
        "--timeout=soon",
        "--delete=x",
        "--no-zz",
        "--bwlimit=fast",
    ]:
        with subtests.test(option=option):
            assert not foreign(f"-a {option}").harmless


@pytest.mark.parametrize("option", ["-r", "-rl", "-rt", "-lt", "-a --no-links"])
def test_without_what_a_mirror_needs(option: str) -> None:
    assert foreign(option).reason.startswith("without --")


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("mirror.example::tools", True),
        ("rsync://mirror.example:873/tools", True),
        ("rsync://anybody@MIRROR.example/tools/", True),
        ("rsync://mirror.example:874/tools/", False),
        ("rsync://mirror.example/tools/sub/", False),
    ],
)
def test_spellings_of_one_source(source: str, same: bool) -> None:
    found, usual = call("-a", f"{source} /srv/x"), call("-a")
    assert found.source.same_place(usual.source) is same


def test_sources_that_are_no_folder_of_a_daemon(subtests: pytest.Subtests) -> None:
    for source in [
        "mirror.example:tools/",
        "/srv/mirror/",
        "rsync://h/m/folder",
        "h::m/*",
        "rsync://h/",
        "h::m/../x/",
    ]:
        with subtests.test(source=source):
            assert "is not a folder of an rsync daemon" in foreign("-a", f"{source} /srv/x").reason


def test_a_port_counts() -> None:
    found = call("-a --port 8873", "mirror.example::tools /srv/x")
    assert str(found.source) == "rsync://mirror.example:8873/tools"
    # Which of two ports counts is rsync's business.
    assert not foreign("-a --port 8873", ENDS).harmless


def test_what_writes_nothing_here_is_harmless(subtests: pytest.Subtests) -> None:
    for arguments in [
        "--version",
        "-a",
        "",
        "-a h::m",
        "--help",
        "-a a b c h:x",
        "--server --sender -lte.iL . /x",
    ]:
        with subtests.test(arguments=arguments):
            assert foreign(arguments, "").harmless


def test_a_dry_run() -> None:
    found = call("-an --delete -vv -i")
    assert found.dry_run
    assert found.harmless
    assert found.style.format == ITEMIZED
    assert found.style.totals
    assert found.style.names
    assert not call("-aqv").style.names


def test_what_is_told(subtests: pytest.Subtests) -> None:
    for options, format_, deletions, totals, stats in [
        ("", "", False, False, False),
        ("-v", NAMED, True, True, False),
        ("-i", ITEMIZED, False, False, False),
        ("-iv", ITEMIZED, True, True, False),
        ("--stats", "", False, True, True),
        ("--info=name1,del1", NAMED, True, False, False),
        ("--info=del", "", True, False, False),
        ("-v --info=name0,stats0", "", True, False, False),
        ("--info=stats1", "", False, True, False),
        ("--info=progress2,stats2", "", False, True, True),
        ("--info=ALL", NAMED, True, True, False),
        ("-v --info=NONE", "", False, False, False),
        ("--out-format=%n", "%n", False, False, False),
        ("-i --log-format=%o:%f", "%o:%f", False, False, False),
    ]:
        with subtests.test(
            options=options, format_=format_, deletions=deletions, totals=totals, stats=stats
        ):
            style = call(f"-a {options}").style
            found = (style.format, style.deletions, style.totals, style.stats)
            assert found == (format_, deletions, totals, stats)


def test_what_real_mirrors_say_beside_the_point() -> None:
    found = call("-a -T /srv/tmp --temp-dir=x --preallocate --log-file=/log/x --log-file-format=%n")
    assert (found.style.log, found.style.log_format, found.style.names) == ("/log/x", "%n", True)
    assert call("-a --log-file=/log/x").style.log_format == ITEMIZED
    assert "--out-format: %b" in foreign("-a --out-format='%n %b'").reason


def test_a_remote_shell_leads_to_a_daemon_only() -> None:
    found = call("-a -e 'ssh -l me'", "h::m /srv/x")
    assert found.rsync_options == ("--rsh=ssh -l me",)
    assert "--rsh" in foreign("-a -e ssh").reason
    assert "--rsh" in foreign("-a -e ssh --port=1", "h::m /srv/x").reason
    assert foreign("-a -e ssh", "h:/m/ /srv/x").reason == "--rsh"


def test_a_call_without_perms() -> None:
    assert not call("-rlt").perms
    assert call("-a").perms
    assert not call("-a --no-p").perms
    assert "--executability" in foreign("-rltE").reason
    assert call("-aE").perms


def test_the_end_of_options() -> None:
    found = parse_arguments(["-a", "--", "h::m", "-x"])
    assert isinstance(found, RsyncRequest)
    assert found.dest == "-x"
