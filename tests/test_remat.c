/* test_remat.c: rules of the recompute search. Programs and the replay of answers are in
 * support/remat_program. */
#include "support/remat_exact.h"
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
    const sn_remat_limits l = {.budget = budget, .work = work};
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
static void test_work_makes_training_steps_cheaper(void **state) {
    sn_remat_program_t *p = program(state);
    for (uint64_t seed = 0; seed < 6; seed++) {
        sn_zone *z = zone_of(state);
        sn_remat_step(p, seed, 120);
        const size_t budget = sn_remat_base_peak(&p->problem) / 2;
        const double greedy = solve(z, &p->problem, budget, 0).cost;
        const sn_remat_result r = solve(z, &p->problem, budget, SN_REMAT_WORK_SECOND / 20);
        sn_remat_expect_legal(&p->problem, &r, budget);
        assert_true(r.cost < greedy); /* there is always something to gain in these */
        sn_zone_destroy(z);
    }
    free(p);
}

/* Small programs where everything can be looked at. */
static void test_small_programs_meet_the_exact_floor_and_cost(void **state) {
    sn_remat_program_t *p = program(state);
    int n_floors = 0, n_costs = 0, n_programs = 0;
    for (uint64_t seed = 0; seed < 80; seed++, n_programs++) {
        sn_zone *z = zone_of(state);
        sn_remat_random(p, seed, 3 + (uint32_t)(seed % 5), seed % 2 > 0);
        const size_t exact = sn_remat_exact_floor(&p->problem);
        const size_t bound = solve(z, &p->problem, SIZE_MAX, 0).bound;
        assert_true(bound <= exact);
        if (bound > 0) {
            const sn_remat_result none = solve(z, &p->problem, bound - 1, 200000);
            assert_false(none.fits);
            assert_true(none.floor >= exact);
            n_floors += none.floor == exact;
        }
        const size_t budget = exact + 128;
        const sn_remat_result r = solve(z, &p->problem, budget, 200000);
        const double cost = sn_remat_exact_cost(&p->problem, budget);
        if (r.fits) {
            sn_remat_expect_legal(&p->problem, &r, budget);
            assert_true(r.cost >= cost);
            n_costs += r.cost == cost;
        }
        sn_zone_destroy(z);
    }
    assert_true(n_floors >= n_programs * 9 / 10);
    assert_true(n_costs >= n_programs * 9 / 10);
    free(p);
}

/* Gradients that wait for their skip connection are dropped and made again, by the way that needs
 * least: an operator's inputs in the right order. */
static void test_skip_connections_need_little_more_than_one_operator(void **state) {
    sn_remat_program_t *p = program(state);
    for (int levels = 1; levels <= 4; levels++) {
        sn_zone *z = zone_of(state);
        sn_remat_skips(p, levels);
        const sn_remat_result none = solve(z, &p->problem, 0, 200000);
        assert_false(none.fits);
        if (none.floor > none.bound + none.bound / 10)
            fail_msg("%d levels: %zu bytes, the largest operator has %zu", levels, none.floor,
                     none.bound);
        const sn_remat_result r = solve(z, &p->problem, none.floor, 200000);
        sn_remat_expect_legal(&p->problem, &r, none.floor);
        sn_zone_destroy(z);
    }
    free(p);
}

static void test_many_operators_get_a_legal_answer(void **state) {
    sn_remat_program_t *p = program(state);
    sn_zone *z = zone_of(state);
    sn_remat_step(p, 3, 10000);
    const size_t budget = sn_remat_base_peak(&p->problem) / 5;
    const sn_remat_result r = solve(z, &p->problem, budget, SN_REMAT_WORK_SECOND / 20);
    sn_remat_expect_legal(&p->problem, &r, budget);
    assert_true(r.cost > sn_remat_base_cost(&p->problem));
    assert_true(r.cost < 1.4 * sn_remat_base_cost(&p->problem));
    sn_zone_destroy(z);
    free(p);
}

