"""`[notify]`: which failures are reported to whom, after how many, and when they are over."""

import hashlib
import hmac
import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomlkit

from huai_client.config import load as config
from huai_client.config.hooks import NO_HOOKS, Hooks
from huai_client.state import state as states
from huai_client.state.paths import module_places
from huai_program.locking import locked
from huai_program.notify.mail import compose
from huai_program.notify.notification import Failure, Notification, Subject
from huai_program.notify.notifier import Streak, load
from huai_program.notify.settings import Mail
from huai_server.config import load as server_config
from huai_server.signing.expiry import ExpiryWatch
from tests.support.certificate import make_certificate
from tests.support.committing import NAME, run_server
from tests.support.hook_receiver import receiver, status
from tests.support.keys import key
from tests.support.mail_server import Login, MailServer, mail_server
from tests.support.mounting import full, needs_mounts, small_disk
from tests.support.processes import until
from tests.support.serving import serving
from tests.support.signed_upstream import SignedUpstream
from tests.support.upstream import Downstream, Site, Upstream

FAILS = Hooks(before="/bin/false")
"""Lets each sync fail, and at once."""


def notify(file: Path, **table: Any) -> None:
    """Configure `[notify]` of a program."""
    document = tomlkit.parse(file.read_text())
    document["notify"] = table
    file.write_text(tomlkit.dumps(document))


def mail(server: MailServer, **others: Any) -> dict[str, Any]:
    return {"to": "ops@mirror.example", "server": "127.0.0.1", "port": server.port, **others}


@pytest.fixture
def down(place: Site, up: Upstream) -> Downstream:
    return place.downstream(up)


def streak(down: Downstream) -> Streak:
    return load(module_places(down.root, down.name).notified)


def test_one_mail_for_a_streak_and_one_at_its_end(down: Downstream, up: Upstream) -> None:
    with mail_server() as server:
        notify(down.root / "client.toml", after=2, mail=mail(server, to=["a@x.example", "root"]))
        down.configure(hooks=FAILS)
        for count in (0, 1, 1, 1):
            assert down.sync().code == 56
            assert len(server.got) == count
        failed = server.got[0]
        down.configure(hooks=NO_HOOKS)
        assert down.sync().code == 0
        assert down.sync().code == 0
    host = socket.gethostname()
    assert server.subjects == [
        f"{up.name}: sync fails on {host}",
        f"{up.name}: sync works again on {host}",
    ]
    assert failed["To"] == "a@x.example, root"
    assert server.envelopes[0][1] == ("a@x.example", "root")
    text = failed.get_content()
    assert "exit code:   56, a hook failed" in text
    assert f"tree:        {down.dest}" in text
    assert "failed runs: 2" in text
    assert f"huai-client doctor {up.name}" in text
    assert "failed runs: 4" in server.got[1].get_content()
    assert streak(down) == Streak()


def test_a_test_message_goes_to_all_and_says_who_did_not_get_it(down: Downstream) -> None:
    assert down.run("notify").code == 40
    with mail_server() as server:
        notify(down.root / "client.toml", mail=mail(server), command="/bin/false")
        ended = down.run("notify")
    assert ended.code == 10
    assert ended.out.splitlines()[0] == "notify.mail: delivered"
    assert ended.out.splitlines()[1].startswith("notify.command: ")
    assert server.subjects == [f"test message of huai-client on {socket.gethostname()}"]


def test_a_failure_that_passes_is_not_reported(down: Downstream) -> None:
    with mail_server() as server:
        notify(down.root / "client.toml", after=2, mail=mail(server))
        for _ in range(2):
            down.configure(hooks=FAILS)
            assert down.sync().code == 56
            down.configure(hooks=NO_HOOKS)
            assert down.sync().code == 0
    assert server.got == []


def test_runs_that_are_killed_are_reported(down: Downstream, tmp_path: Path) -> None:
    waiting = tmp_path / "waiting"
    script = tmp_path / "before"
    script.write_text(f"#!/bin/sh\ntouch {waiting}\nexec sleep 60\n")
    script.chmod(0o755)
    down.configure(hooks=Hooks(before=str(script)))
    with mail_server() as server:
        notify(down.root / "client.toml", after=2, mail=mail(server))
        for number in range(3):
            process = down.spawn("sync", down.name)
            until(waiting.exists)
            assert len(server.got) == (number == 2)
            process.kill()
            process.communicate()
            waiting.unlink()
        assert "killed before it ended" in server.got[0].get_content()
        process = down.spawn("sync", down.name)
        until(waiting.exists)
        before = streak(down).failed
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert streak(down).failed == before - 1, "a run that was ended has not failed"
    assert len(server.got) == 1


