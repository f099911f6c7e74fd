"""Verifies the signatures of a package repository by gpgv, with the administrator's keyrings.

What is believed is what gpgv says on its status lines, not its exit code alone: an archive signs
with a new key beside the old one before every keyring has it.  Rule, as apt's: one good signature,
and none that is wrong; none by an expired or revoked key counts, none that rests on SHA-1.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from huai_client.proofs.changed import Changed
from huai_client.proofs.shown import Shown
from huai_schema.entries import Symlink
from huai_schema.paths import RelPath, basename, show

_STATUS = "[GNUPG:] "
_MOST = 16 << 20
"""Bytes of a file with a signature in it; Debian's are below a MiB."""
_MARKS = (
    b"-----BEGIN PGP SIGNED MESSAGE-----",
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----END PGP SIGNATURE-----",
)
_WRONG = {
    "BADSIG": "the signature does not fit the file",
    "NO_PUBKEY": "signed by a key that the keyring does not have",
    "EXPSIG": "the signature has expired",
    "EXPKEYSIG": "the key that signed it has expired",
    "REVKEYSIG": "the key that signed it is revoked",
    "NODATA": "there is no signature in it",
}
Run = Callable[[Sequence[str], Callable[[str], None]], str]
"""Runs a program, and tells each line that it prints; returns why it failed, or nothing."""


def refusal(
    changed: Changed,
    found: Shown,
    signed: Sequence[tuple[str, str]],
    keyrings: Sequence[str],
    run: Run,
) -> str:
    """Why `changed` is not proved; empty: it is.  `signed` is as in a `Profile`."""
    program = shutil.which("gpgv")
    if program is None:
        return "the program gpgv is missing"
    options = ["--status-fd", "1", "--weak-digest", "SHA1"]
    for keyring in keyrings:
        options += ["--keyring", keyring]
    command = [program, *options, "--"]
    failures = (
        f"{show(path)}: {failure}"
        for path, ending in _signed(changed, found, signed)
        if (failure := _failure(path, ending, found, command, run))
    )
    return next(failures, "") or _symlink_out(changed, found)


def _signed(
    changed: Changed, found: Shown, signed: Sequence[tuple[str, str]]
) -> Iterator[tuple[RelPath, str]]:
    """The files to verify, and what follows them in the name of their signatures."""
    for path in sorted(found.keys() | changed.entries.keys()):
        name = basename(path).decode("utf-8", "surrogateescape")
        for pattern, ending in signed:
            if fnmatchcase(name, pattern) and not (ending and name.endswith(ending)):
                touched = {path, RelPath(path + ending.encode())}
                if touched & (found.changed | changed.entries.keys()):
                    yield path, ending
                break


def _failure(path: RelPath, ending: str, found: Shown, command: list[str], run: Run) -> str:
    if path not in found:
        return "it is not a file of this repository whose content is known"
    content = Path(os.fsdecode(found[path]))
    if not ending:
        return _not_clear_signed(content) or _verdict([*command, str(content)], run)
    signature = RelPath(path + ending.encode())
    if signature not in found:
        return f"there is no {show(basename(signature))} beside it"
    return _verdict([*command, os.fsdecode(found[signature]), str(content)], run)


def _verdict(command: Sequence[str], run: Run) -> str:
    """Why what gpgv says is not enough."""
    lines: list[str] = []
    failure = run(command, lines.append)
    words = [line.removeprefix(_STATUS).split()[0] for line in lines if line.startswith(_STATUS)]
    if failure and not failure.startswith("exit code"):
        return failure
    if "GOODSIG" not in words or "BADSIG" in words:
        wrong = next((text for word, text in _WRONG.items() if word in words), "")
        return wrong or failure or "gpgv names no good signature"
    # 2 is what it ends with for a signature of an unknown key, too.
    known = not failure or "NO_PUBKEY" in words
    return "" if known else failure


def _not_clear_signed(path: Path) -> str:
    """Whether anything stands outside of the signed text: gpgv would pass over it."""
    with path.open("rb") as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        return "it is too long to be signed in this way"
    lines = text.rstrip(b"\r\n").split(b"\n")
    marks = [line.rstrip() for line in lines if line.startswith(b"-----")]
    whole = lines[0].rstrip() == _MARKS[0] and lines[-1].rstrip() == _MARKS[2]
    return "" if whole and tuple(marks) == _MARKS else "it is not one signed text and nothing else"


def _symlink_out(changed: Changed, found: Shown) -> str:
    """A pointer that would lead readers past what is proved: out of the directory it is in."""
    for path in sorted(changed.pointers - found.keys()):
        entry = changed.entries[path]
        if isinstance(entry, Symlink) and (b"/" in entry.target or entry.target == b".."):
            return (
                f"{show(path)}: the symlink leads to {show(entry.target)}, which is not beside it"
            )
    return ""
