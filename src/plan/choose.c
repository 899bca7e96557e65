/* choose.c: the fastest program that fits a number of bytes.
 *
 * Programs come from a family that does not depend on the number of bytes asked for (family.c):
 *
 *     slices      1, 2, 3, 4, 6, 8, 12, 16, ... pieces of the batch
 *     cut         what runs in slices: all that can, or only what stands at large values
 *     limit       on a ladder of sizes
 *     fused       whether wide gradients die inside their updates, where that gives another graph
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
#include "plan/family.h"

#include <math.h>

#define STEPS_PER_OCTAVE 6
#define FLOOR_TRIES      10   /* to get at the floor and below */
#define PART_TRIES       3    /* at a step of the ladder */
#define MANY_BLOCKS      128  /* one more step of the ladder without slices for each */
#define MANY_NODES       4000 /* in more of them fewer numbers of slices are tried */
#define MAX_STUCK        3    /* steps in a row, before a number or all of them are given up */
#define MAX_LARGER       2    /* members in a row, before a number is given up */
#define HOPELESS         4    /* times its limit: the number is given up */
#define MAX_LOSSES       4    /* steps in a row, before a number or a part is given up */
#define MAX_NUMBERS      48   /* of slices: two an octave */
enum { ABOVE = 3 };           /* steps of the ladder that a member is compared with */

/* Members, the fastest first; the larger one first among equals. */
typedef struct {
    sn_member of;
    double seconds;
    size_t bound;
    bool misses; /* the limit, when packed */
} ranked;
typedef struct {
    uint32_t n;
    size_t least;         /* of all bounds */
    double least_seconds; /* of members to come */
    ranked at[SN_MAX_MEMBERS];
} ranking;

/* What is known of a number of slices on the way down the ladder. */
typedef struct {
    int64_t slices;
    uint32_t cut;
    double plain_seconds; /* without recomputation: nothing takes less */
    double seconds;       /* of the smallest member so far */
    size_t bound;
    int stuck;    /* members in a row that did not get as small as they were to be */
    size_t total; /* bytes of that one with its steps */
    int larger;   /* members in a row whose steps took what the arena gave */
    int lost;     /* steps in a row where more slices were faster */
} number;

static void rank(const sn_family *f, ranking *r, const sn_offer *o) {
    if (!o->program.possible || r->n == SN_MAX_MEMBERS)
        return;
    ranked new = {o->of, o->seconds, o->layout.bound + sn_offer_books(f, o), false};
    new.of.least_seconds = fmax(o->of.least_seconds, r->least_seconds);
    new.seconds = fmax(o->seconds, r->least_seconds);
    uint32_t i = r->n++;
    r->least = i == 0 || new.bound < r->least ? new.bound : r->least;
    for (; i > 0 && (r->at[i - 1].seconds > new.seconds ||
                     (r->at[i - 1].seconds == new.seconds && r->at[i - 1].bound < new.bound));
         i--)
        r->at[i] = r->at[i - 1];
    r->at[i] = new;
}

/* Misses its limit by more than bad luck. Where blocks hold values, less of them held shows in the
 * size; a recomputation that finds nothing leaves the program as it was. */
static bool is_hopeless(const sn_family *f, const sn_offer *o) {
    return o->of.slices > 1 && f->cuts[o->of.cut].split.n_blocks > 2 &&
           o->layout.bound / HOPELESS > o->of.limit;
}

/* Makes a member and ranks it where it is as small as it was to be. */
static snug_status rank_member(sn_family *f, sn_member m, ranking *r, number *about,
                               snug_error *err) {
    sn_offer *o;
    size_t floor;
    SNUG_TRY(sn_family_make(f, m, &o, &floor, err));
    const size_t books = sn_offer_books(f, o), total = o->layout.bound + books;
    const bool too_long = r->n > 0 && books >= r->least;
    about->stuck = o->fits ? 0 : is_hopeless(f, o) ? MAX_STUCK : about->stuck + 1;
    if (o->fits) {
        rank(f, r, o);
        about->larger = about->total > 0 && total >= about->total ? about->larger + 1 : 0;
        about->total = total;
        about->seconds = o->seconds;
        about->bound = o->layout.bound;
    }
    about->larger = too_long ? MAX_LARGER : about->larger;
    sn_offer_drop(o);
    return SNUG_OK;
}

static int64_t rows_of(int64_t extent, int64_t slices) {
    return (extent + slices - 1) / slices;
}

