/* operation_numbers.c: functions of keras.ops over the numbers of a tensor: order statistics,
 * differences, counts, normalisation and pooling; and over its matrices: diagonals, rotations,
 * products over several axes. Rows of a table for layers_operation.c; settings stand in the
 * configuration as the reader keeps them: axes in `axes`, other whole numbers in `shape`. */
#include "nn/operation.h"
#include "nn/keras_number.h"
#include "nn/spatial.h"

#include "base/size.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef const sn_conf_operation *conf_of;

static snug_type type_of(const sn_layer_call *c, sn_value v) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, v) : (snug_type){.rank = 1};
}

static sn_value number(sn_layer_call *c, sn_value like, double v) {
    return sn_build_scalar(c->b, type_of(c, like).dtype, v);
}

/* Axes of the configuration as a set; 0 where none is given. False after refusing. */
static bool axes_of(sn_layer_call *c, conf_of conf, uint32_t *set) {
    const int rank = type_of(c, c->in[0]).rank;
    *set = 0;
    for (int i = 0; i < conf->n_axes; i++) {
        const int64_t axis = conf->axes[i] + (conf->axes[i] < 0) * rank;
        if (axis < 0 || axis >= rank) {
            sn_layer_refuse(c, SNUG_E_INVALID, "axis %lld of %d axes", (long long)conf->axes[i],
                            rank);
            return false;
        }
        *set |= 1u << axis;
    }
    return true;
}

/* x with the axes of `last` behind all others, both in their order. */
static sn_value axes_to_end(sn_layer_call *c, sn_value x, uint32_t last) {
    const int rank = type_of(c, x).rank;
    int perm[SNUG_MAX_RANK], at = 0;
    bool still = true;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (int k = 0; k < rank; k++)
            if ((last >> k & 1) == pass)
                perm[at++] = k;
    for (int k = 0; k < rank; k++)
        still = still && perm[k] == k;
    return still ? x : sn_build_transpose(c->b, x, perm);
}

/* Extents of x at the axes of a set, from dims[0] on; how many. */
static int extents_of(const snug_type *t, uint32_t set, int64_t *dims) {
    int n = 0;
    for (int k = 0; k < t->rank; k++)
        if (set >> k & 1)
            dims[n++] = t->dims[k];
    return n;
}

/* -1 where one of them, the batch, is not known. */
static bool product_of(sn_layer_call *c, const int64_t *dims, int n, int64_t *out) {
    bool fits = true, open = false;
    *out = 1;
    for (int k = 0; k < n && fits; k++) {
        open = open || dims[k] < 0;
        fits = dims[k] < 0 || sn_i64_mul(*out, dims[k], out);
    }
    if (!fits)
        sn_layer_refuse(c, SNUG_E_OVERFLOW, "the shape exceeds the address space");
    *out = open ? -1 : *out;
    return fits;
}

/* --- single numbers --------------------------------------------------------------------------- */
static void build_nan_to_num(sn_layer_call *c, conf_of conf) {
    const sn_value x = c->in[0];
    const snug_dtype dtype = type_of(c, x).dtype;
    const double most = dtype == SNUG_F64 ? DBL_MAX : (double)FLT_MAX;
    if (!sn_dtype_is_float(dtype)) {
        c->out = x;
        return;
    }
    const sn_value zero = number(c, x, 0), endless = sn_build_isinf(c->b, x),
                   above = sn_build_logical_and(c->b, endless, sn_build_greater(c->b, x, zero)),
                   below = sn_build_logical_and(c->b, endless, sn_build_less(c->b, x, zero));
    sn_value y = sn_build_select(c->b, sn_build_isnan(c->b, x), number(c, x, conf->first), x);
    y = sn_build_select(c->b, above, number(c, x, conf->second_given ? conf->second : most), y);
    c->out = sn_build_select(c->b, below, number(c, x, conf->third_given ? conf->third : -most), y);
}

/* |x - y| <= atol + rtol |y|: the tolerances are arguments behind the tensors, or by name. */
static void build_isclose(sn_layer_call *c, conf_of conf) {
    if (c->n_in != 2)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "it needs two tensors");
    const sn_value x = c->in[0], y = c->in[1];
    if (!sn_dtype_is_float(type_of(c, x).dtype)) {
        c->out = sn_build_equal(c->b, x, y);
        return;
    }
    const double rtol = conf->first_given ? conf->first : 1e-5,
                 atol = conf->second_given ? conf->second : 1e-8;
    const sn_value apart = sn_build_abs(c->b, sn_build_sub(c->b, x, y));
    c->out =
        sn_build_less_equal(c->b, apart, sn_build_affine(c->b, sn_build_abs(c->b, y), rtol, atol));
    if (conf->flag)
        c->out = sn_build_logical_or(
            c->b, c->out,
            sn_build_logical_and(c->b, sn_build_isnan(c->b, x), sn_build_isnan(c->b, y)));
}

