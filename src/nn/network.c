/* network.c: the list of layers and what building it into a graph means.
 *
 * Invariants:
 * 1. vars[i] is the variable with home i. Weights stand in Keras' order (layer by layer, in
 * creation order), slots of the optimizer behind all of them.
 * 2. layer.n_vars is 0 before a layer's first build, which happens when it is added (its output is
 * inferred on a scratch graph); every later build asks for the same variables in the same order.
 * 3. Application i reads only tensors up to i, so the list is an order to build in.
 * 4. A failed call leaves counts as they were; what it took from the zone stays until the network
 * is destroyed. */
#include "nn/nn.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- life ------------------------------------------------------------------------------------- */
static snug_status check_input(const snug_type *input, snug_error *err) {
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

snug_status sn_network_create(snug_engine *e, const char *name, const snug_type *input,
                              sn_network **out, snug_error *err) {
    void *block;
    SNUG_TRY(check_input(input, err));
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_MODEL, sizeof(sn_network), &block, err));
    sn_network *n = block;
    n->engine = e;
    n->var_names = (sn_names){.engine = e, .category = SN_MEM_MODEL};
    n->input = *input;
    n->variable_dtype = n->compute_dtype = input->dtype == SNUG_F64 ? SNUG_F64 : SNUG_F32;
    snug_status status = sn_zone_create(e, SN_MEM_MODEL, &n->zone, err);
    if (status == SNUG_OK)
        status = sn_zone_text(n->zone, name && name[0] ? name : "sequential", &n->name, err);
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
    sn_free(e, SN_MEM_MODEL, n->layers, n->cap_layers * sizeof *n->layers);
    sn_free(e, SN_MEM_MODEL, n->applications, n->cap_applications * sizeof *n->applications);
    sn_free(e, SN_MEM_MODEL, n->vars, n->cap_vars * sizeof *n->vars);
    sn_names_clear(&n->var_names);
    sn_free(e, SN_MEM_MODEL, n->pending, n->cap_pending * sizeof *n->pending);
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

static uint64_t initial_key(const sn_network *n, const char *name) {
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
    n->vars[n->n_vars++] = copy;
    return SNUG_OK;
}

bool sn_network_trains(const sn_network *n, uint32_t home) {
    const sn_net_var *v = &n->vars[home];
    return !v->slot && v->trainable && n->layers[v->layer].trainable;
}

snug_status sn_network_read(const sn_network *n, sn_graph *g, uint32_t home, sn_value *out,
                            snug_error *err) {
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *there = sn_graph_var_at(g, (sn_var){i});
        if (there->home == home) {
            *out = there->last;
            return SNUG_OK;
        }
    }
    const sn_net_var *v = &n->vars[home];
    const sn_variable var = {.name = v->name,
                             .type = v->type,
                             .home = home,
                             .trainable = v->trainable,
                             .slot = v->slot,
                             .init = v->init};
    return sn_graph_variable(g, &var, out, err);
}

size_t sn_network_n_weights(const sn_network *n) {
    size_t count = 0;
    while (count < n->n_vars && !n->vars[count].slot)
        count++;
    return count;
}

void sn_network_drop_slots(sn_network *n) {
    uint32_t kept = 0;
    sn_names_forget(&n->var_names);
    for (uint32_t i = 0; i < n->n_vars; i++) {
        if (n->vars[i].slot)
            continue;
        sn_layer *const l = &n->layers[n->vars[i].layer];
        for (int k = 0; k < l->n_vars; k++)
            l->homes[k] = l->homes[k] == i ? kept : l->homes[k];
        sn_names_put(&n->var_names, n->vars[i].name, kept);
        n->vars[kept++] = n->vars[i];
    }
    n->n_vars = kept;
    sn_zone_destroy(n->slot_zone);
    n->slot_zone = NULL;
}

void sn_network_set_trainable(sn_network *n, size_t layer, bool trainable) {
    n->layers[layer].trainable = trainable;
}

void sn_network_set_seed(sn_network *n, uint64_t seed) {
    n->seed = seed;
    for (size_t i = 0; i < n->n_vars; i++)
        if (!n->vars[i].own_seed)
            n->vars[i].init.key = initial_key(n, n->vars[i].name);
}

