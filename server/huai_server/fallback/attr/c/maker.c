/* Entries of an attr tree.
 *
 * Rule to keep: every directory is opened from the root without following any symlink, and all
 * that is done is done to one name in it.  A tree that is not what the records expect gives an
 * error, and never a change somewhere else.
 */
#define _GNU_SOURCE
#include "maker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "entry.h"
#include "listing.h"
#include "opening.h"
#include "place.h"

#define EXCHANGE 2u         /* RENAME_EXCHANGE */
#define UNFINISHED "entry"  /* in the building folder: what is being made */

struct huai_maker {
    struct ground ground;
    int building; /* -1: entries are made in place */
    struct place current;
    struct owner_numbers owners;
    uint64_t unowned, displaced;
    char entered[PATH_BYTES + 1];
    char failure[PATH_BYTES + 1 + PATH_BYTES + 1]; /* the path at which it ended */
};

/* Remember what could not be done; `entered` is the directory that `name` is in. */
static int fail(struct huai_maker *maker, const char *entered, const char *name, int error)
{
    const char *between = *entered && *name ? "/" : "";
    if (error && !*maker->failure)
        snprintf(maker->failure, sizeof maker->failure, "%.*s%s%.*s", PATH_BYTES, entered, between,
                 PATH_BYTES, name);
    return error;
}

static int exchange(int from, const char *name, int to, const char *other)
{
    return syscall(SYS_renameat2, from, name, to, other, EXCHANGE) ? errno : 0;
}

/* What stands at a name that is needed, or needed no more, waits for its deletion elsewhere. */
static int displace(struct huai_maker *maker, int directory, const char *name)
{
    char away[32];
    snprintf(away, sizeof away, "old.%llu", (unsigned long long)maker->displaced++);
    return renameat(directory, name, maker->building, away) ? errno : 0;
}

static bool stands_in_the_way(int error)
{
    return error == EISDIR || error == ENOTDIR || error == ENOTEMPTY || error == EEXIST;
}

/* Put what was made to its place, whatever stands there: one step for whoever looks. */
static int publish(struct huai_maker *maker, const char *name)
{
    if (!renameat(maker->building, UNFINISHED, maker->current.descriptor, name))
        return 0;
    if (!stands_in_the_way(errno))
        return errno;
    int error = exchange(maker->building, UNFINISHED, maker->current.descriptor, name);
    return error ? error : displace(maker, maker->building, UNFINISHED);
}

static int make(struct huai_maker *maker, const struct step *step)
{
    if (maker->building < 0)
        return entry_make(&maker->ground, maker->current.descriptor, step->name, step);
    int error = entry_make(&maker->ground, maker->building, UNFINISHED, step);
    if (!error)
        error = publish(maker, step->name);
    /* rename(2) does nothing, and says so by no error, between two names of one file. */
    if (!error && step->record.operation == LINK)
        unlinkat(maker->building, UNFINISHED, 0);
    return error;
}

static int enter(struct huai_maker *maker, const struct step *step)
{
    int error = place_close(&maker->current);
    if (error)
        return fail(maker, "", maker->entered, error);
    snprintf(maker->entered, sizeof maker->entered, "%s", step->name);
    return place_open(&maker->ground, step->name, &maker->current);
}

/* All leaves of the directory entered. */
static int make_leaves(struct huai_maker *maker, const struct step *listing)
{
    if (!listing->record.other)
        return EINVAL;
    struct lines lines = {
        .directory = listing->name,
        .at = listing->other,
        .end = listing->other + listing->record.other - 1,
        .uid = listing->record.uid,
        .gid = listing->record.gid,
        .owners = &maker->owners,
    };
    struct step leaf = {.attributes = {.unowned = &maker->unowned}};
    for (;;) {
        int error = lines_next(&lines, &leaf);
        if (error == ENODATA)
            return 0;
        if (!error)
            error = make(maker, &leaf);
        if (error)
            return fail(maker, maker->entered, lines.name, error);
    }
}

static int change_directory(struct huai_maker *maker, const struct step *step)
{
    int left = place_close(&maker->current);
    if (left)
        return left;
    int directory = open_directory(maker->ground.root, step->name, maker->ground.quick);
    if (directory < 0)
        return errno;
    int error = set_attributes(directory, &step->attributes);
    close(directory);
    return error;
}

