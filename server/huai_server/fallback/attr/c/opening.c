#define _GNU_SOURCE
#include "opening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437 /* the same on every architecture */
#endif
#define NO_SYMLINKS 0x04 /* RESOLVE_NO_SYMLINKS */
#define BENEATH 0x08     /* RESOLVE_BENEATH */
#define ATTEMPTS 16      /* of what a concurrent rename or a signal may interrupt */

static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

static int resolve(int root, const char *path)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = (uint64_t)flags, .resolve = NO_SYMLINKS | BENEATH};
    int descriptor = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        descriptor = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
        if (descriptor >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return descriptor;
}

bool opening_is_quick(int root)
{
    int descriptor = resolve(root, "");
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0 || (errno != ENOSYS && errno != EPERM); /* EPERM: old seccomp filters */
}

static int step(int from, const char *name, int how)
{
    int descriptor = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        descriptor = openat(from, name, how);
        if (descriptor >= 0 || errno != EINTR)
            break;
    }
    return descriptor;
}

/* Component by component; a name longer than any file system's is not there. */
static int walk(int root, const char *path)
{
    int here = root;
    const char *slash;
    while ((slash = strchr(path, '/'))) {
        char name[4096];
        size_t length = (size_t)(slash - path);
        if (length >= sizeof name) {
            errno = ENAMETOOLONG;
            break;
        }
        memcpy(name, path, length);
        name[length] = 0;
        int next = step(here, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        if (here != root)
            close(here);
        if (next < 0) {
            errno = error;
            return -1;
        }
        here = next;
        path = slash + 1;
    }
    int found = slash ? -1 : step(here, *path ? path : ".", flags);
    int error = errno;
    if (here != root)
        close(here);
    errno = error;
    return found;
}

/* Whether no component of it is empty, "." or "..": the kernel's look-up would go elsewhere. */
static bool is_plain(const char *path)
{
    for (const char *at = path; *path;) {
        size_t length = strcspn(at, "/");
        if (!length || (length <= 2 && !strncmp(at, "..", length)))
            return false;
        if (!at[length])
            return true;
        at += length + 1;
    }
    return true;
}

int open_directory(int root, const char *path, bool quick)
{
    if (!is_plain(path)) {
        errno = EXDEV; /* as openat2 says of what leads out */
        return -1;
    }
    return quick ? resolve(root, path) : walk(root, path);
}
