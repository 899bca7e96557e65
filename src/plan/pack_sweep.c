/* pack_sweep.c: one pass over time, for instances where looking at all placed boxes for each box
 * takes too long. A box takes a free range when its time comes and gives it back at its end, merged
 * with free neighbours. Ranges wait by powers of two of their size, the newest first; of the own
 * power a few are looked at, of larger ones the first fits. So a box takes bounded work. */
#include "plan/pack.h"

#include <string.h>

enum { CLASSES = 64, LOOKED_AT = 16 };
#define NONE UINT32_MAX

/* A part of the packing from bottom to top, all of which are chained by address. */
typedef struct {
    size_t offset, size;
    uint32_t below, above; /* by address */
    uint32_t before, next; /* free: of its class */
    bool free;
} range;

typedef struct {
    range *ranges;
    uint32_t n, top; /* the highest; NONE: there is none */
    uint32_t first[CLASSES];
    uint32_t *of_box;  /* the range it lies in */
    uint32_t *ends_at; /* per section: the first box that ends before it */
    uint32_t *next_end;
} sweep;

static int class_of(size_t size) {
    return 63 - __builtin_clzll(size);
}

static void list(sweep *s, uint32_t r) {
    range *const at = &s->ranges[r];
    uint32_t *const first = &s->first[class_of(at->size)];
    at->free = true;
    at->before = NONE;
    at->next = *first;
    if (*first != NONE)
        s->ranges[*first].before = r;
    *first = r;
}

static void unlist(sweep *s, uint32_t r) {
    range *const at = &s->ranges[r];
    at->free = false;
    if (at->before == NONE)
        s->first[class_of(at->size)] = at->next;
    else
        s->ranges[at->before].next = at->next;
    if (at->next != NONE)
        s->ranges[at->next].before = at->before;
}

/* The tightest of the newest of its class, or the first of a larger class; NONE: none fits. */
static uint32_t find_free(sweep *s, size_t size) {
    int k = class_of(size), looked = 0;
    uint32_t best = NONE;
    for (uint32_t r = s->first[k]; r != NONE && looked < LOOKED_AT; r = s->ranges[r].next, looked++)
        if (s->ranges[r].size >= size && (best == NONE || s->ranges[r].size < s->ranges[best].size))
            best = r;
    while (best == NONE && ++k < CLASSES)
        best = s->first[k];
    return best;
}

/* A range of this size above all others; it takes in the highest where that is free. */
static uint32_t extend(sweep *s, size_t size) {
    if (s->top != NONE && s->ranges[s->top].free) {
        unlist(s, s->top);
        s->ranges[s->top].size = size;
        return s->top;
    }
    const range *const top = s->top == NONE ? NULL : &s->ranges[s->top];
    const uint32_t r = s->n++;
    s->ranges[r] = (range){
        .offset = top ? top->offset + top->size : 0, .size = size, .below = s->top, .above = NONE};
    if (s->top != NONE)
        s->ranges[s->top].above = r;
    s->top = r;
    return r;
}

/* What is behind the first bytes of the range is free again. */
static void cut(sweep *s, uint32_t r, size_t size) {
    range *const at = &s->ranges[r];
    if (at->size == size)
        return;
    const uint32_t rest = s->n++;
    s->ranges[rest] = (range){at->offset + size, at->size - size, r, at->above, NONE, NONE, false};
    if (at->above == NONE)
        s->top = rest;
    else
        s->ranges[at->above].below = rest;
    at->above = rest;
    at->size = size;
    list(s, rest);
}

/* The range takes in the one above it. */
static void take_above(sweep *s, uint32_t r) {
    range *const at = &s->ranges[r];
    const range *const above = &s->ranges[at->above];
    at->size += above->size;
    at->above = above->above;
    if (at->above == NONE)
        s->top = r;
    else
        s->ranges[at->above].below = r;
}

static void give_back(sweep *s, uint32_t r) {
    const uint32_t above = s->ranges[r].above, below = s->ranges[r].below;
    if (above != NONE && s->ranges[above].free) {
        unlist(s, above);
        take_above(s, r);
    }
    if (below != NONE && s->ranges[below].free) {
        unlist(s, below);
        take_above(s, below);
        r = below;
    }
    list(s, r);
}

static snug_status start(sn_zone *z, const sn_packing *p, sweep *s, snug_error *err) {
    void *ranges, *of_box, *ends_at, *next_end;
    SNUG_TRY(sn_zone_alloc(z, ((size_t)p->n * 2 + 1) * sizeof(range), &ranges, err));
    SNUG_TRY(sn_zone_alloc(z, p->n * sizeof(uint32_t), &of_box, err));
    SNUG_TRY(sn_zone_alloc(z, ((size_t)p->n_sections + 1) * sizeof(uint32_t), &ends_at, err));
    SNUG_TRY(sn_zone_alloc(z, p->n * sizeof(uint32_t), &next_end, err));
    *s = (sweep){.ranges = ranges,
                 .top = NONE,
                 .of_box = of_box,
                 .ends_at = memset(ends_at, 0xff, ((size_t)p->n_sections + 1) * sizeof(uint32_t)),
                 .next_end = next_end};
    memset(s->first, 0xff, sizeof s->first);
    for (uint32_t i = p->n; i-- > 0;) {
        s->next_end[i] = s->ends_at[p->boxes[i].hi];
        s->ends_at[p->boxes[i].hi] = i;
    }
    return SNUG_OK;
}

snug_status sn_pack_sweep(sn_zone *z, sn_packing *p, snug_error *err) {
    sweep s;
    size_t height = 0;
    SNUG_TRY(start(z, p, &s, err));
    for (uint32_t t = 0, i = 0; t < p->n_sections; t++) {
        for (uint32_t b = s.ends_at[t]; b != NONE; b = s.next_end[b])
            give_back(&s, s.of_box[b]);
        for (; i < p->n && p->boxes[i].lo == t; i++) {
            const size_t size = p->boxes[i].size;
            uint32_t r = find_free(&s, size);
            if (r == NONE)
                r = extend(&s, size);
            else
                unlist(&s, r);
            cut(&s, r, size);
            s.of_box[i] = r;
            p->offset[i] = s.ranges[r].offset;
            height = p->offset[i] + size > height ? p->offset[i] + size : height;
        }
    }
    p->height = height;
    return SNUG_OK;
}
