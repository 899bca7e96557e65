/* sort.c: rows in order, or the first k of them, and where each element came from.
 *
 * The order is total: by value, NaN above all numbers, equal ones by their place; so the result
 * does not depend on how it is found. There are three ways:
 *
 *   heap   the first k places in the output itself, the last of them on top; better ones are let
 *          in, then it is emptied from the top: no scratch. For few of many, short rows, 64 bits
 *   radix  (key, place) as one 64-bit number, a pass over each byte of the key, in scratch
 *   count  the reference: for each element, how many come before it */
#include "kernels/cpu/half_floats.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/vmath.h"

#include <assert.h>
#include <string.h>

#define RADIX_LEAST 128 /* elements of a row that are worth the passes */

typedef struct rows rows;
struct rows {
    const sn_call *c;
    bool (*before)(const void *x, int64_t a, int64_t b, bool descending);
    void (*line)(const rows *r, int64_t row);
    int64_t n, k;
    size_t size; /* of an element */
    bool descending, wide;
};

/* Whether element a comes before element b. C: what they are compared in. */
#define BEFORE_AS(name, M, C, get)                                                                 \
    static bool name(const void *data, int64_t a, int64_t b, bool descending) {                    \
        const M *x = data;                                                                         \
        const C p = get(descending ? x[b] : x[a]), q = get(descending ? x[a] : x[b]);              \
        const bool less = q != q ? p == p : p < q, more = p != p ? q == q : q < p;                 \
        return less || (!more && a < b);                                                           \
    }
#define BEFORE(name, M) BEFORE_AS(name, M, M, )
BEFORE(before_f32, float)
BEFORE(before_f64, double)
BEFORE(before_i8, int8_t)
BEFORE(before_u8, uint8_t)
BEFORE(before_i32, int32_t)
BEFORE(before_i64, int64_t)
BEFORE(before_i16, int16_t)
BEFORE(before_u16, uint16_t)
BEFORE(before_u32, uint32_t)
BEFORE_AS(before_f16, sn_f16, float, )
BEFORE_AS(before_bf16, sn_bf16, float, sn_bf16_wide)

