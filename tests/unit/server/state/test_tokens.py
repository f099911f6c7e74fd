"""Tokens: their file, its permissions, and their validity."""

import hashlib
import os
import time
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pytest

from huai_program.configuration import ConfigError
from huai_server.config.load import ServerConfig
from huai_server.config.tables import Module, ModuleFallback
from huai_server.http.access import without_tokens
from huai_server.state.errors import UsageError
from huai_server.state.tokens import (
    Tokens,
    forget_module,
    new_token,
    read_tokens,
    revoke_token,
    tokens_path,
)


def test_what_is_kept_proves_a_token_and_does_not_tell_it(tmp_path: Path) -> None:
    token, text = new_token(tmp_path, ["m"], ["read"])
    content = tokens_path(tmp_path).read_text()
    secret = text.removeprefix(f"huai_{token.id}_")
    assert secret not in content
    assert hashlib.sha256(text.encode()).hexdigest() in content
    assert Tokens(tmp_path).find(text) == token


@pytest.mark.parametrize(("folder", "file"), [(0o700, 0o600), (0o2750, 0o640), (0o755, 0o640)])
def test_other_users_may_not_read_the_tokens(tmp_path: Path, folder: int, file: int) -> None:
    tmp_path.chmod(folder)
    before = os.umask(0)
    try:
        new_token(tmp_path, ["m"], ["read"])
        new_token(tmp_path, ["m"], ["read"])
    finally:
        os.umask(before)
    assert tokens_path(tmp_path).stat().st_mode & 0o777 == file
    assert [each.name for each in tmp_path.iterdir() if "lock" not in each.name] == ["tokens.json"]


def test_several_are_valid_until_each_is_revoked(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    (old, first), (new, second) = (new_token(tmp_path, ["m"], ["read"]) for _ in range(2))
    assert (tokens.find(first), tokens.find(second)) == (old, new)
    assert revoke_token(tmp_path, old.id) == old
    assert (tokens.find(first), tokens.find(second)) == (None, new)
    with pytest.raises(UsageError):
        revoke_token(tmp_path, old.id)


def test_one_expires_at_its_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, text = new_token(tmp_path, ["m"], ["read"], seconds=60)
    assert token.expires is not None
    tokens = Tokens(tmp_path)
    monkeypatch.setattr(time, "time", lambda: token.expires - 0.5)
    assert tokens.find(text) == token
    monkeypatch.setattr(time, "time", lambda: token.expires)
    assert tokens.find(text) is None


def test_another_secret_or_id_is_not_valid(tmp_path: Path) -> None:
    (token, text), (other, _) = (new_token(tmp_path, ["m"], ["read"]) for _ in range(2))
    tokens = Tokens(tmp_path)
    changed = text[:-1] + ("A" if text[-1] != "A" else "B")
    swapped = text.replace(token.id, other.id)
    for wrong in (changed, swapped, text.replace(token.id, "0" * 12), text + "\n", "", "huai_"):
        assert tokens.find(wrong) is None


@pytest.mark.parametrize("text", ["", "{}x", '{"tokens":[{"id":"x"}]}', '{"version":2}', "\xff"])
def test_an_unreadable_file_gives_no_access(tmp_path: Path, text: str) -> None:
    _, token = new_token(tmp_path, ["m"], ["read"])
    tokens = Tokens(tmp_path)
    assert tokens.find(token)
    tokens_path(tmp_path).write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        tokens.find(token)
    assert token not in str(caught.value)
    assert tokens.find(token) is None


def test_a_removed_module_is_opened_by_none(tmp_path: Path) -> None:
    new_token(tmp_path, ["gone"], ["read"])
    remaining, _ = new_token(tmp_path, ["gone", "m"], ["read"])
    forget_module(tmp_path, "gone")
    (left,) = read_tokens(tmp_path)
    assert (left.id, left.modules) == (remaining.id, ("m",))


def test_plain_rsync_clients_get_private_modules_only_where_a_limit_says_who() -> None:
    def served(access: Literal["public", "private"], fallback: ModuleFallback) -> bool:
        module = Module("/srv", access=access, fallback=fallback)
        return bool(ServerConfig(modules={"m": module}).fallback_modules)

    assert served("public", ModuleFallback())
    assert not served("private", ModuleFallback())
    assert served("private", ModuleFallback(auth_users=("mirror",)))
    assert served("private", ModuleFallback(hosts_allow=("192.0.2.0/24",)))
    assert not served("private", ModuleFallback(kind="off", auth_users=("mirror",)))


def test_a_log_has_no_token(tmp_path: Path) -> None:
    _, text = new_token(tmp_path, ["m"], ["read"])
    for line in (f"/api?token={text}", f"/x?a={text}&b=c", f"/x?access_token={text}", f"/{text}"):
        assert text[18:] not in without_tokens(line)
    assert without_tokens("/a?token=anything&b=c") == "/a?token=***&b=c"
    assert without_tokens("/modules/huai_server?q=token") == "/modules/huai_server?q=token"


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602])
def test_tokens_that_others_may_write_are_refused(tmp_path: Path, mode: int) -> None:
    _, text = new_token(tmp_path, ["m"], ["read"])
    tokens_path(tmp_path).chmod(mode)
    with pytest.raises(ConfigError) as caught:
        Tokens(tmp_path).find(text)
    assert f"chmod go-w {tokens_path(tmp_path)}" in (caught.value.hint or "")


def test_no_log_has_an_encoded_token(tmp_path: Path) -> None:
    _, text = new_token(tmp_path, ["m"], ["read"])
    every = "".join(f"%{byte:02X}" for byte in text.encode())
    first = f"%68{text[1:]}"
    for line in (f"/a?x={every}&b=c", f"/a/{first}/b?b=c", f"/a?to%6ben={text[5:]}&b=c"):
        masked = without_tokens(line)
        assert text[18:] not in unquote(masked)
        assert masked.startswith("/a")
        assert masked.endswith("b=c")
    assert without_tokens("/a%20b?q=%7e") == "/a%20b?q=%7e"
