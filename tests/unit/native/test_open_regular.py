"""Regular files are opened below a root, and nothing else is."""

import os
import socket
from pathlib import Path

import pytest

from huai_native._native import open_regular


def content(root: Path, path: bytes) -> bytes | None:
    handle = open_regular(os.fsencode(root), path)
    if handle is None:
        return None
    assert not os.get_inheritable(handle)
    with os.fdopen(handle, "rb") as file:
        return file.read()


def test_a_file_at_any_depth_with_any_name(tmp_path: Path) -> None:
    deep = tmp_path / "a/b/c"
    deep.mkdir(parents=True)
    names = [b"plain", b"\xff\n\\ %2f", b"n" * 255]
    for name in names:
        Path(os.fsdecode(os.fsencode(deep) + b"/" + name)).write_bytes(name)
    assert [content(tmp_path, b"a/b/c/" + name) for name in names] == names


def test_the_root_may_be_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_bytes(b"x")
    (tmp_path / "root").symlink_to("real")
    assert content(tmp_path / "root", b"f") == b"x"


def test_nothing_else_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "f").write_bytes(b"x")
    (tmp_path / "outside").write_bytes(b"secret")
    (root / "link").symlink_to("f")
    (root / "out").symlink_to("../outside")
    (root / "up").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(root)
        listener.bind("socket")
    ways = [
        *(b"absent", b"f/below", b"d", b"link", b"out", b"up/outside", b"fifo", b"socket"),
        *(b"../outside", b"d/../f", b"./f", b"d//../f", b"/etc/passwd", b"f/", b"", b".", b".."),
    ]
    assert {way: content(root, way) for way in ways} == dict.fromkeys(ways)


def test_what_the_kernel_refuses_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(os.fsencode(tmp_path / "absent"), b"f")
    with pytest.raises(OSError, match="too long"):
        open_regular(os.fsencode(tmp_path), b"n" * 256)
