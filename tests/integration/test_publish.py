"""Static files hold what a clone holds, for a downstream of any commit; the head says which."""

import os
import shutil
from pathlib import Path

import pytest

from huai_native._native import Blake3
from huai_program.tables import to_toml
from huai_schema.codec.static_files import NOTHING, Static
from huai_server.static.catalog import list_of_rest
from huai_server.static.folder import StaticFolder
from huai_server.static.newest import is_published, newest_published
from huai_server.static.unused import GRACE
from huai_server.store.disk_use import disk_use
from huai_server.store.maintain import maintain
from tests.support.committing import NAME, run_server
from tests.support.static_files import Publisher

FILES = 300


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    publisher = Publisher(tmp_path)
    for number in range(FILES):
        publisher.upstream.write(f"d{number % 7}/f{number}", str(number))
    publisher.upstream.commit()
    return publisher


def all_files(publisher: Publisher) -> dict[str, bytes]:
    """Packs and lists, by their names."""
    paths = [*publisher.files.glob("static/packs/*"), *publisher.files.glob("static/lists/*")]
    return {str(path.relative_to(publisher.files)): path.read_bytes() for path in paths}


def test_git_unpacks_the_way_from_every_commit(publisher: Publisher, tmp_path: Path) -> None:
    """Every downstream, empty or at any commit, gets all of the newest; and no file changes."""
    publisher.publish()
    commit, before = "", all_files(publisher)
    copies: dict[int, Path] = {}
    for number in range(1, 76):
        commit = publisher.change(number, 3 * number % FILES)
        done = publisher.publish()
        assert done.head.commit == commit
        files = all_files(publisher)
        assert before.items() <= files.items()
        assert done.files == len(files.keys() - before.keys())
        before = files
        if number in (1, 30, 63, 74):
            copies[done.head.info.serial] = tmp_path / f"copy{number}"
            publisher.unpack(copies[done.head.info.serial])
    for name, content in before.items():
        assert Blake3(content).digest().hex() == Path(name).stem
    assert publisher.unpack(tmp_path / "new") == commit
    for serial, copy in copies.items():
        assert len(publisher.steps(serial)) < 25
        assert publisher.unpack(copy, serial) == commit


def test_nothing_new_writes_nothing_but_what_is_damaged(publisher: Publisher) -> None:
    before_umask = os.umask(0o077)
    try:
        publisher.publish()
    finally:
        os.umask(before_umask)
    for path in (publisher.folder / "git").rglob("*"):  # for the web server
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path
    head, expected = publisher.files / "static/head", publisher.head
    before = head.stat()
    assert publisher.publish().files == 0
    assert head.stat().st_ino == before.st_ino
    assert publisher.publish(now=before.st_mtime + 100_000).files == 0
    for text in (b"", b"huai-static\t1\n", b"\xff" * 300_000):
        head.write_bytes(text)
        publisher.publish()
        assert publisher.head == expected


def test_lost_files_are_written_again(publisher: Publisher, tmp_path: Path) -> None:
    """By a publication without a new commit, as after a restored backup."""
    for number in range(70):
        publisher.change(number)
    publisher.publish()
    for folder in ("packs", "lists"):
        for path in (publisher.files / "static" / folder).iterdir():
            path.unlink()
            assert publisher.publish().files > 0
            assert publisher.publish().files == 0
            assert publisher.unpack(tmp_path / path.name) == publisher.upstream.head.commit
            publisher.steps(1)


def test_commits_that_nobody_published(publisher: Publisher, tmp_path: Path) -> None:
    """The next publication includes the missed commits."""
    publisher.publish()
    publisher.unpack(tmp_path / "copy")
    for number in range(5):
        publisher.change(number)
    publisher.publish()
    assert [len(publisher.steps(serial)) for serial in (1, 5, 6)] == [5, 1, 0]
    assert publisher.unpack(tmp_path / "copy", 1) == publisher.upstream.head.commit


class Slow(StaticFolder):
    """A folder that takes as long to begin as a commit takes."""

    def __init__(self, publisher: Publisher) -> None:
        super().__init__(publisher.files, publisher.folder)
        self._publisher = publisher

    def begin(self) -> None:
        self._publisher.change(2)
        super().begin()


