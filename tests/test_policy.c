/* test_policy.c: dtype policies of layers and models: by name, what they make of types, what is computed in f32 all the
 * same, and what a step takes. That results are Keras' is test_golden's. */
#include "nn/step.h"
#include "support/blobs.h"
#include "train/model.h"

#include <math.h>
#include <snug/train.h>
#include <string.h>

static void test_names(void **state) {
    static const struct {
        const char *name;
        snug_dtype variable, compute;
    } rows[] = {
        {"float32", SNUG_F32, SNUG_F32},         {"f64", SNUG_F64, SNUG_F64},
        {"bfloat16", SNUG_BF16, SNUG_BF16},      {"f16", SNUG_F16, SNUG_F16},
        {"mixed_bfloat16", SNUG_F32, SNUG_BF16}, {"mixed_bf16", SNUG_F32, SNUG_BF16},
        {"mixed_float16", SNUG_F32, SNUG_F16},   {"mixed_f16", SNUG_F32, SNUG_F16},
    };
    static const char *const wrong[] = {"",     "mixed_", "mixed_float32", "mixed_f64", "i8",
                                        "bool", "int32",  "MIXED_BF16",    "opaque"};
    snug_error err;
    sn_policy p;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_ok(sn_policy_parse(rows[i].name, &p, &err), &err);
        assert_int_equal(p.variable, rows[i].variable);
        assert_int_equal(p.compute, rows[i].compute);
        assert_false(p.own);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_status(sn_policy_parse(wrong[i], &p, &err), SNUG_E_UNSUPPORTED, &err);
}

/* --- models ----------------------------------------------------------------------------------- */
static snug_model *make_model(snug_engine *e, const char *const (*layers)[2], size_t n,
                              const snug_type *input, const snug_compile *compile) {
    snug_error err;
    snug_model *m;
    expect_ok(snug_model_create(e, NULL, input, &m, &err), &err);
    for (size_t i = 0; i < n; i++)
        expect_ok(snug_model_add(m, layers[i][0], layers[i][1], &err), &err);
    expect_ok(snug_model_compile(m, compile, &err), &err);
    return m;
}

static snug_model *cnn(snug_engine *e, const char *precision) {
    static const char *const layers[][2] = {
        {"Conv2D", "filters=16 kernel_size=3 padding=same activation=relu"},
        {"MaxPooling2D", ""},
        {"Conv2D", "filters=16 kernel_size=3 padding=same activation=relu"},
        {"BatchNormalization", ""},
        {"GlobalAveragePooling2D", ""},
        {"Dense", "units=4 activation=softmax kernel_regularizer=l2"},
    };
    const snug_type input = {SNUG_F32, 3, {32, 32, 3}};
    const snug_compile compile = {.optimizer = "sgd",
                                  .loss = "sparse_categorical_crossentropy",
                                  .metrics = "accuracy",
                                  .precision = precision};
    return make_model(e, layers, sizeof layers / sizeof *layers, &input, &compile);
}

static snug_model *wide(snug_engine *e, const char *precision) {
    static const char *const layers[][2] = {
        {"Dense", "units=256 activation=relu"},
        {"Dense", "units=256 activation=relu"},
        {"Dense", "units=256 activation=relu"},
        {"Dense", "units=256 activation=relu"},
        {"Dense", "units=4"},
    };
    const snug_type input = {SNUG_F32, 1, {16}};
    const snug_compile compile = {.optimizer = "sgd", .loss = "mse", .precision = precision};
    return make_model(e, layers, sizeof layers / sizeof *layers, &input, &compile);
}

static size_t arena_of(snug_model *m) {
    snug_error err;
    snug_model_plan_info info;
    const snug_plan_request request = {.batch = 8192, .train = 1};
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    const size_t bytes = info.arena_bytes;
    snug_model_destroy(m);
    return bytes;
}

/* What was not asked for is not lowered. */
static void test_halves_take_less(void **state) {
    const size_t plain = arena_of(wide(*state, NULL));
    assert_int_equal(arena_of(wide(*state, "f32")), plain);
    const size_t mixed = arena_of(wide(*state, "mixed_bf16")),
                 half = arena_of(wide(*state, "bf16"));
    if (mixed > plain / 100 * 58 || half > plain / 100 * 58)
        fail_msg("an arena of %zu bytes in f32, %zu in mixed_bf16, %zu in bf16", plain, mixed,
                 half);
}

