/* test_hold.c: values between the blocks of a sliced step. Twenty batch normalisations end a pass
 * over the batch some forty times. With few bytes the step runs from checkpoints: some values of
 * the forward pass stay, the others are made again once or a few times, not once per pass; and
 * nothing that comes out changes. Byte limit: 16 MiB of tensors. */
#include "support/step_run.h"
#include "support/support.h"

#include <stdlib.h>

enum { ROWS = 512, WIDTH = 32, LAYERS = 20, PASSES = 2 * LAYERS };

typedef struct {
    snug_model *model;
    snug_feed *feeds[2];
    sn_model_subject s;
    sn_step_run plain; /* without a limit; run twice */
} chain;

static snug_feed *numbers(snug_engine *e, uint64_t key) {
    const snug_type t = {.dtype = SNUG_F64, .rank = 2, .dims = {ROWS, WIDTH}};
    const sn_recipe r = {.kind = SN_RECIPE_UNIFORM, .key = key, .a = -1, .b = 1};
    double *room = malloc(sizeof(double) * ROWS * WIDTH);
    snug_feed *feed;
    snug_error err;
    assert_non_null(room);
    expect_ok(sn_recipe_fill(&r, 0, (size_t)ROWS * WIDTH, SNUG_F64, room, &err), &err);
    expect_ok(snug_feed_from_memory(e, &t, room, free, room, &feed, &err), &err);
    return feed;
}

static void open_chain(chain *c, snug_engine *e) {
    const snug_type input = {.dtype = SNUG_F64, .rank = 1, .dims = {WIDTH}};
    const snug_compile how = {.optimizer = "sgd", .loss = "mean_squared_error", .metrics = ""};
    snug_error err;
    expect_ok(snug_model_create(e, "chain", &input, &c->model, &err), &err);
    for (int i = 0; i < LAYERS; i++) {
        expect_ok(snug_model_add(c->model, "Dense", "units=32", &err), &err);
        expect_ok(snug_model_add(c->model, "BatchNormalization", "", &err), &err);
        expect_ok(snug_model_add(c->model, "Activation", "activation=relu", &err), &err);
    }
    expect_ok(snug_model_compile(c->model, &how, &err), &err);
    c->feeds[0] = numbers(e, 1);
    c->feeds[1] = numbers(e, 2);
    const sn_step_data data = {.x = &c->feeds[0], .n_x = 1, .y = &c->feeds[1], .n_y = 1};
    sn_model_subject_make(c->model, ROWS, &data, &c->s);
    c->s.subject.n_runs = 2;
    sn_step_run_make(&c->s.subject, &(sn_plan_options){.arena_bytes = 0}, &c->plain);
}

static void close_chain(chain *c) {
    sn_step_run_clear(&c->plain);
    snug_model_destroy(c->model);
    snug_feed_destroy(c->feeds[0]);
    snug_feed_destroy(c->feeds[1]);
}

/* Within a part of the plain arena: at most so many times the plain seconds, and the same
 * results. */
static void expect_within(chain *c, double part, double most) {
    const size_t bytes = (size_t)(part * (double)c->plain.arena_bytes);
    sn_step_run run;
    sn_step_run_make(&c->s.subject, &(sn_plan_options){.arena_bytes = bytes}, &run);
    assert_true(run.arena_bytes <= bytes);
    if (run.seconds > most * c->plain.seconds)
        fail_msg("%.0f %% of the arena: %.2f times the plain step", 100 * part,
                 run.seconds / c->plain.seconds);
    sn_step_run_expect_close(&run, &c->plain, 1e-12, "chain");
    sn_step_run_clear(&run);
}

static void test_few_bytes_cost_a_few_forward_passes(void **state) {
    chain c;
    open_chain(&c, *state);
    expect_within(&c, 0.5, 1.3);
    expect_within(&c, 0.25, 1.6);
    expect_within(&c, 0.12, 2);
    close_chain(&c);
}

/* Two values at a time: whole ones are made in the bytes of those that were read. */
static void test_hardly_any_bytes_cost_a_few_more(void **state) {
    chain c;
    open_chain(&c, *state);
    expect_within(&c, 0.065, 4);
    close_chain(&c);
}

/* Whole values that lie where others lay are counted in their place, not beside them. */
static void test_reports_never_count_a_byte_twice(void **state) {
    chain c;
    sn_cpu_device cpu;
    snug_error err;
    sn_plan *p;
    open_chain(&c, *state);
    sn_cpu_device_init(&cpu, 1, false);
    const sn_device *device = &cpu.device;
    const sn_plan_options o = {.devices = &device,
                               .n_devices = 1,
                               .arena_bytes = (size_t)(0.12 * (double)c.plain.arena_bytes)};
    expect_ok(sn_plan_build(*state, c.s.subject.graph, &o, &p, &err), &err);
    sn_plan_categories *rows = calloc(p->n_steps, sizeof *rows);
    assert_non_null(rows);
    expect_ok(sn_plan_timeline(p, *state, rows, &err), &err);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (rows[i].inputs + rows[i].activations + rows[i].gradients + rows[i].workspace +
                rows[i].outputs >
            p->memories[SN_MEM_FIRST_ARENA].bytes)
            fail_msg("step %u holds more than the arena has", i);
    free(rows);
    sn_plan_destroy(p);
    close_chain(&c);
}

static void test_without_a_limit_nothing_is_made_twice(void **state) {
    chain c;
    sn_step_run run;
    open_chain(&c, *state);
    sn_step_run_make(&c.s.subject, &(sn_plan_options){.slices = 8}, &run);
    assert_int_equal(run.slices, 8);
    assert_true(run.n_blocks > PASSES);
    assert_int_equal(run.n_recomputed, 0);
    sn_step_run_expect_close(&run, &c.plain, 1e-12, "chain");
    sn_step_run_clear(&run);
    close_chain(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_reports_never_count_a_byte_twice),
        engine_test(test_without_a_limit_nothing_is_made_twice),
        engine_test(test_few_bytes_cost_a_few_forward_passes),
        engine_test(test_hardly_any_bytes_cost_a_few_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
