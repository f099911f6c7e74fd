"""The state of content in `status`: files without a digest yet, and damaged files.

The former are counted in the newest commit, for a module with late digests.
"""

from typing import TYPE_CHECKING, NamedTuple

from huai_program.humanize import counted, human, moment
from huai_schema.errors import HuaiError
from huai_server.config.tables import Module
from huai_server.state.paths import ModulePlaces
from huai_server.store.scrub_record import ScrubRecord, read_record

if TYPE_CHECKING:
    from huai_native._native import Undigested
    from huai_server.store.module_state import ModuleState


def _undigested(name: str, places: ModulePlaces) -> "Undigested | None":
    from huai_server.commit.newest import newest_commit

    try:
        return newest_commit(name, places)[1].undigested()
    except HuaiError:
        return None


class ContentState(NamedTuple):
    """The state of one module's content."""

    undigested: "Undigested | None"
    """None without late digests, or without a readable commit."""
    scrub: ScrubRecord


def content_state(
    name: str, module: Module, places: ModulePlaces, state: "ModuleState"
) -> ContentState:
    """Return the state of content; a damaged repository raises nothing: `state` reports it."""
    counts = None
    if module.digest == "later" and state.head:
        counts = _undigested(name, places)
    return ContentState(counts, read_record(places.scrub))


def content_values(content: ContentState) -> dict[str, object]:
    """Return the state for JSON."""
    counts, scrub = content.undigested, content.scrub
    return {
        "undigested": counts and {"files": counts.files, "bytes": counts.size},
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
    """Return the state as a part of a line."""
    counts, scrub = content.undigested, content.scrub
    text = ""
    if counts and counts.files:
        text += f", {counted(counts.files, 'file')} ({human(counts.size)}) without a digest"
    if scrub.finished:
        text += f", all content was reread by {moment(scrub.finished)}"
    if scrub.damage:
        text += f", {counted(len(scrub.damage), 'file')} DAMAGED"
    return text
