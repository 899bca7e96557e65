/* remat_list.c: a list of computations and what follows from it: who reads which instance until
 * when, and how many bytes are in memory at each place.
 *
 * Invariants:
 * 1. Every input of a computation is computed somewhere before it.
 * 2. bytes[k] counts instance i where i <= k <= end[i]; kept ones to the last place. An input that
 *    ends where it is taken over shares its bytes with the output. */
#include "plan/remat_parts.h"

#include <string.h>

static snug_status alloc_places(sn_zone *z, const sn_remat_program *g, uint32_t **out,
                                snug_error *err) {
    void *mem;
    SNUG_TRY(sn_zone_alloc_raw(z, g->most * sizeof(uint32_t), &mem, err));
    *out = mem;
    return SNUG_OK;
}

snug_status sn_remat_list_init(sn_zone *z, const sn_remat_program *g, sn_remat_list *out,
                               snug_error *err) {
    sn_remat_list l = {0};
    void *mem;
    SNUG_TRY(alloc_places(z, g, &l.ops, err));
    SNUG_TRY(alloc_places(z, g, &l.end, err));
    SNUG_TRY(alloc_places(z, g, &l.before, err));
    SNUG_TRY(alloc_places(z, g, &l.again, err));
    SNUG_TRY(sn_zone_alloc_raw(z, ((size_t)g->most + 1) * sizeof(size_t), &mem, err));
    l.bytes = mem;
    SNUG_TRY(
        sn_zone_alloc_raw(z, ((size_t)g->most / SN_REMAT_BLOCK + 1) * sizeof(size_t), &mem, err));
    l.high = mem;
    SNUG_TRY(sn_zone_alloc(z, 2 * (size_t)g->p->n * sizeof(uint32_t), &mem, err));
    l.first = mem;
    l.last = l.first + g->p->n;
    *out = l;
    return SNUG_OK;
}

void sn_remat_list_copy(const sn_remat_program *g, sn_remat_list *to, const sn_remat_list *from) {
    sn_remat_list l = *to;
    memcpy(l.ops, from->ops, from->n * sizeof *l.ops);
    memcpy(l.end, from->end, from->n * sizeof *l.end);
    memcpy(l.before, from->before, from->n * sizeof *l.before);
    memcpy(l.again, from->again, from->n_again * sizeof *l.again);
    memcpy(l.bytes, from->bytes, from->n * sizeof *l.bytes);
    memcpy(l.high, from->high, (from->n / SN_REMAT_BLOCK + 1) * sizeof *l.high);
    memcpy(l.first, from->first, g->p->n * sizeof *l.first);
    memcpy(l.last, from->last, g->p->n * sizeof *l.last);
    l.n = from->n;
    l.n_again = from->n_again;
    l.cost = from->cost;
    l.peak = from->peak;
    l.peak_at = from->peak_at;
    *to = l;
}

uint32_t sn_remat_instance(const sn_remat_list *list, uint32_t op, uint32_t place) {
    uint32_t k = list->last[op];
    while (k != SN_REMAT_NONE && k >= place)
        k = list->before[k];
    return k;
}

bool sn_remat_below(const sn_remat_list *list, uint32_t from, uint32_t to, size_t bytes,
                    uint64_t *work) {
    const uint32_t end = to < list->n ? to + 1 : list->n;
    bool below = true;
    uint32_t k = from;
    while (k < end && below) {
        const uint32_t block = k / SN_REMAT_BLOCK, next = (block + 1) * SN_REMAT_BLOCK;
        if (list->high[block] <= bytes) {
            k = next;
        } else if (k % SN_REMAT_BLOCK == 0 && next <= end) {
            below = false;
        } else {
            below = list->bytes[k] <= bytes;
            k++;
        }
        ++*work;
    }
    return below;
}

void sn_remat_insert(sn_remat_list *list, uint32_t place, const uint32_t *ops, uint32_t n) {
    memmove(list->ops + place + n, list->ops + place, (list->n - place) * sizeof *ops);
    memcpy(list->ops + place, ops, n * sizeof *ops);
    list->n += n;
}

