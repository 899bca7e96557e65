/* test_nn_attention.c: attention, einsum and normalisation layers: names and shapes of weights,
 * initial values by the units a projection joins, dropped weights, masks given by keyword, and what
 * is refused. Their values are judged by test_golden. */
#include "support/support.h"

#include "exec/exec.h"
#include "nn/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 5, C = 4 };

static sn_network *begin(void **state) {
    snug_error err;
    sn_network *n;
    const snug_type t = {SNUG_F32, 3, {-1, T, C}};
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    return n;
}

/* The layer on `n_in` times the input; *tensor is its first output. */
static snug_status add(sn_network *n, const char *cls, const char *config, const char *call,
                       int n_in, uint32_t *tensor, snug_error *err) {
    static const uint32_t same[3] = {0, 0, 0};
    const sn_layer_spec spec = {.class_name = cls,
                                .fill = sn_conf_fill_text,
                                .ctx = (void *)(uintptr_t)config,
                                .in = same,
                                .n_in = n_in,
                                .call = call};
    return sn_network_add_on(n, &spec, tensor, err);
}

/* --- weights ---------------------------------------------------------------------------------- */
static void expect_vars(void **state, const char *cls, const char *config, int n_in,
                        const char *wanted) {
    snug_error err;
    uint32_t tensor;
    char text[900] = "", type[192];
    sn_network *n = begin(state);
    expect_ok(add(n, cls, config, NULL, n_in, &tensor, &err), &err);
    for (size_t i = 0; i < n->n_vars; i++) {
        strcat(strcat(text, i ? " " : ""), n->vars[i].name);
        strcat(strcat(text, " "), snug_type_print(&n->vars[i].type, type, sizeof type));
    }
    assert_string_equal(text, wanted);
    sn_network_destroy(n);
}

static void test_weights_have_keras_names_and_shapes(void **state) {
    expect_vars(state, "MultiHeadAttention", "num_heads=2 key_dim=3 value_dim=7", 2,
                "multi_head_attention/query/kernel f32[4,2,3] "
                "multi_head_attention/query/bias f32[2,3] "
                "multi_head_attention/key/kernel f32[4,2,3] "
                "multi_head_attention/key/bias f32[2,3] "
                "multi_head_attention/value/kernel f32[4,2,7] "
                "multi_head_attention/value/bias f32[2,7] "
                "multi_head_attention/attention_output/kernel f32[2,7,4] "
                "multi_head_attention/attention_output/bias f32[4]");
    expect_vars(state, "GroupQueryAttention",
                "head_dim=3 num_query_heads=4 num_key_value_heads=2 use_bias=0", 3,
                "grouped_query_attention/query/kernel f32[4,4,3] "
                "grouped_query_attention/key/kernel f32[4,2,3] "
                "grouped_query_attention/value/kernel f32[4,2,3] "
                "grouped_query_attention/attention_output/kernel f32[4,3,4]");
    expect_vars(state, "Attention", "use_scale=1 score_mode=concat", 2,
                "attention/scale f32[] attention/concat_score_weight f32[]");
    expect_vars(state, "AdditiveAttention", "", 2, "additive_attention/scale f32[4]");
    expect_vars(state, "EinsumDense", "equation=abc,cde->abde output_shape=-1,6,2 bias_axes=d", 1,
                "einsum_dense/kernel f32[4,6,2] einsum_dense/bias f32[6,1]");
    expect_vars(state, "LayerNormalization", "axis=1,2", 1,
                "layer_normalization/gamma f32[5,4] layer_normalization/beta f32[5,4]");
    expect_vars(state, "GroupNormalization", "groups=2", 1,
                "group_normalization/gamma f32[4] group_normalization/beta f32[4]");
    expect_vars(state, "LayerScale", "projection_dim=4 init_values=0.5", 1,
                "layer_scale/gamma f32[4]");
}

