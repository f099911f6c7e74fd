"""What may still be published when some content did not arrive.

Pure.  Payload that is complete harms nobody; an index, a deletion or a move might, as long as
what belongs to it is missing.
"""

from collections.abc import Collection
from dataclasses import replace

from huai_client.operations import Plan, Stage
from huai_client.stages import PAYLOAD
from huai_schema.entries import File


def withhold(plan: Plan, failed: Collection[File]) -> Plan:
    """The part of `plan` that is safe without the content of `failed`.

    Where something would have to make way for an entry of another type, that is nothing
    at all: what is there now must not go before its successor is here.
    """
    empty = replace(plan, clear=[], make=[], moves=[], stages=[], removals=[])
    if plan.clear:
        return replace(empty, directories=[])
    missing = {file.path for file in failed}
    payload = plan.stages[PAYLOAD]
    stage = Stage(
        payload.name,
        fetches=[file for file in payload.fetches if file.path not in missing],
        links=[file for file in payload.links if file.link not in missing],
        symlinks=payload.symlinks,
        attributes=payload.attributes,
    )
    return replace(empty, make=plan.make, stages=[stage])
