/* session_door.c: the public snug_session: fuse, plan, state and executor in one call.
 *
 * Sessions that share variables share one *core*: the state and the executor with its arena. Each
 * session owns its fused copy of the graph and its plan; the core lives until its last session is
 * destroyed.
 *
 * Invariant: a session in a core's executor has a live plan and graph: it is removed before they
 * are destroyed. */
#include <snug/run.h>

#include "exec/exec.h"

#include <string.h>

#define KEY_LIMIT 0x1p63 /* keys lie strictly between -KEY_LIMIT and KEY_LIMIT */

typedef struct {
    snug_engine *engine;
    sn_state *state;
    sn_executor *executor;
    sn_cpu_device cpu;
    const sn_device *device; /* cpu, or the engine's GPU */
    uint32_t n_sessions;
} sn_core;

/* What an input reads: rows of a feed from first_row on. */
typedef struct {
    snug_feed *feed;
    int64_t first_row;
} sn_row_source;

struct snug_session {
    sn_core *core;
    sn_graph *graph;
    sn_plan *plan;
    sn_session *run;
    sn_row_source *sources; /* one per input */
    int (*interrupt)(void *ctx);
    void *interrupt_ctx;
};

/* --- life ------------------------------------------------------------------------------------- */

static void destroy_core(sn_core *c) {
    sn_executor_destroy(c->executor);
    sn_state_destroy(c->state);
    sn_free(c->engine, SN_MEM_MODEL, c, sizeof *c);
}

static snug_status create_core(snug_engine *e, sn_core **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_MODEL, sizeof(sn_core), &block, err));
    sn_core *c = block;
    c->engine = e;
    c->device = sn_engine_device(e, &c->cpu);
    const sn_device *devices[1] = {c->device};
    snug_status status = sn_state_create(e, &c->state, err);
    if (status == SNUG_OK)
        sn_state_set_device(c->state, c->device);
    if (status == SNUG_OK)
        status = sn_executor_create(e, c->state, devices, 1, NULL, &c->executor, err);
    if (status == SNUG_OK)
        *out = c;
    else
        destroy_core(c);
    return status;
}

void snug_session_destroy(snug_session *s) {
    if (!s)
        return;
    sn_core *c = s->core;
    if (s->run)
        sn_executor_remove(c->executor, s->run);
    sn_plan_destroy(s->plan);
    if (s->sources)
        sn_free(c->engine, SN_MEM_PLAN, s->sources,
                sn_graph_n_inputs(s->graph) * sizeof *s->sources);
    sn_graph_destroy(s->graph);
    sn_free(c->engine, SN_MEM_PLAN, s, sizeof *s);
    if (--c->n_sessions == 0)
        destroy_core(c);
}

/* The home of the variable's name, made where there is none yet. */
static snug_status find_home(sn_state *state, const sn_variable *var, uint32_t *id,
                             snug_error *err) {
    if (sn_state_find(state, var->name, id))
        return SNUG_OK;
    const sn_home home = {.name = var->name,
                          .type = var->type,
                          .trainable = var->trainable,
                          .slot = var->slot,
                          .init = var->init};
    return sn_state_add(state, &home, id, err);
}

static snug_status settle_variables(snug_session *s, snug_error *err) {
    const uint32_t n = sn_graph_n_vars(s->graph);
    void *homes;
    snug_status status = SNUG_OK;
    SNUG_TRY(sn_alloc(s->core->engine, SN_MEM_PLAN, n * sizeof(uint32_t), &homes, err));
    for (uint32_t i = 0; status == SNUG_OK && i < n; i++)
        status = find_home(s->core->state, sn_graph_var_at(s->graph, (sn_var){i}),
                           (uint32_t *)homes + i, err);
    if (status == SNUG_OK)
        status = sn_graph_set_homes(s->graph, homes, err);
    sn_free(s->core->engine, SN_MEM_PLAN, homes, n * sizeof(uint32_t));
    return status;
}

