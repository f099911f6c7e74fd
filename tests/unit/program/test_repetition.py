"""A repeated key or table of a configuration is named, with its lines."""

import tomllib

import pytest

from huai_program.repetition import repetition

MODULE = '[modules.m]\npath = "/a"\n'


def test_it_is_named_with_its_lines(subtests: pytest.Subtests) -> None:
    for text, expected in [
        (MODULE + 'path = "/b"\n', "line 3: path is repeated in [modules.m], first in line 2"),
        (MODULE + 'path = "/b"', "line 3: path is repeated in [modules.m], first in line 2"),
        (
            MODULE + 'exclude = [\n  "a",\n]\n# and\nexclude = [\n  "b",\n]\n',
            "line 7: exclude is repeated in [modules.m], first in line 3",
        ),
        (MODULE + '\n"path" = 1\n', 'line 4: "path" is repeated in [modules.m], first in line 2'),
        (MODULE + MODULE, "line 3: [modules.m] is repeated, first in line 1"),
        (MODULE + "['modules' . m]\n", "line 3: ['modules' . m] is repeated, first in line 1"),
        ("[a]\nx = 1\n[b]\nx = 1\nx = 2\n", "line 5: x is repeated in [b], first in line 4"),
        ("x = 1\nx = 2\n[a]\n", "line 2: x is repeated, first in line 1"),
        ("[a]\nb = 1\n[a.b]\n", "line 3: [a.b] is repeated"),
        ("[a]\nb = {c = 1}\nb.c = 2", "line 3: b.c is repeated in [a]"),
        ("[a]\nb = \n", ""),
        ("= 1\n", ""),
    ]:
        with subtests.test(text=text, said=expected):
            with pytest.raises(tomllib.TOMLDecodeError) as error:
                tomllib.loads(text)
            assert repetition(text, str(error.value)) == expected
