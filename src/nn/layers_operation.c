/* layers_operation.c: the layer class Operation: a function of keras.ops (or of tf.keras 2's
 * TFOpLambda) applied to tensors and numbers. One table per kind of function says its names and the
 * operator it is made of; activations are known by their own names.
 *
 * Operands stand in the order of the call; a number takes the dtype of the tensors beside it, and
 * integers beside floats become floats, as in Keras. The batch is axis 0: it may be moved and
 * reduced, but no part of it may be taken. */
#include "base/real.h"
#include "base/size.h"
#include "nn/activation.h"
#include "nn/keras_number.h"
#include "nn/operation.h"
#include "base/setting_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef const sn_conf_operation *conf_of;

static snug_type type_of(const sn_layer_call *c, sn_value v) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, v) : (snug_type){.rank = 0};
}

/* --- operands --------------------------------------------------------------------------------- */
typedef struct {
    int n;
    bool is_number[4];
    double number[4];
    sn_value tensor[4]; /* of numbers, too */
} operands;

sn_value sn_operation_array(sn_layer_call *c, conf_of conf) {
    return sn_layer_array(c, &conf->array, conf->array_dims, (int)conf->array_rank);
}

/* Tensors, numbers and an array in their places. False after refusing more than `most`. */
static bool find_operands(sn_layer_call *c, conf_of conf, int most, bool rounds, operands *o) {
    int tensors = 0, numbers = 0;
    const int array_at = conf->array.n > 0 ? (int)conf->array_at : -1;
    *o = (operands){.n = c->n_in + (int)conf->n_numbers + (array_at >= 0)};
    if (o->n > most) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%s of %d operands; it takes %d",
                        conf->function.text, o->n, most);
        return false;
    }
    bool is_float = !conf->whole;
    for (int i = 0; i < c->n_in; i++)
        is_float = is_float || sn_dtype_is_float(type_of(c, c->in[i]).dtype);
    const snug_dtype number_type =
        is_float ? c->network->compute_dtype : type_of(c, c->in[0]).dtype;
    for (int i = 0; i < o->n; i++) {
        o->is_number[i] = conf->numbers >> i & 1;
        o->number[i] = numbers ? conf->second : conf->first;
        o->number[i] = rounds ? sn_keras_number(o->number[i]) : o->number[i];
        if (o->is_number[i])
            o->tensor[i] = sn_build_scalar(c->b, number_type, o->number[i]);
        else if (i == array_at)
            o->tensor[i] = sn_operation_array(c, conf);
        else
            o->tensor[i] = tensors < c->n_in ? c->in[tensors++] : SN_NO_VALUE;
        numbers += o->is_number[i];
        const snug_dtype t = type_of(c, o->tensor[i]).dtype;
        if (is_float && !sn_dtype_is_float(t) && t != SNUG_BOOL)
            o->tensor[i] = sn_build_cast(c->b, o->tensor[i], c->network->compute_dtype);
    }
    return true;
}

/* Axes of the configuration as counts from the front of `rank` axes; false after refusing. */
static bool find_axes(sn_layer_call *c, conf_of conf, int rank, int *axes) {
    for (int i = 0; i < conf->n_axes; i++) {
        const int64_t axis = conf->axes[i] < 0 ? conf->axes[i] + rank : conf->axes[i];
        if (axis < 0 || axis >= rank) {
            sn_layer_refuse(c, SNUG_E_INVALID, "%s along axis %lld of %d axes", conf->function.text,
                            (long long)conf->axes[i], rank);
            return false;
        }
        axes[i] = (int)axis;
    }
    return true;
}

/* The one axis of a function; `otherwise` when none is given. */
bool sn_operation_axis(sn_layer_call *c, conf_of conf, int rank, int otherwise, int *axis) {
    int axes[SN_OPERATION_LIST] = {otherwise < 0 ? otherwise + rank : otherwise};
    if (!find_axes(c, conf, rank, axes))
        return false;
    *axis = axes[0];
    return true;
}

