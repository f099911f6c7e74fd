/* System calls by their numbers, and the functions behind the hooks.
 *
 * This library exports `open`, `read` and so on, so calling them by name would call itself. */

#include "redirect.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long (*system_call)(long, ...);

/* Return the C library's own function of this name, or NULL. */
void *huai_next(const char *symbol) {
    return dlsym(RTLD_NEXT, symbol);
}

/* Make a system call, always with six arguments; returns -1 with `errno` if it fails. */
long huai_system(long number, ...) {
    static system_call next;
    if (next == NULL) {
        /* ISO C has no conversion from an object pointer to a function pointer. */
        *(void **)&next = huai_next("syscall");
    }
    va_list list;
    va_start(list, number);
    long values[6];
    for (int index = 0; index < 6; index++) {
        values[index] = va_arg(list, long);
    }
    va_end(list);
    if (next == NULL) {
        errno = ENOSYS;
        return -1;
    }
    return next(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

int huai_open_at(int folder, const char *path, int flags) {
    return (int)huai_system(SYS_openat, (long)folder, path, (long)flags, 0L, 0L, 0L);
}

/* Close a descriptor; `errno` stays as it was. */
int huai_close(int descriptor) {
    int saved = errno;
    int result = (int)huai_system(SYS_close, (long)descriptor, 0L, 0L, 0L, 0L, 0L);
    errno = saved;
    return result;
}
