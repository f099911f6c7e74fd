"""The content of a metalink, for files that no disk here could hold."""

from xml.etree import ElementTree as ET

import pytest

from huai_schema.codec.descriptor import Descriptor
from huai_schema.entries import File
from huai_schema.paths import RelPath
from huai_server.http.asgi.errors import HttpError
from huai_server.http.metalinks import metalink

WHERE = Descriptor("m", ("rsync://o.example/m",))


@pytest.mark.parametrize("size", [0, 2**53 + 1, 2**63 - 1])
def test_sizes_are_exact(size: int) -> None:
    text = metalink(File(RelPath(b"huge"), size, mtime=-(10**18)), WHERE)
    (node,) = ET.fromstring(text).iter("{urn:ietf:params:xml:ns:metalink}size")  # noqa: S314 - ours
    assert node.text == str(size)


def test_without_a_url_there_is_none() -> None:
    with pytest.raises(HttpError, match="no metalink"):
        metalink(File(RelPath(b"f"), 1, 1), Descriptor("m"))