/* --- along axes ------------------------------------------------------------------------------- */
static void build_count_nonzero(sn_layer_call *c, conf_of conf) {
    uint32_t set;
    if (!axes_of(c, conf, &set))
        return;
    const sn_value is = sn_build_not_equal(c->b, c->in[0], number(c, c->in[0], 0));
    c->out = sn_build_sum(c->b, sn_build_cast(c->b, is, SNUG_I32), set, conf->flag != 0);
}

static void build_diff(sn_layer_call *c, conf_of conf) {
    const snug_type t = type_of(c, c->in[0]);
    const int64_t n = conf->n_shape ? conf->shape[0] : 1;
    int axis;
    if (!sn_operation_axis(c, conf, t.rank, -1, &axis))
        return;
    if (axis == 0 || n < 0 || n >= t.dims[axis])
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%lld differences along axis %d of %lld",
                               (long long)n, axis, (long long)t.dims[axis]);
    c->out = c->in[0];
    for (int64_t i = 0; i < n; i++) {
        const int64_t left = t.dims[axis] - i - 1;
        c->out = sn_build_sub(c->b, sn_build_part(c->b, c->out, axis, 1, left),
                              sn_build_part(c->b, c->out, axis, 0, left));
    }
}

/* Element q of sorted rows of n: between two of them, or the one that the method chooses. */
static sn_value pick(sn_layer_call *c, sn_value sorted, int axis, int64_t n, double q,
                     const char *method) {
    const double at = (double)(n - 1) * sn_keras_number(q);
    const int64_t low = (int64_t)floor(at), high = (int64_t)ceil(at);
    if (strcmp(method, "lower") == 0)
        return sn_build_part(c->b, sorted, axis, low, 1);
    if (strcmp(method, "higher") == 0)
        return sn_build_part(c->b, sorted, axis, high, 1);
    if (strcmp(method, "nearest") == 0)
        return sn_build_part(c->b, sorted, axis, (int64_t)nearbyint(at), 1);
    const bool middle = strcmp(method, "midpoint") == 0;
    if (!middle && method[0] && strcmp(method, "linear") != 0)
        sn_layer_refuse(c, SNUG_E_INVALID, "method=%s is not known", method);
    const int64_t above = middle     ? high
                          : high > 0 ? high
                                     : n > 1, /* as Keras, for its gradient */
        below = middle      ? low
                : above > 0 ? above - 1
                            : 0;
    const double share = middle ? 0.5 : (double)above - at;
    return sn_build_add(
        c->b, sn_build_affine(c->b, sn_build_part(c->b, sorted, axis, above, 1), 1 - share, 0),
        sn_build_affine(c->b, sn_build_part(c->b, sorted, axis, below, 1), share, 0));
}

/* Rows of what lies along the axes, sorted; a row with a NaN has no order and gives NaN. */
static void build_quantiles(sn_layer_call *c, conf_of conf, const double *q, int n_q) {
    const sn_value x = sn_build_cast(c->b, c->in[0], c->network->compute_dtype);
    const snug_type t = type_of(c, x);
    int64_t rows[SNUG_MAX_RANK], row[SNUG_MAX_RANK], width;
    uint32_t set;
    if (!axes_of(c, conf, &set))
        return;
    if (set == 0 || (set & 1))
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "axes that the batch is among");
    const int last = extents_of(&t, ~set, rows);
    if (!product_of(c, row, extents_of(&t, set, row), &width))
        return;
    rows[last] = width;
    const sn_value flat = sn_build_reshape(c->b, axes_to_end(c, x, set), rows, last + 1);
    sn_value sorted, places, answer[SN_MAX_IN];
    sn_build_sort(c->b, flat, &(sn_sort){.axis = -1, .places = SNUG_I32}, &sorted, &places);
    const sn_value bad = sn_build_any_true(c->b, sn_build_isnan(c->b, flat), 1u << last, true),
                   sum = sn_build_sum(c->b, flat, 1u << last, true);
    snug_type kept = t;
    for (int k = 0; k < t.rank; k++)
        kept.dims[k] = set >> k & 1 ? 1 : t.dims[k];
    for (int i = 0; i < n_q; i++) {
        if (!(q[i] >= 0 && q[i] <= 1))
            return sn_layer_refuse(c, SNUG_E_INVALID, "q=%g is not within 0 and 1", q[i]);
        const sn_value y =
            sn_build_select(c->b, bad, sum, pick(c, sorted, last, width, q[i], conf->mode.text));
        answer[i] = conf->flag ? sn_build_reshape(c->b, y, kept.dims, kept.rank)
                               : sn_build_squeeze(c->b, y, last);
    }
    c->out = conf->array.n > 0 ? sn_build_stack(c->b, answer, n_q, 0) : answer[0];
}

