/* scan.c: running sums and products along an axis. A value is [outer, extent, inner] with the
 * middle scanned; floats run in double and are rounded where they are stored, integers wrap. Strips
 * of columns are scanned together, each column in its own order, so bits do not depend on the
 * strip. An element is read before its place is written: the output may be the input. */
#include "kernels/cpu/real_elements.h"

#define STRIP 64 /* columns one task scans */

typedef struct {
    const sn_call *c;
    int64_t extent, inner, strips;
    int64_t first, step; /* along the axis: where to start, +1 or -1 */
    bool exclusive;
} scan;

/* Columns [at, at + width) of row 0; they are `inner` apart along the axis. */
typedef void (*scan_strip)(const scan *s, int64_t at, int64_t width);
/* Element i of the column that starts at `at`, by itself. */
typedef void (*scan_element)(const scan *s, int64_t at, int64_t i);

/* clang-format off */
/*      dtype  name  holds  computed in */
#define TYPE_MAP(X, op, start, combine)                    \
    X(SNUG_F32, op##_f32, float, double, start, combine)   \
    X(SNUG_F64, op##_f64, double, double, start, combine)  \
    X(SNUG_I8, op##_i8, int8_t, uint64_t, start, combine)  \
    X(SNUG_U8, op##_u8, uint8_t, uint64_t, start, combine) \
    X(SNUG_I32, op##_i32, int32_t, uint64_t, start, combine) \
    X(SNUG_I64, op##_i64, int64_t, uint64_t, start, combine)
/* clang-format on */
#define SUM_MAP(X)  TYPE_MAP(X, cumsum, 0, +)
#define PROD_MAP(X) TYPE_MAP(X, cumprod, 1, *)

#define SCAN_LOOPS(dtype, name, M, A, start, combine)                                              \
    static void name##_strip(const scan *s, int64_t at, int64_t width) {                           \
        const M *x = (const M *)s->c->in[0].data + at;                                             \
        M *out = (M *)s->c->out[0].data + at;                                                      \
        A sum[STRIP];                                                                              \
        for (int64_t k = 0; k < width; k++)                                                        \
            sum[k] = start;                                                                        \
        for (int64_t n = 0, i = s->first; n < s->extent; n++, i += s->step) {                      \
            for (int64_t k = 0; k < width; k++) {                                                  \
                const A before = sum[k];                                                           \
                sum[k] = before combine(A) x[i * s->inner + k];                                    \
                out[i * s->inner + k] = (M)(s->exclusive ? before : sum[k]);                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_element(const scan *s, int64_t at, int64_t i) {                             \
        const M *x = (const M *)s->c->in[0].data + at;                                             \
        A sum = start;                                                                             \
        for (int64_t j = s->first; j != i; j += s->step)                                           \
            sum = sum combine(A) x[j * s->inner];                                                  \
        if (!s->exclusive)                                                                         \
            sum = sum combine(A) x[i * s->inner];                                                  \
        ((M *)s->c->out[0].data)[at + i * s->inner] = (M)sum;                                      \
    }
SUM_MAP(SCAN_LOOPS)
PROD_MAP(SCAN_LOOPS)

/* Halves are rounded to f32 and then to what holds them. */
static void half_strip(const scan *s, int64_t at, int64_t width) {
    const snug_dtype dtype = s->c->in[0].type.dtype;
    const uint16_t *x = (const uint16_t *)s->c->in[0].data + at;
    uint16_t *out = (uint16_t *)s->c->out[0].data + at;
    const bool adds = s->c->op == SN_OP_cumsum;
    double sum[STRIP];
    float line[STRIP];
    for (int64_t k = 0; k < width; k++)
        sum[k] = adds ? 0 : 1;
    for (int64_t n = 0, i = s->first; n < s->extent; n++, i += s->step) {
        sn_halves_to_f32(dtype, x + i * s->inner, width, line);
        for (int64_t k = 0; k < width; k++) {
            const double before = sum[k], v = (double)line[k];
            sum[k] = adds ? before + v : before * v;
            line[k] = (float)(s->exclusive ? before : sum[k]);
        }
        sn_halves_of_f32(dtype, line, width, out + i * s->inner);
    }
}

static void half_element(const scan *s, int64_t at, int64_t i) {
    const sn_reals x = sn_reals_of(&s->c->in[0]), out = sn_reals_of(&s->c->out[0]);
    const bool adds = s->c->op == SN_OP_cumsum;
    double sum = adds ? 0 : 1;
    for (int64_t j = s->first; j != i + (s->exclusive ? 0 : s->step); j += s->step) {
        const double v = sn_real_at(x, at + j * s->inner);
        sum = adds ? sum + v : sum * v;
    }
    sn_real_put(out, at + i * s->inner, sum);
}

/* Narrow whole numbers. */
static void narrow_strip(const scan *s, int64_t at, int64_t width) {
    const snug_view *x = &s->c->in[0], *out = &s->c->out[0];
    const bool adds = s->c->op == SN_OP_cumsum;
    uint64_t sum[STRIP];
    for (int64_t k = 0; k < width; k++)
        sum[k] = adds ? 0 : 1;
    for (int64_t n = 0, i = s->first; n < s->extent; n++, i += s->step)
        for (int64_t k = 0; k < width; k++) {
            const int64_t place = at + i * s->inner + k;
            const uint64_t before = sum[k];
            const uint64_t v = (uint64_t)sn_narrow_at(x->type.dtype, x->data, place);
            sum[k] = adds ? before + v : before * v;
            sn_narrow_put(x->type.dtype, out->data, place, s->exclusive ? before : sum[k]);
        }
}

static void narrow_element(const scan *s, int64_t at, int64_t i) {
    const snug_view *x = &s->c->in[0], *out = &s->c->out[0];
    const bool adds = s->c->op == SN_OP_cumsum;
    uint64_t sum = adds ? 0 : 1;
    for (int64_t j = s->first; j != i + (s->exclusive ? 0 : s->step); j += s->step) {
        const uint64_t v = (uint64_t)sn_narrow_at(x->type.dtype, x->data, at + j * s->inner);
        sum = adds ? sum + v : sum * v;
    }
    sn_narrow_put(x->type.dtype, out->data, at + i * s->inner, sum);
}

#define STORED(how)                                                                                \
    [SNUG_F16] = half_##how, [SNUG_BF16] = half_##how, [SNUG_I16] = narrow_##how,                  \
    [SNUG_U16] = narrow_##how, [SNUG_U32] = narrow_##how
#define STRIP_ENTRY(dtype, name, ...)   [dtype] = name##_strip,
#define ELEMENT_ENTRY(dtype, name, ...) [dtype] = name##_element,
static const scan_strip strips[SN_N_OPS][SNUG_N_DTYPES] = {
    [SN_OP_cumsum] = {SUM_MAP(STRIP_ENTRY) STORED(strip)},
    [SN_OP_cumprod] = {PROD_MAP(STRIP_ENTRY) STORED(strip)}};
static const scan_element elements[SN_N_OPS][SNUG_N_DTYPES] = {
    [SN_OP_cumsum] = {SUM_MAP(ELEMENT_ENTRY) STORED(element)},
    [SN_OP_cumprod] = {PROD_MAP(ELEMENT_ENTRY) STORED(element)}};

static scan scan_of(const sn_call *c) {
    const sn_attrs_scan *a = &c->attrs->scan;
    const snug_type *t = &c->in[0].type;
    const int64_t extent = t->dims[a->axis], inner = sn_type_span(t, (int)a->axis + 1, t->rank);
    return (scan){
        .c = c,
        .extent = extent,
        .inner = inner,
        .strips = sn_ceil_div(inner, STRIP),
        .first = a->reverse ? extent - 1 : 0,
        .step = a->reverse ? -1 : 1,
        .exclusive = a->exclusive != 0,
    };
}

static int64_t outer_of(const sn_call *c) {
    return sn_type_span(&c->in[0].type, 0, (int)c->attrs->scan.axis);
}

static void run_strips(const void *ctx, int64_t first, int64_t end) {
    const scan *s = ctx;
    const scan_strip strip = strips[s->c->op][s->c->in[0].type.dtype];
    for (int64_t task = first; task < end; task++) {
        const int64_t column = task % s->strips * STRIP;
        strip(s, task / s->strips * s->extent * s->inner + column,
              sn_min_i64(STRIP, s->inner - column));
    }
}

static snug_status run_scan(const sn_call *c, snug_error *err) {
    const scan s = scan_of(c);
    if (!strips[c->op][c->in[0].type.dtype])
        return sn_no_kernel(c->in[0].type.dtype, err);
    sn_parallel(c, sn_type_count(&c->in[0].type), outer_of(c) * s.strips, run_strips, &s);
    return SNUG_OK;
}

/* Elements from the last of the order to the first, so that in place each still finds those before
 * it. */
static snug_status reference_scan(const sn_call *c, snug_error *err) {
    const scan s = scan_of(c);
    const scan_element element = elements[c->op][c->in[0].type.dtype];
    if (!element)
        return sn_no_kernel(c->in[0].type.dtype, err);
    const int64_t columns = outer_of(c) * s.inner, last = s.first + (s.extent - 1) * s.step;
    for (int64_t o = 0; o < columns; o++)
        for (int64_t n = 0; n < s.extent; n++)
            element(&s, o / s.inner * s.extent * s.inner + o % s.inner, last - n * s.step);
    return SNUG_OK;
}

SN_CPU_FAMILY(cumsum, .reference = reference_scan, .run = run_scan,
              .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(cumprod, .reference = reference_scan, .run = run_scan,
              .takes_stored = SN_STORED_DTYPES)
