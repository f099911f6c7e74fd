/* The leaves of a listing as they stand in a manifest (FORMAT.md, "Lines"), one after the other.
 *
 * Reads what this machine has committed.  It refuses what could do harm or has no meaning; that
 * each line is in its one canonical spelling is the business of `huai-server check`.
 */
#ifndef HUAI_LISTING_H
#define HUAI_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "entry.h"

#define NAME_BYTES 255
#define PATH_BYTES 4095

/* Numbers of owners, by what stands in a line: `u` or `g` and the escaped name. */
struct owner_numbers {
    struct owner_number *known;
    size_t count;
};

/* Remember one, or its new number; 0 or an errno. */
int owner_learn(struct owner_numbers *owners, const char *field, uint32_t number);
void owners_forget(struct owner_numbers *owners);

struct lines {
    const char *directory; /* the listing's path */
    const char *at, *end;  /* the next line; `end` is the text's NUL */
    uint32_t uid, gid;     /* where a line says nothing; both -1: whatever it says */
    const struct owner_numbers *owners;
    char name[NAME_BYTES + 1], other[PATH_BYTES + 1];
};

/* The next entry goes to `step`, whose names live in `lines` until the call after.
 * 0; ENODATA at the end; EBADMSG if the line makes no sense. */
int lines_next(struct lines *lines, struct step *step);

#endif
