#define _GNU_SOURCE
#include "names.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"

#define RAW_BYTES (64u << 10)
#define NAME_LIMIT 255
#define RELAXED (1u << 14)

/* What getdents64 returns (man 2 getdents). */
struct raw_entry {
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};

void names_relax(struct scratch *scratch)
{
    if (scratch->entry_room > RELAXED) {
        free(scratch->entries);
        scratch->entries = NULL;
        scratch->entry_room = 0;
    }
}

const char *entry_path(struct scratch *scratch, const char *name, size_t length)
{
    struct buffer *path = &scratch->path;
    path->used = scratch->directory_length;
    bool complete = (!path->used || buffer_append(path, "/", 1)) &&
                    buffer_append(path, name, length) && buffer_append(path, "", 1);
    path->used = scratch->directory_length;
    return complete ? (const char *)path->data : NULL;
}

static int add(struct scratch *scratch, const char *name, size_t length, unsigned char type)
{
    if (scratch->entry_count == scratch->entry_room) {
        size_t room = scratch->entry_room ? scratch->entry_room * 2 : 256;
        struct name *entries = realloc(scratch->entries, room * sizeof *entries);
        if (!entries)
            return ENOMEM;
        scratch->entries = entries;
        scratch->entry_room = room;
    }
    uint64_t key = 0;
    memcpy(&key, name, length < sizeof key ? length : sizeof key);
    scratch->entries[scratch->entry_count++] =
        (struct name){be64toh(key), scratch->names.used, (uint32_t)length, type};
    return buffer_append(&scratch->names, name, length + 1) ? 0 : ENOMEM;
}

static int consider(const struct tree *tree, struct scratch *scratch, const struct raw_entry *entry)
{
    const char *name = entry->name;
    if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
        return 0;
    size_t length = strlen(name);
    if (entry->type != DT_UNKNOWN) {
        const char *path = entry_path(scratch, name, length);
        if (!path)
            return ENOMEM;
        if (left_out(tree->options, path, name, entry->type == DT_DIR))
            return 0;
    }
    size_t above = scratch->directory_length ? scratch->directory_length + 1 : 0;
    if (length > NAME_LIMIT || above + length > tree->options->path_bytes) {
        scratch->skipped++;
        return 0;
    }
    return add(scratch, name, length, entry->type);
}

static int compare(const void *left, const void *right, void *names)
{
    const struct name *one = left, *other = right;
    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    size_t shorter = one->length < other->length ? one->length : other->length;
    const char *text = names;
    int order = memcmp(text + one->offset, text + other->offset, shorter);
    return order ? order : (one->length > other->length) - (one->length < other->length);
}

int read_names(const struct tree *tree, struct scratch *scratch, int descriptor)
{
    scratch->names.used = scratch->raw.used = scratch->entry_count = 0;
    if (!buffer_reserve(&scratch->raw, RAW_BYTES))
        return ENOMEM;
    for (;;) {
        long got = syscall(SYS_getdents64, descriptor, scratch->raw.data, scratch->raw.room);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        for (long at = 0; at < got;) {
            const struct raw_entry *entry = (const void *)(scratch->raw.data + at);
            int error = consider(tree, scratch, entry);
            if (error)
                return error;
            at += entry->length;
        }
    }
    if (scratch->entry_count > 1)
        qsort_r(scratch->entries, scratch->entry_count, sizeof *scratch->entries, compare,
                scratch->names.data);
    return 0;
}
