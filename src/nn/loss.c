/* loss.c: Keras' losses. Each gives one term per element (or per row for the cross-entropies over
 * classes); the loss is the mean of all terms, which equals Keras' mean over the last axis and then
 * over the batch.
 *
 * Cross-entropies look through a softmax or sigmoid that made y_pred and start from its input, as
 * Keras does in graph mode. From probabilities made otherwise they clip to [1e-7, 1 - 1e-7]; the
 * categorical one first divides by the sum over the classes, the sparse one takes the logarithm as
 * logits. The categorical focal one never looks through, and the sparse one does not where it
 * ignores a class. */
#include "nn/loss.h"
#include "nn/keras_number.h"
#include "base/setting_text.h"

#include <math.h>
#include <string.h>

#define EPSILON 1e-7 /* keras.config.epsilon() */

typedef sn_value (*terms_fn)(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred);

/* --- small pieces ----------------------------------------------------------------------------- */
static sn_value at_least(sn_builder *b, sn_value x, double low) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_maximum(b, x, sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, low));
}

uint32_t sn_last_axis(sn_builder *b, sn_value x) {
    if (b->error.code != SNUG_OK)
        return 0;
    const int rank = sn_graph_type(b->graph, x)->rank;
    if (rank == 0)
        sn_fail(&b->error, SNUG_E_SHAPE, "a scalar has no axis of classes; give at least one axis");
    return rank ? 1u << (rank - 1) : 0;
}

static sn_value one_minus(sn_builder *b, sn_value x) {
    return sn_build_affine(b, x, -1, 1);
}

/* The node that made y; NULL: none. */
static const sn_node_info *maker_of(const sn_builder *b, sn_value y) {
    const sn_node maker = sn_graph_value_at(b->graph, y)->node;
    return maker.i == SN_NO_NODE.i ? NULL : sn_graph_node_at(b->graph, maker);
}

static bool is_made_by(const sn_node_info *node, sn_op op) {
    return node && node->op == op;
}

/* A layer's softmax along another axis stands between two transposes of its own. */
static bool look_through_swaps(const sn_builder *b, const sn_node_info *last, sn_value *logits) {
    const sn_node_info *softmax =
        is_made_by(last, SN_OP_transpose) ? maker_of(b, last->in[0]) : NULL;
    const sn_node_info *first =
        is_made_by(softmax, SN_OP_softmax) ? maker_of(b, softmax->in[0]) : NULL;
    if (!is_made_by(first, SN_OP_transpose) || last->owner == 0 || first->owner != last->owner)
        return false;
    *logits = first->in[0];
    return true;
}

/* The input of the softmax or sigmoid that made y, whatever the loss would expect: Keras notes the
 * logits on the results of both. */
static bool look_through(const sn_builder *b, sn_value y, sn_value *logits) {
    if (b->error.code != SNUG_OK)
        return false;
    const sn_node_info *node = maker_of(b, y);
    if (!is_made_by(node, SN_OP_softmax) && !is_made_by(node, SN_OP_sigmoid))
        return look_through_swaps(b, node, logits);
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

static sn_value poisson(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    (void)l;
    const sn_value log_rate = sn_build_log(b, sn_build_affine(b, y_pred, 1, EPSILON));
    return sn_build_sub(b, y_pred, sn_build_mul(b, y_true, log_rate));
}

/* x over its length along the last axis; a shorter one than epsilon counts as epsilon. */
static sn_value unit_rows(sn_builder *b, sn_value x) {
    const sn_value square = sn_build_sum(b, sn_build_square(b, x), sn_last_axis(b, x), true);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value most = sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, 1 / EPSILON);
    return sn_build_mul(b, x, sn_build_minimum(b, sn_build_rsqrt(b, square), most));
}

static sn_value cosine_similarity(sn_builder *b, const sn_loss *l, sn_value y_true,
                                  sn_value y_pred) {
    (void)l;
    const sn_value product = sn_build_mul(b, unit_rows(b, y_true), unit_rows(b, y_pred));
    return sn_build_neg(b, sn_build_sum(b, product, sn_last_axis(b, product), false));
}

