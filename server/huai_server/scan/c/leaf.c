#define _GNU_SOURCE
#include "leaf.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "filter.h"
#include "names.h"

#define TARGET_BYTES 4095
#define BILLION 1000000000LL
/* Room for a line without its name and target. */
#define FIXED (64 + 2 * OWNER_FIELD)

/* Nanoseconds since the epoch; false, and the nearest value, if they do not fit. */
static bool nanoseconds(struct timespec time, int64_t *value)
{
    if (!__builtin_mul_overflow(time.tv_sec, BILLION, value) &&
        !__builtin_add_overflow(*value, time.tv_nsec, value) && *value != INT64_MIN)
        return true;
    *value = time.tv_sec < 0 ? -INT64_MAX : INT64_MAX;
    return false;
}

static struct timespec nearest(struct timespec time)
{
    int64_t value;
    if (nanoseconds(time, &value))
        return time;
    struct timespec edge = {value / BILLION, value % BILLION};
    if (edge.tv_nsec < 0)
        edge = (struct timespec){edge.tv_sec - 1, edge.tv_nsec + BILLION};
    return edge;
}

/* Mode, owner and group, where they are not the usual ones; NULL if there is no memory. */
static unsigned char *put_fields(const struct tree *tree, struct scratch *scratch,
                                 unsigned char *at, const struct stat *status, unsigned usual)
{
    at = put_mode(at, status->st_mode, usual);
    if (!tree->options->owners)
        return at;
    if (!scratch->user || scratch->user->id != status->st_uid)
        scratch->user = owners_user(tree->owners, status->st_uid);
    if (!scratch->group || scratch->group->id != status->st_gid)
        scratch->group = owners_group(tree->owners, status->st_gid);
    if (!scratch->user || !scratch->group)
        return NULL;
    at = put_bytes(at, scratch->user->field, scratch->user->length);
    return put_bytes(at, scratch->group->field, scratch->group->length);
}

static bool end_at(struct scratch *scratch, unsigned char *at)
{
    if (at)
        scratch->frame.used = (size_t)(at - scratch->frame.data);
    return at != NULL;
}

static bool put_problem(struct scratch *scratch, const void *text, uint32_t length, int reason)
{
    const uint32_t head[2] = {htole32((uint32_t)reason), htole32(length)};
    return buffer_append(&scratch->problems, head, sizeof head) &&
           buffer_append(&scratch->problems, text, length);
}

bool put_directory(const struct tree *tree, struct scratch *scratch, const struct stat *status)
{
    if (!buffer_reserve(&scratch->frame, FIXED))
        return false;
    unsigned char *at = scratch->frame.data + scratch->frame.used;
    at = put_mtime(at, nearest(status->st_mtim));
    if (!end_at(scratch, put_fields(tree, scratch, at, status, 0755)))
        return false;
    int64_t unused;
    return nanoseconds(status->st_mtim, &unused) || put_problem(scratch, "", 0, REASON_TIME);
}

static int add_problem(struct scratch *scratch, const struct name *name, int reason)
{
    const unsigned char *text = scratch->names.data + name->offset;
    return put_problem(scratch, text, name->length, reason) ? 0 : ENOMEM;
}

static int add_identity(struct scratch *scratch, const struct stat *status, size_t offset)
{
    int64_t mtime, ctime;
    nanoseconds(status->st_mtim, &mtime);
    nanoseconds(status->st_ctim, &ctime);
    uint32_t links = status->st_nlink > UINT32_MAX ? UINT32_MAX : (uint32_t)status->st_nlink;
    struct identity identity = {
        .device = htole64(status->st_dev),
        .inode = htole64(status->st_ino),
        .size = (int64_t)htole64((uint64_t)status->st_size),
        .mtime = (int64_t)htole64((uint64_t)mtime),
        .ctime = (int64_t)htole64((uint64_t)ctime),
        .links = htole32(links),
        .offset = htole32((uint32_t)offset),
        .mode = htole32(status->st_mode & 07777),
        .user = htole32(status->st_uid),
        .group = htole32(status->st_gid),
    };
    scratch->hardlinks |= links > 1;
    scratch->unreadable += !(status->st_mode & S_IROTH);
    return buffer_append(&scratch->identities, &identity, sizeof identity) ? 0 : ENOMEM;
}

