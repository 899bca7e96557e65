/* layer_call.c: an application of a layer becomes nodes of a graph: what build functions call, and
 * who calls them.
 *
 * 1. Errors stick in the call's builder; the first one, with the layer's name, is the answer.
 * 2. Variables are made at a layer's first build and only looked up later.
 * 3. State is not written here: writes and losses are put on the network's lists, for the step to
 * place behind the check of the loss. */
#include "nn/application.h"

#include "base/real.h"
#include "base/rng.h"
#include "nn/regularizer.h"
#include "base/setting_text.h"

#include <snug/layer.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- errors and keywords ---------------------------------------------------------------------- */
void sn_layer_refuse(sn_layer_call *c, snug_status code, const char *format, ...) {
    if (c->b->error.code != SNUG_OK)
        return;
    char text[400];
    va_list args;
    va_start(args, format);
    sn_print_list(text, sizeof text, format, args);
    va_end(args);
    sn_fail(&c->b->error, code, "%s (%s): %s", c->path, c->layer->cls->class_name, text);
}

void sn_call_text(sn_layer_call *c, const char *key, char *value, size_t size) {
    value[0] = 0;
    if (c->call && c->b->error.code == SNUG_OK &&
        sn_conf_text_get(c->call, key, value, size, &c->b->error) != SNUG_OK)
        value[0] = 0;
}

bool sn_call_flag(sn_layer_call *c, const char *key, bool otherwise) {
    char text[16];
    bool flag = otherwise;
    sn_call_text(c, key, text, sizeof text);
    if (text[0] && !sn_text_flag(text, &flag))
        sn_layer_refuse(c, SNUG_E_INVALID, "%s=%s is neither true nor false", key, text);
    return flag;
}

bool sn_role_is_mask(const char *role) {
    return role && strcmp(role, "mask") == 0;
}

int sn_call_role(const sn_layer_call *c, const char *role, int k) {
    for (int i = 0; i < c->n_in; i++)
        if (c->role[i] && strcmp(c->role[i], role) == 0 && k-- == 0)
            return i;
    return -1;
}

/* --- variables -------------------------------------------------------------------------------- */
static const char *text_of(const sn_layer *l, const char *key) {
    const sn_conf_field *f = sn_conf_find(l->cls, key);
    return f && f->kind == SN_CONF_TEXT ? (const char *)l->conf + f->offset : NULL;
}

/* The text of "<variable>_regularizer" of the layer, lent; NULL when its class has none. Keras says
 * depthwise_regularizer of a depthwise_kernel, and of the kernel of a depthwise layer. */
static const char *rule_of(const sn_layer *l, const char *var, const char *kind) {
    char key[64];
    const char *const slash = strrchr(var, '/'), *const name = slash ? slash + 1 : var;
    const char *const kernel = strstr(name, "_kernel");
    snprintf(key, sizeof key, "%s_%s", name, kind);
    const char *text = text_of(l, key);
    if (!text && kernel) {
        snprintf(key, sizeof key, "%.*s_%s", (int)(kernel - name), name, kind);
        text = text_of(l, key);
    }
    if (!text && strcmp(name, "kernel") == 0) {
        snprintf(key, sizeof key, "depthwise_%s", kind);
        text = text_of(l, key);
    }
    return text;
}

static snug_status make_variable(sn_layer_call *c, const char *var, const snug_type *type,
                                 const sn_init *init, bool trainable) {
    sn_network *const n = c->network;
    sn_layer *const l = c->layer;
    char name[sizeof c->path + 64];
    snug_error *const err = &c->b->error;
    snprintf(name, sizeof name, "%s/%s", c->path, var);
    sn_net_var v = {.name = name,
                    .type = *type,
                    .trainable = trainable,
                    .own_seed = init->seed >= 0,
                    .layer = c->top,
                    .home = &l->homes[l->n_vars],
                    .regularizer = rule_of(l, var, "regularizer"),
                    .constraint = rule_of(l, var, "constraint")};
    v.type.dtype = c->policy.variable;
    v.own_type = c->policy.own;
    SNUG_TRY(sn_init_recipe(init, &v.type, sn_network_initial_key(n, name), &v.init, err));
    const snug_status rules = sn_rules_check(&v, err);
    if (rules != SNUG_OK)
        return sn_fail_in(err, rules, "%s", name);
    SNUG_TRY(sn_network_variable(n, &v, v.home, err));
    l->n_vars++;
    return SNUG_OK;
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
    if (k >= l->n_vars && make_variable(c, var, type, init, trainable) != SNUG_OK)
        return SN_NO_VALUE;
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
    value = sn_build_cast(c->b, value, c->reads);
    return c->rule ? c->rule->use(c->rule->wrapper, c, k, value) : value;
}

