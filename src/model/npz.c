/* npz.c: the directory of a ZIP archive: its end is looked for in the last bytes of the file, its
 * entries are read one at a time. Everything in it may be wrong: each number is checked against the
 * file's size before it is used. */
#include "model/npz.h"

#include <stdio.h>
#include <string.h>

#define END_BYTES   22
#define ENTRY_BYTES 46
#define LOCAL_BYTES 30

static uint64_t number(const unsigned char *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

const char *sn_npz_colon(const char *source) {
    const char *at = strstr(source, ".npz:");
    return at ? at + 4 : NULL;
}

static snug_status bad(const sn_file *f, const char *why, snug_error *err) {
    return sn_fail(err, SNUG_E_FORMAT, "%s is no .npz file: %s", f->path, why);
}

typedef struct {
    uint64_t at, n; /* of the next entry; entries left */
} directory;

/* Archives of 4 GiB and more have a second, wider end. */
static snug_status find_wide(sn_file *f, int64_t end_at, directory *d, snug_error *err) {
    unsigned char b[56];
    if (end_at < 20)
        return bad(f, "its directory is missing", err);
    SNUG_TRY(sn_file_read(f, b, 20, end_at - 20, err));
    const uint64_t at = number(b + 8, 8);
    if (number(b, 4) != 0x07064b50 || at > (uint64_t)f->size || (uint64_t)f->size - at < sizeof b)
        return bad(f, "its directory is missing", err);
    SNUG_TRY(sn_file_read(f, b, sizeof b, (int64_t)at, err));
    *d = (directory){number(b + 48, 8), number(b + 32, 8)};
    return number(b, 4) == 0x06064b50 ? SNUG_OK : bad(f, "its directory is missing", err);
}

static snug_status find_directory(sn_file *f, directory *d, snug_error *err) {
    unsigned char b[1024];
    const int64_t n = f->size < (int64_t)sizeof b ? f->size : (int64_t)sizeof b;
    if (n < END_BYTES)
        return bad(f, "it is too short", err);
    SNUG_TRY(sn_file_read(f, b, (size_t)n, f->size - n, err));
    for (int64_t i = n - END_BYTES; i >= 0; i--) {
        if (number(b + i, 4) != 0x06054b50)
            continue;
        *d = (directory){number(b + i + 16, 4), number(b + i + 10, 2)};
        return d->at == 0xffffffff || d->n == 0xffff ? find_wide(f, f->size - n + i, d, err)
                                                     : SNUG_OK;
    }
    return bad(f, "its directory is missing", err);
}

typedef struct {
    char name[256];
    uint64_t local, bytes;
    int method;
} entry;

/* Numbers that do not fit 32 bits stand in a field of their own, in this order. */
static void widen(const unsigned char *extra, size_t n, const unsigned char *head, entry *e) {
    for (size_t at = 0; at + 4 <= n; at += 4 + (size_t)number(extra + at + 2, 2)) {
        const size_t size = (size_t)number(extra + at + 2, 2);
        if (number(extra + at, 2) != 1 || at + 4 + size > n)
            continue;
        size_t k = at + 4;
        const size_t end = k + size;
        if (number(head + 24, 4) == 0xffffffff && k + 8 <= end) {
            e->bytes = number(extra + k, 8);
            k += 8;
        }
        if (number(head + 20, 4) == 0xffffffff)
            k += 8;
        if (number(head + 42, 4) == 0xffffffff && k + 8 <= end)
            e->local = number(extra + k, 8);
    }
}

static snug_status read_entry(sn_file *f, directory *d, entry *e, snug_error *err) {
    unsigned char head[ENTRY_BYTES], rest[1024];
    const uint64_t size = (uint64_t)f->size;
    if (d->at > size || size - d->at < ENTRY_BYTES)
        return bad(f, "its directory is truncated", err);
    SNUG_TRY(sn_file_read(f, head, sizeof head, (int64_t)d->at, err));
    const size_t name = (size_t)number(head + 28, 2), extra = (size_t)number(head + 30, 2),
                 remark = (size_t)number(head + 32, 2);
    if (number(head, 4) != 0x02014b50 || name + extra > sizeof rest || name >= sizeof e->name ||
        size - d->at - ENTRY_BYTES < name + extra + remark)
        return bad(f, "its directory is damaged", err);
    SNUG_TRY(sn_file_read(f, rest, name + extra, (int64_t)d->at + ENTRY_BYTES, err));
    *e = (entry){.local = number(head + 42, 4),
                 .bytes = number(head + 24, 4),
                 .method = (int)number(head + 10, 2)};
    memcpy(e->name, rest, name);
    widen(rest + name, extra, head, e);
    d->at += ENTRY_BYTES + name + extra + remark;
    d->n--;
    return SNUG_OK;
}

/* A member's bytes start behind a header of its own. */
static snug_status place_of(sn_file *f, const entry *e, int64_t *start, int64_t *end,
                            snug_error *err) {
    unsigned char b[LOCAL_BYTES];
    const uint64_t size = (uint64_t)f->size;
    if (e->method != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "%s: '%s' is compressed and cannot be read in place; write the file with "
                       "numpy.savez instead of savez_compressed",
                       f->path, e->name);
    if (e->local > size || size - e->local < LOCAL_BYTES)
        return bad(f, "a member lies outside of it", err);
    SNUG_TRY(sn_file_read(f, b, sizeof b, (int64_t)e->local, err));
    const uint64_t first = e->local + LOCAL_BYTES + number(b + 26, 2) + number(b + 28, 2);
    if (number(b, 4) != 0x04034b50 || first > size || size - first < e->bytes)
        return bad(f, "a member lies outside of it", err);
    *start = (int64_t)first;
    *end = (int64_t)(first + e->bytes);
    return SNUG_OK;
}

snug_status sn_npz_find(sn_file *f, const char *name, int64_t *start, int64_t *end,
                        snug_error *err) {
    directory d = {0, 0};
    entry e;
    char names[256] = "";
    size_t n = 0;
    SNUG_TRY(find_directory(f, &d, err));
    while (d.n > 0) {
        SNUG_TRY(read_entry(f, &d, &e, err));
        const size_t k = strlen(e.name),
                     stem = k > 4 && strcmp(e.name + k - 4, ".npy") == 0 ? k - 4 : k;
        if (strlen(name) == stem && strncmp(e.name, name, stem) == 0)
            return place_of(f, &e, start, end, err);
        if (n + stem + 3 < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%.*s", n ? ", " : "", (int)stem,
                                  e.name);
    }
    return sn_fail(err, SNUG_E_DATA, "%s has no array '%s'; it has: %s", f->path, name, names);
}
