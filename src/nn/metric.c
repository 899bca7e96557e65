/* metric.c: metrics, one row each, as two sums over the batches seen: of terms, and of what they
 * are divided by. For most that is the number of examples; precision and recall count for
 * themselves. "accuracy" means what Keras makes of it from the shapes: binary when the output has
 * one unit, sparse when labels have no class axis, else categorical. A loss may be named as a
 * metric, too. */
#include "nn/nn.h"
#include "nn/text.h"

#include <math.h>
#include <string.h>

typedef sn_value (*terms_fn)(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred);

/* --- small pieces ----------------------------------------------------------------------------- */
static snug_dtype dtype_of(const sn_builder *b, sn_value x) {
    return b->error.code == SNUG_OK ? sn_graph_type(b->graph, x)->dtype : SNUG_F32;
}

static sn_value class_of(sn_builder *b, sn_value y) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_argmax(b, y, sn_graph_type(b->graph, y)->rank - 1, SNUG_I32);
}

static sn_value above(sn_builder *b, sn_value x, double limit) {
    return sn_build_greater(b, x, sn_build_scalar(b, dtype_of(b, x), limit));
}

/* --- which examples are right, as booleans ---------------------------------------------------- */
static sn_value binary_hits(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    const sn_value guess = above(b, y_pred, m->threshold);
    return sn_build_equal(b, y_true, sn_build_cast(b, guess, dtype_of(b, y_pred)));
}

static sn_value categorical_hits(sn_builder *b, const sn_metric *m, sn_value y_true,
                                 sn_value y_pred) {
    (void)m;
    return sn_build_equal(b, class_of(b, y_true), class_of(b, y_pred));
}

static sn_value sparse_hits(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    return sn_build_equal(b, y_true, class_of(b, y_pred));
}

/* Fewer than k classes score higher than the true one. */
static sn_value sparse_top_hits(sn_builder *b, const sn_metric *m, sn_value labels,
                                sn_value y_pred) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, y_pred);
    const uint32_t classes = 1u << (t.rank - 1);
    sn_attrs a;
    sn_attrs_default(SN_OP_one_hot, &a);
    a.one_hot.depth = t.dims[t.rank - 1];
    a.one_hot.dtype = t.dtype;
    const sn_value chosen = sn_build(b, SN_OP_one_hot, &a, &labels, 1);
    const sn_value score = sn_build_sum(b, sn_build_mul(b, chosen, y_pred), classes, true);
    const sn_value higher = sn_build_cast(b, sn_build_greater(b, y_pred, score), t.dtype);
    const sn_value rank = sn_build_sum(b, higher, classes, false);
    return sn_build_greater(b, sn_build_scalar(b, t.dtype, m->k), rank);
}

static sn_value top_hits(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    return sparse_top_hits(b, m, class_of(b, y_true), y_pred);
}

/* --- counts of a decision --------------------------------------------------------------------- */
static sn_value said_yes(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)y_true;
    return above(b, y_pred, m->threshold);
}

static sn_value is_yes(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    (void)y_pred;
    const sn_value zero = sn_build_scalar(b, dtype_of(b, y_true), 0);
    return sn_build_logical_not(b, sn_build_equal(b, y_true, zero));
}

static sn_value true_positives(sn_builder *b, const sn_metric *m, sn_value y_true,
                               sn_value y_pred) {
    return sn_build_logical_and(b, said_yes(b, m, y_true, y_pred), is_yes(b, m, y_true, y_pred));
}

/* --- losses, finished otherwise --------------------------------------------------------------- */
static sn_value squared_error(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    return sn_build_square(b, sn_build_sub(b, y_pred, y_true));
}

/* As a metric Keras counts likeness, as a loss its negative. */
static sn_value cosine(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    return sn_build_neg(b, sn_loss_terms(b, &m->loss, y_true, y_pred));
}

static sn_value of_loss(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    return sn_loss_terms(b, &m->loss, y_true, y_pred);
}

static double itself(double mean) {
    return mean;
}

/* --- the rows --------------------------------------------------------------------------------- */
typedef struct {
    const char *name;
    terms_fn terms;
    terms_fn over; /* what the sum of terms is divided by; NULL: the number of examples */
    double (*finish)(double mean);
    const char *options;
    bool sparse;
} metric_row;

static const metric_row rows[] = {
    {"binary_accuracy", binary_hits, NULL, itself, "threshold", false},
    {"categorical_accuracy", categorical_hits, NULL, itself, "", false},
    {"sparse_categorical_accuracy", sparse_hits, NULL, itself, "", true},
    {"top_k_categorical_accuracy", top_hits, NULL, itself, "k", false},
    {"sparse_top_k_categorical_accuracy", sparse_top_hits, NULL, itself, "k", true},
    {"root_mean_squared_error", squared_error, NULL, sqrt, "", false},
    {"cosine_similarity", cosine, NULL, itself, "", false},
    {"precision", true_positives, said_yes, itself, "thresholds", false},
    {"recall", true_positives, is_yes, itself, "thresholds", false},
};
enum { N_METRICS = sizeof rows / sizeof *rows };
static const metric_row loss_row = {"", of_loss, NULL, itself, "", false};

