/* test_split.c: a step in slices is the step. What needs care when a batch runs in pieces, in f64,
 * a few training steps in 2 slices, in 3 that do not divide the batch, and row by row: losses,
 * metrics, weights, slots and running statistics are those of the unsplit step to 1e-12, and the
 * arena is smaller. Models of tests/golden where there is one for the rule; graphs written here for
 * what a layer cannot say. Byte limit: 8 MiB of tensors. */
#include "graph/build.h"
#include "support/golden_case.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The subject in 2 and 3 slices and with `rows` of them, against whole. */
static void expect_same(const sn_step_subject *s, int64_t rows, const char *what) {
    const int64_t slices[] = {2, 3, rows};
    sn_step_run whole, sliced;
    sn_step_run_make(s, &(sn_plan_options){.slices = 0}, &whole);
    for (int i = 0; i < 3; i++) {
        sn_step_run_make(s, &(sn_plan_options){.slices = slices[i]}, &sliced);
        assert_int_equal(sliced.slices, slices[i]);
        assert_true(sliced.n_blocks > 0);
        if (slices[i] == rows && sliced.arena_bytes >= whole.arena_bytes)
            fail_msg("%s: an arena of %zu bytes row by row, %zu whole", what, sliced.arena_bytes,
                     whole.arena_bytes);
        sn_step_run_expect_close(&sliced, &whole, 1e-12, what);
        sn_step_run_clear(&sliced);
    }
    sn_step_run_clear(&whole);
}

/* --- models of tests/golden ------------------------------------------------------------------- */
static const struct {
    const char *rule, *folder;
} rules[] = {
    {"mean losses", "mlp_f64"},
    {"sum losses", "loss_sum_sparse_f64"},
    {"sample weights", "weight_sample_f64"},
    {"sample weights by step", "weight_steps_f64"},
    {"class weights", "weight_class_f64"},
    {"masks", "mask_loss_f64"},
    {"masks and weights: sum(w l) / sum(w)", "mask_weighted_f64"},
    {"a class that is left out", "loss_ignore_class_logits_f64"},
    {"root mean squared error and its kin", "metric_regression_f64"},
    {"L2, counted once", "rule_dense_l2_f64"},
    {"activity regularisation", "layer_activity_regularization_f64"},
    {"batch norm and its running statistics", "batchnorm_dense_f64"},
    {"batch norm under a mask", "norm_batch_masked_f64"},
    {"batch norm in pictures", "model_resnet20_f64"},
    {"duplicate embedding ids", "embedding_twice_f64"},
    {"LSTM", "model_lstm_f64"},
    {"masked LSTM in both directions", "tagger_f64"},
    {"stateful layers", "stateful_f64"},
    {"accuracy", "cnn_f64"},
    {"AUC", "metric_auc_f64"},
    {"counts of a confusion matrix", "metric_iou_f64"},
    {"clipnorm", "opt_clipnorm_f64"},
    {"global_clipnorm", "opt_global_clipnorm_f64"},
    {"two losses", "io_named_f64"},
    {"weights of two losses", "weight_ends_f64"},
    {"axes B and T merged", "model_transformer_f64"},
    {"causal attention under a mask", "attention_masked_causal_f64"},
    {"skips and pooling codes", "model_unet_f64"},
};
enum { N_RULES = sizeof rules / sizeof rules[0] };

static void slices_keep(void **state) {
    const char *folder = *state;
    golden_case c;
    golden_case_open(&c, SNUG_TEST_DATA "/golden", folder);
    c.subject.subject.n_runs = 3;
    expect_same(&c.subject.subject, GOLDEN_BATCH, folder);
    golden_case_close(&c);
}

/* --- a model with draws ----------------------------------------------------------------------- */
enum { ROWS = 11, WIDTH = 6 };

static snug_feed *numbers(snug_engine *e, int64_t columns, double *room, uint64_t key) {
    const snug_type t = {.dtype = SNUG_F64, .rank = 2, .dims = {ROWS, columns}};
    const sn_recipe r = {.kind = SN_RECIPE_UNIFORM, .key = key, .a = -1, .b = 1};
    snug_feed *feed;
    snug_error err;
    expect_ok(sn_recipe_fill(&r, 0, (size_t)(ROWS * columns), SNUG_F64, room, &err), &err);
    expect_ok(snug_feed_from_memory(e, &t, room, NULL, NULL, &feed, &err), &err);
    return feed;
}

static void add(snug_model *m, const char *layer, const char *config) {
    snug_error err;
    expect_ok(snug_model_add(m, layer, config, &err), &err);
}

