"""A mail server: real SMTP on loopback, with TLS and a login if a test wants them."""

import base64
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from email.message import EmailMessage

Tls = Literal["off", "starttls", "tls"]
_POLICY: Any = policy.SMTP


class Login(NamedTuple):
    """The credentials of a sender."""

    user: str
    password: str


class MailServer(ThreadingTCPServer):
    """A server that keeps each message, and demands TLS or a login if configured."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None, tls: Tls, login: Login | None) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.port = int(self.server_address[1])
        self.context, self.tls, self.login = context, tls, login
        self.got: list[EmailMessage] = []
        self.envelopes: list[tuple[str, tuple[str, ...]]] = []
        """Sender and recipients of each."""
        self.refused = ""
        """A recipient that the server does not know."""

    def handle_error(self, *_: object) -> None:
        """A sender that goes away, as one that does not believe the certificate."""

    @property
    def subjects(self) -> list[str]:
        return [str(each["Subject"]) for each in self.got]


class _Session(StreamRequestHandler):
    """The commands of RFC 5321 that a sender needs."""

    server: MailServer

    def setup(self) -> None:
        if self.server.tls == "tls":
            self._encrypt()
        super().setup()

    def handle(self) -> None:
        self.authenticated, self.sender, self.recipients = (
            self.server.login is None,
            "",
            list[str](),
        )
        self._reply("220 mail.example ready")
        while line := self.rfile.readline():
            verb, _, rest = line.decode("ascii").strip().partition(" ")
            getattr(self, f"smtp_{verb.lower()}")(rest)

    def finish(self) -> None:
        super().finish()
        self.request.close()  # not the socket that the server closes, if there is TLS

    def _encrypt(self) -> None:
        assert self.server.context is not None
        self.request = self.server.context.wrap_socket(self.request, server_side=True)

    def _reply(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def smtp_quit(self, _: str) -> None:
        self._reply("221 bye")

    def smtp_ehlo(self, _: str) -> None:
        offers = ["mail.example", "AUTH PLAIN"] + ["STARTTLS"] * (self.server.tls == "starttls")
        for offer in offers[:-1]:
            self._reply(f"250-{offer}")
        self._reply(f"250 {offers[-1]}")

    def smtp_starttls(self, _: str) -> None:
        self._reply("220 go on")
        self._encrypt()
        super().setup()

    def smtp_auth(self, rest: str) -> None:
        credentials = base64.b64decode(rest.split()[1]).split(b"\0")[1:]
        secure = isinstance(self.request, ssl.SSLSocket)
        self.authenticated = secure and credentials == [
            each.encode() for each in self.server.login or ()
        ]
        self._reply("235 welcome" if self.authenticated else "535 not you")

    def smtp_mail(self, rest: str) -> None:
        self.sender, self.recipients = rest.split("<")[1].split(">", maxsplit=1)[0], []
        self._reply("250 ok" if self.authenticated else "530 log in first")

    def smtp_rcpt(self, rest: str) -> None:
        recipient = rest.split("<")[1].split(">", maxsplit=1)[0]
        if recipient == self.server.refused:
            self._reply("550 no such user here")
            return
        self.recipients.append(recipient)
        self._reply("250 ok")

    def smtp_rset(self, _: str) -> None:
        self._reply("250 ok")

    def smtp_data(self, _: str) -> None:
        self._reply("354 send it")
        lines = list(iter(self.rfile.readline, b".\r\n"))
        text = b"".join(line.removeprefix(b".") for line in lines)
        self.server.got.append(message_from_bytes(text, policy=_POLICY))
        self.server.envelopes.append((self.sender, tuple(self.recipients)))
        self._reply("250 taken")


@contextmanager
def mail_server(
    *,
    certificate: tuple[Path, Path] | None = None,
    tls: Tls = "off",
    login: Login | None = None,
) -> Iterator[MailServer]:
    """Take mail, until the block ends; `certificate` and its key are for `tls`."""
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
    with MailServer(context, tls, login) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
