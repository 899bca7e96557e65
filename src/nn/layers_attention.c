/* layers_attention.c: attention layers. MultiHeadAttention and GroupedQueryAttention project their
 * inputs to [batch, steps, heads, features], which the attention row reads as they lie; the layers
 * Attention and AdditiveAttention work on the inputs themselves.
 *
 * Where the weights are asked for, or made by another function than a product, they are computed
 * whole: products, a softmax and a product. Masks of the inputs, the mask given in the call and the
 * triangle of use_causal_mask must all allow a key. */
#include "nn/layer_call.h"
#include "nn/keras_number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- inputs ----------------------------------------------------------------------------------- */
/* The tensor given by this keyword, or the place-th of those in order; -1: none. */
static int input_at(const sn_layer_call *c, const char *role, int place) {
    const int given = sn_call_role(c, role, 0);
    for (int i = 0; given < 0 && i < c->n_in; i++)
        if (!c->role[i] && place-- == 0)
            return i;
    return given;
}

/* Query, value and key, which is the value unless given, with their masks. */
typedef struct {
    sn_value q, v, k;
    sn_value q_mask, v_mask, k_mask; /* bool [batch, steps] or SN_NO_VALUE */
    snug_type tq, tv, tk;
} inputs;

static bool take_inputs(sn_layer_call *c, inputs *in) {
    const int q = input_at(c, "query", 0), v = input_at(c, "value", 1), k = input_at(c, "key", 2);
    if (c->b->error.code != SNUG_OK)
        return false;
    if (q < 0 || v < 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "is called on a query and a value");
        return false;
    }
    *in = (inputs){.q = c->in[q], .v = c->in[v], .k = c->in[k < 0 ? v : k]};
    in->q_mask = c->mask[q];
    in->v_mask = c->mask[v];
    in->k_mask = k < 0 ? SN_NO_VALUE : c->mask[k];
    c->out_mask = in->q_mask;
    in->tq = *sn_graph_type(c->b->graph, in->q);
    in->tv = *sn_graph_type(c->b->graph, in->v);
    in->tk = *sn_graph_type(c->b->graph, in->k);
    if (in->tq.rank == 3 && in->tv.rank == 3 && in->tk.rank == 3 &&
        in->tv.dims[1] == in->tk.dims[1])
        return true;
    sn_layer_refuse(c, SNUG_E_SHAPE,
                    "query, value and key must be [batch, steps, features], the last two with as "
                    "many steps");
    return false;
}

/* --- masks ------------------------------------------------------------------------------------ */
static sn_value both(sn_builder *b, sn_value x, sn_value y) {
    if (!sn_value_ok(x) || !sn_value_ok(y))
        return sn_value_ok(x) ? x : y;
    return sn_build_logical_and(b, x, y);
}

/* A mask [batch, steps] as [batch, 1, steps, 1] or [batch, 1, 1, steps]. */
static sn_value spread(sn_builder *b, sn_value mask, bool over_keys) {
    if (!sn_value_ok(mask) || b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, mask);
    const int64_t rows[4] = {t.dims[0], 1, t.dims[1], 1}, columns[4] = {t.dims[0], 1, 1, t.dims[1]};
    return sn_build_reshape(b, mask, over_keys ? rows : columns, 4);
}

