/* room.h: THE way a step's plan meets the room that a budget leaves for it (share.h). Every door
 * comes here with a graph and a number of bytes: equal graphs, devices and rooms get equal plans.
 *
 *     sn_room_ask ask = {.graph = g, .options = {.devices = &d, .n_devices = 1, .floor = &floor},
 *                        .room = share.arena, .size = {.step_bytes = ...}};
 *     sn_room_plan(engine, &ask, &made, err);    // SNUG_E_BUDGET: none fits; floor: what would
 *
 * Room breathes, as processes do: plans are made for whole steps of it, so that equal programs get
 * equal plans; where that is too little, it is the smallest plan, if that fits. */
#ifndef SN_BUDGET_ROOM_H
#define SN_BUDGET_ROOM_H

#include "plan/plan.h"

/* What a plan takes beside its arena. */
typedef struct {
    size_t step_bytes; /* each of its steps, with the session that runs it */
    size_t beside;     /* all else that comes out of the room */
} sn_room_size;

typedef struct {
    const sn_graph *graph;
    sn_plan_options options; /* but for arena_bytes, step_bytes and short_bytes */
    size_t room;             /* for the arena and all that is `size`; 0: no limit */
    size_t missing;          /* what the variables alone have too many, where `room` is 1 */
    /* An arena that other plans need in any case, with the steps of a plan: one that fits into it
     * takes no more room. 0: there is none. */
    size_t others;
    sn_room_size size;
    /* NULL, or finds the size in the plan without a limit, which is made first then. */
    void (*measure)(void *ctx, const sn_plan *plain, sn_room_size *out);
    void *ctx;
} sn_room_ask;

typedef struct {
    sn_plan *plan;
    size_t limit; /* the part of the room that it was made for; 0: it is the plan without a limit */
} sn_room_made;

SNUG_CHECKED snug_status sn_room_plan(snug_engine *e, const sn_room_ask *ask, sn_room_made *out,
                                      snug_error *err);

/* Whole steps of room that have so many bytes. */
size_t sn_room_steps(size_t bytes);

#endif
