/* Reading: a file that changes while it is sent must not arrive.
 *
 * After each read the file's size and time are compared with what was listed.  If they are not
 * the same the read has failed, and rsync spoils the checksum of the whole file, so that the
 * client throws away what it has got. */

#include "redirect.h"

#include <errno.h>
#include <string.h>

/* Rsync has few files open at a time; a descriptor beyond them is refused to be redirected. */
enum { DESCRIPTORS = 4096 };

static struct {
    bool used;
    struct stat listed;
    dev_t device;
    ino_t inode;
} watched[DESCRIPTORS];

bool huai_watch(int descriptor, const struct stat *listed) {
    struct stat content;
    if (descriptor >= DESCRIPTORS || fstat(descriptor, &content) != 0) {
        return false;
    }
    watched[descriptor].used = true;
    watched[descriptor].listed = *listed;
    watched[descriptor].device = content.st_dev;
    watched[descriptor].inode = content.st_ino;
    return true;
}

ssize_t huai_still_listed(int descriptor, void *buffer, ssize_t count) {
    struct stat now;
    if (count < 0 || descriptor < 0 || descriptor >= DESCRIPTORS || !watched[descriptor].used) {
        return count;
    }
    int kept = errno;
    bool known = fstat(descriptor, &now) == 0;
    if (known && (now.st_dev != watched[descriptor].device ||
                  now.st_ino != watched[descriptor].inode)) {
        /* The number was given to something else since. */
        watched[descriptor].used = false;
        errno = kept;
        return count;
    }
    if (known && huai_same_content(&now, &watched[descriptor].listed)) {
        errno = kept;
        return count;
    }
    memset(buffer, 0, (size_t)count);
    errno = EIO;
    return -1;
}
