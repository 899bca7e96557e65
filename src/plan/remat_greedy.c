/* remat_greedy.c: a first list of computations. Operators are computed in the order given; before
 * each one its missing inputs are, and theirs. Where that exceeds the budget, resident values go,
 * those first that are cheap to have again for the bytes they give up and the time until they are
 * wanted. How much cost and time count is a manner; which one is best differs from program to
 * program and budget to budget, so there are some to try.
 *
 * Invariants:
 * 1. used is the sum of the bytes of what is resident; a pinned value is not dropped.
 * 2. A value with readers to come is dropped only where it can be computed again before the next
 *    of them (horizon), so the run fails for bytes alone.
 * 3. extra[i] is the sum of surcharge[u] over the missing inputs u of i, so what it costs to have i
 *    again is known without a walk. Values that share ancestors count them more than once: the
 *    surcharge is cut at the cost of the whole program.
 * 4. The slots are what is resident and may go at some time; each has what its score is made of, as
 *    the search for the lowest score is the inmost loop of planning. */
#include "plan/remat_parts.h"

#include <math.h>
#include <string.h>

typedef struct {
    uint32_t op, next; /* the input to look at next */
} frame;

/* A resident value: what it costs to have it again, by byte, squared where the root of the time
 * counts (-INFINITY: nobody reads it any more); and who reads it next. */
typedef struct {
    double dear;
    uint32_t op, next;
} slot;

struct sn_remat_greedy {
    const sn_remat_program *g;
    bool *resident;
    uint32_t *pins;
    uint32_t *next_use; /* per value, into g->uses */
    double *extra, *surcharge;
    slot *slots;
    uint32_t n_slots, *place; /* per value: its slot, or NONE */
    frame *stack;
    uint32_t depth;  /* of the stack */
    uint32_t *turns; /* per input of the problem: an operator's inputs in another order; or NULL */
    size_t used, budget;
    uint32_t now; /* the next operator to be computed for the first time */
    uint32_t manner;
};

snug_status sn_remat_greedy_create(sn_zone *z, const sn_remat_program *g, sn_remat_greedy **out,
                                   snug_error *err) {
    const size_t n = g->p->n;
    sn_remat_greedy *s;
    void *mem;
    SNUG_TRY(sn_zone_alloc(z, sizeof *s, &mem, err));
    s = mem;
    s->g = g;
    SNUG_TRY(sn_zone_alloc(z, n * (3 * sizeof(uint32_t) + sizeof(bool)), &mem, err));
    s->pins = mem;
    s->next_use = s->pins + n;
    s->place = s->next_use + n;
    s->resident = (bool *)(s->place + n);
    SNUG_TRY(sn_zone_alloc_raw(z, n * sizeof(slot), &mem, err));
    s->slots = mem;
    SNUG_TRY(sn_zone_alloc(z, 2 * n * sizeof(double), &mem, err));
    s->extra = mem;
    s->surcharge = s->extra + n;
    SNUG_TRY(sn_zone_alloc(z, (n + 1) * sizeof(frame), &mem, err));
    s->stack = mem;
    *out = s;
    return SNUG_OK;
}

static void reset(sn_remat_greedy *s, size_t budget) {
    const sn_remat_program *g = s->g;
    const uint32_t n = g->p->n;
    memset(s->resident, 0, n * sizeof *s->resident);
    memset(s->pins, 0, n * sizeof *s->pins);
    memcpy(s->next_use, g->use_at, n * sizeof *s->next_use);
    memset(s->extra, 0, n * sizeof *s->extra);
    memset(s->surcharge, 0, n * sizeof *s->surcharge);
    memset(s->place, 0xff, n * sizeof *s->place); /* NONE */
    s->n_slots = 0;
    s->used = g->p->fixed_bytes;
    s->budget = budget;
}

static bool has_readers(const sn_remat_greedy *s, uint32_t i) {
    return s->next_use[i] < s->g->use_at[i + 1];
}

/* Cost to the power 1, 3/2, 2 or 3. */
static double raised(double cost, uint32_t manner) {
    return manner == 0   ? cost
           : manner == 1 ? cost * sqrt(cost)
           : manner == 2 ? cost * cost
                         : cost * cost * cost;
}

