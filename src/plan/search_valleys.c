/* search_valleys.c: the second complete search for a packing below a capacity. search.c fills the
 * whole span of time from the bottom up; this one goes where it is tightest, and stays there.
 *
 *     floor[s]  what is settled of section s: below it nothing changes any more
 *     left[s]   bytes of section s not placed yet
 *
 * A valley is a run of sections with one floor and higher ones on both sides. In a packing that is
 * pushed down, either a box that lives inside the valley lies on its floor, or nothing does up to
 * the lower of its two sides. So a valley has few ways to go on: one of its boxes, or raising its
 * floor to that side. Any valley may be decided first; the one with the fewest ways, weighed with
 * how often its sections made searches fail, is (as solvers of constraints do). Sections are the
 * maximal sets of boxes that live together: all others follow from these.
 *
 * What ends a branch early:
 *   - In each section the boxes left are jobs of one machine: none starts below the highest floor
 *     of its own sections, all end by the capacity.
 *   - A box that was tried on a floor in vain does not lie there later in the branch (banned); nor
 *     is a floor raised over a gap that such a box fits in.
 *   - What was refuted once is not tried again: a table of states by hash.
 *
 * Invariants:
 * 1. Every change of floor, low and ban is in the log, as is every box placed; undoing to a mark
 *    restores them. left, crossing and starts follow from the boxes placed.
 * 2. A region is a span of sections that no unplaced box leaves, with no place in it that none
 *    crosses: regions are solved one after the other, those with few boxes first.
 * 3. Sizes are in units of their common divisor and fit 30 bits. */
#include "plan/pack.h"

#include "base/rng.h"

#include <string.h>

enum { MOST_BOXES = 2000, TABLE_BITS = 14, N_ORDERS = 5 };
#define NO_SIDE     INT32_MAX
#define MOST_UNITS  (INT32_MAX / 4)
#define PLACED      UINT32_C(0x80000000)
#define CHANCE      0.5  /* how far chance may raise a box */
#define FADING      0.95 /* of strife, from attempt to attempt */
#define FLUSH_BONUS 3.0  /* for a box that ends level with a side */
#define WHOLE_BONUS 2.0  /* for one as long as the valley */

typedef struct {
    uint32_t lo, hi; /* sections */
    int32_t size;
    uint32_t twin; /* an equal box that goes first, or its own number */
} job;

typedef struct {
    uint32_t cell; /* of v->cells; PLACED | box: that box was placed */
    int32_t old;
} change;

/* Sections with one floor. */
typedef struct {
    uint32_t lo, hi;
    int32_t floor, side; /* the lower of its sides; a valley where that is above the floor */
    int32_t slack;       /* how far all of its sections can be raised */
    int32_t smallest;    /* box inside */
    uint32_t n_ways;     /* boxes inside that may lie on the floor */
    double strife;
} run;

struct sn_valleys {
    const sn_packing *p;
    uint32_t n, n_sections;
    int32_t capacity;
    size_t unit;
    job *jobs;
    int32_t *cells;             /* floor, low and ban in one, for the log */
    int32_t *floor, *low, *ban; /* ban: a floor the box does not lie on, or -1 */
    int32_t *offset;
    int32_t *left, *taken;
    uint32_t *crossing; /* unplaced boxes that live in the section and the one before */
    uint32_t *starts;   /* unplaced boxes whose first section it is */
    uint32_t *run_of;
    bool *is_placed;
    run *runs;
    uint32_t n_runs;
    double *strife, *key, *way_key;
    uint32_t *lists; /* stack: of each region its boxes, of each decision its ways */
    uint64_t *table;
    uint64_t attempt, work, limit;
    change *log;
    size_t n_log, cap_log;
    snug_engine *e;
    snug_error *err;
    snug_status status;
};

/* A region with its unplaced boxes; behind those the stack is free. */
typedef struct {
    uint32_t lo, hi;
    uint32_t *boxes, n;
} region;

