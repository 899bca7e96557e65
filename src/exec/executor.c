/* executor.c: the owner of arenas, sessions and worker threads. An arena is one block as large as
 * the largest plan says; all plans of the executor share it, because one plan runs at a time.
 *
 * Invariants:
 * 1. A ready session's pointers lie in the arenas there are: replacing an arena makes all sessions
 * unready first.
 * 2. An arena that must grow is given back before the larger one is asked for: the peak is never
 * old + new. */
#include "exec/inside.h"

#include "base/size.h"

#include <stdio.h>
#include <string.h>

static size_t idle_bytes(const sn_idle *i) {
    const sn_executor *x = (const sn_executor *)i;
    size_t sum = 0;
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++)
        sum += x->arenas[m].booked_bytes;
    return sum;
}

static void give_idle(sn_idle *i) {
    sn_executor_forget((sn_executor *)i);
}

size_t sn_executor_others(const sn_executor *x) {
    return x->gpu ? 0 : sn_idle_bytes(x->engine, &x->idle);
}

bool sn_executor_take_others(const sn_executor *x) {
    return !x->gpu && sn_idle_give(x->engine, &x->idle);
}

static void count_users(sn_executor *x, int users) {
    if (x->options.gives)
        sn_idle_use(x->engine, &x->idle, users);
}

void sn_executor_use(sn_executor *x) {
    count_users(x, 1);
}

void sn_executor_unuse(sn_executor *x) {
    count_users(x, -1);
}

bool sn_executor_is_ready(sn_executor *x) {
    count_users(x, 0);
    return x->prepared;
}

snug_status sn_executor_create(snug_engine *e, sn_state *state, const sn_device *const *devices,
                               int n_devices, const sn_executor_options *o, sn_executor **out,
                               snug_error *err) {
    if (n_devices < 1 || n_devices > SN_MAX_DEVICES)
        return sn_fail(err, SNUG_E_INVALID, "%d devices; an executor has 1 to %d", n_devices,
                       SN_MAX_DEVICES);
    for (int i = 0; n_devices > 1 && i < n_devices; i++)
        if (sn_gpu_of(devices[i]))
            return sn_fail(err, SNUG_E_UNSUPPORTED, "an executor with a GPU has no other device");
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_PLAN, sizeof(sn_executor), &block, err));
    sn_executor *x = block;
    x->engine = e;
    x->state = state;
    x->n_devices = (uint32_t)n_devices;
    x->gpu = sn_gpu_of(devices[0]);
    if (x->gpu)
        x->gpu->n_users++;
    for (int i = 0; i < n_devices; i++) {
        x->devices[i] = x->gpu ? x->gpu->host : *(const sn_cpu_device *)devices[i];
        snprintf(x->names[i], sizeof x->names[i], "%s", devices[i]->name);
    }
    if (o)
        x->options = *o;
    x->idle.bytes = idle_bytes;
    x->idle.give = give_idle;
    if (x->options.gives)
        sn_idle_join(e, &x->idle);
    *out = x;
    return SNUG_OK;
}

static void destroy_session(sn_session *s) {
    sn_gpu_drop_graphs(s);
    sn_bind_release(s);
    sn_zone_destroy(s->zone);
    sn_free(s->executor->engine, SN_MEM_PLAN, s, sizeof *s);
}

void sn_executor_remove(sn_executor *x, sn_session *s) {
    sn_session **link = &x->first;
    while (*link && *link != s)
        link = &(*link)->next;
    if (*link) {
        *link = s->next;
        if (x->side.ahead == s)
            x->side.ahead = NULL;
        destroy_session(s);
    }
}

void sn_executor_destroy(sn_executor *x) {
    if (!x)
        return;
    if (x->options.gives)
        sn_idle_leave(x->engine, &x->idle);
    sn_crew_stop(&x->crew);
    if (x->holds_team)
        sn_team_drop(x->engine);
    while (x->first)
        sn_executor_remove(x, x->first);
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++) {
        sn_block_clear(&x->arenas[m]);
        sn_spill_destroy(x->files[m]);
    }
    if (x->gpu) {
        sn_gpu_clear(x);
        x->gpu->n_users--;
    }
    sn_free(x->engine, SN_MEM_PLAN, x, sizeof *x);
}

/* --- adding a plan ---------------------------------------------------------------------------- */

