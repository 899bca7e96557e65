/* sort.c: rows in order, or the first k of them, and where each element came from.
 *
 * The order is total: by value, NaN above all numbers, equal ones by their place; so the result
 * does not depend on how it is found. The fast kernel keeps a heap of the first k places in the
 * output itself (its top is the last of them), lets better ones in, and empties it from the top: no
 * scratch. The reference counts for each element how many come before it. */
#include "kernels/cpu/loops.h"

#include <string.h>

typedef struct rows rows;
struct rows {
    const sn_call *c;
    bool (*before)(const void *x, int64_t a, int64_t b, bool descending);
    void (*line)(const rows *r, int64_t row);
    int64_t n, k;
    size_t size; /* of an element */
    bool descending, wide;
};

/* Whether element a comes before element b. */
#define BEFORE(name, M)                                                                            \
    static bool name(const void *data, int64_t a, int64_t b, bool descending) {                    \
        const M *x = data;                                                                         \
        const M p = descending ? x[b] : x[a], q = descending ? x[a] : x[b];                        \
        const bool less = q != q ? p == p : p < q, more = p != p ? q == q : q < p;                 \
        return less || (!more && a < b);                                                           \
    }
BEFORE(before_f32, float)
BEFORE(before_f64, double)
BEFORE(before_i8, int8_t)
BEFORE(before_u8, uint8_t)
BEFORE(before_i32, int32_t)
BEFORE(before_i64, int64_t)

static bool (*const orders[SNUG_N_DTYPES])(const void *, int64_t, int64_t, bool) = {
    [SNUG_F32] = before_f32, [SNUG_F64] = before_f64, [SNUG_I8] = before_i8,
    [SNUG_U8] = before_u8,   [SNUG_I32] = before_i32, [SNUG_I64] = before_i64,
};

static const char *row_at(const rows *r, int64_t row) {
    return (const char *)r->c->in[0].data + (size_t)(row * r->n) * r->size;
}

/* Place i of the output row that starts at `at`. */
static int64_t get(const rows *r, int64_t at, int64_t i) {
    const void *places = r->c->out[1].data;
    return r->wide ? ((const int64_t *)places)[at + i] : ((const int32_t *)places)[at + i];
}

static void put(const rows *r, int64_t at, int64_t i, int64_t place) {
    void *places = r->c->out[1].data;
    if (r->wide)
        ((int64_t *)places)[at + i] = place;
    else
        ((int32_t *)places)[at + i] = (int32_t)place;
}

static void put_value(const rows *r, int64_t row, int64_t i, int64_t place) {
    memcpy((char *)r->c->out[0].data + (size_t)(row * r->k + i) * r->size,
           row_at(r, row) + (size_t)place * r->size, r->size);
}

/* --- a heap of n places: a parent comes after its children ------------------------------------ */
static void sift_down(const rows *r, int64_t row, int64_t at, int64_t n) {
    const char *x = row_at(r, row);
    const int64_t base = row * r->k, moved = get(r, base, at);
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n &&
            r->before(x, get(r, base, child), get(r, base, child + 1), r->descending))
            child++;
        if (!r->before(x, moved, get(r, base, child), r->descending))
            break;
        put(r, base, at, get(r, base, child));
        at = child;
    }
    put(r, base, at, moved);
}

static void sort_line(const rows *r, int64_t row) {
    const int64_t base = row * r->k;
    for (int64_t i = 0; i < r->k; i++)
        put(r, base, i, i);
    for (int64_t i = r->k / 2 - 1; i >= 0; i--)
        sift_down(r, row, i, r->k);
    for (int64_t i = r->k; i < r->n && r->k > 0; i++) {
        if (!r->before(row_at(r, row), i, get(r, base, 0), r->descending))
            continue;
        put(r, base, 0, i);
        sift_down(r, row, 0, r->k);
    }
    for (int64_t i = r->k - 1; i >= 0; i--) {
        const int64_t last = get(r, base, 0);
        put(r, base, 0, get(r, base, i));
        sift_down(r, row, 0, i);
        put(r, base, i, last);
        put_value(r, row, i, last);
    }
}

static void count_line(const rows *r, int64_t row) {
    for (int64_t i = 0; i < r->n; i++) {
        int64_t place = 0;
        for (int64_t j = 0; j < r->n; j++)
            place += j != i && r->before(row_at(r, row), j, i, r->descending);
        if (place >= r->k)
            continue;
        put(r, row * r->k, place, i);
        put_value(r, row, place, i);
    }
}

static void run_lines(const void *ctx, int64_t first, int64_t end) {
    const rows *r = ctx;
    for (int64_t row = first; row < end; row++)
        r->line(r, row);
}

static snug_status each_row(const sn_call *c, void (*line)(const rows *, int64_t),
                            snug_error *err) {
    const snug_type *t = &c->in[0].type;
    const rows r = {
        .c = c,
        .before = orders[t->dtype],
        .line = line,
        .n = t->dims[t->rank - 1],
        .k = c->out[0].type.dims[t->rank - 1],
        .size = snug_dtype_bytes(t->dtype),
        .descending = c->attrs->sort.descending != 0,
        .wide = c->out[1].type.dtype == SNUG_I64,
    };
    if (!r.before)
        return sn_no_kernel(t->dtype, err);
    sn_parallel(c, 8 * sn_type_count(t), sn_type_span(t, 0, t->rank - 1), run_lines, &r);
    return SNUG_OK;
}

static snug_status reference_sort(const sn_call *c, snug_error *err) {
    return each_row(c, count_line, err);
}

static snug_status run_sort(const sn_call *c, snug_error *err) {
    return each_row(c, sort_line, err);
}

SN_CPU_FAMILY(sort, .reference = reference_sort, .run = run_sort)
