/* test_attention.c: a transformer block made with the public builder alone: multi-head attention,
 * residual sums, layer normalisation, a feed-forward part. Its gradients agree with differences in
 * f64, it learns in f32, and one template serves two batch sizes.
 *
 * Letters: B sequences of T tokens with D features, H heads of D / H features. Byte limit: 4
 * MiB. */
#include "support/support.h"

#include <snug/graph.h>
#include <snug/run.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { T = 5, D = 8, H = 2, F = 12, PAYLOAD = 3, N_WEIGHTS = 9, MAX_WEIGHT = D * F };

static snug_value op(snug_graph *g, const char *name, const char *attributes, const snug_value *in,
                     size_t n) {
    snug_error err;
    snug_value out;
    expect_ok(snug_graph_op(g, name, attributes, in, (int)n, &out, 1, &err), &err);
    return out;
}
#define OP(g, name, attributes, ...)                                                               \
    op(g, name, attributes, (snug_value[]){__VA_ARGS__},                                           \
       sizeof((snug_value[]){__VA_ARGS__}) / sizeof(snug_value))

static snug_value reshape(snug_graph *g, snug_value x, const char *dims) {
    char text[64];
    snprintf(text, sizeof text, "dims=%s", dims);
    return OP(g, "reshape", text, x);
}

/* --- the block -------------------------------------------------------------------------------- */
static const struct {
    const char *name;
    int rank;
    int64_t dims[2];
    double start, spread;
} weights[N_WEIGHTS] = {
    {"wq", 2, {D, D}, 0, 0.5}, {"wk", 2, {D, D}, 0, 0.5},   {"wv", 2, {D, D}, 0, 0.4},
    {"wo", 2, {D, D}, 0, 0.4}, {"gamma", 1, {D}, 1, 0.1},   {"beta", 1, {D}, 0, 0.1},
    {"up", 2, {D, F}, 0, 0.3}, {"down", 2, {F, D}, 0, 0.3}, {"head", 2, {D, PAYLOAD}, 0, 0.4},
};

static void add_weights(snug_graph *g, snug_dtype dtype, snug_value *w) {
    snug_error err;
    for (int i = 0; i < N_WEIGHTS; i++) {
        const snug_variable_options start = {
            .kind = SNUG_INIT_NORMAL, .a = weights[i].start, .b = weights[i].spread, .seed = 5};
        snug_type t = {.dtype = dtype, .rank = weights[i].rank};
        memcpy(t.dims, weights[i].dims, sizeof weights[i].dims);
        expect_ok(snug_graph_variable(g, weights[i].name, &t, &start, &w[i], &err), &err);
    }
}

/* [rows, D] -> [B, H, T, D / H] */
static snug_value heads_of(snug_graph *g, snug_value rows, snug_value w) {
    return OP(g, "transpose", "perm=0,2,1,3", reshape(g, OP(g, "matmul", "", rows, w), "-1,5,2,4"));
}

/* x [B, T, D] -> [B, PAYLOAD], with B known or not. */
static snug_value block(snug_graph *g, snug_value x, const snug_value *w) {
    const snug_value rows = reshape(g, x, "-1,8");
    const snug_value q = heads_of(g, rows, w[0]), k = heads_of(g, rows, w[1]);
    const snug_value scores = OP(g, "affine", "scale=0.5 shift=0", /* 1 / sqrt(D / H) */
                                 OP(g, "matmul", "trans_b=1", q, k));
    const snug_value mixed =
        OP(g, "matmul", "", OP(g, "softmax", "", scores), heads_of(g, rows, w[2]));
    const snug_value joined = reshape(g, OP(g, "transpose", "perm=0,2,1,3", mixed), "-1,8");
    const snug_value attended = OP(g, "add", "", rows, OP(g, "matmul", "", joined, w[3]));
    const snug_value norm = OP(g, "layernorm", "epsilon=0.001", attended, w[4], w[5]);
    const snug_value wide = OP(g, "gelu", "", OP(g, "matmul", "", norm, w[6]));
    const snug_value out = OP(g, "add", "", attended, OP(g, "matmul", "", wide, w[7]));
    const snug_value pooled = OP(g, "sum", "axes=1", reshape(g, out, "-1,5,8"));
    return OP(g, "matmul", "", pooled, w[8]);
}

/* Sum of squared distances to the target "t". */
static snug_value loss_of(snug_graph *g, snug_value y, const snug_type *type) {
    snug_error err;
    snug_value t;
    expect_ok(snug_graph_input(g, "t", type, &t, &err), &err);
    return OP(g, "sum", "axes=0,1", OP(g, "square", "", OP(g, "sub", "", y, t)));
}

