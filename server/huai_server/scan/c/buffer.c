#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#define RELAXED (1u << 20)

bool buffer_reserve(struct buffer *buffer, size_t more)
{
    if (more <= buffer->room - buffer->used)
        return true;
    size_t room = buffer->room ? buffer->room : 4096;
    while (room - buffer->used < more) {
        if (room > SIZE_MAX / 4)
            return false;
        room += room < (64u << 20) ? room : room / 2;
    }
    void *data = realloc(buffer->data, room);
    if (!data)
        return false;
    buffer->data = data;
    buffer->room = room;
    return true;
}

bool buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
    if (!buffer_reserve(buffer, length))
        return false;
    if (length)
        memcpy(buffer->data + buffer->used, bytes, length);
    buffer->used += length;
    return true;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

void buffer_relax(struct buffer *buffer)
{
    if (buffer->room > RELAXED)
        buffer_free(buffer);
}

unsigned char *put_bytes(unsigned char *at, const void *bytes, size_t length)
{
    if (length)
        memcpy(at, bytes, length);
    return at + length;
}

unsigned char *put_escaped(unsigned char *at, const void *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = from[i];
        if (byte >= 0x20 && byte != 0x7f && byte != '\\') {
            *at++ = byte;
            continue;
        }
        *at++ = '\\';
        *at++ = 'x';
        *at++ = (unsigned char)digits[byte >> 4];
        *at++ = (unsigned char)digits[byte & 15];
    }
    return at;
}

unsigned char *put_decimal(unsigned char *at, uint64_t value)
{
    unsigned char text[20];
    size_t length = 0;
    do {
        text[length++] = (unsigned char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (length)
        *at++ = text[--length];
    return at;
}

unsigned char *put_mtime(unsigned char *at, struct timespec time)
{
    uint64_t seconds = (uint64_t)time.tv_sec;
    if (time.tv_sec < 0) {
        *at++ = '-';
        seconds = 0 - seconds;
    }
    at = put_decimal(at, seconds);
    if (!time.tv_nsec)
        return at;
    *at++ = '.';
    uint32_t rest = (uint32_t)time.tv_nsec;
    for (uint32_t unit = 100000000; rest; unit /= 10) {
        *at++ = (unsigned char)('0' + rest / unit);
        rest %= unit;
    }
    return at;
}

unsigned char *put_mode(unsigned char *at, unsigned mode, unsigned usual)
{
    mode &= 07777;
    if (mode == usual)
        return at;
    *at++ = '\t';
    *at++ = 'm';
    int shift = 9;
    while (shift && !(mode >> shift))
        shift -= 3;
    for (; shift >= 0; shift -= 3)
        *at++ = (unsigned char)('0' + ((mode >> shift) & 7));
    return at;
}
