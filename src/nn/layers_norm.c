/* layers_norm.c: normalisation layers. The rows behind them work on the last axis: other axes are
 * moved there and back (a `layout`), several of them as one.
 *
 * Batch normalisation in training is two operators: `moments` (f64 sums over all other axes) and
 * `normalise`; between them mean = s1 / n and variance = s2 / n - mean^2 (biased, as Keras'
 * moments) stand as ordinary f64 operators of [channels], so the gradient flows through them by
 * their own rules. The moving statistics follow the same mean and variance. */
#include "nn/recurrent_layers.h"

#include "base/real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- axes ------------------------------------------------------------------------------------- */
/* The input with the axes of the layer behind all others, in their order, and the way back. */
typedef struct {
    snug_type type, moved; /* of the input, and as it is when moved */
    uint32_t axes;
    int n; /* how many axes the layer has */
    int perm[SNUG_MAX_RANK], back[SNUG_MAX_RANK];
    bool still; /* they are the last ones as it is */
} layout;

/* Axes as the configuration lists them, counted from either end; a plain number fills the list. */
static uint32_t axis_set(sn_layer_call *c, const int64_t *axis, int n, int rank) {
    uint32_t set = 0;
    for (int i = 0; i < n && axis[i] != SN_NO_AXIS; i++) {
        const int64_t k = axis[i] < 0 ? axis[i] + rank : axis[i];
        if (k < 0 || k >= rank) {
            sn_layer_refuse(c, SNUG_E_SHAPE, "axis %lld of an input of %d axes", (long long)axis[i],
                            rank);
            return 0;
        }
        set |= 1u << k;
    }
    return set ? set : 1u << (rank - 1);
}

static bool lay_out(sn_layer_call *c, const int64_t *axis, int n, layout *l) {
    if (c->b->error.code != SNUG_OK)
        return false;
    *l = (layout){.type = *sn_graph_type(c->b->graph, c->in[0])};
    if (l->type.rank < 2)
        sn_layer_refuse(c, SNUG_E_SHAPE, "the input has no axis beside the batch");
    l->axes = axis_set(c, axis, n, l->type.rank);
    if (c->b->error.code != SNUG_OK)
        return false;
    int at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < l->type.rank; k++)
            if ((l->axes >> k & 1) == (uint32_t)pass)
                l->perm[at++] = k;
    l->moved = l->type;
    l->still = true;
    for (int k = 0; k < l->type.rank; k++) {
        l->moved.dims[k] = l->type.dims[l->perm[k]];
        l->back[l->perm[k]] = k;
        l->still = l->still && l->perm[k] == k;
        l->n += (int)(l->axes >> k & 1);
    }
    return true;
}

static sn_value move(sn_layer_call *c, const layout *l, sn_value x) {
    return l->still ? x : sn_build_transpose(c->b, x, l->perm);
}

static sn_value move_back(sn_layer_call *c, const layout *l, sn_value y) {
    return l->still ? y : sn_build_transpose(c->b, y, l->back);
}

/* The extents of the layer's axes: the type of its weights. */
static snug_type weight_type(const layout *l) {
    snug_type t = {.dtype = l->type.dtype, .rank = l->n};
    for (int k = 0; k < l->n; k++)
        t.dims[k] = l->moved.dims[l->moved.rank - l->n + k];
    return t;
}

/* --- weights ---------------------------------------------------------------------------------- */
typedef struct {
    sn_value gamma, beta;
} scale_and_shift;

/* Keras computes norms in f32 where its policy says a half type, from x on. */
static void compute_wide(sn_layer_call *c) {
    c->in[0] = sn_layer_widened(c, c->in[0]);
    if (c->b->error.code == SNUG_OK)
        c->reads = sn_graph_type(c->b->graph, c->in[0])->dtype;
}

/* What is switched off is a constant 1 or 0. */
static scale_and_shift parameters(sn_layer_call *c, const snug_type *vector, const sn_init *gamma,
                                  const sn_init *beta) {
    snug_type constant = *vector;
    constant.dtype = c->reads;
    scale_and_shift p;
    p.gamma = gamma ? sn_layer_variable(c, "gamma", vector, gamma, true)
                    : sn_build_fill(c->b, &constant, 1);
    p.beta =
        beta ? sn_layer_variable(c, "beta", vector, beta, true) : sn_build_fill(c->b, &constant, 0);
    return p;
}

static int64_t epsilon_slot(sn_layer_call *c, double epsilon) {
    return (int64_t)sn_build_param(c->b, "", epsilon).i;
}

