/* Going into a module and looking at it, by the path in rsyncd.conf. */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRANSLATED(folder, path, otherwise)                     \
    huai_path space;                                            \
    const char *translated;                                     \
    if (huai_translate(folder, path, &space, &translated) != 0) { \
        return otherwise;                                       \
    }

EXPORT int chdir(const char *path) {
    huai_path space;
    const char *translated;
    if (huai_enter(AT_FDCWD, path, &space, &translated) != 0) {
        return -1;
    }
    if (!huai_stays(AT_FDCWD, translated, true)) {
        errno = ENOENT;
        return -1;
    }
    huai_elsewhere();
    return (int)huai_system(SYS_chdir, translated, 0L, 0L, 0L, 0L, 0L);
}

EXPORT int chroot(const char *path) {
    huai_path space;
    const char *translated;
    if (huai_enter(AT_FDCWD, path, &space, &translated) != 0) {
        return -1;
    }
    int result = (int)huai_system(SYS_chroot, translated, 0L, 0L, 0L, 0L, 0L);
    if (result == 0 && huai_bound()) {
        int kept = errno;
        huai_confine();
        errno = kept;
    }
    return result;
}

EXPORT int fchdir(int folder) {
    huai_elsewhere();
    return (int)huai_system(SYS_fchdir, (long)folder, 0L, 0L, 0L, 0L, 0L);
}

static int status_of(int folder, const char *path, struct stat *found, int flags) {
    TRANSLATED(folder, path, -1)
    if (!huai_stays(folder, translated, (flags & AT_SYMLINK_NOFOLLOW) == 0)) {
        errno = ENOENT;
        return -1;
    }
    return (int)huai_system(SYS_newfstatat, (long)folder, translated, found, (long)flags, 0L, 0L);
}

EXPORT int stat(const char *path, struct stat *found) {
    return status_of(AT_FDCWD, path, found, 0);
}

EXPORT int lstat(const char *path, struct stat *found) {
    return status_of(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstatat(int folder, const char *path, struct stat *found, int flags) {
    return status_of(folder, path, found, flags);
}

/* With 64-bit files, and the kernel's own layout, these are the same. */
EXPORT int stat64(const char *path, struct stat64 *found) {
    return status_of(AT_FDCWD, path, (struct stat *)found, 0);
}

EXPORT int lstat64(const char *path, struct stat64 *found) {
    return status_of(AT_FDCWD, path, (struct stat *)found, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstatat64(int folder, const char *path, struct stat64 *found, int flags) {
    return status_of(folder, path, (struct stat *)found, flags);
}

/* What binaries from before glibc 2.33 call instead. */
EXPORT int __xstat(int version, const char *path, struct stat *found);
EXPORT int __lxstat(int version, const char *path, struct stat *found);
SAME_AS("__xstat") int __xstat64(int version, const char *path, struct stat *found);
SAME_AS("__lxstat") int __lxstat64(int version, const char *path, struct stat *found);

int __xstat(int version, const char *path, struct stat *found) {
    (void)version;
    return status_of(AT_FDCWD, path, found, 0);
}

int __lxstat(int version, const char *path, struct stat *found) {
    (void)version;
    return status_of(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}

EXPORT int access(const char *path, int mode) {
    TRANSLATED(AT_FDCWD, path, -1)
    return (int)huai_system(SYS_faccessat, (long)AT_FDCWD, translated, (long)mode, 0L, 0L, 0L);
}

EXPORT ssize_t readlink(const char *path, char *target, size_t size) {
    TRANSLATED(AT_FDCWD, path, -1)
    return huai_system(SYS_readlinkat, (long)AT_FDCWD, translated, target, (long)size, 0L, 0L);
}
