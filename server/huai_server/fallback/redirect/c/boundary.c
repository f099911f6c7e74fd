/* The boundary of a module that is served without a chroot.
 *
 * A mirror's own symlinks may name any place, and rsync before 3.5 follows them: through
 * `out -> ../..` it would list folders, and tell sizes and times of files, that are not in the
 * module.  So what is looked at, entered or opened must lie in the attr tree once all symlinks
 * are followed.  Rsync's own business, by absolute paths, is let through; inside a chroot there
 * is nothing to ask. */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* The folder that was asked for last, relative to the one that the process is in. */
static char known[PATH_MAX];

/* The process goes to another folder: what is known is no longer. */
void huai_elsewhere(void) {
    known[0] = '\0';
}

/* What of `path` lies below `base`, or NULL: it lies elsewhere. */
const char *huai_below(const char *base, const char *path) {
    size_t length = strcmp(base, "/") == 0 ? 0 : strlen(base);
    if (strncmp(base, path, length) != 0 || path[length] != '/') {
        return NULL;
    }
    return path + length + 1;
}

/* Whether an open file or folder is the attr tree's root, or below it. */
bool huai_within(int descriptor) {
    huai_path base;
    huai_path path;
    return huai_generation(&base) && huai_location(descriptor, &path) &&
           (strcmp(base.text, path.text) == 0 || huai_below(base.text, path.text) != NULL);
}

static bool leads_inside(int folder, const char *path) {
    int kept = errno;
    int found = huai_open_at(folder, path, O_PATH | O_CLOEXEC);
    /* What is not there leads nowhere: the caller finds that out. */
    bool inside = found < 0 || huai_within(found);
    huai_close(found);
    errno = kept;
    return inside;
}

/* Whether `path` lies in the attr tree, or is none of the mirror's; `follow` the last name too. */
bool huai_stays(int folder, const char *path, bool follow) {
    huai_path base;
    if (!huai_bound() || huai_confined() || path == NULL) {
        return true;
    }
    if (path[0] == '/' && (!huai_generation(&base) || huai_below(base.text, path) == NULL)) {
        return true;
    }
    if (follow) {
        return leads_inside(folder, path);
    }
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    if (length == 0 || length >= sizeof known) {
        return length == 0 || leads_inside(folder, path);
    }
    if (folder == AT_FDCWD && strncmp(known, path, length) == 0 && known[length] == '\0') {
        return true;
    }
    char above[PATH_MAX];
    memcpy(above, path, length);
    above[length] = '\0';
    if (!leads_inside(folder, above)) {
        return false;
    }
    if (folder == AT_FDCWD) {
        memcpy(known, above, length + 1);
    }
    return true;
}
