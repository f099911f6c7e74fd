"""The folder in which a repository's packs stand: what is unfinished there, and what is lasting.

Both programs write packs there, each under the lock of its module.  Rule: a name ends in
`.idx` only once what it names is complete, because every git opens what ends so.
"""

from pathlib import Path

TEMPORARY = "tmp_huai_"
"""Prefix of unfinished files; git too prunes what begins with `tmp_`."""


def remove_unfinished(folder: Path) -> None:
    """Drop what a killed run left; call it only while holding the module's lock."""
    for path in folder.glob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)
    # Killed between its two renames: a pack without an index, which git never looks at.
    for path in folder.glob("pack-*.pack"):
        if not path.with_suffix(".idx").exists():
            path.unlink(missing_ok=True)
