/* Translating: `FOLDER/NAME/.redirected/…` becomes the generation that this process is bound to.
 *
 * Rsync 3.5 enters a module component by component, and passes the last one as a name relative to
 * a descriptor, from which the whole path is made again.  Its user may not enter the folder of the
 * generations, so the way to one leads through its descriptor. */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define SERVED "/.redirected"

/* The folder of the module that was entered. */
static char module[PATH_MAX];

/* Return the end of the folder before SERVED, or NULL if `path` does not contain it. */
static const char *find_served(const char *path) {
    if (path == NULL || path[0] != '/') {
        return NULL;
    }
    const char *end = strstr(path, SERVED);
    while (end != NULL) {
        char next = end[sizeof SERVED - 1];
        if (next == '\0' || next == '/') {
            return end;
        }
        end = strstr(end + 1, SERVED);
    }
    return NULL;
}

/* Return true if `folder` is of an attr tree: a mirror may have a folder of the same name. */
static bool is_module(const char *folder) {
    huai_path path;
    char target[2];
    int length = snprintf(path.text, sizeof path.text, "%s/real", folder);
    return length > 0 && (size_t)length < sizeof path.text &&
           huai_system(SYS_readlinkat, (long)AT_FDCWD, path.text, target, (long)sizeof target,
                       0L, 0L) > 0;
}

/* Point `translated` to `front` and `rest`, joined in `space`; -1 with `errno` if too long. */
static int replace(const char *front, const char *rest, huai_path *space,
                   const char **translated) {
    int length = snprintf(space->text, sizeof space->text, "%s%s", front, rest);
    if (length < 0 || (size_t)length >= sizeof space->text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    *translated = space->text;
    return 0;
}

/* Return the whole path of SERVED relative to `folder`; `path` itself for another name. */
static const char *complete(int folder, const char *path, huai_path *space) {
    char link[40];
    if (folder == AT_FDCWD || path == NULL || strcmp(path, SERVED + 1) != 0) {
        return path;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    long length = huai_system(SYS_readlinkat, (long)AT_FDCWD, link, space->text,
                              (long)(PATH_MAX - sizeof SERVED), 0L, 0L);
    if (length <= 0) {
        return path;
    }
    memcpy(space->text + length, SERVED, sizeof SERVED);
    return space->text;
}

/* Translate a path of SERVED, and bind the process if it `enters`; other paths stay.
 *
 * An unbound process looks up names through the link to the served generation.  Returns 0, or -1
 * with `errno`. */
static int translate(int base_folder, const char *name, huai_path *space, const char **translated,
                     bool enters) {
    huai_path buffer;
    const char *path = complete(base_folder, name, &buffer);
    const char *end = find_served(path);
    *translated = name;
    if (end == NULL) {
        return 0;
    }
    size_t length = (size_t)(end - path);
    const char *rest = end + sizeof SERVED - 1;
    if (length >= sizeof module) {
        errno = ENAMETOOLONG;
        return -1;
    }
    char folder[PATH_MAX];
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (huai_bound()) {
        huai_path base;
        /* Inside a chroot the same path belongs to the mirror. */
        if (strcmp(folder, module) != 0 || !huai_generation(&base) ||
            strcmp(base.text, "/") == 0) {
            return 0;
        }
        char root[40];
        snprintf(root, sizeof root, OWN_FILES "%d", huai_generation_root());
        return replace(root, *rest == '\0' ? "/." : rest, space, translated);
    }
    if (!is_module(folder)) {
        return 0;
    }
    if (!enters) {
        char tree[PATH_MAX + 8];
        /* With a slash, so that even lstat follows the symlink. */
        snprintf(tree, sizeof tree, "%s/tree/", folder);
        return replace(tree, rest, space, translated);
    }
    if (huai_bind(folder) != 0) {
        return -1;
    }
    memcpy(module, folder, length + 1);
    return translate(base_folder, name, space, translated, true);
}

/* Translate a path to look up.  Returns 0 or -1 with `errno`; `translated` may be `path` itself. */
int huai_translate(int folder, const char *path, huai_path *space, const char **translated) {
    return translate(folder, path, space, translated, false);
}

/* Translate a path to enter, which binds the process. */
int huai_enter(int folder, const char *path, huai_path *space, const char **translated) {
    return translate(folder, path, space, translated, true);
}
