/* What a scan leaves out: the configured patterns, what is reserved, and what rsync has not finished
 * (`exclude.py` has the reasons, and parses the patterns). */
#ifndef HUAI_FILTER_H
#define HUAI_FILTER_H

#include <stdbool.h>

#include "scanner.h"

/* Whether the name is rsync's and huai's own, whatever it is the name of. */
bool is_reserved(const char *name);

/* Whether a regular file is one of rsync's temporary files. */
bool is_unfinished(const char *name, unsigned mode);

/* Whether a pattern leaves the entry out; `path` ends with `name`.  Expects the C locale in this thread. */
bool left_out(const struct huai_options *options, const char *path, const char *name,
              bool is_directory);

#endif
