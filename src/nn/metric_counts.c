/* metric_counts.c: metrics that count and divide at the end. The sums of a batch are the state;
 * over batches they are added up, so no result depends on how examples fell into batches (the
 * numbers are whole or weights). What the sums are:
 *
 *   precision, recall, positives ...   true positives, said yes, is yes, all
 *   AUC and what is at a threshold     of no and of yes: examples per bucket of y_pred (by label)
 *   F scores                           by class: true positives, said, is
 *   IoU                                the confusion matrix, and what lies outside of it
 *   R2                                 by output: y, y^2, squared error; examples
 *
 * Buckets follow Keras: with T thresholds, evenly apart, bucket ceil(p * (T - 1)) of 0 to T - 1. */
#include "nn/metric_rows.h"
#include "nn/keras_number.h"
#include "base/setting_text.h"

#include <math.h>
#include <string.h>

#define EPSILON 1e-7 /* keras.config.epsilon() */

/* --- small pieces ----------------------------------------------------------------------------- */
static snug_type type_of(const sn_builder *b, sn_value x) {
    return b->error.code == SNUG_OK ? *sn_graph_type(b->graph, x) : (snug_type){.dtype = SNUG_F32};
}

static int64_t last_dim(const snug_type *t) {
    return t->rank ? t->dims[t->rank - 1] : 1;
}

static sn_value whole(sn_builder *b, int64_t value) {
    return sn_build_scalar(b, SNUG_I32, (double)value);
}

static sn_value is_not_zero(sn_builder *b, sn_value x) {
    return sn_build_logical_not(b,
                                sn_build_equal(b, x, sn_build_scalar(b, type_of(b, x).dtype, 0)));
}

/* Class `class_id` of the last axis, which stays. */
static sn_value one_class(sn_builder *b, const sn_metric *m, sn_value x) {
    return m->class_id < 0 ? x : sn_build_part(b, x, -1, (int64_t)m->class_id, 1);
}

static sn_value one_hot_of(sn_builder *b, sn_value places, int64_t depth, snug_dtype dtype) {
    sn_attrs a;
    sn_attrs_default(SN_OP_one_hot, &a);
    a.one_hot.depth = depth;
    a.one_hot.dtype = dtype;
    return sn_build(b, SN_OP_one_hot, &a, &places, 1);
}

/* values added up by index into `n` sums. */
static sn_value count_by(sn_builder *b, sn_value index, sn_value values, int64_t n) {
    sn_attrs a;
    sn_attrs_default(SN_OP_scatter_add, &a);
    a.scatter.dims.n = 1;
    a.scatter.dims.v[0] = n;
    a.scatter.axis = 0;
    const sn_value in[2] = {index, values};
    return sn_build(b, SN_OP_scatter_add, &a, in, 2);
}

/* A weight for each element of a value of this type. */
static sn_value weights_like(sn_builder *b, snug_type t, snug_dtype dtype, sn_value weight) {
    t.dtype = dtype;
    return sn_metric_weighted(b, sn_build_fill(b, &t, 1), weight);
}

static double over(double a, double b) {
    return b == 0 ? 0 : a / b;
}

static snug_status check_class(const sn_metric *m, const sn_loss *loss, const snug_type *output,
                               snug_error *err) {
    (void)loss;
    const int64_t n = last_dim(output);
    if (m->class_id < (double)n)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "metric %s: class_id=%g, but the output has %lld classes",
                   m->name, m->class_id, (long long)n);
}

/* --- one decision: true positives, said yes, is yes, all -------------------------------------- */
enum { TRUE_YES, SAID_YES, IS_YES, ALL, N_DECISION };

static int64_t n_decision(const sn_metric *m, const snug_type *output) {
    (void)m;
    (void)output;
    return N_DECISION;
}

/* Whether each class is among the k highest of its row. */
static sn_value is_among(sn_builder *b, sn_value y_pred, int64_t k) {
    const uint32_t classes = sn_last_axis(b, y_pred);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = type_of(b, y_pred);
    const sn_sort how = {.axis = -1, .descending = true, .k = k, .places = SNUG_I32};
    sn_value values, places;
    sn_build_sort(b, y_pred, &how, &values, &places);
    const sn_value hot = one_hot_of(b, places, t.dims[t.rank - 1], t.dtype);
    return is_not_zero(b, sn_build_sum(b, hot, classes, false));
}

