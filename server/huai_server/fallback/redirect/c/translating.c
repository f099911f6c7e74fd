/* Translating: `FOLDER/NAME/.redirected/…` means the generation that this process is bound to.
 *
 * Rsync 3.5 goes into a module one component after the other, and then the last one is a name
 * beside a descriptor: its path is put together again. */

#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define SERVED "/.redirected"

/* The folder of the module that was entered. */
static char module[PATH_MAX];

/* The end of the folder in front of SERVED, or NULL: no such path. */
static const char *served(const char *path) {
    if (path == NULL || path[0] != '/') {
        return NULL;
    }
    const char *found = strstr(path, SERVED);
    while (found != NULL) {
        char next = found[sizeof SERVED - 1];
        if (next == '\0' || next == '/') {
            return found;
        }
        found = strstr(found + 1, SERVED);
    }
    return NULL;
}

/* Only what the builder of attr trees made: a mirror may hold a folder of the same name. */
static bool is_module(const char *folder) {
    huai_path path;
    char target[2];
    int length = snprintf(path.text, sizeof path.text, "%s/real", folder);
    return length > 0 && (size_t)length < sizeof path.text &&
           huai_system(SYS_readlinkat, (long)AT_FDCWD, path.text, target, (long)sizeof target,
                       0L, 0L) > 0;
}

static int replaced(const char *front, const char *rest, huai_path *space,
                    const char **translated) {
    int length = snprintf(space->text, sizeof space->text, "%s%s", front, rest);
    if (length < 0 || (size_t)length >= sizeof space->text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    *translated = space->text;
    return 0;
}

/* The whole path of a name beside `folder`, if it is the one that matters; else `path`. */
static const char *completed(int folder, const char *path, huai_path *space) {
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

static int translate(int beside, const char *given, huai_path *space, const char **translated,
                     bool enters) {
    huai_path whole;
    const char *path = completed(beside, given, &whole);
    const char *end = served(path);
    *translated = given;
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
        /* Inside a chroot the same words are the mirror's own. */
        if (strcmp(folder, module) != 0 || !huai_generation(&base) ||
            strcmp(base.text, "/") == 0) {
            return 0;
        }
        return replaced(base.text, rest, space, translated);
    }
    if (!is_module(folder)) {
        return 0;
    }
    if (!enters) {
        char tree[PATH_MAX + 8];
        /* With a slash, so that it is a folder even for those who look at symlinks. */
        snprintf(tree, sizeof tree, "%s/tree/", folder);
        return replaced(tree, rest, space, translated);
    }
    if (huai_bind(folder) != 0) {
        return -1;
    }
    memcpy(module, folder, length + 1);
    huai_path base;
    if (!huai_generation(&base)) {
        errno = EIO;
        return -1;
    }
    return replaced(base.text, rest, space, translated);
}

/* For a look at a path.  Returns 0 or -1 with `errno`; `translated` may be `path` itself. */
int huai_translate(int folder, const char *path, huai_path *space, const char **translated) {
    return translate(folder, path, space, translated, false);
}

/* For going into it, which binds the process. */
int huai_enter(int folder, const char *path, huai_path *space, const char **translated) {
    return translate(folder, path, space, translated, true);
}
