"""Every function that takes bytes from outside, with inputs that it takes.

Decoders of the engine are in `native/fuzz`.

Rule: a new parser gets its line here. What a target does with an input has to be a small
constant amount of work: budgets are passed where a parser has one.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

from huai_client.cli.numbers import kibibytes
from huai_client.config.load import load as load_client
from huai_client.filters.parser import Parser
from huai_client.huai_rsync.parse import parse_arguments as parse_command_line
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.curl.head import retry_after
from huai_client.metadata.git.program import git_error
from huai_client.metadata.http import MetadataUrl, UpstreamError
from huai_client.metadata.served import decode_modules
from huai_client.transfer.rsync.exit_status import classify_exit
from huai_client.transfer.rsync.output import RsyncOutput
from huai_client.transfer.urls import ContentUrl
from huai_native._native import PrivateKey
from huai_schema.codec.commits import CommitInfo, Counts, Totals, decode_commit
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.keys import KeyChain, Keys, begin_chain
from huai_schema.codec.publish_rules import own_rules, usable_rules
from huai_schema.codec.signing import Promise, join_commit, split_commit
from huai_schema.codec.static_files import Static
from huai_schema.errors import FormatError, HuaiError
from huai_schema.paths import RelPath
from huai_server.config.load import load as load_server
from huai_server.http.asgi.body import Inflater
from huai_server.http.asgi.connections import address_of
from huai_server.http.asgi.errors import HttpError
from huai_server.http.git.app import protocol_version
from tests.fuzz.content import CONTENT
from tests.fuzz.folder import folder
from tests.fuzz.listings import LISTINGS
from tests.fuzz.metadata import METADATA
from tests.fuzz.server import SERVER
from tests.fuzz.state_files import STATE_FILES
from tests.fuzz.target import Outcome, Target

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _inflate(data: bytes) -> object:
    """No more than the server would take."""
    inflater, size = Inflater(), 0
    for piece in inflater.slices(data):
        size += len(piece)
        if size > 1 << 20:
            return "long"
    inflater.finish()
    return "whole"


def _address(data: bytes) -> str:
    return _ADDRESS_OF(data.decode("latin-1"))


_ADDRESS_OF = address_of(["127.0.0.1", "::1", "10.0.0.0/8"])


def _config(name: str, load: Callable[[Path], object]) -> Callable[[bytes], object]:
    root = folder(name)

    def run(data: bytes) -> object:
        (root / name).write_bytes(data)
        return load(root)

    return run


def _git_errors(data: bytes) -> object:
    error = git_error(MetadataUrl("ssh://me:secret@host/m.git"), 128, data)
    if isinstance(error, HuaiError):
        assert error.message.isprintable()
        assert "secret" not in error.message or b"secret" in data
    return error


def _filter(data: bytes) -> object:
    parser = Parser()
    parser.filter_all(data.split(b"\n"), "line")
    return len(parser.rules) > 0


def _command_line(data: bytes) -> object:
    # As the kernel hands it over: no NUL within a word.
    return parse_command_line(
        [word.decode("utf-8", "surrogateescape") for word in data.split(b"\0")]
    )


def _talk(data: bytes) -> object:
    """Feed rsync's two streams to the parser, and classify its exit."""
    talk = RsyncOutput()
    for at in range(0, len(data), 50):
        talk.read_output(data[at : at + 50])
        talk.read_errors(data[at : at + 50])
    talk.read_errors(b"\n")
    errors = [classify_exit(code, talk, _URL) for code in (-9, 0, 4, 12, 23, 35)]
    figures = talk.progress > 0, talk.received > 0, len(talk.too_large) > 0, talk.unverified
    denied = frozenset(talk.denied_of([RelPath(b"a/b"), RelPath(b"b")]))
    return Outcome((*map(type, errors), *figures, denied))


_URL = ContentUrl.parse("rsync://h/m")


def _retry_after(data: bytes) -> object:
    text = data.decode("latin-1")
    return printable(text), retry_after(text, 0.0)


