/* test_fuse_casts.c: which casts between f32 and halves become their neighbours' own, and which
 * stay. What the rows then compute is in the sweeps of kernels and in the goldens of policies. */
#include "support/support.h"

#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

/* What is left of a graph: rows, among them casts, and the type of its first output's maker's
 * inputs and results in order, as "bf16 f32 -> f32". */
typedef struct {
    const char *text;
    int n_nodes, n_casts;
    const char *last; /* of the last row */
} cast_case;

#define HEAD "snug graph 1\np0 real 0.001\np1 real 0.1\n"
#define NORM_OF(d)                                                                                 \
    HEAD "%0 input x " d "[4,3]\n%1 input m f32[3]\n%2 input v f32[3]\n%3 input g f32[3]\n"
#define PRODUCT(d)                                                                                 \
    HEAD "%0 input x " d "[4,3]\n%1 input dy " d "[4,2]\n%2 variable w f32[3,2] home 0 init "      \
         "constant 0 0 0\n%3 = matmul(%0 %1) trans_a=1 | backward -> " d "[3,2]\n"
#define WIDENED "%4 = cast(%3) dtype=f32 | backward -> f32[3,2]\n"
#define UPDATE  "%5 = sgd(%2 %4) rate=p1 momentum=p0 | update -> f32[3,2]\n"