def test_a_locked_module_and_a_dry_run_count_as_nothing(down: Downstream) -> None:
    with receiver() as hook:
        notify(down.root / "client.toml", after=1, web={"url": hook.url})
        lock = module_places(down.root, down.name).lock
        lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock):
            assert down.sync().code == 43
        down.configure(url=f"{hook.url}/none")
        assert down.sync("--dry-run").code
    assert hook.got == []
    assert streak(down) == Streak()


def test_a_wrong_table_of_a_module_is_reported(down: Downstream) -> None:
    with receiver() as hook:
        notify(down.root / "client.toml", after=1, web={"url": hook.url})
        down.configure(max_delete="all")
        assert down.sync().code == 40
    body = hook.got[0].message
    assert (body["code"], "max_delete" in body["reason"]) == (40, True)


def test_a_web_hook_is_signed_and_follows_no_redirection(down: Downstream, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    down.configure(hooks=FAILS)
    with receiver() as other, receiver(status(302, Location=other.url), status(204)) as hook:
        web = {"url": f"{hook.url}/secret-path", "secret_file": str(secret)}
        notify(down.root / "client.toml", after=1, web=web)
        refused = down.sync()
        assert "HTTP 302" in refused.err
        assert "secret-path" not in refused.err
        assert not streak(down).reported
        assert down.sync().code == 56
        assert down.sync().code == 56
    assert len(hook.got) == 2
    assert other.got == []
    got = hook.got[1]
    digest = hmac.new(b"correct horse", got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-hub-signature-256"] == f"sha256={digest}"
    body = got.message
    assert (body["type"], body["module"], body["runs"]) == ("failed", down.name, 2)
    assert body["text"].startswith(f"{down.name}: sync fails on ")


def test_a_command_gets_variables(down: Downstream, tmp_path: Path) -> None:
    script, out = tmp_path / "alarm", tmp_path / "out"
    script.write_text(f'#!/bin/sh\nprintf %s "$HUAI_TYPE $HUAI_CODE $1" > {out}\n')
    script.chmod(0o755)
    notify(down.root / "client.toml", after=1, command=[str(script), "word"])
    down.configure(hooks=FAILS)
    assert down.sync().code == 56
    assert out.read_text() == "failed 56 word"


def test_a_command_that_hangs_is_ended(down: Downstream, tmp_path: Path) -> None:
    number = tmp_path / "number"
    script = f"echo $$ > {number}; exec sleep 60"
    notify(down.root / "client.toml", after=1, timeout=1, command=["/bin/sh", "-c", script])
    down.configure(hooks=FAILS)
    ended = down.sync()
    assert ended.code == 56
    assert "time-out of 1 s" in ended.err
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), signal.SIGKILL)


def test_a_silent_mail_server_delays_a_run_little(down: Downstream) -> None:
    down.configure(hooks=FAILS)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        table = {"to": "ops@mirror.example", "server": "127.0.0.1", "port": port}
        notify(down.root / "client.toml", after=1, timeout=1, mail=table)
        done = down.sync("--json")
    assert done.code == 56
    assert "it took longer than 1 s" in done.err or "timed out" in done.err
    assert any("notify.mail" in event["message"] for event in done.events("warning"))


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_mail_by_tls_with_a_login(down: Downstream, tmp_path: Path, tls: Any) -> None:
    certificate = make_certificate(tmp_path)
    password = tmp_path / "password"
    password.write_text("correct horse\n")
    down.configure(hooks=FAILS)
    login = Login("ops", "correct horse")
    with mail_server(certificate=certificate, tls=tls, login=login) as server:
        table = mail(server, tls=tls, user="ops", password_file=str(password))
        notify(down.root / "client.toml", after=1, mail=table)
        unknown = down.process("sync", down.name)
        assert "CERTIFICATE_VERIFY_FAILED" in unknown.err
        environment = {"SSL_CERT_FILE": str(certificate[0])}
        password.write_text("wrong")
        wrong = down.process("sync", down.name, environment=environment)
        assert "535" in wrong.err
        password.write_text("correct horse\n")
        assert down.process("sync", down.name, environment=environment).code == 56
        assert "wrong" not in wrong.err, "no password is shown"
    assert len(server.got) == 1


