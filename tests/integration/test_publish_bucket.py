"""Static files in a bucket of a real S3 server, which a real web server in front serves."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import httpx
import pytest

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository
from huai_schema.codec.static_files import Static
from huai_server.config.place import parse_bucket
from huai_server.static.bucket import Bucket as Target
from huai_server.static.unused import GRACE
from tests.support import prepared
from tests.support.buckets import CREDENTIALS, SECRET, Bucket, S3Server, s3_server
from tests.support.committing import NAME, git, server_environment
from tests.support.interrupting_proxy import Moment, interrupting
from tests.support.nginx import Nginx
from tests.support.prepared import Started
from tests.support.processes import SECONDS, run_program
from tests.support.static_files import Publisher
from tests.support.upstream import Site, assert_equal

ENVIRONMENT = {**server_environment(), **CREDENTIALS}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture
def bucket(s3: S3Server) -> Bucket:
    return s3.bucket()


@pytest.fixture
def web(bucket: Bucket) -> Iterator[Nginx]:
    with bucket.web() as running:
        yield running


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    publisher = Publisher(tmp_path)
    publisher.upstream.configure(block_index=128 << 10)
    publisher.change(*range(40))
    return publisher


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `huai-server`, which never prints the secret."""
    words = ["--root", str(root), *arguments]
    done = prepared.ran(prepared.SERVER, words, ENVIRONMENT, SECONDS)
    assert "Traceback" not in done.stderr, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done


def configure(publisher: Publisher, to: str, endpoint: str) -> Path:
    """Write a server.toml that names the bucket; return its state root."""
    root = publisher.upstream.root
    path = publisher.upstream.module.path
    (root / "server.toml").write_text(
        f'[static]\nto = ["{to}"]\nendpoint = "{endpoint}"\n'
        f'[modules.{NAME}]\npath = "{path}"\nblock_index = 131072\n'
    )
    return root


def fetch(web: Nginx, folder: Path) -> str:
    """Bring a downstream's metadata up to date; git finds nothing wrong."""
    repository = Repository(folder)
    commit = repository.fetch(MetadataUrl.of(web.url, NAME)).id
    repository.keep([commit])
    report = git(folder, "fsck", "--full", "--strict", "--no-dangling").splitlines()
    assert not [line for line in report if not line.startswith("notice: ")], report
    return commit


def address(web: Nginx, name: str) -> str:
    return f"{web.url}/git/{NAME}.git/{name}"


def test_a_downstream_syncs_from_there(place: Site, bucket: Bucket, web: Nginx) -> None:
    up = place.upstream()
    config = up.root / "server.toml"
    config.write_text(f'{config.read_text()}\n[static]\nendpoint = "{bucket.endpoint}"\n')
    down = place.downstream(up, url=web.url)
    for number in range(3):
        up.many(b"d%d" % number, 20)
        up.commit()
        done = run(up.root, "publish", up.name, "--to", bucket.to, "--json")
        assert done.returncode == 0, done
        assert json.loads(done.stdout)["to"] == bucket.to
        down.synced()
        assert_equal(up, down)
    before = len(web.requests)
    assert down.sync().code == 0
    (request,) = web.requests[before:]  # nothing new is one request without a body
    assert request.split()[1] == "304"
    assert request.endswith("/static/head")


def test_each_commit_publishes(publisher: Publisher, bucket: Bucket, web: Nginx) -> None:
    """With the large files' block indices, and caching as the kind of file allows."""
    root = configure(publisher, bucket.to, bucket.endpoint)
    (publisher.upstream.tree / "large").write_bytes(os.urandom(300_000))
    done = run(root, "commit", NAME)
    assert done.returncode == 0, done
    assert f"{bucket.to}: serial 2, " in done.stdout
    head = httpx.get(address(web, "static/head"))
    static = Static.decode(head.content, "head")
    assert static.newest == 2
    (index,) = (publisher.upstream.places.repository / "blocks").glob("??/*")
    response = httpx.get(address(web, f"blocks/{index.parent.name}/{index.name}"))
    assert response.content == index.read_bytes()
    for step in static.steps:
        pack = httpx.get(address(web, f"static/{step.file.pack_name}"))
        assert len(pack.content) == step.file.size
        if bucket.complete:
            assert pack.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert pack.headers["content-type"] == "application/octet-stream"
            assert head.headers["cache-control"] == "public, max-age=10"
    again = run(root, "publish", NAME)
    assert again.stdout.endswith(f"{NAME}: {bucket.to}: nothing new, serial 2\n")


def target(bucket: Bucket, folder: Path) -> Target:
    """Open a bucket as `publish` does; the environment has the credentials."""
    place = parse_bucket(bucket.to)
    return Target(place, NAME, endpoint=bucket.endpoint, drafts=folder)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("credentials")
def test_a_file_of_several_parts(bucket: Bucket, web: Nginx, tmp_path: Path) -> None:
    opened = target(bucket, tmp_path / "drafts")
    opened.begin()
    content = os.urandom(20 << 20)
    (tmp_path / "draft").write_bytes(content)
    opened.add("static/packs/x", tmp_path / "draft")
    assert httpx.get(address(web, "static/packs/x")).content == content
    assert opened.read("static/packs/x", 70_000) == content[:70_000]
    assert list(opened.names("static")) == ["static/packs/x"]
    for _ in range(2):
        opened.remove("static/packs/x")
    assert opened.read("static/packs/x", 1) is None
    assert opened.names("static") == {}


