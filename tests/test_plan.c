/* test_plan.c: rules of the planner. Each test builds the smallest graph that shows its rule. */
#include "support/support.h"

#include "graph/build.h"
#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <stdio.h>
#include <string.h>

static sn_fake_device fake;
static const sn_device *devices[1];

static int init_device(void **state) {
    (void)state;
    sn_fake_device_init(&fake, "fake:0");
    devices[0] = &fake.device;
    return 0;
}

/* --- building -------------------------------------------------------------------------------- */
typedef struct {
    snug_engine *e;
    sn_graph *g;
    sn_builder b;
    sn_plan *p;
    snug_error err;
} bench;

static bench begin(void **state) {
    bench t = {.e = *state};
    expect_ok(sn_graph_create(t.e, &t.g, &t.err), &t.err);
    t.b = sn_builder_on(t.g);
    return t;
}

static snug_type matrix(int64_t rows, int64_t columns) {
    return (snug_type){.dtype = SNUG_F32, .rank = 2, .dims = {rows, columns}};
}

static sn_value input(bench *t, const char *name, int64_t rows, int64_t columns) {
    const snug_type type = matrix(rows, columns);
    sn_value v;
    expect_ok(sn_graph_input(t->g, name, &type, &v, &t->err), &t->err);
    return v;
}

static sn_value variable(bench *t, const char *name, int64_t rows, int64_t columns) {
    const sn_variable var = {.name = name,
                             .type = matrix(rows, columns),
                             .home = sn_graph_n_vars(t->g),
                             .trainable = true};
    sn_value v;
    expect_ok(sn_graph_variable(t->g, &var, &v, &t->err), &t->err);
    return v;
}

static sn_value update(bench *t, sn_value var, sn_value by) {
    const sn_value in[2] = {var, by};
    return sn_build(&t->b, SN_OP_assign_add, NULL, in, 2);
}

static void output(bench *t, const char *name, sn_value v) {
    expect_ok(sn_builder_done(&t->b, &t->err), &t->err);
    expect_ok(sn_graph_output(t->g, name, v, &t->err), &t->err);
}

static void make_plan(bench *t) {
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    expect_ok(sn_builder_done(&t->b, &t->err), &t->err);
    expect_ok(sn_plan_build(t->e, t->g, &options, &t->p, &t->err), &t->err);
}

static void end(bench *t) {
    sn_plan_destroy(t->p);
    sn_graph_destroy(t->g);
}

/* --- looking at plans ----------------------------------------------------------------------- */
/* The step that runs the maker of v, or feeds it; n_steps when there is none. */
static uint32_t step_of(const bench *t, sn_value v) {
    uint32_t i = 0;
    for (; i < t->p->n_steps; i++)
        for (int k = 0; k < t->p->steps[i].n_out; k++)
            if (t->p->steps[i].out[k].value.i == v.i)
                return i;
    return i;
}

static const sn_place *place_of(const bench *t, sn_value v) {
    const uint32_t i = step_of(t, v);
    assert_true(i < t->p->n_steps);
    for (int k = 0; k < t->p->steps[i].n_out; k++)
        if (t->p->steps[i].out[k].value.i == v.i)
            return &t->p->steps[i].out[k];
    return NULL;
}

static bool same_bytes(const bench *t, sn_value a, sn_value b) {
    const sn_place *x = place_of(t, a), *y = place_of(t, b);
    return x->memory == y->memory && x->offset == y->offset;
}

static const sn_plan_memory *arena(const bench *t) {
    return &t->p->memories[SN_MEM_FIRST_ARENA];
}

/* --- order ---------------------------------------------------------------------------------- */
/* Three layers; all updates stand at the end of the program, as autodiff and optimizers write
 * them. */
static void test_a_gradient_dies_into_its_update_at_once(void **state) {
    bench t = begin(state);
    sn_value w[3], x[4], d[3], dy;
    x[0] = input(&t, "x", 4, 16);
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = variable(&t, name, 16, 16);
        x[i + 1] = sn_build_relu(&t.b, sn_build_matmul(&t.b, x[i], w[i], SN_NO_VALUE));
    }
    dy = sn_build_sub(&t.b, x[3], x[0]);
    for (int i = 2; i >= 0; i--) {
        dy = sn_build_relu_grad(&t.b, dy, x[i + 1]);
        d[i] = sn_build_matmul_t(&t.b, x[i], dy, true, false);
        dy = sn_build_matmul_t(&t.b, dy, w[i], false, true);
    }
    for (int i = 0; i < 3; i++)
        (void)update(&t, w[i], d[i]);
    output(&t, "dx", dy);
    make_plan(&t);
    uint32_t updates = 0, most_live = 0, live = 0;
    for (uint32_t i = 0; i < t.p->n_steps; i++) {
        const sn_op op = sn_graph_node_at(t.g, t.p->steps[i].node)->op;
        for (int k = 0; k < 3; k++)
            live += t.p->steps[i].kind == SN_STEP_RUN && t.p->steps[i].out[0].value.i == d[k].i;
        most_live = live > most_live ? live : most_live;
        if (op == SN_OP_assign_add) {
            updates++;
            live--;
        }
    }
    assert_int_equal(updates, 3);
    assert_int_equal(most_live, 1); /* in program order all three would live together */
    end(&t);
}

