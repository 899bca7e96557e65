/* losses.c: losses and metrics on recorded tensors (include/snug/layer.h). Labels are brought to
 * the shape and dtype that room nn wants, as Keras does. A metric keeps its sums in a variable of
 * f64, made at the first update, when shapes are known. */
#include "eager/layer.h"
#include "nn/metric.h"
#include "nn/objective.h"

#include <snug/layer.h>
#include <string.h>

/* --- labels ----------------------------------------------------------------------------------- */
static snug_type type_of(const sn_builder *b, sn_value v) {
    return b->error.code == SNUG_OK ? *sn_graph_type(b->graph, v) : (snug_type){.rank = 1};
}

/* Whether labels are class numbers: an axis less than the predictions, or one of extent 1. */
static bool are_classes(const snug_type *y_true, const snug_type *y_pred) {
    const int64_t classes = y_pred->rank ? y_pred->dims[y_pred->rank - 1] : 1;
    const int64_t last = y_true->rank ? y_true->dims[y_true->rank - 1] : 1;
    return classes > 1 &&
           (y_true->rank < y_pred->rank || (y_true->rank == y_pred->rank && last == 1));
}

/* Keras' rule for ranks that differ by an axis of 1. */
static void same_rank(sn_builder *b, sn_value *x, sn_value *y) {
    const snug_type tx = type_of(b, *x), ty = type_of(b, *y);
    if (tx.rank == ty.rank + 1 && tx.dims[tx.rank - 1] == 1) {
        if (ty.rank == 1)
            *y = sn_build_expand_dims(b, *y, -1);
        else
            *x = sn_build_squeeze(b, *x, -1);
    } else if (ty.rank == tx.rank + 1 && ty.dims[ty.rank - 1] == 1) {
        if (tx.rank == 1)
            *x = sn_build_expand_dims(b, *x, -1);
        else
            *y = sn_build_squeeze(b, *y, -1);
    }
}

/* Labels and predictions as a loss reads them. */
static void prepare(sn_builder *b, bool sparse, sn_value *y_true, sn_value *y_pred) {
    if (!sn_dtype_is_float(type_of(b, *y_pred).dtype))
        *y_pred = sn_build_cast(b, *y_pred, SNUG_F32);
    const snug_type t = type_of(b, *y_true), p = type_of(b, *y_pred);
    if (!sparse) {
        *y_true = sn_build_cast(b, *y_true, p.dtype);
        same_rank(b, y_true, y_pred);
        return;
    }
    *y_true = sn_build_cast(b, *y_true, SNUG_I32);
    if (t.rank == p.rank && t.rank > 0 && t.dims[t.rank - 1] == 1)
        *y_true = sn_build_squeeze(b, *y_true, -1);
}

/* --- losses ----------------------------------------------------------------------------------- */
/* The loss of each example: the mean over the last axis where terms are of elements. */
static sn_value each_example(sn_builder *b, const sn_loss *l, const sn_objective_data *d) {
    sn_value terms = sn_loss_terms(b, l, d->y_true, d->y_pred);
    const snug_type t = type_of(b, terms), p = type_of(b, d->y_pred);
    if (t.rank > 0 && t.rank == p.rank)
        terms = sn_build_mean(b, terms, 1u << (t.rank - 1), false);
    if (!sn_value_ok(d->weight))
        return terms;
    sn_value weight = d->weight;
    const snug_type e = type_of(b, terms);
    for (int rank = type_of(b, weight).rank; rank < e.rank && b->error.code == SNUG_OK; rank++)
        weight = sn_build_expand_dims(b, weight, -1);
    return sn_build_mul(b, terms, weight);
}

snug_status snug_loss_call(snug_recorder *r, const char *loss, snug_tensor *y_true,
                           snug_tensor *y_pred, snug_tensor *weight, int reduced, snug_tensor **out,
                           snug_error *err) {
    SNUG_NEEDS(err, r && loss && y_true && y_pred && out);
    sn_objective o = {.used = true, .weight = 1};
    sn_record_call c;
    SNUG_TRY(sn_loss_parse(loss, &o.loss, err));
    SNUG_TRY(sn_record_begin(r, &c, err));
    sn_objective_data d = {sn_record_use(&c, y_true), sn_record_use(&c, y_pred), SN_NO_VALUE,
                           SN_NO_VALUE};
    prepare(&c.b, o.loss.sparse, &d.y_true, &d.y_pred);
    if (weight)
        d.weight = sn_build_cast(&c.b, sn_record_use(&c, weight), type_of(&c.b, d.y_pred).dtype);
    snug_tensor *const given = sn_record_give(&c, reduced ? sn_objective_build(&c.b, &o, &d)
                                                          : each_example(&c.b, &o.loss, &d));
    SNUG_TRY(sn_record_end(&c, err));
    *out = given;
    return SNUG_OK;
}

/* --- metrics ---------------------------------------------------------------------------------- */
#define MAX_TEXT 200
struct snug_metric {
    snug_recorder *r;
    snug_engine *engine;
    char text[MAX_TEXT];
    sn_metric metric; /* once there are sums */
    snug_variable *sums;
};

snug_status snug_metric_create(snug_recorder *r, const char *metric, const char *loss,
                               snug_metric **out, snug_error *err) {
    SNUG_NEEDS(err, r && metric && out);
    snug_engine *const e = snug_recorder_engine(r);
    void *block;
    (void)loss; /* shapes decide what "accuracy" means, as in Keras */
    if (strlen(metric) >= MAX_TEXT)
        return sn_fail(err, SNUG_E_INVALID, "metric '%.40s...' is longer than %d letters", metric,
                       MAX_TEXT - 1);
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_MODEL, sizeof(snug_metric), &block, err));
    snug_metric *const m = block;
    m->r = r;
    m->engine = e;
    memcpy(m->text, metric, strlen(metric) + 1);
    *out = m;
    return SNUG_OK;
}

