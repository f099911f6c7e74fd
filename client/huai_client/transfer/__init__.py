"""Transfers content from the upstream into the staging area, by parallel runs of rsync.

rsync gets regular files by name, never directories, symlinks or devices, and never deletes
anything.  Only the staging area decides whether an arrived file is accepted.
"""

from huai_client.transfer.errors import (
    ConnectionBrokenError,
    DiskFullError,
    LocalWriteError,
    RsyncRequirementError,
    TransferError,
    UpstreamFullError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.fetch import Outcome, fetch
from huai_client.transfer.listener import Listener
from huai_client.transfer.options import TransferOptions, TransferOptionsError
from huai_client.transfer.urls import ContentUrl, ContentUrlError

__all__ = [
    "ConnectionBrokenError",
    "ContentUrl",
    "ContentUrlError",
    "DiskFullError",
    "Listener",
    "LocalWriteError",
    "Outcome",
    "RsyncRequirementError",
    "TransferError",
    "TransferOptions",
    "TransferOptionsError",
    "UpstreamFullError",
    "UpstreamRefusedError",
    "UpstreamSilentError",
    "fetch",
]
