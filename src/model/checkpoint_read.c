/* checkpoint_read.c: the reader of checkpoints.
 *
 * Invariants after snug_checkpoint_open:
 * 1. every byte of the file was compared or is in a checksum that was right;
 * 2. entries lie one behind the other from the head to the index, each as long as its type says;
 * 3. no two have one name.
 * What a number of the file says is compared with the file's size before anything is allocated. */
#include <snug/checkpoint.h>

#include "base/file.h"
#include "base/size.h"
#include "memory/engine.h"
#include "model/checkpoint_format.h"
#include "tensor/type.h"

#include <stdlib.h>
#include <zlib.h>

enum { WINDOW_BYTES = 256 << 10 };

typedef struct {
    const char *name;
    snug_type type;
    int64_t at;
    size_t bytes, padded_bytes;
    uint32_t crc;
} ckpt_entry;

struct snug_checkpoint {
    snug_engine *engine;
    sn_zone *zone;
    sn_file file;
    int64_t index_at;
    size_t index_bytes, n;
    uint32_t index_crc;
    ckpt_entry *entries;
};

static snug_status bad(const snug_checkpoint *c, snug_error *err, const char *what) {
    return sn_fail(err, SNUG_E_FORMAT,
                   "%s is no sound checkpoint: %s; go back to an older one, or begin anew",
                   c->file.path, what);
}

static snug_status check_head(snug_checkpoint *c, snug_error *err) {
    unsigned char want[SN_CKPT_HEAD_BYTES], head[SN_CKPT_HEAD_BYTES];
    if (c->file.size < SN_CKPT_HEAD_BYTES + SN_CKPT_FOOT_BYTES)
        return bad(c, err, "it is shorter than an empty one");
    SNUG_TRY(sn_file_read(&c->file, head, sizeof head, 0, err));
    sn_ckpt_head(want);
    if (memcmp(head, want, 8) != 0)
        return bad(c, err, "it does not begin as one");
    return memcmp(head, want, sizeof head) == 0 ? SNUG_OK : bad(c, err, "it is of another version");
}

static snug_status read_foot(snug_checkpoint *c, size_t most, snug_error *err) {
    unsigned char foot[SN_CKPT_FOOT_BYTES];
    const int64_t at = c->file.size - SN_CKPT_FOOT_BYTES;
    SNUG_TRY(sn_file_read(&c->file, foot, sizeof foot, at, err));
    if (memcmp(foot + 32, SN_CKPT_FOOT, 8) != 0)
        return bad(c, err, "it does not end as one: it was cut short");
    if (crc32(crc32(0, NULL, 0), foot, 28) != sn_ckpt_get(foot + 28, 4))
        return bad(c, err, "the checksum of its end is wrong");
    const uint64_t index_at = sn_ckpt_get(foot, 8), bytes = sn_ckpt_get(foot + 8, 8),
                   n = sn_ckpt_get(foot + 16, 8);
    if (index_at > (uint64_t)at || bytes != (uint64_t)at - index_at || bytes > SN_CKPT_MAX_INDEX ||
        n > bytes / (SN_CKPT_ROW_BYTES + 1) || bytes > n * SN_CKPT_MAX_ROW)
        return bad(c, err, "its index is not where its end says");
    if (most > 0 && n > most)
        return sn_fail(err, SNUG_E_FORMAT, "%s holds %llu arrays; at most %zu are expected",
                       c->file.path, (unsigned long long)n, most);
    c->index_at = (int64_t)index_at;
    c->index_bytes = (size_t)bytes;
    c->n = (size_t)n;
    c->index_crc = (uint32_t)sn_ckpt_get(foot + 24, 4);
    return SNUG_OK;
}

/* The type of a row; false: it is none, or its bytes are not those the row says. */
static bool read_type(const unsigned char *row, uint64_t rank, ckpt_entry *t) {
    const uint64_t dtype = sn_ckpt_get(row + 4, 4);
    if (dtype >= SNUG_N_DTYPES)
        return false;
    t->type = (snug_type){.dtype = (snug_dtype)dtype, .rank = (int)rank};
    for (uint64_t i = 0; i < rank; i++) {
        const uint64_t dim = sn_ckpt_get(row + SN_CKPT_ROW_BYTES + 8 * i, 8);
        if (dim > INT64_MAX)
            return false;
        t->type.dims[i] = (int64_t)dim;
    }
    return snug_dtype_bytes(t->type.dtype) > 0 &&
           snug_type_bytes(&t->type, &t->bytes, NULL) == SNUG_OK &&
           t->bytes == sn_ckpt_get(row + 24, 8);
}

