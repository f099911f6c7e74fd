"""What stands twice in a configuration is named, with its lines."""

import tomllib

import pytest

from huai_program.repetition import repetition

MODULE = '[modules.m]\npath = "/a"\n'


def test_it_is_named_with_its_lines(subtests: pytest.Subtests) -> None:
    for text, said in [
        (MODULE + 'path = "/b"\n', "line 3: path stands twice in [modules.m], first in line 2"),
        (MODULE + 'path = "/b"', "line 3: path stands twice in [modules.m], first in line 2"),
        (
            MODULE + 'exclude = [\n  "a",\n]\n# and\nexclude = [\n  "b",\n]\n',
            "line 7: exclude stands twice in [modules.m], first in line 3",
        ),
        (MODULE + '\n"path" = 1\n', 'line 4: "path" stands twice in [modules.m], first in line 2'),
        (MODULE + MODULE, "line 3: [modules.m] stands twice, first in line 1"),
        (MODULE + "['modules' . m]\n", "line 3: ['modules' . m] stands twice, first in line 1"),
        ("[a]\nx = 1\n[b]\nx = 1\nx = 2\n", "line 5: x stands twice in [b], first in line 4"),
        ("x = 1\nx = 2\n[a]\n", "line 2: x stands twice, first in line 1"),
        ("[a]\nb = 1\n[a.b]\n", "line 3: [a.b] stands twice"),
        ("[a]\nb = {c = 1}\nb.c = 2", "line 3: b.c stands twice in [a]"),
        ("[a]\nb = \n", ""),
        ("= 1\n", ""),
    ]:
        with subtests.test(text=text, said=said):
            with pytest.raises(tomllib.TOMLDecodeError) as error:
                tomllib.loads(text)
            assert repetition(text, str(error.value)) == said