/* sum / number of elements of `of` along every axis but the last. */
static sn_value divide_by_rows(sn_builder *b, sn_value sum, sn_value of) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(b->graph, of)->rank;
    const sn_param_info info = {
        .kind = SN_PARAM_INVERSE_EXTENT, .of = of, .axes = (1u << (rank - 1)) - 1};
    sn_param p;
    if (sn_graph_param(b->graph, &info, &p, &b->error) != SNUG_OK)
        return SN_NO_VALUE;
    sn_attrs a;
    sn_attrs_default(SN_OP_affine, &a);
    a.affine.scale = (int64_t)p.i;
    a.affine.shift = (int64_t)sn_build_param(b, "", 0).i;
    return sn_build(b, SN_OP_affine, &a, &sum, 1);
}

static void batch_statistics(sn_layer_call *c, sn_value x, sn_value *mean, sn_value *variance) {
    sn_value sums[SN_MAX_OUT];
    sn_build_all(c->b, SN_OP_moments, NULL, &x, 1, sums);
    const sn_value mean64 = divide_by_rows(c->b, sums[0], x);
    const sn_value square64 = divide_by_rows(c->b, sums[1], x);
    const sn_value variance64 = sn_build_sub(c->b, square64, sn_build_square(c->b, mean64));
    *mean = sn_build_cast(c->b, mean64, c->reads);
    *variance = sn_build_cast(c->b, variance64, c->reads);
}

/* Steps that the mask hides do not count; x is moved, the mask is not. Keras adds 1e-7 to the
 * number of steps. */
static void masked_statistics(sn_layer_call *c, const layout *l, sn_value x, sn_value *mean,
                              sn_value *variance) {
    sn_builder *b = c->b;
    snug_type t = *sn_graph_type(b->graph, c->mask[0]);
    const uint32_t rows = (1u << (l->type.rank - 1)) - 1;
    if (t.rank + 1 != l->type.rank) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "the mask has %d axes, the input %d", t.rank,
                        l->type.rank);
        return;
    }
    t.dims[t.rank++] = 1;
    const sn_value column = sn_build_reshape(b, c->mask[0], t.dims, t.rank);
    const sn_value seen =
        move(c, l, sn_build_cast(b, sn_build_broadcast_to(b, column, &l->type), c->reads));
    const sn_value n = sn_build_affine(b, sn_build_sum(b, seen, rows, false), 1, 1e-7);
    *mean = sn_build_div(b, sn_build_sum(b, sn_build_mul(b, x, seen), rows, false), n);
    const sn_value apart = sn_build_mul(b, sn_build_sub(b, x, *mean), seen);
    *variance = sn_build_div(b, sn_build_sum(b, sn_build_square(b, apart), rows, false), n);
}

/* Frozen, or within a layer that is, it uses what it has learnt. */
static bool is_learning(const sn_layer_call *c) {
    return c->training && c->network->layers[c->top].trainable;
}

/* What all steps of a TimeDistributed share. */
typedef struct {
    const sn_conf_batch_normalization *conf;
    layout l;
    scale_and_shift p;
    int first_moving; /* variable: the mean, then the variance */
    sn_value mean, variance;
} batch_norm;

/* x as the layer's input is laid out; learning: by its own statistics, which move the averages. */
static sn_value normalise_batch(sn_layer_call *c, const batch_norm *n, sn_value x, bool learning) {
    const sn_value moved = move(c, &n->l, x);
    sn_value mean = n->mean, variance = n->variance;
    if (learning && c->b->error.code == SNUG_OK) {
        if (sn_value_ok(c->mask[0]))
            masked_statistics(c, &n->l, moved, &mean, &variance);
        else
            batch_statistics(c, moved, &mean, &variance);
        sn_layer_average(c, n->first_moving, mean, n->conf->momentum);
        sn_layer_average(c, n->first_moving + 1, variance, n->conf->momentum);
    }
    sn_attrs a;
    sn_attrs_default(SN_OP_normalise, &a);
    a.epsilon.epsilon = epsilon_slot(c, n->conf->epsilon);
    return move_back(c, &n->l,
                     sn_build(c->b, SN_OP_normalise, &a,
                              (const sn_value[]){moved, mean, variance, n->p.gamma, n->p.beta}, 5));
}

/* In a model that a TimeDistributed applies, examples are [batch * steps]: Keras normalises one
 * step after the other, each by its own statistics. */
static sn_value normalise_steps(sn_layer_call *c, const batch_norm *n, int64_t count) {
    const snug_type t = n->l.type;
    int64_t dims[SNUG_MAX_RANK] = {-1, count};
    sn_steps steps = {.n = 0};
    if (t.rank == SNUG_MAX_RANK) {
        sn_layer_refuse(c, SNUG_E_SHAPE, "with the steps the input has more than %d axes", t.rank);
        return SN_NO_VALUE;
    }
    memcpy(dims + 2, t.dims + 1, (size_t)(t.rank - 1) * sizeof *dims);
    const sn_value all = sn_build_reshape(c->b, c->in[0], dims, t.rank + 1);
    for (int64_t k = 0; k < count && c->b->error.code == SNUG_OK; k++)
        sn_steps_add(c, &steps, normalise_batch(c, n, sn_step_of(c, all, k), true));
    return sn_build_reshape(c->b, sn_steps_end(c, &steps), t.dims, t.rank);
}

