/* Bytes that grow, and the spelling of values inside a line (FORMAT.md, "Lines"). */
#ifndef HUAI_BUFFER_H
#define HUAI_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct buffer {
    unsigned char *data;
    size_t used, room;
};

/* Make room for `more` bytes after `used`; false if there is no memory. */
bool buffer_reserve(struct buffer *buffer, size_t more);

/* Append, making room; false if there is no memory. */
bool buffer_append(struct buffer *buffer, const void *bytes, size_t length);

/* Free the memory; the buffer is empty and can be used again. */
void buffer_free(struct buffer *buffer);

/* Free the memory if one exceptional directory made it large. */
void buffer_relax(struct buffer *buffer);

/* These write at `at`, where the caller has reserved room, and return the end of what they wrote. */
unsigned char *put_bytes(unsigned char *at, const void *bytes, size_t length);
unsigned char *put_escaped(unsigned char *at, const void *bytes, size_t length); /* up to 4 times */
unsigned char *put_decimal(unsigned char *at, uint64_t value);                  /* up to 20 */
unsigned char *put_mtime(unsigned char *at, struct timespec time);              /* up to 31 */
unsigned char *put_mode(unsigned char *at, unsigned mode, unsigned usual);      /* up to 6 */

#endif
