/* activation.c: activations by Keras' names, each a line or two of operators. A setting may stand
 * behind the name ("gelu:approximate=true", "elu:alpha=0.5"); defaults are Keras'. Numbers that
 * Keras makes f32 tensors of are rounded as it does (sn_keras_number). */
#include "nn/activation.h"
#include "nn/keras_number.h"
#include "base/setting_text.h"

#include <math.h>

#define SELU_ALPHA 1.6732632423543772
#define SELU_SCALE 1.0507009873554805
#define MAX_SET    3

static snug_type type_of(const sn_builder *b, sn_value x) {
    return b->error.code == SNUG_OK ? *sn_graph_type(b->graph, x) : (snug_type){.rank = 0};
}

static sn_value zero_like(sn_builder *b, sn_value x) {
    return sn_build_scalar(b, type_of(b, x).dtype, 0);
}

/* --- relu and its kin ------------------------------------------------------------------------- */

/* x where x > threshold, else 0. */
static sn_value above(sn_builder *b, sn_value x, double threshold) {
    const sn_value limit = sn_build_scalar(b, type_of(b, x).dtype, threshold);
    return sn_build_select(b, sn_build_greater(b, x, limit), x, zero_like(b, x));
}

sn_value sn_relu_with(sn_builder *b, sn_value x, double slope, double max, double threshold) {
    const bool capped = max >= 0;
    if (slope != 0 && !capped && threshold == 0)
        return sn_build_value_op(b, SN_OP_leaky_relu, &x, 1, sn_keras_number(slope));
    sn_value y;
    if (threshold != 0) {
        y = above(b, x, sn_keras_number(threshold));
        y = capped ? sn_build_clip(b, y, 0, sn_keras_number(max)) : y;
    } else {
        y = capped ? sn_build_value_op(b, SN_OP_relu_max, &x, 1, sn_keras_number(max))
                   : sn_build_relu(b, x);
    }
    if (slope == 0)
        return y;
    const sn_value below = sn_build_relu(b, sn_build_affine(b, x, -1, threshold));
    return sn_build_sub(b, y, sn_build_affine(b, below, slope, 0));
}

static sn_value act_relu(sn_builder *b, sn_value x, const double *set) {
    return sn_relu_with(b, x, set[0], set[1], set[2]);
}
static sn_value act_relu6(sn_builder *b, sn_value x, const double *set) {
    (void)set;
    return sn_build_value_op(b, SN_OP_relu_max, &x, 1, 6);
}
static sn_value act_leaky_relu(sn_builder *b, sn_value x, const double *set) {
    return sn_build_value_op(b, SN_OP_leaky_relu, &x, 1, sn_keras_number(set[0]));
}
static sn_value act_elu(sn_builder *b, sn_value x, const double *set) {
    return sn_build_value_op(b, SN_OP_elu, &x, 1, set[0]);
}
static sn_value act_selu(sn_builder *b, sn_value x, const double *set) {
    (void)set;
    return sn_build_affine(b, sn_build_value_op(b, SN_OP_elu, &x, 1, SELU_ALPHA), SELU_SCALE, 0);
}
/* alpha (exp(x / alpha) - 1) below 0 */
static sn_value act_celu(sn_builder *b, sn_value x, const double *set) {
    if (set[0] == 1)
        return sn_build_value_op(b, SN_OP_elu, &x, 1, 1);
    const sn_value part = sn_build_affine(b, x, 1 / set[0], 0);
    return sn_build_affine(b, sn_build_value_op(b, SN_OP_elu, &part, 1, 1), set[0], 0);
}
static sn_value act_threshold(sn_builder *b, sn_value x, const double *set) {
    const snug_dtype dtype = type_of(b, x).dtype;
    const sn_value keep = sn_build_greater(b, x, sn_build_scalar(b, dtype, set[0]));
    return sn_build_select(b, keep, x, sn_build_scalar(b, dtype, set[1]));
}
static sn_value act_hard_shrink(sn_builder *b, sn_value x, const double *set) {
    const sn_value limit = sn_build_scalar(b, type_of(b, x).dtype, set[0]);
    const sn_value far = sn_build_greater(b, sn_build_abs(b, x), limit);
    return sn_build_select(b, far, x, zero_like(b, x));
}
static sn_value act_soft_shrink(sn_builder *b, sn_value x, const double *set) {
    return sn_build_sub(b, x, sn_build_clip(b, x, -set[0], set[0]));
}
/* 0 up to -1, (x + 1)^2 / 4 up to 1, then x */
static sn_value act_sparse_plus(sn_builder *b, sn_value x, const double *set) {
    (void)set;
    const sn_value bent = sn_build_affine(b, sn_build_clip(b, x, -1, 1), 0.5, 0.5);
    const sn_value rest = sn_build_relu(b, sn_build_affine(b, x, 1, -1));
    return sn_build_add(b, sn_build_square(b, bent), rest);
}
static sn_value act_squareplus(sn_builder *b, sn_value x, const double *set) {
    const sn_value root =
        sn_build_sqrt(b, sn_build_affine(b, sn_build_square(b, x), 1, sn_keras_number(set[0])));
    return sn_build_affine(b, sn_build_add(b, x, root), 0.5, 0);
}