/* After whatever changes readers or the cost of having it again. */
static void refresh(sn_remat_greedy *s, uint32_t i) {
    const sn_remat_op *o = &s->g->p->ops[i];
    if (s->place[i] == SN_REMAT_NONE)
        return;
    slot *const at = &s->slots[s->place[i]];
    const bool read = has_readers(s, i);
    const double cost = fmax(o->cost + s->extra[i], 0); /* a sum that went down may end below */
    const double dear = raised(cost, s->manner % 4) / (double)o->bytes;
    at->next = read ? s->g->uses[s->next_use[i]] : s->now;
    at->dear = !read ? -INFINITY : s->manner / 4 == 1 ? dear * dear : dear;
}

static void add_to_readers(sn_remat_greedy *s, uint32_t i, double cost) {
    const sn_remat_program *g = s->g;
    for (uint32_t k = g->use_at[i]; k < g->use_at[i + 1]; k++) {
        s->extra[g->uses[k]] += cost;
        refresh(s, g->uses[k]);
    }
}

static void put(sn_remat_greedy *s, uint32_t i) {
    const sn_remat_op *o = &s->g->p->ops[i];
    s->resident[i] = true;
    s->used += o->bytes;
    if (!o->keep && o->bytes > 0) {
        s->place[i] = s->n_slots;
        s->slots[s->n_slots++].op = i;
        refresh(s, i);
    }
    if (s->surcharge[i] > 0)
        add_to_readers(s, i, -s->surcharge[i]);
    s->surcharge[i] = 0;
}

static void drop(sn_remat_greedy *s, uint32_t i) {
    const double cost = s->g->p->ops[i].cost + s->extra[i];
    s->resident[i] = false;
    s->used -= s->g->p->ops[i].bytes;
    if (s->place[i] != SN_REMAT_NONE) {
        s->slots[s->place[i]] = s->slots[--s->n_slots];
        s->place[s->slots[s->place[i]].op] = s->place[i];
        s->place[i] = SN_REMAT_NONE;
    }
    s->surcharge[i] = cost < s->g->base_cost ? cost : s->g->base_cost;
    add_to_readers(s, i, s->surcharge[i]);
}

static bool may_drop(const sn_remat_greedy *s, uint32_t i) {
    return s->pins[i] == 0 &&
           (!has_readers(s, i) || s->g->uses[s->next_use[i]] <= s->g->horizon[i]);
}

/* The value whose cost by byte and time is lowest; the first one among equals. Quotients are
 * compared as products. */
static inline uint32_t find_cheap(const sn_remat_greedy *s, bool by_time) {
    uint32_t best = SN_REMAT_NONE;
    double least = INFINITY, longest = 1;
    for (uint32_t k = 0; k < s->n_slots; k++) {
        const slot at = s->slots[k];
        const double away = by_time ? (double)(at.next - s->now) + 1 : 1;
        const double mine = at.dear * longest, other = least * away;
        if (mine > other || (mine == other && at.op > best) || !may_drop(s, at.op))
            continue;
        best = at.op;
        least = at.dear;
        longest = away;
    }
    return best;
}

static bool make_room(sn_remat_greedy *s, size_t bytes) {
    if (bytes > s->budget)
        return false;
    while (s->used > s->budget - bytes) {
        const uint32_t cheap = s->manner / 4 > 0 ? find_cheap(s, true) : find_cheap(s, false);
        if (cheap == SN_REMAT_NONE)
            return false;
        drop(s, cheap);
    }
    return true;
}

/* Bytes of the input that the output takes over: nobody else wants it any more. */
static size_t taken_bytes(const sn_remat_greedy *s, const sn_remat_op *o, uint32_t op) {
    const sn_remat_program *g = s->g;
    const uint32_t u = o->takes;
    if (u == SN_REMAT_NONE || g->p->ops[u].keep)
        return 0;
    uint32_t own_pins = 0;
    for (uint32_t k = 0; k < o->n_in; k++)
        own_pins += g->p->inputs[o->in + k] == u;
    if (s->pins[u] > own_pins)
        return 0;
    if (has_readers(s, u) && (op != s->now || g->uses[g->use_at[u + 1] - 1] != op))
        return 0;
    return g->p->ops[u].bytes < o->bytes ? g->p->ops[u].bytes : o->bytes;
}

