/* Names of users and groups as fields of a line, each looked up once a scan.  Safe for threads. */
#ifndef HUAI_OWNERS_H
#define HUAI_OWNERS_H

#include <pthread.h>
#include <stdint.h>

#include "buffer.h"

/* "\tuNAME", "\tu#ID", or nothing for root: never longer than this. */
#define OWNER_FIELD (2 + 4 * 255)

struct owner {
    struct owner *next;
    uint32_t id;
    uint32_t length;
    unsigned char field[];
};

struct owner_table {
    pthread_mutex_t lock;
    struct owner *users[256], *groups[256];
    struct buffer scratch; /* what the C library needs for one answer */
    int failure;           /* an errno: somebody's name could not be looked up */
};

void owners_init(struct owner_table *table);
void owners_free(struct owner_table *table);

/* Why a name could not be looked up, an errno; 0 if none was refused. */
int owners_failure(struct owner_table *table);

/* The field of `id`, alive as long as the table; NULL if there is no memory, or a failure. */
const struct owner *owners_user(struct owner_table *table, uint32_t id);
const struct owner *owners_group(struct owner_table *table, uint32_t id);

#endif
