"""What a plan amounts to, before its first byte is moved.

Pure.
"""

from typing import NamedTuple

from huai_client.modes import Reduced
from huai_client.plan.operations import Plan
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import ExitCode, HuaiError


class TooManyDeletionsError(HuaiError):
    """The plan deletes more than the administrator allows."""

    exit_code = ExitCode.MAX_DELETE


class DeleteLimitError(HuaiError):
    """A limit that is neither a count nor a share."""

    exit_code = ExitCode.CONFIG


_LEAST_SHARE = 1000
"""A limit given as a share never stops fewer deletions than this."""


class Summary(NamedTuple):
    """Counts of entries, and bytes."""

    fetches: int
    fetch_bytes: int
    links: int
    symlinks: int
    attributes: int
    """Entries whose content is here already, directories included."""
    moves: int
    new_directories: int
    deletions: int
    delayed: int = 0
    """Deletions that will wait."""
    reused: int = 0
    """Files whose content is here already, under another name; not among `fetches`."""
    reused_bytes: int = 0

    @property
    def nothing(self) -> bool:
        """Whether the tree is as it should be."""
        return not any(self)


def summarize(plan: Plan) -> Summary:
    """Add up a plan."""
    files = [file for stage in plan.stages for file in stage.fetches]
    fetches = [file for file in files if file.path not in plan.reuses]
    made = set(plan.make)
    return Summary(
        fetches=len(fetches),
        fetch_bytes=sum(file.size for file in fetches),
        links=sum(len(stage.links) for stage in plan.stages),
        symlinks=sum(len(stage.symlinks) for stage in plan.stages),
        attributes=sum(len(stage.attributes) for stage in plan.stages)
        + sum(directory.path not in made for directory in plan.directories),
        moves=len(plan.moves),
        new_directories=len(made),
        deletions=len(plan.clear) + len(plan.removals),
        reused=len(files) - len(fetches),
        reused_bytes=sum(file.size for file in files if file.path in plan.reuses),
    )


def reduced_modes(plan: Plan) -> list[File | Directory]:
    """What the plan creates or changes and gives a safer mode than the metadata states."""
    files = (file for stage in plan.stages for file in (*stage.fetches, *stage.attributes))
    real = (entry for entry in (*plan.directories, *files) if not isinstance(entry, Symlink))
    return [entry for entry in real if isinstance(entry.mode, Reduced)]


def check_deletions(summary: Summary, limit: str, entries: int) -> None:
    """Stop a plan that deletes more than `limit` of a tree that had `entries` entries.

    `limit` is a count, or a share such as "10%".  Raises `TooManyDeletionsError`.
    """
    allowed = allowed_deletions(limit, entries)
    if summary.deletions > allowed:
        raise TooManyDeletionsError(
            f"{summary.deletions:,} of {entries:,} entries would be deleted, more than the "
            f"{allowed:,} that max_delete = {limit!r} allows; nothing was touched",
            hint=f"if that is right: --max-delete {summary.deletions}",
        )


def allowed_deletions(limit: str, entries: int) -> int:
    """How many deletions `limit` allows in a tree of `entries` entries."""
    number, is_share = parse_limit(limit)
    return max(_LEAST_SHARE, entries * number // 100) if is_share else number


def parse_limit(limit: str) -> tuple[int, bool]:
    """A limit as a number, and whether it is a share, in percent."""
    number = limit.removesuffix("%")
    if not number.isascii() or not number.isdigit():
        raise DeleteLimitError(
            f"max_delete: {limit!r} is neither a count nor a share", hint="for example 5000 or 10%"
        )
    return int(number), number != limit
