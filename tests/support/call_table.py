"""The numbers of the system calls that tests look at, and of those that would escape them.

Rule to keep: a call that changes files, or makes changes last, is in a group that `supervise` can
report, or in `ESCAPES`.
"""

import platform
from collections.abc import Mapping

_MACHINE = platform.machine()

GROUPS: Mapping[str, tuple[int, ...]] = {
    "x86_64": {
        "attributes": (188, 189, 190, 197, 198, 199, 463, 466),
        "chmod": (90, 91, 268, 452),
        "clone": (),
        "copy": (275, 326),
        "getdents": (217,),
        "handle": (304,),
        "link": (86, 265),
        "mark": (146,),
        "mkdir": (83, 258),
        "mknod": (133, 259),
        "open": (2, 85, 257, 437),
        "open beneath": (437,),
        "owner": (92, 93, 94, 260),
        "read": (0, 17),
        "rename": (82, 264, 316),
        "rename by flags": (316,),
        "send": (40,),
        "symlink": (88, 266),
        "sync": (74, 75),
        "syncfs": (306,),
        "times": (132, 235, 261, 280),
        "truncate": (76, 77, 285),
        "unlink": (84, 87, 263),
        "watch": (254,),
        "write": (1, 18, 20, 296, 328),
    },
    "aarch64": {
        "attributes": (5, 6, 7, 14, 15, 16, 463, 466),
        "chmod": (52, 53, 452),
        "clone": (),
        "copy": (76, 285),
        "getdents": (61,),
        "handle": (265,),
        "link": (37,),
        "mark": (125,),
        "mkdir": (34,),
        "mknod": (33,),
        "open": (56, 437),
        "open beneath": (437,),
        "owner": (54, 55),
        "read": (63, 67),
        "rename": (38, 276),
        "rename by flags": (276,),
        "send": (71,),
        "symlink": (36,),
        "sync": (82, 83),
        "syncfs": (267,),
        "times": (88,),
        "truncate": (45, 46, 47),
        "unlink": (35,),
        "watch": (27,),
        "write": (64, 66, 68, 70, 287),
    },
}[_MACHINE]
"""`attributes` are extended ones, `clone` shares blocks by ioctl; `copy` names its target in the
third argument, `send` in the first.  What a kernel may lack stands alone as well: openat2(2) is
`open beneath`, renameat2(2) `rename by flags`.  `mark` changes nothing: a child says with it where
it is; `watch` is inotify_add_watch(2), which changes nothing either.  `handle` is
open_by_handle_at(2), for a caller that only looks up paths."""

REQUESTS: Mapping[str, tuple[int, ...]] = {"clone": (0x4004_9409, 0x4020_940D)}
"""The requests of ioctl(2): FICLONE, FICLONERANGE."""

IOCTL = {"x86_64": 16, "aarch64": 29}[_MACHINE]

CHANGING = (
    *("attributes", "chmod", "clone", "copy", "link", "mkdir", "mknod", "owner", "rename"),
    *("send", "symlink", "sync", "syncfs", "times", "truncate", "unlink", "write"),
)
"""Calls that change files or make changes durable, except opening, which may do either."""

ESCAPES: Mapping[int, str] = {
    425: "io_uring_setup",
    426: "io_uring_enter",
    427: "io_uring_register",
    469: "file_setattr",
    **{
        "x86_64": {162: "sync", 209: "io_submit", 277: "sync_file_range", 304: "open_by_handle_at"},
        "aarch64": {2: "io_submit", 81: "sync", 84: "sync_file_range", 265: "open_by_handle_at"},
    }[_MACHINE],
}
"""Calls that change files, or make changes durable, in a way that no test can cut."""

ESCAPING_REQUESTS: Mapping[int, str] = {
    0x4008_6602: "FS_IOC_SETFLAGS",
    0x401C_5820: "FS_IOC_FSSETXATTR",
    0xC018_9436: "FIDEDUPERANGE",
}
