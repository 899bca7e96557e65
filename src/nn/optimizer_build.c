/* optimizer_build.c: the end of a training step: from gradients to new versions of the weights. A
 * step that updates, in Keras' order: accumulated gradients, clipping (clipnorm, global_clipnorm or
 * clipvalue), weight decay, the optimizer's own operator, the moving average of the weight, its
 * constraint. Steps between two updates only add gradients to their accumulators: they are another
 * graph, so nothing is decided inside a step.
 *
 * Slots are variables of the network behind all weights, named "adam/conv2d/kernel/momentum" and
 * ".../velocity". */
#include "nn/optimizer_rows.h"
#include "nn/keras_number.h"
#include "nn/regularizer.h"

#include <stdio.h>

#define MAX_NAME 288 /* of a slot */

/* A graph parameter by name: the word that attributes hold. */
static int64_t number(sn_builder *b, const char *name, double value) {
    return (int64_t)sn_build_param(b, name, value).i;
}

/* --- rows of tables --------------------------------------------------------------------------- */
/* Keras keeps the gradient of a table that is only looked up as the rows that were looked up. It
 * clips, squares and measures those; rows of the same index are added afterwards. (A
 * global_clipnorm is measured so, but multiplies the sum.) */
typedef sn_value (*row_map)(sn_builder *b, sn_value rows, const void *ctx);

/* The same sum of mapped rows; SN_NO_VALUE where the gradient is no sum of rows. */
static sn_value map_rows(sn_builder *b, sn_value gradient, row_map f, const void *ctx) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const sn_node maker = sn_graph_value_at(b->graph, gradient)->node;
    if (maker.i == SN_NO_NODE.i)
        return SN_NO_VALUE;
    sn_node_info node;
    sn_graph_copy_node(b->graph, maker, &node);
    if (node.op == SN_OP_scatter_add) {
        const sn_value in[2] = {node.in[0], f(b, node.in[1], ctx)};
        return sn_build(b, SN_OP_scatter_add, &node.attrs, in, 2);
    }
    if (node.op != SN_OP_add)
        return SN_NO_VALUE;
    const sn_value x = map_rows(b, node.in[0], f, ctx), y = map_rows(b, node.in[1], f, ctx);
    return sn_value_ok(x) && sn_value_ok(y) ? sn_build_add(b, x, y) : SN_NO_VALUE;
}

/* Of its rows, or of the whole gradient where it has none. */
static sn_value map_gradient(sn_builder *b, sn_value gradient, row_map f, const void *ctx) {
    const sn_value mapped = map_rows(b, gradient, f, ctx);
    return sn_value_ok(mapped) || b->error.code != SNUG_OK ? mapped : f(b, gradient, ctx);
}

static sn_value square_of(sn_builder *b, sn_value rows, const void *ctx) {
    (void)ctx;
    return sn_build_square(b, rows);
}

static sn_value size_of(sn_builder *b, sn_value rows, const void *ctx) {
    (void)ctx;
    return sn_build_abs(b, rows);
}

/* --- loss scale ------------------------------------------------------------------------------- */
static sn_value times(sn_builder *b, sn_value x, const char *name) {
    sn_attrs a;
    sn_attrs_default(SN_OP_affine, &a);
    a.affine.scale = number(b, name, 1);
    a.affine.shift = number(b, "", 0);
    return sn_build(b, SN_OP_affine, &a, &x, 1);
}

/* The halves that a gradient was widened from; SN_NO_VALUE: it was not. */
static sn_value halves_of(const sn_graph *g, sn_value rows) {
    const sn_node maker = sn_graph_value_at(g, rows)->node;
    const sn_node_info *n = maker.i < sn_graph_n_nodes(g) ? sn_graph_node_at(g, maker) : NULL;
    const bool widens =
        n && n->op == SN_OP_cast && sn_dtype_is_half(sn_graph_type(g, n->in[0])->dtype);
    return widens ? n->in[0] : SN_NO_VALUE;
}