static void test_no_variable_is_written_before_an_earlier_node_that_may_fail(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 4), w = variable(&t, "w", 4, 4);
    const sn_value slow = sn_build_tanh(&t.b, sn_build_matmul(&t.b, x, w, SN_NO_VALUE));
    const sn_value checked = sn_build_check_finite(&t.b, slow);
    const sn_value next = update(&t, w, x); /* could run first, but stands behind the check */
    output(&t, "y", checked);
    make_plan(&t);
    assert_true(step_of(&t, checked) < step_of(&t, next));
    end(&t);
}

static void test_an_update_waits_for_readers_of_the_old_version(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 4), w = variable(&t, "w", 4, 4);
    const sn_value next = update(&t, w, x);
    const sn_value late = sn_build_matmul(
        &t.b, x, w, SN_NO_VALUE); /* reads version 0, after the update in the program */
    output(&t, "y", late);
    make_plan(&t);
    assert_true(step_of(&t, late) < step_of(&t, next));
    end(&t);
}

static void test_an_old_version_needed_after_its_update_is_copied(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 4), w = variable(&t, "w", 4, 4);
    const sn_value next = update(&t, w, x);
    const sn_value both =
        sn_build_sub(&t.b, next, w); /* no order can have both versions in one home */
    output(&t, "change", both);
    make_plan(&t);
    uint32_t copies = 0;
    for (uint32_t i = 0; i < t.p->n_steps; i++)
        copies += t.p->steps[i].kind == SN_STEP_COPY;
    assert_int_equal(copies, 1);
    end(&t);
}

static void test_an_old_version_that_is_an_output_is_copied(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 4), w = variable(&t, "w", 4, 4);
    const sn_value next = update(&t, w, x);
    output(&t, "before", w);
    output(&t, "after", next);
    make_plan(&t);
    assert_int_equal(t.p->outputs[0].memory, SN_MEM_FIRST_ARENA);
    assert_int_equal(t.p->outputs[1].memory, SN_MEM_STATE);
    end(&t);
}

static void test_what_no_output_and_no_effect_needs_is_not_run(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 4), unused = input(&t, "unused", 4, 4);
    const sn_value dead = sn_build_exp(&t.b, unused), y = sn_build_relu(&t.b, x);
    output(&t, "y", y);
    make_plan(&t);
    assert_int_equal(t.p->n_steps, 2);
    assert_int_equal(step_of(&t, dead), t.p->n_steps);
    end(&t);
}

static void test_an_input_is_fed_right_before_its_first_use(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 4), late = input(&t, "t", 4, 4);
    const sn_value y = sn_build_exp(&t.b, sn_build_relu(&t.b, x)), z = sn_build_sub(&t.b, y, late);
    output(&t, "z", z);
    make_plan(&t);
    assert_int_equal(step_of(&t, late) + 1, step_of(&t, z));
    assert_int_equal(step_of(&t, x), 0);
    end(&t);
}

/* --- sharing bytes -------------------------------------------------------------------------- */
static void test_a_row_works_in_place_when_nobody_reads_its_input_later(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 16);
    const sn_value a = sn_build_exp(&t.b, x), b = sn_build_relu(&t.b, a), c = sn_build_neg(&t.b, b);
    output(&t, "c", c);
    make_plan(&t);
    assert_true(same_bytes(&t, x, a) && same_bytes(&t, a, b) && same_bytes(&t, b, c));
    assert_int_equal(arena(&t)->bytes, 256);
    end(&t);
}

static void test_a_row_does_not_work_in_place_when_its_input_has_a_later_reader(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 16);
    const sn_value a = sn_build_exp(&t.b, x), b = sn_build_relu(&t.b, a),
                   c = sn_build_sub(&t.b, b, a);
    output(&t, "c", c);
    make_plan(&t);
    assert_false(same_bytes(&t, a, b));
    end(&t);
}

