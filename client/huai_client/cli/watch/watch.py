"""Watches upstreams for new commits, and syncs their modules, some at a time.

Each sync is `huai-client sync` in its own process: a crash affects nothing else, its memory is
freed, and the next one runs a new version of huai.  Each listener is a process, too.  This one only
waits for them, and has one thread.

Rules:

- A module has one sync at a time; a commit that is announced meanwhile is synced afterwards, if it
  is not here by then.
- A commit that is announced and not served yet, as by a CDN, is requested again after the pauses
  of a failure.
- A wrong configuration at a reload changes nothing.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Never

from msgspec.structs import replace

from huai_client.cli.console import Console
from huai_client.cli.parallel.children import Children, forget_handlers
from huai_client.cli.parallel.run_all import Lines, exit_meaning, name_of
from huai_client.cli.watch.listener import WatchedUpstream, group_by_upstream, listen_alone
from huai_client.cli.watch.schedule import Rhythm, SyncSchedule
from huai_client.config.load import ClientConfig, load, no_modules
from huai_client.config.mirror import Mirror
from huai_client.state import state as states
from huai_client.state.paths import module_places
from huai_program.durations import seconds
from huai_program.humanize import counted
from huai_program.service_manager import notify, watchdog_seconds
from huai_schema.errors import ExitCode, HuaiError

_LONGEST_WAIT = 60.0
_LISTENER_PAUSE = 30.0
"""The longest pause in seconds before a crashed listener is restarted."""
_LASTING = 60.0
"""Seconds after which a listener counts as stable."""
_SLOW_POLL = 3600.0
"""Seconds after which a module is synced without an event; less if `max_age` is."""
_LEAST_SLOW_POLL = 60.0


class Watch:
    """A watcher that syncs modules when an upstream announces a commit, or a poll is due."""

    def __init__(self, root: Path, names: Sequence[str], console: Console) -> None:
        """Watch the modules `names`; if empty, all of the present client.toml."""
        self._root = root
        self._names = names
        self._console = console
        self._children = Children()
        self._schedule = SyncSchedule(random.uniform)
        self._config = ClientConfig()
        self._sources: dict[str, WatchedUpstream] = {}
        self._again: dict[str, float] = {}
        """The time of the restart of each listener that has ended."""
        self._crashes: dict[str, int] = {}
        """The crashes of each listener in a row."""
        self._newest: dict[str, tuple[str, int]] = {}
        """The last announced commit of each module, and its serial."""
        self._waiting: dict[str, str] = {}
        """The last announced commit of modules that were not synced since."""
        self._reload = self._stopping = False
        self._status = ""

    def run(self) -> Never:
        """Watch until a signal ends the program; then end the running syncs, and wait for them.

        Raises `ConfigError` for a wrong client.toml, or one without modules, `UnknownModuleError`
        if it lacks one of the names.
        """
        self._configure(load(self._root))
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        # It reloads, as with nginx and sshd: a nohup that has it ignored does not count.
        signal.signal(signal.SIGHUP, self._hang_up)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        watchdog = watchdog_seconds()
        try:
            with self._children:
                self._children.wake_by(reader)
                notify("READY=1")
                try:
                    while True:
                        self._turn(watchdog)
                finally:
                    self._stopping = True
                    notify("STOPPING=1", "STATUS=waiting for syncs to end")
        finally:
            signal.set_wakeup_fd(-1)

    def _turn(self, watchdog: float | None) -> None:
        """Start what is due, notify the service manager, and wait for children or the next turn.

        Reads the configuration first after a signal.  `watchdog`: seconds between two
        notifications, at most; None without one.
        """
        if self._reload:
            self._reload = False
            self._reload_config()
        now = time.monotonic()
        self._start_listeners(now)
        for name in self._schedule.due(now):
            if self._syncing < self._config.watch.parallel:
                self._start_sync(name)
        self._update_status()
        if watchdog is not None:
            notify("WATCHDOG=1")
        waits = [_LONGEST_WAIT, watchdog or _LONGEST_WAIT]
        waits += [moment - now for moment in self._again.values()]
        if self._syncing < self._config.watch.parallel:
            waits.append(self._schedule.next_due() - now)
        self._children.poll(max(0.0, min(waits)))

    @property
    def _syncing(self) -> int:
        """The number of syncs in progress: the children that are not listeners."""
        return len(self._children) - sum(key in self._children for key in self._sources)

    # -- the configuration

    def _hang_up(self, _number: int, _frame: object) -> None:
        self._reload = True

    def _reload_config(self) -> None:
        """Read client.toml again; report an error and keep the modules if it is wrong."""
        notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            self._configure(load(self._root))
        except HuaiError as error:
            self._console.error(f"the modules stay unchanged: {error.message}\n  {error.hint}")
        notify("READY=1")

    def _configure(self, config: ClientConfig) -> None:
        """Schedule the modules of `config`; end listeners that are not needed, plan new ones.

        Raises `ConfigError` without any module, `UnknownModuleError` if one of `names` is missing.
        """
        names = tuple(dict.fromkeys(self._names)) or tuple(sorted(config.modules))
        if not names:
            raise no_modules(self._root)
        mirrors = [Mirror.of(self._root, name, config.module(name)) for name in names]
        self._config = config
        rhythms = {mirror.name: _rhythm(config, mirror) for mirror in mirrors}
        self._schedule.set_modules(rhythms, time.monotonic())
        by_key = {source.key: source for source in group_by_upstream(mirrors)}
        for key in self._sources.keys() - by_key.keys():
            self._again.pop(key, None)
            self._crashes.pop(key, None)
            if key in self._children:
                self._children.end(key)
        for key in by_key.keys() - self._sources.keys():
            self._again[key] = 0.0
        self._sources = by_key
        self._console.event("watching", modules=list(names))
        self._console.info(f"watching {counted(len(names), 'module')}: {', '.join(names)}")

    # -- events

    def _start_listeners(self, now: float) -> None:
        """Start the listeners that are due, each in a child process."""
        for key in [key for key, moment in self._again.items() if moment <= now]:
            if key in self._children:  # still ending, and configured again
                continue
            del self._again[key]
            source = self._sources[key]
            lines = _JsonLines(partial(self._handle_event, source))
            errors = Lines("watch", sys.stderr.buffer, as_json=False)
            self._children.start(
                key,
                partial(listen_alone, source),
                (lines.feed, errors.feed),
                partial(self._listener_ended, key),
            )

    def _handle_event(self, source: WatchedUpstream, line: dict[str, Any]) -> None:
        """Record that a listener is connected or not, or schedule an announced commit.

        Events of an upstream that is no longer watched are ignored.
        """
        if source.key not in self._sources:
            return
        now = time.monotonic()
        names = [name for _, name in source.modules]
        if "up" in line:
            self._schedule.set_events(names, now, has_events=True)
            self._console.event("subscribed", url=line["up"], modules=names)
            self._console.info(f"{line['up']}: announces commits of {', '.join(names)}")
        elif "down" in line:
            self._schedule.set_events(names, now, has_events=False)
            self._console.event(
                "unsubscribed", url=line["down"], modules=names, message=line["reason"]
            )
            self._console.info(f"{line['reason']}; {', '.join(names)}: polled meanwhile")
        else:
            for name in (own for theirs, own in source.modules if theirs == line["module"]):
                self._announce(name, line, now)

    def _announce(self, name: str, line: dict[str, Any], now: float) -> None:
        """Schedule a sync for the commit in `line`, an event, unless it is applied.

        During a sync of the module it is only noted.
        """
        state = self._state(name)
        if state and state.applied == line["commit"]:
            return
        announced = line["commit"], line["serial"]
        newer = self._newest.get(name) != announced
        self._waiting[name], self._newest[name] = line["commit"], announced
        self._console.event(
            "told", module=name, serial=line["serial"], commit=line["commit"], time=line["time"]
        )
        if name not in self._children:
            self._schedule.announce(name, now, newer=newer)

    def _listener_ended(self, key: str, code: int, took: float) -> None:
        """Schedule the restart of a listener that ended, and poll its modules meanwhile.

        It ended with `code`, after `took` seconds; one that is not needed any more is forgotten.
        """
        source = self._sources.get(key)
        if source is None or key in self._again or self._stopping:
            return
        now = time.monotonic()
        self._schedule.set_events([name for _, name in source.modules], now, has_events=False)
        crashes = 0 if took > _LASTING else self._crashes.get(key, 0)
        self._crashes[key] = crashes + 1
        self._again[key] = now + listener_pause(crashes)
        urls = " and ".join(map(str, source.urls))
        self._console.error(f"the listener for {urls} ended ({code}); it is restarted")

    # -- syncs

    def _start_sync(self, name: str) -> None:
        """Run `sync NAME` in a child process."""
        self._waiting.pop(name, None)
        self._schedule.began(name)
        as_json = self._console.as_json
        options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]  # up to its arguments
        command = [sys.executable, *options, "--root", str(self._root), "sync", "--quiet"]
        command += ["--json"] * as_json + ["--", name]

        def execute() -> int:
            forget_handlers()
            os.execv(command[0], command)  # noqa: S606 - it is this program

        handlers = (
            Lines(name, sys.stdout.buffer, as_json=as_json).feed,
            Lines(name, sys.stderr.buffer, as_json=False).feed,
        )
        self._children.start(name, execute, handlers, partial(self._sync_ended, name))

    def _sync_ended(self, name: str, code: int, took: float) -> None:
        """Report the end of a sync, with `code` after `took` seconds.

        Schedules a retry, the next poll, or the commit announced meanwhile.
        """
        now = time.monotonic()
        console = replace(self._console, module=name)
        failed, locked = code != ExitCode.OK, code == ExitCode.LOCKED
        state, waiting = self._state(name), self._waiting.get(name)
        _, serial = self._newest.get(name, ("", 0))
        early = not waiting and state is not None and not state.held and state.serial < serial
        rest = self._schedule.ended(name, now, failed=failed or early, locked=locked)
        console.event("ended", code=code, name=name_of(code), milliseconds=round(1000 * took))
        if failed and not self._stopping:
            console.error(f"{name}: {exit_meaning(code)}; tried again in {rest:.0f} s")
        elif early:
            console.info(f"{name}: serial {serial} is not served yet; tried again in {rest:.0f} s")
        elif not failed:
            console.info(f"{name}: in step after {took:.1f} s")
        if waiting is not None and not (state and state.applied == waiting):
            self._schedule.announce(name, now)

    def _state(self, name: str) -> states.State | None:
        """Return the state of a module; None if it is unreadable."""
        try:
            return states.load(module_places(self._root, name).state)
        except HuaiError:
            return None  # the sync reports the error

    def _update_status(self) -> None:
        """Send systemd the status, if it changed."""
        polled = f", {self._schedule.polled} polled" if self._schedule.polled else ""
        watching = f"watching {counted(self._schedule.size, 'module')}"
        status = f"{watching}{polled}, {self._syncing} syncing"
        if status != self._status:
            self._status = status
            notify(f"STATUS={status}")


class _JsonLines:
    def __init__(self, handle: Callable[[dict[str, Any]], None]) -> None:
        self._handle = handle
        self._begun = b""

    def feed(self, piece: bytes) -> None:
        """Pass each complete line, decoded, to the handler; keep an incomplete one for later."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        for line in lines:
            self._handle(json.loads(line))


def _rhythm(config: ClientConfig, mirror: Mirror) -> Rhythm:
    """Return how often a module is polled, in seconds; never rarer than its `max_age`."""
    watch, stale = config.watch, seconds(mirror.config.max_age)
    slow_poll = max(_LEAST_SLOW_POLL, min(_SLOW_POLL, stale)) if stale else _SLOW_POLL
    poll = seconds(watch.poll)
    return Rhythm(seconds(watch.spread), poll, slow_poll if stale else max(slow_poll, poll))


def listener_pause(crashes: int) -> float:
    """Return the seconds before a listener restarts: none at first, then 2, 4 and so on to 30."""
    return min(_LISTENER_PAUSE, 2.0**crashes) if crashes else 0.0
