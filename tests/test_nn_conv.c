/* test_nn_conv.c: convolutions and poolings of one, two and three axes: shapes, names of weights
 * and what is refused, as in Keras. Their values are judged by test_golden. */
#include "support/support.h"

#include "nn/network.h"

#include <string.h>

static sn_network *begin(void **state, int rank, const int64_t *dims) {
    snug_error err;
    sn_network *n;
    snug_type t = {.dtype = SNUG_F32, .rank = rank + 1, .dims = {-1}};
    for (int k = 0; k < rank; k++)
        t.dims[1 + k] = dims[k];
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    return n;
}

/* Adds one layer to a network of its own and looks at what comes out. */
typedef struct {
    const char *cls, *config, *output;
} row;

static const int64_t steps[] = {9, 4}, picture[] = {6, 5, 3}, volume[] = {4, 5, 3, 2};

static const int64_t *dims_of(int rank) {
    return rank == 2 ? steps : rank == 3 ? picture : volume;
}

static void expect_rows(void **state, int rank, const row *rows, size_t n_rows) {
    for (size_t i = 0; i < n_rows; i++) {
        snug_error err;
        char text[192];
        sn_network *n = begin(state, rank, dims_of(rank));
        expect_ok(sn_network_add(n, rows[i].cls, NULL, sn_conf_fill_text,
                                 (void *)(uintptr_t)rows[i].config, &err),
                  &err);
        snug_type_print(&n->layers[0].output, text, sizeof text);
        if (strcmp(text, rows[i].output) != 0)
            fail_msg("%s %s gives %s, not %s", rows[i].cls, rows[i].config, text, rows[i].output);
        sn_network_destroy(n);
    }
}
#define EXPECT_ROWS(rank, ...)                                                                     \
    do {                                                                                           \
        static const row rows_[] = {__VA_ARGS__};                                                  \
        expect_rows(state, rank, rows_, sizeof rows_ / sizeof *rows_);                             \
    } while (0)

static void test_sequences_have_keras_shapes(void **state) {
    EXPECT_ROWS(
        2, {"Conv1D", "filters=5 kernel_size=3", "f32[?,7,5]"},
        {"Conv1D", "filters=5 kernel_size=3 strides=2 padding=same", "f32[?,5,5]"},
        {"Conv1D", "filters=5 kernel_size=4 strides=2 padding=causal", "f32[?,5,5]"},
        {"Conv1D", "filters=6 kernel_size=3 groups=2 dilation_rate=3", "f32[?,3,6]"},
        {"DepthwiseConv1D", "kernel_size=2 depth_multiplier=3", "f32[?,8,12]"},
        {"SeparableConv1D", "filters=7 kernel_size=3 strides=2 padding=same", "f32[?,5,7]"},
        {"Conv1DTranspose", "filters=2 kernel_size=2 strides=3", "f32[?,27,2]"},
        {"Conv1DTranspose", "filters=2 kernel_size=4 strides=3", "f32[?,28,2]"},
        {"Conv1DTranspose", "filters=2 kernel_size=3 strides=2 padding=same", "f32[?,18,2]"},
        {"Conv1DTranspose", "filters=2 kernel_size=3 strides=2 output_padding=0 padding=same",
         "f32[?,17,2]"},
        {"MaxPooling1D", "", "f32[?,4,4]"}, {"AveragePooling1D", "padding=same", "f32[?,5,4]"},
        {"AdaptiveAveragePooling1D", "output_size=4", "f32[?,4,4]"},
        {"AdaptiveMaxPooling1D", "output_size=20", "f32[?,20,4]"},
        {"GlobalAveragePooling1D", "", "f32[?,4]"},
        {"GlobalMaxPooling1D", "keepdims=1", "f32[?,1,4]"});
}

static void test_pictures_have_keras_shapes(void **state) {
    EXPECT_ROWS(3, {"DepthwiseConv2D", "kernel_size=3", "f32[?,4,3,3]"},
                {"DepthwiseConv2D", "kernel_size=3 strides=2 padding=same depth_multiplier=2",
                 "f32[?,3,3,6]"},
                {"SeparableConv2D", "filters=8 kernel_size=2,3", "f32[?,5,3,8]"},
                {"Conv2DTranspose", "filters=4 kernel_size=3 strides=2", "f32[?,13,11,4]"},
                {"Conv2DTranspose",
                 "filters=4 kernel_size=3 strides=2 padding=same output_padding=1,0",
                 "f32[?,12,9,4]"},
                {"Conv2DTranspose", "filters=4 kernel_size=2 dilation_rate=2", "f32[?,8,7,4]"});
}

