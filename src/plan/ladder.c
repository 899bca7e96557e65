/* ladder.c: makes members from the top of the ladder down (ladder.h), and ranks them. A number of
 * slices is given up where it stops getting smaller or faster. */
#include "plan/ladder.h"

#include <math.h>

#define FLOOR_TRIES     10   /* to get at the floor and below */
#define PART_TRIES      3    /* at a step of the ladder */
#define MANY_BLOCKS     128  /* one more step of the ladder without slices for each */
#define MANY_NODES      4000 /* in more of them fewer numbers of slices are tried */
#define MAX_MISSES      3    /* steps in a row, before a number or all of them are given up */
#define MAX_NOT_SMALLER 2    /* members in a row, before a number is given up */
#define HOPELESS        4    /* times its limit: the number is given up */
#define MAX_BEATEN      4    /* steps in a row, before a number or a part is given up */
#define MAX_COUNTS      48   /* of slices: two an octave */
enum { ABOVE = 3 };          /* steps of the ladder that a member is compared with */

/* What is known of a number of slices on the way down the ladder. */
typedef struct {
    int64_t slices;
    uint32_t cut;
    double plain_seconds; /* without recomputation: nothing takes less */
    double seconds;       /* of the smallest member so far */
    size_t bound;
    int misses;      /* members in a row that did not get as small as they were to be */
    size_t total;    /* bytes of that one with its steps */
    int not_smaller; /* members in a row whose steps took what the arena gave */
    int beaten;      /* steps in a row where more slices were faster */
} slice_count;

