/* Hooks that enter a module and look up paths in it, by the path in rsyncd.conf. */

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
    if (!huai_may_follow(AT_FDCWD, translated, true)) {
        errno = ENOENT;
        return -1;
    }
    huai_forget_folder();
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
        int saved = errno;
        huai_confine();
        errno = saved;
    }
    return result;
}

EXPORT int fchdir(int folder) {
    huai_forget_folder();
    return (int)huai_system(SYS_fchdir, (long)folder, 0L, 0L, 0L, 0L, 0L);
}

/* Get the status of a translated path; -1 with ENOENT if it leads out of the attr tree. */
static int status_of(int folder, const char *path, struct stat *status, int flags) {
    TRANSLATED(folder, path, -1)
    if (!huai_may_follow(folder, translated, (flags & AT_SYMLINK_NOFOLLOW) == 0)) {
        errno = ENOENT;
        return -1;
    }
    return (int)huai_system(SYS_newfstatat, (long)folder, translated, status, (long)flags, 0L, 0L);
}

EXPORT int stat(const char *path, struct stat *status) {
    return status_of(AT_FDCWD, path, status, 0);
}

EXPORT int lstat(const char *path, struct stat *status) {
    return status_of(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstatat(int folder, const char *path, struct stat *status, int flags) {
    return status_of(folder, path, status, flags);
}

/* With 64-bit files and the kernel's layout, both structures are the same. */
EXPORT int stat64(const char *path, struct stat64 *status) {
    return status_of(AT_FDCWD, path, (struct stat *)status, 0);
}

EXPORT int lstat64(const char *path, struct stat64 *status) {
    return status_of(AT_FDCWD, path, (struct stat *)status, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstatat64(int folder, const char *path, struct stat64 *status, int flags) {
    return status_of(folder, path, (struct stat *)status, flags);
}

/* The functions that binaries from before glibc 2.33 call instead. */
EXPORT int __xstat(int version, const char *path, struct stat *status);
EXPORT int __lxstat(int version, const char *path, struct stat *status);
SAME_AS("__xstat") int __xstat64(int version, const char *path, struct stat *status);
SAME_AS("__lxstat") int __lxstat64(int version, const char *path, struct stat *status);

int __xstat(int version, const char *path, struct stat *status) {
    (void)version;
    return status_of(AT_FDCWD, path, status, 0);
}

int __lxstat(int version, const char *path, struct stat *status) {
    (void)version;
    return status_of(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

EXPORT int access(const char *path, int mode) {
    TRANSLATED(AT_FDCWD, path, -1)
    return (int)huai_system(SYS_faccessat, (long)AT_FDCWD, translated, (long)mode, 0L, 0L, 0L);
}

EXPORT ssize_t readlink(const char *path, char *target, size_t size) {
    TRANSLATED(AT_FDCWD, path, -1)
    return huai_system(SYS_readlinkat, (long)AT_FDCWD, translated, target, (long)size, 0L, 0L);
}
