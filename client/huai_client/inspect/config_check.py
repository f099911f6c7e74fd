"""Checks of client.toml for errors that otherwise only its use would find.

Separate from `config`, which reads the file at each poll and has to import very little.  Reads the
files that a filter merges, and runs rsync to check its options; writes only the mark by which
`check_once` recognizes a table that it has checked.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huai_client.config.allowed_addresses import check_networks
from huai_client.config.hooks import HOOK_NAMES, NO_HOOKS, Hooks, Proof
from huai_client.config.load import ClientConfig, Module, check_config_name, config_path
from huai_client.config.mirror import Mirror
from huai_client.config.tls import TlsError, TlsFiles, client_context
from huai_client.metadata.http import is_http
from huai_client.state.paths import module_places
from huai_native import _native
from huai_program.configuration import ConfigError, closest
from huai_program.urls import login_of, masked, split_url
from huai_schema.errors import HuaiError

_PORT = 8440
"""The default port of a huai server."""
_ARMOR_BYTES = 64
_SCHEMES = ("http", "https", "rsync", "ssh", "git", "git+ssh", "file")
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)"
_HOST_PORT = r"[A-Za-z0-9._-]+(:[0-9]{1,5})?(/.*)?|\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?(/.*)?"
_SSH = r"(?:[^@/:\s]+@)?[^@/:\s]+:(?![^/]*@)[^:\s].*"


def check_once(config: ClientConfig, name: str, root: Path) -> None:
    """Call `check_config`, which may raise `ConfigError`, unless the table passed it unchanged.

    Unchanged are the module's table and the `dest` of all.  A success is recorded in the module's
    folder of the state `root`, made if missing.
    """
    mark = module_places(root, name).checked
    dests = sorted((other, each.dest) for other, each in config.modules.items())
    # Not by hashlib: importing it takes longer than everything else here.
    text = repr((config.module(name), dests)).encode("utf-8", "replace")
    digest = _native.Blake3(text).digest()
    with suppress(OSError):
        if mark.read_bytes() == digest:
            return
    check_config(config, name, root)
    with suppress(OSError):  # then the next run checks again
        mark.parents[1].mkdir(mode=0o700, exist_ok=True)
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        mark.write_bytes(digest)


def check_config(config: ClientConfig, name: str, root: Path) -> None:
    """Raise a `ConfigError` with file, module and key, if a sync would refuse the module.

    Reads the files that the table names, and runs rsync to check its options.
    """
    module = config.module(name)
    place = f"{config_path(root)}: [modules.{name}]"
    for url in module.urls:
        with _key(place, "url"):
            check_url(url)
    if module.upstream_name:
        with _key(place, "upstream_name"):
            check_config_name(module.upstream_name)
    with _key(place, "dest"):
        check_dest(module.dest, root)
        _check_neighbours(config, name)
    _check_keys(place, module)
    _check_limits(place, module)
    _check_patterns(place, Mirror.of(root, name, module))
    _check_transfer(place, module)
    _check_tls(f"{config_path(root)}: [modules.{name}.tls]", module)
    if module.hooks != NO_HOOKS:
        _check_hooks(f"{config_path(root)}: [modules.{name}.hooks]", module.hooks)
    if module.proofs:
        _check_proofs(f"{config_path(root)}: [modules.{name}.proofs", module.proofs)
    if module.attest.on:
        from huai_client.metadata.signers import read_key

        with _key(f"{config_path(root)}: [modules.{name}.attest]", "key"):
            read_key(Path(module.attest.key))
    for other in module.reuse_from:
        if other not in config.modules or other == name:
            hint = closest(other, set(config.modules) - {name})
            raise ConfigError(f"{place}: reuse_from: {other!r} is not another module", hint=hint)


@contextmanager
def _key(place: str, key: str) -> Iterator[None]:
    """Raise a `HuaiError` of the block as a `ConfigError` with `place` and `key`."""
    try:
        yield
    except HuaiError as error:
        message = error.message.removeprefix(f"{key}: ")
        raise ConfigError(f"{place}: {key}: {message}", hint=error.hint) from error


def _check_keys(place: str, module: Module) -> None:
    """Raise `ConfigError` if keys are missing, malformed, or fewer than the threshold."""
    if not module.keys and not module.signers:
        if module.verify == "require":
            raise ConfigError(
                f'{place}: verify = "require" needs keys',
                hint="write keys or signers; the upstream's huai-server key show prints the line",
            )
        if module.threshold > 1:
            raise ConfigError(
                f"{place}: threshold = {module.threshold} needs keys",
                hint="write keys or signers, or nothing: a signed upstream says how many sign",
            )
        return
    from huai_client.metadata.signers import configured_keys

    try:
        keys = configured_keys(module)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error.message}", hint=error.hint) from None
    if module.threshold > len(keys):
        raise ConfigError(
            f"{place}: threshold = {module.threshold} is more than the {len(keys)} keys",
            hint="name all keys that may sign",
        )


def check_url(text: str) -> None:
    """Raise `ConfigError` unless `text` may be an address of metadata; nothing is requested."""
    if not text.strip():
        raise ConfigError(
            "the address is empty", hint="check that the variables of the shell are set"
        )
    if re.search(r"[\x00-\x20\x7f]", text):
        raise ConfigError(
            f"{masked(text)!r} contains a space or a control character", hint="write %20"
        )
    match = re.fullmatch(_SCHEME, text, re.DOTALL)
    if match is None:
        _check_no_scheme(text)
    elif match[1].lower() not in _SCHEMES:
        near = closest(match[1], _SCHEMES)
        host = re.split(r"[/:?#]", match[2].rpartition("@")[2], maxsplit=1)[0] or "HOST"
        meant = f"http://{host}:{_PORT}"
        if match[1].lower() == "ftp":
            near = f"that may be a content URL; did you mean {meant}?"
        raise ConfigError(f"{masked(text)} is not a metadata URL", hint=near)
    elif match[1].lower() in ("http", "https"):
        _check_host(text, "http://HOST:PORT")
    elif match[1].lower() == "rsync":
        _check_daemon(text, match[2])


def _check_daemon(text: str, rest: str) -> None:
    """Raise `ConfigError` for a daemon's URL with a password, or without a host or module.

    `rest` is `text` after the scheme.
    """
    if ":" in (login_of(text) or ""):
        raise ConfigError(
            f"{masked(text)} has a password, which rsync does not accept in a URL",
            hint="write rsync://USER@HOST/MODULE, and put the password into RSYNC_PASSWORD",
        )
    _check_host(text, "rsync://HOST:PORT/MODULE")
    if not re.search(r"^[^/]+/[^/]", rest):
        raise ConfigError(f"{masked(text)} names no module", hint="rsync://HOST/MODULE")


def _check_host(text: str, example: str) -> None:
    """Raise `ConfigError`, with `example` as its hint, for a URL without a host."""
    try:
        host = split_url(text).hostname
    except ValueError as error:
        raise ConfigError(f"{masked(text)}: {error}", hint=example) from None
    if not host:
        raise ConfigError(f"{masked(text)} has no host", hint=example)


def _check_no_scheme(text: str) -> None:
    """Raise `ConfigError` for text without a scheme, except for a path or an address of ssh."""
    if text.startswith("/"):
        return
    host = re.fullmatch(_HOST_PORT, text)
    ssh = re.fullmatch(_SSH, text)
    if ssh and ("@" in text or not host or "/" in text.partition(":")[2].lstrip("0123456789")):
        return
    place = text.rpartition("@")[2]
    meant = f"http://{place}" if ":" in place or "/" in place else f"http://{place}:{_PORT}"
    if "::" in place and not place.startswith("["):  # as rsync writes its modules
        meant = f"rsync://{place.replace('::', '/', 1)}"
    raise ConfigError(
        f"an address must begin with http://, https:// or rsync://, not be {masked(text)!r}",
        hint=f"did you mean {meant}?",
    )


def check_dest(text: str, root: Path) -> None:
    """Raise `ConfigError` for a DEST that must never be mirrored to.

    That is an empty path, the root directory, and one that has the state `root` or is in it.
    """
    if not text.strip():
        raise ConfigError("the path is empty", hint="check that the variables of the shell are set")
    if "\0" in text:
        raise ConfigError("the path contains a NUL byte", hint="name a directory")
    real, own = Path(os.path.realpath(text)), Path(os.path.realpath(root))
    if real == Path("/"):
        raise ConfigError("the path is the root directory", hint="name a separate directory")
    if real.is_relative_to(own) or own.is_relative_to(real):
        raise ConfigError(
            f"{real} and the state in {own} must not contain each other",
            hint="a mirror deletes unknown files: choose another directory",
        )


def _check_neighbours(config: ClientConfig, name: str) -> None:
    """Raise `ConfigError` if another module has this tree, or one in it, or around it.

    An outer module may protect the path of the inner one.
    """
    module = config.module(name)
    mine = Path(os.path.realpath(module.dest))
    for other, neighbour in config.modules.items():
        if other == name or not os.path.isabs(neighbour.dest):
            continue
        theirs = Path(os.path.realpath(neighbour.dest))
        if mine == theirs:
            raise ConfigError(
                f"{mine} is also the tree of {other}", hint="give each module a separate dest"
            )
        inside, outer = (mine, theirs) if mine.is_relative_to(theirs) else (theirs, mine)
        if inside.is_relative_to(outer):
            keeper = neighbour if outer == theirs else module
            _check_protected(inside, outer, keeper, other)


def _check_protected(inside: Path, outer: Path, keeper: Module, other: str) -> None:
    """Raise `ConfigError` unless `keeper`, the outer module, protects the tree `inside` of it.

    `other` is the name in the message.
    """
    from huai_client.plan.protect import Protection
    from huai_schema.paths import rel_path

    path = rel_path(os.fsencode(inside.relative_to(outer)))
    if not Protection(keeper.protect).covers(path, directory=True):
        raise ConfigError(
            f"{inside} is in {outer}, and one of them is the tree of {other}",
            hint=f'let the outer module protect it: protect = ["/{inside.relative_to(outer)}"]',
        )


def _check_limits(place: str, module: Module) -> None:
    """Raise `ConfigError` for a malformed limit of deletions."""
    if module.max_delete == "10%" and not module.max_delete_in:
        return
    from huai_client.plan.deletions import parse_limit, parse_limits

    with _key(place, "max_delete"):
        parse_limit(str(module.max_delete))
    with _key(place, "max_delete_in"):
        parse_limits(module.max_delete_in)


def _check_patterns(place: str, mirror: Mirror) -> None:
    """Raise `ConfigError` for a pattern that matches nothing, or a malformed filter."""
    module = mirror.config
    for key, patterns in (("protect", module.protect), ("in_place", module.in_place)):
        if not patterns:
            continue
        from huai_client.plan.protect import Protection

        with _key(place, key):
            for pattern in _hopeless(patterns):
                raise ConfigError(
                    f"{pattern!r} cannot match any path",
                    hint="write a path or name as for rsync's --exclude; close each [ with ]",
                )
            Protection(patterns)
    if module.filter:
        from huai_client.diff.active_filter import rules_of
        from huai_client.run.options import SyncOptions

        with _key(place, "filter"):
            rules_of(mirror, SyncOptions())


def _hopeless(patterns: tuple[str, ...]) -> Iterator[str]:
    """Yield patterns that match nothing: empty, the root, an unclosed set of characters."""
    for pattern in patterns:
        open_set = re.search(r"(?<!\\)\[(?!.[^\]]*\])", pattern, re.DOTALL)
        if not pattern.strip("/ ") or open_set:
            yield pattern


def _check_transfer(place: str, module: Module) -> None:
    """Raise `ConfigError` for unusable list sources, content URLs, networks, headers or options.

    Reads the file of headers, and runs rsync for its options.
    """
    if module.list_source:
        _check_list_source(place, module)
    if module.source:
        _check_source(place, module)
    if module.content_urls or module.list_source or module.source:
        from huai_client.transfer.urls import own_urls

        with _key(place, "content_urls" if module.content_urls else "url"):
            own_urls(module.ranked_urls)
    if module.allow_networks:
        with _key(place, "allow_networks"):
            check_networks(module.allow_networks)
    if module.http_headers:
        from huai_client.transfer.http.login import read_headers

        with _key(place, "http_headers"):
            read_headers(Path(module.http_headers))
    if module.rsync_options:
        from huai_client.transfer.options import TransferOptions
        from huai_client.transfer.rsync.run import check_options

        with _key(place, "rsync_options"):
            options = TransferOptions(extra=module.rsync_options)
            check_options(options.program, options.extra)


def _check_source(place: str, module: Module) -> None:
    """Raise `ConfigError` if `source` does not fit the URLs."""
    from huai_client.transfer.urls import ContentUrl, Transport

    with _key(place, "source"):
        kinds = {ContentUrl.parse(url).transport for url in module.urls}
        if module.list_source or kinds != {Transport.SHELL}:
            raise ConfigError(
                "rsync over ssh lists HOST:PATH, and nothing else",
                hint='url = "USER@HOST:/PATH", without list_command and list_url',
            )


def _check_list_source(place: str, module: Module) -> None:
    """Raise `ConfigError` if `list_url` or `list_command` is unusable, or conflicts with a key."""
    with _key(place, "list_url" if module.list_url else "list_command"):
        if module.list_url and not is_http(module.list_url):
            raise ConfigError(f"{masked(module.list_url)} is not the URL of a file on a web server")
        if module.list_url and module.list_command:
            raise ConfigError("list_command is set, too", hint="leave out one of the two")
        if module.list_command:
            _check_program(module.list_command)
        if module.probe:
            raise ConfigError("probe is for rsync daemons alone", hint="leave out probe")
    if len(module.urls) > 1:
        raise ConfigError(
            f"{place}: url: only one URL can be listed, not {len(module.urls)}",
            hint="write the others into content_urls",
        )


def _check_tls(place: str, module: Module) -> None:
    """Raise `ConfigError` if the certificates are unusable, or no URL is https."""
    if module.tls is None:
        return
    if not TlsFiles.of(module.tls, module.named_urls).hosts:
        raise ConfigError(
            f"{place}: neither url nor content_urls has an address of https://",
            hint="the certificates are used for the hosts of those URLs",
        )
    try:
        client_context(module.tls)
    except TlsError as error:
        raise ConfigError(f"{place}: {error.message}", hint=error.hint) from None


def _check_hooks(place: str, hooks: Hooks) -> None:
    """Raise `ConfigError` for a hook that is not a program."""
    for name in HOOK_NAMES:
        if command := hooks.command(name):
            with _key(place, name):
                _check_program(command)


def _check_program(command: tuple[str, ...]) -> None:
    """Raise `ConfigError` unless the first word is an executable's absolute path."""
    if any("\0" in word for word in command):
        raise ConfigError("an argument contains a NUL byte", hint="write it without that byte")
    program = command[0]
    if not os.path.isabs(program):
        raise ConfigError(
            f"{program!r} is not an absolute path", hint="no PATH is searched: write /usr/bin/..."
        )
    if not os.path.isfile(program) or not os.access(program, os.X_OK):
        raise ConfigError(
            f"{program} is not a program that this user may execute",
            hint="check the path; chmod +x makes a script executable",
        )


