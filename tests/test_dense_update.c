/* test_dense_update.c: a dense layer's weight gradient, and that of its input, inside its Adam
 * update: the bits of the rows apart, and only where it is asked for. */
#include "support/kernel_call.h"
#include "support/support.h"

#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

/* --- the kernel ------------------------------------------------------------------------------ */

static const double adam_params[4] = {0.01, 0.1, 0.001, 1e-3};

static void begin_update(sn_test_call *k, sn_op op, const sn_test_call *product) {
    const snug_type w = product->d.out[0];
    sn_begin(k, op);
    sn_add_in(k, w, -1, 1);
    sn_add_in(k, w, -1, 1);
    sn_add_in(k, w, 0.5, 1);
    for (int i = 0; i < 4; i++)
        k->param[i].real = adam_params[i];
}

/* x^T dy by matmul, then adam; and both at once, with the gradient as an output. */
static void expect_bits_of_two(int64_t terms, int64_t rows, int64_t columns, int threads) {
    sn_test_call product, apart, once;
    sn_begin(&product, SN_OP_matmul);
    product.d.attrs.matmul.trans_a = 1;
    sn_add_in(&product, SHAPE(SNUG_F32, terms, rows), -1, 1);
    sn_add_in(&product, SHAPE(SNUG_F32, terms, columns), -1, 1);
    product.threads = threads;
    sn_ready(&product);
    sn_run(&product);
    begin_update(&apart, SN_OP_adam, &product);
    sn_add_in(&apart, product.d.out[0], -1, 1);
    memcpy(apart.in[3].data, product.out[0].data, product.out[0].bytes);
    begin_update(&once, SN_OP_matmul_adam, &product);
    once.d.attrs.matmul_adam.gradient = 1;
    for (int i = 0; i < 2; i++) {
        sn_add_in(&once, product.d.in[i], -1, 1);
        memcpy(once.in[3 + i].data, product.in[i].data, product.in[i].bytes);
    }
    apart.threads = once.threads = threads;
    sn_ready(&apart);
    sn_ready(&once);
    sn_run(&apart);
    sn_run(&once);
    for (int k = 0; k < 3; k++)
        assert_memory_equal(once.out[k].data, apart.out[k].data, apart.out[k].bytes);
    assert_memory_equal(once.out[3].data, product.out[0].data, product.out[0].bytes);
    sn_kernel_close(&product);
    sn_kernel_close(&apart);
    sn_kernel_close(&once);
}

static void test_update_at_once_has_the_bits_of_two_rows(void **state) {
    (void)state;
    for (int threads = 1; threads < 4; threads++) {
        expect_bits_of_two(8, 5000, 10, threads);
        expect_bits_of_two(32, 700, 10, threads);
        expect_bits_of_two(5, 67, 300, threads);
        expect_bits_of_two(300, 130, 35, threads);
        expect_bits_of_two(2500, 20, 10, threads);
        expect_bits_of_two(3, 1, 1, threads);
    }
}

