/* remat_search.c: better lists of computations, by taking a good one apart here and there and
 * putting it together again. One trial:
 *
 *   upset    take some repeated computations out, put others in, or move one
 *   repair   while some place needs more than the budget: of the values that only wait there, drop
 *            the one that is cheapest to have again (with some noise), and compute it, and what it
 *            needs, before its next use
 *   prune    take out what there is room to keep after all
 *
 * A trial that is not much dearer than the list it came from takes its place; "much" shrinks over a
 * round (annealing). Rounds grow longer, most start from the best list.
 *
 * Invariants:
 * 1. Every list obeys the rules of remat.h except, between upset and repair, for the budget.
 * 2. The answer depends on the problem and the limits alone: no clock, no address, and no function
 *    of the C library that rounds its own way. */
#include "plan/remat_parts.h"

#include <math.h>
#include <string.h>

enum { CHAIN_MAX = 128, DEPTH_MAX = 48 }; /* of the computations that bring one value back */
enum { REPAIRS_MAX = 40 };
enum { UPSETS_MAX = 3, RUN_MAX = 4, NEAR = 12 };
enum { MOST_ROUNDS = 16 }; /* of the longest kind */
enum { STEPS = 64 };       /* of cooling in a round */
#define SEED         UINT64_C(0x9e3779b97f4a7c15)
#define COOLING      0.93            /* a step; to 1 % over a round */
#define WARM         2.0             /* repeated computations, to start with */
#define FIRST_ROUND  UINT64_C(20000) /* work per operator */
#define LEAST_ROUNDS UINT64_C(1000)  /* first rounds' worth of work before giving up */

typedef struct {
    uint32_t ops[CHAIN_MAX];
    uint32_t n, place;
    double cost;
} chain;

/* How a trial decides; drawn anew for each. */
typedef struct {
    uint32_t stretch; /* of 2 times that an input is kept for longer instead of computed again */
    uint32_t waiting; /* 0, 1, 2: how much a long wait counts for dropping */
    double noise;
} manner;

typedef struct {
    const sn_remat_program *g;
    size_t budget;
    uint64_t random, spent, limit;
    sn_remat_list now, trial, best;
    uint32_t *in_chain; /* per operator: the number of the chain it was last in */
    uint32_t chain_id;
    uint32_t *next_use; /* per operator: of what waits at the place that is repaired */
    manner how;
} search;

