/* layers_reshape.c: layers that crop, pad and repeat: Cropping1D to 3D, ZeroPadding1D to 3D,
 * UpSampling1D and 3D, RepeatVector. Axis 0 is the batch and may be unknown, the last one holds the
 * channels; the axes between are the layer's. */
#include "nn/picture_layers.h"

#define MAX_SETTING (1 << 20) /* larger ones are typing errors; keeps sums far from overflow */
#define MAX_AXES    3

/* The type of the input, which has n_axes axes between batch and channels; false after an error. */
static bool input_type(sn_layer_call *c, int n_axes, snug_type *t) {
    if (c->b->error.code != SNUG_OK)
        return false;
    *t = *sn_graph_type(c->b->graph, c->in[0]);
    if (t->rank == n_axes + 2)
        return true;
    char text[192];
    sn_layer_refuse(c, SNUG_E_SHAPE, "the input is %s; it must have %d axes",
                    snug_type_print(t, text, sizeof text), n_axes + 2);
    return false;
}

/* --- cropping and padding --------------------------------------------------------------------- */
/* What is taken from or added to each side, per axis of the input. */
typedef struct {
    int64_t before[MAX_AXES + 2], after[MAX_AXES + 2];
} sides;

/* given: 2 * n_axes entries. One number fills all of them; a number per axis leaves the second half
 * unset. */
static bool sides_of(sn_layer_call *c, const char *key, const int64_t *given, int n_axes,
                     sides *out) {
    const bool per_axis = n_axes > 1 && given[n_axes] == SN_UNSET;
    *out = (sides){{0}, {0}};
    for (int k = 0; k < n_axes; k++) {
        const int64_t before = given[per_axis ? k : 2 * k], after = given[per_axis ? k : 2 * k + 1];
        if (before < 0 || after < 0 || before > MAX_SETTING || after > MAX_SETTING) {
            const bool first = before < 0 || before > MAX_SETTING;
            sn_layer_refuse(c, SNUG_E_INVALID, "%s has the entry %lld", key,
                            (long long)(first ? before : after));
            return false;
        }
        out->before[k + 1] = before;
        out->after[k + 1] = after;
    }
    return true;
}

/* A layer's default where the first entry says that nothing was given. */
static const int64_t *given_or(const int64_t *given, const int64_t *otherwise) {
    return given[0] == SN_UNSET ? otherwise : given;
}

static const int64_t ones[2 * MAX_AXES] = {1, 1, 1, 1, 1, 1}, zeros[2 * MAX_AXES] = {0};

static void crop(sn_layer_call *c, int n_axes, const int64_t *cropping) {
    snug_type t;
    sides s;
    if (!input_type(c, n_axes, &t) || !sides_of(c, "cropping", cropping, n_axes, &s))
        return;
    int64_t size[SNUG_MAX_RANK];
    for (int k = 0; k < t.rank; k++) {
        size[k] = k == 0 ? -1 : t.dims[k] - s.before[k] - s.after[k];
        if (k > 0 && size[k] < 1) {
            sn_layer_refuse(c, SNUG_E_SHAPE, "cropping takes %lld of the %lld elements of axis %d",
                            (long long)(s.before[k] + s.after[k]), (long long)t.dims[k], k);
            return;
        }
    }
    c->out = sn_build_slice(c->b, c->in[0], s.before, size, NULL);
}

static void zero_pad(sn_layer_call *c, int n_axes, const int64_t *padding) {
    snug_type t;
    sides s;
    if (input_type(c, n_axes, &t) && sides_of(c, "padding", padding, n_axes, &s))
        c->out = sn_build_pad(c->b, c->in[0], s.before, s.after, 0);
}

#define CROPPING(n, otherwise)                                                                     \
    void sn_layer_build_cropping##n##d(sn_layer_call *c) {                                         \
        const sn_conf_cropping##n##d *conf = c->conf;                                              \
        crop(c, n, given_or(conf->cropping, otherwise));                                           \
    }
CROPPING(1, ones)
CROPPING(2, zeros)
CROPPING(3, ones)

#define ZERO_PADDING(n)                                                                            \
    void sn_layer_build_zero_padding##n##d(sn_layer_call *c) {                                     \
        const sn_conf_zero_padding##n##d *conf = c->conf;                                          \
        zero_pad(c, n, given_or(conf->padding, ones));                                             \
    }
ZERO_PADDING(1)
ZERO_PADDING(2)
ZERO_PADDING(3)

/* --- repeating -------------------------------------------------------------------------------- */
void sn_layer_build_up_sampling1d(sn_layer_call *c) {
    const sn_conf_up_sampling1d *conf = c->conf;
    snug_type t;
    if (input_type(c, 1, &t))
        c->out = sn_picture_repeat(c, c->in[0], 1, conf->size);
}

void sn_layer_build_up_sampling3d(sn_layer_call *c) {
    const sn_conf_up_sampling3d *conf = c->conf;
    snug_type t;
    if (input_type(c, 3, &t))
        c->out = sn_picture_repeat(c, c->in[0], 3, conf->size);
}

void sn_layer_build_repeat_vector(sn_layer_call *c) {
    const sn_conf_repeat_vector *conf = c->conf;
    snug_type t;
    if (!input_type(c, 0, &t))
        return;
    if (conf->n < 1) {
        sn_layer_refuse(c, SNUG_E_INVALID, "n=%lld must be at least 1", (long long)conf->n);
        return;
    }
    c->out = sn_build_repeat(c->b, sn_build_expand_dims(c->b, c->in[0], 1),
                             (const int64_t[]){1, conf->n, 1});
}