/* All gradients wait for each other's checks: as the halves they were made in. */
static sn_value unscale_rows(sn_builder *b, sn_value rows, const void *ctx) {
    (void)ctx;
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value halves = halves_of(b->graph, rows);
    const snug_dtype dtype = sn_graph_type(b->graph, rows)->dtype;
    const sn_value finite = sn_value_ok(halves)
                                ? sn_build_cast(b, sn_build_check_finite(b, halves), dtype)
                                : sn_build_check_finite(b, rows);
    return times(b, finite, SN_LOSS_UNSCALE);
}

sn_value sn_optimizer_scale_loss(sn_builder *b, sn_value loss) {
    return times(b, loss, SN_LOSS_SCALE);
}

void sn_optimizer_unscale(sn_builder *b, sn_value *grads, int n_grads) {
    sn_graph_set_part(b->graph, SN_PART_UPDATE);
    for (int i = 0; i < n_grads; i++)
        if (sn_value_ok(grads[i]))
            grads[i] = map_gradient(b, grads[i], unscale_rows, NULL);
}

/* --- clipping --------------------------------------------------------------------------------- */
static sn_value sum_of_squares(sn_builder *b, sn_value x) {
    return sn_build_sum(b, sn_build_square(b, x), 0, false);
}

static sn_value sum_of_row_squares(sn_builder *b, sn_value gradient) {
    return sn_build_sum(b, map_gradient(b, gradient, square_of, NULL), 0, false);
}

static sn_value constant_like(sn_builder *b, sn_value x, double value) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_scalar(b, sn_graph_type(b->graph, x)->dtype, value);
}

static sn_value clip_value(sn_builder *b, sn_value rows, const void *limit) {
    return sn_build_clip(b, rows, -*(const double *)limit, *(const double *)limit);
}

typedef struct {
    double limit;
    sn_value most; /* the norm, or the limit if that is more */
} norm_limit;

static sn_value limit_rows(sn_builder *b, sn_value rows, const void *ctx) {
    const norm_limit *n = ctx;
    return sn_build_div(b, sn_build_affine(b, rows, n->limit, 0), n->most);
}

/* g * limit / max(|g|, limit) */
static sn_value clip_norm(sn_builder *b, sn_value g, double limit) {
    const sn_value norm = sn_build_sqrt(b, sum_of_row_squares(b, g));
    const norm_limit n = {limit, sn_build_maximum(b, norm, constant_like(b, norm, limit))};
    return map_gradient(b, g, limit_rows, &n);
}

/* What all gradients are multiplied by: limit * min(1 / norm of all, 1 / limit); NaN where the norm
 * is not finite, as in Keras. */
static sn_value global_scale(sn_builder *b, const sn_value *grads, int n, double limit) {
    sn_value sum = SN_NO_VALUE;
    for (int i = 0; i < n; i++) {
        if (!sn_value_ok(grads[i]))
            continue;
        const sn_value part = sum_of_row_squares(b, grads[i]);
        sum = sn_value_ok(sum) ? sn_build_add(b, sum, part) : part;
    }
    if (!sn_value_ok(sum))
        return SN_NO_VALUE;
    const sn_value norm = sn_build_sqrt(b, sum);
    const sn_value least =
        sn_build_minimum(b, sn_build_reciprocal(b, norm), constant_like(b, norm, 1 / limit));
    return sn_build_add(b, sn_build_affine(b, least, limit, 0), sn_build_sub(b, norm, norm));
}

static sn_value clipped(const sn_optimizer *o, sn_builder *b, sn_value g, sn_value scale) {
    if (o->clipnorm > 0)
        return clip_norm(b, g, o->clipnorm);
    if (o->clipvalue > 0)
        return map_gradient(b, g, clip_value, &o->clipvalue);
    return sn_value_ok(scale) ? sn_build_mul(b, g, scale) : g;
}