/* A leaf that stands at the new place goes away. */
static int rename_directory(struct huai_maker *maker, const struct place *from, const char *name,
                            const struct place *to, const char *other)
{
    if (!renameat(from->descriptor, name, to->descriptor, other))
        return 0;
    if (!stands_in_the_way(errno))
        return errno;
    int error = exchange(from->descriptor, name, to->descriptor, other);
    return error ? error : displace(maker, from->descriptor, name);
}

static int move(struct huai_maker *maker, const struct step *step)
{
    struct place from = {.descriptor = -1}, to = {.descriptor = -1};
    const char *name, *other;
    int error = place_close(&maker->current);
    if (!error)
        error = place_above(&maker->ground, step->name, &name, &from);
    if (!error)
        error = place_above(&maker->ground, step->other, &other, &to);
    if (!error)
        error = rename_directory(maker, &from, name, &to, other);
    int closed_to = place_close(&to);
    int closed_from = place_close(&from);
    error = error ? error : closed_to;
    return error ? error : closed_from;
}

static int take_away(struct huai_maker *maker, const struct step *step)
{
    if (!unlinkat(maker->current.descriptor, step->name, 0))
        return 0;
    if (errno != EISDIR)
        return errno;
    return displace(maker, maker->current.descriptor, step->name);
}

static int perform(struct huai_maker *maker, const struct step *step)
{
    switch (step->record.operation) {
    case ENTER:
        return enter(maker, step);
    case FILE_:
    case SYMLINK:
    case LINK:
    case DIRECTORY:
        return make(maker, step);
    case ATTRIBUTES:
        return change_directory(maker, step);
    case LEAVES:
        return make_leaves(maker, step);
    case OWNER:
        return owner_learn(&maker->owners, step->name, step->record.uid);
    case MOVE:
        return maker->building < 0 ? EINVAL : move(maker, step);
    case REMOVE:
        return maker->building < 0 ? EINVAL : take_away(maker, step);
    default:
        return EINVAL;
    }
}

/* The record at `at`; false if it is not whole. */
static bool read_step(struct huai_maker *maker, const char *at, size_t left, struct step *step)
{
    struct record *record = &step->record;
    if (left < sizeof *record)
        return false;
    memcpy(record, at, sizeof *record);
    size_t strings = (size_t)record->name + record->other;
    step->name = at + sizeof *record;
    step->other = step->name + record->name;
    if (!record->name || strings > left - sizeof *record || step->name[record->name - 1] ||
        (record->other && step->other[record->other - 1]))
        return false;
    step->attributes = (struct attributes){
        .uid = record->uid,
        .gid = record->gid,
        .mode = record->mode,
        .mtime = {record->seconds, record->nanoseconds},
        .unowned = &maker->unowned,
    };
    return true;
}

int huai_maker_apply(struct huai_maker *maker, const void *records, size_t length)
{
    struct step step;
    for (size_t at = 0; at < length;) {
        if (!read_step(maker, (const char *)records + at, length - at, &step))
            return EINVAL;
        bool inside = step.record.operation > ENTER && step.record.operation < ATTRIBUTES;
        int error = perform(maker, &step);
        if (error)
            return fail(maker, inside ? maker->entered : "", step.name, error);
        at += sizeof step.record + step.record.name + step.record.other;
    }
    return 0;
}

const char *huai_maker_failure(const struct huai_maker *maker)
{
    return maker->failure;
}

int huai_maker_leave(struct huai_maker *maker)
{
    return place_close(&maker->current);
}

uint64_t huai_maker_unowned(const struct huai_maker *maker)
{
    return maker->unowned;
}

static int open_folder(const char *path, int *descriptor)
{
    *descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *descriptor < 0 ? errno : 0;
}

struct huai_maker *huai_maker_open(const char *root, const char *building, int *error)
{
    struct huai_maker *maker = calloc(1, sizeof *maker);
    if (!maker) {
        *error = ENOMEM;
        return NULL;
    }
    *maker = (struct huai_maker){
        .ground = {.root = -1}, .building = -1, .current = {.descriptor = -1}};
    *error = open_folder(root, &maker->ground.root);
    maker->ground.keeps = building != NULL;
    if (!*error && building)
        *error = open_folder(building, &maker->building);
    if (*error) {
        huai_maker_close(maker);
        return NULL;
    }
    maker->ground.quick = opening_is_quick(maker->ground.root);
    maker->ground.privileged = geteuid() == 0;
    return maker;
}

void huai_maker_close(struct huai_maker *maker)
{
    place_close(&maker->current);
    owners_forget(&maker->owners);
    if (maker->building >= 0)
        close(maker->building);
    if (maker->ground.root >= 0)
        close(maker->ground.root);
    free(maker);
}