/* The same with dx = dy w^T, which lies over x; one of the two with the gradient. */
static void expect_bits_of_three(int64_t terms, int64_t rows, int64_t columns, int threads) {
    sn_test_call dx, update, once;
    const snug_type w = SHAPE(SNUG_F32, rows, columns), x = SHAPE(SNUG_F32, terms, rows),
                    dy = SHAPE(SNUG_F32, terms, columns);
    sn_begin(&dx, SN_OP_matmul);
    dx.d.attrs.matmul.trans_b = 1;
    sn_add_in(&dx, dy, -1, 1);
    sn_add_in(&dx, w, -1, 1);
    sn_begin(&update, SN_OP_matmul_adam);
    sn_begin(&once, SN_OP_matmul_adam_dx);
    update.d.attrs.matmul_adam.gradient = 1;
    once.d.attrs.matmul_adam.gradient = terms % 2;
    const snug_type types[5] = {w, w, w, x, dy};
    for (int i = 0; i < 5; i++) {
        sn_add_in(&update, types[i], i == 2 ? 0.5 : -1, 1);
        sn_add_in(&once, types[i], -1, 1);
        memcpy(once.in[i].data, update.in[i].data, update.in[i].bytes);
    }
    memcpy(dx.in[0].data, update.in[4].data, update.in[4].bytes);
    memcpy(dx.in[1].data, update.in[0].data, update.in[0].bytes);
    for (int i = 0; i < 4; i++)
        update.param[i].real = once.param[i].real = adam_params[i];
    dx.threads = update.threads = once.threads = threads;
    sn_ready(&dx);
    sn_ready(&update);
    sn_ready(&once);
    void *const own = once.out[3].data;
    once.out[3].data = once.in[3].data;
    sn_run(&dx);
    sn_run(&update);
    sn_run(&once);
    for (int k = 0; k < 3; k++)
        assert_memory_equal(once.out[k].data, update.out[k].data, update.out[k].bytes);
    assert_memory_equal(once.out[3].data, dx.out[0].data, dx.out[0].bytes);
    if (once.d.n_out > 4)
        assert_memory_equal(once.out[4].data, update.out[3].data, update.out[3].bytes);
    once.out[3].data = own;
    sn_kernel_close(&dx);
    sn_kernel_close(&update);
    sn_kernel_close(&once);
}

static void test_update_with_dx_has_the_bits_of_three_rows(void **state) {
    (void)state;
    for (int threads = 1; threads < 4; threads++) {
        expect_bits_of_three(8, 5000, 10, threads);
        expect_bits_of_three(100, 700, 10, threads);
        expect_bits_of_three(5, 67, 300, threads);
        expect_bits_of_three(300, 130, 35, threads);
        expect_bits_of_three(3, 40, 2048, threads);
        expect_bits_of_three(3, 1, 1, threads);
    }
    expect_bits_of_three(3, 262200, 2, 2); /* longer spans, of narrow weights and of others */
    expect_bits_of_three(1, 262200, 17, 2);
}

/* --- the fusion ------------------------------------------------------------------------------ */

#define DENSE_STEP                                                                                 \
    "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-7\n"                       \
    "%0 input x f32[4,3]\n%1 input dy f32[4,2]\n"                                                  \
    "%2 variable w f32[3,2] home 0 init constant 0 0 0\n"                                          \
    "%3 variable m f32[3,2] home 1 init constant 0 0 0\n"                                          \
    "%4 variable v f32[3,2] home 2 init constant 0 0 0\n"                                          \
    "%5 = matmul(%0 %1) trans_a=1 | backward -> f32[3,2]\n"                                        \
    "%6 %7 %8 = adam(%2 %3 %4 %5) rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 | "     \
    "update -> f32[3,2] f32[3,2] f32[3,2]\n"

static sn_graph *fuse(snug_engine *e, const char *text, bool dense_update) {
    snug_error err;
    sn_graph *g, *fused;
    const sn_fuse_options options = {.dense_update = dense_update};
    expect_ok(sn_graph_parse(e, text, &g, &err), &err);
    expect_ok(sn_graph_fuse_with(g, &options, &fused, &err), &err);
    expect_ok(sn_graph_check(fused, false, &err), &err);
    sn_graph_destroy(g);
    return fused;
}

static void expect_nodes(sn_graph *g, uint32_t n, sn_op last) {
    assert_int_equal(sn_graph_n_nodes(g), n);
    assert_int_equal(sn_graph_node_at(g, (sn_node){n - 1})->op, last);
    sn_graph_destroy(g);
}

static void test_update_takes_its_gradient_where_asked_for(void **state) {
    expect_nodes(fuse(*state, DENSE_STEP, false), 2, SN_OP_adam);
    expect_nodes(fuse(*state, DENSE_STEP, true), 1, SN_OP_matmul_adam);
}

#define VARIABLES                                                                                  \
    "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-7\n"                       \
    "%0 input x f32[4,3]\n%1 input dy f32[4,2]\n"                                                  \
    "%2 variable w f32[3,2] home 0 init constant 0 0 0\n"                                          \
    "%3 variable m f32[3,2] home 1 init constant 0 0 0\n"                                          \
    "%4 variable v f32[3,2] home 2 init constant 0 0 0\n"
