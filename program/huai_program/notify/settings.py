"""The table `[notify]` of client.toml and server.toml, as frozen, typed values.

The types are checked by msgspec, which the caller hands over; the rest is here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from huai_program.configuration import ConfigError, check_keys, value_error

_ADDRESS = re.compile(r"[!-~]+@[A-Za-z0-9.\[\]:-]+|[A-Za-z0-9._-]+")
"""A mail address, or a user of this machine."""
_NOT_IN_ADDRESS = frozenset('<>,;"()')
_URL = re.compile(r"https?://[!-~]+")
_EXAMPLES = {
    "after": "after = 3",
    "timeout": "timeout = 10",
    "mail": 'mail = { to = "ops@mirror.example", server = "localhost" }',
    "web": 'web = { url = "https://chat.example/hooks/abc" }',
    "command": 'command = ["/usr/local/bin/alarm", "--mirror"]',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Who gets mail, and by which server."""

    to: str | tuple[str, ...]
    sender: str = ""
    """Empty: `huai` at this machine."""
    server: str = "localhost"
    port: int = 0
    """0: 25; with `tls` 587 or 465."""
    tls: Literal["off", "starttls", "tls"] = "off"
    user: str = ""
    """Empty: no login."""
    password_file: str = ""

    @property
    def recipients(self) -> tuple[str, ...]:
        """All of `to`."""
        return (self.to,) if isinstance(self.to, str) else self.to


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Which URL is told."""

    url: str
    secret_file: str = ""
    """Signs what is sent; empty: nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """After how many failures in a row somebody is told, and who."""

    after: int = 3
    timeout: int = 10
    """Seconds that telling may take."""
    mail: Mail | None = None
    web: Web | None = None
    command: str | tuple[str, ...] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The command, the program first; none: there is none."""
        return (self.command,) if isinstance(self.command, str) else self.command or ()


def read_notify(
    place: str,
    table: object,
    convert: Callable[[Any, type[Notify]], Notify],
    conversion_error: type[Exception],
) -> Notify:
    """The value of a table; `ConfigError` with the key that is wrong.

    `convert` is msgspec's, and `conversion_error` what it raises.
    """
    check_keys(place, table, _keys(Notify))
    assert isinstance(table, Mapping)  # noqa: S101 - check_keys
    for key, kind in (("mail", Mail), ("web", Web)):
        if key in table:
            check_keys(f"{place}: {key}", table[key], _keys(kind))
    try:
        notify = convert(table, Notify)
    except conversion_error as error:
        raise value_error(place, str(error), lambda key: _EXAMPLES.get(key, "")) from None
    for key, reason in _faults(notify):
        raise ConfigError(f"{place}: {key}: {reason}", hint=f"for example: {_EXAMPLES[key]}")
    return notify


def _keys(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def _faults(notify: Notify) -> list[tuple[str, str]]:
    """Keys, and what is wrong with their values."""
    found = [
        (key, f"{value} is not from 1 to {most:,}")
        for key, value, most in (("after", notify.after, 1000), ("timeout", notify.timeout, 60))
        if not 1 <= value <= most
    ]
    if not (notify.mail or notify.web or notify.words):
        found.append(("mail", "is missing, and so are web and command: nobody would be told"))
    if notify.mail:
        found += [("mail", reason) for reason in _mail_faults(notify.mail)]
    if notify.web:
        if not _URL.fullmatch(notify.web.url):
            found.append(("web", "its url is not one of http or https"))
        found += [("web", reason) for reason in _path_faults("secret_file", notify.web.secret_file)]
    if notify.command is not None:
        program = next(iter(notify.words), "")
        if not program.startswith("/") or any("\0" in word for word in notify.words):
            found.append(("command", f"{program!r} is not an absolute path"))
    return found


def _mail_faults(mail: Mail) -> list[str]:
    addresses = (*mail.recipients, *([mail.sender] if mail.sender else []))
    found = [f"{each!r} is not a mail address" for each in addresses if not _is_address(each)]
    if not mail.recipients:
        found.append("to is empty")
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", mail.server):
        found.append(f"server: {mail.server!r} is not a host name")
    if not 0 <= mail.port <= 65535:
        found.append(f"port: {mail.port} is not a port")
    if bool(mail.user) != bool(mail.password_file):
        found.append("user and password_file are given together")
    if mail.user and mail.tls == "off":
        found.append('a password is sent with tls = "starttls" or "tls" only')
    return found + _path_faults("password_file", mail.password_file)


def _is_address(text: str) -> bool:
    return bool(_ADDRESS.fullmatch(text)) and _NOT_IN_ADDRESS.isdisjoint(text)


def _path_faults(key: str, path: str) -> list[str]:
    wrong = path and (not path.startswith("/") or "\0" in path)
    return [f"{key}: {path!r} is not an absolute path"] if wrong else []
