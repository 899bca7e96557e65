/* checkpoint_write.c: the writer of checkpoints. Bytes go to the file as they come; the index grows
 * in memory and is written behind them.
 *
 * Invariants: `at` is where the next byte of an array goes; while an array is open, `left` of its
 * bytes are missing and its row is the last of the index, whose checksum is filled in when it is
 * full. */
#include <snug/checkpoint.h>

#include "base/file.h"
#include "memory/engine.h"
#include "model/checkpoint_format.h"
#include "tensor/type.h"

#include <stdlib.h>
#include <zlib.h>

struct snug_checkpoint_writer {
    snug_engine *engine;
    sn_file file;
    int64_t at;
    size_t left;
    uLong crc;
    unsigned char *index;
    size_t index_bytes, index_cap, row; /* row: where the open array's begins */
    size_t n;
};

snug_status snug_checkpoint_create(snug_engine *engine, const char *path,
                                   snug_checkpoint_writer **out, snug_error *err) {
    void *memory;
    unsigned char head[SN_CKPT_HEAD_BYTES];
    if (!engine || !path || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_checkpoint_create needs an engine, a path and an out");
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_OTHER, sizeof(snug_checkpoint_writer), &memory, err));
    snug_checkpoint_writer *w = memory;
    w->engine = engine;
    w->file.fd = -1;
    w->at = SN_CKPT_HEAD_BYTES;
    sn_ckpt_head(head);
    snug_status status = sn_file_create(&w->file, sn_engine_io(engine), path, err);
    if (status == SNUG_OK)
        status = sn_file_write(&w->file, head, sizeof head, 0, err);
    if (status != SNUG_OK) {
        snug_checkpoint_writer_destroy(w);
        return status;
    }
    *out = w;
    return SNUG_OK;
}

static snug_status check_open(const snug_checkpoint_writer *w, snug_error *err) {
    if (w && w->file.fd >= 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "the checkpoint is NULL, or was committed");
}

/* The array is complete: zeros up to the next one, and the checksum of all of it. */
static snug_status end_array(snug_checkpoint_writer *w, snug_error *err) {
    static const unsigned char zeros[SN_CKPT_ALIGN];
    const size_t over = (size_t)w->at % SN_CKPT_ALIGN, n = over ? SN_CKPT_ALIGN - over : 0;
    SNUG_TRY(sn_file_write(&w->file, zeros, n, w->at, err));
    w->crc = crc32(w->crc, zeros, (uInt)n);
    w->at += (int64_t)n;
    sn_ckpt_put(w->index + w->row + 12, w->crc, 4);
    return SNUG_OK;
}

static snug_status add_row(snug_checkpoint_writer *w, const char *name, const snug_type *type,
                           size_t bytes, snug_error *err) {
    const size_t letters = strlen(name),
                 more = SN_CKPT_ROW_BYTES + 8 * (size_t)type->rank + letters;
    if (w->index_bytes + more > SN_CKPT_MAX_INDEX)
        return sn_fail(err, SNUG_E_INVALID, "%s: the names of %zu arrays take more than %d MiB",
                       w->file.path, w->n, SN_CKPT_MAX_INDEX >> 20);
    SNUG_TRY(
        sn_grow(w->engine, SN_MEM_OTHER, &w->index, 1, &w->index_cap, w->index_bytes + more, err));
    unsigned char *row = w->index + w->index_bytes;
    sn_ckpt_put(row, letters, 4);
    sn_ckpt_put(row + 4, type->dtype, 4);
    sn_ckpt_put(row + 8, (uint64_t)type->rank, 4);
    sn_ckpt_put(row + 12, 0, 4);
    sn_ckpt_put(row + 16, (uint64_t)w->at, 8);
    sn_ckpt_put(row + 24, bytes, 8);
    for (int i = 0; i < type->rank; i++)
        sn_ckpt_put(row + SN_CKPT_ROW_BYTES + 8 * i, (uint64_t)type->dims[i], 8);
    memcpy(row + more - letters, name, letters);
    w->row = w->index_bytes;
    w->index_bytes += more;
    w->n++;
    return SNUG_OK;
}