/* --- preparation ------------------------------------------------------------------------------ */
static size_t common_divisor(const sn_packing *p) {
    size_t unit = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (size_t b = p->boxes[i].size; b > 0;) {
            const size_t rest = unit % b;
            unit = b;
            b = rest;
        }
    return unit;
}

/* Keeps the sections at whose begin some box starts and at whose end some box ends: the others have
 * no box that a neighbour has not. */
static uint32_t keep_sections(const sn_packing *p, uint8_t *edges, uint32_t *kept) {
    enum { STARTS = 1, ENDS = 2 };
    uint32_t n = 0;
    bool started = false;
    for (uint32_t i = 0; i < p->n; i++) {
        edges[p->boxes[i].lo] |= STARTS;
        edges[p->boxes[i].hi - 1] |= ENDS;
    }
    for (uint32_t t = 0; t < p->n_sections; t++) {
        started = started || (edges[t] & STARTS);
        kept[t] = n;
        if (started && (edges[t] & ENDS)) {
            n++;
            started = false;
        }
    }
    kept[p->n_sections] = n;
    return n;
}

static uint32_t twin_of(const sn_valleys *v, uint32_t i) {
    const job *a = &v->jobs[i];
    for (uint32_t k = i; k-- > 0;)
        if (v->jobs[k].lo == a->lo && v->jobs[k].hi == a->hi && v->jobs[k].size == a->size)
            return k;
    return i;
}

static void make_jobs(sn_valleys *v, const uint32_t *kept) {
    for (uint32_t i = 0; i < v->n; i++) {
        const sn_box *b = &v->p->boxes[i];
        v->jobs[i] = (job){kept[b->lo], kept[b->hi], (int32_t)(b->size / v->unit), 0};
        v->jobs[i].twin = twin_of(v, i);
    }
}

static snug_status alloc_valleys(sn_zone *z, sn_valleys *v, uint32_t n_sections, snug_error *err) {
    const size_t n = v->n, s = n_sections;
    struct {
        void **to;
        size_t bytes;
    } want[] = {
        {(void **)&v->jobs, n * sizeof *v->jobs},
        {(void **)&v->cells, (s + 2 * n) * sizeof *v->cells},
        {(void **)&v->offset, n * sizeof *v->offset},
        {(void **)&v->left, 2 * s * sizeof *v->left},
        {(void **)&v->crossing, 3 * s * sizeof *v->crossing},
        {(void **)&v->is_placed, n * sizeof *v->is_placed},
        {(void **)&v->runs, s * sizeof *v->runs},
        {(void **)&v->strife, (s + 2 * n) * sizeof *v->strife},
        {(void **)&v->table, sizeof *v->table << TABLE_BITS},
    };
    void *lists;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        SNUG_TRY(sn_zone_alloc(z, want[i].bytes, want[i].to, err));
    SNUG_TRY(sn_zone_alloc_raw(z, n * (n + 3) * sizeof *v->lists, &lists, err));
    v->lists = lists;
    v->floor = v->cells;
    v->low = v->floor + s;
    v->ban = v->low + n;
    v->taken = v->left + s;
    v->starts = v->crossing + s;
    v->run_of = v->starts + s;
    v->key = v->strife + s;
    v->way_key = v->key + n;
    return SNUG_OK;
}

snug_status sn_valleys_create(snug_engine *e, sn_zone *z, const sn_packing *p, sn_valleys **out,
                              snug_error *err) {
    const size_t unit = common_divisor(p);
    void *mem, *edges, *kept;
    *out = NULL;
    if (p->n == 0 || p->n > MOST_BOXES || p->bound / unit > MOST_UNITS)
        return SNUG_OK;
    SNUG_TRY(sn_zone_alloc(z, sizeof(sn_valleys), &mem, err));
    SNUG_TRY(sn_zone_alloc(z, p->n_sections, &edges, err));
    SNUG_TRY(sn_zone_alloc(z, ((size_t)p->n_sections + 1) * sizeof(uint32_t), &kept, err));
    sn_valleys *v = mem;
    *v = (sn_valleys){.p = p, .n = p->n, .unit = unit, .e = e, .err = err};
    v->n_sections = keep_sections(p, edges, kept);
    SNUG_TRY(alloc_valleys(z, v, v->n_sections, err));
    make_jobs(v, kept);
    *out = v;
    return SNUG_OK;
}