static void build_median(sn_layer_call *c, conf_of conf) {
    build_quantiles(c, conf, &(const double){0.5}, 1);
}

static void build_quantile(sn_layer_call *c, conf_of conf) {
    const bool list = conf->array.n > 0;
    if ((!list && conf->n_numbers != 1) || conf->array.n > SN_MAX_IN || conf->array_rank > 1)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "q must be a number or up to %d of them",
                               SN_MAX_IN);
    build_quantiles(c, conf, list ? conf->array.v : &conf->first, list ? (int)conf->array.n : 1);
}

/* gamma and beta, or scale, are tensors or an array behind x. */
static sn_value scaled(sn_layer_call *c, conf_of conf, sn_value y) {
    const bool array = conf->array.n > 0;
    const sn_value given[2] = {array ? sn_operation_array(c, conf) : c->in[1],
                               c->in[array ? 1 : 2]};
    const int n = c->n_in - 1 + array;
    y = n > 0 ? sn_build_mul(c->b, y, given[0]) : y;
    return n > 1 ? sn_build_add(c->b, y, given[1]) : y;
}

static void build_normalised(sn_layer_call *c, conf_of conf, bool centred) {
    const int rank = type_of(c, c->in[0]).rank;
    const double epsilon = conf->second_given ? conf->second : 1e-7;
    uint32_t set;
    if (!axes_of(c, conf, &set))
        return;
    set = set ? set : 1u << (rank - 1);
    if (set != 1u << (rank - 1) && (c->n_in > 1 || conf->array.n > 0))
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "scales of other axes than the last");
    sn_value x = c->in[0];
    if (centred)
        x = sn_build_sub(c->b, x, sn_build_mean(c->b, x, set, true));
    const sn_value square = sn_build_mean(c->b, sn_build_square(c->b, x), set, true);
    const sn_value by = sn_build_rsqrt(c->b, sn_build_affine(c->b, square, 1, epsilon));
    c->out = scaled(c, conf, sn_build_mul(c->b, x, by));
}

static void build_layer_norm(sn_layer_call *c, conf_of conf) {
    build_normalised(c, conf, true);
}

static void build_rms_norm(sn_layer_call *c, conf_of conf) {
    build_normalised(c, conf, false);
}

static void build_multi_hot(sn_layer_call *c, conf_of conf) {
    const snug_type t = type_of(c, c->in[0]);
    if (conf->n_shape != 1 || t.rank < 2)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "it needs num_classes and rows of indices");
    const sn_one_hot spec = {
        .depth = conf->shape[0], .dtype = c->network->compute_dtype, .axis = -1, .on = 1};
    const sn_value at =
        sn_dtype_is_int(t.dtype) ? c->in[0] : sn_build_cast(c->b, c->in[0], SNUG_I32);
    c->out = sn_build_max(c->b, sn_build_one_hot(c->b, at, &spec), 1u << 1, false);
}

/* --- windows ---------------------------------------------------------------------------------- */
static void build_pool(sn_layer_call *c, conf_of conf, sn_op op) {
    const int n = type_of(c, c->in[0]).rank - 2;
    int64_t kernel[SN_SPATIAL_AXES], strides[SN_SPATIAL_AXES];
    if (n < 1 || n > SN_SPATIAL_AXES || (conf->n_shape != 1 && conf->n_shape != n) ||
        (conf->n_strides > 1 && conf->n_strides != n))
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "windows over %d axes", n);
    for (int k = 0; k < n; k++) {
        kernel[k] = conf->shape[conf->n_shape > 1 ? k : 0];
        strides[k] = conf->n_strides ? conf->strides[conf->n_strides > 1 ? k : 0] : kernel[k];
    }
    sn_spatial_pool(c, op,
                    &(sn_spatial_conf){.n = n,
                                       .kernel = kernel,
                                       .strides = strides,
                                       .padding = conf->mode.text[0] ? conf->mode.text : "valid"});
}

