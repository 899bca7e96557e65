/* test_gpu_scale.c: steps whose gradients are not finite, on the emulated card: an update that a
 * check of its own refuses is passed over, and that alone, in plain runs and in captured ones, with
 * slots that wait elsewhere, in little memory; models under mixed_float16 have the processor's scale
 * and weights. The processor passes the same tests. */
#include "support/blobs.h"
#include "support/gpu_card.h"

#include "exec/exec.h"
#include "graph/build.h"
#include "train/model.h"

#include <snug/run.h>

#include <stdlib.h>

enum { ROWS = 12288, COLUMNS = 2, N = ROWS * COLUMNS, N_RUNS = 16 };

/* --- runs of a plan --------------------------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    sn_graph *graph;
    sn_state *state;
    sn_plan *plan;
    sn_executor *executor;
    sn_session *session;
    sn_cpu_device cpu;
    sn_test_dir dir;
    float x[N], z[N];
    snug_error err;
} stage;

static void check(stage *g, snug_status status) {
    expect_ok(status, &g->err);
}

static snug_type rows_type(void) {
    return (snug_type){SNUG_F32, 2, {ROWS, COLUMNS}};
}

static sn_value variable(stage *g, const char *name, bool slot, double value) {
    const sn_variable var = {.name = name,
                             .type = rows_type(),
                             .home = sn_graph_n_vars(g->graph),
                             .slot = slot,
                             .init = {.kind = SN_RECIPE_CONSTANT, .a = value}};
    sn_value v;
    check(g, sn_graph_variable(g->graph, &var, &v, &g->err));
    return v;
}

static sn_value input(stage *g, const char *name) {
    const snug_type type = rows_type();
    sn_value v;
    check(g, sn_graph_input(g->graph, name, &type, &v, &g->err));
    return v;
}

/* w and the slot m grow by x, which the update looks at; the forward pass keeps x, and looks at z,
 * whose sum is the output. */
static void build(stage *g) {
    const sn_value x = input(g, "x"), z = input(g, "z");
    const sn_value w = variable(g, "w", false, 1), m = variable(g, "m", true, 2),
                   seen = variable(g, "seen", false, 0);
    sn_builder b = sn_builder_on(g->graph);
    sn_graph_set_part(g->graph, SN_PART_UPDATE);
    const sn_value by = sn_build_check_finite(&b, x);
    sn_build(&b, SN_OP_assign_add, NULL, (sn_value[]){m, by}, 2);
    sn_build(&b, SN_OP_assign_add, NULL, (sn_value[]){w, by}, 2);
    sn_graph_set_part(g->graph, SN_PART_FORWARD);
    const sn_value sum = sn_build_sum(&b, sn_build_check_finite(&b, z), 0, false);
    sn_build(&b, SN_OP_assign, NULL, (sn_value[]){seen, x}, 2);
    check(g, sn_builder_done(&b, &g->err));
    check(g, sn_graph_output(g->graph, "sum", sum, &g->err));
}

static snug_status fill(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *to,
                        snug_error *err) {
    const float(*const rows)[COLUMNS] = ctx;
    (void)err, (void)n_rows;
    memcpy(to->data, rows[first_row], to->bytes);
    return SNUG_OK;
}

static void add_homes(stage *g, const sn_device *on) {
    check(g, sn_state_create(g->engine, &g->state, &g->err));
    sn_state_set_device(g->state, on);
    for (uint32_t i = 0; i < sn_graph_n_vars(g->graph); i++) {
        const sn_variable *v = sn_graph_var_at(g->graph, (sn_var){i});
        const sn_home home = {.name = v->name, .type = v->type, .slot = v->slot, .init = v->init};
        uint32_t id;
        check(g, sn_state_add(g->state, &home, &id, &g->err));
    }
}

/* How a stage is planned. */
typedef struct {
    bool spills;
    size_t arena_bytes;
    const uint16_t *placed; /* of nodes: on the card, or on the processor beside it */
} way;