void sn_network_set_policy(sn_network *n, snug_dtype variable, snug_dtype compute) {
    n->variable_dtype = variable;
    n->compute_dtype = compute;
    if (sn_dtype_is_float(n->input.dtype))
        n->input.dtype = compute;
    for (size_t i = 0; i < n->n_vars; i++)
        n->vars[i].type.dtype = variable;
    for (size_t i = 0; i < n->n_layers; i++)
        if (sn_dtype_is_float(n->layers[i].output.dtype))
            n->layers[i].output.dtype = compute;
    for (size_t i = 0; i < n->n_applications; i++)
        if (sn_dtype_is_float(n->applications[i].output.dtype))
            n->applications[i].output.dtype = compute;
}

void sn_network_set_dtype(sn_network *n, snug_dtype dtype) {
    sn_network_set_policy(n, dtype, dtype);
}

/* --- what build functions call ---------------------------------------------------------------- */
void sn_layer_refuse(sn_layer_call *c, snug_status code, const char *format, ...) {
    if (c->b->error.code != SNUG_OK)
        return;
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sn_fail(&c->b->error, code, "%s (%s): %s", c->layer->name, c->layer->cls->class_name, text);
}

static snug_status make_variable(sn_layer_call *c, const char *var, const snug_type *type,
                                 const sn_init *init, bool trainable, uint32_t *home) {
    sn_network *const n = c->network;
    char name[160];
    snug_error *const err = &c->b->error;
    if (snprintf(name, sizeof name, "%s/%s", c->layer->name, var) >= (int)sizeof name)
        return sn_fail(err, SNUG_E_INVALID, "layer name '%.60s...' is too long", c->layer->name);
    sn_net_var v = {.name = name,
                    .type = *type,
                    .trainable = trainable,
                    .own_seed = init->seed >= 0,
                    .layer = (uint32_t)(c->layer - n->layers)};
    v.type.dtype = n->variable_dtype;
    SNUG_TRY(sn_init_recipe(init, &v.type, initial_key(n, name), &v.init, err));
    return sn_network_variable(n, &v, home, err);
}

sn_value sn_layer_variable(sn_layer_call *c, const char *var, const snug_type *type,
                           const sn_init *init, bool trainable) {
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    sn_layer *const l = c->layer;
    const int k = c->next_var++;
    if (k >= SN_LAYER_MAX_VARS) {
        sn_layer_refuse(c, SNUG_E_INTERNAL, "more than %d variables", SN_LAYER_MAX_VARS);
        return SN_NO_VALUE;
    }
    if (k >= l->n_vars) {
        if (make_variable(c, var, type, init, trainable, &l->homes[k]) != SNUG_OK)
            return SN_NO_VALUE;
        l->n_vars = k + 1;
    }
    const snug_type *there = &c->network->vars[l->homes[k]].type;
    if (!sn_dims_equal(there, type)) {
        char a[192], b[192];
        sn_layer_refuse(c, SNUG_E_SHAPE, "%s is %s, this input wants %s", var,
                        snug_type_print(there, a, sizeof a), snug_type_print(type, b, sizeof b));
        return SN_NO_VALUE;
    }
    sn_value value;
    if (sn_network_read(c->network, c->b->graph, l->homes[k], &value, &c->b->error) != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_cast(c->b, value, c->network->compute_dtype);
}

void sn_layer_average(sn_layer_call *c, int index, sn_value value, double momentum) {
    sn_network *const n = c->network;
    const sn_value in_storage = sn_build_cast(c->b, value, n->variable_dtype);
    if (c->b->error.code != SNUG_OK)
        return;
    if (sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->pending, sizeof *n->pending, &n->cap_pending,
                n->n_pending + 1, &c->b->error) != SNUG_OK)
        return;
    n->pending[n->n_pending++] = (sn_pending_average){c->layer->homes[index], in_storage, momentum};
}

snug_status sn_network_updates(sn_network *n, sn_graph *g, snug_error *err) {
    sn_graph_set_part(g, SN_PART_UPDATE);
    for (size_t i = 0; i < n->n_pending; i++) {
        const sn_pending_average *p = &n->pending[i];
        sn_builder b = sn_builder_on(g);
        sn_value in[2] = {SN_NO_VALUE, p->value};
        SNUG_TRY(sn_graph_set_owner(g, n->layers[n->vars[p->home].layer].name, err));
        SNUG_TRY(sn_network_read(n, g, p->home, &in[0], err));
        sn_attrs a;
        sn_attrs_default(SN_OP_moving_average, &a);
        a.momentum.momentum = (int64_t)sn_build_param(&b, "", p->momentum).i;
        sn_build(&b, SN_OP_moving_average, &a, in, 2);
        SNUG_TRY(sn_builder_done(&b, err));
    }
    return SNUG_OK;
}

