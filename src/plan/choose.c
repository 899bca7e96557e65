/* choose.c: the fastest program that fits a number of bytes.
 *
 * Programs come from a family that does not depend on the number of bytes asked for:
 *
 *     slices      1, 2, 3, 4, 6, 8, 12, 16, ... pieces of the batch
 *     limit       on a ladder of sizes: with this many bytes to reach, values between blocks are
 *                 held as long as there is room, then values inside blocks are recomputed
 *
 * All members are made, as far as one may be the fastest of its size, and packed by rules that do
 * not know the number either. Of those that fit it, the fastest is taken, the larger one among
 * equals: it does less. More bytes never give a slower plan, nor one of a lower peak; one byte less
 * than the smallest member is refused, naming it. The unlimited plan is a member as well. */
#include "base/size.h"
#include "plan/passes.h"

#include <math.h>
#include <string.h>

#define STEPS_PER_OCTAVE 6
#define MAX_TRIES        4  /* to get the layout below what the recomputation promised */
#define CALLS            64 /* of the recomputation for each block, about */
#define WALK_WORK        4  /* of a walk through the blocks, for each node and block */
#define ROOM_TRIES       8  /* to find what blocks need beside values that are held */
#define FLOOR_TRIES      10 /* to get at the floor and below */

/* What the members of the family are made from. */
typedef struct {
    sn_planner *p;
    sn_order order;     /* of the plain program: its live peak is the smallest */
    sn_order in_slices; /* of sliced ones: sums live all the time there */
    sn_split split;
    sn_holder *holder;
    int searches;        /* of what to hold between blocks, for each member */
    size_t unlimited;    /* bound of the plain program */
    double seconds;      /* of the plain program */
    uint64_t work;       /* for each recomputation of a whole program */
    uint64_t block_work; /* for each of a block */
    size_t step_bytes;   /* of each step of a plan, on top of the arena */
} family;

typedef struct {
    int64_t slices;
    size_t limit; /* SIZE_MAX: none */
    bool lowest;  /* what the recomputation needs at least is looked for */
} member;

/* A member made; lies in its own zone, its layout in another: many are made until one fits. */
typedef struct {
    sn_zone *zone, *layout_zone;
    member of;
    sn_slices slices;
    sn_program program;
    sn_layout layout;
    double seconds;
    bool fits; /* its limit */
} offer;

static void drop_offer(offer *o) {
    if (!o)
        return;
    sn_zone_destroy(o->layout_zone);
    sn_zone_destroy(o->zone);
}

static snug_status open_zone(const family *f, sn_zone **out, snug_error *err) {
    return sn_zone_create(f->p->engine, SN_MEM_PLAN, out, err);
}

/* Bytes of the steps themselves: a plan of many steps is large. */
static size_t books_of(const family *f, const offer *o) {
    return ((size_t)o->program.n + f->p->n_piece_steps) * f->step_bytes;
}

/* --- making a member -------------------------------------------------------------------------- */
static snug_status lay_out(family *f, offer *o, snug_error *err) {
    sn_layout layout = {.bound = 0};
    sn_zone *zone;
    SNUG_TRY(open_zone(f, &zone, err));
    const snug_status st = sn_plan_layout(f->p, zone, &o->program, &layout, err);
    if (st != SNUG_OK) {
        sn_zone_destroy(zone);
        return st;
    }
    sn_zone_destroy(o->layout_zone);
    o->layout_zone = zone;
    o->layout = layout;
    o->seconds = sn_program_seconds(f->p, &o->program);
    if (o->seconds < f->seconds)
        o->seconds = f->seconds; /* smaller is never faster, whatever the rates say */
    o->fits = o->program.possible && o->layout.bound <= o->of.limit;
    return SNUG_OK;
}

/* The sliced program with so many bytes in each block for values between blocks. */
static snug_status make_sliced(family *f, offer *o, const sn_hold_limits *limits,
                               sn_block_runs *runs, snug_error *err) {
    SNUG_TRY(sn_hold_values(f->holder, o->zone, limits, runs, err));
    o->program = (sn_program){.split = &f->split, .slices = &o->slices};
    SNUG_TRY(sn_program_sliced(f->p, o->zone, &f->in_slices, runs, &o->program, err));
    return lay_out(f, o, err);
}

