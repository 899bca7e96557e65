/* layers_operation.c: the layer class Operation: a row of the function table on values of a network
 * (function/functions.def).
 *
 * 1. Policies are of layers: operands come as they are, and Python's numbers beside them are f32.
 * Where the network computes in f64 all floats are that: a file says float32 of them.
 * 2. Where extents are open only types are asked for, and rows compute with extents: the row is
 * built for several batches, and an extent of the result that differs between them is open. */
#include "nn/layer_call.h"
#include "nn/operation.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    sn_fn_call f; /* first: the door gets from it to the whole */
    sn_layer_call *layer;
    sn_value slots[SN_OPERATION_SLOTS];
} node;

/* --- one call of the row ---------------------------------------------------------------------- */
static int64_t draw(sn_fn_call *f) {
    return sn_layer_key(((node *)f)->layer);
}

static int64_t draw_seeded(sn_fn_call *f, int64_t seed) {
    (void)seed; /* one layer, one sequence: its key differs from step to step */
    return draw(f);
}

static const sn_fn_door door = {.draw = draw, .draw_seeded = draw_seeded};

/* Whole numbers that the row knows without a run, as a value. */
static sn_value known(node *n) {
    sn_builder *const b = n->f.b;
    const snug_type *const t = &n->f.known_type;
    sn_value out = SN_NO_VALUE;
    if (sn_type_count(t) == 0)
        sn_fn_refuse(&n->f, SNUG_E_UNSUPPORTED, "the result has no elements");
    for (int64_t i = 0; i < sn_type_count(t); i++) {
        const sn_value one =
            sn_build_fill(b, &(snug_type){t->dtype, 1, {1}}, (double)n->f.known[i]);
        const sn_value both[2] = {out, one};
        out = i ? sn_build_concat(b, both, 2, 0) : one;
    }
    return sn_build_reshape(b, out, t->dims, t->rank);
}

static snug_dtype named_dtype(const sn_layer_call *c, snug_dtype d) {
    return c->policy.compute == SNUG_F64 ? SNUG_F64 : d;
}

/* The results; how many, 0 after an error. */
static int run_row(node *n, const sn_operation *o, sn_value *out) {
    sn_layer_call *const c = n->layer;
    sn_fn_call *const f = &n->f;
    const sn_fn_row *const row = sn_function_row(o->function);
    if (c->b->error.code != SNUG_OK)
        return 0;
    sn_fn_begin(f, row, f->own, o->n_args);
    for (int i = 0; i < o->n_args; i++) {
        f->own[i] = o->args[i];
        if (f->own[i].kind == SNUG_ARG_DTYPE)
            f->own[i].dtype = named_dtype(c, f->own[i].dtype);
    }
    f->b = c->b;
    f->door = &door;
    f->slot = n->slots;
    f->n_slots = SN_OPERATION_SLOTS;
    f->floats = c->policy.compute;
    memset(f->out, 0xff, sizeof f->out);
    row->build(f);
    if (f->n_out > SN_MAX_TENSOR)
        sn_fn_refuse(f, SNUG_E_UNSUPPORTED, "%d results; at most %d are possible", f->n_out,
                     SN_MAX_TENSOR);
    for (int i = 0; !f->known && i < f->n_out && !sn_fn_failed(f); i++) {
        if (!sn_value_ok(f->out[i]))
            sn_fn_refuse(f, SNUG_E_INVALID, "an argument is missing");
        out[i] = sn_fn_result(f, i);
    }
    if (f->known && !sn_fn_failed(f))
        out[0] = known(n);
    for (int i = 0; i < f->n_out && !sn_fn_failed(f); i++)
        if (sn_type_count(sn_graph_type(c->b->graph, out[i])) == 0)
            sn_fn_refuse(f, SNUG_E_UNSUPPORTED, "result %d has no elements", i);
    sn_fn_end(f, sn_graph_engine(c->b->graph));
    return sn_fn_failed(f) ? 0 : f->n_out;
}

/* --- with open extents ------------------------------------------------------------------------ */
/* Many parts and many rows may be taken of the large ones; the small one, which may be too small,
 * shows where as many are taken as there are. */
static const int64_t large[2] = {5040, 10080}, small = 2;

static bool is_open(const sn_layer_call *c, const node *n) {
    for (int i = 0; i < SN_OPERATION_SLOTS && c->b->error.code == SNUG_OK; i++)
        if (sn_value_ok(n->slots[i]) && !sn_type_known(sn_graph_type(c->b->graph, n->slots[i])))
            return true;
    return false;
}

