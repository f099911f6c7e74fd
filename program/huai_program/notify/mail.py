"""Sends a notification as a mail."""

import re
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path

from huai_program.notify.notification import Notification, one_line
from huai_program.notify.settings import Mail

_PORTS = {"off": 25, "starttls": 587, "tls": 465}


def compose(mail: Mail, notification: Notification) -> EmailMessage:
    """Return the mail for a notification; texts from outside never begin a header."""
    host = _domain(notification)
    message = EmailMessage()
    message["From"] = mail.sender or f"huai@{host}"
    message["To"] = ", ".join(mail.recipients)
    message["Subject"] = notification.title
    message["Date"] = formatdate(localtime=True)
    message["Message-ID"] = make_msgid("huai", domain=host)
    message["Auto-Submitted"] = "auto-generated"
    message["X-Huai-Event"] = notification.event
    message["X-Huai-Module"] = one_line(notification.about.module)
    message.set_content(notification.text)
    return message


def send_mail(mail: Mail, seconds: int, notification: Notification) -> str:
    """Send the mail; return the reason of a failure, or an empty text.

    `seconds` limit each wait for the mail server.
    """
    try:
        _send(mail, seconds, compose(mail, notification), _domain(notification))
    except smtplib.SMTPRecipientsRefused as error:
        refused = ", ".join(f"{to}: {text!r}" for to, (_, text) in error.recipients.items())
        return one_line(f"refused for {refused}")
    except (OSError, smtplib.SMTPException, UnicodeError) as error:
        return one_line(f"{mail.server}: {error}")
    return ""


def _domain(notification: Notification) -> str:
    """Return the name of this host for headers and a mail server."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", notification.about.host) or "localhost"


def _send(mail: Mail, seconds: int, message: EmailMessage, domain: str) -> None:
    """Connect to the server, and send; `domain` is for EHLO: smtplib would ask a name server."""
    port = mail.port or _PORTS[mail.tls]
    context = ssl.create_default_context() if mail.tls != "off" else None
    if mail.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            mail.server, port, domain, timeout=seconds, context=context
        )
    else:
        server = smtplib.SMTP(mail.server, port, domain, timeout=seconds)
    with server:
        if mail.tls == "starttls":
            server.starttls(context=context)
        if mail.user:
            password = Path(mail.password_file).read_text(encoding="utf-8").strip()
            server.login(mail.user, password)
        server.send_message(message)