void sn_remat_remove(sn_remat_list *list, uint32_t place) {
    list->n--;
    memmove(list->ops + place, list->ops + place + 1, (list->n - place) * sizeof *list->ops);
}

/* Instances and who reads them. True where a repeated computation is read by nobody. */
static bool find_instances(const sn_remat_problem *p, sn_remat_list *l) {
    memset(l->last, 0xff, p->n * sizeof *l->last); /* NONE */
    l->cost = 0;
    l->n_again = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        const uint32_t op = l->ops[k];
        const sn_remat_op *o = &p->ops[op];
        for (uint32_t j = 0; j < o->n_in; j++)
            l->end[l->last[p->inputs[o->in + j]]] = k;
        l->before[k] = l->last[op];
        if (l->before[k] == SN_REMAT_NONE)
            l->first[op] = k;
        else
            l->again[l->n_again++] = k;
        l->last[op] = k;
        l->end[k] = k;
        l->cost += o->cost;
    }
    for (uint32_t i = 0; i < l->n_again; i++)
        if (l->end[l->again[i]] == l->again[i])
            return true;
    return false;
}

/* Takes out what is repeated and read by nobody, and what is read by such alone: from the back, so
 * that one walk finds all. bytes[] holds which instances are read. */
static void remove_unread(const sn_remat_problem *p, sn_remat_list *l) {
    memset(l->bytes, 0, l->n * sizeof *l->bytes);
    for (uint32_t k = l->n; k-- > 0;) {
        const sn_remat_op *o = &p->ops[l->ops[k]];
        l->last[l->ops[k]] = l->before[k];
        if (l->before[k] == SN_REMAT_NONE)
            l->bytes[k] = 1;
        for (uint32_t j = 0; j < o->n_in && l->bytes[k] > 0; j++)
            l->bytes[l->last[p->inputs[o->in + j]]] = 1;
    }
    uint32_t at = 0;
    for (uint32_t k = 0; k < l->n; k++)
        if (l->bytes[k] > 0)
            l->ops[at++] = l->ops[k];
    l->n = at;
}

/* Bytes of the input that ends at this place and is taken over. */
static size_t shared_bytes(const sn_remat_problem *p, const sn_remat_list *l, uint32_t place) {
    const sn_remat_op *o = &p->ops[l->ops[place]];
    if (o->takes == SN_REMAT_NONE || l->end[sn_remat_instance(l, o->takes, place)] != place ||
        p->ops[o->takes].keep)
        return 0;
    return p->ops[o->takes].bytes < o->bytes ? p->ops[o->takes].bytes : o->bytes;
}

/* bytes[] first holds what comes at a place less what went before it. */
static void find_bytes(const sn_remat_problem *p, sn_remat_list *l) {
    size_t held = p->fixed_bytes;
    memset(l->bytes, 0, (l->n + 1) * sizeof *l->bytes);
    for (uint32_t k = 0; k < l->n; k++) {
        const sn_remat_op *o = &p->ops[l->ops[k]];
        if (o->keep)
            l->end[k] = l->n - 1;
        l->bytes[k] += o->bytes;
        l->bytes[l->end[k] + 1] -= o->bytes;
    }
    l->peak = held;
    l->peak_at = 0;
    memset(l->high, 0, (l->n / SN_REMAT_BLOCK + 1) * sizeof *l->high);
    for (uint32_t k = 0; k < l->n; k++) {
        held += l->bytes[k];
        l->bytes[k] = held + p->ops[l->ops[k]].work_bytes - shared_bytes(p, l, k);
        size_t *high = &l->high[k / SN_REMAT_BLOCK];
        *high = l->bytes[k] > *high ? l->bytes[k] : *high;
        if (l->bytes[k] > l->peak) {
            l->peak = l->bytes[k];
            l->peak_at = k;
        }
    }
}

void sn_remat_measure(const sn_remat_program *g, sn_remat_list *list) {
    if (find_instances(g->p, list)) {
        remove_unread(g->p, list);
        (void)find_instances(g->p, list);
    }
    find_bytes(g->p, list);
}
