"""Verification of a package repository's signatures by gpgv, with the administrator's keyrings.

gpgv's status lines count, not its exit code alone: an archive signs with a new key in addition to
the old one before every keyring has it.  Rule, as apt's: one good signature, and no bad one;
signatures by expired or revoked keys or with SHA-1 do not count.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from huai_client.proofs.shown import Changed, RepositoryView
from huai_schema.entries import Symlink
from huai_schema.paths import RelPath, basename, show

_STATUS = "[GNUPG:] "
_MOST = 16 << 20
"""The limit in bytes of a file with an inline signature; Debian's are below a MiB."""
_MARKS = (
    b"-----BEGIN PGP SIGNED MESSAGE-----",
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----END PGP SIGNATURE-----",
)
_WRONG = {
    "BADSIG": "the signature does not match the file",
    "NO_PUBKEY": "signed by a key that the keyring does not have",
    "EXPSIG": "the signature has expired",
    "EXPKEYSIG": "the key that signed it has expired",
    "REVKEYSIG": "the key that signed it is revoked",
    "NODATA": "the file has no signature",
}
Run = Callable[[Sequence[str], Callable[[str], None]], str]
"""A function that runs a program, and passes on its lines; it returns why it failed."""


def refusal(
    changed: Changed,
    view: RepositoryView,
    signed: Sequence[tuple[str, str]],
    keyrings: Sequence[str],
    run: Run,
) -> str:
    """Return why `changed` is not proved, or an empty text; ends at the first failure.

    `signed` is as in a `Profile`, `keyrings` are paths.
    """
    program = shutil.which("gpgv")
    if program is None:
        return "the program gpgv is missing"
    options = ["--status-fd", "1", "--weak-digest", "SHA1"]
    for keyring in keyrings:
        options += ["--keyring", keyring]
    command = [program, *options, "--"]
    failures = (
        f"{show(path)}: {failure}"
        for path, ending in _signed(changed, view, signed)
        if (failure := _failure(path, ending, view, command, run))
    )
    return next(failures, "") or _symlink_out(changed, view)


def _signed(
    changed: Changed, view: RepositoryView, signed: Sequence[tuple[str, str]]
) -> Iterator[tuple[RelPath, str]]:
    """Yield the signed files that change, or whose signatures do, with the suffixes of these.

    A suffix is empty for a signature in the file.
    """
    for path in sorted(view.keys() | changed.entries.keys()):
        name = basename(path).decode("utf-8", "surrogateescape")
        for pattern, ending in signed:
            if fnmatchcase(name, pattern) and not (ending and name.endswith(ending)):
                touched = {path, RelPath(path + ending.encode())}
                if touched & (view.changed | changed.entries.keys()):
                    yield path, ending
                break


def _failure(path: RelPath, ending: str, view: RepositoryView, command: list[str], run: Run) -> str:
    """Return why a signed file is not proved, or an empty text."""
    if path not in view:
        return "not a file of this repository with known content"
    content = Path(os.fsdecode(view[path]))
    if not ending:
        return _not_clear_signed(content) or _verdict([*command, str(content)], run)
    signature = RelPath(path + ending.encode())
    if signature not in view:
        return f"{show(basename(signature))} is missing next to it"
    return _verdict([*command, os.fsdecode(view[signature]), str(content)], run)


def _verdict(command: Sequence[str], run: Run) -> str:
    """Return why gpgv's output is not sufficient, or an empty text."""
    lines: list[str] = []
    failure = run(command, lines.append)
    words = [line.removeprefix(_STATUS).split()[0] for line in lines if line.startswith(_STATUS)]
    if failure and not failure.startswith("exit code"):
        return failure
    if "GOODSIG" not in words or "BADSIG" in words:
        wrong = next((text for word, text in _WRONG.items() if word in words), "")
        return wrong or failure or "gpgv names no good signature"
    # gpgv exits with 2 also for a signature by an unknown key.
    return "" if not failure or "NO_PUBKEY" in words else failure


def _not_clear_signed(path: Path) -> str:
    """Return why a file is not one signed text and nothing else, or an empty text.

    gpgv would skip any other text.
    """
    with path.open("rb") as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        return "too long for an inline signature"
    lines = text.rstrip(b"\r\n").split(b"\n")
    marks = [line.rstrip() for line in lines if line.startswith(b"-----")]
    framed = lines[0].rstrip() == _MARKS[0] and lines[-1].rstrip() == _MARKS[2]
    return "" if framed and tuple(marks) == _MARKS else "not a single signed text and nothing else"


def _symlink_out(changed: Changed, view: RepositoryView) -> str:
    """Return an error for a pointer that leads out of its directory, past the proof; or empty."""
    for path in sorted(changed.pointers - view.keys()):
        entry = changed.entries[path]
        if isinstance(entry, Symlink) and (b"/" in entry.target or entry.target == b".."):
            target = show(entry.target)
            return f"{show(path)}: the symlink leads out of its directory, to {target}"
    return ""
