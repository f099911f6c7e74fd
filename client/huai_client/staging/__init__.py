"""The staging area: where content arrives, is verified and waits to be published.

    DEST/.~tmp~/huai/           0700, ours alone
        incoming/N/PATH         what the Nth rsync writes, or the engine copies, under the module's
                                paths; what was verified stays there until it is published
        partial/HASH-OF-PATH    what an interrupted run left: a basis for deltas, never trusted
        ready/KEY               links to files of the tree whose content is known, and what was
                                verified and could not stay where it arrived
        unverified/KEY          was ready in an earlier run; verified again on demand
        patches/HASH-OF-PATH    what changes in a file of the tree that is changed where it stands
        boot, lock              the boot and client that left this; held while rsync may write

What the engine copies has its final permission bits already, where the umask lets it; from a path
of this machine, owner and mode.
Everything is reached through directory handles, never through a symlink.  The rule to
keep: nothing is ready except by `Incoming.accept`, the second look at `unverified`, and what
the engine has checked while it made it.
"""

from huai_client.staging.area import Staging
from huai_client.staging.content import Arrival, by_arrival
from huai_client.staging.journals import Journals
from huai_client.staging.patches import Patch, finish_patches
from huai_client.staging.ready_store import boot_id, key_of
from huai_client.staging.root import StagingBusyError, StagingError

__all__ = [
    "Arrival",
    "Journals",
    "Patch",
    "Staging",
    "StagingBusyError",
    "StagingError",
    "boot_id",
    "by_arrival",
    "finish_patches",
    "key_of",
]