void sn_valleys_clear(sn_valleys *v) {
    if (v)
        sn_free(v->e, SN_MEM_PLAN, v->log, v->cap_log * sizeof *v->log);
}

/* --- changes ---------------------------------------------------------------------------------- */
static void push_change(sn_valleys *v, uint32_t cell, int32_t old) {
    void *log = v->log;
    if (v->n_log == v->cap_log && v->status == SNUG_OK)
        v->status =
            sn_grow(v->e, SN_MEM_PLAN, &log, sizeof *v->log, &v->cap_log, v->n_log + 1, v->err);
    if (v->status != SNUG_OK)
        return;
    v->log = log;
    v->log[v->n_log++] = (change){cell, old};
}

static void set_cell(sn_valleys *v, int32_t *cell, int32_t value) {
    push_change(v, (uint32_t)(cell - v->cells), *cell);
    *cell = value;
}

/* Counts the box as unplaced, or no longer. */
static void count_box(sn_valleys *v, uint32_t b, int sign) {
    const job *j = &v->jobs[b];
    v->is_placed[b] = sign < 0;
    v->starts[j->lo] += (uint32_t)sign;
    for (uint32_t t = j->lo; t < j->hi; t++) {
        v->left[t] += sign * j->size;
        v->crossing[t] += (uint32_t)(t > j->lo ? sign : 0);
    }
}

static void place(sn_valleys *v, uint32_t b) {
    const int32_t top = v->low[b] + v->jobs[b].size;
    push_change(v, PLACED | b, 0);
    v->offset[b] = v->low[b];
    count_box(v, b, -1);
    for (uint32_t t = v->jobs[b].lo; t < v->jobs[b].hi; t++)
        set_cell(v, &v->floor[t], top);
    v->work += v->jobs[b].hi - v->jobs[b].lo;
}

static void undo_to(sn_valleys *v, size_t mark) {
    while (v->n_log > mark) {
        const change c = v->log[--v->n_log];
        if (c.cell & PLACED)
            count_box(v, c.cell & ~PLACED, 1);
        else
            v->cells[c.cell] = c.old;
    }
}

static void raise_floor(sn_valleys *v, const run *r) {
    for (uint32_t t = r->lo; t < r->hi; t++)
        set_cell(v, &v->floor[t], r->side);
}

/* --- what follows from the floors ------------------------------------------------------------- */
/* False where some section does not hold what is left. */
static bool find_runs(sn_valleys *v, const region *g) {
    bool ok = true;
    v->n_runs = 0;
    for (uint32_t t = g->lo; t < g->hi;) {
        run r = {.lo = t, .floor = v->floor[t], .slack = NO_SIDE, .smallest = NO_SIDE};
        for (; t < g->hi && v->floor[t] == r.floor; t++) {
            const int32_t slack = v->capacity - r.floor - v->left[t];
            v->strife[t] += slack < 0;
            r.slack = slack < r.slack ? slack : r.slack;
            r.strife += v->strife[t];
            v->run_of[t] = v->n_runs;
        }
        r.hi = t;
        ok = ok && r.slack >= 0;
        v->runs[v->n_runs++] = r;
    }
    for (uint32_t k = 0; k < v->n_runs; k++) {
        const int32_t before = k > 0 ? v->runs[k - 1].floor : NO_SIDE;
        const int32_t behind = k + 1 < v->n_runs ? v->runs[k + 1].floor : NO_SIDE;
        v->runs[k].side = before < behind ? before : behind;
    }
    v->work += (g->hi - g->lo) / 2;
    return ok;
}

