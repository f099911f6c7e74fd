#include "filter.h"

#include <fnmatch.h>
#include <string.h>

#define RANDOM 6 /* the random characters at the end of rsync's temporary names */

/* `.NAME.XXXXXX`; not if XXXXXX is a plain word or number, which a real name may end with. */
static bool is_temporary(const char *name)
{
    size_t length = strlen(name);
    if (length < RANDOM + 3 || name[0] != '.' || name[length - RANDOM - 1] != '.')
        return false;
    int lower = 0, digits = 0;
    for (const char *at = name + length - RANDOM; *at; at++) {
        if (*at >= 'a' && *at <= 'z')
            lower++;
        else if (*at >= '0' && *at <= '9')
            digits++;
        else if (*at < 'A' || *at > 'Z')
            return false;
    }
    return lower < RANDOM && digits < RANDOM;
}

bool left_out(const struct huai_options *options, const char *path, const char *name,
              bool is_directory)
{
    if (is_directory ? strcmp(name, ".~tmp~") == 0 : is_temporary(name))
        return true;
    for (size_t i = 0; i < options->pattern_count; i++) {
        const struct huai_pattern *pattern = options->patterns + i;
        if (pattern->directories && !is_directory)
            continue;
        if (pattern->anchored ? fnmatch(pattern->glob, path, FNM_PATHNAME) == 0
                              : fnmatch(pattern->glob, name, 0) == 0)
            return true;
    }
    return false;
}