/* --- chance ----------------------------------------------------------------------------------- */
static uint64_t draw_bits(search *s) {
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

static uint32_t draw(search *s, uint32_t below) {
    return (uint32_t)(((draw_bits(s) >> 32) * below) >> 32);
}

static double draw_unit(search *s) {
    return (double)(draw_bits(s) >> 11) / 9007199254740992.0;
}

/* About exponential, mean 1: whole octaves by bits, evenly within. */
static double draw_patience(search *s) {
    const double octaves = (double)__builtin_ctzll(draw_bits(s) | UINT64_C(1) << 40);
    return 0.6931471805599453 * (octaves + draw_unit(s));
}

/* --- chains ----------------------------------------------------------------------------------- */
static const sn_remat_op *op_of(const search *s, uint32_t op) {
    return &s->g->p->ops[op];
}

static uint32_t input_of(const search *s, const sn_remat_op *o, uint32_t k) {
    return s->g->p->inputs[o->in + k];
}

static void measure(search *s) {
    s->spent += s->trial.n + s->g->n_inputs;
    sn_remat_measure(s->g, &s->trial);
}

/* Whether bytes more have room at all places in [from, to]. */
static bool has_room(search *s, uint32_t from, uint32_t to, size_t bytes) {
    return bytes <= s->budget && sn_remat_below(&s->trial, from, to, s->budget - bytes, &s->spent);
}

static bool may_repeat(const search *s, uint32_t op, uint32_t place) {
    const sn_remat_op *o = op_of(s, op);
    return !o->once && !o->keep &&
           (o->not_after == SN_REMAT_NONE || s->trial.first[o->not_after] >= place);
}

/* Whether the input is there at the place, or can be kept until then. */
static bool is_at_hand(search *s, const chain *c, uint32_t u, uint32_t instance) {
    const sn_remat_list *l = &s->trial;
    if (l->end[instance] >= c->place || s->in_chain[u] == s->chain_id)
        return true;
    if (may_repeat(s, u, c->place) && draw(s, 2) >= s->how.stretch)
        return false;
    return has_room(s, l->end[instance] + 1, c->place, op_of(s, u)->bytes);
}

/* The computations that bring `op` back before the chain's place, in order. */
static bool extend_chain(search *s, chain *c, uint32_t op, uint32_t depth) {
    const sn_remat_op *o = op_of(s, op);
    if (depth == DEPTH_MAX || !may_repeat(s, op, c->place))
        return false;
    s->spent += 8;
    for (uint32_t k = 0; k < o->n_in; k++) {
        const uint32_t u = input_of(s, o, k);
        const uint32_t instance = sn_remat_instance(&s->trial, u, c->place);
        if (!is_at_hand(s, c, u, instance) && !extend_chain(s, c, u, depth + 1))
            return false;
    }
    if (c->n == CHAIN_MAX)
        return false;
    c->ops[c->n++] = op;
    c->cost += o->cost;
    s->in_chain[op] = s->chain_id;
    return true;
}

/* The operator has been computed before the place. */
static bool find_chain(search *s, chain *c, uint32_t op, uint32_t place) {
    c->n = 0;
    c->cost = 0;
    c->place = place;
    s->chain_id++;
    return extend_chain(s, c, op, 0);
}

static bool insert_chain(search *s, const chain *c) {
    if (s->trial.n + c->n > s->g->most)
        return false;
    sn_remat_insert(&s->trial, c->place, c->ops, c->n);
    measure(s);
    return true;
}

/* --- repair ----------------------------------------------------------------------------------- */
/* The first use behind the place of every value that has one. */
static void find_next_uses(search *s, uint32_t place) {
    const sn_remat_list *l = &s->trial;
    for (uint32_t k = l->n - 1; k > place; k--) {
        const sn_remat_op *o = op_of(s, l->ops[k]);
        for (uint32_t j = 0; j < o->n_in; j++)
            s->next_use[input_of(s, o, j)] = k;
    }
    s->spent += l->n - place;
}

static bool reads(const search *s, const sn_remat_op *o, uint32_t u) {
    for (uint32_t k = 0; k < o->n_in; k++)
        if (input_of(s, o, k) == u)
            return true;
    return false;
}

/* The cost for what it brings: bytes up to those that are missing, and how long they are free. */
static double score_of(search *s, const chain *c, size_t bytes, uint32_t wait) {
    const size_t over = s->trial.peak - s->budget;
    double gain = (double)(bytes < over ? bytes : over);
    if (s->how.waiting > 0)
        gain *= s->how.waiting == 1 ? sqrt((double)wait) : (double)wait;
    const double up = 1 + s->how.noise * draw_unit(s), down = 1 + s->how.noise * draw_unit(s);
    return c->cost * up / (gain * down);
}

/* The best chain for a value that waits at the peak; false where there is none. */
static bool find_drop(search *s, chain *best) {
    const sn_remat_list *l = &s->trial;
    const uint32_t place = l->peak_at;
    const sn_remat_op *here = op_of(s, l->ops[place]);
    double least = 0;
    chain c;
    best->n = 0;
    find_next_uses(s, place);
    for (uint32_t k = 0; k < place; k++) {
        const uint32_t u = l->ops[k];
        const sn_remat_op *o = op_of(s, u);
        if (l->end[k] <= place || o->bytes == 0 || o->keep || reads(s, here, u) ||
            !find_chain(s, &c, u, s->next_use[u]))
            continue;
        const double score = score_of(s, &c, o->bytes, c.place - place);
        if (best->n == 0 || score < least) {
            least = score;
            *best = c;
        }
    }
    s->spent += place / 4;
    return best->n > 0;
}

/* Gives up where the cost exceeds the limit on the way. */
static bool repair(search *s, double limit) {
    chain c;
    for (int k = 0; k < REPAIRS_MAX && s->trial.peak > s->budget; k++)
        if (s->trial.cost > limit || !find_drop(s, &c) || !insert_chain(s, &c))
            return false;
    return s->trial.peak <= s->budget;
}

/* --- prune ------------------------------------------------------------------------------------ */
/* Whether the instance before can be kept instead. */
static bool can_remove(search *s, uint32_t place) {
    const sn_remat_list *l = &s->trial;
    const uint32_t op = l->ops[place], end = l->end[l->before[place]];
    const bool shared = op_of(s, l->ops[end])->takes == op;
    return has_room(s, shared ? end : end + 1, place - 1, op_of(s, op)->bytes);
}

static void prune(search *s) {
    while (s->spent < s->limit) {
        const sn_remat_list *l = &s->trial;
        uint32_t best = SN_REMAT_NONE;
        double most = -1; /* what costs nothing goes, too */
        for (uint32_t i = 0; i < l->n_again; i++) {
            const uint32_t place = l->again[i];
            const double gain = op_of(s, l->ops[place])->cost * (0.5 + draw_unit(s));
            if (gain > most && can_remove(s, place)) {
                best = place;
                most = gain;
            }
        }
        s->spent += l->n_again;
        if (best == SN_REMAT_NONE)
            return;
        sn_remat_remove(&s->trial, best);
        measure(s);
    }
}

/* --- upset ------------------------------------------------------------------------------------ */
/* Some repeated computations, each alone or with its neighbours behind. */
static bool take_out(search *s) {
    sn_remat_list *l = &s->trial;
    for (uint32_t k = 1 + draw(s, UPSETS_MAX); k > 0 && l->n_again > 0; k--) {
        const uint32_t i = draw(s, l->n_again), place = l->again[i];
        const uint32_t most = draw(s, 2) == 0 ? 1 : 1 + draw(s, RUN_MAX);
        uint32_t n = 1;
        while (n < most && i + n < l->n_again && l->again[i + n] == place + n)
            n++;
        while (n-- > 0)
            sn_remat_remove(l, place);
        measure(s);
    }
    return true;
}

/* Some input, shortly before it is read. */
static bool put_in(search *s) {
    const sn_remat_list *l = &s->trial;
    const uint32_t reader = draw(s, l->n);
    const sn_remat_op *o = op_of(s, l->ops[reader]);
    if (o->n_in == 0)
        return false;
    const uint32_t u = input_of(s, o, draw(s, o->n_in));
    const uint32_t early = draw(s, 4) == 0 ? draw(s, NEAR) : 0;
    const uint32_t place = reader > early ? reader - early : reader;
    chain c;
    if (sn_remat_instance(l, u, place) == SN_REMAT_NONE || !find_chain(s, &c, u, place))
        return false;
    return insert_chain(s, &c);
}

/* Places [*from, *to] a repeated computation could stand at: behind the computation before, so that
 * its inputs are there, before its first use, and before what overwrites its input. */
static void find_span(const search *s, uint32_t place, uint32_t *from, uint32_t *to) {
    const sn_remat_list *l = &s->trial;
    const uint32_t op = l->ops[place];
    const sn_remat_op *o = op_of(s, op);
    *from = l->before[place] + 1;
    *to = place;
    while (*to + 1 < l->n && !reads(s, op_of(s, l->ops[*to + 1]), op) &&
           !(l->ops[*to + 1] == o->not_after && l->before[*to + 1] == SN_REMAT_NONE))
        ++*to;
}

static bool move_one(search *s) {
    sn_remat_list *l = &s->trial;
    if (l->n_again == 0)
        return false;
    const uint32_t place = l->again[draw(s, l->n_again)], op = l->ops[place];
    uint32_t from, to;
    find_span(s, place, &from, &to);
    s->spent += to - place;
    if (draw(s, 2) == 0) {
        from = place > from + NEAR ? place - NEAR : from;
        to = to > place + NEAR ? place + NEAR : to;
    }
    const uint32_t target = from + draw(s, to - from + 1);
    sn_remat_remove(l, place);
    sn_remat_insert(l, target, &op, 1);
    measure(s);
    return target != place;
}

static bool upset(search *s) {
    const uint32_t which = draw(s, 10);
    s->how = (manner){.stretch = draw(s, 3), .waiting = draw(s, 3), .noise = 2.0 * draw(s, 3)};
    return which < 5 ? take_out(s) : which < 8 ? put_in(s) : move_one(s);
}

/* --- rounds ----------------------------------------------------------------------------------- */
static void try_once(search *s, double warmth, double slack) {
    s->spent += s->g->p->n / 4 + 8;
    sn_remat_list_copy(s->g, &s->trial, &s->now);
    const double limit = s->now.cost + warmth * draw_patience(s);
    if (!upset(s) || !repair(s, limit + slack))
        return;
    prune(s);
    if (s->trial.peak > s->budget || s->trial.cost > limit)
        return;
    sn_remat_list_copy(s->g, &s->now, &s->trial);
    if (s->now.cost < s->best.cost)
        sn_remat_list_copy(s->g, &s->best, &s->now);
}

/* Nothing is repeated that costs anything; sums in another order differ a little. */
static bool is_perfect(const search *s) {
    return s->best.cost <= s->g->base_cost * (1 + 1e-12);
}

static void run_round(search *s, const sn_remat_list *from, uint64_t work) {
    const double overhead = s->best.cost - s->g->base_cost;
    const uint64_t start = s->spent;
    const double each = overhead / (double)(s->best.n_again + 1); /* computation */
    double warmth = WARM * each;
    sn_remat_list_copy(s->g, &s->now, from);
    for (uint64_t step = 1; step <= STEPS; step++, warmth *= COOLING)
        while (s->spent < start + work / STEPS * step && !is_perfect(s))
            try_once(s, warmth, 2 * WARM * each);
}

/* Each round is twice as long as the one before, up to a part of all; the last one takes what is
 * left. Every third starts afresh, the others from the best list. A search that found nothing for
 * three quarters of its time ends. */
static void run_rounds(search *s, const sn_remat_list *start) {
    uint64_t work = FIRST_ROUND * s->g->p->n, improved_at = 0, left;
    const uint64_t least = LEAST_ROUNDS * work;
    for (uint32_t k = 1; (left = s->limit > s->spent ? s->limit - s->spent : 0) >= 3 * work; k++) {
        const double cost = s->best.cost;
        run_round(s, k % 3 == 0 ? start : &s->best, work);
        if (s->best.cost < cost)
            improved_at = s->spent;
        if (is_perfect(s) || (s->spent > least && s->spent / 4 > improved_at))
            return;
        if (work < s->limit / MOST_ROUNDS)
            work *= 2;
    }
    run_round(s, &s->best, left);
}

static snug_status init_search(sn_zone *z, search *s, snug_error *err) {
    const size_t n = s->g->p->n;
    void *mem;
    SNUG_TRY(sn_remat_list_init(z, s->g, &s->now, err));
    SNUG_TRY(sn_remat_list_init(z, s->g, &s->trial, err));
    SNUG_TRY(sn_remat_list_init(z, s->g, &s->best, err));
    SNUG_TRY(sn_zone_alloc(z, 2 * n * sizeof(uint32_t), &mem, err));
    s->in_chain = mem;
    s->next_use = s->in_chain + n;
    return SNUG_OK;
}

snug_status sn_remat_search(sn_zone *z, const sn_remat_program *g, const sn_remat_limits *l,
                            sn_remat_list *list, snug_error *err) {
    search s = {.g = g, .budget = l->budget, .limit = l->work, .random = SEED};
    SNUG_TRY(init_search(z, &s, err));
    sn_remat_list_copy(g, &s.trial, list);
    prune(&s);
    sn_remat_list_copy(g, &s.best, s.trial.peak <= s.budget ? &s.trial : list);
    run_rounds(&s, list);
    sn_remat_list_copy(g, list, &s.best);
    return SNUG_OK;
}