/* One row of the index; *used is how long it is. `at` is where its array must be. */
static snug_status read_row(snug_checkpoint *c, const unsigned char *row, size_t left, int64_t at,
                            ckpt_entry *t, size_t *used, snug_error *err) {
    if (left < SN_CKPT_ROW_BYTES)
        return bad(c, err, "its index is cut short");
    const uint64_t letters = sn_ckpt_get(row, 4), rank = sn_ckpt_get(row + 8, 4);
    if (rank > SNUG_MAX_RANK || letters < 1 || letters > SN_CKPT_MAX_NAME ||
        letters + 8 * rank > left - SN_CKPT_ROW_BYTES)
        return bad(c, err, "a row of its index is none");
    const unsigned char *name = row + SN_CKPT_ROW_BYTES + 8 * rank;
    void *text;
    if (memchr(name, 0, (size_t)letters) || !read_type(row, rank, t))
        return bad(c, err, "an array has no name or no type");
    if (!sn_size_align(t->bytes, SN_CKPT_ALIGN, &t->padded_bytes) ||
        sn_ckpt_get(row + 16, 8) != (uint64_t)at || t->padded_bytes > (uint64_t)(c->index_at - at))
        return bad(c, err, "an array is not where it should be");
    SNUG_TRY(sn_zone_alloc(c->zone, (size_t)letters + 1, &text, err));
    t->name = memcpy(text, name, (size_t)letters);
    t->at = at;
    t->crc = (uint32_t)sn_ckpt_get(row + 12, 4);
    *used = SN_CKPT_ROW_BYTES + 8 * (size_t)rank + (size_t)letters;
    return SNUG_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const ckpt_entry *const *)a)->name, (*(const ckpt_entry *const *)b)->name);
}

static snug_status check_names(snug_checkpoint *c, snug_error *err) {
    void *block;
    SNUG_TRY(sn_zone_alloc(c->zone, (c->n + 1) * sizeof(ckpt_entry *), &block, err));
    const ckpt_entry **sorted = block;
    for (size_t i = 0; i < c->n; i++)
        sorted[i] = &c->entries[i];
    qsort(sorted, c->n, sizeof *sorted, by_name);
    for (size_t i = 1; i < c->n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return bad(c, err, "two arrays have one name");
    return SNUG_OK;
}

static snug_status parse_index(snug_checkpoint *c, const unsigned char *index, snug_error *err) {
    size_t done = 0, used = 0;
    int64_t at = SN_CKPT_HEAD_BYTES;
    void *block;
    if (crc32(crc32(0, NULL, 0), index, (uInt)c->index_bytes) != c->index_crc)
        return bad(c, err, "the checksum of its index is wrong");
    SNUG_TRY(sn_zone_alloc(c->zone, (c->n + 1) * sizeof(ckpt_entry), &block, err));
    c->entries = block;
    for (size_t i = 0; i < c->n; i++) {
        SNUG_TRY(read_row(c, index + done, c->index_bytes - done, at, &c->entries[i], &used, err));
        done += used;
        at += (int64_t)c->entries[i].padded_bytes;
    }
    if (done != c->index_bytes || at != c->index_at)
        return bad(c, err, "its index describes more or less than it holds");
    return check_names(c, err);
}

/* The bytes of every array, a window at a time. */
static snug_status check_arrays(snug_checkpoint *c, unsigned char *window, snug_error *err) {
    for (size_t i = 0; i < c->n; i++) {
        const ckpt_entry *t = &c->entries[i];
        uLong crc = crc32(0, NULL, 0);
        for (size_t done = 0; done < t->padded_bytes; done += WINDOW_BYTES) {
            const size_t left = t->padded_bytes - done,
                         n = left < WINDOW_BYTES ? left : WINDOW_BYTES;
            SNUG_TRY(sn_file_read(&c->file, window, n, t->at + (int64_t)done, err));
            crc = crc32(crc, window, (uInt)n);
        }
        if (crc != t->crc)
            return sn_fail(err, SNUG_E_FORMAT,
                           "%s is no sound checkpoint: the checksum of '%.200s' is wrong; go back "
                           "to an older one, or begin anew",
                           c->file.path, t->name);
    }
    return SNUG_OK;
}

static snug_status check_all(snug_checkpoint *c, size_t most, snug_error *err) {
    void *index = NULL, *window = NULL;
    SNUG_TRY(check_head(c, err));
    SNUG_TRY(read_foot(c, most, err));
    snug_status status = sn_alloc(c->engine, SN_MEM_OTHER, c->index_bytes, &index, err);
    if (status == SNUG_OK)
        status = sn_file_read(&c->file, index, c->index_bytes, c->index_at, err);
    if (status == SNUG_OK)
        status = parse_index(c, index, err);
    sn_free(c->engine, SN_MEM_OTHER, index, c->index_bytes);
    if (status == SNUG_OK)
        status = sn_alloc(c->engine, SN_MEM_OTHER, WINDOW_BYTES, &window, err);
    if (status == SNUG_OK)
        status = check_arrays(c, window, err);
    sn_free(c->engine, SN_MEM_OTHER, window, WINDOW_BYTES);
    return status;
}

snug_status snug_checkpoint_open(snug_engine *engine, const char *path, size_t most,
                                 snug_checkpoint **out, snug_error *err) {
    void *memory;
    if (!engine || !path || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_checkpoint_open needs an engine, a path and an out");
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_OTHER, sizeof(snug_checkpoint), &memory, err));
    snug_checkpoint *c = memory;
    c->engine = engine;
    c->file.fd = -1;
    snug_status status = sn_file_open(&c->file, sn_engine_io(engine), path, err);
    if (status == SNUG_OK)
        status = sn_zone_create(engine, SN_MEM_OTHER, &c->zone, err);
    if (status == SNUG_OK)
        status = check_all(c, most, err);
    if (status != SNUG_OK) {
        snug_checkpoint_close(c);
        return status;
    }
    *out = c;
    return SNUG_OK;
}

