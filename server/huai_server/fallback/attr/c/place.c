#define _GNU_SOURCE
#include "place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attributes.h"
#include "opening.h"

int place_open(const struct ground *ground, const char *path, struct place *place)
{
    *place = (struct place){.descriptor = open_directory(ground->root, path, ground->quick)};
    if (place->descriptor < 0)
        return errno;
    if (!ground->keeps)
        return 0;
    if (fstat(place->descriptor, &place->before))
        return errno;
    place->keeps = true;
    if (ground->privileged || (place->before.st_mode & OWNER_MAY_ALL) == OWNER_MAY_ALL)
        return 0;
    place->loosened = true;
    return fchmod(place->descriptor, (place->before.st_mode & 07777) | OWNER_MAY_ALL) ? errno : 0;
}

int place_above(const struct ground *ground, const char *path, const char **name,
                struct place *place)
{
    const char *slash = strrchr(path, '/');
    char *above = strndup(path, slash ? (size_t)(slash - path) : 0);
    *name = slash ? slash + 1 : path;
    int error = above ? place_open(ground, above, place) : ENOMEM;
    free(above);
    return error;
}

int place_close(struct place *place)
{
    int error = 0;
    if (place->descriptor < 0)
        return 0;
    if (place->loosened && fchmod(place->descriptor, place->before.st_mode & 07777))
        error = errno;
    if (place->keeps) {
        int failed = set_time(place->descriptor, place->before.st_mtim);
        error = error ? error : failed;
    }
    close(place->descriptor);
    place->descriptor = -1;
    return error;
}
