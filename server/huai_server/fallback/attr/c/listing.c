#define _GNU_SOURCE
#include "listing.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MODE 0644
#define SYMLINK_MODE 0777
#define NANOSECOND_DIGITS 9

struct owner_number {
    char *field;
    uint32_t number;
};

static struct owner_number *find(const struct owner_numbers *owners, const char *field,
                                 size_t length)
{
    for (size_t i = 0; i < owners->count; i++)
        if (!strncmp(owners->known[i].field, field, length) && !owners->known[i].field[length])
            return owners->known + i;
    return NULL;
}

int owner_learn(struct owner_numbers *owners, const char *field, uint32_t number)
{
    struct owner_number *known = find(owners, field, strlen(field));
    if (!known) {
        size_t size = (owners->count + 1) * sizeof *owners->known;
        struct owner_number *larger = realloc(owners->known, size);
        char *copy = larger ? strdup(field) : NULL;
        owners->known = larger ? larger : owners->known;
        if (!copy)
            return ENOMEM;
        known = owners->known + owners->count++;
        known->field = copy;
    }
    known->number = number;
    return 0;
}

void owners_forget(struct owner_numbers *owners)
{
    for (size_t i = 0; i < owners->count; i++)
        free(owners->known[i].field);
    free(owners->known);
    *owners = (struct owner_numbers){0};
}

static int digit(char spelled)
{
    return spelled >= '0' && spelled <= '9' ? spelled - '0'
           : spelled >= 'a' && spelled <= 'f' ? spelled - 'a' + 10
                                              : -1;
}

/* Undo the escapes of what ends before a tab or the end of the line; its length, or -1. */
static int take_text(const char **at, char *to, size_t room)
{
    size_t length = 0;
    for (; **at && **at != '\t' && **at != '\n'; ++*at) {
        if (length == room)
            return -1;
        to[length] = **at;
        if (**at == '\\') {
            if ((*at)[1] != 'x' || digit((*at)[2]) < 0 || digit((*at)[3]) < 0)
                return -1;
            to[length] = (char)(digit((*at)[2]) * 16 + digit((*at)[3]));
            *at += 3;
        }
        if (!to[length++])
            return -1;
    }
    to[length] = 0;
    return (int)length;
}

static bool is_name(const char *name, int length)
{
    return length > 0 && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static bool take_number(const char **at, int64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)**at) && !(**at == '-' && isdigit((unsigned char)(*at)[1])))
        return false;
    errno = 0;
    *value = strtoll(*at, &end, 10);
    *at = end;
    return !errno;
}

static bool take_time(const char **at, struct timespec *time)
{
    int64_t seconds;
    long rest = 0;
    if (!take_number(at, &seconds))
        return false;
    if (**at == '.') {
        ++*at;
        for (int i = 0; i < NANOSECOND_DIGITS; i++) {
            bool more = isdigit((unsigned char)**at);
            rest = rest * 10 + (more ? **at - '0' : 0);
            *at += more;
        }
    }
    *time = (struct timespec){seconds, rest};
    return true;
}

/* `directory` and a path seen from it, made one; false if that leads out or is too long. */
static bool resolve(const char *directory, char *path)
{
    size_t above = strlen(directory), skipped = 0, rest;
    while (!strncmp(path + skipped, "../", 3)) {
        const char *slash = memrchr(directory, '/', above);
        if (!above)
            return false;
        above = slash ? (size_t)(slash - directory) : 0;
        skipped += 3;
    }
    rest = strlen(path + skipped);
    size_t before = above ? above + 1 : 0;
    if (!rest || before + rest > PATH_BYTES)
        return false;
    memmove(path + before, path + skipped, rest + 1);
    memcpy(path, directory, above);
    if (above)
        path[above] = '/';
    return true;
}

static bool take_owner(const struct lines *lines, const char **at, uint32_t *number)
{
    size_t length = strcspn(*at, "\t\n");
    const struct owner_number *known = find(lines->owners, *at, length);
    *at += length;
    if (known)
        *number = known->number;
    return known != NULL;
}

static bool take_field(struct lines *lines, const char **at, struct step *step)
{
    struct attributes *attributes = &step->attributes;
    char *end;
    switch (**at) {
    case 'm':
        attributes->mode = (mode_t)strtoul(*at + 1, &end, 8) & 07777;
        *at = end;
        return true;
    case 'u':
        return take_owner(lines, at, &attributes->uid);
    case 'g':
        return take_owner(lines, at, &attributes->gid);
    case 'h':
        ++*at;
        step->record.operation = LINK;
        step->other = lines->other;
        return take_text(at, lines->other, PATH_BYTES) > 0 &&
               resolve(lines->directory, lines->other);
    default:
        *at += strcspn(*at, "\t\n"); /* a later version's, which may be ignored */
        return true;
    }
}

static bool take_line(struct lines *lines, const char **at, struct step *step)
{
    struct attributes *attributes = &step->attributes;
    int length = take_text(at, lines->name, NAME_BYTES);
    if (!is_name(lines->name, length) || *(*at)++ != '\t')
        return false;
    step->record.operation = **at == '>' ? SYMLINK : FILE_;
    attributes->mode = **at == '>' ? SYMLINK_MODE : FILE_MODE;
    if (**at == '>') {
        ++*at;
        step->other = lines->other;
        if (take_text(at, lines->other, PATH_BYTES) <= 0)
            return false;
    } else if (!take_number(at, &step->record.size) || step->record.size < 0) {
        return false;
    }
    if (*(*at)++ != '\t' || !take_time(at, &attributes->mtime))
        return false;
    while (**at == '\t') {
        ++*at;
        if (!take_field(lines, at, step))
            return false;
    }
    return *(*at)++ == '\n';
}

int lines_next(struct lines *lines, struct step *step)
{
    if (!*lines->at)
        return lines->at == lines->end ? ENODATA : EBADMSG;
    step->name = lines->name;
    step->other = NULL;
    step->record.size = 0;
    step->attributes.uid = lines->uid;
    step->attributes.gid = lines->gid;
    if (!take_line(lines, &lines->at, step))
        return EBADMSG;
    if (lines->uid == UINT32_MAX && lines->gid == UINT32_MAX)
        step->attributes.uid = step->attributes.gid = UINT32_MAX;
    return 0;
}
