/* test_dense_update.c: a dense layer's weight gradient, and that of its input, inside its Adam
 * update: the bits of the rows apart, and only where it is asked for; of halves where the device
 * has a kernel. */
#include "support/call.h"
#include "support/kernel_call.h"
#include "support/support.h"

#include "graph/graph.h"
#include "op/impl.h"

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

/* x and dy: f32, or halves beside weights in f32; on this instruction set. */
typedef struct {
    snug_dtype dtype;
    const char *isa;
    int threads;
} how;

static void run_on(const how *h, sn_test_call *k) {
    snug_error err;
    k->threads = h->threads;
    sn_ready(k);
    expect_ok(sn_run_with(k, sn_cpu_family_for(h->isa, k->d.op), false, &err), &err);
    assert_true(k->needs_all);
}

static void copy_in(sn_test_call *to, int i, const snug_view *from) {
    sn_add_in(to, from->type, -1, 1);
    memcpy(to->in[i].data, from->data, from->bytes);
}

static void expect_same(const how *h, const snug_view *got, const snug_view *want) {
    assert_int_equal(got->bytes, want->bytes);
    if (memcmp(got->data, want->data, want->bytes) != 0)
        fail_msg("%s with %s factors and %d threads", h->isa, snug_dtype_name(h->dtype),
                 h->threads);
}

/* x^T dy by matmul, then adam; and both at once, with the gradient as an output. */
static void expect_bits_of_two(const how *h, int64_t terms, int64_t rows, int64_t columns) {
    sn_test_call product, apart, once;
    sn_begin(&product, SN_OP_matmul);
    product.d.attrs.matmul.trans_a = 1;
    product.d.attrs.matmul.wide = h->dtype != SNUG_F32;
    sn_add_in(&product, SHAPE(h->dtype, terms, rows), -1, 1);
    sn_add_in(&product, SHAPE(h->dtype, terms, columns), -1, 1);
    run_on(h, &product);
    begin_update(&apart, SN_OP_adam, &product);
    copy_in(&apart, 3, &product.out[0]);
    begin_update(&once, SN_OP_matmul_adam, &product);
    once.d.attrs.matmul_adam.gradient = 1;
    for (int i = 0; i < 2; i++)
        copy_in(&once, 3 + i, &product.in[i]);
    run_on(h, &apart);
    run_on(h, &once);
    for (int k = 0; k < 3; k++)
        expect_same(h, &once.out[k], &apart.out[k]);
    expect_same(h, &once.out[3], &product.out[0]);
    sn_kernel_close(&product);
    sn_kernel_close(&apart);
    sn_kernel_close(&once);
}

/* The same with dx = dy w^T, which lies over x; one of the two with the gradient. */
static void expect_bits_of_three(const how *h, int64_t terms, int64_t rows, int64_t columns) {
    sn_test_call dx, update, once;
    const snug_type w = SHAPE(SNUG_F32, rows, columns), x = SHAPE(h->dtype, terms, rows),
                    dy = SHAPE(h->dtype, terms, columns);
    sn_begin(&dx, SN_OP_matmul);
    dx.d.attrs.matmul.trans_b = 1;
    sn_begin(&update, SN_OP_matmul_adam);
    sn_begin(&once, SN_OP_matmul_adam_dx);
    update.d.attrs.matmul_adam.gradient = 1;
    once.d.attrs.matmul_adam.gradient = terms % 2;
    const snug_type types[5] = {w, w, w, x, dy};
    for (int i = 0; i < 5; i++) {
        sn_add_in(&update, types[i], i == 2 ? 0.5 : -1, 1);
        copy_in(&once, i, &update.in[i]);
    }
    copy_in(&dx, 0, &update.in[4]);
    copy_in(&dx, 1, &update.in[0]);
    for (int i = 0; i < 4; i++)
        update.param[i].real = once.param[i].real = adam_params[i];
    run_on(h, &dx);
    run_on(h, &update);
    once.threads = h->threads;
    sn_ready(&once);
    void *const own = once.out[3].data;
    once.out[3].data = once.in[3].data;
    snug_error err;
    expect_ok(sn_run_with(&once, sn_cpu_family_for(h->isa, once.d.op), false, &err), &err);
    assert_true(once.needs_all);
    for (int k = 0; k < 3; k++)
        expect_same(h, &once.out[k], &update.out[k]);
    expect_same(h, &once.out[3], &dx.out[0]);
    if (once.d.n_out > 4)
        expect_same(h, &once.out[4], &update.out[3]);
    once.out[3].data = own;
    sn_kernel_close(&dx);
    sn_kernel_close(&update);
    sn_kernel_close(&once);
}

