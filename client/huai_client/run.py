"""One command for one module, with its lock held and its user told.

What is heavy is imported when it is known to be needed.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from huai_client import state as states
from huai_client.config import Module
from huai_client.options import SyncOptions
from huai_client.places import ModulePlaces, module_places
from huai_client.poll import nothing_new
from huai_client.publishing import waiting
from huai_client.publishing.patience import seconds
from huai_client.upstream import MetadataUrl
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath, show
from huai_schema.program.ending import print_json
from huai_schema.program.locking import locked

if TYPE_CHECKING:
    from huai_client.results import Observer, Prepared, SyncResult
    from huai_client.sync import Sync
    from huai_client.verify import Difference


@dataclass(frozen=True, slots=True)
class Talk:
    """How the user is told: text, JSON, or only errors."""

    quiet: bool
    as_json: bool

    def result(self, text: str) -> None:
        """Something that the user asked for."""
        if not self.as_json:
            sys.stdout.write(text + "\n")

    def totals(self, received: int, total: int) -> None:
        """The end of a good run; the last two lines are what mirror managers read sizes from."""
        if not self.quiet:
            self.result(f"Total bytes received: {received}")
            self.result(f"Total file size: {total} bytes")
            self.result(f"Total size is {total}")

    def remark(self, text: str) -> None:
        """Something by the way."""
        if not self.quiet and not self.as_json:
            sys.stderr.write(text + "\n")

    def complaint(self, text: str) -> None:
        """Something that went wrong."""
        sys.stderr.write(text + "\n")

    def event(self, kind: str, **values: object) -> None:
        """The same as an object, for programs."""
        if self.as_json:
            print_json(kind, **values)


@contextmanager
def module_lock(places: ModulePlaces, *, wait: float) -> Iterator[None]:
    """Hold the lock of a module, in a folder that is made if it is missing."""
    lock = locked(places.lock, wait=wait)
    try:
        places.folder.mkdir(parents=True, exist_ok=True)
        lock.__enter__()
    except OSError as error:
        raise states.StateError(
            f"{places.folder}: {error.strerror}",
            hint="run as the user that the state belongs to, or give another --root",
        ) from error
    with ExitStack() as stack:
        stack.push(lock.__exit__)
        yield


class Run:
    """The commands of one module."""

    def __init__(self, root: Path, name: str, module: Module, talk: Talk) -> None:
        """`root` is the client's state root."""
        self._name = name
        self._module = module
        self._places = module_places(root, name)
        self._talk = talk

    def sync(self, options: SyncOptions, *, wait: float) -> ExitCode:
        """Bring the tree to the newest commit."""
        with module_lock(self._places, wait=wait):
            state = states.load(self._places.state)
            if not options.adopt and nothing_new(state, self._metadata()):
                if self._anything_due():
                    return self._conclude(self._sync(options).delete_due(self._observer()))
                return self._nothing_new(state)
            observer = self._observer()
            result = self._sync(options).run(observer)
            return self._conclude(result)

    def plan(self, options: SyncOptions, *, wait: float) -> ExitCode:
        """Show what a sync would do."""
        from huai_client.report import plan_lines, summary_line, waiting_lines, warnings

        with module_lock(self._places, wait=wait):
            prepared = self._sync(options).prepare()
        for what, path, detail in plan_lines(prepared.plan):
            self._talk.result(f"{what:10} {show(path)}" + (f"  ({detail})" if detail else ""))
            self._talk.event("operation", operation=what, path=show(path), detail=detail)
        for path, when in waiting_lines(prepared, seconds(self._module.delete_after)):
            self._talk.result(f"{'waits':10} {show(path)}  ({when})")
            self._talk.event("waits", path=show(path), until=when)
        for each in prepared.repositories:
            self._talk.remark(f"{each.profile} repository: {show(each.top)} ({each.found_by})")
            self._talk.event(
                "repository", path=show(each.top), profile=each.profile, found_by=each.found_by
            )
        for warning in warnings(prepared):
            self._talk.complaint(f"{self._name}: {warning}")
        self._talk.result(f"{self._name}: {summary_line(prepared.summary)}")
        self._talk.event("plan", module=self._name, **prepared.summary._asdict())
        return ExitCode.OK

    def verify(self, options: SyncOptions, *, content: bool, repair: bool, wait: float) -> ExitCode:
        """Compare the tree with the applied commit, and mend it if asked to."""
        with module_lock(self._places, wait=wait):
            sync = self._sync(options)
            damage = [self._shown(difference) for difference in sync.damage(content=content)]
            self._talk.event("verified", module=self._name, differences=len(damage))
            if not damage:
                self._talk.remark(f"{self._name}: equals the applied commit")
                return ExitCode.OK
            self._talk.remark(f"{self._name}: {len(damage):,} paths differ")
            if not repair:
                return ExitCode.DIFFERS
            return self._conclude(sync.repair(damage, self._observer()))

    def _metadata(self) -> MetadataUrl:
        return MetadataUrl.of(self._module.url, self._module.upstream_name or self._name)

    def _anything_due(self) -> bool:
        head = waiting.head(self._places.waiting)
        return head.due(seconds(self._module.delete_after), int(time.time()))

    def _nothing_new(self, state: states.State) -> ExitCode:
        self._talk.remark(f"{self._name}: nothing new, serial {state.serial}")
        self._talk.event(
            "sync",
            module=self._name,
            commit=state.applied,
            serial=state.serial,
            total_bytes=state.total_bytes,
            changed=False,
        )
        self._talk.totals(0, state.total_bytes)
        return ExitCode.OK

    def _sync(self, options: SyncOptions) -> "Sync":
        from huai_client.sync import Sync

        return Sync(self._name, self._module, self._places, options)

    def _observer(self) -> "Observer":
        from huai_client.progress import choose
        from huai_client.results import Observer

        listener = choose(
            quiet=self._talk.quiet, as_json=self._talk.as_json, out=sys.stdout, err=sys.stderr
        )
        return Observer(listener, self._planned, _ignore)

    def _planned(self, prepared: "Prepared") -> None:
        from huai_client.report import summary_line, warnings

        info = prepared.commit.info
        self._talk.remark(f"{self._name}: serial {info.serial}: {summary_line(prepared.summary)}")
        self._talk.event(
            "planned", module=self._name, serial=info.serial, **prepared.summary._asdict()
        )
        for warning in warnings(prepared):
            self._talk.complaint(f"{self._name}: {warning}")

    def _conclude(self, result: "SyncResult") -> ExitCode:
        """Tell how it ended."""
        from huai_client.report import failures, published_line, result_values

        if result.report and result.report.published:
            self._talk.remark(f"{self._name}: {published_line(result.report)}")
        for failure in failures(result):
            self._talk.complaint(f"{self._name}: {failure}")
        self._talk.event("sync", module=self._name, **result_values(result))
        if result.exit_code == ExitCode.OK:
            received = result.outcome.bytes_received if result.outcome else 0
            self._talk.totals(received, result.total_bytes)
        else:
            self._talk.complaint(f"{self._name}: {result.exit_code.meaning}")
        return result.exit_code

    def _shown(self, difference: "Difference") -> "Difference":
        what = ", ".join(difference.attributes) or difference.reason
        self._talk.result(
            f"{difference.kind:10} {show(difference.path)}" + (f"  ({what})" if what else "")
        )
        self._talk.event(
            "difference",
            path=show(difference.path),
            difference=str(difference.kind),
            attributes=list(difference.attributes),
            reason=difference.reason,
        )
        return difference


def _ignore(_kind: str, _path: RelPath) -> None:
    """Nobody asked to be told of each step."""
