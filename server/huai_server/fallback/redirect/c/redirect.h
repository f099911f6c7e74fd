/* The functions that the parts of the preload library share; binding.c explains the design. */

#ifndef HUAI_REDIRECT_H
#define HUAI_REDIRECT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))
/* A second name of a function in the same file. */
#define SAME_AS(name) EXPORT __attribute__((alias(name)))

/* The folder of this process's descriptors. */
#define OWN_FILES "/proc/self/fd/"

/* A path from readlink, or an argument of a hook. */
typedef struct {
    char text[2 * PATH_MAX];
} huai_path;

/* system.c: system calls that bypass the hooks of this library. */
long huai_system(long number, ...);
int huai_open_at(int folder, const char *path, int flags);
int huai_close(int descriptor);
void *huai_next(const char *symbol);

/* binding.c: the one module that this process serves. */
bool huai_bound(void);
int huai_bind(const char *path);
int huai_real_root(void);
int huai_generation_root(void);
bool huai_location(int descriptor, huai_path *path);
bool huai_generation(huai_path *path);
int huai_reopen(int descriptor, int flags);

/* translating.c: from the path in rsyncd.conf to the attr tree. */
int huai_translate(int folder, const char *path, huai_path *space, const char **translated);
int huai_enter(int folder, const char *path, huai_path *space, const char **translated);

/* confining.c: limits for a hijacked process inside its chroot. */
int huai_detach(int descriptor);
void huai_confine(void);
bool huai_confined(void);

/* boundary.c: without a chroot, no symlink leads out of the attr tree. */
void huai_forget_folder(void);
bool huai_may_follow(int folder, const char *path, bool follow);
bool huai_within(int descriptor);
bool huai_is_listed(const char *path);
const char *huai_below(const char *base, const char *path);

/* opening.c: open content instead of a hole. */
bool huai_refuses_write(int folder, const char *path, int flags);
int huai_redirect(int descriptor, int flags);

/* reading.c: detect content that changes while it is read. */
bool huai_watch(int descriptor, const struct stat *listed);
ssize_t huai_check_read(int descriptor, void *buffer, ssize_t count);
bool huai_same_content(const struct stat *one, const struct stat *other);

#endif
