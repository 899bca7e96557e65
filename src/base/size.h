/* size.h: arithmetic on sizes that come from shapes or files. Each answers false on overflow and
 * then leaves *out alone. */
#ifndef SN_BASE_SIZE_H
#define SN_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sn_size_mul(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool sn_size_add(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* Rounds up to a multiple of align (a power of two). */
static inline bool sn_size_align(size_t a, size_t align, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}

static inline bool sn_i64_mul(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool sn_i64_add(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

#endif