static const cast_case cases[] = {
    /* a norm of halves: no cast is left */
    {NORM_OF("bf16") "%4 = cast(%0) dtype=f32 | forward -> f32[4,3]\n"
                     "%5 = normalise(%4 %1 %2 %3 %1) epsilon=p0 | forward -> f32[4,3]\n"
                     "%6 = cast(%5) dtype=bf16 | forward -> bf16[4,3]\noutput y %6\n",
     1, 0, "bf16 f32 f32 f32 f32 -> bf16"},
    /* to another half than it came from, or seen in f32: it stays */
    {NORM_OF("bf16") "%4 = cast(%0) dtype=f32 | forward -> f32[4,3]\n"
                     "%5 = normalise(%4 %1 %2 %3 %1) epsilon=p0 | forward -> f32[4,3]\n"
                     "%6 = cast(%5) dtype=f16 | forward -> f16[4,3]\noutput y %6\n",
     3, 2, "f32 -> f16"},
    {NORM_OF("f16") "%4 = cast(%0) dtype=f32 | forward -> f32[4,3]\n"
                    "%5 = normalise(%4 %1 %2 %3 %1) epsilon=p0 | forward -> f32[4,3]\n"
                    "%6 = cast(%5) dtype=f16 | forward -> f16[4,3]\noutput y %6\noutput z %5\n",
     3, 2, "f32 -> f16"},
    /* sums of halves give f64 in any case */
    {HEAD "%0 input x f16[4,3]\n%1 = cast(%0) dtype=f32 | forward -> f32[4,3]\n"
          "%2 %3 = moments(%1) | forward -> f64[3] f64[3]\noutput y %2\noutput z %3\n",
     1, 0, "f16 -> f64 f64"},
    /* a weight gradient of bf16 is f32 at once; one of f16 is rounded behind its sum, and the
     * update takes it; so is one that others see */
    {PRODUCT("bf16") WIDENED UPDATE, 2, 0, "f32 f32 -> f32"},
    {PRODUCT("f16") WIDENED UPDATE, 3, 1, "f32 f16 -> f32"},
    {PRODUCT("bf16") WIDENED UPDATE "output g %3\n", 3, 1, "f32 bf16 -> f32"},
    {PRODUCT("f16") "output g %3\n", 2, 1, "f32 -> f16"},
    {PRODUCT("f32") "output g %3\n", 1, 0, "f32 f32 -> f32"},
    /* a wide one that nobody wants in f32 stays what it is */
    {HEAD "%0 input x bf16[4,1024]\n%1 input dy bf16[4,1024]\n%2 = matmul(%0 %1) trans_a=1 | "
          "backward -> bf16[1024,1024]\noutput g %2\n",
     1, 0, "bf16 bf16 -> bf16"},
    {HEAD "%0 input x f16[4,1024]\n%1 input dy f16[4,1024]\n%2 = matmul(%0 %1) trans_a=1 | "
          "backward -> f16[1024,1024]\n%3 = check_finite(%2) | update -> f16[1024,1024]\n"
          "%4 = cast(%3) dtype=f32 | update -> f32[1024,1024]\noutput g %4\n",
     4, 2, "f16 -> f32"},
    /* a bias gradient, too; but no sum along a row, no forward pass, and no product per example */
    {HEAD "%0 input x bf16[4,3]\n%1 = sum(%0) axes=0 | backward -> bf16[3]\noutput y %1\n", 2, 1,
     "f32 -> bf16"},
    {HEAD "%0 input x bf16[4,3]\n%1 = sum(%0) axes=1 | backward -> bf16[4]\noutput y %1\n", 1, 0,
     "bf16 -> bf16"},
    {HEAD "%0 input x bf16[4,3]\n%1 = sum(%0) axes=0 | forward -> bf16[3]\noutput y %1\n", 1, 0,
     "bf16 -> bf16"},
    {HEAD "%0 input x f16[5,4,3]\n%1 input dy f16[5,4,2]\n%2 = matmul(%0 %1) trans_a=1 | backward "
          "-> f16[5,3,2]\noutput g %2\n",
     1, 0, "f16 f16 -> f16"},
    {HEAD "%0 input x f16[4,3]\n%1 input dy f16[2,3]\n%2 = matmul(%0 %1) trans_b=1 | backward "
          "-> f16[4,2]\noutput g %2\n",
     1, 0, "f16 f16 -> f16"},
    /* what a layer gives is rounded */
    {HEAD "%0 input x bf16[4,3]\n%1 input w bf16[3,2]\n%2 = matmul(%0 %1) | forward -> bf16[4,2]\n"
          "%3 = cast(%2) dtype=f32 | forward -> f32[4,2]\noutput y %3\n",
     2, 1, "bf16 -> f32"},
    /* weights are read as they are, and biases; the first operand is not */
    {HEAD "%0 input x bf16[4,3]\n%1 input w f32[3,2]\n%2 input b f32[2]\n"
          "%3 = cast(%1) dtype=bf16 | forward -> bf16[3,2]\n"
          "%4 = cast(%2) dtype=bf16 | forward -> bf16[2]\n"
          "%5 = matmul(%0 %3) | forward -> bf16[4,2]\n%6 = add(%5 %4) | forward -> bf16[4,2]\n"
          "output y %6\n",
     1, 0, "bf16 f32 f32 -> bf16"},
    {HEAD "%0 input x f32[4,3]\n%1 input w bf16[3,2]\n%2 = cast(%0) dtype=bf16 | forward -> "
          "bf16[4,3]\n%3 = matmul(%2 %1) | forward -> bf16[4,2]\noutput y %3\n",
     2, 1, "bf16 bf16 -> bf16"},
    /* between f64 and halves nothing is taken */
    {HEAD "%0 input x bf16[4,3]\n%1 input w f64[3,2]\n%2 = cast(%1) dtype=bf16 | forward -> "
          "bf16[3,2]\n%3 = matmul(%0 %2) | forward -> bf16[4,2]\noutput y %3\n",
     2, 1, "bf16 bf16 -> bf16"},
    /* rows by element between casts, of one input or more, and rows that move elements */
    {HEAD "%0 input x bf16[4,3]\n%1 = cast(%0) dtype=f32 | forward -> f32[4,3]\n"
          "%2 = exp(%1) | forward -> f32[4,3]\n%3 = cast(%2) dtype=bf16 | forward -> bf16[4,3]\n"
          "%4 = cast(%3) dtype=f32 | forward -> f32[4,3]\n"
          "%5 = transpose(%4) perm=1,0 | forward -> f32[3,4]\n"
          "%6 = cast(%5) dtype=bf16 | forward -> bf16[3,4]\noutput y %6\n",
     2, 0, "bf16 -> bf16"},
    {HEAD "%0 input x f16[4,3]\n%1 input z f16[3]\n%2 = cast(%0) dtype=f32 | forward -> f32[4,3]\n"
          "%3 = cast(%1) dtype=f32 | forward -> f32[3]\n%4 = mul(%2 %3) | forward -> f32[4,3]\n"
          "%5 = cast(%4) dtype=f16 | forward -> f16[4,3]\noutput y %5\n",
     1, 0, "f16 f16 -> f16"},
    {HEAD "%0 input x f16[4]\n%1 input c bool[4]\n%2 = cast(%0) dtype=f32 | forward -> f32[4]\n"
          "%3 = select(%1 %2 %2) | forward -> f32[4]\n%4 = cast(%3) dtype=f16 | forward -> f16[4]\n"
          "output y %4\n",
     1, 0, "bool f16 f16 -> f16"},
    /* two halves, an f32 beside, a result that is seen in f32, or rounded to another half: stays */
    {HEAD "%0 input x bf16[4]\n%1 input z f16[4]\n%2 = cast(%0) dtype=f32 | forward -> f32[4]\n"
          "%3 = cast(%1) dtype=f32 | forward -> f32[4]\n%4 = mul(%2 %3) | forward -> f32[4]\n"
          "%5 = cast(%4) dtype=f16 | forward -> f16[4]\noutput y %5\n",
     4, 3, "f32 -> f16"},
    {HEAD "%0 input x f16[4]\n%1 input z f32[4]\n%2 = cast(%0) dtype=f32 | forward -> f32[4]\n"
          "%3 = mul(%2 %1) | forward -> f32[4]\n%4 = cast(%3) dtype=f16 | forward -> f16[4]\n"
          "output y %4\n",
     3, 2, "f32 -> f16"},
    {HEAD "%0 input x f16[4]\n%1 = cast(%0) dtype=f32 | forward -> f32[4]\n"
          "%2 = exp(%1) | forward -> f32[4]\n%3 = cast(%2) dtype=f16 | forward -> f16[4]\n"
          "output y %2\noutput z %3\n",
     3, 2, "f32 -> f16"},
    {HEAD "%0 input x f16[4]\n%1 = cast(%0) dtype=f32 | forward -> f32[4]\n"
          "%2 = exp(%1) | forward -> f32[4]\n%3 = cast(%2) dtype=bf16 | forward -> bf16[4]\n"
          "output z %3\n",
     3, 2, "f32 -> bf16"},
    /* a sum is f32 in any case; what is rounded behind it stays so */
    {HEAD "%0 input x f16[4,3]\n%1 = cast(%0) dtype=f32 | forward -> f32[4,3]\n"
          "%2 = sum(%1) axes=1 | forward -> f32[4]\n%3 = cast(%2) dtype=f16 | forward -> f16[4]\n"
          "output z %3\n",
     2, 1, "f32 -> f16"},
    /* there and back is rounded */
    {HEAD "%0 input x f32[4]\n%1 = cast(%0) dtype=bf16 | forward -> bf16[4]\n"
          "%2 = cast(%1) dtype=f32 | forward -> f32[4]\noutput y %2\n",
     2, 2, "bf16 -> f32"},
    /* an assignment keeps its cast */
    {HEAD "%0 input x bf16[3]\n%1 variable w f32[3] home 0 init constant 0 0 0\n"
          "%2 = cast(%0) dtype=f32 | forward -> f32[3]\n%3 = assign(%1 %2) | update -> f32[3]\n",
     2, 1, "f32 f32 -> f32"},
};

