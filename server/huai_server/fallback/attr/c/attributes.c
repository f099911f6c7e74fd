#define _GNU_SOURCE
#include "attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* A time that every file system holds: nobody has to look what became of it. */
static bool is_usual(struct timespec time)
{
    return time.tv_sec >= 0 && time.tv_sec <= INT32_MAX;
}

static bool equal(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

static bool leaves_owner(const struct attributes *wanted)
{
    return wanted->uid == UINT32_MAX && wanted->gid == UINT32_MAX;
}

/* 0 after an owner that may not be set: the listing is right in all else. */
static int owner_refused(const struct attributes *wanted, int error)
{
    if (error != EPERM && error != EINVAL) /* EINVAL: no such id in this user namespace */
        return error;
    ++*wanted->unowned;
    return 0;
}

int set_time(int descriptor, struct timespec mtime)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime};
    struct stat status;
    if (futimens(descriptor, times))
        return errno;
    if (is_usual(mtime))
        return 0;
    if (fstat(descriptor, &status))
        return errno;
    return equal(status.st_mtim, mtime) ? 0 : EOVERFLOW; /* it was bent to what fits */
}

int set_attributes(int descriptor, const struct attributes *wanted)
{
    if (!leaves_owner(wanted) && fchown(descriptor, wanted->uid, wanted->gid)) {
        int error = owner_refused(wanted, errno);
        if (error)
            return error;
    }
    if (fchmod(descriptor, wanted->mode))
        return errno;
    return set_time(descriptor, wanted->mtime);
}

int set_symlink_attributes(int directory, const char *name, const struct attributes *wanted)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, wanted->mtime};
    struct stat status;
    if (!leaves_owner(wanted) &&
        fchownat(directory, name, wanted->uid, wanted->gid, AT_SYMLINK_NOFOLLOW)) {
        int error = owner_refused(wanted, errno);
        if (error)
            return error;
    }
    if (utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW))
        return errno;
    if (is_usual(wanted->mtime))
        return 0;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW))
        return errno;
    return equal(status.st_mtim, wanted->mtime) ? 0 : EOVERFLOW;
}
