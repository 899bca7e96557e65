/* choose.c: the fastest program that fits a number of bytes.
 *
 * Programs come from a family that does not depend on the number of bytes asked for (family.c):
 *
 *     slices      1, 2, 3, 4, 6, 8, 12, 16, ... pieces of the batch
 *     cut         what runs in slices: all that can, or only what stands at large values
 *     limit       on a ladder of sizes
 *     fused       whether wide gradients die inside their updates, where that gives another graph
 *
 * Words used here and in ladder.c, family.c:
 *
 *     member      a choice of these four (sn_member): a program that can be made
 *     candidate   a member that has been made: its program, its layout, its time
 *     bound       bytes that a layout needs at least; its height, when packed, may be more
 *     plan bytes  of the plan itself, so much a step: they count with the arena
 *     plain       the member without slices or a limit
 *     floor       the smallest member: below it nothing fits
 *     front       members that no other beats in both bytes and seconds
 *     ranking     members made so far, the fastest first
 *
 * Members are made down the ladder, as far as one may be the fastest of its size, and packed by
 * rules that do not know the number either. Of those that fit it, the fastest is taken, the larger
 * one among equals: it does less. More bytes never give a slower plan, nor one of a lower peak; one
 * byte less than the smallest member is refused, naming it. The unlimited plan is a member as well.
 *
 * A member does not count as faster than the fastest of the steps right above it: so the way down
 * may end where all that is to come is slower than one that fits, and the answer is that of the
 * whole family.
 *
 * With slots in a file there is a bit more room, and a ring of stages in it: the family is then
 * that of the members that were worth anything in memory, made anew beside the ring, and none of
 * them faster than it was there. */
#include "plan/ladder.h"

#include <math.h>

/* --- families --------------------------------------------------------------------------------- */
/* That of the graph, and that of the one with fused updates where there is one. */
typedef struct {
    sn_family f, fused;
} families;

static void open_families(families *out, sn_planner *p, const sn_plan_options *o) {
    out->f = sn_family_of(p, o);
    if (!p->fused)
        return;
    out->fused = sn_family_of(p->fused, o);
    out->fused.is_fused = true;
    out->f.fused = &out->fused;
}

static void clear_families(families *f) {
    if (f->f.fused)
        sn_family_clear(f->f.fused);
    sn_family_clear(&f->f);
}

/* The family of the graph that the member is of. */
static sn_family *family_with(sn_family *f, sn_member m) {
    return m.fused ? f->fused : f;
}

static snug_status find_cuts(sn_family *f, snug_error *err) {
    SNUG_TRY(sn_family_cuts(f, 0, err));
    return f->fused ? sn_family_cuts(f->fused, 0, err) : SNUG_OK;
}

/* --- members ---------------------------------------------------------------------------------- */
/* The height a member is packed to does not depend on the limit either. */
static snug_status pack_candidate(sn_candidate *o, size_t *height, snug_error *err) {
    const sn_pack_limits limits = {.capacity = o->layout.bound + o->layout.bound / 128};
    size_t bound;
    return sn_pack_to(sn_zone_engine(o->zone), o->layout.items, o->layout.n_items, &limits, height,
                      &bound, err);
}

/* Of runs beyond the first of each node. */
static double seconds_again(const sn_family *f, const sn_candidate *o) {
    double seconds = o->seconds;
    for (uint32_t i = 0; i < f->order.n; i++) {
        const uint32_t node = f->order.node[i];
        const bool sliced = o->of.slices > 1 && f->cuts[o->of.cut].split.sliced[node];
        seconds -= sliced ? o->slices.seconds[node] : f->p->seconds[node];
    }
    return seconds > 0 ? seconds : 0;
}

static snug_status take_candidate(sn_family *f, sn_candidate *o, size_t height, snug_error *err) {
    sn_plan *const plan = f->p->plan;
    sn_plan_memory *const arena = &plan->memories[SN_MEM_FIRST_ARENA];
    if (height + sn_candidate_plan_bytes(f, o) < f->p->arena_limit)
        sn_spill_keep(f->p, f->p->arena_limit - height - sn_candidate_plan_bytes(f, o));
    arena->bytes = height;
    arena->lower_bound_bytes = o->layout.bound;
    plan->spill_seconds = sn_spill_seconds(f->p);
    plan->seconds = o->seconds + plan->spill_seconds;
    plan->plain_seconds = f->seconds;
    plan->again_seconds = seconds_again(f, o);
    plan->plain_bytes = f->plain_bytes;
    f->p->taken = true;
    return sn_plan_emit(f->p, &o->layout, err);
}