static void types_of(const sn_graph *g, const sn_node_info *n, char *text) {
    text[0] = '\0';
    for (int i = 0; i < n->n_in; i++)
        strcat(strcat(text, snug_dtype_name(sn_graph_type(g, n->in[i])->dtype)), " ");
    strcat(text, "->");
    for (int k = 0; k < n->n_out; k++)
        strcat(strcat(text, " "), snug_dtype_name(sn_graph_type(g, n->out[k])->dtype));
}

static void test_casts_go_where_rows_take_both_types(void **state) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snug_error err;
        sn_graph *g, *fused;
        char last[128];
        int n_casts = 0;
        expect_ok(sn_graph_parse(*state, cases[i].text, &g, &err), &err);
        expect_ok(sn_graph_fuse(g, &fused, &err), &err);
        expect_ok(sn_graph_check(fused, false, &err), &err);
        const uint32_t n = sn_graph_n_nodes(fused);
        for (uint32_t k = 0; k < n; k++)
            n_casts += sn_graph_node_at(fused, (sn_node){k})->op == SN_OP_cast;
        types_of(fused, sn_graph_node_at(fused, (sn_node){n - 1}), last);
        if ((int)n != cases[i].n_nodes || n_casts != cases[i].n_casts ||
            strcmp(last, cases[i].last) != 0)
            fail_msg("case %zu: %u rows, %d casts, last %s; %d, %d, %s are right", i, n, n_casts,
                     last, cases[i].n_nodes, cases[i].n_casts, cases[i].last);
        sn_graph_destroy(fused);
        sn_graph_destroy(g);
    }
}