/* --- of one tensor ---------------------------------------------------------------------------- */
static sn_value same(sn_builder *b, sn_value x) {
    (void)b;
    return x;
}
static sn_value log_2(sn_builder *b, sn_value x) {
    return sn_build_affine(b, sn_build_log(b, x), M_LOG2E, 0);
}
static sn_value log_10(sn_builder *b, sn_value x) {
    return sn_build_affine(b, sn_build_log(b, x), M_LOG10E, 0);
}
static sn_value exp_2(sn_builder *b, sn_value x) {
    return sn_build_exp(b, sn_build_affine(b, x, M_LN2, 0));
}

static sn_value radians(sn_builder *b, sn_value x) {
    return sn_build_affine(b, x, M_PI / 180, 0);
}
static sn_value degrees(sn_builder *b, sn_value x) {
    return sn_build_affine(b, x, 180 / M_PI, 0);
}
static sn_value cube_root(sn_builder *b, sn_value x) {
    const sn_value size = sn_build_abs(b, x);
    return sn_build_mul(b, sn_build_sign(b, x),
                        sn_build_value_op(b, SN_OP_power, &size, 1, 1.0 / 3));
}

/* sin(pi x) / (pi x), 1 at 0 */
static sn_value sinc(sn_builder *b, sn_value x) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype dtype = sn_graph_type(b->graph, x)->dtype;
    const sn_value at = sn_build_affine(b, x, M_PI, 0), one = sn_build_scalar(b, dtype, 1),
                   origin = sn_build_equal(b, x, sn_build_scalar(b, dtype, 0));
    return sn_build_select(b, origin, one, sn_build_div(b, sn_build_sin(b, at), at));
}

static const struct {
    const char *names; /* parted by spaces; case and underscores do not count */
    sn_value (*build)(sn_builder *b, sn_value x);
} unary[] = {
    {"negative neg", sn_build_neg},
    {"absolute abs", sn_build_abs},
    {"sign", sn_build_sign},
    {"square", sn_build_square},
    {"sqrt", sn_build_sqrt},
    {"rsqrt", sn_build_rsqrt},
    {"reciprocal", sn_build_reciprocal},
    {"exp", sn_build_exp},
    {"exp2", exp_2},
    {"expm1", sn_build_expm1},
    {"deg2rad", radians},
    {"rad2deg", degrees},
    {"cbrt", cube_root},
    {"sinc", sinc},
    {"log", sn_build_log},
    {"log2", log_2},
    {"log10", log_10},
    {"log1p", sn_build_log1p},
    {"erf", sn_build_erf},
    {"erfc", sn_build_erfc},
    {"erfinv", sn_build_erfinv},
    {"lgamma", sn_build_lgamma},
    {"digamma", sn_build_digamma},
    {"sin", sn_build_sin},
    {"cos", sn_build_cos},
    {"tan", sn_build_tan},
    {"arcsin asin", sn_build_asin},
    {"arccos acos", sn_build_acos},
    {"arctan atan", sn_build_atan},
    {"sinh", sn_build_sinh},
    {"cosh", sn_build_cosh},
    {"arcsinh asinh", sn_build_asinh},
    {"arccosh acosh", sn_build_acosh},
    {"arctanh atanh", sn_build_atanh},
    {"floor", sn_build_floor},
    {"ceil", sn_build_ceil},
    {"trunc", sn_build_trunc},
    {"isnan", sn_build_isnan},
    {"isinf", sn_build_isinf},
    {"isfinite", sn_build_isfinite},
    {"logicalnot", sn_build_logical_not},
    {"stopgradient", sn_build_stop_gradient},
    {"identity copy converttotensor", same},
};

/* --- of two ----------------------------------------------------------------------------------- */
static sn_value plain_matmul(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_matmul(b, x, y, SN_NO_VALUE);
}
static sn_value squared_difference(sn_builder *b, sn_value x, sn_value y) {
    return sn_build_square(b, sn_build_sub(b, x, y));
}
/* log(e^x + e^y) */
static sn_value log_add_exp(sn_builder *b, sn_value x, sn_value y) {
    const sn_value apart = sn_build_neg(b, sn_build_abs(b, sn_build_sub(b, x, y)));
    return sn_build_add(b, sn_build_maximum(b, x, y), sn_build_softplus(b, apart));
}

