/* test_plan_door.c: the public plan of a graph. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include <snug/plan.h>

/* loss = sum((x w - t)^2) with an sgd step: 32 x 8 inputs, an 8 x 4 weight. */
static snug_graph *regression(snug_engine *e) {
    const snug_type x_type = {SNUG_F32, 2, {32, 8}}, t_type = {SNUG_F32, 2, {32, 4}};
    const snug_type w_type = {SNUG_F32, 2, {8, 4}};
    snug_graph *g;
    snug_error err;
    snug_value x, t, w, y, d, loss, dw, next;
    expect_ok(snug_graph_create(e, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &x_type, &x, &err), &err);
    expect_ok(snug_graph_input(g, "t", &t_type, &t, &err), &err);
    expect_ok(snug_graph_variable(g, "w", &w_type, NULL, &w, &err), &err);
    const snug_value xw[2] = {x, w};
    expect_ok(snug_graph_op(g, "matmul", "", xw, 2, &y, 1, &err), &err);
    const snug_value yt[2] = {y, t};
    expect_ok(snug_graph_op(g, "sub", "", yt, 2, &d, 1, &err), &err);
    expect_ok(snug_graph_op(g, "square", "", &d, 1, &d, 1, &err), &err);
    expect_ok(snug_graph_op(g, "sum", "axes=0,1", &d, 1, &loss, 1, &err), &err);
    expect_ok(snug_graph_gradients(g, loss, &w, 1, &dw, &err), &err);
    const snug_value in[2] = {w, dw};
    expect_ok(snug_graph_op(g, "sgd", "rate=0.1 momentum=0", in, 2, &next, 1, &err), &err);
    expect_ok(snug_graph_output(g, "loss", loss, &err), &err);
    return g;
}

static void test_a_plan_says_what_the_graph_will_use(void **state) {
    snug_graph *g = regression(*state);
    snug_plan *p;
    snug_plan_summary s;
    snug_error err;
    expect_ok(snug_plan_build(*state, g, NULL, &p, &err), &err);
    snug_graph_destroy(g); /* the plan has its own copy */
    snug_plan_summarise(p, &s);
    assert_int_equal(s.state_bytes, 8 * 4 * 4);
    assert_true(s.arena_bytes >= 32 * 8 * 4 + 32 * 4 * 4);
    assert_true(s.arena_bytes >= s.lower_bound_bytes && s.gap >= 0 && s.gap <= 0.01);
    assert_int_equal(s.input_bytes + s.activation_bytes + s.gradient_bytes + s.workspace_bytes +
                         s.output_bytes,
                     s.lower_bound_bytes);
    assert_true(s.flops >= 2 * 2 * 32 * 8 * 4);
    sn_text text = sn_text_begin();
    const snug_writer w = sn_text_writer(&text);
    expect_ok(snug_plan_print(p, &w, &err), &err);
    expect_text(text.text, "snug plan 1\n");
    expect_text(text.text, " sgd ");
    sn_text_end(&text);
    snug_plan_destroy(p);
}

static void test_a_budget_is_kept_to_the_byte(void **state) {
    snug_graph *g = regression(*state);
    snug_plan *p;
    snug_plan_summary s;
    snug_error err;
    expect_ok(snug_plan_build(*state, g, NULL, &p, &err), &err);
    snug_plan_summarise(p, &s);
    snug_plan_destroy(p);
    snug_plan_options o = {.budget_bytes = s.arena_bytes + s.state_bytes};
    expect_ok(snug_plan_build(*state, g, &o, &p, &err), &err);
    snug_plan_destroy(p);
    o.budget_bytes--;
    expect_ok(snug_plan_build(*state, g, &o, &p, &err), &err);
    snug_plan_summarise(p, &s);
    assert_true(s.arena_bytes + s.state_bytes <= o.budget_bytes);
    snug_plan_destroy(p);
    snug_graph_destroy(g);
}

static void test_a_budget_below_the_floor_names_it(void **state) {
    snug_graph *g = regression(*state);
    snug_plan *p = NULL;
    snug_error err;
    snug_plan_options o = {.budget_bytes = 200};
    expect_status(snug_plan_build(*state, g, &o, &p, &err), SNUG_E_BUDGET, &err);
    assert_null(p);
    expect_text(err.text, "use a smaller batch");
    const char *need = strstr(err.text, "the smallest needs ");
    assert_non_null(need);
    o.budget_bytes = strtoull(need + strlen("the smallest needs "), NULL, 10);
    expect_ok(snug_plan_build(*state, g, &o, &p, &err), &err);
    snug_plan_destroy(p);
    o.budget_bytes--;
    expect_status(snug_plan_build(*state, g, &o, &p, &err), SNUG_E_BUDGET, &err);
    snug_graph_destroy(g);
}

static snug_status build_and_destroy(snug_engine *e, void *ctx, snug_error *err) {
    snug_plan *p = NULL;
    SNUG_TRY(snug_plan_build(e, ctx, NULL, &p, err));
    snug_plan_destroy(p);
    return SNUG_OK;
}

static void test_any_failed_request_is_a_clean_error(void **state) {
    snug_graph *g = regression(*state);
    sn_fault_sweep(build_and_destroy, g);
    snug_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_a_plan_says_what_the_graph_will_use),
        engine_test(test_a_budget_is_kept_to_the_byte),
        engine_test(test_a_budget_below_the_floor_names_it),
        engine_test(test_any_failed_request_is_a_clean_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
