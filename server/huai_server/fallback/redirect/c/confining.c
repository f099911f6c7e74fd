/* Confining: the chroot is a boundary for whoever takes over a connection's process, too.
 *
 * The process keeps descriptors of the real tree and of /proc, opened outside of its chroot: from
 * there `..` would lead to the machine's root.  Two things shut that way, each where it is to be
 * had.  A detached copy of a mount has nothing above its root; that takes CAP_SYS_ADMIN.
 * Landlock, from Linux 5.13 on and with no capability, lets the process open nothing but files
 * and folders of the attr tree, and files of the real tree.  Where neither is to be had, the chroot
 * holds rsync, and does not hold whoever has taken it over (FALLBACK.md). */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* The same on every architecture; headers of older systems lack them. */
enum { OPEN_TREE = 428, CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };

enum { OPEN_TREE_COPY = 1, RULESET_VERSION = 1, PATH_BENEATH = 1, NEVER_BELOW = 300 };

/* linux/landlock.h: opening, making and deleting files of any kind; then REFER, TRUNCATE and
 * IOCTL_DEV, of versions 2, 3 and 5. */
enum { ALL_OF_1 = 0x1fff, ALL_OF_2 = 0x3fff, ALL_OF_3 = 0x7fff, ALL_OF_5 = 0xffff };
enum { READ_FILE = 1 << 2, READ_FOLDER = 1 << 3 };

struct ruleset {
    uint64_t handled;
};

struct beneath {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

static bool confined = false;

/* Whether this process is in its chroot for good. */
bool huai_confined(void) {
    return confined;
}

/* The same folder with nothing above it, in place of `descriptor`; or `descriptor` itself. */
int huai_detached(int descriptor) {
    if (descriptor < 0) {
        return descriptor;
    }
    long how = OPEN_TREE_COPY | O_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE;
    int copy = (int)huai_system(OPEN_TREE, (long)descriptor, "", how, 0L, 0L, 0L);
    if (copy < 0) {
        return descriptor;
    }
    int high = fcntl(copy, F_DUPFD_CLOEXEC, NEVER_BELOW);
    if (high >= 0) {
        huai_close(copy);
        copy = high;
    }
    huai_close(descriptor);
    return copy;
}

static uint64_t handled_by(long version) {
    return version >= 5 ? ALL_OF_5 : version >= 3 ? ALL_OF_3 : version == 2 ? ALL_OF_2 : ALL_OF_1;
}

static bool allow(long rules, int folder, uint64_t what) {
    struct beneath rule = {what, folder};
    return huai_system(ADD_RULE, rules, (long)PATH_BENEATH, &rule, 0L, 0L, 0L) == 0;
}

/* From here on this process opens nothing but what lies below `listed`, and files below `content`;
 * false: it has no Landlock. */
static bool restrict_to(int listed, int content) {
    long version = huai_system(CREATE_RULESET, 0L, 0L, (long)RULESET_VERSION, 0L, 0L, 0L);
    if (version < 1) {
        return false;
    }
    struct ruleset wanted = {handled_by(version)};
    long rules = huai_system(CREATE_RULESET, &wanted, (long)sizeof wanted, 0L, 0L, 0L, 0L);
    if (rules < 0) {
        return false;
    }
    bool restricted =
        allow(rules, listed, READ_FILE | READ_FOLDER) && allow(rules, content, READ_FILE) &&
        huai_system(SYS_prctl, (long)PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L, 0L) == 0 &&
        huai_system(RESTRICT_SELF, rules, 0L, 0L, 0L, 0L, 0L) == 0;
    huai_close((int)rules);
    return restricted;
}

/* Called once the chroot is entered: nothing outside of it is needed any more. */
void huai_confine(void) {
    confined = true;
    restrict_to(huai_generation_root(), huai_real_root());
}

/* For the service, before it starts rsync: 1 if a process that it starts can be confined by detached
 * mounts or by Landlock, 0 if not, -1 if that cannot be tried.  A child tries Landlock. */
EXPORT int huai_can_confine(void) {
    int opened = huai_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int root = huai_detached(opened);
    if (root != opened) {
        huai_close(root);
        return 1;
    }
    if (root < 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(restrict_to(root, root) ? 0 : 1);
    }
    huai_close(root);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) == 0 : -1;
}
