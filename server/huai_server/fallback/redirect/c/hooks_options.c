/* A hook that reads the options of a client.
 *
 * With -H a client waits for ever if a file with hardlinks vanished, of which it has older copies:
 * rsync 3.0 to 3.5 then counts the other names as still in transfer.  It counts them only while it
 * gets the listing piece by piece (incremental recursion), so -H gets the whole listing first. */

#include "redirect.h"

#include <stdlib.h>
#include <string.h>

typedef void *(*parser)(const char *, int, const char **, const void *, unsigned int);

/* Return true if an argument is a group of letters with H; after `e` come no options. */
static bool asks_for_hardlinks(const char *argument) {
    return argument[0] == '-' && argument[1] != '-' && argument[strcspn(argument, "He")] == 'H';
}

EXPORT void *poptGetContext(const char *name, int count, const char **arguments,
                            const void *options, unsigned int flags);

void *poptGetContext(const char *name, int count, const char **arguments, const void *options,
                     unsigned int flags) {
    parser next;
    *(void **)&next = huai_next("poptGetContext");
    for (int index = 1; huai_bound() && index < count; index++) {
        /* It is used until the process ends. */
        const char **more = asks_for_hardlinks(arguments[index])
                                ? calloc((size_t)count + 2, sizeof *more)
                                : NULL;
        if (more != NULL) {
            more[0] = arguments[0];
            more[1] = "--no-inc-recursive";
            memcpy(more + 2, arguments + 1, ((size_t)count - 1) * sizeof *more);
            return next(name, count + 1, more, options, flags);
        }
    }
    return next(name, count, arguments, options, flags);
}