/* Of the projection from C to H * D units, not of a convolution's windows. */
static void test_projections_begin_with_the_units_they_join(void **state) {
    snug_error err;
    uint32_t tensor;
    sn_network *n = begin(state);
    expect_ok(add(n, "MultiHeadAttention", "num_heads=10 key_dim=2", NULL, 2, &tensor, &err), &err);
    const sn_recipe *query = &n->vars[0].init, *out = &n->vars[6].init;
    assert_true(fabs(query->b - sqrt(6.0 / (4 + 20))) < 1e-12);
    assert_true(fabs(out->b - sqrt(6.0 / (20 + 4))) < 1e-12);
    expect_ok(
        add(n, "EinsumDense", "equation=abc,cd->abd output_shape=5,12", NULL, 1, &tensor, &err),
        &err);
    assert_true(fabs(n->vars[n->n_vars - 1].init.b - sqrt(6.0 / (4 + 12))) < 1e-12);
    sn_network_destroy(n);
}

/* --- outputs ---------------------------------------------------------------------------------- */
static void expect_outputs(void **state, const char *cls, const char *config, const char *call,
                           const char *first, const char *second) {
    snug_error err;
    uint32_t tensor;
    char text[192];
    sn_network *n = begin(state);
    expect_ok(add(n, cls, config, call, 2, &tensor, &err), &err);
    assert_string_equal(snug_type_print(sn_network_type(n, tensor), text, sizeof text), first);
    assert_int_equal(n->n_tensors, second ? 3 : 2);
    if (second)
        assert_string_equal(snug_type_print(sn_network_type(n, tensor + 1), text, sizeof text),
                            second);
    sn_network_destroy(n);
}

static void test_scores_are_a_second_output(void **state) {
    const char *const asks = "return_attention_scores=true use_causal_mask=true";
    expect_outputs(state, "MultiHeadAttention", "num_heads=2 key_dim=3", "", "f32[?,5,4]", NULL);
    expect_outputs(state, "MultiHeadAttention", "num_heads=2 key_dim=3 output_shape=6,2", asks,
                   "f32[?,5,6,2]", "f32[?,2,5,5]");
    expect_outputs(state, "Attention", "", asks, "f32[?,5,4]", "f32[?,5,5]");
    expect_outputs(state, "Dot", "axes=1,1", "", "f32[?,4,4]", NULL);
    expect_outputs(state, "Dot", "axes=2", "", "f32[?,5,5]", NULL);
}

/* --- what the network keeps ------------------------------------------------------------------- */
/* Nodes of this kind in the network's graph. */
static int count_nodes(snug_engine *e, sn_network *n, bool training, sn_op op) {
    snug_error err;
    sn_graph *g;
    sn_value x;
    sn_network_result out;
    int count = 0;
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 3, {2, T, C}}, &x, &err), &err);
    expect_ok(sn_network_build(n, g, &x, training, &out, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        count += node->op == op && (op != SN_OP_attention || node->attrs.attention.dropout);
    }
    sn_graph_destroy(g);
    return count;
}

static void test_weights_are_dropped_in_training_only(void **state) {
    snug_error err;
    uint32_t tensor;
    sn_network *n = begin(state);
    expect_ok(
        add(n, "MultiHeadAttention", "num_heads=2 key_dim=3 dropout=0.4", NULL, 2, &tensor, &err),
        &err);
    assert_int_equal(count_nodes(*state, n, true, SN_OP_attention), 1);
    assert_int_equal(count_nodes(*state, n, false, SN_OP_attention), 0);
    assert_int_equal(count_nodes(*state, n, true, SN_OP_softmax), 0);
    sn_network_destroy(n);
}

static void test_asked_for_scores_are_made_whole(void **state) {
    snug_error err;
    uint32_t tensor;
    sn_network *n = begin(state);
    expect_ok(add(n, "MultiHeadAttention", "num_heads=2 key_dim=3 dropout=0.4",
                  "return_attention_scores=true", 2, &tensor, &err),
              &err);
    assert_int_equal(count_nodes(*state, n, true, SN_OP_softmax), 1);
    assert_int_equal(count_nodes(*state, n, true, SN_OP_dropout), 1);
    assert_int_equal(count_nodes(*state, n, false, SN_OP_dropout), 0);
    sn_network_destroy(n);
}

