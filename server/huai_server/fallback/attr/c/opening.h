/* Opening directories below a root without ever following a symlink. */
#ifndef HUAI_OPENING_H
#define HUAI_OPENING_H

#include <stdbool.h>

/* Whether the kernel resolves whole paths safely by itself (openat2, Linux 5.6). */
bool opening_is_quick(int root);

/* A descriptor of the directory `path` ("" is the root), or -1 and errno. */
int open_directory(int root, const char *path, bool quick);

#endif
