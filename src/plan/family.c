/* family.c: makes the members of a family. Each is a number of slices, a way to cut the batch, and
 * a limit:
 *
 *     cut         all nodes that can be sliced are; or only those at values of at least so many
 *                 bytes, between whole values, and the rest of the step runs whole
 *     limit       with this many bytes to reach, values between blocks are held as long as there is
 *                 room, then values inside blocks, and around those of a part, are recomputed */
#include "plan/family.h"

#include <math.h>
#include <string.h>

#define MAX_TRIES  4  /* to get the layout below what the recomputation promised */
#define CALLS      64 /* of the recomputation for each block, about */
#define WALK_WORK  4  /* of a walk through the blocks, for each node and block */
#define FLOOR_WORK 16 /* times the usual for the smallest plans: their lists are long, and few */
#define ROOM_TRIES 8  /* to find what blocks need beside values that are held */
#define FREE_TRIES 3  /* of them; then room only becomes less, so that they end */

void sn_candidate_drop(sn_candidate *o) {
    if (!o)
        return;
    if (o->family && !o->family->spare)
        o->family->spare = o->layout_zone;
    else
        sn_zone_destroy(o->layout_zone);
    sn_zone_destroy(o->zone);
}

/* A layout or a list of actions takes about so much for a node. */
static snug_status open_zone(const sn_family *f, sn_zone **out, snug_error *err) {
    const size_t bytes = (size_t)f->p->n_nodes * 200;
    return sn_zone_create_for(f->p->engine, SN_MEM_PLAN, bytes, out, err);
}

size_t sn_candidate_plan_bytes(const sn_family *f, const sn_candidate *o) {
    const size_t n = (size_t)o->program.n + f->p->n_piece_steps;
    return sn_plan_steps_bytes(n, o->of.slices > 1, f->step_bytes);
}

static const sn_family_cut *cut_of(const sn_family *f, const sn_candidate *o) {
    return &f->cuts[o->of.cut];
}

/* --- making a member -------------------------------------------------------------------------- */
static snug_status open_layout(sn_family *f, sn_candidate *o, snug_error *err) {
    if (!o->layout_zone) {
        o->layout_zone = f->spare;
        f->spare = NULL;
    }
    return o->layout_zone ? sn_zone_reset(o->layout_zone, err) : open_zone(f, &o->layout_zone, err);
}

/* In the place of the layout before. */
static snug_status lay_out(sn_family *f, sn_candidate *o, snug_error *err) {
    SNUG_TRY(open_layout(f, o, err));
    SNUG_TRY(sn_plan_layout(f->p, o->layout_zone, &o->program, &o->layout, err));
    o->seconds = sn_program_seconds(f->p, &o->program);
    /* Smaller is never faster, whatever the rates say. */
    o->seconds = fmax(o->seconds, fmax(f->seconds, o->of.least_seconds));
    o->fits = o->program.possible && o->layout.bound <= o->of.limit;
    return SNUG_OK;
}

/* The sliced program with so many bytes in each block for values between blocks. */
static snug_status make_sliced(sn_family *f, sn_candidate *o, const sn_hold_limits *limits,
                               sn_block_runs *runs, snug_error *err) {
    const sn_family_cut *cut = cut_of(f, o);
    SNUG_TRY(sn_hold_values(cut->holder, o->zone, limits, runs, err));
    o->program = (sn_program){.split = &cut->split, .slices = &o->slices};
    SNUG_TRY(sn_program_sliced(f->p, o->zone, &cut->order, runs, &o->program, err));
    return lay_out(f, o, err);
}

/* What the limit leaves beside all else that lives in a block and in front of it; `lower`: never
 * more than before. */
static void find_room(const sn_candidate *o, const sn_block_runs *runs, bool lower, double *room) {
    uint32_t block = UINT32_MAX;
    for (uint32_t b = 0; b < o->program.split->n_blocks && !lower; b++)
        room[b] = (double)o->of.limit;
    for (uint32_t t = o->program.n; t-- > 0;) {
        if (o->program.actions[t].kind == SN_STEP_END)
            block = o->program.actions[t].id;
        if (block == UINT32_MAX)
            continue;
        const double others = (double)o->layout.live[t] - runs->held[block];
        room[block] = fmin(room[block], (double)o->of.limit - others);
    }
}