/* Every row alone; of a batch of more rows as many slices as a plan may have. */
static int64_t most_slices(int64_t extent) {
    return extent < SN_MAX_SLICES ? extent : SN_MAX_SLICES;
}

/* 1, 2, 3, 4, 6, 8, 12, 16, ..., and the most, but none with the rows of the one before; 0: no
 * more. */
static int64_t next_slices(int64_t extent, int64_t k) {
    const int64_t most = most_slices(extent);
    int64_t next = k;
    while (next < most && rows_of(extent, next) == rows_of(extent, k))
        next = next < 3 ? next + 1 : (next & (next - 1)) == 0 ? next + next / 2 : next / 3 * 4;
    return k >= most ? 0 : next < most ? next : most;
}

/* What needs no recomputation. Numbers stand in the order of their seconds. */
static snug_status rank_number(sn_family *f, number new, ranking *r, number *numbers, uint32_t *n,
                               snug_error *err) {
    const sn_member m = {.slices = new.slices, .limit = SIZE_MAX, .cut = new.cut};
    SNUG_TRY(rank_member(f, m, r, &new, err));
    if (new.stuck)
        return SNUG_OK;
    new.plain_seconds = new.seconds;
    uint32_t i = (*n)++;
    for (; i > 0 && numbers[i - 1].plain_seconds > new.plain_seconds; i--)
        numbers[i] = numbers[i - 1];
    numbers[i] = new;
    return SNUG_OK;
}

static snug_status rank_cut(sn_family *f, uint32_t cut, ranking *r, number *numbers, uint32_t *n,
                            snug_error *err) {
    const int64_t extent = f->cuts[0].split.extent;
    const uint32_t most = *n + MAX_NUMBERS;
    for (int64_t k = cut > 0 ? 2 : 1; k > 0 && *n < most; k = next_slices(extent, k))
        SNUG_TRY(rank_number(f, (number){.slices = k, .cut = cut}, r, numbers, n, err));
    return SNUG_OK;
}

/* What takes too many steps with some slices does so with fewer. */
static void give_up(number *numbers, uint32_t n, int64_t slices) {
    for (uint32_t i = 0; i < n; i++)
        if (numbers[i].slices < slices)
            numbers[i].larger = MAX_LARGER;
}

/* A step of the ladder. */
typedef struct {
    size_t size;
    bool only_plain; /* slices are not looked at: there are many blocks */
    double fastest;  /* seconds of the fastest member that is small enough; INFINITY: none */
} rung;

/* With which numbers of slices can the size be reached? Those that are fastest without
 * recomputation are tried, until one is faster than the others can be; at most a few of them, and
 * none that has lost to more slices for some steps. Where values lie between blocks, twice as many
 * slices leave more for these; in very long programs every try takes long. */
static snug_status rank_step(sn_family *f, rung *at, ranking *r, number *numbers, uint32_t n,
                             snug_error *err) {
    const bool phases = f->cuts[0].split.n_blocks > 2;
    const bool is_long = !phases && f->p->n_nodes > MANY_NODES;
    const int most = at->only_plain ? 0 : is_long ? 2 : phases ? 3 : 4;
    const int64_t apart = phases || is_long ? 2 : 1;
    int64_t least = 1, winner = 0;
    int made = 0;
    for (uint32_t i = 0; i < n && numbers[i].plain_seconds < at->fastest; i++) {
        number *const k = &numbers[i];
        const sn_member m = {.slices = k->slices, .limit = at->size};
        if (k->bound > at->size && k->stuck < MAX_STUCK && k->lost < MAX_LOSSES &&
            k->larger < MAX_LARGER && (k->slices == 1 || (made < most && k->slices >= least))) {
            SNUG_TRY(rank_member(f, m, r, k, err));
            made += !k->stuck && k->slices > 1;
            least = k->stuck ? least : apart * k->slices;
            if (k->larger == MAX_LARGER)
                give_up(numbers, n, k->slices);
        }
        if (k->bound <= at->size && k->seconds < at->fastest) {
            at->fastest = k->seconds;
            winner = k->slices;
        }
    }
    for (uint32_t i = 0; i < n && !at->only_plain; i++)
        numbers[i].lost = numbers[i].slices < winner ? numbers[i].lost + 1 : 0;
    return SNUG_OK;
}

/* What is known of parts. */
typedef struct {
    uint32_t n;
    number numbers[(SN_MAX_CUTS - 1) * MAX_NUMBERS];
    int lost[SN_MAX_CUTS]; /* tries of a cut that were not the fastest, one after the other */
} part_numbers;

