/* Looking at the entries of one directory and writing their lines. */
#ifndef HUAI_LEAF_H
#define HUAI_LEAF_H

#include <sys/stat.h>

#include "directory.h"

/* Append the attributes of the directory itself; false if there is no memory. */
bool put_directory(const struct tree *tree, struct scratch *scratch, const struct stat *status);

/* Append a line for every file and symlink of `scratch->entries` after `leaves`; collect
 * identities, problems and subdirectories.  0, ENOMEM or REASON_TOO_LARGE. */
int put_leaves(const struct tree *tree, struct scratch *scratch, int descriptor, size_t leaves);

#endif