void snug_metric_destroy(snug_metric *m) {
    if (!m)
        return;
    snug_variable_drop(m->sums);
    sn_free(m->engine, SN_MEM_MODEL, m, sizeof *m);
}

/* The settings and the variable, for labels and predictions of these types. */
static snug_status start(snug_metric *m, const snug_type *y_true, const snug_type *y_pred,
                         snug_error *err) {
    const int64_t classes = y_pred->rank ? y_pred->dims[y_pred->rank - 1] : 1;
    const sn_recipe zeros = {.kind = SN_RECIPE_CONSTANT};
    const snug_record_variable_options options = {.name = m->text, .not_trainable = 1};
    sn_loss kind;
    SNUG_TRY(sn_loss_parse(are_classes(y_true, y_pred) ? "sparse_categorical_crossentropy"
                           : classes > 1               ? "categorical_crossentropy"
                                                       : "binary_crossentropy",
                           &kind, err));
    SNUG_TRY(sn_metric_parse(m->text, &kind, y_pred, &m->metric, err));
    const snug_type sums = {SNUG_F64, 1, {m->metric.n_sums}};
    return sn_record_variable(m->r, &sums, &zeros, &options, &m->sums, err);
}

/* Labels that the metric reads: class numbers, or of the predictions' shape. */
static bool reads_classes(const sn_metric *m, const snug_type *y_true, const snug_type *y_pred) {
    return are_classes(y_true, y_pred) && sn_metric_is_sparse(m);
}

snug_status snug_metric_update(snug_metric *m, snug_tensor *y_true, snug_tensor *y_pred,
                               snug_tensor *weight, snug_error *err) {
    SNUG_NEEDS(err, m && y_true && y_pred);
    const snug_type tt = *snug_tensor_type(y_true), tp = *snug_tensor_type(y_pred);
    sn_record_call c;
    if (!m->sums)
        SNUG_TRY(start(m, &tt, &tp, err));
    SNUG_TRY(sn_record_begin(m->r, &c, err));
    sn_value labels = sn_record_use(&c, y_true), scores = sn_record_use(&c, y_pred),
             w = SN_NO_VALUE;
    const bool classes = reads_classes(&m->metric, &tt, &tp);
    if (sn_dtype_is_float(tp.dtype)) /* metrics count in f32 where predictions are halves */
        scores = sn_build_cast(&c.b, scores, sn_dtype_computed(tp.dtype));
    prepare(&c.b, classes, &labels, &scores);
    if (classes)
        labels = sn_build_cast(&c.b, labels, SNUG_I32); /* as predicted classes are */
    if (weight)
        w = sn_build_cast(&c.b, sn_record_use(&c, weight), type_of(&c.b, scores).dtype);
    if (m->metric.loss.name[0] && tt.rank == 1 && tp.rank == 1) { /* a loss of one example */
        const int64_t row[2] = {1, -1};
        labels = sn_build_reshape(&c.b, labels, row, 2);
        scores = sn_build_reshape(&c.b, scores, row, 2);
    }
    const sn_value sums = sn_metric_build(&c.b, &m->metric, labels, scores, w);
    const sn_value row = sn_build_reshape(&c.b, sums, (const int64_t[]){-1}, 1);
    const sn_value in[2] = {sn_record_version(&c, m->sums), sn_build_cast(&c.b, row, SNUG_F64)};
    sn_build(&c.b, SN_OP_assign_add, NULL, in, 2);
    return sn_record_end(&c, err);
}

static snug_status read_sums(snug_metric *m, double *sums, snug_error *err) {
    snug_tensor *now;
    SNUG_TRY(snug_variable_read(m->sums, &now, err));
    const snug_status status =
        snug_tensor_read(now, sums, (size_t)m->metric.n_sums * sizeof *sums, err);
    snug_tensor_drop(now);
    return status;
}

snug_status snug_metric_result(snug_metric *m, double *out, snug_error *err) {
    SNUG_NEEDS(err, m && out);
    void *sums;
    if (!m->sums) {
        *out = 0;
        return SNUG_OK;
    }
    const size_t bytes = (size_t)m->metric.n_sums * sizeof(double);
    SNUG_TRY(sn_alloc(m->engine, SN_MEM_OTHER, bytes, &sums, err));
    const snug_status status = read_sums(m, sums, err);
    if (status == SNUG_OK) {
        const double v = sn_metric_finish(&m->metric, sums);
        *out = v != v ? 0 : v; /* Keras' answer where nothing was seen */
    }
    sn_free(m->engine, SN_MEM_OTHER, sums, bytes);
    return status;
}

snug_status snug_metric_reset(snug_metric *m, snug_error *err) {
    SNUG_NEEDS(err, m);
    sn_record_call c;
    if (!m->sums)
        return SNUG_OK;
    SNUG_TRY(sn_record_begin(m->r, &c, err));
    const snug_type t = *snug_variable_type(m->sums);
    const sn_value in[2] = {sn_record_version(&c, m->sums), sn_build_fill(&c.b, &t, 0)};
    sn_build(&c.b, SN_OP_assign, NULL, in, 2);
    return sn_record_end(&c, err);
}
