/* test_operations.c: functions of keras.ops and of tf.keras 2 that golden runs cannot show: settings
 * that Keras forgets in a model, values that no training survives, and what is refused. A row is a
 * node on the input x, three numbers, and what it must give. */
#include "support/files.h"

#include "graph/build.h"
#include "model/keras_json.h"
#include "support/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *layers; /* the last one is called "t" */
    double x[3];
    int n;
    double y[9];
    const char *refused; /* or a piece of the message */
} row;

#define LAYER(class_name, module, name, config, nodes)                                             \
    ",{\"class_name\":\"" class_name "\",\"module\":\"" module "\",\"name\":\"" name               \
    "\",\"config\":{\"name\":\"" name "\"" config "},\"inbound_nodes\":[" nodes "]}"
#define TENSOR(name)                                                                               \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,3],\"keras_history\":["      \
    "\"" name "\",0,0]}}"
#define OPERATION(class_name, config, args)                                                        \
    LAYER(class_name, "keras.src.ops.numpy", "t", config, "{\"args\":[" args "],\"kwargs\":{}}")
#define ON_X(class_name, config) OPERATION(class_name, config, TENSOR("x"))
#define QUANTILE(q, method)                                                                        \
    OPERATION("Quantile", ",\"axis\":1,\"method\":\"" method "\",\"keepdims\":false",              \
              TENSOR("x") "," q)
#define COLUMN                                                                                     \
    LAYER("Reshape", "keras.layers", "r", ",\"target_shape\":[3,1]",                               \
          "{\"args\":[" TENSOR("x") "],\"kwargs\":{}}")

#define OLD(name, function, node)                                                                  \
    ",{\"class_name\":\"TFOpLambda\",\"name\":\"" name "\",\"config\":{\"name\":\"" name           \
    "\",\"function\":\"" function "\"},\"inbound_nodes\":[[" node "]]}"
#define PICTURE                                                                                    \
    LAYER("Reshape", "keras.layers", "r", ",\"target_shape\":[1,3,1]",                             \
          "{\"args\":[" TENSOR("x") "],\"kwargs\":{}}")
#define WINDOWS(config) PICTURE OPERATION("ExtractPatches", config, TENSOR("r"))

static snug_status load(snug_engine *e, const char *layers, sn_network **n, snug_error *err) {
    char text[4000], path[256];
    sn_test_dir d;
    sn_keras_compile c;
    snprintf(
        text, sizeof text,
        "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[{\"class_name\":"
        "\"InputLayer\",\"name\":\"x\",\"config\":{\"name\":\"x\",\"batch_shape\":[null,3]},"
        "\"inbound_nodes\":[]}%s],\"input_layers\":[[\"x\",0,0]],\"output_layers\":[[\"t\",0,0]"
        "]}}",
        layers);
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "m.json", path), text, strlen(text));
    const snug_status status = sn_keras_load(e, path, NULL, n, &c, err);
    sn_test_dir_end(&d);
    return status;
}

static void gives(void **state) {
    const row *r = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    sn_network *n;
    sn_graph *g;
    sn_value x;
    sn_network_result result;
    const snug_type t = {.dtype = SNUG_F32, .rank = 2, .dims = {1, 3}};
    expect_ok(load(e, r->layers, &n, &err), &err);
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &t, &x, &err), &err);
    expect_ok(sn_network_build(n, g, &x, false, &result, &err), &err);
    sn_builder b = sn_builder_on(g);
    expect_ok(sn_graph_output(
                  g, "y", sn_build_cast(&b, sn_build_identity(&b, result.y[0]), SNUG_F32), &err),
              &err);
    sn_test_arrays in = sn_test_inputs(g, 0, 1);
    memcpy(in.data[0], r->x, sizeof r->x);
    sn_test_arrays out = sn_test_eval(e, g, &in);
    assert_int_equal(out.count[0], r->n);
    for (int i = 0; i < r->n; i++)
        if (!(isnan(r->y[i]) ? isnan(out.data[0][i])
                             : fabs(out.data[0][i] - r->y[i]) <= 1e-6 * fmax(1, fabs(r->y[i]))))
            fail_msg("element %d is %.9g, not %.9g", i, out.data[0][i], r->y[i]);
    sn_test_arrays_clear(&in);
    sn_test_arrays_clear(&out);
    sn_graph_destroy(g);
    sn_network_destroy(n);
    sn_test_engine_end(e);
}

static void refuses(void **state) {
    const row *r = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    sn_network *n = NULL;
    assert_int_not_equal(load(e, r->layers, &n, &err), SNUG_OK);
    expect_text(err.text, r->refused);
    sn_test_engine_end(e);
}

#define BIG              3.4028234663852886e38
#define GIVES(name, ...) row_test("gives_" name, gives, (&(row){__VA_ARGS__}))
#define REFUSES(name, layers, piece)                                                               \
    row_test("refuses_" name, refuses, (&(row){layers, {0}, 0, {0}, piece}))

