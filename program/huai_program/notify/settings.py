"""The table `[notify]` of client.toml and server.toml, as frozen, typed values."""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from huai_program.configuration import ConfigError
from huai_program.tables import Example, check_keys, convert, example

_ADDRESS = re.compile(r"[!-~]+@[A-Za-z0-9.\[\]:-]+|[A-Za-z0-9._-]+")
"""A mail address, or a user of this machine."""
_NOT_IN_ADDRESS = frozenset('<>,;"()')
_URL = re.compile(r"https?://[!-~]+")


class Mail(msgspec.Struct, frozen=True, kw_only=True):
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


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """Which URL is told."""

    url: str
    secret_file: str = ""
    """Signs what is sent; empty: nothing does."""


class Notify(msgspec.Struct, frozen=True, kw_only=True):
    """After how many failures in a row somebody is told, and who."""

    after: Annotated[int, Meta(ge=1, le=1000)] = 3
    timeout: Annotated[int, Meta(ge=1, le=60)] = 10
    """Seconds that telling may take."""
    mail: Annotated[Mail | None, Example('{ to = "ops@mirror.example", server = "localhost" }')] = (
        None
    )
    web: Annotated[Web | None, Example('{ url = "https://chat.example/hooks/abc" }')] = None
    command: Annotated[
        str | tuple[str, ...] | None, Example('["/usr/local/bin/alarm", "--mirror"]')
    ] = None

    @property
    def words(self) -> tuple[str, ...]:
        """The command, the program first; none: there is none."""
        return (self.command,) if isinstance(self.command, str) else self.command or ()


def read_notify(place: str, table: object) -> Notify:
    """The value of a table; `ConfigError` with the key that is wrong."""
    check_keys(place, table, Notify.__struct_fields__)
    assert isinstance(table, dict)  # noqa: S101 - check_keys
    below = dict(table)
    for key, kind in (("mail", Mail), ("web", Web)):
        if key in table:
            below[key] = convert(f"{place}: {key}", table[key], kind)
    notify = convert(place, below, Notify)
    for key, reason in _faults(notify):
        raise ConfigError(f"{place}: {key}: {reason}", hint=f"for example: {example(Notify, key)}")
    return notify


def _faults(notify: Notify) -> list[tuple[str, str]]:
    """Keys, and what is wrong with their values."""
    found: list[tuple[str, str]] = []
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
