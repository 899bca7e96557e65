/* test_fuse_guards.c: what each pattern asks for before it fuses. A row is a graph which looks like
 * the pattern but for one thing. It is not fused there, and its numbers are those of the graph as
 * written, bit for bit, both by the naive executor. */
#include "support/eval.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

/* How often the operator stands in the fused graph; `outs`: all outputs of these, 0: not asked. */
typedef struct {
    sn_op op;
    int n, outs;
} count;

typedef struct {
    const char *why, *text;
    count want[4]; /* ends with op fill, which no row has */
} guard;

#define ROWS(list) list, sizeof(list) / sizeof(list)[0]
#define WANT(name, times)                                                                          \
    { SN_OP_##name, times, 0 }
#define OUTS(name, times, outputs)                                                                 \
    { SN_OP_##name, times, outputs }

static void expect_counts(const sn_graph *g, const guard *row) {
    for (const count *c = row->want; c->op != SN_OP_fill; c++) {
        int n = 0, outs = 0;
        for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
            const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
            n += node->op == c->op;
            outs += node->op == c->op ? node->n_out : 0;
        }
        if (n != c->n || (c->outs > 0 && outs != c->outs))
            fail_msg("%s: %d %s with %d outputs, not %d with %d", row->why, n, sn_ops[c->op].name,
                     outs, c->n, c->outs);
    }
}

static void expect_same_bits(snug_engine *e, const sn_graph *a, const sn_graph *b,
                             const char *why) {
    sn_test_arrays in = sn_test_inputs(a, -1, 1);
    sn_test_arrays left = sn_test_eval(e, a, &in), right = sn_test_eval(e, b, &in);
    assert_int_equal(left.n, right.n);
    for (uint32_t i = 0; i < left.n; i++) {
        assert_int_equal(left.count[i], right.count[i]);
        if (memcmp(left.data[i], right.data[i], left.count[i] * sizeof(double)) != 0)
            fail_msg("%s: output %s has other numbers", why, sn_graph_output_name(a, i));
    }
    sn_test_arrays_clear(&left);
    sn_test_arrays_clear(&right);
    sn_test_arrays_clear(&in);
}

static void check_rows(void **state, const guard *rows, size_t n) {
    const sn_fuse_options options = {.dense_update = 1};
    for (size_t i = 0; i < n; i++) {
        snug_error err;
        sn_graph *g, *fused;
        expect_ok(sn_graph_parse(*state, rows[i].text, &g, &err), &err);
        if (sn_graph_fuse_with(g, &options, &fused, &err) != SNUG_OK ||
            sn_graph_check(fused, false, &err) != SNUG_OK)
            fail_msg("%s: %s", rows[i].why, err.text);
        expect_counts(fused, &rows[i]);
        expect_same_bits(*state, g, fused, rows[i].why);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* --- products, biases, activations, batch norms ----------------------------------------------- */
#define FORWARD " | forward -> "
#define NORM_IN                                                                                    \
    "snug graph 1\np0 real 100\n%0 input m f64[4]\n" /* so that no root is of less than zero */    \
    "%1 input x f64[2,3,3,4]\n"

static const guard product_guards[] = {
    {"the cap is a parameter with a name",
     "snug graph 1\np0 real 6 cap\n%0 input x f64[4,3]\n%1 input w f64[3,2]\n"
     "%2 = matmul(%0 %1)" FORWARD "f64[4,2]\n%3 = relu_max(%2) value=p0" FORWARD "f64[4,2]\n"
     "output y %3\n",
     {WANT(relu_max, 1)}},
    {"a batch norm after a matmul",
     "snug graph 1\np0 real 100\n%0 input x f64[4,3]\n%1 input w f64[3,2]\n%2 input m f64[2]\n"
     "%3 = matmul(%0 %1)" FORWARD "f64[4,2]\n"
     "%4 = normalise(%3 %2 %2 %2 %2) epsilon=p0" FORWARD "f64[4,2]\noutput y %4\n",
     {WANT(matmul, 1), WANT(normalise, 1)}},
    {"groups that are no channels",
     NORM_IN "%2 input w f64[2,2,2,4]\n%3 = conv2d(%1 %2) groups=2" FORWARD "f64[2,2,2,4]\n"
             "%4 = normalise(%3 %0 %0 %0 %0) epsilon=p0" FORWARD "f64[2,2,2,4]\noutput y %4\n",
     {WANT(conv2d, 1), WANT(normalise, 1)}},
    {"groups that are the channels of the output alone",
     "snug graph 1\np0 real 100\n%0 input m f64[2]\n%1 input x f64[2,3,3,4]\n"
     "%2 input w f64[2,2,2,2]\n%3 = conv2d(%1 %2) groups=2" FORWARD "f64[2,2,2,2]\n"
     "%4 = normalise(%3 %0 %0 %0 %0) epsilon=p0" FORWARD "f64[2,2,2,2]\noutput y %4\n",
     {WANT(conv2d, 1), WANT(normalise, 1)}},
    {"groups that are the channels of the input alone",
     "snug graph 1\np0 real 100\n%0 input m f64[4]\n%1 input x f64[2,3,3,2]\n"
     "%2 input w f64[2,2,1,4]\n%3 = conv2d(%1 %2) groups=2" FORWARD "f64[2,2,2,4]\n"
     "%4 = normalise(%3 %0 %0 %0 %0) epsilon=p0" FORWARD "f64[2,2,2,4]\noutput y %4\n",
     {WANT(conv2d, 1), WANT(normalise, 1)}},
};

static void test_products_are_left_alone_but_for_what_they_can_do(void **state) {
    check_rows(state, ROWS(product_guards));
}

/* The first batch norm is the convolution's line, so numbers are those of another formula; the
 * second one finds a line there and stays. */
static void test_a_second_batch_norm_stays(void **state) {
    static const guard row = {
        "a batch norm after a batch norm",
        NORM_IN "%2 input w f64[2,2,4,4]\n%3 = conv2d(%1 %2)" FORWARD "f64[2,2,2,4]\n"
                "%4 = normalise(%3 %0 %0 %0 %0) epsilon=p0" FORWARD "f64[2,2,2,4]\n"
                "%5 = normalise(%4 %0 %0 %0 %0) epsilon=p0" FORWARD "f64[2,2,2,4]\noutput y %5\n",
        {WANT(conv2d, 1), WANT(normalise, 1), WANT(normalise_line, 1)}};
    snug_error err;
    sn_graph *g, *fused;
    expect_ok(sn_graph_parse(*state, row.text, &g, &err), &err);
    expect_ok(sn_graph_fuse(g, &fused, &err), &err);
    expect_counts(fused, &row);
    sn_graph_destroy(fused);
    sn_graph_destroy(g);
}

/* --- the bias gradient of a convolution ------------------------------------------------------- */
/* d has as many pictures as channels: sums over other axes have the same type. */
#define SUMMED                                                                                     \
    "snug graph 1\n%0 input x f64[3,6,6,2]\n%1 input d f64[3,4,4,3]\n%2 input z f64[3,6,6,2]\n"
#define SUM  "%3 = sum(%1) axes=0,1,2 | backward -> f64[3]\n"
#define DW   "conv2d_dw(%0 %1) kernel=3,3 | backward -> f64[3,3,2,3]\n"
#define BACK " | backward -> "

static const guard sum_guards[] = {
    {"the sum is read before the place of the weight gradient",
     SUMMED SUM "%4 = exp(%3)" BACK "f64[3]\n%5 = " DW "output e %4\noutput g %5\noutput b %3\n",
     {WANT(sum, 1), OUTS(conv2d_dw, 1, 1)}},
    {"two weight gradients, one sum: the first has it",
     SUMMED "%3 = sum(%1) axes=0,1,2" BACK "f64[3]\n%4 = " DW
            "%5 = conv2d_dw(%2 %1) kernel=3,3" BACK "f64[3,3,2,3]\n"
            "output b %3\noutput g %4\noutput h %5\n",
     {WANT(sum, 0), OUTS(conv2d_dw, 2, 3)}},
    {"the sum keeps its axes",
     SUMMED "%3 = sum(%1) axes=0,1,2 keepdims=1" BACK "f64[1,1,1,3]\n%4 = " DW
            "output b %3\noutput g %4\n",
     {WANT(sum, 1), OUTS(conv2d_dw, 1, 1)}},
    {"the sum is over the channels, too",
     SUMMED "%3 = sum(%1) axes=0,1,2,3" BACK "f64[]\n%4 = " DW "output b %3\noutput g %4\n",
     {WANT(sum, 1), OUTS(conv2d_dw, 1, 1)}},
    {"the sum is over other axes",
     SUMMED "%3 = sum(%1) axes=1,2,3" BACK "f64[3]\n%4 = " DW "output b %3\noutput g %4\n",
     {WANT(sum, 1), OUTS(conv2d_dw, 1, 1)}},
    {"no sum but a maximum",
     SUMMED "%3 = max(%1) axes=0,1,2" BACK "f64[3]\n%4 = " DW "output b %3\noutput g %4\n",
     {WANT(max, 1), OUTS(conv2d_dw, 1, 1)}},
    {"the weight gradient has a sum already",
     SUMMED SUM "%4 %5 = conv2d_dw(%0 %1) kernel=3,3 bias=1" BACK "f64[3,3,2,3] f64[3]\n"
                "output b %3\noutput g %4\noutput c %5\n",
     {WANT(sum, 1), OUTS(conv2d_dw, 1, 2)}},
};

static void test_bias_gradients_are_sums_of_the_channels_that_nobody_reads_early(void **state) {
    check_rows(state, ROWS(sum_guards));
}

/* --- channel affine --------------------------------------------------------------------------- */
/* p a + (q b + c), of which the rows change one thing. */
#define AFFINE                                                                                     \
    "snug graph 1\n%0 input p f64[2,3]\n%1 input q f64[2,3]\n%2 input a f64[3]\n"                  \
    "%3 input b f64[3]\n%4 input c f64[3]\n%5 input u f64[2,1]\n%6 input d f64[2,3]\n"             \
    "%7 input t f64[4,2,3]\n"
#define M23  FORWARD "f64[2,3]\n"
#define M423 FORWARD "f64[4,2,3]\n"

static const guard affine_guards[] = {
    {"all of them are vectors",
     "snug graph 1\n%0 input p f64[3]\n%1 input q f64[3]\n%2 input a f64[3]\n%3 input b f64[3]\n"
     "%4 input c f64[3]\n%5 = mul(%0 %2)" FORWARD "f64[3]\n%6 = mul(%1 %3)" FORWARD "f64[3]\n"
     "%7 = add(%6 %4)" FORWARD "f64[3]\n%8 = add(%5 %7)" FORWARD "f64[3]\noutput y %8\n",
     {WANT(channel_affine, 0)}},
    {"p is a column",
     AFFINE "%8 = mul(%5 %2)" M23 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M23 "output y %11\n",
     {WANT(channel_affine, 0)}},
    {"q is a column",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = mul(%5 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M23 "output y %11\n",
     {WANT(channel_affine, 0)}},
    {"a is no vector of channels",
     AFFINE "%8 = mul(%0 %6)" M23 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M23 "output y %11\n",
     {WANT(channel_affine, 0)}},
    {"c is no vector of channels",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %6)" M23
            "%11 = add(%8 %10)" M23 "output y %11\n",
     {WANT(channel_affine, 0)}},
    {"p a is an output",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M23 "output y %11\noutput z %8\n",
     {WANT(channel_affine, 0)}},
    {"q b is an output",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M23 "output y %11\noutput z %9\n",
     {WANT(channel_affine, 0)}},
    {"q b + c is an output",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M23 "output y %11\noutput z %10\n",
     {WANT(channel_affine, 0)}},
    {"another reads q b + c",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M23 "%12 = exp(%10)" M23 "output y %11\noutput z %12\n",
     {WANT(channel_affine, 0)}},
    {"d + p a is an output",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = add(%6 %8)" M23 "%10 = mul(%1 %3)" M23
            "%11 = add(%10 %4)" M23 "%12 = add(%9 %11)" M23 "output y %12\noutput z %9\n",
     {WANT(channel_affine, 0)}},
    {"p is made behind q b + c",
     AFFINE "%8 = mul(%1 %3)" M23 "%9 = add(%8 %4)" M23 "%10 = exp(%0)" M23 "%11 = mul(%10 %2)" M23
            "%12 = add(%6 %11)" M23 "%13 = add(%12 %9)" M23 "output y %13\n",
     {WANT(channel_affine, 0)}},
    {"integers",
     "snug graph 1\n%0 input p i32[2,3]\n%1 input q i32[2,3]\n%2 input a i32[3]\n"
     "%3 input b i32[3]\n%4 input c i32[3]\n%5 = mul(%0 %2)" FORWARD "i32[2,3]\n"
     "%6 = mul(%1 %3)" FORWARD "i32[2,3]\n%7 = add(%6 %4)" FORWARD "i32[2,3]\n"
     "%8 = add(%5 %7)" FORWARD "i32[2,3]\noutput y %8\n",
     {WANT(channel_affine, 0)}},
    {"q b + c is spread over more rows",
     AFFINE "%8 = mul(%7 %2)" M423 "%9 = mul(%1 %3)" M23 "%10 = add(%9 %4)" M23
            "%11 = add(%8 %10)" M423 "output y %11\n",
     {WANT(channel_affine, 0)}},
    {"p a is spread over more rows",
     AFFINE "%8 = mul(%0 %2)" M23 "%9 = mul(%7 %3)" M423 "%10 = add(%9 %4)" M423
            "%11 = add(%8 %10)" M423 "output y %11\n",
     {WANT(channel_affine, 0)}},
};

static void test_channel_affines_have_whole_rows_and_vectors(void **state) {
    check_rows(state, ROWS(affine_guards));
}

/* --- a dense layer's update ------------------------------------------------------------------- */
#define DENSE_IN                                                                                   \
    "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"                       \
    "%0 input x f64[4,3]\n%1 input dy f64[4,2]\n%2 input b f64[2]\n%3 input z f64[4,2]\n"
#define STATE(type)                                                                                \
    "%4 variable w " type " home 0 init normal 5 0 1\n"                                            \
    "%5 variable m " type " home 1 init normal 6 0 1\n"                                            \
    "%6 variable v " type " home 2 init constant 0 1 0\n"
#define W32   STATE("f64[3,2]")
#define RATES " rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 | update -> "
#define NEW32 RATES "f64[3,2] f64[3,2] f64[3,2]\n"

static const guard gradient_guards[] = {
    {"somebody else reads the gradient",
     DENSE_IN W32 "%7 = matmul(%0 %1) trans_a=1" BACK "f64[3,2]\n%8 = neg(%7)" BACK "f64[3,2]\n"
                  "%9 %10 %11 = adam(%4 %5 %6 %7)" NEW32 "output w %9\noutput n %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the gradient is no product",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[3,1]\n%1 input dy f64[3,1]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" W32
     "%7 = concat(%0 %1) axis=1" BACK "f64[3,2]\n%8 %9 %10 = adam(%4 %5 %6 %7)" NEW32
     "output w %8\n",
     {WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the product has a bias",
     DENSE_IN W32 "%7 = matmul(%0 %1 %2) trans_a=1" BACK "f64[3,2]\n"
                  "%8 %9 %10 = adam(%4 %5 %6 %7)" NEW32 "output w %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the product has an activation",
     DENSE_IN W32 "%7 = matmul(%0 %1) trans_a=1 act=relu" BACK "f64[3,2]\n"
                  "%8 %9 %10 = adam(%4 %5 %6 %7)" NEW32 "output w %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the left side is not transposed",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[3,3]\n%1 input dy f64[3,2]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" W32
     "%7 = matmul(%0 %1)" BACK "f64[3,2]\n%8 %9 %10 = adam(%4 %5 %6 %7)" NEW32 "output w %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the right side is transposed",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[2,3]\n%1 input dy f64[2,2]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" W32
     "%7 = matmul(%0 %1) trans_a=1 trans_b=1" BACK "f64[3,2]\n"
     "%8 %9 %10 = adam(%4 %5 %6 %7)" NEW32 "output w %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the left side is several matrices",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[5,4,3]\n%1 input dy f64[4,2]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" STATE(
         "f64[5,3,2]") "%7 = matmul(%0 %1) trans_a=1" BACK "f64[5,3,2]\n"
                       "%8 %9 %10 = adam(%4 %5 %6 %7)" RATES
                       "f64[5,3,2] f64[5,3,2] f64[5,3,2]\noutput w %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the right side is several matrices",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[4,3]\n%1 input dy f64[5,4,2]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" STATE(
         "f64[5,3,2]") "%7 = matmul(%0 %1) trans_a=1" BACK "f64[5,3,2]\n"
                       "%8 %9 %10 = adam(%4 %5 %6 %7)" RATES
                       "f64[5,3,2] f64[5,3,2] f64[5,3,2]\noutput w %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    {"the update takes squares of its own",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[4,3]\n%1 input dy f64[4,2]\n%2 input b f64[2]\n%3 input s f64[3,2]\n" W32
     "%7 = matmul(%0 %1) trans_a=1" BACK "f64[3,2]\n%8 %9 %10 = adam(%4 %5 %6 %7 %3)" NEW32
     "output w %8\n",
     {WANT(matmul, 1), WANT(adam, 1), WANT(matmul_adam, 0)}},
    /* and where all is well, with the gradient as an output */
    {"a gradient that is an output",
     DENSE_IN W32 "%7 = matmul(%0 %1) trans_a=1" BACK "f64[3,2]\n"
                  "%8 %9 %10 = adam(%4 %5 %6 %7)" NEW32 "output w %8\noutput g %7\n",
     {WANT(matmul, 0), WANT(adam, 0), OUTS(matmul_adam, 1, 4)}},
};

static void test_updates_take_products_that_nobody_misses(void **state) {
    check_rows(state, ROWS(gradient_guards));
}

/* Six weights are fewer than seven. */
static void test_updates_take_products_from_so_many_weights_on(void **state) {
    for (int64_t least = 6; least < 8; least++) {
        snug_error err;
        sn_graph *g, *fused;
        const sn_fuse_options options = {.dense_update = least};
        expect_ok(sn_graph_parse(*state,
                                 DENSE_IN W32 "%7 = matmul(%0 %1) trans_a=1" BACK "f64[3,2]\n"
                                              "%8 %9 %10 = adam(%4 %5 %6 %7)" NEW32 "output w %8\n",
                                 &g, &err),
                  &err);
        expect_ok(sn_graph_fuse_with(g, &options, &fused, &err), &err);
        assert_int_equal(sn_graph_n_nodes(fused), least > 6 ? 2 : 1);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* dx = dy w^T at %7, but for one thing; the gradient at %8 or behind is the update's. */
#define GRAD(at, of) "%" at " = matmul(" of ") trans_a=1" BACK "f64[3,2]\n"
#define DX           "f64[4,3]\n"

static const guard dx_guards[] = {
    {"dx has a bias",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[4,3]\n%1 input dy f64[4,2]\n%2 input b f64[3]\n%3 input z f64[4,2]\n" W32
     "%7 = matmul(%1 %4 %2) trans_b=1" BACK DX GRAD(
         "8", "%0 %1") "%9 %10 %11 = adam(%4 %5 %6 %8)" NEW32 "output w %9\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"dx has an activation",
     DENSE_IN W32 "%7 = matmul(%1 %4) trans_b=1 act=relu" BACK DX GRAD(
         "8", "%0 %1") "%9 %10 %11 = adam(%4 %5 %6 %8)" NEW32 "output w %9\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"dx is of another gradient",
     DENSE_IN W32 "%7 = matmul(%3 %4) trans_b=1" BACK DX GRAD(
         "8", "%0 %1") "%9 %10 %11 = adam(%4 %5 %6 %8)" NEW32 "output w %9\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"the weights are not transposed",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[4,2]\n%1 input dy f64[4,2]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" STATE(
         "f64[2,2]") "%7 = matmul(%1 %4)" BACK "f64[4,2]\n"
                     "%8 = matmul(%0 %1) trans_a=1" BACK
                     "f64[2,2]\n%9 %10 %11 = adam(%4 %5 %6 %8)" RATES
                     "f64[2,2] f64[2,2] f64[2,2]\noutput w %9\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"dy is transposed",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[4,3]\n%1 input dy f64[4,4]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" STATE(
         "f64[3,4]") "%7 = matmul(%1 %4) trans_a=1 trans_b=1" BACK "f64[4,3]\n"
                     "%8 = matmul(%0 %1) trans_a=1" BACK
                     "f64[3,4]\n%9 %10 %11 = adam(%4 %5 %6 %8)" RATES
                     "f64[3,4] f64[3,4] f64[3,4]\noutput w %9\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"more columns than the kernel sums",
     "snug graph 1\np0 real 0.01\np1 real 0.1\np2 real 0.001\np3 real 1e-3\n"
     "%0 input x f64[1,3]\n%1 input dy f64[1,2049]\n%2 input b f64[2]\n%3 input z f64[4,2]\n" STATE(
         "f64[3,2049]") "%7 = matmul(%1 %4) trans_b=1" BACK "f64[1,3]\n"
                        "%8 = matmul(%0 %1) trans_a=1" BACK
                        "f64[3,2049]\n%9 %10 %11 = adam(%4 %5 %6 %8)" RATES
                        "f64[3,2049] f64[3,2049] f64[3,2049]\noutput w %9\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"x is made of dx",
     DENSE_IN W32 "%7 = matmul(%1 %4) trans_b=1" BACK DX "%8 = neg(%7)" BACK DX GRAD(
         "9", "%8 %1") "%10 %11 %12 = adam(%4 %5 %6 %9)" NEW32 "output w %10\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"the first moments are made behind dx",
     DENSE_IN W32 "%7 = matmul(%1 %4) trans_b=1" BACK DX "%8 = neg(%5)" BACK "f64[3,2]\n"
                  "%9 = assign(%5 %8) | update -> f64[3,2]\n" GRAD(
                      "10", "%0 %1") "%11 %12 %13 = adam(%4 %9 %6 %10)" NEW32
                                     "output w %11\noutput m %12\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"the second moments are made behind dx",
     DENSE_IN W32 "%7 = matmul(%1 %4) trans_b=1" BACK DX "%8 = exp(%6)" BACK "f64[3,2]\n"
                  "%9 = assign(%6 %8) | update -> f64[3,2]\n" GRAD(
                      "10", "%0 %1") "%11 %12 %13 = adam(%4 %5 %9 %10)" NEW32
                                     "output w %11\noutput v %13\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"somebody reads the weights as they were behind dx",
     DENSE_IN W32 "%7 = matmul(%1 %4) trans_b=1" BACK DX "%8 = neg(%4)" BACK
                  "f64[3,2]\n" GRAD("9", "%0 %1") "%10 %11 %12 = adam(%4 %5 %6 %9)" NEW32
                                                  "output w %10\noutput n %8\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"somebody reads the moments as they were behind dx",
     DENSE_IN W32 "%7 = matmul(%1 %4) trans_b=1" BACK DX "%8 = neg(%6)" BACK
                  "f64[3,2]\n" GRAD("9", "%0 %1") "%10 %11 %12 = adam(%4 %5 %6 %9)" NEW32
                                                  "output w %10\noutput n %8\noutput dx %7\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
    {"a check stands behind dx",
     DENSE_IN W32 "%7 = matmul(%1 %4) trans_b=1" BACK DX "%8 = check_finite(%7)" BACK DX GRAD(
         "9", "%0 %1") "%10 %11 %12 = adam(%4 %5 %6 %9)" NEW32 "output w %10\noutput dx %8\n",
     {WANT(matmul, 1), WANT(matmul_adam, 1), WANT(matmul_adam_dx, 0)}},
};

static void test_updates_move_up_to_dx_alone_and_past_nobody(void **state) {
    check_rows(state, ROWS(dx_guards));
}

/* --- pools ------------------------------------------------------------------------------------ */
#define HALF  " kernel=2,2 stride=2,2"
#define FULL  "f64[2,4,4,3]\n"
#define SMALL FORWARD "f64[2,2,2,3] opaque[2,2,2,3]\n"
#define RELU_IN                                                                                    \
    "snug graph 1\n%0 input x f64[2,4,4,3]\n%1 input d f64[2,2,2,3]\n%2 input z f64[2,4,4,3]\n"    \
    "%3 = relu(%0)" FORWARD FULL "%4 %5 = maxpool(%3)" HALF SMALL

static const guard relu_guards[] = {
    {"two pools of one relu",
     RELU_IN "%6 %7 = maxpool(%3) kernel=3,3 stride=1,1" SMALL "output y %4\noutput z %6\n",
     {WANT(relu, 1), WANT(maxpool, 2)}},
    {"three readers of the relu",
     RELU_IN "%6 = maxpool_grad(%1 %5)" HALF " input=4,4" BACK FULL
             "%7 = relu_grad(%6 %3)" BACK FULL "%8 = exp(%3)" BACK FULL
             "output y %4\noutput g %7\noutput e %8\n",
     {WANT(relu, 1), WANT(maxpool, 1), WANT(relu_grad, 1)}},
    {"the gradient of the pool is an output",
     RELU_IN "%6 = maxpool_grad(%1 %5)" HALF " input=4,4" BACK FULL
             "%7 = relu_grad(%6 %3)" BACK FULL "output y %4\noutput g %7\noutput h %6\n",
     {WANT(relu, 1), WANT(maxpool, 1)}},
    {"the gradient comes from another pool's winners",
     RELU_IN "%6 %7 = maxpool(%2)" HALF SMALL "%8 = maxpool_grad(%1 %7)" HALF " input=4,4" BACK FULL
             "%9 = relu_grad(%8 %3)" BACK FULL "%10 = maxpool_grad(%1 %5)" HALF
             " input=4,4" BACK FULL "output y %4\noutput z %6\noutput g %9\noutput h %10\n",
     {WANT(relu, 1), WANT(maxpool, 2)}},
    {"the gradient has another window than the pool",
     "snug graph 1\n%0 input x f64[2,5,5,3]\n%1 input d f64[2,3,3,3]\n"
     "%2 = relu(%0)" FORWARD "f64[2,5,5,3]\n"
     "%3 %4 = maxpool(%2)" HALF " pad=0,1,0,1" FORWARD "f64[2,3,3,3] opaque[2,3,3,3]\n"
     "%5 = maxpool_grad(%1 %4)" HALF " pad=1,0,1,0 input=5,5" BACK "f64[2,5,5,3]\n"
     "%6 = relu_grad(%5 %2)" BACK "f64[2,5,5,3]\noutput y %3\noutput g %6\n",
     {WANT(relu, 1), WANT(maxpool, 1)}},
};

/* The relu is still before the pool. */
static void test_relus_stay_before_pools_that_others_see(void **state) {
    check_rows(state, ROWS(relu_guards));
    for (size_t i = 0; i < sizeof relu_guards / sizeof relu_guards[0]; i++) {
        snug_error err;
        sn_graph *g, *fused;
        expect_ok(sn_graph_parse(*state, relu_guards[i].text, &g, &err), &err);
        expect_ok(sn_graph_fuse(g, &fused, &err), &err);
        if (sn_graph_node_at(fused, (sn_node){0})->op != SN_OP_relu)
            fail_msg("%s: the relu has moved", relu_guards[i].why);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* The relu goes behind the first pool, and there its gradient reads it: it goes no further. */
static void test_a_relu_moves_behind_one_pool_alone(void **state) {
    static const guard row = {"a pool behind the pool",
                              RELU_IN
                              "%6 %7 = maxpool(%4)" HALF FORWARD "f64[2,1,1,3] opaque[2,1,1,3]\n"
                              "%8 = maxpool_grad(%1 %5)" HALF " input=4,4" BACK FULL
                              "%9 = relu_grad(%8 %3)" BACK FULL "output z %6\noutput g %9\n",
                              {WANT(relu, 1), WANT(maxpool, 2)}};
    check_rows(state, &row, 1);
}

/* A convolution of [2,6,6,2] to FULL and what follows. */
#define CONV_IN                                                                                    \
    "snug graph 1\n%0 input x f64[2,6,6,2]\n%1 input w f64[3,3,2,3]\n%2 input d f64[2,2,2,3]\n"    \
    "%3 input z f64[2,6,6,2]\n%4 input u f64[3,3,2,3]\n"
#define CONV  "%5 = conv2d(%0 %1)" FORWARD FULL
#define POOL  "%6 %7 = maxpool(%5)" HALF SMALL
#define POOLG "%8 = maxpool_grad(%2 %7)" HALF " input=4,4" BACK FULL
#define WHOLE CONV_IN CONV POOL POOLG
#define DWOUT BACK "f64[3,3,2,3]\n"
#define DXOUT BACK "f64[2,6,6,2]\n"
#define APART                                                                                      \
    { WANT(conv2d, 1), WANT(maxpool, 1), WANT(conv2d_pool, 0) }

static const guard conv_pool_guards[] = {
    {"the bias sum is read before the place of the weight gradient",
     WHOLE "%9 = sum(%8) axes=0,1,2" BACK "f64[3]\n%10 = exp(%9)" BACK "f64[3]\n"
           "%11 = conv2d_dw(%0 %8) kernel=3,3" DWOUT "output y %6\noutput e %10\noutput g %11\n",
     APART},
    {"a bias sum without a weight gradient",
     WHOLE "%9 = sum(%8) axes=0,1,2" BACK "f64[3]\noutput y %6\noutput b %9\n", APART},
    {"a bias sum with the gradient of the input alone",
     WHOLE "%9 = sum(%8) axes=0,1,2" BACK "f64[3]\n%10 = conv2d_dx(%8 %1) input=6,6" DXOUT
           "output y %6\noutput b %9\noutput dx %10\n",
     APART},
    {"the weight gradient has another padding",
     "snug graph 1\n%0 input x f64[2,5,5,2]\n%1 input w f64[3,3,2,3]\n%2 input d f64[2,2,2,3]\n"
     "%3 = conv2d(%0 %1) pad=0,1,0,1" FORWARD FULL "%4 %5 = maxpool(%3)" HALF SMALL
     "%6 = maxpool_grad(%2 %5)" HALF " input=4,4" BACK FULL
     "%7 = conv2d_dw(%0 %6) kernel=3,3 pad=1,0,1,0" DWOUT "output y %4\noutput g %7\n",
     APART},
    {"the weight gradient has another stride",
     "snug graph 1\n%0 input x f64[2,4,4,2]\n%1 input w f64[1,1,2,3]\n%2 input d f64[2,2,2,3]\n"
     "%3 = conv2d(%0 %1)" FORWARD FULL "%4 %5 = maxpool(%3)" HALF SMALL
     "%6 = maxpool_grad(%2 %5)" HALF " input=4,4" BACK FULL
     "%7 = conv2d_dw(%0 %6) kernel=1,1 stride=2,2 pad=2,1,2,1" BACK "f64[1,1,2,3]\n"
     "output y %4\noutput g %7\n",
     APART},
    {"the weight gradient has another dilation",
     "snug graph 1\n%0 input x f64[2,6,6,2]\n%1 input w f64[3,3,2,3]\n%2 input d f64[2,2,2,3]\n"
     "%3 = conv2d(%0 %1)" FORWARD FULL "%4 %5 = maxpool(%3)" HALF SMALL
     "%6 = maxpool_grad(%2 %5)" HALF " input=4,4" BACK FULL
     "%7 = conv2d_dw(%0 %6) kernel=2,2 dilation=2,2" BACK "f64[2,2,2,3]\n"
     "output y %4\noutput g %7\n",
     APART},
    {"the weight gradient has groups",
     "snug graph 1\n%0 input x f64[2,6,6,2]\n%1 input w f64[3,3,2,4]\n%2 input d f64[2,2,2,4]\n"
     "%3 = conv2d(%0 %1)" FORWARD "f64[2,4,4,4]\n"
     "%4 %5 = maxpool(%3)" HALF FORWARD "f64[2,2,2,4] opaque[2,2,2,4]\n"
     "%6 = maxpool_grad(%2 %5)" HALF " input=4,4" BACK "f64[2,4,4,4]\n"
     "%7 = conv2d_dw(%0 %6) kernel=3,3 groups=2" BACK "f64[3,3,1,4]\noutput y %4\noutput g %7\n",
     APART},
    {"the gradient of the input has another padding",
     "snug graph 1\n%0 input x f64[2,5,5,2]\n%1 input w f64[3,3,2,3]\n%2 input d f64[2,2,2,3]\n"
     "%3 = conv2d(%0 %1) pad=0,1,0,1" FORWARD FULL "%4 %5 = maxpool(%3)" HALF SMALL
     "%6 = maxpool_grad(%2 %5)" HALF " input=4,4" BACK FULL
     "%7 = conv2d_dx(%6 %1) input=5,5 pad=1,0,1,0" BACK "f64[2,5,5,2]\noutput y %4\noutput g %7\n",
     APART},
    {"the gradient of the pool has another window",
     "snug graph 1\n%0 input x f64[2,7,7,2]\n%1 input w f64[3,3,2,3]\n%2 input d f64[2,3,3,3]\n"
     "%3 = conv2d(%0 %1)" FORWARD "f64[2,5,5,3]\n"
     "%4 %5 = maxpool(%3)" HALF " pad=0,1,0,1" FORWARD "f64[2,3,3,3] opaque[2,3,3,3]\n"
     "%6 = maxpool_grad(%2 %5)" HALF " pad=1,0,1,0 input=5,5" BACK "f64[2,5,5,3]\n"
     "%7 = conv2d_dw(%0 %6) kernel=3,3" DWOUT "output y %4\noutput g %7\n",
     APART},
    {"the weight gradient of another picture",
     WHOLE "%9 = conv2d_dw(%3 %8) kernel=3,3" DWOUT "output y %6\noutput g %9\n", APART},
    {"the gradient of the input by other weights",
     WHOLE "%9 = conv2d_dx(%8 %4) input=6,6" DXOUT "output y %6\noutput g %9\n", APART},
    {"two weight gradients",
     WHOLE "%9 = conv2d_dw(%0 %8) kernel=3,3" DWOUT "%10 = conv2d_dw(%0 %8) kernel=3,3" DWOUT
           "output y %6\noutput g %9\noutput h %10\n",
     APART},
    {"the full gradient is an output",
     WHOLE "%9 = conv2d_dw(%0 %8) kernel=3,3" DWOUT "output y %6\noutput g %9\noutput f %8\n",
     APART},
    {"the convolution's result is an output",
     WHOLE "%9 = conv2d_dw(%0 %8) kernel=3,3" DWOUT "output y %6\noutput g %9\noutput f %5\n",
     APART},
    {"two gradients of one pool",
     WHOLE "%9 = maxpool_grad(%6 %7)" HALF " input=4,4" BACK FULL
           "%10 = conv2d_dw(%0 %8) kernel=3,3" DWOUT "%11 = exp(%9)" BACK FULL
           "output y %6\noutput g %10\noutput f %11\n",
     APART},
    {"the winners are picked, not given back",
     CONV_IN CONV POOL "%8 = exp(%5)" FORWARD FULL "%9 = maxpool_pick(%8 %7)" HALF " input=4,4" BACK
                       "f64[2,2,2,3]\noutput y %6\noutput p %9\n",
     {WANT(conv2d, 1), WANT(maxpool, 1), WANT(conv2d_pool, 0)}},
    {"the winners are picked from elsewhere",
     "snug graph 1\n%0 input x f64[2,6,6,2]\n%1 input w f64[3,3,2,3]\n%2 input z f64[2,4,4,3]\n"
     "%3 = conv2d(%0 %1)" FORWARD FULL "%4 %5 = maxpool(%3)" HALF SMALL
     "%6 = maxpool_pick(%2 %5)" HALF " input=4,4" BACK "f64[2,2,2,3]\noutput y %4\noutput p %6\n",
     APART},
    {"the winners are picked, and a weight gradient is made of them",
     CONV_IN CONV "%6 %7 = maxpool(%5) kernel=1,1 stride=1,1" FORWARD
                  "f64[2,4,4,3] opaque[2,4,4,3]\n"
                  "%8 = maxpool_pick(%6 %7) kernel=1,1 stride=1,1 input=4,4" BACK FULL
                  "%9 = conv2d_dw(%0 %8) kernel=3,3" DWOUT "output y %6\noutput g %9\n",
     APART},
    {"windows that overlap in rows",
     CONV_IN CONV "%6 %7 = maxpool(%5) kernel=3,2 stride=1,2" SMALL "output y %6\n", APART},
    {"windows that overlap in columns",
     CONV_IN CONV "%6 %7 = maxpool(%5) kernel=2,3 stride=2,1" SMALL "output y %6\n", APART},
    {"windows of more places than a block has",
     "snug graph 1\n%0 input x f64[1,10,12,2]\n%1 input w f64[1,1,2,3]\n"
     "%2 = conv2d(%0 %1)" FORWARD "f64[1,10,12,3]\n"
     "%3 %4 = maxpool(%2) kernel=5,4 stride=5,4" FORWARD "f64[1,2,3,3] opaque[1,2,3,3]\n"
     "output y %3\n",
     APART},
    {"a convolution of groups",
     "snug graph 1\n%0 input x f64[2,6,6,3]\n%1 input w f64[3,3,1,3]\n"
     "%2 = conv2d(%0 %1) groups=3" FORWARD FULL "%3 %4 = maxpool(%2)" HALF SMALL "output y %3\n",
     APART},
    {"a convolution with an activation",
     CONV_IN "%5 = conv2d(%0 %1) act=tanh" FORWARD FULL POOL "output y %6\n", APART},
};

static void test_convolutions_and_pools_stay_apart_where_others_see_between(void **state) {
    check_rows(state, ROWS(conv_pool_guards));
}

/* --- cross-entropies -------------------------------------------------------------------------- */
#define XENT_IN                                                                                    \
    "snug graph 1\n%0 input x f64[3,3]\n%1 input y f64[3,3]\n%2 input d f64[3]\n"                  \
    "%3 input z f64[3,3]\n"
#define M33 FORWARD "f64[3,3]\n"
#define ROW FORWARD "f64[3]\n"
#define LOSS                                                                                       \
    XENT_IN "%4 = softmax(%0)" M33 "%5 = log(%4)" M33 "%6 = mul(%1 %5)" M33                        \
            "%7 = sum(%6) axes=1" ROW "%8 = neg(%7)" ROW
/* dlogp is %11 */
#define SPREAD                                                                                     \
    "%9 = reshape(%2) dims=3,1 | backward -> f64[3,1]\n"                                           \
    "%10 = broadcast_to(%9) dims=3,3 | backward -> f64[3,3]\n"
#define DLOGP  SPREAD "%11 = mul(%10 %1) | backward -> f64[3,3]\n"
#define BACK33 " | backward -> f64[3,3]\n"
#define WRITTEN                                                                                    \
    { WANT(softmax, 1), WANT(softmax_xent, 0), WANT(softmax_xent_grad, 0) }
/* The same by log_softmax; numbers of values are those of the other way. */
#define LOG_LOSS                                                                                   \
    XENT_IN "%4 = neg(%3)" M33 "%5 = log_softmax(%0)" M33 "%6 = mul(%1 %5)" M33                    \
            "%7 = sum(%6) axes=1" ROW "%8 = neg(%7)" ROW
#define LOG_WRITTEN                                                                                \
    { WANT(log_softmax, 1), WANT(softmax_xent, 0), WANT(softmax_xent_grad, 0) }
#define ENDS "output n %8\noutput z %4\n"

static const guard xent_guards[] = {
    {"the sum keeps its axis",
     XENT_IN "%4 = softmax(%0)" M33 "%5 = log(%4)" M33 "%6 = mul(%1 %5)" M33
             "%7 = sum(%6) axes=1 keepdims=1" FORWARD "f64[3,1]\noutput n %7\n",
     WRITTEN},
    {"the sum is over the rows",
     XENT_IN "%4 = softmax(%0)" M33 "%5 = log(%4)" M33 "%6 = mul(%1 %5)" M33
             "%7 = sum(%6) axes=0" ROW "output n %7\n",
     WRITTEN},
    {"the logarithm of something else",
     XENT_IN "%4 = sigmoid(%0)" M33 "%5 = log(%4)" M33 "%6 = mul(%1 %5)" M33
             "%7 = sum(%6) axes=1" ROW "output n %7\n",
     {WANT(sigmoid, 1), WANT(softmax_xent, 0)}},
    {"one row of labels for all",
     "snug graph 1\n%0 input x f64[3,3]\n%1 input y f64[1,3]\n%2 = softmax(%0)" M33
     "%3 = log(%2)" M33 "%4 = mul(%1 %3)" M33 "%5 = sum(%4) axes=1" ROW "output n %5\n",
     WRITTEN},
    {"the products are an output",
     XENT_IN "%4 = softmax(%0)" M33 "%5 = log(%4)" M33 "%6 = mul(%1 %5)" M33
             "%7 = sum(%6) axes=1" ROW "output n %7\noutput m %6\n",
     WRITTEN},
    {"a gradient per class, not per row",
     LOSS "%9 = reshape(%2) dims=1,3" BACK "f64[1,3]\n%10 = broadcast_to(%9) dims=3,3" BACK33
          "%11 = mul(%10 %1)" BACK33 "%12 = div(%11 %4)" BACK33 "%13 = softmax_grad(%12 %4)" BACK33
          "output n %8\noutput g %13\n",
     WRITTEN},
    {"the gradient of a row has more axes",
     "snug graph 1\n%0 input x f64[4,3]\n%1 input y f64[4,3]\n%2 input d f64[2,2]\n"
     "%3 = softmax(%0)" FORWARD "f64[4,3]\n%4 = log(%3)" FORWARD "f64[4,3]\n"
     "%5 = mul(%1 %4)" FORWARD "f64[4,3]\n%6 = sum(%5) axes=1" FORWARD "f64[4]\n"
     "%7 = reshape(%2) dims=4,1" BACK "f64[4,1]\n%8 = broadcast_to(%7) dims=4,3" BACK "f64[4,3]\n"
     "%9 = mul(%8 %1)" BACK "f64[4,3]\n%10 = div(%9 %3)" BACK "f64[4,3]\n"
     "%11 = softmax_grad(%10 %3)" BACK "f64[4,3]\noutput n %6\noutput g %11\n",
     WRITTEN},
    {"divided by something else",
     LOSS DLOGP "%12 = div(%11 %3)" BACK33 "%13 = softmax_grad(%12 %4)" BACK33
                "output n %8\noutput g %13\n",
     WRITTEN},
    {"the quotient is an output",
     LOSS DLOGP "%12 = div(%11 %4)" BACK33 "%13 = softmax_grad(%12 %4)" BACK33
                "output n %8\noutput g %13\noutput q %12\n",
     WRITTEN},
    {"somebody reads exp(logp) sum(dlogp)",
     LOG_LOSS DLOGP "%12 = exp(%5)" BACK33 "%13 = sum(%11) axes=1 keepdims=1" BACK "f64[3,1]\n"
                    "%14 = mul(%12 %13)" BACK33 "%15 = sub(%11 %14)" BACK33
                    "%16 = neg(%14)" BACK33 ENDS "output g %15\noutput m %16\n",
     LOG_WRITTEN},
    {"a sum in the place of the product",
     LOG_LOSS DLOGP "%12 = exp(%5)" BACK33 "%13 = sum(%11) axes=1 keepdims=1" BACK "f64[3,1]\n"
                    "%14 = add(%12 %13)" BACK33 "%15 = sub(%11 %14)" BACK33 ENDS "output g %15\n",
     LOG_WRITTEN},
    {"a sum in the place of the difference",
     LOG_LOSS DLOGP "%12 = exp(%5)" BACK33 "%13 = sum(%11) axes=1 keepdims=1" BACK "f64[3,1]\n"
                    "%14 = mul(%12 %13)" BACK33 "%15 = add(%11 %14)" BACK33 ENDS "output g %15\n",
     LOG_WRITTEN},
    {"the sum of something else",
     LOG_LOSS DLOGP "%12 = exp(%5)" BACK33 "%13 = sum(%3) axes=1 keepdims=1" BACK "f64[3,1]\n"
                    "%14 = mul(%12 %13)" BACK33 "%15 = sub(%11 %14)" BACK33
                    "%16 = neg(%11)" BACK33 ENDS "output g %15\noutput m %16\n",
     LOG_WRITTEN},
    {"the sum along the rows",
     LOG_LOSS DLOGP "%12 = exp(%5)" BACK33 "%13 = sum(%11) axes=0 keepdims=1" BACK "f64[1,3]\n"
                    "%14 = mul(%12 %13)" BACK33 "%15 = sub(%11 %14)" BACK33 ENDS "output g %15\n",
     LOG_WRITTEN},
    {"labels are added, not multiplied",
     LOG_LOSS SPREAD "%11 = add(%10 %1)" BACK33 "%12 = exp(%5)" BACK33
                     "%13 = sum(%11) axes=1 keepdims=1" BACK "f64[3,1]\n%14 = mul(%12 %13)" BACK33
                     "%15 = sub(%11 %14)" BACK33 ENDS "output g %15\n",
     LOG_WRITTEN},
};

static void test_cross_entropies_are_those_as_written(void **state) {
    check_rows(state, ROWS(xent_guards));
}

/* Fused, with the sign that it has: d is neg of e, and is negated once more behind its
 * spreading. */
static void test_a_gradient_negated_twice_keeps_its_sign(void **state) {
    snug_error err;
    sn_graph *g, *fused;
    expect_ok(sn_graph_parse(*state,
                             LOSS "%9 = neg(%2) | backward -> f64[3]\n"
                                  "%10 = reshape(%9) dims=3,1 | backward -> f64[3,1]\n"
                                  "%11 = broadcast_to(%10) dims=3,3" BACK33 "%12 = neg(%11)" BACK33
                                  "%13 = mul(%12 %1)" BACK33 "%14 = div(%13 %4)" BACK33
                                  "%15 = softmax_grad(%14 %4)" BACK33 "output n %8\noutput g %15\n",
                             &g, &err),
              &err);
    expect_ok(sn_graph_fuse(g, &fused, &err), &err);
    const guard row = {"twice", NULL, {WANT(softmax_xent, 1), WANT(softmax_xent_grad, 1)}};
    expect_counts(fused, &row);
    sn_test_arrays in = sn_test_inputs(g, -1, 1);
    sn_test_arrays left = sn_test_eval(*state, g, &in), right = sn_test_eval(*state, fused, &in);
    for (uint32_t i = 0; i < left.n; i++)
        for (size_t k = 0; k < left.count[i]; k++)
            assert_true(fabs(left.data[i][k] - right.data[i][k]) <= 1e-12);
    sn_test_arrays_clear(&left);
    sn_test_arrays_clear(&right);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(fused);
    sn_graph_destroy(g);
}

/* --- convolutions of concatenations ----------------------------------------------------------- */
#define JOINED                                                                                     \
    "snug graph 1\n%0 input a f64[2,3,3,16]\n%1 input b f64[2,3,3,16]\n%2 input dy f64[2,3,3,2]\n" \
    "%3 = concat(%0 %1) axis=3" FORWARD "f64[2,3,3,32]\n"
#define JOINDW BACK "f64[1,1,32,2]\n"

static void test_weight_gradients_of_joined_pictures_stay_whole(void **state) {
    static const struct {
        const char *why, *text;
    } rows[] = {
        {"groups",
         JOINED "%4 = conv2d_dw(%3 %2) kernel=1,1 groups=2" BACK "f64[1,1,16,2]\noutput g %4\n"},
        {"a bias sum with it", JOINED "%4 %5 = conv2d_dw(%3 %2) kernel=1,1 bias=1" BACK
                                      "f64[1,1,32,2] f64[2]\noutput g %4\noutput b %5\n"},
        {"two of them",
         JOINED "%4 = conv2d_dw(%3 %2) kernel=1,1" JOINDW "%5 = conv2d_dw(%3 %2) kernel=1,1" JOINDW
                "output g %4\noutput h %5\n"},
        {"somebody else reads the picture",
         JOINED "%4 = conv2d_dw(%3 %2) kernel=1,1" JOINDW "%5 = exp(%3)" BACK
                "f64[2,3,3,32]\noutput g %4\noutput e %5\n"},
        {"the picture is an output",
         JOINED "%4 = conv2d_dw(%3 %2) kernel=1,1" JOINDW "output g %4\noutput j %3\n"},
        {"pictures on top of each other",
         "snug graph 1\n%0 input a f64[2,3,3,16]\n%1 input b f64[2,3,3,16]\n"
         "%2 input dy f64[2,6,3,2]\n%3 = concat(%0 %1) axis=1" FORWARD "f64[2,6,3,16]\n"
         "%4 = conv2d_dw(%3 %2) kernel=1,1" BACK "f64[1,1,16,2]\noutput g %4\n"},
        {"pictures that are not joined",
         "snug graph 1\n%0 input a f64[2,3,3,16]\n%1 input dy f64[2,3,3,2]\n"
         "%2 = conv2d_dw(%0 %1) kernel=1,1" BACK "f64[1,1,16,2]\noutput g %2\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snug_error err;
        sn_graph *g, *out;
        expect_ok(sn_graph_parse(*state, rows[i].text, &g, &err), &err);
        expect_ok(sn_graph_unjoin(g, &out, &err), &err);
        if (out)
            fail_msg("%s: there are parts", rows[i].why);
        sn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_products_are_left_alone_but_for_what_they_can_do),
        engine_test(test_a_second_batch_norm_stays),
        engine_test(test_bias_gradients_are_sums_of_the_channels_that_nobody_reads_early),
        engine_test(test_channel_affines_have_whole_rows_and_vectors),
        engine_test(test_updates_take_products_that_nobody_misses),
        engine_test(test_updates_take_products_from_so_many_weights_on),
        engine_test(test_updates_move_up_to_dx_alone_and_past_nobody),
        engine_test(test_relus_stay_before_pools_that_others_see),
        engine_test(test_a_relu_moves_behind_one_pool_alone),
        engine_test(test_convolutions_and_pools_stay_apart_where_others_see_between),
        engine_test(test_cross_entropies_are_those_as_written),
        engine_test(test_a_gradient_negated_twice_keeps_its_sign),
        engine_test(test_weight_gradients_of_joined_pictures_stay_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