/* The same with parts, where one could be faster; a few tries, and none with a cut that has lost
 * some. */
static snug_status rank_part_step(sn_family *f, rung *at, ranking *r, part_numbers *p,
                                  snug_error *err) {
    int tries = at->only_plain ? PART_TRIES : 0;
    for (uint32_t i = 0; i < p->n && p->numbers[i].plain_seconds < at->fastest; i++) {
        number *const k = &p->numbers[i];
        const sn_member m = {.slices = k->slices, .limit = at->size, .cut = k->cut};
        if (k->bound > at->size && k->stuck < MAX_STUCK && k->larger < MAX_LARGER &&
            tries < PART_TRIES && p->lost[k->cut] < MAX_LOSSES) {
            SNUG_TRY(rank_member(f, m, r, k, err));
            tries++;
            p->lost[k->cut] += k->stuck || k->seconds >= at->fastest;
        }
        if (k->bound <= at->size && k->seconds < at->fastest) {
            at->fastest = k->seconds;
            p->lost[k->cut] = 0;
        }
    }
    return SNUG_OK;
}

/* What nothing can be below with this many slices and everything made again: its steps. */
static snug_status least_books(sn_family *f, int64_t slices, size_t *out, snug_error *err) {
    sn_offer *o;
    size_t floor;
    SNUG_TRY(sn_family_make(f, (sn_member){.slices = slices, .limit = SIZE_MAX, .lowest = true}, &o,
                            &floor, err));
    *out = sn_offer_books(f, o);
    sn_offer_drop(o);
    return SNUG_OK;
}

/* The smallest that a number of slices can be made to be, with everything recomputed, and a little
 * above, where steps may be fewer; then a little less, as often as that succeeds and the steps do
 * not take what it gives. Nothing where that is no smaller than what there is. */
static snug_status rank_floor(sn_family *f, int64_t slices, ranking *r, snug_error *err) {
    enum { MORE = 2 };
    size_t floor = 0, limit = 0, least = SIZE_MAX, books;
    sn_offer *o;
    SNUG_TRY(least_books(f, slices, &books, err));
    bool go_on = r->n == 0 || books < r->least;
    for (size_t i = 0, needed; go_on && i <= FLOOR_TRIES; i++) {
        const sn_member m = {.slices = slices, .limit = limit, .lowest = true};
        SNUG_TRY(sn_family_make(f, m, &o, &needed, err));
        const size_t size = o->layout.bound + sn_offer_books(f, o);
        go_on = i == 0 ? needed + books < r->least || r->n == 0
                       : i <= MORE || (o->fits && size < least);
        if (o->fits && i > 0)
            rank(f, r, o);
        floor = i == 0 ? needed : floor;
        least = o->fits && i > 0 && size < least ? size : least;
        const size_t less = o->layout.bound - o->layout.bound / 64;
        limit = i <= MORE ? floor + floor / 64 * (MORE - i) : less;
        sn_offer_drop(o);
    }
    return SNUG_OK;
}

/* What is known of the programs of one graph. */
typedef struct {
    sn_family *f;
    number numbers[MAX_NUMBERS];
    uint32_t n;
    part_numbers parts;
} side;

/* The way down the ladder, as far as it was gone; with fused updates a second side. */
typedef struct {
    side sides[2];
    int n_sides;
    uint32_t step;
    int failed;            /* steps in a row */
    double fastest[ABOVE]; /* of the last steps, by their number */
} ladder;

static snug_status open_side(sn_family *f, ranking *r, side *out, snug_error *err) {
    out->f = f;
    SNUG_TRY(rank_cut(f, 0, r, out->numbers, &out->n, err));
    for (uint32_t cut = 1; cut < f->n_cuts; cut++)
        SNUG_TRY(rank_cut(f, cut, r, out->parts.numbers, &out->parts.n, err));
    return SNUG_OK;
}

static snug_status open_ladder(sn_family *f, ranking *r, ladder **out, snug_error *err) {
    ladder *l;
    SNUG_TRY(sn_plan_array(f->p->work, 1, sizeof *l, &l, err));
    for (int i = 0; i < ABOVE; i++)
        l->fastest[i] = INFINITY;
    l->n_sides = f->fused ? 2 : 1;
    SNUG_TRY(open_side(f, r, &l->sides[0], err));
    if (f->fused)
        SNUG_TRY(open_side(f->fused, r, &l->sides[1], err));
    *out = l;
    return SNUG_OK;
}

