"""The `huai` blob of a commit: what a client must know of a module (FORMAT.md, "Descriptor")."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.publish_rules import check_rules
from huai_schema.errors import FormatError
from huai_schema.git.objects import ObjectReader, ObjectWriter, TreeItem, decode_tree, encode_tree
from huai_schema.paths import show

FORMAT_VERSION = 1
DIGEST_ALGORITHM = "blake3"
DESCRIPTOR, TREE = b"huai", b"tree"
BYTES_MAX = 65_536
ROOT_BYTES = 65_536
"""The tree of a commit, which has few items."""
CONTENT_URLS = 16
"""A client may have to try each of them."""
MIRROR_URLS = 64
"""Those that a client may try beside."""
_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_IDENTITY = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")
_KNOWN = ("format", "module", "identity", "digest", "blocks", "content", "mirror", "publish")


class Descriptor(NamedTuple):
    """Format version 1, a module's name and where its content is."""

    module: str
    content_urls: tuple[str, ...] = ()
    """Where the content is, best first."""
    publish: tuple[str, ...] = ()
    """Publish rules, as they are spelt; the first that matches counts."""
    identity: str = ""
    """32 hex digits that no other module has, whatever it is called; empty: not told."""
    blocks: int = 0
    """Bytes from which on files have a block index; 0: none has."""
    mirrors: tuple[str, ...] = ()
    """Content URLs of others who have the same tree, or an older or newer one."""

    def encode(self) -> bytes:
        """The blob."""
        lines = [b"format\t%d" % FORMAT_VERSION, b"module\t" + self.module.encode()]
        if self.identity:
            lines.append(b"identity\t" + self.identity.encode())
        lines.append(b"digest\t" + DIGEST_ALGORITHM.encode())
        if self.blocks:
            lines.append(b"blocks\t%d" % self.blocks)
        lines += [b"content\t" + escape(url.encode()) for url in self.content_urls]
        lines += [b"mirror\t" + escape(url.encode()) for url in self.mirrors]
        lines += [b"publish\t" + escape(rule.encode()) for rule in self.publish]
        return b"\n".join(lines) + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> "Descriptor":
        """Read the blob; unknown keys in lower case are ignored, others refused."""
        try:
            return cls._decode(data)
        except FormatError as error:
            raise error.within("descriptor") from None

    @classmethod
    def _decode(cls, data: bytes) -> "Descriptor":
        if len(data) > BYTES_MAX or not data.endswith(b"\n"):
            raise FormatError("too long, or cut")
        values: dict[str, list[str]] = {key: [] for key in _KNOWN}
        known = b""
        for line in data.split(b"\n")[:-1]:
            key, value = _decode_line(line)
            if key in values:
                values[key].append(value)
                known += line + b"\n"
            elif not key[0].islower():
                raise FormatError(f"a key this version must understand, and does not: {key}")
        if values["format"] != [str(FORMAT_VERSION)]:
            version = (
                show(", ".join(values["format"]).encode()[:40]) if values["format"] else "none"
            )
            raise FormatError(
                f"format version {version} is unknown; this program reads {FORMAT_VERSION}"
            )
        if values["digest"] != [DIGEST_ALGORITHM]:
            raise FormatError("an unknown digest algorithm")
        if len(values["module"]) != 1:
            raise FormatError("not exactly one module")
        urls = _check_urls(values["content"], CONTENT_URLS, "content URLs")
        mirrors = _check_urls(values["mirror"], MIRROR_URLS, "mirrors")
        rules = check_rules(tuple(values["publish"]))
        identity = _identity(values["identity"])
        blocks = _blocks(values["blocks"])
        found = cls(check_module(values["module"][0]), urls, rules, identity, blocks, mirrors)
        if found.encode() != known:
            raise FormatError("keys out of order")
        return found


def check_module(name: str) -> str:
    """`name` itself, if it can be a module's; else `FormatError`."""
    if _MODULE.fullmatch(name) is None or name.endswith(".git"):
        raise FormatError(
            f"{name[:200]!r} cannot be a module's name"
            " (letters, digits, '.', '_', '-'; not first: '.', '_', '-'; not last: '.git')"
        )
    return name


def write_root(
    descriptor: Descriptor,
    tree: bytes,
    writer: ObjectWriter,
    others: Mapping[bytes, bytes] | None = None,
) -> bytes:
    """The tree of a commit: the descriptor beside the module's own tree, and `others`, blobs."""
    blobs = {DESCRIPTOR: descriptor.encode(), **(others or {})}
    items = [
        TreeItem(name, writer.write("blob", blob), is_tree=False) for name, blob in blobs.items()
    ]
    items.append(TreeItem(TREE, tree, is_tree=True))
    return writer.write("tree", encode_tree(items))


def read_root(root: bytes, reader: ObjectReader) -> tuple[Descriptor, bytes]:
    """The descriptor and the id of the module's own tree; the descriptor is judged first."""
    data = reader.read(root, "tree")
    if len(data) > ROOT_BYTES:
        raise FormatError(f"a commit tree of more than {ROOT_BYTES} bytes", "commit")
    items = {item.name: item for item in decode_tree(data, "commit")}
    blob, tree = items.pop(DESCRIPTOR, None), items.pop(TREE, None)
    if blob is None or blob.is_tree:
        raise FormatError("not a huai metadata repository", "commit")
    descriptor = Descriptor.decode(reader.read(blob.oid, "blob"))
    if tree is None or not tree.is_tree:
        raise FormatError("a commit without a tree of entries", "commit")
    unknown = [name for name in items if not name[:1].islower()]
    if unknown:
        raise FormatError(f"an unknown item {show(unknown[0][:80])!r}", "commit")
    return descriptor, tree.oid


def _decode_line(line: bytes) -> tuple[str, str]:
    raw_key, tab, raw_value = line.partition(b"\t")
    try:
        key, value = raw_key.decode("ascii"), unescape(raw_value).decode()
    except UnicodeDecodeError:
        raise FormatError("not UTF-8") from None
    if not tab or _KEY.fullmatch(key) is None:
        raise FormatError("a line that is not key, tab, value")
    return key, value


def _identity(values: list[str]) -> str:
    if not values:
        return ""
    if len(values) > 1 or _IDENTITY.fullmatch(values[0]) is None:
        raise FormatError("an identity that is not 32 hexadecimal digits, once")
    return values[0]


def _blocks(values: list[str]) -> int:
    if not values:
        return 0
    if len(values) > 1 or _NUMBER.fullmatch(values[0]) is None:
        raise FormatError("a size for block indices that is not a number, once")
    return int(values[0])


def _check_urls(urls: list[str], most: int, what: str) -> tuple[str, ...]:
    if len(urls) > most:
        raise FormatError(f"more than {most} {what}")
    return tuple(map(_check_url, urls))


def _check_url(url: str) -> str:
    """It ends up among a program's arguments."""
    if not url or url.startswith("-") or not url.isprintable():
        raise FormatError(f"{url[:200]!r} cannot be a content URL")
    return url
