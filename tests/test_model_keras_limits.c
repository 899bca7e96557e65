/* test_model_keras_limits.c: files whose settings are larger than what the readers and layers hold,
 * and settings that must not be passed over: each is refused by name, or acts. */
#include "model/keras_json.h"
#include "support/files.h"

#include <snug/train.h>
#include <string.h>

#define TENSOR                                                                                     \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,7,8],\"keras_history\":"     \
    "[\"x\",0,0]}}"
#define CALL(args) "[{\"args\":[" args "],\"kwargs\":{}}]"
/* A model of one layer "a" on sequences of 7 steps of 8 features. */
#define MODEL(module, class_name, config, nodes)                                                   \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[{\"class_name\":"       \
    "\"InputLayer\",\"name\":\"x\",\"config\":{\"name\":\"x\",\"batch_shape\":[null,7,8]},"        \
    "\"inbound_nodes\":[]},{\"module\":\"" module "\",\"class_name\":\"" class_name                \
    "\",\"name\":\"a\",\"config\":{\"name\":\"a\"" config "},\"inbound_nodes\":" nodes             \
    "}],\"input_layers\":[[\"x\",0,0]],\"output_layers\":[[\"a\",0,0]]}}"
#define LAYER(class_name, config)     MODEL("keras.layers", class_name, config, CALL(TENSOR))
#define OPERATION(class_name, config) MODEL("keras.src.ops.numpy", class_name, config, CALL(TENSOR))
#define INNER(class_name, config)     "{\"class_name\":\"" class_name "\",\"config\":{" config "}}"
#define LSTM_CELL(name)               INNER("LSTMCell", "\"units\":2,\"name\":\"" name "\"")
#define FOUR_CELLS                    "[" LSTM_CELL("c") "," LSTM_CELL("d") "," LSTM_CELL("e") "," LSTM_CELL("f") "]"
#define NULLS_8                       "null,null,null,null,null,null,null,null"
#define HUGE                          "9007199254740992"

static snug_status load_text(snug_engine *e, const char *text, snug_model **m, snug_error *err) {
    sn_test_dir d;
    char path[256];
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "m.json", path), text, strlen(text));
    const snug_status status = snug_model_load(e, path, m, err);
    sn_test_dir_end(&d);
    return status;
}

static snug_model *load(void **state, const char *text) {
    snug_model *m = NULL;
    snug_error err = {0};
    expect_ok(load_text(*state, text, &m, &err), &err);
    return m;
}

/* --- what is refused -------------------------------------------------------------------------- */
typedef struct {
    const char *text, *piece;
    snug_status status;
} refused_row;

static void refuses(void **state) {
    const refused_row *row = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    snug_model *m = NULL;
    expect_status(load_text(e, row->text, &m, &err), row->status, &err);
    expect_text(err.text, row->piece);
    sn_test_engine_end(e);
}

