/* eager_layers.c: layers on recorded tensors (include/snug/layer.h): one network of one layer per
 * object, whose build function appends to the recording.
 *
 * 1. Variables are made before a call is recorded, on a scratch graph for the inputs' types.
 * 2. What the build function asks to be written at the end of a step is written at once.
 * 3. A failed call leaves the recording as it was. */
#include "eager/layer.h"
#include "model/json.h"
#include "model/keras_layers.h"
#include "model/keras_value.h"
#include "nn/application.h"
#include "nn/regularizer.h"

#include <snug/layer.h>
#include <stdio.h>
#include <string.h>

#define MAX_ADDED 64 /* losses of calls that nobody asked for: the newest */

struct snug_layer {
    snug_recorder *r;
    snug_engine *engine;
    sn_held held;
    bool is_built;
    snug_tensor **added;
    size_t cap_added;
    int n_added;
};

/* --- life ------------------------------------------------------------------------------------- */
static void drop_added(snug_layer *l) {
    for (int i = 0; i < l->n_added; i++)
        snug_tensor_drop(l->added[i]);
    l->n_added = 0;
}

void snug_layer_destroy(snug_layer *l) {
    if (!l)
        return;
    drop_added(l);
    sn_free(l->engine, SN_MEM_MODEL, l->added, l->cap_added * sizeof *l->added);
    sn_held_clear(&l->held);
    sn_free(l->engine, SN_MEM_MODEL, l, sizeof *l);
}

static snug_status create_from(snug_layer *l, const char *class_name, const json_t *config,
                               snug_error *err) {
    sn_network *n;
    sn_layer *layer;
    SNUG_TRY(sn_network_create_bare(l->engine, SNUG_F32, &n, err));
    sn_held_init(&l->held, l->r, n);
    n->seed = (uint64_t)snug_recorder_draw(l->r);
    SNUG_TRY(sn_keras_make_layer(n, class_name, config, &layer, err));
    return sn_network_take_layer(n, layer, err);
}

snug_status snug_layer_create(snug_recorder *r, const char *class_name, const char *config_json,
                              snug_layer **out, snug_error *err) {
    SNUG_NEEDS(err, r && class_name && out);
    snug_engine *const e = snug_recorder_engine(r);
    const char *const text = config_json && config_json[0] ? config_json : "{}";
    sn_json tree;
    void *block;
    SNUG_TRY(sn_json_parse(e, class_name, text, strlen(text), &tree, err));
    snug_status status = sn_alloc_zero(e, SN_MEM_MODEL, sizeof(snug_layer), &block, err);
    if (status == SNUG_OK) {
        snug_layer *const l = block;
        l->r = r;
        l->engine = e;
        status = create_from(l, class_name, tree.root, err);
        if (status == SNUG_OK)
            *out = l;
        else
            snug_layer_destroy(l);
    }
    sn_json_clear(&tree);
    return status;
}

void snug_layer_set_trainable(snug_layer *l, int trainable) {
    if (!l)
        return;
    sn_network *const n = l->held.network;
    n->layers[0].trainable = trainable != 0;
    for (size_t i = 0; i < l->held.n; i++)
        snug_variable_set_trainable(l->held.vars[i], trainable && n->vars[i].trainable);
}

void sn_layer_set_element(snug_layer *l, uint64_t key) {
    l->held.element = key | 1;
}

uint64_t snug_layer_draws(const snug_layer *l) {
    return l ? sn_held_draws(&l->held) : 0;
}

snug_status snug_layer_set_draws(snug_layer *l, uint64_t draws, snug_error *err) {
    SNUG_NEEDS(err, l);
    return sn_held_set_draws(&l->held, draws, err);
}

int snug_layer_n_variables(const snug_layer *l) {
    if (!l)
        return 0;
    return (int)l->held.n;
}

snug_variable *snug_layer_variable(const snug_layer *l, int i) {
    return l && i >= 0 && (size_t)i < l->held.n ? l->held.vars[i] : NULL;
}

/* --- variables, on a scratch graph ------------------------------------------------------------ */
/* What the layer is applied to, by types. */
typedef struct {
    const snug_type *inputs, *masks; /* masks: NULL, or rank < 0 for none */
    sn_application application;
    bool training;
} shape_call;

static snug_status scratch_input(sn_graph *g, char kind, int k, const snug_type *type,
                                 sn_value *out, snug_error *err) {
    char name[16];
    snprintf(name, sizeof name, "%c%d", kind, k);
    return sn_graph_input(g, name, type, out, err);
}

