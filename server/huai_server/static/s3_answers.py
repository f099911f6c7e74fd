"""Error responses of an S3 service, read from the text of obstore's errors.

Pure.  The library puts the XML response into a text and distinguishes only some of its codes.
Rule: the result is one line, without any login.
"""

import html
import re

from huai_schema.paths import show

_READ = 4096
"""Characters; a response may have any length."""
_STATUS = re.compile(r"status code: (\d{3}[^:\n]*)")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_LOGIN = re.compile(r"//[^/@\s]*@")
_SHOWN = 300


def is_refused(error: Exception) -> bool:
    """True if the credentials are refused; obstore has no own error for that in listings."""
    return _find(_STATUS, error).startswith(("401", "403"))


def is_upload_gone(error: Exception) -> bool:
    """True if the service has discarded the parts of an upload."""
    return _find(_CODE, error) == "NoSuchUpload"


def describe_failure(error: Exception) -> str:
    """Return status, code and message, or the first line: more helps only with the library."""
    parts = [_find(each, error) for each in (_STATUS, _CODE, _MESSAGE)]
    text = ": ".join(filter(None, parts)) if parts[1] else _start(error).partition("\n")[0]
    line = " ".join(html.unescape(text).split())
    return show(_LOGIN.sub("//", line).encode())[:_SHOWN]


def _find(pattern: re.Pattern[str], error: Exception) -> str:
    match = pattern.search(_start(error))
    return match[1].strip() if match else ""


def _start(error: Exception) -> str:
    return str(error)[:_READ]