static sn_value kl_divergence(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    (void)l;
    const sn_value p = sn_build_clip(b, y_true, EPSILON, 1),
                   q = sn_build_clip(b, y_pred, EPSILON, 1);
    const sn_value terms = sn_build_mul(b, p, sn_build_log(b, sn_build_div(b, p, q)));
    return sn_build_sum(b, terms, sn_last_axis(b, terms), false);
}

/* --- hinges ----------------------------------------------------------------------------------- */
/* Labels of -1 and 1: 2 y - 1 where all labels of the batch are 0 or 1, else y itself. */
static sn_value signs(sn_builder *b, sn_value y) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype dtype = sn_graph_type(b->graph, y)->dtype;
    const sn_value is_binary =
        sn_build_logical_or(b, sn_build_equal(b, y, sn_build_scalar(b, dtype, 0)),
                            sn_build_equal(b, y, sn_build_scalar(b, dtype, 1)));
    const sn_value other = sn_build_cast(b, sn_build_logical_not(b, is_binary), dtype);
    const sn_value any =
        sn_build_greater(b, sn_build_max(b, other, 0, false), sn_build_scalar(b, dtype, 0));
    return sn_build_select(b, any, y, sn_build_affine(b, y, 2, -1));
}

static sn_value hinge(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    (void)l;
    return at_least(b, one_minus(b, sn_build_mul(b, signs(b, y_true), y_pred)), 0);
}

static sn_value squared_hinge(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    return sn_build_square(b, hinge(b, l, y_true, y_pred));
}

static sn_value categorical_hinge(sn_builder *b, const sn_loss *l, sn_value y_true,
                                  sn_value y_pred) {
    (void)l;
    const uint32_t classes = sn_last_axis(b, y_pred);
    const sn_value right = sn_build_sum(b, sn_build_mul(b, y_true, y_pred), classes, false);
    const sn_value wrong =
        sn_build_max(b, sn_build_mul(b, one_minus(b, y_true), y_pred), classes, false);
    return at_least(b, sn_build_affine(b, sn_build_sub(b, wrong, right), 1, 1), 0);
}

/* --- overlaps --------------------------------------------------------------------------------- */
/* 1 - hits / (hits + alpha * missed + beta * said wrongly + epsilon), over all axes or some. */
static sn_value tversky(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    const sn_value hits = sn_build_sum(b, sn_build_mul(b, y_true, y_pred), l->axes, false);
    const sn_value missed =
        sn_build_sum(b, sn_build_mul(b, one_minus(b, y_pred), y_true), l->axes, false);
    const sn_value wrong =
        sn_build_sum(b, sn_build_mul(b, y_pred, one_minus(b, y_true)), l->axes, false);
    const sn_value rest = sn_build_add(b, sn_build_affine(b, missed, l->alpha, EPSILON),
                                       sn_build_affine(b, wrong, l->beta, 0));
    return one_minus(b, sn_build_div(b, hits, sn_build_add(b, hits, rest)));
}

/* 1 - 2 hits / (sum of both + epsilon) */
static sn_value dice(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    const sn_value hits = sn_build_sum(b, sn_build_mul(b, y_true, y_pred), l->axes, false);
    const sn_value both = sn_build_add(b, sn_build_sum(b, y_true, l->axes, false),
                                       sn_build_sum(b, y_pred, l->axes, false));
    return one_minus(
        b, sn_build_div(b, sn_build_affine(b, hits, 2, 0), sn_build_affine(b, both, 1, EPSILON)));
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
    if (look_through(b, y_pred, &logits) || l->from_logits)
        return sn_build_sigmoid_xent(b, logits, y_true);
    const sn_value p = sn_build_clip(b, y_pred, EPSILON, 1 - EPSILON);
    const sn_value yes = sn_build_mul(b, y_true, sn_build_log(b, p));
    const sn_value no = sn_build_mul(b, one_minus(b, y_true), sn_build_log(b, one_minus(b, p)));
    return sn_build_neg(b, sn_build_add(b, yes, no));
}

