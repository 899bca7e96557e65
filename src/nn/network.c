/* network.c: the life of a network, its variables and settings. Layers are added in network_add.c
 * and built into graphs in layer_call.c; a graph takes their place in network_graph.c.
 *
 * Invariants:
 * 1. vars[i] is the variable with home i. Weights stand in Keras' order (layer by layer, in
 * creation order), slots of the optimizer behind all of them.
 * 2. layer.n_vars is 0 before a layer's first build, which happens when it is added (its outputs
 * are inferred on a scratch graph); every later build asks for the same variables in the same
 * order.
 * 3. An application reads only tensors made before it, so the list is an order to build in.
 * 4. A failed call leaves counts as they were; what it took from the zone stays until the network
 * is destroyed. */
#include "nn/application.h"

#include "base/rng.h"

#include <string.h>

/* --- life ------------------------------------------------------------------------------------- */
snug_status sn_network_check_input(const snug_type *input, snug_error *err) {
    char text[192];
    if (input->rank < 1 || input->dims[0] != -1)
        return sn_fail(err, SNUG_E_SHAPE, "the input %s does not start with an open batch axis",
                       snug_type_print(input, text, sizeof text));
    for (int i = 1; i < input->rank; i++)
        if (input->dims[i] < 1)
            return sn_fail(err, SNUG_E_SHAPE,
                           "axis %d of the input %s must be known and at least 1", i,
                           snug_type_print(input, text, sizeof text));
    const snug_dtype d = input->dtype;
    if (d != SNUG_F32 && d != SNUG_F64 && d != SNUG_I32 && d != SNUG_I64)
        return sn_fail(
            err, SNUG_E_UNSUPPORTED,
            "the input is %s; it may be f32, f64, i32 or i64 (feeds of u8 and others are "
            "converted to it)",
            snug_type_print(input, text, sizeof text));
    return sn_type_check(input, true, err);
}

snug_status sn_network_create_bare(snug_engine *e, snug_dtype dtype, sn_network **out,
                                   snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_MODEL, sizeof(sn_network), &block, err));
    sn_network *n = block;
    n->engine = e;
    n->name = "";
    n->source = &sn_network_of_layers;
    n->var_names = n->layer_names = n->last_numbers =
        (sn_names){.engine = e, .category = SN_MEM_MODEL};
    n->policy = (sn_policy){.variable = dtype, .compute = dtype};
    const snug_status status = sn_zone_create(e, SN_MEM_MODEL, &n->zone, err);
    if (status == SNUG_OK)
        *out = n;
    else
        sn_network_destroy(n);
    return status;
}

snug_status sn_network_take_layer(sn_network *n, const sn_layer *layer, snug_error *err) {
    enum { FEW_VARS = 3 }; /* most layers have no more, and there may be thousands of networks */
    void *block;
    SNUG_TRY(sn_alloc(n->engine, SN_MEM_MODEL, sizeof *n->layers, &block, err));
    n->layers = block;
    n->cap_layers = 1;
    SNUG_TRY(sn_alloc(n->engine, SN_MEM_MODEL, FEW_VARS * sizeof *n->vars, &block, err));
    n->vars = block;
    n->cap_vars = FEW_VARS;
    n->layers[0] = *layer;
    n->n_layers = 1;
    return SNUG_OK;
}

snug_status sn_network_create(snug_engine *e, const char *name, const snug_type *input,
                              sn_network **out, snug_error *err) {
    sn_network *n;
    SNUG_TRY(sn_network_check_input(input, err));
    SNUG_TRY(sn_network_create_bare(e, input->dtype == SNUG_F64 ? SNUG_F64 : SNUG_F32, &n, err));
    snug_status status =
        sn_zone_text(n->zone, name && name[0] ? name : "sequential", &n->name, err);
    uint32_t first;
    if (status == SNUG_OK)
        status = sn_network_add_input(n, "", input, &first, err);
    if (status == SNUG_OK)
        *out = n;
    else
        sn_network_destroy(n);
    return status;
}