/* An input of the graph, of this type with open extents closed. */
static sn_value stand_in(sn_builder *b, int k, snug_type t, int64_t batch) {
    char name[32];
    sn_value v = SN_NO_VALUE;
    for (int i = 0; i < t.rank; i++)
        t.dims[i] = t.dims[i] < 0 ? batch : t.dims[i];
    snprintf(name, sizeof name, "operation/%d", k);
    if (b->error.code == SNUG_OK && sn_graph_input(b->graph, name, &t, &v, &b->error) != SNUG_OK)
        return SN_NO_VALUE;
    return v;
}

/* Types of the results for one batch; how many. */
static int types_for(const node *given, const sn_operation *o, int64_t batch, snug_type *types,
                     snug_error *err) {
    sn_layer_call c = *given->layer;
    sn_graph *const outer = c.b->graph;
    sn_value out[SN_MAX_TENSOR];
    node n = {.layer = &c};
    sn_graph *g;
    if (sn_graph_create(sn_graph_engine(outer), &g, err) != SNUG_OK)
        return 0;
    sn_builder b = sn_builder_on(g);
    c.b = &b;
    for (int i = 0; i < SN_OPERATION_SLOTS; i++)
        n.slots[i] = sn_value_ok(given->slots[i])
                         ? stand_in(&b, i, *sn_graph_type(outer, given->slots[i]), batch)
                         : SN_NO_VALUE;
    const int n_out = run_row(&n, o, out);
    for (int i = 0; i < n_out; i++)
        types[i] = *sn_graph_type(g, out[i]);
    if (sn_builder_done(&b, err) != SNUG_OK)
        sn_fail_in(err, b.error.code, "with a batch of %lld in place of an open one",
                   (long long)batch);
    sn_graph_destroy(g);
    return n_out;
}

/* Extents of the first that are others in the second are open; false where they are not alike. */
static bool merge(snug_type *types, int n, const snug_type *others, int n_others) {
    bool alike = n == n_others;
    for (int i = 0; i < n && alike; i++)
        alike = types[i].rank == others[i].rank;
    for (int i = 0; i < n && alike; i++)
        for (int k = 0; k < types[i].rank; k++)
            if (types[i].dims[k] != others[i].dims[k])
                types[i].dims[k] = -1;
    return alike;
}

static int infer(const node *n, const sn_operation *o, sn_value *out) {
    sn_layer_call *const c = n->layer;
    snug_type types[SN_MAX_TENSOR], others[SN_MAX_TENSOR];
    snug_error refused = {.code = SNUG_OK};
    const int count = types_for(n, o, large[0], types, &c->b->error);
    if (c->b->error.code != SNUG_OK)
        return 0;
    const int again = types_for(n, o, large[1], others, &c->b->error);
    if (c->b->error.code != SNUG_OK)
        return 0;
    if (!merge(types, count, others, again))
        sn_fail(&c->b->error, SNUG_E_UNSUPPORTED,
                "how many results there are depends on the batch");
    const int few = types_for(n, o, small, others, &refused);
    const bool too_small = refused.code == SNUG_E_SHAPE || refused.code == SNUG_E_INVALID ||
                           refused.code == SNUG_E_UNSUPPORTED;
    if (refused.code == SNUG_OK)
        merge(types, count, others, few);
    else if (!too_small && c->b->error.code == SNUG_OK)
        c->b->error = refused;
    for (int i = 0; i < count; i++)
        out[i] = stand_in(c->b, SN_OPERATION_SLOTS + i, types[i], -1);
    return count;
}

/* --- the layer -------------------------------------------------------------------------------- */
static void fill_slots(sn_layer_call *c, const sn_operation *o, node *n) {
    for (int i = 0; i < SN_OPERATION_SLOTS; i++)
        n->slots[i] = i < c->n_in ? c->in[i] : SN_NO_VALUE;
    if (c->mask_given)
        n->slots[SN_OPERATION_MASK] = c->mask[0];
    if (o->array.n == 0)
        return;
    const sn_value array = sn_layer_array(c, &o->array, o->dims, o->rank);
    n->slots[SN_OPERATION_ARRAY] = o->whole ? sn_build_cast(c->b, array, SNUG_I32) : array;
}

void sn_layer_build_operation(sn_layer_call *c) {
    const sn_conf_operation *const conf = c->conf;
    const sn_operation *const o = conf->call;
    node n = {.layer = c};
    if (!o)
        return sn_layer_refuse(c, SNUG_E_INVALID, "it comes with a model file only");
    sn_layer_without_halves(c);
    fill_slots(c, o, &n);
    if (c->b->error.code != SNUG_OK)
        return;
    c->n_out = is_open(c, &n) ? infer(&n, o, c->outs) : run_row(&n, o, c->outs);
    c->out = c->outs[0];
    if (c->b->error.code != SNUG_OK)
        sn_fail_in(&c->b->error, c->b->error.code, "%s (Operation)", c->path);
}
