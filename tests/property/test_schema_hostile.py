"""Damaged repositories give a FormatError or a tree, and nothing else."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.errors import FormatError
from tests.support.examples import examples
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.strategies import RANDOMS
from tests.support.schema.trees import random_tree, snapshot

SIZES = st.sampled_from([5, 100, 300, 1500])


@examples(25)
@given(RANDOMS, SIZES)
def test_no_missing_object_goes_unseen(random: Random, size: int) -> None:
    objects = MemoryObjects()
    read = snapshot(random_tree(random, size), objects)
    oid = random.choice(sorted(objects.objects))
    del objects.objects[oid]
    with pytest.raises(FormatError, match=oid.hex()):
        list(read.entries())