/* Inputs of a graph, and its casts, after those that are only read as halves come as such. */
static void test_inputs_come_as_halves(void **state) {
    static const struct {
        const char *text, *inputs;
        int n_casts;
    } feeds[] = {
        {"%0 input x f32[4]\n%1 = cast(%0) dtype=bf16 | forward -> bf16[4]\n"
         "%2 = cast(%0) dtype=bf16 | forward -> bf16[4]\n%3 = add(%1 %2) | forward -> "
         "bf16[4]\noutput y %3\n",
         "bf16", 0},
        {"%0 input x f32[4]\n%1 input z f32[4]\n%2 = cast(%1) dtype=f16 | forward -> f16[4]\n"
         "%3 = relu(%2) | forward -> f16[4]\n%4 = relu(%0) | forward -> f32[4]\noutput y "
         "%3\noutput u %4\n",
         "f32 f16", 0},
        /* read in f32, too: before or behind the cast, or by a caller */
        {"%0 input x f32[4]\n%1 = cast(%0) dtype=bf16 | forward -> bf16[4]\n"
         "%2 = relu(%0) | forward -> f32[4]\noutput y %1\noutput z %2\n",
         "f32", 1},
        {"%0 input x f32[4]\n%1 = relu(%0) | forward -> f32[4]\n"
         "%2 = cast(%0) dtype=bf16 | forward -> bf16[4]\noutput y %1\noutput z %2\n",
         "f32", 1},
        {"%0 input x f32[4]\n%1 = cast(%0) dtype=bf16 | forward -> bf16[4]\noutput y %1\noutput z "
         "%0\n",
         "f32", 1},
        /* as two types, or as no half; halves and wider numbers stay */
        {"%0 input x f32[4]\n%1 = cast(%0) dtype=bf16 | forward -> bf16[4]\n"
         "%2 = cast(%0) dtype=f16 | forward -> f16[4]\noutput y %1\noutput z %2\n",
         "f32", 2},
        {"%0 input x f32[4]\n%1 = cast(%0) dtype=i32 | forward -> i32[4]\noutput y %1\n", "f32", 1},
        {"%0 input x f64[4]\n%1 = cast(%0) dtype=bf16 | forward -> bf16[4]\noutput y %1\n", "f64",
         1},
        {"%0 input x u8[4]\n%1 = cast(%0) dtype=bf16 | forward -> bf16[4]\noutput y %1\n", "u8", 1},
    };
    for (size_t i = 0; i < sizeof feeds / sizeof *feeds; i++) {
        snug_error err;
        sn_graph *g, *made = NULL;
        char text[512], inputs[64] = "";
        int n_casts = 0;
        snprintf(text, sizeof text, "snug graph 1\n%s", feeds[i].text);
        expect_ok(sn_graph_parse(*state, text, &g, &err), &err);
        expect_ok(sn_graph_half_feeds(g, &made, &err), &err);
        const sn_graph *const now = made ? made : g;
        expect_ok(sn_graph_check(now, false, &err), &err);
        for (uint32_t k = 0; k < sn_graph_n_inputs(now); k++)
            strcat(strcat(inputs, k > 0 ? " " : ""),
                   snug_dtype_name(sn_graph_type(now, sn_graph_input_at(now, k))->dtype));
        for (uint32_t k = 0; k < sn_graph_n_nodes(now); k++)
            n_casts += sn_graph_node_at(now, (sn_node){k})->op == SN_OP_cast;
        if (strcmp(inputs, feeds[i].inputs) != 0 || n_casts != feeds[i].n_casts)
            fail_msg("case %zu: %s and %d casts; %s and %d are right", i, inputs, n_casts,
                     feeds[i].inputs, feeds[i].n_casts);
        sn_graph_destroy(made);
        sn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_casts_go_where_rows_take_both_types),
        engine_test(test_inputs_come_as_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
