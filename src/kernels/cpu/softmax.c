/* softmax.c: softmax and the cross-entropies, row by row over the last axis, in the log-sum-exp
 * form that does not overflow.
 *
 *   softmax(x), log_softmax(x), softmax_grad(dy, y) -> y * (dy - sum(dy * y))
 *   softmax_xent(x, labels) -> loss per row = sum(labels * (lse(x) - x))
 *   softmax_xent_grad(x, labels, dloss) -> (softmax(x) * sum(labels) - labels) * dloss; with
 *                     `unit` the sum is taken for 1
 *   sparse_xent(x, label), sparse_xent_grad(x, label, dloss): the same, one class number per row
 *   sigmoid_xent(x, z) -> max(x, 0) - x*z + log(1 + exp(-|x|)), element by element
 *
 * A class number outside the row is SNUG_E_DATA in sparse_xent, before anything is written; with
 * skip=1 such a row's loss and gradient are zero, as with a row of zeros for labels. */
#include "kernels/cpu/softmax.h"

#include "kernels/cpu/real_elements.h"

/* --- references ------------------------------------------------------------------------------ */
static double row_max(sn_reals x, int64_t first, int64_t width) {
    double max = -INFINITY;
    for (int64_t j = 0; j < width; j++) {
        const double v = sn_real_at(x, first + j);
        max = v > max || v != v ? v : max;
    }
    return max;
}

/* log(sum(exp(x - max))) of a row, and its maximum: their sum would lose the logarithm beside a
 * huge maximum. */
static double row_log_sum(sn_reals x, int64_t first, int64_t width, double *max_out) {
    const double max = row_max(x, first, width);
    double sum = 0;
    for (int64_t j = 0; j < width; j++)
        sum += exp(sn_real_at(x, first + j) - max);
    *max_out = max;
    return log(sum);
}

/* log(sum(exp(x))) of a row. */
static double row_lse(sn_reals x, int64_t first, int64_t width) {
    double max;
    const double rest = row_log_sum(x, first, width, &max);
    return isinf(max) && max < 0 ? max : max + rest;
}

static snug_status reference_softmax(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), y = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t first = 0; first < rows * width; first += width) {
        double max;
        const double rest = row_log_sum(x, first, width, &max);
        for (int64_t j = 0; j < width; j++)
            sn_real_put(y, first + j, exp(sn_real_at(x, first + j) - max - rest));
    }
    return SNUG_OK;
}

static snug_status reference_log_softmax(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), y = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t first = 0; first < rows * width; first += width) {
        double max;
        const double rest = row_log_sum(x, first, width, &max);
        for (int64_t j = 0; j < width; j++)
            sn_real_put(y, first + j, sn_real_at(x, first + j) - max - rest);
    }
    return SNUG_OK;
}

static snug_status reference_softmax_grad(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals dy = sn_reals_of(&c->in[0]), y = sn_reals_of(&c->in[1]),
                   dx = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t first = 0; first < rows * width; first += width) {
        double dot = 0;
        for (int64_t j = first; j < first + width; j++)
            dot += sn_real_at(dy, j) * sn_real_at(y, j);
        for (int64_t j = first; j < first + width; j++)
            sn_real_put(dx, j, sn_real_at(y, j) * (sn_real_at(dy, j) - dot));
    }
    return SNUG_OK;
}

static snug_status reference_softmax_xent(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), labels = sn_reals_of(&c->in[1]),
                   loss = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t r = 0; r < rows; r++) {
        const double lse = row_lse(x, r * width, width);
        double sum = 0;
        for (int64_t j = r * width; j < (r + 1) * width; j++)
            if (sn_real_at(labels, j) != 0) /* a class of no weight may have logit -infinity */
                sum += sn_real_at(labels, j) * (lse - sn_real_at(x, j));
        sn_real_put(loss, r, sum);
    }
    return SNUG_OK;
}

static snug_status reference_softmax_xent_grad(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), labels = sn_reals_of(&c->in[1]),
                   dloss = sn_reals_of(&c->in[2]);
    const sn_reals dx = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t r = 0; r < rows; r++) {
        const double lse = row_lse(x, r * width, width);
        double weight = c->attrs->xent.unit != 0;
        for (int64_t j = r * width; j < (r + 1) * width && !c->attrs->xent.unit; j++)
            weight += sn_real_at(labels, j);
        for (int64_t j = r * width; j < (r + 1) * width; j++)
            sn_real_put(dx, j,
                        (exp(sn_real_at(x, j) - lse) * weight - sn_real_at(labels, j)) *
                            sn_real_at(dloss, r));
    }
    return SNUG_OK;
}