static void open_stage(stage *g, snug_engine *e, const way *by) {
    const bool slot[3] = {[1] = true};
    memset(g, 0, sizeof *g);
    g->engine = e;
    sn_test_dir_begin(&g->dir);
    check(g, sn_graph_create(e, &g->graph, &g->err));
    build(g);
    const sn_device *const devices[2] = {sn_engine_device(e, &g->cpu), &g->cpu.device};
    const int n_devices = by->placed ? 2 : 1;
    const sn_plan_options o = {.devices = devices,
                               .n_devices = n_devices,
                               .placed = by->placed,
                               .arena_bytes = by->arena_bytes,
                               .spilled = by->spills ? slot : NULL};
    check(g, sn_plan_build(e, g->graph, &o, &g->plan, &g->err));
    assert_int_equal(g->plan->spilled_bytes, by->spills ? N * sizeof(float) : 0);
    add_homes(g, devices[0]);
    const sn_executor_options x = {
        .poison = 0xA5, .poison_set = true, .spill_folder = by->spills ? g->dir.path : NULL};
    check(g, sn_executor_create(e, g->state, devices, n_devices, &x, &g->executor, &g->err));
    check(g, sn_executor_add(g->executor, g->plan, &g->session, &g->err));
    check(g, sn_executor_prepare(g->executor, &g->err));
    sn_session_bind_input(g->session, 0, (sn_input_binding){.ctx = g->x, .fill = fill});
    sn_session_bind_input(g->session, 1, (sn_input_binding){.ctx = g->z, .fill = fill});
}

static void close_stage(stage *g) {
    sn_executor_destroy(g->executor);
    sn_state_destroy(g->state);
    sn_plan_destroy(g->plan);
    sn_graph_destroy(g->graph);
    sn_test_dir_end(&g->dir);
}

/* All numbers of a variable but the last, which may have been infinite, are `all`. */
static void expect_all(stage *g, uint32_t home, float all, float last) {
    float *const have = malloc(N * sizeof *have);
    assert_non_null(have);
    check(g, sn_state_read(g->state, home, 0, N * sizeof *have, have, &g->err));
    for (int i = 0; i < N; i++)
        if (have[i] != (i < N - 1 ? all : last))
            fail_msg("element %d of variable %u is %g", i, home, (double)have[i]);
    free(have);
}

typedef struct {
    bool bad_x, bad_z; /* the last number is not finite */
    bool passes;
    snug_status status;
} one_run;

/* What the variables must be by now. */
typedef struct {
    float grown, seen, last;
} expected;

/* What a run refused is of that run alone. */
static void expect_nothing_told(snug_engine *e) {
    const sn_gpu_device *const d = sn_engine_gpu(e);
    snug_error err;
    if (!d)
        return;
    expect_ok(d->api->finish(d->gpu, &err), &err);
    assert_false(d->api->objected(d->gpu));
}

static void run_once(stage *g, const one_run *r, int k, expected *want) {
    for (int i = 0; i < N; i++)
        g->x[i] = g->z[i] = (float)(k + 1);
    g->x[N - 1] = r->bad_x ? INFINITY : g->x[0];
    g->z[N - 1] = r->bad_z ? NAN : g->z[0];
    sn_session_set_passes(g->session, r->passes);
    expect_status(sn_session_run(g->session, &g->err), r->status, &g->err);
    const bool ran = r->status == SNUG_OK;
    if (ran) {
        snug_view sum;
        sn_session_output(g->session, 0, &sum);
        assert_true(*(const float *)sum.data == (float)N * g->z[0]);
        assert_int_equal(sn_session_passed_over(g->session), r->bad_x);
        *want = (expected){want->grown + (r->bad_x ? 0 : g->x[0]), g->x[0], g->x[N - 1]};
    } else if (r->passes) { /* one row can have refused */
        const sn_node node = sn_session_failed(g->session);
        assert_int_equal(sn_graph_node_at(g->graph, node)->part, SN_PART_FORWARD);
    }
    assert_false(sn_state_torn(g->state));
    expect_nothing_told(g->engine);
    expect_all(g, 0, 1 + want->grown, 1 + want->grown);
    expect_all(g, 1, 2 + want->grown, 2 + want->grown);
    expect_all(g, 2, want->seen, want->last);
}

static void run_all(snug_engine *e, const way *by) {
    static const one_run runs[N_RUNS] = {
        {false, false, false, SNUG_OK},      {false, false, false, SNUG_OK},
        {true, false, true, SNUG_OK},        {false, false, true, SNUG_OK},
        {false, false, true, SNUG_OK},       {true, false, true, SNUG_OK},
        {true, false, true, SNUG_OK},        {false, false, true, SNUG_OK},
        {false, true, true, SNUG_E_NUMERIC}, {true, true, true, SNUG_E_NUMERIC},
        {false, false, true, SNUG_OK},       {true, false, false, SNUG_E_NUMERIC},
        {false, false, false, SNUG_OK},      {true, false, false, SNUG_E_NUMERIC},
        {true, false, true, SNUG_OK},        {false, false, true, SNUG_OK},
    };
    stage g;
    expected want = {0, 0, 0};
    open_stage(&g, e, by);
    for (int k = 0; k < N_RUNS; k++)
        run_once(&g, &runs[k], k, &want);
    close_stage(&g);
}

