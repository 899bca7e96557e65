/* cut_boxes.c: see cut_boxes.h. Pieces lie in the grid while they are cut; offsets are thrown away
 * at the end. */
#include "support/cut_boxes.h"

typedef struct {
    uint64_t random;
    sn_cut_pick pick;
    sn_pack_item *items; /* in grid units; offset too */
    uint32_t n;
} cutter;

static uint32_t draw(cutter *c, uint32_t below) {
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((c->random >> 33) % below);
}

static uint64_t weight_of(const cutter *c, const sn_pack_item *a) {
    const uint64_t length = a->upper - a->lower, size = a->size;
    const uint64_t weights[SN_N_CUTS] = {length * size, length * size, 1, size, length};
    return weights[c->pick];
}

/* The best of some draws. */
static sn_pack_item *pick_piece(cutter *c) {
    sn_pack_item *best = &c->items[draw(c, c->n)];
    for (int k = 1; k < (c->pick == SN_CUT_LARGEST ? 12 : 3); k++) {
        sn_pack_item *other = &c->items[draw(c, c->n)];
        if (weight_of(c, other) > weight_of(c, best))
            best = other;
    }
    return best;
}

static void cut_straight(cutter *c, sn_pack_item *a) {
    if (draw(c, 2) == 0 && a->upper - a->lower > 1) {
        const uint32_t at = a->lower + 1 + draw(c, a->upper - a->lower - 1);
        c->items[c->n++] = (sn_pack_item){at, a->upper, a->size, a->offset};
        a->upper = at;
    } else if (a->size > 1) {
        const size_t part = 1 + draw(c, (uint32_t)a->size - 1);
        c->items[c->n++] = (sn_pack_item){a->lower, a->upper, a->size - part, a->offset + part};
        a->size = part;
    }
}

/* Four arms around a middle: a becomes the middle. */
static void cut_knot(cutter *c, sn_pack_item *a) {
    const uint32_t length = a->upper - a->lower, size = (uint32_t)a->size;
    if (length < 3 || size < 3)
        return;
    const uint32_t x0 = a->lower + 1 + draw(c, length - 2);
    const uint32_t x1 = x0 + 1 + draw(c, a->upper - x0 - 1);
    const size_t y0 = a->offset + 1 + draw(c, size - 2), end = a->offset + size;
    const size_t y1 = y0 + 1 + draw(c, (uint32_t)(end - y0 - 1));
    sn_pack_item *to = &c->items[c->n];
    to[0] = (sn_pack_item){a->lower, x0, y1 - a->offset, a->offset};
    to[1] = (sn_pack_item){a->lower, x1, end - y1, y1};
    to[2] = (sn_pack_item){x1, a->upper, end - y0, y0};
    to[3] = (sn_pack_item){x0, a->upper, y0 - a->offset, a->offset};
    *a = (sn_pack_item){x0, x1, y1 - y0, y0};
    c->n += 4;
}

static void take_away(cutter *c, const sn_cutting *how) {
    const uint32_t full = draw(c, SN_CUT_GRID);
    uint64_t left = (uint64_t)SN_CUT_GRID * SN_CUT_GRID * how->gone / 100;
    for (uint32_t tries = 20 * c->n; tries > 0 && c->n > 1; tries--) {
        const uint32_t k = draw(c, c->n);
        const sn_pack_item a = c->items[k];
        const uint64_t area = (uint64_t)(a.upper - a.lower) * a.size;
        if (area > left || (!how->loose && a.lower <= full && full < a.upper))
            continue;
        left -= area;
        c->items[k] = c->items[--c->n];
    }
}

uint32_t sn_cut_boxes(const sn_cutting *how, sn_pack_item *items) {
    cutter c = {.random = how->seed * 77 + 1, .pick = how->pick, .items = items, .n = 1};
    items[0] = (sn_pack_item){0, SN_CUT_GRID, SN_CUT_GRID, 0};
    while (c.n < how->n) {
        sn_pack_item *a = pick_piece(&c);
        if (how->knots && c.n + 4 <= how->n && draw(&c, 4) == 0)
            cut_knot(&c, a);
        else
            cut_straight(&c, a);
    }
    take_away(&c, how);
    for (uint32_t k = c.n; k > 0; k--) {
        const uint32_t other = draw(&c, k);
        const sn_pack_item a = items[other];
        items[other] = items[k - 1];
        items[k - 1] =
            (sn_pack_item){a.lower * SN_CUT_GRID, a.upper * SN_CUT_GRID, a.size * SN_CUT_GRID, 0};
    }
    return c.n;
}

sn_cutting sn_cutting_of_series(uint32_t k) {
    static const sn_cut_pick picks[] = {SN_CUT_LARGE,   SN_CUT_LARGEST, SN_CUT_ANY,
                                        SN_CUT_LARGEST, SN_CUT_LARGE,   SN_CUT_HIGH,
                                        SN_CUT_LARGEST, SN_CUT_LONG};
    static const uint32_t gone[] = {0, 2, 5, 2, 11, 6};
    return (sn_cutting){.seed = 1000 + k,
                        .n = 150 + k * 37 % 310,
                        .pick = picks[k % 8],
                        .knots = k % 7 < 3,
                        .gone = gone[k % 6],
                        .loose = k % 5 == 4};
}
