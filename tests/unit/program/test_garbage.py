"""The values of a run are not searched for garbage."""

import gc

from huai_program.garbage import collect_rarely, collect_usually


def test_a_program_that_stays_looks_as_python_does() -> None:
    before = gc.get_threshold()
    collect_rarely()
    try:
        assert gc.get_threshold() != before
        collect_usually()
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*before)
