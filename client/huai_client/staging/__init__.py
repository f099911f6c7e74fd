"""The staging area: content arrives here, is verified, and waits to be published.

    DEST/.~tmp~/huai/           0700, for this user only
        incoming/N/PATH         written by the Nth rsync, or copied by the engine, under the
                                module's paths; verified files stay there until published
        partial/HASH-OF-PATH    left by an interrupted run: a basis for deltas, never trusted
        ready/KEY               links to files of the tree with known content, and verified files
                                that could not stay where they arrived
        unverified/KEY          was ready in an earlier run; verified again on demand
        patches/HASH-OF-PATH    changes to a file of the tree that is changed in place
        boot, lock              boot and client of the last run; held while rsync may write

The engine's copies have their final permission bits already, as far as the umask permits; those
from a path of this machine also owner and mode.
All files are reached through directory handles, never through a symlink.  Rule: a file becomes
ready only by `Incoming.accept`, by another verification of `unverified`, or if the engine checked
it while making it.
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