/* TensorFlow takes each row of labels for a distribution: its gradient is softmax(x) - labels, also
 * where they do not sum up to 1. */
static sn_value unit_xent(sn_builder *b, sn_value logits, sn_value labels) {
    const sn_value in[2] = {logits, labels};
    sn_attrs a;
    sn_attrs_default(SN_OP_softmax_xent, &a);
    a.xent.unit = 1;
    return sn_build(b, SN_OP_softmax_xent, &a, in, 2);
}

static sn_value categorical(sn_builder *b, const sn_loss *l, sn_value labels, sn_value y_pred) {
    const uint32_t classes = sn_last_axis(b, y_pred);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, y_pred);
    const sn_value y_true = smooth(b, l, labels, t.dims[t.rank - 1]);
    sn_value logits = y_pred;
    if (look_through(b, y_pred, &logits) || l->from_logits)
        return unit_xent(b, logits, y_true);
    const sn_value p = sn_build_clip(
        b, sn_build_div(b, y_pred, sn_build_sum(b, y_pred, classes, true)), EPSILON, 1 - EPSILON);
    return sn_build_neg(
        b, sn_build_sum(b, sn_build_mul(b, y_true, sn_build_log(b, p)), classes, false));
}

sn_value sn_loss_mask(sn_builder *b, const sn_loss *l, sn_value y_true) {
    if (isnan(l->ignore_class) || b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype dtype = sn_graph_type(b->graph, y_true)->dtype;
    return sn_build_logical_not(
        b, sn_build_equal(b, y_true, sn_build_scalar(b, dtype, l->ignore_class)));
}

/* Labels to be ignored count as class 0 with nothing predicted, and their terms as 0. */
static sn_value sparse_but(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    const sn_value valid = sn_loss_mask(b, l, y_true);
    sn_last_axis(b, y_pred); /* there is one */
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    snug_type t = *sn_graph_type(b->graph, y_pred);
    const sn_value zero = sn_build_scalar(b, t.dtype, 0);
    t.dims[t.rank - 1] = 1;
    const sn_value p = sn_build_select(b, sn_build_reshape(b, valid, t.dims, t.rank), y_pred, zero);
    const snug_dtype labels = sn_graph_type(b->graph, y_true)->dtype;
    const sn_value y = sn_build_select(b, valid, y_true, sn_build_scalar(b, labels, 0));
    const sn_value logits =
        l->from_logits ? p : sn_build_log(b, sn_build_clip(b, p, EPSILON, 1 - EPSILON));
    return sn_build_select(b, valid, sn_build_sparse_xent(b, logits, y), zero);
}

static sn_value sparse(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    sn_value logits = y_pred;
    if (!isnan(l->ignore_class))
        return sparse_but(b, l, y_true, y_pred);
    if (!look_through(b, y_pred, &logits) && !l->from_logits)
        logits = sn_build_log(b, sn_build_clip(b, y_pred, EPSILON, 1 - EPSILON));
    return sn_build_sparse_xent(b, logits, y_true);
}

/* (1 - p^q) / q of the probability of the right class. */
static sn_value generalised(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    const uint32_t classes = sn_last_axis(b, y_pred);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, y_pred);
    sn_attrs a;
    sn_attrs_default(SN_OP_one_hot, &a);
    a.one_hot.depth = t.dims[t.rank - 1];
    a.one_hot.dtype = t.dtype;
    const sn_value chosen = sn_build(b, SN_OP_one_hot, &a, &y_true, 1);
    const sn_value p = sn_build_sum(b, sn_build_mul(b, y_pred, chosen), classes, false);
    return sn_build_affine(b, sn_build_value_op(b, SN_OP_power, &p, 1, l->q), -1 / l->q, 1 / l->q);
}

