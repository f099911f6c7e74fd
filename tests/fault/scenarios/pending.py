"""A commit that waits for a signature: it is made, gets the signature, and is signed elsewhere."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.signing.cosigned import examine
from huai_server.signing.signer import from_private
from huai_server.store.repository import PendingCommitError
from tests.fault.killing import Ground, Hit
from tests.support.keys import key
from tests.support.signing_elsewhere import Elsewhere


@dataclass
class Signing:
    """An upstream with one of two keys, the operator who has the other, and what is done next."""

    pair: Elsewhere
    work: Callable[[], object]
    folders: list[Path]
    request: Path = field(default=Path())


def run(scene: Signing) -> str:
    """Do it; the error that ended it, as does each commit that waits."""
    try:
        scene.work()
    except HuaiError as error:
        return error.message
    return "done"


def _waiting(ground: Ground) -> Elsewhere:
    pair = Elsewhere(ground.folder)
    pair.up.write("file", "22", mtime=2)
    _commit(pair)
    return pair


def _commit(pair: Elsewhere) -> None:
    with pytest.raises(PendingCommitError):
        pair.commit()


def to_be_made(ground: Ground) -> Signing:
    pair = Elsewhere(ground.folder)
    pair.up.write("file", "22", mtime=2)
    return Signing(pair, pair.commit, [pair.up.root, pair.operator])


def last_or_waiting(scene: Signing, _: Hit) -> None:
    assert scene.pair.state in ((1, 0, 0), (1, 2, 0))


def can_be_signed(scene: Signing, _: Hit) -> None:
    pair = scene.pair
    run(scene)
    assert pair.state == (1, 2, 0)
    assert pair.attach(pair.cosign(pair.write_request())) is not None
    pair.up.prove_sound()


def to_be_completed(ground: Ground) -> Signing:
    pair = _waiting(ground)
    signature = pair.cosign(pair.write_request())
    return Signing(pair, lambda: pair.attach(signature), [pair.up.root])


def waiting_or_next(scene: Signing, _: Hit) -> str:
    assert scene.pair.state in ((1, 2, 0), (2, 0, 0))
    return "waits" if scene.pair.state[1] else "complete"


def is_complete(scene: Signing, _: Hit) -> None:
    run(scene)
    assert scene.pair.state == (2, 0, 0)
    scene.pair.up.prove_sound()


def to_be_signed(ground: Ground) -> Signing:
    """By an operator who has signed an older commit of that serial."""
    pair = _waiting(ground)
    pair.cosign(pair.write_request())
    pair.up.write("file", "333", mtime=3)
    _commit(pair)
    request = pair.write_request("new")
    return Signing(pair, lambda: pair.cosign(request), [pair.operator], request)


def former_is_known(scene: Signing, _: Hit) -> str:
    """A signed commit is kept before its signature is returned."""
    former = examine(scene.pair.operator, scene.request, from_private(key(2))).former
    assert former is not None
    return str(former.info.serial)


def no_second_signature(scene: Signing, _: Hit) -> None:
    """The next two runs give the same signature, or both refuse."""
    assert _signature(scene) == _signature(scene)


def _signature(scene: Signing) -> bytes | None:
    with suppress(HuaiError):
        return scene.pair.cosign(scene.request)
    return None
