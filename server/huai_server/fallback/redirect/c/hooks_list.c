/* Listing a directory as it is at one moment.
 *
 * A tmpfs moves an entry that an update replaces to another place in its directory: whoever reads
 * on meets it twice or never, and a client would delete what it did not meet.  The kernel locks the
 * directory for one call, so that all names are read by one, however large its buffer has to be. */

#include "redirect.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A signal cuts a call short, and some file systems do so each time. */
enum { ATTEMPTS = 4 };

/* The first buffer, and more than any entry takes. */
enum { SPACE = 1 << 16, ENTRY = 512 };

/* The names that a stream has yet to give, as the kernel gave them; rsync has one thread. */
typedef struct listing {
    struct listing *next;
    DIR *stream;
    char *names;
    size_t length;
    size_t space;
    size_t given;
} listing;

static listing *listings;

static bool grow(listing *found) {
    size_t space = found->space == 0 ? SPACE : 2 * found->space;
    char *names = realloc(found->names, space);
    if (names == NULL) {
        return false;
    }
    found->names = names;
    found->space = space;
    return true;
}

/* The names from where the descriptor is, after those that are here; their length, or -1. */
static long read_on(int folder, listing *found) {
    long count = huai_system(SYS_getdents64, (long)folder, found->names + found->length,
                             (long)(found->space - found->length), 0L, 0L, 0L);
    found->length += count > 0 ? (size_t)count : 0;
    return count;
}

static bool read_names(int folder, listing *found) {
    long more = 1;
    int attempts = 0;
    while (more > 0) {
        if (found->space - found->length < ENTRY && !grow(found)) {
            return false;
        }
        /* After the last attempt the rest is read as well. */
        if (attempts < ATTEMPTS) {
            found->length = 0;
            if (lseek(folder, 0, SEEK_SET) != 0 || read_on(folder, found) < 0) {
                return false;
            }
            attempts += found->space - found->length >= ENTRY;
        }
        more = found->space - found->length < ENTRY ? 1 : read_on(folder, found);
    }
    return more == 0;
}

static void forget(listing *found) {
    int kept = errno;
    if (found != NULL) {
        free(found->names);
        free(found);
    }
    errno = kept;
}

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
    listing *found = calloc(1, sizeof *found);
    DIR *stream = found != NULL && read_names(folder, found) ? next(folder) : NULL;
    if (stream == NULL) {
        forget(found);
        return NULL;
    }
    found->stream = stream;
    found->next = listings;
    listings = found;
    return stream;
}

static struct dirent *next_entry(DIR *stream, const char *symbol) {
    listing *found = *place_of(stream);
    if (found == NULL) {
        folder_reader next;
        *(void **)&next = huai_next(symbol);
        return next(stream);
    }
    if (found->given >= found->length) {
        return NULL;
    }
    struct dirent *entry = (void *)(found->names + found->given);
    found->given += entry->d_reclen;
    return entry;
}

EXPORT struct dirent *readdir(DIR *stream) {
    return next_entry(stream, "readdir");
}

/* With 64-bit files, and the kernel's own layout, these are the same. */
EXPORT struct dirent64 *readdir64(DIR *stream) {
    return (struct dirent64 *)next_entry(stream, "readdir64");
}

EXPORT int closedir(DIR *stream) {
    listing **place = place_of(stream);
    listing *found = *place;
    if (found != NULL) {
        *place = found->next;
        forget(found);
    }
    folder_closer next;
    *(void **)&next = huai_next("closedir");
    return next(stream);
}