/* The best of the programs that were made for a member so far. */
typedef struct {
    sn_program program;
    double seconds;
    size_t bound; /* the limit, if it is below that */
} attempt;

static void keep_better(const sn_candidate *o, attempt *best) {
    const size_t size = o->program.possible ? o->layout.bound : SIZE_MAX;
    const size_t bound = size > o->of.limit ? size : o->of.limit;
    if (best->program.n == 0 || bound < best->bound ||
        (bound == best->bound && o->seconds < best->seconds))
        *best = (attempt){o->program, o->seconds, bound};
}

/* What a block needs beside values that are held shows in the layout only, so room for these is
 * found by trying. Once something fits, it is searched for a faster one. */
static snug_status fill_rooms(sn_family *f, sn_candidate *o, double *room, attempt *best,
                              snug_error *err) {
    bool searched = false;
    for (int i = 0; i < ROOM_TRIES; i++) {
        const bool now = !searched && (o->fits || i == ROOM_TRIES / 2);
        const sn_hold_limits limits = {&o->slices, room, now ? cut_of(f, o)->searches : 0};
        sn_block_runs runs;
        if (searched && o->fits)
            break;
        searched = searched || now;
        SNUG_TRY(make_sliced(f, o, &limits, &runs, err));
        keep_better(o, best);
        find_room(o, &runs, i >= FREE_TRIES, room);
    }
    return SNUG_OK;
}

/* Values between blocks are held as far as the limit allows; the fastest that fits stays, or the
 * smallest. For the lowest of all plans none is held, as the recomputation inside of blocks finds
 * more there. */
static snug_status hold_values(sn_family *f, sn_candidate *o, snug_error *err) {
    const bool free = o->of.limit == SIZE_MAX;
    attempt best = {.seconds = INFINITY};
    sn_block_runs runs;
    double *room;
    const uint32_t n_blocks = cut_of(f, o)->split.n_blocks;
    SNUG_TRY(sn_plan_array(o->zone, n_blocks, sizeof *room, &room, err));
    for (uint32_t b = 0; b < n_blocks; b++)
        room[b] = o->of.lowest ? 0 : free ? INFINITY : (double)o->of.limit;
    sn_holder_reset(cut_of(f, o)->holder);
    if (o->of.lowest || free)
        return make_sliced(f, o, &(sn_hold_limits){&o->slices, room, 0}, &runs, err);
    SNUG_TRY(fill_rooms(f, o, room, &best, err));
    if (o->program.actions == best.program.actions)
        return SNUG_OK;
    o->program = best.program;
    return lay_out(f, o, err);
}

/* The next stretch at or behind action `at` that needs more than the limit. Where all that can be
 * is sliced, there is nothing between blocks to be recomputed. */
static bool find_full(const sn_candidate *o, uint32_t at, size_t limit, sn_stretch *out) {
    const sn_layout *l = &o->layout;
    const bool between = !o->program.split || o->of.cut > 0;
    uint32_t first = between ? at : UINT32_MAX;
    for (uint32_t t = at; t < o->program.n; t++) {
        const sn_step_kind kind = o->program.actions[t].kind;
        if (kind == SN_STEP_REPEAT || kind == SN_STEP_END) {
            first = kind == SN_STEP_REPEAT || between ? t + 1 : UINT32_MAX;
        } else if (first != UINT32_MAX && l->live[t] > limit) {
            uint32_t end = t;
            while (end < o->program.n && o->program.actions[end].kind != SN_STEP_REPEAT &&
                   o->program.actions[end].kind != SN_STEP_END)
                end++;
            *out = (sn_stretch){first, end};
            return true;
        }
    }
    return false;
}