static bool is_valley(const run *r) {
    return r->side > r->floor;
}

static bool may_lie_low(const sn_valleys *v, uint32_t b) {
    const uint32_t twin = v->jobs[b].twin;
    return v->ban[b] != v->low[b] && (twin == b || v->is_placed[twin]);
}

/* Finds low of every box and what lives inside the valleys; sorts by low. */
static void find_lows(sn_valleys *v, const region *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t b = g->boxes[i], first = v->run_of[v->jobs[b].lo],
                       last = v->run_of[v->jobs[b].hi - 1];
        run *r = &v->runs[first];
        int32_t low = r->floor;
        for (uint32_t k = first + 1; k <= last; k++)
            low = v->runs[k].floor > low ? v->runs[k].floor : low;
        if (low != v->low[b])
            set_cell(v, &v->low[b], low);
        if (first == last) {
            r->n_ways += may_lie_low(v, b);
            r->smallest = v->jobs[b].size < r->smallest ? v->jobs[b].size : r->smallest;
        }
        uint32_t k = i;
        for (; k > 0 && v->low[g->boxes[k - 1]] > low; k--)
            g->boxes[k] = g->boxes[k - 1];
        g->boxes[k] = b;
        v->work += (last - first + i - k) / 4;
    }
    v->work += g->n / 2;
}

/* Whether each section can hold its boxes above their lows: those with the highest low come last,
 * so from them downwards nothing is above the capacity. */
static bool fits(sn_valleys *v, const region *g) {
    int32_t *const taken = v->taken;
    memset(taken + g->lo, 0, (g->hi - g->lo) * sizeof *taken);
    for (uint32_t i = g->n; i-- > 0;) {
        const uint32_t b = g->boxes[i], lo = v->jobs[b].lo, hi = v->jobs[b].hi;
        const int32_t size = v->jobs[b].size, room = v->capacity - v->low[b];
        int32_t bad = 0;
        for (uint32_t t = lo; t < hi; t++) {
            taken[t] += size;
            bad |= taken[t] > room;
        }
        v->work += 2 + (hi - lo) / 8;
        for (uint32_t t = lo; bad && t < hi; t++)
            v->strife[t] += taken[t] > room;
        if (bad)
            return false;
    }
    return true;
}

static bool may_raise(const run *r) {
    const int32_t by = r->side - r->floor;
    return r->side != NO_SIDE && by <= r->slack && by < r->smallest;
}

typedef enum { DECIDE, FAILED, CHANGED } verdict;

/* Raises a valley that has no other way; otherwise finds the one to decide. */
static verdict look_at_valleys(sn_valleys *v, uint32_t *decide) {
    double least = 0;
    bool found = false;
    for (uint32_t k = 0; k < v->n_runs; k++) {
        const run *r = &v->runs[k];
        if (!is_valley(r))
            continue;
        const uint32_t ways = r->n_ways + may_raise(r);
        if (ways == 0) {
            for (uint32_t t = r->lo; t < r->hi; t++)
                v->strife[t] += 1.0 / (r->hi - r->lo);
            return FAILED;
        }
        if (r->n_ways == 0) {
            raise_floor(v, r);
            return CHANGED;
        }
        const double parts = v->attempt / N_ORDERS % 2 == 0 ? 1 : (double)(r->hi - r->lo);
        const double score = ways / (1 + r->strife / parts);
        if (!found || score < least) {
            least = score;
            *decide = k;
            found = true;
        }
    }
    return DECIDE;
}

/* --- the table of what was refuted ------------------------------------------------------------ */
static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

