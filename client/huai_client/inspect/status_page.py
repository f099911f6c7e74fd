"""The status of the modules as a page for a web root, a file for each language, and as a table.

A badge for other pages is next to them.

Rule: the page is public, so it has no URLs, paths or error messages, which may hold logins; it
shows times, not ages, because it is rewritten only after a sync.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from huai_client.config.load import Module, load
from huai_client.inspect.prometheus import module_values, replace_status_file
from huai_client.state import history
from huai_client.state.history import RunRecord
from huai_client.state.paths import module_places
from huai_program.humanize import human
from huai_program.live_view import Row, Table, ago
from huai_program.locking import holder
from huai_program.words import ENGLISH, LANGUAGES, Words, load_words
from huai_schema import __version__
from huai_schema.errors import ExitCode, HuaiError

_RUNS = 20
_DAYS, _DAY_SECONDS = 30, 86400
_NEVER = "\N{EN DASH}"
_MODULE_LABELS = (
    "State",
    "Thirty days",
    "Serial",
    "Committed (UTC)",
    "Last in step (UTC)",
    "Last run (UTC)",
    "Next run, about (UTC)",
    "Size",
)
_RUN_LABELS = ("Began (UTC)", "Module", "Run", "Result", "Serial", "Files", "Received")
"""The heads of the columns, which are next to each value on a narrow screen."""
_COLOURED = ("State", "Result")
_SENTENCE = re.compile(r"\{\{(.+?)\}\}")
"""The mark of an English sentence in the page's template."""
Named = tuple[str, Mapping[str, float]]
"""A module's name and its `module_values`."""


def write_status_page(folder: Path, root: Path, modules: Mapping[str, Module]) -> None:
    """Replace the pages in `folder`, from the state of each of `modules` in the state root `root`.

    Raises `StatusFileError` if a page cannot be written.
    """
    names = sorted(modules)
    values = [(name, module_values(root, name, modules[name])) for name in names]
    runs = {name: _runs(root, name) for name in names}
    for tag in LANGUAGES:
        page = status_page(load_words(__package__, tag), values, runs)
        replace_status_file(folder / page_name(tag), page)
    states = [state_of(_ENGLISH, each)[0] for _, each in values]
    replace_status_file(folder / "badge.svg", _badge(states))


def page_name(tag: str) -> str:
    """Return the file name of a language."""
    return "index.html" if tag == ENGLISH else f"index.{tag}.html"


def status_page(
    words: Words, modules: Sequence[Named], runs: Mapping[str, Sequence[RunRecord]]
) -> str:
    """Return the page in one language; `runs` has those of each module, newest first."""
    template = files(__package__).joinpath("status_page.html").read_text(encoding="utf-8")
    translated = _SENTENCE.sub(lambda sentence: escape(words.translate(sentence[1])), template)
    now = time.time()
    newest = sorted(
        ((run, name) for name in runs for run in runs[name][:_RUNS]),
        key=lambda each: -each[0].until,
    )[:_RUNS]
    machine_time = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(now))
    return Template(translated).substitute(
        language=words.tag,
        languages=" ".join(_language(tag, words.tag) for tag in LANGUAGES),
        time=f'<time datetime="{machine_time}">{_moment(now)} UTC</time>',
        version=escape(__version__),
        summary=_summary(words, [state_of(words, values)[0] for _, values in modules]),
        modules="".join(
            _module_row(words, name, values, _days(words, runs.get(name, ()), now))
            for name, values in modules
        ),
        runs="".join(_run_row(words, run, name) for run, name in newest),
    )


def _summary(words: Words, states: Sequence[bool]) -> str:
    """Return a paragraph that says how many modules are in step; `states`: True for each such."""
    count, total = f"{sum(states):,}", f"{len(states):,}"
    text = words.translate("{count} of {all} modules are in step", count=count, all=total)
    return f'<p class="{"good" if all(states) else "bad"}">{escape(text)}</p>'


def _badge(states: Sequence[bool]) -> str:
    """Return a picture for other pages that says how many modules are in step."""
    text = f"{sum(states):,}/{len(states):,} in step"
    left, right = 50, 14 + 7 * len(text)
    colour = "#1f6f5c" if all(states) else "#a3261b"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="mirror: {text}"><title>mirror: {text}</title>'
        f'<rect width="{left}" height="20" fill="#414b4c"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        f'text-anchor="middle"><text x="{left // 2}" y="14">mirror</text>'
        f'<text x="{left + right // 2}" y="14">{text}</text></g></svg>\n'
    )


def _language(tag: str, current: str) -> str:
    """Return a link to the page in another language, or the name of the current one."""
    if tag == current:
        return f'<span lang="{tag}" aria-current="true">{LANGUAGES[tag]}</span>'
    link = f'<a href="{page_name(tag)}" lang="{tag}" hreflang="{tag}" rel="alternate">'
    return f"{link}{LANGUAGES[tag]}</a>"


def _runs(root: Path, name: str) -> list[RunRecord]:
    """Return a module's runs; none if they cannot be read."""
    try:
        return history.read(module_places(root, name).history)
    except HuaiError:  # the module's row shows it
        return []