static void test_an_output_of_the_graph_is_not_overwritten(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 16);
    const sn_value a = sn_build_exp(&t.b, x), b = sn_build_relu(&t.b, a);
    output(&t, "a", a);
    output(&t, "b", b);
    make_plan(&t);
    assert_false(same_bytes(&t, a, b));
    end(&t);
}

static void test_the_second_input_is_taken_where_the_first_cannot_be(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 1, 16), y = input(&t, "y", 4, 16);
    const sn_value sum = sn_build_add(&t.b, x, y); /* x is broadcast: smaller than the result */
    output(&t, "sum", sum);
    make_plan(&t);
    assert_true(same_bytes(&t, y, sum));
    end(&t);
}

static void test_only_the_first_input_of_a_first_row_is_taken(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 16), y = input(&t, "y", 4, 16);
    const sn_value d = sn_build_relu_grad(&t.b, x, y), later = sn_build_sub(&t.b, d, x);
    output(&t, "later", later);
    make_plan(&t);
    assert_false(same_bytes(&t, y, d)); /* y dies here, but the row writes over dy only */
    end(&t);
}

static void test_a_first_row_that_reads_one_value_twice_does_not_overwrite_it(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 16);
    const sn_value d = sn_build_tanh_grad(&t.b, x, x);
    output(&t, "d", d);
    make_plan(&t);
    assert_false(same_bytes(&t, x, d));
    end(&t);
}

static void test_an_alias_shares_bytes_even_with_later_readers(void **state) {
    bench t = begin(state);
    const int64_t dims[2] = {16, 4};
    const sn_value x = input(&t, "x", 4, 16);
    const sn_value flat = sn_build_reshape(&t.b, x, dims, 2), a = sn_build_exp(&t.b, flat),
                   b = sn_build_exp(&t.b, x);
    output(&t, "a", a);
    output(&t, "b", b);
    make_plan(&t);
    assert_true(same_bytes(&t, x, flat));
    assert_int_equal(arena(&t)->bytes, 512);
    end(&t);
}

static void test_an_alias_keeps_the_bytes_of_its_input_alive(void **state) {
    bench t = begin(state);
    const int64_t dims[2] = {16, 4};
    const sn_value x = input(&t, "x", 4, 16);
    const sn_value flat = sn_build_reshape(&t.b, x, dims, 2);
    const sn_value a = sn_build_exp(&t.b, x); /* x itself has no later reader, its bytes have */
    const sn_value b = sn_build_matmul(&t.b, a, flat, SN_NO_VALUE);
    output(&t, "b", b);
    make_plan(&t);
    assert_false(same_bytes(&t, x, a));
    end(&t);
}

static void test_an_alias_of_a_variable_is_a_copy(void **state) {
    bench t = begin(state);
    const int64_t dims[2] = {16, 4};
    const sn_value w = variable(&t, "w", 4, 16), flat = sn_build_reshape(&t.b, w, dims, 2);
    output(&t, "flat", flat);
    make_plan(&t);
    assert_int_equal(place_of(&t, flat)->memory, SN_MEM_FIRST_ARENA);
    end(&t);
}

static void test_an_update_lies_in_the_home_of_its_variable(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 4, 4), w = variable(&t, "w", 4, 4);
    const sn_value next = update(&t, w, x);
    make_plan(&t);
    assert_int_equal(place_of(&t, next)->memory, SN_MEM_STATE);
    assert_int_equal(t.p->memories[SN_MEM_STATE].bytes, 64);
    end(&t);
}

/* --- sizes and totals ----------------------------------------------------------------------- */
static void test_a_workspace_lives_for_its_step_only(void **state) {
    bench t = begin(state);
    const sn_value x = input(&t, "x", 16, 16), w = variable(&t, "w", 16, 16);
    const sn_value y =
        sn_build_matmul(&t.b, sn_build_matmul(&t.b, x, w, SN_NO_VALUE), w, SN_NO_VALUE);
    output(&t, "y", y);
    fake.workspace_bytes[SN_OP_matmul] = 1000;
    make_plan(&t);
    fake.workspace_bytes[SN_OP_matmul] = 0;
    assert_int_equal(arena(&t)->bytes, 1024 + 1024 + 1024); /* in, out, padded workspace */
    assert_int_equal(t.p->steps[1].ws_bytes, 1000);
    assert_int_equal(t.p->at_peak.workspace, 1024);
    end(&t);
}