/* Notes how the stretch is to run where that fits; of *r only its numbers stay. */
static snug_status recompute_stretch(sn_family *f, sn_recomputer *c, sn_zone *z,
                                     sn_replacement *part, const sn_remat_limits *limits,
                                     sn_remat_result *r, snug_error *err) {
    sn_zone *scratch;
    SNUG_TRY(open_zone(f, &scratch, err));
    snug_status st = sn_recompute(c, scratch, &part->what, limits, r, err);
    if (st == SNUG_OK && r->fits)
        st = sn_plan_array(z, r->n_events, sizeof *part->actions, &part->actions, err);
    part->n_actions = 0;
    for (uint32_t i = 0; st == SNUG_OK && r->fits && i < r->n_events; i++)
        if (!r->events[i].frees)
            part->actions[part->n_actions++] = part->what.first + r->events[i].op;
    sn_zone_destroy(scratch);
    return st;
}

/* *floor is raised to what the stretches need at least that the limit does not suffice for. Without
 * any limit only that is wanted: of most stretches, that they can do with the floor so far. */
static snug_status recompute_full(sn_family *f, sn_candidate *o, sn_zone *z, size_t limit,
                                  size_t *floor, snug_error *err) {
    const sn_family_cut *cut = cut_of(f, o);
    sn_remat_limits limits = {.no_floor = !o->of.lowest, .any = limit == 0};
    sn_recomputer *c;
    sn_replacement *parts;
    sn_program next;
    sn_stretch s;
    uint32_t n = 0;
    SNUG_TRY(sn_plan_array(z, 2 * (size_t)cut->split.n_blocks + 2, sizeof *parts, &parts, err));
    SNUG_TRY(sn_recomputer_create(f->p, z, &o->layout, &c, err));
    for (uint32_t at = 0; find_full(o, at, limit, &s); at = s.end) {
        sn_remat_result r;
        parts[n].what = s;
        limits.budget = limit > 0 ? limit : *floor;
        limits.work = o->layout.block_of[s.first] == UINT32_MAX ? f->work
                      : o->of.lowest                            ? FLOOR_WORK * cut->block_work
                                                                : cut->block_work;
        SNUG_TRY(recompute_stretch(f, c, z, &parts[n], &limits, &r, err));
        n += r.fits && limit > 0;
        *floor = !r.fits && r.floor > *floor ? r.floor : *floor;
    }
    if (n == 0)
        return SNUG_OK;
    SNUG_TRY(sn_program_replace(o->zone, &o->program, parts, n, &next, err));
    o->program = next;
    return lay_out(f, o, err);
}

static snug_status recompute_once(sn_family *f, sn_candidate *o, size_t limit, size_t *floor,
                                  snug_error *err) {
    sn_zone *z;
    SNUG_TRY(open_zone(f, &z, err));
    const snug_status st = recompute_full(f, o, z, limit, floor, err);
    sn_zone_destroy(z);
    return st;
}

/* Aims lower where the layout lies above what was promised (it shares fewer bytes in place). The
 * smallest try stays. The lowest of all plans are asked for at several limits anyway. */
static snug_status recompute(sn_family *f, sn_candidate *o, size_t *floor, snug_error *err) {
    const sn_program program = o->program;
    sn_program best = program;
    const int tries = o->of.lowest ? 1 : MAX_TRIES;
    size_t limit = o->of.limit, bound = o->layout.bound;
    for (int i = 0; i < tries && !o->fits && *floor <= o->of.limit; i++) {
        if (i > 0) {
            o->program = program;
            SNUG_TRY(lay_out(f, o, err));
        }
        SNUG_TRY(recompute_once(f, o, limit, floor, err));
        if (o->layout.bound < bound) {
            bound = o->layout.bound;
            best = o->program;
        }
        const size_t excess = o->layout.bound > o->of.limit ? o->layout.bound - o->of.limit : 0;
        if (excess >= limit)
            break;
        limit -= excess;
    }
    if (o->layout.bound == bound)
        return SNUG_OK;
    o->program = best;
    return lay_out(f, o, err);
}

static snug_status fill_member(sn_family *f, sn_candidate *o, size_t *floor, snug_error *err) {
    sn_planner *const p = f->p;
    if (o->of.slices > 1) {
        SNUG_TRY(sn_plan_slices(p, o->zone, &cut_of(f, o)->split, o->of.slices, &o->slices, err));
        SNUG_TRY(hold_values(f, o, err));
    } else {
        SNUG_TRY(sn_program_plain(p, o->zone, &f->order, &o->program, err));
        SNUG_TRY(lay_out(f, o, err));
    }
    return o->fits || !o->program.possible ? SNUG_OK : recompute(f, o, floor, err);
}