/* (1 - p)^gamma times the cross-entropy, p what was given to the right answer. */
static sn_value binary_focal(sn_builder *b, const sn_loss *l, sn_value labels, sn_value y_pred) {
    const sn_loss plain = {.from_logits = false};
    const sn_value y_true = smooth(b, l, labels, 2);
    const sn_value p = l->from_logits ? sn_build_sigmoid(b, y_pred) : y_pred;
    const sn_value right = sn_build_add(b, sn_build_mul(b, y_true, p),
                                        sn_build_mul(b, one_minus(b, y_true), one_minus(b, p)));
    const sn_value rest = one_minus(b, right);
    const sn_value factor = sn_build_value_op(b, SN_OP_power, &rest, 1, l->gamma);
    const sn_value terms = sn_build_mul(b, factor, binary(b, &plain, y_true, p));
    if (!l->apply_class_balancing)
        return terms;
    return sn_build_mul(b, sn_build_affine(b, y_true, 2 * l->alpha - 1, 1 - l->alpha), terms);
}

static sn_value categorical_focal(sn_builder *b, const sn_loss *l, sn_value labels,
                                  sn_value y_pred) {
    const uint32_t classes = sn_last_axis(b, y_pred);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, y_pred);
    const sn_value y_true = smooth(b, l, labels, t.dims[t.rank - 1]);
    const sn_value given = l->from_logits ? sn_build_softmax(b, y_pred) : y_pred;
    const sn_value p = sn_build_clip(
        b, sn_build_div(b, given, sn_build_sum(b, given, classes, true)), EPSILON, 1 - EPSILON);
    const sn_value rest = one_minus(b, p);
    const sn_value factor =
        sn_build_affine(b, sn_build_value_op(b, SN_OP_power, &rest, 1, l->gamma), l->alpha, 0);
    const sn_value terms =
        sn_build_mul(b, factor, sn_build_mul(b, sn_build_neg(b, y_true), sn_build_log(b, p)));
    return sn_build_sum(b, terms, classes, false);
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
    {"poisson", NULL, poisson, "", false},
    {"cosine_similarity", NULL, cosine_similarity, "", false},
    {"kl_divergence", "kld", kl_divergence, "", false},
    {"hinge", NULL, hinge, "", false},
    {"squared_hinge", NULL, squared_hinge, "", false},
    {"categorical_hinge", NULL, categorical_hinge, "", false},
    {"binary_crossentropy", "bce", binary, "from_logits label_smoothing", false},
    {"categorical_crossentropy", NULL, categorical, "from_logits label_smoothing", false},
    {"sparse_categorical_crossentropy", NULL, sparse, "from_logits ignore_class", true},
    {"categorical_generalized_cross_entropy", NULL, generalised, "q", true},
    {"dice", NULL, dice, "axis", false},
    {"tversky", NULL, tversky, "alpha beta axis", false},
    {"binary_focal_crossentropy", NULL, binary_focal,
     "from_logits label_smoothing apply_class_balancing alpha gamma", false},
    {"categorical_focal_crossentropy", NULL, categorical_focal,
     "from_logits label_smoothing alpha gamma", false},
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

/* Every word of the options above, beside axis and ignore_class, is one of these. */
static const struct {
    const char *key;
    size_t offset;
} flags[] = {{"from_logits", offsetof(sn_loss, from_logits)},
             {"apply_class_balancing", offsetof(sn_loss, apply_class_balancing)}};
static const struct {
    const char *key;
    size_t offset;
    double limit; /* values are in [0, limit) */
} reals[] = {{"label_smoothing", offsetof(sn_loss, label_smoothing), 1},
             {"delta", offsetof(sn_loss, delta), HUGE_VAL},
             {"alpha", offsetof(sn_loss, alpha), HUGE_VAL},
             {"beta", offsetof(sn_loss, beta), HUGE_VAL},
             {"q", offsetof(sn_loss, q), 1},
             {"gamma", offsetof(sn_loss, gamma), HUGE_VAL}};