static void test_volumes_have_keras_shapes(void **state) {
    EXPECT_ROWS(
        4, {"Conv3D", "filters=3 kernel_size=2", "f32[?,3,4,2,3]"},
        {"Conv3D", "filters=3 kernel_size=3 strides=2,1,2 padding=same", "f32[?,2,5,2,3]"},
        {"Conv3D", "filters=4 kernel_size=1,2,3 groups=2", "f32[?,4,4,1,4]"},
        {"Conv3DTranspose", "filters=3 kernel_size=3 strides=1,2,3", "f32[?,6,11,9,3]"},
        {"Conv3DTranspose", "filters=3 kernel_size=2 strides=2 padding=same", "f32[?,8,10,6,3]"},
        {"MaxPooling3D", "", "f32[?,2,2,1,2]"},
        {"AveragePooling3D", "pool_size=3,2,1 strides=1 padding=same", "f32[?,4,5,3,2]"},
        {"GlobalAveragePooling3D", "keepdims=1", "f32[?,1,1,1,2]"},
        {"GlobalMaxPooling3D", "", "f32[?,2]"});
}

/* --- weights ---------------------------------------------------------------------------------- */
static void expect_vars(void **state, int rank, const char *cls, const char *config,
                        const char *wanted) {
    snug_error err;
    char text[400] = "", type[192];
    sn_network *n = begin(state, rank, dims_of(rank));
    expect_ok(sn_network_add(n, cls, NULL, sn_conf_fill_text, (void *)(uintptr_t)config, &err),
              &err);
    for (size_t i = 0; i < n->n_vars; i++) {
        strcat(strcat(text, i ? " " : ""), n->vars[i].name);
        strcat(strcat(text, " "), snug_type_print(&n->vars[i].type, type, sizeof type));
    }
    assert_string_equal(text, wanted);
    sn_network_destroy(n);
}

static void test_kernels_have_keras_names_and_shapes(void **state) {
    expect_vars(state, 2, "Conv1D", "filters=6 kernel_size=3 groups=2",
                "conv1d/kernel f32[3,2,6] conv1d/bias f32[6]");
    expect_vars(state, 3, "DepthwiseConv2D", "kernel_size=2 depth_multiplier=4",
                "depthwise_conv2d/kernel f32[2,2,3,4] depthwise_conv2d/bias f32[12]");
    expect_vars(state, 3, "SeparableConv2D", "filters=5 kernel_size=2 depth_multiplier=4",
                "separable_conv2d/depthwise_kernel f32[2,2,3,4] "
                "separable_conv2d/pointwise_kernel f32[1,1,12,5] separable_conv2d/bias f32[5]");
    expect_vars(state, 4, "Conv3DTranspose", "filters=5 kernel_size=2 use_bias=0",
                "conv3d_transpose/kernel f32[2,2,2,5,2]");
}

/* --- refusals --------------------------------------------------------------------------------- */
static void test_bad_settings_are_refused_by_name(void **state) {
    static const struct {
        int rank;
        const char *cls, *config, *piece;
    } rows[] = {
        {3, "Conv1D", "filters=2 kernel_size=3", "sequences have 3 axes"},
        {2, "MaxPooling3D", "", "volumes have 5 axes"},
        {2, "Conv1D", "filters=2 kernel_size=3 padding=full", "valid, causal and same"},
        {3, "Conv2D", "filters=2 kernel_size=3 padding=causal", "valid and same"},
        {2, "Conv1DTranspose", "filters=2 kernel_size=3 padding=causal", "valid and same"},
        {2, "AveragePooling1D", "padding=causal", "valid and same"},
        {4, "Conv3D", "filters=2 kernel_size=5", "depth 5 does not fit the input's 4"},
        {4, "Conv3D", "filters=2 kernel_size=0", "kernel_size has the entry 0"},
        {4, "MaxPooling3D", "pool_size=-1", "pool_size has the entry -1"},
        {2, "Conv1D", "filters=2 kernel_size=2 strides=2 dilation_rate=2", "both be above 1"},
        {2, "Conv1D", "filters=3 kernel_size=2 groups=2", "divide into groups"},
        {3, "DepthwiseConv2D", "kernel_size=2 depth_multiplier=0", "depth_multiplier=0"},
        {3, "SeparableConv2D", "kernel_size=2", "filters=0"},
        {3, "AdaptiveAveragePooling2D", "output_size=2,0", "output_size has the entry 0"},
        {3, "Conv2DTranspose", "filters=2 kernel_size=3 strides=2 output_padding=2",
         "below the stride, 2"},
        {3, "Conv2DTranspose", "filters=2 kernel_size=2 strides=2 padding=same output_padding=0",
         "windows"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_error err;
        sn_network *n = begin(state, rows[i].rank, dims_of(rows[i].rank));
        if (sn_network_add(n, rows[i].cls, NULL, sn_conf_fill_text,
                           (void *)(uintptr_t)rows[i].config, &err) == SNUG_OK)
            fail_msg("%s %s is accepted", rows[i].cls, rows[i].config);
        expect_text(err.text, rows[i].piece);
        assert_int_equal(n->n_layers, 0);
        assert_int_equal(n->n_vars, 0);
        sn_network_destroy(n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_sequences_have_keras_shapes),
        engine_test(test_pictures_have_keras_shapes),
        engine_test(test_volumes_have_keras_shapes),
        engine_test(test_kernels_have_keras_names_and_shapes),
        engine_test(test_bad_settings_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
