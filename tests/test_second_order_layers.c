/* test_second_order_layers.c: gradients of gradients through recurrent rows and attention against
 * TensorFlow's: sum(dx^2) + sum(y) with dx = d sum(y^2) / d x, by the input and all weights, in
 * f64 to 1e-9. tests/golden/second_order.py says which numbers and has the layers. And a penalty on
 * an LSTM's gradient trains as a plan in f32. Byte limit: 8 MiB. */
#include "support/eval.h"
#include "support/second_order_golden.h"
#include "support/support.h"
#include "support/world.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 2, STEPS = 4, FEATURES = 3, UNITS = 2, HEADS = 2, MAX_OPERANDS = 10 };

static const double mask[BATCH * STEPS] = {1, 1, 0, 1, 0, 1, 1, 0};

/* One layer: its operands (x first) and the numbers to reach. */
typedef struct {
    const char *name;
    sn_value (*build)(sn_builder *b, const sn_value *w, sn_value mask);
    bool masked;
    int n;
    snug_type operand[MAX_OPERANDS];
    const double *golden;
} layer;

/* --- the layers ------------------------------------------------------------------------------- */
static sn_value zeros(sn_builder *b) {
    return sn_build_fill(b, &(snug_type){SNUG_F64, 2, {BATCH, UNITS}}, 0);
}

/* Inputs 0 to n - 1 and a mask, if there is one; output k of the row. */
static sn_value recur(sn_builder *b, sn_op op, sn_value *in, int n, sn_value seen, int k) {
    sn_attrs a;
    sn_value outs[SN_MAX_OUT];
    sn_attrs_default(op, &a);
    a.rnn.act = SN_ACT_tanh;
    a.rnn.gate_act = op == SN_OP_simple_rnn ? SN_ACT_none : SN_ACT_sigmoid;
    if (op == SN_OP_gru)
        a.gru.reset_after = n > 3;
    if (sn_value_ok(seen))
        in[n++] = seen;
    sn_build_all(b, op, &a, in, n, outs);
    return outs[k];
}

static sn_value build_lstm(sn_builder *b, const sn_value *w, sn_value seen) {
    sn_value in[5] = {sn_build_add(b, sn_build_matmul(b, w[0], w[1], SN_NO_VALUE), w[3]), w[2],
                      zeros(b), zeros(b)};
    return recur(b, SN_OP_lstm, in, 4, seen, 1);
}

/* The bias is that of the inputs and that of the states. */
static sn_value build_gru(sn_builder *b, const sn_value *w, sn_value seen) {
    const int64_t row[1] = {3 * UNITS};
    const sn_value bias = sn_build_reshape(b, sn_build_part(b, w[3], 0, 0, 1), row, 1);
    sn_value in[5] = {sn_build_add(b, sn_build_matmul(b, w[0], w[1], SN_NO_VALUE), bias), w[2],
                      zeros(b), sn_build_reshape(b, sn_build_part(b, w[3], 0, 1, 1), row, 1)};
    return recur(b, SN_OP_gru, in, 4, seen, 1);
}

static sn_value build_gru_before(sn_builder *b, const sn_value *w, sn_value seen) {
    sn_value in[4] = {sn_build_add(b, sn_build_matmul(b, w[0], w[1], SN_NO_VALUE), w[3]), w[2],
                      zeros(b)};
    return recur(b, SN_OP_gru, in, 3, seen, 1);
}

static sn_value build_simple_rnn(sn_builder *b, const sn_value *w, sn_value seen) {
    sn_value in[4] = {sn_build_add(b, sn_build_matmul(b, w[0], w[1], SN_NO_VALUE), w[3]), w[2],
                      zeros(b)};
    return recur(b, SN_OP_simple_rnn, in, 3, seen, 0);
}

