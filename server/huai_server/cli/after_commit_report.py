"""The text and the JSON fields for what follows a commit: static files, exports, attr trees."""

from typing import TYPE_CHECKING

from huai_program.humanize import counted, human
from huai_schema.paths import path_as_text, show
from huai_server.cli.console import Console

if TYPE_CHECKING:  # only some commands need these
    from huai_server.actions.modules import AfterCommit
    from huai_server.export.export import ExportResult
    from huai_server.fallback.after_commit import AttrTreeUpdate
    from huai_server.fallback.attr.ensure import AttrTreeResult
    from huai_server.static.publish import Published
    from huai_server.store.repository import Head


def show_after_commit(console: Console, name: str, after: "AfterCommit", newest: "Head") -> None:
    """Print the results of updating static files, export and attr tree to `newest`."""
    for failure in after.static.failures:
        console.failure(failure)
    for to, done in after.static.published:
        show_published(console, name, to, done)
    if after.export.failure:
        console.failure(after.export.failure)
    if after.export.result:
        show_export(console, name, after.export.result, after.export.described or newest)
    _show_attr_update(console, name, after.attr_tree)


def show_export(console: Console, name: str, result: "ExportResult", described: "Head") -> None:
    """Print the files that an export changed, and warn of the names that it left out.

    JSON has the unchanged files too, and the commit that all of them describe.
    """
    console.event(
        "export",
        module=name,
        commit=described.commit,
        serial=described.info.serial,
        files=[
            {"path": path_as_text(file.path), "size": file.size, "changed": file.changed}
            for file in result.files
        ],
        left_out=result.left_out,
    )
    for file in result.files:
        if file.changed:
            console.result(f"{name}: {show(file.path)}: {counted(file.size, 'byte')} written")
    if result.left_out:
        console.warning(
            f"{name}: {counted(result.left_out, 'name')} left out of Fedora's lists: control "
            "characters or invalid UTF-8"
        )


def show_published(console: Console, name: str, to: str, done: "Published") -> None:
    """Print a publication; as text only if it wrote files, with --json always."""
    console.event(
        "published",
        module=name,
        to=to,
        commit=done.head.commit,
        serial=done.head.info.serial,
        files=done.files,
        bytes=done.bytes,
        removed=done.removed,
    )
    if done.files:
        console.result(
            f"{name}: {to}: serial {done.head.info.serial}, {counted(done.files, 'file')} of "
            f"{counted(done.bytes, 'byte')} written"
        )


def show_attr_tree(console: Console, name: str, result: "AttrTreeResult") -> None:
    """Print the result of an update of an attr tree, after its warnings."""
    for warning in result.warnings:
        console.error(f"{name}: {warning}")
    console.event(
        "attr_tree",
        module=name,
        action=result.action,
        attr_kind=result.kind,
        commit=result.commit,
        serial=result.serial,
        entries=result.entries,
        changes=result.changes,
        memory=result.memory,
        seconds=round(result.seconds, 3),
    )
    done = {"none": "is current", "updated": "updated", "built": "built"}[result.action]
    console.result(
        f"{name}: attr tree {done}: serial {result.serial}, {result.changes:,} of "
        f"{result.entries:,} entries changed, about {human(result.memory)} "
        f"({human(result.memory / result.entries)} an entry), {result.seconds:.2f} s"
    )


def _show_attr_update(console: Console, name: str, update: "AttrTreeUpdate") -> None:
    """Print the update of the attr tree, removed trees of other modules, and failures."""
    for removed in update.removed:
        console.error(f"{removed}: attr tree removed: no module lists from it any more")
    if update.removal_failure:
        console.failure(update.removal_failure)
    if update.left_alone:
        console.error(f"{name}: {update.left_alone}")
    if update.failure:
        console.failure(update.failure)
    if update.result:
        show_attr_tree(console, name, update.result)
