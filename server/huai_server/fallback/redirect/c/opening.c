/* Opening: a regular file of the attr tree is a hole, whose content comes from the real tree.
 *
 * Fails closed: a file that cannot be mapped, is behind a symlink or differs from the listing does
 * not exist for the daemon, which reports "vanished". */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

/* Return true for two regular files with the same size and time. */
bool huai_same_content(const struct stat *one, const struct stat *other) {
    return S_ISREG(one->st_mode) && S_ISREG(other->st_mode) && one->st_size == other->st_size &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* Return true if an open would write into the attr tree, and must be refused. */
bool huai_refuses_write(int folder, const char *path, int flags) {
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    if (!huai_bound() || (flags & O_PATH) != 0 || !writes) {
        return false;
    }
    /* Inside a module rsync uses no descriptors of other folders. */
    (void)folder;
    return path[0] != '/' || huai_is_listed(path);
}

/* Open a path by components, for kernels and sandboxes without openat2. */
static int walk(const char *path) {
    int folder = huai_real_root();
    for (;;) {
        const char *slash = strchr(path, '/');
        size_t length = slash == NULL ? strlen(path) : (size_t)(slash - path);
        char name[NAME_MAX + 1];
        if (length == 0 || length > NAME_MAX) {
            errno = ENOENT;
            break;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
            errno = ENOENT;
            break;
        }
        int kind = slash == NULL ? 0 : O_DIRECTORY;
        int next = huai_open_at(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | kind);
        if (folder != huai_real_root()) {
            huai_close(folder);
        }
        if (next < 0 || slash == NULL) {
            return next;
        }
        folder = next;
        path = slash + 1;
    }
    if (folder != huai_real_root()) {
        huai_close(folder);
    }
    return -1;
}

/* Open the file at `path` of the real tree with O_PATH. */
static int look_up(const char *path) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    long handle = huai_system(SYS_openat2, (long)huai_real_root(), path, &how, (long)sizeof how,
                              0L, 0L);
    if (handle < 0 && (errno == ENOSYS || errno == EPERM)) {
        return walk(path);
    }
    return (int)handle;
}

/* Open the content of the listed file at `path`; -1 if it differs. */
static int open_content(const char *path, const struct stat *listed, int flags) {
    struct stat actual;
    int handle = look_up(path);
    if (handle < 0) {
        if (errno != EACCES) {
            errno = ENOENT;
        }
        return -1;
    }
    if (fstat(handle, &actual) != 0 || !huai_same_content(listed, &actual)) {
        huai_close(handle);
        errno = ENOENT;
        return -1;
    }
    int content = huai_reopen(handle, (flags & (O_NOATIME | O_NONBLOCK)) | O_RDONLY | O_CLOEXEC);
    huai_close(handle);
    return content;
}

/* Close `descriptor`; return -1 with `error` in `errno`. */
static int refuse(int descriptor, int error) {
    huai_close(descriptor);
    errno = error;
    return -1;
}

/* Replace the file of `descriptor`, just opened with `flags`, by its content.
 *
 * Returns `descriptor`, or closes it and returns -1 with `errno`. */
int huai_redirect(int descriptor, int flags) {
    struct stat listed;
    huai_path base;
    huai_path path;
    if (descriptor < 0 || !huai_bound() || (flags & O_PATH) != 0) {
        return descriptor;
    }
    int saved = errno;
    if (fstat(descriptor, &listed) != 0) {
        return refuse(descriptor, ENOENT);
    }
    if (!S_ISREG(listed.st_mode) || (flags & O_ACCMODE) != O_RDONLY) {
        return descriptor;
    }
    /* If it was replaced after opening, its path is another file's or missing. */
    if (listed.st_nlink == 0 || !huai_generation(&base) || !huai_location(descriptor, &path)) {
        return refuse(descriptor, ENOENT);
    }
    const char *inside = huai_below(base.text, path.text);
    if (inside == NULL) {
        return refuse(descriptor, EACCES);
    }
    int content = open_content(inside, &listed, flags);
    if (content < 0) {
        return refuse(descriptor, errno);
    }
    int flag = fcntl(descriptor, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
    if (huai_system(SYS_dup3, (long)content, (long)descriptor, (long)flag, 0L, 0L, 0L) < 0) {
        int error = errno;
        huai_close(content);
        return refuse(descriptor, error);
    }
    huai_close(content);
    if (!huai_watch(descriptor, &listed)) {
        return refuse(descriptor, EMFILE);
    }
    errno = saved;
    return descriptor;
}
