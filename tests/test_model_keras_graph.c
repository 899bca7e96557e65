/* test_model_keras_graph.c: Functional models from JSON: both dialects, shared and nested layers,
 * and graphs that are broken, refused with the layer's name. What they compute is compared with
 * Keras by test_golden.c (cases graph_*). */
#include "model/keras_json.h"
#include "nn/operation.h"
#include "support/files.h"

#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTED   SNUG_TEST_DATA "/golden/graph_nested_f32/model.json"
#define RESNET20 SNUG_TEST_DATA "/../examples/models/resnet20.json"

/* --- small files made here -------------------------------------------------------------------- */
#define INPUT_NAMED(name)                                                                          \
    "{\"class_name\":\"InputLayer\",\"name\":\"" name "\",\"config\":{\"name\":\"" name            \
    "\",\"batch_shape\":[null,3]},\"inbound_nodes\":[]}"
#define INPUT INPUT_NAMED("x")
#define LAYER(class_name, name, config, nodes)                                                     \
    ",{\"class_name\":\"" class_name "\",\"name\":\"" name "\",\"config\":{\"name\":\"" name       \
    "\"" config "},\"inbound_nodes\":[" nodes "]}"
#define DENSE(name, nodes) LAYER("Dense", name, ",\"units\":3", nodes)
#define GRAPH_OF(layers, in, out)                                                                  \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[" layers                \
    "],\"input_layers\":[" in "],\"output_layers\":[" out "]}}"
#define GRAPH(layers, out) GRAPH_OF(layers, "[\"x\",0,0]", out)
/* a node as tf.keras 2 writes it, and as Keras 3 does */
#define REF(name, use) "[\"" name "\"," #use ",0]"
#define OLD(refs)      "[" refs "]"
#define TENSOR(name, use)                                                                          \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,3],\"keras_history\":"       \
    "[\"" name "\"," #use ",0]}}"
#define NEW(args) "{\"args\":[" args "],\"kwargs\":{\"mask\":null}}"

static snug_status load_text(snug_engine *e, const char *text, sn_network **n, char *path,
                             snug_error *err) {
    sn_test_dir d;
    sn_keras_compile c;
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "m.json", path), text, strlen(text));
    const snug_status status = sn_keras_load(e, path, NULL, n, &c, err);
    sn_test_dir_end(&d);
    return status;
}

static sn_network *load_graph(void **state, const char *text) {
    sn_network *n = NULL;
    snug_error err = {0};
    char path[256];
    expect_ok(load_text(*state, text, &n, path, &err), &err);
    return n;
}

