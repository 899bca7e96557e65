/* test_second_order.c: a loss with a gradient penalty, the size of d(loss) / d(input) of a small
 * network of convolution, batch norm, layer norm, dense layers and all activations: its gradients
 * agree with differences in f64, and it trains in f32 as a plan. Byte limit: 1 MiB. */
#include "support/eval.h"
#include "support/support.h"
#include "support/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N_WEIGHTS = 10, BATCH = 3 };

static const struct {
    const char *name;
    int rank;
    int64_t dims[4];
    double start; /* of a variable; kernels get some numbers around 0 */
} weights[N_WEIGHTS] = {
    {"conv/kernel", 4, {3, 3, 2, 4}, 0},
    {"conv/bias", 1, {4}, 0},
    {"bn/gamma", 1, {4}, 1},
    {"bn/beta", 1, {4}, 0},
    {"ln/gamma", 1, {4}, 1},
    {"ln/beta", 1, {4}, 0},
    {"dense/kernel", 2, {16, 8}, 0},
    {"dense/bias", 1, {8}, 0},
    {"out/kernel", 2, {8, 1}, 0},
    {"out/bias", 1, {1}, 0},
};

static snug_type weight_type(int i, snug_dtype dtype) {
    snug_type t = {dtype, weights[i].rank, {0}};
    memcpy(t.dims, weights[i].dims, sizeof weights[i].dims);
    return t;
}

static const snug_type image = {SNUG_F64, 4, {BATCH, 4, 4, 2}}, target = {SNUG_F64, 2, {BATCH, 1}};

static sn_param number(sn_builder *b, double value) {
    return sn_build_param(b, "", value);
}

static sn_value convolve(sn_builder *b, sn_value x, sn_value w, sn_value bias) {
    const sn_value in[2] = {x, w};
    sn_attrs a;
    sn_attrs_default(SN_OP_conv2d, &a);
    for (int i = 0; i < 4; i++)
        a.conv.pad[i] = 1;
    a.conv.stride[0] = a.conv.stride[1] = 2;
    return sn_build_add(b, sn_build(b, SN_OP_conv2d, &a, in, 2), bias);
}

static sn_value batch_norm(sn_builder *b, sn_value x, sn_value gamma, sn_value beta) {
    const snug_type t = *sn_graph_type(b->graph, x);
    const double share = 1 / (double)sn_type_span(&t, 0, t.rank - 1);
    sn_value sums[SN_MAX_OUT];
    sn_build_all(b, SN_OP_moments, NULL, &x, 1, sums);
    const sn_value mean = sn_build_affine(b, sums[0], share, 0);
    const sn_value var =
        sn_build_sub(b, sn_build_affine(b, sums[1], share, 0), sn_build_square(b, mean));
    const sn_value in[5] = {x, sn_build_cast(b, mean, t.dtype), sn_build_cast(b, var, t.dtype),
                            gamma, beta};
    sn_attrs a;
    sn_attrs_default(SN_OP_normalise, &a);
    a.epsilon.epsilon = (int64_t)number(b, 1e-2).i;
    return sn_build(b, SN_OP_normalise, &a, in, 5);
}

static sn_value layer_norm(sn_builder *b, sn_value x, sn_value gamma, sn_value beta) {
    const sn_value in[3] = {x, gamma, beta};
    sn_attrs a;
    sn_attrs_default(SN_OP_layernorm, &a);
    a.epsilon.epsilon = (int64_t)number(b, 1e-2).i;
    return sn_build(b, SN_OP_layernorm, &a, in, 3);
}

/* The sum of all, so that every activation is on the way of every gradient. */
static sn_value activate(sn_builder *b, sn_value x) {
    sn_value y = sn_build_tanh(b, x);
    y = sn_build_add(b, y, sn_build_gelu(b, x));
    y = sn_build_add(b, y, sn_build_silu(b, x));
    y = sn_build_add(b, y, sn_build_softplus(b, x));
    y = sn_build_add(b, y, sn_build_value_op(b, SN_OP_elu, &x, 1, 0.7));
    y = sn_build_add(b, y, sn_build_value_op(b, SN_OP_leaky_relu, &x, 1, 0.2));
    return sn_build_affine(b, sn_build_add(b, y, sn_build_relu(b, x)), 0.2, 0);
}

/* mean((net(x) - t)^2) + mean over the batch of (|d sum(net) / d x| - 1)^2 */
static sn_value build_loss(sn_builder *b, sn_value x, sn_value t, const sn_value *w) {
    snug_error err;
    sn_value dx, y = convolve(b, x, w[0], w[1]);
    y = activate(b, batch_norm(b, y, w[2], w[3]));
    y = layer_norm(b, y, w[4], w[5]);
    y = sn_build_sigmoid(b, sn_build_reshape(b, y, (int64_t[]){BATCH, 16}, 2));
    y = activate(b, sn_build_matmul(b, y, w[6], w[7]));
    y = sn_build_matmul(b, y, w[8], w[9]);
    const sn_value sum = sn_build_sum(b, y, 0, false);
    const sn_value fit = sn_build_mean(b, sn_build_square(b, sn_build_sub(b, y, t)), 0, false);
    expect_ok(sn_builder_done(b, &err), &err);
    expect_ok(sn_graph_gradients(b->graph, sum, &x, 1, &dx, &err), &err);
    const sn_value size = sn_build_sqrt(
        b, sn_build_affine(b, sn_build_sum(b, sn_build_square(b, dx), 14, false), 1, 1e-6));
    const sn_value penalty =
        sn_build_mean(b, sn_build_square(b, sn_build_affine(b, size, 1, -1)), 0, false);
    return sn_build_add(b, fit, penalty);
}