static void sweep(void (*check)(const how *h)) {
    static const snug_dtype dtypes[] = {SNUG_F32, SNUG_F16, SNUG_BF16};
    for (int i = 0; sn_isa_at(i); i++)
        for (int d = 0; d < 3; d++)
            for (int threads = 1; threads < 4; threads++)
                check(&(how){dtypes[d], sn_isa_at(i), threads});
}

/* One piece and several, in one group and in more; of narrow weights and others; odd numbers of
 * terms. */
static void check_two(const how *h) {
    expect_bits_of_two(h, 8, 5000, 10);
    expect_bits_of_two(h, 32, 700, 10);
    expect_bits_of_two(h, 5, 67, 300);
    expect_bits_of_two(h, 300, 130, 35);
    expect_bits_of_two(h, 301, 130, 16);
    expect_bits_of_two(h, 2500, 20, 10);
    expect_bits_of_two(h, 5001, 18, 10);
    expect_bits_of_two(h, 3, 1, 1);
}

static void test_update_at_once_has_the_bits_of_two_rows(void **state) {
    (void)state;
    sweep(check_two);
}

static void check_three(const how *h) {
    expect_bits_of_three(h, 8, 5000, 10);
    expect_bits_of_three(h, 100, 700, 10);
    expect_bits_of_three(h, 21, 333, 5);
    expect_bits_of_three(h, 5, 67, 300);
    expect_bits_of_three(h, 300, 130, 35);
    expect_bits_of_three(h, 600, 33, 2);
    expect_bits_of_three(h, 13, 40, 701);
    expect_bits_of_three(h, 3, 40, 2048);
    expect_bits_of_three(h, 3, 1, 1);
    if (h->threads == 2 && strcmp(h->isa, sn_cpu_isa()) == 0) {
        expect_bits_of_three(h, 3, 262200, 2); /* longer spans, of narrow weights and of others */
        expect_bits_of_three(h, 1, 262200, 17);
    }
}

