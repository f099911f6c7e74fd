/* Opening: a regular file of the attr tree is a hole; its content comes from the real tree.
 *
 * Fails closed: what cannot be mapped, lies behind a symlink or is not what was listed does not
 * exist for the daemon, which then says "vanished". */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

bool huai_same_content(const struct stat *one, const struct stat *other) {
    return S_ISREG(one->st_mode) && S_ISREG(other->st_mode) && one->st_size == other->st_size &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* Whether an open would write into the attr tree: to be refused before it has done harm. */
bool huai_refuses_write(int folder, const char *path, int flags) {
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    if (!huai_bound() || (flags & O_PATH) != 0 || !writes) {
        return false;
    }
    huai_path base;
    if (path[0] != '/') {
        /* Descriptors of other folders are not in use once a module was entered. */
        (void)folder;
        return true;
    }
    return !huai_generation(&base) || huai_below(base.text, path) != NULL;
}

/* One component after the other, for kernels and sandboxes that have no openat2. */
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

/* The file at `path` of the real tree, open for looking at only. */
static int look_up(const char *path) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    long found = huai_system(SYS_openat2, (long)huai_real_root(), path, &how, (long)sizeof how,
                             0L, 0L);
    if (found < 0 && (errno == ENOSYS || errno == EPERM)) {
        return walk(path);
    }
    return (int)found;
}

/* The content of the listed file at `path`, or -1. */
static int content_of(const char *path, const struct stat *listed, int flags) {
    struct stat found;
    int handle = look_up(path);
    if (handle < 0) {
        if (errno != EACCES) {
            errno = ENOENT;
        }
        return -1;
    }
    if (fstat(handle, &found) != 0 || !huai_same_content(listed, &found)) {
        huai_close(handle);
        errno = ENOENT;
        return -1;
    }
    int content = huai_reopen(handle, (flags & (O_NOATIME | O_NONBLOCK)) | O_RDONLY | O_CLOEXEC);
    huai_close(handle);
    return content;
}

static int refuse(int descriptor, int why) {
    huai_close(descriptor);
    errno = why;
    return -1;
}

/* Puts the content under the number of `descriptor`, just opened with `flags`.
 *
 * Returns the number, or -1 with `errno`, and then nothing is open under it any more. */
int huai_redirect(int descriptor, int flags) {
    struct stat listed;
    huai_path base;
    huai_path path;
    if (descriptor < 0 || !huai_bound() || (flags & O_PATH) != 0) {
        return descriptor;
    }
    int kept = errno;
    if (fstat(descriptor, &listed) != 0) {
        return refuse(descriptor, ENOENT);
    }
    if (!S_ISREG(listed.st_mode) || (flags & O_ACCMODE) != O_RDONLY) {
        return descriptor;
    }
    /* Replaced since it was opened: its path would be another file's, or none. */
    if (listed.st_nlink == 0 || !huai_generation(&base) || !huai_location(descriptor, &path)) {
        return refuse(descriptor, ENOENT);
    }
    const char *inside = huai_below(base.text, path.text);
    if (inside == NULL) {
        return refuse(descriptor, EACCES);
    }
    int content = content_of(inside, &listed, flags);
    if (content < 0) {
        return refuse(descriptor, errno);
    }
    int flag = fcntl(descriptor, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
    if (huai_system(SYS_dup3, (long)content, (long)descriptor, (long)flag, 0L, 0L, 0L) < 0) {
        int why = errno;
        huai_close(content);
        return refuse(descriptor, why);
    }
    huai_close(content);
    if (!huai_watch(descriptor, &listed)) {
        return refuse(descriptor, EMFILE);
    }
    errno = kept;
    return descriptor;
}