def _check_proofs(place: str, proofs: dict[str, Proof]) -> None:
    """Raise `ConfigError` for an unknown profile, or an unusable command or keyring."""
    from huai_client.plan.profiles import profiles

    kinds = {name: profile for name, profile in profiles().items() if profile.tops}
    for name, proof in proofs.items():
        table_place = f"{place}.{name}]"
        if name not in kinds:
            raise ConfigError(
                f"{table_place}: {name!r} is not a profile of repositories",
                hint=closest(name, kinds),
            )
        if proof.words:
            with _key(table_place, "command"):
                _check_program(proof.words)
            continue
        with _key(table_place, "gpgv"):
            if not kinds[name].signed:
                raise ConfigError(
                    f"huai does not know the signed files in repositories of the profile {name}",
                    hint="write a command instead",
                )
            for keyring in proof.keyrings:
                _check_keyring(keyring)
            from shutil import which  # loads three compressors

            if which("gpgv") is None:
                raise ConfigError("the program gpgv is missing", hint="apt install gpgv")


def _check_keyring(text: str) -> None:
    """Raise `ConfigError` unless `text` is the absolute path of a readable, unarmored keyring."""
    if not os.path.isabs(text):
        raise ConfigError(f"{text!r} is not an absolute path", hint="write /usr/share/keyrings/...")
    try:
        with open(text, "rb") as file:
            begin = file.read(_ARMOR_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{text!r}: {reason}", hint="check the path, and that this user may read it"
        ) from error
    if begin.lstrip().startswith(b"-----"):
        raise ConfigError(
            f"{text} is armored, which gpgv cannot read",
            hint=f"gpg --dearmor < {text} > KEYRING.gpg",
        )
