/* pack.c: lifetimes to offsets. The bound is the largest sum of live sizes. Five means, cheapest
 * first, until the bound is reached or the work is used up:
 *
 *   sweep     one pass over time (pack_sweep.c), of very many boxes
 *   greedy    first fit and best fit by size, lifetime, area, start and load
 *   repair    first fit again, with the boxes that came to lie above the bound placed earlier
 *   search    complete search (search.c) over all boxes, where they are not too many
 *   critical  complete search over the boxes of the fullest sections, the rest by first fit around,
 *             then over all of them where that was not enough
 *
 * Invariants:
 * 1. Two boxes that share a section never share a byte.
 * 2. The answer depends on the items and their order alone: sorts have a full tie-break, limits
 *    count work, not time.
 * 3. The sum of all sizes was checked, so no offset or top can overflow. */
#include "plan/pack.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* Above this many boxes only the fullest sections are searched. */
enum { SEARCH_MAX = 400 };
enum { REPAIR_ROUNDS = 12, REPAIR_ROUNDS_LARGE = 4 };
/* Looking at a placed box is that much cheaper than a step of the search. */
enum { SCANS_PER_WORK = 4 };
/* Above this many boxes one pass over time comes first, and what looks at all placed boxes for each
 * ends when the work is used up. */
enum { SWEEP_FROM = 5000 };
/* Elementary operations of all attempts together; a million take about 3 ms. */
#define WORK_SMALL   UINT64_C(2500000)
#define WORK_PER_BOX UINT64_C(1200) /* of large instances, and of what is near already */
/* A packing of middling size that is more than 1 % and a page above the bound is hard, and worth
 * some tenths of a second: memory is what this is about. */
enum { HARD_MAX = 1000, PAGE = 4096 };
#define WORK_HARD UINT64_C(300000000)

typedef enum { KEY_SIZE, KEY_LIFETIME, KEY_AREA, KEY_START, KEY_LOAD, N_KEYS } greedy_key;
typedef enum { FIRST_FIT, BEST_FIT, N_FITS } greedy_fit;

/* How early a box is placed: those that failed more often, then those with the larger key. */
typedef struct {
    uint32_t failed;
    double key;
    size_t size;
    uint32_t lo, box;
} ranked;

typedef struct {
    size_t offset, top;
    uint32_t lo, hi;
} placed;

typedef struct {
    sn_packing *p;
    ranked *rank; /* those to place */
    uint32_t n_rank;
    placed *placed; /* by offset; the first n_fixed are given */
    placed *fixed;
    uint32_t n_placed, n_fixed;
    size_t *offset; /* per box */
    uint64_t *work; /* left */
} greedy;

static int compare_times(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_boxes(const void *a, const void *b) {
    const sn_box *x = a, *y = b;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int compare_ranked(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->failed != y->failed)
        return x->failed > y->failed ? -1 : 1;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

/* --- items to boxes ------------------------------------------------------------------------- */
/* Distinct times, sorted; returns how many. */
static uint32_t collect_times(const sn_pack_item *items, uint32_t n, uint32_t *times) {
    for (uint32_t i = 0; i < n; i++) {
        times[2 * i] = items[i].lower;
        times[2 * i + 1] = items[i].upper;
    }
    qsort(times, 2 * (size_t)n, sizeof *times, compare_times);
    uint32_t m = 0;
    for (uint32_t i = 0; i < 2 * n; i++)
        if (m == 0 || times[m - 1] != times[i])
            times[m++] = times[i];
    return m;
}

static uint32_t section_of(const uint32_t *times, uint32_t n_times, uint32_t t) {
    uint32_t a = 0, b = n_times;
    while (b - a > 1) {
        const uint32_t mid = a + (b - a) / 2;
        if (times[mid] <= t)
            a = mid;
        else
            b = mid;
    }
    return a;
}

static snug_status check_items(const sn_pack_item *items, uint32_t n, snug_error *err) {
    size_t sum = 0;
    if (n > UINT32_MAX / 4)
        return sn_fail(err, SNUG_E_OVERFLOW, "pack: %u items are too many", n);
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].lower >= items[i].upper)
            return sn_fail(err, SNUG_E_INVALID, "pack: item %u lives in [%u,%u), which is empty", i,
                           items[i].lower, items[i].upper);
        if (!sn_size_add(sum, items[i].size, &sum))
            return sn_fail(
                err, SNUG_E_OVERFLOW,
                "pack: the sizes of %u items exceed the address space; use a smaller batch", n);
    }
    return SNUG_OK;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