static snug_status fill_session(snug_session *s, const snug_graph *graph, snug_error *err) {
    sn_core *c = s->core;
    const sn_device *devices[1] = {c->device};
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    void *sources;
    SNUG_TRY(sn_graph_check(graph, false, err));
    SNUG_TRY(sn_graph_fuse(graph, &s->graph, err));
    SNUG_TRY(settle_variables(s, err));
    SNUG_TRY(sn_plan_build(c->engine, s->graph, &options, &s->plan, err));
    SNUG_TRY(sn_alloc_zero(c->engine, SN_MEM_PLAN, sn_graph_n_inputs(s->graph) * sizeof *s->sources,
                           &sources, err));
    s->sources = sources;
    SNUG_TRY(sn_executor_add(c->executor, s->plan, &s->run, err));
    return sn_executor_prepare(c->executor, err);
}

/* A failed session must not cost the others their arena, nor leave homes behind. */
static void undo_session(snug_session *s, uint32_t n_homes) {
    sn_core *c = s->core;
    const bool others = c->n_sessions > 1;
    snug_session_destroy(s);
    if (!others)
        return;
    sn_state_truncate(c->state, n_homes);
    if (sn_executor_prepare(c->executor, NULL) != SNUG_OK)
        return; /* their next run says so */
}