/* Above the threshold; with top_k among the highest, and above a threshold where one was given. */
static sn_value said_yes(sn_builder *b, const sn_metric *m, sn_value y_pred) {
    const double limit = isnan(m->threshold) ? 0.5 : m->threshold;
    const snug_type t = type_of(b, y_pred);
    const sn_value above = sn_build_greater(b, y_pred, sn_build_scalar(b, t.dtype, limit));
    if (m->top_k == 0)
        return above;
    const int64_t n = last_dim(&t);
    const sn_value among = is_among(b, y_pred, m->top_k < (double)n ? (int64_t)m->top_k : n);
    return isnan(m->threshold) ? among : sn_build_logical_and(b, among, above);
}

static sn_value decision_sums(sn_builder *b, const sn_metric *m, const sn_metric_data *d) {
    const snug_dtype dtype = type_of(b, d->y_pred).dtype;
    const sn_value said = one_class(b, m, said_yes(b, m, d->y_pred));
    const sn_value is = is_not_zero(b, one_class(b, m, d->y_true));
    const sn_value each[3] = {sn_build_logical_and(b, said, is), said, is};
    const int64_t one[1] = {1};
    sn_value sums[N_DECISION];
    for (int i = 0; i < 3; i++) {
        const sn_value real = sn_metric_weighted(b, sn_build_cast(b, each[i], dtype), d->weight);
        sums[i] = sn_build_reshape(b, sn_build_sum(b, real, 0, false), one, 1);
    }
    const sn_value all = weights_like(b, type_of(b, said), dtype, d->weight);
    sums[ALL] = sn_build_reshape(b, sn_build_sum(b, all, 0, false), one, 1);
    return sn_build_concat(b, sums, N_DECISION, 0);
}

static double precision(const sn_metric *m, const double *s) {
    (void)m;
    return over(s[TRUE_YES], s[SAID_YES]);
}

static double recall(const sn_metric *m, const double *s) {
    (void)m;
    return over(s[TRUE_YES], s[IS_YES]);
}

static double true_positives(const sn_metric *m, const double *s) {
    (void)m;
    return s[TRUE_YES];
}

static double false_positives(const sn_metric *m, const double *s) {
    (void)m;
    return s[SAID_YES] - s[TRUE_YES];
}

static double false_negatives(const sn_metric *m, const double *s) {
    (void)m;
    return s[IS_YES] - s[TRUE_YES];
}

static double true_negatives(const sn_metric *m, const double *s) {
    (void)m;
    return s[ALL] - s[SAID_YES] - s[IS_YES] + s[TRUE_YES];
}

/* --- many thresholds: buckets ----------------------------------------------------------------- */
static int64_t n_labels(const sn_metric *m, const snug_type *output) {
    return m->multi_label ? last_dim(output) : 1;
}

static int64_t n_buckets(const sn_metric *m, const snug_type *output) {
    return 2 * (int64_t)m->num_thresholds * n_labels(m, output);
}

/* ceil(p * (T - 1)), and T more where the label is yes. */
static sn_value bucket_of(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    const snug_dtype dtype = type_of(b, y_pred).dtype;
    const sn_value p = m->from_logits ? sn_build_sigmoid(b, y_pred) : y_pred;
    const sn_value at = sn_build_affine(b, sn_build_clip(b, p, 0, 1), m->num_thresholds - 1, 0);
    const sn_value down = sn_build_cast(b, at, SNUG_I32);
    const sn_value between = sn_build_greater(b, at, sn_build_cast(b, down, dtype));
    const sn_value up = sn_build_add(b, down, sn_build_cast(b, between, SNUG_I32));
    const sn_value yes = sn_build_cast(b, is_not_zero(b, y_true), SNUG_I32);
    return sn_build_add(b, up, sn_build_mul(b, yes, whole(b, (int64_t)m->num_thresholds)));
}

static sn_value bucket_sums(sn_builder *b, const sn_metric *m, const sn_metric_data *d) {
    const sn_value y_pred = one_class(b, m, d->y_pred);
    const sn_value index = bucket_of(b, m, one_class(b, m, d->y_true), y_pred);
    const snug_type t = type_of(b, y_pred);
    if (!m->multi_label)
        return count_by(b, index, weights_like(b, t, t.dtype, d->weight),
                        2 * (int64_t)m->num_thresholds);
    const sn_value hot = one_hot_of(b, index, 2 * (int64_t)m->num_thresholds, t.dtype);
    return sn_build_sum(b, sn_metric_weighted(b, hot, d->weight), 1u, false);
}

