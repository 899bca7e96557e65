/* budget.c: a step's plan within a budget of the whole process. What is not arena is measured or
 * booked first; the plan gets the rest. A plan with many steps is itself large: when its books are
 * larger than was reserved for them, it is made again with a smaller arena. */
#include "train/budget.h"

#include "base/size.h"
#include "memory/process.h"

#include <string.h>

#define MAX_TRIES  4
#define PAGE_BYTES 4096

/* What the ledger holds now in every category but those of state and arena. */
static size_t books_of(const snug_model *m) {
    snug_memory_row rows[SN_N_CATEGORIES];
    const size_t n = snug_engine_memory(m->engine, rows, SN_N_CATEGORIES);
    size_t sum = 0;
    for (size_t i = 0; i < n && i < SN_N_CATEGORIES; i++) {
        const char *c = rows[i].category;
        if (!rows[i].owner[0] && strcmp(c, "weights") != 0 && strcmp(c, "optimizer") != 0 &&
            strcmp(c, "arena") != 0)
            sum += rows[i].bytes;
    }
    return sum;
}

/* Each variable has a block of its own, in whole pages. */
static snug_status state_of(const snug_model *m, size_t *out, snug_error *err) {
    *out = 0;
    for (size_t i = 0; i < m->network->n_vars; i++) {
        size_t bytes;
        SNUG_TRY(snug_type_bytes(&m->network->vars[i].type, &bytes, err));
        if (!sn_size_align(bytes, PAGE_BYTES, &bytes) || !sn_size_add(*out, bytes, out))
            return sn_fail(err, SNUG_E_OVERFLOW, "the variables exceed the address space");
    }
    return SNUG_OK;
}

/* What is still to come beside state and arena: on the ledger, and as code. */
typedef struct {
    size_t reserve, code;
} extras;

static snug_status find_share(const snug_model *m, size_t budget, extras x, sn_share *out,
                              snug_error *err) {
    sn_process_booking booking;
    const sn_process_need need = {.code_bytes = x.code};
    sn_share s = {.budget = budget, .tables = sn_process_tables(budget)};
    SNUG_TRY(sn_process_book(m->engine, &need, &booking, err));
    SNUG_TRY(state_of(m, &s.state, err));
    s.process = booking.booked_bytes;
    s.books = books_of(m) + x.reserve;
    size_t taken = s.process + s.tables + s.books;
    if (sn_size_add(taken, s.state, &taken) && taken < budget)
        s.arena = budget - taken;
    *out = s;
    return SNUG_OK;
}

/* Of the session that will run the plan; measured: 1.6 to 2 times the plan. */
static size_t session_bytes(const sn_plan *p) {
    return 2 * sn_zone_bytes(p->zone);
}

/* Of a plan and its session, with room. */
static size_t books_of_plan(const sn_plan *p) {
    return 4 * sn_zone_bytes(p->zone);
}

/* For the first try: this step's plan, and the graphs and plans of the remainder and of validation
 * that come after it. */
static size_t first_reserve(const sn_graph *g) {
    return 2 * sn_graph_bytes(g) + (size_t)sn_graph_n_nodes(g) * 4096;
}

/* The smallest budget from which, less its page tables, so many bytes are left. */
static size_t with_tables(size_t bytes) {
    const size_t tables = sn_process_tables(bytes);
    return bytes + tables + tables / 256 + PAGE_BYTES;
}

static snug_status refuse(const snug_model *m, const sn_model_step *s, const sn_share *share,
                          const sn_plan_floor *least, sn_budget_floor *floor, snug_error *err) {
    const size_t bytes = share->process + share->state + share->books + least->bytes;
    const sn_budget_floor f = {
        .budget = with_tables(bytes), .arena = least->bytes, .seconds = least->seconds};
    char have[24], need[24], process[24], state[24], books[24], arena[24];
    if (floor)
        *floor = f;
    return sn_fail(
        err, SNUG_E_BUDGET,
        "a budget of %s is too small for model '%s' with a batch of %lld: the smallest is "
        "%s (%s process, %s variables, %s graph and plan, %s arena, %.3g s a step); give "
        "it that, or use a smaller batch",
        snug_bytes_print(share->budget, have, sizeof have), m->network->name, (long long)s->batch,
        snug_bytes_print(f.budget, need, sizeof need),
        snug_bytes_print(share->process + f.budget - bytes, process, sizeof process),
        snug_bytes_print(share->state, state, sizeof state),
        snug_bytes_print(share->books, books, sizeof books),
        snug_bytes_print(f.arena, arena, sizeof arena), f.seconds);
}

/* Kernels of the whole batch; slices and a shorter last one have kernels of their own. */
static snug_status code_of(const snug_model *m, sn_model_step *s, const sn_plan_options *o,
                           size_t *out, snug_error *err) {
    sn_plan_options plain = *o;
    sn_plan *plan;
    plain.arena_bytes = 0;
    SNUG_TRY(sn_plan_build(m->engine, s->graph, &plain, &plan, err));
    *out = 2 * plan->code_bytes;
    sn_plan_destroy(plan);
    return SNUG_OK;
}

snug_status sn_model_plan_within(snug_model *m, sn_model_step *s, size_t budget, sn_share *share,
                                 sn_budget_floor *floor, snug_error *err) {
    const sn_device *const devices[1] = {&m->device.device};
    sn_plan_floor least = {0, 0};
    sn_plan_options options = {.devices = devices, .n_devices = 1, .floor = &least};
    extras x = {.reserve = first_reserve(s->graph)};
    *share = (sn_share){.budget = budget};
    if (budget == 0)
        return sn_plan_build(m->engine, s->graph, &options, &s->plan, err);
    SNUG_TRY(code_of(m, s, &options, &x.code, err));
    for (int i = 0; i < MAX_TRIES; i++) {
        SNUG_TRY(find_share(m, budget, x, share, err));
        options.arena_bytes = share->arena > 0 ? share->arena : 1;
        const snug_status st = sn_plan_build(m->engine, s->graph, &options, &s->plan, err);
        if (st == SNUG_E_BUDGET)
            return refuse(m, s, share, &least, floor, err);
        SNUG_TRY(st);
        if (books_of_plan(s->plan) <= x.reserve)
            return SNUG_OK;
        x.reserve = books_of_plan(s->plan) + books_of_plan(s->plan) / 8;
        sn_plan_destroy(s->plan);
        s->plan = NULL;
    }
    least.bytes = share->arena;
    return refuse(m, s, share, &least, floor, err);
}

snug_status sn_model_forecast(const snug_model *m, const sn_plan *plan, sn_forecast *out,
                              snug_error *err) {
    sn_process_booking booking;
    size_t state;
    SNUG_TRY(state_of(m, &state, err));
    const sn_process_need need = {
        .map_bytes = state + plan->memories[SN_MEM_FIRST_ARENA].bytes,
        .code_bytes = plan->code_bytes,
    };
    SNUG_TRY(sn_process_book(m->engine, &need, &booking, err));
    *out = (sn_forecast){.process = booking.predicted_bytes,
                         .reserve = booking.booked_bytes - booking.predicted_bytes,
                         .state = state,
                         .books = books_of(m) + session_bytes(plan)};
    return SNUG_OK;
}