snug_status snug_checkpoint_begin(snug_checkpoint_writer *w, const char *name,
                                  const snug_type *type, snug_error *err) {
    size_t bytes;
    SNUG_TRY(check_open(w, err));
    if (!name || !type || !name[0] || strlen(name) > SN_CKPT_MAX_NAME)
        return sn_fail(err, SNUG_E_INVALID, "an array has a type and a name of 1 to %d letters",
                       SN_CKPT_MAX_NAME);
    if (w->left > 0)
        return sn_fail(err, SNUG_E_INVALID, "%s: %zu bytes are missing of the array before '%.60s'",
                       w->file.path, w->left, name);
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(snug_type_bytes(type, &bytes, err));
    if (snug_dtype_bytes(type->dtype) == 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "'%.60s' is %s, which has no bytes of its own",
                       name, snug_dtype_name(type->dtype));
    SNUG_TRY(add_row(w, name, type, bytes, err));
    w->left = bytes;
    w->crc = crc32(0, NULL, 0);
    return bytes == 0 ? end_array(w, err) : SNUG_OK;
}

snug_status snug_checkpoint_append(snug_checkpoint_writer *w, const void *bytes, size_t n,
                                   snug_error *err) {
    enum { PIECE = 1 << 20 };
    SNUG_TRY(check_open(w, err));
    if (n > w->left || (!bytes && n > 0))
        return sn_fail(err, SNUG_E_INVALID, "%s: %zu bytes for an array that takes %zu more",
                       w->file.path, n, w->left);
    for (size_t done = 0; done < n; done += PIECE) {
        const unsigned char *from = (const unsigned char *)bytes + done;
        const size_t some = n - done < PIECE ? n - done : PIECE;
        SNUG_TRY(sn_file_write(&w->file, from, some, w->at, err));
        w->crc = crc32(w->crc, from, (uInt)some);
        w->at += (int64_t)some;
        w->left -= some;
    }
    return n > 0 && w->left == 0 ? end_array(w, err) : SNUG_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* No two arrays have one name. The names are made texts in the index: a row's first number, its
 * length, was read before. */
static snug_status check_names(snug_checkpoint_writer *w, snug_error *err) {
    sn_zone *zone = NULL;
    snug_status status = sn_zone_create(w->engine, SN_MEM_OTHER, &zone, err);
    void *block = NULL;
    if (status == SNUG_OK)
        status = sn_zone_alloc(zone, (w->n + 1) * sizeof(char *), &block, err);
    const char **names = block;
    const unsigned char *row = w->index;
    for (size_t i = 0; i < w->n && status == SNUG_OK; i++) {
        const size_t letters = (size_t)sn_ckpt_get(row, 4);
        void *text;
        row += SN_CKPT_ROW_BYTES + 8 * sn_ckpt_get(row + 8, 4);
        status = sn_zone_alloc(zone, letters + 1, &text, err); /* zeroed */
        if (status == SNUG_OK)
            names[i] = memcpy(text, row, letters);
        row += letters;
    }
    if (status == SNUG_OK)
        qsort(names, w->n, sizeof *names, by_name);
    for (size_t i = 1; i < w->n && status == SNUG_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = sn_fail(err, SNUG_E_INVALID, "%s: two arrays are named '%.200s'", w->file.path,
                             names[i]);
    sn_zone_destroy(zone);
    return status;
}

snug_status snug_checkpoint_commit(snug_checkpoint_writer *w, snug_error *err) {
    unsigned char foot[SN_CKPT_FOOT_BYTES];
    SNUG_TRY(check_open(w, err));
    if (w->left > 0)
        return sn_fail(err, SNUG_E_INVALID, "%s: %zu bytes are missing of the last array",
                       w->file.path, w->left);
    SNUG_TRY(check_names(w, err));
    sn_ckpt_put(foot, (uint64_t)w->at, 8);
    sn_ckpt_put(foot + 8, w->index_bytes, 8);
    sn_ckpt_put(foot + 16, w->n, 8);
    sn_ckpt_put(foot + 24, crc32(crc32(0, NULL, 0), w->index, (uInt)w->index_bytes), 4);
    sn_ckpt_put(foot + 28, crc32(crc32(0, NULL, 0), foot, 28), 4);
    memcpy(foot + 32, SN_CKPT_FOOT, 8);
    SNUG_TRY(sn_file_write(&w->file, w->index, w->index_bytes, w->at, err));
    SNUG_TRY(sn_file_write(&w->file, foot, sizeof foot, w->at + (int64_t)w->index_bytes, err));
    return sn_file_commit(&w->file, err);
}

void snug_checkpoint_writer_destroy(snug_checkpoint_writer *w) {
    if (!w)
        return;
    sn_file_close(&w->file);
    sn_free(w->engine, SN_MEM_OTHER, w->index, w->index_cap);
    sn_free(w->engine, SN_MEM_OTHER, w, sizeof *w);
}
