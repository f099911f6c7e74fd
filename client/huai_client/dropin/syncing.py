"""One call of rsync as a sync of huai.

Raises `RealRsyncError` where the real rsync has to run, above all if the upstream's metadata
cannot be had; `HUAI_RSYNC_FALLBACK=no` makes that an error.
"""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from huai_client import state as states
from huai_client.age import too_old
from huai_client.config import Module, load
from huai_client.dropin import handover
from huai_client.dropin.call import Call
from huai_client.dropin.choice import check_in_part, check_modes, check_owners, unfit
from huai_client.dropin.codes import ENDINGS
from huai_client.dropin.filtering import as_filter, rules
from huai_client.dropin.handover import RealRsyncError
from huai_client.dropin.log import RsyncLog
from huai_client.dropin.memory import Memory, recall, remember
from huai_client.dropin.modules import at, is_content, known_urls
from huai_client.dropin.reporting import RsyncTalk
from huai_client.options import SyncOptions
from huai_client.places import ModulePlaces, module_places
from huai_client.run import Run
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.filters import Rule, Rules
    from huai_client.results import Prepared

_FALLBACK = "HUAI_RSYNC_FALLBACK"


def sync(call: Call, root: Path) -> ExitCode:
    """Carry out `call`, or raise `RealRsyncError`."""
    try:
        check_owners(call)
        target = _target(call, root)
        if target.is_new:
            return _first(target)
        return target.sync()
    except HuaiError as error:
        if ENDINGS[error.exit_code].falls_back and os.environ.get(_FALLBACK) != "no":
            raise RealRsyncError(error.message) from error
        raise


def _first(target: "_Target") -> ExitCode:
    """The first sync of a module that was found: as long as it has not begun, rsync is as good."""
    try:
        return target.sync()
    except HuaiError as error:
        if target.is_known():
            raise
        raise RealRsyncError(error.message) from error
    finally:
        if not target.is_known():
            shutil.rmtree(target.places.folder, ignore_errors=True)


def _target(call: Call, root: Path) -> "_Target":
    """The module that `call` is about."""
    config = load(root)
    found = at(config, call.dest)
    if found is not None:
        return _Target(call, root, *found)
    call_rules = rules(call, Path.cwd())
    if not call.delete or call_rules is None:
        raise RealRsyncError("no module has this destination")
    from huai_client.dropin.discovery import discover

    name, module = discover(call, root, config)
    module = replace(module, filter=as_filter(call_rules))
    return _Target(call, root, name, module, is_new=True)


@dataclass(frozen=True, slots=True)
class _Target:
    """A call, and the module that it is about."""

    call: Call
    root: Path
    name: str
    module: Module
    is_new: bool = False
    """It did not stand in client.toml when the call came."""

    @property
    def places(self) -> ModulePlaces:
        return module_places(self.root, self.name)

    def sync(self) -> ExitCode:
        """Do what is asked for, and talk like rsync."""
        call, module = self.call, self.module
        state = states.load(self.places.state)
        urls = known_urls(module, self.places, state)
        if urls is not None:
            self._check_source(urls)
        handover.mark()
        talk = RsyncTalk(
            quiet=True,
            as_json=False,
            manner=call.manner,
            dry_run=call.dry_run,
            checked=self._check,
            file=RsyncLog.opened(call.manner.log) if call.manner.log else None,
        )
        call_rules = rules(call, Path.cwd(), module.protect)
        reason = unfit(call, call_rules, module, self.root)
        if reason or call_rules is None:
            raise RealRsyncError(reason)
        if not call.delete:
            check_in_part(state)
        code = self._run(talk, call_rules)
        talk.concluded(code)
        applied = states.load(self.places.state)
        if not applied.held:
            self._check_age(applied.committed)
        memory = recall(self.places, applied.applied)
        talk.close(memory.kinds if memory and not module.filter else None)
        return code

    def is_known(self) -> bool:
        """Whether the module stands in client.toml by now."""
        return self.name in load(self.root).modules

    def _run(self, talk: RsyncTalk, call_rules: "tuple[Rule, ...]") -> ExitCode:
        call, module = self.call, self.module
        changed = replace(
            module,
            content_urls=(str(call.source),),
            owners=call.owners,
            safe_links=call.safe_links,
            bwlimit=module.bwlimit if call.bwlimit is None else call.bwlimit,
            timeout=call.timeout or module.timeout,
            rsync_options=(*module.rsync_options, *call.rsync_options),
        )
        options = SyncOptions(
            max_delete=call.max_delete,
            # What a rule of rsync's leaves out is protected here as well.
            delete_strangers=call.delete and (call.delete_excluded or not call_rules),
            only=None if call.delete else _as_rules(call_rules),
        )
        run = Run(self.root, self.name, changed, talk)
        return run.plan(options, wait=0) if call.dry_run else run.sync(options, wait=0)

    def _check(self, prepared: "Prepared") -> None:
        """Look at what the upstream says of itself, before anything is touched."""
        commit = prepared.commit
        urls = commit.descriptor.content_urls
        self._check_source(self.module.content_urls or urls)
        self._check_age(commit.time)
        check_modes(self.call, prepared.plan)
        if self.is_new and not self.call.dry_run:
            from huai_client.config import add_module

            add_module(self.root, self.name, self.module)
        totals = commit.info.totals
        entries = (totals.files, totals.directories, totals.symlinks)
        remember(self.places, Memory(commit.id, urls, entries))

    def _check_source(self, urls: tuple[str, ...]) -> None:
        if is_content(self.call.source, urls):
            return
        if self.is_new:
            from huai_client.dropin.discovery import refuse

            refuse(self.call, self.root)
        raise RealRsyncError(f"{self.call.source} is none of its content URLs")

    def _check_age(self, committed: int) -> None:
        """A commit that is older than it may be knows less of the content than rsync."""
        reason = too_old(committed, self.module.max_age, time.time())
        if reason:
            raise RealRsyncError(reason)


def _as_rules(call_rules: "tuple[Rule, ...]") -> "Rules":
    from huai_client.filters import Rules  # a poll that deletes does without

    return Rules(call_rules)
