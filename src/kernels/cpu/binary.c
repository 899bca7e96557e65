/* binary.c: elementwise operators with broadcasting: arithmetic, comparison, logic, select.
 *
 * An operator is one expression of x and y. The fast path merges axes (loops.h) and has own loops
 * for the three forms an f32 row can take: both dense, or one of them constant along the row. The
 * reference finds every element by its index alone. Arithmetic in double, rounded once to f32, has
 * the bits of f32 arithmetic, so both agree. */
#include "kernels/cpu/lines.h"

#include <math.h>

#define SHORT 64 /* longest row worth repeating */

/* NaN in either operand gives NaN. */
#define LARGER  (x > y || x != x ? x : y)
#define SMALLER (x < y || x != x ? x : y)

/* clang-format off */
/*      name      f32 and f64   integers, in 64 bits, wrapping */
#define NUMBER_MAP(X)                                           \
    X(add,        x + y,        (int64_t)((uint64_t)x + (uint64_t)y)) \
    X(sub,        x - y,        (int64_t)((uint64_t)x - (uint64_t)y)) \
    X(mul,        x * y,        (int64_t)((uint64_t)x * (uint64_t)y)) \
    X(maximum,    LARGER,       x > y ? x : y)                        \
    X(minimum,    SMALLER,      x < y ? x : y)
#define FLOAT_MAP(X) \
    X(div, x / y, 0)
/*      name      f32                 its reference, in double  f64                integers */
#define STEP_MAP(X)                                                                                \
    X(pow,        powf(x, y),         pow(x, y),                pow(x, y),         whole_pow(x, y)) \
    X(floor_div,  floorf(x / y),      floorf((float)(x / y)),   floor(x / y),      whole_div(x, y)) \
    X(mod,        restf(x, y),        rest(x, y),               rest(x, y),        whole_mod(x, y))
#define ANGLE_MAP(X) \
    X(atan2, atan2f(x, y), atan2(x, y))
#define COMPARE_MAP(X) \
    X(greater, x > y)  \
    X(greater_equal, x >= y)
#define EQUAL_MAP(X)  \
    X(equal, x == y)  \
    X(not_equal, x != y)
#define BOOL_MAP(X)        \
    X(logical_and, x && y) \
    X(logical_or, x || y)
/* clang-format on */

