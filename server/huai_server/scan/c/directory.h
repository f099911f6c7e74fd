/* One directory: its names read and sorted, every leaf looked at, the result in one frame. */
#ifndef HUAI_DIRECTORY_H
#define HUAI_DIRECTORY_H

#include <sys/types.h>

#include "buffer.h"
#include "owners.h"
#include "scanner.h"

/* What all threads of a scan share and none of them changes. */
struct tree {
    const struct huai_options *options;
    struct owner_table *owners;
    int root;
    dev_t device;
    bool quick;
};

struct name;

/* What one thread needs for its work, kept from directory to directory. */
struct scratch {
    struct buffer path; /* of the directory, NUL-terminated */
    struct buffer raw, names, frame, identities, problems, children;
    struct name *entries;
    size_t entry_count, entry_room;
    size_t directory_length; /* of `path` without the entry's name */
    const struct owner *user, *group;
    uint32_t skipped, hardlinks, unreadable;
};

void scratch_free(struct scratch *scratch);

/* Read the directory that `scratch->path` names.  0 or ENOMEM.  Afterwards `frame` holds its frame
 * (nothing: it vanished) and `children` its subdirectories' names, sorted, each ended by NUL. */
int read_directory(const struct tree *tree, struct scratch *scratch);

#endif
