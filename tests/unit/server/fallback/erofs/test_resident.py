"""Images that are kept in memory, by the kernel's own count of locked pages."""

import re
import resource
from pathlib import Path

import pytest

from huai_server.fallback.erofs import resident
from huai_server.fallback.erofs.resident import ResidentImages
from tests.support.unprivileged import run_unprivileged

_SIZE = 1 << 20


def locked() -> int:
    """Return the bytes that this process has locked."""
    match = re.search(r"^VmLck:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) << 10


def image(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(b"x" * _SIZE)
    return path


def test_exactly_the_wanted_images_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "_STEP", _SIZE // 4 + 4096)
    messages: list[str] = []
    images, before = ResidentImages(messages.append), locked()
    first, second = image(tmp_path, "first"), image(tmp_path, "second")
    images.keep([first])
    images.keep([first])
    assert locked() - before == _SIZE
    images.keep([first, second])
    assert locked() - before == 2 * _SIZE
    # Another file of the same name is another image; a missing one is skipped.
    image(tmp_path, "new").replace(second)
    images.keep([second, tmp_path / "gone"])
    assert locked() - before == _SIZE
    images.keep([])
    assert locked() == before
    assert messages == []


def test_one_that_memory_has_no_room_for_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "available_bytes", lambda: 2 * _SIZE - 1)
    messages: list[str] = []
    images, before, path = ResidentImages(messages.append), locked(), image(tmp_path, "image")
    images.keep([path])
    images.keep([path])
    assert locked() == before
    assert len(messages) == 1
    assert str(path) in messages[0]
    assert "too large" in messages[0]
    images.keep([])
    monkeypatch.setattr(resident, "available_bytes", lambda: 2 * _SIZE)
    images.keep([path])
    assert locked() - before == _SIZE
    images.keep([])


def limited(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (_SIZE // 2, _SIZE // 2))
    messages: list[str] = []
    images, path = ResidentImages(messages.append), image(folder, "image")
    images.keep([path])
    assert locked() == 0
    assert len(messages) == 1
    assert "RLIMIT_MEMLOCK" in messages[0]
    images.keep([])


def test_an_ordinary_user_is_told_of_the_limit(short_path: Path) -> None:
    run_unprivileged(limited, short_path)