static snug_status check_buckets(const sn_metric *m, const sn_loss *loss, const snug_type *output,
                                 snug_error *err) {
    if (m->multi_label && output->rank != 2)
        return sn_fail(err, SNUG_E_SHAPE,
                       "metric %s: multi_label wants an output of 2 axes, this one has %d", m->name,
                       output->rank);
    return check_class(m, loss, output, err);
}

/* Counts at a threshold. From the highest down, each threshold lets one more bucket be above it. */
typedef struct {
    double tp, fp, fn, tn;
} counts;

static counts none_above(const sn_metric *m, const double *buckets) {
    const int64_t n = (int64_t)m->num_thresholds;
    counts c = {0, 0, 0, 0};
    for (int64_t k = 0; k < n; k++) {
        c.tn += buckets[k];
        c.fn += buckets[n + k];
    }
    return c;
}

static counts one_more(const sn_metric *m, const double *buckets, counts c, int64_t bucket) {
    const double no = buckets[bucket], yes = buckets[(int64_t)m->num_thresholds + bucket];
    return (counts){c.tp + yes, c.fp + no, c.fn - yes, c.tn - no};
}

/* --- AUC -------------------------------------------------------------------------------------- */
/* Keras' closed form between two thresholds, precision taken as linear in what was said yes. */
static double pr_part(counts a, counts b) {
    const double p_a = a.tp + a.fp, p_b = b.tp + b.fp, d_tp = a.tp - b.tp;
    const double slope = over(d_tp, p_a - p_b), intercept = b.tp - slope * p_b;
    const double ratio = p_a > 0 && p_b > 0 ? p_a / p_b : 1;
    return over(slope * (d_tp + intercept * log(ratio)), b.tp + b.fn);
}

static double curve_x(const sn_metric *m, counts c) {
    if ((int)m->curve == SN_CURVE_ROC)
        return over(c.fp, c.fp + c.tn);
    if ((int)m->curve == SN_CURVE_PR)
        return over(c.tp, c.tp + c.fn);
    const double scale = over(c.tp + c.fn, c.tn + c.fp);
    return c.tp == 0 ? 0 : fmax(0, 1 - scale * c.fn / c.tp);
}

static double curve_y(const sn_metric *m, counts c) {
    if ((int)m->curve == SN_CURVE_ROC)
        return over(c.tp, c.tp + c.fn);
    if ((int)m->curve == SN_CURVE_PR)
        return over(c.tp, c.tp + c.fp);
    const double scale = over(c.tp + c.fn, c.tn + c.fp);
    return c.tp == 0 ? 1 : 1 - scale * c.fp / c.tp;
}

static double curve_part(const sn_metric *m, counts a, counts b) {
    const int method = (int)m->summation_method;
    const double left = curve_y(m, a), right = curve_y(m, b);
    const double height = method == SN_SUMMATION_MINORING   ? fmin(left, right)
                          : method == SN_SUMMATION_MAJORING ? fmax(left, right)
                                                            : (left + right) / 2;
    return (curve_x(m, a) - curve_x(m, b)) * height;
}

static double area(const sn_metric *m, const double *buckets) {
    const bool pr =
        (int)m->curve == SN_CURVE_PR && (int)m->summation_method == SN_SUMMATION_INTERPOLATION;
    double sum = 0;
    counts above = none_above(m, buckets);
    for (int64_t i = (int64_t)m->num_thresholds - 2; i >= 0; i--) {
        counts c = one_more(m, buckets, above, i + 1);
        if (i == 0) /* AUC's first threshold lies below 0 */
            c = one_more(m, buckets, c, 0);
        sum += pr ? pr_part(c, above) : curve_part(m, c, above);
        above = c;
    }
    return sum;
}

static double auc(const sn_metric *m, const double *sums) {
    const int64_t each = 2 * (int64_t)m->num_thresholds, n = m->n_sums / each;
    double total = 0;
    for (int64_t label = 0; label < n; label++)
        total += area(m, sums + label * each);
    return total / (double)n;
}

/* --- the best of one where another is good enough --------------------------------------------- */
typedef double (*rate_fn)(counts c);

static double sensitivity(counts c) {
    return over(c.tp, c.tp + c.fn);
}
static double specificity(counts c) {
    return over(c.tn, c.tn + c.fp);
}
static double share_right(counts c) {
    return over(c.tp, c.tp + c.fp);
}

