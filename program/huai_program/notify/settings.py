"""The table `[notify]` of client.toml and server.toml as frozen, typed values."""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from huai_program.configuration import ConfigError
from huai_program.tables import Example, check_keys, convert, example

_ADDRESS = re.compile(r"[!-~]+@[A-Za-z0-9.\[\]:-]+|[A-Za-z0-9._-]+")
"""A mail address, or a local user."""
_NOT_IN_ADDRESS = frozenset('<>,;"()')
_URL = re.compile(r"https?://[!-~]+")


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """The recipients of mail, and the server that sends it."""

    to: str | tuple[str, ...]
    sender: str = ""
    """The sender; empty: `huai` at this machine."""
    server: str = "localhost"
    port: int = 0
    """The port; 0 means 25, with `tls` 587 or 465."""
    tls: Literal["off", "starttls", "tls"] = "off"
    user: str = ""
    """The name for the login; empty: no login."""
    password_file: str = ""

    @property
    def recipients(self) -> tuple[str, ...]:
        """The addresses in `to`."""
        return (self.to,) if isinstance(self.to, str) else self.to


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """A web hook."""

    url: str
    secret_file: str = ""
    """The file of the secret that signs messages; empty: they are not signed."""


class Notify(msgspec.Struct, frozen=True, kw_only=True):
    """The failures in a row before a message, and the ways to send it."""

    after: Annotated[int, Meta(ge=1, le=1000)] = 3
    timeout: Annotated[int, Meta(ge=1, le=60)] = 10
    """Seconds that sending may take."""
    mail: Annotated[Mail | None, Example('{ to = "ops@mirror.example", server = "localhost" }')] = (
        None
    )
    web: Annotated[Web | None, Example('{ url = "https://chat.example/hooks/abc" }')] = None
    command: Annotated[
        str | tuple[str, ...] | None, Example('["/usr/local/bin/alarm", "--mirror"]')
    ] = None

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command, if there is one."""
        return (self.command,) if isinstance(self.command, str) else self.command or ()


def read_notify(place: str, table: object) -> Notify:
    """Convert the table `[notify]`; raises `ConfigError`, which names `place` and the wrong key."""
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
    """Return key and reason of each wrong setting."""
    faults: list[tuple[str, str]] = []
    if not (notify.mail or notify.web or notify.words):
        faults.append(("mail", "is missing, and so are web and command: no message would be sent"))
    if notify.mail:
        faults += [("mail", reason) for reason in _mail_faults(notify.mail)]
    if notify.web:
        if not _URL.fullmatch(notify.web.url):
            faults.append(("web", "url must begin with http:// or https://"))
        reasons = _path_faults("secret_file", notify.web.secret_file)
        faults += [("web", reason) for reason in reasons]
    if notify.command is not None:
        program = next(iter(notify.words), "")
        if not program.startswith("/") or any("\0" in word for word in notify.words):
            faults.append(("command", f"{program!r} is not an absolute path"))
    return faults


def _mail_faults(mail: Mail) -> list[str]:
    """Return what is wrong with the settings of mail."""
    addresses = (*mail.recipients, *([mail.sender] if mail.sender else []))
    faults = [f"{each!r} is not a mail address" for each in addresses if not _is_address(each)]
    if not mail.recipients:
        faults.append("to must not be empty")
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", mail.server):
        faults.append(f"server: {mail.server!r} is not a host name")
    if not 0 <= mail.port <= 65535:
        faults.append(f"port must be 0-65535, not {mail.port}")
    if bool(mail.user) != bool(mail.password_file):
        faults.append("user and password_file must be given together")
    if mail.user and mail.tls == "off":
        faults.append('a password needs tls = "starttls" or "tls"')
    return faults + _path_faults("password_file", mail.password_file)


def _is_address(text: str) -> bool:
    return bool(_ADDRESS.fullmatch(text)) and _NOT_IN_ADDRESS.isdisjoint(text)


def _path_faults(key: str, path: str) -> list[str]:
    """Return a fault unless `path`, the value of `key`, is absolute without NUL, or empty."""
    wrong = path and (not path.startswith("/") or "\0" in path)
    return [f"{key}: {path!r} is not an absolute path"] if wrong else []