/* --- sigmoid, tanh and their kin -------------------------------------------------------------- */

#define ROW_ACTIVATION(name, row)                                                                  \
    static sn_value act_##name(sn_builder *b, sn_value x, const double *set) {                     \
        (void)set;                                                                                 \
        return sn_build_##row(b, x);                                                               \
    }
ROW_ACTIVATION(sigmoid, sigmoid)
ROW_ACTIVATION(hard_sigmoid, hard_sigmoid)
ROW_ACTIVATION(hard_silu, hard_silu)
ROW_ACTIVATION(log_sigmoid, log_sigmoid)
ROW_ACTIVATION(silu, silu)
ROW_ACTIVATION(tanh, tanh)
ROW_ACTIVATION(softplus, softplus)
ROW_ACTIVATION(exponential, exp)
ROW_ACTIVATION(mish, mish)

static sn_value act_linear(sn_builder *b, sn_value x, const double *set) {
    (void)b, (void)set;
    return x;
}
static sn_value act_gelu(sn_builder *b, sn_value x, const double *set) {
    return set[0] != 0 ? sn_build_gelu_tanh(b, x) : sn_build_gelu(b, x);
}
static sn_value act_sparse_sigmoid(sn_builder *b, sn_value x, const double *set) {
    (void)set;
    return sn_build_clip(b, sn_build_affine(b, x, 0.5, 0.5), 0, 1);
}
static sn_value act_hard_tanh(sn_builder *b, sn_value x, const double *set) {
    (void)set;
    return sn_build_clip(b, x, -1, 1);
}
static sn_value act_tanh_shrink(sn_builder *b, sn_value x, const double *set) {
    (void)set;
    return sn_build_sub(b, x, sn_build_tanh(b, x));
}
static sn_value act_softsign(sn_builder *b, sn_value x, const double *set) {
    (void)set;
    return sn_build_div(b, x, sn_build_affine(b, sn_build_abs(b, x), 1, 1));
}

/* --- along an axis ---------------------------------------------------------------------------- */

/* A function of rows along any axis: the axis is moved to the end and back. */
static sn_value along(sn_builder *b, sn_value x, double axis,
                      sn_value (*rows)(sn_builder *b, sn_value x)) {
    const int rank = type_of(b, x).rank, at = (int)axis;
    if (at == -1 || at == rank - 1)
        return rows(b, x);
    return sn_build_swapaxes(b, rows(b, sn_build_swapaxes(b, x, at, -1)), at, -1);
}

/* As Keras has it: with several classes in the support its threshold is the sum of all their
 * running sums less 1, over their number. */