void sn_layer_build_batch_normalization(sn_layer_call *c) {
    batch_norm n = {.conf = c->conf};
    char steps[24];
    compute_wide(c);
    if (!lay_out(c, n.conf->axis, 4, &n.l))
        return;
    if (n.l.n != 1) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "%d axes; one is possible", n.l.n);
        return;
    }
    const snug_type vector = weight_type(&n.l);
    n.p = parameters(c, &vector, n.conf->scale ? &n.conf->gamma_initializer : NULL,
                     n.conf->center ? &n.conf->beta_initializer : NULL);
    n.first_moving = c->next_var;
    n.mean = sn_layer_variable(c, "moving_mean", &vector, &n.conf->moving_mean_initializer, false);
    n.variance = sn_layer_variable(c, "moving_variance", &vector,
                                   &n.conf->moving_variance_initializer, false);
    sn_call_text(c, "by_steps", steps, sizeof steps);
    c->out = sn_layer_narrowed(c, is_learning(c) && steps[0]
                                      ? normalise_steps(c, &n, strtoll(steps, NULL, 10))
                                      : normalise_batch(c, &n, c->in[0], is_learning(c)));
}

/* --- layer normalisation ---------------------------------------------------------------------- */
/* x / sqrt(mean of squares + epsilon) over these axes; with `apart` of the distances to the
 * mean. */
static sn_value divide_by_deviation(sn_layer_call *c, sn_value x, uint32_t axes, double epsilon,
                                    bool apart) {
    sn_builder *b = c->b;
    const sn_value from = apart ? sn_build_sub(b, x, sn_build_mean(b, x, axes, true)) : x;
    const sn_value square = sn_build_mean(b, sn_build_square(b, from), axes, true);
    return sn_build_mul(b, x, sn_build_rsqrt(b, sn_build_affine(b, square, 1, epsilon)));
}

/* Rows of `width` numbers, each normalised by its own mean and deviation. */
static sn_value normalise_rows(sn_layer_call *c, sn_value x, double epsilon,
                               const scale_and_shift *p) {
    sn_attrs a;
    sn_attrs_default(SN_OP_layernorm, &a);
    a.epsilon.epsilon = epsilon_slot(c, epsilon);
    return sn_build(c->b, SN_OP_layernorm, &a, (const sn_value[]){x, p->gamma, p->beta}, 3);
}

static int64_t span(const snug_type *t) {
    int64_t n = 1;
    for (int k = 0; k < t->rank; k++)
        n *= t->dims[k];
    return n;
}

void sn_layer_build_layer_normalization(sn_layer_call *c) {
    const sn_conf_layer_normalization *conf = c->conf;
    layout l;
    compute_wide(c);
    if (!lay_out(c, conf->axis, 8, &l))
        return;
    const snug_type weights = weight_type(&l);
    if (conf->rms_scaling) {
        const sn_value gamma =
            sn_layer_variable(c, "gamma", &weights, &conf->gamma_initializer, true);
        const uint32_t last = ((1u << l.n) - 1) << (l.type.rank - l.n);
        const sn_value y = divide_by_deviation(c, move(c, &l, c->in[0]), last, conf->epsilon, true);
        c->out = sn_layer_narrowed(c, move_back(c, &l, sn_build_mul(c->b, y, gamma)));
        return;
    }
    scale_and_shift p = parameters(c, &weights, conf->scale ? &conf->gamma_initializer : NULL,
                                   conf->center ? &conf->beta_initializer : NULL);
    sn_value x = move(c, &l, c->in[0]);
    snug_type rows = l.moved;
    const int64_t width = span(&weights);
    rows.rank -= l.n - 1;
    rows.dims[rows.rank - 1] = width;
    if (l.n > 1) {
        x = sn_build_reshape(c->b, x, rows.dims, rows.rank);
        p.gamma = sn_build_reshape(c->b, p.gamma, &width, 1);
        p.beta = sn_build_reshape(c->b, p.beta, &width, 1);
    }
    sn_value y = normalise_rows(c, x, conf->epsilon, &p);
    if (l.n > 1)
        y = sn_build_reshape(c->b, y, l.moved.dims, l.moved.rank);
    c->out = sn_layer_narrowed(c, move_back(c, &l, y));
}