/* attention_mask of the call, [batch, T, S] or [batch, heads, T, S], of any dtype. */
static sn_value given_mask(sn_layer_call *c) {
    const int at = sn_call_role(c, "attention_mask", 0);
    if (at < 0 || c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(c->b->graph, c->in[at]);
    const sn_value mask = sn_build_cast(c->b, c->in[at], SNUG_BOOL);
    if (t.rank == 4)
        return mask;
    const int64_t dims[4] = {t.dims[0], 1, t.dims[1], t.dims[2]};
    if (t.rank != 3)
        sn_layer_refuse(c, SNUG_E_SHAPE, "attention_mask has %d axes, not 3 or 4", t.rank);
    return sn_build_reshape(c->b, mask, dims, 4);
}

/* bool [1, 1, T, S], true where low <= key - query <= high. */
static sn_value band(sn_builder *b, const inputs *in, int64_t low, int64_t high) {
    const snug_type t = {
        .dtype = SNUG_F32, .rank = 4, .dims = {1, 1, in->tq.dims[1], in->tv.dims[1]}};
    const sn_value ones = sn_build_band(b, sn_build_fill(b, &t, 1), low, high);
    return sn_build_cast(b, ones, SNUG_BOOL);
}

/* --- attention -------------------------------------------------------------------------------- */
/* q [batch, T, H, D], k and v [batch, S, G, D or E]. */
typedef struct {
    sn_value q, k, v, mask; /* mask: bool that spreads over [batch, H, T, S], or SN_NO_VALUE */
    bool causal;
    double scale, dropout;
} attention;

static bool drops(const sn_layer_call *c, const attention *a) {
    return c->training && a->dropout > 0;
}

/* By the row that keeps no matrix of weights. */
static sn_value attend(sn_layer_call *c, const attention *a) {
    const sn_value in[4] = {a->q, a->k, a->v, a->mask};
    sn_attrs attrs;
    sn_attrs_default(SN_OP_attention, &attrs);
    attrs.attention.causal = a->causal;
    attrs.attention.dropout = drops(c, a);
    attrs.attention.scale = (int64_t)sn_build_param(c->b, "", a->scale).i;
    attrs.attention.rate = (int64_t)sn_build_param(c->b, "", a->dropout).i;
    attrs.attention.key = drops(c, a) ? sn_layer_key(c) : (int64_t)sn_build_key(c->b, "", 0).i;
    return sn_build(c->b, SN_OP_attention, &attrs, in, sn_value_ok(a->mask) ? 4 : 3);
}

/* Where the mask is false a score becomes `instead`. */
static sn_value hide(sn_builder *b, sn_value scores, sn_value mask, sn_value instead) {
    return sn_value_ok(mask) ? sn_build_select(b, mask, scores, instead) : scores;
}

static sn_value drop(sn_layer_call *c, sn_value weights, double rate) {
    if (!c->training || rate == 0)
        return weights;
    sn_attrs a;
    sn_attrs_default(SN_OP_dropout, &a);
    a.dropout.rate = (int64_t)sn_build_param(c->b, "", rate).i;
    a.dropout.key = sn_layer_key(c);
    return sn_build(c->b, SN_OP_dropout, &a, &weights, 1);
}

/* Heads of k or v repeated until they are as many as q's. */
static sn_value repeat_heads(sn_builder *b, sn_value x, sn_value q) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int64_t n = sn_graph_type(b->graph, q)->dims[2] / sn_graph_type(b->graph, x)->dims[2];
    const int64_t counts[4] = {1, 1, n, 1};
    return n == 1 ? x : sn_build_repeat(b, x, counts);
}

/* The same with the weights as second output: [batch, H, T, S]. */
static sn_value attend_openly(sn_layer_call *c, const attention *a, const inputs *in) {
    static const int heads_first[4] = {0, 2, 1, 3};
    sn_builder *b = c->b;
    const sn_value q = sn_build_transpose(b, sn_build_affine(b, a->q, a->scale, 0), heads_first);
    const sn_value k = sn_build_transpose(b, repeat_heads(b, a->k, a->q), heads_first);
    const sn_value v = sn_build_transpose(b, repeat_heads(b, a->v, a->q), heads_first);
    sn_value mask = a->mask;
    if (a->causal)
        mask = both(b, mask, band(b, in, INT32_MIN, 0));
    const snug_dtype dtype = c->policy.compute;
    const sn_value hidden = sn_build_scalar(b, dtype, sn_layer_hidden(dtype, -3e4));
    const sn_value scores = hide(b, sn_build_matmul_t(b, q, k, false, true), mask, hidden);
    const sn_value none = sn_build_scalar(b, dtype, 0); /* also of a query that sees nothing */
    c->outs[1] = hide(b, sn_build_softmax(b, scores), mask, none);
    c->n_out = 2;
    const sn_value weights = drop(c, c->outs[1], a->dropout);
    return sn_build_transpose(b, sn_build_matmul(b, weights, v, SN_NO_VALUE), heads_first);
}

/* --- projections ------------------------------------------------------------------------------ */
/* A dense layer from the last n_from axes of its input to n_to new ones; dims are those of its
 * kernel. */
typedef struct {
    const char *name;
    int n_from, n_to;
    int64_t dims[SNUG_MAX_RANK];
    const sn_init *kernel_init, *bias_init; /* bias_init NULL: no bias */
} projection;

/* Of extents of a variable there is. */
static int64_t product(const int64_t *dims, int n) {
    int64_t all = 1;
    for (int i = 0; i < n; i++)
        all *= dims[i];
    return all;
}

