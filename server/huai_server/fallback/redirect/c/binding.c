/* Binding: a connection's process becomes the server of one module.
 *
 * rsyncd.conf has `path = FOLDER/NAME/.redirected`, which does not exist.  When the daemon's
 * process for a connection enters it, before it gives up root and enters a chroot, this opens
 * the generation of the attr tree, locked against its deletion, the real tree, and /proc, which
 * has the path of a descriptor even inside a chroot.  A daemon without this library does not
 * find the path, and serves nothing. */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>

/* The attempts and pauses, which last much longer than an update of the attr tree. */
enum { ATTEMPTS = 200, PAUSE_NS = 10 * 1000 * 1000 };

/* Above the descriptors that programs use themselves. */
enum { FIRST_DESCRIPTOR = 200 };

static int generation = -1;
static int real_root = -1;
static int processes = -1;

/* Return true once this process serves a module. */
bool huai_bound(void) {
    return generation >= 0;
}

int huai_real_root(void) {
    return real_root;
}

int huai_generation_root(void) {
    return generation;
}

/* Open a folder at a descriptor from 200 on, if one is free; -1 with `errno` on failure. */
static int descriptor_of(const char *path, int flags) {
    int low = huai_open_at(AT_FDCWD, path, flags | O_DIRECTORY | O_CLOEXEC);
    if (low < 0) {
        return -1;
    }
    int high = fcntl(low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (high < 0) {
        return low;
    }
    huai_close(low);
    return high;
}

static bool join_path(const char *folder, const char *name, huai_path *path) {
    int length = snprintf(path->text, sizeof path->text, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path->text;
}

/* Return true if the root of the generation has the time in its seal. */
static bool is_sealed(const char *folder, const struct stat *root) {
    huai_path path;
    char seal[32];
    if (!join_path(folder, "seal", &path)) {
        return false;
    }
    long length = huai_system(SYS_readlinkat, (long)AT_FDCWD, path.text, seal,
                              (long)sizeof seal - 1, 0L, 0L);
    if (length <= 0) {
        return false;
    }
    seal[length] = '\0';
    char *end;
    errno = 0;
    long long expected = strtoll(seal, &end, 10);
    long long actual = (long long)root->st_mtim.tv_sec * 1000000000LL + root->st_mtim.tv_nsec;
    return errno == 0 && *end == '\0' && expected == actual;
}

/* Return true if an update was interrupted: its mark exists and is not locked.
 * Then the attr tree lists neither the old nor the new commit. */
static bool is_interrupted(const char *folder) {
    huai_path path;
    if (!join_path(folder, "updating", &path)) {
        return true;
    }
    int mark = huai_open_at(AT_FDCWD, path.text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (mark < 0) {
        return errno != ENOENT;
    }
    bool is_locked = flock(mark, LOCK_SH | LOCK_NB) != 0;
    huai_close(mark);
    return !is_locked;
}

/* Return true if `tree` still leads to the folder with the status `root`. */
static bool is_current(const char *tree, const struct stat *root) {
    struct stat now;
    long result = huai_system(SYS_newfstatat, (long)AT_FDCWD, tree, &now, 0L, 0L, 0L);
    return result == 0 && now.st_ino == root->st_ino && now.st_dev == root->st_dev;
}

/* Open and lock the served generation; -1 if it is being changed or deleted. */
static int lock_generation(const char *folder) {
    huai_path tree;
    struct stat root;
    if (!join_path(folder, "tree", &tree)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int handle = descriptor_of(tree.text, O_RDONLY);
    if (handle < 0) {
        return -1;
    }
    if (is_interrupted(folder)) {
        huai_close(handle);
        errno = EBUSY; /* do not wait for its repair */
        return -1;
    }
    bool locked = flock(handle, LOCK_SH | LOCK_NB) == 0 && fstat(handle, &root) == 0;
    if (locked && root.st_nlink > 0 && is_current(tree.text, &root) && is_sealed(folder, &root)) {
        return handle;
    }
    huai_close(handle);
    errno = EIO;
    return -1;
}

/* Lock the served generation, at once or within two seconds; -1 with `errno` otherwise. */
static int wait_for_generation(const char *folder) {
    const struct timespec pause = {0, PAUSE_NS};
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int handle = lock_generation(folder);
        if (handle >= 0 || errno != EIO) {
            return handle;
        }
        nanosleep(&pause, NULL);
    }
    errno = EIO;
    return -1;
}

/* Open and lock the generation of the module at `folder`, its real tree and /proc.
 *
 * Returns 0, or -1 with `errno`: EBUSY if the process is bound already, or an update of the attr
 * tree was interrupted. */
int huai_bind(const char *folder) {
    huai_path path;
    if (huai_bound()) {
        errno = EBUSY;
        return -1;
    }
    if (!join_path(folder, "real", &path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int real = huai_detach(descriptor_of(path.text, O_PATH));
    int proc = huai_detach(descriptor_of("/proc", O_PATH));
    int served = real < 0 || proc < 0 ? -1 : wait_for_generation(folder);
    if (served < 0) {
        int saved = errno;
        huai_close(real);
        huai_close(proc);
        errno = saved;
        return -1;
    }
    real_root = real;
    processes = proc;
    generation = served;
    return 0;
}

/* Get the path of an open file as this process sees it; false without a path or /proc. */
bool huai_location(int descriptor, huai_path *path) {
    char link[40];
    snprintf(link, sizeof link, "self/fd/%d", descriptor);
    long length = huai_system(SYS_readlinkat, (long)processes, link, path->text,
                              (long)sizeof path->text - 1, 0L, 0L);
    /* It must be absolute and complete; "(unreachable)/…" is outside the chroot. */
    if (length <= 0 || (size_t)length >= PATH_MAX - 1 || path->text[0] != '/') {
        return false;
    }
    path->text[length] = '\0';
    return true;
}

/* Get the path of the generation as this process sees it; false if that fails. */
bool huai_generation(huai_path *path) {
    return huai_location(generation, path);
}

/* Reopen a file with `flags` that was opened with O_PATH. */
int huai_reopen(int descriptor, int flags) {
    char link[40];
    snprintf(link, sizeof link, "self/fd/%d", descriptor);
    return huai_open_at(processes, link, flags & ~O_NOFOLLOW);
}
