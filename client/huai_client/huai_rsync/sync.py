"""The execution of a request as a sync of huai.

Raises `RsyncNeededError` if the real rsync has to run, for example if the upstream's metadata
cannot be fetched; with `HUAI_RSYNC_FALLBACK=no` that is an error.
"""

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from huai_client.cli.run_report import ConsoleReport
from huai_client.config.hooks import NO_HOOKS
from huai_client.config.load import Module, load
from huai_client.config.mirror import Mirror
from huai_client.huai_rsync import exec_rsync as handover
from huai_client.huai_rsync.cache import Memory, entries_of, recall, remember, remembered
from huai_client.huai_rsync.console import RsyncConsole
from huai_client.huai_rsync.eligibility import (
    check_in_part,
    check_numbers,
    check_owners,
    is_content,
    known_urls,
    modes_of,
    module_at,
    why_not,
)
from huai_client.huai_rsync.environment import COMPARE, COMPARE_USUAL, ENDINGS, FALLBACK
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_client.huai_rsync.filters import as_filter, rules, undeletable
from huai_client.huai_rsync.log import RsyncLog
from huai_client.huai_rsync.request import RsyncRequest
from huai_client.run.ages import why_too_old
from huai_client.run.options import SyncOptions
from huai_client.state import handovers
from huai_client.state import state as states
from huai_client.state.paths import ModulePlaces, module_places
from huai_client.sync.run import Run
from huai_program import durations
from huai_program.configuration import ConfigError
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.filters import Rule, Rules
    from huai_client.plan.prepared import PreparedPlan


def sync(request: RsyncRequest, root: Path) -> ExitCode:
    """Sync the module at the destination; one that is not configured is discovered and added.

    Raises `RsyncNeededError` if the real rsync has to run, and another `HuaiError` if it would not
    help or must not run.
    """
    try:
        check_owners(request)
        target = _target(request, root)
        if target.is_new:
            return _first(target)
        return target.sync()
    except HuaiError as error:
        if ENDINGS[error.exit_code].falls_back and os.environ.get(FALLBACK) != "no":
            raise RsyncNeededError(error.message) from error
        raise


def _first(target: "_Target") -> ExitCode:
    """Run the first sync of a discovered module.

    Raises `RsyncNeededError` if it fails before the module is in client.toml.  A module that is not
    in client.toml after that leaves no files.
    """
    try:
        return target.sync()
    except HuaiError as error:
        if target.is_known():
            raise
        raise RsyncNeededError(error.message) from error
    finally:
        if not target.is_known():
            shutil.rmtree(target.places.folder, ignore_errors=True)


def _target(request: RsyncRequest, root: Path) -> "_Target":
    """Return the destination's module, configured or discovered; or raise `RsyncNeededError`.

    Without a module, it needs an existing tree and `--delete`.
    """
    config = load(root)
    configured = module_at(config, request.dest)
    if configured is not None:
        return _Target(request, root, *configured)
    if not request.delete:
        raise RsyncNeededError("no module has this destination")
    call_rules = rules(request, Path())
    from huai_client.huai_rsync.discovery import discover

    name, module = discover(request, root, config)
    module = replace(module, filter=as_filter(call_rules))
    return _Target(request, root, name, module, is_new=True)