/* Of the capacity, the floors, the boxes left and which of them are banned; never 0. */
static uint64_t hash_of(sn_valleys *v, const region *g) {
    uint64_t h = mixed((uint64_t)v->capacity << 32 | g->lo);
    for (uint32_t t = g->lo; t < g->hi; t++)
        h = (h ^ (uint64_t)v->floor[t]) * UINT64_C(0x9e3779b97f4a7c15) + (h >> 29);
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t b = g->boxes[i];
        h += mixed(2 * (uint64_t)b + 1 + (v->ban[b] == v->low[b]));
    }
    v->work += (g->hi - g->lo) / 4 + g->n / 4;
    return mixed(h) | 1;
}

/* --- decisions -------------------------------------------------------------------------------- */
/* Nothing else lives where it does: lying low, it is in nobody's way. */
static bool is_last(const sn_valleys *v, uint32_t b) {
    for (uint32_t t = v->jobs[b].lo; t < v->jobs[b].hi; t++)
        if (v->left[t] != v->jobs[b].size)
            return false;
    return true;
}

static double key_of_way(const sn_valleys *v, uint32_t k, uint32_t b) {
    const run *r = &v->runs[k];
    const job *j = &v->jobs[b];
    const int32_t top = r->floor + j->size;
    double key = v->key[b];
    if (v->attempt % 2 == 0)
        return key;
    if (j->lo == r->lo && k > 0 && top == v->runs[k - 1].floor)
        key *= FLUSH_BONUS;
    if (j->hi == r->hi && k + 1 < v->n_runs && top == v->runs[k + 1].floor)
        key *= FLUSH_BONUS;
    return j->lo == r->lo && j->hi == r->hi ? key * WHOLE_BONUS : key;
}

/* The boxes that may lie on the floor of run k, best first; where one of them is in nobody's way,
 * only that. Returns how many. */
static uint32_t find_ways(sn_valleys *v, const region *g, uint32_t k, uint32_t *ways) {
    const run *r = &v->runs[k];
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t b = g->boxes[i];
        if (v->jobs[b].lo < r->lo || v->jobs[b].hi > r->hi || !may_lie_low(v, b))
            continue;
        if (is_last(v, b)) {
            ways[0] = b;
            return 1;
        }
        const double key = key_of_way(v, k, b);
        uint32_t at = n++;
        for (; at > 0 && v->way_key[at - 1] < key; at--) {
            v->way_key[at] = v->way_key[at - 1];
            ways[at] = ways[at - 1];
        }
        v->way_key[at] = key;
        ways[at] = b;
    }
    v->work += g->n / 4;
    return n;
}

static sn_outcome solve(sn_valleys *v, const region *g);

/* The region of fewest boxes in the span; false where no box is left. Its boxes go to `to`. */
static bool find_region(sn_valleys *v, const region *g, uint32_t *to, region *out) {
    *out = (region){0, 0, to, UINT32_MAX};
    for (uint32_t t = g->lo; t < g->hi;) {
        const uint32_t lo = t;
        uint32_t n = v->starts[t];
        if (v->left[t++] == 0)
            continue;
        for (; t < g->hi && v->crossing[t] > 0; t++)
            n += v->starts[t];
        if (n < out->n)
            *out = (region){lo, t, to, n};
    }
    v->work += (g->hi - g->lo) / 4 + g->n / 4;
    if (out->n == UINT32_MAX)
        return false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const job *j = &v->jobs[g->boxes[i]];
        if (!v->is_placed[g->boxes[i]] && j->lo >= out->lo && j->hi <= out->hi)
            to[n++] = g->boxes[i];
    }
    return true;
}

static sn_outcome solve_regions(sn_valleys *v, const region *g, uint32_t *stack) {
    region part;
    while (find_region(v, g, stack, &part)) {
        const sn_outcome got = solve(v, &part);
        if (got != SN_FOUND)
            return got;
    }
    return SN_FOUND;
}