static snug_value start_graph(snug_engine *e, snug_dtype dtype, int64_t batch, snug_graph **g,
                              snug_value *w) {
    snug_error err;
    snug_value x;
    expect_ok(snug_graph_create(e, g, &err), &err);
    expect_ok(snug_graph_input(*g, "x", &(snug_type){dtype, 3, {batch, T, D}}, &x, &err), &err);
    add_weights(*g, dtype, w);
    return block(*g, x, w);
}

static snug_feed *open_feed(snug_engine *e, const char *source) {
    snug_error err;
    snug_feed *feed;
    expect_ok(snug_feed_open(e, source, &feed, &err), &err);
    return feed;
}

static double run_for_loss(snug_session *s) {
    snug_error err;
    snug_view v;
    expect_ok(snug_session_run(s, &err), &err);
    expect_ok(snug_session_output(s, "loss", &v, &err), &err);
    return v.type.dtype == SNUG_F64 ? *(double *)v.data : (double)*(float *)v.data;
}

/* --- gradients -------------------------------------------------------------------------------- */
static void compare_gradient(snug_session *s, int i) {
    snug_error err;
    snug_view w, dw;
    char name[32];
    double gradient[MAX_WEIGHT], largest = 0;
    snprintf(name, sizeof name, "d_%s", weights[i].name);
    (void)run_for_loss(s);
    expect_ok(snug_session_output(s, name, &dw, &err), &err);
    expect_ok(snug_session_variable(s, weights[i].name, &w, &err), &err);
    const size_t n = w.bytes / sizeof(double);
    assert_int_equal(dw.bytes, w.bytes);
    memcpy(gradient, dw.data, dw.bytes);
    for (size_t k = 0; k < n; k++)
        largest = fmax(largest, fabs(gradient[k]));
    assert_true(largest > 1e-3);
    for (size_t k = 0; k < n; k++) {
        double *const at = (double *)w.data + k;
        const double kept = *at, h = 1e-5;
        *at = kept + h;
        const double above = run_for_loss(s);
        *at = kept - h;
        const double below = run_for_loss(s);
        *at = kept;
        if (fabs((above - below) / (2 * h) - gradient[k]) > 1e-7 * largest)
            fail_msg("%s[%zu]: difference %.12g, gradient %.12g", weights[i].name, k,
                     (above - below) / (2 * h), gradient[k]);
    }
}

static void test_attention_gradients_agree_with_differences(void **state) {
    snug_error err;
    snug_graph *g;
    snug_session *s;
    snug_value w[N_WEIGHTS], dw[N_WEIGHTS];
    const snug_value y = start_graph(*state, SNUG_F64, 2, &g, w);
    const snug_value loss = loss_of(g, y, &(snug_type){SNUG_F64, 2, {2, PAYLOAD}});
    expect_ok(snug_graph_gradients(g, loss, w, N_WEIGHTS, dw, &err), &err);
    expect_ok(snug_graph_output(g, "loss", loss, &err), &err);
    for (int i = 0; i < N_WEIGHTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "d_%s", weights[i].name);
        expect_ok(snug_graph_output(g, name, dw[i], &err), &err);
    }
    expect_ok(snug_session_create(*state, g, NULL, &s, &err), &err);
    snug_graph_destroy(g);
    snug_feed *x = open_feed(*state, "normal:2x5x8@1"), *t = open_feed(*state, "normal:2x3@2");
    expect_ok(snug_session_feed(s, "x", x, 0, &err), &err);
    expect_ok(snug_session_feed(s, "t", t, 0, &err), &err);
    for (int i = 0; i < N_WEIGHTS; i++)
        compare_gradient(s, i);
    snug_session_destroy(s);
    snug_feed_destroy(x);
    snug_feed_destroy(t);
}

/* --- learning --------------------------------------------------------------------------------- */
enum { ROWS = 64 };

/* In every sequence one token is marked; its payload is the answer. Only by looking for the mark
 * can it be told from the others. */
static void make_sequences(float x[ROWS][T][D], float t[ROWS][PAYLOAD]) {
    uint32_t seed = 1;
    for (int i = 0; i < ROWS; i++) {
        const int marked = i * 7 % T;
        for (int k = 0; k < T; k++)
            for (int d = 0; d < D; d++) {
                seed = seed * 1664525u + 1013904223u;
                const float r = (float)(seed >> 8) / 8388608.0f - 1;
                x[i][k][d] = d < PAYLOAD ? r : d == PAYLOAD ? (k == marked ? 3.0f : 0.0f) : 0;
            }
        memcpy(t[i], x[i][marked], sizeof t[i]);
    }
}

