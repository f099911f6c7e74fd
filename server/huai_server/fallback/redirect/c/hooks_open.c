/* Hooks for all functions with which rsync 3.1 to 3.5, built with any glibc, may open a file. */

#include "redirect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Open a path with all rules of this library: translated, read-only, inside, redirected. */
static int open_at(int folder, const char *path, int flags, mode_t mode) {
    huai_path space;
    const char *translated;
    int failed = (flags & O_DIRECTORY) != 0 ? huai_enter(folder, path, &space, &translated)
                                            : huai_translate(folder, path, &space, &translated);
    if (failed != 0) {
        return -1;
    }
    if (translated != NULL && huai_refuses_write(folder, translated, flags)) {
        errno = EROFS;
        return -1;
    }
    /* A single name that is not followed cannot lead out. */
    bool direct = (flags & O_NOFOLLOW) != 0 && translated != NULL && strchr(translated, '/') == NULL;
    if (!direct && !huai_may_follow(folder, translated, (flags & O_NOFOLLOW) == 0)) {
        errno = ENOENT;
        return -1;
    }
    long file = huai_system(SYS_openat, (long)folder, translated, (long)flags, (long)mode, 0L, 0L);
    return huai_redirect((int)file, flags);
}

/* The mode is passed only if a file may be made. */
#define MODE_OF(flags, last)                                    \
    mode_t mode = 0;                                            \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {               \
        va_list list;                                           \
        va_start(list, last);                                   \
        mode = (mode_t)va_arg(list, unsigned int);              \
        va_end(list);                                           \
    }

EXPORT int open(const char *path, int flags, ...) {
    MODE_OF(flags, flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...) {
    MODE_OF(flags, flags)
    return open_at(folder, path, flags, mode);
}

SAME_AS("open") int open64(const char *path, int flags, ...);
SAME_AS("openat") int openat64(int folder, const char *path, int flags, ...);

/* The names of fortified builds. */
EXPORT int __open_2(const char *path, int flags);
EXPORT int __openat_2(int folder, const char *path, int flags);
SAME_AS("__open_2") int __open64_2(const char *path, int flags);
SAME_AS("__openat_2") int __openat64_2(int folder, const char *path, int flags);

int __open_2(const char *path, int flags) {
    return open_at(AT_FDCWD, path, flags, 0);
}

int __openat_2(int folder, const char *path, int flags) {
    return open_at(folder, path, flags, 0);
}

EXPORT int creat(const char *path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

SAME_AS("creat") int creat64(const char *path, mode_t mode);

EXPORT DIR *opendir(const char *path) {
    int folder = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
    if (folder < 0) {
        return NULL;
    }
    DIR *stream = fdopendir(folder);
    if (stream == NULL) {
        huai_close(folder);
    }
    return stream;
}

/* ---- streams: the C library opens them by internal calls, which no hook sees */

static int flags_of_mode(const char *mode) {
    bool updates = strchr(mode, '+') != NULL;
    if (mode[0] == 'r') {
        return updates ? O_RDWR : O_RDONLY;
    }
    return (updates ? O_RDWR : O_WRONLY) | O_CREAT;
}

/* Redirect a stream to its content; close it and return NULL if that fails. */
static FILE *redirect(FILE *stream, int flags) {
    if (stream == NULL || huai_redirect(fileno(stream), flags) >= 0) {
        return stream;
    }
    int saved = errno;
    /* Its descriptor is closed already. */
    fclose(stream);
    errno = saved;
    return NULL;
}

typedef FILE *(*file_opener)(const char *, const char *);
typedef FILE *(*file_reopener)(const char *, const char *, FILE *);

/* Return true if a stream may be opened; without a path `freopen` changes only its mode. */
static bool may_open(const char *path, int flags, huai_path *space, const char **translated) {
    if (huai_translate(AT_FDCWD, path, space, translated) != 0) {
        return false;
    }
    if (path != NULL && huai_refuses_write(AT_FDCWD, *translated, flags)) {
        errno = EROFS;
        return false;
    }
    return true;
}

static FILE *open_stream(const char *symbol, const char *path, const char *mode) {
    huai_path space;
    const char *translated;
    int flags = flags_of_mode(mode);
    file_opener next;
    *(void **)&next = huai_next(symbol);
    return may_open(path, flags, &space, &translated) ? redirect(next(translated, mode), flags)
                                                      : NULL;
}

EXPORT FILE *fopen(const char *path, const char *mode) {
    return open_stream("fopen", path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode) {
    return open_stream("fopen64", path, mode);
}

static FILE *reopen_stream(const char *symbol, const char *path, const char *mode, FILE *stream) {
    huai_path space;
    const char *translated;
    int flags = flags_of_mode(mode);
    file_reopener next;
    *(void **)&next = huai_next(symbol);
    return may_open(path, flags, &space, &translated)
               ? redirect(next(translated, mode, stream), flags)
               : NULL;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream) {
    return reopen_stream("freopen", path, mode, stream);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream) {
    return reopen_stream("freopen64", path, mode, stream);
}

/* ---- by number: openat2 has no function in the C library */

EXPORT long syscall(long number, ...) {
    long values[6];
    va_list list;
    va_start(list, number);
    for (int index = 0; index < 6; index++) {
        values[index] = va_arg(list, long);
    }
    va_end(list);
#ifdef SYS_open
    if (number == SYS_open) {
        return open_at(AT_FDCWD, (const char *)values[0], (int)values[1], (mode_t)values[2]);
    }
#endif
    if (number == SYS_openat) {
        return open_at((int)values[0], (const char *)values[1], (int)values[2], (mode_t)values[3]);
    }
    if (number == SYS_openat2) {
        const struct open_how *how = (const struct open_how *)values[2];
        int flags = (int)how->flags;
        if (huai_refuses_write((int)values[0], (const char *)values[1], flags)) {
            errno = EROFS;
            return -1;
        }
        long handle = huai_system(number, values[0], values[1], values[2], values[3], 0L, 0L);
        return huai_redirect((int)handle, flags);
    }
    long result = huai_system(number, values[0], values[1], values[2], values[3], values[4],
                              values[5]);
    if (number == SYS_read || number == SYS_pread64) {
        return huai_check_read((int)values[0], (void *)values[1], result);
    }
    return result;
}