snug_status sn_family_make(sn_family *f, sn_member m, sn_candidate **out, size_t *floor,
                           snug_error *err) {
    sn_zone *zone = NULL;
    sn_candidate *o = NULL;
    *floor = 0;
    *out = NULL;
    SNUG_TRY(open_zone(f, &zone, err));
    snug_status st = sn_plan_array(zone, 1, sizeof *o, &o, err);
    if (st == SNUG_OK) {
        o->family = f;
        o->zone = zone;
        o->of = m;
        o->of.fused = f->is_fused;
        st = fill_member(f, o, floor, err);
    }
    if (st == SNUG_OK)
        *out = o;
    else if (o)
        sn_candidate_drop(o);
    else
        sn_zone_destroy(zone);
    return st;
}

/* --- the family ------------------------------------------------------------------------------- */
/* The order is copied to where it can stay. */
static snug_status keep_order(sn_family *f, const sn_order *from, sn_order *to, snug_error *err) {
    if (!to->node)
        SNUG_TRY(sn_plan_array(f->p->work, from->n, sizeof *to->node, &to->node, err));
    memcpy(to->node, from->node, from->n * sizeof *to->node);
    to->n = from->n;
    return SNUG_OK;
}

static snug_status try_order(sn_family *f, sn_zone *z, sn_order_kind kind, snug_error *err) {
    sn_planner *const p = f->p;
    sn_order order;
    sn_program program;
    sn_layout l;
    SNUG_TRY(sn_plan_order(p, z, kind, p->padded, &order, err));
    SNUG_TRY(sn_program_plain(p, z, &order, &program, err));
    SNUG_TRY(sn_plan_layout(p, z, &program, &l, err));
    if (kind > 0 && l.bound >= f->unlimited)
        return SNUG_OK;
    f->unlimited = l.bound;
    f->seconds = sn_program_seconds(p, &program);
    return keep_order(f, &order, &f->order, err);
}

/* The order with the smallest live peak; the plainer one among equals. */
static snug_status find_order(sn_family *f, snug_error *err) {
    snug_status st = SNUG_OK;
    for (int kind = 0; kind < SN_N_ORDERS && st == SNUG_OK; kind++) {
        sn_zone *z;
        SNUG_TRY(open_zone(f, &z, err));
        st = try_order(f, z, (sn_order_kind)kind, err);
        sn_zone_destroy(z);
    }
    return st;
}

snug_status sn_family_order(sn_family *f, snug_error *err) {
    sn_family *const fused = f->fused;
    SNUG_TRY(find_order(f, err));
    f->plain = (sn_member){.slices = 1, .limit = SIZE_MAX};
    f->plain_bytes = f->unlimited;
    if (!fused)
        return SNUG_OK;
    SNUG_TRY(find_order(fused, err));
    if (fused->seconds <= f->seconds) {
        f->plain.fused = true;
        f->seconds = fused->seconds;
        f->plain_bytes = fused->unlimited;
    }
    fused->seconds = f->seconds;
    fused->plain_bytes = f->plain_bytes;
    return SNUG_OK;
}

static snug_status try_sliced_order(sn_family *f, sn_zone *z, const size_t *bytes,
                                    sn_order_kind kind, size_t *best, snug_error *err) {
    sn_family_cut *const cut = &f->cuts[0];
    const int64_t extent = cut->split.extent;
    const sn_member some = {.slices = extent < 8 ? extent : 8, .limit = SIZE_MAX};
    const sn_order chosen = cut->order;
    sn_order order;
    sn_candidate *o;
    size_t floor;
    SNUG_TRY(sn_plan_order(f->p, z, kind, bytes, &order, err));
    cut->order = order;
    const snug_status st = sn_family_make(f, some, &o, &floor, err);
    cut->order = chosen;
    SNUG_TRY(st);
    const bool better = o->layout.bound < *best;
    *best = better ? o->layout.bound : *best;
    sn_candidate_drop(o);
    return better ? keep_order(f, &order, &cut->order, err) : SNUG_OK;
}

