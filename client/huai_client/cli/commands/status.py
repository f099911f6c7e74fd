"""`huai-client status`: show the state of the trees."""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from huai_client.cli.options import modules_argument
from huai_client.cli.status_files import write_status_files
from huai_client.config.load import Module, StatusFiles, load, no_modules
from huai_client.config.settings_record import TreeSettings
from huai_client.inspect.prometheus import state_values
from huai_client.metadata.http import MetadataUrl
from huai_client.run.ages import clock_warning, why_out_of_date
from huai_client.state import delayed_record, handovers
from huai_client.state import state as states
from huai_client.state.hosts import Hosts
from huai_client.state.last_run import interruption
from huai_client.state.last_run import load as load_last
from huai_client.state.paths import ModulePlaces, module_places
from huai_client.verify.summary import VerifySummary, VerifyTimes, read_account
from huai_program.cli.options import json_option
from huai_program.ending import print_json
from huai_program.humanize import counted, moment
from huai_program.locking import holder
from huai_program.output import end_with_reader
from huai_schema.errors import ExitCode
from huai_schema.paths import path_as_text, show


@click.command()
@modules_argument
@click.option(
    "--parts", is_flag=True, help="Also show when each top-level directory was last verified."
)
@click.option(
    "--prometheus",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the state of all modules to FILE, for node_exporter, and print nothing.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write DIR/index.html, a status page of all modules for a web server, and "
    "DIR/index.zh.html, the same in Chinese, and print nothing.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Show a live table on the terminal, refreshed every two seconds, until q is pressed.",
)
@json_option
@click.pass_obj
def command(
    root: Path,
    names: tuple[str, ...],
    parts: bool,
    prometheus: Path | None,
    html: Path | None,
    watch: bool,
    as_json: bool,
) -> int:
    """Show the state of the modules NAME, or of all, and which upstreams fail.

    On a terminal it is a table, with the details of the modules NAME, or of those with a problem.
    Ends with exit code 54 if a module's commit is older than its max_age or its signature expired,
    and with 40 if client.toml has no module. Failed runs are reported, and do not change the exit
    code.
    """
    end_with_reader()
    config = load(root)
    if not config.modules:
        raise no_modules(root)
    if prometheus or html:
        status_files = StatusFiles(str(prometheus or ""), str(html or ""))
        for error in write_status_files(status_files, root, config).values():
            raise error
        return ExitCode.OK
    if watch:
        if parts or as_json:
            raise click.UsageError("--watch goes with neither --parts nor --json")
        from huai_client.inspect.status_page import status_table
        from huai_program.live_view import show_live

        show_live(f"huai-client: {root}", partial(status_table, root, names))
        return ExitCode.OK
    chosen = names or tuple(sorted(config.modules))
    shows_table = not as_json and sys.stdout.isatty()
    modules: Iterator[_ModuleStatus] = (
        _ModuleStatus(name, config.module(name), module_places(root, name)) for name in chosen
    )
    if shows_table:
        from huai_client.inspect.status_page import HEADER, status_row  # pipes start without it
        from huai_program.live_view import Table, print_table

        every = list(modules)
        rows = [status_row(each.name, each.metrics(), each.processes) for each in every]
        print_table(Table(HEADER, rows))
        modules = iter(every)
    brief = shows_table and not names
    code = _show_modules(modules, parts=parts, as_json=as_json, brief=brief)
    _show_failing(root, as_json=as_json)
    return code


def _show_modules(
    modules: "Iterator[_ModuleStatus]",
    *,
    parts: bool,
    as_json: bool,
    brief: bool,
) -> ExitCode:
    """Print the state of modules; returns `STALE` if one is out of date, else `OK`.

    `parts`: of each top-level directory too; `brief`: for people only modules with a problem.
    """
    code = ExitCode.OK
    for status in modules:
        name = status.name
        if status.stale:
            code = ExitCode.STALE
        if as_json:
            print_json("module", **status.values())
        elif status.has_problem or not brief:
            click.echo(f"{name}: {status.module.dest}: {', '.join(status.remarks())}")
        for top in status.tops if parts else ():
            if as_json:
                print_json("part", module=name, path=path_as_text(top.path), **top.values())
            else:
                click.echo(f"  {show(top.path)}: {', '.join(_verified_remarks(top))}")
    return code


def _show_failing(root: Path, *, as_json: bool) -> None:
    """Print the upstreams that failed lately."""
    for failing in Hosts(root).health.failing():
        if as_json:
            print_json("failing", **failing._asdict())
        else:
            since, until = moment(failing.since), moment(failing.until)
            click.echo(
                f"upstream {failing.service}: fails since {since}, tried last until {until}: "
                f"{failing.reason}"
            )