/* "a<0 add<1,0": layers and the tensors they read, in order. */
static void expect_applications(const sn_network *n, const char *wanted) {
    char text[512];
    size_t at = 0;
    for (size_t i = 0; i < n->n_applications; i++) {
        const sn_application *a = &n->applications[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "",
                               n->layers[a->layer].name);
        for (int k = 0; k < a->n_in; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%c%u", k ? ',' : '<', a->in[k]);
    }
    assert_string_equal(text, wanted);
}

/* --- what is read ----------------------------------------------------------------------------- */
static void test_both_dialects_give_one_network(void **state) {
    static const char *const texts[] = {
        GRAPH(INPUT DENSE("a", OLD("[\"x\",0,0,{}]"))
                  LAYER("Add", "s", "", OLD("[\"x\",0,0,{}],[\"a\",0,0,{}]")),
              REF("s", 0)),
        GRAPH(INPUT DENSE("a", NEW(TENSOR("x", 0)))
                  LAYER("Add", "s", "", NEW("[" TENSOR("x", 0) "," TENSOR("a", 0) "]")),
              REF("s", 0)),
        GRAPH_OF(INPUT DENSE("a", NEW(TENSOR("x", 0)))
                     LAYER("Add", "s", "", NEW("[" TENSOR("x", 0) "," TENSOR("a", 0) "]")),
                 "\"x\",0,0", "\"s\",0,0"),
    };
    for (size_t i = 0; i < 3; i++) {
        sn_network *n = load_graph(state, texts[i]);
        expect_applications(n, "a<0 s<0,1");
        assert_int_equal(n->outputs[0], 2);
        sn_network_destroy(n);
    }
}

static void test_shared_layer_has_its_variables_once(void **state) {
    sn_network *n =
        load_graph(state, GRAPH(INPUT DENSE("d", OLD(REF("x", 0)) "," OLD(REF("d", 0)))
                                    LAYER("Subtract", "s", "", OLD(REF("d", 1) "," REF("d", 0))),
                                REF("s", 0)));
    expect_applications(n, "d<0 d<1 s<2,1");
    assert_int_equal(n->n_layers, 2);
    assert_int_equal(n->n_vars, 2);
    assert_int_equal(n->applications[1].use, 1);
    sn_network_destroy(n);
}

#define TWICE(name, inside)                                                                        \
    GRAPH(INPUT ",{\"class_name\":\"Dense\",\"name\":\"" name "\",\"config\":{" inside             \
                "\"units\":3},\"inbound_nodes\":[" OLD(REF("x", 0)) "," OLD(REF(name, 0)) "]}",    \
          REF(name, 1))

static void test_name_beside_the_config_is_enough(void **state) {
    sn_network *n = load_graph(state, TWICE("d", ""));
    expect_applications(n, "d<0 d<1");
    sn_network_destroy(n);
}

static void test_layers_may_stand_in_any_order(void **state) {
    sn_network *n = load_graph(
        state, GRAPH("{\"class_name\":\"Flatten\",\"config\":{\"name\":"
                     "\"f\"},\"inbound_nodes\":[" OLD(REF("b", 0)) "]}" DENSE("b", OLD(REF("a", 0)))
                         DENSE("a", OLD(REF("x", 0))) "," INPUT,
                     REF("f", 0)));
    expect_applications(n, "a<0 b<1 f<2");
    sn_network_destroy(n);
}

static void test_output_may_be_a_tensor_that_others_read(void **state) {
    sn_network *n = load_graph(
        state, GRAPH(INPUT DENSE("d", OLD(REF("x", 0)) "," OLD(REF("d", 0))), REF("d", 1)));
    assert_int_equal(n->outputs[0], 2);
    sn_network_destroy(n);
}

#define INNER(flag)                                                                                \
    ",{\"class_name\":\"Sequential\",\"name\":\"inner\",\"config\":{\"name\":\"inner\"" flag       \
    ",\"layers\":[" INPUT DENSE("d", "") "]},\"inbound_nodes\":[" OLD(REF("x", 0)) "," OLD(        \
        REF("inner", 0)) "]}"

static void test_nested_model_is_flattened_under_its_name(void **state) {
    sn_network *n = load_graph(state, GRAPH(INPUT INNER(""), REF("inner", 1)));
    expect_applications(n, "inner/d<0 inner/d<1");
    assert_int_equal(n->n_vars, 2);
    assert_string_equal(n->vars[0].name, "inner/d/kernel");
    assert_true(n->layers[0].trainable);
    sn_network_destroy(n);
}

static void test_frozen_nested_model_freezes_its_layers(void **state) {
    sn_network *n = load_graph(state, GRAPH(INPUT INNER(",\"trainable\":false"), REF("inner", 1)));
    assert_false(n->layers[0].trainable);
    sn_network_destroy(n);
}

/* --- several inputs and outputs, keywords ----------------------------------------------------- */
#define TWO_IN(in)                                                                                 \
    GRAPH_OF(INPUT "," INPUT_NAMED("z")                                                            \
                 LAYER("Subtract", "s", "", OLD(REF("z", 0) "," REF("x", 0))),                     \
             in, REF("s", 0))

static void test_inputs_are_fed_in_the_order_of_the_file(void **state) {
    sn_network *n = load_graph(state, TWO_IN(REF("x", 0) "," REF("z", 0)));
    expect_applications(n, "s<1,0");
    assert_int_equal(n->n_inputs, 2);
    assert_string_equal(n->input_names[0], "x");
    assert_string_equal(n->input_names[1], "z");
    sn_network_destroy(n);
    n = load_graph(state, TWO_IN(REF("z", 0) "," REF("x", 0)));
    expect_applications(n, "s<0,1");
    sn_network_destroy(n);
}

#define TWO_OUT(out)                                                                               \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[" INPUT DENSE(          \
        "a", OLD(REF("x", 0)))                                                                     \
        DENSE("b", OLD(REF("a", 0))) "],\"input_layers\":[[\"x\",0,0]],\"output_layers\":" out     \
                                     "}}"

