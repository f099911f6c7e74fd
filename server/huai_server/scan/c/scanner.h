/* The native scanner's interface to Python (loaded with ctypes, so without Python.h).
 *
 * A scan is a sequence of frames in tree order, one a directory.  A frame is this header, then
 * its parts without padding: path, attributes, leaves, identities, problems.  Everything is
 * little-endian.  Whoever changes a frame changes `native.py` with it.
 */
#ifndef HUAI_SCANNER_H
#define HUAI_SCANNER_H

#include <stddef.h>
#include <stdint.h>

#define HUAI_EXPORT __attribute__((visibility("default")))

/* Reasons that are no errno; `native.py` holds their words. */
#define REASON_KEEPS_CHANGING (-1)
#define REASON_OUT_OF_RANGE (-2)
#define REASON_TOO_LARGE (-3)
#define REASON_TIME (-4)      /* with an empty name: the directory's own time */
#define REASON_RESERVED (-5)  /* left out: a name that is rsync's and huai's */
#define REASON_TEMPORARY (-6) /* left out: a file that rsync has not finished */

struct frame_header {
    uint64_t leaves;     /* bytes */
    uint64_t identities; /* bytes */
    uint64_t problems;   /* bytes: for each int32 reason, uint32 length, name; also what is left out */
    uint64_t device, inode; /* of the directory */
    int32_t reason;      /* 0: a listing; otherwise the directory could not be read */
    uint32_t path;       /* bytes */
    uint32_t attributes; /* bytes */
    uint32_t skipped;    /* entries that no snapshot holds */
    uint32_t hardlinks;  /* 1 if some file has several names */
    uint32_t unreadable; /* files here that others may not read */
};

/* One regular file: `types.IDENTITY`. */
struct identity {
    uint64_t device, inode;
    int64_t size, mtime, ctime;
    uint32_t links, offset, mode, user, group;
    uint32_t reserved;
};

struct huai_pattern {
    const char *glob;
    uint8_t anchored;    /* match the whole path, not the last component */
    uint8_t directories; /* match directories only */
};

struct huai_options {
    const struct huai_pattern *patterns;
    size_t pattern_count;
    uint32_t threads; /* directories looked at at the same time, 1 or more */
    uint32_t path_bytes;
    uint8_t one_file_system, owners;
};

struct huai_scan;

/* Start a scan of the directory `root`.  NULL and an errno in `error` if that is impossible.
 * `options` must stay alive until the scan is closed. */
HUAI_EXPORT struct huai_scan *huai_scan_open(const char *root, const struct huai_options *options,
                                             int *error);

/* The next frames, valid until the next call; NULL at the end, or with an errno in `error`, negative
 * if it is about looking up the name of an owner. */
HUAI_EXPORT const void *huai_scan_next(struct huai_scan *scan, size_t *length, int *error);

/* Stop and free; a scan may be closed at any moment. */
HUAI_EXPORT void huai_scan_close(struct huai_scan *scan);

#endif