@pytest.mark.usefixtures("credentials")
def test_what_is_not_needed_goes(
    publisher: Publisher, bucket: Bucket, web: Nginx, tmp_path: Path
) -> None:
    publisher.upstream.configure(keep="1m", keep_commits=2)
    opened = target(bucket, tmp_path / "drafts")
    now = publisher.upstream.head.time + 5_000
    for number in range(4):
        publisher.change(number)
        publisher.publish(opened, now=now)
    now += 2 * GRACE
    assert publisher.publish(opened, now=now).removed == 0  # seen to be unused
    assert publisher.publish(opened, now=now + GRACE).removed > 0
    static = Static.decode(httpx.get(address(web, "static/head")).content, "head")
    packs = {f"static/{step.file.pack_name}" for step in static.steps}
    assert opened.names("static/packs").keys() == packs
    assert fetch(web, tmp_path / "copy") == publisher.upstream.head.commit


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("done", [False, True])
def test_a_run_that_is_killed_leaves_what_can_be_read(
    publisher: Publisher, s3: S3Server, tmp_path: Path, *, done: bool
) -> None:
    """Before and after each change of the bucket; the next run finishes it."""
    old = publisher.upstream.head.commit
    buckets = [s3.bucket() for _ in range(5)]
    for bucket in buckets:
        root = configure(publisher, bucket.to, bucket.endpoint)
        assert run(root, "publish", NAME).returncode == 0
    (publisher.upstream.tree / "large").write_bytes(os.urandom(300_000))
    new = publisher.change(1, 2)
    amid, killed = 0, True
    for number, bucket in enumerate(buckets):
        killed = kill_at(publisher, bucket, Moment(number, done))
        with bucket.web() as web:
            commit = fetch(web, tmp_path / f"copy{number}")
            assert commit in (old, new)
            amid += killed and commit == old
            root = configure(publisher, bucket.to, bucket.endpoint)
            assert run(root, "publish", NAME).returncode == 0
            assert fetch(web, tmp_path / f"copy{number}") == new
        assert not list(publisher.upstream.places.drafts.iterdir())
    assert amid >= 2
    assert not killed  # all changes of a run were tried


def kill_at(publisher: Publisher, bucket: Bucket, moment: Moment) -> bool:
    """Kill a publish at a moment; return False if it ended before."""
    started: list[Started] = []

    def verdict(now: Moment) -> bool:
        if now == moment:
            started[0].kill()
            started[0].wait()
        return True

    with interrupting(bucket.endpoint, verdict) as proxy:
        root = configure(publisher, bucket.to, proxy)
        words = ["--root", str(root), "publish", NAME]
        null = subprocess.DEVNULL
        process = Started(prepared.SERVER, words, ENVIRONMENT, stdout=null, stderr=null)
        started.append(process)
        return process.wait(SECONDS) == -9


def test_a_service_that_fails(
    publisher: Publisher, bucket: Bucket, web: Nginx, tmp_path: Path
) -> None:
    """Once: it is asked again.  For good: the old head stays, and it is said."""
    old = publisher.upstream.head.commit
    with interrupting(bucket.endpoint, lambda now: now.number != 0) as proxy:
        assert run(configure(publisher, bucket.to, proxy), "publish", NAME).returncode == 0
    new = publisher.change(1)
    with interrupting(bucket.endpoint, lambda now: now.number < 1) as proxy:
        failed = run(configure(publisher, bucket.to, proxy), "publish", NAME)
    assert failed.returncode == 10
    assert f"{bucket.to}: " in failed.stderr
    assert "503" in failed.stderr
    assert "what was published before is still there" in failed.stderr
    assert fetch(web, tmp_path / "copy") == old
    publisher.upstream.write("new")
    root = configure(publisher, bucket.to, "http://127.0.0.1:1")
    failed = run(root, "commit", NAME)
    assert failed.returncode == 10
    assert publisher.upstream.head.commit != new  # committed all the same
    assert run(configure(publisher, bucket.to, bucket.endpoint), "publish", NAME).returncode == 0
    assert fetch(web, tmp_path / "copy") == publisher.upstream.head.commit


def test_a_service_that_never_answers(publisher: Publisher, bucket: Bucket) -> None:
    """A signal ends the wait for it."""
    requested, over = Event(), Event()

    def verdict(_: Moment) -> bool:
        requested.set()
        return over.wait(SECONDS)

    with interrupting(bucket.endpoint, verdict) as proxy:
        root = configure(publisher, bucket.to, proxy)
        words = ["--root", str(root), "publish", NAME]
        process = Started(prepared.SERVER, words, ENVIRONMENT, stderr=subprocess.DEVNULL)
        assert requested.wait(SECONDS)
        process.terminate()
        assert process.wait(SECONDS) == 143
        over.set()


def test_a_bucket_or_a_library_that_is_missing(publisher: Publisher, bucket: Bucket) -> None:
    root = configure(publisher, "s3://no-such-bucket/x", bucket.endpoint)
    failed = run(root, "publish", NAME)
    if bucket.complete:
        assert failed.returncode == 52
        assert "s3://no-such-bucket/x: the bucket does not exist" in failed.stderr
    failed = run(root, "publish", NAME, "--to", "s3://x//y")
    assert failed.returncode == 52
    assert "s3://x//y: not the address of a bucket" in failed.stderr
    hide = "import sys; sys.modules['obstore'] = None"
    code = f"{hide}; from huai_server.__main__ import main; main()"
    command = [sys.executable, "-c", code, "--root", str(root), "publish", NAME]
    done = run_program(*command, env=ENVIRONMENT)
    assert done.returncode == 51, done.stderr
    assert "obstore is not installed" in done.stderr
    assert "huai[s3]" in done.stderr