static snug_status map_devices(sn_session *s, snug_error *err) {
    const sn_executor *x = s->executor;
    for (uint32_t d = 0; d < s->plan->n_devices; d++) {
        uint32_t k = 0;
        while (k < x->n_devices && strcmp(x->names[k], s->plan->device_names[d]) != 0)
            k++;
        if (k == x->n_devices)
            return sn_fail(err, SNUG_E_INVALID,
                           "the plan is for device '%s'; the executor has %u, the first is '%s'",
                           s->plan->device_names[d], x->n_devices, x->names[0]);
        s->device_of[d] = k;
    }
    return SNUG_OK;
}

static snug_status check_homes(const sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    for (uint32_t i = 0; !sn_graph_is_outside(g) && i < sn_graph_n_vars(g); i++) {
        const sn_variable *var = sn_graph_var_at(g, (sn_var){i});
        if (var->home >= sn_state_count(s->executor->state))
            return sn_fail(err, SNUG_E_INVALID, "variable '%s' has home %u; the state has %u homes",
                           var->name, var->home, sn_state_count(s->executor->state));
        char want[192], have[192];
        const sn_home *home = sn_state_home(s->executor->state, var->home);
        if (!sn_type_equal(&home->type, &var->type))
            return sn_fail(err, SNUG_E_SHAPE, "variable '%s' is %s; its home '%s' is %s", var->name,
                           snug_type_print(&var->type, want, sizeof want), home->name,
                           snug_type_print(&home->type, have, sizeof have));
    }
    return SNUG_OK;
}

snug_status sn_session_take(sn_session *s, size_t n, size_t elem_bytes, void *array,
                            snug_error *err) {
    size_t bytes;
    void *block;
    if (!sn_size_mul(n, elem_bytes, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "a plan of %zu items exceeds the address space", n);
    SNUG_TRY(sn_zone_alloc(s->zone, bytes, &block, err));
    memcpy(array, &block, sizeof block);
    return SNUG_OK;
}

static snug_status fill_session(sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    SNUG_TRY(map_devices(s, err));
    SNUG_TRY(check_homes(s, err));
    SNUG_TRY(sn_zone_create(s->executor->engine, SN_MEM_PLAN, &s->zone, err));
    SNUG_TRY(sn_session_take(s, s->plan->n_steps, sizeof *s->bound, &s->bound, err));
    SNUG_TRY(sn_session_take(s, s->plan->n_steps, sizeof *s->done, &s->done, err));
    SNUG_TRY(sn_session_take(s, sn_graph_n_outputs(g), sizeof *s->outputs, &s->outputs, err));
    SNUG_TRY(sn_session_take(s, sn_graph_n_params(g), sizeof *s->params, &s->params, err));
    SNUG_TRY(sn_session_take(s, sn_graph_n_inputs(g), sizeof *s->inputs, &s->inputs, err));
    for (uint32_t i = 0; i < sn_graph_n_params(g); i++)
        s->params[i] = sn_param_default(sn_graph_param_at(g, (sn_param){i}));
    SNUG_TRY(sn_bind_steps(s, err));
    SNUG_TRY(sn_loans_find(s, err));
    return s->executor->gpu ? sn_gpu_measure(s, err) : SNUG_OK;
}

/* Whether the session can run with the arenas, files, homes and lanes there are. */
static bool fits(const sn_session *s) {
    const sn_executor *x = s->executor;
    if (x->gpu)
        return sn_gpu_fits(s) && sn_files_fit(s);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < s->plan->n_memories; m++)
        if (s->plan->memories[m].kind == SN_MEMORY_BYTES &&
            (!x->arenas[m].data || x->arenas[m].bytes < s->plan->memories[m].bytes))
            return false;
    if (!sn_files_fit(s))
        return false;
    for (uint32_t k = 1; k < SN_MAX_LANES; k++)
        if ((s->lanes >> k & 1u) && !sn_crew_serves(&x->crew, k))
            return false;
    return true;
}

static snug_status make_ready(sn_session *s, snug_error *err) {
    sn_gpu_drop_graphs(s);
    SNUG_TRY(sn_bind_kernels(s, err));
    SNUG_TRY(sn_bind_pointers(s, err));
    s->ready = true;
    return SNUG_OK;
}

snug_status sn_executor_add(sn_executor *x, const sn_plan *plan, sn_session **out,
                            snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(x->engine, SN_MEM_PLAN, sizeof(sn_session), &block, err));
    sn_session *s = block;
    s->executor = x;
    s->plan = plan;
    snug_status status = fill_session(s, err);
    if (status == SNUG_OK && x->prepared && fits(s))
        status = make_ready(s, err);
    if (status != SNUG_OK) {
        destroy_session(s);
        return status;
    }
    sn_session **end = &x->first;
    while (*end)
        end = &(*end)->next;
    *end = s;
    *out = s;
    return SNUG_OK;
}

