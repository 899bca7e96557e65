/* remat_exact.c: shortest ways between states (how many operators have been computed for the first
 * time, which values are resident). A step computes one operator and then frees any of what is
 * there; which operators may be computed follows from the state, as first computations come in
 * order. */
#include "support/remat_exact.h"

enum { SETS = 1 << SN_REMAT_EXACT_OPS, STATES = (SN_REMAT_EXACT_OPS + 1) * SETS };

typedef struct {
    const sn_remat_problem *p;
    double cost[STATES]; /* of the cheapest way so far; negative: none */
    bool done[STATES];
} ways;

static uint32_t inputs_of(const sn_remat_problem *p, uint32_t op) {
    uint32_t set = 0;
    for (uint32_t k = 0; k < p->ops[op].n_in; k++)
        set |= 1u << p->inputs[p->ops[op].in + k];
    return set;
}

static uint32_t kept(const sn_remat_problem *p) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < p->n; i++)
        set |= (uint32_t)p->ops[i].keep << i;
    return set;
}

static bool may_compute(const sn_remat_problem *p, uint32_t n_first, uint32_t set, uint32_t op) {
    const sn_remat_op *o = &p->ops[op];
    if (op > n_first || (set & 1u << op) || (inputs_of(p, op) & ~set))
        return false;
    return op == n_first ||
           (!o->once && (o->not_after == SN_REMAT_NONE || o->not_after >= n_first));
}

/* Bytes while op is computed with `set` resident, and `left` afterwards. */
static size_t bytes_of_step(const sn_remat_problem *p, uint32_t set, uint32_t op, uint32_t left) {
    const sn_remat_op *o = &p->ops[op];
    size_t sum = p->fixed_bytes + o->bytes + o->work_bytes;
    for (uint32_t i = 0; i < p->n; i++)
        sum += set >> i & 1 ? p->ops[i].bytes : 0;
    if (o->takes != SN_REMAT_NONE && !(left >> o->takes & 1))
        sum -= p->ops[o->takes].bytes < o->bytes ? p->ops[o->takes].bytes : o->bytes;
    return sum;
}

static void step_from(ways *w, uint32_t state, size_t budget) {
    const sn_remat_problem *p = w->p;
    const uint32_t n_first = state / SETS, set = state % SETS;
    for (uint32_t op = 0; op < p->n; op++) {
        if (!may_compute(p, n_first, set, op))
            continue;
        const uint32_t all = set | 1u << op, must = all & kept(p);
        const uint32_t next_first = n_first + (op == n_first);
        const double cost = w->cost[state] + p->ops[op].cost;
        for (uint32_t left = all;; left = (left - 1) & all) {
            const uint32_t next = next_first * SETS + left;
            if ((left & must) == must && bytes_of_step(p, set, op, left) <= budget &&
                (w->cost[next] < 0 || cost < w->cost[next]))
                w->cost[next] = cost;
            if (left == 0)
                break;
        }
    }
}

double sn_remat_exact_cost(const sn_remat_problem *p, size_t budget) {
    static ways w;
    w.p = p;
    for (uint32_t i = 0; i < STATES; i++) {
        w.cost[i] = i == 0 ? 0 : -1;
        w.done[i] = false;
    }
    for (;;) {
        uint32_t best = STATES;
        for (uint32_t i = 0; i < STATES; i++)
            if (!w.done[i] && w.cost[i] >= 0 && (best == STATES || w.cost[i] < w.cost[best]))
                best = i;
        if (best == STATES)
            return -1;
        if (best / SETS == p->n)
            return w.cost[best];
        w.done[best] = true;
        step_from(&w, best, budget);
    }
}

/* Sizes are multiples of 64. */
size_t sn_remat_exact_floor(const sn_remat_problem *p) {
    size_t budget = p->fixed_bytes;
    while (sn_remat_exact_cost(p, budget) < 0)
        budget += 64;
    return budget;
}