/* --- the updates ------------------------------------------------------------------------------ */
/* Who updates what, and where. */
typedef struct {
    const sn_optimizer *o;
    sn_network *n;
    sn_graph *g;
    uint32_t weight;
} site;

typedef struct {
    const char *name;
    double start;
    snug_type type;
} slot;

static const char *name_slot(const sn_optimizer *o, const sn_network *n, uint32_t weight,
                             const char *which, char name[MAX_NAME]) {
    snprintf(name, MAX_NAME, "%s/%s/%s", o->name, n->vars[weight].name, which);
    return name;
}

bool sn_optimizer_average(const sn_optimizer *o, const sn_network *n, uint32_t weight,
                          uint32_t *home) {
    char name[MAX_NAME];
    return o->use_ema &&
           sn_network_find_variable(n, name_slot(o, n, weight, "average", name), home) &&
           n->vars[*home].slot;
}

/* A slot of the weight, made when it is new; its newest version in this graph. */
static snug_status read_slot(const site *s, const slot *wanted, sn_value *out, snug_error *err) {
    sn_network *const n = s->n;
    char name[MAX_NAME];
    uint32_t home;
    name_slot(s->o, n, s->weight, wanted->name, name);
    if (sn_network_find_variable(n, name, &home) && n->vars[home].slot)
        return sn_network_read(n, s->g, home, out, err);
    const sn_net_var var = {
        .name = name,
        .type = wanted->type,
        .slot = true,
        .own_seed = true,
        .init = {.kind = SN_RECIPE_CONSTANT, .a = sn_keras_number(wanted->start)},
        .layer = n->vars[s->weight].layer};
    SNUG_TRY(sn_network_variable(n, &var, &home, err));
    return sn_network_read(n, s->g, home, out, err);
}

static snug_type type_of(const site *s) {
    return s->n->vars[s->weight].type;
}

static snug_status decay(const site *s, snug_error *err) {
    const sn_optimizer *o = s->o;
    sn_builder b = sn_builder_on(s->g);
    sn_attrs a;
    sn_value weight;
    sn_attrs_default(SN_OP_weight_decay, &a);
    a.decay.rate = number(&b, "optimizer/learning_rate", o->learning_rate);
    a.decay.decay = number(&b, "optimizer/weight_decay", sn_keras_number(o->weight_decay));
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &weight, err));
    sn_build(&b, SN_OP_weight_decay, &a, &weight, 1);
    return sn_builder_done(&b, err);
}

/* variable = momentum * variable + (1 - momentum) * value, by a parameter; the new version. */
static sn_value average(sn_builder *b, int64_t momentum, sn_value variable, sn_value value) {
    const sn_value in[2] = {variable, value};
    sn_attrs a;
    sn_attrs_default(SN_OP_moving_average, &a);
    a.momentum.momentum = momentum;
    return sn_build(b, SN_OP_moving_average, &a, in, 2);
}

static snug_status update_by_form(const site *s, sn_value gradient, snug_error *err) {
    sn_builder b = sn_builder_on(s->g);
    sn_value in[7];
    int n_in = 0;
    sn_optimizer_form f;
    sn_optimizer_find(s->o->name)->form(s->o, &b, &f);
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &in[n_in++], err));
    for (int i = 0; i < f.n_slots; i++) {
        const slot wanted = {f.slots[i].name, f.slots[i].start, type_of(s)};
        SNUG_TRY(read_slot(s, &wanted, &in[n_in++], err));
    }
    in[n_in++] = gradient;
    in[n_in] = f.squares || f.sizes ? map_rows(&b, gradient, f.squares ? square_of : size_of, NULL)
                                    : SN_NO_VALUE;
    if (f.given && sn_value_ok(in[n_in]))
        *f.given = 1;
    n_in += sn_value_ok(in[n_in]);
    sn_build(&b, f.op, &f.attrs, in, n_in);
    return sn_builder_done(&b, err);
}