static void test_outputs_come_by_list_or_by_sorted_keys(void **state) {
    sn_network *n = load_graph(state, TWO_OUT("[[\"b\",0,0],[\"a\",0,0]]"));
    assert_int_equal(n->n_outputs, 2);
    assert_int_equal(n->outputs[0], 2);
    assert_int_equal(n->outputs[1], 1);
    assert_string_equal(sn_network_output_name(n, 0), "b");
    sn_network_destroy(n);
    n = load_graph(state, TWO_OUT("{\"z\":[\"b\",0,0],\"c\":[\"a\",0,0]}"));
    assert_int_equal(n->outputs[0], 1);
    assert_string_equal(sn_network_output_name(n, 0), "c");
    assert_string_equal(sn_network_output_name(n, 1), "z");
    sn_network_destroy(n);
}

static void test_training_off_reaches_every_layer_of_a_nested_model(void **state) {
    sn_network *n = load_graph(
        state,
        GRAPH(
            INPUT
            ",{\"class_name\":\"Sequential\",\"name\":\"i\",\"config\":{\"name\":\"i\",\"layers\":"
            "[" INPUT DENSE("d", "") LAYER(
                "Dropout", "o", "",
                "") "]},\"inbound_nodes\":[[[\"x\",0,0,{\"training\":false}]]]}" DENSE("e",
                                                                                       OLD(REF("i",
                                                                                               0))),
            REF("e", 0)));
    assert_string_equal(n->applications[0].call, "training=false");
    assert_string_equal(n->applications[1].call, "training=false");
    assert_string_equal(n->applications[2].call, "");
    sn_network_destroy(n);
}

static void test_keyword_tensors_keep_their_role(void **state) {
    sn_network *n = load_graph(
        state,
        GRAPH(INPUT DENSE("a", NEW(TENSOR("x", 0)))
                  LAYER("Add", "s", "",
                        "{\"args\":[" TENSOR("x", 0) "],\"kwargs\":{\"mask\":" TENSOR("a", 0) "}}"),
              REF("s", 0)));
    expect_applications(n, "a<0 s<0,1");
    assert_null(n->applications[1].role[0]);
    assert_string_equal(n->applications[1].role[1], "mask");
    sn_network_destroy(n);
}

static void test_tf_keras_2_operations_are_known(void **state) {
    sn_network *n = load_graph(
        state,
        GRAPH(INPUT LAYER("TFOpLambda", "tf.math.subtract", ",\"function\":\"math.subtract\"",
                          "[\"_CONSTANT_VALUE\",-1,1.5,{\"y\":[\"x\",0,0],\"name\":null}]")
                  LAYER("TFOpLambda", "tf.math.add", ",\"function\":\"__operators__.add\"",
                        "[\"x\",0,0,{\"y\":[\"tf.math.subtract\",0,0]}]")
                      LAYER("SlicingOpLambda", "tf.getitem",
                            ",\"function\":\"__operators__.getitem\"",
                            "[\"tf.math.add\",0,0,{\"slice_spec\":[{\"start\":null,\"stop\":null,"
                            "\"step\":null},{\"start\":1,\"stop\":null,\"step\":null}]}]")
                          LAYER("TFOpLambda", "tf.concat", ",\"function\":\"concat\"",
                                "[[\"x\",0,0,{\"axis\":-1}],[\"tf.getitem\",0,0,{\"axis\":-1}]]"),
              REF("tf.concat", 0)));
    expect_applications(n, "tf.math.subtract<0 tf.math.add<0,1 tf.getitem<2 tf.concat<0,3");
    assert_int_equal(sn_network_type(n, 4)->dims[1], 5);
    sn_network_destroy(n);
}

static void test_matmul_reads_its_second_operand_transposed(void **state) {
    sn_network *n = load_graph(
        state, GRAPH(INPUT LAYER("Reshape", "r", ",\"target_shape\":[3,1]", OLD(REF("x", 0)))
                         LAYER("TFOpLambda", "t", ",\"function\":\"linalg.matmul\"",
                               "[\"r\",0,0,{\"b\":[\"r\",0,0],\"transpose_b\":true}]"),
                     REF("t", 0)));
    assert_int_equal(sn_network_type(n, 2)->dims[1], 3);
    assert_int_equal(sn_network_type(n, 2)->dims[2], 3);
    sn_network_destroy(n);
}

