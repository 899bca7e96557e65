/* test_gpu_updates.c: a planner may choose whether wide gradients die inside their updates, since it
 * changes no bit: on the processor and on the emulated card, with every optimizer. In slices sums
 * are added in another order, fused or not; where sums are exact, so that no order shows, the bits
 * are the same in any slices. And it does choose: more bytes never give a slower plan. */
#include "support/gpu_card.h"

#include "exec/gpu.h"
#include "train/model.h"

#include <snug/train.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 16, MAX_LAYERS = 5, BUDGETS = 40 };

/* --- a step of a small network ---------------------------------------------------------------- */
typedef struct {
    const char *layers[MAX_LAYERS]; /* Dense ones on 24 numbers */
    const char *x, *y;
    bool exact; /* weights are -1, 0 and 1 */
    int n_steps;
} subject;

/* Sums in single precision that are rounded; and those of small integers, which are not. */
static const subject any_numbers = {
    {"units=40 activation=relu", "units=33 activation=tanh", "units=8"},
    "normal:16x24@3",
    "normal:16x8@4",
    false,
    3};
static const subject small_integers = {
    {"units=40 activation=relu", "units=8"}, "labels:16x24@3@3", "labels:16x8@4@5", true, 1};
/* Gradients that are larger than all else. */
static const subject wide = {{"units=150 activation=relu", "units=150 activation=tanh",
                              "units=150 activation=relu", "units=150 activation=tanh", "units=8"},
                             "normal:16x24@3",
                             "normal:16x8@4",
                             false,
                             2};

typedef struct {
    const subject *of;
    snug_model *model;
    sn_model_step *step;
    sn_rows x, y;
    sn_graph *fused;
} rig;

static sn_rows open_rows(snug_engine *e, const char *source) {
    sn_rows rows = {.n = BATCH};
    snug_error err;
    expect_ok(snug_feed_open(e, source, &rows.feed, &err), &err);
    expect_ok(sn_feed_prepare(rows.feed, SNUG_F32, &err), &err);
    return rows;
}

static void rig_begin(snug_engine *e, const subject *of, const char *optimizer, rig *r) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {24}};
    const snug_compile compile = {.optimizer = optimizer, .loss = "mse"};
    const sn_fuse_options every = {.dense_update = 1};
    snug_error err;
    *r = (rig){.of = of, .x = open_rows(e, of->x), .y = open_rows(e, of->y)};
    expect_ok(snug_model_create(e, "dense", &type, &r->model, &err), &err);
    for (int i = 0; i < MAX_LAYERS && of->layers[i]; i++)
        expect_ok(snug_model_add(r->model, "Dense", of->layers[i], &err), &err);
    expect_ok(snug_model_compile(r->model, &compile, &err), &err);
    const sn_weighting none = {.n_weights = 0};
    expect_ok(sn_model_step_weighted(r->model, SN_STEP_TRAIN, BATCH, &none, &r->step, &err), &err);
    expect_ok(sn_model_add_homes(r->model, &err), &err);
    expect_ok(sn_graph_fuse_with(r->step->graph, &every, &r->fused, &err), &err);
}

static void rig_end(rig *r) {
    sn_graph_destroy(r->fused);
    snug_model_destroy(r->model);
    snug_feed_destroy(r->x.feed);
    snug_feed_destroy(r->y.feed);
}

static void start_anew(rig *r) {
    sn_state *const state = r->model->state;
    snug_error err;
    for (uint32_t i = 0; i < sn_state_count(state); i++) {
        snug_view v;
        expect_ok(sn_state_restart(state, i, &err), &err);
        if (!r->of->exact || sn_state_home(state, i)->slot)
            continue;
        expect_ok(sn_state_view(state, i, &v, &err), &err);
        for (size_t k = 0; k < v.bytes / sizeof(float); k++)
            ((float *)v.data)[k] = (float)((int)(k * (7 + i) % 11 % 3) - 1);
    }
}

