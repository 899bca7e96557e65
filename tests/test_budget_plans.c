/* test_budget_plans.c: plans within a number of bytes. On six models: more bytes never mean a
 * slower plan, nor a smaller arena; the smallest plan runs, one byte less is refused with its size;
 * it lies close to what the graph needs at least. Plans that only recompute are the unlimited plan
 * bit for bit over 20 steps. Byte limit: 8 MiB of tensors. */
#include "support/plan_bound.h"
#include "support/golden_case.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGETS = 50, VECTORS = 4 * 64 };

/* The same machine everywhere: what a plan drops, and so its floor, follows from how fast the
 * kernels are said to be (the sanitizers' build has other ones: floors differ there by 0 to 1
 * %). */
static const sn_rates rates = {.product = 1e11,
                               .product_memory = 1.5e10,
                               .loop = 4e10,
                               .math = 2e9,
                               .scalar = 1e8,
                               .reference = 3e9,
                               .memory = 6e10,
                               .memory_all = 8e10,
                               .cache = 1e11,
                               .cache_bytes = 8e6,
                               .call = 2e-7,
                               .handoff = 2e-6,
                               .spill_read = 2e9,
                               .spill_write = 1e9};

static void open_case(golden_case *c, const char *name) {
    static sn_cpu_device device; /* of the case that is open */
    golden_case_open(c, SNUG_TEST_DATA "/golden", name);
    device = *c->subject.subject.device;
    device.device.rates = rates;
    c->subject.subject.device = &device;
}

/* Plans, or refuses with the smallest size; nothing runs. */
static snug_status plan_within(const golden_case *c, size_t bytes, sn_step_run *out,
                               sn_plan_floor *floor, snug_error *err) {
    sn_step_subject s = c->subject.subject;
    s.n_runs = 0;
    return sn_step_run_try(&s, &(sn_plan_options){.arena_bytes = bytes, .floor = floor}, out, err);
}

/* --- six models ------------------------------------------------------------------------------- */
static const char *const six[] = {"mlp_f64",        "cnn_f64",        "model_resnet20_f64",
                                  "model_unet_f64", "model_lstm_f64", "model_transformer_f64"};
enum { N_SIX = sizeof six / sizeof six[0] };

/* The smallest plan of model i; asked once. */
static size_t smallest(const golden_case *c, int i) {
    static sn_plan_floor floors[N_SIX];
    sn_step_run run;
    snug_error err;
    if (floors[i].bytes == 0)
        expect_status(plan_within(c, 1, &run, &floors[i], &err), SNUG_E_BUDGET, &err);
    return floors[i].bytes;
}

static void is_monotone(const golden_case *c, int model) {
    sn_step_run plain, run, last = {.seconds = INFINITY};
    snug_error err;
    const size_t floor = smallest(c, model);
    expect_ok(plan_within(c, 0, &plain, NULL, &err), &err);
    for (int i = 0; i < BUDGETS; i++) {
        const double part = (double)i / (BUDGETS - 1);
        const size_t bytes =
            (size_t)ceil((double)floor * pow((double)plain.arena_bytes / (double)floor, part));
        expect_ok(plan_within(c, bytes, &run, NULL, &err), &err);
        if (run.arena_bytes > bytes || run.arena_bytes < last.arena_bytes ||
            run.seconds > last.seconds || run.seconds < plain.seconds)
            fail_msg("%s: %zu bytes give an arena of %zu and %g s; fewer gave %zu and %g s",
                     six[model], bytes, run.arena_bytes, run.seconds, last.arena_bytes,
                     last.seconds);
        last = run;
    }
    assert_true(last.seconds == plain.seconds);
}

static void test_more_bytes_never_slow_a_plan_down(void **state) {
    (void)state;
    for (int i = 0; i < N_SIX; i++) {
        golden_case c;
        open_case(&c, six[i]);
        is_monotone(&c, i);
        golden_case_close(&c);
    }
}

static void test_the_smallest_plan_runs_and_a_byte_less_is_refused(void **state) {
    (void)state;
    for (int i = 0; i < N_SIX; i++) {
        golden_case c;
        sn_plan_floor floor = {0};
        sn_step_run run, plain;
        snug_error err;
        char number[24];
        open_case(&c, six[i]);
        const size_t bytes = smallest(&c, i);
        expect_status(plan_within(&c, bytes - 1, &run, &floor, &err), SNUG_E_BUDGET, &err);
        assert_int_equal(floor.bytes, bytes);
        snprintf(number, sizeof number, "%zu bytes", bytes);
        expect_text(err.text, number);
        c.subject.subject.n_runs = 2;
        sn_step_run_make(&c.subject.subject, &(sn_plan_options){.arena_bytes = bytes}, &run);
        sn_step_run_make(&c.subject.subject, &(sn_plan_options){.arena_bytes = 0}, &plain);
        assert_int_equal(run.arena_bytes, bytes);
        assert_true(run.seconds == floor.seconds);
        sn_step_run_expect_close(&run, &plain, 1e-12, six[i]);
        sn_step_run_clear(&run);
        sn_step_run_clear(&plain);
        golden_case_close(&c);
    }
}

/* A tenth above what the graph needs, and a few aligned vectors; not the tiny ResNet-20, where
 * these weigh as much as its pictures: 133 of them, most of two to eight numbers, are statistics
 * that wait between the passes through the batch (with pictures of 32 x 32: 1.07). */