static const metric_row *find_row(const char *name) {
    for (int i = 0; i < N_METRICS; i++)
        if (sn_same_name(name, rows[i].name))
            return &rows[i];
    return sn_loss_known(name) ? &loss_row : NULL;
}

/* --- names ------------------------------------------------------------------------------------ */
static const char *resolve(const char *name, const sn_loss *loss, const snug_type *output) {
    if (!sn_same_name(name, "accuracy") && !sn_same_name(name, "acc"))
        return name;
    if (output->rank > 1 && output->dims[output->rank - 1] == 1)
        return "binary_accuracy";
    return loss->sparse ? "sparse_categorical_accuracy" : "categorical_accuracy";
}

/* Labels come in the form the loss wants; a metric of the other form cannot read them. */
static snug_status check_labels(const sn_metric *m, bool sparse, const sn_loss *loss,
                                snug_error *err) {
    if (sparse == loss->sparse)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID,
                   "metric %s wants %s labels, but the loss %s has the other kind; use accuracy",
                   m->resolved, sparse ? "integer" : "one-hot or real", loss->name);
}

static snug_status refuse_metric(const char *name, snug_error *err) {
    char list[300] = "accuracy";
    for (int i = 0; i < N_METRICS; i++)
        sn_text_list(list, sizeof list, rows[i].name);
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "metric '%.40s' is not known; there are %s, and every loss by its name", name,
                   list);
}

static snug_status set_options(const metric_row *row, const char *text, sn_metric *m,
                               snug_error *err) {
    sn_option option;
    bool more;
    for (const char *at = text;;) {
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            return SNUG_OK;
        if (!sn_text_has(row->options, option.key))
            return sn_fail(err, SNUG_E_INVALID, "metric %s has no setting '%s'%s%s", row->name,
                           option.key, row->options[0] ? "; it has " : "", row->options);
        const bool is_k = strcmp(option.key, "k") == 0;
        double value;
        SNUG_TRY(sn_option_real(&option, &value, err));
        if (is_k ? value < 1 || value != floor(value) : value < 0 || value > 1)
            return sn_fail(err, SNUG_E_INVALID, "metric %s: %s=%s is out of range", row->name,
                           option.key, option.value);
        *(is_k ? &m->k : &m->threshold) = value;
    }
}

snug_status sn_metric_parse(const char *text, const sn_loss *loss, const snug_type *output,
                            sn_metric *out, snug_error *err) {
    sn_metric m = {.k = 5, .threshold = 0.5};
    SNUG_TRY(sn_option_name(text, m.name, sizeof m.name, err));
    if (!sn_text_copy(m.text, sizeof m.text, text))
        return sn_fail(err, SNUG_E_INVALID, "metric '%.40s...' is longer than %zu letters", text,
                       sizeof m.text - 1);
    const char *resolved = resolve(m.name, loss, output);
    const metric_row *row = find_row(resolved);
    if (!row)
        return refuse_metric(m.name, err);
    if (row->terms == of_loss)
        SNUG_TRY(sn_loss_parse(text, &m.loss, err));
    else
        SNUG_TRY(set_options(row, text, &m, err));
    if (row->terms == cosine)
        SNUG_TRY(sn_loss_parse(row->name, &m.loss, err));
    sn_text_copy(m.resolved, sizeof m.resolved, row == &loss_row ? m.loss.name : row->name);
    SNUG_TRY(check_labels(&m, row == &loss_row ? m.loss.sparse : row->sparse, loss, err));
    *out = m;
    return SNUG_OK;
}

/* --- graph ------------------------------------------------------------------------------------ */
bool sn_metric_counts(const sn_metric *m) {
    return find_row(m->resolved)->over != NULL;
}

double sn_metric_finish(const sn_metric *m, double total, double over) {
    if (over == 0)
        return sn_metric_counts(m) ? 0 : (double)NAN; /* as Keras; nothing was seen */
    return find_row(m->resolved)->finish(total / over);
}

/* The sum of all of x, in the dtype of `like`. */
static sn_value total_of(sn_builder *b, sn_value x, sn_value like) {
    return sn_build_sum(b, sn_build_cast(b, x, dtype_of(b, like)), 0, false);
}

sn_value sn_metric_build(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred,
                         sn_value *over) {
    const metric_row *row = find_row(m->resolved);
    *over = row->over ? total_of(b, row->over(b, m, y_true, y_pred), y_pred) : SN_NO_VALUE;
    const sn_value terms = row->terms(b, m, y_true, y_pred);
    if (row->over)
        return total_of(b, terms, y_pred);
    const sn_value real = sn_build_cast(b, terms, dtype_of(b, y_pred));
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(b->graph, real)->rank;
    const uint32_t within = ((1u << rank) - 1) & ~1u; /* every axis but the batch */
    return sn_build_sum(b, within ? sn_build_mean(b, real, within, false) : real, 0, false);
}
