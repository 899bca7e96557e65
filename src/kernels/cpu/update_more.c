/* update_more.c: state rows of the optimizers behind SGD and Adam (update.c). Output k is the next
 * version of variable input k, in its home, so that element i of an output depends on element i of
 * the inputs alone: every element is read before it is written. The numerics are Keras's; what
 * depends on the step alone the host computes:
 *
 *     amsgrad       m, v as in adam;  top = max(top, v);  w = w - rate * m / (sqrt(top) + epsilon)
 *     rmsprop       v = rho * v + (1 - rho) * g * g;  step = rate * g / sqrt(v + epsilon);  w = w -
 *                   step.  centered: a = rho * a + (1 - rho) * g, and v - a * a under the root.
 *                   With a momentum: m = momentum * m + step;  w = w - m
 *     adagrad       a = a + g * g;  w = w - rate * g / sqrt(a + epsilon)
 *     adadelta      a = rho * a + (1 - rho) * g * g;  s = sqrt(d + epsilon) * g / sqrt(a + epsilon)
 *                   d = rho * d + (1 - rho) * s * s;  w = w - rate * s
 *     adamax        m as in adam;  u = max(beta2 * u, |g|);  w = w - rate * m / (u + epsilon)
 *     nadam         m, v as in adam;
 *                   w = w - (mean_rate * m + now_rate * g) / (sqrt(square_part * v) + epsilon)
 *     lion          w = w - rate * sign(beta1 * m + (1 - beta1) * g);
 *                   m = beta2 * m + (1 - beta2) * g
 *     ftrl          b = a + g * g;  z = z + g + 2 * shrinkage * w - (b^p - a^p) / rate * w;
 *                   w = (clip(z, -l1, l1) - z) / (b^p / rate + 2 * l2);  a = b;  p = -power
 *     weight_decay  w = w - w * decay * rate
 *
 * One more input behind g stands for g * g (adamax: for |g|) where rows of a table were squared
 * before they were added. Each is written once, for memory type M and the type C computed in: float
 * twice is the fast kernel, float and double its reference, double twice the kernel of f64. */
#include "kernels/cpu/lines.h"

#include <math.h>

static inline float root_float(float x) {
    return sqrtf(x);
}
static inline double root_double(double x) {
    return sqrt(x);
}
static inline float power_float(float x, float p) {
    return powf(x, p);
}
static inline double power_double(double x, double p) {
    return pow(x, p);
}

/* Elements from `first` of input and output k; parameter k as the kernel computes with it. */
#define IN(k, M)       ((const M *)c->in[k].data + first)
#define OUT(k, M)      ((M *)c->out[k].data + first)
#define PARAM(k, M, C) ((C)(M)c->param[k].real)
/* 1 - parameter k, rounded once. */
#define REST(k, M, C) ((C)(M)(1 - c->param[k].real))
#define MAX_OF(a, b)  ((a) > (b) ? (a) : (b))
#define SIZE_OF(a)    ((a) < 0 ? -(a) : (a))
/* The gradient is input k, what stands for its squares (adamax: for its sizes) input k + 1 where
 * there is one; otherwise g is read in its place and not used. */
#define SQUARES_BEHIND(k, M)                                                                       \
    const bool given = c->n_in > (k) + 1;                                                          \
    const M *q = given ? IN((k) + 1, M) : IN(k, M)
#define SQUARED(C)      (given ? (C)q[i] : grad * grad)
#define EACH_ELEMENT(i) SN_IVDEP for (int64_t i = 0; i < n; i++)

#define AMSGRAD_SPAN(name, M, C)                                                                   \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M), *m = IN(1, M), *v = IN(2, M), *top = IN(3, M), *g = IN(4, M);       \
        M *w_out = OUT(0, M), *m_out = OUT(1, M), *v_out = OUT(2, M), *top_out = OUT(3, M);        \
        const C rate = PARAM(0, M, C), epsilon = PARAM(3, M, C);                                   \
        const C toward1 = PARAM(1, M, C), toward2 = PARAM(2, M, C);                                \
        SQUARES_BEHIND(4, M);                                                                      \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i];                                                                \
            const C mean = (C)m[i] + (grad - (C)m[i]) * toward1;                                   \
            const C square = (C)v[i] + (SQUARED(C) - (C)v[i]) * toward2;                           \
            const C most = MAX_OF((C)top[i], square);                                              \
            w_out[i] = (M)((C)w[i] - rate * mean / (root_##C(most) + epsilon));                    \
            m_out[i] = (M)mean;                                                                    \
            v_out[i] = (M)square;                                                                  \
            top_out[i] = (M)most;                                                                  \
        }                                                                                          \
    }

/* The average gradient stands at 2 where there is one, the momentum is the last state. Where one is
 * absent its pointer is v's, which is read and not used. */
