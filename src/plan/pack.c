/* pack.c: lifetimes to offsets. The bound is the largest sum of live sizes; greedy placements
 * (first fit and best fit by size, lifetime, area and start) usually reach it on step graphs; where
 * they do not, the complete search of search.c goes on from there.
 *
 * Invariants:
 * 1. Two boxes that share a section never share a byte.
 * 2. The answer depends on the items and their order alone: sorts have a full tie-break, limits
 * count work, not time.
 * 3. The sum of all sizes was checked, so no offset or top can overflow. */
#include "plan/pack.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* A greedy attempt that has looked at this many placed boxes per box gives up; so large instances
 * stay cheap. */
enum { SCANS_PER_BOX = 600 };
/* Instances up to this size are searched for the bound itself; larger ones only when more than 1 %
 * above it. */
enum { SEARCH_ALWAYS_MAX = 400, SEARCH_MAX = 6000 };
#define SEARCH_WORK UINT64_C(30000000)

typedef enum { KEY_SIZE, KEY_LIFETIME, KEY_AREA, KEY_START, N_KEYS } greedy_key;
typedef enum { FIRST_FIT, BEST_FIT, N_FITS } greedy_fit;

typedef struct {
    double key; /* larger first */
    size_t size;
    uint32_t lo, box;
} ranked;

typedef struct {
    size_t offset, top;
    uint32_t lo, hi;
} placed;

typedef struct {
    sn_packing *p;
    ranked *rank;
    placed *placed; /* by offset */
    uint32_t n_placed;
    size_t *offset;
    uint64_t scans;
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
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

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
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].lower >= items[i].upper)
            return sn_fail(err, SNUG_E_INVALID, "pack: item %u lives in [%u,%u), which is empty", i,
                           items[i].lower, items[i].upper);
        if (!sn_size_add(sum, items[i].size, &sum))
            return sn_fail(
                err, SNUG_E_OVERFLOW,
                "pack: the sizes of %u items exceed the address space; use a smaller batch", n);
    }
    if (n > UINT32_MAX / 4)
        return sn_fail(err, SNUG_E_OVERFLOW, "pack: %u items are too many", n);
    return SNUG_OK;
}

static snug_status make_boxes(sn_zone *z, const sn_pack_item *items, uint32_t n, sn_packing *p,
                              snug_error *err) {
    void *times, *boxes, *load, *offset;
    SNUG_TRY(sn_zone_alloc(z, 2 * (size_t)n * sizeof(uint32_t), &times, err));
    SNUG_TRY(sn_zone_alloc(z, n * sizeof(sn_box), &boxes, err));
    SNUG_TRY(sn_zone_alloc(z, 2 * (size_t)n * sizeof(size_t), &load, err));
    SNUG_TRY(sn_zone_alloc(z, n * sizeof(size_t), &offset, err));
    const uint32_t n_times = collect_times(items, n, times);
    *p = (sn_packing){.boxes = boxes, .load = load, .offset = offset};
    p->n_sections = n_times > 0 ? n_times - 1 : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].size == 0)
            continue;
        const uint32_t lo = section_of(times, n_times, items[i].lower);
        const uint32_t hi = section_of(times, n_times, items[i].upper);
        p->boxes[p->n++] = (sn_box){lo, hi, i, items[i].size};
        for (uint32_t s = lo; s < hi; s++)
            p->load[s] += items[i].size;
    }
    qsort(p->boxes, p->n, sizeof *p->boxes, compare_boxes);
    for (uint32_t s = 0; s < p->n_sections; s++)
        p->bound = p->load[s] > p->bound ? p->load[s] : p->bound;
    return SNUG_OK;
}

static double key_of(const sn_box *b, greedy_key key) {
    const double width = (double)(b->hi - b->lo), size = (double)b->size;
    const double keys[N_KEYS] = {size, width, width * size, -(double)b->lo};
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
    g->scans += i;
    return best_gap == SIZE_MAX ? at : best;
}

/* One greedy placement; kept when it is lower than the best so far. */
static void try_greedy(greedy *g, greedy_key key, greedy_fit fit) {
    sn_packing *p = g->p;
    for (uint32_t i = 0; i < p->n; i++)
        g->rank[i] = (ranked){key_of(&p->boxes[i], key), p->boxes[i].size, p->boxes[i].lo, i};
    qsort(g->rank, p->n, sizeof *g->rank, compare_ranked);
    g->n_placed = 0;
    g->scans = 0;
    size_t height = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const sn_box *b = &p->boxes[g->rank[i].box];
        const size_t at = find_gap(g, b, fit);
        const size_t top = at + b->size;
        height = top > height ? top : height;
        const bool hopeless = height >= p->height;
        const bool too_long = p->height != SIZE_MAX && g->scans > (uint64_t)p->n * SCANS_PER_BOX;
        if (hopeless || too_long)
            return;
        g->offset[g->rank[i].box] = at;
        insert_placed(g, (placed){at, top, b->lo, b->hi});
    }
    p->height = height;
    memcpy(p->offset, g->offset, p->n * sizeof *g->offset);
}

static snug_status pack_greedy(sn_zone *z, sn_packing *p, snug_error *err) {
    greedy g = {.p = p};
    void *rank, *list, *offset;
    SNUG_TRY(sn_zone_alloc(z, p->n * sizeof(ranked), &rank, err));
    SNUG_TRY(sn_zone_alloc(z, ((size_t)p->n + 1) * sizeof(placed), &list, err));
    SNUG_TRY(sn_zone_alloc(z, p->n * sizeof(size_t), &offset, err));
    g.rank = rank;
    g.placed = list;
    g.offset = offset;
    p->height = SIZE_MAX;
    for (int fit = 0; fit < N_FITS; fit++)
        for (int key = 0; key < N_KEYS && p->height > p->bound; key++)
            try_greedy(&g, (greedy_key)key, (greedy_fit)fit);
    return SNUG_OK;
}

static bool worth_searching(const sn_packing *p) {
    if (p->height == p->bound || p->n > SEARCH_MAX)
        return false;
    return p->n <= SEARCH_ALWAYS_MAX || p->height - p->bound > p->bound / 100;
}

static snug_status pack_boxes(snug_engine *e, sn_zone *z, sn_packing *p, snug_error *err) {
    if (p->n == 0)
        return SNUG_OK;
    SNUG_TRY(pack_greedy(z, p, err));
    if (worth_searching(p))
        SNUG_TRY(sn_pack_search(e, p, SEARCH_WORK, err));
    return SNUG_OK;
}

snug_status sn_pack(snug_engine *e, sn_pack_item *items, uint32_t n, size_t *height, size_t *bound,
                    snug_error *err) {
    SNUG_TRY(check_items(items, n, err));
    sn_zone *z = NULL;
    sn_packing p;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    snug_status st = make_boxes(z, items, n, &p, err);
    if (st != SNUG_OK)
        goto done;
    st = pack_boxes(e, z, &p, err);
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