/* --- building --------------------------------------------------------------------------------- */
/* in[k] is the value of the application's tensor k. */
static snug_status build_layer(sn_network *n, const sn_application *a, sn_graph *g,
                               const sn_value *in, bool training, sn_value *out, snug_error *err) {
    sn_layer *const l = &n->layers[a->layer];
    sn_builder b = sn_builder_on(g);
    sn_layer_call c = {.b = &b,
                       .network = n,
                       .layer = l,
                       .conf = l->conf,
                       .training = training,
                       .n_in = a->n_in,
                       .use = a->use,
                       .out = SN_NO_VALUE};
    memcpy(c.in, in, (size_t)a->n_in * sizeof *in);
    SNUG_TRY(sn_graph_set_owner(g, l->name, err));
    l->cls->build(&c);
    SNUG_TRY(sn_builder_done(&b, err));
    *out = c.out;
    return SNUG_OK;
}

snug_status sn_network_build(sn_network *n, sn_graph *g, sn_value x, bool training, sn_value *out,
                             snug_error *err) {
    void *block;
    size_t bytes =
        (n->n_applications + 1) * sizeof(sn_value); /* both counts are small: one per layer */
    SNUG_TRY(sn_alloc(n->engine, SN_MEM_MODEL, bytes, &block, err));
    sn_value *const tensors = block;
    snug_status status = SNUG_OK;
    tensors[0] = x;
    n->n_pending = 0;
    for (size_t i = 0; i < n->n_applications && status == SNUG_OK; i++) {
        const sn_application *a = &n->applications[i];
        sn_value in[SN_MAX_IN];
        for (int k = 0; k < a->n_in; k++)
            in[k] = tensors[a->in[k]];
        status = build_layer(n, a, g, in, training, &tensors[i + 1], err);
    }
    if (status == SNUG_OK)
        *out = tensors[n->output];
    sn_free(n->engine, SN_MEM_MODEL, block, bytes);
    return status;
}

/* --- tensors ---------------------------------------------------------------------------------- */
const snug_type *sn_network_type(const sn_network *n, uint32_t tensor) {
    return tensor ? &n->applications[tensor - 1].output : &n->input;
}

void sn_network_set_output(sn_network *n, uint32_t tensor) {
    n->output = tensor;
}

/* --- adding ----------------------------------------------------------------------------------- */
uint32_t sn_network_find(const sn_network *n, const char *name) {
    uint32_t i = 0;
    while (i < n->n_layers && strcmp(n->layers[i].name, name) != 0)
        i++;
    return i;
}

static bool name_taken(const sn_network *n, const char *name) {
    return sn_network_find(n, name) < n->n_layers;
}

static snug_status choose_name(sn_network *n, const sn_layer_class *cls, const char *wanted,
                               const char **out, snug_error *err) {
    char name[128];
    if (wanted && wanted[0]) {
        if (strlen(wanted) >= sizeof name)
            return sn_fail(err, SNUG_E_INVALID, "layer name '%.60s...' is longer than %zu letters",
                           wanted, sizeof name - 1);
        if (name_taken(n, wanted))
            return sn_fail(err, SNUG_E_INVALID,
                           "there is a layer '%.60s' already; names must be unique", wanted);
        return sn_zone_text(n->zone, wanted, out, err);
    }
    snprintf(name, sizeof name, "%s", cls->snake);
    for (int k = 1; name_taken(n, name); k++)
        snprintf(name, sizeof name, "%s_%d", cls->snake, k);
    return sn_zone_text(n->zone, name, out, err);
}

/* Builds the application alone on a scratch graph: checks the layer's configuration and its inputs,
 * registers its variables, gives the output's type. */
static snug_status infer_output(sn_network *n, sn_application *a, snug_error *err) {
    sn_graph *g;
    SNUG_TRY(sn_graph_create(n->engine, &g, err));
    sn_value x[SN_MAX_IN], y;
    snug_status status = SNUG_OK;
    for (int k = 0; k < a->n_in && status == SNUG_OK; k++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", k);
        status = sn_graph_input(g, name, sn_network_type(n, a->in[k]), &x[k], err);
    }
    if (status == SNUG_OK)
        status = build_layer(n, a, g, x, false, &y, err);
    if (status == SNUG_OK)
        a->output = *sn_graph_type(g, y);
    sn_graph_destroy(g);
    return status;
}

static snug_status reserve(sn_network *n, snug_error *err) {
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->layers, sizeof *n->layers,
                     &n->cap_layers, n->n_layers + 1, err));
    return sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->applications, sizeof *n->applications,
                   &n->cap_applications, n->n_applications + 1, err);
}

