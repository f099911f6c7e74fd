"""`huai-server maintain`: repack and prune metadata repositories."""

import time
from pathlib import Path

import click

from huai_program.cli.options import wait_option
from huai_program.humanize import counted, human
from huai_schema.errors import ExitCode
from huai_server.cli.console import Console
from huai_server.cli.options import each_module, modules_options
from huai_server.config.load import load
from huai_server.config.retention import Retention
from huai_server.state.paths import module_places
from huai_server.store.disk_use import DiskUse
from huai_server.store.maintain import MaintenancePlan, foresee, maintain


@click.command()
@modules_options
@click.option("--dry-run", is_flag=True, help="Only print the disk use, and what would be done.")
@wait_option("a commit")
@each_module(quiet=True)
def command(root: Path, name: str, dry_run: bool, wait: float, console: Console) -> int:
    """Repack and prune the metadata repositories of the modules NAME, or of all.

    Each commit adds a pack: many are merged into few, in which versions of a manifest are stored
    as deltas. Commits older than `keep` in server.toml are dropped. Run it daily. Fetches and
    commits continue meanwhile; packs that were replaced are removed an hour later, by the next
    commit or the next run of this command.
    """
    places = module_places(root, name)
    if not places.repository.exists():
        console.result(f"{name}: no commit yet")
        return ExitCode.OK
    started, now = time.monotonic(), time.time()

    def load_retention() -> Retention:
        return load(root).module(name).retention

    if dry_run:
        plan, before = foresee(places, load_retention(), now=now)
        after = None
    else:
        plan, before, after = maintain(places, load_retention, now=now, wait=wait)
    seconds = time.monotonic() - started
    console.event("maintain", module=name, **_values(plan, before, after, seconds))
    console.result(f"{name}: {_line(plan, before, after)}")
    return ExitCode.OK


def _values(
    plan: MaintenancePlan, before: DiskUse, after: DiskUse | None, seconds: float
) -> dict[str, object]:
    """Return the JSON fields of a maintenance; no `after` with --dry-run."""
    return {
        "dry_run": after is None,
        "loose_objects": plan.loose,
        "merged_packs": plan.merged,
        "dropped_commits": plan.dropped,
        "before": _use_values(before),
        "after": after and _use_values(after),
        "seconds": round(seconds, 3),
    }


def _use_values(use: DiskUse) -> dict[str, object]:
    kinds = {name: each._asdict() for name, each in use._asdict().items()}
    return {**kinds, "bytes": use.bytes}


def _line(plan: MaintenancePlan, before: DiskUse, after: DiskUse | None) -> str:
    """Return the line about a maintenance; no `after` with --dry-run."""
    now = after or before
    done = "would become one" if after is None else "became one"
    dropped = "would go" if after is None else "went"
    merged = f"{counted(plan.dropped, 'old commit')} {dropped}; " if plan.dropped else ""
    merged += f"{counted(plan.merged, 'pack')} {done}; " if plan.merged else ""
    replaced = f", and {human(now.replaced.bytes)} that go soon" if now.replaced.files else ""
    kinds = {
        "indices of large files": now.blocks,
        "loose objects": now.loose,
        "static files": now.static,
        "left by killed runs": now.unfinished,
        "caches": now.caches,
    }
    rest = "".join(f", {name} {human(use.bytes)}" for name, use in kinds.items() if use.files)
    size = f"{counted(now.packs.files, 'pack')} of {human(now.packs.bytes)}"
    return f"{merged}{size}{replaced}{rest}"