static size_t floor_of(snug_model *m) {
    const sn_device *const devices[1] = {m->target};
    snug_error err;
    sn_model_step s = {.mode = SN_STEP_TRAIN, .batch = 256};
    sn_plan_floor floor = {0};
    sn_plan *plan;
    expect_ok(sn_model_step_build(m, &s, &err), &err);
    const sn_plan_options o = {
        .devices = devices, .n_devices = 1, .arena_bytes = 1, .floor = &floor};
    expect_status(sn_plan_build(m->engine, s.graph, &o, &plan, &err), SNUG_E_BUDGET, &err);
    sn_graph_destroy(s.graph);
    snug_model_destroy(m);
    return floor.bytes;
}

/* Weight gradients of halves add up over slices, whoever reads them: the smallest plan of each kind
 * has slices. What is kept until all gradients were looked at are halves. */
static void test_halves_are_sliced_as_far_as_f32(void **state) {
    static const char *const policies[] = {"mixed_bf16", "mixed_f16", "bf16", "f16"};
    const size_t plain = floor_of(cnn(*state, NULL));
    for (int i = 0; i < 4; i++) {
        const size_t bytes = floor_of(cnn(*state, policies[i]));
        if (bytes > plain)
            fail_msg("%s: a floor of %zu bytes, in f32 %zu", policies[i], bytes, plain);
    }
}

/* Gradients of large inputs are infinite at first: those steps change nothing but the scale. */
static void test_a_step_whose_gradients_are_not_finite_is_passed_over(void **state) {
    enum { ROWS = 8, STEPS = 12 };
    static const char *const layers[][2] = {{"Dense", "units=1 kernel_initializer=zeros"}};
    static const float y[ROWS] = {1, 2, 1, 3, 1, 2, 1, 2};
    const snug_type input = {SNUG_F32, 1, {1}};
    const snug_compile compile = {
        .optimizer = "sgd:learning_rate=1e-5", .loss = "mse", .precision = "mixed_f16"};
    float x[ROWS];
    snug_error err;
    snug_feed *fx, *fy;
    snug_fit_result r;
    snug_view kernel;
    snug_model *m = make_model(*state, layers, 1, &input, &compile);
    for (int i = 0; i < ROWS; i++)
        x[i] = 100 * y[i];
    const snug_type of_x = {SNUG_F32, 2, {ROWS, 1}};
    expect_ok(snug_feed_from_memory(*state, &of_x, x, NULL, NULL, &fx, &err), &err);
    expect_ok(snug_feed_from_memory(*state, &of_x, (void *)(uintptr_t)y, NULL, NULL, &fy, &err),
              &err);
    const snug_fit_options fit = {.x = fx, .y = fy, .batch = ROWS};
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    assert_true(m->scale.factor == 16384);
    assert_int_equal(m->iterations, 0);
    assert_true(r.values[0] > 3 && r.values[0] < 3.2); /* its loss counts */
    expect_ok(snug_model_weight(m, 0, NULL, &kernel, &err), &err);
    assert_true(*(const float *)kernel.data == 0);
    for (int i = 1; i < STEPS; i++)
        expect_ok(snug_fit(m, &fit, &r, &err), &err);
    assert_true(m->iterations > 0 && m->iterations < STEPS);
    assert_true(m->scale.factor == ldexp(SN_FIRST_LOSS_SCALE, (int)m->iterations - STEPS));
    assert_int_equal(m->scale.good, m->iterations);
    assert_true(*(const float *)kernel.data > 0 && r.values[0] < 3);
    m->scale.good = SN_GROWTH_STEPS - 1;
    const double before = m->scale.factor;
    expect_ok(snug_fit(m, &fit, &r, &err), &err);
    assert_true(m->scale.factor == 2 * before && m->scale.good == 0);
    expect_ok(snug_model_compile(m, &compile, &err), &err);
    assert_true(m->scale.factor == SN_FIRST_LOSS_SCALE);
    snug_feed_destroy(fx);
    snug_feed_destroy(fy);
    snug_model_destroy(m);
}