static sn_value sparsemax_rows(sn_builder *b, sn_value x) {
    const snug_type t = type_of(b, x);
    if (t.rank == 0)
        return SN_NO_VALUE;
    const uint32_t last = 1u << (t.rank - 1);
    const snug_type row = {t.dtype, 1, {t.dims[t.rank - 1]}};
    const sn_value zero = zero_like(b, x);
    const sn_value count =
        sn_build_scan(b, SN_OP_cumsum, sn_build_fill(b, &row, 1), 0, false, false);
    sn_value sorted, places;
    sn_build_sort(b, x, &(sn_sort){.axis = -1, .descending = true, .places = SNUG_I32}, &sorted,
                  &places);
    const sn_value sums = sn_build_scan(b, SN_OP_cumsum, sorted, -1, false, false);
    const sn_value mean = sn_build_div(b, sn_build_affine(b, sums, 1, -1), count);
    const sn_value support = sn_build_greater(b, sn_build_sub(b, sorted, mean), zero);
    const sn_value k = sn_build_sum(b, sn_build_cast(b, support, t.dtype), last, true);
    const sn_value total = sn_build_sum(b, sn_build_select(b, support, sums, zero), last, true);
    const sn_value tau = sn_build_div(b, sn_build_affine(b, total, 1, -1), k);
    return sn_build_relu(b, sn_build_sub(b, x, tau));
}

static sn_value act_softmax(sn_builder *b, sn_value x, const double *set) {
    return along(b, x, set[0], sn_build_softmax);
}
static sn_value act_log_softmax(sn_builder *b, sn_value x, const double *set) {
    return along(b, x, set[0], sn_build_log_softmax);
}
static sn_value act_sparsemax(sn_builder *b, sn_value x, const double *set) {
    return along(b, x, set[0], sparsemax_rows);
}
/* The first half of the axis times the sigmoid of the second. */
static sn_value act_glu(sn_builder *b, sn_value x, const double *set) {
    const snug_type t = type_of(b, x);
    const int axis = (int)set[0] < 0 ? (int)set[0] + t.rank : (int)set[0];
    if (axis < 0 || axis >= t.rank || t.dims[axis] % 2 != 0) {
        if (b->error.code == SNUG_OK)
            sn_fail(&b->error, SNUG_E_SHAPE, "glu halves axis %d; its extent must be even", axis);
        return SN_NO_VALUE;
    }
    const int64_t half = t.dims[axis] / 2;
    return sn_build_mul(b, sn_build_part(b, x, axis, 0, half),
                        sn_build_sigmoid(b, sn_build_part(b, x, axis, half, half)));
}

/* --- the table -------------------------------------------------------------------------------- */

/* A setting whose default is NaN must be given. */
typedef struct {
    const char *name, *alias;
    sn_value (*build)(sn_builder *b, sn_value x, const double *set);
    struct {
        const char *key;
        double value;
    } set[MAX_SET];
} activation;