static snug_status build_scratch(sn_network *n, sn_graph *g, const shape_call *s, snug_type *outs,
                                 int *n_out, snug_error *err) {
    sn_applied io;
    for (int k = 0; k < s->application.n_in; k++) {
        SNUG_TRY(scratch_input(g, 'x', k, &s->inputs[k], &io.in[k], err));
        io.in_mask[k] = SN_NO_VALUE;
        if (s->masks && s->masks[k].rank >= 0)
            SNUG_TRY(scratch_input(g, 'm', k, &s->masks[k], &io.in_mask[k], err));
    }
    n->n_pending = n->n_losses = 0;
    SNUG_TRY(sn_network_build_one(n, &s->application, g, s->training, &io, err));
    for (int k = 0; outs && k < io.n_out; k++)
        outs[k] = *sn_graph_type(g, io.out[k]);
    *n_out = io.n_out;
    return SNUG_OK;
}

/* Types of the outputs (may be NULL) for inputs of these types; makes variables that are new. */
static snug_status infer(snug_layer *l, const shape_call *s, snug_type *outs, int *n_out,
                         snug_error *err) {
    sn_graph *g;
    SNUG_TRY(sn_graph_create(l->engine, &g, err));
    const snug_status status = build_scratch(l->held.network, g, s, outs, n_out, err);
    sn_graph_destroy(g);
    SNUG_TRY(status);
    return sn_held_make(&l->held, err);
}

static snug_status check_count(const snug_layer *l, int n_inputs, snug_error *err) {
    const sn_layer *const layer = &l->held.network->layers[0];
    if (n_inputs >= 1 && n_inputs <= SN_MAX_IN)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s is called with %d tensors; from 1 to %d are possible",
                   layer->name, n_inputs, SN_MAX_IN);
}

/* Whole numbers are cast for layers that take none; floats where the layer is run. */
static snug_dtype wanted_dtype(const snug_layer *l, snug_dtype dtype, bool all) {
    const sn_network *const n = l->held.network;
    const sn_policy *const own = &n->layers[0].policy;
    return all && !sn_dtype_is_float(dtype) ? (own->own ? own : &n->policy)->compute : dtype;
}

static void cast_types(const snug_layer *l, const snug_type *from, int n, bool all, snug_type *to) {
    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].dtype = wanted_dtype(l, from[i].dtype, all);
    }
}

static bool has_whole(const snug_type *types, int n) {
    for (int i = 0; i < n; i++)
        if (!sn_dtype_is_float(types[i].dtype))
            return true;
    return false;
}

snug_status snug_layer_infer(snug_layer *l, const snug_type *inputs, int n_inputs,
                             snug_type *outputs, int max, int *n_out, snug_error *err) {
    SNUG_NEEDS(err, l && (inputs || n_inputs == 0) && (outputs || max == 0) && n_out);
    snug_type types[SN_MAX_IN], made[SN_MAX_TENSOR];
    int n = 0;
    SNUG_TRY(check_count(l, n_inputs, err));
    shape_call s = {.inputs = types, .application = {.n_in = n_inputs, .call = ""}};
    cast_types(l, inputs, n_inputs, false, types);
    snug_status status = infer(l, &s, made, &n, err);
    if (status == SNUG_E_SHAPE && has_whole(types, n_inputs)) {
        cast_types(l, inputs, n_inputs, true, types);
        status = infer(l, &s, made, &n, err);
    }
    SNUG_TRY(status);
    if (n > max)
        return sn_fail(err, SNUG_E_INVALID, "%d outputs; there is room for %d", n, max);
    l->is_built = true;
    memcpy(outputs, made, (size_t)n * sizeof *made);
    *n_out = n;
    return SNUG_OK;
}

/* --- calls ------------------------------------------------------------------------------------ */
typedef struct {
    const snug_layer_arguments *a;
    snug_tensor **outputs;
    int max, n_out;
    snug_tensor *mask;
    bool all_real; /* whole numbers are cast, too */
} record_call;

static sn_application application_of(const snug_layer_arguments *a) {
    sn_application app = {.n_in = a->n_inputs, .call = a->call ? a->call : ""};
    for (int i = 0; a->roles && i < a->n_inputs; i++)
        app.role[i] = a->roles[i];
    return app;
}

