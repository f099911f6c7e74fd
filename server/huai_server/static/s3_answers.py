"""What a service of S3's protocol said when it failed, read from the text of obstore's errors.

Pure.  The library puts the answer, XML, into a text and tells apart only some of its codes.  Rule:
what is shown is one line, and nothing in it may be a login.
"""

import html
import re

from huai_schema.paths import show

_READ = 4096
"""Characters: an answer may be of any length."""
_STATUS = re.compile(r"status code: (\d{3}[^:\n]*)")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_LOGIN = re.compile(r"//[^/@\s]*@")
_SHOWN = 300


def is_refused(error: Exception) -> bool:
    """Whether who asks may not do it: of a listing the library does not tell."""
    return _found(_STATUS, error).startswith(("401", "403"))


def is_upload_gone(error: Exception) -> bool:
    """Whether the parts of a file were given up by the service."""
    return _found(_CODE, error) == "NoSuchUpload"


def said(error: Exception) -> str:
    """Status, code and message, or the first line: the rest is for who looks into the library."""
    told = [_found(each, error) for each in (_STATUS, _CODE, _MESSAGE)]
    text = ": ".join(filter(None, told)) if told[1] else _start(error).partition("\n")[0]
    line = " ".join(html.unescape(text).split())
    return show(_LOGIN.sub("//", line).encode())[:_SHOWN]


def _found(pattern: re.Pattern[str], error: Exception) -> str:
    found = pattern.search(_start(error))
    return found[1].strip() if found else ""


def _start(error: Exception) -> str:
    return str(error)[:_READ]
