#define _GNU_SOURCE
#include "directory.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leaf.h"
#include "names.h"
#include "opening.h"

#define READINGS 4 /* of a directory that changes meanwhile: the first and three more */

void scratch_free(struct scratch *scratch)
{
    struct buffer *buffers[] = {&scratch->path,       &scratch->raw,      &scratch->names,
                                &scratch->frame,      &scratch->problems, &scratch->children,
                                &scratch->identities, NULL};
    for (struct buffer **each = buffers; *each; each++)
        buffer_free(*each);
    free(scratch->entries);
    *scratch = (struct scratch){0};
}

static void relax(struct scratch *scratch)
{
    buffer_relax(&scratch->names);
    buffer_relax(&scratch->identities);
    buffer_relax(&scratch->problems);
    names_relax(scratch);
}

/* Begin the frame again: header, path and, for a listing, the directory's own attributes. */
static bool begin_frame(const struct tree *tree, struct scratch *scratch, const struct stat *status)
{
    struct frame_header header = {0};
    scratch->frame.used = scratch->identities.used = scratch->problems.used = 0;
    scratch->children.used = 0;
    scratch->skipped = scratch->hardlinks = scratch->unreadable = 0;
    if (!buffer_append(&scratch->frame, &header, sizeof header) ||
        !buffer_append(&scratch->frame, scratch->path.data, scratch->directory_length))
        return false;
    return !status || put_directory(tree, scratch, status);
}

/* Fill in the header of a frame whose attributes begin at `attributes` and leaves at `leaves`;
 * `status` is NULL where nothing is known of the directory. */
static int finish_frame(struct scratch *scratch, int reason, const struct stat *status,
                        size_t attributes, size_t leaves)
{
    struct frame_header header = {
        .leaves = htole64(scratch->frame.used - leaves),
        .identities = htole64(scratch->identities.used),
        .problems = htole64(scratch->problems.used),
        .device = status ? htole64(status->st_dev) : 0,
        .inode = status ? htole64(status->st_ino) : 0,
        .reason = (int32_t)htole32((uint32_t)reason),
        .path = htole32((uint32_t)scratch->directory_length),
        .attributes = htole32((uint32_t)(leaves - attributes)),
        .skipped = htole32(scratch->skipped),
        .hardlinks = htole32(scratch->hardlinks),
        .unreadable = htole32(scratch->unreadable),
    };
    if (!buffer_append(&scratch->frame, scratch->identities.data, scratch->identities.used) ||
        !buffer_append(&scratch->frame, scratch->problems.data, scratch->problems.used))
        return ENOMEM;
    memcpy(scratch->frame.data, &header, sizeof header);
    return 0;
}

static int give_up(const struct tree *tree, struct scratch *scratch, int reason)
{
    if (reason == ENOMEM || !begin_frame(tree, scratch, NULL))
        return ENOMEM;
    if (reason == ENOENT) {
        scratch->frame.used = 0;
        return 0;
    }
    return finish_frame(scratch, reason, NULL, scratch->frame.used, scratch->frame.used);
}

static bool same_time(const struct stat *one, const struct stat *other)
{
    return one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* One reading of an open directory: 0, an errno or a REASON_. */
static int read_once(const struct tree *tree, struct scratch *scratch, int descriptor,
                     struct stat *status)
{
    if (!begin_frame(tree, scratch, status))
        return ENOMEM;
    size_t attributes = sizeof(struct frame_header) + scratch->directory_length;
    size_t leaves = scratch->frame.used;
    if (!tree->options->one_file_system || status->st_dev == tree->device) {
        if (lseek(descriptor, 0, SEEK_SET) < 0)
            return errno;
        int reason = read_names(tree, scratch, descriptor);
        if (!reason)
            reason = put_leaves(tree, scratch, descriptor, leaves);
        if (reason)
            return reason;
        struct stat before = *status;
        if (fstat(descriptor, status))
            return errno;
        if (!same_time(&before, status))
            return REASON_KEEPS_CHANGING;
    }
    return finish_frame(scratch, 0, status, attributes, leaves);
}

static int read_open(const struct tree *tree, struct scratch *scratch, int descriptor)
{
    struct stat status;
    if (fstat(descriptor, &status))
        return errno;
    int reason = REASON_KEEPS_CHANGING;
    for (int i = 0; i < READINGS && reason == REASON_KEEPS_CHANGING; i++)
        reason = read_once(tree, scratch, descriptor, &status);
    return reason;
}

int read_directory(const struct tree *tree, struct scratch *scratch)
{
    int descriptor = open_directory(tree->root, (const char *)scratch->path.data, tree->quick);
    if (descriptor < 0)
        return give_up(tree, scratch, errno);
    int reason = read_open(tree, scratch, descriptor);
    close(descriptor);
    relax(scratch);
    return reason ? give_up(tree, scratch, reason) : 0;
}
