"""Hints for errors of the operating system that any file access may meet.

Pure.
"""

import errno
from collections.abc import Mapping

DISK_HINTS: Mapping[int, str] = {
    errno.EIO: "the disk fails: look into the kernel's log before the next run",
    errno.EROFS: "the file system is read-only: look into the kernel's log, then remount it",
    errno.ENOSPC: "free some space there, or inodes, and run again",
    errno.EDQUOT: "raise the quota and run again",
    errno.ESTALE: "the file system's server lost it: mount it again",
    errno.EMFILE: "allow more open files (ulimit -n, LimitNOFILE= of a unit), and run again",
    errno.ENFILE: "this machine has too many open files: raise fs.file-max, and run again",
}
