/* operation_layout.c: functions of keras.ops that move, repeat, pad and index elements, and
 * image.resize, over the helpers of graph/build.h. Settings stand in the configuration as the
 * reader keeps them: axes in `axes`, counts, shifts and sizes in `shape`, names in `mode`. */
#include "nn/operation.h"
#include "nn/keras_number.h"
#include "nn/picture_layers.h"
#include "nn/spatial.h"
#include "base/setting_text.h"

#include <string.h>

typedef const sn_conf_operation *conf_of;

/* --- settings --------------------------------------------------------------------------------- */
static snug_type input_type(const sn_layer_call *c) {
    return c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, c->in[0])
                                       : (snug_type){.rank = 0};
}

/* Axis number i of the configuration, from the front; false after refusing. */
static bool axis_at(sn_layer_call *c, conf_of conf, int i, int rank, int *axis) {
    const int64_t given = i < conf->n_axes ? conf->axes[i] : rank, at = given + (given < 0) * rank;
    *axis = (int)at;
    if (at >= 0 && at < rank)
        return true;
    sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%s needs an axis of the %d there are",
                    conf->function.text, rank);
    return false;
}

static void refuse_settings(sn_layer_call *c, conf_of conf, const char *wanted) {
    sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%s needs %s", conf->function.text, wanted);
}

/* --- moving ----------------------------------------------------------------------------------- */
static void build_flip(sn_layer_call *c, conf_of conf) {
    const int rank = input_type(c).rank;
    uint32_t set = conf->n_axes ? 0 : (1u << rank) - 1;
    for (int i = 0; i < conf->n_axes; i++) {
        int axis;
        if (!axis_at(c, conf, i, rank, &axis))
            return;
        set |= 1u << axis;
    }
    c->out = sn_build_flip(c->b, c->in[0], set);
}

static void build_roll(sn_layer_call *c, conf_of conf) {
    c->out = c->in[0];
    if (conf->n_axes < 1 || conf->n_shape != conf->n_axes)
        return refuse_settings(c, conf, "a shift for each of its axes");
    for (int i = 0; i < conf->n_axes; i++) {
        int axis;
        if (!axis_at(c, conf, i, input_type(c).rank, &axis))
            return;
        c->out = sn_build_roll(c->b, c->out, axis, conf->shape[i]);
    }
}

/* Axes that are not named fill the places that are left, in their order. */
static void build_moveaxis(sn_layer_call *c, conf_of conf) {
    const int rank = input_type(c).rank;
    int perm[SNUG_MAX_RANK], next = 0;
    uint32_t moved = 0;
    if (conf->n_axes != conf->n_shape)
        return refuse_settings(c, conf, "a destination for each source");
    for (int k = 0; k < rank; k++)
        perm[k] = -1;
    for (int i = 0; i < conf->n_axes; i++) {
        const int64_t to = conf->shape[i] + (conf->shape[i] < 0) * rank;
        int from;
        if (!axis_at(c, conf, i, rank, &from))
            return;
        if (to < 0 || to >= rank)
            return refuse_settings(c, conf, "destinations among its axes");
        perm[to] = from;
        moved |= 1u << from;
    }
    for (int k = 0; k < rank; k++) {
        while (perm[k] < 0 && (moved >> next & 1))
            next++;
        perm[k] = perm[k] < 0 ? next++ : perm[k];
    }
    c->out = sn_build_transpose(c->b, c->in[0], perm);
}

static void build_unstack(sn_layer_call *c, conf_of conf) {
    const snug_type t = input_type(c);
    int axis = 0;
    if (conf->n_axes > 0 && !axis_at(c, conf, 0, t.rank, &axis))
        return;
    if (axis == 0 || t.dims[axis] < 1 || t.dims[axis] > SN_MAX_TENSOR)
        return refuse_settings(c, conf, "an axis of 1 to 16 elements that is not the batch");
    for (int64_t i = 0; i < t.dims[axis]; i++)
        c->outs[i] = sn_build_squeeze(c->b, sn_build_part(c->b, c->in[0], axis, i, 1), axis);
    c->out = c->outs[0];
    c->n_out = (int)t.dims[axis];
}