static void test_equal_problems_give_equal_events(void **state) {
    sn_remat_program_t *p = program(state);
    sn_zone *z = zone_of(state), *other = zone_of(state);
    sn_remat_step(p, 8, 150);
    const size_t budget = sn_remat_base_peak(&p->problem) / 2;
    const sn_remat_result a = solve(z, &p->problem, budget, 3000000);
    const sn_remat_result b = solve(other, &p->problem, budget, 3000000);
    assert_int_equal(a.n_events, b.n_events);
    for (uint32_t i = 0; i < a.n_events; i++) {
        assert_int_equal(a.events[i].op, b.events[i].op);
        assert_int_equal(a.events[i].frees, b.events[i].frees);
    }
    sn_zone_destroy(z);
    sn_zone_destroy(other);
    free(p);
}

/* With room for it at no cost, and with much more work than is needed. */
static void test_what_costs_nothing_ends_the_search(void **state) {
    sn_remat_program_t *p = program(state);
    sn_zone *z = zone_of(state);
    sn_remat_step(p, 5, 100);
    for (uint32_t i = 0; i < 50; i++)
        p->ops[i].cost = 0;
    const size_t budget = sn_remat_base_peak(&p->problem) / 2;
    const sn_remat_result r = solve(z, &p->problem, budget, UINT64_MAX / 4);
    sn_remat_expect_legal(&p->problem, &r, budget);
    assert_true(r.cost <= sn_remat_base_cost(&p->problem) * (1 + 1e-12));
    sn_zone_destroy(z);
    free(p);
}

/* a -> b -> c -> d(c, a): a is cheap to have again. Rules forbid it one by one. */
static void test_each_rule_forbids_the_second_computation(void **state) {
    const uint32_t inputs[] = {0, 1, 2, 0};
    sn_remat_op ops[4] = {{.bytes = 100, .cost = 1, .in = 0, .n_in = 0},
                          {.bytes = 10, .cost = 1, .in = 0, .n_in = 1},
                          {.bytes = 100, .cost = 1, .in = 1, .n_in = 1},
                          {.bytes = 10, .cost = 1, .in = 2, .n_in = 2}};
    for (int i = 0; i < 4; i++)
        ops[i].not_after = ops[i].takes = SN_REMAT_NONE;
    ops[2].bytes = 20;
    ops[2].work_bytes = 80;
    const sn_remat_problem p = {ops, 4, inputs, 5};
    sn_zone *z = zone_of(state);
    const size_t apart = 135, together = 215; /* the work of c beside b, without and with a */
    const sn_remat_result r = solve(z, &p, apart, 0);
    sn_remat_expect_legal(&p, &r, apart);
    assert_true(r.cost == 5 && r.peak == apart);
    ops[0].once = true;
    assert_int_equal(solve(z, &p, apart, 1000).floor, together);
    ops[0].once = false;
    ops[0].keep = true;
    assert_int_equal(solve(z, &p, apart, 1000).floor, together);
    ops[0].keep = false;
    ops[0].not_after = 2;
    assert_int_equal(solve(z, &p, apart, 1000).floor, together);
    ops[0].not_after = 3;
    assert_true(solve(z, &p, apart, 1000).fits);
    sn_zone_destroy(z);
}

static void test_a_taken_input_shares_its_bytes(void **state) {
    const uint32_t inputs[] = {0, 1};
    sn_remat_op ops[3] = {
        {.bytes = 100, .not_after = SN_REMAT_NONE, .takes = SN_REMAT_NONE},
        {.bytes = 80, .in = 0, .n_in = 1, .not_after = SN_REMAT_NONE, .takes = SN_REMAT_NONE},
        {.bytes = 90, .in = 1, .n_in = 1, .not_after = SN_REMAT_NONE, .takes = SN_REMAT_NONE}};
    const sn_remat_problem p = {ops, 3, inputs, 0};
    sn_zone *z = zone_of(state);
    assert_int_equal(solve(z, &p, 1000, 0).peak, 180);
    ops[1].takes = 0;
    assert_int_equal(solve(z, &p, 1000, 0).peak, 170);
    ops[2].takes = 1;
    assert_int_equal(solve(z, &p, 1000, 0).peak, 100);
    ops[0].keep = true;
    assert_int_equal(solve(z, &p, 1000, 0).peak, 190);
    sn_zone_destroy(z);
}

