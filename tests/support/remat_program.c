/* remat_program.c: random programs for the recompute search, and its rules as a replay: resident
 * values are marked, bytes added up anew at each computation. Slow and plain on purpose. */
#include "support/remat_program.h"

#include <stdlib.h>
#include <string.h>

static uint64_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

static void begin(sn_remat_program_t *p, uint64_t seed) {
    random_state = 2 * seed + 1;
    draw(2);
    p->n_inputs = 0;
    p->problem = (sn_remat_problem){.ops = p->ops, .inputs = p->inputs};
}

static sn_remat_op *add_op(sn_remat_program_t *p, size_t bytes, double cost) {
    sn_remat_op *o = &p->ops[p->problem.n++];
    *o = (sn_remat_op){.bytes = bytes,
                       .cost = cost,
                       .in = p->n_inputs,
                       .not_after = SN_REMAT_NONE,
                       .takes = SN_REMAT_NONE};
    return o;
}

static void add_input(sn_remat_program_t *p, uint32_t u) {
    p->inputs[p->n_inputs++] = u;
    p->ops[p->problem.n - 1].n_in++;
}

static void add_rules(sn_remat_program_t *p, uint32_t i, uint32_t n) {
    sn_remat_op *o = &p->ops[i];
    o->work_bytes = draw(3) == 0 ? 64 * draw(8) : 0;
    o->once = draw(6) == 0;
    o->keep = draw(12) == 0;
    if (draw(6) == 0 && i + 1 < n)
        o->not_after = i + 1 + draw(n - i - 1);
    if (draw(3) == 0 && o->n_in > 0)
        o->takes = p->inputs[o->in + draw(o->n_in)];
}

void sn_remat_random(sn_remat_program_t *p, uint64_t seed, uint32_t n, bool rules) {
    begin(p, seed);
    p->problem.fixed_bytes = 64 * draw(10);
    for (uint32_t i = 0; i < n; i++) {
        add_op(p, 64 * (size_t)draw(i % 5 == 0 ? 40 : 12), 1 + draw(20));
        for (uint32_t k = draw(3) + (i > 0); k > 0 && i > 0; k--) {
            const uint32_t back = draw(3) == 0 ? i : i < 6 ? i : 6;
            add_input(p, i - 1 - draw(back));
        }
        if (rules)
            add_rules(p, i, n);
    }
}

void sn_remat_step(sn_remat_program_t *p, uint64_t seed, uint32_t n) {
    const uint32_t half = n / 2;
    begin(p, seed);
    p->problem.fixed_bytes = 1000;
    for (uint32_t i = 0; i < half; i++) {
        const size_t bytes = (size_t)4096 >> (4 * i / half);
        add_op(p, i % 3 == 1 ? bytes : bytes / 2 + 64 * draw(8),
               i % 3 == 0 ? 40 + draw(60) : 3 + draw(6));
        if (i > 0)
            add_input(p, i - 1);
        if (i % 8 == 7)
            add_input(p, i - 7);
    }
    for (uint32_t i = half; i < n; i++) {
        const uint32_t of = n - 1 - i < half ? n - 1 - i : 0;
        add_op(p, p->ops[of].bytes, 2 * p->ops[of].cost);
        add_input(p, i - 1);
        add_input(p, of);
    }
}

/* An operator that reads `one`, and `other` unless it is NONE; its number. */
static uint32_t add_from(sn_remat_program_t *p, size_t bytes, uint32_t one, uint32_t other) {
    add_op(p, bytes, 10);
    if (one != SN_REMAT_NONE)
        add_input(p, one);
    if (other != SN_REMAT_NONE)
        add_input(p, other);
    return p->problem.n - 1;
}

/* A weight gradient: its sum lies elsewhere. */
static void add_sum(sn_remat_program_t *p, uint32_t one, uint32_t other) {
    p->ops[add_from(p, 0, one, other)].once = true;
}

void sn_remat_skips(sn_remat_program_t *p, int levels) {
    enum { MOST = 8 };
    const uint32_t none = SN_REMAT_NONE;
    uint32_t down[MOST], up[MOST], out[MOST], skip[MOST], small[MOST];
    size_t bytes = (size_t)1024 << 2 * (levels - 1);
    begin(p, 0);
    uint32_t at = add_from(p, bytes / 8, none, none);
    for (int i = 0; i < levels; i++, bytes /= 4) {
        down[i] = add_from(p, bytes, add_from(p, bytes, at, none), none);
        at = small[i] = add_from(p, bytes / 4, down[i], none);
    }
    at = add_from(p, bytes, at, none);
    p->ops[at].work_bytes = (size_t)2560 << 2 * (levels - 1);
    for (int i = levels; i-- > 0;) {
        bytes *= 4;
        up[i] = add_from(p, bytes, at, none);
        at = out[i] = add_from(p, bytes, add_from(p, 2 * bytes, down[i], up[i]), none);
    }
    at = add_from(p, bytes, add_from(p, 64, at, none), none);
    for (int i = 0; i < levels; i++, bytes /= 4) {
        const uint32_t d = add_from(p, bytes, at, out[i]), joined = add_from(p, 2 * bytes, d, none);
        add_sum(p, down[i], d);
        add_sum(p, up[i], d);
        skip[i] = add_from(p, bytes, joined, none);
        const uint32_t back = add_from(p, bytes, joined, none);
        add_sum(p, back, i + 1 < levels ? out[i + 1] : small[i]);
        at = add_from(p, bytes / 4, back, none);
    }
    for (int i = levels; i-- > 0;) {
        bytes *= 4;
        at = add_from(p, bytes, skip[i], add_from(p, bytes, at, small[i]));
        add_sum(p, down[i], at);
        at = add_from(p, i > 0 ? bytes : 64, at, none);
    }
}