static void add_updates(snug_graph *g, const snug_value *w, const snug_value *dw) {
    snug_error err;
    expect_ok(snug_graph_param(g, "rate", 0.003, &err), &err);
    for (int i = 0; i < N_WEIGHTS; i++) {
        snug_type type;
        snug_value slots[2];
        const snug_variable_options slot = {.is_slot = 1};
        expect_ok(snug_graph_type(g, w[i], &type, &err), &err);
        for (int k = 0; k < 2; k++) {
            char name[32];
            snprintf(name, sizeof name, "%s/%s", weights[i].name, k ? "velocity" : "momentum");
            expect_ok(snug_graph_variable(g, name, &type, &slot, &slots[k], &err), &err);
        }
        (void)OP(g, "adam", "rate=p:rate one_minus_beta1=0.1 one_minus_beta2=0.01 epsilon=1e-7",
                 w[i], slots[0], slots[1], dw[i]);
    }
}

static void test_attention_learns_to_find_the_marked_token(void **state) {
    static float xs[ROWS][T][D], ts[ROWS][PAYLOAD];
    snug_error err;
    snug_graph *g;
    snug_session *s;
    snug_feed *x, *t;
    snug_value w[N_WEIGHTS], dw[N_WEIGHTS];
    make_sequences(xs, ts);
    const snug_value y = start_graph(*state, SNUG_F32, ROWS, &g, w);
    const snug_type answers = {SNUG_F32, 2, {ROWS, PAYLOAD}};
    const snug_value loss = loss_of(g, y, &answers);
    expect_ok(snug_graph_gradients(g, loss, w, N_WEIGHTS, dw, &err), &err);
    add_updates(g, w, dw);
    expect_ok(snug_graph_output(g, "loss", loss, &err), &err);
    expect_ok(snug_session_create(*state, g, NULL, &s, &err), &err);
    snug_graph_destroy(g);
    const snug_type sequences = {SNUG_F32, 3, {ROWS, T, D}};
    expect_ok(snug_feed_from_memory(*state, &sequences, xs, NULL, NULL, &x, &err), &err);
    expect_ok(snug_feed_from_memory(*state, &answers, ts, NULL, NULL, &t, &err), &err);
    expect_ok(snug_session_feed(s, "x", x, 0, &err), &err);
    expect_ok(snug_session_feed(s, "t", t, 0, &err), &err);
    double square = 0, last = 0;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < PAYLOAD; k++)
            square += (double)ts[i][k] * (double)ts[i][k];
    for (int step = 0; step < 600; step++)
        last = run_for_loss(s);
    /* Answering 0 loses `square`; the mean of the tokens, without looking, about 0.8 of it. */
    if (!(last < 0.2 * square))
        fail_msg("after 600 steps the loss is %g of %g", last, square);
    snug_session_destroy(s);
    snug_feed_destroy(x);
    snug_feed_destroy(t);
}

/* --- templates -------------------------------------------------------------------------------- */
static void predict(snug_engine *e, const snug_graph *template, int64_t batch, snug_session *share,
                    snug_session **out) {
    snug_error err;
    snug_graph *g;
    const snug_type type = {SNUG_F32, 3, {batch, T, D}};
    expect_ok(snug_graph_instantiate(template, &type, 1, &g, &err), &err);
    expect_ok(snug_session_create(e, g, share, out, &err), &err);
    snug_graph_destroy(g);
    snug_feed *x = open_feed(e, "normal:6x5x8@1");
    expect_ok(snug_session_feed(*out, "x", x, 0, &err), &err);
    expect_ok(snug_session_run(*out, &err), &err);
    snug_feed_destroy(x);
}

static void test_one_template_serves_two_batch_sizes(void **state) {
    snug_error err;
    snug_graph *template;
    snug_session *small, *large;
    snug_value w[N_WEIGHTS];
    snug_view a, b;
    float first[2 * PAYLOAD];
    const snug_value y = start_graph(*state, SNUG_F32, -1, &template, w);
    expect_ok(snug_graph_output(template, "y", y, &err), &err);
    expect_status(snug_session_create(*state, template, NULL, &small, &err), SNUG_E_SHAPE, &err);
    predict(*state, template, 2, NULL, &small);
    expect_ok(snug_session_output(small, "y", &a, &err), &err);
    assert_int_equal(a.bytes, sizeof first);
    memcpy(first, a.data, sizeof first); /* the next session may move the arena */
    predict(*state, template, 6, small, &large);
    expect_ok(snug_session_output(large, "y", &b, &err), &err);
    assert_int_equal(b.type.dims[0], 6);
    for (int i = 0; i < 2 * PAYLOAD; i++)
        assert_true(fabsf(first[i] - ((const float *)b.data)[i]) <= 1e-5f * fabsf(first[i]));
    snug_graph_destroy(template);
    snug_session_destroy(small);
    snug_session_destroy(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_attention_gradients_agree_with_differences),
        engine_test(test_attention_learns_to_find_the_marked_token),
        engine_test(test_one_template_serves_two_batch_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