def test_a_refused_recipient_is_named(down: Downstream) -> None:
    down.configure(hooks=FAILS)
    with mail_server() as server:
        server.refused = "ops@mirror.example"
        notify(down.root / "client.toml", after=1, mail=mail(server))
        done = down.sync()
    assert "no such user here" in done.err


def test_all_modules_each_have_a_streak(down: Downstream, up: Upstream) -> None:
    module = config.load(down.root).module(down.name)
    other = msgspec.structs.replace(
        module, hooks=FAILS, dest=f"{down.dest}-2", upstream_name=up.name
    )
    config.add_module(down.root, "other", other)
    with mail_server() as server:
        notify(down.root / "client.toml", after=1, mail=mail(server))
        assert down.process("sync", "--all").code == 56
        assert [each["X-Huai-Module"] for each in server.got] == ["other"]


def test_watch_reports_too(down: Downstream) -> None:
    down.configure(hooks=FAILS)
    with mail_server() as server:
        notify(down.root / "client.toml", after=1, mail=mail(server))
        process = down.spawn("watch")
        until(lambda: server.got)
        process.terminate()
        process.communicate()
    assert server.subjects == [f"{down.name}: sync fails on {socket.gethostname()}"]


def test_names_with_line_breaks_begin_no_header_and_no_line(tmp_path: Path) -> None:
    tree, root = tmp_path / "tree", tmp_path / "state"
    tree.mkdir()
    assert run_server(root, "add", NAME, str(tree)).returncode == 0
    (tree / "fine").touch()
    evil = tree / "x\nBcc: victim@x.example\r\n\r\n.\r\nhint: rm -rf"
    evil.mkdir()
    with mail_server() as server:
        notify(root / "server.toml", after=1, mail=mail(server))
        assert run_server(root, "commit", NAME).returncode == 0
        assert server.got == []
        about = Subject("huai-server", "h\nBcc: x", "m\r\nBcc: y\u2028", "commit")
        notification = Notification(about, 1, 0, Failure(41, str(evil), "a\udc80b"))
        composed = compose(Mail(to="ops@mirror.example"), notification)
    raw = composed.as_bytes().decode()
    assert "Bcc" not in composed
    assert not [line for line in raw.splitlines() if line.startswith(("Bcc", "hint: rm"))]


def test_the_server_reports_commits_that_fail_and_damage(tmp_path: Path) -> None:
    tree, root = tmp_path / "tree", tmp_path / "state"
    tree.mkdir()
    assert run_server(root, "add", NAME, str(tree)).returncode == 0
    with mail_server() as server:
        notify(root / "server.toml", after=2, mail=mail(server))
        for count in (0, 1, 1):
            assert run_server(root, "commit", NAME).returncode == 42
            assert len(server.got) == count
        file = tree / "file"
        file.write_text("sound")
        assert run_server(root, "commit", NAME).returncode == 0
        times = file.stat()
        file.write_text("BROKE")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert run_server(root, "scrub", NAME, "--full").returncode == 59
        assert run_server(root, "scrub", NAME, "--full").returncode == 59
        file.write_text("sound")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert run_server(root, "scrub", NAME, "--full").returncode == 0
    host = socket.gethostname()
    assert server.subjects == [
        f"{NAME}: commit fails on {host}",
        f"{NAME}: commit works again on {host}",
        f"{NAME}: scrub fails on {host}",
        f"{NAME}: scrub works again on {host}",
    ]
    assert "1 file damaged, for example file:" in server.got[2].get_content()
    assert "exit code:   42" in server.got[0].get_content()
    assert server.envelopes[0][1] == ("ops@mirror.example",)


@needs_mounts
def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    """Also if the failures cannot be counted there."""
    tree, reports = tmp_path / "tree", tmp_path / "reports"
    tree.mkdir()
    with small_disk(tmp_path / "small") as root:
        run_server(root, "add", NAME, str(tree))
        script = f'echo "$HUAI_TYPE" >> {reports}'
        notify(root / "server.toml", after=3, command=["/bin/sh", "-c", script])
        (tree / "file").touch()
        assert run_server(root, "commit", NAME).returncode == 0
        with full(root):
            (tree / "other").touch()
            assert run_server(root, "commit", NAME).returncode == 11
        assert reports.read_text() == "failed\n"