snug_status snug_session_create(snug_engine *engine, const snug_graph *graph, snug_session *share,
                                snug_session **out, snug_error *err) {
    void *block;
    if (!engine || !graph || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_session_create: engine, graph and out must not be NULL");
    if (share && share->core->engine != engine)
        return sn_fail(err, SNUG_E_INVALID,
                       "the session to share with belongs to another engine; use that one");
    SNUG_TRY(sn_alloc_zero(engine, SN_MEM_PLAN, sizeof(snug_session), &block, err));
    snug_session *s = block;
    snug_status status = SNUG_OK;
    if (share)
        s->core = share->core;
    else
        status = create_core(engine, &s->core, err);
    if (status != SNUG_OK) {
        sn_free(engine, SN_MEM_PLAN, s, sizeof *s);
        return status;
    }
    s->core->n_sessions++;
    const uint32_t n_homes = sn_state_count(s->core->state);
    status = fill_session(s, graph, err);
    if (status == SNUG_OK)
        *out = s;
    else
        undo_session(s, n_homes);
    return status;
}

/* --- before a run ----------------------------------------------------------------------------- */

static snug_status fill_from_feed(void *ctx, int64_t first_row, int64_t n_rows,
                                  const snug_view *dst, snug_error *err) {
    const sn_row_source *source = ctx;
    return snug_feed_fill(source->feed, source->first_row + first_row, n_rows, dst, err);
}

static bool recipe_of_feed(void *ctx, int64_t first_row, sn_recipe *out, uint64_t *first) {
    const sn_row_source *source = ctx;
    const sn_recipe *recipe = sn_feed_recipe(source->feed);
    const snug_type *type = snug_feed_type(source->feed);
    if (!recipe)
        return false;
    *out = *recipe;
    *first = (uint64_t)((source->first_row + first_row) * sn_type_span(type, 1, type->rank));
    return true;
}

static snug_status check_feed(const char *name, const snug_type *want, const snug_type *have,
                              int64_t first_row, snug_error *err) {
    char text[192], other[192];
    bool same = want->rank == have->rank && want->rank > 0;
    for (int a = 1; same && a < want->rank; a++)
        same = want->dims[a] == have->dims[a];
    if (!same)
        return sn_fail(
            err, SNUG_E_SHAPE, "input '%s' is %s, its feed %s; all but the rows must agree", name,
            snug_type_print(want, text, sizeof text), snug_type_print(have, other, sizeof other));
    if (first_row < 0 || first_row > have->dims[0] || have->dims[0] - first_row < want->dims[0])
        return sn_fail(err, SNUG_E_DATA,
                       "input '%s' takes %lld rows from row %lld on; the feed has %lld", name,
                       (long long)want->dims[0], (long long)first_row, (long long)have->dims[0]);
    return SNUG_OK;
}

snug_status snug_session_feed(snug_session *s, const char *input, snug_feed *feed,
                              int64_t first_row, snug_error *err) {
    SNUG_NEEDS(err, s && input && feed);
    uint32_t i;
    SNUG_TRY(sn_graph_find_input(s->graph, input, &i, err));
    const snug_type *type = sn_graph_type(s->graph, sn_graph_input_at(s->graph, i));
    SNUG_TRY(check_feed(input, type, snug_feed_type(feed), first_row, err));
    SNUG_TRY(sn_feed_prepare(feed, type->dtype, err));
    s->sources[i] = (sn_row_source){.feed = feed, .first_row = first_row};
    sn_session_bind_input(s->run, i,
                          (sn_input_binding){.ctx = &s->sources[i],
                                             .fill = fill_from_feed,
                                             .recipe = recipe_of_feed});
    return SNUG_OK;
}

snug_status snug_session_set(snug_session *s, const char *param, double value, snug_error *err) {
    SNUG_NEEDS(err, s && param);
    sn_param p;
    SNUG_TRY(sn_graph_find_param(s->graph, param, &p, err));
    if (sn_graph_param_at(s->graph, p)->kind != SN_PARAM_KEY) {
        sn_session_set_real(s->run, p, value);
        return SNUG_OK;
    }
    if (!(value > -KEY_LIMIT && value < KEY_LIMIT))
        return sn_fail(err, SNUG_E_INVALID, "%s is a whole number; %g is none of 63 bits", param,
                       value);
    sn_session_set_key(s->run, p, (int64_t)value);
    return SNUG_OK;
}

static bool ask_caller(void *ctx) {
    const snug_session *s = ctx;
    return s->interrupt(s->interrupt_ctx) != 0;
}

void snug_session_interrupt(snug_session *s, int (*asked)(void *ctx), void *ctx) {
    if (!s)
        return;
    s->interrupt = asked;
    s->interrupt_ctx = ctx;
    sn_session_set_interrupt(s->run, asked ? ask_caller : NULL, s);
}

/* --- a run, and after it ---------------------------------------------------------------------- */

snug_status snug_session_run(snug_session *s, snug_error *err) {
    SNUG_NEEDS(err, s);
    return sn_session_run(s->run, err);
}

snug_status snug_session_output(const snug_session *s, const char *output, snug_view *out,
                                snug_error *err) {
    SNUG_NEEDS(err, s && output && out);
    uint32_t i;
    SNUG_TRY(sn_graph_find_output(s->graph, output, &i, err));
    sn_session_output(s->run, i, out);
    return SNUG_OK;
}

snug_status snug_session_variable(snug_session *s, const char *variable, snug_view *out,
                                  snug_error *err) {
    SNUG_NEEDS(err, s && variable && out);
    for (uint32_t i = 0; i < sn_graph_n_vars(s->graph); i++) {
        const sn_variable *var = sn_graph_var_at(s->graph, (sn_var){i});
        if (strcmp(var->name, variable) == 0)
            return sn_state_view(s->core->state, var->home, out, err);
    }
    return sn_fail(err, SNUG_E_INVALID,
                   "no variable is called '%.80s'; the graph has %u, the first is '%.80s'",
                   variable, sn_graph_n_vars(s->graph),
                   sn_graph_n_vars(s->graph) > 0 ? sn_graph_var_at(s->graph, (sn_var){0})->name
                                                 : "");
}

void snug_session_mend(snug_session *s) {
    if (!s)
        return;
    sn_state_mend(s->core->state);
}

size_t snug_session_arena_bytes(const snug_session *s) {
    if (!s)
        return 0;
    return s->plan->memories[SN_MEM_FIRST_ARENA].bytes;
}

snug_status snug_session_print(const snug_session *s, const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, s && out);
    return sn_plan_print(s->plan, out, err);
}
