"""Content that is here already is not transferred: it is linked, cloned or copied.

`Sources` finds where the content of wanted files stands, `bring` puts it into the staging
area, `parted` keeps names apart that share an inode by accident.  The rules by which a local
file is believed stand in `client/REUSE.md`.
"""

from huai_client.reuse.bring import Brought, bring
from huai_client.reuse.local import Reused, Trust
from huai_client.reuse.parting import parted
from huai_client.reuse.sources import Sources, roomless

__all__ = ["Brought", "Reused", "Sources", "Trust", "bring", "parted", "roomless"]