/* A tensor given as `mask` is no second input: a batch normalisation counts by it. */
static void test_a_mask_by_keyword_belongs_to_its_input(void **state) {
    snug_error err;
    uint32_t mask, tensor;
    sn_network *n = begin(state);
    static const char *const roles[2] = {NULL, "mask"};
    const sn_layer_spec first = {.class_name = "Reshape",
                                 .fill = sn_conf_fill_text,
                                 .ctx = (void *)(uintptr_t) "target_shape=4,5",
                                 .in = (const uint32_t[]){0},
                                 .n_in = 1};
    expect_ok(sn_network_add_on(n, &first, &mask, &err), &err);
    const sn_layer_spec sum = {.class_name = "GlobalMaxPooling1D",
                               .fill = sn_conf_fill_text,
                               .ctx = (void *)(uintptr_t) "",
                               .in = &mask,
                               .n_in = 1};
    expect_ok(sn_network_add_on(n, &sum, &mask, &err), &err);
    const sn_layer_spec norm = {.class_name = "BatchNormalization",
                                .fill = sn_conf_fill_text,
                                .ctx = (void *)(uintptr_t) "",
                                .in = (const uint32_t[]){0, mask},
                                .n_in = 2,
                                .role = roles};
    expect_ok(sn_network_add_on(n, &norm, &tensor, &err), &err);
    assert_int_equal(count_nodes(*state, n, true, SN_OP_moments), 0);
    assert_true(n->tensors[tensor].masked);
    sn_network_destroy(n);
}

/* --- refusals --------------------------------------------------------------------------------- */
static void test_bad_settings_are_refused_by_name(void **state) {
    static const struct {
        const char *cls, *config;
        int n_in;
        const char *piece;
    } rows[] = {
        {"MultiHeadAttention", "num_heads=2 key_dim=3", 1, "a query and a value"},
        {"MultiHeadAttention", "key_dim=3", 2, "0 heads of 3"},
        {"MultiHeadAttention", "num_heads=2 key_dim=3 dropout=1", 2, "dropout 1"},
        {"MultiHeadAttention", "num_heads=2 key_dim=3 attention_axes=2", 2, "attention_axes"},
        {"GroupQueryAttention", "head_dim=3 num_query_heads=4 num_key_value_heads=3", 2,
         "4 heads of 3, 3 of keys"},
        {"Attention", "score_mode=sum", 2, "score_mode 'sum' is neither dot nor concat"},
        {"EinsumDense", "equation=abc,cd->abd", 1, "leave an extent of the kernel open"},
        {"EinsumDense", "equation=abc output_shape=3", 1, "equation 'abc'"},
        {"Dot", "axes=0", 2, "0 is no axis beside the batch"},
        {"Dot", "axes=3", 2, "3 is no axis beside the batch"},
        {"Dot", "axes=1,2", 2, "different extents"},
        {"GroupNormalization", "", 1, "4 channels do not divide into 32 groups"},
        {"LayerNormalization", "axis=3", 1, "axis 3 of an input of 3 axes"},
        {"BatchNormalization", "axis=1,2", 1, "2 axes; one is possible"},
        {"LayerScale", "", 1, "projection_dim=0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_error err;
        uint32_t tensor;
        sn_network *n = begin(state);
        if (add(n, rows[i].cls, rows[i].config, NULL, rows[i].n_in, &tensor, &err) == SNUG_OK)
            fail_msg("%s %s is accepted", rows[i].cls, rows[i].config);
        expect_text(err.text, rows[i].piece);
        assert_int_equal(n->n_layers, 0);
        assert_int_equal(n->n_vars, 0);
        sn_network_destroy(n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_weights_have_keras_names_and_shapes),
        engine_test(test_projections_begin_with_the_units_they_join),
        engine_test(test_scores_are_a_second_output),
        engine_test(test_weights_are_dropped_in_training_only),
        engine_test(test_asked_for_scores_are_made_whole),
        engine_test(test_a_mask_by_keyword_belongs_to_its_input),
        engine_test(test_bad_settings_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