/* Makes and packs a member; where its height is within the limit (0: none) it is the plan now.
 * SIZE_MAX: it is impossible. */
static snug_status try_member(sn_family *f, sn_member m, size_t limit, size_t *height,
                              snug_error *err) {
    sn_family *const own = family_with(f, m);
    sn_candidate *o;
    size_t floor, arena = 0;
    SNUG_TRY(sn_family_make(own, m, &o, &floor, err));
    snug_status st = o->program.possible ? pack_candidate(o, &arena, err) : SNUG_OK;
    *height = o->program.possible ? arena + sn_candidate_plan_bytes(own, o) : SIZE_MAX;
    if (st == SNUG_OK && o->program.possible && (limit == 0 || *height <= limit))
        st = take_candidate(own, o, arena, err);
    sn_candidate_drop(o);
    return st;
}

/* The smallest bound from `above` on, with the member that has it; SIZE_MAX: none. */
static size_t next_bound(const sn_ranking *r, size_t above, uint32_t *at) {
    size_t best = SIZE_MAX;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->at[i].bound >= above && r->at[i].bound < best) {
            best = r->at[i].bound;
            *at = i;
        }
    return best;
}

/* The smallest there is; `plain`: the size of the unlimited plan. Packing may end above the bound,
 * so members are asked from the smallest bound up until that is no smaller. */
static snug_status find_floor(sn_family *f, const sn_ranking *r, size_t plain, sn_plan_floor *out,
                              snug_error *err) {
    uint32_t i = 0;
    *out = (sn_plan_floor){.bytes = plain, .seconds = f->seconds, .how = f->plain};
    for (size_t bound = next_bound(r, 0, &i); bound < out->bytes;
         bound = next_bound(r, bound + 1, &i)) {
        size_t height;
        SNUG_TRY(try_member(f, r->at[i].of, 1, &height, err));
        if (height < out->bytes)
            *out = (sn_plan_floor){height, r->at[i].seconds, .how = r->at[i].of};
    }
    return SNUG_OK;
}

/* Of plans as small as the smallest, the fastest: what a budget of so many bytes gives. */
static snug_status find_fast_floor(sn_family *f, const sn_ranking *r, size_t plain,
                                   sn_plan_floor *out, snug_error *err) {
    SNUG_TRY(find_floor(f, r, plain, out, err));
    for (uint32_t i = 0; i < r->n && r->at[i].seconds < out->seconds; i++) {
        size_t height = SIZE_MAX;
        if (r->at[i].bound <= out->bytes)
            SNUG_TRY(try_member(f, r->at[i].of, 1, &height, err));
        if (height <= out->bytes)
            *out = (sn_plan_floor){height, r->at[i].seconds, .how = r->at[i].of};
    }
    return SNUG_OK;
}

static snug_status refuse(const sn_plan_options *o, const sn_plan_floor *floor, snug_error *err) {
    char have[24], need[24];
    return sn_fail(err, SNUG_E_BUDGET,
                   "no plan of this step fits %s; the smallest there is needs %s (%zu bytes): give "
                   "it that, or use a smaller batch",
                   snug_bytes_print(o->arena_bytes, have, sizeof have),
                   snug_bytes_print(floor->bytes, need, sizeof need), floor->bytes);
}

/* Members below the plain one that no other beats in both bytes and seconds, the fastest first;
 * of both graphs, or of that without fused updates. */
static uint32_t find_front(const sn_family *f, const sn_ranking *r, bool of_both, uint32_t *front) {
    uint32_t n = 0;
    size_t least = SIZE_MAX;
    for (uint32_t i = 0; i < r->n; i++) {
        const sn_member *m = &r->at[i].of;
        const bool is_plain = m->slices == 1 && m->limit == SIZE_MAX;
        if (r->at[i].bound >= least || (m->fused && !of_both))
            continue;
        least = r->at[i].bound;
        if (!is_plain || (of_both && m->fused != f->plain.fused))
            front[n++] = i;
    }
    return n;
}