static void expect_refused(sn_zone *z, const sn_remat_problem *p, snug_status wanted,
                           const char *text) {
    sn_remat_result r = {.n_events = 77};
    snug_error err;
    expect_status(sn_remat(z, p, &(sn_remat_limits){.budget = 1}, &r, &err), wanted, &err);
    expect_text(err.text, text);
    assert_int_equal(r.n_events, 77);
}

static void test_programs_that_break_the_rules_are_refused(void **state) {
    const sn_remat_op good[2] = {
        {.bytes = 8, .not_after = SN_REMAT_NONE, .takes = SN_REMAT_NONE},
        {.bytes = 8, .n_in = 1, .not_after = SN_REMAT_NONE, .takes = SN_REMAT_NONE}};
    const uint32_t inputs[] = {0}, late[] = {1};
    sn_remat_op ops[2];
    sn_remat_problem p = {ops, 2, late, 0};
    sn_zone *z = zone_of(state);
    memcpy(ops, good, sizeof ops);
    expect_refused(z, &p, SNUG_E_INVALID, "op 1 reads op 1");
    p.inputs = inputs;
    ops[1].not_after = 1;
    expect_refused(z, &p, SNUG_E_INVALID, "not computed after op 1");
    memcpy(ops, good, sizeof ops);
    ops[1].takes = 1;
    expect_refused(z, &p, SNUG_E_INVALID, "takes op 1");
    memcpy(ops, good, sizeof ops);
    ops[1].cost = -1;
    expect_refused(z, &p, SNUG_E_INVALID, "costs");
    memcpy(ops, good, sizeof ops);
    ops[1].work_bytes = SIZE_MAX - 9;
    expect_refused(z, &p, SNUG_E_OVERFLOW, "smaller batch");
    p.n = 0;
    assert_true(solve(z, &p, 0, 100).fits);
    sn_zone_destroy(z);
}

static snug_status solve_tight(snug_engine *e, void *ctx, snug_error *err) {
    const sn_remat_program_t *p = ctx;
    sn_remat_result r;
    sn_zone *z;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    const size_t budget = sn_remat_base_peak(&p->problem) / 2;
    snug_status status =
        sn_remat(z, &p->problem, &(sn_remat_limits){.budget = budget, .work = 50000}, &r, err);
    if (status == SNUG_OK)
        status = sn_remat(z, &p->problem, &(sn_remat_limits){.budget = 1, .work = 50000}, &r, err);
    sn_zone_destroy(z);
    return status;
}

static void test_any_failed_request_is_a_clean_error(void **state) {
    sn_remat_program_t *p = program(state);
    sn_remat_step(p, 2, 60);
    sn_fault_sweep(solve_tight, p);
    free(p);
}

static const struct CMUnitTest tests[] = {
    engine_test(test_random_programs_get_legal_answers_down_to_the_floor),
    engine_test(test_improved_answers_are_legal),
    engine_test(test_work_makes_training_steps_cheaper),
    engine_test(test_small_programs_meet_the_exact_floor_and_cost),
    engine_test(test_skip_connections_need_little_more_than_one_operator),
    engine_test(test_many_operators_get_a_legal_answer),
    engine_test(test_equal_problems_give_equal_events),
    engine_test(test_what_costs_nothing_ends_the_search),
    engine_test(test_each_rule_forbids_the_second_computation),
    engine_test(test_a_taken_input_shares_its_bytes),
    engine_test(test_programs_that_break_the_rules_are_refused),
    cmocka_unit_test(test_any_failed_request_is_a_clean_error),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