#define RMSPROP_SPAN(name, M, C)                                                                   \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const bool centered = c->attrs->rmsprop.centered != 0, moving = c->n_out == 3 + centered;  \
        const int at_a = centered ? 2 : 1, at_m = moving ? 2 + centered : 1;                       \
        const M *w = IN(0, M), *v = IN(1, M), *a = IN(at_a, M), *m = IN(at_m, M);                  \
        const M *g = IN(c->n_out, M);                                                              \
        M *w_out = OUT(0, M), *v_out = OUT(1, M), *a_out = OUT(at_a, M), *m_out = OUT(at_m, M);    \
        const C rate = PARAM(0, M, C), rho = PARAM(1, M, C), rest = REST(1, M, C);                 \
        const C momentum = PARAM(2, M, C), epsilon = PARAM(3, M, C);                               \
        SQUARES_BEHIND(c->n_out, M);                                                               \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i];                                                                \
            const C square = rho * (C)v[i] + rest * SQUARED(C);                                    \
            const C mean = centered ? rho * (C)a[i] + rest * grad : 0;                             \
            const C step = rate * grad / root_##C(square - mean * mean + epsilon);                 \
            const C moved = moving ? momentum * (C)m[i] + step : step;                             \
            w_out[i] = (M)((C)w[i] - moved);                                                       \
            v_out[i] = (M)square;                                                                  \
            if (centered)                                                                          \
                a_out[i] = (M)mean;                                                                \
            if (moving)                                                                            \
                m_out[i] = (M)moved;                                                               \
        }                                                                                          \
    }

#define ADAGRAD_SPAN(name, M, C)                                                                   \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M), *a = IN(1, M), *g = IN(2, M);                                       \
        M *w_out = OUT(0, M), *a_out = OUT(1, M);                                                  \
        const C rate = PARAM(0, M, C), epsilon = PARAM(1, M, C);                                   \
        SQUARES_BEHIND(2, M);                                                                      \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i];                                                                \
            const C sum = (C)a[i] + SQUARED(C);                                                    \
            w_out[i] = (M)((C)w[i] - rate * grad / root_##C(sum + epsilon));                       \
            a_out[i] = (M)sum;                                                                     \
        }                                                                                          \
    }

#define ADADELTA_SPAN(name, M, C)                                                                  \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M), *a = IN(1, M), *d = IN(2, M), *g = IN(3, M);                        \
        M *w_out = OUT(0, M), *a_out = OUT(1, M), *d_out = OUT(2, M);                              \
        const C rate = PARAM(0, M, C), rho = PARAM(1, M, C), rest = REST(1, M, C);                 \
        const C epsilon = PARAM(2, M, C);                                                          \
        SQUARES_BEHIND(3, M);                                                                      \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i];                                                                \
            const C square = rho * (C)a[i] + rest * SQUARED(C);                                    \
            const C step = root_##C((C)d[i] + epsilon) * grad / root_##C(square + epsilon);        \
            w_out[i] = (M)((C)w[i] - rate * step);                                                 \
            a_out[i] = (M)square;                                                                  \
            const C share = ((C)d[i] + epsilon) / (square + epsilon);                              \
            const C moved = given ? (C)q[i] * share : step * step;                                 \
            d_out[i] = (M)(rho * (C)d[i] + rest * moved);                                          \
        }                                                                                          \
    }

#define ADAMAX_SPAN(name, M, C)                                                                    \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M), *m = IN(1, M), *u = IN(2, M), *g = IN(3, M);                        \
        M *w_out = OUT(0, M), *m_out = OUT(1, M), *u_out = OUT(2, M);                              \
        const C rate = PARAM(0, M, C), toward1 = PARAM(1, M, C);                                   \
        const C beta2 = PARAM(2, M, C), epsilon = PARAM(3, M, C);                                  \
        SQUARES_BEHIND(3, M);                                                                      \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i], faded = beta2 * (C)u[i];                                       \
            const C size = given ? (C)q[i] : SIZE_OF(grad);                                        \
            const C mean = (C)m[i] + (grad - (C)m[i]) * toward1;                                   \
            const C norm = MAX_OF(faded, size);                                                    \
            w_out[i] = (M)((C)w[i] - rate * mean / (norm + epsilon));                              \
            m_out[i] = (M)mean;                                                                    \
            u_out[i] = (M)norm;                                                                    \
        }                                                                                          \
    }

