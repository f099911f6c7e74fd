"""Tokens, with which a downstream sees private modules (SERVE.md).

A token is `huai_ID_SECRET`.  The id is public: commands name a token by it.  The secret is 256
random bits, of which `ROOT/tokens.json` stores only the SHA-256.  A slow hash, as passwords need,
would add no protection, because 256 random bits cannot be guessed.  It would cost time for each
request.

Rule: the text of a token leaves this module once, when it is made.  No error or log contains it.
"""

import base64
import hashlib
import hmac
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from huai_program.configuration import ConfigError, rewrite
from huai_server.state.errors import UsageError
from huai_server.state.file_stamp import file_stamp

Scope = Literal["read", "metrics", "operator"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""`read` gives access to all of a module, `metrics` only to its metrics, `operator` to a page."""

_FILE = "tokens.json"
_TOKEN = re.compile(r"huai_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_ID_BYTES, _SECRET_BYTES = 6, 32
_OWN, _GROUP = 0o600, 0o640
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


class Token(msgspec.Struct, frozen=True):
    """The stored part of a token."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the whole token, in hex."""
    modules: tuple[str, ...]
    scopes: tuple[Scope, ...]
    created: int
    """Seconds since the epoch."""
    expires: int | None = None
    """Seconds since the epoch; None for never."""
    comment: str = ""

    def is_valid(self, now: float) -> bool:
        """True if the token has not expired at `now`, in seconds since the epoch."""
        return self.expires is None or now < self.expires


class _File(msgspec.Struct, frozen=True):
    version: Literal[1] = 1
    tokens: tuple[Token, ...] = ()


class Tokens:
    """The tokens of a state root, which are read again after their file was replaced."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stamp: tuple[int, ...] | None = None
        self._by_id: dict[str, Token] = {}

    def find(self, text: str) -> Token | None:
        """Return the token with this text; None if it is unknown or has expired.

        The first call that cannot read the file raises `ConfigError`; later calls return None until
        the file is replaced.
        """
        match = token_form(text)
        if match is None:
            return None
        self._reload()
        token = self._by_id.get(match[1])
        digest = token.digest if token else "0" * 64
        # The id is public; comparing digests takes the same time for any secret.
        if not hmac.compare_digest(_digest(text), digest):
            return None
        return token if token and token.is_valid(time.time()) else None

    def _reload(self) -> None:
        """Read the tokens again if their file was replaced.

        Raises `ConfigError` if it cannot be read; until it is replaced, no token is valid then.
        """
        stamp = file_stamp(tokens_path(self._root))
        if stamp != self._stamp:
            self._stamp, self._by_id = stamp, {}  # an unreadable file gives no access
            self._by_id = {token.id: token for token in read_tokens(self._root)}


def token_form(text: str) -> re.Match[str] | None:
    """Match the form of a token: the first group is the id.  None for any other text."""
    return _TOKEN.fullmatch(text)


def tokens_path(root: Path) -> Path:
    """Return the path of the tokens below `root`."""
    return root / _FILE


def read_tokens(root: Path) -> tuple[Token, ...]:
    """Return all tokens, expired ones too; none without a file.

    Raises `ConfigError` if the file is unreadable or malformed, or other users may write it.
    """
    path = tokens_path(root)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _WRITABLE:
            raise ConfigError(
                f"{path}: other users may write tokens into it (mode {mode:04o})",
                hint=f"chmod go-w {path}; then check huai-server token list, and revoke unknown "
                "tokens",
            )
        return _decode(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}",
            hint="the user who runs huai-server must be able to read it",
        ) from error
    except UnicodeError:
        raise _malformed(path, "not UTF-8 text") from None


def new_token(
    root: Path,
    modules: Iterable[str],
    scopes: Iterable[Scope],
    *,
    seconds: int | None = None,
    comment: str = "",
) -> tuple[Token, str]:
    """Store a new token that expires after `seconds`, or never; return it and its secret text.

    Raises `ConfigError` without a state root, or if the file of tokens is malformed.
    """
    name = secrets.token_hex(_ID_BYTES)
    secret = base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).decode().rstrip("=")
    text, now = f"huai_{name}_{secret}", int(time.time())
    expires = None if seconds is None else now + seconds
    token = Token(
        name,
        _digest(text),
        tuple(dict.fromkeys(modules)),
        tuple(dict.fromkeys(scopes)),
        now,
        expires,
        comment,
    )
    _change(root, lambda tokens: (*tokens, token))
    return token, text


def revoke_token(root: Path, token_id: str) -> Token:
    """Delete the token with the id `token_id`, and return it.

    Raises `UsageError`, and `ConfigError` if the file of tokens is malformed.
    """
    revoked: list[Token] = []

    def without(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """Return the other tokens; `UsageError` if it is not among them."""
        revoked.extend(token for token in tokens if token.id == token_id)
        if not revoked:
            raise UsageError(
                "no token has this id", hint="huai-server token list shows all of them"
            )
        return tuple(token for token in tokens if token.id != token_id)

    _change(root, without)
    return revoked[0]


def forget_module(root: Path, name: str) -> None:
    """Remove a module from all tokens, and delete the tokens that named no other module.

    Raises `ConfigError` if the file of tokens cannot be read or written, or is malformed.
    """

    def without(token: Token) -> Token:
        left = tuple(each for each in token.modules if each != name)
        return msgspec.structs.replace(token, modules=left)

    if any(name in token.modules for token in read_tokens(root)):
        _change(root, lambda tokens: tuple(t for t in map(without, tokens) if t.modules))


def _change(root: Path, change: Callable[[tuple[Token, ...]], tuple[Token, ...]]) -> None:
    """Replace the stored tokens by the result of `change`.

    Raises `ConfigError` without a state root, or if the file is malformed or cannot be written.
    """
    path = tokens_path(root)

    def edit(old: str) -> str:
        """Return the new text of the file."""
        tokens = change(_decode(path, old) if old else ())
        encoded = msgspec.json.encode(_File(tokens=tokens))
        return msgspec.json.format(encoded, indent=2).decode() + "\n"

    try:
        # `serve` may run as another user, who reads the root as a member of its group.
        shared = stat.S_IMODE(root.stat().st_mode) & stat.S_IRGRP
    except OSError as error:
        raise ConfigError(
            f"{root}: {error.strerror}", hint="huai-server add makes the first module"
        ) from error
    rewrite(path, edit, mode=_GROUP if shared else _OWN)


def _decode(path: Path, text: str) -> tuple[Token, ...]:
    """Decode the file; `ConfigError` if it is malformed."""
    try:
        return msgspec.json.decode(text, type=_File).tokens
    except msgspec.DecodeError as error:
        raise _malformed(path, str(error)) from None


def _malformed(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{path}: {reason}", hint="restore it from a copy, or delete it and make new tokens"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