def _text(function: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: function(data.decode("utf-8", "surrogateescape"))


def _lines(function: Callable[[tuple[str, ...]], object]) -> Callable[[bytes], object]:
    return lambda data: function(tuple(data.decode("utf-8", "surrogateescape").split("\n")))


_INFO = CommitInfo("m", 7, Totals(1, 2, 3, 4), Counts(added=1), skipped=2)
_COMMIT = (
    f"tree {COMMIT}\nparent {COMMIT}\nauthor a <a@a> 1 +0000\ncommitter a <a@a> 1 +0000\n"
    f"gpgsig x\n y\n\n{_INFO.encode()}"
).encode()
_DESCRIPTOR = Descriptor(
    "m", ("rsync://h/m",), ("payload *.iso",), blocks=16 << 20, mirrors=("https://o/m/",)
)
_RULES = (
    b"profile apt /debian",
    b"indices /dists/**",
    b"volatile /lastsync",
    b"pointers *.[a-z]?\\*",
)
_FILTERS = (
    *(b"- *.tmp", b"+ /pool/**", b"P /project/", b"-! a/*/b", b"R x", b"hide [[:alpha:]]", b"!"),
)
_COMMANDS = (
    (
        b"-aHvh\0--no-o\0--no-g\0--stats\0--filter\0risk .~tmp~/\0--exclude=.~tmp~/\0--delete\0"
        b"--delete-after\0--delay-updates\0--safe-links\0--timeout=120\0-6\0rsync://h/m/\0/d"
    ),
    b"-prltvHSB8192\0--timeout\0003600\0--max-delete=40000\0--log-file=/x\0h::m\0/d",
    b"--info=name1,del1\0--bwlimit=1.5m\0--out-format=%n %L\0-e\0ssh -p 1\0u@h:/m\0d",
)
_SERVER_TOML = (
    b'[listen]\nport = 1\nproxies = ["10.0.0.0/8"]\n[modules.m]\npath = "/m"\n'
    b'content_urls = ["rsync://h/m"]\nexclude = ["*.o"]\npublish = ["payload *.iso"]\n'
    b'[modules.m.fallback]\nkind = "off"\n[fallback]\nhosts_allow = ["*"]\n'
)
_CLIENT_TOML = (
    b'[modules.m]\nurl = "http://h:1"\ndest = "/m"\nstreams = 2\nfilter = ["- *.o"]\n'
    b'max_delete = "10%"\ntrash = "7d"\nprotect = ["/x"]\n'
)
_KEY = PrivateKey.generate(bytes(32), "")
_VERSION = Keys(1, (_KEY.public,))
_KEYS = begin_chain(_VERSION, _KEY.sign("huai-keys", _VERSION.encode()).encode()).encode()
_PROMISE = Promise("0" * 32, 1_700_000_000, bytes(32))
_UNSIGNED = b"tree %b\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nm\n" % (b"1" * 40)
_SIGNED = join_commit(_UNSIGNED, _KEY.sign("git", _UNSIGNED).encode())
_TALK = (
    b"  1,234  10%   1.00MB/s    0:00:01 (xfr#1, to-chk=0/1)\r\n",
    b"Total bytes received: 1,234\n@ERROR: max connections (4) reached -- try again later\n",
    b'rsync: [receiver] write failed on "/x": No space left on device (28)\n',
    b'rsync: [sender] send_files failed to open "/b" (in m): Permission denied (13)\n',
    b"./x\\#012y is over max-size\n a: WARNING: x failed verification -- update discarded\n",
)

_PARSERS = {
    "address": Target(_address, (), [b"127.0.0.1", b"2001:db8::1", b"::ffff:10.0.0.1%eth0"]),
    "client-config": Target(
        _config("client.toml", load_client), (HuaiError,), [_CLIENT_TOML], [b"[", b"]", b"\n"]
    ),
    "command-line": Target(_command_line, (), _COMMANDS, [b"\0--", b"\0-", b"--no-", b"="]),
    "commit": Target(_text(CommitInfo.decode), (FormatError,), [_INFO.encode().encode()], [b"\n"]),
    "commit-object": Target(
        lambda data: decode_commit(data).info(),
        (FormatError,),
        [_COMMIT, _COMMIT + b"x\n"],
        [b"\n"],
    ),
    "modules": Target(
        lambda data: decode_modules(data, "here"),
        (UpstreamError,),
        [b'{"modules": [{"name": "m", "serial": 3, "totals": {"entries": 2, "bytes": 9}}]}'],
    ),
    "content-url": Target(
        _text(ContentUrl.parse),
        (HuaiError,),
        [
            *(b"rsync://h:1/m/x", b"h::m", b"u@h:/m", b"/m", b"rsync://[::1]:8/m"),
            b"https://h:1/%20a/b",
        ],
    ),
    "descriptor": Target(Descriptor.decode, (FormatError,), [_DESCRIPTOR.encode()]),
    "git-errors": Target(
        _git_errors,
        (),
        [
            b"fatal: repository 'http://h/m.git/' not found\n",
            b"fatal: unable to access 'http://h/': The requested URL returned error: 503",
            b"Receiving objects:  50% (1/2)\rfatal: early EOF\nfatal: index-pack failed\n",
        ],
    ),
    "keys": Target(
        lambda data: KeyChain.decode(data).encode(), (FormatError,), [_KEYS], [b"\n", b"key\t"]
    ),
    "promise": Target(_text(Promise.decode), (FormatError,), [_PROMISE.encode().encode()]),
    "signed-commit": Target(split_commit, (FormatError,), [_SIGNED], [b"\n", b"gpgsig "]),
    "filter": Target(_filter, (HuaiError,), _FILTERS, _FILTERS),
    "inflate": Target(
        _inflate, (HttpError,), [gzip.compress(b"x" * 500, mtime=0), gzip.compress(b"", mtime=0)]
    ),
    "number": Target(_text(kibibytes), (), [b"10", b"1.5m", b"2KiB", b"1e3"]),
    "protocol": Target(
        lambda data: protocol_version([(b"git-protocol", data)]), (), [b"version=2", b"a:version=1"]
    ),
    "publish-rules": Target(_lines(own_rules), (FormatError,), _RULES, _RULES),
    "static-head": Target(
        lambda data: Static.decode(data, "head").encode(),
        (FormatError,),
        [f"huai-static\t1\ncommit\t{COMMIT}\t1\nstep\t0\t1\t9\t{'a' * 64}\n".encode()],
        [b"list\t0\t1\t9\t", b"content\thttp://h/\n"],
    ),
    "rsync-output": Target(_talk, (), _TALK, [b"@ERROR", b"rsync: ", b"\r"]),
    "said": Target(
        _retry_after, (), [b"120", b"Sat, 21 Nov 2026 10:00:00 GMT", b"try \x1b[2J later"]
    ),
    "server-config": Target(
        _config("server.toml", load_server), (HuaiError,), [_SERVER_TOML], [b"[", b"]", b"\n"]
    ),
    "usable-rules": Target(_lines(usable_rules), (FormatError,), _RULES, _RULES),
}

TARGETS = {**_PARSERS, **LISTINGS, **METADATA, **STATE_FILES, **CONTENT, **SERVER}
