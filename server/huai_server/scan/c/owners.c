#include "owners.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 255
#define ANSWER_MAX (16u << 20) /* a group may list thousands of members */

void owners_init(struct owner_table *table)
{
    memset(table, 0, sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
}

static void free_all(struct owner **buckets)
{
    for (size_t i = 0; i < 256; i++)
        while (buckets[i]) {
            struct owner *owner = buckets[i];
            buckets[i] = owner->next;
            free(owner);
        }
}

void owners_free(struct owner_table *table)
{
    free_all(table->users);
    free_all(table->groups);
    buffer_free(&table->scratch);
    pthread_mutex_destroy(&table->lock);
}

static int ask(struct buffer *scratch, char kind, uint32_t id, const char **name)
{
    char *data = (char *)scratch->data;
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;
    int error = kind == 'u' ? getpwuid_r(id, &user, data, scratch->room, &found_user)
                            : getgrgid_r(id, &group, data, scratch->room, &found_group);
    *name = found_user ? user.pw_name : found_group ? group.gr_name : NULL;
    return error;
}

/* The name in `scratch`, or NULL if none is known.  False, and why in `failure`, if nobody could be
 * asked: an id must not take the place of its name because the machine is short of something, or a
 * name service is down.  Any other answer than those that getpwuid_r(3) takes for "not found" is
 * such a failure. */
static bool look_up(struct owner_table *table, char kind, uint32_t id, const char **name)
{
    struct buffer *scratch = &table->scratch;
    if (!buffer_reserve(scratch, 4096))
        return false;
    int error;
    while ((error = ask(scratch, kind, id, name)) == ERANGE && scratch->room < ANSWER_MAX)
        if (!buffer_reserve(scratch, scratch->room + 1))
            return false;
    bool answered = *name || !error || error == ENOENT || error == ESRCH || error == EBADF ||
                    error == EPERM;
    if (!answered)
        table->failure = error;
    return answered;
}

static struct owner *make(struct owner_table *table, char kind, uint32_t id)
{
    const char *name = NULL;
    char number[16];
    if (!look_up(table, kind, id, &name))
        return NULL;
    size_t length = name ? strlen(name) : 0;
    if (!length || length > NAME_BYTES || *name == '#') {
        length = (size_t)snprintf(number, sizeof number, "#%u", id);
        name = number;
    }
    struct owner *owner = malloc(sizeof *owner + 2 + 4 * length);
    if (!owner)
        return NULL;
    *owner = (struct owner){.id = id};
    if (strcmp(name, "root") == 0)
        return owner;
    owner->field[0] = '\t';
    owner->field[1] = (unsigned char)kind;
    owner->length = (uint32_t)(put_escaped(owner->field + 2, name, length) - owner->field);
    return owner;
}

static const struct owner *find(struct owner_table *table, char kind, uint32_t id)
{
    struct owner **bucket = (kind == 'u' ? table->users : table->groups) + id % 256;
    pthread_mutex_lock(&table->lock);
    struct owner *owner = *bucket;
    while (owner && owner->id != id)
        owner = owner->next;
    if (!owner) {
        owner = make(table, kind, id);
        if (owner) {
            owner->next = *bucket;
            *bucket = owner;
        }
    }
    pthread_mutex_unlock(&table->lock);
    return owner;
}

int owners_failure(struct owner_table *table)
{
    pthread_mutex_lock(&table->lock);
    int failure = table->failure;
    pthread_mutex_unlock(&table->lock);
    return failure;
}

const struct owner *owners_user(struct owner_table *table, uint32_t id)
{
    return find(table, 'u', id);
}

const struct owner *owners_group(struct owner_table *table, uint32_t id)
{
    return find(table, 'g', id);
}
