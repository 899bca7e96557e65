/* network_add.c: inputs, layers and applications are added to a network. An application is checked
 * by building it alone on a scratch graph, which also makes the layer's variables and tells the
 * types and masks of its outputs. */
#include "nn/application.h"

#include <stdio.h>
#include <string.h>

/* --- tensors ---------------------------------------------------------------------------------- */
const snug_type *sn_network_type(const sn_network *n, uint32_t tensor) {
    return &n->tensors[tensor].type;
}

void sn_network_set_outputs(sn_network *n, const uint32_t *tensors, uint32_t count) {
    memcpy(n->outputs, tensors, count * sizeof *tensors);
    memset(n->output_names, 0, sizeof n->output_names);
    n->n_outputs = count;
}

snug_status sn_network_name_output(sn_network *n, uint32_t i, const char *name, snug_error *err) {
    return sn_zone_text(n->zone, name, &n->output_names[i], err);
}

const char *sn_network_output_name(const sn_network *n, uint32_t i) {
    if (n->output_names[i])
        return n->output_names[i];
    for (size_t k = 0; k < n->n_applications; k++) {
        const sn_application *a = &n->applications[k];
        if (n->outputs[i] >= a->first && n->outputs[i] < a->first + (uint32_t)a->n_out)
            return n->layers[a->layer].name;
    }
    return n->input_names[n->outputs[i]];
}

snug_status sn_network_add_input(sn_network *n, const char *name, const snug_type *input,
                                 uint32_t *tensor, snug_error *err) {
    SNUG_TRY(sn_network_check_input(input, err));
    if (n->n_applications > 0 || n->n_inputs == SN_MAX_TENSOR)
        return sn_fail(err, SNUG_E_INVALID,
                       "a model has at most %d inputs, and they come before its layers",
                       SN_MAX_TENSOR);
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->tensors, sizeof *n->tensors,
                     &n->cap_tensors, n->n_tensors + 1, err));
    SNUG_TRY(sn_zone_text(n->zone, name, &n->input_names[n->n_inputs], err));
    *tensor = n->n_inputs++;
    n->tensors[n->n_tensors++] = (sn_net_tensor){.type = *input};
    n->outputs[0] = *tensor;
    n->n_outputs = 1;
    return SNUG_OK;
}

/* --- layers ----------------------------------------------------------------------------------- */
uint32_t sn_network_find(const sn_network *n, const char *name) {
    uint32_t i;
    return sn_names_find(&n->layer_names, name, &i) ? i : (uint32_t)n->n_layers;
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
    uint32_t k = 0;
    SNUG_TRY(sn_names_reserve(&n->last_numbers, err));
    snprintf(name, sizeof name, "%s", cls->snake);
    if (sn_names_find(&n->last_numbers, cls->snake, &k)) /* what is below is taken */
        snprintf(name, sizeof name, "%s_%u", cls->snake, (unsigned)k);
    while (name_taken(n, name))
        snprintf(name, sizeof name, "%s_%u", cls->snake, (unsigned)++k);
    if (k > 0)
        sn_names_put(&n->last_numbers, cls->snake, k);
    return sn_zone_text(n->zone, name, out, err);
}

/* Everything but the name. */
static snug_status configure(sn_network *n, const sn_layer_spec *spec, sn_layer *l,
                             snug_error *err) {
    void *homes;
    SNUG_TRY(sn_zone_alloc(n->zone, SN_LAYER_MAX_VARS * sizeof *l->homes, &homes, err));
    SNUG_TRY(sn_zone_alloc(n->zone, l->cls->conf_bytes + 1, &l->conf, err));
    SNUG_TRY(sn_conf_defaults(l->cls, l->conf, err));
    l->homes = homes;
    l->trainable = true;
    l->policy = spec->policy;
    l->uncast = spec->uncast;
    const snug_status status =
        spec->fill ? spec->fill(spec->ctx, n, l->cls, l->conf, err) : SNUG_OK;
    return status == SNUG_OK ? SNUG_OK : sn_fail_in(err, status, "layer '%s'", l->name);
}

snug_status sn_layer_make(sn_network *n, const sn_layer_spec *spec, sn_layer **out,
                          snug_error *err) {
    const sn_layer_class *cls;
    void *block;
    SNUG_TRY(sn_layer_class_find(spec->class_name, &cls, err));
    SNUG_TRY(sn_zone_alloc(n->zone, sizeof(sn_layer), &block, err));
    sn_layer *const l = block;
    *l = (sn_layer){.cls = cls};
    const bool named = spec->name && spec->name[0];
    SNUG_TRY(sn_zone_text(n->zone, named ? spec->name : cls->snake, &l->name, err));
    SNUG_TRY(configure(n, spec, l, err));
    *out = l;
    return SNUG_OK;
}

