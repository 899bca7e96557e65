/* test_plan.c: rules of the planner. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <stdio.h>

static snug_engine *engine;
static snug_error err;

static int open_engine(void **state) {
    (void)state;
    return snug_engine_create(&(snug_engine_options){0}, &engine, &err) == SNUG_OK ? 0 : -1;
}

static int close_engine(void **state) {
    (void)state;
    const size_t held = snug_engine_bytes(engine);
    snug_engine_destroy(engine);
    return held == 0 ? 0 : -1;
}

static void test_random_graphs_are_planned_at_the_bound_and_pass_the_checker(void **state) {
    (void)state;
    sn_fake_device device;
    sn_fake_device_init(&device, "fake:0");
    device.workspace_bytes[SN_OP_matmul] = 1000;
    const sn_device *devices[1] = {&device.device};
    const sn_plan_options options = {devices, 1};
    int above = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        sn_graph *g;
        sn_plan *p;
        if (sn_random_graph(engine, seed, 5 + (int)(seed * 7 % 296), &g, &err) != SNUG_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        if (sn_plan_build(engine, g, &options, &p, &err) != SNUG_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        const sn_plan_memory *arena = &p->memories[SN_MEM_FIRST_ARENA];
        above += arena->bytes > arena->lower_bound_bytes;

        const size_t sum = p->at_peak.inputs + p->at_peak.activations + p->at_peak.gradients +
                           p->at_peak.workspace + p->at_peak.outputs;
        assert_int_equal(sum, arena->lower_bound_bytes);
        sn_plan_destroy(p);
        sn_graph_destroy(g);
    }
    assert_int_equal(above, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs_are_planned_at_the_bound_and_pass_the_checker),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
