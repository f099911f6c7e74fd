"""Attr trees as EROFS images: one file a module, read by the kernel, and memory that it can drop.

The image holds names and attributes; each file that is not empty is one hole of its true size.
Nothing but Python and the kernel is needed: no mkfs, no mount program, no copy of the tree.

Reading content through a mounted image gives zeros: serve it only through what redirects.
"""

from huai_server.fallback.erofs.builder import ImageLimitError
from huai_server.fallback.erofs.image import Built, build_image
from huai_server.fallback.erofs.mounting import MountError, mount, unmount
from huai_server.fallback.erofs.owners import OwnerLookup
from huai_server.fallback.erofs.probe import check_mountable
from huai_server.fallback.erofs.seal import DamagedImageError, verify_image

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