static const struct {
    const char *names;
    sn_value (*build)(sn_builder *b, sn_value x, sn_value y);
    bool rounds; /* Keras makes an f32 tensor of a number among its operands */
} binary[] = {
    {"add addv2", sn_build_add, false},
    {"subtract sub", sn_build_sub, false},
    {"multiply mul", sn_build_mul, false},
    {"divide truedivide truediv div", sn_build_div, false},
    {"power pow", sn_build_pow, false},
    {"floordivide floordiv", sn_build_floor_div, true},
    {"mod floormod", sn_build_mod, true},
    {"arctan2 atan2", sn_build_atan2, true},
    {"logaddexp", log_add_exp, true},
    {"maximum", sn_build_maximum, false},
    {"minimum", sn_build_minimum, false},
    {"equal", sn_build_equal, true},
    {"notequal", sn_build_not_equal, true},
    {"greater", sn_build_greater, true},
    {"greaterequal", sn_build_greater_equal, true},
    {"less", sn_build_less, true},
    {"lessequal", sn_build_less_equal, true},
    {"logicaland", sn_build_logical_and, false},
    {"logicalor", sn_build_logical_or, false},
    {"logicalxor", sn_build_logical_xor, false},
    {"matmul batchmatmul", plain_matmul, false},
    {"squareddifference", squared_difference, false},
};

/* With a number: one operator that reads x once. False: there is none. */
static bool build_with_number(sn_layer_call *c, const char *name, const operands *o) {
    const bool left = o->is_number[0];
    const double v = left ? o->number[0] : o->number[1];
    const sn_value x = left ? o->tensor[1] : o->tensor[0];
    if (!sn_dtype_is_float(type_of(c, x).dtype))
        return false;
    if (sn_same_name(name, "add"))
        c->out = sn_build_affine(c->b, x, 1, v);
    else if (sn_same_name(name, "multiply") || sn_same_name(name, "mul"))
        c->out = sn_build_affine(c->b, x, v, 0);
    else if (sn_same_name(name, "subtract") || sn_same_name(name, "sub"))
        c->out = sn_build_affine(c->b, x, left ? -1 : 1, left ? v : -v);
    else if ((sn_same_name(name, "power") || sn_same_name(name, "pow")) && !left)
        c->out = v == 2 ? sn_build_square(c->b, x) : sn_build_value_op(c->b, SN_OP_power, &x, 1, v);
    else
        return false;
    return true;
}

static sn_value turned(sn_layer_call *c, sn_value x) {
    const int rank = type_of(c, x).rank;
    if (rank >= 2)
        return sn_build_swapaxes(c->b, x, rank - 2, rank - 1);
    sn_layer_refuse(c, SNUG_E_SHAPE, "an operand of rank %d cannot be transposed", rank);
    return x;
}

static void build_binary(sn_layer_call *c, conf_of conf, size_t row) {
    operands o;
    if (!find_operands(c, conf, 2, binary[row].rounds, &o))
        return;
    if (o.n != 2) {
        sn_layer_refuse(c, SNUG_E_FORMAT, "%s needs two operands", conf->function.text);
        return;
    }
    if (conf->n_numbers == 1 && build_with_number(c, conf->function.text, &o))
        return;
    if (conf->other_flag && c->b->error.code == SNUG_OK) /* tf.matmul's transpose_a */
        o.tensor[0] = turned(c, o.tensor[0]);
    if (conf->flag && c->b->error.code == SNUG_OK) /* and transpose_b */
        o.tensor[1] = turned(c, o.tensor[1]);
    c->out = binary[row].build(c->b, o.tensor[0], o.tensor[1]);
}

/* --- reductions ------------------------------------------------------------------------------- */
typedef sn_value (*reduce_fn)(sn_builder *b, sn_value x, uint32_t axes, bool keepdims);

static sn_value as_bool(sn_builder *b, sn_value x) {
    return sn_build_cast(b, x, SNUG_BOOL);
}
static sn_value any_true(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    return sn_build_any_true(b, as_bool(b, x), axes, keepdims);
}
static sn_value all_true(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    return sn_build_all_true(b, as_bool(b, x), axes, keepdims);
}

static sn_value reach(sn_builder *b, sn_value x, uint32_t axes, bool keepdims) {
    return sn_build_sub(b, sn_build_max(b, x, axes, keepdims), sn_build_min(b, x, axes, keepdims));
}