/* Moving averages and kept state, now. */
static void write_pending(snug_layer *l, sn_record_call *c) {
    const sn_network *const n = l->held.network;
    for (size_t i = 0; i < n->n_pending && c->b.error.code == SNUG_OK; i++) {
        const sn_pending_write *p = &n->pending[i];
        const sn_value in[2] = {sn_record_version(c, l->held.vars[p->home]), p->value};
        sn_attrs a;
        if (p->momentum == 0) {
            sn_build(&c->b, SN_OP_assign, NULL, in, 2);
            continue;
        }
        sn_attrs_default(SN_OP_moving_average, &a);
        a.momentum.momentum = sn_record_number(c, p->momentum);
        sn_build(&c->b, SN_OP_moving_average, &a, in, 2);
    }
}

static void use_inputs(const snug_layer *l, sn_record_call *c, const record_call *k,
                       sn_applied *io) {
    for (int i = 0; i < k->a->n_inputs; i++) {
        snug_tensor *const mask = k->a->masks ? k->a->masks[i] : NULL;
        const snug_dtype own = snug_tensor_type(k->a->inputs[i])->dtype;
        const bool is_mask = k->a->roles && sn_role_is_mask(k->a->roles[i]);
        io->in[i] = sn_record_use(c, k->a->inputs[i]);
        if (!is_mask)
            io->in[i] = sn_build_cast(&c->b, io->in[i], wanted_dtype(l, own, k->all_real));
        io->in_mask[i] = mask ? sn_record_use(c, mask) : SN_NO_VALUE;
    }
}

static void give_outputs(snug_layer *l, sn_record_call *c, record_call *k, const sn_applied *io) {
    sn_network *const n = l->held.network;
    k->n_out = io->n_out;
    if (io->n_out > k->max && c->b.error.code == SNUG_OK)
        sn_fail(&c->b.error, SNUG_E_INVALID, "%d outputs; there is room for %d", io->n_out, k->max);
    for (int i = 0; i < io->n_out && i < k->max; i++)
        k->outputs[i] = sn_record_give(c, io->out[i]);
    k->mask = sn_value_ok(io->out_mask) ? sn_record_give(c, io->out_mask) : NULL;
    for (size_t i = 0; i < n->n_losses && c->b.error.code == SNUG_OK; i++) {
        if (l->n_added == MAX_ADDED) {
            snug_tensor_drop(l->added[0]);
            memmove(l->added, l->added + 1, (MAX_ADDED - 1) * sizeof *l->added);
            l->n_added--;
        }
        if (sn_grow(l->engine, SN_MEM_MODEL, (void **)&l->added, sizeof *l->added, &l->cap_added,
                    (size_t)l->n_added + 1, &c->b.error) == SNUG_OK)
            l->added[l->n_added++] = sn_record_give(c, n->losses[i]);
    }
}

static snug_status record_once(snug_layer *l, record_call *k, snug_error *err) {
    sn_network *const n = l->held.network;
    const sn_application app = application_of(k->a);
    const int n_added = l->n_added;
    sn_record_call c;
    sn_applied io = {.n_out = 0, .out_mask = SN_NO_VALUE};
    SNUG_TRY(sn_record_begin(l->r, &c, err));
    sn_held_enter(&l->held, &c);
    n->n_pending = n->n_losses = 0;
    use_inputs(l, &c, k, &io);
    if (c.b.error.code == SNUG_OK)
        (void)!sn_network_build_one(n, &app, c.b.graph, k->a->training != 0, &io, &c.b.error);
    write_pending(l, &c);
    give_outputs(l, &c, k, &io);
    sn_held_leave(&l->held);
    const snug_status status = sn_record_end(&c, err);
    if (status != SNUG_OK && l->n_added > n_added)
        l->n_added = n_added; /* dropped with the call */
    return status;
}

/* Variables for these inputs, where the layer was not called or inferred before. */
static snug_status make_variables(snug_layer *l, const record_call *k, snug_error *err) {
    snug_type types[SN_MAX_IN], masks[SN_MAX_IN];
    int n_out;
    const shape_call s = {.inputs = types,
                          .masks = masks,
                          .application = application_of(k->a),
                          .training = k->a->training != 0};
    for (int i = 0; i < k->a->n_inputs; i++) {
        const bool is_mask = k->a->roles && sn_role_is_mask(k->a->roles[i]);
        types[i] = *snug_tensor_type(k->a->inputs[i]);
        if (!is_mask)
            types[i].dtype = wanted_dtype(l, types[i].dtype, k->all_real);
        masks[i].rank = -1;
        if (k->a->masks && k->a->masks[i])
            masks[i] = *snug_tensor_type(k->a->masks[i]);
    }
    return infer(l, &s, NULL, &n_out, err);
}

