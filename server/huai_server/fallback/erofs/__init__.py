"""Attr trees as EROFS images: one file for each module, which the kernel reads and can page out.

The image holds names and attributes; a file that is not empty is one hole of its true size.
Only huai and the kernel are needed: no mkfs, no mount program, no copy of the tree.

Rule: reading content from a mounted image gives zeros, so serve it only with the preload library.
"""

from huai_server.fallback.erofs.image import Built, ImageLimitError, build_image
from huai_server.fallback.erofs.mounting import MountError, check_mountable, mount, unmount
from huai_server.fallback.erofs.seal import DamagedImageError, verify_image
from huai_server.fallback.owners import OwnerLookup

__all__ = [
    "Built",
    "DamagedImageError",
    "ImageLimitError",
    "MountError",
    "OwnerLookup",
    "build_image",
    "check_mountable",
    "mount",
    "unmount",
    "verify_image",
]