static void build_max_pool(sn_layer_call *c, conf_of conf) {
    build_pool(c, conf, SN_OP_maxpool);
}

static void build_average_pool(sn_layer_call *c, conf_of conf) {
    build_pool(c, conf, SN_OP_avgpool);
}

/* --- matrices --------------------------------------------------------------------------------- */
/* Of three components: the next times the one after, less the other way round. */
static void build_cross(sn_layer_call *c, conf_of conf) {
    const snug_type t = type_of(c, c->in[0]);
    const int64_t given = conf->n_axes > 0 ? conf->axes[conf->n_axes - 1] : -1;
    const int axis = (int)(given < 0 ? given + t.rank : given);
    bool one_axis = axis > 0 && axis < t.rank && c->n_in == 2 && t.dims[axis] == 3;
    for (int i = 0; i < conf->n_axes && conf->n_axes < 4; i++) /* axisa, axisb, axisc */
        one_axis = one_axis && conf->axes[i] == given;
    if (!one_axis)
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                               "it needs two tensors with three components along one axis");
    sn_builder *const b = c->b;
    c->out = sn_build_sub(
        b,
        sn_build_mul(b, sn_build_roll(b, c->in[0], axis, -1), sn_build_roll(b, c->in[1], axis, -2)),
        sn_build_mul(b, sn_build_roll(b, c->in[0], axis, -2),
                     sn_build_roll(b, c->in[1], axis, -1)));
}

/* Two axes of the configuration that are not the batch; false after refusing. */
static bool plane_of(sn_layer_call *c, conf_of conf, int rank, int *axes) {
    for (int i = 0; i < 2; i++) {
        const int64_t given = conf->n_axes == 2 ? conf->axes[i] : i;
        axes[i] = (int)(given + (given < 0) * rank);
    }
    if (axes[0] > 0 && axes[1] > 0 && axes[0] < rank && axes[1] < rank && axes[0] != axes[1])
        return true;
    sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%s in the plane of axes %d and %d of %d",
                    conf->function.text, axes[0], axes[1], rank);
    return false;
}

/* [..., rows, columns] as [..., rows * columns], of which every (columns + 1)-th is taken. */
static sn_value diagonal(sn_layer_call *c, conf_of conf) {
    const snug_type t = type_of(c, c->in[0]);
    const int64_t offset = conf->n_shape ? conf->shape[0] : 0;
    int axes[2], perm[SNUG_MAX_RANK], at = 0;
    if (!plane_of(c, conf, t.rank, axes))
        return SN_NO_VALUE;
    int64_t dims[SNUG_MAX_RANK], start[SNUG_MAX_RANK] = {0}, size[SNUG_MAX_RANK],
                                 stride[SNUG_MAX_RANK];
    for (int k = 0; k < t.rank; k++)
        if (k != axes[0] && k != axes[1])
            perm[at++] = k;
    perm[at] = axes[0];
    perm[at + 1] = axes[1];
    for (int k = 0; k < at; k++) {
        dims[k] = t.dims[perm[k]];
        size[k] = -1;
        stride[k] = 1;
    }
    const int64_t rows = t.dims[axes[0]], columns = t.dims[axes[1]];
    const int64_t down = rows + (offset < 0 ? offset : 0),
                  right = columns - (offset > 0 ? offset : 0);
    if (down < 1 || right < 1 || !sn_i64_mul(rows, columns, &dims[at])) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "diagonal %lld of %lld x %lld", (long long)offset,
                        (long long)rows, (long long)columns);
        return SN_NO_VALUE;
    }
    start[at] = offset > 0 ? offset : -offset * columns;
    size[at] = down < right ? down : right;
    stride[at] = columns + 1;
    const sn_value flat =
        sn_build_reshape(c->b, sn_build_transpose(c->b, c->in[0], perm), dims, at + 1);
    return sn_build_slice(c->b, flat, start, size, stride);
}

static void build_diagonal(sn_layer_call *c, conf_of conf) {
    c->out = diagonal(c, conf);
}

static void build_trace(sn_layer_call *c, conf_of conf) {
    const sn_value d = diagonal(c, conf);
    if (c->b->error.code == SNUG_OK)
        c->out = sn_build_sum(c->b, d, 1u << (type_of(c, d).rank - 1), false);
}

/* A quarter is a flip of the second axis and an exchange of both. */
static void build_rot90(sn_layer_call *c, conf_of conf) {
    const int64_t k = conf->n_shape ? conf->shape[0] : 1;
    int axes[2];
    if (!plane_of(c, conf, type_of(c, c->in[0]).rank, axes))
        return;
    c->out = c->in[0];
    for (int64_t i = 0; i < (k % 4 + 4) % 4; i++)
        c->out =
            sn_build_swapaxes(c->b, sn_build_flip(c->b, c->out, 1u << axes[1]), axes[0], axes[1]);
}

