"""The rsyncd.conf of the fallback, with the usual settings of mirrors.

Pure.  Rsync reads the file again for each connection, so replacing it changes the modules.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from huai_program.configuration import ConfigError
from huai_server.config.tables import Fallback, Module
from huai_server.state.paths import fallback_lock_file

LOG_FORMAT = "%o [%a] %m %b %f %l"
"""The usual format of mirrors: operation, address, module, bytes sent, path, size."""
_VARIABLE = re.compile(r"%[A-Z][^%]*%")
_CONTINUED = re.compile(r"^([^\S\n]*[#;].*)|\\[ \t]*\n", re.MULTILINE)
"""A comment, whose backslash at the end continues nothing; or the end of a continued line."""
_GLOBAL = "global"
"""The name of a section that rsync does not treat as a module."""


class FallbackModule(NamedTuple):
    """A module of the daemon."""

    module: Module
    path: Path
    """The `path` in rsyncd.conf."""


def render(
    settings: Fallback, modules: Mapping[str, FallbackModule], folder: Path, *, privileged: bool
) -> str:
    """Return the text of rsyncd.conf; raises `ConfigError` for clashing names, and unusable values.

    `folder` is for lock files.  Without `privileged` rsync cannot change its user, and the text
    names none.
    """
    for clash in clashing_names(modules).values():
        raise clash
    lines = ["# Written by huai-server; change server.toml instead."]
    lines += _assignments(_global(settings, privileged=privileged))
    lines += _extra("", settings.extra)
    for name, served in modules.items():
        # In a shared lock file modules would count each other's connections.
        lock = fallback_lock_file(folder, name)
        lines += ["", f"[{name}]", *_assignments(_module(served, lock))]
        lines += _extra(name, served.module.fallback.extra)
    return "\n".join(lines) + "\n"


def clashing_names(names: Iterable[str]) -> dict[str, ConfigError]:
    """Return the names that rsync cannot tell from another one or from `global`, with their errors.

    It ignores case, and merges their sections, with the path of the last one, so none of them can
    be served.
    """
    alike: dict[str, list[str]] = {_GLOBAL: [_GLOBAL]}
    for name in names:
        alike.setdefault(name.lower(), []).append(name)
    groups = [group for group in alike.values() if len(group) > 1]
    return {
        name: ConfigError(
            f"rsync cannot distinguish the module {name!r} from {group[place == 0]!r}",
            hint="rename it, or set its fallback.kind to off",
        )
        for group in groups
        for place, name in enumerate(group)
        if place or name != _GLOBAL
    }


def _global(settings: Fallback, *, privileged: bool) -> Iterable[tuple[str, object]]:
    """Yield the global settings of rsyncd.conf; user and group only if `privileged`."""
    if privileged:
        yield "uid", settings.uid
        yield "gid", settings.gid or "*"
    yield "use chroot", settings.use_chroot
    yield "read only", True
    # Symlinks are listed unchanged with and without chroot, because clients cannot write any.
    yield "munge symlinks", False
    yield "max connections", settings.max_connections
    yield "timeout", settings.timeout
    yield "motd file", settings.motd_file
    yield "secrets file", settings.secrets_file
    yield "hosts allow", " ".join(settings.hosts_allow)
    yield "hosts deny", " ".join(settings.hosts_deny)
    yield "ignore nonreadable", True
    yield "reverse lookup", False
    yield "refuse options", " ".join(settings.refuse_options)
    yield "dont compress", " ".join(settings.dont_compress)
    yield "log file", settings.log_file
    yield "transfer logging", True
    yield "log format", LOG_FORMAT


def _module(served: FallbackModule, lock_file: Path) -> Iterable[tuple[str, object]]:
    """Yield a module's settings of rsyncd.conf."""
    settings = served.module.fallback
    yield "path", served.path
    yield "lock file", lock_file
    yield "comment", settings.comment
    yield "list", settings.list
    if settings.max_connections is not None:
        yield "max connections", settings.max_connections
    yield "auth users", " ".join(settings.auth_users)
    yield "secrets file", settings.secrets_file
    yield "hosts allow", " ".join(settings.hosts_allow)
    yield "hosts deny", " ".join(settings.hosts_deny)


def _extra(name: str, text: str) -> list[str]:
    """Return the `extra` lines for the module `name`, or for all if it is empty.

    Raises `ConfigError` for a module's line that sets a path or begins a section, and for a text
    that ends with a backslash, which would join its last line with the next one.  Rsync reads the
    names of parameters in any case and with any blanks.
    """
    place = f"[modules.{name}.fallback]" if name else "[fallback]"
    for line in _CONTINUED.sub(r"\1", text).splitlines():
        word = "".join(line.partition("=")[0].split()).lower()
        if name and word == "path":
            hint = "set path in the table of the module; its `extra` cannot"
        elif name and word[:1] in ("[", "&"):
            hint = "put sections and &include into `extra` of [fallback]"
        elif line.rstrip().endswith("\\"):
            hint = "remove the backslash at the end"
        else:
            continue
        raise ConfigError(f"{place} extra: {line.strip()!r} is not allowed here", hint=hint)
    return text.splitlines()


def _assignments(values: Iterable[tuple[str, object]]) -> Iterable[str]:
    """Yield a line for each value with a text; raises `ConfigError` for an unusable one."""
    for name, value in values:
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        if text:
            yield f"{name} = {_check_value(name, text)}"


def _check_value(name: str, text: str) -> str:
    """Return `text`; raises `ConfigError` if rsync would not read it unchanged."""
    if "\n" in text or "\r" in text or "\0" in text:
        reason = "a line break"
    elif text != text.strip() or text.endswith("\\"):
        reason = "a blank at either end, or a backslash at the end"
    elif _VARIABLE.search(text):
        reason = "a word between percent signs, which is a variable"
    else:
        return text
    raise ConfigError(
        f"rsyncd.conf cannot hold `{name}` with {reason}: {text!r}",
        hint="change the value in server.toml; if it is a path, rename the file or folder",
    )
