/* The attr tree's native maker: does what records say, below one directory (loaded with ctypes).
 *
 * A record is this header in the machine's own byte order, then its name and its second name, each
 * ended by NUL, without padding.  Whoever changes it changes `records.py` with it.
 */
#ifndef HUAI_MAKER_H
#define HUAI_MAKER_H

#include <stddef.h>
#include <stdint.h>

#define HUAI_EXPORT __attribute__((visibility("default")))

enum operation {
    ENTER = 1,  /* go to the directory at the path `name`, "" being the root */
    FILE_,      /* an empty file of `size` bytes, in the directory entered */
    SYMLINK,    /* to `other` */
    LINK,       /* one more name of the file at the path `other` */
    DIRECTORY,  /* empty; without a building folder its attributes come later */
    REMOVE,     /* `name` out of the directory entered; a directory goes to the building folder */
    LEAVES,     /* of the listing at the path `name`, which is entered: `other` is their lines */
    ATTRIBUTES, /* of the directory at the path `name` */
    MOVE,       /* the directory at the path `name` to the path `other` */
    OWNER,      /* `uid` is the number of what stands in lines as `name`: u or g, escaped name */
};

struct record {
    int64_t size;
    int64_t seconds;
    uint32_t nanoseconds;
    uint32_t uid, gid; /* both -1: leave them */
    uint32_t mode;
    uint32_t operation;
    uint32_t name, other; /* bytes, NUL included; 0: there is none */
    uint32_t reserved;
};

struct huai_maker;

/* Work below the directory `root`.  With a folder `building` on the same file system each entry is
 * made there and renamed to its place, and directories keep their times; without one, entries are
 * made in place and must not exist.  NULL and an errno in `error` if that is impossible. */
HUAI_EXPORT struct huai_maker *huai_maker_open(const char *root, const char *building, int *error);

/* Do what the records say, in order.  0, or an errno; nothing more is done after one. */
HUAI_EXPORT int huai_maker_apply(struct huai_maker *maker, const void *records, size_t length);

/* The path, seen from the root, at which it ended. */
HUAI_EXPORT const char *huai_maker_failure(const struct huai_maker *maker);

/* Give the directory that is entered its times back.  0 or an errno. */
HUAI_EXPORT int huai_maker_leave(struct huai_maker *maker);

/* How many entries could not be given their owner. */
HUAI_EXPORT uint64_t huai_maker_unowned(const struct huai_maker *maker);

HUAI_EXPORT void huai_maker_close(struct huai_maker *maker);

#endif
