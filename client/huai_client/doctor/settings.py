"""What client.toml says, as far as only a sync would find it wrong."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from huai_client.config import ClientConfig
from huai_client.doctor.case import Case
from huai_client.doctor.finding import Finding, ok, warn
from huai_client.filtered import rules_of
from huai_client.firewall import Firewall
from huai_client.options import SyncOptions
from huai_client.plans.summary import allowed_deletions
from huai_client.transfer import ContentUrl, TransferOptions


def settings(case: Case) -> Iterator[Finding]:
    """URLs, limits, filter and rsync's options can be obeyed."""
    module = case.module
    for url in module.content_urls:
        ContentUrl.parse(url)
    TransferOptions(
        streams=module.streams,
        batch_files=module.batch_files,
        batch_bytes=module.batch_size,
        timeout=module.timeout,
        extra=module.rsync_options,
    )
    allowed_deletions(module.max_delete, 0)
    rules = rules_of(module, case.places, SyncOptions())
    Firewall(module, ())
    yield ok(f"can be obeyed; {len(rules.rules):,} filter rules")


def config(found: tuple[Path, ClientConfig]) -> Iterator[Finding]:
    """The file was read, and no two modules are mirrored into one tree."""
    path, content = found
    trees = sorted((os.path.realpath(each.dest), name) for name, each in content.modules.items())
    clear = True
    for (outer, one), (inner, other) in pairwise(trees):
        if Path(inner).is_relative_to(outer):
            clear = False
            message = f"{other} is mirrored to {inner}, which is in the tree of {one}"
            yield warn(message, f"give {other} another dest, or let {one} protect it")
    if clear:
        yield ok(f"{path}: {len(trees):,} modules")