void sn_rank(const sn_family *f, sn_ranking *r, const sn_candidate *o) {
    if (!o->program.possible || r->n == SN_MAX_MEMBERS)
        return;
    sn_ranked new = {o->of, o->seconds, o->layout.bound + sn_candidate_plan_bytes(f, o), false};
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
static bool is_hopeless(const sn_family *f, const sn_candidate *o) {
    return o->of.slices > 1 && f->cuts[o->of.cut].split.n_blocks > 2 &&
           o->layout.bound / HOPELESS > o->of.limit;
}

/* Makes a member and ranks it where it is as small as it was to be. */
static snug_status rank_member(sn_family *f, sn_member m, sn_ranking *r, slice_count *about,
                               snug_error *err) {
    sn_candidate *o;
    size_t floor;
    SNUG_TRY(sn_family_make(f, m, &o, &floor, err));
    const size_t plan_bytes = sn_candidate_plan_bytes(f, o), total = o->layout.bound + plan_bytes;
    const bool too_long = r->n > 0 && plan_bytes >= r->least;
    about->misses = o->fits ? 0 : is_hopeless(f, o) ? MAX_MISSES : about->misses + 1;
    if (o->fits) {
        sn_rank(f, r, o);
        about->not_smaller = about->total > 0 && total >= about->total ? about->not_smaller + 1 : 0;
        about->total = total;
        about->seconds = o->seconds;
        about->bound = o->layout.bound;
    }
    about->not_smaller = too_long ? MAX_NOT_SMALLER : about->not_smaller;
    sn_candidate_drop(o);
    return SNUG_OK;
}

static int64_t rows_of(int64_t extent, int64_t slices) {
    return (extent + slices - 1) / slices;
}

/* 1, 2, 3, 4, 6, 8, 12, 16, ..., and the most, but none with the rows of the one before; 0: no
 * more. */
static int64_t next_slices(int64_t extent, int64_t k) {
    const int64_t most = sn_most_slices(extent);
    int64_t next = k;
    while (next < most && rows_of(extent, next) == rows_of(extent, k))
        next = next < 3 ? next + 1 : (next & (next - 1)) == 0 ? next + next / 2 : next / 3 * 4;
    return k >= most ? 0 : next < most ? next : most;
}

/* What needs no recomputation. Numbers stand in the order of their seconds. */
static snug_status rank_count(sn_family *f, slice_count new, sn_ranking *r, slice_count *counts,
                              uint32_t *n, snug_error *err) {
    const sn_member m = {.slices = new.slices, .limit = SIZE_MAX, .cut = new.cut};
    SNUG_TRY(rank_member(f, m, r, &new, err));
    if (new.misses)
        return SNUG_OK;
    new.plain_seconds = new.seconds;
    uint32_t i = (*n)++;
    for (; i > 0 && counts[i - 1].plain_seconds > new.plain_seconds; i--)
        counts[i] = counts[i - 1];
    counts[i] = new;
    return SNUG_OK;
}

static snug_status rank_cut(sn_family *f, uint32_t cut, sn_ranking *r, slice_count *counts,
                            uint32_t *n, snug_error *err) {
    const int64_t extent = f->cuts[0].split.extent;
    const uint32_t most = *n + MAX_COUNTS;
    for (int64_t k = cut > 0 ? 2 : 1; k > 0 && *n < most; k = next_slices(extent, k))
        SNUG_TRY(rank_count(f, (slice_count){.slices = k, .cut = cut}, r, counts, n, err));
    return SNUG_OK;
}

/* What takes too many steps with some slices does so with fewer. */
static void give_up(slice_count *counts, uint32_t n, int64_t slices) {
    for (uint32_t i = 0; i < n; i++)
        if (counts[i].slices < slices)
            counts[i].not_smaller = MAX_NOT_SMALLER;
}

/* A step of the ladder. */
typedef struct {
    size_t size;
    bool only_plain; /* slices are not looked at: there are many blocks */
    double fastest;  /* seconds of the fastest member that is small enough; INFINITY: none */
} ladder_step;

/* With which numbers of slices can the size be reached? Those that are fastest without
 * recomputation are tried, until one is faster than the others can be; at most a few of them, and
 * none that has lost to more slices for some steps. Where values lie between blocks, twice as many
 * slices leave more for these; in very long programs every try takes long. */
static snug_status rank_step(sn_family *f, ladder_step *at, sn_ranking *r, slice_count *counts,
                             uint32_t n, snug_error *err) {
    const bool phases = f->cuts[0].split.n_blocks > 2;
    const bool is_long = !phases && f->p->n_nodes > MANY_NODES;
    const int most = at->only_plain ? 0 : is_long ? 2 : phases ? 3 : 4;
    const int64_t apart = phases || is_long ? 2 : 1;
    int64_t least = 1, winner = 0;
    int made = 0;
    for (uint32_t i = 0; i < n && counts[i].plain_seconds < at->fastest; i++) {
        slice_count *const k = &counts[i];
        const sn_member m = {.slices = k->slices, .limit = at->size};
        if (k->bound > at->size && k->misses < MAX_MISSES && k->beaten < MAX_BEATEN &&
            k->not_smaller < MAX_NOT_SMALLER &&
            (k->slices == 1 || (made < most && k->slices >= least))) {
            SNUG_TRY(rank_member(f, m, r, k, err));
            made += !k->misses && k->slices > 1;
            least = k->misses ? least : apart * k->slices;
            if (k->not_smaller == MAX_NOT_SMALLER)
                give_up(counts, n, k->slices);
        }
        if (k->bound <= at->size && k->seconds < at->fastest) {
            at->fastest = k->seconds;
            winner = k->slices;
        }
    }
    for (uint32_t i = 0; i < n && !at->only_plain; i++)
        counts[i].beaten = counts[i].slices < winner ? counts[i].beaten + 1 : 0;
    return SNUG_OK;
}

/* What is known of parts. */
typedef struct {
    uint32_t n;
    slice_count counts[(SN_MAX_CUTS - 1) * MAX_COUNTS];
    int beaten[SN_MAX_CUTS]; /* tries of a cut that were not the fastest, one after the other */
} part_counts;

/* The same with parts, where one could be faster; a few tries, and none with a cut that has lost
 * some. */
static snug_status rank_part_step(sn_family *f, ladder_step *at, sn_ranking *r, part_counts *p,
                                  snug_error *err) {
    int tries = at->only_plain ? PART_TRIES : 0;
    for (uint32_t i = 0; i < p->n && p->counts[i].plain_seconds < at->fastest; i++) {
        slice_count *const k = &p->counts[i];
        const sn_member m = {.slices = k->slices, .limit = at->size, .cut = k->cut};
        if (k->bound > at->size && k->misses < MAX_MISSES && k->not_smaller < MAX_NOT_SMALLER &&
            tries < PART_TRIES && p->beaten[k->cut] < MAX_BEATEN) {
            SNUG_TRY(rank_member(f, m, r, k, err));
            tries++;
            p->beaten[k->cut] += k->misses || k->seconds >= at->fastest;
        }
        if (k->bound <= at->size && k->seconds < at->fastest) {
            at->fastest = k->seconds;
            p->beaten[k->cut] = 0;
        }
    }
    return SNUG_OK;
}

/* What nothing can be below with this many slices and everything made again: its steps. */
static snug_status least_plan_bytes(sn_family *f, int64_t slices, size_t *out, snug_error *err) {
    sn_candidate *o;
    size_t floor;
    SNUG_TRY(sn_family_make(f, (sn_member){.slices = slices, .limit = SIZE_MAX, .lowest = true}, &o,
                            &floor, err));
    *out = sn_candidate_plan_bytes(f, o);
    sn_candidate_drop(o);
    return SNUG_OK;
}

/* The smallest that a number of slices can be made to be, with everything recomputed, and a little
 * above, where steps may be fewer; then a little less, as often as that succeeds and the steps do
 * not take what it gives. Nothing where that is no smaller than what there is. */
static snug_status rank_floor(sn_family *f, int64_t slices, sn_ranking *r, snug_error *err) {
    enum { MORE = 2 };
    size_t floor = 0, limit = 0, least = SIZE_MAX, plan_bytes;
    sn_candidate *o;
    SNUG_TRY(least_plan_bytes(f, slices, &plan_bytes, err));
    bool go_on = r->n == 0 || plan_bytes < r->least;
    for (size_t i = 0, needed; go_on && i <= FLOOR_TRIES; i++) {
        const sn_member m = {.slices = slices, .limit = limit, .lowest = true};
        SNUG_TRY(sn_family_make(f, m, &o, &needed, err));
        const size_t size = o->layout.bound + sn_candidate_plan_bytes(f, o);
        go_on = i == 0 ? needed + plan_bytes < r->least || r->n == 0
                       : i <= MORE || (o->fits && size < least);
        if (o->fits && i > 0)
            sn_rank(f, r, o);
        floor = i == 0 ? needed : floor;
        least = o->fits && i > 0 && size < least ? size : least;
        const size_t less = o->layout.bound - o->layout.bound / 64;
        limit = i <= MORE ? floor + floor / 64 * (MORE - i) : less;
        sn_candidate_drop(o);
    }
    return SNUG_OK;
}

/* What is known of the programs of one graph. */
typedef struct {
    sn_family *f;
    slice_count counts[MAX_COUNTS];
    uint32_t n;
    part_counts parts;
} side;

/* The way down the ladder, as far as it was gone; with fused updates a second side. */
struct sn_ladder {
    side sides[2];
    int n_sides;
    uint32_t step;
    int failed;            /* steps in a row */
    double fastest[ABOVE]; /* of the last steps, by their number */
};

static snug_status open_side(sn_family *f, sn_ranking *r, side *out, snug_error *err) {
    out->f = f;
    SNUG_TRY(rank_cut(f, 0, r, out->counts, &out->n, err));
    for (uint32_t cut = 1; cut < f->n_cuts; cut++)
        SNUG_TRY(rank_cut(f, cut, r, out->parts.counts, &out->parts.n, err));
    return SNUG_OK;
}

snug_status sn_ladder_open(sn_family *f, sn_ranking *r, sn_ladder **out, snug_error *err) {
    sn_ladder *l;
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
static void raise_least(const sn_ladder *l, sn_ranking *r) {
    double fastest = INFINITY;
    for (int i = 0; i < ABOVE; i++)
        fastest = fmin(fastest, l->fastest[i]);
    if (fastest < INFINITY && l->step >= ABOVE)
        r->least_seconds = fmax(r->least_seconds, fastest);
}

/* One step down; *ends: there is none. */
snug_status sn_ladder_down(sn_family *f, sn_ranking *r, sn_ladder *l, bool *ends, snug_error *err) {
    const uint32_t apart = 1 + f->cuts[0].split.n_blocks / MANY_BLOCKS, j = l->step + 1;
    const double size = (double)f->unlimited * exp2(-(double)j / SN_STEPS_PER_OCTAVE);
    *ends = size * exp2(1.0 / SN_STEPS_PER_OCTAVE) < 1 || l->failed == MAX_MISSES;
    if (*ends)
        return SNUG_OK;
    ladder_step at = {.size = (size_t)size, .only_plain = j % apart != 0, .fastest = INFINITY};
    for (side *s = l->sides; s < l->sides + l->n_sides; s++) {
        SNUG_TRY(rank_step(s->f, &at, r, s->counts, s->n, err));
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
static snug_status rank_below(sn_family *f, sn_ranking *r, slice_count *counts, uint32_t n,
                              snug_error *err) {
    enum { BELOW = 32 };
    uint32_t least = 0;
    for (uint32_t i = 1; i < n; i++)
        if (counts[i].total < counts[least].total)
            least = i;
    if (n == 0)
        return SNUG_OK;
    slice_count *const k = &counts[least];
    size_t limit = k->bound;
    k->misses = k->not_smaller = 0;
    while (limit >= BELOW && k->misses < MAX_MISSES && k->not_smaller < MAX_NOT_SMALLER) {
        limit -= limit / BELOW;
        if (k->bound > limit)
            SNUG_TRY(rank_member(f, (sn_member){.slices = k->slices, .limit = limit}, r, k, err));
    }
    return SNUG_OK;
}

/* The smallest members of one graph. */
static snug_status rank_lowest(side *s, sn_ranking *r, snug_error *err) {
    sn_family *const f = s->f;
    const sn_split *const split = &f->cuts[0].split;
    uint32_t smallest = 0;
    if (split->extent > 1)
        SNUG_TRY(rank_floor(f, sn_most_slices(split->extent), r, err));
    if (split->n_blocks > 2) /* the others are not lower, and take long */
        return rank_below(f, r, s->counts, s->n, err);
    for (uint32_t i = 1; i < s->n; i++)
        if (s->counts[i].bound < s->counts[smallest].bound)
            smallest = i;
    const int64_t slices = s->n > 0 ? s->counts[smallest].slices : 1;
    if (slices > 1 && slices < sn_most_slices(split->extent))
        SNUG_TRY(rank_floor(f, slices, r, err));
    return rank_floor(f, 1, r, err);
}

/* The smallest members, behind the last step. */
snug_status sn_ladder_bottom(sn_ladder *l, sn_ranking *r, snug_error *err) {
    for (int i = 0; i < l->n_sides; i++)
        SNUG_TRY(rank_lowest(&l->sides[i], r, err));
    return SNUG_OK;
}

/* The whole family, whatever the limit is. */
snug_status sn_ladder_all(sn_family *f, sn_ranking *r, snug_error *err) {
    sn_ladder *l;
    bool ends = false;
    SNUG_TRY(sn_ladder_open(f, r, &l, err));
    while (!ends)
        SNUG_TRY(sn_ladder_down(f, r, l, &ends, err));
    return sn_ladder_bottom(l, r, err);
}