static bool (*const orders[SNUG_N_DTYPES])(const void *, int64_t, int64_t, bool) = {
    [SNUG_F32] = before_f32, [SNUG_F64] = before_f64,   [SNUG_I8] = before_i8,
    [SNUG_U8] = before_u8,   [SNUG_I32] = before_i32,   [SNUG_I64] = before_i64,
    [SNUG_I16] = before_i16, [SNUG_U16] = before_u16,   [SNUG_U32] = before_u32,
    [SNUG_F16] = before_f16, [SNUG_BF16] = before_bf16,
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

/* --- radix ------------------------------------------------------------------------------------ */
/* Numbers in the order of the values; both zeros are one, all NaNs are one. */
static inline uint32_t key_f32(float x) {
    const uint32_t u = sn_bits_f32(x + 0.0f);
    return x != x ? UINT32_MAX : u >> 31 ? ~u : u | 0x80000000u;
}

/* The same of a half in the upper two bytes: the lower two are no work. `infinity`: its bits. */
static inline uint32_t key_half(uint16_t u, uint16_t infinity) {
    const uint16_t size = u & 0x7fff;
    const uint16_t key = u >> 15 && size > 0 ? (uint16_t)~u : size | 0x8000;
    return (uint32_t)(size > infinity ? UINT16_MAX : key) << 16;
}

static inline uint32_t key_at(snug_dtype dtype, const void *x, int64_t i) {
    if (dtype == SNUG_F32)
        return key_f32(((const float *)x)[i]);
    if (dtype == SNUG_I32)
        return (uint32_t)((const int32_t *)x)[i] ^ 0x80000000u;
    return key_half(((const uint16_t *)x)[i], dtype == SNUG_F16 ? 0x7c00 : 0x7f80);
}

static void fill_keys(const rows *r, int64_t row, uint64_t *to) {
    const snug_dtype dtype = r->c->in[0].type.dtype;
    const char *x = row_at(r, row);
    const uint32_t turn = r->descending ? UINT32_MAX : 0;
    for (int64_t i = 0; i < r->n; i++) {
        const uint32_t key = key_at(dtype, x, i);
        to[i] = (uint64_t)(key ^ turn) << 32 | (uint32_t)i;
    }
}

/* One pass: `from` in the order of one byte, equal ones as they were; false when all have the same
 * byte and nothing was moved. */
static bool radix_pass(const uint64_t *from, uint64_t *to, int64_t n, int shift) {
    int64_t at[256] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++)
        at[from[i] >> shift & 255]++;
    if (at[from[0] >> shift & 255] == n)
        return false;
    for (int b = 0; b < 256; b++) {
        const int64_t count = at[b];
        at[b] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[at[from[i] >> shift & 255]++] = from[i];
    return true;
}

static void radix_line(const rows *r, int64_t row, uint64_t *scratch) {
    uint64_t *from = scratch, *to = scratch + r->n;
    fill_keys(r, row, from);
    for (int shift = 32; shift < 64; shift += 8) {
        if (!radix_pass(from, to, r->n, shift))
            continue;
        uint64_t *const other = from;
        from = to;
        to = other;
    }
    for (int64_t i = 0; i < r->k; i++) {
        const int64_t from_place = (int64_t)(uint32_t)from[i];
        put(r, row * r->k, i, from_place);
        put_value(r, row, i, from_place);
    }
}

static bool wants_radix(const snug_type *t, int64_t k) {
    const int64_t n = t->dims[t->rank - 1];
    const bool has_keys =
        t->dtype == SNUG_F32 || t->dtype == SNUG_I32 || sn_dtype_is_half(t->dtype);
    return has_keys && n >= RADIX_LEAST && n <= UINT32_MAX && k > n / 16;
}

/* Rows are shared out among so many, each with scratch of its own. */
static int64_t n_parts(const snug_type *t, int n_threads) {
    return sn_min_i64(n_threads > 1 ? n_threads : 1, sn_type_span(t, 0, t->rank - 1));
}

typedef struct {
    const rows *r;
    int64_t n_rows, parts;
} radix_loop;

static void run_parts(const void *ctx, int64_t first, int64_t end) {
    const radix_loop *l = ctx;
    uint64_t *scratch = l->r->c->workspace;
    for (int64_t p = first; p < end; p++)
        for (int64_t row = l->n_rows * p / l->parts; row < l->n_rows * (p + 1) / l->parts; row++)
            radix_line(l->r, row, scratch + 2 * l->r->n * p);
}

static void sort_by_radix(const rows *r) {
    const snug_type *t = &r->c->in[0].type;
    const radix_loop loop = {r, sn_type_span(t, 0, t->rank - 1), n_parts(t, r->c->n_threads)};
    assert(r->c->workspace_bytes >= (size_t)(loop.parts * 2 * r->n) * sizeof(uint64_t));
    sn_parallel(r->c, 8 * sn_type_count(t), loop.parts, run_parts, &loop);
}

static snug_status describe_sort(const sn_opdesc *d, int n_threads, sn_variant *out,
                                 snug_error *err) {
    const snug_type *t = &d->in[0];
    (void)err;
    if (wants_radix(t, d->out[0].dims[t->rank - 1]))
        out->workspace_bytes =
            (size_t)(n_parts(t, n_threads) * 2 * t->dims[t->rank - 1]) * sizeof(uint64_t);
    return SNUG_OK;
}

/* --- the reference, and the families ---------------------------------------------------------- */
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
    if (line == sort_line && wants_radix(t, r.k)) {
        sort_by_radix(&r);
        return SNUG_OK;
    }
    sn_parallel(c, 8 * sn_type_count(t), sn_type_span(t, 0, t->rank - 1), run_lines, &r);
    return SNUG_OK;
}

static snug_status reference_sort(const sn_call *c, snug_error *err) {
    return each_row(c, count_line, err);
}

static snug_status run_sort(const sn_call *c, snug_error *err) {
    return each_row(c, sort_line, err);
}

SN_CPU_FAMILY(sort, .reference = reference_sort, .run = run_sort, .takes_stored = SN_STORED_DTYPES,
              .describe = describe_sort)