void sn_packing_measure(sn_packing *p) {
    qsort(p->boxes, p->n, sizeof *p->boxes, compare_boxes);
    memset(p->load, 0, p->n_sections * sizeof *p->load);
    for (uint32_t i = 0; i < p->n; i++) { /* by how much each section holds more than the last */
        p->load[p->boxes[i].lo] += p->boxes[i].size;
        if (p->boxes[i].hi < p->n_sections)
            p->load[p->boxes[i].hi] -= p->boxes[i].size;
    }
    for (uint32_t s = 1; s < p->n_sections; s++)
        p->load[s] += p->load[s - 1];
    for (uint32_t i = p->n_sections; i-- > 1;)
        p->most[i] = larger(p->most[2 * i], p->most[2 * i + 1]);
    p->bound = 0;
    for (uint32_t s = 0; s < p->n_sections; s++)
        p->bound = larger(p->load[s], p->bound);
    p->height = SIZE_MAX;
    p->wanted = p->bound;
}

snug_status sn_packing_alloc(sn_zone *z, uint32_t n, uint32_t n_sections, sn_packing *p,
                             snug_error *err) {
    void *boxes, *most, *offset;
    SNUG_TRY(sn_zone_alloc(z, n * sizeof(sn_box), &boxes, err));
    SNUG_TRY(sn_zone_alloc(z, 2 * (size_t)n_sections * sizeof(size_t), &most, err));
    SNUG_TRY(sn_zone_alloc(z, n * sizeof(size_t), &offset, err));
    *p = (sn_packing){.boxes = boxes,
                      .most = most,
                      .load = (size_t *)most + n_sections,
                      .offset = offset,
                      .n_sections = n_sections};
    return SNUG_OK;
}

static snug_status make_boxes(sn_zone *z, const sn_pack_item *items, uint32_t n, sn_packing *p,
                              snug_error *err) {
    void *times;
    SNUG_TRY(sn_zone_alloc(z, 2 * (size_t)n * sizeof(uint32_t), &times, err));
    const uint32_t n_times = collect_times(items, n, times);
    SNUG_TRY(sn_packing_alloc(z, n, n_times > 0 ? n_times - 1 : 0, p, err));
    for (uint32_t i = 0; i < n; i++)
        if (items[i].size > 0)
            p->boxes[p->n++] =
                (sn_box){section_of(times, n_times, items[i].lower),
                         section_of(times, n_times, items[i].upper), i, items[i].size};
    sn_packing_measure(p);
    return SNUG_OK;
}

/* --- greedy ---------------------------------------------------------------------------------- */
/* The load of a box is that of the fullest section it lives in. */
static size_t load_of(const sn_packing *p, const sn_box *b) {
    size_t load = 0;
    size_t from = (size_t)b->lo + p->n_sections, to = (size_t)b->hi + p->n_sections;
    for (; from < to; from /= 2, to /= 2) {
        if (from & 1)
            load = larger(load, p->most[from++]);
        if (to & 1)
            load = larger(load, p->most[--to]);
    }
    return load;
}

static double key_of(const sn_packing *p, const sn_box *b, greedy_key key) {
    const double width = (double)(b->hi - b->lo), size = (double)b->size;
    if (key == KEY_LOAD)
        return (double)load_of(p, b);
    const double keys[KEY_LOAD] = {size, width, width * size, -(double)b->lo};
    return keys[key];
}

static void insert_placed(greedy *g, placed what) {
    uint32_t a = 0, b = g->n_placed;
    while (a < b) {
        const uint32_t mid = a + (b - a) / 2;
        if (g->placed[mid].offset <= what.offset)
            a = mid + 1;
        else
            b = mid;
    }
    memmove(g->placed + a + 1, g->placed + a, (g->n_placed - a) * sizeof *g->placed);
    g->placed[a] = what;
    g->n_placed++;
}

/* The lowest free gap, or the tightest one, among the placed boxes that share a section with b. */
static size_t find_gap(greedy *g, const sn_box *b, greedy_fit fit) {
    size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    uint32_t i = 0;
    for (; i < g->n_placed; i++) {
        const placed *q = &g->placed[i];
        if (q->hi <= b->lo || b->hi <= q->lo)
            continue;
        if (q->offset >= at && q->offset - at >= b->size && q->offset - at < best_gap) {
            best = at;
            best_gap = q->offset - at;
            if (fit == FIRST_FIT)
                break;
        }
        at = q->top > at ? q->top : at;
    }
    uint64_t scans = 1 + i / SCANS_PER_WORK;
    if (g->p->n > SWEEP_FROM) /* those above it will move */
        scans += (g->n_placed - i) / (8 * SCANS_PER_WORK);
    *g->work -= scans < *g->work ? scans : *g->work;
    return best_gap == SIZE_MAX ? at : best;
}