/* The row a message names counts in the full value, not in this slice of it. */
static snug_status check_labels(const sn_call *c, snug_error *err) {
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t r = 0; r < rows && c->in[1].data && !c->attrs->labels.skip; r++) {
        const int64_t label = sn_label_at(&c->in[1], r);
        if (label >= 0 && label < width)
            continue;
        const snug_type *t = &c->in[1].type;
        const int64_t before =
            c->axis == 0 && t->rank > 0 ? c->first * sn_type_span(t, 1, t->rank) : 0;
        return sn_fail(err, SNUG_E_DATA,
                       "label %lld at row %lld is outside 0..%lld; labels are class numbers from "
                       "0, or the last "
                       "layer needs more units",
                       (long long)label, (long long)(before + r), (long long)(width - 1));
    }
    return SNUG_OK;
}

static snug_status reference_sparse_xent(const sn_call *c, snug_error *err) {
    SNUG_TRY(check_labels(c, err));
    const sn_reals x = sn_reals_of(&c->in[0]), loss = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t label = sn_class_at(&c->in[1], r, width);
        sn_real_put(loss, r,
                    label < 0 ? 0
                              : row_lse(x, r * width, width) - sn_real_at(x, r * width + label));
    }
    return SNUG_OK;
}

static snug_status reference_sparse_xent_grad(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), dloss = sn_reals_of(&c->in[2]),
                   dx = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), width = sn_width_of(&c->in[0].type);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t label = sn_class_at(&c->in[1], r, width);
        const double lse = row_lse(x, r * width, width);
        const double scale = label < 0 ? 0 : sn_real_at(dloss, r);
        for (int64_t j = 0; j < width; j++)
            sn_real_put(dx, r * width + j,
                        (exp(sn_real_at(x, r * width + j) - lse) - (j == label ? 1 : 0)) * scale);
    }
    return SNUG_OK;
}

static snug_status reference_sigmoid_xent(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), z = sn_reals_of(&c->in[1]),
                   loss = sn_reals_of(&c->out[0]);
    const int64_t count = sn_type_count(&c->in[0].type);
    for (int64_t i = 0; i < count; i++) {
        const double v = sn_real_at(x, i);
        sn_real_put(loss, i, (v < 0 ? 0 : v) - v * sn_real_at(z, i) + log1p(exp(-fabs(v))));
    }
    return SNUG_OK;
}

/* --- which kernel runs ----------------------------------------------------------------------- */
static snug_status describe_rows(const sn_opdesc *d, int n_threads, sn_variant *out,
                                 snug_error *err) {
    (void)err;
    out->workspace_bytes = SN_CPU(softmax_workspace)(d, n_threads);
    return SNUG_OK;
}

#define RUN(name, fast)                                                                            \
    static snug_status run_##name(const sn_call *c, snug_error *err) {                             \
        if (sn_call_is_f64(c))                                                                     \
            return reference_##name(c, err);                                                       \
        fast(c);                                                                                   \
        return SNUG_OK;                                                                            \
    }
#define ROWS(name, fast)                                                                           \
    RUN(name, fast)                                                                                \
    SN_CPU_FAMILY(name, .reference = reference_##name, .run = run_##name,                          \
                  .takes_stored = SN_HALF_DTYPES, .describe = describe_rows)
ROWS(softmax, SN_CPU(softmax_f32))
ROWS(softmax_grad, SN_CPU(softmax_grad_f32))
ROWS(log_softmax, SN_CPU(log_softmax_f32))
ROWS(softmax_xent, SN_CPU(xent_f32))
ROWS(softmax_xent_grad, SN_CPU(xent_grad_f32))
ROWS(sparse_xent_grad, SN_CPU(xent_grad_f32))
RUN(sigmoid_xent, SN_CPU(sigmoid_xent_f32))
SN_CPU_FAMILY(sigmoid_xent, .reference = reference_sigmoid_xent, .run = run_sigmoid_xent,
              .takes_stored = SN_HALF_DTYPES)

static snug_status run_sparse_xent(const sn_call *c, snug_error *err) {
    if (sn_call_is_f64(c))
        return reference_sparse_xent(c, err);
    SNUG_TRY(check_labels(c, err));
    SN_CPU(xent_f32)(c);
    return SNUG_OK;
}

SN_CPU_FAMILY(sparse_xent, .reference = reference_sparse_xent, .run = run_sparse_xent,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_rows, .check_data = check_labels)