static void test_draws_are_those_of_the_whole_batch(void **state) {
    const snug_type input = {.dtype = SNUG_F64, .rank = 1, .dims = {WIDTH}};
    const snug_compile how = {.optimizer = "adam", .loss = "mean_squared_error", .metrics = "mae"};
    double x[ROWS * WIDTH], y[ROWS * 2];
    snug_engine *e = *state;
    snug_feed *feeds[2] = {numbers(e, WIDTH, x, 1), numbers(e, 2, y, 2)};
    snug_model *m;
    snug_error err;
    sn_model_subject s;
    expect_ok(snug_model_create(e, "draws", &input, &m, &err), &err);
    add(m, "GaussianNoise", "stddev=0.3");
    add(m, "Dense", "units=16 activation=tanh");
    add(m, "Dropout", "rate=0.4");
    add(m, "BatchNormalization", "");
    add(m, "Dense", "units=8 activation=relu");
    add(m, "AlphaDropout", "rate=0.2");
    add(m, "Dense", "units=2");
    expect_ok(snug_model_compile(m, &how, &err), &err);
    const sn_step_data data = {.x = &feeds[0], .n_x = 1, .y = &feeds[1], .n_y = 1};
    sn_model_subject_make(m, ROWS, &data, &s);
    expect_same(&s.subject, ROWS, "draws");
    snug_model_destroy(m);
    snug_feed_destroy(feeds[0]);
    snug_feed_destroy(feeds[1]);
}

/* --- graphs ----------------------------------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    sn_graph *graph;
    sn_builder b;
    snug_error err;
} bench;

static void open_graph(bench *t, snug_engine *e) {
    t->engine = e;
    expect_ok(sn_graph_create(e, &t->graph, &t->err), &t->err);
    t->b = sn_builder_on(t->graph);
}

static void check_graph(bench *t, const char *what) {
    sn_graph_subject s;
    expect_ok(sn_builder_done(&t->b, &t->err), &t->err);
    sn_graph_subject_make(t->engine, t->graph, 5, &s);
    s.subject.n_runs = 4;
    expect_same(&s.subject, ROWS, what);
    sn_graph_subject_clear(&s);
    sn_graph_destroy(t->graph);
}

static sn_value input(bench *t, const char *name, int64_t columns) {
    const snug_type type = {.dtype = SNUG_F64, .rank = 2, .dims = {ROWS, columns}};
    sn_value v;
    expect_ok(sn_graph_input(t->graph, name, &type, &v, &t->err), &t->err);
    return v;
}

static sn_value weight(bench *t, const char *name, int64_t rows, int64_t columns) {
    const uint32_t home = sn_graph_n_vars(t->graph);
    const sn_variable var = {
        .name = name,
        .type = {.dtype = SNUG_F64, .rank = 2, .dims = {rows, columns}},
        .home = home,
        .trainable = true,
        .init = {.kind = SN_RECIPE_UNIFORM, .key = home + 3, .a = -0.6, .b = 0.6}};
    sn_value v;
    expect_ok(sn_graph_variable(t->graph, &var, &v, &t->err), &t->err);
    return v;
}

static sn_value product(bench *t, sn_value x, sn_value w) {
    return sn_build_matmul(&t->b, x, w, SN_NO_VALUE);
}

static sn_value mean(bench *t, sn_value x) {
    return sn_build_mean(&t->b, x, 0, false);
}

static void give(bench *t, const char *name, sn_value v) {
    expect_ok(sn_builder_done(&t->b, &t->err), &t->err);
    expect_ok(sn_graph_output(t->graph, name, v, &t->err), &t->err);
}

/* One step down the gradients; w become the new versions. */
static void descend(bench *t, sn_value loss, sn_value *w, int n, double rate) {
    sn_value grads[4];
    expect_ok(sn_builder_done(&t->b, &t->err), &t->err);
    expect_ok(sn_graph_gradients(t->graph, loss, w, n, grads, &t->err), &t->err);
    for (int i = 0; i < n; i++) {
        const sn_value in[2] = {w[i], grads[i]};
        sn_attrs a;
        sn_attrs_default(SN_OP_sgd, &a);
        a.sgd.rate = sn_build_param(&t->b, "", rate).i;
        a.sgd.momentum = sn_build_param(&t->b, "", 0).i;
        w[i] = sn_build(&t->b, SN_OP_sgd, &a, in, 2);
    }
}

static void test_a_root_of_the_mean_is_exact(void **state) {
    bench t;
    open_graph(&t, *state);
    const sn_value x = input(&t, "x", WIDTH), y = input(&t, "y", 2);
    sn_value w[2] = {weight(&t, "w", WIDTH, 16), weight(&t, "v", 16, 2)};
    const sn_value z = product(&t, sn_build_tanh(&t.b, product(&t, x, w[0])), w[1]);
    const sn_value loss =
        sn_build_sqrt(&t.b, mean(&t, sn_build_square(&t.b, sn_build_sub(&t.b, z, y))));
    give(&t, "loss", loss);
    descend(&t, loss, w, 2, 0.1);
    check_graph(&t, "root of the mean");
}