/* Also in so little memory that rows are fed again, and where the slot waits elsewhere. */
static void run_all_ways(snug_engine *e) {
    run_all(e, &(way){.spills = false});
    run_all(e, &(way){.arena_bytes = N * sizeof(float) + 1024});
    run_all(e, &(way){.spills = true});
}

static void test_an_update_is_passed_over_alone(void **state) {
    snug_error err;
    run_all_ways(*state);
    assert_int_equal(card()->n_replays, 0);
    expect_ok(open_gpu(*state, 0, &err), &err);
    run_all_ways(*state);
    assert_int_equal(card()->n_replays, 3 * (N_RUNS - 1));
}

/* Whichever device looks at the gradients: they are nodes 0 and 3, the sum is node 4. */
static void test_an_update_is_passed_over_wherever_its_check_runs(void **state) {
    static const uint16_t placements[][6] = {
        {1, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 1, 0}, {1, 0, 0, 1, 0, 0}};
    snug_error err;
    expect_ok(open_gpu(*state, 0, &err), &err);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        run_all(*state, &(way){.placed = placements[i]});
}

/* A run that cannot be captured goes on without, and asks what was refused all the same. */
static void test_what_is_not_captured_is_passed_over_too(void **state) {
    snug_error err;
    bool struck = true;
    expect_ok(open_gpu(*state, 0, &err), &err);
    for (int64_t n = 0; struck; n++) {
        stage g;
        expected want = {0, 0, 0};
        open_stage(&g, *state, &(way){.spills = false});
        run_once(&g, &(one_run){false, false, true, SNUG_OK}, 0, &want);
        const int64_t replays = card()->n_replays;
        sn_fault_memory(*state, n, false);
        run_once(&g, &(one_run){true, false, true, SNUG_OK}, 1, &want);
        struck = sn_fault_fired(*state);
        sn_fault_memory(*state, -1, false);
        assert_int_equal(card()->n_replays - replays, !struck);
        close_stage(&g);
        assert_true(struck || n > 0);
    }
}

static bool stop_later(void *ctx) {
    int *const left = ctx;
    return (*left)-- == 0;
}

/* Nothing is written yet when the steps of a captured run are given once more. */
static void test_a_run_is_stopped_before_its_update_is_passed_over(void **state) {
    snug_error err;
    stage g;
    expected want = {0, 0, 0};
    int left = 1; /* once before it is replayed */
    expect_ok(open_gpu(*state, 0, &err), &err);
    open_stage(&g, *state, &(way){.spills = false});
    for (int k = 0; k < 2; k++)
        run_once(&g, &(one_run){false, false, true, SNUG_OK}, k, &want);
    sn_session_set_interrupt(g.session, stop_later, &left);
    g.x[0] = INFINITY;
    expect_status(sn_session_run(g.session, &err), SNUG_E_INTERRUPTED, &err);
    sn_session_set_interrupt(g.session, NULL, NULL);
    run_once(&g, &(one_run){true, false, true, SNUG_OK}, 3, &want);
    close_stage(&g);
}

/* --- models ----------------------------------------------------------------------------------- */
enum { EXAMPLES = 40, DIM = 6, MOST = 512, EPOCHS = 6 };

/* What a fit leaves. */
typedef struct {
    float weights[MOST];
    size_t n;
    sn_loss_scale scale;
    int64_t iterations;
    double losses[EPOCHS];
} outcome;

static snug_model *make_model(snug_engine *e, const char *optimizer) {
    static const char *const layers[][2] = {{"Dense", "units=12 activation=relu"},
                                            {"BatchNormalization", ""},
                                            {"Dropout", "rate=0.2 seed=3"},
                                            {"Dense", "units=2"}};
    const snug_type type = {SNUG_F32, 1, {DIM}};
    const snug_compile compile = {.optimizer = optimizer, .loss = "mse", .precision = "mixed_f16"};
    snug_error err;
    snug_model *m;
    expect_ok(snug_model_create(e, "scaled", &type, &m, &err), &err);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        expect_ok(snug_model_add(m, layers[i][0], layers[i][1], &err), &err);
    expect_ok(snug_model_compile(m, &compile, &err), &err);
    return m;
}