#define REFUSED(name, text, status, piece)                                                         \
    row_test("test_refuses_" name, refuses, (&(refused_row){text, piece, SNUG_E_##status}))

/* --- layers around layers --------------------------------------------------------------------- */
static snug_layer_info info_of(const snug_model *m) {
    snug_layer_info info;
    snug_model_layer(m, snug_model_n_layers(m) - 1, &info);
    return info;
}

static void test_a_wrapper_has_the_weights_of_what_is_inside(void **state) {
    snug_model *m = load(state, LAYER("TimeDistributed",
                                      ",\"layer\":" INNER("Dense", "\"units\":3,\"name\":\"d\"")));
    assert_int_equal(info_of(m).n_params, 8 * 3 + 3);
    assert_int_equal(info_of(m).n_trainable, 8 * 3 + 3);
    snug_model_destroy(m);
}

/* The sequence and eight states of either direction. */
static void test_a_wrapper_may_have_many_outputs(void **state) {
    snug_model *m = load(
        state, LAYER("Bidirectional",
                     ",\"layer\":" INNER(
                         "RNN", "\"name\":\"r\",\"return_state\":true,\"cell\":" INNER(
                                    "StackedRNNCells", "\"name\":\"s\",\"cells\":" FOUR_CELLS))));
    assert_true(info_of(m).n_params > 0);
    snug_model_destroy(m);
}

static void test_a_wrapper_is_frozen_with_what_is_inside(void **state) {
    static const char *const texts[] = {
        LAYER("TimeDistributed", ",\"trainable\":true,\"layer\":" INNER(
                                     "Dense", "\"units\":3,\"name\":\"d\",\"trainable\":false")),
        LAYER("Bidirectional",
              ",\"layer\":" INNER("LSTM", "\"units\":3,\"name\":\"d\",\"trainable\":false")),
        LAYER("RNN",
              ",\"cell\":" INNER("GRUCell", "\"units\":3,\"name\":\"d\",\"trainable\":false")),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snug_model *m = load(state, texts[i]);
        assert_true(info_of(m).n_params > 0);
        assert_int_equal(info_of(m).n_trainable, 0);
        snug_model_destroy(m);
    }
}

/* --- numbers ---------------------------------------------------------------------------------- */
typedef struct {
    float at_minus_one;
} seen;

static snug_status take(void *ctx, int64_t first_row, const snug_view *view, snug_error *err) {
    (void)first_row;
    (void)err;
    ((seen *)ctx)->at_minus_one = ((const float *)view->data)[0];
    return SNUG_OK;
}

/* 0 is a slope like any other; 0.2 is what there is without one. */
static void test_a_setting_of_zero_is_a_setting(void **state) {
    static const struct {
        const char *text;
        float want;
    } rows[] = {{OPERATION("LeakyRelu", ",\"negative_slope\":0.0"), 0},
                {OPERATION("LeakyRelu", ",\"negative_slope\":0.5"), -0.5f},
                {OPERATION("LeakyRelu", ""), -0.2f}};
    float x[56];
    for (int i = 0; i < 56; i++)
        x[i] = -1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_model *m = load(state, rows[i].text);
        snug_error err = {0};
        snug_feed *feed = NULL;
        seen got = {1};
        expect_ok(snug_feed_from_memory(*state, &(snug_type){SNUG_F32, 3, {1, 7, 8}}, x, NULL, NULL,
                                        &feed, &err),
                  &err);
        expect_ok(snug_predict(m, &(snug_run_options){.x = feed}, take, &got, &err), &err);
        assert_true(got.at_minus_one == rows[i].want);
        snug_feed_destroy(feed);
        snug_model_destroy(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_a_wrapper_has_the_weights_of_what_is_inside),
        engine_test(test_a_wrapper_may_have_many_outputs),
        engine_test(test_a_wrapper_is_frozen_with_what_is_inside),
        engine_test(test_a_setting_of_zero_is_a_setting),
        REFUSED(
            "keys_of_many_new_axes",
            MODEL("keras.src.ops.numpy", "GetItem", "", CALL(TENSOR ",[" NULLS_8 "," NULLS_8 "]")),
            UNSUPPORTED, "at most 8 are possible"),
        REFUSED("keys_of_many_new_axes_before_an_ellipsis",
                MODEL("keras.src.ops.numpy", "GetItem", "",
                      CALL(TENSOR ",[" NULLS_8 ",null,null,null,null,null,null,null,"
                                  "{\"class_name\":\"__ellipsis__\",\"config\":{}}]")),
                UNSUPPORTED, "at most 8 are possible"),
        REFUSED("sizes_of_a_split_that_overflow",
                MODEL("", "TFOpLambda", ",\"function\":\"split\"",
                      "[[\"x\",0,0,{\"num_or_size_splits\":[9223372036854775807,1,1]}]]"),
                FORMAT, "the parts have"),
        REFUSED("no_sizes_of_a_split",
                MODEL("", "TFOpLambda", ",\"function\":\"split\"",
                      "[[\"x\",0,0,{\"num_or_size_splits\":[]}]]"),
                FORMAT, "does not split into 0 equal parts"),
        REFUSED("settings_of_an_operation_that_are_tensors",
                OPERATION("Clip", ",\"x_max\":3,\"x_min\":" TENSOR), UNSUPPORTED, "x_min"),
        REFUSED("products_with_nothing", OPERATION("Dot", ""), FORMAT, "without x2"),
        REFUSED("norms_of_order_zero", OPERATION("Norm", ",\"ord\":0,\"axis\":1"), UNSUPPORTED,
                "a norm of order 0"),
        REFUSED("heads_beyond_the_address_space",
                MODEL("keras.layers", "MultiHeadAttention",
                      ",\"num_heads\":" HUGE ",\"key_dim\":" HUGE, CALL(TENSOR "," TENSOR)),
                OVERFLOW, "larger than the address space"),
        REFUSED(
            "some_frozen_cells",
            LAYER("RNN", ",\"cell\":" INNER("StackedRNNCells",
                                            "\"name\":\"s\",\"cells\":[" LSTM_CELL("c") "," INNER(
                                                "GRUCell", "\"units\":2,\"name\":\"g\","
                                                           "\"trainable\":false") "]")),
            UNSUPPORTED, "1 of the 2 layers within it"),
        REFUSED("steps_of_too_many_axes",
                LAYER("TimeDistributed",
                      ",\"layer\":" INNER("Reshape",
                                          "\"name\":\"r\",\"target_shape\":[1,1,1,1,1,1,8]")),
                SHAPE, "has 9 axes"),
        REFUSED("a_bias_of_too_many_axes",
                LAYER("EinsumDense", ",\"equation\":\"abc,cd->abdefghijkl\",\"output_shape\":[7,3],"
                                     "\"bias_axes\":\"a\""),
                FORMAT, "einsum"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