static snug_status record(snug_layer *l, record_call *k, snug_error *err) {
    if (!l->is_built)
        SNUG_TRY(make_variables(l, k, err));
    const snug_status status = record_once(l, k, err);
    if (status == SNUG_OK || l->held.n == l->held.network->n_vars)
        return status;
    SNUG_TRY(sn_held_make(&l->held, err)); /* state that only this call needs */
    return record_once(l, k, err);
}

snug_status snug_layer_call(snug_layer *l, const snug_layer_arguments *a, snug_tensor **outputs,
                            int max, int *n_out, snug_tensor **mask, snug_error *err) {
    SNUG_NEEDS(err, l && a && (outputs || max == 0) && n_out);
    snug_tensor *made[SN_MAX_TENSOR];
    record_call k = {.a = a, .outputs = made, .max = max < SN_MAX_TENSOR ? max : SN_MAX_TENSOR};
    bool whole = false;
    SNUG_TRY(check_count(l, a->n_inputs, err));
    for (int i = 0; i < a->n_inputs; i++)
        whole = whole || has_whole(snug_tensor_type(a->inputs[i]), 1);
    snug_status status = record(l, &k, err);
    if (status == SNUG_E_SHAPE && whole) {
        k.all_real = true;
        status = record(l, &k, err);
    }
    SNUG_TRY(status);
    l->is_built = true;
    memcpy(outputs, made, (size_t)k.n_out * sizeof *made);
    *n_out = k.n_out;
    if (mask)
        *mask = k.mask;
    else
        snug_tensor_drop(k.mask);
    return SNUG_OK;
}

/* --- losses and constraints ------------------------------------------------------------------- */
static bool is_set(const char *text) {
    return text && text[0];
}

static snug_status record_penalties(snug_layer *l, snug_tensor **out, int max, int *n,
                                    snug_error *err) {
    const sn_network *const net = l->held.network;
    sn_record_call c;
    SNUG_TRY(sn_record_begin(l->r, &c, err));
    for (size_t i = 0; i < l->held.n && *n < max; i++)
        if (is_set(net->vars[i].regularizer) && !net->vars[i].by_layer) {
            const sn_value w = sn_record_read(&c, l->held.vars[i]);
            out[(*n)++] =
                sn_record_give(&c, sn_regularizer_build(&c.b, net->vars[i].regularizer, w));
        }
    return sn_record_end(&c, err);
}

snug_status snug_layer_losses(snug_layer *l, snug_tensor **out, int max, int *n, snug_error *err) {
    SNUG_NEEDS(err, l && n);
    const sn_network *const net = l->held.network;
    int count = 0, wanted = l->n_added;
    bool any = false;
    for (size_t i = 0; i < l->held.n; i++) {
        const bool has = is_set(net->vars[i].regularizer) && !net->vars[i].by_layer;
        any = any || has;
        wanted += has;
    }
    if (wanted > max)
        return sn_fail(err, SNUG_E_INVALID, "%d losses; there is room for %d", wanted, max);
    if (any)
        SNUG_TRY(record_penalties(l, out, max, &count, err));
    for (int i = 0; i < l->n_added; i++)
        out[count + i] = l->added[i];
    *n = count + l->n_added;
    l->n_added = 0;
    return SNUG_OK;
}

snug_status snug_layer_constrain(snug_layer *l, snug_error *err) {
    SNUG_NEEDS(err, l);
    const sn_network *const net = l->held.network;
    bool any = false;
    for (size_t i = 0; i < l->held.n; i++)
        any = any || is_set(net->vars[i].constraint);
    if (!any)
        return SNUG_OK;
    sn_record_call c;
    SNUG_TRY(sn_record_begin(l->r, &c, err));
    for (size_t i = 0; i < l->held.n; i++)
        if (is_set(net->vars[i].constraint)) {
            sn_value in[2] = {sn_record_version(&c, l->held.vars[i]), SN_NO_VALUE};
            in[1] = sn_constraint_build(&c.b, net->vars[i].constraint, in[0]);
            sn_build(&c.b, SN_OP_assign, NULL, in, 2);
        }
    return sn_record_end(&c, err);
}