/* --- the replay ------------------------------------------------------------------------------- */
typedef struct {
    bool resident[SN_REMAT_TEST_OPS];
    uint32_t n_computed[SN_REMAT_TEST_OPS];
    size_t peak;
    double cost;
} replay;

/* Whether the value is freed among the events right behind, before the next computation. */
static bool dies_here(const sn_remat_result *r, uint32_t at, uint32_t value) {
    for (uint32_t k = at + 1; k < r->n_events && r->events[k].frees; k++)
        if (r->events[k].op == value)
            return true;
    return false;
}

static size_t bytes_at(const sn_remat_problem *p, const sn_remat_result *r, uint32_t at,
                       const replay *s) {
    const sn_remat_op *o = &p->ops[r->events[at].op];
    size_t sum = p->fixed_bytes + o->bytes + o->work_bytes;
    for (uint32_t i = 0; i < p->n; i++)
        sum += s->resident[i] ? p->ops[i].bytes : 0;
    if (o->takes != SN_REMAT_NONE && dies_here(r, at, o->takes)) {
        const size_t taken = p->ops[o->takes].bytes;
        sum -= taken < o->bytes ? taken : o->bytes;
    }
    return sum;
}

static void replay_compute(const sn_remat_problem *p, const sn_remat_result *r, uint32_t at,
                           replay *s) {
    const uint32_t op = r->events[at].op;
    const sn_remat_op *o = &p->ops[op];
    assert_false(s->resident[op]);
    for (uint32_t k = 0; k < o->n_in; k++)
        assert_true(s->resident[p->inputs[o->in + k]]);
    assert_true(s->n_computed[op] == 0 || !o->once);
    assert_true(o->not_after == SN_REMAT_NONE || s->n_computed[o->not_after] == 0);
    const size_t bytes = bytes_at(p, r, at, s);
    s->peak = bytes > s->peak ? bytes : s->peak;
    s->cost += o->cost;
    s->resident[op] = true;
    s->n_computed[op]++;
}

void sn_remat_expect_legal(const sn_remat_problem *p, const sn_remat_result *r, size_t budget) {
    replay *s = calloc(1, sizeof *s);
    uint32_t next = 0; /* the next first computation */
    assert_non_null(s);
    assert_true(r->fits);
    s->peak = p->fixed_bytes;
    for (uint32_t at = 0; at < r->n_events; at++) {
        const uint32_t op = r->events[at].op;
        assert_true(op < p->n);
        if (r->events[at].frees) {
            assert_true(s->resident[op] && !p->ops[op].keep);
            s->resident[op] = false;
            continue;
        }
        if (s->n_computed[op] == 0)
            assert_int_equal(op, next++);
        replay_compute(p, r, at, s);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        assert_true(s->n_computed[i] > 0);
        assert_true(!p->ops[i].keep || (s->resident[i] && s->n_computed[i] == 1));
    }
    assert_int_equal(s->peak, r->peak);
    assert_true(r->peak <= budget);
    assert_true(s->cost <= r->cost * (1 + 1e-12) && s->cost >= r->cost * (1 - 1e-12));
    free(s);
}

double sn_remat_base_cost(const sn_remat_problem *p) {
    double sum = 0;
    for (uint32_t i = 0; i < p->n; i++)
        sum += p->ops[i].cost;
    return sum;
}

static uint32_t last_reader(const sn_remat_problem *p, uint32_t i) {
    uint32_t last = p->ops[i].keep ? p->n - 1 : i;
    for (uint32_t j = i + 1; j < p->n; j++)
        for (uint32_t k = 0; k < p->ops[j].n_in; k++)
            if (p->inputs[p->ops[j].in + k] == i)
                last = j > last ? j : last;
    return last;
}

size_t sn_remat_base_peak(const sn_remat_problem *p) {
    size_t peak = p->fixed_bytes, *at = calloc(p->n + 1, sizeof *at);
    uint32_t *last = calloc(p->n + 1, sizeof *last);
    assert_non_null(at);
    assert_non_null(last);
    for (uint32_t i = 0; i < p->n; i++) {
        last[i] = last_reader(p, i);
        for (uint32_t j = i; j <= last[i]; j++)
            at[j] += p->ops[i].bytes;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const sn_remat_op *o = &p->ops[i];
        size_t sum = p->fixed_bytes + at[i] + o->work_bytes;
        if (o->takes != SN_REMAT_NONE && last[o->takes] == i && !p->ops[o->takes].keep)
            sum -= p->ops[o->takes].bytes < o->bytes ? p->ops[o->takes].bytes : o->bytes;
        peak = sum > peak ? sum : peak;
    }
    free(at);
    free(last);
    return peak;
}
