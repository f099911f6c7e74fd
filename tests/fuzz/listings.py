"""Fuzzed lists of upstreams without huai: what an rsync daemon sends, and published lists."""

import io

from huai_native._native import (
    EntryList,
    RsyncList,
    TextList,
    compare_file_lists,
    read_recent,
)
from huai_schema.errors import FormatError
from tests.fuzz.metadata import NEXT
from tests.fuzz.target import Outcome, Target

_LIMIT = 100
_FRAME = 200


def _stream(data: bytes) -> object:
    """Decode a stream of a sender, in two protocols and two parts."""
    outcomes: list[bool] = []
    for protocol in (30, 31):
        entries = EntryList(io.BytesIO(), _LIMIT)
        reader = RsyncList(protocol, entries)
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            reader.feed(part)
        outcomes += (reader.is_complete, reader.is_partial, reader.messages() != [])
        outcomes += (entries.entries() != [], entries.skipped > 0)
        if reader.is_complete:
            entries.write_tree(None)
    return Outcome(outcomes)


def _framed(data: bytes) -> object:
    """Decode the data of a sender: all that follows its flags and its seed."""
    frames = (data[at : at + _FRAME] for at in range(1, len(data), _FRAME))
    stream = b"".join(len(frame).to_bytes(3, "little") + b"\7" + frame for frame in frames)
    return _stream(data[:1] + bytes(4) + stream)


def _compare(data: bytes) -> object:
    old, _, new = data.partition(NEXT)
    changed, removed, has_unreadable = compare_file_lists(io.BytesIO(old), io.BytesIO(new))
    return Outcome((changed != [], removed != [], has_unreadable))


def _events(data: bytes) -> object:
    return Outcome([bool(each) for each in read_recent(io.BytesIO(data), "1")])


def _printed(data: bytes) -> object:
    entries = EntryList(io.BytesIO(), _LIMIT)
    reader = TextList(entries)
    for part in (data[: len(data) // 2], data[len(data) // 2 :]):
        reader.feed(part)
    reader.finish()
    outcomes = (reader.has_other_digests, entries.skipped > 0, entries.entries() != [])
    entries.write_tree(None)
    return Outcome(outcomes)


_LINE = (
    b'{"path": "d/f", "type": "file", "size": 3, "mtime": 1.5, "mode": "0600", "digest": "%b"}\n'
    b'{"path": "l\\u00fc", "type": "symlink", "target": "d", "mtime": "2026-01-01T00:00:00Z"}\n'
) % (b"ab" * 32)
_RCLONE = (
    b'[\n{"Path":"a","Size":1,"ModTime":"2026-11-26T17:00:00.5+01:00","IsDir":false,'
    b'"Hashes":{"md5":"00"}},\n{"Path":"b","Size":-1,"ModTime":"","IsDir":true}\n]\n'
)

_MTREE = (
    b"#mtree\n/set type=file mode=0644\n. type=dir time=1.0\n f size=1 \\\n time=2.5 sha256=00\n"
    b"d type=dir mode=755 time=3.0\n l\\040\\s\\M-C type=link link=f time=1.0\n..\n..\n"
)
_MTREE_PATHS = b"#mtree\n. time=1.0 type=dir\n./d/f time=7.0 mode=644 size=3 type=file\n"

# Fields of an entry, as flist.c of rsync writes them.
_SIZE, _TIME, _ROOT = b"\0\5\0", b"\x5f\0\1\2", b"\0\0"
_FILE, _DIRECTORY, _SYMLINK = b"\xa4\x81\0\0", b"\xed\x41\0\0", b"\xff\xa1\0\0"
_SAME_TIME_AND_OWNER = b"\x9c\0"
_TOP = b"\4\0\1." + _SIZE + _TIME + _DIRECTORY + _ROOT
_LEADER = b"\4\x12\1a" + _SIZE + _TIME + _FILE + b"\3\4"
_OTHER_NAME = b"\4\2\1b\1"
_LINK = _SAME_TIME_AND_OWNER + b"\1l" + _SIZE + _SYMLINK + b"\6target"
_FOLDER = _SAME_TIME_AND_OWNER + b"\1d" + _SIZE + _DIRECTORY
_BELOW = b"\xbc\0\1\2/f" + _SIZE + _FILE
_NAMES = b"\3\5three\0" + b"\4\4four\0"
_ALL = _TOP + _LEADER + _OTHER_NAME + _LINK + _FOLDER + _BELOW
_LISTS = [
    b"\0" + _ALL + b"\0" + _NAMES,
    b"\1" + _TOP + _LEADER + b"\0\xff\x65" + _FOLDER + b"\0\xff\xfe\x80\2\0\0",
    b"\0" + _TOP + b"\4\x10\1\0\0",
]
_PUBLISHED = b"[Version]\n2\n\n[Files]\n5\tf\t1\ta\n6\td\t0\td\n7\tl\t1\td/l\n\n[End]\n"

_RECENT = (
    b'{"meta":{"aggregator":["6h","Z"],"dirtymark":1.5,"merged":{"epoch":2},"minmax":{"min":"2"}},'
    b'"recent":[{"epoch":3.5,"path":"d/\\u00fc","type":"new"},{"epoch":"2","path":"b","type":"delete"}]}'
)

LISTINGS = {
    "file-lists": Target(
        _compare,
        (FormatError,),
        [
            _PUBLISHED + NEXT + _PUBLISHED.replace(b"\t1\ta", b"\t2\tb"),
            _PUBLISHED + NEXT + _PUBLISHED,
        ],
        [NEXT, b"\n[Files]\n", b"[End]\n", b"5\tf\t1\t"],
    ),
    "printed-list": Target(
        _printed,
        (FormatError,),
        [_LINE, _RCLONE, _MTREE, _MTREE_PATHS],
        [b'"path": "', b'"mtime": ', b"\\u", b"},\n{", b" size=", b"\n..\n", b" \\\n", b"/set "],
    ),
    "recent-events": Target(
        _events,
        (FormatError,),
        [_RECENT],
        [b'"epoch":', b"\\u00", b'"', b'"min":'],
    ),
    "rsync-entries": Target(_framed, (FormatError,), _LISTS, [_LEADER, _OTHER_NAME, _BELOW]),
    "rsync-list": Target(
        _stream,
        (FormatError,),
        [
            b"\0\0\0\0\0" + len(_LISTS[0][1:]).to_bytes(3, "little") + b"\7" + _LISTS[0][1:],
            b"\0\0\0\0\0\6\0\0\10hello\n\4\0\0\35\1\0\0\0",
        ],
        [b"\0\0\7", b"\0\0\10", _TOP],
    ),
}