static double best_where(const sn_metric *m, const double *sums, rate_fn best, rate_fn bound) {
    counts c = none_above(m, sums);
    double found = bound(c) >= m->bound ? best(c) : 0;
    for (int64_t i = (int64_t)m->num_thresholds - 1; i > 0; i--) {
        c = one_more(m, sums, c, i);
        if (bound(c) >= m->bound)
            found = fmax(found, best(c));
    }
    return found;
}

static double sensitivity_at_specificity(const sn_metric *m, const double *sums) {
    return best_where(m, sums, sensitivity, specificity);
}
static double specificity_at_sensitivity(const sn_metric *m, const double *sums) {
    return best_where(m, sums, specificity, sensitivity);
}
static double precision_at_recall(const sn_metric *m, const double *sums) {
    return best_where(m, sums, share_right, sensitivity);
}
static double recall_at_precision(const sn_metric *m, const double *sums) {
    return best_where(m, sums, sensitivity, share_right);
}

/* --- F scores --------------------------------------------------------------------------------- */
static int64_t n_f_score(const sn_metric *m, const snug_type *output) {
    (void)m;
    return 3 * last_dim(output);
}

/* Without a threshold the highest class is said, unless it is 0. */
static sn_value said_classes(sn_builder *b, const sn_metric *m, sn_value y_pred) {
    const snug_type t = type_of(b, y_pred);
    if (!isnan(m->threshold))
        return sn_build_greater(b, y_pred, sn_build_scalar(b, t.dtype, m->threshold));
    const sn_value top = sn_build_max(b, y_pred, sn_last_axis(b, y_pred), true);
    return sn_build_logical_and(
        b, sn_build_greater_equal(b, y_pred, top),
        sn_build_greater(b, sn_build_abs(b, y_pred), sn_build_scalar(b, t.dtype, 1e-9)));
}

static sn_value f_score_sums(sn_builder *b, const sn_metric *m, const sn_metric_data *d) {
    const snug_type t = type_of(b, d->y_pred);
    const uint32_t rows = sn_last_axis(b, d->y_pred) - 1; /* every axis but the classes */
    const sn_value said = sn_build_cast(b, said_classes(b, m, d->y_pred), t.dtype);
    const sn_value each[3] = {sn_build_mul(b, said, d->y_true), said, d->y_true};
    sn_value sums[3];
    for (int i = 0; i < 3; i++)
        sums[i] = sn_build_sum(b, sn_metric_weighted(b, each[i], d->weight), rows, false);
    return sn_build_concat(b, sums, 3, 0);
}

static double f_of(double beta, double tp, double said, double is) {
    const double p = tp / (said + EPSILON), r = tp / (is + EPSILON);
    return p * r / (beta * beta * p + r + EPSILON) * (1 + beta * beta);
}

static double f_score(const sn_metric *m, const double *s) {
    const int64_t n = m->n_sums / 3;
    double total[3] = {0, 0, 0}, sum = 0, weighted = 0;
    for (int64_t c = 0; c < n; c++) {
        const double f = f_of(m->beta, s[c], s[n + c], s[2 * n + c]);
        for (int i = 0; i < 3; i++)
            total[i] += s[i * n + c];
        sum += f;
        weighted += f * s[2 * n + c];
    }
    if ((int)m->average == SN_AVERAGE_MICRO)
        return f_of(m->beta, total[0], total[1], total[2]);
    return (int)m->average == SN_AVERAGE_MACRO ? sum / (double)n : weighted / (total[2] + EPSILON);
}

static snug_status check_f_score(const sn_metric *m, const sn_loss *loss, const snug_type *output,
                                 snug_error *err) {
    (void)loss;
    (void)output;
    if ((int)m->average != SN_AVERAGE_NONE)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "metric %s is one number per class; set average=micro, macro or weighted",
                   m->name);
}

/* --- IoU -------------------------------------------------------------------------------------- */
static int64_t n_iou(const sn_metric *m, const snug_type *output) {
    (void)output;
    return (int64_t)(m->num_classes * m->num_classes) + 1;
}

/* Class ids as i32: of scores by argmax, of ids by cutting. */
static sn_value class_ids(sn_builder *b, sn_value y, bool are_ids) {
    const snug_type t = type_of(b, y);
    return are_ids ? sn_build_cast(b, y, SNUG_I32)
                   : sn_build_argmax(b, y, t.rank > 0 ? t.rank - 1 : 0, SNUG_I32);
}