static void run_steps(rig *r, const sn_plan *plan) {
    const sn_executor_options options = {.spill_folder = NULL};
    const sn_input_binding x = {.ctx = &r->x, .fill = sn_rows_fill},
                           y = {.ctx = &r->y, .fill = sn_rows_fill};
    sn_model_step step = *r->step;
    sn_executor *executor;
    snug_error err;
    expect_ok(sn_executor_create(r->model->engine, r->model->state, &r->model->target, 1, &options,
                                 &executor, &err),
              &err);
    expect_ok(sn_executor_add(executor, plan, &step.session, &err), &err);
    expect_ok(sn_executor_prepare(executor, &err), &err);
    sn_session_bind_input(step.session, step.x[0], x);
    sn_session_bind_input(step.session, step.y[0], y);
    step.graph = plan->graph == r->fused ? r->fused : r->step->graph;
    for (int i = 0; i < r->of->n_steps; i++) {
        r->model->iterations = i;
        sn_model_set_params(r->model, &step, 9, NULL);
        expect_ok(sn_session_run(step.session, &err), &err);
    }
    sn_executor_destroy(executor);
}

typedef struct {
    unsigned char *data;
    size_t bytes;
} state_bytes;

static state_bytes copy_state(sn_state *state) {
    state_bytes all = {NULL, 0};
    snug_error err;
    for (uint32_t i = 0; i < sn_state_count(state); i++) {
        const snug_type *t = &sn_state_home(state, i)->type;
        const size_t n = (size_t)sn_type_count(t) * snug_dtype_bytes(t->dtype);
        all.data = realloc(all.data, all.bytes + n);
        expect_ok(sn_state_read(state, i, 0, n, all.data + all.bytes, &err), &err);
        all.bytes += n;
    }
    return all;
}

static sn_plan *plan_of(rig *r, const sn_graph *g, const sn_plan_options *how) {
    sn_plan_options o = *how;
    sn_plan *plan;
    snug_error err;
    o.devices = &r->model->target;
    o.n_devices = 1;
    expect_ok(sn_plan_build(r->model->engine, g, &o, &plan, &err), &err);
    return plan;
}

/* Weights and slots after the steps, by a plan that is destroyed. */
static state_bytes train(rig *r, sn_plan *plan) {
    start_anew(r);
    run_steps(r, plan);
    sn_plan_destroy(plan);
    return copy_state(r->model->state);
}

/* The first one is freed. */
static void expect_equal(state_bytes have, state_bytes want, const char *what, const char *where,
                         int slices) {
    assert_int_equal(have.bytes, want.bytes);
    if (memcmp(have.data, want.data, want.bytes) != 0)
        fail_msg("%s, on the %s, %d slices: other bits with fused updates", what, where, slices);
    free(have.data);
}