def test_a_commit_during_a_publication(publisher: Publisher, tmp_path: Path) -> None:
    done = publisher.publish(Slow(publisher))
    assert (done.head.info.serial, publisher.head.newest) == (2, 2)
    assert publisher.unpack(tmp_path / "copy") == publisher.upstream.head.commit


def test_a_folder_that_is_new(publisher: Publisher, tmp_path: Path) -> None:
    """Steps lead there from commits of before."""
    for number in range(10):
        publisher.change(number)
    publisher.publish()
    assert publisher.head.newest == 11
    assert len(publisher.steps(1)) == 4
    publisher.unpack(tmp_path / "copy")


def test_a_history_that_began_anew(publisher: Publisher, tmp_path: Path) -> None:
    """Steps from commits that the repository never had are not named."""
    publisher.change(1)
    publisher.publish()
    other = Publisher(tmp_path / "other")
    for number in range(3):
        other.upstream.write(f"f{number}")
        other.upstream.commit()
    other.folder = publisher.folder
    other.publish()
    assert sorted(other.head.commits) == [1, 2, 3]
    assert other.head.commits[3] == other.upstream.head.commit
    other.unpack(tmp_path / "copy")


def test_what_the_module_drops_is_not_named_and_goes(publisher: Publisher) -> None:
    publisher.upstream.configure(keep="1m", keep_commits=4)
    for number in range(20):
        publisher.change(number)
        publisher.publish()
    now = publisher.upstream.head.time + 5_000
    maintain(publisher.upstream.places, lambda: publisher.upstream.module.retention, now=now)
    publisher.change(30)
    before = all_files(publisher)
    publisher.publish(now=now)  # looks for what is unused, which it did at first only
    assert min(step.old for step in publisher.head.steps if step.old != NOTHING) > 10
    assert before.items() <= all_files(publisher).items()  # for readers of the old head
    assert publisher.publish(now=now + GRACE - 3_000).removed == 0
    assert publisher.publish(now=now + GRACE + 3_000).removed > 5
    packs = {step.file.pack_name for step in publisher.head.steps}
    assert {name.removeprefix("static/") for name in all_files(publisher)} == packs


def test_nothing_is_removed_while_a_list_is_damaged(publisher: Publisher) -> None:
    for number in range(140):
        publisher.change(number)
        publisher.publish()
    rest = list_of_rest(publisher.head)
    assert rest is not None
    listing = publisher.files / "static" / rest.file.list_name
    (older, *_) = Static.decode(listing.read_bytes(), "").lists
    damaged = publisher.files / "static" / older.file.list_name
    damaged.write_bytes(b"x" + damaged.read_bytes()[1:])
    before = all_files(publisher)
    now = publisher.upstream.head.time + 5_000
    for later in (0, GRACE, 2 * GRACE):
        assert publisher.publish(now=now + later).removed == 0
    assert before == all_files(publisher)


def test_block_indices_come_and_go_with_the_repository(publisher: Publisher) -> None:
    publisher.upstream.configure(block_index=128 << 10)
    (publisher.upstream.tree / "large").write_bytes(os.urandom(300_000))
    publisher.upstream.commit()
    publisher.publish()
    (index,) = (publisher.upstream.places.repository / "blocks").glob("??/*")
    copy = publisher.files / "blocks" / index.parent.name / index.name
    assert copy.read_bytes() == index.read_bytes()
    index.unlink()
    publisher.publish()
    assert not copy.exists()


def configure(publisher: Publisher, text: str) -> Path:
    root = publisher.upstream.root
    module = to_toml(publisher.upstream.module)
    (root / "server.toml").write_text(f'{text}\n[modules.{NAME}]\npath = "{module["path"]}"\n')
    return root


