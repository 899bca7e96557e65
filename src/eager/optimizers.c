/* optimizers.c: optimizers on recorded tensors (include/snug/layer.h): room nn's updates, appended
 * to the recording. The optimizer's network has a variable for each weight it was given and, behind
 * it, that weight's slots.
 *
 * 1. Slots are made on a scratch graph before the update is recorded.
 * 2. Numbers that depend on the step are asked of the optimizer when a plan is bound, so that they
 * are parameters in traces too; a trace that is called counts a step then.
 * 3. A failed apply counts no step. */
#include "eager/layer.h"
#include "memory/numbers.h"

#include <snug/layer.h>
#include <stdio.h>
#include <string.h>

struct snug_optimizer {
    snug_recorder *r;
    snug_engine *engine;
    sn_optimizer conf;
    sn_held held;
    int64_t steps;
    double given_rate;                          /* < 0: none */
    sn_named_real numbers[SN_OPTIMIZER_PARAMS]; /* of the step that is recorded or called */
    int n_numbers;
    sn_host host;
    int n_refs;       /* the owner's, and those of traces */
    sn_numbers homes; /* of weights, by the address of the variable */
    uint32_t *slots;  /* homes, in the order they were made */
    size_t n_slots, cap_slots;
    uint32_t n_whole; /* variables up to the last weight whose slots are all there */
};

/* --- numbers of a step ------------------------------------------------------------------------ */
static void know_step(snug_optimizer *o, int64_t step) {
    sn_optimizer now = o->conf;
    if (o->given_rate >= 0) {
        now.learning_rate = o->given_rate;
        now.schedule.name[0] = 0;
    }
    o->n_numbers = sn_optimizer_params(&now, step, o->numbers, SN_OPTIMIZER_PARAMS);
}

static double ask(void *ctx, int which) {
    snug_optimizer *const o = ctx;
    if (which < 0) {
        know_step(o, ++o->steps);
        return 0;
    }
    return which < o->n_numbers ? o->numbers[which].value : 0;
}

/* --- life ------------------------------------------------------------------------------------- */
static void hold(void *ctx) {
    ((snug_optimizer *)ctx)->n_refs++;
}

static void drop(void *ctx) {
    snug_optimizer *const o = ctx;
    if (--o->n_refs > 0)
        return;
    sn_numbers_clear(&o->homes);
    sn_free(o->engine, SN_MEM_MODEL, o->slots, o->cap_slots * sizeof *o->slots);
    sn_held_clear(&o->held);
    sn_free(o->engine, SN_MEM_MODEL, o, sizeof *o);
}

void snug_optimizer_destroy(snug_optimizer *o) {
    if (o)
        drop(o);
}

/* The one layer that all weights belong to. */
static snug_status create_network(snug_optimizer *o, snug_error *err) {
    sn_network *n;
    const sn_layer layer = {.name = o->conf.name, .trainable = true};
    SNUG_TRY(sn_network_create_bare(o->engine, SNUG_F32, &n, err));
    sn_held_init(&o->held, o->r, n);
    return sn_network_take_layer(n, &layer, err);
}

snug_status snug_optimizer_create(snug_recorder *r, const char *optimizer, snug_optimizer **out,
                                  snug_error *err) {
    SNUG_NEEDS(err, r && optimizer && out);
    snug_engine *const e = snug_recorder_engine(r);
    sn_optimizer conf;
    void *block;
    SNUG_TRY(sn_optimizer_parse(optimizer, &conf, err));
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_MODEL, sizeof(snug_optimizer), &block, err));
    snug_optimizer *const o = block;
    *o = (snug_optimizer){.r = r,
                          .engine = e,
                          .conf = conf,
                          .given_rate = -1,
                          .n_refs = 1,
                          .homes = {.engine = e, .category = SN_MEM_MODEL}};
    o->host = (sn_host){o, ask, hold, drop};
    const snug_status status = create_network(o, err);
    if (status == SNUG_OK)
        *out = o;
    else
        drop(o);
    return status;
}

/* --- weights and slots ------------------------------------------------------------------------ */
static bool find_weight(const snug_optimizer *o, const snug_variable *v, uint32_t *home) {
    return sn_numbers_find(&o->homes, (uintptr_t)v, home);
}