static const struct {
    const char *names;
    reduce_fn build;
} reductions[] = {
    {"mean reducemean average", sn_build_mean},
    {"sum reducesum", sn_build_sum},
    {"prod reduceprod", sn_build_prod},
    {"max amax reducemax", sn_build_max},
    {"min amin reducemin", sn_build_min},
    {"any reduceany", any_true},
    {"all reduceall", all_true},
    {"var reducevariance", sn_build_variance},
    {"std reducestd", sn_build_deviation},
    {"logsumexp reducelogsumexp", sn_build_logsumexp},
    {"ptp", reach},
};

static void build_reduction(sn_layer_call *c, conf_of conf, reduce_fn build) {
    const int rank = type_of(c, c->in[0]).rank;
    int axes[SN_OPERATION_LIST];
    uint32_t set = 0;
    if (!find_axes(c, conf, rank, axes))
        return;
    for (int i = 0; i < conf->n_axes; i++)
        set |= 1u << axes[i];
    c->out = build(c->b, c->in[0], set, conf->flag != 0);
}

/* --- shapes ----------------------------------------------------------------------------------- */
static void build_reshape(sn_layer_call *c, conf_of conf) {
    int64_t dims[SNUG_MAX_RANK];
    const snug_type t = type_of(c, c->in[0]);
    if (conf->n_shape < 1 || conf->n_shape > SNUG_MAX_RANK) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "a shape of %lld axes", (long long)conf->n_shape);
        return;
    }
    int64_t known = 1, example = 1;
    int open = 0;
    bool fits = true;
    for (int i = 0; i < conf->n_shape; i++) {
        dims[i] = conf->shape[i] < 0 ? -1 : conf->shape[i];
        open += i > 0 && dims[i] < 0;
        fits = fits && (dims[i] < 0 || sn_i64_mul(known, dims[i], &known));
    }
    if (!fits)
        return sn_layer_refuse(c, SNUG_E_OVERFLOW, "the shape exceeds the address space");
    for (int i = 1; i < t.rank; i++)
        example *= t.dims[i];
    for (int i = 1; i < conf->n_shape && open == 1 && dims[0] < 0; i++)
        if (dims[i] < 0 && known > 0 && example % known == 0)
            dims[i] = example / known; /* the first one is the batch */
    c->out = sn_build_reshape(c->b, c->in[0], dims, (int)conf->n_shape);
}

static void build_transpose(sn_layer_call *c, conf_of conf) {
    const int rank = type_of(c, c->in[0]).rank;
    int axes[SN_OPERATION_LIST];
    if (!find_axes(c, conf, rank, axes))
        return;
    for (int i = 0; i < rank && conf->n_axes == 0; i++)
        axes[i] = rank - 1 - i;
    if (conf->n_axes != 0 && conf->n_axes != rank) {
        sn_layer_refuse(c, SNUG_E_INVALID, "%lld axes of %d are named", (long long)conf->n_axes,
                        rank);
        return;
    }
    c->out = sn_build_transpose(c->b, c->in[0], axes);
}

static void build_swapaxes(sn_layer_call *c, conf_of conf) {
    const int rank = type_of(c, c->in[0]).rank;
    int axes[SN_OPERATION_LIST], perm[SNUG_MAX_RANK];
    if (conf->n_axes != 2 || !find_axes(c, conf, rank, axes))
        return sn_layer_refuse(c, SNUG_E_INVALID, "it needs two axes");
    for (int i = 0; i < rank; i++)
        perm[i] = i == axes[0] ? axes[1] : i == axes[1] ? axes[0] : i;
    c->out = sn_build_transpose(c->b, c->in[0], perm);
}

/* The tensor with an axis of one more, at `axis`. */
static sn_value with_axis(sn_layer_call *c, sn_value x, int axis) {
    const int rank = type_of(c, x).rank;
    if (rank == SNUG_MAX_RANK || axis == 0) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "an axis of one at %d of %d axes", axis, rank);
        return SN_NO_VALUE;
    }
    return sn_build_expand_dims(c->b, x, axis);
}

static void build_expand_dims(sn_layer_call *c, conf_of conf) {
    int axis;
    if (sn_operation_axis(c, conf, type_of(c, c->in[0]).rank + 1, 1, &axis))
        c->out = with_axis(c, c->in[0], axis);
}