def test_each_commit_publishes(publisher: Publisher) -> None:
    root = configure(publisher, f'[static]\nto = ["{publisher.folder}"]')
    publisher.upstream.write("new")
    result = run_server(root, "commit", NAME)
    assert result.returncode == 0, result.stderr
    assert f"{publisher.folder}: serial 2, " in result.stdout
    assert publisher.head.newest == 2
    again = run_server(root, "publish", NAME)
    own = publisher.upstream.places.repository
    assert again.stdout == "".join(
        f"{NAME}: {place}: nothing new, serial 2\n" for place in (own, publisher.folder)
    )
    names = {path.name for path in own.glob("static/packs/*")}
    assert names == {path.name for path in publisher.files.glob("static/packs/*")}
    result = run_server(root, "publish", NAME, "--to", str(publisher.folder), "--json")
    assert f'"to": "{publisher.folder}"' in result.stdout, result
    assert run_server(root, "publish", "unknown").returncode == 45
    shutil.rmtree(own)
    result = run_server(root, "publish", NAME)
    assert result.returncode == 45
    assert f"run: huai-server commit {NAME}" in result.stderr


def test_a_place_that_is_missing_keeps_no_other_waiting(publisher: Publisher) -> None:
    absent = publisher.folder / "gone"
    root = configure(publisher, f'[static]\nto = ["{absent}", "{publisher.folder}"]')
    publisher.upstream.write("new")
    result = run_server(root, "commit", NAME)
    assert result.returncode == 52
    assert f"{absent}: the folder does not exist" in result.stderr
    assert publisher.head.newest == 2


def own_head(publisher: Publisher) -> Path:
    return publisher.upstream.places.repository / "static" / "head"


def test_a_commit_of_nothing_writes_what_is_missing(publisher: Publisher) -> None:
    """A module that an older version committed, or one after a killed run."""
    root = configure(publisher, "")
    assert not own_head(publisher).exists()
    unfinished = own_head(publisher).parent / "tmp_huai_x"
    for _ in range(2):
        unfinished.parent.mkdir(exist_ok=True)
        unfinished.touch()
        result = run_server(root, "commit", NAME)
        assert result.returncode == 0, result.stderr
        assert newest_published(own_head(publisher).parents[1]) == publisher.upstream.head.commit
        assert not unfinished.exists()
        publisher.upstream.write("new")
        publisher.upstream.commit()
        assert not is_published(own_head(publisher).parents[1])
    result = run_server(root, "publish", NAME)
    assert "serial 3, 1 file of " in result.stdout
    before = own_head(publisher).stat().st_ino
    assert run_server(root, "commit", NAME).returncode == 0
    assert own_head(publisher).stat().st_ino == before


def test_own_files_that_cannot_be_written_are_a_failure_of_their_own(publisher: Publisher) -> None:
    root = configure(publisher, f'[static]\nto = ["{publisher.folder}"]')
    (publisher.upstream.places.repository / "static").write_text("in the way")
    publisher.upstream.write("new")
    result = run_server(root, "commit", NAME)
    assert result.returncode not in (0, 1)
    assert "repository.git/static" in result.stderr
    assert publisher.head.newest == publisher.upstream.head.info.serial == 2


def test_no_symlink_is_followed_to_another_place(publisher: Publisher, tmp_path: Path) -> None:
    root = configure(publisher, "")
    (tmp_path / "elsewhere").mkdir()
    (publisher.upstream.places.repository / "static").symlink_to(tmp_path / "elsewhere")
    assert run_server(root, "publish", NAME).returncode == 52
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_check_and_disk_use_know_them(publisher: Publisher) -> None:
    for number in range(70):
        publisher.change(number)
    publisher.publish()
    places = publisher.upstream.places
    publisher.upstream.prove_sound()
    used = disk_use(places).static
    assert used.files == len(all_files(publisher)) + 2  # the head and the record of what is unused
    static = places.repository / "static"
    pack = static / publisher.head.steps[0].file.pack_name
    pack.write_bytes(pack.read_bytes()[:-1])
    report = publisher.upstream.check()
    assert any(f"{pack}: missing or damaged" in fault for fault in report.faults)
    assert not report.is_damaged
    shutil.rmtree(static)
    publisher.publish()
    publisher.upstream.prove_sound()
