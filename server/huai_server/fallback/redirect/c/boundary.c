/* The boundary of a module that is served without a chroot.
 *
 * A mirror's own symlinks may point anywhere, and rsync before 3.5 follows them: through
 * `out -> ../..` it would list folders, and report sizes and times of files, outside the module.
 * So a path that is opened, entered or looked up must be in the attr tree after following all
 * symlinks.  Absolute paths, which rsync uses for its own files, are allowed; inside a chroot no
 * check is needed. */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* The folder that was checked last, relative to the working directory. */
static char checked[PATH_MAX];

/* Forget the checked folder when the working directory changes. */
void huai_forget_folder(void) {
    checked[0] = '\0';
}

/* Return the part of `path` below `base`, or NULL if it is not below. */
const char *huai_below(const char *base, const char *path) {
    size_t length = strcmp(base, "/") == 0 ? 0 : strlen(base);
    if (strncmp(base, path, length) != 0 || path[length] != '/') {
        return NULL;
    }
    return path + length + 1;
}

/* Return true if an open file or folder is the attr tree's root, or below it. */
bool huai_within(int descriptor) {
    huai_path base;
    huai_path path;
    return huai_generation(&base) && huai_location(descriptor, &path) &&
           (strcmp(base.text, path.text) == 0 || huai_below(base.text, path.text) != NULL);
}

/* Return true if an absolute path begins at the attr tree's root, or that is unknown. */
bool huai_is_listed(const char *path) {
    huai_path base;
    return !huai_generation(&base) || huai_below(base.text, path) != NULL ||
           strncmp(path, OWN_FILES, sizeof OWN_FILES - 1) == 0;
}

/* Return true if `path`, with all symlinks followed, is in the attr tree or missing. */
static bool leads_inside(int folder, const char *path) {
    int saved = errno;
    int handle = huai_open_at(folder, path, O_PATH | O_CLOEXEC);
    /* A missing path leads nowhere, which the caller's own call reports. */
    bool inside = handle < 0 || huai_within(handle);
    huai_close(handle);
    errno = saved;
    return inside;
}

/* Return true if `path` is in the attr tree, or not of the mirror; `follow` the last name too. */
bool huai_may_follow(int folder, const char *path, bool follow) {
    if (!huai_bound() || huai_confined() || path == NULL) {
        return true;
    }
    if (path[0] == '/' && !huai_is_listed(path)) {
        return true;
    }
    if (follow) {
        return leads_inside(folder, path);
    }
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    if (length == 0 || length >= sizeof checked) {
        return length == 0 || leads_inside(folder, path);
    }
    if (folder == AT_FDCWD && strncmp(checked, path, length) == 0 && checked[length] == '\0') {
        return true;
    }
    char above[PATH_MAX];
    memcpy(above, path, length);
    above[length] = '\0';
    if (!leads_inside(folder, above)) {
        return false;
    }
    if (folder == AT_FDCWD) {
        memcpy(checked, above, length + 1);
    }
    return true;
}