static sn_value within(sn_builder *b, sn_value ids, int64_t n) {
    return sn_build_logical_and(b, sn_build_greater_equal(b, ids, whole(b, 0)),
                                sn_build_greater(b, whole(b, n), ids));
}

static sn_value iou_sums(sn_builder *b, const sn_metric *m, const sn_metric_data *d) {
    const int64_t n = (int64_t)m->num_classes;
    const snug_dtype dtype = type_of(b, d->y_pred).dtype;
    const sn_value limit = sn_build_scalar(b, dtype, sn_keras_number(m->threshold));
    const sn_value is = class_ids(b, d->y_true, m->sparse_y_true);
    const sn_value said =
        m->by_threshold ? sn_build_cast(b, sn_build_greater_equal(b, d->y_pred, limit), SNUG_I32)
                        : class_ids(b, d->y_pred, m->sparse_y_pred);
    sn_value counted = sn_build_logical_and(b, within(b, is, n), within(b, said, n));
    if (!isnan(m->ignore_class)) {
        const sn_value ignored = sn_build_equal(b, is, whole(b, (int64_t)m->ignore_class));
        counted = sn_build_logical_and(b, counted, sn_build_logical_not(b, ignored));
    }
    const sn_value cell = sn_build_add(b, sn_build_mul(b, is, whole(b, n)), said);
    const sn_value index = sn_build_select(b, counted, cell, whole(b, n * n));
    return count_by(b, index, weights_like(b, type_of(b, is), dtype, d->weight), n * n + 1);
}

static bool is_target(const sn_metric *m, int64_t id) {
    return m->target_class_ids == 0 || (id < 64 && (m->target_class_ids >> id & 1));
}

/* The mean over the target classes that occur. */
static double iou(const sn_metric *m, const double *cells) {
    const int64_t n = (int64_t)m->num_classes;
    double sum = 0, n_valid = 0;
    for (int64_t id = 0; id < n; id++) {
        double either = -cells[id * n + id];
        for (int64_t k = 0; k < n; k++)
            either += cells[id * n + k] + cells[k * n + id];
        if (!is_target(m, id) || either <= 1e-9)
            continue;
        sum += cells[id * n + id] / (either + EPSILON);
        n_valid++;
    }
    return sum / (n_valid + EPSILON);
}

static snug_status check_iou(const sn_metric *m, const sn_loss *loss, const snug_type *output,
                             snug_error *err) {
    const int64_t n = (int64_t)m->num_classes;
    (void)output;
    if (n < 2 || n > 4096)
        return sn_fail(err, SNUG_E_INVALID, "metric %s: num_classes=%lld; give 2 to 4096", m->name,
                       (long long)n);
    if (m->target_class_ids >> (n < 64 ? n : 63) > (n < 64 ? 0u : 1u))
        return sn_fail(err, SNUG_E_INVALID, "metric %s: a target class is not below %lld", m->name,
                       (long long)n);
    const bool fits =
        loss->sparse ? m->sparse_y_true && !m->sparse_y_pred : m->sparse_y_true == m->sparse_y_pred;
    if (fits)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID,
                   "metric %s with sparse_y_true=%s, sparse_y_pred=%s does not fit labels of the "
                   "loss %s; set sparse_y_true=%s,sparse_y_pred=false",
                   m->name, m->sparse_y_true ? "true" : "false",
                   m->sparse_y_pred ? "true" : "false", loss->name,
                   loss->sparse ? "true" : "false");
}

/* --- R2 --------------------------------------------------------------------------------------- */
static int64_t n_r2(const sn_metric *m, const snug_type *output) {
    (void)m;
    return 3 * last_dim(output) + 1;
}

static sn_value r2_sums(sn_builder *b, const sn_metric *m, const sn_metric_data *d) {
    (void)m;
    const sn_value error = sn_build_sub(b, d->y_true, d->y_pred);
    const sn_value each[3] = {d->y_true, sn_build_square(b, d->y_true), sn_build_square(b, error)};
    sn_value sums[4];
    for (int i = 0; i < 3; i++)
        sums[i] = sn_build_sum(b, sn_metric_weighted(b, each[i], d->weight), 1u, false);
    snug_type rows = type_of(b, d->y_pred);
    rows.rank = 1;
    const sn_value ones = weights_like(b, rows, rows.dtype, d->weight);
    sums[3] = sn_build_sum(b, ones, 1u, true);
    return sn_build_concat(b, sums, 4, 0);
}

