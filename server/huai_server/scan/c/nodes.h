/* Directories on their way through a scan, and the queue of those that wait, in tree order.
 *
 * A node is made only when the one before it in its directory is claimed, so that a directory
 * with a million subdirectories costs one node and their names.
 */
#ifndef HUAI_NODES_H
#define HUAI_NODES_H

#include <stdbool.h>

#include "buffer.h"

enum state { WAITING, RUNNING, DONE };

struct node {
    struct node *parent;
    struct node *sibling;     /* the next one of the same parent, if it was made */
    struct node *first, *last; /* subdirectories that were made and not consumed yet */
    struct buffer names;      /* of all subdirectories, each ended by NUL */
    size_t next_name;         /* in `names`: the first one without a node */
    struct buffer frame;      /* when DONE; empty if the directory vanished */
    enum state state;
    uint32_t length;
    char path[]; /* components separated by NUL, so that comparing bytes is tree order */
};

struct queue {
    struct node **nodes;
    size_t count, room;
};

/* A node for `name` below `parent` (NULL: the root); NULL if there is no memory. */
struct node *node_make(struct node *parent, const char *name, size_t length);

/* Put a node for the next subdirectory that has none into the queue; false if there is no memory. */
bool node_queue_next(struct node *parent, struct queue *queue);

/* Take the oldest subdirectory that was made out of its parent. */
void node_unlink(struct node *node);

/* Free the node and everything that still hangs below it. */
void node_free(struct node *node);

bool queue_add(struct queue *queue, struct node *node);

/* The first waiting node in tree order; the queue must not be empty. */
struct node *queue_take(struct queue *queue);

#endif