/* Below the steps that were gone. It never becomes less. */
static void raise_least(const ladder *l, ranking *r) {
    double fastest = INFINITY;
    for (int i = 0; i < ABOVE; i++)
        fastest = fmin(fastest, l->fastest[i]);
    if (fastest < INFINITY && l->step >= ABOVE)
        r->least_seconds = fmax(r->least_seconds, fastest);
}

/* One step down; *ends: there is none. */
static snug_status rank_down(sn_family *f, ranking *r, ladder *l, bool *ends, snug_error *err) {
    const uint32_t apart = 1 + f->cuts[0].split.n_blocks / MANY_BLOCKS, j = l->step + 1;
    const double size = (double)f->unlimited * exp2(-(double)j / STEPS_PER_OCTAVE);
    *ends = size * exp2(1.0 / STEPS_PER_OCTAVE) < 1 || l->failed == MAX_STUCK;
    if (*ends)
        return SNUG_OK;
    rung at = {.size = (size_t)size, .only_plain = j % apart != 0, .fastest = INFINITY};
    for (side *s = l->sides; s < l->sides + l->n_sides; s++) {
        SNUG_TRY(rank_step(s->f, &at, r, s->numbers, s->n, err));
        SNUG_TRY(rank_part_step(s->f, &at, r, &s->parts, err));
    }
    l->failed = at.fastest < INFINITY ? 0 : l->failed + !at.only_plain;
    l->fastest[j % ABOVE] = at.fastest;
    l->step = j;
    raise_least(l, r);
    return SNUG_OK;
}

/* Between two steps of the ladder: the number of slices with the smallest member, by small steps
 * down from there. */
static snug_status rank_below(sn_family *f, ranking *r, number *numbers, uint32_t n,
                              snug_error *err) {
    enum { BELOW = 32 };
    uint32_t least = 0;
    for (uint32_t i = 1; i < n; i++)
        if (numbers[i].total < numbers[least].total)
            least = i;
    if (n == 0)
        return SNUG_OK;
    number *const k = &numbers[least];
    size_t limit = k->bound;
    k->stuck = k->larger = 0;
    while (limit >= BELOW && k->stuck < MAX_STUCK && k->larger < MAX_LARGER) {
        limit -= limit / BELOW;
        if (k->bound > limit)
            SNUG_TRY(rank_member(f, (sn_member){.slices = k->slices, .limit = limit}, r, k, err));
    }
    return SNUG_OK;
}

/* The smallest members of one graph. */
static snug_status rank_lowest(side *s, ranking *r, snug_error *err) {
    sn_family *const f = s->f;
    const sn_split *const split = &f->cuts[0].split;
    uint32_t smallest = 0;
    if (split->extent > 1)
        SNUG_TRY(rank_floor(f, most_slices(split->extent), r, err));
    if (split->n_blocks > 2) /* the others are not lower, and take long */
        return rank_below(f, r, s->numbers, s->n, err);
    for (uint32_t i = 1; i < s->n; i++)
        if (s->numbers[i].bound < s->numbers[smallest].bound)
            smallest = i;
    const int64_t slices = s->n > 0 ? s->numbers[smallest].slices : 1;
    if (slices > 1 && slices < most_slices(split->extent))
        SNUG_TRY(rank_floor(f, slices, r, err));
    return rank_floor(f, 1, r, err);
}

/* The smallest members, behind the last step. */
static snug_status rank_bottom(ladder *l, ranking *r, snug_error *err) {
    for (int i = 0; i < l->n_sides; i++)
        SNUG_TRY(rank_lowest(&l->sides[i], r, err));
    return SNUG_OK;
}

/* The whole family, whatever the limit is. */
static snug_status rank_family(sn_family *f, ranking *r, snug_error *err) {
    ladder *l;
    bool ends = false;
    SNUG_TRY(open_ladder(f, r, &l, err));
    while (!ends)
        SNUG_TRY(rank_down(f, r, l, &ends, err));
    return rank_bottom(l, r, err);
}

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
static snug_status pack_offer(sn_offer *o, size_t *height, snug_error *err) {
    const sn_pack_limits limits = {.capacity = o->layout.bound + o->layout.bound / 128};
    size_t bound;
    return sn_pack_to(sn_zone_engine(o->zone), o->layout.items, o->layout.n_items, &limits, height,
                      &bound, err);
}

