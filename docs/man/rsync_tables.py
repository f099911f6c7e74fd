"""The sections of huai-rsync(1) that are made from the program's tables.

Rule to keep: sentences about an option, a variable or an exit code belong into the program.
"""

from collections.abc import Iterator

from docs.man.troff import escape, markdown
from huai_client.huai_rsync.environment import ENDINGS, SETTINGS
from huai_client.huai_rsync.options import GROUPS, Treatment

_USES = {
    Treatment.MEANT: "Understood",
    Treatment.PASSED: "Passed on",
    Treatment.IGNORED: "Ignored",
    Treatment.HARMLESS: "Left to the real rsync",
    Treatment.REFUSED: "Left to the real rsync",
}


def table_sections() -> Iterator[str]:
    """Yield the sections of options, environment and exit codes."""
    yield ".SH OPTIONS"
    yield from markdown("Short options stand for the same. The real rsync runs for all others.")
    for group in GROUPS:
        yield f".TP\n{escape(f'{_USES[group.use]}: {group.why}')}"
        names = [*group.flags.split(), *(f"{name}=" for name in group.valued.split())]
        yield " ".join(
            f"\\fB{escape(f'--{name}' if name[1:] else f'-{name}')}\\fP" for name in names
        )
    yield ".SH ENVIRONMENT"
    for name, why in SETTINGS.items():
        (text,) = markdown(why)
        yield f".TP\n\\fB{escape(name)}\\fP"
        yield text.removeprefix(".PP\n")
    yield ".SH EXIT STATUS"
    for code in sorted({end.code for end in ENDINGS.values()}):
        names = [
            f"{key} {key.name}" + (" (the real rsync runs instead)" if end.falls_back else "")
            for key, end in ENDINGS.items()
            if end.code == code
        ]
        yield f".TP\n\\fB{code}\\fP\nhuai's {escape(', '.join(names))}"