static void test_which_models_have_a_loss_scale(void **state) {
    static const char *const without[] = {"f32", "f64", "bf16", "f16", "mixed_bf16"};
    snug_model *m = wide(*state, "mixed_f16");
    assert_true(sn_model_scales(m));
    snug_model_destroy(m);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        m = wide(*state, without[i]);
        assert_false(sn_model_scales(m));
        snug_model_destroy(m);
    }
}

/* Weights and moving averages, losses and what is asked for are f32; what layers give is half. */
static void test_types_of_a_step(void **state) {
    snug_error err;
    snug_model *m = cnn(*state, "mixed_bf16");
    sn_network *const n = m->network;
    for (size_t i = 0; i < n->n_vars; i++)
        assert_int_equal(n->vars[i].type.dtype, SNUG_F32);
    for (size_t i = 0; i < n->n_layers; i++)
        assert_int_equal(n->layers[i].output.dtype, SNUG_BF16);
    assert_int_equal(snug_model_input(m)->dtype, SNUG_F32);
    snug_type target;
    snug_model_target(m, &target);
    assert_int_equal(target.dtype, SNUG_I32);
    sn_model_step s = {.mode = SN_STEP_TRAIN, .batch = 8};
    expect_ok(sn_model_step_build(m, &s, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_outputs(s.graph); i++)
        assert_false(sn_graph_type(s.graph, sn_graph_output_at(s.graph, i))->dtype == SNUG_BF16);
    for (uint32_t i = 0; i < sn_graph_n_nodes(s.graph); i++) {
        const sn_node_info *node = sn_graph_node_at(s.graph, (sn_node){i});
        if (node->op == SN_OP_log)
            assert_int_equal(sn_graph_type(s.graph, node->in[0])->dtype, SNUG_F32);
        if (node->op == SN_OP_conv2d || node->op == SN_OP_normalise || node->op == SN_OP_moments)
            assert_int_equal(sn_graph_type(s.graph, node->in[0])->dtype, SNUG_BF16);
        for (int k = 1; node->op == SN_OP_normalise && k < 5; k++)
            assert_int_equal(sn_graph_type(s.graph, node->in[k])->dtype, SNUG_F32);
        if (node->op == SN_OP_conv2d)
            assert_int_equal(sn_graph_type(s.graph, node->in[1])->dtype, SNUG_F32);
        if (node->op == SN_OP_conv2d_dw)
            assert_int_equal(sn_graph_type(s.graph, node->out[0])->dtype, SNUG_F32);
    }
    sn_graph_destroy(s.graph);
    snug_model_destroy(m);
}

static int n_casts(snug_model *m) {
    snug_error err;
    sn_model_step s = {.mode = SN_STEP_TRAIN, .batch = 8};
    int n = 0;
    expect_ok(sn_model_step_build(m, &s, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_nodes(s.graph); i++)
        n += sn_graph_node_at(s.graph, (sn_node){i})->op == SN_OP_cast;
    sn_graph_destroy(s.graph);
    snug_model_destroy(m);
    return n;
}

/* The input comes as a half, weights are rounded while they are read, their gradients come in f32:
 * what is left are the prediction and its gradient. */
static void test_casts_are_the_rows_own(void **state) {
    assert_int_equal(n_casts(wide(*state, "mixed_bf16")), 2);
}

/* Of a model whose input is the largest value by far: half the arena, or less, within 5 %. */
static void test_an_input_comes_as_the_half_it_is_read_as(void **state) {
    static const char *const layers[][2] = {{"Flatten", ""}, {"Dense", "units=4"}};
    static const char *const policies[] = {NULL, "mixed_bf16", "mixed_f16", "bf16"};
    const snug_type input = {SNUG_F32, 2, {28, 28}};
    size_t bytes[4];
    for (int i = 0; i < 4; i++) {
        const snug_compile compile = {.optimizer = "sgd", .loss = "mse", .precision = policies[i]};
        snug_model *m = make_model(*state, layers, 2, &input, &compile);
        assert_int_equal(snug_model_input(m)->dtype, SNUG_F32); /* what a caller gives */
        bytes[i] = arena_of(m);
    }
    for (int i = 1; i < 4; i++)
        if (bytes[i] > bytes[0] / 200 * 105)
            fail_msg("%s: an arena of %zu bytes, in f32 %zu", policies[i], bytes[i], bytes[0]);
}

static snug_status keep_row(void *ctx, int64_t first_row, const snug_view *view, snug_error *err) {
    return sn_convert(view->type.dtype, view->data, SNUG_F32, (float *)ctx + first_row, 1, err);
}

/* What a layer gets of rows in f32, or wider, is rounded once. */
static void test_feeds_round_as_casts_do(void **state) {
    enum { N = 6 };
    static const char *const layers[][2] = {{"Activation", "activation=relu"}};
    static const float x[N] = {1.00390625F, 1.0039064F, 3.3333333F, 65519, 65520, 1e-7F};
    static const char *const policies[] = {"mixed_bf16", "mixed_f16"};
    static const float want[2][N] = {
        {1, 1.0078125F, 3.328125F, 65536, 65536, 0x1.aep-24F},
        {1.00390625F, 1.00390625F, 3.333984375F, 65504, INFINITY, 0x1p-23F}};
    const snug_type input = {SNUG_F32, 1, {1}}, of_x = {SNUG_F32, 2, {N, 1}};
    snug_error err;
    for (int i = 0; i < 2; i++) {
        const snug_compile compile = {.optimizer = "sgd", .loss = "mse", .precision = policies[i]};
        snug_model *m = make_model(*state, layers, 1, &input, &compile);
        snug_feed *fx;
        float out[N];
        expect_ok(snug_feed_from_memory(*state, &of_x, x, NULL, NULL, &fx, &err), &err);
        const snug_run_options run = {.x = fx, .batch = 1};
        expect_ok(snug_predict(m, &run, keep_row, out, &err), &err);
        for (int k = 0; k < N; k++)
            if (out[k] != want[i][k])
                fail_msg("%s: %.9g is %.9g; %.9g is right", policies[i], (double)x[k],
                         (double)out[k], (double)want[i][k]);
        snug_feed_destroy(fx);
        snug_model_destroy(m);
    }
}

/* Rows of an embedding are taken from what is stored, and only they are rounded. */
static void test_rows_of_a_table_are_rounded_not_the_table(void **state) {
    static const char *const layers[][2] = {
        {"Embedding", "input_dim=50 output_dim=4"}, {"Flatten", ""}, {"Dense", "units=1"}};
    const snug_type input = {SNUG_I32, 1, {3}};
    const snug_compile compile = {.optimizer = "sgd", .loss = "mse", .precision = "mixed_bf16"};
    snug_error err;
    snug_model *m = make_model(*state, layers, 3, &input, &compile);
    sn_model_step s = {.mode = SN_STEP_PREDICT, .batch = 2};
    int n = 0;
    expect_ok(sn_model_step_build(m, &s, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_nodes(s.graph); i++) {
        const sn_node_info *node = sn_graph_node_at(s.graph, (sn_node){i});
        if (node->op != SN_OP_gather)
            continue;
        n++;
        assert_int_equal(sn_graph_type(s.graph, node->in[0])->dtype, SNUG_F32);
    }
    assert_int_equal(n, 1);
    assert_int_equal(m->network->layers[0].output.dtype, SNUG_BF16);
    sn_graph_destroy(s.graph);
    snug_model_destroy(m);
}

/* What was set and taken back has left nothing. */
static void test_there_and_back(void **state) {
    snug_error err;
    snug_model *m = cnn(*state, NULL), *untouched = cnn(*state, NULL);
    for (int i = 0; i < 2; i++) {
        expect_ok(snug_model_set_precision(m, i ? "f32" : "mixed_float16", &err), &err);
        assert_int_equal(snug_model_output(m)->dtype, i ? SNUG_F32 : SNUG_F16);
    }
    assert_int_equal(arena_of(m), arena_of(untouched));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        engine_test(test_halves_take_less),
        engine_test(test_halves_are_sliced_as_far_as_f32),
        engine_test(test_a_step_whose_gradients_are_not_finite_is_passed_over),
        engine_test(test_which_models_have_a_loss_scale),
        engine_test(test_types_of_a_step),
        engine_test(test_casts_are_the_rows_own),
        engine_test(test_an_input_comes_as_the_half_it_is_read_as),
        engine_test(test_feeds_round_as_casts_do),
        engine_test(test_rows_of_a_table_are_rounded_not_the_table),
        engine_test(test_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
