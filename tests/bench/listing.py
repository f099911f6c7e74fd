"""Lists a tree by its rsync daemon, lays it out, and keeps no object: `listing.py URL`.

A program of its own, so that its memory is that of the list.
"""

import sys
import tempfile

from huai_client.config.mirror import ListSettings
from huai_client.metadata.http import ListedUrl
from huai_client.metadata.source.daemon import ListedDaemon
from huai_client.run.options import NEVER
from huai_native._native import EntryList

_LIMIT = 1 << 30
_SECONDS = 600

url = ListedUrl(sys.argv[1], ListSettings(""))
with tempfile.TemporaryFile() as store:
    entries = EntryList(store, _LIMIT)
    ListedDaemon(url, timeout=_SECONDS, deadline=NEVER).list_tree(entries)
    entries.write_tree(None)
