"""A commit that waits for a signature is cut: the last commit stays, and the next run ends it."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.signing.cosigned import examine
from huai_server.signing.signer import from_private
from tests.fault.sampling import CUTS, LONG
from tests.support.keys import key
from tests.support.signing_elsewhere import Elsewhere
from tests.support.system_calls import CHANGING, KILL, Call, at, from_on, never, supervise

Answer = Callable[[Call], Callable[[Call], int | None]]
WAYS: tuple[Answer, ...] = (lambda call: at(call.step, KILL), lambda call: from_on(call.step))
"""A kill, and a disk that is full from there on."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(LONG)]


@pytest.fixture(name="pair")
def signed_elsewhere(short_path: Path) -> Elsewhere:
    return Elsewhere(short_path)


def commit(pair: Elsewhere) -> None:
    with suppress(HuaiError):
        pair.commit()


def each_cut(folder: Path, run: Callable[[], object], prove: Callable[[object], object]) -> None:
    """Cut a run at some of its system calls; `folder` is each time as it was before."""
    saved = folder.with_name("saved")
    shutil.copytree(folder, saved)
    outcome = supervise(CHANGING, run, never)
    assert outcome.calls
    step = max(1, len(outcome.calls) // CUTS)
    for index, call in enumerate(outcome.calls[::step]):
        for cut in WAYS if step == 1 else (WAYS[index % 2],):
            shutil.rmtree(folder)
            shutil.copytree(saved, folder)
            supervise(CHANGING, run, cut(call))
            prove(call)


def test_a_commit_that_is_to_wait(pair: Elsewhere) -> None:
    pair.up.write("file", "22", mtime=2)

    def prove(context: object) -> None:
        assert pair.state in ((1, 0, 0), (1, 2, 0)), context
        commit(pair)
        assert pair.state == (1, 2, 0), context
        assert pair.attach(pair.cosign(pair.hand_out())) is not None, context
        pair.up.prove_sound()
        shutil.rmtree(pair.operator)

    each_cut(pair.up.root, lambda: commit(pair), prove)


def test_a_signature_that_is_added(pair: Elsewhere) -> None:
    pair.up.write("file", "22", mtime=2)
    commit(pair)
    signature = pair.cosign(pair.hand_out())

    def attach() -> None:
        with suppress(HuaiError):
            pair.attach(signature)

    seen = set()

    def prove(context: object) -> None:
        seen.add(pair.state)
        attach()
        assert pair.state == (2, 0, 0), context
        pair.up.prove_sound()

    each_cut(pair.up.root, attach, prove)
    assert seen == {(1, 2, 0), (2, 0, 0)}


def test_what_was_signed_is_kept(pair: Elsewhere) -> None:
    """Before the signature is handed out; so another one of that serial is never signed."""
    pair.up.write("file", "22", mtime=2)
    commit(pair)
    pair.cosign(pair.hand_out())
    pair.up.write("file", "333", mtime=3)
    commit(pair)
    new, serials = pair.hand_out("new"), set()

    def sign() -> bytes | None:
        with suppress(HuaiError):
            return pair.cosign(new)
        return None

    def prove(context: object) -> None:
        former = examine(pair.operator, new, from_private(key(2))).former
        assert former is not None, context
        serials.add(former.info.serial)
        assert sign() == supervise(CHANGING, sign, never).result, context

    each_cut(pair.operator, sign, prove)
    assert serials == {2, 3}