/* in[0], the weight, -= rate * in[1] */
static snug_status step_by(const site *s, sn_builder *b, const sn_value *in, snug_error *err) {
    sn_attrs a;
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = number(b, "optimizer/rate", s->o->learning_rate);
    a.sgd.momentum = number(b, "", 0);
    sn_build(b, SN_OP_sgd, &a, in, 2);
    return sn_builder_done(b, err);
}

/* --- Adafactor -------------------------------------------------------------------------------- */
static sn_value root_of_mean_square(sn_builder *b, sn_value x) {
    return sn_build_sqrt(b, sn_build_mean(b, sn_build_square(b, x), 0, false));
}

/* The mean squares of rows and of columns of the last two axes, moved; their outer product, over
 * the mean of the rows', stands for all mean squares. Of a vector they are kept as they are. */
static snug_status mean_squares(const site *s, sn_builder *b, sn_value squares, sn_value *out,
                                snug_error *err) {
    const int64_t beta = number(b, "optimizer/beta2_of_step", 0);
    const snug_type t = type_of(s);
    slot rows = {"r", 0, t}, columns = {"c", 0, t}, all = {"velocity", 0, t};
    sn_value r, c;
    if (t.rank < 2) {
        SNUG_TRY(read_slot(s, &all, &r, err));
        *out = average(b, beta, r, squares);
        return SNUG_OK;
    }
    const int last = t.rank - 1;
    rows.type.rank = columns.type.rank = last;
    columns.type.dims[last - 1] = t.dims[last];
    SNUG_TRY(read_slot(s, &rows, &r, err));
    SNUG_TRY(read_slot(s, &columns, &c, err));
    const sn_value r_now = average(b, beta, r, sn_build_mean(b, squares, 1u << last, false));
    const sn_value c_now = average(b, beta, c, sn_build_mean(b, squares, 1u << (last - 1), false));
    const sn_value part = sn_build_div(b, r_now, sn_build_mean(b, r_now, 1u << (last - 1), true));
    *out = sn_build_mul(b, sn_build_expand_dims(b, part, last),
                        sn_build_expand_dims(b, c_now, last - 1));
    return SNUG_OK;
}

static snug_status update_by_adafactor(const site *s, sn_value gradient, snug_error *err) {
    const sn_optimizer *o = s->o;
    sn_builder b = sn_builder_on(s->g);
    sn_value weight, v = SN_NO_VALUE;
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &weight, err));
    const sn_value squares = map_gradient(&b, gradient, square_of, NULL);
    SNUG_TRY(mean_squares(s, &b, sn_build_affine(&b, squares, 1, o->epsilon_1), &v, err));
    const sn_value u = sn_build_div(&b, gradient, sn_build_sqrt(&b, v));
    const sn_value length = sn_build_sqrt(
        &b, sn_build_mean(&b, sn_build_div(&b, squares, v), 0, false)); /* of u's rows */
    const sn_value size = sn_build_div(&b, length, constant_like(&b, u, o->clip_threshold));
    const sn_value limited =
        sn_build_div(&b, u, sn_build_maximum(&b, size, constant_like(&b, u, 1)));
    const sn_value scale = sn_build_maximum(&b, root_of_mean_square(&b, weight),
                                            constant_like(&b, u, sn_keras_number(o->epsilon_2)));
    const sn_value in[2] = {weight, sn_build_mul(&b, limited, scale)};
    return step_by(s, &b, in, err);
}

/* --- LAMB ------------------------------------------------------------------------------------- */
static sn_value scaled_by(sn_builder *b, sn_value x, const char *parameter) {
    sn_attrs a;
    sn_attrs_default(SN_OP_affine, &a);
    a.affine.scale = number(b, parameter, 1);
    a.affine.shift = number(b, "", 0);
    return sn_build(b, SN_OP_affine, &a, &x, 1);
}

