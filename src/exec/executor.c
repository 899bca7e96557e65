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

size_t sn_executor_booked(const sn_executor *x) {
    size_t sum = 0;
    for (uint32_t k = 0; k < x->n_runners; k++)
        sum += x->runners[k].kind->booked(&x->runners[k]);
    return sum;
}

static size_t idle_bytes(const sn_idle *i) {
    return sn_executor_booked((const sn_executor *)i);
}

static void give_idle(sn_idle *i) {
    sn_executor_forget((sn_executor *)i);
}

size_t sn_executor_others(const sn_executor *x) {
    return x->runners[0].kind->others(&x->runners[0]);
}

bool sn_executor_take_others(const sn_executor *x) {
    return x->runners[0].kind->take_others(&x->runners[0]);
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

static snug_status open_runner(sn_executor *x, const sn_device *device, snug_error *err) {
    sn_runner *r = &x->runners[x->n_runners];
    r->kind = sn_runner_class_of(device);
    r->executor = x;
    r->index = x->n_runners;
    snprintf(r->name, sizeof r->name, "%s", device->name);
    SNUG_TRY(r->kind->open(r, device, err));
    x->n_runners++;
    return SNUG_OK;
}

static size_t bytes_of(int n_devices) {
    return sizeof(sn_executor) + (size_t)n_devices * sizeof(sn_runner);
}

static void close_runners(sn_executor *x, int n_devices) {
    while (x->n_runners > 0) {
        x->n_runners--;
        x->runners[x->n_runners].kind->close(&x->runners[x->n_runners]);
    }
    sn_free(x->engine, SN_MEM_PLAN, x, bytes_of(n_devices));
}

snug_status sn_executor_create(snug_engine *e, sn_state *state, const sn_device *const *devices,
                               int n_devices, const sn_executor_options *o, sn_executor **out,
                               snug_error *err) {
    if (n_devices < 1 || n_devices > SN_MAX_DEVICES)
        return sn_fail(err, SNUG_E_INVALID, "%d devices; an executor has 1 to %d", n_devices,
                       SN_MAX_DEVICES);
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_PLAN, bytes_of(n_devices), &block, err));
    sn_executor *x = block;
    x->engine = e;
    x->state = state;
    for (int i = 0; i < n_devices; i++) {
        const snug_status status = open_runner(x, devices[i], err);
        if (status != SNUG_OK) {
            close_runners(x, n_devices);
            return status;
        }
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
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        r->kind->forget(r, s);
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
    close_runners(x, (int)x->n_runners);
}

/* --- adding a plan ---------------------------------------------------------------------------- */

static snug_status map_devices(sn_session *s, snug_error *err) {
    sn_executor *x = s->executor;
    for (uint32_t d = 0; d < s->plan->n_devices; d++) {
        uint32_t k = 0;
        while (k < x->n_runners && strcmp(x->runners[k].name, s->plan->device_names[d]) != 0)
            k++;
        if (k == x->n_runners)
            return sn_fail(err, SNUG_E_INVALID,
                           "the plan is for device '%s'; the executor has %u, the first is '%s'",
                           s->plan->device_names[d], x->n_runners, x->runners[0].name);
        s->runner_of[d] = &x->runners[k];
        s->runners |= 1u << k;
        if (!s->lead || (!s->lead->kind->apart && x->runners[k].kind->apart))
            s->lead = &x->runners[k];
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
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        SNUG_TRY(r->kind->measure(r, s, err));
    return SNUG_OK;
}

/* Whether the session can run with the arenas, files, homes and lanes there are. */
static bool fits(const sn_session *s) {
    for (const sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        if (!r->kind->fits(r, s))
            return false;
    if (!sn_files_fit(s))
        return false;
    for (uint32_t k = 1; k < SN_MAX_LANES; k++)
        if ((s->lanes >> k & 1u) && !sn_crew_serves(&s->executor->crew, k))
            return false;
    return true;
}

static snug_status make_ready(sn_session *s, snug_error *err) {
    for (sn_runner *r = sn_runner_next(s, NULL); r; r = sn_runner_next(s, r))
        r->kind->moved(r, s);
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

void sn_executor_make_unready(sn_executor *x) {
    for (sn_session *s = x->first; s; s = s->next)
        s->ready = false;
}

bool sn_runner_largest(const sn_runner *r, uint32_t m, sn_memory_kind kind, size_t *bytes,
                       const char **name) {
    bool found = false;
    *bytes = 0;
    for (const sn_session *s = r->executor->first; s; s = s->next) {
        const sn_plan_memory *memory = &s->plan->memories[m];
        if (m >= s->plan->n_memories || memory->kind != kind || sn_runner_of_memory(s, m) != r)
            continue;
        found = true;
        *name = memory->name;
        *bytes = memory->bytes > *bytes ? memory->bytes : *bytes;
    }
    return found;
}

static snug_status hold_team(sn_executor *x, snug_error *err) {
    if (x->options.alone)
        return SNUG_OK;
    if (!x->holds_team)
        SNUG_TRY(sn_team_hold(x->engine, &x->team, err));
    x->holds_team = true;
    return SNUG_OK;
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
    for (uint32_t k = 0; k < x->n_runners; k++)
        SNUG_TRY(x->runners[k].kind->make(&x->runners[k], err));
    SNUG_TRY(sn_crew_start(&x->crew, x->engine, lanes, err));
    for (sn_session *s = x->first; s; s = s->next)
        SNUG_TRY(make_ready(s, err));
    x->prepared = true;
    return SNUG_OK;
}

void sn_executor_forget(sn_executor *x) {
    sn_executor_make_unready(x);
    x->prepared = false;
    for (uint32_t k = 0; k < x->n_runners; k++)
        x->runners[k].kind->drop_arenas(&x->runners[k]);
}

snug_view sn_executor_arena(const sn_executor *x, uint32_t memory) {
    snug_view view = {.data = NULL};
    for (uint32_t k = 0; k < x->n_runners && !view.data; k++)
        view = x->runners[k].kind->arena(&x->runners[k], memory);
    view.type = (snug_type){.dtype = SNUG_U8, .rank = 1, .dims = {(int64_t)view.bytes}};
    return view;
}