static const struct CMUnitTest tests[] = {
    GIVES("lower_quantile", QUANTILE("0.6", "lower"), {5, 1, 2}, 1, {2}, NULL),
    GIVES("higher_quantile", QUANTILE("0.6", "higher"), {5, 1, 2}, 1, {5}, NULL),
    GIVES("nearest_quantile", QUANTILE("0.8", "nearest"), {5, 1, 2}, 1, {5}, NULL),
    GIVES("quantile_in_the_middle", QUANTILE("0.6", "midpoint"), {5, 1, 2}, 1, {3.5}, NULL),
    GIVES("quantile_between", QUANTILE("0.75", "linear"), {5, 1, 2}, 1, {3.5}, NULL),
    GIVES("quantile_of_nan", QUANTILE("0", "linear"), {5, NAN, 2}, 1, {NAN}, NULL),
    GIVES("several_quantiles", QUANTILE("[0, 0.5, 1]", "linear"), {5, 1, 2}, 3, {1, 2, 5}, NULL),
    GIVES("numbers_for_what_is_none", ON_X("NanToNum", ",\"nan\":0.5,\"posinf\":null,\"neginf\":7"),
          {NAN, INFINITY, -INFINITY}, 3, {0.5, BIG, 7}, NULL),
    GIVES("numbers_by_default", ON_X("NanToNum", ",\"nan\":0,\"posinf\":null,\"neginf\":null"),
          {NAN, -INFINITY, -3}, 3, {0, -BIG, -3}, NULL),
    GIVES("counts", ON_X("CountNonzero", ",\"axis\":1"), {0, -2, 3}, 1, {2}, NULL),
    GIVES("cube_roots", ON_X("Cbrt", ""), {-8, 0, 27}, 3, {-2, 0, 3}, NULL),
    GIVES("closeness_of_nan",
          OPERATION("Isclose", ",\"equal_nan\":true", TENSOR("x") "," TENSOR("x") ",0.1,0.01"),
          {NAN, 1, INFINITY}, 3, {1, 1, 0}, NULL),
    GIVES("product_transposed_left",
          COLUMN ",{\"class_name\":\"TFOpLambda\",\"name\":\"t\",\"config\":{\"name\":\"t\","
                 "\"function\":\"linalg.matmul\"},\"inbound_nodes\":[[\"r\",0,0,{\"b\":[\"r\",0,0],"
                 "\"transpose_a\":true}]]}",
          {1, 2, 3}, 1, {14}, NULL),
    GIVES("median_of_the_batch", ON_X("Median", ",\"axis\":0"), {5, 1, 2}, 3, {5, 1, 2}, NULL),
    GIVES("rotation_of_the_batch", ON_X("Rot90", ",\"k\":1,\"axes\":[0,1]"), {5, 1, 2}, 3,
          {2, 1, 5}, NULL),
    GIVES("row_of_the_batch", OPERATION("GetItem", "", TENSOR("x") ",-1"), {5, 1, 2}, 3, {5, 1, 2},
          NULL),
    GIVES("product_over_the_batch",
          OPERATION("Tensordot", ",\"axes\":[[0],[0]]", TENSOR("x") "," TENSOR("x")), {1, 2, 3}, 9,
          {1, 2, 3, 2, 4, 6, 3, 6, 9}, NULL),
    GIVES("sinc_at_zero", ON_X("Sinc", ""), {0, 0.5, 1e-9}, 3, {1, 0.63661977236758134, 1}, NULL),
    REFUSES("quantile_above_one", QUANTILE("1.5", "linear"), "q=1.5 is not within 0 and 1"),
    REFUSES("unknown_method", QUANTILE("0.5", "cubic"), "method=cubic"),
    REFUSES("differences_of_too_few", ON_X("Diff", ",\"n\":3,\"axis\":1"), "no elements"),
    REFUSES("cross_of_one_tensor", ON_X("Cross", ",\"axisa\":-1"), "without x2"),
    REFUSES("windows_over_no_axis", ON_X("MaxPool", ",\"pool_size\":2"), "the input has 2 axes"),
    REFUSES("product_over_the_batch",
            OPERATION("Tensordot", ",\"axes\":[[0],[0]]", TENSOR("x") ",[[1, 2], [3, 4]]"),
            "axes of 5040 and 2 elements do not fit"),
    REFUSES("diagonal_outside",
            COLUMN OPERATION("Diagonal", ",\"offset\":1,\"axis1\":1,\"axis2\":2", TENSOR("r")),
            "no elements"),
    REFUSES("a_dtype_that_is_none", ON_X("Cast", ",\"dtype\":\"float99\""),
            "t (Operation): with a batch of 5040 in place of an open one: keras.ops.cast: dtype "
            "float99 is not known"),
    REFUSES("two_open_extents", ON_X("Reshape", ",\"newshape\":[-1,-1,3]"), "leaves extents open"),
    REFUSES("shape_of_a_scalar",
            OLD("s", "math.reduce_sum", "[\"x\",0,0,{}]") OLD("t", "shape", "[\"s\",0,0,{}]"),
            "tf.shape: the result has no elements"),
    REFUSES("huge_windows", WINDOWS(",\"size\":300,\"padding\":\"same\""), "300 x 300 pixels"),
    REFUSES("huge_strides",
            WINDOWS(",\"size\":3,\"padding\":\"same\",\"strides\":9223372036854775807"),
            "strides has the entry 9223372036854775807"),
    REFUSES("windows_without_a_rate", WINDOWS(",\"size\":3,\"dilation_rate\":0"),
            "dilation_rate has the entry 0"),
    REFUSES("pictures_beside_numbers",
            PICTURE OLD("t", "image.ssim",
                        "[\"r\",0,0,{\"img2\":1.0,\"max_val\":1,\"filter_size\":1}]"),
            "at least 1 by 1 pixels"),
    REFUSES("a_text_in_place_of_filters",
            PICTURE OPERATION("SeparableConv", "", TENSOR("r") ",[[[[1.0]]]],\"foo\""),
            "keras.ops.separable_conv: a text or dtype where a tensor is wanted"),
    REFUSES("a_vector_in_place_of_matrices",
            OLD("t", "linalg.lstsq", "[\"x\",0,0,{\"rhs\":[1.0,2.0,3.0],\"l2_regularizer\":1.0}]"),
            "rhs has 1 axes; it needs matrices"),
    GIVES("rows_of_the_batch", ON_X("Reshape", ",\"newshape\":[null,-1,3]"), {5, 1, 2}, 3,
          {5, 1, 2}, NULL),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