#define NADAM_SPAN(name, M, C)                                                                     \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M), *m = IN(1, M), *v = IN(2, M), *g = IN(3, M);                        \
        M *w_out = OUT(0, M), *m_out = OUT(1, M), *v_out = OUT(2, M);                              \
        const C toward1 = PARAM(0, M, C), toward2 = PARAM(1, M, C), epsilon = PARAM(2, M, C);      \
        const C mean_rate = PARAM(3, M, C), now_rate = PARAM(4, M, C);                             \
        const C square_part = PARAM(5, M, C);                                                      \
        SQUARES_BEHIND(3, M);                                                                      \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i];                                                                \
            const C mean = (C)m[i] + (grad - (C)m[i]) * toward1;                                   \
            const C square = (C)v[i] + (SQUARED(C) - (C)v[i]) * toward2;                           \
            const C ahead = mean_rate * mean + now_rate * grad;                                    \
            w_out[i] = (M)((C)w[i] - ahead / (root_##C(square_part * square) + epsilon));          \
            m_out[i] = (M)mean;                                                                    \
            v_out[i] = (M)square;                                                                  \
        }                                                                                          \
    }

#define LION_SPAN(name, M, C)                                                                      \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M), *m = IN(1, M), *g = IN(2, M);                                       \
        M *w_out = OUT(0, M), *m_out = OUT(1, M);                                                  \
        const C rate = PARAM(0, M, C);                                                             \
        const C beta1 = PARAM(1, M, C), rest1 = REST(1, M, C);                                     \
        const C beta2 = PARAM(2, M, C), rest2 = REST(2, M, C);                                     \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i], old = (C)m[i];                                                 \
            const C way = old * beta1 + grad * rest1;                                              \
            w_out[i] = (M)((C)w[i] - rate * (C)((way > 0) - (way < 0)));                           \
            m_out[i] = (M)(old * beta2 + grad * rest2);                                            \
        }                                                                                          \
    }

#define FTRL_SPAN(name, M, C)                                                                      \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M), *a = IN(1, M), *z = IN(2, M), *g = IN(3, M);                        \
        M *w_out = OUT(0, M), *a_out = OUT(1, M), *z_out = OUT(2, M);                              \
        const C rate = PARAM(0, M, C), p = -PARAM(1, M, C), l1 = PARAM(2, M, C);                   \
        const C l2 = 2 * PARAM(3, M, C), shrinkage = 2 * PARAM(4, M, C);                           \
        SQUARES_BEHIND(3, M);                                                                      \
        EACH_ELEMENT(i) {                                                                          \
            const C grad = (C)g[i], weight = (C)w[i];                                              \
            const C sum = (C)a[i] + SQUARED(C);                                                    \
            const C root = power_##C(sum, p), root_before = power_##C((C)a[i], p);                 \
            const C linear =                                                                       \
                (C)z[i] + (grad + shrinkage * weight - (root - root_before) / rate * weight);      \
            const C inside = linear < -l1 ? -l1 : linear > l1 ? l1 : linear;                       \
            w_out[i] = (M)((inside - linear) / (root / rate + l2));                                \
            a_out[i] = (M)sum;                                                                     \
            z_out[i] = (M)linear;                                                                  \
        }                                                                                          \
    }

#define WEIGHT_DECAY_SPAN(name, M, C)                                                              \
    static void name(const sn_call *c, int64_t first, int64_t n) {                                 \
        const M *w = IN(0, M);                                                                     \
        M *w_out = OUT(0, M);                                                                      \
        const C rate = PARAM(0, M, C), decay = PARAM(1, M, C);                                     \
        EACH_ELEMENT(i) w_out[i] = (M)((C)w[i] - (C)w[i] * decay * rate);                          \
    }

/* clang-format off */
/*      name            spans */
#define UPDATE_MAP(X)                    \
    X(amsgrad,          AMSGRAD_SPAN)    \
    X(rmsprop,          RMSPROP_SPAN)    \
    X(adagrad,          ADAGRAD_SPAN)    \
    X(adadelta,         ADADELTA_SPAN)   \
    X(adamax,           ADAMAX_SPAN)     \
    X(nadam,            NADAM_SPAN)      \
    X(lion,             LION_SPAN)       \
    X(ftrl,             FTRL_SPAN)       \
    X(weight_decay,     WEIGHT_DECAY_SPAN)
/* clang-format on */

#define SPANS(name, SPAN)                                                                          \
    SPAN(name##_fast, float, float)                                                                \
    SPAN(name##_f32, float, double)                                                                \
    SPAN(name##_f64, double, double)
UPDATE_MAP(SPANS)

static const sn_map maps[SN_N_OPS] = {
#define ROW(name, SPAN)                                                                            \
    [SN_OP_##name] = {.fast_f32 = name##_fast,                                                     \
                      .plain = {[SNUG_F32] = name##_f32, [SNUG_F64] = name##_f64}},
    UPDATE_MAP(ROW)};

static snug_status reference(const sn_call *c, snug_error *err) {
    return sn_map_reference(c, &maps[c->op], err);
}

static snug_status run(const sn_call *c, snug_error *err) {
    return sn_map_run(c, &maps[c->op], err);
}

#define FAMILY(name, SPAN)                                                                         \
    SN_CPU_FAMILY(name, .reference = reference, .run = run, .takes_stored = SN_HALF_DTYPES)
UPDATE_MAP(FAMILY)