/* Names of variables may be equal, those of a network may not: behind a name the number it was last
 * given is noted. The variable that lends it is held. */
static snug_status add_weight(snug_optimizer *o, snug_variable *v, snug_error *err) {
    sn_network *const n = o->held.network;
    char name[200];
    uint32_t home;
    uint32_t k = 0;
    SNUG_TRY(sn_names_reserve(&n->last_numbers, err));
    SNUG_TRY(sn_numbers_reserve(&o->homes, err));
    snprintf(name, sizeof name, "%.150s", snug_variable_name(v));
    (void)sn_names_find(&n->last_numbers, snug_variable_name(v), &k);
    while (!name[0] || sn_network_find_variable(n, name, &home))
        snprintf(name, sizeof name, "%.150s_%u", snug_variable_name(v), (unsigned)++k);
    const sn_net_var var = {.name = name, .type = *snug_variable_type(v), .trainable = true};
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&o->held.vars, sizeof(snug_variable *),
                     &o->held.cap, n->n_vars + 1, err));
    SNUG_TRY(sn_network_variable(n, &var, &home, err));
    snug_variable_hold(v);
    o->held.vars[o->held.n++] = v;
    sn_numbers_put(&o->homes, (uintptr_t)v, home);
    if (k > 0)
        sn_names_put(&n->last_numbers, snug_variable_name(v), k);
    return SNUG_OK;
}

/* Those among the variables from `first` on. */
static snug_status note_slots(snug_optimizer *o, uint32_t first, snug_error *err) {
    const sn_network *const n = o->held.network;
    SNUG_TRY(sn_grow(o->engine, SN_MEM_MODEL, &o->slots, sizeof *o->slots, &o->cap_slots,
                     o->n_slots + (o->held.n - first), err));
    for (uint32_t i = first; i < o->held.n; i++)
        if (n->vars[i].slot)
            o->slots[o->n_slots++] = i;
    return SNUG_OK;
}

/* The update of the newest weight on a scratch graph, which makes its slots, or those that a call
 * that failed has not made. */
static snug_status make_slots(snug_optimizer *o, snug_error *err) {
    sn_graph *g;
    sn_value gradient[1];
    sn_network *const n = o->held.network;
    const uint32_t home = o->n_whole;
    if (home == n->n_vars)
        return SNUG_OK;
    SNUG_TRY(sn_graph_create(o->engine, &g, err));
    snug_status status = sn_graph_input(g, "gradient", &n->vars[home].type, gradient, err);
    n->first_updated = home;
    if (status == SNUG_OK)
        status = sn_optimizer_build(&o->conf, n, g, gradient, 1, err);
    if (status == SNUG_OK && o->conf.gradient_accumulation_steps > 0)
        status = sn_optimizer_accumulate(&o->conf, n, g, gradient, 1, err);
    n->first_updated = 0;
    sn_graph_destroy(g);
    SNUG_TRY(status);
    SNUG_TRY(sn_held_make(&o->held, err));
    SNUG_TRY(note_slots(o, home, err));
    o->n_whole = (uint32_t)n->n_vars;
    return SNUG_OK;
}

/* Of those that have a gradient; grads NULL: of all. */
static snug_status know_weights(snug_optimizer *o, snug_tensor *const *grads,
                                snug_variable *const *variables, int n, snug_error *err) {
    uint32_t home = 0;
    SNUG_TRY(make_slots(o, err));
    for (int i = 0; i < n; i++) {
        if ((grads && !grads[i]) || find_weight(o, variables[i], &home))
            continue;
        SNUG_TRY(add_weight(o, variables[i], err));
        SNUG_TRY(make_slots(o, err));
    }
    return SNUG_OK;
}

/* --- a step ----------------------------------------------------------------------------------- */
/* A gradient for each weight, in the order of homes; SN_NO_VALUE for those that have none. out has
 * room for all variables: gradients stand at their homes first. */