static sn_value own_variable(sn_layer_call *c, const projection *p, const char *what,
                             const int64_t *dims, int rank) {
    char name[64];
    snug_type t = {.rank = rank};
    sn_init init = *(strcmp(what, "kernel") ? p->bias_init : p->kernel_init);
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    init.fan_in = init.fan_out = 1;
    for (int i = 0; i < p->n_from + p->n_to; i++)
        *(i < p->n_from ? &init.fan_in : &init.fan_out) *= (double)p->dims[i];
    snprintf(name, sizeof name, "%s/%s", p->name, what);
    return sn_layer_variable(c, name, &t, &init, true);
}

static sn_value project(sn_layer_call *c, sn_value x, const projection *p) {
    const sn_value kernel = own_variable(c, p, "kernel", p->dims, p->n_from + p->n_to);
    const sn_value bias =
        p->bias_init ? own_variable(c, p, "bias", p->dims + p->n_from, p->n_to) : SN_NO_VALUE;
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    snug_type t = *sn_graph_type(c->b->graph, x);
    const int64_t from = product(p->dims, p->n_from), to = product(p->dims + p->n_from, p->n_to);
    const int64_t rows[2] = {-1, from};
    const sn_value in[3] = {sn_build_reshape(c->b, x, rows, 2), kernel,
                            p->bias_init ? sn_build_reshape(c->b, bias, &to, 1) : SN_NO_VALUE};
    sn_attrs fold;
    sn_attrs_default(SN_OP_matmul, &fold);
    fold.matmul.fold_b = p->n_from;
    const sn_value y = sn_build(c->b, SN_OP_matmul, &fold, in, p->bias_init ? 3 : 2);
    memcpy(t.dims + t.rank - p->n_from, p->dims + p->n_from, (size_t)p->n_to * sizeof *p->dims);
    return sn_build_reshape(c->b, y, t.dims, t.rank - p->n_from + p->n_to);
}

/* --- several heads ---------------------------------------------------------------------------- */
/* What the two classes share. */
typedef struct {
    int64_t heads, key_heads, key_dim, value_dim, window;
    double dropout;
    bool gated;
    const sn_init *kernel_init, *bias_init;
    int64_t out[SNUG_MAX_RANK]; /* of an example's step */
    int n_out;
} heads;

static sn_value project_to(sn_layer_call *c, sn_value x, const char *name, const heads *h,
                           int64_t n, int64_t width) {
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type *t = sn_graph_type(c->b->graph, x);
    const projection p = {name,           1,           2, {t->dims[t->rank - 1], n, width},
                          h->kernel_init, h->bias_init};
    return project(c, x, &p);
}

static sn_value all_masks(sn_layer_call *c, const inputs *in, const heads *h) {
    sn_value mask = spread(c->b, in->q_mask, true);
    mask = both(c->b, mask, spread(c->b, both(c->b, in->v_mask, in->k_mask), false));
    if (h->window > 0)
        mask = both(c->b, mask, band(c->b, in, 1 - h->window, h->window - 1));
    return both(c->b, given_mask(c), mask);
}

static void build_heads(sn_layer_call *c, const heads *h) {
    inputs in;
    if (!take_inputs(c, &in))
        return;
    attention a = {.dropout = h->dropout,
                   .scale = sn_keras_number(1 / sqrt((double)h->key_dim)),
                   .causal = sn_call_flag(c, "use_causal_mask", false),
                   .mask = all_masks(c, &in, h)};
    a.q = project_to(c, in.q, "query", h, h->heads, h->key_dim);
    a.k = project_to(c, in.k, "key", h, h->key_heads, h->key_dim);
    sn_value gate = SN_NO_VALUE;
    if (h->gated)
        gate = sn_build_sigmoid(c->b, project_to(c, in.q, "gate", h, h->heads, h->value_dim));
    a.v = project_to(c, in.v, "value", h, h->key_heads, h->value_dim);
    sn_value y = sn_call_flag(c, "return_attention_scores", false) ? attend_openly(c, &a, &in)
                                                                   : attend(c, &a);
    if (h->gated)
        y = sn_build_mul(c->b, y, gate);
    projection out = {.name = "attention_output",
                      .n_from = 2,
                      .n_to = h->n_out > 0 ? h->n_out : 1,
                      .dims = {h->heads, h->value_dim, in.tq.dims[2]},
                      .kernel_init = h->kernel_init,
                      .bias_init = h->bias_init};
    for (int i = 0; i < h->n_out; i++)
        out.dims[2 + i] = h->out[i];
    c->out = project(c, y, &out);
}

