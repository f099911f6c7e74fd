"""A first sync of a signed module that is killed anywhere: the key is pinned, or nothing is."""

import shutil
from pathlib import Path

import pytest

from huai_client.state.paths import module_places
from huai_client.state.state import load
from huai_client.state.trusted_keys import load_trusted
from tests.fault.sampling import LONG, some_of
from tests.support.keys import key
from tests.support.signed_upstream import SignedUpstream
from tests.support.system_calls import CHANGING, KILL, at, never, supervise
from tests.support.upstream import site


@pytest.mark.timeout(LONG)
@pytest.mark.slow
def test_a_state_never_names_a_commit_whose_keys_are_not_kept(short_path: Path) -> None:
    with site(short_path / "site") as place:
        up = place.upstream()
        up.put(b"file", b"1")
        signed = SignedUpstream(up, short_path / "keys")
        signed.commit(b"1")
        down = place.downstream(up, content_urls=(f"{up.tree}/",))  # no rsync outlives it
        saved = short_path / "saved"
        shutil.copytree(down.root, saved)
        places = module_places(down.root, down.name)

        def sync() -> int:
            return down.sync().code

        outcome = supervise(CHANGING, sync, never)
        assert outcome.result == 0
        pinned = 0
        for call in some_of(outcome.calls):
            shutil.rmtree(down.root)
            shutil.copytree(saved, down.root)
            shutil.rmtree(down.dest)
            down.dest.mkdir()
            supervise(CHANGING, sync, at(call.step, KILL))
            trusted, state = load_trusted(places.trusted), load(places.state)
            assert trusted is None or trusted.keys.keys == (key(1).public,), call
            assert trusted is not None or (state.applied is None and not state.attempted), call
            pinned += trusted is not None
            down.synced()
            assert load_trusted(places.trusted) is not None
        assert 0 < pinned < len(outcome.calls)