#define DX       "%5 = matmul(%1 %2) trans_b=1 | backward -> f32[4,3]\n"
#define GRADIENT "%7 = matmul(%0 %1) trans_a=1 | backward -> f32[3,2]\n"
#define UPDATE                                                                                     \
    "%8 %9 %10 = adam(%2 %3 %4 %7) rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 | "    \
    "update -> f32[3,2] f32[3,2] f32[3,2]\n"

/* A gradient that is an output is made on the way. */
static void test_update_makes_gradients_that_are_outputs(void **state) {
    sn_graph *g = fuse(*state, DENSE_STEP "output g %5\n", true);
    assert_int_equal(sn_graph_output_at(g, 0).i, sn_graph_node_at(g, (sn_node){0})->out[3].i);
    expect_nodes(g, 1, SN_OP_matmul_adam);
    g = fuse(*state,
             VARIABLES DX "%6 = neg(%5) | backward -> f32[4,3]\n" GRADIENT UPDATE
                          "output dx %6\noutput g %7\n",
             true);
    const sn_node_info *update = sn_graph_node_at(g, (sn_node){0});
    assert_int_equal(update->op, SN_OP_matmul_adam_dx);
    assert_int_equal(update->n_out, 5);
    assert_int_equal(sn_graph_output_at(g, 1).i, update->out[4].i);
    expect_nodes(g, 2, SN_OP_neg);
}

/* What reads dx comes behind the update then. */
static void test_update_makes_dx_where_it_may_come_first(void **state) {
    expect_nodes(fuse(*state,
                      VARIABLES DX "%6 = neg(%5) | backward -> f32[4,3]\n" GRADIENT UPDATE
                                   "output dx %6\n",
                      true),
                 2, SN_OP_neg);
}

/* Neither before a check that may refuse the step, nor before a reader of the weights. */
static void test_update_does_not_pass_what_must_come_first(void **state) {
    static const char *const between[] = {
        "%6 = check_finite(%5) | backward -> f32[4,3]\n",
        "%6 = matmul(%5 %2) | backward -> f32[4,2]\n",
        "%6 = matmul(%5 %3) | backward -> f32[4,2]\n",
    };
    for (size_t i = 0; i < sizeof between / sizeof between[0]; i++) {
        char text[2000];
        snprintf(text, sizeof text, "%s%s%s%s%soutput y %%6\n", VARIABLES, DX, between[i], GRADIENT,
                 UPDATE);
        expect_nodes(fuse(*state, text, true), 3, SN_OP_matmul_adam);
    }
}

/* A gradient that somebody else reads, and a product that is no x^T dy, stay. */
static void test_update_leaves_other_gradients(void **state) {
    expect_nodes(fuse(*state, DENSE_STEP "%9 = neg(%5) | forward -> f32[3,2]\noutput y %9\n", true),
                 3, SN_OP_neg);
    static const char *const texts[] = {
        "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-7\n"
        "%0 input x f32[4,3]\n%1 input dy f32[4,3]\n"
        "%2 variable w f32[4,4] home 0 init constant 0 0 0\n"
        "%3 variable m f32[4,4] home 1 init constant 0 0 0\n"
        "%4 variable v f32[4,4] home 2 init constant 0 0 0\n"
        "%5 = matmul(%0 %1) trans_b=1 | backward -> f32[4,4]\n"
        "%6 %7 %8 = adam(%2 %3 %4 %5) rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 | "
        "update -> f32[4,4] f32[4,4] f32[4,4]\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect_nodes(fuse(*state, texts[i], true), 2, SN_OP_adam);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_at_once_has_the_bits_of_two_rows),
        cmocka_unit_test(test_update_with_dx_has_the_bits_of_three_rows),
        engine_test(test_update_takes_its_gradient_where_asked_for),
        engine_test(test_update_makes_gradients_that_are_outputs),
        engine_test(test_update_makes_dx_where_it_may_come_first),
        engine_test(test_update_does_not_pass_what_must_come_first),
        engine_test(test_update_leaves_other_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