/* A seed of the layer's own goes with the parameter, other than 0; draws of one call differ. */
static int64_t own_key(sn_layer_call *c) {
    const sn_conf_field *f = sn_conf_find(c->layer->cls, "seed");
    const int64_t seed = f ? *(const int64_t *)((const char *)c->layer->conf + f->offset) : -1;
    const uint64_t draw = (uint64_t)c->use << 32 | (uint64_t)c->next_key++;
    return seed < 0 ? 0 : (int64_t)(sn_rng_key((uint64_t)seed, draw) | 1);
}

int64_t sn_layer_key(sn_layer_call *c) {
    char name[sizeof c->path + 40];
    if (c->use == 0)
        snprintf(name, sizeof name, "dropout/%s/key", c->path);
    else
        snprintf(name, sizeof name, "dropout/%s/%d/key", c->path, c->use);
    return (int64_t)sn_build_step_key(c->b, name, own_key(c)).i;
}

/* --- writes and losses, for the end of the step ----------------------------------------------- */
static void add_write(sn_layer_call *c, uint32_t home, sn_value value, double momentum) {
    sn_network *const n = c->network;
    const sn_value in_storage = sn_build_cast(c->b, value, n->vars[home].type.dtype);
    if (c->b->error.code != SNUG_OK)
        return;
    const sn_pending_write write = {home, in_storage, momentum};
    const snug_status status = sn_network_add_write(n, &write, &c->b->error);
    (void)status; /* sticks in b */
}

void sn_layer_average(sn_layer_call *c, int index, sn_value value, double momentum) {
    if (c->b->error.code == SNUG_OK)
        add_write(c, c->layer->homes[index], value, momentum);
}

void sn_layer_assign(sn_layer_call *c, int index, sn_value value) {
    sn_layer_average(c, index, value, 0);
}