void snug_checkpoint_close(snug_checkpoint *c) {
    if (!c)
        return;
    sn_file_close(&c->file);
    sn_zone_destroy(c->zone);
    sn_free(c->engine, SN_MEM_OTHER, c, sizeof *c);
}

size_t snug_checkpoint_count(const snug_checkpoint *c) {
    return c ? c->n : 0;
}

snug_status snug_checkpoint_at(const snug_checkpoint *c, size_t i, const char **name,
                               snug_type *type, snug_error *err) {
    if (!c || i >= c->n)
        return sn_fail(err, SNUG_E_INVALID, "array %zu of a checkpoint of %zu", i,
                       snug_checkpoint_count(c));
    if (name)
        *name = c->entries[i].name;
    if (type)
        *type = c->entries[i].type;
    return SNUG_OK;
}

snug_status snug_checkpoint_find(const snug_checkpoint *c, const char *name, size_t *i,
                                 snug_error *err) {
    if (!c || !name || !i)
        return sn_fail(err, SNUG_E_INVALID, "snug_checkpoint_find needs a file, a name and an i");
    for (size_t k = 0; k < c->n; k++)
        if (strcmp(c->entries[k].name, name) == 0) {
            *i = k;
            return SNUG_OK;
        }
    return sn_fail(err, SNUG_E_DATA, "%s has no array '%.200s'; it holds %zu, first '%.200s'",
                   c->file.path, name, c->n, c->n ? c->entries[0].name : "");
}

snug_status snug_checkpoint_read(snug_checkpoint *c, size_t i, const snug_view *to,
                                 snug_error *err) {
    char have[192], want[192];
    SNUG_TRY(snug_checkpoint_at(c, i, NULL, NULL, err));
    const ckpt_entry *t = &c->entries[i];
    if (!to || (!to->data && t->bytes > 0))
        return sn_fail(err, SNUG_E_INVALID, "snug_checkpoint_read needs a view with memory");
    if (t->type.dtype != to->type.dtype || !sn_dims_equal(&t->type, &to->type))
        return sn_fail(err, SNUG_E_SHAPE, "%s: '%.200s' is %s, not %s", c->file.path, t->name,
                       snug_type_print(&t->type, have, sizeof have),
                       snug_type_print(&to->type, want, sizeof want));
    return sn_file_read(&c->file, to->data, t->bytes, t->at, err);
}