/* --- preparing -------------------------------------------------------------------------------- */

bool sn_executor_largest(const sn_executor *x, uint32_t m, sn_memory_kind kind, size_t *bytes,
                         const char **name) {
    bool found = false;
    *bytes = 0;
    for (const sn_session *s = x->first; s; s = s->next) {
        const sn_plan_memory *memory = &s->plan->memories[m];
        if (m >= s->plan->n_memories || memory->kind != kind)
            continue;
        found = true;
        *name = memory->name;
        *bytes = memory->bytes > *bytes ? memory->bytes : *bytes;
    }
    return found;
}

static snug_status make_arena(sn_executor *x, uint32_t m, snug_error *err) {
    size_t bytes;
    const char *name;
    sn_block *arena = &x->arenas[m];
    if (!sn_executor_largest(x, m, SN_MEMORY_BYTES, &bytes, &name) ||
        (arena->data && arena->bytes >= bytes))
        return SNUG_OK;
    for (sn_session *s = x->first; s; s = s->next)
        s->ready = false;
    sn_block_clear(arena);
    const sn_block_options options = {.guard = x->options.guard, .populate = true};
    return sn_block_init(x->engine, SN_MEM_ARENA, name, bytes, &options, arena, err);
}

/* Of the plan's own variables: a model that only predicts does not pay for an optimizer's slots. */
static snug_status make_homes(const sn_session *s, snug_error *err) {
    const sn_graph *g = s->plan->graph;
    for (uint32_t i = 0; !sn_graph_is_outside(g) && i < sn_graph_n_vars(g); i++) {
        snug_view home;
        if (!sn_plan_spills(s->plan, (sn_var){i}))
            SNUG_TRY(sn_state_view(s->executor->state, sn_graph_var_at(g, (sn_var){i})->home, &home,
                                   err));
    }
    return SNUG_OK;
}

static snug_status hold_team(sn_executor *x, snug_error *err) {
    if (x->options.alone)
        return SNUG_OK;
    if (!x->holds_team)
        SNUG_TRY(sn_team_hold(x->engine, &x->team, err));
    x->holds_team = true;
    return SNUG_OK;
}

static snug_status try_host(sn_executor *x, snug_error *err) {
    for (const sn_session *s = x->first; s; s = s->next)
        SNUG_TRY(make_homes(s, err));
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < SN_MAX_MEMORIES; m++)
        SNUG_TRY(make_arena(x, m, err));
    return SNUG_OK;
}

/* Plans count idle arenas of others as free: here they are taken, if need be. */
static snug_status make_host(sn_executor *x, uint32_t lanes, snug_error *err) {
    snug_status status = try_host(x, err);
    if ((status == SNUG_E_BUDGET || status == SNUG_E_MEMORY) && sn_idle_give(x->engine, &x->idle))
        status = try_host(x, err);
    SNUG_TRY(status);
    return sn_crew_start(&x->crew, x->engine, lanes, err);
}

snug_status sn_executor_prepare(sn_executor *x, snug_error *err) {
    uint32_t lanes = 0;
    x->prepared = false;
    for (sn_session *s = x->first; s; s = s->next) {
        SNUG_TRY(sn_bind_kernels(s, err));
        lanes |= s->lanes;
    }
    SNUG_TRY(sn_files_make(x, err));
    SNUG_TRY(hold_team(x, err));
    if (x->gpu)
        SNUG_TRY(sn_gpu_make(x, err));
    else
        SNUG_TRY(make_host(x, lanes, err));
    for (sn_session *s = x->first; s; s = s->next)
        SNUG_TRY(make_ready(s, err));
    x->prepared = true;
    return SNUG_OK;
}

void sn_executor_forget(sn_executor *x) {
    for (sn_session *s = x->first; s; s = s->next)
        s->ready = false;
    x->prepared = false;
    for (uint32_t m = 0; m < SN_MAX_MEMORIES; m++)
        sn_block_clear(&x->arenas[m]);
    if (x->gpu)
        sn_gpu_clear_arenas(x);
}

snug_view sn_executor_arena(const sn_executor *x, uint32_t memory) {
    const sn_block *b = &x->arenas[memory];
    const sn_gpu_piece *there = &x->side.arenas[memory];
    snug_view view = {.data = x->gpu ? there->data : b->data,
                      .bytes = x->gpu ? there->bytes : b->bytes};
    view.type = (snug_type){.dtype = SNUG_U8, .rank = 1, .dims = {(int64_t)view.bytes}};
    return view;
}