@dataclass(frozen=True, slots=True)
class _Target:
    """A request, and the module at its destination."""

    request: RsyncRequest
    root: Path
    name: str
    module: Module
    is_new: bool = False
    """True if the module was not in client.toml before."""

    @property
    def places(self) -> ModulePlaces:
        return module_places(self.root, self.name)

    def sync(self) -> ExitCode:
        """Carry out the request, print as rsync does, and record it; return the exit code.

        Raises `RsyncNeededError` if the real rsync has to run.
        """
        request, module = self.request, self.module
        state = states.load(self.places.state)
        urls = known_urls(module, self.places, state)
        if urls is not None:
            self._check_source(urls)
        handover.mark()
        console = RsyncConsole(
            quiet=True,
            as_json=False,
            style=request.style,
            dry_run=request.dry_run,
            file=RsyncLog.opened(request.style.log) if request.style.log else None,
        )
        call_rules = rules(request, Path(), module.protect)
        reason = why_not(request, call_rules, module, self.root)
        if reason:
            raise RsyncNeededError(reason)
        if not request.delete:
            check_in_part(state)
        began = int(time.time())
        options = self._options(call_rules, began)
        code = self._run(console, options)
        console.concluded(code)
        if not request.dry_run:
            handovers.clear(self.places.handovers)
        applied = states.load(self.places.state)
        if not applied.held:
            self._check_age(applied.committed)
        memory = recall(self.places, applied.applied)
        if memory and options.compare and code == ExitCode.OK:
            memory = msgspec.structs.replace(memory, compared=began)
            remember(self.places, memory)
        console.close(memory.kinds if memory else None)
        return code

    def is_known(self) -> bool:
        """Return True if client.toml has the module by now."""
        return self.name in load(self.root).modules

    def _options(self, call_rules: "tuple[Rule, ...]", now: int) -> SyncOptions:
        """Return the options of a sync; the whole tree is compared if that is due at `now`.

        `now` is in seconds since the epoch.  Raises `ConfigError` for a malformed `COMPARE`.
        """
        request = self.request
        return SyncOptions(
            max_delete=request.max_delete,
            compare=request.delete and not request.dry_run and self._is_comparison_due(now),
            delete_extraneous=request.delete,
            undeletable=undeletable(call_rules),
            only=None if request.delete else _as_rules(call_rules),
        )

    def _is_comparison_due(self, now: int) -> bool:
        """Return True if the last whole comparison is older than the variable `COMPARE` allows.

        True without one as well.  Raises `ConfigError` if the variable is malformed.
        """
        span = os.environ.get(COMPARE) or COMPARE_USUAL
        try:
            seconds = durations.parse(span)
        except ValueError as error:
            raise ConfigError(f"{COMPARE}: {error}") from None
        memory = remembered(self.places)
        return memory is None or memory.compared + seconds <= now

    def _run(self, console: RsyncConsole, options: SyncOptions) -> ExitCode:
        """Sync the module by the rsync command line, without its hooks; or only plan."""
        request, module = self.request, self.module
        changed = replace(
            module,
            content_urls=(str(request.source),),
            owners=request.owners,
            modes=modes_of(request),
            safe_links=request.safe_links,
            bwlimit=module.bwlimit if request.bwlimit is None else request.bwlimit,
            timeout=request.timeout or module.timeout,
            rsync_options=(*module.rsync_options, *request.rsync_options),
            hooks=NO_HOOKS,  # the caller of rsync has its own
        )
        mirror = Mirror.of(self.root, self.name, changed)
        report = ConsoleReport(mirror, console)
        run = Run(mirror, report, self._approve)
        if request.dry_run:
            return report.plan(run.plan(options, wait=0), every=False)
        return run.sync(options, wait=0)

    def _approve(self, prepared: "PreparedPlan") -> None:
        """Check a plan, add a new module to client.toml with a message, and cache values.

        Raises `RsyncNeededError` if the real rsync has to run.
        """
        commit = prepared.commit
        urls = commit.descriptor.content_urls
        own = tuple(each.url for each in self.module.ranked_urls)
        self._check_source(own or urls)
        self._check_age(commit.time)
        check_numbers(self.request, prepared.plan)
        if self.is_new and not self.request.dry_run:
            from huai_client.config.load import add_module, config_path

            add_module(self.root, self.name, self.module)
            # Printed once, also with --quiet: from now on the metadata decide what is deleted.
            sys.stderr.write(
                f"huai-rsync: {self.name}: {self.request.source} announces its metadata at "
                f"{self.module.urls[0]}; written into {config_path(self.root)}\n"
            )
        entries = entries_of(prepared, self.places, count=self.request.style.stats)
        before = remembered(self.places)
        compared = before.compared if before else 0
        remember(self.places, Memory(commit.id, urls, entries, compared))

    def _check_source(self, urls: tuple[str, ...]) -> None:
        """Raise `RsyncNeededError` if the source is not in `urls`; record that for a new module."""
        if is_content(self.request.source, urls):
            return
        if self.is_new:
            from huai_client.huai_rsync.discovery import record_refusal

            record_refusal(self.request, self.root)
        listed = ", ".join(urls) or "none"
        raise RsyncNeededError(
            f"{self.request.source} is not one of the module's content URLs ({listed})"
        )

    def _check_age(self, committed: int) -> None:
        """Raise `RsyncNeededError` for a commit older than `max_age`: rsync gets newer content."""
        reason = why_too_old(committed, self.module.max_age, time.time())
        if reason:
            raise RsyncNeededError(reason)


def _as_rules(call_rules: "tuple[Rule, ...]") -> "Rules":
    from huai_client.filters import Rules  # not needed by a poll that deletes

    return Rules(call_rules)
