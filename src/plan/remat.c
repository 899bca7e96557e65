/* remat.c: the door of the recompute search: checks the program, asks for a first list (greedy),
 * has it improved (search), and writes the events. Where the greedy list does not fit, the smallest
 * budget it does fit is found by halving: that list is an answer to every larger budget.
 *
 * Invariants:
 * 1. All sums of bytes are below SIZE_MAX: the sum over all operators was checked.
 * 2. An answer obeys the rules in remat.h; what is in doubt is measured, not assumed. */
#include "plan/remat_parts.h"

#include "base/size.h"

#include <string.h>

enum { MOST_PER_OP = 16, MOST_EXTRA = 64 }; /* computations of a list */
enum { FLOOR_PROBES = 14 };

/* --- the program ------------------------------------------------------------------------------ */
static bool is_input(const sn_remat_problem *p, const sn_remat_op *o, uint32_t u) {
    for (uint32_t k = 0; k < o->n_in; k++)
        if (p->inputs[o->in + k] == u)
            return true;
    return false;
}

static snug_status check_op(const sn_remat_problem *p, uint32_t i, snug_error *err) {
    const sn_remat_op *o = &p->ops[i];
    for (uint32_t k = 0; k < o->n_in; k++)
        if (p->inputs[o->in + k] >= i)
            return sn_fail(err, SNUG_E_INVALID, "remat: op %u reads op %u, which is not before it",
                           i, p->inputs[o->in + k]);
    if (o->not_after != SN_REMAT_NONE && (o->not_after <= i || o->not_after >= p->n))
        return sn_fail(err, SNUG_E_INVALID, "remat: op %u is not computed after op %u of %u", i,
                       o->not_after, p->n);
    if (o->takes != SN_REMAT_NONE && !is_input(p, o, o->takes))
        return sn_fail(err, SNUG_E_INVALID, "remat: op %u takes op %u, which it does not read", i,
                       o->takes);
    if (!(o->cost >= 0))
        return sn_fail(err, SNUG_E_INVALID, "remat: op %u costs %g", i, o->cost);
    return SNUG_OK;
}

static snug_status check_problem(const sn_remat_problem *p, snug_error *err) {
    size_t sum = p->fixed_bytes;
    if (p->n > UINT32_MAX / (2 * MOST_PER_OP) - MOST_EXTRA)
        return sn_fail(err, SNUG_E_OVERFLOW, "remat: %u operators are too many", p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        SNUG_TRY(check_op(p, i, err));
        if (!sn_size_add(sum, p->ops[i].bytes, &sum) ||
            !sn_size_add(sum, p->ops[i].work_bytes, &sum))
            return sn_fail(
                err, SNUG_E_OVERFLOW,
                "remat: the bytes of %u operators exceed the address space; use a smaller batch",
                p->n);
    }
    return SNUG_OK;
}

/* Readers of each value, ascending because they are found in order. A reader that names a value
 * twice stands there twice. */
static void find_uses(sn_remat_program *g) {
    const sn_remat_problem *p = g->p;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < p->ops[i].n_in; k++)
            g->use_at[p->inputs[p->ops[i].in + k] + 1]++;
    for (uint32_t i = 0; i < p->n; i++)
        g->use_at[i + 1] += g->use_at[i];
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < p->ops[i].n_in; k++)
            g->uses[g->use_at[p->inputs[p->ops[i].in + k]]++] = i;
    for (uint32_t i = p->n; i > 0; i--)
        g->use_at[i] = g->use_at[i - 1];
    g->use_at[0] = 0;
}

/* Until when an input is to be had: for ever, as long as somebody reads it anyway (it cannot be
 * dropped before, where it cannot be computed again), or as long as it can be computed again. */
static uint32_t available_until(const sn_remat_program *g, uint32_t u) {
    if (g->p->ops[u].keep)
        return UINT32_MAX;
    const bool read = g->use_at[u] < g->use_at[u + 1];
    const uint32_t last = read ? g->uses[g->use_at[u + 1] - 1] : 0;
    return last > g->horizon[u] ? last : g->horizon[u];
}