/* The rest has the sign of y. */
static inline double rest(double x, double y) {
    const double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline float restf(float x, float y) {
    const float r = fmodf(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* -2^63 / -1 wraps. */
static inline int64_t whole_div(int64_t x, int64_t y) {
    if (y == 0 || y == -1)
        return y == 0 ? 0 : (int64_t)(0 - (uint64_t)x);
    return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}

static inline int64_t whole_mod(int64_t x, int64_t y) {
    if (y == 0 || y == -1)
        return 0;
    const int64_t r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* By squaring, wrapping. */
static inline int64_t whole_pow(int64_t x, int64_t y) {
    uint64_t power = (uint64_t)x, result = 1;
    if (y < 0)
        return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
    for (; y > 0; y /= 2, power *= power)
        result *= y % 2 == 1 ? power : 1;
    return (int64_t)result;
}

/* --- rows ------------------------------------------------------------------------------------- */
/* Steps are 0 or 1. M: what memory holds, C: the type computed in, R: the result's. */
#define ROW(name, M, C, R, expression)                                                             \
    static void name(const sn_call *c, const sn_walk *w, const int64_t *at, int64_t n) {           \
        const M *a = (const M *)c->in[0].data + at[1], *b = (const M *)c->in[1].data + at[2];      \
        const int64_t step_a = sn_walk_step(w, 1), step_b = sn_walk_step(w, 2);                    \
        R *out = (R *)c->out[0].data + at[0];                                                      \
        SN_IVDEP for (int64_t i = 0; i < n; i++) {                                                 \
            const C x = a[i * step_a], y = b[i * step_b];                                          \
            out[i] = (R)(expression);                                                              \
        }                                                                                          \
    }

#define FAST_ROW(name, expression, unused)                                                         \
    static void name##_fast(const sn_call *c, const sn_walk *w, const int64_t *at, int64_t n) {    \
        const float *a = (const float *)c->in[0].data + at[1];                                     \
        const float *b = (const float *)c->in[1].data + at[2];                                     \
        float *out = (float *)c->out[0].data + at[0];                                              \
        if (sn_walk_step(w, 1) == 0) {                                                             \
            const float x = a[0];                                                                  \
            SN_IVDEP for (int64_t i = 0; i < n; i++) {                                             \
                const float y = b[i];                                                              \
                out[i] = expression;                                                               \
            }                                                                                      \
        } else if (sn_walk_step(w, 2) == 0) {                                                      \
            const float y = b[0];                                                                  \
            SN_IVDEP for (int64_t i = 0; i < n; i++) {                                             \
                const float x = a[i];                                                              \
                out[i] = expression;                                                               \
            }                                                                                      \
        } else {                                                                                   \
            SN_IVDEP for (int64_t i = 0; i < n; i++) {                                             \
                const float x = a[i], y = b[i];                                                    \
                out[i] = expression;                                                               \
            }                                                                                      \
        }                                                                                          \
    }

#define FLOAT_ROWS(name, real, whole)                                                              \
    FAST_ROW(name, real, whole)                                                                    \
    ROW(name##_f32, float, double, float, real)                                                    \
    ROW(name##_f64, double, double, double, real)
#define NUMBER_ROWS(name, real, whole)                                                             \
    FLOAT_ROWS(name, real, whole)                                                                  \
    WHOLE_ROWS(name, whole)
#define COMPARE_ROWS(name, test)                                                                   \
    ROW(name##_f32, float, float, uint8_t, test)                                                   \
    ROW(name##_f64, double, double, uint8_t, test)                                                 \
    ROW(name##_i8, int8_t, int8_t, uint8_t, test)                                                  \
    ROW(name##_u8, uint8_t, uint8_t, uint8_t, test)                                                \
    ROW(name##_i32, int32_t, int32_t, uint8_t, test)                                               \
    ROW(name##_i64, int64_t, int64_t, uint8_t, test)
#define WHOLE_ROWS(name, whole)                                                                    \
    ROW(name##_i8, int8_t, int64_t, int8_t, whole)                                                 \
    ROW(name##_u8, uint8_t, int64_t, uint8_t, whole)                                               \
    ROW(name##_i32, int32_t, int64_t, int32_t, whole)                                              \
    ROW(name##_i64, int64_t, int64_t, int64_t, whole)
#define STEP_ROWS(name, single, same, real, whole)                                                 \
    FAST_ROW(name, single, )                                                                       \
    ROW(name##_f32, float, double, float, same)                                                    \
    ROW(name##_f64, double, double, double, real)                                                  \
    WHOLE_ROWS(name, whole)
#define ANGLE_ROWS(name, single, real)                                                             \
    FAST_ROW(name, single, )                                                                       \
    ROW(name##_f32, float, double, float, real)                                                    \
    ROW(name##_f64, double, double, double, real)
#define BOOL_ROWS(name, test) ROW(name##_bool, uint8_t, uint8_t, uint8_t, test)

NUMBER_MAP(NUMBER_ROWS)
FLOAT_MAP(FLOAT_ROWS)
STEP_MAP(STEP_ROWS)
ANGLE_MAP(ANGLE_ROWS)
COMPARE_MAP(COMPARE_ROWS)
EQUAL_MAP(COMPARE_ROWS)
BOOL_MAP(BOOL_ROWS)

/* Plain rows by the dtype of input 0, and the fast f32 row (NULL: the plain one is all there
 * is). */
static const struct {
    sn_row fast_f32;
    sn_row plain[SNUG_N_DTYPES];
} rows[SN_N_OPS] = {
#define ALL_INTEGERS(name)                                                                         \
    [SNUG_I8] = name##_i8, [SNUG_U8] = name##_u8, [SNUG_I32] = name##_i32, [SNUG_I64] = name##_i64
#define BOTH_FLOATS(name) [SNUG_F32] = name##_f32, [SNUG_F64] = name##_f64
#define NUMBER_ENTRY(name, real, whole)                                                            \
    [SN_OP_##name] = {.fast_f32 = name##_fast, .plain = {BOTH_FLOATS(name), ALL_INTEGERS(name)}},
#define FLOAT_ENTRY(name, real, whole)                                                             \
    [SN_OP_##name] = {.fast_f32 = name##_fast, .plain = {BOTH_FLOATS(name)}},
#define COMPARE_ENTRY(name, test)                                                                  \
    [SN_OP_##name] = {.plain = {BOTH_FLOATS(name), ALL_INTEGERS(name)}},
#define EQUAL_ENTRY(name, test)                                                                    \
    [SN_OP_##name] = {.plain = {BOTH_FLOATS(name), ALL_INTEGERS(name), [SNUG_BOOL] = name##_u8}},
#define STEP_ENTRY(name, ...)  NUMBER_ENTRY(name, , )
#define BOOL_ENTRY(name, test) [SN_OP_##name] = {.plain = {[SNUG_BOOL] = name##_bool}},
    NUMBER_MAP(NUMBER_ENTRY) FLOAT_MAP(FLOAT_ENTRY) STEP_MAP(STEP_ENTRY) ANGLE_MAP(FLOAT_ENTRY)
        COMPARE_MAP(COMPARE_ENTRY) EQUAL_MAP(EQUAL_ENTRY) BOOL_MAP(BOOL_ENTRY)};

/* --- select: by the bytes of an element ------------------------------------------------------- */
#define SELECT_ROW(name, M)                                                                        \
    static void name(const sn_call *c, const sn_walk *w, const int64_t *at, int64_t n) {           \
        const uint8_t *test = (const uint8_t *)c->in[0].data + at[1];                              \
        const M *yes = (const M *)c->in[1].data + at[2], *no = (const M *)c->in[2].data + at[3];   \
        const int64_t step = sn_walk_step(w, 1);                                                   \
        const int64_t step_yes = sn_walk_step(w, 2), step_no = sn_walk_step(w, 3);                 \
        M *out = (M *)c->out[0].data + at[0];                                                      \
        if (step == 1 && step_yes == 1 && step_no == 1) {                                          \
            SN_IVDEP for (int64_t i = 0; i < n; i++) {                                             \
                const M a = yes[i], b = no[i];                                                     \
                out[i] = test[i] ? a : b;                                                          \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = test[i * step] ? yes[i * step_yes] : no[i * step_no];                     \
        }                                                                                          \
    }
SELECT_ROW(select_1, uint8_t)
SELECT_ROW(select_2, uint16_t)
SELECT_ROW(select_4, uint32_t)
SELECT_ROW(select_8, uint64_t)

static sn_row select_row(snug_dtype dtype) {
    const size_t bytes = snug_dtype_bytes(dtype);
    return bytes == 1   ? select_1
           : bytes == 2 ? select_2
           : bytes == 4 ? select_4
           : bytes == 8 ? select_8
                        : NULL;
}

/* --- families --------------------------------------------------------------------------------- */
static sn_walk walk_of(const sn_call *c) {
    sn_walk w = sn_walk_over(&c->out[0].type);
    for (int i = 0; i < c->n_in; i++)
        sn_walk_add_broadcast(&w, &c->in[i].type);
    return w;
}

static void each_element(const sn_call *c, sn_row row) {
    const sn_walk w = walk_of(c);
    sn_walk_elements(&w, c, row);
}

/* The operand (1 or 2) that is one short row, the same for all rows of the other; 0: there is
 * none. */
static int short_row(const sn_walk *w) {
    if (w->rank != 2 || w->n != 3 || w->dims[1] < 1 || w->dims[1] > SHORT)
        return 0;
    for (int i = 1; i <= 2; i++) {
        const bool repeats = w->stride[i][0] == 0 && w->stride[i][1] == 1;
        const bool other_dense = w->stride[3 - i][0] == w->dims[1] && w->stride[3 - i][1] == 1;
        if (repeats && other_dense)
            return i;
    }
    return 0;
}

typedef struct {
    const sn_call *c;
    const sn_walk *w;
    sn_row row;
    int64_t count, length;
    int operand; /* the repeated one */
} repeat_loop;

static void run_repeats(const void *ctx, int64_t first, int64_t end) {
    const repeat_loop *l = ctx;
    for (int64_t u = first; u < end; u++) {
        const int64_t from = u * l->length;
        int64_t at[SN_WALK_MAX] = {from, from, from};
        at[l->operand] = 0;
        l->row(l->c, l->w, at, sn_min_i64(l->length, l->count - from));
    }
}

/* f32: the short row is written out many times, then all is dense: no call and no tail per row. */
static void repeat_short_row(const sn_call *c, const sn_walk *w, int operand, sn_row row) {
    float repeated[SHORT * 16];
    const int64_t inner = w->dims[1], count = w->dims[0] * inner;
    const int64_t length = SHORT * 16 / inner * inner;
    snug_view in[2] = {c->in[0], c->in[1]};
    sn_call flat_call = *c;
    const sn_walk flat = {
        .rank = 1, .n = 3, .dims = {length}, .stride = {[0] = {1}, [1] = {1}, [2] = {1}}};
    for (int64_t i = 0; i < length; i++)
        repeated[i] = ((const float *)in[operand - 1].data)[i % inner];
    in[operand - 1].data = repeated;
    flat_call.in = in;
    const repeat_loop loop = {&flat_call, &flat, row, count, length, operand};
    sn_parallel(c, count, sn_ceil_div(count, length), run_repeats, &loop);
}

static void merged_rows(const sn_call *c, sn_row row, bool fast_f32) {
    sn_walk w = walk_of(c);
    sn_walk_merge(&w);
    const int operand = fast_f32 ? short_row(&w) : 0;
    if (operand > 0)
        repeat_short_row(c, &w, operand, row);
    else
        sn_walk_run(&w, c, row);
}

static snug_status reference(const sn_call *c, snug_error *err) {
    const snug_dtype dtype = c->in[0].type.dtype, line = sn_dtype_line(dtype);
    const sn_row row = rows[c->op].plain[line];
    if (!row)
        return sn_no_kernel(dtype, err);
    if (line == dtype) {
        each_element(c, row);
    } else {
        const sn_walk w = walk_of(c);
        sn_line_elements(&w, c, row, line);
    }
    return SNUG_OK;
}

static snug_status run(const sn_call *c, snug_error *err) {
    const snug_dtype dtype = c->in[0].type.dtype, line = sn_dtype_line(dtype);
    const sn_row fast = line == SNUG_F32 ? rows[c->op].fast_f32 : NULL;
    const sn_row row = fast ? fast : rows[c->op].plain[line];
    if (!row)
        return sn_no_kernel(dtype, err);
    if (line == dtype) {
        merged_rows(c, row, fast != NULL);
    } else {
        sn_walk w = walk_of(c);
        sn_walk_merge(&w);
        sn_line_walk(&w, c, row, line);
    }
    return SNUG_OK;
}

static snug_status reference_select(const sn_call *c, snug_error *err) {
    const sn_row row = select_row(c->out[0].type.dtype);
    if (!row)
        return sn_no_kernel(c->out[0].type.dtype, err);
    each_element(c, row);
    return SNUG_OK;
}

static snug_status run_select(const sn_call *c, snug_error *err) {
    const sn_row row = select_row(c->out[0].type.dtype);
    if (!row)
        return sn_no_kernel(c->out[0].type.dtype, err);
    merged_rows(c, row, false);
    return SNUG_OK;
}

#define FAMILY(name, ...)                                                                          \
    SN_CPU_FAMILY(name, .reference = reference, .run = run, .takes_stored = SN_STORED_DTYPES)
NUMBER_MAP(FAMILY)
STEP_MAP(FAMILY)
COMPARE_MAP(FAMILY)
EQUAL_MAP(FAMILY)
#define REAL_FAMILY(name, ...)                                                                     \
    SN_CPU_FAMILY(name, .reference = reference, .run = run, .takes_stored = SN_HALF_DTYPES)
FLOAT_MAP(REAL_FAMILY)
ANGLE_MAP(REAL_FAMILY)
#define BOOL_FAMILY(name, ...) SN_CPU_FAMILY(name, .reference = reference, .run = run)
BOOL_MAP(BOOL_FAMILY)
SN_CPU_FAMILY(select, .reference = reference_select, .run = run_select,
              .takes_stored = SN_STORED_DTYPES)