static void test_used_bytes_are_not_padded(void **state) {
    bench t = begin(state);
    const sn_value y = sn_build_exp(&t.b, input(&t, "x", 1, 3));
    output(&t, "y", y);
    make_plan(&t);
    assert_int_equal(arena(&t)->bytes, 64);
    assert_int_equal(arena(&t)->used_bytes, 12);
    end(&t);
}

static void test_an_opaque_value_has_the_bytes_its_device_says(void **state) {
    bench t = begin(state);
    const snug_type type = {.dtype = SNUG_F32, .rank = 4, .dims = {2, 4, 4, 3}};
    sn_value x, out[SN_MAX_OUT];
    sn_attrs a;
    expect_ok(sn_graph_input(t.g, "x", &type, &x, &t.err), &t.err);
    sn_attrs_default(SN_OP_maxpool, &a);
    a.pool.kernel[0] = a.pool.kernel[1] = a.pool.stride[0] = a.pool.stride[1] = 2;
    sn_build_all(&t.b, SN_OP_maxpool, &a, &x, 1, out);
    output(&t, "y", out[0]);
    make_plan(&t);
    assert_int_equal(t.p->value_bytes[out[1].i], 2 * 2 * 2 * 3);
    end(&t);
}

static void test_a_graph_without_nodes_has_an_empty_plan(void **state) {
    bench t = begin(state);
    make_plan(&t);
    assert_int_equal(t.p->n_steps, 0);
    assert_int_equal(arena(&t)->bytes, 0);
    end(&t);
}

static void test_values_without_elements_are_planned(void **state) {
    bench t = begin(state);
    const sn_value y = sn_build_exp(&t.b, input(&t, "x", 0, 3));
    output(&t, "y", y);
    make_plan(&t);
    assert_int_equal(t.p->n_steps, 2);
    assert_int_equal(arena(&t)->bytes, 0);
    end(&t);
}

static void test_categories_and_owners_add_up_to_the_peak(void **state) {
    bench t = begin(state);
    sn_plan_owner_row rows[8];
    size_t sum = 0;
    const sn_value x = input(&t, "x", 16, 16), w = variable(&t, "dense/kernel", 16, 16);
    expect_ok(sn_graph_set_owner(t.g, "dense", &t.err), &t.err);
    const sn_value y = sn_build_matmul(&t.b, x, w, SN_NO_VALUE), z = sn_build_relu(&t.b, y);
    sn_graph_set_part(t.g, SN_PART_BACKWARD);
    const sn_value d = sn_build_matmul_t(&t.b, x, z, true, false);
    (void)update(&t, w, d);
    output(&t, "z", z);
    make_plan(&t);
    const sn_plan_categories *at = &t.p->at_peak;
    assert_int_equal(arena(&t)->lower_bound_bytes, 3 * 1024);
    assert_int_equal(at->inputs, 1024);
    assert_int_equal(at->outputs, 1024);
    assert_int_equal(at->gradients, 1024);
    assert_int_equal(at->activations, 0);
    expect_ok(sn_plan_owner_rows(t.p, t.e, rows, &t.err), &t.err);
    for (uint32_t i = 0; i < sn_graph_n_owners(t.g); i++)
        sum += rows[i].at_peak_bytes;
    assert_int_equal(sum, 3 * 1024);
    assert_int_equal(rows[1].weight_bytes, 1024);
    assert_int_equal(rows[1].own_peak_bytes, 2 * 1024);
    assert_true(rows[1].flops == t.p->flops);
    end(&t);
}

/* --- all together --------------------------------------------------------------------------- */
static void test_random_graphs_are_planned_and_pass_the_checker(void **state) {
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    int above = 0;
    fake.workspace_bytes[SN_OP_matmul] = 1000;
    for (uint64_t seed = 0; seed < 600; seed++) {
        snug_error err;
        sn_graph *g;
        sn_plan *p;
        expect_ok(sn_random_graph(*state, seed, 5 + (int)(seed * 7 % 296), &g, &err), &err);
        expect_ok(sn_plan_build(*state, g, &options, &p, &err), &err);
        const sn_plan_memory *m = &p->memories[SN_MEM_FIRST_ARENA];
        const sn_plan_categories *at = &p->at_peak;
        above += m->bytes > m->lower_bound_bytes;
        assert_int_equal(at->inputs + at->activations + at->gradients + at->workspace + at->outputs,
                         m->lower_bound_bytes);
        sn_plan_destroy(p);
        sn_graph_destroy(g);
    }
    fake.workspace_bytes[SN_OP_matmul] = 0;
    assert_true(above <= 12); /* 98 % at the bound; values here are a few times the alignment */
}

