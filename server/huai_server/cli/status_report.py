"""The text and the JSON fields in which `huai-server status` shows a module.

Files without a digest yet are counted in the newest commit, for a module with late digests.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from huai_program.humanize import counted, human, moment
from huai_schema.errors import HuaiError
from huai_server.cli.report import totals_values
from huai_server.config.tables import Module
from huai_server.relay.hand_over import downstream_of
from huai_server.state.paths import ModulePlaces
from huai_server.store.scrub_record import ScrubRecord, read_record

if TYPE_CHECKING:  # loaded by the code that reads the state
    from huai_schema.codec.pending import PendingCommit
    from huai_server.store.module_state import ModuleState
    from huai_server.watch.record import Watched


def status_values(name: str, module: Module, state: "ModuleState") -> dict[str, object]:
    """Return a module's path, newest and pending commit, problem and running process, for JSON."""
    head = state.head
    return {
        "module": name,
        "path": module.path,
        "commit": head.commit if head else None,
        "serial": head.info.serial if head else None,
        "time": head.time if head else None,
        "totals": totals_values(head.info) if head else None,
        "pending": state.pending.info.serial if state.pending else None,
        "pending_since": state.pending.time if state.pending else None,
        "problem": state.problem.message if state.problem else None,
        "running": state.running,
    }


def status_line(name: str, module: Module, state: "ModuleState") -> str:
    """Return the state of a module, as a line."""
    waiting = f", {pending_text(state.pending)}" if state.pending else ""
    busy = f", commit running (process {state.running})" if state.running else ""
    return f"{name}: {module.path}: {_committed(state)}{waiting}{busy}"


def pending_text(pending: "PendingCommit") -> str:
    """Return "serial N waits for signatures since TIME"."""
    return f"serial {pending.info.serial} waits for signatures since {moment(pending.time)}"


def watched_values(watched: "Watched | None") -> dict[str, object]:
    """Return the watching process of a module, and since when it is behind, for JSON."""
    return {
        "watching": watched.process if watched else None,
        "behind_since": watched.record.since if watched else None,
        "unwatched": watched.record.unwatched if watched else None,
    }


def watched_text(watched: "Watched | None") -> str:
    """Return the end of a line about the watcher of a module; empty without one."""
    if watched is None:
        return ""
    since = watched.record.since
    behind = f", with changes since {moment(since)} to commit" if since else ", in step"
    return f", watched (process {watched.process}){behind}"


def _committed(state: "ModuleState") -> str:
    """Return the newest commit as text, or the problem, or "no commit yet"."""
    if state.problem:
        return state.problem.message
    if state.head is None:
        return "no commit yet"
    info = state.head.info
    when = moment(state.head.time)
    totals = (
        f"{counted(info.totals.entries, 'entry', 'entries')}, {counted(info.totals.bytes, 'byte')}"
    )
    return f"serial {info.serial}, committed {when}, {totals}"


def _undigested(name: str, places: ModulePlaces) -> tuple[int, int] | None:
    """Return files and bytes without a digest in the newest commit; None if it is unreadable."""
    from huai_server.store.module_state import newest_commit

    try:
        return newest_commit(name, places)[1].undigested()
    except HuaiError:
        return None


class ContentState(NamedTuple):
    """The state of one module's content."""

    undigested: tuple[int, int] | None
    """Files and bytes; None without late digests, or without a readable commit."""
    scrub: ScrubRecord


def content_state(
    name: str, module: Module, places: ModulePlaces, state: "ModuleState"
) -> ContentState:
    """Return the counts without a digest, if digests come later, and the record of scrubs.

    Raises nothing for a damaged repository, which `state` reports; it gives no counts.
    """
    counts = None
    if module.digest == "later" and state.head:
        counts = _undigested(name, places)
    return ContentState(counts, read_scrubs(places))


def read_scrubs(places: ModulePlaces) -> ScrubRecord:
    """Return the record of scrubs; an empty one if this user may not read it."""
    with suppress(PermissionError):
        return read_record(places.scrub)
    return ScrubRecord()


def content_values(content: ContentState) -> dict[str, object]:
    """Return the state of content for JSON."""
    counts, scrub = content.undigested, content.scrub
    return {
        "undigested": counts and {"files": counts[0], "bytes": counts[1]},
        "scrub": {
            "begun": scrub.current.begun,
            "files": scrub.current.files,
            "bytes": scrub.current.size,
            "finished": scrub.finished,
        }
        if scrub.current
        else None,
        "damaged": len(scrub.damage),
    }


def content_text(content: ContentState) -> str:
    """Return the state of content as a part of a line; empty if there is nothing to say."""
    counts, scrub = content.undigested, content.scrub
    text = ""
    if counts and counts[0]:
        text += f", {counted(counts[0], 'file')} ({human(counts[1])}) without a digest"
    if scrub.finished:
        text += f", all content was reread by {moment(scrub.finished)}"
    if scrub.damage:
        text += f", {counted(len(scrub.damage), 'file')} DAMAGED"
    return text


class RelayState(NamedTuple):
    """The state of a relayed module."""

    root: str
    """The state root of huai-client."""
    applied: str | None
    """The applied commit (hex id), if it can be relayed."""
    problem: str | None
    """The reason why it cannot."""


def relay_state(name: str, module: Module) -> RelayState | None:
    """Return the state of a relayed module, None for others; an error becomes its `problem`."""
    if not module.relay:
        return None
    try:
        return RelayState(module.relay, downstream_of(name, module).read().commit, None)
    except HuaiError as error:
        return RelayState(module.relay, None, error.message)


def relay_values(relay: RelayState | None) -> dict[str, object]:
    """Return the state of a relayed module for JSON; its field is null for others."""
    return {"relay": relay and relay._asdict()}


def relay_text(relay: RelayState | None, state: "ModuleState") -> str:
    """Return the state of a relayed module as the end of a line; empty for others."""
    if relay is None:
        return ""
    if relay.problem:
        return f", NOT relayed: {relay.problem}"
    served = state.head and state.head.commit == relay.applied
    return f", relayed from {relay.root}" + ("" if served else ", where another commit is applied")