static void find_horizons(sn_remat_program *g) {
    const sn_remat_problem *p = g->p;
    for (uint32_t i = 0; i < p->n; i++) {
        const sn_remat_op *o = &p->ops[i];
        uint32_t until = o->once || o->keep ? 0 : o->not_after;
        for (uint32_t k = 0; k < o->n_in; k++) {
            const uint32_t u = available_until(g, p->inputs[o->in + k]);
            until = u < until ? u : until;
        }
        g->horizon[i] = until;
    }
}

/* What one computation needs: its inputs, output and work, sharing what can be shared. */
static size_t need_of(const sn_remat_problem *p, const sn_remat_op *o) {
    size_t need = p->fixed_bytes + o->bytes + o->work_bytes;
    for (uint32_t k = 0; k < o->n_in; k++) {
        const uint32_t u = p->inputs[o->in + k];
        bool seen = false;
        for (uint32_t j = 0; j < k; j++)
            seen = seen || p->inputs[o->in + j] == u;
        const size_t bytes = p->ops[u].bytes;
        need += seen ? 0 : bytes;
        if (!seen && u == o->takes && !p->ops[u].keep)
            need -= bytes < o->bytes ? bytes : o->bytes;
    }
    return need;
}

static snug_status make_program(sn_zone *z, const sn_remat_problem *p, sn_remat_program *g,
                                snug_error *err) {
    void *mem;
    *g = (sn_remat_program){.p = p, .bound = p->fixed_bytes};
    g->most = MOST_PER_OP * p->n + MOST_EXTRA;
    for (uint32_t i = 0; i < p->n; i++) {
        const size_t need = need_of(p, &p->ops[i]);
        g->bound = need > g->bound ? need : g->bound;
        g->base_cost += p->ops[i].cost;
        g->n_inputs += p->ops[i].n_in;
    }
    SNUG_TRY(sn_zone_alloc(z, (2 * (size_t)p->n + 1) * sizeof(uint32_t), &mem, err));
    g->use_at = mem;
    g->horizon = g->use_at + p->n + 1;
    SNUG_TRY(sn_zone_alloc(z, g->n_inputs * sizeof(uint32_t), &mem, err));
    g->uses = mem;
    find_uses(g);
    find_horizons(g);
    return SNUG_OK;
}

/* --- the answer ------------------------------------------------------------------------------- */
/* Events back to front: a value is freed behind its last use. */
static uint32_t write_back(const sn_remat_program *g, const sn_remat_list *list, bool *live,
                           sn_remat_event *end) {
    const sn_remat_problem *p = g->p;
    sn_remat_event *e = end;
    for (uint32_t i = 0; i < p->n; i++)
        live[i] = p->ops[i].keep;
    for (uint32_t k = list->n; k > 0; k--) {
        const uint32_t op = list->ops[k - 1];
        const sn_remat_op *o = &p->ops[op];
        if (!live[op])
            *--e = (sn_remat_event){op, true};
        live[op] = false;
        for (uint32_t j = o->n_in; j > 0; j--) {
            const uint32_t u = p->inputs[o->in + j - 1];
            if (!live[u])
                *--e = (sn_remat_event){u, true};
            live[u] = true;
        }
        *--e = (sn_remat_event){op, false};
    }
    return (uint32_t)(end - e);
}

static snug_status write_events(sn_zone *z, const sn_remat_program *g, const sn_remat_list *list,
                                bool *live, sn_remat_result *out, snug_error *err) {
    void *events;
    SNUG_TRY(sn_zone_alloc(z, 2 * (size_t)list->n * sizeof(sn_remat_event), &events, err));
    sn_remat_event *const all = events;
    const uint32_t n = write_back(g, list, live, all + 2 * (size_t)list->n);
    memmove(all, all + 2 * (size_t)list->n - n, n * sizeof *all);
    *out = (sn_remat_result){.fits = true,
                             .events = all,
                             .n_events = n,
                             .cost = list->cost,
                             .peak = list->peak,
                             .bound = g->bound};
    return SNUG_OK;
}

/* Every operator once, in the order given. */
static void plain_list(const sn_remat_program *g, sn_remat_list *list) {
    for (list->n = 0; list->n < g->p->n; list->n++)
        list->ops[list->n] = list->n;
    sn_remat_measure(g, list);
}

