/* softmax.cu: softmax and the cross-entropies, row by row over the last axis, in the log-sum-exp
 * form that does not overflow.
 *
 *   softmax(x), log_softmax(x), softmax_grad(dy, y) -> y * (dy - sum(dy * y))
 *   softmax_xent(x, labels) -> loss per row = sum(labels * (lse(x) - x))
 *   softmax_xent_grad(x, labels, dloss) -> (softmax(x) * sum(labels) - labels) * dloss; with
 *                     `unit` the sum is taken for 1
 *   sparse_xent(x, label), sparse_xent_grad(x, label, dloss): the same, one class number per row
 *
 * A class number outside the row is refused by sparse_xent; with skip=1, and in its gradient, such
 * a row counts nothing. */
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/cuda_rows.h"

static __device__ __forceinline__ float exp_of(float x) {
    return expf(x);
}
static __device__ __forceinline__ double exp_of(double x) {
    return exp(x);
}

/* The maximum of a row and sum(exp(x - max)). */
typedef struct {
    double max, sum;
} row_sum;

template <class M, bool wide>
static __device__ __forceinline__ row_sum sum_of(const M *x, int64_t width,
                                                 const sn_row_team<wide> &t) {
    typedef sn_computed<M> T;
    /* In one pass: what was summed shrinks when a larger element comes. -infinity adds nothing. */
    T most = (T)-INFINITY, sum = 0;
#pragma unroll 4
    for (int64_t j = t.at(); j < width; j += t.size()) {
        const T v = x[j];
        if (v > most || v != v) {
            sum = sum * exp_of(most - v) + 1;
            most = v;
        } else if (v > (T)-INFINITY) {
            sum += exp_of(v - most);
        }
    }
    row_sum s;
    s.max = t.max((double)most);
    s.sum = t.sum((double)most > -INFINITY || most != most
                      ? (double)sum * (double)exp_of((T)((double)most - s.max))
                      : 0);
    /* As exp(x - max) would make it where that is no number. */
    s.sum = isinf(s.max) ? (double)NAN : s.sum;
    return s;
}

static __device__ __forceinline__ double lse_of(const row_sum &s) {
    return isinf(s.max) && s.max < 0 ? s.max : s.max + log(s.sum);
}

template <class M> struct softmax_f {
    typedef sn_computed<M> T;
    const M *x;
    M *y;
    int64_t width;
    bool logarithm;
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        const M *from = x + r * width;
        const row_sum s = sum_of(from, width, t);
        const T max = (T)s.max, share = logarithm ? (T)0 : (T)(1 / s.sum);
        const double rest = logarithm ? log(s.sum) : 0;
#pragma unroll 4
        for (int64_t j = t.at(); j < width; j += t.size())
            y[r * width + j] = (M)(logarithm ? (T)((double)from[j] - s.max - rest)
                                             : exp_of(from[j] - max) * share);
    }
};

template <class T> static void softmax(const sn_cuda_call *c, bool logarithm) {
    const snug_type *t = &c->call->in[0].type;
    sn_rows_run(c, sn_rows_in(t), sn_width_in(t),
                softmax_f<T>{sn_in<T>(c, 0), sn_out<T>(c, 0), sn_width_in(t), logarithm});
}

static snug_status run_softmax(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, softmax, c, false);
    return SNUG_OK;
}
static snug_status run_log_softmax(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, softmax, c, true);
    return SNUG_OK;
}
SN_CUDA_FLOATS(softmax, run_softmax, NULL, 0)
SN_CUDA_FLOATS(log_softmax, run_log_softmax, NULL, 0)

template <class M> struct softmax_grad_f {
    typedef sn_computed<M> T;
    const M *dy, *y;
    M *dx;
    int64_t width;
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        double dot = 0;
#pragma unroll 4
        for (int64_t j = r * width + t.at(); j < (r + 1) * width; j += t.size())
            dot += (double)(dy[j] * y[j]);
        const T all = (T)t.sum(dot);
#pragma unroll 4
        for (int64_t j = r * width + t.at(); j < (r + 1) * width; j += t.size())
            dx[j] = (M)(y[j] * (dy[j] - all));
    }
};

template <class T> static void softmax_grad(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type;
    sn_rows_run(c, sn_rows_in(t), sn_width_in(t),
                softmax_grad_f<T>{sn_in<T>(c, 0), sn_in<T>(c, 1), sn_out<T>(c, 0), sn_width_in(t)});
}
static snug_status run_softmax_grad(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, softmax_grad, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(softmax_grad, run_softmax_grad, NULL, 0)

/* --- weights per class ------------------------------------------------------------------------ */
template <class M> struct xent_f {
    typedef sn_computed<M> T;
    const M *x, *labels;
    M *loss;
    int64_t width;
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        const double lse = lse_of(sum_of(x + r * width, width, t));
        double sum = 0;
        for (int64_t j = r * width + t.at(); j < (r + 1) * width; j += t.size())
            if (labels[j] != 0) /* a class of no weight may have logit -infinity */
                sum += (double)labels[j] * (lse - (double)x[j]);
        sum = t.sum(sum);
        if (t.at() == 0)
            loss[r] = (M)sum;
    }
};