/* The same for slices: sums and what is not sliced live anyway and count nothing. */
static snug_status choose_sliced_order(sn_family *f, snug_error *err) {
    sn_planner *const p = f->p;
    size_t *bytes, best = SIZE_MAX;
    snug_status st = SNUG_OK;
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *bytes, &bytes, err));
    for (uint32_t v = 0; v < p->n_values; v++)
        bytes[v] = f->cuts[0].split.label[v].axis >= 0 ? p->padded[v] : 0;
    for (int kind = 0; kind < SN_N_ORDERS && st == SNUG_OK; kind++) {
        sn_zone *z;
        SNUG_TRY(open_zone(f, &z, err));
        st = try_sliced_order(f, z, bytes, (sn_order_kind)kind, &best, err);
        sn_zone_destroy(z);
    }
    return st;
}

/* --- cuts ------------------------------------------------------------------------------------- */
static snug_status fill_cut(const sn_family *f, sn_family_cut *cut, snug_error *err) {
    SNUG_TRY(sn_holder_create(f->p, &cut->split, &cut->holder, err));
    const uint64_t n_blocks = cut->split.n_blocks, walk = WALK_WORK * f->p->n_nodes * n_blocks;
    cut->block_work = f->work / 8 / n_blocks;
    cut->searches = n_blocks < 2 ? 0 : (int)(f->work / walk < 64 ? f->work / walk : 64);
    return SNUG_OK;
}

/* A new name for the same bytes is no work. */
static bool only_renames(const sn_planner *p, uint32_t node) {
    const uint32_t out = sn_graph_node_at(p->graph, (sn_node){node})->out[0].i;
    return p->root[out] != out;
}

static uint32_t count_sliced(const sn_family *f, const sn_split *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->p->n_nodes; i++)
        n += f->p->needed[i] && s->sliced[i] && !only_renames(f->p, i);
    return n;
}

/* A part of some nodes, but no more than `most`; larger than the part before. */
static snug_status add_part(sn_family *f, size_t bytes, uint32_t most, snug_error *err) {
    sn_family_cut *const cut = &f->cuts[f->n_cuts];
    SNUG_TRY(sn_split_part(f->p, &f->order, &f->cuts[0].split, bytes, &cut->split, err));
    const uint32_t n = count_sliced(f, &cut->split);
    const uint32_t before = f->n_cuts > 1 ? count_sliced(f, &cut[-1].split) : 0;
    if (n <= before || n > most)
        return SNUG_OK;
    cut->order = f->order; /* most of the step runs whole */
    f->n_cuts++;
    return fill_cut(f, cut, err);
}

static size_t largest_sliced(const sn_family *f) {
    size_t largest = 0;
    for (uint32_t v = 0; v < f->p->n_values; v++)
        if (f->cuts[0].split.label[v].axis >= 0 && f->p->bytes[v] > largest)
            largest = f->p->bytes[v];
    return largest;
}

snug_status sn_family_cuts(sn_family *f, size_t bytes, snug_error *err) {
    sn_family_cut *const all = &f->cuts[0];
    SNUG_TRY(sn_plan_split(f->p, &f->order, &all->split, err));
    if (all->split.extent == 0)
        return SNUG_OK;
    f->n_cuts = 1;
    SNUG_TRY(fill_cut(f, all, err));
    SNUG_TRY(choose_sliced_order(f, err));
    if (bytes > 0)
        return add_part(f, bytes, UINT32_MAX, err);
    const uint32_t most = count_sliced(f, &all->split) / 4 * 3;
    const size_t largest = largest_sliced(f);
    for (int j = 0; j < SN_MAX_CUTS - 1; j++)
        SNUG_TRY(add_part(f, largest >> j, most, err));
    return SNUG_OK;
}

sn_family sn_family_of(sn_planner *p, const sn_plan_options *o) {
    return (sn_family){.p = p,
                       .work = SN_REMAT_WORK_SECOND / CALLS * p->n_nodes / 2000 *
                               (o->effort ? o->effort : 1),
                       .step_bytes = o->step_bytes};
}

void sn_family_clear(sn_family *f) {
    sn_zone_destroy(f->spare);
}
