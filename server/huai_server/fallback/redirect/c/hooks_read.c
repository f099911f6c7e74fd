/* Hooks for all functions with which rsync reads content. */

#include "redirect.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t read_from(int descriptor, void *buffer, size_t size) {
    ssize_t count = huai_system(SYS_read, (long)descriptor, buffer, (long)size, 0L, 0L, 0L);
    return huai_check_read(descriptor, buffer, count);
}

static ssize_t read_at(int descriptor, void *buffer, size_t size, off_t offset) {
    ssize_t count =
        huai_system(SYS_pread64, (long)descriptor, buffer, (long)size, (long)offset, 0L, 0L);
    return huai_check_read(descriptor, buffer, count);
}

EXPORT ssize_t read(int descriptor, void *buffer, size_t size) {
    return read_from(descriptor, buffer, size);
}

EXPORT ssize_t pread(int descriptor, void *buffer, size_t size, off_t offset) {
    return read_at(descriptor, buffer, size, offset);
}

EXPORT ssize_t pread64(int descriptor, void *buffer, size_t size, off64_t offset) {
    return read_at(descriptor, buffer, size, offset);
}

/* The functions of fortified builds, which pass the size of the buffer. */
EXPORT ssize_t __read_chk(int descriptor, void *buffer, size_t size, size_t space);
EXPORT ssize_t __pread_chk(int descriptor, void *buffer, size_t size, off_t offset, size_t space);
SAME_AS("__pread_chk")
ssize_t __pread64_chk(int descriptor, void *buffer, size_t size, off_t offset, size_t space);

/* Abort the process, as glibc does, if a read would overflow its buffer. */
static void check(size_t size, size_t space) {
    if (size > space) {
        abort();
    }
}

ssize_t __read_chk(int descriptor, void *buffer, size_t size, size_t space) {
    check(size, space);
    return read_from(descriptor, buffer, size);
}

ssize_t __pread_chk(int descriptor, void *buffer, size_t size, off_t offset, size_t space) {
    check(size, space);
    return read_at(descriptor, buffer, size, offset);
}