static double r2_score(const sn_metric *m, const double *s) {
    const int64_t n = (m->n_sums - 1) / 3;
    const double count = s[3 * n], samples = count * (double)n;
    double sum = 0, weighted = 0, weights = 0;
    for (int64_t k = 0; k < n; k++) {
        const double total = s[n + k] - s[k] * s[k] / count;
        const double raw = 1 - s[2 * n + k] / total, score = isinf(raw) ? 0 : raw;
        sum += score;
        weighted += total * score;
        weights += total;
    }
    const double r2 =
        (int)m->class_aggregation == SN_CLASSES_UNIFORM ? sum / (double)n : weighted / weights;
    if (m->num_regressors == 0 || m->num_regressors >= samples - 1)
        return r2;
    return 1 - (1 - r2) * (samples - 1) / (samples - m->num_regressors - 1);
}

static snug_status check_r2(const sn_metric *m, const sn_loss *loss, const snug_type *output,
                            snug_error *err) {
    (void)loss;
    if (output->rank == 2)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "metric %s wants an output of 2 axes, this one has %d",
                   m->name, output->rank);
}

/* --- the rows --------------------------------------------------------------------------------- */
static void no_threshold(sn_metric *m) {
    m->threshold = (double)NAN;
}
static void two_classes(sn_metric *m) {
    m->num_classes = 2;
    m->by_threshold = true;
}
static void one_hot(sn_metric *m) {
    m->sparse_y_true = m->sparse_y_pred = false;
}

#define DECISION(name, finish)                                                                     \
    {                                                                                              \
        name, "thresholds top_k class_id", SN_LABELS_DENSE, no_threshold, check_class, NULL, NULL, \
            n_decision, decision_sums, finish                                                      \
    }
#define POSITIVES(name, finish)                                                                    \
    {                                                                                              \
        name, "thresholds", SN_LABELS_DENSE, NULL, NULL, NULL, NULL, n_decision, decision_sums,    \
            finish                                                                                 \
    }
#define AT(name, bound, finish)                                                                    \
    {                                                                                              \
        name, bound " num_thresholds class_id", SN_LABELS_DENSE, NULL, check_buckets, NULL, NULL,  \
            n_buckets, bucket_sums, finish                                                         \
    }
#define F_SCORE(name, settings)                                                                    \
    {                                                                                              \
        name, settings, SN_LABELS_DENSE, no_threshold, check_f_score, NULL, NULL, n_f_score,       \
            f_score_sums, f_score                                                                  \
    }
#define IOU(name, settings, defaults)                                                              \
    { name, settings, SN_LABELS_ANY, defaults, check_iou, NULL, NULL, n_iou, iou_sums, iou }
const sn_metric_row sn_count_metrics[] = {
    DECISION("precision", precision),
    DECISION("recall", recall),
    POSITIVES("true_positives", true_positives),
    POSITIVES("false_positives", false_positives),
    POSITIVES("true_negatives", true_negatives),
    POSITIVES("false_negatives", false_negatives),
    {"auc", "num_thresholds curve summation_method multi_label from_logits", SN_LABELS_DENSE, NULL,
     check_buckets, NULL, NULL, n_buckets, bucket_sums, auc},
    AT("sensitivity_at_specificity", "specificity", sensitivity_at_specificity),
    AT("specificity_at_sensitivity", "sensitivity", specificity_at_sensitivity),
    AT("precision_at_recall", "recall", precision_at_recall),
    AT("recall_at_precision", "precision", recall_at_precision),
    F_SCORE("f1_score", "average threshold"),
    F_SCORE("fbeta_score", "average threshold beta"),
    IOU("io_u", "num_classes target_class_ids ignore_class sparse_y_true sparse_y_pred", NULL),
    IOU("mean_io_u", "num_classes ignore_class sparse_y_true sparse_y_pred", NULL),
    IOU("binary_io_u", "target_class_ids threshold", two_classes),
    IOU("one_hot_io_u", "num_classes target_class_ids ignore_class sparse_y_pred", one_hot),
    IOU("one_hot_mean_io_u", "num_classes ignore_class sparse_y_pred", one_hot),
    {"r2_score", "class_aggregation num_regressors", SN_LABELS_DENSE, NULL, check_r2, NULL, NULL,
     n_r2, r2_sums, r2_score},
};
const int sn_n_count_metrics = sizeof sn_count_metrics / sizeof *sn_count_metrics;