/* --- against differences ---------------------------------------------------------------------- */

static double loss_at(snug_engine *e, const sn_graph *g, const sn_test_arrays *in) {
    sn_test_arrays out = sn_test_eval(e, g, in);
    const double loss = out.data[0][0];
    sn_test_arrays_clear(&out);
    return loss;
}

static double slope_at(snug_engine *e, const sn_graph *g, sn_test_arrays *in, uint32_t i,
                       size_t k) {
    const double h = 1e-4, was = in->data[i][k];
    double f[4];
    static const double steps[4] = {2, 1, -1, -2};
    for (int p = 0; p < 4; p++) {
        in->data[i][k] = was + steps[p] * h;
        f[p] = loss_at(e, g, in);
    }
    in->data[i][k] = was;
    return (8 * (f[1] - f[2]) - (f[0] - f[3])) / (12 * h);
}

static void test_gradients_of_a_penalty_agree_with_differences(void **state) {
    snug_error err;
    sn_graph *g, *losses;
    sn_value x, t, w[N_WEIGHTS], wrt[N_WEIGHTS + 1], grads[N_WEIGHTS + 1];
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &image, &x, &err), &err);
    expect_ok(sn_graph_input(g, "t", &target, &t, &err), &err);
    for (int i = 0; i < N_WEIGHTS; i++) {
        const snug_type type = weight_type(i, SNUG_F64);
        expect_ok(sn_graph_input(g, weights[i].name, &type, &w[i], &err), &err);
        wrt[i] = w[i];
    }
    sn_builder b = sn_builder_on(g);
    const sn_value loss = build_loss(&b, x, t, w);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "loss", loss, &err), &err);
    expect_ok(sn_graph_fuse(g, &losses, &err), &err); /* the loss alone, for the differences */
    wrt[N_WEIGHTS] = x;
    expect_ok(sn_graph_gradients(g, loss, wrt, N_WEIGHTS + 1, grads, &err), &err);
    for (int i = 0; i <= N_WEIGHTS; i++) {
        char name[8];
        snprintf(name, sizeof name, "g%d", i);
        expect_ok(sn_graph_output(g, name, grads[i], &err), &err);
    }
    sn_test_arrays in = sn_test_inputs(g, -1, 1);
    sn_test_arrays out = sn_test_eval(*state, g, &in);
    for (uint32_t i = 0; i <= N_WEIGHTS; i++) {
        const uint32_t input = i < N_WEIGHTS ? i + 2 : 0;
        for (size_t k = 0; k < in.count[input]; k += 1 + in.count[input] / 5) {
            const double got = out.data[1 + i][k];
            const double want = slope_at(*state, losses, &in, input, k);
            if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
                fail_msg("%s[%zu]: %.12g, differences say %.12g",
                         i < N_WEIGHTS ? weights[i].name : "x", k, got, want);
        }
    }
    sn_test_arrays_clear(&out);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(losses);
    sn_graph_destroy(g);
}

/* --- training --------------------------------------------------------------------------------- */

static sn_value add_variable(world *w, int i) {
    sn_value v;
    sn_variable var = {.name = weights[i].name,
                       .type = weight_type(i, SNUG_F32),
                       .home = (uint32_t)i,
                       .trainable = true,
                       .init = {SN_RECIPE_CONSTANT, 0, weights[i].start, 0}};
    if (weights[i].rank > 1)
        var.init = (sn_recipe){SN_RECIPE_UNIFORM, (uint64_t)i + 7, -0.4, 0.4};
    world_ok(w, sn_graph_variable(w->graph, &var, &v, &w->err));
    return v;
}

static void test_a_loss_with_a_gradient_penalty_trains(void **state) {
    (void)state;
    static float pixels[BATCH * 4 * 4 * 2];
    static const float wanted[BATCH] = {0.5f, -0.5f, 1};
    for (int i = 0; i < BATCH * 32; i++)
        pixels[i] = (float)((i * 37 + 11) % 64) / 32.0f - 1;
    world w;
    world_open(&w);
    snug_type x_type = image, t_type = target;
    x_type.dtype = t_type.dtype = SNUG_F32;
    const sn_value x = world_input(&w, "x", &x_type, pixels);
    const sn_value t = world_input(&w, "t", &t_type, wanted);
    sn_value v[N_WEIGHTS], grads[N_WEIGHTS];
    for (int i = 0; i < N_WEIGHTS; i++)
        v[i] = add_variable(&w, i);
    sn_builder b = sn_builder_on(w.graph);
    const sn_value loss = build_loss(&b, x, t, v);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_gradients(w.graph, loss, v, N_WEIGHTS, grads, &w.err));
    sn_attrs a;
    sn_attrs_default(SN_OP_sgd, &a);
    a.sgd.rate = (int64_t)number(&b, 0.03).i;
    a.sgd.momentum = (int64_t)number(&b, 0).i;
    for (int i = 0; i < N_WEIGHTS; i++)
        (void)sn_build(&b, SN_OP_sgd, &a, (sn_value[]){v[i], grads[i]}, 2);
    world_ok(&w, sn_builder_done(&b, &w.err));
    world_ok(&w, sn_graph_output(w.graph, "loss", loss, &w.err));
    world_falls(&w, 150, 0.1f);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_gradients_of_a_penalty_agree_with_differences),
        cmocka_unit_test(test_a_loss_with_a_gradient_penalty_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
