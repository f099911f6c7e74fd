"""Changes of a tree below one directory handle, never through a symlink.

Other packages use `Tree` to change a tree and `View` to read one.
"""

from huai_client.tree.destination import DestinationError
from huai_client.tree.errors import NotEmptyError, PathError, StorageError, is_other_file_system
from huai_client.tree.reserved import STAGING, STAGING_NAME, NotOursError
from huai_client.tree.tree import Places, RowResult, Tree, WholeDirectory
from huai_client.tree.view import Finish, View

__all__ = [
    "STAGING",
    "STAGING_NAME",
    "DestinationError",
    "Finish",
    "NotEmptyError",
    "NotOursError",
    "PathError",
    "Places",
    "RowResult",
    "StorageError",
    "Tree",
    "View",
    "WholeDirectory",
    "is_other_file_system",
]
