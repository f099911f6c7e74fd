"""The page at `/`: which modules there are, and where to look further.

Pure.  Plain HTML that loads nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from huai_server.http.api import ModuleModel

_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, which is the last that Python can print."""


def front_page(modules: Sequence[ModuleModel]) -> str:
    """All of the page."""
    rows = "".join(map(_row, modules)) or "<tr><td>no modules yet</td></tr>"
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>huai</title>'
        "<h1>huai</h1><p>Metadata of file mirrors, for huai-client. Also: "
        '<a href="api/v1/modules">modules</a>, <a href="healthz">health</a> and a '
        '<a href="openapi.json">description</a> as JSON.</p>'
        f"<table>{rows}</table></html>\n"
    )


def _row(module: ModuleModel) -> str:
    name = escape(module.name)
    link = f'<td><a href="api/v1/modules/{name}">{name}</a></td>'
    return f"<tr>{link}<td>{escape(_state(module))}</td></tr>"


def _state(module: ModuleModel) -> str:
    if module.problem is not None:
        return module.problem
    if module.totals is None or module.committed is None:
        return "no commit yet"
    when = datetime.fromtimestamp(max(0, min(module.committed, _LAST_SECOND)), UTC)
    return f"serial {module.serial}, {module.totals.entries:,} entries, {when:%Y-%m-%d %H:%M} UTC"
