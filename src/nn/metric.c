/* metric.c: metrics as sums over the examples of a batch. "accuracy" means what Keras makes of it
 * from the shapes: binary when the output has one unit, sparse when labels have no class axis, else
 * categorical. A loss may be named as a metric, too. */
#include "nn/nn.h"
#include "nn/text.h"

#include <string.h>

typedef sn_value (*hits_fn)(sn_builder *b, sn_value y_true, sn_value y_pred);

/* --- which examples are right, as booleans ---------------------------------------------------- */
static sn_value class_of(sn_builder *b, sn_value y) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_argmax(b, y, sn_graph_type(b->graph, y)->rank - 1, SNUG_I32);
}

static sn_value binary_hits(sn_builder *b, sn_value y_true, sn_value y_pred) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype dtype = sn_graph_type(b->graph, y_pred)->dtype;
    const sn_value guess = sn_build_greater(b, y_pred, sn_build_scalar(b, dtype, 0.5));
    return sn_build_equal(b, y_true, sn_build_cast(b, guess, dtype));
}

static sn_value categorical_hits(sn_builder *b, sn_value y_true, sn_value y_pred) {
    return sn_build_equal(b, class_of(b, y_true), class_of(b, y_pred));
}

static sn_value sparse_hits(sn_builder *b, sn_value y_true, sn_value y_pred) {
    return sn_build_equal(b, y_true, class_of(b, y_pred));
}

static const struct {
    const char *name;
    hits_fn hits;
    bool sparse;
} accuracies[] = {
    {"binary_accuracy", binary_hits, false},
    {"categorical_accuracy", categorical_hits, false},
    {"sparse_categorical_accuracy", sparse_hits, true},
};
enum { N_ACCURACIES = sizeof accuracies / sizeof *accuracies };

static int find_accuracy(const char *name) {
    for (int i = 0; i < N_ACCURACIES; i++)
        if (sn_same_name(name, accuracies[i].name))
            return i;
    return -1;
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
    char list[200] = "accuracy";
    for (int i = 0; i < N_ACCURACIES; i++)
        sn_text_list(list, sizeof list, accuracies[i].name);
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "metric '%.40s' is not known; there are %s, and every loss by its name", name,
                   list);
}

snug_status sn_metric_parse(const char *text, const sn_loss *loss, const snug_type *output,
                            sn_metric *out, snug_error *err) {
    sn_metric m = {.name = ""};
    SNUG_TRY(sn_option_name(text, m.name, sizeof m.name, err));
    const char *resolved = resolve(m.name, loss, output);
    const int row = find_accuracy(resolved);
    bool sparse;
    if (row >= 0) {
        sn_text_copy(m.resolved, sizeof m.resolved, accuracies[row].name);
        sparse = accuracies[row].sparse;
    } else {
        if (!sn_loss_known(resolved))
            return refuse_metric(m.name, err);
        SNUG_TRY(sn_loss_parse(text, &m.loss, err));
        sn_text_copy(m.resolved, sizeof m.resolved, m.loss.name);
        sparse = m.loss.sparse;
    }
    SNUG_TRY(check_labels(&m, sparse, loss, err));
    *out = m;
    return SNUG_OK;
}

/* --- graph ------------------------------------------------------------------------------------ */
sn_value sn_metric_build(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype dtype = sn_graph_type(b->graph, y_pred)->dtype;
    const int row = find_accuracy(m->resolved);
    sn_value terms = row < 0 ? sn_loss_terms(b, &m->loss, y_true, y_pred)
                             : accuracies[row].hits(b, y_true, y_pred);
    terms = sn_build_cast(b, terms, dtype);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(b->graph, terms)->rank;
    const uint32_t within = ((1u << rank) - 1) & ~1u; /* every axis but the batch */
    return sn_build_sum(b, within ? sn_build_mean(b, terms, within, false) : terms, 0, false);
}