/* For the search with slots in a file. */
static void tell_front(const sn_family *f, const sn_ranking *r, sn_searches *out) {
    uint32_t front[SN_MAX_MEMBERS];
    out->n_members = find_front(f, r, false, front);
    for (uint32_t i = 0; i < out->n_members; i++) {
        out->members[i] = r->at[front[i]].of;
        out->members[i].least_seconds = r->at[front[i]].seconds;
    }
}

/* The members that the search in memory has found, as far as they take less than so long there. */
static snug_status rank_found(sn_family *f, const sn_searches *found, double below, sn_ranking *r,
                              snug_error *err) {
    for (uint32_t i = 0; i < found->n_members && found->members[i].least_seconds < below; i++) {
        sn_candidate *o;
        size_t floor;
        if (found->members[i].slices > 1 && f->n_cuts == 0)
            SNUG_TRY(sn_family_cuts(f, 0, err));
        SNUG_TRY(sn_family_make(f, found->members[i], &o, &floor, err));
        sn_rank(f, r, o);
        sn_candidate_drop(o);
    }
    return SNUG_OK;
}

/* The fastest of those below so many seconds that fits is the plan now. */
static snug_status take_fastest(sn_family *f, sn_ranking *r, size_t limit, double below,
                                bool *taken, snug_error *err) {
    for (uint32_t i = 0; i < r->n && r->at[i].seconds < below && !*taken; i++) {
        sn_ranked *const m = &r->at[i];
        size_t height;
        if (m->bound > limit || m->misses)
            continue;
        SNUG_TRY(try_member(f, m->of, limit, &height, err));
        m->misses = height > limit;
        *taken = !m->misses;
    }
    return SNUG_OK;
}

/* Makes members until one of them is the plan, and all to come are slower; or all of them. */
static snug_status search(sn_family *f, sn_ranking *r, size_t limit, bool *taken, snug_error *err) {
    sn_ladder *l;
    bool ends = false;
    SNUG_TRY(sn_ladder_open(f, r, &l, err));
    while (!ends && !*taken) {
        SNUG_TRY(sn_ladder_down(f, r, l, &ends, err));
        SNUG_TRY(take_fastest(f, r, limit, r->least_seconds, taken, err));
    }
    return *taken ? SNUG_OK : sn_ladder_bottom(l, r, err);
}

/* The members to choose from; *taken: the plan is one of them already. */
static snug_status find_members(sn_family *f, const sn_plan_options *o, sn_ranking *r, bool *taken,
                                snug_error *err) {
    sn_searches *const searches = f->p->searches;
    if (searches && searches->n_members > 0)
        return rank_found(f, searches, o->always_floor ? INFINITY : searches->beat, r, err);
    if (!o->whole)
        SNUG_TRY(find_cuts(f, err));
    SNUG_TRY(o->always_floor ? sn_ladder_all(f, r, err) : search(f, r, o->arena_bytes, taken, err));
    if (searches)
        tell_front(f, r, searches);
    return SNUG_OK;
}

static snug_status choose_limited(sn_family *f, const sn_plan_options *o, size_t plain,
                                  snug_error *err) {
    const bool is_known = f->p->searches && f->p->searches->beat < INFINITY;
    sn_plan_floor own, *const floor = o->floor ? o->floor : &own;
    bool taken = false;
    sn_ranking *r;
    SNUG_TRY(sn_plan_array(f->p->work, 1, sizeof *r, &r, err));
    SNUG_TRY(find_members(f, o, r, &taken, err));
    if (o->always_floor)
        SNUG_TRY(find_fast_floor(f, r, plain, floor, err));
    SNUG_TRY(take_fastest(f, r, o->arena_bytes, INFINITY, &taken, err));
    if (taken)
        return SNUG_OK;
    if (!o->always_floor && is_known)
        return sn_fail(err, SNUG_E_BUDGET, "nothing with slots in a file is faster");
    if (!o->always_floor)
        SNUG_TRY(find_fast_floor(f, r, plain, floor, err));
    return refuse(o, floor, err);
}

/* --- the whole trade -------------------------------------------------------------------------- */
/* At most `max` of n, evenly along the list, the last always. */
static uint32_t thin_front(uint32_t *front, uint32_t n, uint32_t max) {
    for (uint32_t i = 0; n > max && i < max; i++)
        front[i] = front[max > 1 ? i * (n - 1) / (max - 1) : n - 1];
    return n < max ? n : max;
}