template <class M> struct xent_grad_f {
    typedef sn_computed<M> T;
    const M *x, *labels, *dloss;
    M *dx;
    int64_t width;
    bool unit;
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        const double lse = lse_of(sum_of(x + r * width, width, t)), scale = (double)dloss[r];
        double weight = 0;
        for (int64_t j = r * width + t.at(); j < (r + 1) * width && !unit; j += t.size())
            weight += (double)labels[j];
        weight = unit ? 1 : t.sum(weight);
        for (int64_t j = r * width + t.at(); j < (r + 1) * width; j += t.size()) {
            const T p = exp_of((T)((double)x[j] - lse));
            dx[j] = (M)((p * (T)weight - labels[j]) * (T)scale);
        }
    }
};

template <class T> static void xent(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type;
    sn_rows_run(c, sn_rows_in(t), sn_width_in(t),
                xent_f<T>{sn_in<T>(c, 0), sn_in<T>(c, 1), sn_out<T>(c, 0), sn_width_in(t)});
}
template <class T> static void xent_grad(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type;
    sn_rows_run(c, sn_rows_in(t), sn_width_in(t),
                xent_grad_f<T>{sn_in<T>(c, 0), sn_in<T>(c, 1), sn_in<T>(c, 2), sn_out<T>(c, 0),
                               sn_width_in(t), c->call->attrs->xent.unit != 0});
}
static snug_status run_xent(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, xent, c);
    return SNUG_OK;
}
static snug_status run_xent_grad(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, xent_grad, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(softmax_xent, run_xent, NULL, 0)
SN_CUDA_FLOATS(softmax_xent_grad, run_xent_grad, NULL, 0)

/* --- one class number per row ----------------------------------------------------------------- */
template <class M> struct sparse_f {
    typedef sn_computed<M> T;
    const M *x;
    sn_indices labels;
    M *loss;
    int64_t width;
    uint32_t *refused; /* NULL: rows without a class are skipped */
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        const int64_t label = sn_index_at(labels, r);
        const bool inside = label >= 0 && label < width;
        const double lse = lse_of(sum_of(x + r * width, width, t));
        if (t.at() != 0)
            return;
        if (!inside && refused)
            *refused = SN_CUDA_REFUSED_LABEL;
        loss[r] = inside ? (M)(lse - (double)x[r * width + label]) : (M)0;
    }
};

template <class M> struct sparse_grad_f {
    typedef sn_computed<M> T;
    const M *x;
    sn_indices labels;
    const M *dloss;
    M *dx;
    int64_t width;
    template <bool wide> __device__ void row(int64_t r, const sn_row_team<wide> &t) const {
        const int64_t label = sn_index_at(labels, r);
        const double lse = lse_of(sum_of(x + r * width, width, t));
        const double scale = label >= 0 && label < width ? (double)dloss[r] : 0;
        const T by = (T)scale;
#pragma unroll 4
        for (int64_t j = t.at(); j < width; j += t.size()) {
            const T p = exp_of((T)((double)x[r * width + j] - lse));
            dx[r * width + j] = (M)((p - (j == label ? (T)1 : (T)0)) * by);
        }
    }
};

template <class T> static void sparse(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type;
    sn_rows_run(c, sn_rows_in(t), sn_width_in(t),
                sparse_f<T>{sn_in<T>(c, 0), sn_indices_of(&c->call->in[1]), sn_out<T>(c, 0),
                            sn_width_in(t), c->call->attrs->labels.skip ? NULL : c->refused});
}
template <class T> static void sparse_grad(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type;
    sn_rows_run(c, sn_rows_in(t), sn_width_in(t),
                sparse_grad_f<T>{sn_in<T>(c, 0), sn_indices_of(&c->call->in[1]), sn_in<T>(c, 2),
                                 sn_out<T>(c, 0), sn_width_in(t)});
}
static snug_status run_sparse(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, sparse, c);
    return SNUG_OK;
}
static snug_status run_sparse_grad(const sn_cuda_call *c, snug_error *err) {
    SN_BY_FLOAT(sn_dtype_in(c, 0), err, sparse_grad, c);
    return SNUG_OK;
}
SN_CUDA_FLOATS(sparse_xent, run_sparse, NULL, 0)
SN_CUDA_FLOATS(sparse_xent_grad, run_sparse_grad, NULL, 0)