static snug_feed *make_feed(snug_engine *e, int64_t columns, float *data, float factor) {
    const snug_type type = {SNUG_F32, 2, {EXAMPLES, columns}};
    snug_error err;
    snug_feed *feed;
    for (int64_t i = 0; i < EXAMPLES * columns; i++)
        data[i] = (float)(i * i * 7 % 23 - 11) / 11 * factor;
    expect_ok(snug_feed_from_memory(e, &type, data, NULL, NULL, &feed, &err), &err);
    return feed;
}

/* Targets so large that gradients are infinite under the first scales. */
static void fit_model(snug_engine *e, const char *optimizer, outcome *out) {
    float of_x[EXAMPLES * DIM], of_y[EXAMPLES * 2];
    snug_error err;
    snug_feed *const x = make_feed(e, DIM, of_x, 1), *const y = make_feed(e, 2, of_y, 90);
    snug_model *m = make_model(e, optimizer);
    for (int k = 0; k < EPOCHS; k++) {
        snug_fit_result r;
        const snug_fit_options fit = {.x = x, .y = y, .batch = 16, .seed = 5};
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
        out->losses[k] = r.values[0];
    }
    out->n = copy_weights(m, out->weights);
    assert_true(out->n < MOST);
    out->scale = m->scale;
    out->iterations = m->iterations;
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_model_destroy(m);
}

/* The steps are the same ones; numbers differ by how sums of halves are rounded. */
static void expect_alike(const outcome *there, const outcome *here) {
    assert_int_equal(there->n, here->n);
    assert_int_equal(there->iterations, here->iterations);
    assert_true(there->scale.factor == here->scale.factor);
    assert_int_equal(there->scale.good, here->scale.good);
    expect_near(there->weights, here->weights, here->n, 2e-3);
    for (int k = 0; k < EPOCHS; k++)
        assert_true(fabs(there->losses[k] / here->losses[k] - 1) < 1e-3);
}

static void fit_one_by_one(snug_engine *e, const char *optimizer, outcome *out) {
    snug_error err;
    setenv("SNUG_CUDA_GRAPHS", "0", 1);
    const snug_status opened = open_gpu(e, 0, &err);
    unsetenv("SNUG_CUDA_GRAPHS");
    expect_ok(opened, &err);
    fit_model(e, optimizer, out);
}

static void test_models_have_the_processors_scale(void **state) {
    static const char *const optimizers[] = {
        "adam:lr=0.01", "sgd:lr=0.0001,momentum=0.5,use_ema=True",
        "adam:lr=0.01,gradient_accumulation_steps=2", "adam:lr=0.01,global_clipnorm=1"};
    snug_error err;
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        outcome here, there, one_by_one;
        expect_ok(snug_device(*state, "cpu", NULL, &err), &err);
        fit_model(*state, optimizers[i], &here);
        assert_true(here.iterations < 3 * EPOCHS && here.scale.factor < SN_FIRST_LOSS_SCALE);
        const int64_t replays = card()->n_replays, ahead = card()->n_beside;
        expect_ok(open_gpu(*state, 0, &err), &err);
        fit_model(*state, optimizers[i], &there);
        assert_true(card()->n_replays > replays);
        assert_true(card()->n_beside > ahead || strstr(optimizers[i], "accumulation"));
        expect_alike(&there, &here);
        fit_one_by_one(*state, optimizers[i], &one_by_one);
        expect_alike(&one_by_one, &there);
        assert_memory_equal(one_by_one.weights, there.weights, there.n * sizeof(float));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        gpu_test(test_an_update_is_passed_over_alone),
        late_gpu_test(test_an_update_is_passed_over_alone),
        gpu_test(test_an_update_is_passed_over_wherever_its_check_runs),
        late_gpu_test(test_an_update_is_passed_over_wherever_its_check_runs),
        gpu_test(test_what_is_not_captured_is_passed_over_too),
        gpu_test(test_a_run_is_stopped_before_its_update_is_passed_over),
        gpu_test(test_models_have_the_processors_scale),
        late_gpu_test(test_models_have_the_processors_scale),
    };
    return cmocka_run_group_tests_name("gpu_scale", tests, NULL, NULL);
}