void sn_network_destroy(sn_network *n) {
    if (!n)
        return;
    snug_engine *const e = n->engine;
    sn_free(e, SN_MEM_MODEL, n->tensors, n->cap_tensors * sizeof *n->tensors);
    sn_free(e, SN_MEM_MODEL, n->layers, n->cap_layers * sizeof *n->layers);
    sn_free(e, SN_MEM_MODEL, n->applications, n->cap_applications * sizeof *n->applications);
    for (size_t i = 0; i < n->n_vars; i++)
        sn_source_drop(sn_recipe_source(&n->vars[i].init));
    sn_free(e, SN_MEM_MODEL, n->vars, n->cap_vars * sizeof *n->vars);
    sn_names_clear(&n->var_names);
    sn_names_clear(&n->layer_names);
    sn_names_clear(&n->last_numbers);
    sn_free(e, SN_MEM_MODEL, n->pending, n->cap_pending * sizeof *n->pending);
    sn_free(e, SN_MEM_MODEL, n->losses, n->cap_losses * sizeof *n->losses);
    sn_graph_destroy(n->graph);
    sn_graph_destroy(n->training);
    sn_zone_destroy(n->slot_zone);
    sn_zone_destroy(n->zone);
    sn_free(e, SN_MEM_MODEL, n, sizeof *n);
}

/* --- variables -------------------------------------------------------------------------------- */
/* FNV-1a of the name: the stream of a variable's initial values. */
static uint64_t name_stream(const char *name) {
    uint64_t h = 1469598103934665603u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

uint64_t sn_network_initial_key(const sn_network *n, const char *name) {
    return sn_rng_key(n->seed, name_stream(name));
}

/* A layer that failed leaves names behind: a number counts only while it has this name. */
bool sn_network_find_variable(const sn_network *n, const char *name, uint32_t *home) {
    uint32_t i;
    if (!sn_names_find(&n->var_names, name, &i) || i >= n->n_vars ||
        strcmp(n->vars[i].name, name) != 0)
        return false;
    *home = i;
    return true;
}

snug_status sn_network_variable(sn_network *n, const sn_net_var *var, uint32_t *home,
                                snug_error *err) {
    uint32_t there;
    if (sn_network_find_variable(n, var->name, &there))
        return sn_fail(err, SNUG_E_INVALID, "there is a variable '%.80s' already; rename the layer",
                       var->name);
    size_t bytes;
    SNUG_TRY(snug_type_bytes(&var->type, &bytes, err));
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->vars, sizeof *n->vars, &n->cap_vars,
                     n->n_vars + 1, err));
    SNUG_TRY(sn_names_reserve(&n->var_names, err));
    sn_net_var copy = *var;
    if (var->slot && !n->slot_zone)
        SNUG_TRY(sn_zone_create(n->engine, SN_MEM_MODEL, &n->slot_zone, err));
    SNUG_TRY(sn_zone_text(var->slot ? n->slot_zone : n->zone, var->name, &copy.name, err));
    *home = (uint32_t)n->n_vars;
    sn_names_put(&n->var_names, copy.name, *home);
    n->n_weights += n->n_weights == n->n_vars && !copy.slot;
    n->vars[n->n_vars++] = copy;
    return SNUG_OK;
}

bool sn_network_trains(const sn_network *n, uint32_t home) {
    const sn_net_var *v = &n->vars[home];
    return !v->slot && v->trainable && n->layers[v->layer].trainable;
}

snug_status sn_network_read(const sn_network *n, sn_graph *g, uint32_t home, sn_value *out,
                            snug_error *err) {
    if (n->door)
        return n->door->read(n->door->ctx, g, home, out, err);
    uint32_t there;
    if (sn_graph_at_home(g, home, &there)) {
        *out = sn_graph_var_at(g, (sn_var){there})->last;
        return SNUG_OK;
    }
    const sn_net_var *v = &n->vars[home];
    sn_variable var = {.name = v->name,
                       .type = v->type,
                       .home = home,
                       .trainable = v->trainable,
                       .slot = v->slot,
                       .init = v->init};
    if (sn_recipe_source(&v->init)) /* which the home reads; graphs are text */
        var.init = (sn_recipe){.kind = SN_RECIPE_CONSTANT};
    return sn_graph_variable(g, &var, out, err);
}

