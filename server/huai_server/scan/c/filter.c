#include "filter.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#define RANDOM 6 /* the random characters at the end of rsync's temporary names */

bool is_reserved(const char *name)
{
    return name[0] == '.' && name[1] == '~' && strcasecmp(name, ".~tmp~") == 0;
}

/* `.NAME.XXXXXX` */
static bool is_temporary(const char *name)
{
    size_t length = strlen(name);
    if (length < RANDOM + 3 || name[length - RANDOM - 1] != '.')
        return false;
    for (const char *at = name + length - RANDOM; *at; at++)
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') &&
            !(*at >= '0' && *at <= '9'))
            return false;
    return true;
}

bool is_unfinished(const char *name, unsigned mode)
{
    return name[0] == '.' && !(mode & 077) && is_temporary(name);
}

bool left_out(const struct huai_options *options, const char *path, const char *name,
              bool is_directory)
{
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
