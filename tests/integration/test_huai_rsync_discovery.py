"""A source that announces its metadata needs no configuration at all."""

import os
import subprocess
from pathlib import Path

import pytest

from huai_client.config.load import load
from huai_client.state.paths import module_places
from huai_client.state.state import load as load_state
from huai_schema.codec.announcement import FILE_NAME, Announcement
from huai_server.state.paths import FallbackPlaces
from tests.integration.test_fallback_serve import Site as FallbackSite
from tests.integration.test_fallback_serve import serving as fallback_serving
from tests.support.committing import NAME, run_server
from tests.support.redirecting import contents
from tests.support.rsync_calls import TUNASYNC, RecordedRsync, picture, program, run
from tests.support.upstream import ENVIRONMENT, SERVER, Ended, Site, serving


class Newcomer:
    """An administrator with a tree that rsync made, who writes `huai-rsync` for `rsync`."""

    def __init__(self, place: Site, folder: Path) -> None:
        self.up = place.upstream()
        self.up.many(b"pool", 5)
        command = [*SERVER, "--root", str(self.up.root), "announce", self.up.name, place.url]
        subprocess.run(command, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        self.up.commit()
        self.source = f"{place.content_url}/{self.up.name}/"
        self.dest, self.root = folder / "copy", folder / "root"
        self.program = program(folder)
        assert run("rsync", "-a", self.source, str(self.dest), environment={}).code == 0

    def publish(self, path: bytes) -> None:
        self.up.put(path, b"content")
        self.up.commit()

    def call(self, *options: str, source: str = "", **settings: str) -> Ended:
        """Run `huai-rsync`."""
        environment = {"HUAI_CLIENT_ROOT": str(self.root), **settings}
        target = (source or self.source, f"{self.dest}/")
        return run(self.program, *options, *target, environment=environment)

    def assert_by_rsync(self, *options: str, **settings: str) -> None:
        """Run it; it leaves the work to rsync, and configures no module."""
        ended = self.call(*TUNASYNC, *options, **settings)
        assert ended.code == 0, ended
        assert self.modules() == []
        assert picture(self.dest) == picture(self.up.tree)

    def modules(self) -> list[str]:
        """Return the modules of client.toml."""
        return list(load(self.root).modules)


@pytest.fixture
def newcomer(place: Site, tmp_path: Path) -> Newcomer:
    return Newcomer(place, tmp_path)


def test_one_word_is_enough(newcomer: Newcomer) -> None:
    up = newcomer.up
    for number in range(3):
        newcomer.publish(b"pool/new %d" % number)
        ended = newcomer.call(*TUNASYNC, "-q")
        assert (ended.code, ended.out) == (0, "")
        assert picture(newcomer.dest) == picture(up.tree)
        # A message says once that huai decides what is deleted from now on.
        assert ("written into" in ended.err) is (number == 0)
        assert ended.err.count("\n") == (number == 0)
        assert newcomer.modules() == [up.name]
    module = load(newcomer.root).module(up.name)
    assert (module.owners, module.safe_links) == (False, True)
    assert load_state(module_places(newcomer.root, up.name).state).applied


def test_the_rules_of_the_call_become_the_filter(newcomer: Newcomer, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("/pool/1\n*.iso\n# no more\n")
    (newcomer.dest / "own.iso").touch()
    options = (*TUNASYNC, f"--exclude-from={tmp_path}/list", "--exclude", "[x]")
    for number in range(2):
        newcomer.publish(b"pool/new %d" % number)
        newcomer.publish(b"large %d.iso" % number)
        ended = newcomer.call(*options)
        assert (ended.code, "the real rsync runs" in ended.err) == (0, False)
        assert sorted(os.listdir(newcomer.dest)) == [FILE_NAME, "own.iso", "pool"]
        assert (newcomer.dest / f"pool/new {number}").exists()
    assert len(load(newcomer.root).module(newcomer.up.name).filter) == 3


def test_dots_after_a_symlink_lead_where_the_kernel_goes(
    newcomer: Newcomer, tmp_path: Path
) -> None:
    """The folder that has the name of DEST without them is another one."""
    (tmp_path / "volume/copies").mkdir(parents=True)
    (tmp_path / "current").symlink_to("volume/copies")
    newcomer.dest.rename(tmp_path / "volume/copy")
    other = newcomer.dest
    other.mkdir()
    (other / "precious").write_text("not a copy")
    newcomer.dest = tmp_path / "current/../copy"
    newcomer.publish(b"pool/new")
    assert newcomer.call(*TUNASYNC).code == 0
    assert newcomer.modules() == [newcomer.up.name]
    assert os.listdir(other) == ["precious"]
    assert picture(newcomer.dest) == picture(newcomer.up.tree)


def test_what_rsync_does_although_the_source_announces_metadata(newcomer: Newcomer) -> None:
    newcomer.assert_by_rsync("-n")
    assert os.listdir(newcomer.root / "modules") == []
    ended = newcomer.call(*TUNASYNC, HUAI_RSYNC_DISCOVER="no", HUAI_RSYNC_EXPLAIN="yes")
    assert (ended.code, newcomer.modules()) == (0, [])
    reason = "no module has this destination"
    assert ended.err == f"huai-rsync: the real rsync runs: {reason}\n"
    for number in range(1100):
        (newcomer.dest / f"own {number}").touch()
    newcomer.assert_by_rsync(HUAI_RSYNC_FALLBACK="no")
    for name in os.listdir(newcomer.dest):
        (newcomer.dest / name).rename(newcomer.root.parent / f"away-{name}")
    newcomer.assert_by_rsync()


def test_without_a_place_for_its_state_it_is_rsync(newcomer: Newcomer) -> None:
    newcomer.root.write_text("a file in the place of the folder")
    newcomer.publish(b"pool/new")
    ended = newcomer.call(*TUNASYNC)
    assert ended.code == 0, ended
    assert (newcomer.dest / "pool/new").exists()


def count_announcements(rsync: RecordedRsync) -> int:
    """Count how often rsync fetched the file."""
    words = (word for call in rsync.calls for word in call)
    return sum(word.endswith(f"/{FILE_NAME}") for word in words)


def test_a_source_without_huai_is_asked_once_a_day(newcomer: Newcomer, tmp_path: Path) -> None:
    """Only the daemon that the call names is asked: no port of its host is tried."""
    rsync = RecordedRsync(tmp_path)
    settings = {"HUAI_RSYNC_EXPLAIN": "yes", **rsync.environment}
    for _ in range(2):
        ended = newcomer.call(*TUNASYNC, source=f"{newcomer.source}pool/", **settings)
        assert ended.code == 0
        assert "no module has this destination" in ended.err
    assert count_announcements(rsync) == 1
    assert newcomer.modules() == []


def test_a_source_that_is_not_utf_8_is_rsyncs(newcomer: Newcomer) -> None:
    newcomer.up.put(b"\xff/file", b"content")
    source = newcomer.source + os.fsdecode(b"\xff/")
    ended = newcomer.call(*TUNASYNC, source=source)
    assert ended.code == 0, ended
    assert os.listdir(newcomer.dest) == ["file"]


def test_a_daemon_that_is_down_is_asked_again(newcomer: Newcomer) -> None:
    ended = newcomer.call(*TUNASYNC, source="rsync://127.0.0.1:9/x/", HUAI_RSYNC_EXPLAIN="yes")
    assert ended.code == 10
    assert f"{FILE_NAME} cannot be fetched from" in ended.err
    assert not (newcomer.root / "rsync-sources.json").exists()


@pytest.mark.parametrize("text", [b"", b"huai-upstream 1\nurl ftp://x\nmodule m\n", b"x" * 5000])
def test_a_damaged_file_leads_nowhere(newcomer: Newcomer, text: bytes) -> None:
    newcomer.up.put(FILE_NAME.encode(), text)
    assert newcomer.call(*TUNASYNC).err == ""
    assert newcomer.modules() == []
    assert picture(newcomer.dest) == picture(newcomer.up.tree)


def test_the_administrator_may_name_the_upstream(newcomer: Newcomer, place: Site) -> None:
    newcomer.up.at(FILE_NAME.encode()).unlink()
    newcomer.up.commit()
    assert newcomer.call(*TUNASYNC, HUAI_RSYNC_UPSTREAM=place.url).code == 0
    assert newcomer.modules() == [newcomer.up.name]


def test_the_password_goes_to_the_daemon_that_was_named(
    newcomer: Newcomer, place: Site, tmp_path: Path
) -> None:
    """Whatever other content URLs the metadata name.

    The rsyncs that fetch content are confined and cannot write down their calls; where they may
    go is seen by the files they fetched, with another URL in the first place.
    """
    newcomer.up.change(content_urls=("rsync://elsewhere.example/x", newcomer.source))
    newcomer.publish(b"pool/new")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret").chmod(0o600)
    rsync = RecordedRsync(tmp_path)
    ended = newcomer.call(*TUNASYNC, f"--password-file={tmp_path}/secret", **rsync.environment)
    assert (ended.code, newcomer.modules()) == (0, [newcomer.up.name])
    assert (newcomer.dest / "pool/new").exists()
    calls = [" ".join(call) for call in rsync.calls]
    with_password = [call for call in calls if "--password-file" in call]
    assert len(with_password) >= count_announcements(rsync) == 1
    assert all(newcomer.source in call for call in with_password)
    assert "elsewhere" not in "".join(calls) + ended.err.replace(newcomer.source, "")
    assert place.content_url in newcomer.source


def test_the_name_alone_proves_nothing(newcomer: Newcomer, place: Site) -> None:
    """A server that has a module of that name, and names another source for it."""
    other = place.upstream(content_urls=("rsync://elsewhere.example/x",))
    other.many(b"other", 3)
    other.commit()
    folder = newcomer.up.tree / other.name
    folder.mkdir()
    (folder / "mine").write_text("mine")
    (folder / FILE_NAME).write_bytes(Announcement.of(place.url, other.name).encode())
    source = f"{newcomer.source}{other.name}/"
    for _ in range(2):
        ended = newcomer.call(*TUNASYNC, source=source)
        assert (ended.code, ended.err) == (0, "")
        assert sorted(os.listdir(newcomer.dest)) == [FILE_NAME, "mine"]
    assert newcomer.modules() == []
    assert os.listdir(newcomer.root / "modules") == []


def test_the_fallback_daemon_serves_the_file(short_path: Path) -> None:
    """The attr tree lists it, without its content, which is read in the real tree."""
    site = FallbackSite(short_path)
    with fallback_serving(site), serving(site.root) as (_, url):
        site.modules[NAME] += f'content_urls = ["{site.url(NAME)}/"]'
        site.configure()
        assert run_server(site.root, "announce", NAME, url).returncode == 0
        site.commit()
        announcement = Announcement.of(url, NAME).encode()
        listed = FallbackPlaces(site.fallback / NAME).tree / FILE_NAME
        assert listed.read_bytes() == bytes(len(announcement))
        assert site.fetch().returncode == 0
        assert (site.copy / FILE_NAME).read_bytes() == announcement
        (site.tree / "new").write_bytes(b"new")
        site.commit()
        root = short_path / "client"
        settings = {"HUAI_CLIENT_ROOT": str(root), "HUAI_RSYNC_FALLBACK": "no"}
        words = (*TUNASYNC, site.url(f"{NAME}/"), f"{site.copy}/")
        ended = run(program(short_path), *words, environment=settings)
        assert (ended.code, "written into" in ended.err) == (0, True), ended
        assert list(load(root).modules) == [NAME]
        assert contents(site.copy) == contents(site.tree)