static snug_status make_point(sn_family *f, sn_member m, sn_plan_point *out, snug_error *err) {
    sn_family *const own = family_with(f, m);
    sn_candidate *o;
    size_t floor, height;
    SNUG_TRY(sn_family_make(own, m, &o, &floor, err));
    const snug_status st = pack_candidate(o, &height, err);
    if (st == SNUG_OK)
        *out = (sn_plan_point){.bytes = height + sn_candidate_plan_bytes(own, o),
                               .seconds = o->seconds,
                               .slices = m.slices > 1 ? o->slices.repeat : 1,
                               .n_steps = o->program.n};
    sn_candidate_drop(o);
    return st;
}

/* What the budget that is just enough for a member gives: that member, or a faster one that packs
 * as low. */
static snug_status make_best(sn_family *f, const sn_ranking *r, sn_member m, sn_plan_point *out,
                             snug_error *err) {
    SNUG_TRY(make_point(f, m, out, err));
    const size_t limit = out->bytes;
    for (uint32_t i = 0; i < r->n; i++) {
        sn_plan_point point;
        if (r->at[i].bound > limit)
            continue;
        SNUG_TRY(make_point(f, r->at[i].of, &point, err));
        if (point.bytes > limit)
            continue;
        *out = point;
        break;
    }
    return SNUG_OK;
}

static snug_status make_front(sn_family *f, sn_plan_point *out, uint32_t max, uint32_t *n,
                              snug_error *err) {
    uint32_t front[SN_MAX_MEMBERS];
    sn_ranking *r;
    SNUG_TRY(sn_family_order(f, err));
    SNUG_TRY(sn_plan_array(f->p->work, 1, sizeof *r, &r, err));
    SNUG_TRY(find_cuts(f, err));
    SNUG_TRY(sn_ladder_all(f, r, err));
    SNUG_TRY(make_point(f, f->plain, &out[0], err));
    *n = 1 + thin_front(front, find_front(f, r, true, front), max - 1);
    for (uint32_t i = 1; i < *n; i++)
        SNUG_TRY(make_best(f, r, r->at[front[i - 1]].of, &out[i], err));
    sn_plan_thin(out, n);
    return SNUG_OK;
}

snug_status sn_plan_front(sn_planner *p, const sn_plan_options *o, sn_plan_point *out, uint32_t max,
                          uint32_t *n, snug_error *err) {
    families all;
    open_families(&all, p, o);
    const snug_status st = make_front(&all.f, out, max, n, err);
    clear_families(&all);
    return st;
}

/* --- values in a file ------------------------------------------------------------------------- */
/* The plain program, nothing in the file yet. */
static snug_status open_file(sn_family *f, sn_candidate *o, snug_error *err) {
    *o = (sn_candidate){.of = {.slices = 1}, .fits = true};
    SNUG_TRY(sn_zone_create(f->p->engine, SN_MEM_PLAN, &o->zone, err));
    snug_status st = sn_program_plain(f->p, o->zone, &f->order, &o->program, err);
    if (st == SNUG_OK)
        st = sn_spill_begin(f->p, o->zone, &o->program, err);
    if (st != SNUG_OK)
        sn_zone_destroy(o->zone);
    return st;
}

/* As many more values in the file as the limit asks for; *height with the steps themselves, or of
 * what is too large in any case, its bound. */
static snug_status lower_file(sn_family *f, sn_candidate *o, size_t limit, size_t *height,
                              snug_error *err) {
    o->of.limit = limit;
    sn_zone_destroy(o->layout_zone);
    o->layout_zone = NULL;
    SNUG_TRY(sn_zone_create(f->p->engine, SN_MEM_PLAN, &o->layout_zone, err));
    SNUG_TRY(sn_spill_values(f->p, o->layout_zone, limit, &o->program, &o->layout, err));
    o->fits = o->layout.bound <= limit;
    *height = o->layout.bound + sn_candidate_plan_bytes(f, o);
    if (*height > f->p->arena_limit)
        return SNUG_OK;
    SNUG_TRY(sn_spill_time(f->p, &o->layout, &o->seconds, err));
    SNUG_TRY(pack_candidate(o, height, err));
    *height += sn_candidate_plan_bytes(f, o);
    return SNUG_OK;
}

