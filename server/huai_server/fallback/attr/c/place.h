/* Directories that are worked in: opened safely, and left as they were found. */
#ifndef HUAI_PLACE_H
#define HUAI_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#define OWNER_MAY_ALL 0700u /* what an unprivileged owner needs to work in a directory */

/* The tree that all is done in. */
struct ground {
    int root;
    bool quick;      /* `opening_is_quick` */
    bool privileged; /* permissions do not matter */
    bool keeps;      /* directories keep their times, whatever comes and goes in them */
};

struct place {
    int descriptor; /* -1: closed */
    struct stat before;
    bool keeps, loosened;
};

/* Go to the directory at `path`, "" being the root.  0 or an errno. */
int place_open(const struct ground *ground, const char *path, struct place *place);

/* Go to the directory above the last name of `path`, which `name` is set to.  0 or an errno. */
int place_above(const struct ground *ground, const char *path, const char **name,
                struct place *place);

/* Give it back its mode and times, if it keeps them, and close it.  0 or an errno. */
int place_close(struct place *place);

#endif