/* One line; a file has no target. */
static int put_line(const struct tree *tree, struct scratch *scratch, const struct name *name,
                    const struct stat *status, const char *target, size_t target_length)
{
    if (!buffer_reserve(&scratch->frame, FIXED + 4 * (name->length + target_length)))
        return ENOMEM;
    unsigned char *at = scratch->frame.data + scratch->frame.used;
    at = put_escaped(at, scratch->names.data + name->offset, name->length);
    *at++ = '\t';
    if (target) {
        *at++ = '>';
        at = put_escaped(at, target, target_length);
    } else {
        at = put_decimal(at, (uint64_t)status->st_size);
    }
    *at++ = '\t';
    at = put_mtime(at, status->st_mtim);
    at = put_fields(tree, scratch, at, status, target ? 0777 : 0644);
    if (!at)
        return ENOMEM;
    *at++ = '\n';
    return end_at(scratch, at) ? 0 : ENOMEM;
}

static int put_symlink(const struct tree *tree, struct scratch *scratch, int descriptor,
                       const struct name *name, const struct stat *status)
{
    char target[TARGET_BYTES + 1];
    const char *text = (const char *)scratch->names.data + name->offset;
    ssize_t length = readlinkat(descriptor, text, target, sizeof target);
    if (length < 0)
        return errno == ENOENT ? 0 : add_problem(scratch, name, errno);
    if (length == 0 || length > TARGET_BYTES) {
        scratch->skipped++;
        return 0;
    }
    return put_line(tree, scratch, name, status, target, (size_t)length);
}

static int put_file(const struct tree *tree, struct scratch *scratch, const struct name *name,
                    const struct stat *status, size_t leaves)
{
    size_t offset = scratch->frame.used - leaves;
    if (offset > UINT32_MAX)
        return REASON_TOO_LARGE;
    int error = put_line(tree, scratch, name, status, NULL, 0);
    return error ? error : add_identity(scratch, status, offset);
}

static int add_child(struct scratch *scratch, const struct name *name)
{
    const unsigned char *text = scratch->names.data + name->offset;
    return buffer_append(&scratch->children, text, name->length + 1) ? 0 : ENOMEM;
}

/* Whether an entry that its type in the directory did not decide on is left out; -1: no memory. */
static int left_out_late(const struct tree *tree, struct scratch *scratch, const struct name *name,
                         bool is_directory)
{
    if (name->type != DT_UNKNOWN && !is_directory)
        return 0;
    const char *text = (const char *)scratch->names.data + name->offset;
    const char *path = entry_path(scratch, text, name->length);
    return path ? left_out(tree->options, path, text, is_directory) : -1;
}

static int look_at(const struct tree *tree, struct scratch *scratch, int descriptor,
                   const struct name *name, size_t leaves)
{
    struct stat status;
    const char *text = (const char *)scratch->names.data + name->offset;
    if (fstatat(descriptor, text, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT))
        return errno == ENOENT ? 0 : add_problem(scratch, name, errno);
    int out = left_out_late(tree, scratch, name, S_ISDIR(status.st_mode));
    if (out)
        return out < 0 ? ENOMEM : 0;
    if (is_reserved(text))
        return add_problem(scratch, name, REASON_RESERVED);
    if (S_ISDIR(status.st_mode))
        return add_child(scratch, name);
    if (S_ISREG(status.st_mode) && is_unfinished(text, status.st_mode))
        return add_problem(scratch, name, REASON_TEMPORARY);
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
        scratch->skipped++;
        return 0;
    }
    int64_t unused;
    if (!nanoseconds(status.st_mtim, &unused) || status.st_size < 0)
        return add_problem(scratch, name, REASON_OUT_OF_RANGE);
    return S_ISREG(status.st_mode) ? put_file(tree, scratch, name, &status, leaves)
                                   : put_symlink(tree, scratch, descriptor, name, &status);
}

/* Nothing is asked of an entry whose type and name in the directory already decide: where nobody
 * may pass through the directory, there would be no answer. */
static int put_entry(const struct tree *tree, struct scratch *scratch, int descriptor,
                     const struct name *name, size_t leaves)
{
    if (name->type != DT_UNKNOWN && is_reserved((const char *)scratch->names.data + name->offset))
        return add_problem(scratch, name, REASON_RESERVED);
    if (name->type == DT_DIR)
        return add_child(scratch, name);
    return look_at(tree, scratch, descriptor, name, leaves);
}

int put_leaves(const struct tree *tree, struct scratch *scratch, int descriptor, size_t leaves)
{
    const unsigned char *names = scratch->names.data;
    for (size_t i = 0; i < scratch->entry_count; i++) {
        const struct name *name = scratch->entries + i, *last = name - 1;
        if (i && name->key == last->key && name->length == last->length &&
            memcmp(names + name->offset, names + last->offset, name->length) == 0)
            continue; /* a damaged directory may list a name twice */
        int reason = put_entry(tree, scratch, descriptor, name, leaves);
        if (reason)
            return reason;
    }
    return 0;
}
