"""The `huai` blob of a commit: the facts about a module (FORMAT.md, "Descriptor")."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.module_name import check_module
from huai_schema.codec.publish_rules import check_rules
from huai_schema.errors import FormatError
from huai_schema.git.objects import ObjectReader, ObjectWriter, TreeItem, decode_tree, encode_tree
from huai_schema.paths import show

FORMAT_VERSION = 1
DIGEST_ALGORITHM = "blake3"
DESCRIPTOR, TREE = b"huai", b"tree"
BYTES_MAX = 65_536
ROOT_BYTES = 65_536
"""The maximal size of a commit's tree, which has few items."""
CONTENT_URLS = 16
"""The maximal number: a client may have to try each of them."""
MIRROR_URLS = 64
"""The maximal number of further URLs that a client may try."""
_KEY = r"[A-Za-z][A-Za-z0-9-]{0,63}"
_IDENTITY = r"[0-9a-f]{32}"
_NUMBER = r"[1-9][0-9]{0,18}"
_KNOWN = ("format", "module", "identity", "digest", "blocks", "content", "mirror", "publish")


class Descriptor(NamedTuple):
    """A module's name, the URLs of its content, and its rules, in format version 1."""

    module: str
    content_urls: tuple[str, ...] = ()
    """The URLs of the content, best first."""
    publish: tuple[str, ...] = ()
    """Publish rules as written; the first that matches counts."""
    identity: str = ""
    """32 hex digits that no other module has, or empty."""
    blocks: int = 0
    """The least size in bytes of a file with a block index; 0: no file has one."""
    mirrors: tuple[str, ...] = ()
    """Content URLs of other mirrors, whose trees may be older or newer."""

    def encode(self) -> bytes:
        """Return the blob: a line for each key with a value, in the order of `_KNOWN`."""
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
        """Parse the blob; raises `FormatError` if it is malformed or of another format version.

        Unknown keys in lower case are ignored, others are a `FormatError`.
        """
        try:
            return cls._decode(data)
        except FormatError as error:
            raise error.within("descriptor") from None

    @classmethod
    def _decode(cls, data: bytes) -> "Descriptor":
        """Parse the blob as `decode` does, with errors that do not name the descriptor."""
        if len(data) > BYTES_MAX or not data.endswith(b"\n"):
            raise FormatError("too long, or truncated")
        values: dict[str, list[str]] = {key: [] for key in _KNOWN}
        known_lines = b""
        for line in data.split(b"\n")[:-1]:
            key, value = _decode_line(line)
            if key in values:
                values[key].append(value)
                known_lines += line + b"\n"
            elif not key[0].islower():
                raise FormatError(f"the key {key} is required, and this version does not know it")
        if values["format"] != [str(FORMAT_VERSION)]:
            version = (
                show(", ".join(values["format"]).encode()[:40]) if values["format"] else "none"
            )
            raise FormatError(
                f"format version {version} is unknown; this program reads {FORMAT_VERSION}"
            )
        if values["digest"] != [DIGEST_ALGORITHM]:
            raise FormatError("the digest algorithm is unknown")
        if len(values["module"]) != 1:
            raise FormatError("must have exactly one module")
        urls = _check_urls(values["content"], CONTENT_URLS, "content URLs")
        mirrors = _check_urls(values["mirror"], MIRROR_URLS, "mirrors")
        rules = check_rules(tuple(values["publish"]))
        identity = _identity(values["identity"])
        blocks = _blocks(values["blocks"])
        descriptor = cls(check_module(values["module"][0]), urls, rules, identity, blocks, mirrors)
        if descriptor.encode() != known_lines:
            raise FormatError("keys are out of order")
        return descriptor


def write_root(
    descriptor: Descriptor,
    tree: bytes,
    writer: ObjectWriter,
    more: Mapping[bytes, bytes] | None = None,
) -> bytes:
    """Write a commit's git tree and return its id.

    Its items are the descriptor, the module's own tree (the id `tree`) and `more` blobs by name.
    """
    blobs = {DESCRIPTOR: descriptor.encode(), **(more or {})}
    items = [
        TreeItem(name, writer.write("blob", blob), is_tree=False) for name, blob in blobs.items()
    ]
    items.append(TreeItem(TREE, tree, is_tree=True))
    return writer.write("tree", encode_tree(items))


def read_root(root: bytes, reader: ObjectReader) -> tuple[Descriptor, bytes]:
    """Return the descriptor in a commit's git tree (`root`), and the id of the module's own tree.

    Other items are ignored if their names begin in lower case.  Raises `FormatError` if it is
    malformed; for the descriptor before anything else.
    """
    data = reader.read(root, "tree")
    if len(data) > ROOT_BYTES:
        raise FormatError(f"a commit tree of more than {ROOT_BYTES} bytes", "commit")
    items = {item.name: item for item in decode_tree(data, "commit")}
    blob, tree = items.pop(DESCRIPTOR, None), items.pop(TREE, None)
    if blob is None or blob.is_tree:
        raise FormatError("not a huai metadata repository", "commit")
    descriptor = Descriptor.decode(reader.read(blob.oid, "blob"))
    if tree is None or not tree.is_tree:
        raise FormatError("the tree of entries is missing", "commit")
    unknown = [name for name in items if not name[:1].islower()]
    if unknown:
        raise FormatError(f"an unknown item {show(unknown[0][:80])!r}", "commit")
    return descriptor, tree.oid


def _decode_line(line: bytes) -> tuple[str, str]:
    """Parse a line to key and unescaped value; raises `FormatError` if it is malformed."""
    raw_key, tab, raw_value = line.partition(b"\t")
    try:
        key, value = raw_key.decode("ascii"), unescape(raw_value).decode()
    except UnicodeDecodeError:
        raise FormatError("not UTF-8") from None
    if not tab or re.fullmatch(_KEY, key) is None:
        raise FormatError("a line is not key, tab, value")
    return key, value


def _identity(values: list[str]) -> str:
    """Return the only value, or an empty text without any; `FormatError` if it is not valid."""
    if not values:
        return ""
    if len(values) > 1 or re.fullmatch(_IDENTITY, values[0]) is None:
        raise FormatError("identity must be 32 hexadecimal digits, once")
    return values[0]


def _blocks(values: list[str]) -> int:
    """Parse the only value to a number, 0 without any; `FormatError` if it is not valid."""
    if not values:
        return 0
    if len(values) > 1 or re.fullmatch(_NUMBER, values[0]) is None:
        raise FormatError("blocks must be a number, once")
    return int(values[0])


def _check_urls(urls: list[str], most: int, noun: str) -> tuple[str, ...]:
    """Return the URLs; `FormatError` if there are more than `most`, or one is malformed.

    `noun` names them in the error.
    """
    if len(urls) > most:
        raise FormatError(f"more than {most} {noun}")
    return tuple(map(_check_url, urls))


def _check_url(url: str) -> str:
    """Return `url`; `FormatError` if it is empty, begins with `-`, or is not printable."""
    if not url or url.startswith("-") or not url.isprintable():
        raise FormatError(f"{url[:200]!r} cannot be a content URL")
    return url
