import io

from huai_client.cli.parallel.run_all import Lines, with_name


def written(*pieces: bytes, as_json: bool = False) -> bytes:
    target = io.BytesIO()
    lines = Lines("tools", target, as_json=as_json)
    for piece in pieces:
        lines.feed(piece)
    return target.getvalue()


def test_a_line_says_whose_it_is_once() -> None:
    assert with_name(b"tools", b"tools: nothing new") == b"tools: nothing new"
    assert with_name(b"tools", b"nothing new") == b"tools: nothing new"
    assert with_name(b"tools", b"toolset: x") == b"tools: toolset: x"


def test_lines_are_whole_however_they_come() -> None:
    assert written(b"on", b"e\ntw", b"o\n\nthr") == b"tools: one\ntools: two\ntools: \n"
    assert written(b"on", b"e\ntw", b"") == b"tools: one\ntools: tw\n"
    assert written(b"one\n", b"") == b"tools: one\n"


def test_lines_of_json_stay_as_they_are() -> None:
    assert written(b'{"v": 1}\n{', b"}\n", b"", as_json=True) == b'{"v": 1}\n{}\n'