def test_the_server_reports_what_it_cannot_publish(tmp_path: Path) -> None:
    tree, root, www = tmp_path / "tree", tmp_path / "state", tmp_path / "www"
    for folder in (tree, www):
        folder.mkdir()
    (tree / "file").touch()
    assert run_server(root, "add", NAME, str(tree)).returncode == 0
    assert run_server(root, "commit", NAME).returncode == 0
    with receiver() as hook:
        notify(root / "server.toml", after=2, web={"url": hook.url})
        for count in (0, 1, 1):
            assert run_server(root, "publish", NAME, "--to", f"{www}/none").returncode == 52
            assert len(hook.got) == count
        assert run_server(root, "publish", NAME, "--to", str(www)).returncode == 0
    reports = [
        (each.message["work"], each.message["type"], each.message["code"]) for each in hook.got
    ]
    assert reports == [("publish", "failed", 52), ("publish", "recovered", 0)]


def test_a_signature_that_is_over_is_reported_though_syncs_end_well(down: Downstream) -> None:
    down.synced()
    before = down.state
    with receiver() as hook:
        notify(down.root / "client.toml", after=2, web={"url": hook.url})
        states.save(
            down.state_file, msgspec.structs.replace(before, valid_until=int(time.time()) - 8000)
        )
        for count in (0, 1, 1):
            assert down.sync().code == 0
            assert len(hook.got) == count
        states.save(down.state_file, before)
        assert down.sync().code == 0
    failed, over = (each.message for each in hook.got)
    assert (failed["work"], failed["runs"], failed["code"]) == ("signature", 2, 54)
    assert "newer ones are held back" in failed["reason"]
    assert failed["text"].startswith(f"{down.name}: signature runs out on ")
    assert (over["type"], over["runs"]) == ("recovered", 3)
    assert over["text"].startswith(f"{down.name}: signature is renewed on ")


def test_serve_reports_a_signature_that_is_not_renewed(up: Upstream, tmp_path: Path) -> None:
    signed = SignedUpstream(up, tmp_path / "keys")
    signed.commit(b"1")
    committed = signed.up.head.time
    signed.forge(key(1), promise=signed.promise._replace(valid_until=committed + 30), offset=-1)
    root = tmp_path / "server"  # of this module only: signatures of others may be over
    copy = shutil.copytree(up.places.folder, root / "modules" / up.name)
    server_config.add_module(root, up.name, server_config.load(up.root).module(up.name))
    with receiver() as hook:
        notify(root / "server.toml", after=3, web={"url": hook.url})
        with serving(root) as server:
            server.wait_until(lambda: len(hook.got) == 1)
    body = hook.got[0].message
    assert (body["work"], body["module"], body["code"]) == ("signature", up.name, 54)
    reports: list[str] = []

    def report(_: object, name: str, since: int, reason: str) -> bool:
        reports.append(f"{name}: {reason}")
        return since > 0

    watch = ExpiryWatch(root, report)
    watch.look()
    watch.look()
    assert len(reports) == 1
    assert "no commit has renewed it" in reports[0]
    signed.forge(key(1))
    shutil.copytree(up.places.folder, copy, dirs_exist_ok=True)
    watch.look()
    assert reports[1:] == [f"{up.name}: "]


def test_a_wrong_table_is_an_error(down: Downstream, subtests: pytest.Subtests) -> None:
    for table, words in (
        ({}, "no message would be sent"),
        ({"mail": {}}, "to"),
        ({"mail": {"to": "a\nBcc: b@x"}}, "is not a mail address"),
        ({"mail": {"to": "a@x", "sender": "b,c@x"}}, "is not a mail address"),
        ({"mail": {"to": "a@x", "host": "x"}}, "unknown key 'host'"),
        ({"mail": {"to": "a@x", "user": "u", "password_file": "/p"}}, "starttls"),
        ({"mail": {"to": "a@x", "user": "u"}}, "together"),
        ({"mail": {"to": "a@x", "port": 70000}}, "port"),
        ({"mail": {"to": "a@x"}, "after": 0}, "after: 0"),
        ({"mail": {"to": "a@x"}, "timeout": 3600}, "timeout: 3600"),
        ({"web": {"url": "file:///etc/passwd"}}, "must begin with http:"),
        ({"web": {"url": "https://x", "secret_file": "s"}}, "absolute path"),
        ({"command": "alarm"}, "absolute path"),
        ({"comand": "/alarm"}, "did you mean 'command'"),
    ):
        with subtests.test(table=table):
            notify(down.root / "client.toml", **table)
            done = down.sync()
            assert done.code == 40
            assert words in done.err