static void test_the_same_graph_gives_the_same_text(void **state) {
    sn_text text[2];
    for (int i = 0; i < 2; i++) {
        bench t = {.e = *state};
        const sn_plan_options options = {.devices = devices, .n_devices = 1};
        text[i] = sn_text_begin();
        const snug_writer w = sn_text_writer(&text[i]);
        expect_ok(sn_random_graph(t.e, 17, 200, &t.g, &t.err), &t.err);
        expect_ok(sn_plan_build(t.e, t.g, &options, &t.p, &t.err), &t.err);
        expect_ok(sn_plan_print(t.p, &w, &t.err), &t.err);
        end(&t);
    }
    assert_string_equal(text[0].text, text[1].text);
    sn_text_end(&text[0]);
    sn_text_end(&text[1]);
}

static snug_status no_kernel(const sn_device *dev, const sn_opdesc *d, sn_variant *out,
                             snug_error *err) {
    (void)dev;
    (void)out;
    return sn_fail(err, SNUG_E_UNSUPPORTED, "no kernel for %s", sn_ops[d->op].name);
}

static void test_an_operator_without_kernel_is_named_with_its_layer(void **state) {
    bench t = begin(state);
    const sn_device device = {.name = "small:0", .align = 64, .describe = no_kernel};
    const sn_device *small[1] = {&device};
    const sn_plan_options options = {.devices = small, .n_devices = 1};
    expect_ok(sn_graph_set_owner(t.g, "activation_3", &t.err), &t.err);
    const sn_value y = sn_build_exp(&t.b, input(&t, "x", 2, 2));
    output(&t, "y", y);
    expect_status(sn_plan_build(t.e, t.g, &options, &t.p, &t.err), SNUG_E_UNSUPPORTED, &t.err);
    expect_text(t.err.text, "activation_3");
    expect_text(t.err.text, "exp");
    assert_null(t.p);
    end(&t);
}

static snug_status plan_random(snug_engine *e, void *ctx, snug_error *err) {
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    sn_plan *p = NULL;
    SNUG_TRY(sn_plan_build(e, ctx, &options, &p, err));
    sn_plan_destroy(p);
    return SNUG_OK;
}

static void test_any_failed_request_is_a_clean_error(void **state) {
    snug_error err;
    sn_graph *g;
    expect_ok(sn_random_graph(*state, 3, 30, &g, &err), &err);
    sn_fault_sweep(plan_random, g);
    sn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_a_gradient_dies_into_its_update_at_once),
        engine_test(test_no_variable_is_written_before_an_earlier_node_that_may_fail),
        engine_test(test_an_update_waits_for_readers_of_the_old_version),
        engine_test(test_an_old_version_needed_after_its_update_is_copied),
        engine_test(test_an_old_version_that_is_an_output_is_copied),
        engine_test(test_what_no_output_and_no_effect_needs_is_not_run),
        engine_test(test_an_input_is_fed_right_before_its_first_use),
        engine_test(test_a_row_works_in_place_when_nobody_reads_its_input_later),
        engine_test(test_a_row_does_not_work_in_place_when_its_input_has_a_later_reader),
        engine_test(test_an_output_of_the_graph_is_not_overwritten),
        engine_test(test_the_second_input_is_taken_where_the_first_cannot_be),
        engine_test(test_only_the_first_input_of_a_first_row_is_taken),
        engine_test(test_a_first_row_that_reads_one_value_twice_does_not_overwrite_it),
        engine_test(test_an_alias_shares_bytes_even_with_later_readers),
        engine_test(test_an_alias_keeps_the_bytes_of_its_input_alive),
        engine_test(test_an_alias_of_a_variable_is_a_copy),
        engine_test(test_an_update_lies_in_the_home_of_its_variable),
        engine_test(test_a_workspace_lives_for_its_step_only),
        engine_test(test_used_bytes_are_not_padded),
        engine_test(test_an_opaque_value_has_the_bytes_its_device_says),
        engine_test(test_a_graph_without_nodes_has_an_empty_plan),
        engine_test(test_values_without_elements_are_planned),
        engine_test(test_categories_and_owners_add_up_to_the_peak),
        engine_test(test_random_graphs_are_planned_and_pass_the_checker),
        engine_test(test_the_same_graph_gives_the_same_text),
        engine_test(test_an_operator_without_kernel_is_named_with_its_layer),
        engine_test(test_any_failed_request_is_a_clean_error),
    };
    return cmocka_run_group_tests(tests, init_device, NULL);
}
