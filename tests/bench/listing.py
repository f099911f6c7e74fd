"""Reads a list as a sync does, lays it out, and keeps no object, in the memory of the list alone.

`listing.py URL` lists a tree by its rsync daemon; `listing.py OLD NEW` compares published lists;
`listing.py FILE` reads text, of JSON or mtree.  A program of its own, for its memory.
"""

import sys
import tempfile
from pathlib import Path

from huai_client.config.mirror import ListSettings
from huai_client.metadata.http import ListedUrl
from huai_client.metadata.source.daemon import ListedDaemon
from huai_client.run.options import NEVER
from huai_native._native import EntryList, TextList, compare_file_lists

_LIMIT = 1 << 30
_SECONDS = 600
_READ_BYTES = 1 << 18

source, *newer = sys.argv[1:]
if newer:
    with Path(source).open("rb") as old, Path(newer[0]).open("rb") as new:
        compare_file_lists(old, new)
    sys.exit()
with tempfile.TemporaryFile(dir=Path.cwd()) as store:
    entries = EntryList(store, _LIMIT)
    if "://" in source:
        url = ListedUrl(source, settings=ListSettings(""))
        ListedDaemon(url, timeout=_SECONDS, deadline=NEVER).list_tree(entries)
    else:
        reader = TextList(entries)
        with Path(source).open("rb") as text:
            while part := text.read(_READ_BYTES):
                reader.feed(part)
        reader.finish()
    entries.write_tree(None)