static void rank_boxes(greedy *g, greedy_key key) {
    for (uint32_t i = 0; i < g->n_rank; i++) {
        const sn_box *b = &g->p->boxes[g->rank[i].box];
        g->rank[i] = (ranked){0, key_of(g->p, b, key), b->size, b->lo, g->rank[i].box};
    }
}

/* Places the ranked boxes in order beside the fixed ones; the result is kept when it is the lowest
 * so far. With `whole` every box gets an offset even when it will not be. */
static void place_all(greedy *g, greedy_fit fit, bool whole) {
    sn_packing *p = g->p;
    size_t height = 0;
    qsort(g->rank, g->n_rank, sizeof *g->rank, compare_ranked);
    memcpy(g->placed, g->fixed, g->n_fixed * sizeof *g->placed);
    g->n_placed = g->n_fixed;
    for (uint32_t i = 0; i < g->n_fixed; i++)
        height = g->fixed[i].top > height ? g->fixed[i].top : height;
    for (uint32_t i = 0; i < g->n_rank; i++) {
        const sn_box *b = &p->boxes[g->rank[i].box];
        if (p->n > SWEEP_FROM && *g->work == 0)
            return;
        const size_t at = find_gap(g, b, fit), top = at + b->size;
        height = top > height ? top : height;
        if (height >= p->height && !whole)
            return;
        g->offset[g->rank[i].box] = at;
        insert_placed(g, (placed){at, top, b->lo, b->hi});
    }
    if (height >= p->height)
        return;
    p->height = height;
    memcpy(p->offset, g->offset, p->n * sizeof *g->offset);
}

/* Within 1 % of the bound or a page: what is left is not worth a long search. */
static bool is_near(const sn_packing *p) {
    return p->height <= p->bound + p->bound / 100 || p->height - p->bound <= PAGE;
}

static void repair(greedy *g, greedy_key key) {
    const sn_packing *p = g->p;
    const int rounds = g->n_rank > SEARCH_MAX ? REPAIR_ROUNDS_LARGE : REPAIR_ROUNDS;
    rank_boxes(g, key);
    for (int round = 0; round < rounds && p->height > p->wanted && *g->work > 0; round++) {
        place_all(g, FIRST_FIT, true);
        for (uint32_t i = 0; i < g->n_rank; i++) {
            const uint32_t b = g->rank[i].box;
            g->rank[i].failed += g->offset[b] + p->boxes[b].size > p->bound;
        }
    }
}

static snug_status init_greedy(sn_zone *z, sn_packing *p, uint64_t *work, greedy *g,
                               snug_error *err) {
    void *rank, *list, *fixed, *offset;
    SNUG_TRY(sn_zone_alloc(z, p->n * sizeof(ranked), &rank, err));
    SNUG_TRY(sn_zone_alloc(z, ((size_t)p->n + 1) * sizeof(placed), &list, err));
    SNUG_TRY(sn_zone_alloc(z, p->n * sizeof(placed), &fixed, err));
    SNUG_TRY(sn_zone_alloc(z, p->n * sizeof(size_t), &offset, err));
    *g = (greedy){
        .p = p, .rank = rank, .placed = list, .fixed = fixed, .offset = offset, .work = work};
    return SNUG_OK;
}

/* Of many boxes a packing that is near is good enough, or one that took all work there is. */
static bool is_enough(const sn_packing *p, uint64_t work) {
    return p->n > SWEEP_FROM && (work == 0 || is_near(p));
}

static snug_status pack_greedy(sn_zone *z, sn_packing *p, uint64_t *work, snug_error *err) {
    greedy g;
    SNUG_TRY(init_greedy(z, p, work, &g, err));
    for (; g.n_rank < p->n; g.n_rank++)
        g.rank[g.n_rank].box = g.n_rank;
    if (p->n > SWEEP_FROM)
        SNUG_TRY(sn_pack_sweep(z, p, err));
    const bool large = p->n > SEARCH_MAX;
    for (int fit = 0; fit < (large ? BEST_FIT : N_FITS); fit++)
        for (int key = 0; key < N_KEYS && p->height > p->wanted && !is_enough(p, *work); key++) {
            rank_boxes(&g, (greedy_key)key);
            place_all(&g, (greedy_fit)fit, false);
        }
    if (is_enough(p, *work))
        return SNUG_OK;
    static const greedy_key repaired[] = {KEY_LOAD, KEY_SIZE, KEY_AREA};
    repair(&g, repaired[0]);
    for (size_t i = 1; i < sizeof repaired / sizeof repaired[0] && !large && !is_near(p); i++)
        repair(&g, repaired[i]);
    return SNUG_OK;
}