static void build_squeeze(sn_layer_call *c, conf_of conf) {
    const snug_type t = type_of(c, c->in[0]);
    int64_t dims[SNUG_MAX_RANK];
    int axes[SN_OPERATION_LIST], n = 0;
    uint32_t set = 0;
    if (!find_axes(c, conf, t.rank, axes))
        return;
    for (int i = 0; i < conf->n_axes; i++)
        set |= 1u << axes[i];
    for (int i = 0; i < t.rank; i++)
        if (conf->n_axes ? !(set >> i & 1) : t.dims[i] != 1)
            dims[n++] = t.dims[i];
    c->out = sn_build_reshape(c->b, c->in[0], dims, n);
}

static sn_value concat(sn_layer_call *c, const sn_value *in, int n, int axis) {
    sn_attrs a;
    sn_attrs_default(SN_OP_concat, &a);
    a.axis.axis = axis;
    return sn_build(c->b, SN_OP_concat, &a, in, n);
}

static void build_concatenate(sn_layer_call *c, conf_of conf) {
    int axis;
    if (sn_operation_axis(c, conf, type_of(c, c->in[0]).rank, -1, &axis))
        c->out = concat(c, c->in, c->n_in, axis);
}

static void build_stack(sn_layer_call *c, conf_of conf) {
    sn_value in[SN_MAX_IN];
    int axis;
    if (!sn_operation_axis(c, conf, type_of(c, c->in[0]).rank + 1, 0, &axis))
        return;
    for (int i = 0; i < c->n_in; i++)
        in[i] = with_axis(c, c->in[i], axis);
    c->out = concat(c, in, c->n_in, axis);
}

/* --- parts ------------------------------------------------------------------------------------ */
typedef struct {
    int64_t start, size, stride;
} span;

static sn_value take(sn_layer_call *c, sn_value x, const span *spans) {
    const int rank = type_of(c, x).rank;
    int64_t start[SNUG_MAX_RANK], size[SNUG_MAX_RANK], stride[SNUG_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        start[i] = spans[i].start;
        size[i] = spans[i].size;
        stride[i] = spans[i].stride;
    }
    return sn_build_slice(c->b, x, start, size, stride);
}

static void build_split(sn_layer_call *c, conf_of conf) {
    const snug_type t = type_of(c, c->in[0]);
    int axis;
    if (!sn_operation_axis(c, conf, t.rank, 0, &axis))
        return;
    const int64_t extent = t.dims[axis];
    int64_t n = conf->is_list ? conf->n_shape + 1 : conf->n_shape ? conf->shape[0] : 0, at = 0;
    if (axis == 0 || n < 1 || n > SN_MAX_TENSOR || (!conf->is_list && extent % n)) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "a split of axis %d into %lld parts", axis,
                        (long long)n);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        span spans[SNUG_MAX_RANK];
        const int64_t last = k + 1 == n;
        const int64_t end = last ? extent : conf->is_list ? conf->shape[k] : (k + 1) * (extent / n);
        if (end <= at || end > extent)
            return sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                                   "part %lld of a split ends at %lld of %lld", (long long)k,
                                   (long long)end, (long long)extent);
        for (int i = 0; i < t.rank; i++)
            spans[i] = (span){0, -1, 1};
        spans[axis] = (span){at, end - at, 1};
        c->outs[k] = take(c, c->in[0], spans);
        at = end;
    }
    c->out = c->outs[0];
    c->n_out = (int)n;
}

/* Python's slice of an extent, forwards or backwards; an empty one is refused. */
static bool resolve_slice(conf_of conf, int64_t i, int64_t extent, span *out) {
    const int64_t step = conf->step[i] == SN_ITEM_OPEN ? 1 : conf->step[i];
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
    int64_t start = conf->start[i] + (conf->start[i] < 0) * extent,
            stop = conf->stop[i] + (conf->stop[i] < 0) * extent;
    start = start < low ? low : start > high ? high : start;
    stop = stop < low ? low : stop > high ? high : stop;
    start = conf->start[i] == SN_ITEM_OPEN ? (step < 0 ? high : low) : start;
    stop = conf->stop[i] == SN_ITEM_OPEN ? (step < 0 ? low : high) : stop;
    const int64_t reach = step < 0 ? start - stop : stop - start;
    if (step == 0 || reach < 1)
        return false;
    *out = (span){start, (reach - 1) / (step < 0 ? -step : step) + 1, step};
    return true;
}