static bool good_heads(sn_layer_call *c, const heads *h) {
    if (h->heads >= 1 && h->key_heads >= 1 && h->key_dim >= 1 && h->value_dim >= 1 &&
        h->heads % h->key_heads == 0 && h->dropout >= 0 && h->dropout < 1 && h->window >= 0)
        return true;
    sn_layer_refuse(c, SNUG_E_INVALID,
                    "%lld heads of %lld, %lld of keys, dropout %g: counts must be at least 1 and "
                    "divide, the rate lie in [0, 1)",
                    (long long)h->heads, (long long)h->key_dim, (long long)h->key_heads,
                    h->dropout);
    return false;
}

/* Keras' layer takes the masks off its inputs: a sum of the query and its result has none. */
void sn_layer_build_multi_head_attention(sn_layer_call *c) {
    const sn_conf_multi_head_attention *conf = c->conf;
    c->ends_masks = true;
    heads h = {.heads = conf->num_heads,
               .key_heads = conf->num_heads,
               .key_dim = conf->key_dim,
               .value_dim = conf->value_dim ? conf->value_dim : conf->key_dim,
               .window = conf->sliding_window,
               .dropout = conf->dropout,
               .gated = conf->use_gate != 0,
               .kernel_init = &conf->kernel_initializer,
               .bias_init = conf->use_bias ? &conf->bias_initializer : NULL};
    for (; h.n_out < 4 && conf->output_shape[h.n_out] != -2; h.n_out++)
        h.out[h.n_out] = conf->output_shape[h.n_out];
    if (conf->attention_axes[0] != -2 &&
        (conf->attention_axes[0] != 1 || conf->attention_axes[1] != -2)) {
        sn_layer_refuse(c, SNUG_E_UNSUPPORTED, "attention_axes other than the steps (1)");
        return;
    }
    if (good_heads(c, &h))
        build_heads(c, &h);
}

void sn_layer_build_grouped_query_attention(sn_layer_call *c) {
    const sn_conf_grouped_query_attention *conf = c->conf;
    const heads h = {.heads = conf->num_query_heads,
                     .key_heads = conf->num_key_value_heads,
                     .key_dim = conf->head_dim,
                     .value_dim = conf->head_dim,
                     .window = conf->sliding_window,
                     .dropout = conf->dropout,
                     .gated = conf->use_gate != 0,
                     .kernel_init = &conf->kernel_initializer,
                     .bias_init = conf->use_bias ? &conf->bias_initializer : NULL};
    if (good_heads(c, &h))
        build_heads(c, &h);
}

/* --- Attention and AdditiveAttention ---------------------------------------------------------- */
/* Zero where the query is masked. */
static void finish(sn_layer_call *c, const inputs *in, sn_value y) {
    const int64_t column[3] = {in->tq.dims[0], in->tq.dims[1], 1};
    c->out = y;
    if (sn_value_ok(in->q_mask))
        c->out = sn_build_select(c->b, sn_build_reshape(c->b, in->q_mask, column, 3), y,
                                 sn_build_scalar(c->b, c->policy.compute, 0));
}

static sn_value fixed_variable(sn_layer_call *c, const char *name, const char *init,
                               const snug_type *type) {
    sn_init parsed;
    if (c->b->error.code != SNUG_OK || sn_init_parse(init, &parsed, &c->b->error) != SNUG_OK)
        return SN_NO_VALUE;
    return sn_layer_variable(c, name, type, &parsed, true);
}

/* Scores [batch, T, S] of any origin: softmax, and what it weighs. */
static void weigh_values(sn_layer_call *c, const inputs *in, sn_value scores, double dropout) {
    sn_builder *b = c->b;
    const int64_t columns[3] = {in->tv.dims[0], 1, in->tv.dims[1]},
                  matrix[3] = {1, in->tq.dims[1], in->tv.dims[1]};
    sn_value mask = SN_NO_VALUE;
    if (sn_value_ok(in->v_mask))
        mask = sn_build_reshape(b, in->v_mask, columns, 3);
    if (sn_call_flag(c, "use_causal_mask", false))
        mask = both(b, mask, sn_build_reshape(b, band(b, in, INT32_MIN, 0), matrix, 3));
    const sn_value hidden =
        sn_build_affine(b, scores, 1, sn_layer_hidden(c->policy.compute, -65504));
    const sn_value weights = sn_build_softmax(b, hide(b, scores, mask, hidden));
    if (sn_call_flag(c, "return_attention_scores", false)) {
        c->n_out = 2;
        c->outs[1] = weights;
    }
    finish(c, in, sn_build_matmul(b, drop(c, weights, dropout), in->v, SN_NO_VALUE));
}