/* Of a variable that is no weight and has a home. */
static sn_value read_home(sn_layer_call *c, uint32_t home) {
    sn_value value;
    if (sn_network_read(c->network, c->b->graph, home, &value, &c->b->error) != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_cast(c->b, value, c->policy.compute);
}

sn_value sn_layer_kept(sn_layer_call *c, const char *name, const snug_type *type, uint32_t *home) {
    sn_network *const n = c->network;
    char full[sizeof c->path + 64];
    snug_error *const err = &c->b->error;
    if (err->code != SNUG_OK)
        return SN_NO_VALUE;
    snprintf(full, sizeof full, "%s/%s", c->path, name);
    sn_net_var v = {.name = full,
                    .type = *type,
                    .slot = true,
                    .kept = true,
                    .own_seed = true,
                    .init = {.kind = SN_RECIPE_CONSTANT},
                    .layer = c->top};
    v.type.dtype = c->policy.variable;
    v.own_type = c->policy.own;
    const bool there = sn_network_find_variable(n, full, home);
    if (there && !sn_dims_equal(&n->vars[*home].type, type)) {
        sn_layer_refuse(c, SNUG_E_SHAPE,
                        "what it keeps is of a batch of %lld, this one has %lld; use one batch "
                        "size, and as many rows as fill whole batches",
                        (long long)n->vars[*home].type.dims[0], (long long)type->dims[0]);
        return SN_NO_VALUE;
    }
    if (!there && sn_network_variable(n, &v, home, err) != SNUG_OK)
        return SN_NO_VALUE;
    return read_home(c, *home);
}

/* The variable of an array: its home starts from the configuration's numbers. */
static snug_status make_array(sn_layer_call *c, const char *name, const sn_conf_array *array,
                              const snug_type *type, uint32_t *home) {
    sn_network *const n = c->network;
    snug_error *const err = &c->b->error;
    sn_source *source;
    SNUG_TRY(
        sn_source_from_memory(n->engine, array->v, SNUG_F64, (uint64_t)array->n, &source, err));
    const sn_net_var v = {.name = name,
                          .type = *type,
                          .slot = true,
                          .own_type = c->policy.own,
                          .own_seed = true,
                          .init = sn_source_recipe(source, 0),
                          .layer = c->top};
    const snug_status status = sn_network_variable(n, &v, home, err);
    if (status != SNUG_OK)
        sn_source_drop(source);
    return status;
}

/* Whether the extents of all inputs are known: else shapes alone are asked for. */
static bool is_concrete(const sn_layer_call *c) {
    for (int i = 0; i < c->n_in; i++)
        if (!sn_type_known(sn_graph_type(c->b->graph, c->in[i])))
            return false;
    return true;
}

sn_value sn_layer_array(sn_layer_call *c, const sn_conf_array *array, const int64_t *dims,
                        int rank) {
    sn_network *const n = c->network;
    snug_type type = {.dtype = c->policy.compute, .rank = rank};
    char name[sizeof c->path + 64];
    uint32_t home;
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    if (array->n <= SN_MAX_REALS)
        return sn_build_reshape(c->b, sn_layer_vector(c, array->v, array->n, false), dims, rank);
    memcpy(type.dims, dims, (size_t)rank * sizeof *dims);
    if (!is_concrete(c))
        return sn_build_fill(c->b, &type, 0);
    snprintf(name, sizeof name, "%s/array", c->path);
    type.dtype = c->policy.variable;
    if (!sn_network_find_variable(n, name, &home) &&
        make_array(c, name, array, &type, &home) != SNUG_OK)
        return SN_NO_VALUE;
    return read_home(c, home);
}

void sn_layer_keep(sn_layer_call *c, uint32_t home, sn_value value) {
    add_write(c, home, value, 0);
}

void sn_layer_add_loss(sn_layer_call *c, sn_value loss) {
    sn_network *const n = c->network;
    if (c->b->error.code != SNUG_OK)
        return;
    if (sn_grow(n->engine, SN_MEM_MODEL, (void **)&n->losses, sizeof *n->losses, &n->cap_losses,
                n->n_losses + 1, &c->b->error) == SNUG_OK)
        n->losses[n->n_losses++] = loss;
}

static void build_write(sn_builder *b, const sn_pending_write *p, sn_value variable) {
    const sn_value in[2] = {variable, p->value};
    sn_attrs a;
    if (p->momentum == 0) {
        sn_build(b, SN_OP_assign, NULL, in, 2);
        return;
    }
    sn_attrs_default(SN_OP_moving_average, &a);
    a.momentum.momentum = (int64_t)sn_build_param(b, "", p->momentum).i;
    sn_build(b, SN_OP_moving_average, &a, in, 2);
}

/* Of the forward pass: what layers keep is written in steps whose update is passed over, too. */
snug_status sn_network_updates(sn_network *n, sn_graph *g, snug_error *err) {
    sn_graph_set_part(g, SN_PART_FORWARD);
    for (size_t i = 0; i < n->n_pending; i++) {
        const sn_pending_write *p = &n->pending[i];
        sn_builder b = sn_builder_on(g);
        sn_value variable;
        SNUG_TRY(sn_graph_set_owner(g, n->layers[n->vars[p->home].layer].name, err));
        SNUG_TRY(sn_network_read(n, g, p->home, &variable, err));
        build_write(&b, p, variable);
        SNUG_TRY(sn_builder_done(&b, err));
    }
    return SNUG_OK;
}

/* --- running build functions ------------------------------------------------------------------ */
/* A step of a merge is valid where it is so in any input; an input without a mask is valid. */
static sn_value kept_mask(sn_layer_call *c) {
    sn_value kept = SN_NO_VALUE;
    for (int i = 0; i < c->n_in; i++) {
        if (c->role[i])
            continue;
        if (!sn_value_ok(c->mask[i]))
            return SN_NO_VALUE;
        kept = sn_value_ok(kept) ? sn_build_logical_or(c->b, kept, c->mask[i]) : c->mask[i];
    }
    return kept;
}

/* Keras' activity_regularizer: of each output, per example. */
static void add_activity_loss(sn_layer_call *c) {
    const char *text = text_of(c->layer, "activity_regularizer");
    for (int i = 0; text && text[0] && i < c->n_out && c->b->error.code == SNUG_OK; i++) {
        const double batch = (double)sn_graph_type(c->b->graph, c->outs[i])->dims[0];
        const sn_value penalty = sn_regularizer_build(c->b, text, sn_layer_widened(c, c->outs[i]));
        sn_layer_add_loss(c, sn_build_affine(c->b, penalty, 1 / batch, 0));
    }
}

sn_value sn_layer_widened(sn_layer_call *c, sn_value x) {
    if (c->b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype d = sn_graph_type(c->b->graph, x)->dtype;
    return sn_dtype_is_float(d) ? sn_build_cast(c->b, x, sn_dtype_computed(d)) : x;
}

sn_value sn_layer_narrowed(sn_layer_call *c, sn_value y) {
    return sn_build_cast(c->b, y, c->policy.compute);
}

void sn_layer_without_halves(sn_layer_call *c) {
    c->policy.compute = c->policy.variable = c->reads = sn_dtype_computed(c->policy.compute);
}

double sn_layer_hidden(snug_dtype dtype, double low) {
    return dtype == SNUG_F16 ? low : -1e9;
}

static bool is_uncast(const sn_layer *l) {
    return l->uncast || (l->cls->traits & SNUG_LAYER_UNCAST);
}

/* Keras' autocast: real numbers come in the type that the layer computes in, whole ones as they
 * are. */
static void cast_inputs(sn_layer_call *c) {
    for (int i = 0; i < c->n_in && !is_uncast(c->layer) && c->b->error.code == SNUG_OK; i++)
        if (sn_dtype_is_float(sn_graph_type(c->b->graph, c->in[i])->dtype))
            c->in[i] = sn_build_cast(c->b, c->in[i], c->policy.compute);
}

/* What build functions rely on. Networks were checked as they were put together; a call of one
 * layer, and layers within layers, come here first. */
static bool has_inputs(sn_layer_call *c) {
    const sn_layer_class *cls = c->layer->cls;
    if (c->n_in >= cls->min_in && c->n_in <= cls->max_in)
        return true;
    sn_layer_refuse(c, SNUG_E_INVALID, "it is applied to %d tensors, it takes %d%s", c->n_in,
                    cls->min_in, cls->max_in > cls->min_in ? " or more" : "");
    return false;
}

void sn_layer_run(sn_layer_call *c) {
    if (c->b->error.code != SNUG_OK || !has_inputs(c))
        return;
    cast_inputs(c);
    const bool first = sn_channels_first(c);
    const int spatial = first ? sn_channels_to_end(c) : 0;
    if (c->b->error.code == SNUG_OK)
        c->layer->cls->build(c);
    if (first)
        sn_channels_back(c, spatial);
    c->outs[0] = c->out;
    add_activity_loss(c);
    if (c->layer->cls->mask == SN_MASK_KEEP)
        c->out_mask = kept_mask(c);
}

static void set_policy(sn_layer_call *c, const sn_policy *outer) {
    c->policy = c->layer->policy.own ? c->layer->policy : *outer;
    c->reads = is_uncast(c->layer) ? c->policy.variable : c->policy.compute;
}

static void clear_ends(sn_layer_call *c) {
    c->n_out = 1;
    c->out = c->out_mask = SN_NO_VALUE;
    for (int i = 0; i < SN_MAX_IN; i++)
        c->in[i] = c->mask[i] = SN_NO_VALUE;
    for (int i = 0; i < SN_MAX_TENSOR; i++)
        c->outs[i] = SN_NO_VALUE;
}

sn_layer_call sn_layer_enter(const sn_layer_call *outer, sn_layer *inner, const char *name) {
    sn_layer_call c = {.b = outer->b,
                       .network = outer->network,
                       .layer = inner,
                       .top = outer->top,
                       .conf = inner->conf,
                       .training = outer->training,
                       .call = "",
                       .use = outer->use};
    set_policy(&c, &outer->policy);
    clear_ends(&c);
    const int n = snprintf(c.path, sizeof c.path, "%s/%s", outer->path, name ? name : inner->name);
    if (n >= (int)sizeof c.path)
        sn_layer_refuse(&c, SNUG_E_INVALID, "names of layers within layers are longer than %zu",
                        sizeof c.path - 1);
    return c;
}

/* Masks given by keyword take the place of those that come with the inputs, in their order. */
static void take_masks(sn_layer_call *c) {
    int n_in = 0, n_masks = 0;
    sn_value mask[SN_MAX_IN];
    for (int i = 0; i < c->n_in; i++) {
        if (sn_role_is_mask(c->role[i])) {
            mask[n_masks++] = sn_build_cast(c->b, c->in[i], SNUG_BOOL);
            continue;
        }
        c->in[n_in] = c->in[i];
        c->mask[n_in] = c->mask[i];
        c->role[n_in++] = c->role[i];
    }
    c->n_in = n_in;
    c->mask_given = n_masks > 0;
    for (int i = 0; i < n_masks && i < n_in; i++)
        c->mask[i] = mask[i];
}

snug_status sn_network_build_one(sn_network *n, const sn_application *a, sn_graph *g, bool training,
                                 sn_applied *io, snug_error *err) {
    sn_layer *const l = &n->layers[a->layer];
    sn_builder b = sn_builder_on(g);
    sn_layer_call c = {.b = &b,
                       .network = n,
                       .layer = l,
                       .top = a->layer,
                       .conf = l->conf,
                       .n_in = a->n_in,
                       .call = a->call,
                       .use = a->use};
    set_policy(&c, &n->policy);
    clear_ends(&c);
    snprintf(c.path, sizeof c.path, "%s", l->name); /* names are shorter: network_add.c */
    memcpy(c.in, io->in, (size_t)a->n_in * sizeof *c.in);
    memcpy(c.mask, io->in_mask, (size_t)a->n_in * sizeof *c.mask);
    memcpy(c.role, a->role, sizeof c.role);
    take_masks(&c);
    c.training = training && sn_call_flag(&c, "training", true);
    SNUG_TRY(sn_graph_set_owner(g, l->name, err));
    sn_layer_run(&c);
    SNUG_TRY(sn_builder_done(&b, err));
    memcpy(io->out, c.outs, sizeof c.outs);
    io->out_mask = c.out_mask;
    io->n_out = c.n_out;
    io->ends_masks = c.ends_masks;
    return SNUG_OK;
}

/* --- the whole network ------------------------------------------------------------------------ */
typedef struct {
    sn_value value, mask;
} made;

/* Also of tensors that are the same value: a dropout that drops nothing gives what it got. */
static void end_mask(made *tensors, uint32_t n, sn_value of) {
    for (uint32_t i = 0; i < n; i++)
        if (tensors[i].value.i == of.i)
            tensors[i].mask = SN_NO_VALUE;
}

static snug_status build_all(sn_network *n, sn_graph *g, bool training, made *tensors,
                             snug_error *err) {
    for (size_t i = 0; i < n->n_applications; i++) {
        const sn_application *a = &n->applications[i];
        sn_applied io;
        for (int k = 0; k < a->n_in; k++) {
            io.in[k] = tensors[a->in[k]].value;
            io.in_mask[k] = tensors[a->in[k]].mask;
        }
        SNUG_TRY(sn_network_build_one(n, a, g, training, &io, err));
        for (int k = 0; io.ends_masks && k < a->n_in; k++)
            end_mask(tensors, a->first, io.in[k]);
        for (int k = 0; k < a->n_out; k++)
            tensors[a->first + (uint32_t)k] = (made){io.out[k], k ? SN_NO_VALUE : io.out_mask};
    }
    return SNUG_OK;
}

static snug_status build_layers(sn_network *n, sn_graph *g, const sn_value *x, bool training,
                                sn_network_result *out, snug_error *err) {
    void *block;
    const size_t bytes = n->n_tensors * sizeof(made); /* one or a few per layer */
    SNUG_TRY(sn_alloc(n->engine, SN_MEM_MODEL, bytes, &block, err));
    made *const tensors = block;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        tensors[i] = (made){x[i], SN_NO_VALUE};
    const snug_status status = build_all(n, g, training, tensors, err);
    for (uint32_t i = 0; i < n->n_outputs && status == SNUG_OK; i++) {
        out->y[i] = tensors[n->outputs[i]].value;
        out->mask[i] = tensors[n->outputs[i]].mask;
    }
    sn_free(n->engine, SN_MEM_MODEL, block, bytes);
    return status;
}

static uint64_t key_of_name(const sn_network *n, uint32_t home) {
    return sn_network_initial_key(n, n->vars[home].name);
}

const sn_network_source sn_network_of_layers = {build_layers, key_of_name};