static bool is_whole(conf_of conf, int64_t i) {
    return conf->item[i] == SN_ITEM_SLICE && conf->start[i] == SN_ITEM_OPEN &&
           conf->stop[i] == SN_ITEM_OPEN && conf->step[i] == SN_ITEM_OPEN;
}

typedef struct {
    snug_type t;                                     /* of x */
    span spans[SNUG_MAX_RANK];                       /* what is taken of its axes */
    int64_t dims[SN_OPERATION_LIST + SNUG_MAX_RANK]; /* new axes, and those of x */
    int axis, n_dims;                                /* of x; of the result */
} item_walk;

static bool take_item(sn_layer_call *c, conf_of conf, int64_t i, item_walk *w) {
    if (conf->item[i] == SN_ITEM_NEW_AXIS) {
        w->dims[w->n_dims++] = 1;
        return true;
    }
    if (conf->item[i] == SN_ITEM_ELLIPSIS) {
        int left = 0;
        for (int64_t k = i + 1; k < conf->n_items; k++)
            left += conf->item[k] != SN_ITEM_NEW_AXIS;
        for (; w->axis < w->t.rank - left; w->axis++)
            w->dims[w->n_dims++] = w->t.dims[w->axis];
        return true;
    }
    span *const s = &w->spans[w->axis];
    const int64_t known = w->axis < w->t.rank ? w->t.dims[w->axis] : 0;
    const int64_t extent = known > 0 ? known : 0; /* the batch is open when a model is read */
    const int64_t index = conf->start[i] < 0 ? conf->start[i] + extent : conf->start[i];
    const bool fits = is_whole(conf, i)                ? w->axis < w->t.rank
                      : known < 0                      ? false
                      : conf->item[i] == SN_ITEM_INDEX ? index >= 0 && index < extent
                                                       : resolve_slice(conf, i, extent, s);
    if (!fits) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                        "item %lld of the key takes part of the batch, nothing, or lies outside "
                        "of axis %d",
                        (long long)i, w->axis);
        return false;
    }
    if (conf->item[i] == SN_ITEM_INDEX)
        *s = (span){index, 1, 1};
    else
        w->dims[w->n_dims++] = is_whole(conf, i) ? known : s->size;
    w->axis++;
    return true;
}

static void build_getitem(sn_layer_call *c, conf_of conf) {
    item_walk w = {.t = type_of(c, c->in[0])};
    for (int i = 0; i < SNUG_MAX_RANK; i++)
        w.spans[i] = (span){0, -1, 1};
    for (int64_t i = 0; i < conf->n_items; i++)
        if (!take_item(c, conf, i, &w))
            return;
    for (; w.axis < w.t.rank; w.axis++)
        w.dims[w.n_dims++] = w.t.dims[w.axis];
    if (w.n_dims > SNUG_MAX_RANK) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "the result has %d axes; at most %d", w.n_dims,
                        SNUG_MAX_RANK);
        return;
    }
    c->out = sn_build_reshape(c->b, take(c, c->in[0], w.spans), w.dims, w.n_dims);
}

/* --- others ----------------------------------------------------------------------------------- */
static void build_where(sn_layer_call *c, conf_of conf) {
    operands o;
    if (!find_operands(c, conf, 3, false, &o))
        return;
    if (o.n != 3 || o.is_number[0])
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "it needs a condition and two values");
    c->out = sn_build_select(c->b, sn_build_cast(c->b, o.tensor[0], SNUG_BOOL), o.tensor[1],
                             o.tensor[2]);
}

static void build_clip(sn_layer_call *c, conf_of conf) {
    sn_attrs a;
    sn_attrs_default(SN_OP_clip, &a);
    a.clip.low = (int64_t)sn_build_param(c->b, "", conf->first).i;
    a.clip.high = (int64_t)sn_build_param(c->b, "", conf->second).i;
    c->out = sn_build(c->b, SN_OP_clip, &a, c->in, 1);
}

