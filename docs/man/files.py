"""Makes man pages of section 5 from the pages about the configuration files.

`python -m docs.man.files FOLDER` writes one page for each file.  Rule to keep: sentences about a
key belong into the page, not here.
"""

import sys
from importlib.metadata import version
from pathlib import Path

from docs.man.troff import escape, markdown

_TOP = Path(__file__).parents[2]
FILES = {
    "huai-client.toml": ("docs/CLIENT-CONFIGURATION.md", "what huai-client mirrors, and how"),
    "huai-server.toml": ("docs/SERVER-CONFIGURATION.md", "what huai-server commits and serves"),
}
"""The source and the summary of each page."""


def file_page(name: str, release: str) -> str:
    """Return the page of one configuration file."""
    source, summary = FILES[name]
    lines = [
        f'.TH {escape(name).upper()} 5 "" "huai {release}" "huai"',
        f".SH NAME\n{escape(name)} \\- {escape(summary)}",
        *markdown((_TOP / source).read_text(encoding="utf-8")),
        f".SH SEE ALSO\n{escape(name.removesuffix('.toml'))}(1)",
    ]
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    """Write every page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        path = folder / f"{name}.5"
        path.write_text(file_page(name, version("huai")), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