/* w: x, kernels and biases of query, key, value, output. */
static sn_value attend(sn_builder *b, const sn_value *w, bool causal) {
    sn_value qkv[3];
    sn_attrs a;
    for (int i = 0; i < 3; i++) {
        const sn_value in[2] = {w[0], w[1 + 2 * i]};
        qkv[i] = sn_build_add(b, sn_build_einsum(b, "btf,fnd->btnd", in, 2), w[2 + 2 * i]);
    }
    sn_attrs_default(SN_OP_attention, &a);
    a.attention.causal = causal;
    /* Keras makes the scale a float before it meets doubles. */
    a.attention.scale = (int64_t)sn_build_param(b, "", (float)(1 / sqrt(UNITS))).i;
    a.attention.rate = (int64_t)sn_build_param(b, "", 0).i;
    a.attention.key = (int64_t)sn_build_key(b, "", 0).i;
    const sn_value out[2] = {sn_build(b, SN_OP_attention, &a, qkv, 3), w[7]};
    return sn_build_add(b, sn_build_einsum(b, "btnd,ndf->btf", out, 2), w[8]);
}

static sn_value build_attention(sn_builder *b, const sn_value *w, sn_value seen) {
    (void)seen;
    return attend(b, w, false);
}

static sn_value build_attention_causal(sn_builder *b, const sn_value *w, sn_value seen) {
    (void)seen;
    return attend(b, w, true);
}

#define X                                                                                          \
    {                                                                                              \
        SNUG_F64, 3, {                                                                             \
            BATCH, STEPS, FEATURES                                                                 \
        }                                                                                          \
    }
#define MATRIX(r, c)                                                                               \
    {                                                                                              \
        SNUG_F64, 2, {                                                                             \
            r, c                                                                                   \
        }                                                                                          \
    }
#define VECTOR(n)                                                                                  \
    {                                                                                              \
        SNUG_F64, 1, {                                                                             \
            n                                                                                      \
        }                                                                                          \
    }
#define GATES(g) X, MATRIX(FEATURES, (g)*UNITS), MATRIX(UNITS, (g)*UNITS)
#define IN_HEADS {SNUG_F64, 3, {FEATURES, HEADS, UNITS}}, MATRIX(HEADS, UNITS)
#define SELF                                                                                       \
    X, IN_HEADS, IN_HEADS, IN_HEADS, {SNUG_F64, 3, {HEADS, UNITS, FEATURES}}, VECTOR(FEATURES)
static const layer layers[] = {
    {"lstm", build_lstm, false, 4, {GATES(4), VECTOR(4 * UNITS)}, golden_lstm},
    {"lstm masked", build_lstm, true, 4, {GATES(4), VECTOR(4 * UNITS)}, golden_lstm_masked},
    {"gru", build_gru, false, 4, {GATES(3), MATRIX(2, 3 * UNITS)}, golden_gru},
    {"gru masked", build_gru, true, 4, {GATES(3), MATRIX(2, 3 * UNITS)}, golden_gru_masked},
    {"gru before", build_gru_before, false, 4, {GATES(3), VECTOR(3 * UNITS)}, golden_gru_before},
    {"simple_rnn", build_simple_rnn, false, 4, {GATES(1), VECTOR(UNITS)}, golden_simple_rnn},
    {"attention", build_attention, false, 9, {SELF}, golden_attention},
    {"attention causal", build_attention_causal, false, 9, {SELF}, golden_attention_causal},
};

/* --- the loss --------------------------------------------------------------------------------- */
static sn_value build_loss(sn_builder *b, const layer *l, const sn_value *w, sn_value seen) {
    snug_error err;
    sn_value dx;
    const sn_value y = l->build(b, w, seen);
    const sn_value size = sn_build_sum(b, sn_build_square(b, y), 0, false);
    expect_ok(sn_builder_done(b, &err), &err);
    expect_ok(sn_graph_gradients(b->graph, size, &w[0], 1, &dx, &err), &err);
    return sn_build_add(b, sn_build_sum(b, sn_build_square(b, dx), 0, false),
                        sn_build_sum(b, y, 0, false));
}

static void expect_number(const layer *l, int i, double got) {
    const double want = l->golden[i];
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
        fail_msg("%s, number %d: %.15g, TensorFlow has %.15g", l->name, i, got, want);
}