static void test_a_weighted_mean_is_exact(void **state) {
    bench t;
    open_graph(&t, *state);
    const sn_value x = input(&t, "x", WIDTH), y = input(&t, "y", 2), k = input(&t, "k", 1);
    sn_value w[2] = {weight(&t, "w", WIDTH, 16), weight(&t, "v", 16, 2)};
    const sn_value z = product(&t, sn_build_tanh(&t.b, product(&t, x, w[0])), w[1]);
    const sn_value l = sn_build_square(&t.b, sn_build_sub(&t.b, z, y));
    const sn_value loss = sn_build_div(&t.b, sn_build_sum(&t.b, sn_build_mul(&t.b, l, k), 0, false),
                                       sn_build_sum(&t.b, k, 0, false));
    give(&t, "loss", loss);
    descend(&t, loss, w, 2, 0.1);
    check_graph(&t, "weighted mean");
}

static void test_a_gradient_penalty_is_exact(void **state) {
    bench t;
    open_graph(&t, *state);
    const sn_value x = input(&t, "x", WIDTH), y = input(&t, "y", 1);
    sn_value dx, w[2] = {weight(&t, "w", WIDTH, 16), weight(&t, "v", 16, 1)};
    const sn_value z = product(&t, sn_build_softplus(&t.b, product(&t, x, w[0])), w[1]);
    const sn_value sum = sn_build_sum(&t.b, z, 0, false);
    expect_ok(sn_builder_done(&t.b, &t.err), &t.err);
    expect_ok(sn_graph_gradients(t.graph, sum, &x, 1, &dx, &t.err), &t.err);
    const sn_value size = sn_build_sqrt(
        &t.b,
        sn_build_affine(&t.b, sn_build_sum(&t.b, sn_build_square(&t.b, dx), 2, false), 1, 1e-6));
    const sn_value penalty = mean(&t, sn_build_square(&t.b, sn_build_affine(&t.b, size, 1, -1)));
    const sn_value fit = mean(&t, sn_build_square(&t.b, sn_build_sub(&t.b, z, y)));
    const sn_value loss = sn_build_add(&t.b, fit, penalty);
    give(&t, "loss", loss);
    descend(&t, loss, w, 2, 0.05);
    check_graph(&t, "gradient penalty");
}

static sn_value critic(bench *t, sn_value x, const sn_value *d) {
    return product(t, sn_build_tanh(&t->b, product(t, x, d[0])), d[1]);
}

/* The critic steps first; the generator then meets the critic that has stepped. */
static void test_two_optimizers_are_exact(void **state) {
    bench t;
    open_graph(&t, *state);
    const sn_value real = input(&t, "x", WIDTH), z = input(&t, "z", 4);
    sn_value d[2] = {weight(&t, "d0", WIDTH, 16), weight(&t, "d1", 16, 1)};
    sn_value g[2] = {weight(&t, "g0", 4, 12), weight(&t, "g1", 12, WIDTH)};
    const sn_value fake = product(&t, sn_build_tanh(&t.b, product(&t, z, g[0])), g[1]);
    const sn_value apart = sn_build_add(
        &t.b, mean(&t, sn_build_softplus(&t.b, sn_build_neg(&t.b, critic(&t, real, d)))),
        mean(&t, sn_build_softplus(&t.b, critic(&t, fake, d))));
    give(&t, "critic", apart);
    descend(&t, apart, d, 2, 0.2);
    for (int i = 0; i < 2; i++)
        d[i] = sn_build_stop_gradient(&t.b, d[i]);
    const sn_value fooled =
        mean(&t, sn_build_softplus(&t.b, sn_build_neg(&t.b, critic(&t, fake, d))));
    give(&t, "generator", fooled);
    descend(&t, fooled, g, 2, 0.1);
    check_graph(&t, "two optimizers");
}

int main(void) {
    static const struct CMUnitTest own[] = {
        engine_test(test_draws_are_those_of_the_whole_batch),
        engine_test(test_a_root_of_the_mean_is_exact),
        engine_test(test_a_weighted_mean_is_exact),
        engine_test(test_a_gradient_penalty_is_exact),
        engine_test(test_two_optimizers_are_exact),
    };
    enum { N_OWN = sizeof own / sizeof own[0] };
    static struct CMUnitTest tests[N_OWN + N_RULES];
    static char folders[N_RULES][64];
    memcpy(tests, own, sizeof own);
    for (int i = 0; i < N_RULES; i++) {
        snprintf(folders[i], sizeof folders[i], "%s", rules[i].folder);
        tests[N_OWN + i] = (struct CMUnitTest){rules[i].rule, slices_keep, NULL, NULL, folders[i]};
    }
    return _cmocka_run_group_tests("split", tests, N_OWN + N_RULES, NULL, NULL);
}
