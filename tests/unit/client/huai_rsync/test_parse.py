"""The requests of rsync's arguments, and the calls that are left to rsync."""

import shlex

import pytest

from huai_client.huai_rsync.log import ITEMIZED, NAMED
from huai_client.huai_rsync.parse import parse_arguments
from huai_client.huai_rsync.request import Passthrough, RsyncRequest

ENDS = "rsync://mirror.example/tools/ /srv/copy/tools/"


def call(options: str, ends: str = ENDS) -> RsyncRequest:
    """Parse a command line that huai carries out."""
    parsed = parse_arguments(shlex.split(f"{options} {ends}"))
    assert isinstance(parsed, RsyncRequest), parsed
    return parsed


def foreign(options: str, ends: str = ENDS) -> Passthrough:
    """Parse a command line that is left to rsync."""
    parsed = parse_arguments(shlex.split(f"{options} {ends}"))
    assert isinstance(parsed, Passthrough), parsed
    return parsed


def test_archive_means_what_it_stands_for() -> None:
    parsed = call("-a")
    assert parsed.owners
    assert not parsed.delete
    assert not call("-a --no-owner").owner
    assert call("--no-owner -a").owner, "the later one counts"


@pytest.mark.parametrize(
    "option",
    ["-c", "--files-from=x", "--link-dest ../y", "-R", "-zi0", "--info=name,help", "--info=del10"],
)
def test_refused(option: str) -> None:
    parsed = foreign(f"-a {option}")
    assert parsed.reason.startswith("--")
    assert parsed.targets == ("/srv/copy/tools/",)
    assert not parsed.harmless


def test_not_understood(subtests: pytest.Subtests) -> None:
    for option in [
        "--fancy",
        "-j",
        "--chmod=a+r",
        "--chmod=D755,F600",
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
    parsed, usual = call("-a", f"{source} /srv/x"), call("-a")
    assert parsed.source.same_place(usual.source) is same


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
            reason = foreign("-a", f"{source} /srv/x").reason
            assert "is not a folder of an rsync daemon, with a slash at the end" in reason


def test_a_port_counts() -> None:
    parsed = call("-a --port 8873", "mirror.example::tools /srv/x")
    assert str(parsed.source) == "rsync://mirror.example:8873/tools"
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
    parsed = call("-an --delete -vv -i")
    assert parsed.dry_run
    assert parsed.harmless
    assert parsed.style.format == ITEMIZED
    assert parsed.style.totals
    assert parsed.style.names
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
            parsed = (style.format, style.deletions, style.totals, style.stats)
            assert parsed == (format_, deletions, totals, stats)


def test_what_real_mirrors_say_beside_the_point() -> None:
    parsed = call(
        "-a -T /srv/tmp --temp-dir=x --preallocate --log-file=/log/x --log-file-format=%n"
    )
    assert (parsed.style.log, parsed.style.log_format, parsed.style.names) == ("/log/x", "%n", True)
    assert call("-a --log-file=/log/x").style.log_format == ITEMIZED
    assert "--out-format: %b" in foreign("-a --out-format='%n %b'").reason


def test_a_remote_shell_leads_to_a_daemon_only() -> None:
    parsed = call("-a -e 'ssh -l me'", "h::m /srv/x")
    assert parsed.rsync_options == ("--rsh=ssh -l me",)
    assert "--rsh" in foreign("-a -e ssh").reason
    assert "--rsh" in foreign("-a -e ssh --port=1", "h::m /srv/x").reason
    assert foreign("-a -e ssh", "h:/m/ /srv/x").reason == "--rsh"


def test_a_call_without_perms() -> None:
    assert not call("-rlt").perms
    assert call("-a").perms
    assert not call("-a --no-p").perms
    assert "--executability" in foreign("-rltE").reason
    assert call("-aE").perms
    assert "--chmod" in foreign("-rlt --chmod=D755,F644").reason


def test_the_end_of_options() -> None:
    parsed = parse_arguments(["-a", "--", "h::m", "-x"])
    assert isinstance(parsed, RsyncRequest)
    assert parsed.dest == "-x"