static void compare(snug_engine *e, const sn_graph *g, const layer *l) {
    sn_test_arrays in = sn_test_inputs(g, -1, 1);
    for (int i = 0; i < l->n; i++)
        for (size_t k = 0; k < in.count[i]; k++)
            in.data[i][k] = 0.6 * sin(0.9 * (double)k + 1.7 * i + 0.3);
    for (int k = 0; l->masked && k < BATCH * STEPS; k++)
        in.data[l->n][k] = mask[k];
    sn_test_arrays out = sn_test_eval(e, g, &in);
    expect_number(l, 0, out.data[0][0]);
    for (int i = 0; i < l->n; i++) {
        double wave = 0, squares = 0;
        for (size_t k = 0; k < out.count[1 + i]; k++) {
            wave += out.data[1 + i][k] * cos(0.5 * (double)k + 1);
            squares += out.data[1 + i][k] * out.data[1 + i][k];
        }
        expect_number(l, 1 + 2 * i, wave);
        expect_number(l, 2 + 2 * i, squares);
    }
    sn_test_arrays_clear(&out);
    sn_test_arrays_clear(&in);
}

static void check_layer(snug_engine *e, const layer *l) {
    snug_error err;
    sn_graph *g;
    char name[16];
    sn_value w[MAX_OPERANDS], grads[MAX_OPERANDS], seen = SN_NO_VALUE;
    expect_ok(sn_graph_create(e, &g, &err), &err);
    for (int i = 0; i < l->n; i++) {
        snprintf(name, sizeof name, "w%d", i);
        expect_ok(sn_graph_input(g, name, &l->operand[i], &w[i], &err), &err);
    }
    const snug_type truth = {SNUG_BOOL, 2, {BATCH, STEPS}};
    if (l->masked)
        expect_ok(sn_graph_input(g, "mask", &truth, &seen, &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value loss = build_loss(&b, l, w, seen);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "loss", loss, &err), &err);
    expect_ok(sn_graph_gradients(g, loss, w, l->n, grads, &err), &err);
    for (int i = 0; i < l->n; i++) {
        snprintf(name, sizeof name, "g%d", i);
        /* a key's bias has no influence at all */
        if (!sn_value_ok(grads[i]))
            grads[i] = sn_build_fill(&b, &l->operand[i], 0);
        expect_ok(sn_graph_output(g, name, grads[i], &err), &err);
    }
    compare(e, g, l);
    sn_graph_destroy(g);
}

static void test_gradients_of_gradients_are_those_of_tensorflow(void **state) {
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        check_layer(*state, &layers[i]);
}

/* --- faults ----------------------------------------------------------------------------------- */
/* Both orders of one layer, with what may fail on the way handed out. */
static snug_status two_orders(snug_engine *e, void *ctx, snug_error *err) {
    const layer *l = ctx;
    sn_graph *g;
    char name[16];
    sn_value w[MAX_OPERANDS], grads[MAX_OPERANDS], dx, seen = SN_NO_VALUE;
    const snug_type truth = {SNUG_BOOL, 2, {BATCH, STEPS}};
    SNUG_TRY(sn_graph_create(e, &g, err));
    snug_status status = SNUG_OK;
    for (int i = 0; status == SNUG_OK && i < l->n; i++) {
        snprintf(name, sizeof name, "w%d", i);
        status = sn_graph_input(g, name, &l->operand[i], &w[i], err);
    }
    if (status == SNUG_OK && l->masked)
        status = sn_graph_input(g, "mask", &truth, &seen, err);
    if (status != SNUG_OK)
        goto done;
    sn_builder b = sn_builder_on(g);
    const sn_value y = l->build(&b, w, seen);
    const sn_value size = sn_build_sum(&b, sn_build_square(&b, y), 0, false);
    status = sn_builder_done(&b, err);
    if (status == SNUG_OK)
        status = sn_graph_gradients(g, size, &w[0], 1, &dx, err);
    if (status != SNUG_OK)
        goto done;
    const sn_value loss = sn_build_sum(&b, sn_build_square(&b, dx), 0, false);
    status = sn_builder_done(&b, err);
    if (status == SNUG_OK)
        status = sn_graph_gradients(g, loss, w, l->n, grads, err);
done:
    sn_graph_destroy(g);
    return status;
}