static void test_update_with_dx_has_the_bits_of_three_rows(void **state) {
    (void)state;
    sweep(check_three);
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

/* --- halves ----------------------------------------------------------------------------------- */
#define HALF_VARIABLES(half)                                                                       \
    "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-7\n"                       \
    "%0 input x " half "[4,3]\n%1 input d f32[4,2]\n"                                              \
    "%2 variable w f32[3,2] home 0 init constant 0 0 0\n"                                          \
    "%3 variable m f32[3,2] home 1 init constant 0 0 0\n"                                          \
    "%4 variable v f32[3,2] home 2 init constant 0 0 0\n"                                          \
    "%5 = cast(%2) dtype=" half " | forward -> " half "[3,2]\n"                                    \
    "%6 = matmul(%0 %5) | forward -> " half "[4,2]\n"                                              \
    "%7 = cast(%1) dtype=" half " | backward -> " half "[4,2]\n"
#define HALF_DX(half) "%8 = matmul(%7 %5) trans_b=1 | backward -> " half "[4,3]\n"
#define HALF_UPDATE(half)                                                                          \
    "%9 = matmul(%0 %7) trans_a=1 | backward -> " half "[3,2]\n"                                   \
    "%10 = cast(%9) dtype=f32 | backward -> f32[3,2]\n"                                            \
    "%11 %12 %13 = adam(%2 %3 %4 %10) rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 | " \
    "update -> f32[3,2] f32[3,2] f32[3,2]\n"
#define HALF_OUTPUTS "output y %6\noutput dx %8\n"

/* How often the operator stands in the text, fused at once with these options, or, after a fusion
 * without, once more: then products read w and d themselves. */
static void expect_count(snug_engine *e, const char *text, const sn_device *device, sn_op op,
                         int wanted) {
    const sn_fuse_options options = {.dense_update = 1, .device = device};
    for (int before = 0; before < 2; before++) {
        snug_error err;
        sn_graph *g = NULL, *fused;
        int n = 0;
        if (before)
            g = fuse(e, text, false);
        else
            expect_ok(sn_graph_parse(e, text, &g, &err), &err);
        expect_ok(sn_graph_fuse_with(g, &options, &fused, &err), &err);
        expect_ok(sn_graph_check(fused, false, &err), &err);
        for (uint32_t i = 0; i < sn_graph_n_nodes(fused); i++)
            n += sn_graph_node_at(fused, (sn_node){i})->op == op;
        assert_int_equal(n, wanted);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

static void test_update_takes_factors_of_halves(void **state) {
    static const char text[] =
        HALF_VARIABLES("bf16") HALF_DX("bf16") HALF_UPDATE("bf16") HALF_OUTPUTS;
    expect_count(*state, text, NULL, SN_OP_matmul_adam_dx, 1);
    expect_count(*state, text, NULL, SN_OP_cast, 1); /* of d */
    expect_count(*state,
                 HALF_VARIABLES("bf16") "%8 = neg(%7) | backward -> bf16[4,2]\n" HALF_UPDATE("bf16")
                     HALF_OUTPUTS,
                 NULL, SN_OP_matmul_adam, 1);
}

/* Of f16 gradients are rounded, and of weights that are halves, too. */
static void test_update_leaves_gradients_that_are_rounded(void **state) {
    static const char text[] = HALF_VARIABLES("f16") HALF_DX("f16") HALF_UPDATE("f16") HALF_OUTPUTS;
    expect_count(*state, text, NULL, SN_OP_adam, 1);
    static const char narrow[] =
        "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-7\n"
        "%0 input x bf16[4,3]\n%1 input dy bf16[4,2]\n"
        "%2 variable w bf16[3,2] home 0 init constant 0 0 0\n"
        "%3 variable m bf16[3,2] home 1 init constant 0 0 0\n"
        "%4 variable v bf16[3,2] home 2 init constant 0 0 0\n"
        "%5 = matmul(%0 %1) trans_a=1 | backward -> bf16[3,2]\n"
        "%6 %7 %8 = adam(%2 %3 %4 %5) rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 | "
        "update -> bf16[3,2] bf16[3,2] bf16[3,2]\n";
    expect_count(*state, narrow, NULL, SN_OP_adam, 1);
}

/* What reads the weights as they were rounded must not come to read them behind the update. */
static void test_update_does_not_pass_readers_of_rounded_weights(void **state) {
    static const char text[] = HALF_VARIABLES("bf16") HALF_DX(
        "bf16") "%9 = matmul(%8 %5) | backward -> bf16[4,2]\n"
                "%10 = matmul(%0 %7) trans_a=1 | backward -> bf16[3,2]\n"
                "%11 = cast(%10) dtype=f32 | backward -> f32[3,2]\n"
                "%12 %13 %14 = adam(%2 %3 %4 %11) rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 "
                "epsilon=p3 | update -> f32[3,2] f32[3,2] f32[3,2]\noutput y %6\noutput z %9\n";
    expect_count(*state, text, NULL, SN_OP_matmul_adam_dx, 0);
    expect_count(*state, text, NULL, SN_OP_matmul_adam, 1);
}

static snug_status describe_on_host(const sn_device *device, const sn_opdesc *d, sn_variant *out,
                                    snug_error *err) {
    (void)device, (void)d, (void)err;
    *out = (sn_variant){.impl = SN_BY_HOST "own"};
    return SNUG_OK;
}

/* As a GPU has it, whose family takes no halves; f32 it is not asked for. */
static void test_update_of_halves_needs_a_kernel_of_the_device(void **state) {
    const sn_device device = {.describe = describe_on_host};
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    static const char text[] =
        HALF_VARIABLES("bf16") HALF_DX("bf16") HALF_UPDATE("bf16") HALF_OUTPUTS;
    expect_count(*state, text, &device, SN_OP_adam, 1);
    expect_count(*state, text, &cpu.device, SN_OP_matmul_adam_dx, 1);
    expect_count(*state, DENSE_STEP, &device, SN_OP_matmul_adam, 1);
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
        engine_test(test_update_takes_factors_of_halves),
        engine_test(test_update_leaves_gradients_that_are_rounded),
        engine_test(test_update_does_not_pass_readers_of_rounded_weights),
        engine_test(test_update_of_halves_needs_a_kernel_of_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