static int count_uses(const sn_network *n, uint32_t layer) {
    int uses = 0;
    for (size_t i = 0; i < n->n_applications; i++)
        uses += n->applications[i].layer == layer;
    return uses;
}

/* Appends an application of a layer; there is room for it. */
static snug_status append(sn_network *n, uint32_t layer, const uint32_t *in, int n_in,
                          snug_error *err) {
    const sn_layer *l = &n->layers[layer];
    if (n_in < l->cls->min_in || n_in > l->cls->max_in)
        return sn_fail(err, SNUG_E_INVALID, "%s (%s): it is applied to %d tensors, it takes %d%s",
                       l->name, l->cls->class_name, n_in, l->cls->min_in,
                       l->cls->max_in > l->cls->min_in ? " or more" : "");
    sn_application a = {.layer = layer, .use = count_uses(n, layer), .n_in = n_in};
    memcpy(a.in, in, (size_t)n_in * sizeof *in);
    SNUG_TRY(infer_output(n, &a, err));
    n->applications[n->n_applications++] = a;
    n->output = (uint32_t)n->n_applications;
    return SNUG_OK;
}

/* A network that starts with an embedding is fed indices; an integer input stays what it is. */
static bool wants_indices(const sn_network *n, const sn_layer_class *cls) {
    bool first = true;
    for (size_t i = 0; i < n->n_layers; i++)
        first = first && strcmp(n->layers[i].cls->class_name, "InputLayer") == 0;
    return first && strcmp(cls->class_name, "Embedding") == 0;
}

static void set_input_dtype(sn_network *n, snug_dtype dtype) {
    n->input.dtype = dtype;
    for (size_t i = 0; i < n->n_layers; i++)
        n->layers[i].output.dtype = dtype;
    for (size_t i = 0; i < n->n_applications; i++)
        n->applications[i].output.dtype = dtype;
}

/* The layer stands behind the others, not counted yet: it becomes one of them with its first
 * application. */
static snug_status append_new(sn_network *n, const sn_layer_spec *spec, snug_error *err) {
    sn_layer *const l = &n->layers[n->n_layers];
    const snug_dtype dtype = n->input.dtype;
    const size_t n_vars = n->n_vars;
    if (sn_dtype_is_float(dtype) && wants_indices(n, l->cls))
        set_input_dtype(n, SNUG_I32);
    const snug_status status = append(n, (uint32_t)n->n_layers, spec->in, spec->n_in, err);
    if (status != SNUG_OK) {
        n->n_vars = n_vars;
        if (n->input.dtype != dtype)
            set_input_dtype(n, dtype);
        return status;
    }
    l->output = *sn_network_type(n, n->output);
    n->n_layers++;
    return SNUG_OK;
}

snug_status sn_network_add_on(sn_network *n, const sn_layer_spec *spec, uint32_t *tensor,
                              snug_error *err) {
    const sn_layer_class *cls;
    SNUG_TRY(sn_layer_class_find(spec->class_name, &cls, err));
    SNUG_TRY(reserve(n, err));
    sn_layer layer = {.cls = cls, .trainable = true};
    SNUG_TRY(choose_name(n, cls, spec->name, &layer.name, err));
    SNUG_TRY(sn_zone_alloc(n->zone, cls->conf_bytes + 1, &layer.conf, err));
    SNUG_TRY(sn_conf_defaults(cls, layer.conf, err));
    const snug_status status = spec->fill ? spec->fill(spec->ctx, cls, layer.conf, err) : SNUG_OK;
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "layer '%s'", layer.name);
    n->layers[n->n_layers] = layer;
    SNUG_TRY(append_new(n, spec, err));
    *tensor = n->output;
    return SNUG_OK;
}

snug_status sn_network_add(sn_network *n, const char *class_name, const char *name,
                           sn_conf_fill fill, void *ctx, snug_error *err) {
    const sn_layer_spec spec = {.class_name = class_name,
                                .name = name,
                                .fill = fill,
                                .ctx = ctx,
                                .in = (const uint32_t[]){n->output},
                                .n_in = 1};
    uint32_t tensor;
    return sn_network_add_on(n, &spec, &tensor, err);
}

snug_status sn_network_apply(sn_network *n, uint32_t layer, const uint32_t *in, int n_in,
                             uint32_t *tensor, snug_error *err) {
    SNUG_TRY(reserve(n, err));
    SNUG_TRY(append(n, layer, in, n_in, err));
    *tensor = n->output;
    return SNUG_OK;
}
