/* Listing a directory in one consistent state.
 *
 * A tmpfs moves an entry that an update replaces to another position in its directory: a reader in
 * progress gets it twice or never, and a client would delete a missing one.  The kernel locks the
 * directory during a call, so one call with a large enough buffer reads all names. */

#include "redirect.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A signal shortens a call, and some file systems shorten every call. */
enum { ATTEMPTS = 4 };

/* The size of the first buffer, and more than that of any entry. */
enum { SPACE = 1 << 16, ENTRY = 512 };

/* The names of a stream in the kernel's format; rsync has one thread. */
typedef struct listing {
    struct listing *next;
    DIR *stream;
    char *names;
    size_t length;
    size_t space;
    size_t position;
} listing;

static listing *listings;

static bool grow(listing *list) {
    size_t space = list->space == 0 ? SPACE : 2 * list->space;
    char *names = realloc(list->names, space);
    if (names == NULL) {
        return false;
    }
    list->names = names;
    list->space = space;
    return true;
}

/* Append the next names of the folder; returns their length, or -1. */
static long read_more(int folder, listing *list) {
    long count = huai_system(SYS_getdents64, (long)folder, list->names + list->length,
                             (long)(list->space - list->length), 0L, 0L, 0L);
    list->length += count > 0 ? (size_t)count : 0;
    return count;
}

/* Read all names of a folder, in one call if possible; false with `errno` if that fails. */
static bool read_names(int folder, listing *list) {
    long more = 1;
    int attempts = 0;
    while (more > 0) {
        if (list->space - list->length < ENTRY && !grow(list)) {
            return false;
        }
        /* After the last attempt, read the rest by further calls. */
        if (attempts < ATTEMPTS) {
            list->length = 0;
            if (lseek(folder, 0, SEEK_SET) != 0 || read_more(folder, list) < 0) {
                return false;
            }
            attempts += list->space - list->length >= ENTRY;
        }
        more = list->space - list->length < ENTRY ? 1 : read_more(folder, list);
    }
    return more == 0;
}

static void release(listing *list) {
    int saved = errno;
    if (list != NULL) {
        free(list->names);
        free(list);
    }
    errno = saved;
}

/* Return the place of a stream's listing in the list; it holds NULL without one. */
static listing **place_of(DIR *stream) {
    listing **place = &listings;
    while (*place != NULL && (*place)->stream != stream) {
        place = &(*place)->next;
    }
    return place;
}

typedef DIR *(*folder_opener)(int);
typedef struct dirent *(*folder_reader)(DIR *);
typedef int (*folder_closer)(DIR *);

EXPORT DIR *fdopendir(int folder) {
    folder_opener next;
    *(void **)&next = huai_next("fdopendir");
    if (!huai_bound()) {
        return next(folder);
    }
    listing *list = calloc(1, sizeof *list);
    DIR *stream = list != NULL && read_names(folder, list) ? next(folder) : NULL;
    if (stream == NULL) {
        release(list);
        return NULL;
    }
    list->stream = stream;
    list->next = listings;
    listings = list;
    return stream;
}

static struct dirent *next_entry(DIR *stream, const char *symbol) {
    listing *list = *place_of(stream);
    if (list == NULL) {
        folder_reader next;
        *(void **)&next = huai_next(symbol);
        return next(stream);
    }
    if (list->position >= list->length) {
        return NULL;
    }
    struct dirent *entry = (void *)(list->names + list->position);
    list->position += entry->d_reclen;
    return entry;
}

EXPORT struct dirent *readdir(DIR *stream) {
    return next_entry(stream, "readdir");
}

/* With 64-bit files and the kernel's layout, both structures are the same. */
EXPORT struct dirent64 *readdir64(DIR *stream) {
    return (struct dirent64 *)next_entry(stream, "readdir64");
}

EXPORT int closedir(DIR *stream) {
    listing **place = place_of(stream);
    listing *list = *place;
    if (list != NULL) {
        *place = list->next;
        release(list);
    }
    folder_closer next;
    *(void **)&next = huai_next("closedir");
    return next(stream);
}
