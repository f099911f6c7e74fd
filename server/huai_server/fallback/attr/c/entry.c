#define _GNU_SOURCE
#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opening.h"

static int fill_file(int descriptor, const struct step *step)
{
    if (step->record.size && ftruncate(descriptor, step->record.size))
        return errno;
    return set_attributes(descriptor, &step->attributes);
}

static int make_file(int directory, const char *name, const struct step *step)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int descriptor = openat(directory, name, flags, 0600);
    if (descriptor < 0)
        return errno;
    int error = fill_file(descriptor, step);
    close(descriptor);
    return error;
}

static int make_symlink(int directory, const char *name, const struct step *step)
{
    if (symlinkat(step->other, directory, name))
        return errno;
    return set_symlink_attributes(directory, name, &step->attributes);
}

static int make_link(const struct ground *ground, int directory, const char *name,
                     const struct step *step)
{
    struct stat status;
    const char *slash = strrchr(step->other, '/'), *leader = slash ? slash + 1 : step->other;
    char *above = strndup(step->other, slash ? (size_t)(slash - step->other) : 0);
    int from = above ? open_directory(ground->root, above, ground->quick) : -1;
    int error = from < 0 ? errno : 0;
    free(above);
    /* linkat gives a symlink a second name without a word. */
    if (!error && fstatat(from, leader, &status, AT_SYMLINK_NOFOLLOW))
        error = errno;
    if (!error && !S_ISREG(status.st_mode))
        error = EINVAL;
    if (!error && linkat(from, leader, directory, name, 0))
        error = errno;
    if (from >= 0)
        close(from);
    return error;
}

/* In the building folder with its attributes; elsewhere they come when all below it is there. */
static int make_directory(const struct ground *ground, int directory, const char *name,
                          const struct step *step)
{
    if (mkdirat(directory, name, OWNER_MAY_ALL))
        return errno;
    if (!ground->keeps)
        return 0;
    int made = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0)
        return errno;
    struct attributes first = step->attributes;
    first.mode |= ground->privileged ? 0 : OWNER_MAY_ALL; /* or it could not be renamed */
    int error = set_attributes(made, &first);
    close(made);
    return error;
}

int entry_make(const struct ground *ground, int directory, const char *name,
               const struct step *step)
{
    switch (step->record.operation) {
    case FILE_:
        return make_file(directory, name, step);
    case SYMLINK:
        return make_symlink(directory, name, step);
    case LINK:
        return make_link(ground, directory, name, step);
    default:
        return make_directory(ground, directory, name, step);
    }
}
