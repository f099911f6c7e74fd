/* What a scan leaves out: rsync's leftovers and the configured patterns (`exclude.py` parses them). */
#ifndef HUAI_FILTER_H
#define HUAI_FILTER_H

#include <stdbool.h>

#include "scanner.h"

/* Whether the entry is left out; `path` ends with `name`.  Expects the C locale in this thread. */
bool left_out(const struct huai_options *options, const char *path, const char *name,
              bool is_directory);

#endif
