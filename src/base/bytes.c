/* bytes.c: byte counts as people write them. KB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB
 * and the bare letters K, M, G, T are powers of 1024; decimals are legal ("1.5 KiB") and round down
 * to a whole byte.
 *
 * "50%" is a part of a whole that the caller knows.
 *
 * Invariants:
 * 1. Digits are computed in integers: no count below 2^64 loses a byte to floating point.
 * 2. What cannot be a byte count is refused with the text and a valid example in the message. */
#include "base/bytes.h"

#include "base/status.h"

#include <snug/engine.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name; /* lower case */
    size_t bytes;
} unit_row;

static const unit_row units[] = {
    {"", 1},
    {"b", 1},
    {"k", (size_t)1 << 10},
    {"m", (size_t)1 << 20},
    {"g", (size_t)1 << 30},
    {"t", (size_t)1 << 40},
    {"kib", (size_t)1 << 10},
    {"mib", (size_t)1 << 20},
    {"gib", (size_t)1 << 30},
    {"tib", (size_t)1 << 40},
    {"kb", 1000u},
    {"mb", 1000000u},
    {"gb", 1000000000u},
    {"tb", 1000000000000u},
};

/* Not the C library's: those depend on the locale. */
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The unit that `text` spells (trailing blanks allowed), or NULL. */
static const unit_row *find_unit(const char *text) {
    size_t n = strlen(text);
    while (n > 0 && is_space(text[n - 1]))
        n--;
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        if (strlen(units[u].name) != n)
            continue;
        size_t i = 0;
        while (i < n && lower(text[i]) == units[u].name[i])
            i++;
        if (i == n)
            return &units[u];
    }
    return NULL;
}

/* numerator / denominator is the decimal fraction behind the point, cut to 9 digits (below one byte
 * in a GB; no one counts terabytes closer). */
typedef struct {
    unsigned __int128 whole;
    uint64_t numerator, denominator;
} decimal;

/* Reads "12", "12.5", ".5" at *at; false when there is no digit or the whole part passes 2^64. */
static bool read_decimal(const char **at, decimal *out, bool *overflow) {
    const char *p = *at;
    decimal d = {0, 0, 1};
    size_t n_digits = 0;
    *overflow = false;
    for (; is_digit(*p); p++, n_digits++) {
        d.whole = d.whole * 10 + (unsigned)(*p - '0');
        if (d.whole > UINT64_MAX) {
            *overflow = true;
            d.whole = UINT64_MAX;
        }
    }
    if (*p == '.') {
        for (p++; is_digit(*p); p++, n_digits++) {
            if (d.denominator >= 1000000000u)
                continue;
            d.numerator = d.numerator * 10 + (unsigned)(*p - '0');
            d.denominator *= 10;
        }
    }
    *at = p;
    *out = d;
    return n_digits > 0;
}

snug_status snug_bytes_parse(const char *text, size_t *bytes, snug_error *err) {
    if (!text || !bytes)
        return sn_fail(err, SNUG_E_INVALID, "snug_bytes_parse: text and bytes must not be NULL");
    const char *p = text;
    while (is_space(*p))
        p++;
    if (*p == '-')
        return sn_fail(err, SNUG_E_INVALID, "'%.64s' is negative; give a size like 512MiB", text);
    if (*p == '+')
        p++;
    decimal d;
    bool overflow;
    if (!read_decimal(&p, &d, &overflow))
        return sn_fail(err, SNUG_E_INVALID,
                       "'%.64s' is not a number of bytes; give a size like 512MiB", text);
    while (is_space(*p))
        p++;
    const unit_row *unit = find_unit(p);
    if (!unit)
        return sn_fail(err, SNUG_E_INVALID,
                       "'%.32s' in '%.64s' is not a unit of bytes; use B, KiB, MiB, GiB, TiB "
                       "(1024) or KB, MB, GB, TB (1000)",
                       p, text);
    const unsigned __int128 fraction = (unsigned __int128)d.numerator * unit->bytes / d.denominator;
    if (overflow || d.whole > (SIZE_MAX - fraction) / unit->bytes)
        return sn_fail(err, SNUG_E_INVALID,
                       "'%.64s' is more than the %zu bytes of the address space; give a size "
                       "like 512MiB",
                       text, (size_t)SIZE_MAX);
    *bytes = (size_t)(d.whole * unit->bytes + fraction);
    return SNUG_OK;
}

bool sn_bytes_share(const char *text, size_t whole, size_t *bytes) {
    decimal d;
    bool overflow;
    while (is_space(*text))
        text++;
    if (!read_decimal(&text, &d, &overflow))
        return false;
    while (is_space(*text))
        text++;
    if (*text != '%')
        return false;
    do
        text++;
    while (is_space(*text));
    if (*text)
        return false;
    if (overflow || d.whole > 100 || (d.whole == 100 && d.numerator > 0))
        *bytes = SIZE_MAX;
    else
        *bytes = (size_t)((d.whole * d.denominator + d.numerator) * whole / (100 * d.denominator));
    return true;
}

const char *sn_bytes_print_up(size_t bytes, char *text, size_t size) {
    size_t unit = 1024;
    while (bytes / unit >= 1024 && unit < SIZE_MAX / 1024)
        unit *= 1024;
    const size_t half = unit / 20; /* of a tenth: the nearest one is then the next above */
    return snug_bytes_print(bytes < SIZE_MAX - half ? bytes + half : bytes, text, size);
}

const char *snug_bytes_print(size_t bytes, char *text, size_t size) {
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (!text || size == 0)
        return "";
    if (bytes < 1024) {
        snprintf(text, size, "%zu B", bytes);
        return text;
    }
    size_t u = 0;
    size_t unit = 1024;
    while (bytes / unit >= 1024 && u + 1 < sizeof names / sizeof names[0]) {
        unit *= 1024;
        u++;
    }
    /* Tenths, rounded half up; a carry to 1024.0 belongs to the next unit. */
    unsigned __int128 tenths = ((unsigned __int128)bytes * 10 + unit / 2) / unit;
    if (tenths >= 10240 && u + 1 < sizeof names / sizeof names[0]) {
        tenths = 10;
        u++;
    }
    snprintf(text, size, "%u.%u %s", (unsigned)(tenths / 10), (unsigned)(tenths % 10), names[u]);
    return text;
}
