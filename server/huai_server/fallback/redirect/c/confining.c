/* Confining: the chroot also limits an attacker who has taken over a connection's process.
 *
 * The process keeps descriptors of the real tree and of /proc, opened outside its chroot, from
 * which `..` would lead to the machine's root.  Two mechanisms prevent that, if available.  A
 * detached copy of a mount has no parent above its root, and needs CAP_SYS_ADMIN.  Landlock, from
 * Linux 5.13 on and without a capability, lets the process open only files and folders of the attr
 * tree, and files of the real tree.  Without both, the chroot confines rsync, but not an attacker
 * (FALLBACK.md). */

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

/* Numbers that are the same on every architecture, and missing in older headers. */
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

/* Return true if this process has entered its chroot. */
bool huai_confined(void) {
    return confined;
}

/* Replace `descriptor` by a detached copy of its folder; return `descriptor` if that fails. */
int huai_detach(int descriptor) {
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

/* Return all rights that a version of Landlock knows. */
static uint64_t handled_by(long version) {
    return version >= 5 ? ALL_OF_5 : version >= 3 ? ALL_OF_3 : version == 2 ? ALL_OF_2 : ALL_OF_1;
}

/* Add `rights` below `folder` to a ruleset; false if that fails. */
static bool allow(long rules, int folder, uint64_t rights) {
    struct beneath rule = {rights, folder};
    return huai_system(ADD_RULE, rules, (long)PATH_BENEATH, &rule, 0L, 0L, 0L) == 0;
}

/* Let this process open only files and folders below `listed`, and files below `content`; false
 * without Landlock. */
static bool restrict_to(int listed, int content) {
    long version = huai_system(CREATE_RULESET, 0L, 0L, (long)RULESET_VERSION, 0L, 0L, 0L);
    if (version < 1) {
        return false;
    }
    struct ruleset ruleset = {handled_by(version)};
    long rules = huai_system(CREATE_RULESET, &ruleset, (long)sizeof ruleset, 0L, 0L, 0L, 0L);
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

/* Confine this process after it has entered the chroot, when it needs nothing outside. */
void huai_confine(void) {
    confined = true;
    restrict_to(huai_generation_root(), huai_real_root());
}

/* Test for the service whether detached mounts or Landlock, which a child tries, can confine a
 * process: 1 if so, 0 if not, -1 if the test fails. */
EXPORT int huai_can_confine(void) {
    int opened = huai_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int root = huai_detach(opened);
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