/* All inputs are resident and pinned. */
static bool compute_top(sn_remat_greedy *s, uint32_t op, sn_remat_list *out) {
    const sn_remat_problem *p = s->g->p;
    const sn_remat_op *o = &p->ops[op];
    const size_t taken = taken_bytes(s, o, op);
    if (out->n == s->g->most || !make_room(s, o->bytes + o->work_bytes - taken))
        return false;
    out->ops[out->n++] = op;
    for (uint32_t k = 0; k < o->n_in; k++) {
        const uint32_t u = p->inputs[o->in + k];
        s->pins[u]--;
        if (op != s->now)
            continue;
        while (has_readers(s, u) && s->g->uses[s->next_use[u]] == op)
            s->next_use[u]++;
        refresh(s, u);
    }
    for (uint32_t k = 0; k < o->n_in; k++) {
        const uint32_t u = p->inputs[o->in + k];
        if (s->resident[u] && s->pins[u] == 0 && !has_readers(s, u) && !p->ops[u].keep)
            drop(s, u);
    }
    put(s, op);
    if (!has_readers(s, op) && s->pins[op] == 0 && !o->keep)
        drop(s, op);
    s->now += op == s->now;
    return true;
}

/* With turns an input is pinned only when its turn comes. */
static void enter(sn_remat_greedy *s, uint32_t op) {
    const sn_remat_op *o = &s->g->p->ops[op];
    for (uint32_t k = 0; k < o->n_in && !s->turns; k++)
        s->pins[s->g->p->inputs[o->in + k]]++;
    s->stack[s->depth++] = (frame){op, 0};
}

/* Inputs are smaller than what reads them, so the stack is never deeper than the program is long.
 * Missing values that cannot be computed again are none of those asked for: see horizon. */
static bool compute(sn_remat_greedy *s, uint32_t op, sn_remat_list *out) {
    const uint32_t *const inputs = s->turns ? s->turns : s->g->p->inputs;
    s->depth = 0;
    enter(s, op);
    while (s->depth > 0) {
        frame *f = &s->stack[s->depth - 1];
        const sn_remat_op *o = &s->g->p->ops[f->op];
        if (f->next == o->n_in) {
            if (!compute_top(s, f->op, out))
                return false;
            s->depth--;
            continue;
        }
        const uint32_t u = inputs[o->in + f->next++];
        if (s->turns)
            s->pins[u]++;
        if (!s->resident[u])
            enter(s, u);
    }
    return true;
}

/* With turns: whether the next operator reads this one, but not first. Then it can be computed when
 * its turn comes there, and until then its inputs, which may be smaller, are in memory instead. */
static bool waits(const sn_remat_greedy *s, uint32_t op) {
    const sn_remat_problem *p = s->g->p;
    if (!s->turns || op + 1 == p->n)
        return false;
    const sn_remat_op *next = &p->ops[op + 1];
    for (uint32_t k = 1; k < next->n_in; k++)
        if (s->turns[next->in + k] == op)
            return s->turns[next->in] != op;
    return false;
}

static bool run(sn_remat_greedy *s, size_t budget, uint32_t manner, sn_remat_list *out) {
    reset(s, budget);
    s->manner = manner;
    out->n = 0;
    s->now = 0;
    for (uint32_t op = 0; op < s->g->p->n; op++)
        if (!waits(s, op) && !compute(s, op, out))
            return false;
    sn_remat_measure(s->g, out);
    return out->peak <= budget;
}

bool sn_remat_greedy_run(sn_remat_greedy *s, size_t budget, uint32_t manner, sn_remat_list *out) {
    s->turns = NULL;
    return run(s, budget, manner, out);
}

bool sn_remat_greedy_run_turns(sn_remat_greedy *s, size_t budget, uint32_t manner, uint32_t *turns,
                               sn_remat_list *out) {
    s->turns = turns;
    return run(s, budget, manner, out);
}

uint32_t sn_remat_greedy_reached(const sn_remat_greedy *s) {
    return s->now;
}

bool sn_remat_greedy_turn(sn_remat_greedy *s, uint32_t chance) {
    uint32_t n = 0;
    for (uint32_t d = 0; d < s->depth; d++)
        n += s->stack[d].next > 1;
    if (n == 0)
        return false;
    n = chance % n;
    for (uint32_t d = 0; d < s->depth; d++) {
        const frame f = s->stack[d];
        if (f.next < 2 || n-- > 0)
            continue;
        uint32_t *const turns = s->turns + s->g->p->ops[f.op].in;
        const uint32_t u = turns[f.next - 1];
        memmove(turns + 1, turns, (f.next - 1) * sizeof u);
        turns[0] = u;
        break;
    }
    return true;
}