/* The type that a call names: all kinds of floats are the network's. */
static bool find_dtype(sn_layer_call *c, conf_of conf, snug_dtype *to) {
    static const struct {
        const char *name;
        snug_dtype dtype;
    } known[] = {{"int32", SNUG_I32}, {"int64", SNUG_I64}, {"bool", SNUG_BOOL}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(conf->dtype.text, known[i].name) == 0) {
            *to = known[i].dtype;
            return true;
        }
    *to = c->network->compute_dtype;
    if (strncmp(conf->dtype.text, "float", 5) == 0)
        return true;
    sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "values of %s; float32, int32, int64 and bool work",
                    conf->dtype.text);
    return false;
}

static void build_cast(sn_layer_call *c, conf_of conf) {
    snug_dtype to;
    if (find_dtype(c, conf, &to))
        c->out = sn_build_cast(c->b, c->in[0], to);
}

static void build_like(sn_layer_call *c, conf_of conf) {
    snug_type t = type_of(c, c->in[0]);
    const bool ones = sn_same_name(conf->function.text, "oneslike");
    if (conf->dtype.text[0] && !find_dtype(c, conf, &t.dtype))
        return;
    c->out = sn_build_broadcast_to(c->b, sn_build_scalar(c->b, t.dtype, ones ? 1 : 0), &t);
}

static void build_argmax(sn_layer_call *c, conf_of conf) {
    int axis;
    if (!sn_operation_axis(c, conf, type_of(c, c->in[0]).rank, -1, &axis))
        return;
    sn_attrs a;
    sn_attrs_default(SN_OP_argmax, &a);
    a.argmax.axis = axis;
    a.argmax.dtype = SNUG_I32;
    const bool least_one = sn_same_name(conf->function.text, "argmin");
    c->out = sn_build(c->b, least_one ? SN_OP_argmin : SN_OP_argmax, &a, c->in, 1);
    if (conf->flag)
        c->out = sn_build_expand_dims(c->b, c->out, axis);
}

static void build_round(sn_layer_call *c, conf_of conf) {
    const double factor = pow(10, conf->first);
    if (conf->first == 0 || !sn_dtype_is_float(type_of(c, c->in[0]).dtype)) {
        c->out = sn_build_round(c->b, c->in[0]);
        return;
    }
    const sn_value by = sn_build_scalar(c->b, type_of(c, c->in[0]).dtype, factor);
    c->out = sn_build_div(c->b, sn_build_round(c->b, sn_build_mul(c->b, c->in[0], by)), by);
}

static void build_scan(sn_layer_call *c, conf_of conf) {
    int axis;
    if (conf->n_axes != 1) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%s without an axis", conf->function.text);
        return;
    }
    if (!sn_operation_axis(c, conf, type_of(c, c->in[0]).rank, -1, &axis))
        return;
    const sn_op op = sn_same_name(conf->function.text, "cumsum") ? SN_OP_cumsum : SN_OP_cumprod;
    c->out = sn_build_scan(c->b, op, c->in[0], axis, false, false);
}

/* Sort, Argsort, TopK: values, places, or both. */
static void build_sort(sn_layer_call *c, conf_of conf) {
    const bool top = sn_same_name(conf->function.text, "topk");
    sn_sort how = {.descending = top, .k = top ? conf->shape[0] : 0, .places = SNUG_I32};
    sn_value values, places;
    if (!sn_operation_axis(c, conf, type_of(c, c->in[0]).rank, -1, &how.axis))
        return;
    sn_build_sort(c->b, c->in[0], &how, &values, &places);
    c->out = sn_same_name(conf->function.text, "argsort") ? places : values;
    if (top) {
        c->outs[1] = places;
        c->n_out = 2;
    }
}

static void build_norm(sn_layer_call *c, conf_of conf) {
    const int rank = type_of(c, c->in[0]).rank;
    int axes[SN_OPERATION_LIST];
    uint32_t set = 0;
    const double order = conf->first_given ? conf->first : 2;
    if (order != 2 && (order != 1 || conf->n_axes > 1)) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "a norm of order %g", order);
        return;
    }
    if (!find_axes(c, conf, rank, axes))
        return;
    for (int i = 0; i < conf->n_axes; i++)
        set |= 1u << axes[i];
    c->out = sn_build_norm(c->b, c->in[0], (int)order, set, conf->flag != 0);
}

