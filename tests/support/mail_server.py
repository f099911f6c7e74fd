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
    """Who may send."""

    user: str
    password: str


class MailServer(ThreadingTCPServer):
    """What came, and how it has to come."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None, tls: Tls, login: Login | None) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.port = int(self.server_address[1])
        self.context, self.tls, self.login = context, tls, login
        self.got: list[EmailMessage] = []
        self.envelopes: list[tuple[str, tuple[str, ...]]] = []
        """Sender and recipients of each."""
        self.refused = ""
        """A recipient that is not known here."""

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
        self.known, self.sender, self.recipients = self.server.login is None, "", list[str]()
        self._say("220 mail.example ready")
        while line := self.rfile.readline():
            verb, _, rest = line.decode("ascii").strip().partition(" ")
            getattr(self, f"smtp_{verb.lower()}")(rest)

    def finish(self) -> None:
        super().finish()
        self.request.close()  # not the socket that the server closes, if there is TLS

    def _encrypt(self) -> None:
        assert self.server.context is not None
        self.request = self.server.context.wrap_socket(self.request, server_side=True)

    def _say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def smtp_quit(self, _: str) -> None:
        self._say("221 bye")

    def smtp_ehlo(self, _: str) -> None:
        offers = ["mail.example", "AUTH PLAIN"] + ["STARTTLS"] * (self.server.tls == "starttls")
        for each in offers[:-1]:
            self._say(f"250-{each}")
        self._say(f"250 {offers[-1]}")

    def smtp_starttls(self, _: str) -> None:
        self._say("220 go on")
        self._encrypt()
        super().setup()

    def smtp_auth(self, rest: str) -> None:
        given = base64.b64decode(rest.split()[1]).split(b"\0")[1:]
        secure = isinstance(self.request, ssl.SSLSocket)
        self.known = secure and given == [each.encode() for each in self.server.login or ()]
        self._say("235 welcome" if self.known else "535 not you")

    def smtp_mail(self, rest: str) -> None:
        self.sender, self.recipients = rest.split("<")[1].split(">", maxsplit=1)[0], []
        self._say("250 ok" if self.known else "530 log in first")

    def smtp_rcpt(self, rest: str) -> None:
        who = rest.split("<")[1].split(">", maxsplit=1)[0]
        if who == self.server.refused:
            self._say("550 nobody here of that name")
            return
        self.recipients.append(who)
        self._say("250 ok")

    def smtp_rset(self, _: str) -> None:
        self._say("250 ok")

    def smtp_data(self, _: str) -> None:
        self._say("354 send it")
        lines = list(iter(self.rfile.readline, b".\r\n"))
        text = b"".join(line.removeprefix(b".") for line in lines)
        self.server.got.append(message_from_bytes(text, policy=_POLICY))
        self.server.envelopes.append((self.sender, tuple(self.recipients)))
        self._say("250 taken")


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