size_t sn_network_n_weights(const sn_network *n) {
    return n->n_weights;
}

void sn_network_find_ranges(sn_network *n) {
    for (size_t i = 0; i < n->n_layers; i++)
        n->layers[i].first_var = n->layers[i].end_var = 0;
    for (uint32_t k = 0; k < n->n_vars; k++) {
        sn_layer *l = &n->layers[n->vars[k].layer];
        l->first_var = l->end_var == 0 ? k : l->first_var;
        l->end_var = k + 1;
    }
}

void sn_network_drop_slots(sn_network *n) {
    uint32_t kept = 0;
    if (!n->slot_zone) /* there are none */
        return;
    sn_names_forget(&n->var_names);
    for (uint32_t i = 0; i < n->n_vars; i++) {
        if (n->vars[i].slot) {
            sn_source_drop(sn_recipe_source(&n->vars[i].init));
            continue;
        }
        *n->vars[i].home = kept;
        sn_names_put(&n->var_names, n->vars[i].name, kept);
        n->vars[kept++] = n->vars[i];
    }
    n->n_vars = n->n_weights = kept;
    sn_network_find_ranges(n);
    sn_zone_destroy(n->slot_zone);
    n->slot_zone = NULL;
}

/* --- steps ------------------------------------------------------------------------------------ */
snug_status sn_network_build(sn_network *n, sn_graph *g, const sn_value *x, bool training,
                             sn_network_result *out, snug_error *err) {
    n->n_pending = n->n_losses = 0;
    return n->source->build(n, g, x, training, out, err);
}

snug_status sn_network_add_write(sn_network *n, const sn_pending_write *write, snug_error *err) {
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->pending, sizeof *n->pending,
                     &n->cap_pending, n->n_pending + 1, err));
    n->pending[n->n_pending++] = *write;
    return SNUG_OK;
}

snug_status sn_network_check_rows(const sn_network *n, uint32_t i, const snug_type *type,
                                  int64_t batch, snug_error *err) {
    char text[192];
    if (type->rank >= 1 && type->dims[0] == batch)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE,
                   "output '%s' is %s for a batch of %lld; its first axis must be the batch",
                   sn_network_output_name(n, i), snug_type_print(type, text, sizeof text),
                   (long long)batch);
}

/* --- settings --------------------------------------------------------------------------------- */
void sn_network_set_trainable(sn_network *n, size_t layer, bool trainable) {
    n->layers[layer].trainable = trainable;
}

void sn_network_set_seed(sn_network *n, uint64_t seed) {
    n->seed = seed;
    for (size_t i = 0; i < n->n_vars; i++)
        if (!n->vars[i].own_seed)
            n->vars[i].init.key = n->source->initial_key(n, (uint32_t)i);
}

/* Types of inputs and variables; the others follow from them. */
static void retype(sn_network *n, const sn_policy *policy) {
    n->policy = *policy;
    for (size_t i = 0; i < n->n_vars; i++)
        if (!n->vars[i].own_type)
            n->vars[i].type.dtype = policy->variable;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (sn_dtype_is_float(n->tensors[i].type.dtype))
            n->tensors[i].type.dtype = sn_dtype_computed(policy->compute);
}

snug_status sn_network_set_policy(sn_network *n, const sn_policy *policy, snug_error *err) {
    const sn_policy before = n->policy;
    snug_error again;
    if (sn_policy_equal(policy, &before))
        return SNUG_OK;
    retype(n, policy);
    const snug_status status = sn_network_infer_again(n, err);
    if (status != SNUG_OK) {
        retype(n, &before);
        (void)!sn_network_infer_again(n, &again); /* as it did before */
    }
    return status;
}
