"""Requests with equal fingerprints get equal answers from git itself, whatever a client writes."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from huai_server.http.asgi.errors import HttpError
from huai_server.http.git.request import parse_request
from huai_server.http.git.upload_pack import Call, Git
from tests.support.http_fixtures import Repository, packet

SECONDS = 60
HEX = re.compile(rb"[0-9a-f]{4}")
NAMES = st.sampled_from([b"agent=", b"agent=x", b"session-id=", b"agent", b" agent="])
SPACES = st.sampled_from([b" ", b"\n", b"\t", b"\r", b"\v", b"\f", b"\0", b"=", b":", b"\xa0"])
WORDS = st.sampled_from([b"side-band-64k", b"no-progress", b"ofs-delta", b"git/2.40", b"x", b""])
NAMED = st.builds(
    lambda name, parts: name + b"".join(parts), NAMES, st.lists(WORDS | WORDS | SPACES, max_size=3)
)
"""What a client may say its name is: mostly not what git says."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository.create(tmp_path_factory.mktemp("served"), "m")
    made.commit(b"first")
    made.commit(b"second" * 50)
    return made


@cache
def git(path: Path, version: int, body: bytes) -> tuple[bool, tuple[bytes, bytes, bytes]]:
    """Whether git is content with a request, and its answer."""
    program, call = Git(SECONDS), Call(path, version, advert=False)
    done = subprocess.run(
        program.command(call),
        env=program.environment(call),
        input=body,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode == 0, heard(done.stdout)


def heard(answer: bytes) -> tuple[bytes, bytes, bytes]:
    """What git says, but for progress and for how a pack is cut into packets: the time's doing."""
    kept = pack = b""
    while HEX.match(answer):
        length = max(int(answer[:4], 16), 4)
        line, answer = answer[:length], answer[length:]
        if line[4:5] == b"\1":
            pack += line[5:]
        elif line[4:5] != b"\2":
            kept += line
    return kept, pack, answer


def bodies(draw: st.DrawFn, version: int, commit: bytes) -> Iterator[bytes]:
    """Two requests for the same that differ in who asks, in one or more places."""
    places = draw(st.sampled_from([(0,), (1,), (1,), (1,), (2,), (0, 1)]))
    command = draw(st.sampled_from([b"ls-refs", b"fetch"]))
    end = draw(st.sampled_from([b"", b"\n"]))
    words = draw(st.lists(WORDS.filter(bool), max_size=3))
    for _ in range(2):
        named = [draw(NAMED) if place in places else b"" for place in range(3)]
        if version == 2:
            yield modern(command, commit, named, end)
        else:
            yield older(commit, words, named, end)


def modern(command: bytes, commit: bytes, named: list[bytes], end: bytes) -> bytes:
    """A request of protocol v2."""
    wants = [b"want " + commit + b"\n", b"no-progress\n", b"done\n"]
    arguments = [*([named[2]] if named[2] else []), *(wants if command == b"fetch" else [])]
    head = [named[0], b"command=" + command + end, named[1] and named[1] + end]
    parts = [packet(part) for part in head if part]
    return b"".join([*parts, b"0001", *map(packet, arguments), b"0000"])


def older(commit: bytes, words: list[bytes], named: list[bytes], end: bytes) -> bytes:
    """A request of protocol v0 or v1."""
    spaced = b" ".join(part for part in (named[0], *words, named[1]) if part)
    more = [packet(b"want " + commit + b" " + named[2] + b"\n")] if named[2] else []
    first = packet(b"want " + commit + b" " + spaced + end)
    return b"".join([first, *more, b"0000", packet(b"done\n")])


def test_equal_fingerprints_get_equal_answers(repository: Repository) -> None:
    commit = repository.head().encode()
    compared = 0

    @settings(max_examples=600)  # few of them are compared
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        nonlocal compared
        version = data.draw(st.sampled_from([0, 1, 2]))
        one, other = data.draw(st.composite(lambda draw: tuple(bodies(draw, version, commit)))())
        with suppress(HttpError):
            if one != other and parse_request(one, version) == parse_request(other, version):
                compared += 1
                assert git(repository.path, version, one) == git(repository.path, version, other)

    compare()
    assert compared > 3