static int collect(const snug_optimizer *o, sn_record_call *c, snug_tensor *const *grads,
                   snug_variable *const *variables, int n, sn_value *out) {
    const sn_network *const net = o->held.network;
    uint32_t home = 0;
    int count = 0;
    for (size_t i = 0; i < net->n_vars; i++)
        out[i] = SN_NO_VALUE;
    for (int i = 0; i < n; i++) {
        if (!grads[i] || !find_weight(o, variables[i], &home))
            continue;
        if (sn_value_ok(out[home]) && c->b.error.code == SNUG_OK)
            (void)!sn_fail(&c->b.error, SNUG_E_INVALID,
                           "variable %s has two gradients (the second is number %d); add them up",
                           snug_variable_name(variables[i]), i);
        out[home] = sn_build_cast(&c->b, sn_record_use(c, grads[i]), net->vars[home].type.dtype);
    }
    for (size_t i = 0; i < net->n_vars; i++)
        if (!net->vars[i].slot)
            out[count++] = out[i];
    return count;
}

static snug_status record(snug_optimizer *o, snug_tensor *const *grads,
                          snug_variable *const *variables, int n, sn_value *values,
                          snug_error *err) {
    const bool updates = sn_optimizer_updates(&o->conf, o->steps + 1);
    sn_record_call c;
    SNUG_TRY(sn_record_begin(o->r, &c, err));
    if (snug_is_tracing(o->r))
        sn_record_tell(&c, &o->host);
    const int count = collect(o, &c, grads, variables, n, values);
    o->held.host = &o->host;
    o->held.numbers = o->numbers;
    o->held.n_numbers = o->n_numbers;
    sn_held_enter(&o->held, &c);
    if (c.b.error.code == SNUG_OK && updates)
        (void)!sn_optimizer_build(&o->conf, o->held.network, c.b.graph, values, count, &c.b.error);
    else if (c.b.error.code == SNUG_OK)
        (void)!sn_optimizer_accumulate(&o->conf, o->held.network, c.b.graph, values, count,
                                       &c.b.error);
    sn_held_leave(&o->held);
    return sn_record_end(&c, err);
}

snug_status snug_optimizer_apply(snug_optimizer *o, snug_tensor *const *grads,
                                 snug_variable *const *variables, int n, double rate,
                                 snug_error *err) {
    SNUG_NEEDS(err, o && grads && (variables || n == 0));
    void *values;
    o->given_rate = rate;
    SNUG_TRY(know_weights(o, grads, variables, n, err));
    const size_t bytes = (o->held.network->n_vars + 1) * sizeof(sn_value);
    SNUG_TRY(sn_alloc(o->engine, SN_MEM_OTHER, bytes, &values, err));
    know_step(o, o->steps + 1);
    const snug_status status = record(o, grads, variables, n, values, err);
    sn_free(o->engine, SN_MEM_OTHER, values, bytes);
    if (status == SNUG_OK && !snug_is_tracing(o->r))
        o->steps++;
    return status;
}

snug_status snug_optimizer_build(snug_optimizer *o, snug_variable *const *variables, int n,
                                 snug_error *err) {
    SNUG_NEEDS(err, o && (variables || n == 0));
    return know_weights(o, NULL, variables, n, err);
}

/* --- settings --------------------------------------------------------------------------------- */
int64_t snug_optimizer_steps(const snug_optimizer *o) {
    if (!o)
        return 0;
    return o->steps;
}

void snug_optimizer_set_steps(snug_optimizer *o, int64_t steps) {
    if (!o)
        return;
    o->steps = steps;
}

double snug_optimizer_rate(const snug_optimizer *o) {
    if (!o)
        return 0;
    return sn_optimizer_rate(&o->conf, o->steps);
}

void snug_optimizer_set_rate(snug_optimizer *o, double rate) {
    if (!o)
        return;
    o->conf.learning_rate = rate;
    o->conf.schedule.name[0] = 0;
}

/* Slots stand among the weights, in the order they were made. */
int snug_optimizer_n_slots(const snug_optimizer *o) {
    if (!o)
        return 0;
    return (int)o->n_slots;
}

snug_variable *snug_optimizer_slot(const snug_optimizer *o, int i) {
    if (!o || i < 0 || (size_t)i >= o->n_slots)
        return NULL;
    return o->held.vars[o->slots[i]];
}