/* Of runs beyond the first of each node. */
static double seconds_again(const sn_family *f, const sn_offer *o) {
    double seconds = o->seconds;
    for (uint32_t i = 0; i < f->order.n; i++) {
        const uint32_t node = f->order.node[i];
        const bool sliced = o->of.slices > 1 && f->cuts[o->of.cut].split.sliced[node];
        seconds -= sliced ? o->slices.seconds[node] : f->p->seconds[node];
    }
    return seconds > 0 ? seconds : 0;
}

static snug_status take_offer(sn_family *f, sn_offer *o, size_t height, snug_error *err) {
    sn_plan *const plan = f->p->plan;
    sn_plan_memory *const arena = &plan->memories[SN_MEM_FIRST_ARENA];
    if (height + sn_offer_books(f, o) < f->p->arena_limit)
        sn_spill_keep(f->p, f->p->arena_limit - height - sn_offer_books(f, o));
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
    sn_offer *o;
    size_t floor, arena = 0;
    SNUG_TRY(sn_family_make(own, m, &o, &floor, err));
    snug_status st = o->program.possible ? pack_offer(o, &arena, err) : SNUG_OK;
    *height = o->program.possible ? arena + sn_offer_books(own, o) : SIZE_MAX;
    if (st == SNUG_OK && o->program.possible && (limit == 0 || *height <= limit))
        st = take_offer(own, o, arena, err);
    sn_offer_drop(o);
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
static snug_status find_floor(sn_family *f, const ranking *r, size_t plain, sn_plan_floor *out,
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
static snug_status find_fast_floor(sn_family *f, const ranking *r, size_t plain, sn_plan_floor *out,
                                   snug_error *err) {
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
static uint32_t find_front(const sn_family *f, const ranking *r, bool of_both, uint32_t *front) {
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
static void tell_front(const sn_family *f, const ranking *r, sn_searches *out) {
    uint32_t front[SN_MAX_MEMBERS];
    out->n_members = find_front(f, r, false, front);
    for (uint32_t i = 0; i < out->n_members; i++) {
        out->members[i] = r->at[front[i]].of;
        out->members[i].least_seconds = r->at[front[i]].seconds;
    }
}

/* The members that the search in memory has found, as far as they take less than so long there. */
static snug_status rank_found(sn_family *f, const sn_searches *found, double below, ranking *r,
                              snug_error *err) {
    for (uint32_t i = 0; i < found->n_members && found->members[i].least_seconds < below; i++) {
        sn_offer *o;
        size_t floor;
        if (found->members[i].slices > 1 && f->n_cuts == 0)
            SNUG_TRY(sn_family_cuts(f, 0, err));
        SNUG_TRY(sn_family_make(f, found->members[i], &o, &floor, err));
        rank(f, r, o);
        sn_offer_drop(o);
    }
    return SNUG_OK;
}

/* The fastest of those below so many seconds that fits is the plan now. */
static snug_status take_fastest(sn_family *f, ranking *r, size_t limit, double below, bool *taken,
                                snug_error *err) {
    for (uint32_t i = 0; i < r->n && r->at[i].seconds < below && !*taken; i++) {
        ranked *const m = &r->at[i];
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
static snug_status search(sn_family *f, ranking *r, size_t limit, bool *taken, snug_error *err) {
    ladder *l;
    bool ends = false;
    SNUG_TRY(open_ladder(f, r, &l, err));
    while (!ends && !*taken) {
        SNUG_TRY(rank_down(f, r, l, &ends, err));
        SNUG_TRY(take_fastest(f, r, limit, r->least_seconds, taken, err));
    }
    return *taken ? SNUG_OK : rank_bottom(l, r, err);
}

/* The members to choose from; *taken: the plan is one of them already. */
static snug_status find_members(sn_family *f, const sn_plan_options *o, ranking *r, bool *taken,
                                snug_error *err) {
    sn_searches *const searches = f->p->searches;
    if (searches && searches->n_members > 0)
        return rank_found(f, searches, o->always_floor ? INFINITY : searches->beat, r, err);
    if (!o->whole)
        SNUG_TRY(find_cuts(f, err));
    SNUG_TRY(o->always_floor ? rank_family(f, r, err) : search(f, r, o->arena_bytes, taken, err));
    if (searches)
        tell_front(f, r, searches);
    return SNUG_OK;
}

static snug_status choose_limited(sn_family *f, const sn_plan_options *o, size_t plain,
                                  snug_error *err) {
    const bool is_known = f->p->searches && f->p->searches->beat < INFINITY;
    sn_plan_floor own, *const floor = o->floor ? o->floor : &own;
    bool taken = false;
    ranking *r;
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
    sn_offer *o;
    size_t floor, height;
    SNUG_TRY(sn_family_make(own, m, &o, &floor, err));
    const snug_status st = pack_offer(o, &height, err);
    if (st == SNUG_OK)
        *out = (sn_plan_point){.bytes = height + sn_offer_books(own, o),
                               .seconds = o->seconds,
                               .slices = m.slices > 1 ? o->slices.repeat : 1,
                               .n_steps = o->program.n};
    sn_offer_drop(o);
    return st;
}

/* What the budget that is just enough for a member gives: that member, or a faster one that packs
 * as low. */
static snug_status make_best(sn_family *f, const ranking *r, sn_member m, sn_plan_point *out,
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
    ranking *r;
    SNUG_TRY(sn_family_order(f, err));
    SNUG_TRY(sn_plan_array(f->p->work, 1, sizeof *r, &r, err));
    SNUG_TRY(find_cuts(f, err));
    SNUG_TRY(rank_family(f, r, err));
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
static snug_status open_file(sn_family *f, sn_offer *o, snug_error *err) {
    *o = (sn_offer){.of = {.slices = 1}, .fits = true};
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
static snug_status lower_file(sn_family *f, sn_offer *o, size_t limit, size_t *height,
                              snug_error *err) {
    o->of.limit = limit;
    sn_zone_destroy(o->layout_zone);
    o->layout_zone = NULL;
    SNUG_TRY(sn_zone_create(f->p->engine, SN_MEM_PLAN, &o->layout_zone, err));
    SNUG_TRY(sn_spill_values(f->p, o->layout_zone, limit, &o->program, &o->layout, err));
    o->fits = o->layout.bound <= limit;
    *height = o->layout.bound + sn_offer_books(f, o);
    if (*height > f->p->arena_limit)
        return SNUG_OK;
    SNUG_TRY(sn_spill_time(f->p, &o->layout, &o->seconds, err));
    SNUG_TRY(pack_offer(o, height, err));
    *height += sn_offer_books(f, o);
    return SNUG_OK;
}

/* As in memory: the fastest that fits, of a ladder of limits that does not depend on the budget. It
 * ends where copies alone take longer than that, or than what is known. *best: its limit, or 0. */
static snug_status find_file(sn_family *f, size_t arena_bytes, size_t *best, snug_error *err) {
    double seconds = f->p->searches ? f->p->searches->beat : INFINITY;
    snug_status st = SNUG_OK;
    sn_offer file;
    *best = 0;
    SNUG_TRY(open_file(f, &file, err));
    for (int j = 1; st == SNUG_OK && file.fits && f->unlimited > 0 && arena_bytes > 1 &&
                    sn_spill_copy_seconds(f->p) < seconds;
         j++) {
        const double limit = (double)f->unlimited * exp2(-(double)j / STEPS_PER_OCTAVE);
        size_t height = SIZE_MAX;
        st = lower_file(f, &file, (size_t)limit, &height, err);
        if (st != SNUG_OK || height > arena_bytes || file.seconds >= seconds)
            continue;
        *best = file.of.limit;
        seconds = file.seconds;
    }
    sn_offer_drop(&file);
    return st;
}

static snug_status choose_file(sn_family *f, const sn_plan_options *o, snug_error *err) {
    size_t best, height = 0;
    sn_offer file;
    SNUG_TRY(find_file(f, o->arena_bytes, &best, err));
    if (best == 0)
        return sn_fail(err, SNUG_E_BUDGET, "no plan with values in a file fits %zu bytes",
                       o->arena_bytes);
    SNUG_TRY(open_file(f, &file, err));
    snug_status st = lower_file(f, &file, best, &height, err);
    if (st == SNUG_OK)
        st = take_offer(f, &file, height - sn_offer_books(f, &file), err);
    sn_offer_drop(&file);
    return st;
}

/* As many slices as asked for. */
static snug_status choose_sliced(sn_family *f, const sn_plan_options *o, snug_error *err) {
    size_t height;
    SNUG_TRY(sn_family_cuts(f, o->part_bytes > 0 ? o->part_bytes : SIZE_MAX, err));
    if (f->n_cuts == 0 || (o->part_bytes > 0 && f->n_cuts == 1))
        return sn_fail(err, SNUG_E_INVALID, "plan: no axis of this graph can be sliced");
    const int64_t most = most_slices(f->cuts[0].split.extent);
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