/* Tries the ways of run k, one after the other. */
static sn_outcome decide(sn_valleys *v, const region *g, uint32_t k) {
    const run r = v->runs[k];
    uint32_t *const ways = g->boxes + g->n;
    const uint32_t n = find_ways(v, g, k, ways);
    const bool only = n == 1 && is_last(v, ways[0]);
    for (uint32_t i = 0; i < n; i++) {
        const size_t mark = v->n_log;
        place(v, ways[i]);
        const sn_outcome got = solve_regions(v, g, ways + n);
        if (got != SN_NOT_FOUND)
            return got;
        undo_to(v, mark);
        set_cell(v, &v->ban[ways[i]], r.floor);
    }
    if (only || !may_raise(&r))
        return SN_NOT_FOUND;
    raise_floor(v, &r);
    return solve(v, g);
}

/* Leaves everything as it was where there is no packing; where it gave up, it does not matter. */
static sn_outcome solve(sn_valleys *v, const region *g) {
    const size_t mark = v->n_log;
    verdict is = CHANGED;
    uint32_t k = 0;
    while (is == CHANGED) {
        if (v->work > v->limit || v->status != SNUG_OK)
            return SN_GAVE_UP;
        is = FAILED;
        if (!find_runs(v, g))
            break;
        find_lows(v, g);
        if (fits(v, g))
            is = look_at_valleys(v, &k);
    }
    sn_outcome got = SN_NOT_FOUND;
    if (is == DECIDE) {
        const uint64_t hash = hash_of(v, g);
        uint64_t *const known = &v->table[hash >> (64 - TABLE_BITS)];
        if (*known != hash)
            got = decide(v, g, k);
        if (got == SN_NOT_FOUND)
            *known = hash;
    }
    if (got == SN_NOT_FOUND)
        undo_to(v, mark);
    return got;
}

/* --- attempts --------------------------------------------------------------------------------- */
static void find_keys(sn_valleys *v) {
    for (uint32_t i = 0; i < v->n; i++) {
        const job *j = &v->jobs[i];
        double chance, worst = 0, strife = 0;
        for (uint32_t t = j->lo; t < j->hi; t++) {
            worst = v->strife[t] > worst ? v->strife[t] : worst;
            strife += v->strife[t];
        }
        sn_random_fill_f64(SN_RANDOM_UNIFORM, v->attempt, i, 1, &chance);
        const double size = j->size, length = j->hi - j->lo;
        const double keys[N_ORDERS] = {length * size, size, length, (strife + 1) * size,
                                       (worst + 1) * size};
        v->key[i] = keys[v->attempt % N_ORDERS];
        v->key[i] *= v->attempt < N_ORDERS ? 1 : 1 + CHANCE * chance;
    }
    for (uint32_t t = 0; t < v->n_sections; t++)
        v->strife[t] *= FADING;
}

static void restart(sn_valleys *v) {
    const size_t s = v->n_sections;
    memset(v->cells, 0, (s + v->n) * sizeof *v->cells);
    memset(v->ban, 0xff, v->n * sizeof *v->ban);
    memset(v->left, 0, s * sizeof *v->left);
    memset(v->crossing, 0, 2 * s * sizeof *v->crossing); /* and starts */
    for (uint32_t i = 0; i < v->n; i++) {
        v->lists[i] = i;
        count_box(v, i, 1);
    }
    v->n_log = 0;
}

sn_outcome sn_valleys_try(sn_valleys *v, size_t capacity, uint64_t limit, uint64_t *work) {
    if (capacity / v->unit > 2 * (size_t)MOST_UNITS)
        return SN_GAVE_UP;
    v->capacity = (int32_t)(capacity / v->unit);
    v->work = 0;
    v->limit = limit;
    find_keys(v);
    restart(v);
    const region all = {0, v->n_sections, v->lists, v->n};
    const sn_outcome got = solve_regions(v, &all, v->lists + v->n);
    v->attempt++;
    *work += v->work;
    return got;
}

snug_status sn_valleys_status(const sn_valleys *v) {
    return v->status;
}

size_t sn_valleys_offset(const sn_valleys *v, uint32_t box) {
    return (size_t)v->offset[box] * v->unit;
}