/* --- root mean square, unit length, groups ---------------------------------------------------- */
void sn_layer_build_rms_normalization(sn_layer_call *c) {
    const sn_conf_rms_normalization *conf = c->conf;
    sn_init ones;
    layout l;
    c->in[0] = sn_layer_widened(c, c->in[0]);
    if (!lay_out(c, conf->axis, 8, &l) || sn_init_parse("ones", &ones, &c->b->error) != SNUG_OK)
        return;
    const snug_type weights = weight_type(&l);
    const sn_value scale =
        sn_layer_widened(c, sn_layer_variable(c, "scale", &weights, &ones, true));
    const uint32_t last = ((1u << l.n) - 1) << (l.type.rank - l.n);
    const sn_value y = divide_by_deviation(c, move(c, &l, c->in[0]), last, conf->epsilon, false);
    c->out = sn_layer_narrowed(c, move_back(c, &l, sn_build_mul(c->b, y, scale)));
}

void sn_layer_build_unit_normalization(sn_layer_call *c) {
    const sn_conf_unit_normalization *conf = c->conf;
    layout l;
    if (!lay_out(c, conf->axis, 8, &l))
        return;
    sn_builder *b = c->b;
    const sn_value square = sn_build_sum(b, sn_build_square(b, c->in[0]), l.axes, true);
    const sn_value most = sn_build_scalar(b, l.type.dtype, 1 / 1e-12);
    c->out = sn_build_mul(b, c->in[0], sn_build_minimum(b, sn_build_rsqrt(b, square), most));
}

/* [batch, places.., groups * k] -> rows [batch, groups, places * k], which layernorm takes, and
 * back; gamma and beta are per channel and come last. */
static sn_value normalise_groups(sn_layer_call *c, sn_value x, const snug_type *t, int64_t groups,
                                 double epsilon) {
    const int64_t C = t->dims[t->rank - 1], k = C / groups;
    int64_t places = 1;
    for (int i = 1; i < t->rank - 1; i++)
        places *= t->dims[i];
    static const int groups_first[4] = {0, 2, 1, 3};
    const int64_t split[4] = {t->dims[0], places, groups, k},
                  turned[4] = {t->dims[0], groups, places, k},
                  rows[3] = {t->dims[0], groups, places * k};
    const snug_type vector = {.dtype = t->dtype, .rank = 1, .dims = {places * k}};
    const scale_and_shift none = {sn_build_fill(c->b, &vector, 1), sn_build_fill(c->b, &vector, 0)};
    const sn_value parts =
        sn_build_transpose(c->b, sn_build_reshape(c->b, x, split, 4), groups_first);
    const sn_value y = normalise_rows(c, sn_build_reshape(c->b, parts, rows, 3), epsilon, &none);
    const sn_value back =
        sn_build_transpose(c->b, sn_build_reshape(c->b, y, turned, 4), groups_first);
    return sn_build_reshape(c->b, back, t->dims, t->rank);
}

void sn_layer_build_group_normalization(sn_layer_call *c) {
    const sn_conf_group_normalization *conf = c->conf;
    layout l;
    compute_wide(c);
    if (!lay_out(c, conf->axis, 1, &l))
        return;
    const snug_type vector = weight_type(&l);
    const int64_t groups = conf->groups == -1 ? vector.dims[0] : conf->groups;
    if (groups < 1 || vector.dims[0] % groups != 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "%lld channels do not divide into %lld groups",
                        (long long)vector.dims[0], (long long)groups);
        return;
    }
    const sn_value x = move(c, &l, c->in[0]);
    sn_value y = normalise_groups(c, x, &l.moved, groups, conf->epsilon);
    if (conf->scale)
        y = sn_build_mul(c->b, y,
                         sn_layer_variable(c, "gamma", &vector, &conf->gamma_initializer, true));
    if (conf->center)
        y = sn_build_add(c->b, y,
                         sn_layer_variable(c, "beta", &vector, &conf->beta_initializer, true));
    c->out = sn_layer_narrowed(c, move_back(c, &l, y));
}

/* The weight of ConvNeXt's LayerScale has no name of its own in Keras. */
void sn_layer_build_layer_scale(sn_layer_call *c) {
    const sn_conf_layer_scale *conf = c->conf;
    const snug_type vector = {.rank = 1, .dims = {conf->projection_dim}};
    char text[64];
    sn_init init;
    sn_print(text, sizeof text, "constant:value=%.17g", conf->init_values);
    if (conf->projection_dim < 1)
        sn_layer_refuse(c, SNUG_E_INVALID, "projection_dim=%lld must be at least 1",
                        (long long)conf->projection_dim);
    if (c->b->error.code != SNUG_OK || sn_init_parse(text, &init, &c->b->error) != SNUG_OK)
        return;
    c->out = sn_build_mul(c->b, c->in[0], sn_layer_variable(c, "gamma", &vector, &init, true));
}
