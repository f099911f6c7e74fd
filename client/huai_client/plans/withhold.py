"""What may still be published when some content did not arrive.

Pure.  Payload that is complete harms nobody; an index, a deletion or a move might, as long as
what belongs to it is missing.
"""

from collections.abc import Collection
from dataclasses import replace

from huai_client.plans.operations import Plan, Stage
from huai_client.plans.stages import PAYLOAD
from huai_schema.entries import File
from huai_schema.paths import ancestors


def withhold(plan: Plan, failed: Collection[File]) -> Plan:
    """The part of `plan` that is safe without the content of `failed`.

    Where something would have to make way for an entry of another type, that is nothing
    at all: what is there now must not go before its successor is here.
    """
    if plan.clear:
        return replace(plan, clear=[], make=[], moves=[], stages=[], removals=[], directories=[])
    # What is to stand where a directory is moved away from, and what is moved, have to wait.
    absent = {file.path for file in failed} | {move.old for move in plan.moves}
    not_there = {move.new for move in plan.moves}
    payload = plan.stages[PAYLOAD]
    stage = Stage(
        payload.name,
        fetches=[file for file in payload.fetches if file.path not in absent],
        links=[
            file
            for file in payload.links
            if file.link is not None
            and absent.isdisjoint((file.path, file.link))
            and not_there.isdisjoint(ancestors(file.link))
        ],
        symlinks=[symlink for symlink in payload.symlinks if symlink.path not in absent],
        attributes=payload.attributes,
    )
    directories = [
        directory
        for directory in plan.directories
        if not_there.isdisjoint((directory.path, *ancestors(directory.path)))
    ]
    return replace(plan, moves=[], stages=[stage], removals=[], directories=directories)
