/* The names of one directory, read with few system calls and sorted by their bytes. */
#ifndef HUAI_NAMES_H
#define HUAI_NAMES_H

#include "directory.h"

struct name {
    uint64_t key;    /* the first eight bytes, so that sorting seldom looks further */
    size_t offset;   /* in `scratch->names`, NUL-terminated */
    uint32_t length;
    unsigned char type; /* DT_* as the directory says */
};

/* Fill `scratch->entries` with what is not left out.  0, an errno, ENOMEM. */
int read_names(const struct tree *tree, struct scratch *scratch, int descriptor);

/* Give memory back after an exceptional directory. */
void names_relax(struct scratch *scratch);

/* The path of one entry, alive until the next call; NULL if there is no memory. */
const char *entry_path(struct scratch *scratch, const char *name, size_t length);

#endif
