"""The last lines of `verify`."""

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from huai_client.cli.console import Console
from huai_client.cli.report import show_end
from huai_client.verify.check import VerifyTotals
from huai_client.verify.queue import VerifyRequest

if TYPE_CHECKING:
    from huai_client.verify.run import VerifyRun

RUN = cast(
    "VerifyRun", SimpleNamespace(tally=VerifyTotals(6, 6, 6, 2048), left=0, failed=0, unopened="")
)


@pytest.mark.parametrize(("share", "text"), [(0.01, "1%"), (0.005, "0.5%"), (1e-8, "0.000001%")])
def test_a_sample_names_its_share_and_its_seed(
    capsys: pytest.CaptureFixture[str], share: float, text: str
) -> None:
    request = VerifyRequest(content=True, sample=share, seed=42)
    show_end(Console(quiet=False, as_json=False, module="m"), RUN, request, 0)
    verdict, sample = capsys.readouterr().err.splitlines()
    assert verdict == "m: nothing differs; 6 entries looked at, 6 files read (2.0 KiB)"
    assert sample == f"m: a sample of {text} of the files, which --seed 42 picks again"
    show_end(Console(quiet=False, as_json=True, module="m"), RUN, request, 0)
    event = json.loads(capsys.readouterr().out)
    assert (event["sample"], event["seed"]) == (share, 42)


def test_a_whole_tree_has_no_sample(capsys: pytest.CaptureFixture[str]) -> None:
    request = VerifyRequest(content=True)
    show_end(Console(quiet=False, as_json=False, module="m"), RUN, request, 0)
    assert "sample" not in capsys.readouterr().err