def _days(words: Words, runs: Sequence[RunRecord], now: float) -> str:
    """Return a bar for each of the last days: red if a run failed, empty if none is recorded."""
    first = int(now) // _DAY_SECONDS - _DAYS + 1
    failures: dict[int, int] = {}
    for run in runs:
        for day in {run.time // _DAY_SECONDS, run.until // _DAY_SECONDS}:
            failures[day] = failures.get(day, 0) + (not run.succeeded)
    failed = escape(words.translate("failed"))
    bars = "".join(
        f'<rect class="{"bad" if failures[day] else "good"}" x="{(day - first) * 4}" width="3"'
        f' height="14"><title>{_moment(day * _DAY_SECONDS)[:10]}: {failures[day]:,} {failed}'
        "</title></rect>"
        for day in range(first, first + _DAYS)
        if day in failures
    )
    label = escape(words.translate("Failed runs by day"))
    svg = f'<svg viewBox="0 0 {_DAYS * 4} 14" role="img" aria-label="{label}">{bars}</svg>'
    return f'<a href="#runs">{svg}</a>'


def _module_row(words: Words, name: str, values: Mapping[str, float], days: str) -> str:
    """Return the row of a module; `values` are `module_values`, `days` is the cell of `_days`."""
    good, state = state_of(words, values)
    texts = [escape(state), days, *_module_cells(values)]
    cells = _cells(words, _MODULE_LABELS, texts, good=good)
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>\n'


def _cells(words: Words, labels: Sequence[str], texts: Sequence[str], *, good: bool) -> str:
    """Return the cells of a row; that of the state or the result is green or red."""
    colour = f' class="{"good" if good else "bad"}"'
    return "".join(
        f'<td data-label="{escape(words.translate(label))}"{colour if label in _COLOURED else ""}>'
        f"<div>{text}</div></td>"
        for label, text in zip(labels, texts, strict=True)
    )


def _module_cells(values: Mapping[str, float]) -> Iterator[str]:
    yield f"{values['serial']:,.0f}" if values["serial"] else _NEVER
    for key in ("commit", "last_success", "last_run", "next_run"):
        yield _moment(values[f"{key}_timestamp_seconds"])
    yield human(values["bytes"]) if values["serial"] else _NEVER


def state_of(words: Words, values: Mapping[str, float]) -> tuple[bool, str]:
    """Return True if all is well, and the state in words; `values` are `module_values`."""
    if values["last_exit_code"]:
        outcome = _outcome(words, int(values["last_exit_code"]))
        return False, words.translate("last run failed ({outcome})", outcome=outcome)
    if values["stale"]:
        return False, words.translate("out of date")
    if not values["last_success_timestamp_seconds"]:
        return False, words.translate("never synced")
    return True, words.translate("in step")


def _run_row(words: Words, run: RunRecord, name: str) -> str:
    """Return the row of a run of the module `name`."""
    failed = _outcome(words, run.code) if run.ended else words.translate("interrupted")
    outcome = "OK" if run.succeeded else failed
    if run.times > 1:
        times = f"{run.times:,}"
        outcome = words.translate("{outcome} ({times} times)", outcome=outcome, times=times)
    kind = escape(words.translate(run.kind))
    texts = (_moment(run.time), escape(name), kind, escape(outcome))
    numbers = (f"{run.serial:,}", f"{run.fetched:,}", human(run.received))
    return f"<tr>{_cells(words, _RUN_LABELS, (*texts, *numbers), good=run.succeeded)}</tr>\n"


def _outcome(words: Words, code: int) -> str:
    """Return the meaning of an exit code, without the details of the error."""
    meanings = {each.value: each.meaning for each in ExitCode}
    return f"{code}: {words.translate(meanings[code])}" if code in meanings else str(code)


def _moment(seconds: float) -> str:
    """Return a time of UTC, or a dash if there was none."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds)) if seconds else _NEVER
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return _NEVER


_ENGLISH = Words(ENGLISH, {})
HEADER = ("STATE", "MODULE", "SERIAL", "COMMITTED AGO", "LAST RUN AGO", "SIZE")
"""The columns, the most important first, because a narrow terminal cuts off the last."""


def status_table(root: Path, names: Sequence[str]) -> Table:
    """Return a row for each of the modules `names`, or all of client.toml; asks no upstream.

    Raises `UnknownModuleError`, or `ConfigError` if client.toml cannot be read.
    """
    config = load(root)
    chosen = names or sorted(config.modules)
    rows: list[Row] = []
    for name in chosen:
        places = module_places(root, name)
        processes = holder(places.verifying), holder(places.lock)
        rows.append(status_row(name, module_values(root, name, config.module(name)), processes))
    return Table(HEADER, rows)


def status_row(
    name: str, values: Mapping[str, float], processes: tuple[int | None, int | None]
) -> Row:
    """Return the row of a module; `processes`: ids of those that verify and sync it, or None."""
    good, state = state_of(_ENGLISH, values)
    if since := values["last_success_timestamp_seconds"]:
        # Only a sync finds out what the upstream has now.
        as_of = f"as of {ago(since)} ago"
        state = f"{state} {as_of}" if good else f"{state}; in step {as_of}"
    for process, work in zip(processes, ("being verified", "running"), strict=True):
        if process:
            state = f"{work} (process {process}); {state}"
    moments = ("commit", "last_run")
    cells = (
        state,
        name,
        f"{values['serial']:,.0f}" if values["serial"] else "-",
        *(ago(values[f"{each}_timestamp_seconds"]) for each in moments),
        human(values["bytes"]) if values["serial"] else "-",
    )
    return Row(cells, needs_attention=not good)
