/* npy_write.c: an .npy file written row by row. Where the number of rows is known at the start,
 * commit checks that all came; else it writes the header once more, which has room for it. */
#include "base/file.h"
#include "memory/engine.h"
#include "tensor/type.h"

#include <snug/dataset.h>
#include <snug/model.h>
#include <stdio.h>
#include <string.h>

struct snug_npy_writer {
    snug_engine *engine;
    sn_file file;
    int64_t at;
    size_t left;    /* data bytes still to come; of open rows unused */
    snug_type open; /* the type, where its rows are not known: rank 0 otherwise */
    size_t row_bytes, header_bytes;
};

static const char *const descrs[SNUG_N_DTYPES] = {
#define DESCR(upper, lower, bytes, kind, computed, sums, word, largest, npy, st)                   \
    [SNUG_##upper] = npy,
    SNUG_DTYPE_MAP(DESCR)
#undef DESCR
};

/* Version 1.0, to the byte as numpy writes it: room for the first extent to grow to 21 digits, then
 * 1 to 64 bytes up to a multiple of 64, the last a newline. Returns its length, at most 384. */
static size_t build_header(const snug_type *type, char *out, size_t size) {
    char shape[224] = "", first[24] = "";
    int n = 0;
    for (int i = 0; i < type->rank; i++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%lld%s", (long long)type->dims[i],
                      i + 1 < type->rank ? ", "
                      : type->rank == 1  ? ","
                                         : "");
    const int spare =
        type->rank > 0 ? 21 - snprintf(first, sizeof first, "%lld", (long long)type->dims[0]) : 0;
    n = snprintf(out + 10, size - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }%*s",
                 descrs[type->dtype], shape, spare, "");
    const size_t total = ((10 + (size_t)n + 1) / 64 + 1) * 64;
    memset(out + 10 + n, ' ', total - 10 - (size_t)n);
    out[total - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    return total;
}

snug_status snug_npy_create(snug_engine *engine, const char *path, const snug_type *type,
                            snug_npy_writer **out, snug_error *err) {
    SNUG_NEEDS(err, engine && path && type);
    char header[512];
    void *memory;
    size_t bytes;
    snug_type row = *type;
    const bool open = type->rank > 0 && type->dims[0] == SNUG_UNKNOWN;
    if (open)
        row.dims[0] = 1;
    SNUG_TRY(sn_type_check(&row, false, err));
    if (!descrs[type->dtype][0])
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%s: .npy has no element type for %s; cast to f32",
                       path, snug_dtype_name(type->dtype));
    SNUG_TRY(snug_type_bytes(&row, &bytes, err));
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_OTHER, sizeof(snug_npy_writer), &memory, err));
    snug_npy_writer *w = memory;
    w->engine = engine;
    w->left = open ? SIZE_MAX : bytes;
    w->row_bytes = bytes;
    w->open = open ? row : (snug_type){0};
    w->file.fd = -1;
    snug_status status = sn_file_create(&w->file, sn_engine_io(engine), path, err);
    if (status == SNUG_OK) {
        w->header_bytes = build_header(&row, header, sizeof header);
        w->at = (int64_t)w->header_bytes;
        status = sn_file_write(&w->file, header, w->header_bytes, 0, err);
    }
    if (status != SNUG_OK) {
        snug_npy_destroy(w);
        return status;
    }
    *out = w;
    return SNUG_OK;
}

snug_status snug_npy_append(snug_npy_writer *w, const void *rows, size_t bytes, snug_error *err) {
    SNUG_NEEDS(err, w);
    if (bytes > w->left)
        return sn_fail(err, SNUG_E_INVALID, "%s: %zu bytes more than its shape holds", w->file.path,
                       bytes - w->left);
    if (w->file.fd < 0)
        return sn_fail(err, SNUG_E_INVALID, "an .npy file that was committed takes no more rows");
    SNUG_TRY(sn_file_write(&w->file, rows, bytes, w->at, err));
    w->at += (int64_t)bytes;
    w->left -= w->open.rank ? 0 : bytes;
    return SNUG_OK;
}

/* The header once more, now that the rows are counted. */
static snug_status count_rows(snug_npy_writer *w, snug_error *err) {
    char header[512];
    const size_t bytes = (size_t)w->at - w->header_bytes;
    if (w->row_bytes == 0 || bytes % w->row_bytes)
        return sn_fail(err, SNUG_E_INVALID, "%s: %zu bytes are no rows of %zu", w->file.path, bytes,
                       w->row_bytes);
    w->open.dims[0] = (int64_t)(bytes / w->row_bytes);
    build_header(&w->open, header, sizeof header);
    return sn_file_write(&w->file, header, w->header_bytes, 0, err);
}

snug_status snug_npy_commit(snug_npy_writer *w, snug_error *err) {
    SNUG_NEEDS(err, w);
    if (w->file.fd < 0)
        return sn_fail(err, SNUG_E_INVALID, "an .npy file can be committed once");
    if (w->open.rank)
        SNUG_TRY(count_rows(w, err));
    else if (w->left)
        return sn_fail(err, SNUG_E_INVALID, "%s: %zu bytes of its shape were not written",
                       w->file.path, w->left);
    return sn_file_commit(&w->file, err);
}

void snug_npy_destroy(snug_npy_writer *w) {
    if (!w)
        return;
    sn_file_close(&w->file);
    sn_free(w->engine, SN_MEM_OTHER, w, sizeof *w);
}