static const struct {
    const char *names;
    void (*build)(sn_layer_call *c, conf_of conf);
} others[] = {
    {"reshape", build_reshape},
    {"transpose", build_transpose},
    {"swapaxes", build_swapaxes},
    {"expanddims", build_expand_dims},
    {"squeeze", build_squeeze},
    {"concatenate concat", build_concatenate},
    {"stack", build_stack},
    {"split", build_split},
    {"getitem", build_getitem},
    {"where wherev2", build_where},
    {"clip clipbyvalue", build_clip},
    {"cast", build_cast},
    {"zeroslike oneslike", build_like},
    {"argmax argmin", build_argmax},
    {"round", build_round},
    {"cumsum cumprod", build_scan},
    {"sort argsort topk", build_sort},
    {"norm", build_norm},
    {"einsum", sn_operation_einsum},
    {"dotproductattention", sn_operation_attention},
};

/* --- by name ---------------------------------------------------------------------------------- */
/* Whether a name is one of the words, underscores and case aside. */
static bool is_named(const char *words, const char *name) {
    char plain[64];
    size_t n = 0;
    for (; *name && n + 1 < sizeof plain; name++)
        if (*name != '_')
            plain[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name + 32 : *name);
    plain[n] = 0;
    return sn_text_has(words, plain);
}

/* --- activations ------------------------------------------------------------------------------ */
/* Those with settings, and what the configuration keeps in `first`, `second`, `flag` or axes. */
static const struct {
    const char *names, *first, *second, *flag, *axis;
} settings[] = {
    {"elu celu", "alpha", NULL, NULL, NULL},
    {"leakyrelu", "negative_slope", NULL, NULL, NULL},
    {"hardshrink softshrink", "threshold", NULL, NULL, NULL},
    {"threshold", "threshold", "default_value", NULL, NULL},
    {"squareplus", "b", NULL, NULL, NULL},
    {"gelu", NULL, NULL, "approximate", NULL},
    {"softmax logsoftmax sparsemax glu", NULL, NULL, NULL, "axis"},
};

/* The name with its settings, as sn_activation reads it. */
static const char *activation_text(conf_of conf, char *text, size_t size) {
    const char *name = conf->function.text;
    snprintf(text, size, "%s", name);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (!is_named(settings[i].names, name))
            continue;
        if (settings[i].second)
            sn_print(text, size, "%s:%s=%.17g,%s=%.17g", name, settings[i].first, conf->first,
                     settings[i].second, conf->second);
        else if (settings[i].first && conf->first_given)
            sn_print(text, size, "%s:%s=%.17g", name, settings[i].first, conf->first);
        else if (settings[i].flag)
            snprintf(text, size, "%s:%s=%d", name, settings[i].flag, conf->flag != 0);
        else if (settings[i].axis && conf->n_axes == 1)
            snprintf(text, size, "%s:%s=%d", name, settings[i].axis, (int)conf->axes[0]);
    }
    return text;
}

#define COUNT(table) (sizeof(table) / sizeof *(table))

void sn_layer_build_operation(sn_layer_call *c) {
    const conf_of conf = c->conf;
    const char *name = conf->function.text;
    for (size_t i = 0; i < COUNT(others); i++)
        if (is_named(others[i].names, name))
            return others[i].build(c, conf);
    static const sn_operation_row *const tables[] = {sn_layout_operations, sn_value_operations,
                                                     sn_number_operations};
    for (size_t i = 0; i < COUNT(tables); i++)
        for (const sn_operation_row *row = tables[i]; row->names; row++)
            if (is_named(row->names, name))
                return row->build(c, conf);
    for (size_t i = 0; i < COUNT(binary); i++)
        if (is_named(binary[i].names, name))
            return build_binary(c, conf, i);
    for (size_t i = 0; i < COUNT(reductions); i++)
        if (is_named(reductions[i].names, name))
            return build_reduction(c, conf, reductions[i].build);
    for (size_t i = 0; i < COUNT(unary); i++)
        if (is_named(unary[i].names, name)) {
            c->out = unary[i].build(c->b, c->in[0]);
            return;
        }
    char text[300];
    c->out = sn_activation(c->b, activation_text(conf, text, sizeof text), c->in[0]);
    if (c->b->error.code == SNUG_E_UNSUPPORTED) {
        c->b->error.code = SNUG_OK;
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                        "operation '%.40s' is not known; it would need a row in a table of "
                        "layers_operation.c",
                        name);
    }
}
