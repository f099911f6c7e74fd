/* Making one entry: complete, but for a directory that is still to be filled. */
#ifndef HUAI_ENTRY_H
#define HUAI_ENTRY_H

#include "attributes.h"
#include "maker.h"
#include "place.h"

/* A record, taken apart. */
struct step {
    struct record record;
    const char *name, *other;
    struct attributes attributes;
};

/* Make what `step` says as `name` in the open `directory`.  0 or an errno. */
int entry_make(const struct ground *ground, int directory, const char *name,
               const struct step *step);

#endif
