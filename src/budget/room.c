/* room.c: plans within a room (room.h). */
#include "budget/room.h"

#define STEP_OF_ROOM ((size_t)256 << 10)

size_t sn_room_steps(size_t bytes) {
    return (bytes + STEP_OF_ROOM - 1) / STEP_OF_ROOM * STEP_OF_ROOM;
}

/* What a plan may have, one after the other until there is one. */
enum { MAX_LIMITS = 3 };
typedef struct {
    int n;
    size_t at[MAX_LIMITS];
} limits;

static limits limits_of(const sn_room_ask *ask, const sn_room_size *size) {
    const size_t room = ask->room > size->beside ? ask->room - size->beside : 1;
    const size_t whole = room / STEP_OF_ROOM * STEP_OF_ROOM;
    limits l = {.n = 0};
    if (ask->others > 0 && ask->others < room)
        l.at[l.n++] = ask->others;
    if (whole > 0 && whole < room)
        l.at[l.n++] = whole;
    l.at[l.n++] = room;
    return l;
}

static snug_status plan_free(snug_engine *e, const sn_room_ask *ask, sn_room_made *out,
                             snug_error *err) {
    sn_plan_options o = ask->options;
    o.floor = NULL;
    o.step_bytes = ask->size.step_bytes; /* of the floor that may be asked for (options.at) */
    out->limit = 0;
    return sn_plan_build(e, ask->graph, &o, &out->plan, err);
}

/* The plan without a limit, where that is within the first one; *out has none where it is not. */
static snug_status try_free(snug_engine *e, const sn_room_ask *ask, sn_room_size *size, limits *l,
                            sn_room_made *out, snug_error *err) {
    SNUG_TRY(plan_free(e, ask, out, err));
    ask->measure(ask->ctx, out->plan, size);
    *l = limits_of(ask, size);
    const size_t bytes = out->plan->memories[SN_MEM_FIRST_ARENA].bytes,
                 steps = sn_plan_steps_bytes(out->plan->n_steps, false, size->step_bytes);
    if (bytes + steps <= l->at[0])
        return SNUG_OK;
    sn_plan_destroy(out->plan);
    out->plan = NULL;
    return SNUG_OK;
}

static snug_status plan_within(snug_engine *e, const sn_room_ask *ask, const sn_room_size *size,
                               size_t limit, sn_room_made *out, snug_error *err) {
    sn_plan_options o = ask->options;
    o.arena_bytes = limit;
    o.step_bytes = size->step_bytes;
    o.short_bytes = ask->missing;
    out->limit = limit + size->beside;
    return sn_plan_build(e, ask->graph, &o, &out->plan, err);
}

/* A limit was refused, and the smallest plan is known with that: it is the one for a larger limit
 * that is no whole step, or there is none. With values in files there may be smaller ones. */
static bool is_decided(const sn_room_ask *ask, size_t limit, bool *fits) {
    const sn_plan_floor *const floor = ask->options.floor;
    const bool is_known = floor && floor->bytes > 0 && !ask->options.may_spill;
    *fits = is_known && floor->bytes <= limit;
    return is_known && (!*fits || limit % STEP_OF_ROOM != 0);
}

static snug_status plan_smallest(snug_engine *e, const sn_room_ask *ask, const sn_room_size *size,
                                 size_t limit, sn_room_made *out, snug_error *err) {
    const sn_plan_floor smallest = *ask->options.floor;
    sn_plan_options o = ask->options;
    o.at = &smallest;
    o.step_bytes = size->step_bytes;
    out->limit = limit + size->beside;
    return sn_plan_build(e, ask->graph, &o, &out->plan, err);
}

snug_status sn_room_plan(snug_engine *e, const sn_room_ask *ask, sn_room_made *out,
                         snug_error *err) {
    sn_room_size size = ask->size;
    limits l = limits_of(ask, &size);
    snug_status st = SNUG_E_BUDGET;
    *out = (sn_room_made){.plan = NULL};
    if (ask->room == 0)
        return plan_free(e, ask, out, err);
    if (ask->measure)
        SNUG_TRY(try_free(e, ask, &size, &l, out, err));
    if (out->plan)
        return SNUG_OK;
    for (int i = 0; i < l.n && st == SNUG_E_BUDGET; i++) {
        bool fits = false;
        if (i == 0 || !is_decided(ask, l.at[i], &fits))
            st = plan_within(e, ask, &size, l.at[i], out, err);
        else if (fits)
            st = plan_smallest(e, ask, &size, l.at[i], out, err);
    }
    return st;
}