/* --- the fullest sections first -------------------------------------------------------------- */
/* Packs the boxes that see at least `threshold` bytes live by themselves, then the rest around. */
static snug_status pack_critical(snug_engine *e, sn_zone *z, sn_packing *p, size_t threshold,
                                 uint64_t *work, snug_error *err) {
    sn_packing core;
    greedy g;
    SNUG_TRY(sn_packing_alloc(z, p->n, p->n_sections, &core, err));
    SNUG_TRY(init_greedy(z, p, work, &g, err));
    for (uint32_t i = 0; i < p->n; i++) {
        if (load_of(p, &p->boxes[i]) < threshold) {
            g.rank[g.n_rank++].box = i;
            continue;
        }
        core.boxes[core.n] = p->boxes[i];
        core.boxes[core.n++].item = i;
    }
    sn_packing_measure(&core);
    if (core.n == p->n || core.n > SEARCH_MAX)
        return SNUG_OK;
    SNUG_TRY(pack_greedy(z, &core, work, err));
    if (core.height > core.wanted)
        SNUG_TRY(sn_pack_search(e, &core, work, err));
    for (uint32_t i = 0; i < core.n; i++) {
        const sn_box *b = &core.boxes[i];
        g.offset[b->item] = core.offset[i];
        insert_placed(&g, (placed){core.offset[i], core.offset[i] + b->size, b->lo, b->hi});
    }
    memcpy(g.fixed, g.placed, g.n_placed * sizeof *g.placed);
    g.n_fixed = g.n_placed;
    repair(&g, KEY_LOAD);
    repair(&g, KEY_SIZE);
    return SNUG_OK;
}

static snug_status pack_boxes(snug_engine *e, sn_zone *z, sn_packing *p, uint64_t allowed,
                              snug_error *err) {
    const uint64_t usual = p->n <= SEARCH_MAX ? WORK_SMALL : p->n * WORK_PER_BOX;
    uint64_t work = allowed > 0 ? allowed : usual;
    if (p->n == 0) {
        p->height = 0;
        return SNUG_OK;
    }
    SNUG_TRY(pack_greedy(z, p, &work, err));
    if (allowed == 0 && is_near(p) && work > p->n * WORK_PER_BOX)
        work = p->n * WORK_PER_BOX;
    if (p->height > p->wanted && (p->n <= SEARCH_MAX || allowed > usual))
        SNUG_TRY(sn_pack_search(e, p, &work, err));
    if (allowed > 0 || p->height <= p->wanted)
        return SNUG_OK;
    /* from the few fullest sections to more and more of them, until within 1 % */
    for (size_t tenths = 9; tenths > 2 && !is_near(p) && work > 0; tenths -= 2)
        SNUG_TRY(pack_critical(e, z, p, p->bound / 10 * tenths, &work, err));
    if (is_near(p) || p->n > HARD_MAX)
        return SNUG_OK;
    work = WORK_HARD;
    return sn_pack_search(e, p, &work, err);
}

snug_status sn_pack_to(snug_engine *e, sn_pack_item *items, uint32_t n,
                       const sn_pack_limits *limits, size_t *height, size_t *bound,
                       snug_error *err) {
    SNUG_TRY(check_items(items, n, err));
    sn_zone *z = NULL;
    sn_packing p;
    SNUG_TRY(sn_zone_create_for(e, SN_MEM_PLAN, (size_t)n * 200, &z, err));
    snug_status st = make_boxes(z, items, n, &p, err);
    if (st != SNUG_OK)
        goto done;
    p.wanted = limits->capacity > p.bound ? limits->capacity : p.bound;
    st = pack_boxes(e, z, &p, limits->work, err);
    if (st != SNUG_OK)
        goto done;
    for (uint32_t i = 0; i < n; i++)
        items[i].offset = 0;
    for (uint32_t i = 0; i < p.n; i++)
        items[p.boxes[i].item].offset = p.offset[i];
    *height = p.height;
    *bound = p.bound;
done:
    sn_zone_destroy(z);
    return st;
}

snug_status sn_pack(snug_engine *e, sn_pack_item *items, uint32_t n, size_t *height, size_t *bound,
                    snug_error *err) {
    return sn_pack_to(e, items, n, &(sn_pack_limits){0, 0}, height, bound, err);
}
