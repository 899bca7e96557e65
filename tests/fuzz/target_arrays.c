/* .npy, idx, .gz and CIFAR files: rows read here and there; what was read can be written as an .npy
 * file and is the same again. */
#include "fuzz/fuzz.h"
#include "tensor/type.h"

#include <snug/model.h>
#include <string.h>

enum { ROW_NUMBERS = 2048 };

/* 0: too long for the room here. */
static size_t row_bytes(const snug_type *type, snug_dtype dtype) {
    int64_t n = 1;
    for (int i = 1; i < type->rank; i++)
        if (type->dims[i] > ROW_NUMBERS || (n *= type->dims[i]) > ROW_NUMBERS)
            return 0;
    return (size_t)n * snug_dtype_bytes(dtype);
}

static snug_view row_view(const snug_type *type, snug_dtype dtype, double *room) {
    snug_view v = {.data = room, .bytes = row_bytes(type, dtype), .type = *type};
    v.type.dims[0] = 1;
    v.type.dtype = dtype;
    return v;
}

static void read_some(fuzz *f, snug_feed *feed) {
    static double room[ROW_NUMBERS];
    const snug_type type = *snug_feed_type(feed);
    fuzz_true(type.rank >= 1 && type.rank <= SNUG_MAX_RANK, "the rank");
    for (int i = 0; i < type.rank; i++)
        fuzz_true(type.dims[i] >= 0, "an extent below 0");
    if (type.dims[0] == 0 || row_bytes(&type, SNUG_F64) == 0)
        return;
    const int64_t firsts[] = {0, type.dims[0] - 1, type.dims[0] / 2};
    const snug_dtype dtypes[] = {type.dtype, SNUG_F32, SNUG_F64};
    for (int i = 0; i < 3; i++) {
        const snug_view v = row_view(&type, dtypes[i], room);
        (void)fuzz_ok(f, snug_feed_fill(feed, firsts[i], 1, &v, &f->err));
    }
}

/* All rows as an .npy file: what is read from it is what was written. */
static void write_again(fuzz *f, snug_feed *feed) {
    static double room[ROW_NUMBERS], back[ROW_NUMBERS];
    const snug_type type = *snug_feed_type(feed);
    snug_npy_writer *w;
    snug_feed *again;
    if (type.dims[0] > 64 || row_bytes(&type, SNUG_F64) == 0 ||
        !fuzz_ok(f, snug_npy_create(f->engine, FUZZ_OTHER, &type, &w, &f->err)))
        return;
    const snug_view v = row_view(&type, type.dtype, room), u = row_view(&type, type.dtype, back);
    bool whole = true;
    for (int64_t i = 0; i < type.dims[0] && whole; i++) {
        whole = fuzz_ok(f, snug_feed_fill(feed, i, 1, &v, &f->err));
        if (whole)
            fuzz_must(f, snug_npy_append(w, v.data, v.bytes, &f->err));
    }
    if (whole)
        fuzz_must(f, snug_npy_commit(w, &f->err));
    snug_npy_destroy(w);
    if (!whole)
        return;
    fuzz_must(f, snug_feed_open(f->engine, FUZZ_OTHER, &again, &f->err));
    fuzz_true(sn_type_equal(snug_feed_type(again), &type), "the type that was written");
    for (int64_t i = 0; i < type.dims[0]; i++) {
        fuzz_must(f, snug_feed_fill(feed, i, 1, &v, &f->err));
        fuzz_must(f, snug_feed_fill(again, i, 1, &u, &f->err));
        fuzz_true(memcmp(room, back, v.bytes) == 0, "the row that was written");
    }
    snug_feed_destroy(again);
}

FUZZ_TARGET(arrays) {
    static const char *const sources[] = {FUZZ_FILE, "cifar10:" FUZZ_FILE,
                                          "cifar100-labels:" FUZZ_FILE};
    fuzz f;
    fuzz_begin(&f, bytes, n);
    for (int i = 0; i < 3; i++) {
        snug_feed *feed;
        if (!fuzz_ok(&f, snug_feed_open(f.engine, sources[i], &feed, &f.err)))
            continue;
        read_some(&f, feed);
        if (i == 0)
            write_again(&f, feed);
        snug_feed_destroy(feed);
    }
    fuzz_end(&f, 2 * FUZZ_MIB);
}
