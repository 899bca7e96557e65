/* update.c: the state rows: output k is the next version of variable input k, in its home, so that
 * element i of an output depends on element i of the inputs alone. The numerics are Keras's; the
 * host corrects adam's rate for bias:
 *
 *     moving_average  v = v * momentum + x * (1 - momentum)
 *     sgd             w = w - rate * g
 *     sgd_momentum    m = momentum * m - rate * g
 *                     w = w + m, or with nesterov  w + momentum * m - rate * g
 *     adam            m = m + (g - m) * one_minus_beta1
 *                     v = v + (g * g - v) * one_minus_beta2
 *                     w = w - rate * m / (sqrt(v) + epsilon)
 *
 * Each is written once, for memory type M and the type C computed in: float twice is the fast
 * kernel, float and double its reference, double twice the kernel of f64. */
#include "kernels/cpu/adam.h"
#include "kernels/cpu/lines.h"

#include <math.h>
#include <string.h>

#define ASSIGN_ADD_SPAN(name, M, C)                                                                \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *v = (const M *)c->in[0].data + first;                                             \
        const M *x = (const M *)c->in[1].data + first;                                             \
        M *out = (M *)c->out[0].data + first;                                                      \
        SN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = (M)((C)v[i] + (C)x[i]);                  \
    }

#define MOVING_AVERAGE_SPAN(name, M, C)                                                            \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *v = (const M *)c->in[0].data + first;                                             \
        const M *x = (const M *)c->in[1].data + first;                                             \
        M *out = (M *)c->out[0].data + first;                                                      \
        const C momentum = (C)(M)c->param[0].real;                                                 \
        const C rest = (C)(M)(1 - c->param[0].real);                                               \
        SN_IVDEP for (int64_t i = 0; i < n; i++) out[i] =                                          \
            (M)((C)v[i] * momentum + (C)x[i] * rest);                                              \
    }

#define SGD_SPAN(name, M, C)                                                                       \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = (const M *)c->in[0].data + first;                                             \
        const M *g = (const M *)c->in[1].data + first;                                             \
        M *out = (M *)c->out[0].data + first;                                                      \
        const C rate = (C)(M)c->param[0].real;                                                     \
        SN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = (M)((C)w[i] - rate * (C)g[i]);           \
    }

#define SGD_MOMENTUM_SPAN(name, M, C)                                                              \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = (const M *)c->in[0].data + first, *m = (const M *)c->in[1].data + first;      \
        const M *g = (const M *)c->in[2].data + first;                                             \
        M *w_out = (M *)c->out[0].data + first, *m_out = (M *)c->out[1].data + first;              \
        const C rate = (C)(M)c->param[0].real, momentum = (C)(M)c->param[1].real;                  \
        const bool nesterov = c->attrs->sgd.nesterov != 0;                                         \
        SN_IVDEP for (int64_t i = 0; i < n; i++) {                                                 \
            const C step = rate * (C)g[i];                                                         \
            const C moved = momentum * (C)m[i] - step;                                             \
            const C ahead = momentum * moved - step;                                               \
            w_out[i] = (M)((C)w[i] + (nesterov ? ahead : moved));                                  \
            m_out[i] = (M)moved;                                                                   \
        }                                                                                          \
    }

#define ADAM_SPAN(name, M, C)                                                                      \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = (const M *)c->in[0].data + first, *m = (const M *)c->in[1].data + first;      \
        const M *v = (const M *)c->in[2].data + first, *g = (const M *)c->in[3].data + first;      \
        M *w_out = (M *)c->out[0].data + first, *m_out = (M *)c->out[1].data + first;              \
        M *v_out = (M *)c->out[2].data + first;                                                    \
        const C rate = (C)(M)c->param[0].real, epsilon = (C)(M)c->param[3].real;                   \
        const C toward1 = (C)(M)c->param[1].real, toward2 = (C)(M)c->param[2].real;                \
        if (c->n_in == 4) {                                                                        \
            ADAM_LOOP(M, C, grad *grad)                                                            \
        } else {                                                                                   \
            const M *s = (const M *)c->in[4].data + first;                                         \
            ADAM_LOOP(M, C, (C)s[i])                                                               \
        }                                                                                          \
    }

/* clang-format off */
/*      name            spans */
#define UPDATE_MAP(X)                       \
    X(assign_add,       ASSIGN_ADD_SPAN)    \
    X(moving_average,   MOVING_AVERAGE_SPAN) \
    X(sgd,              SGD_SPAN)           \
    X(sgd_momentum,     SGD_MOMENTUM_SPAN)  \
    X(adam,             ADAM_SPAN)
/* clang-format on */

#define SPANS(name, SPAN)                                                                          \
    SPAN(name##_fast, float, float)                                                                \
    SPAN(name##_f32, float, double)                                                                \
    SPAN(name##_f64, double, double)
UPDATE_MAP(SPANS)

/* Counters are integers; they wrap. */
ASSIGN_ADD_SPAN(assign_add_i8, int8_t, uint64_t)
ASSIGN_ADD_SPAN(assign_add_u8, uint8_t, uint64_t)
ASSIGN_ADD_SPAN(assign_add_i32, int32_t, uint64_t)
ASSIGN_ADD_SPAN(assign_add_i64, int64_t, uint64_t)

static const sn_map maps[SN_N_OPS] = {
#define ROW(name, SPAN)                                                                            \
    [SN_OP_##name] = {.fast_f32 = name##_fast,                                                     \
                      .plain = {[SNUG_F32] = name##_f32, [SNUG_F64] = name##_f64}},
    UPDATE_MAP(ROW)};

static const sn_map count = {.plain = {[SNUG_I8] = assign_add_i8,
                                       [SNUG_U8] = assign_add_u8,
                                       [SNUG_I32] = assign_add_i32,
                                       [SNUG_I64] = assign_add_i64}};

static const sn_map *map_of(const sn_call *c) {
    return c->op == SN_OP_assign_add && sn_dtype_is_int(c->out[0].type.dtype) ? &count
                                                                              : &maps[c->op];
}

static snug_status reference(const sn_call *c, snug_error *err) {
    return sn_map_reference(c, map_of(c), err);
}

static snug_status run(const sn_call *c, snug_error *err) {
    return sn_map_run(c, map_of(c), err);
}

#define FAMILY(name, takes)                                                                        \
    SN_CPU_FAMILY(name, .reference = reference, .run = run, .takes_stored = takes)
FAMILY(assign_add, SN_STORED_DTYPES)
FAMILY(moving_average, SN_HALF_DTYPES)
FAMILY(sgd, SN_HALF_DTYPES)
FAMILY(sgd_momentum, SN_HALF_DTYPES)
FAMILY(adam, SN_HALF_DTYPES)