/* |w| / |u|; 1 where either is 0. */
static sn_value trust(sn_builder *b, sn_value w, sn_value u) {
    const sn_value w_norm = sn_build_sqrt(b, sum_of_squares(b, w));
    const sn_value u_norm = sn_build_sqrt(b, sum_of_squares(b, u));
    const sn_value zero = constant_like(b, w_norm, 0);
    const sn_value both = sn_build_logical_and(b, sn_build_greater(b, w_norm, zero),
                                               sn_build_greater(b, u_norm, zero));
    return sn_build_select(b, both, sn_build_div(b, w_norm, u_norm), constant_like(b, w_norm, 1));
}

/* Adam's step, made as long as the weight is. */
static snug_status update_by_lamb(const site *s, sn_value gradient, snug_error *err) {
    const sn_optimizer *o = s->o;
    const slot mean = {"momentum", 0, type_of(s)}, square = {"velocity", 0, type_of(s)};
    sn_builder b = sn_builder_on(s->g);
    sn_value in[2], m, v;
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &in[0], err));
    SNUG_TRY(read_slot(s, &mean, &m, err));
    SNUG_TRY(read_slot(s, &square, &v, err));
    const sn_value m_now = average(&b, number(&b, "", o->beta_1), m, gradient);
    const sn_value v_now =
        average(&b, number(&b, "", o->beta_2), v, map_gradient(&b, gradient, square_of, NULL));
    const sn_value root = sn_build_sqrt(&b, scaled_by(&b, v_now, "optimizer/square_part"));
    const sn_value u = sn_build_div(&b, scaled_by(&b, m_now, "optimizer/mean_part"),
                                    sn_build_affine(&b, root, 1, o->epsilon));
    in[1] = sn_build_mul(&b, u, trust(&b, in[0], u));
    return step_by(s, &b, in, err);
}

/* --- one weight ------------------------------------------------------------------------------- */
static snug_status update(const site *s, sn_value gradient, snug_error *err) {
    static snug_status (*const ways[SN_N_WAYS])(const site *, sn_value, snug_error *) = {
        [SN_BY_FORM] = update_by_form,
        [SN_BY_ADAFACTOR] = update_by_adafactor,
        [SN_BY_LAMB] = update_by_lamb};
    if (s->o->weight_decay > 0)
        SNUG_TRY(decay(s, err));
    return ways[sn_optimizer_find(s->o->name)->way](s, gradient, err);
}

/* Keras' use_ema: a moving average of the weight, which takes the weight's place now and then. */
static snug_status follow(const site *s, snug_error *err) {
    const slot wanted = {"average", 0, type_of(s)};
    sn_builder b = sn_builder_on(s->g);
    sn_value weight, mean;
    if (!s->o->use_ema)
        return SNUG_OK;
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &weight, err));
    SNUG_TRY(read_slot(s, &wanted, &mean, err));
    const sn_value moved = average(&b, number(&b, "optimizer/ema_momentum", 0), mean, weight);
    if (s->o->ema_overwrite_frequency > 0)
        average(&b, number(&b, "optimizer/ema_keep", 1), weight, moved);
    return sn_builder_done(&b, err);
}

/* The weight's constraint, after its update. */
static snug_status constrain(const site *s, snug_error *err) {
    const char *text = s->n->vars[s->weight].constraint;
    sn_builder b = sn_builder_on(s->g);
    sn_value in[2];
    if (!text || !text[0])
        return SNUG_OK;
    SNUG_TRY(sn_network_read(s->n, s->g, s->weight, &in[0], err));
    in[1] = sn_constraint_build(&b, text, in[0]);
    sn_build(&b, SN_OP_assign, NULL, in, 2);
    return sn_builder_done(&b, err);
}

/* --- whole steps ------------------------------------------------------------------------------ */
static slot accumulator_of(const site *s) {
    return (slot){"gradient_accumulator", 0, type_of(s)};
}