/* A mask is no input of the layer: what comes behind it has the slots that follow. */
static void test_operations_take_tensors_behind_a_mask(void **state) {
    sn_network *n = load_graph(
        state,
        GRAPH(
            INPUT LAYER("Reshape", "q", ",\"target_shape\":[3,1,1]", OLD(REF("x", 0))) LAYER(
                "Reshape", "w", ",\"target_shape\":[1,1,3]",
                OLD(REF(
                    "x",
                    0))) ",{\"class_name\":\"DotProductAttention\",\"module\":\"keras.src.ops.nn\","
                         "\"name\":\"t\",\"config\":{\"name\":\"t\",\"is_causal\":false},"
                         "\"inbound_nodes\":[{\"args\":[" TENSOR("q", 0) "," TENSOR(
                             "q",
                             0) "," TENSOR("q",
                                           0) "],\"kwargs\":{\"mask\":" TENSOR("w",
                                                                               0) ",\"bias\""
                                                                                  ":" TENSOR("w",
                                                                                             0) "}}"
                                                                                                "]"
                                                                                                "}",
            REF("t", 0)));
    const sn_conf_operation *conf = n->layers[2].conf;
    const snug_argument *args = conf->call->args;
    assert_int_equal(args[2].integer, 2);
    assert_int_equal(args[3].integer, 3); /* bias */
    assert_int_equal(args[4].integer, SN_OPERATION_MASK);
    assert_int_equal(sn_network_type(n, 3)->dims[1], 3);
    sn_network_destroy(n);
}

static void test_operations_take_arrays(void **state) {
    sn_network *n =
        load_graph(state, GRAPH(INPUT LAYER("TFOpLambda", "t", ",\"function\":\"math.multiply\"",
                                            "[\"x\",0,0,{\"y\":[[2.5,1,0.5]]}]"),
                                REF("t", 0)));
    const sn_conf_operation *conf = n->layers[0].conf;
    const sn_operation *call = conf->call;
    assert_true(call->array.n == 3 && call->array.v[0] == 2.5 && call->rank == 2 &&
                call->dims[1] == 3);
    assert_int_equal(sn_network_type(n, 1)->rank, 2);
    sn_network_destroy(n);
}