/* --- products over several axes --------------------------------------------------------------- */
/* Which axes of x and y belong together: the first half of the list and the second, or, of one
 * number, so many at the end of x and at the beginning of y. Places in `pair` are in order. */
typedef struct {
    int n, x[SNUG_MAX_RANK], y[SNUG_MAX_RANK];
} pairs;

static bool pairs_of(sn_layer_call *c, conf_of conf, int x_rank, int y_rank, pairs *p) {
    const bool count = conf->n_axes <= 1;
    const int64_t n = !count ? conf->n_axes / 2 : conf->n_axes == 1 ? conf->axes[0] : 2;
    bool fits = n >= 0 && n <= x_rank && n <= y_rank && (count || conf->n_axes % 2 == 0);
    p->n = (int)n;
    for (int i = 0; fits && i < n; i++) {
        const int64_t x = count ? x_rank - n + i : conf->axes[i], y = count ? i : conf->axes[n + i];
        p->x[i] = (int)(x + (x < 0) * x_rank);
        p->y[i] = (int)(y + (y < 0) * y_rank);
        fits = p->x[i] > 0 && p->x[i] < x_rank && p->y[i] >= 0 && p->y[i] < y_rank;
    }
    if (!fits)
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "these axes; the batch cannot be among them");
    return fits;
}

/* v as a matrix: the axes of the list on one side, in its order, the others on the other. */
static sn_value as_matrix(sn_layer_call *c, sn_value v, const int *list, int n, bool list_last,
                          int64_t *others, int *n_others) {
    const snug_type t = type_of(c, v);
    int perm[SNUG_MAX_RANK], rest = list_last ? 0 : n;
    uint32_t set = 0;
    int64_t within[SNUG_MAX_RANK], sides[2];
    for (int i = 0; i < n; i++) {
        set |= 1u << list[i];
        perm[list_last ? t.rank - n + i : i] = list[i];
        within[i] = t.dims[list[i]];
    }
    for (int k = 0; k < t.rank; k++)
        if (!(set >> k & 1))
            perm[rest++] = k;
    *n_others = extents_of(&t, ~set, others);
    if (!product_of(c, within, n, &sides[list_last]) ||
        !product_of(c, others, *n_others, &sides[!list_last]))
        return SN_NO_VALUE;
    return sn_build_reshape(c->b, sn_build_transpose(c->b, v, perm), sides, 2);
}

static void build_tensordot(sn_layer_call *c, conf_of conf) {
    const bool array = conf->array.n > 0;
    if (c->n_in + array != 2 || (array && conf->array_at != 1))
        return sn_layer_refuse(c, SNUG_E_UNSUPPORTED,
                               "it needs a tensor, and one more or an array");
    const sn_value x = c->in[0], y = array ? sn_operation_array(c, conf) : c->in[1];
    int64_t dims[2 * SNUG_MAX_RANK];
    int n_x, n_y;
    pairs p;
    if (!pairs_of(c, conf, type_of(c, x).rank, type_of(c, y).rank, &p))
        return;
    const sn_value left = as_matrix(c, x, p.x, p.n, true, dims, &n_x),
                   right = as_matrix(c, y, p.y, p.n, false, dims + n_x, &n_y);
    if (n_x + n_y > SNUG_MAX_RANK)
        return sn_layer_refuse(c, SNUG_E_SHAPE, "the result has %d axes; at most %d", n_x + n_y,
                               SNUG_MAX_RANK);
    c->out =
        sn_build_reshape(c->b, sn_build_matmul(c->b, left, right, SN_NO_VALUE), dims, n_x + n_y);
}

const sn_operation_row sn_number_operations[] = {
    {"nantonum", build_nan_to_num},
    {"isclose", build_isclose},
    {"countnonzero", build_count_nonzero},
    {"diff", build_diff},
    {"median", build_median},
    {"quantile", build_quantile},
    {"layernorm layernormalization", build_layer_norm},
    {"rmsnorm rmsnormalization", build_rms_norm},
    {"multihot", build_multi_hot},
    {"maxpool", build_max_pool},
    {"averagepool", build_average_pool},
    {"cross", build_cross},
    {"diagonal", build_diagonal},
    {"trace", build_trace},
    {"rot90", build_rot90},
    {"tensordot", build_tensordot},
    {NULL, NULL},
};