static void test_the_smallest_plan_is_close_to_the_bound(void **state) {
    (void)state;
    for (int i = 0; i < N_SIX; i++) {
        const double most = strcmp(six[i], "model_resnet20_f64") == 0 ? 1.195 : 1.10;
        golden_case c;
        size_t bound;
        snug_error err;
        open_case(&c, six[i]);
        const sn_step_subject *s = &c.subject.subject;
        expect_ok(sn_plan_lower_bound(c.engine, s->graph, &s->device->device, &bound, &err), &err);
        const double ratio = (double)(smallest(&c, i) - VECTORS) / (double)bound;
        if (ratio > most || ratio < 0.9)
            fail_msg("%s: the smallest plan has %.3f times the bytes of the bound", six[i], ratio);
        golden_case_close(&c);
    }
}

/* --- recomputation ---------------------------------------------------------------------------- */
/* Plans of one slice that recompute, at shares of the plain arena; 20 steps. */
static int expect_same_bits(golden_case *c, const char *name) {
    sn_step_run plain, run;
    snug_error err;
    int n = 0;
    c->subject.subject.n_runs = 20;
    sn_step_run_make(&c->subject.subject, &(sn_plan_options){.arena_bytes = 0}, &plain);
    for (int percent = 90; percent >= 45; percent -= 15) {
        const size_t bytes = plain.arena_bytes * (size_t)percent / 100;
        const sn_plan_options o = {.arena_bytes = bytes};
        if (sn_step_run_try(&c->subject.subject, &o, &run, &err) != SNUG_OK)
            break;
        assert_true(run.arena_bytes <= bytes);
        if (run.slices == 1 && run.n_recomputed > 0) {
            sn_step_run_expect_equal(&run, &plain, name);
            n++;
        }
        sn_step_run_clear(&run);
    }
    sn_step_run_clear(&plain);
    return n;
}

static void test_recomputation_changes_no_bit(void **state) {
    static const char *const names[] = {
        "model_unet_f32",      "model_transformer_f32", "graph_residual_f32", "graph_branches_f32",
        "batchnorm_dense_f32", "translator_f32",        "conv_lstm2d_f32",    "norm_group_f32"};
    int n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        golden_case c;
        open_case(&c, names[i]);
        n += expect_same_bits(&c, names[i]);
        golden_case_close(&c);
    }
    assert_true(n >= 8);
}

/* A plan of one slice that recomputes; the steps are the caller's to spoil. */
static sn_plan *recomputed_plan(const golden_case *c) {
    const sn_step_subject *s = &c->subject.subject;
    const sn_device *devices[1] = {&s->device->device};
    sn_plan_options o = {.devices = devices, .n_devices = 1};
    sn_plan *plan;
    snug_error err;
    expect_ok(sn_plan_build(s->engine, s->graph, &o, &plan, &err), &err);
    o.arena_bytes = plan->memories[SN_MEM_FIRST_ARENA].bytes * 7 / 10;
    sn_plan_destroy(plan);
    expect_ok(sn_plan_build(s->engine, s->graph, &o, &plan, &err), &err);
    assert_true(plan->slices == 1 && plan->n_recomputed > 0);
    return plan;
}

static bool updates(const sn_plan *p, const sn_step *s) {
    return s->kind == SN_STEP_RUN &&
           sn_ops[sn_graph_node_at(p->graph, s->node)->op].effect == SN_STATE;
}

static bool reads(const sn_step *s, sn_value v) {
    for (int k = 0; k < s->n_in; k++)
        if (s->in[k].value.i == v.i && s->in[k].memory == SN_MEM_STATE)
            return true;
    return false;
}

/* Every update happens once. Moved before a step that reads what it overwrites, it is found out. */
static void test_updates_happen_once_and_behind_all_readers(void **state) {
    golden_case c;
    int n_moved = 0;
    snug_error err;
    (void)state;
    open_case(&c, "model_unet_f32");
    const sn_device *devices[1] = {&c.subject.subject.device->device};
    sn_plan *plan = recomputed_plan(&c);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (!updates(plan, &plan->steps[i]))
            continue;
        uint32_t reader = i;
        for (uint32_t j = 0; j < plan->n_steps; j++) {
            assert_true(j == i || plan->steps[j].kind != SN_STEP_RUN ||
                        plan->steps[j].node.i != plan->steps[i].node.i);
            if (j < i && plan->steps[j].kind == SN_STEP_RUN &&
                reads(&plan->steps[j], plan->steps[i].in[0].value))
                reader = j;
        }
        if (reader == i)
            continue;
        const sn_step update = plan->steps[i];
        memmove(&plan->steps[reader + 1], &plan->steps[reader], (i - reader) * sizeof update);
        plan->steps[reader] = update;
        expect_status(sn_plan_check(plan, devices, 1, &err), SNUG_E_INVALID, &err);
        memmove(&plan->steps[reader], &plan->steps[reader + 1], (i - reader) * sizeof update);
        plan->steps[i] = update;
        expect_ok(sn_plan_check(plan, devices, 1, &err), &err);
        n_moved++;
    }
    assert_true(n_moved > 3);
    sn_plan_destroy(plan);
    golden_case_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_bytes_never_slow_a_plan_down),
        cmocka_unit_test(test_the_smallest_plan_runs_and_a_byte_less_is_refused),
        cmocka_unit_test(test_the_smallest_plan_is_close_to_the_bound),
        cmocka_unit_test(test_recomputation_changes_no_bit),
        cmocka_unit_test(test_updates_happen_once_and_behind_all_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
