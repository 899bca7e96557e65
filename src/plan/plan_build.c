/* plan_build.c: the planner as a list of passes. What they make is given to the checker, in every
 * build. */
#include "base/size.h"
#include "plan/passes.h"

#include <math.h>
#include <stdio.h>

/* Slower than without a limit by this factor, a plan is compared with one that spills. */
#define WORTH_A_FILE 1.02

snug_status sn_plan_array(sn_zone *z, size_t n, size_t elem_bytes, void *out, snug_error *err) {
    size_t bytes;
    if (!sn_size_mul(n, elem_bytes, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW,
                       "plan: an array of %zu elements of %zu bytes is too large", n, elem_bytes);
    void *block;
    SNUG_TRY(sn_zone_alloc(z, bytes, &block, err));
    *(void **)out = block;
    return SNUG_OK;
}

static snug_status check_options(const sn_graph *g, const sn_plan_options *o, snug_error *err) {
    if (o->n_devices < 1 || o->n_devices > SN_MAX_DEVICES)
        return sn_fail(err, SNUG_E_INVALID, "plan: %d devices given, 1 to %d can be used",
                       o->n_devices, SN_MAX_DEVICES);
    if (sn_graph_n_nodes(g) > UINT32_MAX / 64 || sn_graph_n_values(g) > UINT32_MAX / 64)
        return sn_fail(err, SNUG_E_OVERFLOW, "plan: a graph of %u nodes is too large",
                       sn_graph_n_nodes(g));
    for (uint32_t i = 0; o->placed && i < sn_graph_n_nodes(g); i++)
        if (o->placed[i] >= o->n_devices)
            return sn_fail(err, SNUG_E_INVALID, "node n%u is placed on device %u; there are %d", i,
                           o->placed[i], o->n_devices);
    return SNUG_OK;
}

static snug_status create_plan(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                               sn_plan **out, snug_error *err) {
    sn_zone *z = NULL;
    sn_plan *plan = NULL;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    const snug_status st = sn_plan_array(z, 1, sizeof *plan, &plan, err);
    if (st != SNUG_OK) {
        sn_zone_destroy(z);
        return st;
    }
    plan->zone = z;
    plan->graph = g;
    plan->n_devices = (uint32_t)o->n_devices;
    for (int d = 0; d < o->n_devices; d++) {
        snprintf(plan->device_names[d], sizeof plan->device_names[d], "%s", o->devices[d]->name);
        plan->device_align[d] = o->devices[d]->align;
    }
    *out = plan;
    return SNUG_OK;
}

/* Slots of optimizers, or values as well, may lie in files. */
typedef enum { IN_MEMORY, SLOTS_IN_FILE, ALL_IN_FILES } spilling;

/* What the arena may have when slots are spilled that give `gain`, and something else costs
 * `cost`. */
static size_t arena_limit(const sn_plan_options *o, size_t gain, size_t cost) {
    size_t limit = 0;
    if (o->arena_bytes == 0 || !sn_size_add(o->arena_bytes, gain, &limit))
        return 0;
    return limit > o->short_bytes + cost ? limit - o->short_bytes - cost : 1;
}

static snug_status find_facts(sn_planner *p, snug_error *err) {
    SNUG_TRY(sn_plan_describe(p, err));
    SNUG_TRY(sn_plan_readers(p, err));
    return sn_plan_undo(p, err);
}

static snug_status run_passes(sn_planner *p, const sn_plan_options *o, spilling what,
                              snug_error *err) {
    sn_plan_options limited = *o;
    SNUG_TRY(find_facts(p, err));
    if (o->placed) {
        SNUG_TRY(sn_plan_place(p, o, err));
        return sn_plan_summarise(p->plan, err);
    }
    if (p->fused)
        SNUG_TRY(find_facts(p->fused, err));
    p->spills_values = what == ALL_IN_FILES;
    if (what != IN_MEMORY)
        SNUG_TRY(sn_spill_slots(p, o, err));
    const size_t spilled = sn_spill_bytes_of(p);
    const size_t gain = sn_plan_spill_gain(spilled, o->file_is_there);
    limited.arena_bytes = arena_limit(o, gain, p->spills_values ? SN_FILE_MEMORY_BYTES : 0);
    p->arena_limit = o->spilled ? 0 : limited.arena_bytes;
    const snug_status st = sn_plan_choose(p, &limited, err);
    if (o->floor && o->floor->bytes > 0) {
        o->floor->spilled_bytes = gain;
        o->floor->in_file = what == SLOTS_IN_FILE;
        o->floor->seconds += sn_spill_seconds(p);
    }
    SNUG_TRY(st);
    return sn_plan_summarise(p->taken ? p->plan : p->fused->plan, err);
}

/* A plan of our own that the checker refuses is a bug of the planner, not of the caller. */
static snug_status check_own(const sn_plan *p, const sn_plan_options *o, snug_error *err) {
    const snug_status st = sn_plan_check(p, o->devices, o->n_devices, err);
    if (st != SNUG_E_INVALID)
        return st;
    (void)sn_fail_in(err, st, "the planner made a plan that is wrong; please report it");
    if (err)
        err->code = SNUG_E_INTERNAL;
    return SNUG_E_INTERNAL;
}

static snug_status open_planner(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                                sn_planner *out, snug_error *err) {
    *out = (sn_planner){.engine = e,
                        .graph = g,
                        .device = o->devices[0],
                        .devices = o->devices,
                        .placed = o->placed,
                        .spill_limit = o->spill_bytes,
                        .n_nodes = sn_graph_n_nodes(g),
                        .n_values = sn_graph_n_values(g)};
    SNUG_TRY(create_plan(e, g, o, &out->plan, err));
    return sn_zone_create(e, SN_MEM_PLAN, &out->work, err);
}

/* The plan stays where it is one. */
static void close_planner(sn_planner *p) {
    sn_zone_destroy(p->work);
    if (!p->taken)
        sn_plan_destroy(p->plan);
}

/* Those of both graphs. */
typedef struct {
    sn_planner p, fused;
} planners;

static snug_status open_planners(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                                 bool with_fused, planners *out, snug_error *err) {
    SNUG_TRY(open_planner(e, g, o, &out->p, err));
    if (!with_fused || !o->fused)
        return SNUG_OK;
    out->p.fused = &out->fused;
    return open_planner(e, o->fused, o, &out->fused, err);
}

/* The plan that was chosen, or NULL. */
static sn_plan *close_planners(planners *all) {
    sn_planner *const fused = all->p.fused;
    sn_plan *const plan = all->p.taken ? all->p.plan : fused && fused->taken ? fused->plan : NULL;
    if (fused)
        close_planner(fused);
    close_planner(&all->p);
    return plan;
}

/* Searches for plans of one graph. */
typedef struct {
    snug_engine *engine;
    const sn_graph *graph;
    sn_searches searches;
} builder;

/* A gradient may not die where slots lie in a file: only whole updates come to those. */
static bool may_fuse(const builder *b, const sn_plan_options *o, spilling what) {
    bool may = o->slices <= 1 && (what == IN_MEMORY || o->spilled);
    for (uint32_t i = 0; may && o->spilled && i < sn_graph_n_vars(b->graph); i++)
        may = !o->spilled[i];
    return may;
}

static snug_status build(builder *b, const sn_plan_options *o, spilling what, sn_plan **out,
                         snug_error *err) {
    planners all = {0};
    snug_status st = open_planners(b->engine, b->graph, o, may_fuse(b, o, what), &all, err);
    all.p.searches = &b->searches;
    if (st == SNUG_OK)
        st = run_passes(&all.p, o, what, err);
    sn_plan *const plan = close_planners(&all);
    if (st == SNUG_OK)
        st = check_own(plan, o, err);
    if (st != SNUG_OK) {
        sn_plan_destroy(plan);
        return st;
    }
    *out = plan;
    return SNUG_OK;
}

/* The smaller of both; unknown (0) where a plan that spills fits and it was not looked for. */
static void merge_floor(sn_plan_floor *floor, const sn_plan_floor *with_file) {
    const size_t less = with_file->spilled_bytes;
    if (with_file->bytes == 0)
        *floor = *with_file;
    else if ((with_file->bytes > less ? with_file->bytes - less : 0) < floor->bytes)
        *floor = *with_file;
}

/* With bytes in files, where that is faster than *plan or the only way; `st` is what became of
 * *plan. */
static snug_status build_spilled(builder *b, const sn_plan_options *o, spilling what,
                                 snug_status st, sn_plan **plan, snug_error *err) {
    sn_plan *other = NULL;
    sn_plan_floor floor = {.bytes = 0};
    sn_plan_options own = *o;
    snug_error refusal;
    const bool wants_floor = o->floor && (st != SNUG_OK || o->always_floor);
    own.floor = wants_floor ? &floor : NULL;
    b->searches.beat = st == SNUG_OK ? (*plan)->seconds : INFINITY;
    const snug_status other_st = build(b, &own, what, &other, &refusal);
    if (other_st != SNUG_OK && other_st != SNUG_E_BUDGET) {
        sn_plan_destroy(*plan);
        if (err)
            *err = refusal;
        return other_st;
    }
    if (what == SLOTS_IN_FILE && wants_floor)
        merge_floor(o->floor, &floor);
    if (other_st == SNUG_OK && (st != SNUG_OK || other->seconds < (*plan)->seconds)) {
        sn_plan_destroy(*plan);
        *plan = other;
        return SNUG_OK;
    }
    sn_plan_destroy(other);
    return st;
}

/* Worth another try. */
static bool is_slow(snug_status st, const sn_plan *p) {
    return st == SNUG_E_BUDGET || (st == SNUG_OK && p->seconds > p->plain_seconds * WORTH_A_FILE);
}

snug_status sn_plan_build(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                          sn_plan **out, snug_error *err) {
    builder b = {.engine = e, .graph = g, .searches = {.beat = INFINITY}};
    sn_plan *plan = NULL;
    SNUG_TRY(check_options(g, o, err));
    const bool in_file = o->spilled || (o->at && o->at->in_file);
    const bool may_spill = o->may_spill && !o->spilled && !o->at;
    snug_status st = build(&b, o, in_file ? SLOTS_IN_FILE : IN_MEMORY, &plan, err);
    if (may_spill && o->floor && !is_slow(st, plan))
        *o->floor = (sn_plan_floor){.bytes = 0}; /* of plans in memory: with files there is less */
    for (int what = SLOTS_IN_FILE; may_spill && what <= ALL_IN_FILES; what++)
        if (is_slow(st, plan))
            st = build_spilled(&b, o, (spilling)what, st, &plan, err);
    if (st == SNUG_OK)
        *out = plan;
    return st;
}

snug_status sn_plan_curve(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                          sn_plan_point *out, uint32_t max, uint32_t *n, snug_error *err) {
    SNUG_TRY(check_options(g, o, err));
    if (o->placed)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "a plan with nodes placed on devices has no limit, and so no curve");
    planners all = {0};
    snug_status st = open_planners(e, g, o, true, &all, err);
    if (st == SNUG_OK)
        st = find_facts(&all.p, err);
    if (st == SNUG_OK && all.p.fused)
        st = find_facts(all.p.fused, err);
    if (st == SNUG_OK)
        st = sn_plan_front(&all.p, o, out, max, n, err);
    sn_plan_destroy(close_planners(&all));
    return st;
}

static bool beats(const sn_plan_point *a, const sn_plan_point *b) {
    return a->bytes <= b->bytes && a->seconds <= b->seconds;
}

void sn_plan_thin(sn_plan_point *points, uint32_t *n) {
    uint32_t kept = 1;
    for (uint32_t i = 1; i < *n; i++) {
        bool stays = true;
        for (uint32_t j = i + 1; stays && j < *n; j++)
            stays = !beats(&points[j], &points[i]);
        for (uint32_t j = 0; stays && j < kept; j++)
            stays = !beats(&points[j], &points[i]);
        if (stays)
            points[kept++] = points[i];
    }
    *n = kept;
}

void sn_plan_destroy(sn_plan *p) {
    if (p)
        sn_zone_destroy(p->zone);
}