/* tanh(scale (q + k)) for every query and key: [batch, T, S, features]. */
static sn_value sums_of_pairs(sn_layer_call *c, const inputs *in, sn_value scale) {
    const int64_t q[4] = {in->tq.dims[0], in->tq.dims[1], 1, in->tq.dims[2]},
                  k[4] = {in->tk.dims[0], 1, in->tk.dims[1], in->tk.dims[2]};
    const sn_value sum = sn_build_add(c->b, sn_build_reshape(c->b, in->q, q, 4),
                                      sn_build_reshape(c->b, in->k, k, 4));
    return sn_build_tanh(c->b, sn_value_ok(scale) ? sn_build_mul(c->b, sum, scale) : sum);
}

/* One head without projections. */
static void attend_plainly(sn_layer_call *c, const inputs *in, sn_value scale, double dropout) {
    const int64_t q[4] = {in->tq.dims[0], in->tq.dims[1], 1, in->tq.dims[2]},
                  k[4] = {in->tk.dims[0], in->tk.dims[1], 1, in->tk.dims[2]},
                  v[4] = {in->tv.dims[0], in->tv.dims[1], 1, in->tv.dims[2]},
                  y[3] = {in->tq.dims[0], in->tq.dims[1], in->tv.dims[2]};
    const sn_value scaled = sn_value_ok(scale) ? sn_build_mul(c->b, in->q, scale) : in->q;
    const attention a = {.q = sn_build_reshape(c->b, scaled, q, 4),
                         .k = sn_build_reshape(c->b, in->k, k, 4),
                         .v = sn_build_reshape(c->b, in->v, v, 4),
                         .mask = spread(c->b, in->v_mask, false),
                         .causal = sn_call_flag(c, "use_causal_mask", false),
                         .scale = 1,
                         .dropout = dropout};
    finish(c, in, sn_build_reshape(c->b, attend(c, &a), y, 3));
}

void sn_layer_build_attention(sn_layer_call *c) {
    const sn_conf_attention *conf = c->conf;
    const bool concat = strcmp(conf->score_mode.text, "concat") == 0;
    const snug_type number = {.rank = 0};
    inputs in;
    if (!take_inputs(c, &in))
        return;
    if (!concat && strcmp(conf->score_mode.text, "dot") != 0) {
        sn_layer_refuse(c, SNUG_E_INVALID, "score_mode '%s' is neither dot nor concat",
                        conf->score_mode.text);
        return;
    }
    const sn_value scale =
        conf->use_scale ? fixed_variable(c, "scale", "ones", &number) : SN_NO_VALUE;
    if (!concat && !sn_call_flag(c, "return_attention_scores", false)) {
        attend_plainly(c, &in, scale, conf->dropout);
        return;
    }
    sn_value scores;
    if (concat) {
        const sn_value weight = fixed_variable(c, "concat_score_weight", "ones", &number);
        scores = sn_build_mul(
            c->b, sn_build_sum(c->b, sums_of_pairs(c, &in, scale), 1u << 3, false), weight);
    } else {
        scores = sn_build_matmul_t(c->b, in.q, in.k, false, true);
        scores = conf->use_scale ? sn_build_mul(c->b, scores, scale) : scores;
    }
    weigh_values(c, &in, scores, conf->dropout);
}

void sn_layer_build_additive_attention(sn_layer_call *c) {
    const sn_conf_additive_attention *conf = c->conf;
    inputs in;
    if (!take_inputs(c, &in))
        return;
    const snug_type vector = {.rank = 1, .dims = {in.tq.dims[2]}};
    sn_value pairs = sums_of_pairs(c, &in, SN_NO_VALUE);
    if (conf->use_scale)
        pairs = sn_build_mul(c->b, pairs, fixed_variable(c, "scale", "glorot_uniform", &vector));
    weigh_values(c, &in, sn_build_sum(c->b, pairs, 1u << 3, false), conf->dropout);
}
