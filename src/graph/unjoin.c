/* unjoin.c: the weight gradient of a convolution of a concatenation, part by part.
 *
 *     y = conv2d(concat(a, b), w)
 *     dw = conv2d_dw(concat(a, b), dy)        ->  concat(conv2d_dw(a, dy), conv2d_dw(b, dy))
 *
 * So the concatenation need not live until the backward pass, beside a and b: it is the largest
 * value of networks of skip connections, and making it again takes a, b and itself at once. Only
 * where nobody else reads it then, and where the parts are as wide as the kernels want them: a
 * narrow one would cost more time than it saves bytes. */
#include "graph/build.h"
#include "graph/replay.h"

enum { CHANNELS = 3, WIDTH = 16 }; /* the axis; a part's extent is a multiple of this */

/* Per value: how often it is read, how often in either pass of a convolution, and by casts of bf16
 * to f32. */
typedef struct {
    uint32_t all, forward, weights, widened;
} reads;

typedef struct {
    const sn_graph *g;
    reads *of;
    sn_replay to;
    sn_builder b;
} unjoiner;

static const sn_node_info *node_at(const unjoiner *u, uint32_t i) {
    return sn_graph_node_at(u->g, (sn_node){i});
}

static bool is_widening(const unjoiner *u, const sn_node_info *n) {
    return n->op == SN_OP_cast && sn_graph_type(u->g, n->in[0])->dtype == SNUG_BF16 &&
           sn_graph_type(u->g, n->out[0])->dtype == SNUG_F32;
}

static void count_reads(unjoiner *u) {
    for (uint32_t i = 0; i < sn_graph_n_nodes(u->g); i++) {
        const sn_node_info *n = node_at(u, i);
        for (int k = 0; k < n->n_in; k++)
            u->of[n->in[k].i].all++;
        if (n->op == SN_OP_conv2d)
            u->of[n->in[0].i].forward++;
        if (n->op == SN_OP_conv2d_dw)
            u->of[n->in[0].i].weights++;
        if (is_widening(u, n))
            u->of[n->in[0].i].widened++;
    }
    for (uint32_t i = 0; i < sn_graph_n_outputs(u->g); i++)
        u->of[sn_graph_output_at(u->g, i).i].all++;
}

static bool joins_wide(const unjoiner *u, const sn_node_info *n) {
    bool wide = n->op == SN_OP_concat && n->attrs.axis.axis == CHANNELS;
    for (int k = 0; k < n->n_in && wide; k++) {
        const snug_type *t = sn_graph_type(u->g, n->in[k]);
        wide = t->rank == CHANNELS + 1 && t->dims[CHANNELS] > 0 && t->dims[CHANNELS] % WIDTH == 0;
    }
    return wide;
}

/* The concatenation that this node makes the weight gradient of; or NULL. */
static const sn_node_info *joined_input(const unjoiner *u, const sn_node_info *n) {
    if (n->op != SN_OP_conv2d_dw || n->attrs.conv_dw.groups != 1 || n->attrs.conv_dw.bias)
        return NULL;
    const reads of = u->of[n->in[0].i];
    const uint32_t maker = sn_graph_value_at(u->g, n->in[0])->node.i;
    if (of.weights != 1 || of.all != of.forward + 1 || maker >= sn_graph_n_nodes(u->g))
        return NULL;
    return joins_wide(u, node_at(u, maker)) ? node_at(u, maker) : NULL;
}

static bool has_any(const unjoiner *u) {
    bool any = false;
    for (uint32_t i = 0; i < sn_graph_n_nodes(u->g) && !any; i++)
        any = joined_input(u, node_at(u, i)) != NULL;
    return any;
}

/* What is only read as f32 is made so, for sums over slices: no cast could reach the parts behind
 * their concatenation. */
static bool is_widened(const unjoiner *u, sn_value v) {
    return u->of[v.i].widened > 0 && u->of[v.i].widened == u->of[v.i].all;
}

/* A cast of what is wide now. */
static bool is_done(const unjoiner *u, const sn_node_info *n) {
    const uint32_t maker = sn_graph_value_at(u->g, n->in[0])->node.i;
    return is_widening(u, n) && is_widened(u, n->in[0]) && maker < sn_graph_n_nodes(u->g) &&
           joined_input(u, node_at(u, maker));
}

static void unjoin(unjoiner *u, const sn_node_info *n, const sn_node_info *join) {
    sn_value parts[SN_MAX_IN], in[2] = {SN_NO_VALUE, u->to.value[n->in[1].i]};
    sn_graph_set_owner_at(u->to.to, n->owner);
    sn_graph_set_part(u->to.to, n->part);
    sn_attrs attrs;
    sn_attrs_copy(n->op, &n->attrs, &attrs);
    attrs.conv_dw.wide |= is_widened(u, n->out[0]);
    for (int k = 0; k < join->n_in; k++) {
        in[0] = u->to.value[join->in[k].i];
        parts[k] = sn_build(&u->b, SN_OP_conv2d_dw, &attrs, in, 2);
    }
    u->to.value[n->out[0].i] = sn_build_concat(&u->b, parts, join->n_in, CHANNELS - 1);
}

static snug_status rewrite(unjoiner *u, snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_nodes(u->g); i++) {
        const sn_node_info *n = node_at(u, i), *join = joined_input(u, n);
        if (join)
            unjoin(u, n, join);
        else if (n->op == SN_OP_cast && is_done(u, n))
            u->to.value[n->out[0].i] = u->to.value[n->in[0].i];
        else
            SNUG_TRY(sn_replay_node(&u->to, n, err));
    }
    return sn_builder_done(&u->b, err);
}

static snug_status make(unjoiner *u, sn_graph **out, snug_error *err) {
    SNUG_TRY(sn_replay_init(&u->to, u->g, NULL, err));
    sn_builder_start(&u->b, u->to.to);
    snug_status st = rewrite(u, err);
    if (st == SNUG_OK)
        st = sn_replay_take(&u->to, out, err);
    sn_replay_clear(&u->to);
    return st;
}

snug_status sn_graph_unjoin(const sn_graph *g, sn_graph **out, snug_error *err) {
    unjoiner u = {.g = g};
    const size_t bytes = sn_graph_n_values(g) * sizeof *u.of;
    void *block;
    *out = NULL;
    SNUG_TRY(sn_alloc_zero(g->engine, SN_MEM_GRAPH, bytes, &block, err));
    u.of = block;
    count_reads(&u);
    const snug_status st = has_any(&u) ? make(&u, out, err) : SNUG_OK;
    sn_free(g->engine, SN_MEM_GRAPH, block, bytes);
    return st;
}
