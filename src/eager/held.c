/* held.c: the variables of a network as handles of a recorder (eager/layer.h).
 *
 * 1. Handles are made outside of calls; a variable that turns up inside one makes it fail, and the
 * caller tries again with the handle made.
 * 2. Parameters with names become parameters of this occurrence: keys are drawn, or follow from the
 * layer's seed; numbers are asked of the host, others are what they are. */
#include "eager/layer.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

static snug_status read_held(void *ctx, sn_graph *g, uint32_t home, sn_value *out,
                             snug_error *err) {
    sn_held *const h = ctx;
    (void)g;
    if (home >= h->n)
        return sn_fail(err, SNUG_E_INTERNAL, "variable %u has no handle yet", home);
    *out = sn_record_read(h->call, h->vars[home]);
    if (h->call->b.error.code != SNUG_OK && err && err != &h->call->b.error)
        *err = h->call->b.error;
    return h->call->b.error.code;
}

/* How often a layer with a seed asked for a key; traces hold it, too. */
typedef struct {
    snug_engine *engine;
    uint32_t holds;
    uint64_t times;
} own_draws;

/* As sn_record_own_key asks. */
static double next_draw(void *ctx, int which) {
    own_draws *const d = ctx;
    if (which == -2)
        d->times--;
    return (double)(which < 0 ? d->times : d->times++);
}

static void hold_draws(void *ctx) {
    ((own_draws *)ctx)->holds++;
}

static void drop_draws(void *ctx) {
    own_draws *d = ctx;
    if (d && --d->holds == 0)
        sn_free(d->engine, SN_MEM_MODEL, d, sizeof *d);
}

static snug_status make_own(sn_held *h, snug_error *err) {
    void *block;
    if (h->own.ctx)
        return SNUG_OK;
    SNUG_TRY(sn_alloc_zero(h->network->engine, SN_MEM_MODEL, sizeof(own_draws), &block, err));
    *(own_draws *)block = (own_draws){.engine = h->network->engine, .holds = 1};
    h->own = (sn_host){block, next_draw, hold_draws, drop_draws};
    return SNUG_OK;
}

/* Layers that were made with the same seed draw the same. */
static int64_t own_key(sn_held *h, int64_t seed) {
    if (h->element)
        return sn_record_key(h->call, (int64_t)(sn_rng_key((uint64_t)seed, h->element) >> 1));
    if (make_own(h, &h->call->b.error) != SNUG_OK)
        return 0;
    return sn_record_own_key(h->call, &h->own, seed);
}

uint64_t sn_held_draws(const sn_held *h) {
    return h->own.ctx ? ((const own_draws *)h->own.ctx)->times : 0;
}

snug_status sn_held_set_draws(sn_held *h, uint64_t draws, snug_error *err) {
    if (!h->own.ctx && draws == 0)
        return SNUG_OK;
    SNUG_TRY(make_own(h, err));
    ((own_draws *)h->own.ctx)->times = draws;
    return SNUG_OK;
}

static snug_status find_param(void *ctx, const sn_param_info *wanted, sn_param *out,
                              snug_error *err) {
    sn_held *const h = ctx;
    int64_t word = -1;
    if (wanted->kind == SN_PARAM_KEY)
        word = wanted->key ? own_key(h, wanted->key) : sn_record_draw(h->call);
    for (int i = 0; i < h->n_numbers && word < 0; i++)
        if (strcmp(h->numbers[i].name, wanted->name) == 0)
            word = sn_record_ask(h->call, h->host, i);
    if (word < 0)
        word = sn_record_number(h->call, wanted->real);
    *out = (sn_param){(uint32_t)word};
    if (h->call->b.error.code != SNUG_OK && err && err != &h->call->b.error)
        *err = h->call->b.error;
    return h->call->b.error.code;
}

void sn_held_init(sn_held *h, snug_recorder *r, sn_network *n) {
    *h = (sn_held){.r = r, .network = n};
    h->door = (sn_network_door){h, read_held};
    h->source = (sn_param_source){h, find_param};
}

void sn_held_clear(sn_held *h) {
    if (!h->network)
        return;
    for (size_t i = 0; i < h->n; i++)
        snug_variable_drop(h->vars[i]);
    drop_draws(h->own.ctx);
    sn_free(h->network->engine, SN_MEM_MODEL, h->vars, h->cap * sizeof *h->vars);
    sn_network_destroy(h->network);
    *h = (sn_held){0};
}

/* Slots as Keras names them: "adam/dense_kernel_momentum". */
static const char *name_of(const sn_net_var *v, char *text, size_t size) {
    const int n = snprintf(text, size, "%s", v->name);
    if (!v->slot || v->kept || n < 0 || (size_t)n >= size)
        return v->name;
    char *at = strchr(text, '/');
    while (at && (at = strchr(at + 1, '/')))
        *at = '_';
    return text;
}

/* Initial numbers follow from the network's seed and the variable's place, whatever its name is:
 * two layers that are made alike after the same seed begin alike. */
static sn_recipe initial_of(const sn_network *n, const sn_net_var *v, size_t home) {
    sn_recipe init = v->init;
    const bool drawn = init.kind == SN_RECIPE_UNIFORM || init.kind == SN_RECIPE_NORMAL ||
                       init.kind == SN_RECIPE_TRUNCATED || init.kind == SN_RECIPE_ORTHOGONAL;
    if (drawn && !v->own_seed)
        init.key = sn_rng_key(n->seed, home);
    return init;
}

snug_status sn_held_make(sn_held *h, snug_error *err) {
    sn_network *const n = h->network;
    if (h->n == n->n_vars)
        return SNUG_OK;
    SNUG_TRY(sn_grow(n->engine, SN_MEM_MODEL, (void **)&h->vars, sizeof(snug_variable *), &h->cap,
                     n->n_vars, err));
    while (h->n < n->n_vars) {
        const sn_net_var *v = &n->vars[h->n];
        char name[300];
        const snug_record_variable_options options = {
            .name = name_of(v, name, sizeof name),
            .not_trainable = !v->trainable || v->slot || !n->layers[v->layer].trainable,
            .is_slot = v->slot && !v->kept};
        const sn_recipe init = initial_of(n, v, h->n);
        SNUG_TRY(sn_record_variable(h->r, &v->type, &init, &options, &h->vars[h->n], err));
        h->n++;
    }
    return SNUG_OK;
}

void sn_held_enter(sn_held *h, sn_record_call *c) {
    h->call = c;
    h->network->door = &h->door;
    sn_graph_set_source(c->b.graph, &h->source);
}

void sn_held_leave(sn_held *h) {
    sn_graph_set_source(h->call->b.graph, NULL);
    sn_graph_set_part(h->call->b.graph, SN_PART_FORWARD);
    h->network->door = NULL;
    h->call = NULL;
}
