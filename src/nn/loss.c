/* loss.c: Keras' losses. Each gives one term per element (or per row for the cross-entropies over
 * classes); the loss is the mean of all terms, which equals Keras' mean over the last axis and then
 * over the batch.
 *
 * Cross-entropies look through a softmax or sigmoid that made y_pred and start from its input, as
 * Keras does in graph mode. From probabilities made otherwise they clip to [1e-7, 1 - 1e-7]; the
 * categorical one first divides by the sum over the classes, the sparse one takes the logarithm as
 * logits. */
#include "nn/nn.h"
#include "nn/text.h"

#include <math.h>
#include <string.h>

#define EPSILON 1e-7 /* keras.config.epsilon() */

typedef sn_value (*terms_fn)(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred);

/* --- small pieces ----------------------------------------------------------------------------- */
static sn_value clip(sn_builder *b, sn_value x, double low, double high) {
    sn_attrs a;
    sn_attrs_default(SN_OP_clip, &a);
    a.clip.low = (int64_t)sn_build_param(b, "", low).i;
    a.clip.high = (int64_t)sn_build_param(b, "", high).i;
    return sn_build(b, SN_OP_clip, &a, &x, 1);
}

static sn_value at_least(sn_builder *b, sn_value x, double low) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_maximum(b, x, sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, low));
}

/* The input of the `op` that made y, or nothing. */
static bool look_through(const sn_builder *b, sn_op op, sn_value y, sn_value *logits) {
    if (b->error.code != SNUG_OK)
        return false;
    const sn_node maker = sn_graph_value_at(b->graph, y)->node;
    if (maker.i == SN_NO_NODE.i)
        return false;
    const sn_node_info *node = sn_graph_node_at(b->graph, maker);
    if (node->op != op)
        return false;
    *logits = node->in[0];
    return true;
}

/* --- regressions ------------------------------------------------------------------------------ */
static sn_value squared_error(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    (void)l;
    return sn_build_square(b, sn_build_sub(b, y_pred, y_true));
}

static sn_value absolute_error(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    (void)l;
    return sn_build_abs(b, sn_build_sub(b, y_pred, y_true));
}

static sn_value percentage_error(sn_builder *b, const sn_loss *l, sn_value y_true,
                                 sn_value y_pred) {
    (void)l;
    const sn_value size = at_least(b, sn_build_abs(b, y_true), EPSILON);
    return sn_build_affine(
        b, sn_build_abs(b, sn_build_div(b, sn_build_sub(b, y_true, y_pred), size)), 100, 0);
}

static sn_value log_of_one_more(sn_builder *b, sn_value x) {
    return sn_build_log(b, sn_build_affine(b, at_least(b, x, EPSILON), 1, 1));
}

static sn_value squared_logarithmic_error(sn_builder *b, const sn_loss *l, sn_value y_true,
                                          sn_value y_pred) {
    (void)l;
    return sn_build_square(b,
                           sn_build_sub(b, log_of_one_more(b, y_pred), log_of_one_more(b, y_true)));
}

static sn_value huber(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    const sn_value error = sn_build_sub(b, y_pred, y_true);
    const sn_value size = sn_build_abs(b, error);
    const sn_value near = sn_build_affine(b, sn_build_square(b, error), 0.5, 0);
    const sn_value far = sn_build_affine(b, size, l->delta, -0.5 * l->delta * l->delta);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value limit = sn_build_scalar(b, sn_graph_type(b->graph, size)->dtype, l->delta);
    return sn_build_select(b, sn_build_greater(b, size, limit), far, near);
}

static sn_value log_cosh(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    (void)l;
    const sn_value x = sn_build_sub(b, y_pred, y_true);
    const sn_value tail = sn_build_softplus(b, sn_build_affine(b, x, -2, 0));
    return sn_build_affine(b, sn_build_add(b, x, tail), 1, -sn_keras_number(log(2)));
}

/* --- cross-entropies -------------------------------------------------------------------------- */
/* n_classes 2 for the binary one: smoothing pulls towards 1 / n_classes. */
static sn_value smooth(sn_builder *b, const sn_loss *l, sn_value y_true, int64_t n_classes) {
    if (l->label_smoothing == 0)
        return y_true;
    return sn_build_affine(b, y_true, 1 - l->label_smoothing,
                           l->label_smoothing / (double)n_classes);
}

static sn_value binary(sn_builder *b, const sn_loss *l, sn_value labels, sn_value y_pred) {
    const sn_value y_true = smooth(b, l, labels, 2);
    sn_value logits = y_pred;
    if (look_through(b, SN_OP_sigmoid, y_pred, &logits) || l->from_logits)
        return sn_build_sigmoid_xent(b, logits, y_true);
    const sn_value p = clip(b, y_pred, EPSILON, 1 - EPSILON);
    const sn_value yes = sn_build_mul(b, y_true, sn_build_log(b, p));
    const sn_value no = sn_build_mul(b, sn_build_affine(b, y_true, -1, 1),
                                     sn_build_log(b, sn_build_affine(b, p, -1, 1)));
    return sn_build_neg(b, sn_build_add(b, yes, no));
}

