/* files.c: damaged files, the same ones in every run. */
#include "support/files.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

unsigned char *sn_test_read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

uint64_t sn_test_hash(const void *bytes, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return h;
}

unsigned char *sn_test_gzip(const void *bytes, size_t n, size_t *packed) {
    z_stream s = {.next_in = (unsigned char *)bytes, .avail_in = (unsigned)n};
    assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t most = deflateBound(&s, n) + 64;
    unsigned char *out = malloc(most);
    assert_non_null(out);
    s.next_out = out;
    s.avail_out = (unsigned)most;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    *packed = most - s.avail_out;
    deflateEnd(&s);
    return out;
}

/* One damaged file: a fresh engine, so that a leak is told where it happens. */
static snug_status read_one(sn_test_reader read, const char *path, const char *what,
                            uint64_t number) {
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    const snug_status status = read(e, path, &err);
    if (status != SNUG_OK && (err.code != status || !err.text[0]))
        fail_msg("%s %llu: %s without a text", what, (unsigned long long)number,
                 snug_status_name(status));
    if (snug_engine_bytes(e) != 0)
        print_error("%s %llu:\n", what, (unsigned long long)number);
    sn_test_engine_end(e);
    return status;
}

void sn_test_truncations(sn_test_reader read, const unsigned char *bytes, size_t n) {
    sn_test_dir d;
    char path[256];
    sn_test_dir_begin(&d);
    sn_test_path(&d, "truncated", path);
    for (size_t i = 0; i < n; i++) {
        sn_test_write_file(path, bytes, i);
        const snug_status status = read_one(read, path, "cut at byte", i);
        if (status != SNUG_E_FORMAT)
            fail_msg("cut at byte %zu: %s", i, snug_status_name(status));
    }
    sn_test_write_file(path, bytes, n);
    assert_int_equal(read_one(read, path, "whole", n), SNUG_OK);
    sn_test_dir_end(&d);
}

/* --- mutations ------------------------------------------------------------------------------ */

typedef struct {
    uint64_t key, next;
} dice;

static size_t roll(dice *d, size_t n) {
    const uint64_t i = d->next++;
    return n ? sn_philox(d->key, 99, i).v[0] % n : 0;
}

enum { ROOM = 1 << 16 };

/* Values that break careless arithmetic. */
static const char *const numbers[] = {"-1",
                                      "0",
                                      "1e400",
                                      "9223372036854775807",
                                      "18446744073709551616",
                                      "4294967296",
                                      "1e9",
                                      "2147483648",
                                      "65536",
                                      "null",
                                      "[]",
                                      "{}",
                                      "\"\"",
                                      "NaN",
                                      "true"};

static size_t put_number(unsigned char *b, size_t n, dice *d) {
    const char *text = numbers[roll(d, sizeof numbers / sizeof *numbers)];
    size_t at = roll(d, n), end;
    while (at < n && !(b[at] >= '0' && b[at] <= '9'))
        at++;
    for (end = at; end < n && b[end] >= '0' && b[end] <= '9';)
        end++;
    if (at == n || n - (end - at) + strlen(text) > ROOM)
        return n;
    memmove(b + at + strlen(text), b + end, n - end);
    memcpy(b + at, text, strlen(text));
    return n - (end - at) + strlen(text);
}

static size_t mutate(unsigned char *b, size_t n, dice *d) {
    const size_t at = roll(d, n), from = roll(d, n);
    size_t k = 1 + roll(d, 16);
    if (n == 0)
        return n;
    switch (roll(d, 7)) {
    case 0: /* a bit */
        b[at] = (unsigned char)(b[at] ^ 1u << roll(d, 8));
        return n;
    case 1: /* a byte */
        b[at] = (unsigned char)roll(d, 256);
        return n;
    case 2: /* cut out */
        k = k < n - at ? k : n - at;
        memmove(b + at, b + at + k, n - at - k);
        return n - k;
    case 3: /* doubled */
        k = k < n - at ? k : n - at;
        if (n + k > ROOM)
            return n;
        memmove(b + at + k, b + at, n - at);
        return n + k;
    case 4: /* from elsewhere */
        k = k < n - at ? k : n - at;
        k = k < n - from ? k : n - from;
        memmove(b + at, b + from, k);
        return n;
    case 5:
        return put_number(b, n, d);
    default: /* cut off */
        return at;
    }
}

void sn_test_mutations(sn_test_reader read, const sn_test_seed *seeds, size_t n_seeds,
                       int n_tries) {
    sn_test_dir d;
    char path[256];
    unsigned char *bytes = malloc(ROOM);
    assert_non_null(bytes);
    sn_test_dir_begin(&d);
    sn_test_path(&d, "damaged", path);
    if (getenv("SNUG_TEST_FULL"))
        n_tries *= 20;
    for (int i = 0; i < n_tries; i++) {
        dice r = {.key = (uint64_t)i};
        const sn_test_seed *seed = &seeds[roll(&r, n_seeds)];
        size_t n = seed->n;
        assert_true(n <= ROOM);
        memcpy(bytes, seed->bytes, n);
        for (size_t k = 1 + roll(&r, 4); k > 0; k--)
            n = mutate(bytes, n, &r);
        sn_test_write_file(path, bytes, n);
        (void)read_one(read, path, "mutation", (uint64_t)i);
    }
    sn_test_dir_end(&d);
    free(bytes);
}