/* The cheapest of the greedy lists (of a few where the floor does not matter); false where none
 * fits. */
static bool find_cheapest(sn_remat_greedy *s, const sn_remat_program *g, const sn_remat_limits *l,
                          sn_remat_list *spare, sn_remat_list *list) {
    bool found = false;
    for (uint32_t m = l->no_floor; m < SN_REMAT_MANNERS; m += l->no_floor ? 4 : 1)
        if (sn_remat_greedy_run(s, l->budget, m, spare) && (!found || spare->cost < list->cost)) {
            sn_remat_list_copy(g, list, spare);
            found = true;
        }
    return found;
}

/* Any list that fits. Manners that count cost high reach the smallest budgets. */
static bool fits_somehow(sn_remat_greedy *s, size_t budget, sn_remat_list *out) {
    static const uint32_t manners[] = {7, 3, 9, 5};
    for (size_t k = 0; k < sizeof manners / sizeof *manners; k++)
        if (sn_remat_greedy_run(s, budget, manners[k], out))
            return true;
    return false;
}

/* From the plain list to that of the smallest budget a greedy run succeeds with, to a part in
 * 2^FLOOR_PROBES of the way from the bound to the plain peak. */
static void find_floor(sn_remat_greedy *s, const sn_remat_program *g, sn_remat_list *spare,
                       sn_remat_list *list) {
    size_t low = g->bound;
    if (fits_somehow(s, low, spare)) {
        sn_remat_list_copy(g, list, spare);
        return;
    }
    for (int k = 0; k < FLOOR_PROBES && list->peak - low > 1; k++) {
        const size_t middle = low + (list->peak - low) / 2;
        if (fits_somehow(s, middle, spare))
            sn_remat_list_copy(g, list, spare);
        else
            low = middle;
    }
}

static snug_status solve(sn_zone *work, const sn_remat_program *g, const sn_remat_limits *l,
                         sn_remat_list *list, snug_error *err) {
    sn_remat_greedy *s;
    sn_remat_list spare;
    SNUG_TRY(sn_remat_list_init(work, g, list, err));
    plain_list(g, list);
    if (list->peak <= l->budget)
        return SNUG_OK;
    SNUG_TRY(sn_remat_greedy_create(work, g, &s, err));
    SNUG_TRY(sn_remat_list_init(work, g, &spare, err));
    if (l->any && fits_somehow(s, l->budget, &spare)) {
        sn_remat_list_copy(g, list, &spare);
        return SNUG_OK;
    }
    if (!find_cheapest(s, g, l, &spare, list) && !l->no_floor) {
        find_floor(s, g, &spare, list);
        SNUG_TRY(sn_remat_floor(work, g, s, l->budget, list, err));
    }
    if (list->peak <= l->budget && l->work > 0)
        return sn_remat_search(work, g, l, list, err);
    return SNUG_OK;
}

static snug_status answer(sn_zone *z, sn_zone *work, const sn_remat_problem *p,
                          const sn_remat_limits *l, sn_remat_result *out, snug_error *err) {
    sn_remat_program g;
    sn_remat_list list;
    void *live;
    SNUG_TRY(make_program(work, p, &g, err));
    SNUG_TRY(sn_zone_alloc(work, p->n * sizeof(bool), &live, err));
    SNUG_TRY(solve(work, &g, l, &list, err));
    if (list.peak <= l->budget)
        return write_events(z, &g, &list, live, out, err);
    *out = (sn_remat_result){.floor = l->no_floor ? SIZE_MAX : list.peak, .bound = g.bound};
    return SNUG_OK;
}

snug_status sn_remat(sn_zone *z, const sn_remat_problem *p, const sn_remat_limits *l,
                     sn_remat_result *out, snug_error *err) {
    sn_zone *work;
    SNUG_TRY(check_problem(p, err));
    SNUG_TRY(sn_zone_create_for(sn_zone_engine(z), SN_MEM_PLAN, (size_t)p->n * 2000, &work, err));
    const snug_status status = answer(z, work, p, l, out, err);
    sn_zone_destroy(work);
    return status;
}
