/* test_remat.c: rules of the recompute search. Programs and the replay of answers are in
 * support/remat_program. */
#include "support/remat_program.h"

#include <stdlib.h>
#include <string.h>

static sn_remat_program_t *program(void **state) {
    sn_remat_program_t *p = calloc(1, sizeof *p);
    (void)state;
    assert_non_null(p);
    return p;
}

static sn_zone *zone_of(void **state) {
    sn_zone *z;
    snug_error err;
    expect_ok(sn_zone_create(*state, SN_MEM_PLAN, &z, &err), &err);
    return z;
}

static sn_remat_result solve(sn_zone *z, const sn_remat_problem *p, size_t budget, uint64_t work) {
    const sn_remat_limits l = {budget, work};
    sn_remat_result r;
    snug_error err;
    expect_ok(sn_remat(z, p, &l, &r, &err), &err);
    return r;
}

/* Every budget from the base peak down to the floor has a legal answer; below it, numbers. */
static void sweep_budgets(void **state, const sn_remat_problem *p, uint64_t work) {
    sn_zone *z = zone_of(state);
    const size_t peak = sn_remat_base_peak(p);
    sn_remat_result r = solve(z, p, peak, work);
    sn_remat_expect_legal(p, &r, peak);
    assert_true(r.cost <= sn_remat_base_cost(p) * (1 + 1e-12));
    const size_t floor = r.bound > 0 ? solve(z, p, r.bound - 1, work).floor : 0;
    assert_true(floor >= r.bound && floor <= peak);
    for (int k = 0; k <= 4; k++) {
        const size_t budget = floor + (peak - floor) / 4 * (size_t)k;
        r = solve(z, p, budget, work);
        sn_remat_expect_legal(p, &r, budget);
    }
    sn_zone_destroy(z);
}

static void test_random_programs_get_legal_answers_down_to_the_floor(void **state) {
    sn_remat_program_t *p = program(state);
    for (uint64_t seed = 0; seed < 60; seed++) {
        sn_remat_random(p, seed, 1 + (uint32_t)(seed * 11 % 90), seed % 3 > 0);
        sweep_budgets(state, &p->problem, 0);
    }
    free(p);
}

static void test_improved_answers_are_legal(void **state) {
    sn_remat_program_t *p = program(state);
    for (uint64_t seed = 100; seed < 130; seed++) {
        sn_remat_random(p, seed, 20 + (uint32_t)(seed * 11 % 90), seed % 3 > 0);
        sweep_budgets(state, &p->problem, SN_REMAT_WORK_SECOND / 200);
    }
    free(p);
}

/* Training steps, at half of the bytes. */
static void test_more_work_never_costs_more(void **state) {
    sn_remat_program_t *p = program(state);
    for (uint64_t seed = 0; seed < 6; seed++) {
        sn_zone *z = zone_of(state);
        sn_remat_step(p, seed, 120);
        const size_t budget = sn_remat_base_peak(&p->problem) / 2;
        const double greedy = solve(z, &p->problem, budget, 0).cost;
        const sn_remat_result r = solve(z, &p->problem, budget, SN_REMAT_WORK_SECOND / 20);
        sn_remat_expect_legal(&p->problem, &r, budget);
        assert_true(r.cost <= greedy);
        sn_zone_destroy(z);
    }
    free(p);
}

static const struct CMUnitTest tests[] = {
    engine_test(test_random_programs_get_legal_answers_down_to_the_floor),
    engine_test(test_improved_answers_are_legal),
    engine_test(test_more_work_never_costs_more),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
