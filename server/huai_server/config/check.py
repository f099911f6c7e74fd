"""Conversion of the tables of server.toml, with an error that explains what is wrong.

Reads no tree and contacts no host.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from huai_program.configuration import ConfigError
from huai_program.tables import convert
from huai_program.urls import masked
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.module_name import check_module
from huai_schema.codec.publish_rules import own_rules
from huai_schema.codec.web_folder import HOST, is_web_folder
from huai_schema.errors import FormatError
from huai_schema.limits import BLOCK_INDEX_MIN
from huai_schema.paths import is_within, rel_path
from huai_server.config.mirrors import NAME as DOWNSTREAM_NAME
from huai_server.config.mirrors import AllowedDownstream
from huai_server.config.tables import (
    Module,
    ModuleExport,
    ModuleFallback,
    StaticFiles,
    Tls,
    WebHook,
)

SEE = "docs/SERVER-CONFIGURATION.md, or `man huai-server.toml`, lists the keys and their values"
"""The hint of an error without a more specific one."""
_Table = TypeVar("_Table", bound=msgspec.Struct)
_DAEMON = re.compile(
    rf"(?:rsync://(?:[\w.-]+@)?{HOST}(?::[0-9]{{1,5}})?/|(?:[\w.-]+@)?{HOST}::)"
    r"(?!\.\.?(?:/|$))[^/:*?\[\\-][^*?\[\\]*",
    re.ASCII,
)
"""A module of an rsync daemon, in the form that downstreams accept from metadata."""
_PLAIN = re.compile("[!-~]+")
"""The characters that an HTTP header may hold."""


def convert_downstreams(path: Path, tables: object) -> dict[str, AllowedDownstream]:
    """Convert the tables `[allowed_downstreams.NAME]` to downstreams by name.

    Raises `ConfigError`, which names the file `path`, if a table, name or key is malformed, or two
    have one key.
    """
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: allowed_downstreams must hold tables", hint=SEE)
    downstreams: dict[str, AllowedDownstream] = {}
    for name, table in tables.items():
        place = f"{path}: [allowed_downstreams.{name}]"
        if DOWNSTREAM_NAME.fullmatch(name) is None:
            raise ConfigError(
                f"{place}: the name must consist of letters, digits, '.', '_' and '-'",
                hint="for example the mirror's host name",
            )
        downstream = convert_table(place, table, AllowedDownstream)
        key = _public_key(place, downstream.key)
        if any(each.key == key for each in downstreams.values()):
            raise ConfigError(
                f"{place}: another downstream has this key", hint="give each a key of its own"
            )
        downstreams[name] = msgspec.structs.replace(downstream, key=key)
    return downstreams


def _public_key(place: str, line: str) -> str:
    """Parse the line of a public key to canonical form.

    Raises `ConfigError`, which names `place`, if it is malformed.
    """
    from huai_native._native import parse_public_key  # few configurations have such a table

    try:
        return parse_public_key(line)
    except FormatError as error:
        raise ConfigError(
            f"{place}: key: {error.reason}", hint='for example: key = "ssh-ed25519 AAAA..."'
        ) from None


def check_proxies(place: str, proxies: tuple[str, ...]) -> None:
    """Raise `ConfigError`, which names `place`, unless all `proxies` are addresses or networks."""
    from ipaddress import ip_network  # loads slowly

    try:
        for proxy in proxies:
            ip_network(proxy, strict=False)
    except ValueError as error:
        raise ConfigError(
            f"{place}: proxies: {error}", hint="write addresses and networks, such as 10.0.0.0/8"
        ) from None


def convert_module(path: Path, name: str, table: object) -> Module:
    """Convert the table `[modules.NAME]` to a module, without reading the tree.

    Raises `ConfigError`, which names the file `path`, if the name or a value is not valid.
    """
    place = f"{path}: [modules.{name}]"
    if isinstance(table, dict):
        convert_table(f"{place[:-1]}.fallback]", table.get("fallback", {}), ModuleFallback)
        convert_table(f"{place[:-1]}.export]", table.get("export", {}), ModuleExport)
        hooks = table.get("webhooks", ())
        for hook in hooks if isinstance(hooks, list) else ():
            convert_table(f"{place}: webhooks", hook, WebHook)
        convert_table(f"{place[:-1]}.static]", table.get("static", {}), StaticFiles)
    module = convert_table(place, table, Module)
    check_urls(f"{place}: content_urls", name, module.content_urls)
    check_urls(f"{place}: mirrors", name, module.mirrors)
    try:
        check_module(name)
        # Clients will decode the same bytes.
        descriptor = Descriptor(name, module.content_urls, module.rules, mirrors=module.mirrors)
        Descriptor.decode(descriptor.encode())
        own_rules(module.rules)
    except FormatError as error:
        raise ConfigError(f"{place}: {error.reason}", hint=SEE) from None
    except UnicodeError as error:
        raise ConfigError(f"{place}: content_urls: {error}", hint="URLs are UTF-8") from None
    if module.relay and module.export.files:
        raise ConfigError(
            f"{place}: a relayed module cannot have an export",
            hint="remove the key relay, or the table export",
        )
    if not all(map(_PLAIN.fullmatch, module.relay_urls)):
        raise ConfigError(
            f"{place}: content_urls: a relayed module's URLs must be ASCII without blanks",
            hint="percent-encode other characters",
        )
    if 0 < module.block_index < BLOCK_INDEX_MIN:
        raise ConfigError(
            f"{place}: block_index: files of {module.block_index} bytes are too small for an index",
            hint=f"give at least {BLOCK_INDEX_MIN}, or 0 for none",
        )
    _check_labels(f"{place[:-1]}.engine.where]", module.engine.where)
    if not module.path.startswith("/") or "\0" in module.path:
        raise ConfigError(
            f"{place}: path: {module.path!r} is not an absolute path", hint="begin it with a slash"
        )
    return module


def _check_labels(place: str, paths: Iterable[str]) -> None:
    """Raise `ConfigError`, which names `place`, for a path that is not valid or in another one."""
    labelled: list[bytes] = []
    for path in paths:
        try:
            top = rel_path(os.fsencode(path.strip("/")))
        except FormatError as error:
            raise ConfigError(
                f"{place}: {path!r}: {error.reason}",
                hint="name a directory of the tree, without '.' and '..'",
            ) from None
        if not top or any(is_within(top, each) or is_within(each, top) for each in labelled):
            raise ConfigError(
                f"{place}: {path!r} is the root, or has another label in it or above it",
                hint="a directory has one label, with all that is in it",
            )
        labelled.append(top)


def check_tls(path: Path, table: dict[str, Any]) -> None:
    """Raise `ConfigError` if `listen.tls` is malformed; `table` is all of the file `path`."""
    listen = table.get("listen")
    if isinstance(listen, dict) and "tls" in listen:
        convert_table(f"{path}: [listen]: tls", listen["tls"], Tls)


def check_urls(place: str, name: str, urls: tuple[str, ...]) -> None:
    """Raise `ConfigError`, which names `place`, for a content URL that downstreams cannot use.

    `name` is the module's, for the hint.
    """
    for url in urls:
        daemon = _DAEMON.fullmatch(url) and ".." not in url.split("/")
        if not daemon and not is_web_folder(url):
            raise ConfigError(
                f"{place}: downstreams cannot fetch content from {masked(url)!r}",
                hint=f"give the module of an rsync daemon, rsync://HOST/{name}, or the folder of "
                f"a web server, https://HOST/{name}",
            )


def convert_table(place: str, table: object, kind: type[_Table]) -> _Table:
    """Convert a table to a `kind`; raises `ConfigError`, which names `place` and the wrong key."""
    return convert(place, table, kind, see=SEE)