static void test_second_order_survives_failing_requests(void **state) {
    (void)state;
    static const int some[] = {1, 3, 7};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        sn_fault_sweep(two_orders, (void *)&layers[some[i]]);
}

/* --- training --------------------------------------------------------------------------------- */
enum { N_SELF = 8, N_WEIGHTS = N_SELF + 3 };

static void add_variables(world *w, sn_value *v) {
    for (int i = 0; i < N_WEIGHTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        snug_type t = i < N_SELF ? layers[7].operand[1 + i] : layers[0].operand[1 + i - N_SELF];
        t.dtype = SNUG_F32;
        const sn_variable var = {.name = name,
                                 .type = t,
                                 .home = (uint32_t)i,
                                 .trainable = true,
                                 .init = {SN_RECIPE_UNIFORM, (uint64_t)i + 1, -0.5, 0.5}};
        world_ok(w, sn_graph_variable(w->graph, &var, &v[i], &w->err));
    }
}

/* v: x and the weights. mean((|d sum(y) / d x|^2 - 1)^2), y = lstm(attention(x)) */
static sn_value penalty(world *w, sn_builder *b, const sn_value *v) {
    sn_value dx;
    const snug_type state_type = {SNUG_F32, 2, {BATCH, UNITS}};
    const sn_value attended = attend(b, v, true), none = sn_build_fill(b, &state_type, 0);
    const sn_value *const k = v + 1 + N_SELF;
    sn_value in[4] = {sn_build_add(b, sn_build_matmul(b, attended, k[0], SN_NO_VALUE), k[2]), k[1],
                      none, none};
    const sn_value sum = sn_build_sum(b, recur(b, SN_OP_lstm, in, 4, SN_NO_VALUE, 1), 0, false);
    world_ok(w, sn_builder_done(b, &w->err));
    world_ok(w, sn_graph_gradients(w->graph, sum, v, 1, &dx, &w->err));
    const sn_value size = sn_build_sum(b, sn_build_square(b, dx), 6, false);
    return sn_build_mean(b, sn_build_square(b, sn_build_affine(b, size, 1, -1)), 0, false);
}

static void test_a_penalty_on_attention_and_an_lstm_trains(void **state) {
    (void)state;
    static float numbers[BATCH * STEPS * FEATURES];
    for (int i = 0; i < BATCH * STEPS * FEATURES; i++)
        numbers[i] = (float)((i * 37 + 11) % 64) / 32.0f - 1;
    world w;
    world_open(&w);
    const snug_type x_type = {SNUG_F32, 3, {BATCH, STEPS, FEATURES}};
    sn_value v[1 + N_WEIGHTS] = {world_input(&w, "x", &x_type, numbers)}, grads[N_WEIGHTS];
    add_variables(&w, v + 1);
    sn_builder b = sn_builder_on(w.graph);
    const sn_value loss = penalty(&w, &b, v);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_gradients(w.graph, loss, v + 1, N_WEIGHTS, grads, &w.err));
    sn_attrs a;
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = (int64_t)sn_build_param(&b, "", 0.05).i;
    a.sgd.momentum = (int64_t)sn_build_param(&b, "", 0).i;
    for (int i = 0; i < N_WEIGHTS; i++)
        if (sn_value_ok(grads[i]))
            (void)sn_build(&b, SN_OP_sgd, &a, (sn_value[]){v[i + 1], grads[i]}, 2);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "loss", loss, &w.err));
    world_falls(&w, 200, 0.2f);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_gradients_of_gradients_are_those_of_tensorflow),
        cmocka_unit_test(test_second_order_survives_failing_requests),
        cmocka_unit_test(test_a_penalty_on_attention_and_an_lstm_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
