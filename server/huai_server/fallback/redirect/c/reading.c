/* Reading: a file that changes while it is sent must not arrive.
 *
 * After each read the file's size and time are compared with the listing.  If they differ, the
 * read fails, and rsync invalidates the checksum of the whole file, so that the client discards
 * it. */

#include "redirect.h"

#include <errno.h>
#include <string.h>

/* Rsync opens few files at a time; a greater descriptor is not redirected. */
enum { DESCRIPTORS = 4096 };

static struct {
    bool used;
    struct stat listed;
    dev_t device;
    ino_t inode;
} watched[DESCRIPTORS];

/* Check reads of `descriptor` against `listed` from now on; false if it cannot be watched. */
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

/* Return `count`, the result of a read; -1 with EIO, and zeros, if a watched file has changed. */
ssize_t huai_check_read(int descriptor, void *buffer, ssize_t count) {
    struct stat now;
    if (count < 0 || descriptor < 0 || descriptor >= DESCRIPTORS || !watched[descriptor].used) {
        return count;
    }
    int saved = errno;
    bool ok = fstat(descriptor, &now) == 0;
    if (ok && (now.st_dev != watched[descriptor].device ||
               now.st_ino != watched[descriptor].inode)) {
        /* The number belongs to another file now. */
        watched[descriptor].used = false;
        errno = saved;
        return count;
    }
    if (ok && huai_same_content(&now, &watched[descriptor].listed)) {
        errno = saved;
        return count;
    }
    memset(buffer, 0, (size_t)count);
    errno = EIO;
    return -1;
}