class _ModuleStatus:
    """The state of one module, read from its files alone."""

    def __init__(self, name: str, module: Module, places: ModulePlaces) -> None:
        self.name = name
        self.module = module
        self._places = places
        self._state = states.load(places.state)
        self.last = load_last(places.last)
        self._running = holder(places.lock)
        self._verifying = holder(places.verifying)
        self._handovers = handovers.load(places.handovers)
        self._half_changed = len([*places.patches.glob("*[0-9a-f]")])
        self._list_problem = ""
        if module.ranked_urls:  # as every upstream has that is listed
            from huai_client.metadata.source.record import list_problem

            self._list_problem = list_problem(places.repository)
        self._delayed = delayed_record.head(places.delayed).paths
        account = read_account(places.verified)
        self._verified = account.total if account else None
        self.tops = account.tops if account else []
        # A sync was interrupted right before its end; the next `verify` finds out.
        self._verified_earlier = account is not None and account.applied != self._state.applied
        now = time.time()
        first_seen = self._state.seen or self._state.time
        self.stale = why_out_of_date(
            module, now, self._state.committed, first_seen, self._state.valid_until
        )
        self._clock_warning = clock_warning(self._state.committed, now)

    @property
    def processes(self) -> tuple[int | None, int | None]:
        """The ids of the processes that verify and sync the module, or None."""
        return self._verifying, self._running

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the module."""
        return state_values(self.module, self._places, self._state, self.last)

    def values(self) -> dict[str, object]:
        """Return the values for JSON; times are seconds since the epoch."""
        state, last = self._state, self.last
        return {
            "module": self.name,
            "dest": self.module.dest,
            "url": str(MetadataUrl(self.module.urls[0])),
            "applied": state.applied,
            "serial": state.applied_serial or None,
            "attempted": list(state.attempted),
            "time": state.time or None,
            "committed": state.committed or None,
            "stale": bool(self.stale),
            "running": self._running,
            "verifying": self._verifying,
            "delayed": self._delayed,
            "verified": self._verified
            and {**self._verified.values(), "current": not self._verified_earlier},
            "filter": TreeSettings.parse(state.filter).rules.splitlines(),
            "modes": str(TreeSettings.parse(state.filter).modes) if state.applied else None,
            "last_check": (last.in_step or None) if last else None,
            "last_ended": last.ended if last else None,
            "last_code": last.code if last else None,
            "last_reason": last.reason if last else None,
            "failing_since": (last.failing or None) if last else None,
            "list_problem": self._list_problem or None,
            "held": state.held or None,
            "before": state.before or None,
            "trash_since": state.trash or None,
        }

    @property
    def has_problem(self) -> bool:
        """True if a remark is about a problem, or something that a person has to end."""
        problems = (
            self.stale,
            self._clock_warning,
            self._list_problem,
            self._state.held,
            self._half_changed,
            self._handovers,
        )
        is_damaged = self._verified is not None and self._verified.damaged > 0
        return is_damaged or not (self.last is None or self.last.succeeded) or any(problems)

    def remarks(self) -> Iterator[str]:
        """Yield remarks for people, the most important first."""
        if self._state.applied is None:
            yield "never synced to its end"
        else:
            yield f"serial {self._state.serial}, synced {moment(self._state.time)}"
        yield from self._last_run()
        if self._handovers:
            yield str(self._handovers)
        if self._half_changed and not self._running:
            files = counted(self._half_changed, "file is", "files are")
            yield f"{files} half changed in place, which the next sync finishes"
        if self._state.held:
            yield states.HELD
        if self.stale:
            yield self.stale
        if self._clock_warning:
            yield self._clock_warning
        if self._list_problem:
            yield self._list_problem
        yield from self._activity()
        yield from self._filter()
        yield from self._verification()

    def _last_run(self) -> Iterator[str]:
        """Yield lines that say when the last run was in step, and since when runs fail."""
        last = self.last
        if last is None:
            return
        if last.in_step:
            yield f"last in step {moment(last.in_step)}"
        if not last.succeeded:
            yield f"failing since {moment(last.failing)} (exit code {last.code}: {last.reason})"

    def _activity(self) -> Iterator[str]:
        """Yield lines about an interrupted run, the running ones, and delayed deletions."""
        if self._state.attempted:
            yield interruption(self._places.history, self.last)
        if self._running:
            yield f"running (process {self._running})"
        if self._verifying:
            yield f"being verified (process {self._verifying})"
        if self._delayed:
            yield counted(self._delayed, "delayed deletion", "delayed deletions")

    def _filter(self) -> Iterator[str]:
        """Yield a line that says how many filter rules are applied, or will be."""
        if rules := TreeSettings.parse(self._state.filter).rules.count("\n"):
            yield f"a part of it by a filter of {counted(rules, 'rule')}"
        if self.module.filter and not rules:
            yield "its filter is applied by the next sync"

    def _verification(self) -> Iterator[str]:
        """Yield what `verify` has compared so far, or that it never ran."""
        if self._verified:
            yield from _verified_remarks(self._verified)
        elif self._state.applied is not None:
            yield "never verified"
        if self._verified_earlier:
            yield "what was verified was an earlier commit"


def _verified_remarks(summary: VerifySummary) -> Iterator[str]:
    yield _times_text("compared", summary.metadata, summary.parts)
    yield _times_text("read", summary.content, summary.parts)
    if summary.damaged:
        yield f"{counted(summary.damaged, 'path')} differed"


def _times_text(verb: str, times: VerifyTimes, parts: int) -> str:
    """Return when the parts were compared or read, and the share of those that were not."""
    if times.changed == parts:
        return f"not {verb} since it changed"
    if times.never == parts:
        return f"never {verb}"
    texts: list[str] = []
    if times.oldest:
        texts.append(f"{moment(times.oldest)} to {moment(times.newest)}")
    if times.changed:
        texts.append(f"{_share(times.changed, parts)} not since it changed")
    if times.never:
        texts.append(f"{_share(times.never, parts)} never")
    return f"{verb} {' and '.join(texts)}"


def _share(count: int, parts: int) -> str:
    """Return a share in percent that is never rounded to none or all."""
    return f"{min(99, max(1, round(100 * count / parts)))}%"