/* --- repeating and padding -------------------------------------------------------------------- */
static void build_repeat(sn_layer_call *c, conf_of conf) {
    const int rank = input_type(c).rank;
    int64_t counts[SNUG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    int axis;
    if (!axis_at(c, conf, 0, rank, &axis))
        return;
    if (conf->n_shape != 1)
        return refuse_settings(c, conf, "one number of repeats");
    counts[axis] = conf->shape[0];
    c->out = sn_build_repeat(c->b, c->in[0], counts);
}

static void build_tile(sn_layer_call *c, conf_of conf) {
    const int rank = input_type(c).rank, n = (int)conf->n_shape;
    int64_t counts[SNUG_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (n < 1 || n > rank)
        return refuse_settings(c, conf, "a number of repeats per axis");
    for (int k = 0; k < n; k++)
        counts[rank - n + k] = conf->shape[k];
    c->out = sn_build_tile(c->b, c->in[0], counts);
}

static void build_pad(sn_layer_call *c, conf_of conf) {
    const int rank = input_type(c).rank;
    const char *mode = conf->mode.text;
    int64_t before[SNUG_MAX_RANK], after[SNUG_MAX_RANK];
    if (conf->n_shape != 2 * rank)
        return refuse_settings(c, conf, "two widths per axis");
    for (int k = 0; k < rank; k++) {
        before[k] = conf->shape[2 * k];
        after[k] = conf->shape[2 * k + 1];
    }
    const bool reflect = sn_same_name(mode, "reflect");
    if (reflect || sn_same_name(mode, "symmetric"))
        c->out = sn_build_pad_mirror(c->b, c->in[0], before, after, !reflect);
    else if (!mode[0] || sn_same_name(mode, "constant"))
        c->out = sn_build_pad(c->b, c->in[0], before, after, sn_keras_number(conf->first));
    else
        refuse_settings(c, conf, "the mode constant, reflect or symmetric");
}

/* --- indexing --------------------------------------------------------------------------------- */
static void build_take(sn_layer_call *c, conf_of conf) {
    const snug_type t = input_type(c);
    int axis;
    if (!axis_at(c, conf, 0, t.rank, &axis))
        return;
    if (c->n_in == 2 || conf->array.n > 0) {
        const sn_value indices =
            c->n_in == 2 ? c->in[1] : sn_build_cast(c->b, sn_operation_array(c, conf), SNUG_I32);
        const sn_value in[2] = {c->in[0], indices};
        sn_attrs a;
        sn_attrs_default(SN_OP_gather, &a);
        a.axis.axis = axis;
        c->out = sn_build(c->b, SN_OP_gather, &a, in, 2);
        return;
    }
    const int64_t at = (int64_t)conf->first + (conf->first < 0) * t.dims[axis];
    if (conf->n_numbers != 1 || !conf->whole || axis == 0 || at < 0 || at >= t.dims[axis])
        return refuse_settings(c, conf, "indices: a tensor, or a number within an axis");
    c->out = sn_build_squeeze(c->b, sn_build_part(c->b, c->in[0], axis, at, 1), axis);
}

static void build_take_along_axis(sn_layer_call *c, conf_of conf) {
    int axis;
    if (c->n_in != 2)
        return refuse_settings(c, conf, "a tensor and indices");
    if (axis_at(c, conf, 0, input_type(c).rank, &axis))
        c->out = sn_build_take_along_axis(c->b, c->in[0], c->in[1], axis);
}

static void build_one_hot(sn_layer_call *c, conf_of conf) {
    const snug_type t = input_type(c);
    const char *dtype = conf->dtype.text;
    if (conf->n_shape != 1 || (dtype[0] && strncmp(dtype, "float", 5) != 0))
        return refuse_settings(c, conf, "num_classes and a float dtype");
    const sn_one_hot spec = {.depth = conf->shape[0],
                             .dtype = c->network->compute_dtype,
                             .axis = conf->n_axes ? (int)conf->axes[0] : -1,
                             .on = 1};
    const sn_value at =
        sn_dtype_is_int(t.dtype) ? c->in[0] : sn_build_cast(c->b, c->in[0], SNUG_I32);
    c->out = sn_build_one_hot(c->b, at, &spec);
}

static void build_triangle(sn_layer_call *c, conf_of conf) {
    const int64_t k = conf->n_shape ? conf->shape[0] : 0;
    const bool lower = sn_same_name(conf->function.text, "tril");
    c->out = sn_build_band(c->b, c->in[0], lower ? INT32_MIN : k, lower ? k : INT32_MAX);
}

/* --- pictures --------------------------------------------------------------------------------- */
static void build_resize(sn_layer_call *c, conf_of conf) {
    snug_type t;
    sn_value x;
    int64_t size[2];
    if (conf->n_shape != 2)
        return refuse_settings(c, conf, "a height and a width");
    if (sn_picture_size(c, conf->shape[0], conf->shape[1], size) && sn_picture_input(c, &x, &t))
        c->out = sn_picture_resize(c, x, conf->mode.text[0] ? conf->mode.text : "bilinear",
                                   conf->flag != 0, size);
}

/* Pixel (i, j) of every window: one picture per place in the window, channel after channel. */
static sn_value patches(sn_layer_call *c, sn_value x, const int64_t *size, const int64_t *strides,
                        const int64_t *count) {
    const int64_t step[4] = {1, strides[0], strides[1], 1}, shape[4] = {-1, count[0], count[1], -1};
    sn_value parts[SN_MAX_IN];
    int n = 0;
    for (int64_t k = 0; k < size[0] * size[1] && c->b->error.code == SNUG_OK; k++) {
        const int64_t from[4] = {0, k / size[1], k % size[1], 0};
        if (n == SN_MAX_IN) {
            parts[0] = sn_build_concat(c->b, parts, n, 3);
            n = 1;
        }
        parts[n++] = sn_build_slice(c->b, x, from, shape, step);
    }
    return sn_build_concat(c->b, parts, n, 3);
}

/* Windows that neither overlap nor leave gaps are a new order of the picture. */
static sn_value tiles(sn_layer_call *c, sn_value x, const snug_type *t, const int64_t *size,
                      const int64_t *count) {
    static const int by_tile[6] = {0, 1, 3, 2, 4, 5};
    const int64_t parts[6] = {t->dims[0], count[0], size[0], count[1], size[1], t->dims[3]},
                  flat[4] = {t->dims[0], count[0], count[1], size[0] * size[1] * t->dims[3]};
    return sn_build_reshape(
        c->b, sn_build_transpose(c->b, sn_build_reshape(c->b, x, parts, 6), by_tile), flat, 4);
}

static void build_extract_patches(sn_layer_call *c, conf_of conf) {
    sn_spatial w;
    int64_t size[2], strides[2], count[2];
    if (conf->n_shape < 1 || conf->n_shape > 2 || conf->n_strides > 2)
        return refuse_settings(c, conf, "a size of one or two numbers");
    for (int k = 0; k < 2; k++) {
        size[k] = conf->shape[conf->n_shape - 1 < k ? 0 : k];
        strides[k] = conf->n_strides ? conf->strides[conf->n_strides - 1 < k ? 0 : k] : size[k];
    }
    if (!sn_spatial_read(
            c,
            &(sn_spatial_conf){
                .n = 2, .kernel = size, .strides = strides, .padding = conf->mode.text},
            &w))
        return;
    const int64_t before[4] = {0, w.pad[2], w.pad[4], 0}, after[4] = {0, w.pad[3], w.pad[5], 0};
    const sn_value x = sn_build_pad(c->b, c->in[0], before, after, 0);
    const snug_type t =
        c->b->error.code == SNUG_OK ? *sn_graph_type(c->b->graph, x) : input_type(c);
    bool even = true;
    for (int k = 0; k < 2; k++) {
        if (size[k] > t.dims[1 + k])
            return refuse_settings(c, conf, "windows that fit the picture");
        count[k] = sn_spatial_count(&w, 1 + k);
        even = even && strides[k] == size[k] && count[k] * size[k] == t.dims[1 + k];
    }
    c->out = even ? tiles(c, x, &t, size, count) : patches(c, x, size, strides, count);
}

/* Red, green and blue as brightness. */
static void build_grayscale(sn_layer_call *c, conf_of conf) {
    static const double share[3] = {0.2989, 0.5870, 0.1140};
    const snug_type t = input_type(c);
    if (t.rank != 4 || t.dims[3] != 3)
        return refuse_settings(c, conf, "pictures of three channels");
    const sn_value weights =
        sn_build_reshape(c->b, sn_layer_vector(c, share, 3, false), (const int64_t[]){3, 1}, 2);
    c->out = sn_build_matmul(c->b, c->in[0], weights, SN_NO_VALUE);
}

const sn_operation_row sn_layout_operations[] = {
    {"flip reverse reversev2", build_flip},
    {"roll", build_roll},
    {"moveaxis", build_moveaxis},
    {"unstack", build_unstack},
    {"repeat", build_repeat},
    {"tile", build_tile},
    {"pad padv2 mirrorpad", build_pad},
    {"take", build_take},
    {"takealongaxis", build_take_along_axis},
    {"onehot", build_one_hot},
    {"tril triu", build_triangle},
    {"resize", build_resize},
    {"extractpatches", build_extract_patches},
    {"rgbtograyscale", build_grayscale},
    {NULL, NULL},
};
