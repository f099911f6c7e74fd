/* Owner, mode and times of entries: all that an attr tree is about. */
#ifndef HUAI_ATTRIBUTES_H
#define HUAI_ATTRIBUTES_H

#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct attributes {
    uint32_t uid, gid; /* both -1: leave them */
    mode_t mode;
    struct timespec mtime;
    uint64_t *unowned; /* counts owners that could not be set */
};

/* Each returns 0 or an errno.  An owner that may not be set is counted, no error. */
int set_attributes(int descriptor, const struct attributes *wanted);
int set_symlink_attributes(int directory, const char *name, const struct attributes *wanted);

/* The modification time alone. */
int set_time(int descriptor, struct timespec mtime);

#endif