/* What the limit leaves beside all else that lives in a block and in front of it. */
static void find_room(const offer *o, const sn_block_runs *runs, double *room) {
    uint32_t block = UINT32_MAX;
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

static void keep_better(const offer *o, attempt *best) {
    const size_t size = o->program.possible ? o->layout.bound : SIZE_MAX;
    const size_t bound = size > o->of.limit ? size : o->of.limit;
    if (best->program.n == 0 || bound < best->bound ||
        (bound == best->bound && o->seconds < best->seconds))
        *best = (attempt){o->program, o->seconds, bound};
}

/* What a block needs beside values that are held shows in the layout only, so room for these is
 * found by trying. Once something fits, it is searched for a faster one. */
static snug_status fill_rooms(family *f, offer *o, double *room, attempt *best, snug_error *err) {
    bool searched = false;
    for (int i = 0; i < ROOM_TRIES; i++) {
        const bool now = !searched && (o->fits || i == ROOM_TRIES / 2);
        const sn_hold_limits limits = {&o->slices, room, now ? f->searches : 0};
        sn_block_runs runs;
        if (searched && o->fits)
            break;
        searched = searched || now;
        SNUG_TRY(make_sliced(f, o, &limits, &runs, err));
        keep_better(o, best);
        find_room(o, &runs, room);
    }
    return SNUG_OK;
}

/* Values between blocks are held as far as the limit allows; the fastest that fits stays, or the
 * smallest. For the lowest of all plans none is held, as the recomputation inside of blocks finds
 * more there. */
static snug_status hold_values(family *f, offer *o, snug_error *err) {
    const bool free = o->of.limit == SIZE_MAX;
    attempt best = {.seconds = INFINITY};
    sn_block_runs runs;
    double *room;
    SNUG_TRY(sn_plan_array(o->zone, f->split.n_blocks, sizeof *room, &room, err));
    for (uint32_t b = 0; b < f->split.n_blocks; b++)
        room[b] = o->of.lowest ? 0 : free ? INFINITY : (double)o->of.limit;
    sn_holder_reset(f->holder);
    if (o->of.lowest || free)
        return make_sliced(f, o, &(sn_hold_limits){&o->slices, room, 0}, &runs, err);
    SNUG_TRY(fill_rooms(f, o, room, &best, err));
    if (o->program.actions == best.program.actions)
        return SNUG_OK;
    o->program = best.program;
    return lay_out(f, o, err);
}

/* The next stretch at or behind action `at` that needs more than the limit. */
static bool find_full(const offer *o, uint32_t at, size_t limit, sn_stretch *out) {
    const sn_layout *l = &o->layout;
    uint32_t first = o->program.split ? UINT32_MAX : 0;
    for (uint32_t t = at; t < o->program.n; t++) {
        if (o->program.actions[t].kind == SN_STEP_REPEAT)
            first = t + 1;
        else if (o->program.actions[t].kind == SN_STEP_END)
            first = UINT32_MAX;
        else if (first != UINT32_MAX && l->live[t] > limit) {
            *out = (sn_stretch){first, first > 0 ? l->end_of[first - 1] : o->program.n};
            return true;
        }
    }
    return false;
}

/* Notes how the stretch is to run where that fits; of *r only its numbers stay. */
static snug_status recompute_stretch(family *f, sn_recomputer *c, sn_zone *z, sn_replacement *part,
                                     const sn_remat_limits *limits, sn_remat_result *r,
                                     snug_error *err) {
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
static snug_status recompute_full(family *f, offer *o, sn_zone *z, size_t limit, size_t *floor,
                                  snug_error *err) {
    const uint64_t work = o->of.slices > 1 ? f->block_work : f->work;
    sn_remat_limits limits = {.budget = limit, .work = work, .no_floor = !o->of.lowest};
    sn_recomputer *c;
    sn_replacement *parts;
    sn_program next;
    sn_stretch s;
    uint32_t n = 0;
    SNUG_TRY(sn_plan_array(z, (size_t)f->split.n_blocks + 1, sizeof *parts, &parts, err));
    SNUG_TRY(sn_recomputer_create(f->p, z, &o->layout, &c, err));
    for (uint32_t at = 0; find_full(o, at, limit, &s); at = s.end) {
        sn_remat_result r;
        parts[n].what = s;
        limits.budget = limit > 0 ? limit : *floor;
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

static snug_status recompute_once(family *f, offer *o, size_t limit, size_t *floor,
                                  snug_error *err) {
    sn_zone *z;
    SNUG_TRY(open_zone(f, &z, err));
    const snug_status st = recompute_full(f, o, z, limit, floor, err);
    sn_zone_destroy(z);
    return st;
}

/* Aims lower where the layout lies above what was promised (it shares fewer bytes in place). The
 * smallest try stays. */
static snug_status recompute(family *f, offer *o, size_t *floor, snug_error *err) {
    const sn_program program = o->program;
    sn_program best = program;
    size_t limit = o->of.limit, bound = o->layout.bound;
    for (int i = 0; i < MAX_TRIES && !o->fits && *floor <= o->of.limit; i++) {
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

static snug_status fill_member(family *f, offer *o, size_t *floor, snug_error *err) {
    sn_planner *const p = f->p;
    if (o->of.slices > 1) {
        SNUG_TRY(sn_plan_slices(p, o->zone, &f->split, o->of.slices, &o->slices, err));
        SNUG_TRY(hold_values(f, o, err));
    } else {
        SNUG_TRY(sn_program_plain(p, o->zone, &f->order, &o->program, err));
        SNUG_TRY(lay_out(f, o, err));
    }
    return o->fits || !o->program.possible ? SNUG_OK : recompute(f, o, floor, err);
}

/* *floor: what its blocks need at least, where the limit is lower; else 0. */
static snug_status make_member(family *f, member m, offer **out, size_t *floor, snug_error *err) {
    sn_zone *zone = NULL;
    offer *o = NULL;
    *floor = 0;
    *out = NULL;
    SNUG_TRY(sn_zone_create(f->p->engine, SN_MEM_PLAN, &zone, err));
    snug_status st = sn_plan_array(zone, 1, sizeof *o, &o, err);
    if (st == SNUG_OK) {
        o->zone = zone;
        o->of = m;
        st = fill_member(f, o, floor, err);
    }
    if (st == SNUG_OK)
        *out = o;
    else if (o)
        drop_offer(o);
    else
        sn_zone_destroy(zone);
    return st;
}

/* --- the family ------------------------------------------------------------------------------- */
/* The order is copied to where it can stay. */
static snug_status keep_order(family *f, const sn_order *from, sn_order *to, snug_error *err) {
    if (!to->node)
        SNUG_TRY(sn_plan_array(f->p->work, from->n, sizeof *to->node, &to->node, err));
    memcpy(to->node, from->node, from->n * sizeof *to->node);
    to->n = from->n;
    return SNUG_OK;
}

static snug_status try_order(family *f, sn_zone *z, sn_order_kind kind, snug_error *err) {
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
static snug_status choose_order(family *f, snug_error *err) {
    snug_status st = SNUG_OK;
    for (int kind = 0; kind < SN_N_ORDERS && st == SNUG_OK; kind++) {
        sn_zone *z;
        SNUG_TRY(open_zone(f, &z, err));
        st = try_order(f, z, (sn_order_kind)kind, err);
        sn_zone_destroy(z);
    }
    return st;
}

static snug_status try_sliced_order(family *f, sn_zone *z, const size_t *bytes, sn_order_kind kind,
                                    size_t *best, snug_error *err) {
    const member some = {.slices = f->split.extent < 8 ? f->split.extent : 8, .limit = SIZE_MAX};
    const sn_order chosen = f->in_slices;
    sn_order order;
    offer *o;
    size_t floor;
    SNUG_TRY(sn_plan_order(f->p, z, kind, bytes, &order, err));
    f->in_slices = order;
    const snug_status st = make_member(f, some, &o, &floor, err);
    f->in_slices = chosen;
    SNUG_TRY(st);
    const bool better = o->layout.bound < *best;
    *best = better ? o->layout.bound : *best;
    drop_offer(o);
    return better ? keep_order(f, &order, &f->in_slices, err) : SNUG_OK;
}

/* The same for slices: sums and what is not sliced live anyway and count nothing. */
static snug_status choose_sliced_order(family *f, snug_error *err) {
    sn_planner *const p = f->p;
    size_t *bytes, best = SIZE_MAX;
    snug_status st = SNUG_OK;
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *bytes, &bytes, err));
    for (uint32_t v = 0; v < p->n_values; v++)
        bytes[v] = f->split.label[v].axis >= 0 ? p->padded[v] : 0;
    for (int kind = 0; kind < SN_N_ORDERS && st == SNUG_OK; kind++) {
        sn_zone *z;
        SNUG_TRY(open_zone(f, &z, err));
        st = try_sliced_order(f, z, bytes, (sn_order_kind)kind, &best, err);
        sn_zone_destroy(z);
    }
    return st;
}

static snug_status find_slices(family *f, snug_error *err) {
    SNUG_TRY(sn_plan_split(f->p, &f->order, &f->split, err));
    if (f->split.extent == 0)
        return SNUG_OK;
    SNUG_TRY(sn_holder_create(f->p, &f->split, &f->holder, err));
    f->block_work = f->work / 8 / f->split.n_blocks;
    const uint64_t walk = WALK_WORK * (uint64_t)f->p->n_nodes * f->split.n_blocks;
    f->searches = f->split.n_blocks < 2 ? 0 : (int)(f->work / walk < 64 ? f->work / walk : 64);
    return choose_sliced_order(f, err);
}

/* --- choosing --------------------------------------------------------------------------------- */
#define MAX_MEMBERS 256
#define MAX_NUMBERS 48 /* of slices: two an octave */

/* Members, the fastest first; the larger one first among equals. */
typedef struct {
    member of;
    double seconds;
    size_t bound;
} ranked;
typedef struct {
    uint32_t n;
    ranked at[MAX_MEMBERS];
} ranking;

/* What is known of a number of slices on the way down the ladder. */
typedef struct {
    int64_t slices;
    double plain_seconds; /* without recomputation: nothing takes less */
    double seconds;       /* of the smallest member so far */
    size_t bound;
    bool stuck; /* it does not get smaller */
} number;

static void rank(const family *f, ranking *r, const offer *o) {
    if (!o->program.possible || r->n == MAX_MEMBERS)
        return;
    const ranked new = {o->of, o->seconds, o->layout.bound + books_of(f, o)};
    uint32_t i = r->n++;
    for (; i > 0 && (r->at[i - 1].seconds > new.seconds ||
                     (r->at[i - 1].seconds == new.seconds && r->at[i - 1].bound < new.bound));
         i--)
        r->at[i] = r->at[i - 1];
    r->at[i] = new;
}

/* Makes a member and ranks it where it is as small as it was to be. */
static snug_status rank_member(family *f, member m, ranking *r, number *about, snug_error *err) {
    offer *o;
    size_t floor;
    SNUG_TRY(make_member(f, m, &o, &floor, err));
    about->stuck = !o->fits;
    if (o->fits) {
        rank(f, r, o);
        about->seconds = o->seconds;
        about->bound = o->layout.bound;
    }
    drop_offer(o);
    return SNUG_OK;
}

/* 1, 2, 3, 4, 6, 8, 12, 16, ..., and every row alone. */
static int64_t next_slices(const family *f, int64_t k) {
    const int64_t next = k < 3 ? k + 1 : (k & (k - 1)) == 0 ? k + k / 2 : k / 3 * 4;
    return next < f->split.extent || k == f->split.extent ? next : f->split.extent;
}

/* What needs no recomputation: a member per number of slices. */
static snug_status rank_slices(family *f, ranking *r, number *numbers, uint32_t *n,
                               snug_error *err) {
    *n = 0;
    for (int64_t k = 1; (k <= f->split.extent || k == 1) && *n < MAX_NUMBERS;
         k = next_slices(f, k)) {
        number new = {.slices = k};
        SNUG_TRY(rank_member(f, (member){.slices = k, .limit = SIZE_MAX}, r, &new, err));
        new.plain_seconds = new.seconds;
        if (new.stuck)
            continue;
        uint32_t i = (*n)++;
        for (; i > 0 && numbers[i - 1].plain_seconds > new.plain_seconds; i--)
            numbers[i] = numbers[i - 1];
        numbers[i] = new;
    }
    return SNUG_OK;
}

/* One step of the ladder: with which numbers of slices can this size be reached? Those that are
 * fastest without recomputation are tried, until one is faster than the others can be; at most a
 * few of them. Where values lie between blocks, twice as many slices leave more for these.
 * *reached: some can. */
static snug_status rank_step(family *f, size_t size, ranking *r, number *numbers, uint32_t n,
                             bool *reached, snug_error *err) {
    const int most = f->split.n_blocks > 2 ? 3 : 4;
    const int64_t apart = f->split.n_blocks > 2 ? 2 : 1;
    int64_t least = 1;
    double best = INFINITY;
    int made = 0;
    *reached = false;
    for (uint32_t i = 0; i < n && numbers[i].plain_seconds < best; i++) {
        number *const k = &numbers[i];
        if (k->bound > size && !k->stuck &&
            (k->slices == 1 || (made < most && k->slices >= least))) {
            SNUG_TRY(rank_member(f, (member){.slices = k->slices, .limit = size}, r, k, err));
            made += !k->stuck && k->slices > 1;
            least = k->stuck ? least : apart * k->slices;
        }
        if (k->bound > size)
            continue;
        *reached = true;
        best = k->seconds < best ? k->seconds : best;
    }
    return SNUG_OK;
}

/* The smallest that a number of slices can be made to be, with everything recomputed, and a little
 * above, where steps may be fewer; then a little less, as often as that succeeds and the steps do
 * not take what it gives. */
static snug_status rank_floor(family *f, int64_t slices, ranking *r, snug_error *err) {
    enum { ABOVE = 2 };
    size_t floor = 0, limit = 0, least = SIZE_MAX;
    offer *o;
    bool go_on = true;
    for (size_t i = 0, needed; go_on && i <= FLOOR_TRIES; i++) {
        SNUG_TRY(make_member(f, (member){slices, limit, true}, &o, &needed, err));
        const size_t size = o->layout.bound + books_of(f, o);
        go_on = i <= ABOVE || (o->fits && size < least);
        if (o->fits && i > 0)
            rank(f, r, o);
        floor = i == 0 ? needed : floor;
        least = o->fits && i > 0 && size < least ? size : least;
        const size_t less = o->layout.bound - o->layout.bound / 64;
        limit = i <= ABOVE ? floor + floor / 64 * (ABOVE - i) : less;
        drop_offer(o);
    }
    return SNUG_OK;
}

/* The whole family, whatever the limit is. */
static snug_status rank_family(family *f, ranking *r, snug_error *err) {
    number numbers[MAX_NUMBERS];
    uint32_t n, smallest = 0;
    bool reached = true;
    SNUG_TRY(rank_slices(f, r, numbers, &n, err));
    double size = (double)f->unlimited; /* 0 where everything is in homes: no ladder */
    for (int j = 1; reached && size >= 1; j++) {
        size = (double)f->unlimited * exp2(-(double)j / STEPS_PER_OCTAVE);
        SNUG_TRY(rank_step(f, (size_t)size, r, numbers, n, &reached, err));
    }
    if (f->split.extent > 1)
        SNUG_TRY(rank_floor(f, f->split.extent, r, err));
    if (f->split.n_blocks > 2)
        return SNUG_OK; /* the others are not lower, and take long */
    for (uint32_t i = 1; i < n; i++)
        if (numbers[i].bound < numbers[smallest].bound)
            smallest = i;
    if (n > 0 && numbers[smallest].slices > 1 && numbers[smallest].slices < f->split.extent)
        SNUG_TRY(rank_floor(f, numbers[smallest].slices, r, err));
    return rank_floor(f, 1, r, err);
}

/* The height a member is packed to does not depend on the limit either. */
static snug_status pack_offer(offer *o, size_t *height, snug_error *err) {
    const sn_pack_limits limits = {.capacity = o->layout.bound + o->layout.bound / 128};
    size_t bound;
    return sn_pack_to(sn_zone_engine(o->zone), o->layout.items, o->layout.n_items, &limits, height,
                      &bound, err);
}

/* Of runs beyond the first of each node. */
static double seconds_again(const family *f, const offer *o) {
    double seconds = o->seconds;
    for (uint32_t i = 0; i < f->order.n; i++) {
        const uint32_t node = f->order.node[i];
        const bool sliced = o->of.slices > 1 && f->split.sliced[node];
        seconds -= sliced ? o->slices.seconds[node] : f->p->seconds[node];
    }
    return seconds > 0 ? seconds : 0;
}

static snug_status take_offer(family *f, offer *o, size_t height, snug_error *err) {
    sn_plan *const plan = f->p->plan;
    sn_plan_memory *const arena = &plan->memories[SN_MEM_FIRST_ARENA];
    if (height + books_of(f, o) < f->p->arena_limit)
        sn_spill_keep(f->p, f->p->arena_limit - height - books_of(f, o));
    arena->bytes = height;
    arena->lower_bound_bytes = o->layout.bound;
    plan->seconds = o->seconds + sn_spill_seconds(f->p);
    plan->plain_seconds = f->seconds;
    plan->again_seconds = seconds_again(f, o);
    plan->plain_bytes = f->unlimited;
    return sn_plan_emit(f->p, &o->layout, err);
}

/* Makes and packs a member; where its height is within the limit (0: none) it is the plan now. */
static snug_status try_member(family *f, member m, size_t limit, size_t *height, snug_error *err) {
    offer *o;
    size_t floor;
    SNUG_TRY(make_member(f, m, &o, &floor, err));
    snug_status st = pack_offer(o, height, err);
    const size_t arena = st == SNUG_OK ? *height : 0;
    *height = arena + books_of(f, o);
    if (st == SNUG_OK && (limit == 0 || *height <= limit))
        st = take_offer(f, o, arena, err);
    drop_offer(o);
    return st;
}

/* The smallest bound from `above` on, with the member that has it; SIZE_MAX: none. */
static size_t next_bound(const ranking *r, size_t above, uint32_t *at) {
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
static snug_status find_floor(family *f, const ranking *r, size_t plain, sn_plan_floor *out,
                              snug_error *err) {
    uint32_t i = 0;
    *out = (sn_plan_floor){.bytes = plain, .seconds = f->seconds};
    for (size_t bound = next_bound(r, 0, &i); bound < out->bytes;
         bound = next_bound(r, bound + 1, &i)) {
        size_t height;
        SNUG_TRY(try_member(f, r->at[i].of, 1, &height, err));
        if (height < out->bytes)
            *out = (sn_plan_floor){.bytes = height, .seconds = r->at[i].seconds};
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

static snug_status choose_limited(family *f, const sn_plan_options *o, size_t plain,
                                  snug_error *err) {
    sn_plan_floor floor;
    ranking *r;
    SNUG_TRY(sn_plan_array(f->p->work, 1, sizeof *r, &r, err));
    SNUG_TRY(find_slices(f, err));
    SNUG_TRY(rank_family(f, r, err));
    if (o->floor)
        SNUG_TRY(find_floor(f, r, plain, o->floor, err));
    for (uint32_t i = 0; i < r->n; i++) {
        size_t height;
        if (r->at[i].bound > o->arena_bytes)
            continue;
        SNUG_TRY(try_member(f, r->at[i].of, o->arena_bytes, &height, err));
        if (height <= o->arena_bytes)
            return SNUG_OK;
    }
    if (!o->floor)
        SNUG_TRY(find_floor(f, r, plain, &floor, err));
    return refuse(o, o->floor ? o->floor : &floor, err);
}

static family family_of(sn_planner *p, const sn_plan_options *o) {
    return (family){.p = p,
                    .work = SN_REMAT_WORK_SECOND / CALLS * p->n_nodes / 2000 *
                            (o->effort ? o->effort : 1),
                    .step_bytes = o->step_bytes};
}

/* --- the whole trade -------------------------------------------------------------------------- */
/* Members below the plain one that no other beats in both bytes and seconds, the fastest first; at
 * most `max` of them, evenly along the list, the smallest always. */
static uint32_t find_front(const ranking *r, uint32_t *front, uint32_t max) {
    uint32_t n = 0;
    size_t least = SIZE_MAX;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->at[i].bound < least) {
            least = r->at[i].bound;
            if (r->at[i].of.slices > 1 || r->at[i].of.limit != SIZE_MAX)
                front[n++] = i;
        }
    for (uint32_t i = 0; n > max && i < max; i++)
        front[i] = front[max > 1 ? i * (n - 1) / (max - 1) : n - 1];
    return n < max ? n : max;
}

static snug_status make_point(family *f, member m, sn_plan_point *out, snug_error *err) {
    offer *o;
    size_t floor, height;
    SNUG_TRY(make_member(f, m, &o, &floor, err));
    const snug_status st = pack_offer(o, &height, err);
    if (st == SNUG_OK)
        *out = (sn_plan_point){.bytes = height + books_of(f, o),
                               .seconds = o->seconds,
                               .slices = m.slices > 1 ? o->slices.repeat : 1,
                               .n_steps = o->program.n};
    drop_offer(o);
    return st;
}

/* What the budget that is just enough for a member gives: that member, or a faster one that packs
 * as low. */
static snug_status make_best(family *f, const ranking *r, member m, sn_plan_point *out,
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

snug_status sn_plan_front(sn_planner *p, const sn_plan_options *o, sn_plan_point *out, uint32_t max,
                          uint32_t *n, snug_error *err) {
    family f = family_of(p, o);
    uint32_t front[MAX_MEMBERS];
    ranking *r;
    SNUG_TRY(choose_order(&f, err));
    SNUG_TRY(sn_plan_array(p->work, 1, sizeof *r, &r, err));
    SNUG_TRY(find_slices(&f, err));
    SNUG_TRY(rank_family(&f, r, err));
    SNUG_TRY(make_point(&f, (member){.slices = 1, .limit = SIZE_MAX}, &out[0], err));
    *n = 1 + find_front(r, front, max - 1);
    for (uint32_t i = 1; i < *n; i++)
        SNUG_TRY(make_best(&f, r, r->at[front[i - 1]].of, &out[i], err));
    sn_plan_thin(out, n);
    return SNUG_OK;
}

/* --- values in a file ------------------------------------------------------------------------- */
/* The plain program, with as many values in the file as its limit asks for. */
static snug_status fill_file(family *f, offer *o, size_t *height, snug_error *err) {
    SNUG_TRY(sn_program_plain(f->p, o->zone, &f->order, &o->program, err));
    SNUG_TRY(sn_spill_values(f->p, o->zone, o->of.limit, &o->program, &o->layout, err));
    SNUG_TRY(sn_spill_time(f->p, &o->layout, &o->seconds, err));
    o->fits = o->layout.bound <= o->of.limit;
    return pack_offer(o, height, err);
}

/* Makes the member with this limit; where `take`, it is the plan now. */
static snug_status try_file(family *f, offer *o, size_t *height, bool take, snug_error *err) {
    SNUG_TRY(open_zone(f, &o->zone, err));
    snug_status st = fill_file(f, o, height, err);
    if (st == SNUG_OK && take)
        st = take_offer(f, o, *height, err);
    *height += books_of(f, o);
    sn_zone_destroy(o->zone);
    return st;
}

/* As in memory: the fastest that fits, of a ladder of limits that does not depend on the budget. */
static snug_status choose_file(family *f, const sn_plan_options *o, snug_error *err) {
    size_t best = 0, height = 0;
    double seconds = INFINITY;
    offer file = {.fits = true};
    for (int j = 1; file.fits && f->unlimited > 0; j++) {
        const double limit = (double)f->unlimited * exp2(-(double)j / STEPS_PER_OCTAVE);
        file = (offer){.of = {1, (size_t)limit}};
        SNUG_TRY(try_file(f, &file, &height, false, err));
        if (height > o->arena_bytes || file.seconds >= seconds)
            continue;
        best = file.of.limit;
        seconds = file.seconds;
    }
    if (best == 0)
        return sn_fail(err, SNUG_E_BUDGET, "no plan with values in a file fits %zu bytes",
                       o->arena_bytes);
    file = (offer){.of = {1, best}};
    return try_file(f, &file, &height, true, err);
}

snug_status sn_plan_choose(sn_planner *p, const sn_plan_options *o, snug_error *err) {
    family f = family_of(p, o);
    size_t height;
    SNUG_TRY(choose_order(&f, err));
    if (p->spills_values)
        return choose_file(&f, o, err);
    if (o->slices > 1) {
        SNUG_TRY(find_slices(&f, err));
        if (f.split.extent == 0)
            return sn_fail(err, SNUG_E_INVALID, "plan: no axis of this graph can be sliced");
        const member m = {.slices = o->slices < f.split.extent ? o->slices : f.split.extent,
                          .limit = o->arena_bytes ? o->arena_bytes : SIZE_MAX};
        return try_member(&f, m, 0, &height, err);
    }
    SNUG_TRY(
        try_member(&f, (member){.slices = 1, .limit = SIZE_MAX}, o->arena_bytes, &height, err));
    return o->arena_bytes == 0 || height <= o->arena_bytes ? SNUG_OK
                                                           : choose_limited(&f, o, height, err);
}
