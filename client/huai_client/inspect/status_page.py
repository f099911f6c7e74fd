"""How the modules stand as a page for a web root: one file, which loads nothing.

Rule: the world reads it, so it names no URL, no path and no message of an error, which may hold
logins; and it gives moments, not ages, because nobody writes it again while it grows old.
"""

import time
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from huai_client.config import Module
from huai_client.inspect.prometheus import module_values
from huai_client.inspect.status_file import replace_status_file
from huai_client.state import history
from huai_client.state.paths import module_places
from huai_client.state.run_record import RunRecord
from huai_schema import __version__
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.program.humanize import human

PAGE = "index.html"
_RUNS = 20
_NEVER = "-"


def write_status_page(folder: Path, root: Path, modules: Mapping[str, Module]) -> None:
    """Replace the page in `folder`; `StatusFileError` if it cannot be."""
    replace_status_file(folder / PAGE, status_page(root, modules))


def status_page(root: Path, modules: Mapping[str, Module]) -> str:
    """The whole page; reads the state of each module, and asks nobody."""
    names = sorted(modules)
    runs = sorted(
        ((run, name) for name in names for run in _runs(root, name)),
        key=lambda each: -each[0].until,
    )
    template = files(__package__).joinpath("status_page.html").read_text(encoding="utf-8")
    now = time.time()
    return Template(template).substitute(
        machine_time=time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(now)),
        time=_moment(now),
        version=escape(__version__),
        modules="".join(
            _module_row(name, module_values(root, name, modules[name])) for name in names
        ),
        runs="".join(_run_row(run, name) for run, name in runs[:_RUNS]),
    )


def _runs(root: Path, name: str) -> list[RunRecord]:
    try:
        return history.read(module_places(root, name).history)[:_RUNS]
    except HuaiError:  # the row of the module tells of it
        return []


def _module_row(name: str, values: Mapping[str, float]) -> str:
    good, state = state_of(values)
    cells = (
        f'<td class="{"good" if good else "bad"}">{escape(state)}</td>',
        *(f"<td>{text}</td>" for text in _module_cells(values)),
    )
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>\n'


def _module_cells(values: Mapping[str, float]) -> Iterator[str]:
    yield f"{values['serial']:,.0f}" if values["serial"] else _NEVER
    for key in ("commit", "last_success", "last_run"):
        yield _moment(values[f"{key}_timestamp_seconds"])
    yield human(values["bytes"])


def state_of(values: Mapping[str, float]) -> tuple[bool, str]:
    """Whether all is well, and what to say."""
    if values["last_exit_code"]:
        return False, f"last run failed ({_outcome(int(values['last_exit_code']))})"
    if values["stale"]:
        return False, "out of date"
    if not values["last_success_timestamp_seconds"]:
        return False, "never synced"
    return True, "in step"


def _run_row(run: RunRecord, name: str) -> str:
    kind = "good" if run.good else "bad"
    times = f" ({run.times:,} times)" if run.times > 1 else ""
    outcome = "OK" if run.good else _outcome(run.code) if run.ended else "interrupted"
    cells = (
        *(f"<td>{text}</td>" for text in (_moment(run.time), escape(name), escape(run.kind))),
        f'<td class="{kind}">{escape(outcome)}{times}</td>',
        *(
            f"<td>{text}</td>"
            for text in (f"{run.serial:,}", f"{run.fetched:,}", human(run.received))
        ),
    )
    return f"<tr>{''.join(cells)}</tr>\n"


def _outcome(code: int) -> str:
    """What an exit code means, without what was wrong in particular."""
    meanings = {each.value: each.meaning for each in ExitCode}
    return f"{code}: {meanings[code]}" if code in meanings else str(code)


def _moment(seconds: float) -> str:
    """Date and time, UTC."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds)) if seconds else _NEVER
    except (OverflowError, ValueError, OSError):  # no calendar goes so far
        return _NEVER