/* As in memory: the fastest that fits, of a ladder of limits that does not depend on the budget. It
 * ends where copies alone take longer than that, or than what is known. *best: its limit, or 0. */
static snug_status find_file(sn_family *f, size_t arena_bytes, size_t *best, snug_error *err) {
    double seconds = f->p->searches ? f->p->searches->beat : INFINITY;
    snug_status st = SNUG_OK;
    sn_candidate file;
    *best = 0;
    SNUG_TRY(open_file(f, &file, err));
    for (int j = 1; st == SNUG_OK && file.fits && f->unlimited > 0 && arena_bytes > 1 &&
                    sn_spill_copy_seconds(f->p) < seconds;
         j++) {
        const double limit = (double)f->unlimited * exp2(-(double)j / SN_STEPS_PER_OCTAVE);
        size_t height = SIZE_MAX;
        st = lower_file(f, &file, (size_t)limit, &height, err);
        if (st != SNUG_OK || height > arena_bytes || file.seconds >= seconds)
            continue;
        *best = file.of.limit;
        seconds = file.seconds;
    }
    sn_candidate_drop(&file);
    return st;
}

static snug_status choose_file(sn_family *f, const sn_plan_options *o, snug_error *err) {
    size_t best, height = 0;
    sn_candidate file;
    SNUG_TRY(find_file(f, o->arena_bytes, &best, err));
    if (best == 0)
        return sn_fail(err, SNUG_E_BUDGET, "no plan with values in a file fits %zu bytes",
                       o->arena_bytes);
    SNUG_TRY(open_file(f, &file, err));
    snug_status st = lower_file(f, &file, best, &height, err);
    if (st == SNUG_OK)
        st = take_candidate(f, &file, height - sn_candidate_plan_bytes(f, &file), err);
    sn_candidate_drop(&file);
    return st;
}

/* As many slices as asked for. */
static snug_status choose_sliced(sn_family *f, const sn_plan_options *o, snug_error *err) {
    size_t height;
    SNUG_TRY(sn_family_cuts(f, o->part_bytes > 0 ? o->part_bytes : SIZE_MAX, err));
    if (f->n_cuts == 0 || (o->part_bytes > 0 && f->n_cuts == 1))
        return sn_fail(err, SNUG_E_INVALID, "plan: no axis of this graph can be sliced");
    const int64_t most = sn_most_slices(f->cuts[0].split.extent);
    const sn_member m = {.slices = o->slices < most ? o->slices : most,
                         .limit = o->arena_bytes ? o->arena_bytes : SIZE_MAX,
                         .cut = o->part_bytes > 0};
    SNUG_TRY(try_member(f, m, 0, &height, err));
    return height < SIZE_MAX
               ? SNUG_OK
               : sn_fail(err, SNUG_E_BUDGET, "plan: a block would wait for itself in %zu bytes",
                         o->arena_bytes);
}

/* What was chosen before. */
static snug_status choose_floor(sn_family *f, const sn_plan_floor *at, snug_error *err) {
    size_t height;
    if (at->how.fused && !f->fused)
        return sn_fail(err, SNUG_E_INVALID, "plan: the floor has fused updates, this graph none");
    if (at->how.slices > 1)
        SNUG_TRY(sn_family_cuts(family_with(f, at->how), 0, err));
    SNUG_TRY(try_member(f, at->how, 0, &height, err));
    return height == at->bytes ? SNUG_OK
                               : sn_fail(err, SNUG_E_INVALID, "plan: the floor of another graph");
}

static snug_status choose(sn_family *f, const sn_plan_options *o, snug_error *err) {
    size_t height;
    SNUG_TRY(sn_family_order(f, err));
    if (o->at)
        return choose_floor(f, o->at, err);
    if (f->p->spills_values)
        return choose_file(f, o, err);
    if (o->slices > 1)
        return choose_sliced(f, o, err);
    SNUG_TRY(try_member(f, f->plain, o->arena_bytes, &height, err));
    return o->arena_bytes == 0 || height <= o->arena_bytes ? SNUG_OK
                                                           : choose_limited(f, o, height, err);
}

snug_status sn_plan_choose(sn_planner *p, const sn_plan_options *o, snug_error *err) {
    families all;
    open_families(&all, p, o);
    const snug_status st = choose(&all.f, o, err);
    clear_families(&all);
    return st;
}