/* --- applications ----------------------------------------------------------------------------- */
static snug_status scratch_input(sn_graph *g, char kind, int k, const snug_type *type,
                                 sn_value *out, snug_error *err) {
    char name[16];
    snprintf(name, sizeof name, "%c%d", kind, k);
    return sn_graph_input(g, name, type, out, err);
}

/* There is room for the tensors; they are counted by the caller. */
static snug_status build_alone(sn_network *n, sn_graph *g, sn_application *a, snug_error *err) {
    sn_applied io;
    for (int k = 0; k < a->n_in; k++) {
        const sn_net_tensor *t = &n->tensors[a->in[k]];
        SNUG_TRY(scratch_input(g, 'x', k, &t->type, &io.in[k], err));
        io.in_mask[k] = SN_NO_VALUE;
        if (t->masked)
            SNUG_TRY(scratch_input(g, 'm', k, &t->mask, &io.in_mask[k], err));
    }
    SNUG_TRY(sn_network_build_one(n, a, g, false, &io, err));
    a->n_out = io.n_out;
    for (int k = 0; k < a->n_out; k++)
        n->tensors[a->first + (uint32_t)k] = (sn_net_tensor){.type = *sn_graph_type(g, io.out[k])};
    sn_net_tensor *const first = &n->tensors[a->first];
    first->masked = sn_value_ok(io.out_mask);
    if (first->masked)
        first->mask = *sn_graph_type(g, io.out_mask);
    for (int k = 0; io.ends_masks && k < a->n_in; k++)
        n->tensors[a->in[k]].masked = false;
    return SNUG_OK;
}

static snug_status infer_outputs(sn_network *n, sn_application *a, snug_error *err) {
    sn_graph *g;
    SNUG_TRY(sn_graph_create(n->engine, &g, err));
    const snug_status status = build_alone(n, g, a, err);
    sn_graph_destroy(g);
    return status;
}

snug_status sn_network_infer_again(sn_network *n, snug_error *err) {
    for (size_t i = 0; i < n->n_applications; i++) {
        sn_application *const a = &n->applications[i];
        SNUG_TRY(infer_outputs(n, a, err));
        if (a->use == 0)
            n->layers[a->layer].output = *sn_network_type(n, a->first);
    }
    return SNUG_OK;
}

static snug_status reserve(sn_network *n, snug_error *err) {
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->layers, sizeof *n->layers,
                     &n->cap_layers, n->n_layers + 1, err));
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->tensors, sizeof *n->tensors,
                     &n->cap_tensors, n->n_tensors + SN_MAX_TENSOR, err));
    SNUG_TRY(sn_names_reserve(&n->layer_names, err));
    return sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->applications, sizeof *n->applications,
                   &n->cap_applications, n->n_applications + 1, err);
}

/* Texts of the spec are the caller's: the network keeps copies. */
static snug_status copy_texts(sn_network *n, const sn_layer_spec *spec, sn_application *a,
                              snug_error *err) {
    for (int k = 0; spec->role && k < spec->n_in; k++)
        if (spec->role[k])
            SNUG_TRY(sn_zone_text(n->zone, spec->role[k], &a->role[k], err));
    a->call = "";
    if (spec->call && spec->call[0])
        SNUG_TRY(sn_zone_text(n->zone, spec->call, &a->call, err));
    return SNUG_OK;
}

/* Appends an application of a layer; there is room for it. */
static snug_status append(sn_network *n, uint32_t layer, const sn_layer_spec *spec,
                          snug_error *err) {
    sn_layer *const l = &n->layers[layer];
    int n_in = spec->n_in;
    for (int k = 0; spec->role && k < spec->n_in; k++)
        n_in -= sn_role_is_mask(spec->role[k]);
    if (n_in < l->cls->min_in || n_in > l->cls->max_in)
        return sn_fail(err, SNUG_E_INVALID, "%s (%s): it is applied to %d tensors, it takes %d%s",
                       l->name, l->cls->class_name, n_in, l->cls->min_in,
                       l->cls->max_in > l->cls->min_in ? " or more" : "");
    sn_application a = {
        .layer = layer, .use = l->uses, .n_in = spec->n_in, .first = (uint32_t)n->n_tensors};
    memcpy(a.in, spec->in, (size_t)spec->n_in * sizeof *spec->in);
    SNUG_TRY(copy_texts(n, spec, &a, err));
    SNUG_TRY(infer_outputs(n, &a, err));
    n->applications[n->n_applications++] = a;
    l->uses++;
    n->n_tensors += (size_t)a.n_out;
    sn_network_set_outputs(n, &a.first, 1);
    return SNUG_OK;
}