/* --- the bits --------------------------------------------------------------------------------- */
/* Those that are fused say so. */
static const struct {
    const char *text;
    bool fuses;
} optimizers[] = {
    {"sgd", false},
    {"sgd:momentum=0.9,nesterov=true", false},
    {"adam:learning_rate=0.01", true},
    {"adam:amsgrad=true,global_clipnorm=0.3", false},
    {"adam:clipnorm=0.5", false},
    {"adam:gradient_accumulation_steps=2", false},
    {"adam:use_ema=true", true},
    {"adamw:weight_decay=0.1", true},
    {"rmsprop:centered=true,momentum=0.5", false},
    {"adagrad", false},
    {"adadelta", false},
    {"adamax", false},
    {"nadam", false},
    {"ftrl", false},
    {"lion", false},
    {"adafactor", false},
    {"lamb", false},
};
enum { N_OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static void sweep(snug_engine *e, const subject *of, int optimizer, const char *where) {
    static const int64_t slices[] = {1, 2, 3, 5, BATCH};
    const int n = of->exact ? sizeof slices / sizeof *slices : 1;
    const char *text = optimizers[optimizer].text;
    rig r;
    rig_begin(e, of, text, &r);
    const sn_graph *const g = r.step->graph;
    assert_int_equal(sn_graph_n_nodes(r.fused) < sn_graph_n_nodes(g), optimizers[optimizer].fuses);
    for (int i = 0; i < n; i++) {
        const sn_plan_options o = {.slices = slices[i]};
        const state_bytes plain = train(&r, plan_of(&r, g, &o)),
                          fused = train(&r, plan_of(&r, r.fused, &o));
        expect_equal(fused, plain, text, where, (int)slices[i]);
        free(plain.data);
    }
    rig_end(&r);
}

static void test_fused_updates_have_the_bits_of_others(void **state) {
    snug_error err;
    for (int i = 0; i < N_OPTIMIZERS; i++)
        sweep(*state, &any_numbers, i, "processor");
    expect_ok(open_gpu(*state, 0, &err), &err);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        sweep(*state, &any_numbers, i, "card");
}

static void test_in_slices_only_the_order_of_sums_differs(void **state) {
    snug_error err;
    for (int i = 0; i < N_OPTIMIZERS; i++)
        sweep(*state, &small_integers, i, "processor");
    expect_ok(open_gpu(*state, 0, &err), &err);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        sweep(*state, &small_integers, i, "card");
}

/* --- the choice ------------------------------------------------------------------------------- */
/* Of the smallest plan, which is made again without a search. */
static sn_plan_floor floor_of(rig *r) {
    sn_plan_floor floor = {.bytes = 0};
    sn_plan_options o = {.devices = &r->model->target,
                         .n_devices = 1,
                         .arena_bytes = 1,
                         .fused = r->fused,
                         .floor = &floor};
    sn_plan *plan;
    snug_error err;
    expect_status(sn_plan_build(r->model->engine, r->step->graph, &o, &plan, &err), SNUG_E_BUDGET,
                  &err);
    plan = plan_of(r, r->step->graph, &(sn_plan_options){.fused = r->fused, .at = &floor});
    assert_int_equal(plan->memories[SN_MEM_FIRST_ARENA].bytes, floor.bytes);
    assert_true(plan->graph == (floor.how.fused ? r->fused : r->step->graph));
    sn_plan_destroy(plan);
    return floor;
}

static double seconds_of(rig *r, const sn_graph *g) {
    sn_plan *plan = plan_of(r, g, &(sn_plan_options){.slices = 0});
    const double seconds = plan->seconds;
    sn_plan_destroy(plan);
    return seconds;
}

/* How many plans within less than all bytes are of the graph with fused updates. */
static int count_fused(snug_engine *e, const subject *of) {
    rig r;
    int n_fused = 0;
    rig_begin(e, of, "adam", &r);
    sn_plan *plan = plan_of(&r, r.step->graph, &(sn_plan_options){.fused = r.fused});
    const double fastest = plan->seconds;
    const size_t most = plan->memories[SN_MEM_FIRST_ARENA].bytes;
    assert_true(fastest == fmin(seconds_of(&r, r.step->graph), seconds_of(&r, r.fused)));
    const state_bytes plain = train(&r, plan);
    const sn_plan_floor floor = floor_of(&r);
    double last = INFINITY;
    for (int i = 0; i < BUDGETS; i++) {
        const size_t bytes = floor.bytes + (most - floor.bytes) * (size_t)i / BUDGETS;
        plan =
            plan_of(&r, r.step->graph, &(sn_plan_options){.fused = r.fused, .arena_bytes = bytes});
        assert_true(plan->memories[SN_MEM_FIRST_ARENA].bytes <= bytes);
        assert_true(plan->seconds <= last && plan->seconds >= fastest);
        assert_true(plan->plain_seconds == fastest);
        if (i == 0)
            assert_true(plan->seconds == floor.seconds);
        last = plan->seconds;
        n_fused += plan->graph == r.fused;
        if (plan->slices == 1)
            expect_equal(train(&r, plan), plain, "adam", "processor", 1);
        else
            sn_plan_destroy(plan);
    }
    free(plain.data);
    rig_end(&r);
    return n_fused;
}

static void test_more_bytes_never_slow_down_plans_of_both_graphs(void **state) {
    assert_int_equal(count_fused(*state, &wide), BUDGETS);
    assert_true(count_fused(*state, &any_numbers) < BUDGETS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        gpu_test(test_fused_updates_have_the_bits_of_others),
        gpu_test(test_in_slices_only_the_order_of_sums_differs),
        gpu_test(test_more_bytes_never_slow_down_plans_of_both_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
