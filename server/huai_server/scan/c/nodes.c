#include "nodes.h"

#include <stdlib.h>
#include <string.h>

struct node *node_make(struct node *parent, const char *name, size_t length)
{
    size_t above = parent && parent->length ? parent->length + 1u : 0;
    struct node *node = malloc(sizeof *node + above + length + 1);
    if (!node)
        return NULL;
    *node = (struct node){.parent = parent, .length = (uint32_t)(above + length)};
    if (above)
        memcpy(node->path, parent->path, above); /* with the NUL at its end */
    memcpy(node->path + above, name, length);
    node->path[above + length] = 0;
    return node;
}

bool node_queue_next(struct node *parent, struct queue *queue)
{
    if (parent->next_name == parent->names.used)
        return true;
    const char *name = (const char *)parent->names.data + parent->next_name;
    size_t length = strlen(name);
    struct node *node = node_make(parent, name, length);
    if (!node || !queue_add(queue, node)) {
        free(node);
        return false;
    }
    parent->next_name += length + 1;
    if (parent->last)
        parent->last->sibling = node;
    else
        parent->first = node;
    parent->last = node;
    return true;
}

void node_unlink(struct node *node)
{
    struct node *parent = node->parent;
    if (!parent)
        return;
    parent->first = node->sibling;
    if (!parent->first)
        parent->last = NULL;
}

void node_free(struct node *node)
{
    struct node *stop = node ? node->parent : NULL;
    while (node != stop) {
        if (node->first) {
            struct node *child = node->first;
            node->first = child->sibling;
            node = child;
            continue;
        }
        struct node *parent = node->parent;
        buffer_free(&node->names);
        buffer_free(&node->frame);
        free(node);
        node = parent;
    }
}

static bool before(const struct node *one, const struct node *other)
{
    size_t shorter = one->length < other->length ? one->length : other->length;
    int order = memcmp(one->path, other->path, shorter);
    return order ? order < 0 : one->length < other->length;
}

bool queue_add(struct queue *queue, struct node *node)
{
    if (queue->count == queue->room) {
        size_t room = queue->room ? queue->room * 2 : 64;
        struct node **nodes = realloc(queue->nodes, room * sizeof *nodes);
        if (!nodes)
            return false;
        queue->nodes = nodes;
        queue->room = room;
    }
    size_t at = queue->count++;
    while (at && before(node, queue->nodes[(at - 1) / 2])) {
        queue->nodes[at] = queue->nodes[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->nodes[at] = node;
    return true;
}

struct node *queue_take(struct queue *queue)
{
    struct node *first = queue->nodes[0], *moved = queue->nodes[--queue->count];
    size_t at = 0;
    for (size_t child = 1; child < queue->count; child = 2 * at + 1) {
        if (child + 1 < queue->count && before(queue->nodes[child + 1], queue->nodes[child]))
            child++;
        if (!before(queue->nodes[child], moved))
            break;
        queue->nodes[at] = queue->nodes[child];
        at = child;
    }
    queue->nodes[at] = moved;
    return first;
}