/* --- indices ---------------------------------------------------------------------------------- */
/* The application whose first output the tensor is, or NULL: they stand in the order of tensors. */
static const sn_application *maker_of(const sn_network *n, uint32_t tensor) {
    size_t a = 0, b = n->n_applications;
    while (a < b) {
        const size_t mid = a + (b - a) / 2;
        if (n->applications[mid].first < tensor)
            a = mid + 1;
        else
            b = mid;
    }
    const bool is_first = a < n->n_applications && n->applications[a].first == tensor;
    return is_first ? &n->applications[a] : NULL;
}

/* Keras' Input is a float unless it says otherwise, and Embedding casts: an input that nothing but
 * embeddings reads is fed indices here. Returns the input behind the tensor, or n_inputs. */
static uint32_t input_behind(const sn_network *n, uint32_t tensor) {
    while (tensor >= n->n_inputs) {
        const sn_application *a = maker_of(n, tensor);
        if (!a || !sn_class_is(n->layers[a->layer].cls, SN_LAYER_InputLayer))
            return n->n_inputs;
        tensor = a->in[0];
    }
    return tensor;
}

static bool is_read(const sn_network *n, uint32_t input) {
    for (size_t i = 0; i < n->n_applications; i++)
        for (int k = 0; k < n->applications[i].n_in; k++)
            if (input_behind(n, n->applications[i].in[k]) == input &&
                !sn_class_is(n->layers[n->applications[i].layer].cls, SN_LAYER_InputLayer))
                return true;
    return false;
}

static void set_input_dtype(sn_network *n, uint32_t input, snug_dtype dtype) {
    for (uint32_t t = 0; t < n->n_tensors; t++)
        if (input_behind(n, t) == input)
            n->tensors[t].type.dtype = dtype;
    for (size_t i = 0; i < n->n_applications; i++)
        if (input_behind(n, n->applications[i].first) == input)
            n->layers[n->applications[i].layer].output.dtype = dtype;
}

/* The layer stands behind the others, not counted yet: it becomes one of them with its first
 * application. */
static snug_status append_new(sn_network *n, const sn_layer_spec *spec, snug_error *err) {
    sn_layer *const l = &n->layers[n->n_layers];
    const size_t n_vars = n->n_vars;
    const uint32_t input = input_behind(n, spec->in[0]);
    const snug_dtype dtype = n->tensors[spec->in[0]].type.dtype;
    const bool turns = sn_class_is(l->cls, SN_LAYER_Embedding) && input < n->n_inputs &&
                       sn_dtype_is_float(dtype) && !is_read(n, input);
    if (turns)
        set_input_dtype(n, input, SNUG_I32);
    const snug_status status = append(n, (uint32_t)n->n_layers, spec, err);
    if (status != SNUG_OK) {
        n->n_vars = n_vars;
        n->n_weights = n->n_weights < n_vars ? n->n_weights : n_vars;
        if (turns)
            set_input_dtype(n, input, dtype);
        return status;
    }
    l->output = *sn_network_type(n, n->outputs[0]);
    l->first_var = (uint32_t)n_vars;
    l->end_var = (uint32_t)n->n_vars;
    sn_names_put(&n->layer_names, l->name, (uint32_t)n->n_layers);
    n->n_layers++;
    return SNUG_OK;
}

/* --- the doors -------------------------------------------------------------------------------- */
snug_status sn_network_add_on(sn_network *n, const sn_layer_spec *spec, uint32_t *tensor,
                              snug_error *err) {
    sn_layer layer = {.cls = NULL};
    SNUG_TRY(sn_layer_class_find(spec->class_name, &layer.cls, err));
    SNUG_TRY(reserve(n, err));
    SNUG_TRY(choose_name(n, layer.cls, spec->name, &layer.name, err));
    SNUG_TRY(configure(n, spec, &layer, err));
    n->layers[n->n_layers] = layer;
    SNUG_TRY(append_new(n, spec, err));
    *tensor = n->outputs[0];
    return SNUG_OK;
}

snug_status sn_network_add(sn_network *n, const char *class_name, const char *name,
                           sn_conf_fill fill, void *ctx, snug_error *err) {
    const sn_layer_spec spec = {.class_name = class_name,
                                .name = name,
                                .fill = fill,
                                .ctx = ctx,
                                .in = (const uint32_t[]){n->outputs[0]},
                                .n_in = 1};
    uint32_t tensor;
    return sn_network_add_on(n, &spec, &tensor, err);
}

snug_status sn_network_apply(sn_network *n, uint32_t layer, const sn_layer_spec *spec,
                             uint32_t *tensor, snug_error *err) {
    SNUG_TRY(reserve(n, err));
    SNUG_TRY(append(n, layer, spec, err));
    *tensor = n->outputs[0];
    return SNUG_OK;
}
