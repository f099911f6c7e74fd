"""The rsyncd.conf of the fallback, with the settings that mirrors usually have.

Pure.  Rsync reads the file again for each connection, so a change of modules only replaces it.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from huai_program.configuration import ConfigError
from huai_server.config.tables import Fallback, Module
from huai_server.state.paths import fallback_lock_file

LOG_FORMAT = "%o [%a] %m %b %f %l"
"""As mirrors log it: operation, address, module, bytes sent, path, size."""
_VARIABLE = re.compile(r"%[A-Z][^%]*%")
_GLOBAL = "global"
"""The section of this name is not a module for rsync."""


class FallbackModule(NamedTuple):
    """A module as rsync sees it."""

    module: Module
    path: Path
    """Its `path` in rsyncd.conf."""


def render(
    settings: Fallback, modules: Mapping[str, FallbackModule], folder: Path, *, privileged: bool
) -> str:
    """The text of rsyncd.conf; raises `ConfigError` for a value that it cannot hold.

    `folder` is for lock files.  Without `privileged` rsync cannot change its user, and no section
    names one.
    """
    for clash in clashing_names(modules).values():
        raise clash
    lines = ["# Written by huai-server; change server.toml instead."]
    lines += _assignments(_global(settings, privileged=privileged))
    lines += _extra("", settings.extra)
    for name, served in modules.items():
        # One lock file for each module: in a shared one they would count each other's connections.
        lock = fallback_lock_file(folder, name)
        lines += ["", f"[{name}]", *_assignments(_module(served, lock))]
        lines += _extra(name, served.module.fallback.extra)
    return "\n".join(lines) + "\n"


def clashing_names(names: Iterable[str]) -> dict[str, ConfigError]:
    """Return the names that differ from another one in case only, each with its error.

    Rsync reads their sections as one, with the path of the last, so none of them can be served.
    """
    alike: dict[str, list[str]] = {_GLOBAL: [_GLOBAL]}
    for name in names:
        alike.setdefault(name.lower(), []).append(name)
    groups = [group for group in alike.values() if len(group) > 1]
    return {
        name: ConfigError(
            f"rsync cannot tell the module {name!r} from {group[place == 0]!r}",
            hint="rename it, or set its fallback.kind to off",
        )
        for group in groups
        for place, name in enumerate(group)
        if place or name != _GLOBAL
    }


def _global(settings: Fallback, *, privileged: bool) -> Iterable[tuple[str, object]]:
    if privileged:
        yield "uid", settings.uid
        yield "gid", settings.gid or "*"
    yield "use chroot", settings.use_chroot
    yield "read only", True
    # Symlinks are listed as they are, with and without chroot; clients cannot write any.
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
    """The `extra` lines for one module, or for all (`name` is empty).

    Raises `ConfigError` for a module's line that sets a path or begins a section, and for a text
    that ends with a backslash: rsync would join its last line with the one that follows.  Rsync
    reads the names of parameters in any case and with any blanks.
    """
    place = f"[modules.{name}.fallback]" if name else "[fallback]"
    for line in re.sub(r"\\[ \t]*\n", "", text).splitlines():
        word = "".join(line.partition("=")[0].split()).lower()
        elsewhere = bool(name) and (word == "path" or word[:1] in ("[", "&"))
        if elsewhere or line.rstrip().endswith("\\"):
            raise ConfigError(
                f"{place} extra: {line.strip()!r} cannot stand there",
                hint="the extra of a module cannot set its path, other modules belong into the "
                "extra of [fallback], and the last line cannot end with a backslash",
            )
    return text.splitlines()


def _assignments(values: Iterable[tuple[str, object]]) -> Iterable[str]:
    """A line for each value that is not empty; for the others rsync's default holds."""
    for name, value in values:
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        if text:
            yield f"{name} = {_checked(name, text)}"


def _checked(name: str, text: str) -> str:
    """`text`, if rsync reads it unchanged; else `ConfigError`."""
    if "\n" in text or "\r" in text or "\0" in text:
        reason = "a line break"
    elif text != text.strip() or text.endswith("\\"):
        reason = "a blank at an end, or a backslash at the last one"
    elif _VARIABLE.search(text):
        reason = "a word between percent signs, which stands for a variable"
    else:
        return text
    raise ConfigError(
        f"rsyncd.conf cannot hold `{name}` with {reason}: {text!r}",
        hint="rename it, or serve it from another path",
    )