static const activation activations[] = {
    {"linear", NULL, act_linear, {{NULL, 0}}},
    {"relu", NULL, act_relu, {{"negative_slope", 0}, {"max_value", -1}, {"threshold", 0}}},
    {"relu6", NULL, act_relu6, {{NULL, 0}}},
    {"leaky_relu", NULL, act_leaky_relu, {{"negative_slope", 0.2}}},
    {"elu", NULL, act_elu, {{"alpha", 1}}},
    {"selu", NULL, act_selu, {{NULL, 0}}},
    {"celu", NULL, act_celu, {{"alpha", 1}}},
    {"gelu", NULL, act_gelu, {{"approximate", 0}}},
    {"silu", "swish", act_silu, {{NULL, 0}}},
    {"glu", NULL, act_glu, {{"axis", -1}}},
    {"softmax", NULL, act_softmax, {{"axis", -1}}},
    {"log_softmax", NULL, act_log_softmax, {{"axis", -1}}},
    {"sparsemax", NULL, act_sparsemax, {{"axis", -1}}},
    {"sigmoid", NULL, act_sigmoid, {{NULL, 0}}},
    {"log_sigmoid", NULL, act_log_sigmoid, {{NULL, 0}}},
    {"hard_sigmoid", NULL, act_hard_sigmoid, {{NULL, 0}}},
    {"hard_silu", "hard_swish", act_hard_silu, {{NULL, 0}}},
    {"sparse_sigmoid", NULL, act_sparse_sigmoid, {{NULL, 0}}},
    {"tanh", NULL, act_tanh, {{NULL, 0}}},
    {"hard_tanh", NULL, act_hard_tanh, {{NULL, 0}}},
    {"tanh_shrink", NULL, act_tanh_shrink, {{NULL, 0}}},
    {"hard_shrink", NULL, act_hard_shrink, {{"threshold", 0.5}}},
    {"soft_shrink", NULL, act_soft_shrink, {{"threshold", 0.5}}},
    {"threshold", NULL, act_threshold, {{"threshold", NAN}, {"default_value", NAN}}},
    {"softplus", NULL, act_softplus, {{NULL, 0}}},
    {"softsign", NULL, act_softsign, {{NULL, 0}}},
    {"squareplus", NULL, act_squareplus, {{"b", 4}}},
    {"sparse_plus", NULL, act_sparse_plus, {{NULL, 0}}},
    {"mish", NULL, act_mish, {{NULL, 0}}},
    {"exponential", NULL, act_exponential, {{NULL, 0}}},
};
#define N_ACTIVATIONS (sizeof activations / sizeof *activations)

static snug_status set_option(const activation *a, const sn_option *o, double *set,
                              snug_error *err) {
    char list[120] = "";
    for (int i = 0; i < MAX_SET && a->set[i].key; i++) {
        bool flag;
        if (!sn_same_name(o->key, a->set[i].key)) {
            sn_text_list(list, sizeof list, a->set[i].key);
            continue;
        }
        if (sn_text_real(o->value, &set[i]))
            return SNUG_OK;
        SNUG_TRY(sn_option_flag(o, &flag, err));
        set[i] = flag;
        return SNUG_OK;
    }
    return sn_fail(err, SNUG_E_INVALID, "activation '%s' has no setting '%.40s'; there is %s",
                   a->name, o->key, list[0] ? list : "none");
}

static snug_status read_settings(const activation *a, const char *text, double *set,
                                 snug_error *err) {
    sn_option option;
    bool more = true;
    for (int i = 0; i < MAX_SET; i++)
        set[i] = a->set[i].key ? a->set[i].value : 0;
    for (;;) {
        SNUG_TRY(sn_option_next(&text, &option, &more, err));
        if (!more)
            break;
        SNUG_TRY(set_option(a, &option, set, err));
    }
    for (int i = 0; i < MAX_SET; i++)
        if (isnan(set[i]))
            return sn_fail(err, SNUG_E_INVALID, "activation '%s' needs its %s: '%s:%s=0.5,...'",
                           a->name, a->set[i].key, a->name, a->set[i].key);
    return SNUG_OK;
}

static snug_status find_activation(const char *text, const activation **out, snug_error *err) {
    char name[48], list[400] = "";
    SNUG_TRY(sn_option_name(text, name, sizeof name, err));
    for (size_t i = 0; i < N_ACTIVATIONS; i++) {
        *out = &activations[i];
        if (sn_same_name(name, activations[i].name) ||
            (activations[i].alias && sn_same_name(name, activations[i].alias)))
            return SNUG_OK;
        sn_text_list(list, sizeof list, activations[i].name);
    }
    return sn_refuse_name("activation", name, list, err);
}

sn_value sn_activation(sn_builder *b, const char *text, sn_value x) {
    const activation *found;
    double set[MAX_SET];
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    if (find_activation(text, &found, &b->error) != SNUG_OK ||
        read_settings(found, text, set, &b->error) != SNUG_OK)
        return SN_NO_VALUE;
    return found->build(b, x, set);
}