/* (g + what was added up before) / steps; the accumulator starts anew. */
static snug_status collect(const site *s, sn_value *gradient, snug_error *err) {
    const slot wanted = accumulator_of(s);
    sn_builder b = sn_builder_on(s->g);
    sn_value in[2];
    SNUG_TRY(read_slot(s, &wanted, &in[0], err));
    const sn_value sum = sn_build_add(&b, *gradient, in[0]);
    *gradient = sn_build_div(&b, sum, constant_like(&b, sum, s->o->gradient_accumulation_steps));
    in[1] = sn_build_fill(&b, &wanted.type, 0);
    sn_build(&b, SN_OP_assign, NULL, in, 2);
    return sn_builder_done(&b, err);
}

static snug_status add_up(const site *s, sn_value gradient, snug_error *err) {
    const slot wanted = accumulator_of(s);
    sn_builder b = sn_builder_on(s->g);
    sn_value in[2] = {SN_NO_VALUE, gradient};
    SNUG_TRY(read_slot(s, &wanted, &in[0], err));
    sn_build(&b, SN_OP_assign_add, NULL, in, 2);
    return sn_builder_done(&b, err);
}

/* The weight that gradient k is of, from *home on; false when the loss does not depend on it. */
static bool next_weight(const sn_network *n, const sn_value *grads, int k, uint32_t *home) {
    while (!sn_network_trains(n, *home))
        ++*home;
    return sn_value_ok(grads[k]);
}

snug_status sn_optimizer_accumulate(const sn_optimizer *o, sn_network *n, sn_graph *g,
                                    const sn_value *grads, int n_grads, snug_error *err) {
    sn_graph_set_part(g, SN_PART_UPDATE);
    uint32_t home = n->first_updated;
    for (int k = 0; k < n_grads; k++, home++) {
        if (!next_weight(n, grads, k, &home))
            continue;
        const site at = {o, n, g, home};
        SNUG_TRY(sn_graph_set_owner(g, n->layers[n->vars[home].layer].name, err));
        SNUG_TRY(add_up(&at, grads[k], err));
        SNUG_TRY(follow(&at, err));
        SNUG_TRY(constrain(&at, err));
    }
    return SNUG_OK;
}

/* Gradients of the update: of this step, or the mean of several steps. */
static snug_status collect_all(const sn_optimizer *o, sn_network *n, sn_graph *g, sn_value *grads,
                               int n_grads, snug_error *err) {
    uint32_t home = n->first_updated;
    if (o->gradient_accumulation_steps == 0)
        return SNUG_OK;
    for (int k = 0; k < n_grads; k++, home++)
        if (next_weight(n, grads, k, &home))
            SNUG_TRY(collect(&(site){o, n, g, home}, &grads[k], err));
    return SNUG_OK;
}

snug_status sn_optimizer_build(const sn_optimizer *o, sn_network *n, sn_graph *g, sn_value *grads,
                               int n_grads, snug_error *err) {
    sn_graph_set_part(g, SN_PART_UPDATE);
    SNUG_TRY(collect_all(o, n, g, grads, n_grads, err));
    sn_builder b = sn_builder_on(g);
    const sn_value scale =
        o->global_clipnorm > 0 ? global_scale(&b, grads, n_grads, o->global_clipnorm) : SN_NO_VALUE;
    uint32_t home = n->first_updated;
    for (int k = 0; k < n_grads; k++, home++) {
        if (!next_weight(n, grads, k, &home))
            continue;
        const site at = {o, n, g, home};
        SNUG_TRY(sn_graph_set_owner(g, n->layers[n->vars[home].layer].name, err));
        const sn_value gradient = clipped(o, &b, grads[k], scale);
        SNUG_TRY(sn_builder_done(&b, err));
        SNUG_TRY(update(&at, gradient, err));
        SNUG_TRY(follow(&at, err));
        SNUG_TRY(constrain(&at, err));
    }
    return sn_builder_done(&b, err);
}