static snug_status set_reduction(const sn_option *o, sn_reduction *to, snug_error *err) {
    static const struct {
        const char *name;
        sn_reduction kind;
    } kinds[] = {{"sum_over_batch_size", SN_REDUCE_MEAN},
                 {"mean", SN_REDUCE_MEAN},
                 {"sum", SN_REDUCE_SUM},
                 {"mean_with_sample_weight", SN_REDUCE_WEIGHTED_MEAN}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (sn_same_name(o->value, kinds[i].name)) {
            *to = kinds[i].kind;
            return SNUG_OK;
        }
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "reduction=%s; training needs one number: use sum_over_batch_size, sum or "
                   "mean_with_sample_weight",
                   o->value);
}

/* Axes count from the front, 0 is the batch. */
static snug_status set_axes(const sn_option *o, uint32_t *axes, snug_error *err) {
    sn_option one = *o;
    uint32_t found = 0;
    for (const char *at = o->value; sn_text_item(&at, one.value, sizeof one.value);) {
        double axis;
        SNUG_TRY(sn_option_real(&one, &axis, err));
        if (axis != floor(axis) || axis < 0 || axis >= SNUG_MAX_RANK)
            return sn_fail(err, SNUG_E_INVALID, "axis=%s; axes count from 0", o->value);
        found |= 1u << (int)axis;
    }
    *axes = found;
    return SNUG_OK;
}

static snug_status set_option(int row, const sn_option *o, sn_loss *l, snug_error *err) {
    if (strcmp(o->key, "reduction") == 0)
        return set_reduction(o, &l->reduction, err);
    if (!sn_text_has(losses[row].options, o->key))
        return sn_fail(err, SNUG_E_INVALID, "loss %s has no setting '%s'%s%s", losses[row].name,
                       o->key, losses[row].options[0] ? "; it has " : "", losses[row].options);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(o->key, flags[i].key) == 0)
            return sn_option_flag(o, (bool *)((char *)l + flags[i].offset), err);
    if (strcmp(o->key, "axis") == 0)
        return set_axes(o, &l->axes, err);
    if (strcmp(o->key, "ignore_class") == 0)
        return sn_option_real(o, &l->ignore_class, err);
    size_t i = 0;
    while (strcmp(o->key, reals[i].key) != 0)
        i++;
    double value;
    SNUG_TRY(sn_option_real(o, &value, err));
    if (value < 0 || value >= reals[i].limit)
        return sn_fail(err, SNUG_E_INVALID, "%s=%s is out of range", o->key, o->value);
    *(double *)((char *)l + reals[i].offset) = value;
    return SNUG_OK;
}

snug_status sn_loss_parse(const char *text, sn_loss *out, snug_error *err) {
    sn_loss l = {.delta = 1, .alpha = 0.25, .gamma = 2, .beta = 0.5, .q = 0.5};
    l.ignore_class = (double)NAN;
    SNUG_TRY(sn_option_name(text, l.name, sizeof l.name, err));
    const int row = find_loss(l.name);
    if (row < 0) {
        char list[700] = "";
        for (int i = 0; i < N_LOSSES; i++)
            sn_text_list(list, sizeof list, losses[i].name);
        return sn_refuse_name("loss", l.name, list, err);
    }
    sn_text_copy(l.name, sizeof l.name, losses[row].name);
    l.sparse = losses[row].sparse;
    l.alpha = losses[row].terms == tversky ? 0.5 : l.alpha;
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
    if (sn_dtype_is_float(output->dtype)) /* losses are f32 where outputs are halves */
        target->dtype = sn_dtype_computed(output->dtype);
    if (l->sparse && output->rank > 1) {
        target->rank--;
        target->dtype = SNUG_I32;
    }
}

sn_value sn_loss_terms(sn_builder *b, const sn_loss *l, sn_value y_true, sn_value y_pred) {
    return losses[find_loss(l->name)].terms(b, l, y_true, y_pred);
}