static sn_value categorical(sn_builder *b, const sn_loss *l, sn_value labels, sn_value y_pred) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, y_pred);
    const sn_value y_true = smooth(b, l, labels, t.dims[t.rank - 1]);
    const uint32_t classes = 1u << (t.rank - 1);
    sn_value logits = y_pred;
    if (look_through(b, SN_OP_softmax, y_pred, &logits) || l->from_logits)
        return sn_build_softmax_xent(b, logits, y_true);
    const sn_value p = clip(b, sn_build_div(b, y_pred, sn_build_sum(b, y_pred, classes, true)),
                            EPSILON, 1 - EPSILON);
    return sn_build_neg(
        b, sn_build_sum(b, sn_build_mul(b, y_true, sn_build_log(b, p)), classes, false));
}

static sn_value sparse(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    sn_value logits = y_pred;
    if (!look_through(b, SN_OP_softmax, y_pred, &logits) && !l->from_logits)
        logits = sn_build_log(b, clip(b, y_pred, EPSILON, 1 - EPSILON));
    return sn_build_sparse_xent(b, logits, y_true);
}

/* --- by name ---------------------------------------------------------------------------------- */
static const struct {
    const char *name, *alias;
    terms_fn terms;
    const char *options; /* those it takes */
    bool sparse;
} losses[] = {
    {"mean_squared_error", "mse", squared_error, "", false},
    {"mean_absolute_error", "mae", absolute_error, "", false},
    {"mean_absolute_percentage_error", "mape", percentage_error, "", false},
    {"mean_squared_logarithmic_error", "msle", squared_logarithmic_error, "", false},
    {"huber", "huber_loss", huber, "delta", false},
    {"log_cosh", "logcosh", log_cosh, "", false},
    {"binary_crossentropy", "bce", binary, "from_logits label_smoothing", false},
    {"categorical_crossentropy", NULL, categorical, "from_logits label_smoothing", false},
    {"sparse_categorical_crossentropy", NULL, sparse, "from_logits", true},
};
enum { N_LOSSES = sizeof losses / sizeof *losses };

static int find_loss(const char *name) {
    for (int i = 0; i < N_LOSSES; i++)
        if (sn_same_name(name, losses[i].name) ||
            (losses[i].alias && sn_same_name(name, losses[i].alias)))
            return i;
    return -1;
}

bool sn_loss_known(const char *name) {
    return find_loss(name) >= 0;
}

static snug_status set_option(int row, const sn_option *o, sn_loss *l, snug_error *err) {
    if (!sn_text_has(losses[row].options, o->key))
        return sn_fail(err, SNUG_E_INVALID, "loss %s has no setting '%s'%s%s", losses[row].name,
                       o->key, losses[row].options[0] ? "; it has " : "", losses[row].options);
    if (strcmp(o->key, "from_logits") == 0)
        return sn_option_flag(o, &l->from_logits, err);
    const bool is_delta = strcmp(o->key, "delta") == 0;
    double value;
    SNUG_TRY(sn_option_real(o, &value, err));
    if (value < 0 || (!is_delta && value >= 1))
        return sn_fail(err, SNUG_E_INVALID, "%s=%s is out of range", o->key, o->value);
    *(is_delta ? &l->delta : &l->label_smoothing) = value;
    return SNUG_OK;
}

snug_status sn_loss_parse(const char *text, sn_loss *out, snug_error *err) {
    sn_loss l = {.delta = 1};
    SNUG_TRY(sn_option_name(text, l.name, sizeof l.name, err));
    const int row = find_loss(l.name);
    if (row < 0) {
        char list[360] = "";
        for (int i = 0; i < N_LOSSES; i++)
            sn_text_list(list, sizeof list, losses[i].name);
        return sn_fail(err, SNUG_E_UNSUPPORTED, "loss '%.40s' is not known; there are %s", l.name,
                       list);
    }
    sn_text_copy(l.name, sizeof l.name, losses[row].name);
    l.sparse = losses[row].sparse;
    sn_option option;
    bool more;
    for (const char *at = text;;) {
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            break;
        SNUG_TRY(set_option(row, &option, &l, err));
    }
    *out = l;
    return SNUG_OK;
}

void sn_loss_target(const sn_loss *l, const snug_type *output, snug_type *target) {
    *target = *output;
    if (l->sparse && output->rank > 1) {
        target->rank--;
        target->dtype = SNUG_I32;
    }
}

sn_value sn_loss_terms(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    return losses[find_loss(l->name)].terms(b, l, y_true, y_pred);
}

sn_value sn_loss_build(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    return sn_build_mean(b, sn_loss_terms(b, l, y_true, y_pred), 0, false);
}