static void test_open_axes_take_the_shape_that_is_given(void **state) {
    static const char text[] =
        "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":[{\"class_name\":"
        "\"InputLayer\",\"config\":{\"name\":\"x\","
        "\"batch_shape\":[null,null,3]}}" DENSE("a", "") "]}}";
    sn_test_dir d;
    sn_keras_compile c;
    snug_error err = {0};
    sn_network *n = NULL;
    char path[256];
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "m.json", path), text, strlen(text));
    expect_status(sn_keras_load(*state, path, NULL, &n, &c, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "give the shape of an example");
    expect_status(sn_keras_load(*state, path, "7,4", &n, &c, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "axis 2 of its input 'x' has 3 entries");
    expect_ok(sn_keras_load(*state, path, "x=7,3", &n, &c, &err), &err);
    assert_int_equal(sn_network_type(n, 0)->dims[1], 7);
    sn_network_destroy(n);
    sn_test_dir_end(&d);
}

/* --- what is refused -------------------------------------------------------------------------- */
typedef struct {
    const char *text, *piece;
    snug_status status;
} refused_row;

static void refuses(void **state) {
    const refused_row *row = *state;
    snug_engine *e = sn_test_engine(0);
    char path[256];
    snug_error err = {0};
    sn_network *n = (sn_network *)1;
    expect_status(load_text(e, row->text, &n, path, &err), row->status, &err);
    expect_text(err.text, path);
    expect_text(err.text, row->piece);
    assert_ptr_equal(n, (sn_network *)1); /* outputs are written only on success */
    sn_test_engine_end(e);
}

#define REFUSED(name, text, status, piece)                                                         \
    row_test("test_refuses_" name, refuses, (&(refused_row){text, piece, SNUG_E_##status}))

/* A model of three copies of itself, ten deep: 3^10 applications out of one small file. */
static void test_refuses_models_that_multiply(void **state) {
    static char text[65536];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[" INPUT);
    for (int i = 0; i < 10; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               ",{\"class_name\":\"Functional\",\"name\":\"n\",\"config\":{"
                               "\"name\":\"n\",\"layers\":[" INPUT);
    at += (size_t)snprintf(text + at, sizeof text - at, DENSE("n", OLD(REF("x", 0))));
    for (int i = 0; i < 10; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "],\"input_layers\":[[\"x\",0,0]],\"output_layers\":[[\"n\",%d,0]]},"
                               "\"inbound_nodes\":[[[\"x\",0,0]],[[\"n\",0,0]],[[\"n\",1,0]]]}",
                               i ? 2 : 0);
    snprintf(text + at, sizeof text - at,
             "],\"input_layers\":[[\"x\",0,0]],\"output_layers\":[[\"n\",2,0]]}}");
    refused_row row = {text, "more than 20000 times", SNUG_E_UNSUPPORTED};
    *state = &row;
    refuses(state);
}

static snug_status load_scenario(snug_engine *e, void *ctx, snug_error *err) {
    sn_network *n;
    sn_keras_compile c;
    SNUG_TRY(sn_keras_load(e, ctx, NULL, &n, &c, err));
    sn_network_destroy(n);
    return SNUG_OK;
}

static void test_loading_a_graph_survives_any_fault(void **state) {
    (void)state;
    sn_fault_sweep(load_scenario, NESTED);
    sn_fault_sweep(load_scenario, SNUG_TEST_DATA "/golden/io_states_f32/model.json");
}

/* --- a network people know -------------------------------------------------------------------- */
static snug_feed *feed_of(snug_engine *e, const snug_type *type, const void *data) {
    snug_error err = {0};
    snug_feed *feed = NULL;
    expect_ok(snug_feed_from_memory(e, type, data, NULL, NULL, &feed, &err), &err);
    return feed;
}

static void test_resnet20_trains_a_step(void **state) {
    enum { BATCH = 2, PIXELS = 32 * 32 * 3 };
    static float x[BATCH * PIXELS];
    const int32_t y[BATCH] = {3, 7};
    snug_error err = {0};
    snug_model *m;
    snug_fit_result result;
    for (int i = 0; i < BATCH * PIXELS; i++)
        x[i] = (float)(i * 37 % 256);
    expect_ok(snug_model_load(*state, RESNET20, &m, &err), &err);
    int64_t n_params = 0;
    for (size_t i = 0; i < snug_model_n_layers(m); i++) {
        snug_layer_info l;
        snug_model_layer(m, i, &l);
        n_params += l.n_params;
    }
    assert_int_equal(n_params, 274042); /* as Keras counts them */
    snug_fit_options o = {.epochs = 1, .batch = BATCH};
    o.x = feed_of(*state, &(snug_type){SNUG_F32, 4, {BATCH, 32, 32, 3}}, x);
    o.y = feed_of(*state, &(snug_type){SNUG_I32, 1, {BATCH}}, y);
    expect_ok(snug_fit(m, &o, &result, &err), &err);
    const double before = result.values[0];
    for (int i = 0; i < 3; i++)
        expect_ok(snug_fit(m, &o, &result, &err), &err);
    assert_true(before > 0.5 && before < 20);
    assert_true(result.values[0] < before);
    snug_feed_destroy(o.y);
    snug_feed_destroy(o.x);
    snug_model_destroy(m);
}

static const struct CMUnitTest tests[] = {
    engine_test(test_both_dialects_give_one_network),
    engine_test(test_shared_layer_has_its_variables_once),
    engine_test(test_name_beside_the_config_is_enough),
    engine_test(test_layers_may_stand_in_any_order),
    engine_test(test_output_may_be_a_tensor_that_others_read),
    engine_test(test_nested_model_is_flattened_under_its_name),
    engine_test(test_frozen_nested_model_freezes_its_layers),
    engine_test(test_inputs_are_fed_in_the_order_of_the_file),
    engine_test(test_outputs_come_by_list_or_by_sorted_keys),
    engine_test(test_training_off_reaches_every_layer_of_a_nested_model),
    engine_test(test_keyword_tensors_keep_their_role),
    engine_test(test_tf_keras_2_operations_are_known),
    engine_test(test_matmul_reads_its_second_operand_transposed),
    engine_test(test_operations_take_tensors_behind_a_mask),
    engine_test(test_operations_take_arrays),
    engine_test(test_open_axes_take_the_shape_that_is_given),
    cmocka_unit_test(test_refuses_models_that_multiply),
    cmocka_unit_test(test_loading_a_graph_survives_any_fault),
    engine_test(test_resnet20_trains_a_step),
    REFUSED("cycle",
            GRAPH(INPUT LAYER("Add", "s", "", OLD(REF("x", 0) "," REF("b", 0)))
                      DENSE("b", OLD(REF("s", 0))),
                  REF("b", 0)),
            FORMAT, "layer 's' waits for its own output"),
    REFUSED("layer_that_reads_itself", GRAPH(INPUT DENSE("a", OLD(REF("a", 0))), REF("a", 0)),
            FORMAT, "layer 'a' waits for its own output"),
    REFUSED("unknown_layer_in_inbound_nodes",
            GRAPH(INPUT DENSE("a", OLD(REF("nobody", 0))), REF("a", 0)), FORMAT,
            "'a' reads from 'nobody'; there is no such layer"),
    REFUSED("application_that_is_not_there",
            GRAPH(INPUT DENSE("a", OLD(REF("x", 0))) DENSE("b", OLD(REF("a", 1))), REF("b", 0)),
            FORMAT, "'b' reads application 1 of 'a', which is applied 1 times"),
    REFUSED("negative_application", GRAPH(INPUT DENSE("a", OLD(REF("x", -1))), REF("a", 0)), FORMAT,
            "'a' reads application -1 of 'x'"),
    REFUSED("second_output_of_a_layer", GRAPH(INPUT DENSE("a", "[[\"x\",0,1]]"), REF("a", 0)),
            FORMAT, "'a' reads output 1 of 'x', which has 1"),
    REFUSED("dense_on_two_tensors",
            GRAPH(INPUT DENSE("a", OLD(REF("x", 0) "," REF("x", 0))), REF("a", 0)), FORMAT,
            "layer 'a' (Dense) is applied to 2 tensors; it takes 1"),
    REFUSED("difference_of_one_tensor",
            GRAPH(INPUT LAYER("Subtract", "s", "", OLD(REF("x", 0))), REF("s", 0)), FORMAT,
            "layer 's' (Subtract) is applied to 1 tensors; it takes 2"),
    REFUSED("nested_model_on_two_tensors",
            GRAPH(INPUT
                  ",{\"class_name\":\"Sequential\",\"name\":\"i\",\"config\":{\"name\":"
                  "\"i\",\"layers\":[]},\"inbound_nodes\":[" OLD(REF("x", 0) "," REF("x", 0)) "]}",
                  REF("i", 0)),
            FORMAT, "model 'i' is applied to 2 tensors"),
    REFUSED("empty_name_applied_twice", TWICE("", "\"name\":\"\","), FORMAT,
            "a layer that is applied again has no name"),
    REFUSED("nested_model_without_a_name",
            "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":[" INPUT
            ",{\"class_name\":\"Sequential\",\"config\":{\"layers\":[]}}]}}",
            FORMAT, "a model inside the model has no name"),
    REFUSED("nested_model_without_layers",
            GRAPH(INPUT ",{\"class_name\":\"Sequential\",\"name\":\"i\",\"config\":{\"name\":"
                        "\"i\",\"layers\":[]},\"inbound_nodes\":[" OLD(REF("x", 0)) "]}",
                  REF("i", 0)),
            FORMAT, "in 'i/': the model has no layers"),
    REFUSED("layer_that_nothing_feeds",
            GRAPH(INPUT DENSE("a", OLD(REF("x", 0))) DENSE("lost", ""), REF("a", 0)), FORMAT,
            "layer 'lost' is connected to nothing"),
    REFUSED("application_to_no_tensor", GRAPH(INPUT DENSE("a", "[]"), REF("a", 0)), FORMAT,
            "layer 'a' is applied to no tensor"),
    REFUSED("layer_that_leads_nowhere",
            GRAPH(INPUT DENSE("a", OLD(REF("x", 0))) DENSE("end", OLD(REF("x", 0))), REF("a", 0)),
            FORMAT, "layer 'end' does not lead to the model's output"),
    REFUSED("missing_output", GRAPH(INPUT DENSE("a", OLD(REF("x", 0))), ""), FORMAT,
            "does not name its output"),
    REFUSED("unknown_output", GRAPH(INPUT DENSE("a", OLD(REF("x", 0))), REF("b", 0)), FORMAT,
            "'output_layers' reads from 'b'"),
    REFUSED("missing_input", GRAPH_OF(INPUT DENSE("a", OLD(REF("x", 0))), "", REF("a", 0)), FORMAT,
            "does not name its input"),
    REFUSED("unknown_input", GRAPH_OF(INPUT DENSE("a", OLD(REF("x", 0))), REF("z", 0), REF("a", 0)),
            FORMAT, "input_layers names 'z'; there is no such layer"),
    REFUSED("input_that_is_another_layer",
            GRAPH_OF(INPUT DENSE("a", OLD(REF("x", 0))), REF("a", 0), REF("a", 0)), FORMAT,
            "'a', which is no InputLayer"),
    REFUSED("unknown_operation",
            GRAPH(INPUT LAYER("TFOpLambda", "t", ",\"function\":\"math.fancy\"", "[\"x\",0,0,{}]"),
                  REF("t", 0)),
            UNSUPPORTED, "operation 'fancy' is not known"),
    REFUSED("layer_of_python_code",
            GRAPH(INPUT LAYER("Lambda", "l", "", OLD(REF("x", 0))), REF("l", 0)), UNSUPPORTED,
            "write the expression with keras.ops"),
    REFUSED("ragged_array",
            GRAPH(INPUT LAYER("TFOpLambda", "t", ",\"function\":\"math.add\"",
                              "[\"x\",0,0,{\"y\":[[1,2],[3]]}]"),
                  REF("t", 0)),
            UNSUPPORTED, "an operand = [[1,2],[3]]"),
    REFUSED("item_outside",
            GRAPH(INPUT LAYER("SlicingOpLambda", "t", ",\"function\":\"__operators__.getitem\"",
                              "[\"x\",0,0,{\"slice_spec\":[0,9]}]"),
                  REF("t", 0)),
            FORMAT, "slice index 9 of dimension 1 out of bounds"),
    REFUSED("parts_of_the_batch",
            GRAPH(INPUT LAYER("TFOpLambda", "t", ",\"function\":\"unstack\"", "[\"x\",0,0,{}]"),
                  REF("t", 0)),
            UNSUPPORTED, "with a batch of 5040"),
    REFUSED("two_layers_of_one_name",
            GRAPH(INPUT DENSE("a", OLD(REF("x", 0))) DENSE("a", OLD(REF("x", 0))), REF("a", 0)),
            FORMAT, "two layers 'a'"),
    REFUSED("argument_that_is_no_tensor",
            GRAPH(INPUT DENSE("a", NEW(TENSOR("x", 0) ",2.5")), REF("a", 0)), UNSUPPORTED,
            "layer 'a' is called with an argument = 2.5"),
    REFUSED("tensor_without_history",
            GRAPH(INPUT DENSE("a", NEW("{\"class_name\":\"__keras_tensor__\"}")), REF("a", 0)),
            UNSUPPORTED, "layer 'a' is called with"),
    REFUSED("call_in_training_mode",
            GRAPH(INPUT DENSE("a", "[[\"x\",0,0,{\"training\":true}]]"), REF("a", 0)), UNSUPPORTED,
            "layer 'a' is called with training = true"),
    REFUSED("shared_layer_on_another_width",
            GRAPH(INPUT DENSE("d", OLD(REF("x", 0)) "," OLD(REF("c", 0)))
                      LAYER("Concatenate", "c", "", OLD(REF("x", 0) "," REF("d", 0))),
                  REF("d", 1)),
            SHAPE, "d (Dense): kernel is f32[3,3], this input wants f32[6,3]"),
    REFUSED("layer_without_config",
            GRAPH(INPUT ",{\"class_name\":\"Dense\",\"name\":\"a\",\"inbound_nodes\":[[[\"x\","
                        "0,0]]]}",
                  REF("a", 0)),
            FORMAT, "layer 1 has no class_name or no config"),
    REFUSED("graph_of_an_input_only", GRAPH(INPUT, REF("x", 0)), FORMAT, "no layers"),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
