/* test_model_keras.c: models from the JSON of three generations of Keras; what is refused, and how
 * it is named.
 *
 * tests/data/keras3_cnn.json was written by Keras 3.15; tfkeras2_cnn.json and keras2_list.json have
 * the forms of tf.keras 2.12 and Keras 2.0.8. */
#include "model/keras_json.h"
#include "support/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA(name) SNUG_TEST_DATA "/data/" name

static const sn_layer *layer_named(const sn_network *n, const char *name) {
    for (size_t i = 0; i < n->n_layers; i++)
        if (strcmp(n->layers[i].name, name) == 0)
            return &n->layers[i];
    fail_msg("no layer '%s'", name);
    return NULL;
}

static double number_of(const sn_layer *l, const char *key) {
    const sn_conf_field *f = sn_conf_find(l->cls, key);
    assert_non_null(f);
    const char *at = (const char *)l->conf + f->offset;
    if (f->kind == SN_CONF_REALS) { /* a plain number is a list of one */
        assert_int_equal(*(const int64_t *)at, 1);
        return ((const double *)at)[1];
    }
    return f->kind == SN_CONF_REAL ? *(const double *)at : (double)*(const int64_t *)at;
}

static snug_status load(snug_engine *e, const char *path, snug_error *err) {
    sn_network *n;
    sn_keras_compile c;
    SNUG_TRY(sn_keras_load(e, path, NULL, &n, &c, err));
    sn_network_destroy(n);
    return SNUG_OK;
}

/* --- dialects ------------------------------------------------------------------------------- */

static void test_keras_3_model_is_read(void **state) {
    sn_network *n;
    sn_keras_compile c;
    snug_error err = {0};
    expect_ok(sn_keras_load(*state, DATA("keras3_cnn.json"), NULL, &n, &c, &err), &err);
    assert_string_equal(n->name, "keras3_cnn");
    assert_int_equal(n->n_layers, 8);
    assert_int_equal(sn_network_type(n, 0)->rank, 4);
    assert_int_equal(sn_network_type(n, 0)->dims[0], -1);
    assert_int_equal(sn_network_type(n, 0)->dims[1], 28);
    assert_true(number_of(layer_named(n, "rescaling"), "scale") == 0.00392156862745098);
    assert_true(number_of(layer_named(n, "conv2d"), "filters") == 8);
    assert_true(number_of(layer_named(n, "dropout"), "rate") == 0.25);
    assert_true(layer_named(n, "conv2d")->trainable);
    assert_false(layer_named(n, "dense")->trainable);
    assert_int_equal(layer_named(n, "dense")->output.dims[1], 10);
    sn_network_destroy(n);
}

static void test_compile_settings_are_taken_over(void **state) {
    sn_network *n;
    sn_keras_compile c;
    snug_error err = {0};
    expect_ok(sn_keras_load(*state, DATA("keras3_cnn.json"), NULL, &n, &c, &err), &err);
    assert_string_equal(c.optimizer, "sgd:learning_rate=0.125,momentum=0.5,nesterov=true");
    assert_string_equal(c.loss, "sparse_categorical_crossentropy");
    assert_string_equal(c.metrics, "accuracy,sparse_categorical_accuracy:name=acc");
    sn_network_destroy(n);
    expect_ok(sn_keras_load(*state, DATA("tfkeras2_cnn.json"), NULL, &n, &c, &err), &err);
    assert_string_equal(c.optimizer, "");
    assert_string_equal(c.loss, "");
    assert_string_equal(c.metrics, "");
    sn_network_destroy(n);
}

static void test_tf_keras_2_model_is_read(void **state) {
    sn_network *n;
    sn_keras_compile c;
    snug_error err = {0};
    expect_ok(sn_keras_load(*state, DATA("tfkeras2_cnn.json"), NULL, &n, &c, &err), &err);
    assert_int_equal(n->n_layers, 5);
    assert_int_equal(sn_network_type(n, 0)->dims[3], 3);
    assert_true(number_of(layer_named(n, "batch_normalization"), "momentum") ==
                0.9); /* axis [3] is the last */
    assert_true(number_of(layer_named(n, "conv2d"), "use_bias") == 0);
    assert_false(layer_named(n, "dense")->trainable);
    sn_network_destroy(n);
}

static void test_oldest_form_with_a_bare_list_is_read(void **state) {
    sn_network *n;
    sn_keras_compile c;
    snug_error err = {0};
    expect_ok(sn_keras_load(*state, DATA("keras2_list.json"), NULL, &n, &c, &err), &err);
    assert_int_equal(n->n_layers, 2);
    assert_int_equal(sn_network_type(n, 0)->dims[1], 20);
    assert_string_equal(n->layers[1].name, "dense_2");
    sn_network_destroy(n);
}

/* --- small files made here ------------------------------------------------------------------ */

#define DENSE(more) "{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":4" more "}}"
#define INPUT       "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,3]}}"
#define MODEL(layers)                                                                              \
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":[" layers "]}}"
#define COMPILED(what)                                                                             \
    "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[" INPUT                                \
    "," DENSE("") "]},\"compile_config\":{" what "}}"

static snug_status load_text(snug_engine *e, const char *text, sn_network **n, sn_keras_compile *c,
                             char *path, snug_error *err) {
    sn_test_dir d;
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "m.json", path), text, strlen(text));
    const snug_status status = sn_keras_load(e, path, NULL, n, c, err);
    sn_test_dir_end(&d);
    return status;
}

#define PICTURE "{\"class_name\":\"InputLayer\",\"config\":{\"batch_input_shape\":[null,5,5,2]}}"
#define CONV(cls, what)                                                                            \
    "{\"class_name\":\"" cls "\",\"config\":{\"kernel_size\":[2,2],\"groups\":1," what "}}"

static void test_settings_that_tf_keras_2_adds_to_convolutions_are_read(void **state) {
    static const char text[] =
        MODEL(PICTURE "," CONV("DepthwiseConv2D", "\"depth_multiplier\":2") "," CONV(
            "SeparableConv2D", "\"filters\":3,\"kernel_initializer\":{\"class_name\":\"Zeros\","
                               "\"config\":{}}") "," CONV("Conv2DTranspose", "\"filters\":6"));
    sn_network *n;
    sn_keras_compile c;
    snug_error err = {0};
    char path[256];
    expect_ok(load_text(*state, text, &n, &c, path, &err), &err);
    assert_int_equal(n->n_layers, 3);
    assert_int_equal(n->layers[2].output.dims[3], 6);
    sn_network_destroy(n);
    static const char bad[] =
        MODEL(PICTURE ",{\"class_name\":\"Conv2DTranspose\",\"config\":{\"kernel_size\":2,"
                      "\"filters\":2,\"groups\":2}}");
    expect_status(load_text(*state, bad, &n, &c, path, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "groups = 2");
}

static void test_shape_of_the_input_may_stand_in_four_places(void **state) {
    static const char *const texts[] = {
        MODEL(INPUT "," DENSE("")),
        MODEL(DENSE(",\"batch_input_shape\":[null,3]")),
        "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[" DENSE(
            "") "],\"build_input_shape\":[null,3]}}",
        "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[" DENSE(
            "") "]},\"build_config\":{\"input_shape\":[32,3]}}",
    };
    for (size_t i = 0; i < 4; i++) {
        sn_network *n;
        sn_keras_compile c;
        snug_error err = {0};
        char path[256];
        expect_ok(load_text(*state, texts[i], &n, &c, path, &err), &err);
        assert_int_equal(sn_network_type(n, 0)->rank, 2);
        assert_int_equal(sn_network_type(n, 0)->dims[0], -1);
        assert_int_equal(sn_network_type(n, 0)->dims[1], 3);
        sn_network_destroy(n);
    }
}

static void test_integer_input_feeds_an_embedding(void **state) {
    static const char *const dtypes[] = {"int32", "float32"};
    for (size_t i = 0; i < 2; i++) {
        sn_network *n;
        sn_keras_compile c;
        snug_error err = {0};
        char path[256], text[512];
        snprintf(
            text, sizeof text,
            MODEL("{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,5],\"dtype\":"
                  "\"%s\"}},"
                  "{\"class_name\":\"Embedding\",\"config\":{\"input_dim\":9,\"output_dim\":2}}"),
            dtypes[i]);
        expect_ok(load_text(*state, text, &n, &c, path, &err), &err);
        assert_int_equal(sn_network_type(n, 0)->dtype, SNUG_I32);
        assert_int_equal(n->layers[0].output.rank, 3);
        sn_network_destroy(n);
    }
}

static void test_float64_policy_is_taken_over(void **state) {
    static const char *const texts[] = {
        "{\"class_name\":\"Sequential\",\"config\":{\"dtype\":{\"class_name\":\"DTypePolicy\","
        "\"config\":{\"name\":\"float64\"}},"
        "\"layers\":[" INPUT "," DENSE(",\"dtype\":{\"config\":{\"name\":\"float64\"}}") "]}}",
        MODEL(INPUT "," DENSE(",\"dtype\":\"float64\"")),
    };
    for (size_t i = 0; i < 2; i++) {
        sn_network *n;
        sn_keras_compile c;
        snug_error err = {0};
        char path[256];
        expect_ok(load_text(*state, texts[i], &n, &c, path, &err), &err);
        assert_int_equal(n->policy.variable, SNUG_F64);
        assert_int_equal(n->layers[0].output.dtype, SNUG_F64);
        sn_network_destroy(n);
    }
}

/* The first layer's policy is the network's; what differs from it is a layer's own. */
static void test_policies_of_layers(void **state) {
    static const char text[] = MODEL(
        INPUT "," DENSE(",\"dtype\":{\"class_name\":\"DTypePolicy\",\"config\":{\"name\":"
                        "\"mixed_bfloat16\"}}") ",{\"class_name\":\"Dense\",\"config\":{\"name\":"
                                                "\"last\",\"units\":2,\"dtype\":\"float16\"}}");
    sn_network *n;
    sn_keras_compile c;
    snug_error err = {0};
    char path[256];
    expect_ok(load_text(*state, text, &n, &c, path, &err), &err);
    assert_int_equal(n->policy.variable, SNUG_F32);
    assert_int_equal(n->policy.compute, SNUG_BF16);
    assert_int_equal(n->tensors[0].type.dtype, SNUG_F32);
    assert_int_equal(n->layers[0].output.dtype, SNUG_BF16);
    assert_int_equal(n->vars[0].type.dtype, SNUG_F32);
    assert_int_equal(n->layers[1].output.dtype, SNUG_F16);
    assert_int_equal(n->vars[2].type.dtype, SNUG_F16);
    expect_ok(sn_network_set_policy(n, &(sn_policy){SNUG_F64, SNUG_F64, false}, &err), &err);
    assert_int_equal(n->tensors[0].type.dtype, SNUG_F64);
    assert_int_equal(n->vars[0].type.dtype, SNUG_F64);
    assert_int_equal(n->layers[0].output.dtype, SNUG_F64);
    assert_int_equal(n->layers[1].output.dtype, SNUG_F16); /* its own */
    assert_int_equal(n->vars[2].type.dtype, SNUG_F16);
    sn_network_destroy(n);
}

/* A scale that is not Keras' own is not honoured, where one is needed. */
static void test_loss_scales_of_files(void **state) {
    static const char *const policies[] = {"mixed_bfloat16", "mixed_float16"};
    for (int k = 0; k < 4; k++) {
        char text[900], path[256];
        sn_network *n;
        sn_keras_compile c;
        snug_error err = {0};
        snprintf(
            text, sizeof text,
            "{\"class_name\":\"Sequential\",\"config\":{\"dtype\":\"%s\",\"layers\":["
            "{\"class_name\":\"Dense\",\"config\":{\"units\":2,\"batch_input_shape\":[null,3]}}"
            "]},\"compile_config\":{\"optimizer\":{\"class_name\":\"LossScaleOptimizer\","
            "\"config\":{\"inner_optimizer\":{\"class_name\":\"SGD\",\"config\":{}},"
            "\"initial_scale\":%s,\"dynamic_growth_steps\":2000}}}}",
            policies[k / 2], k % 2 ? "16.0" : "32768.0");
        const snug_status status = load_text(*state, text, &n, &c, path, &err);
        if (k == 3) {
            expect_status(status, SNUG_E_UNSUPPORTED, &err);
            assert_non_null(strstr(err.text, "optimizer = "));
            continue;
        }
        expect_ok(status, &err);
        assert_string_equal(c.optimizer, "sgd");
        sn_network_destroy(n);
    }
}

static void test_compile_settings_in_their_forms(void **state) {
    static const struct {
        const char *json, *optimizer, *loss, *metrics;
    } rows[] = {
        {"\"optimizer\":\"adam\",\"loss\":\"mse\",\"metrics\":null", "adam", "mse", ""},
        {"\"optimizer\":null,\"loss\":null,\"metrics\":[]", "", "", ""},
        {"\"optimizer\":{\"class_name\":\"Adam\",\"config\":{\"name\":\"adam\",\"learning_rate\":0."
         "0010000000474974513,"
         "\"weight_decay\":null,\"use_ema\":false,\"ema_momentum\":0.99,\"beta_1\":0.9,\"epsilon\":"
         "1e-07,\"amsgrad\":false}}",
         "adam:learning_rate=0.0010000000474974513,beta_1=0.9,epsilon=1e-07", "", ""},
        {"\"loss\":{\"class_name\":\"BinaryCrossentropy\",\"config\":{\"from_logits\":true,\"label_"
         "smoothing\":0.1,\"axis\":-1,"
         "\"reduction\":\"sum_over_batch_size\",\"name\":\"bce\"}}",
         "", "binary_crossentropy:from_logits=true,label_smoothing=0.1", ""},
        {"\"loss\":{\"class_name\":\"function\",\"config\":\"mean_absolute_error\"},\"metrics\":["
         "\"mae\","
         "{\"class_name\":\"MeanSquaredError\",\"config\":{\"name\":\"x\",\"dtype\":\"float32\"}}]",
         "", "mean_absolute_error", "mae,mean_squared_error:name=x"},
        {"\"metrics\":[\"accuracy\",{\"class_name\":\"Accuracy\",\"config\":{\"name\":\"accuracy\"}"
         "}]",
         "", "", "accuracy,equality:name=accuracy"},
        {"\"metrics\":[{\"class_name\":\"IoU\",\"config\":{\"name\":\"io_u\",\"num_classes\":3,"
         "\"target_class_ids\":[0,2],\"sparse_y_true\":true,\"sparse_y_pred\":false,\"axis\":-1}}]",
         "", "",
         "io_u:num_classes=3,target_class_ids=[0,2],sparse_y_true=true,sparse_y_pred=false"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sn_network *n;
        sn_keras_compile c;
        snug_error err = {0};
        char path[256], text[1024];
        snprintf(text, sizeof text, COMPILED("%s"), rows[i].json);
        expect_ok(load_text(*state, text, &n, &c, path, &err), &err);
        assert_string_equal(c.optimizer, rows[i].optimizer);
        assert_string_equal(c.loss, rows[i].loss);
        assert_string_equal(c.metrics, rows[i].metrics);
        sn_network_destroy(n);
    }
}

/* --- what is refused ------------------------------------------------------------------------ */

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
    sn_keras_compile c = {.optimizer = "x"};
    expect_status(load_text(e, row->text, &n, &c, path, &err), row->status, &err);
    expect_text(err.text, path);
    expect_text(err.text, row->piece);
    assert_ptr_equal(n, (sn_network *)1); /* outputs are written only on success */
    assert_string_equal(c.optimizer, "x");
    sn_test_engine_end(e);
}

#define REFUSED(name, text, status, piece)                                                         \
    row_test("test_refuses_" name, refuses, (&(refused_row){text, piece, SNUG_E_##status}))

static void test_unknown_layer_is_named_with_those_like_it(void **state) {
    sn_network *n;
    sn_keras_compile c;
    snug_error err = {0};
    char path[256];
    static const char text[] =
        MODEL(INPUT ",{\"class_name\":\"Conv7D\",\"config\":{\"name\":\"c\"}}");
    expect_status(load_text(*state, text, &n, &c, path, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "Conv7D");
    expect_text(err.text, "Conv2D, Conv1D");
    expect_text(err.text, "a row in layers.def");
}

static void test_refuses_json_nested_10000_deep(void **state) {
    static char text[20001];
    memset(text, '[', 10000);
    memset(text + 10000, ']', 10000);
    refused_row row = {text, "nested deeper than 64 levels at byte 64", SNUG_E_FORMAT};
    *state = &row;
    refuses(state);
}

/* Sparse: 64 MiB and a byte. */
static void test_refuses_file_above_64_mib(void **state) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "m.json", path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 64 << 20, SEEK_SET), 0);
    assert_int_equal(fputc('}', f), '}');
    fclose(f);
    expect_status(load(*state, path, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "67108865 bytes; a model JSON has at most 64 MiB");
    assert_true(snug_engine_peak_bytes(*state) < 4096);
    sn_test_dir_end(&d);
}

static void test_missing_file_is_named(void **state) {
    snug_error err = {0};
    expect_status(load(*state, "no/such/model.json", &err), SNUG_E_IO, &err);
    expect_text(err.text, "no/such/model.json");
}

static void test_truncation_at_every_byte_is_a_format_error(void **state) {
    (void)state;
    static const char text[] = MODEL(INPUT "," DENSE(",\"use_bias\":false"));
    sn_test_truncations(load, (const unsigned char *)text, sizeof text - 1);
}

static snug_status load_scenario(snug_engine *e, void *ctx, snug_error *err) {
    return load(e, ctx, err);
}

/* jansson's own requests are outside the ledger: they are not swept. */
static void test_loading_survives_any_fault(void **state) {
    (void)state;
    sn_fault_sweep(load_scenario, DATA("tfkeras2_cnn.json"));
    sn_fault_sweep_io(load_scenario, DATA("tfkeras2_cnn.json"));
}

static const struct CMUnitTest tests[] = {
    engine_test(test_keras_3_model_is_read),
    engine_test(test_compile_settings_are_taken_over),
    engine_test(test_tf_keras_2_model_is_read),
    engine_test(test_oldest_form_with_a_bare_list_is_read),
    engine_test(test_settings_that_tf_keras_2_adds_to_convolutions_are_read),
    engine_test(test_shape_of_the_input_may_stand_in_four_places),
    engine_test(test_integer_input_feeds_an_embedding),
    engine_test(test_float64_policy_is_taken_over),
    engine_test(test_policies_of_layers),
    engine_test(test_loss_scales_of_files),
    engine_test(test_compile_settings_in_their_forms),
    engine_test(test_unknown_layer_is_named_with_those_like_it),
    cmocka_unit_test(test_refuses_json_nested_10000_deep),
    engine_test(test_refuses_file_above_64_mib),
    engine_test(test_missing_file_is_named),
    cmocka_unit_test(test_truncation_at_every_byte_is_a_format_error),
    cmocka_unit_test(test_loading_survives_any_fault),
    REFUSED("empty_file", "", FORMAT, "not valid JSON: line 1"),
    REFUSED("text_that_is_no_json", "model", FORMAT, "not valid JSON: line 1, column"),
    REFUSED("text_behind_the_json", MODEL(INPUT "," DENSE("")) "x", FORMAT, "not valid JSON"),
    REFUSED("bad_utf8", "{\"class_name\":\"\xff\"}", FORMAT, "not valid JSON"),
    REFUSED("lone_surrogate", "{\"class_name\":\"\\udc00\"}", FORMAT, "not valid JSON"),
    REFUSED("number_beyond_double", "{\"class_name\":1e400}", FORMAT, "not valid JSON"),
    REFUSED("duplicate_keys", "{\"class_name\":\"a\",\"class_name\":\"b\"}", FORMAT,
            "not valid JSON"),
    REFUSED("keras_archive", "PK\003\004 and so on", UNSUPPORTED, "a .keras archive"),
    REFUSED("hdf5_file", "\x89HDF\r\n", UNSUPPORTED, "an HDF5 file"),
    REFUSED("json_without_class_name", "{}", FORMAT, "no class_name"),
    REFUSED("list_at_the_top", "[]", FORMAT, "no class_name"),
    REFUSED("class_name_that_is_a_number", "{\"class_name\":3}", FORMAT, "no class_name"),
    REFUSED("subclassed_model", "{\"class_name\":\"MyNet\",\"config\":{}}", UNSUPPORTED,
            "a MyNet model"),
    REFUSED("model_without_layers", MODEL(INPUT), FORMAT, "no layers"),
    REFUSED("model_without_config", "{\"class_name\":\"Sequential\"}", FORMAT,
            "shape of its input"),
    REFUSED("layers_that_are_no_list",
            "{\"class_name\":\"Sequential\",\"config\":{\"layers\":{\"a\":1}}}", FORMAT,
            "shape of its input"),
    REFUSED("model_without_input_shape", MODEL(DENSE("")), FORMAT, "shape of its input"),
    REFUSED("open_input_axis", MODEL(DENSE(",\"batch_input_shape\":[null,null]")), INVALID,
            "axis 1 of its input"),
    REFUSED("input_axis_of_0", MODEL(DENSE(",\"batch_input_shape\":[null,0]")), FORMAT,
            "axis 1 of its input"),
    REFUSED("negative_input_axis", MODEL(DENSE(",\"batch_input_shape\":[null,-3]")), FORMAT,
            "axis 1 of its input"),
    REFUSED("input_of_rank_9", MODEL(DENSE(",\"batch_input_shape\":[null,1,1,1,1,1,1,1,1]")),
            UNSUPPORTED, "9 axes"),
    REFUSED("input_of_2_to_the_62_bytes",
            MODEL(DENSE(",\"batch_input_shape\":[null,4611686018427387904]")), OVERFLOW,
            "address space"),
    REFUSED("layer_without_class_name", MODEL(INPUT ",{\"config\":{}}"), FORMAT,
            "layer 1 has no class_name"),
    REFUSED("layer_without_config", MODEL(INPUT ",{\"class_name\":\"Dense\"}"), FORMAT,
            "layer 1 has no class_name or no config"),
    REFUSED("layer_that_is_no_object", MODEL(INPUT ",7"), FORMAT, "layer 1 has no class_name"),
    REFUSED("lambda",
            MODEL(INPUT ",{\"class_name\":\"Lambda\",\"config\":{\"function\":{\"class_name\":"
                        "\"__lambda__\"}}}"),
            UNSUPPORTED, "Lambda"),
    REFUSED("unsupported_setting",
            MODEL(INPUT "," DENSE(",\"lora_rank\":{\"class_name\":\"MaxNorm\"}")), UNSUPPORTED,
            "layer 'd': lora_rank = {\"class_name\":\"MaxNorm\"} is not supported"),
    REFUSED("unknown_setting", MODEL(INPUT "," DENSE(",\"sparkle\":true")), UNSUPPORTED,
            "layer 'd': sparkle = true"),
    REFUSED("long_unknown_setting",
            MODEL(INPUT "," DENSE(
                ",\"sparkle\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,"
                "23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38]")),
            UNSUPPORTED, "... is not supported"),
    REFUSED("setting_of_another_kind", MODEL(INPUT "," DENSE(",\"activation\":3")), FORMAT,
            "layer 'd': activation"),
    REFUSED("flag_that_is_text", MODEL(INPUT "," DENSE(",\"use_bias\":\"yes\"")), UNSUPPORTED,
            "use_bias = \"yes\""),
    REFUSED("list_for_a_number",
            MODEL(INPUT ",{\"class_name\":\"Dense\",\"config\":{\"units\":[4]}}"), UNSUPPORTED,
            "units = [4]"),
    REFUSED("flag_for_a_number",
            MODEL(INPUT ",{\"class_name\":\"Dense\",\"config\":{\"units\":true}}"), UNSUPPORTED,
            "units = true"),
    REFUSED("fraction_for_a_count",
            MODEL(INPUT ",{\"class_name\":\"Dense\",\"config\":{\"units\":4.5}}"), FORMAT, "units"),
    REFUSED("huge_count", MODEL(INPUT ",{\"class_name\":\"Dense\",\"config\":{\"units\":1e300}}"),
            FORMAT, "units"),
    REFUSED("count_of_2_to_the_62",
            MODEL(INPUT ",{\"class_name\":\"Dense\",\"config\":{\"units\":4611686018427387904}}"),
            FORMAT, "units"),
    REFUSED("weights_of_2_to_the_72_bytes",
            MODEL("{\"class_name\":\"Dense\",\"config\":{\"batch_input_shape\":[null,1073741824],"
                  "\"units\":1099511627776}}"),
            OVERFLOW, "address space"),
    REFUSED("missing_units", MODEL(INPUT ",{\"class_name\":\"Dense\",\"config\":{\"name\":\"e\"}}"),
            FORMAT, "units"),
    REFUSED("unknown_activation", MODEL(INPUT "," DENSE(",\"activation\":\"sparkle\"")),
            UNSUPPORTED, "sparkle"),
    REFUSED(
        "unknown_initialiser",
        MODEL(INPUT "," DENSE(",\"kernel_initializer\":{\"class_name\":\"Spiral\",\"config\":{}}")),
        FORMAT, "spiral"),
    REFUSED("a_policy_that_is_none",
            "{\"class_name\":\"Sequential\",\"config\":{\"dtype\":{\"config\":{\"name\":"
            "\"mixed_float32\"}},\"layers\":[" INPUT "," DENSE("") "]}}",
            UNSUPPORTED, "'mixed_float32' is no dtype policy"),
    REFUSED("a_policy_of_whole_numbers", MODEL(INPUT "," DENSE(",\"dtype\":\"int32\"")),
            UNSUPPORTED, "'int32' is no dtype policy"),
    REFUSED("a_quantised_policy",
            MODEL(INPUT "," DENSE(",\"dtype\":{\"class_name\":\"QuantizedDTypePolicy\",\"config\":"
                                  "{\"mode\":\"int8\",\"source_name\":\"float32\"}}")),
            UNSUPPORTED, "QuantizedDTypePolicy"),
    REFUSED("a_map_of_policies",
            MODEL(INPUT "," DENSE(",\"dtype\":{\"class_name\":\"DTypePolicyMap\",\"config\":"
                                  "{\"default_policy\":null,\"policy_map\":{}}}")),
            UNSUPPORTED, "DTypePolicyMap"),
    REFUSED("channels_somewhere",
            MODEL("{\"class_name\":\"MaxPooling2D\",\"config\":{\"batch_input_shape\":[null,4,"
                  "4,1],\"data_format\":\"channels_middle\"}}"),
            FORMAT, "data_format=channels_middle"),
    REFUSED("channels_first_under_a_softmax",
            MODEL("{\"class_name\":\"Conv2D\",\"config\":{\"batch_input_shape\":[null,4,4,4],"
                  "\"filters\":2,\"kernel_size\":[1,1],\"data_format\":\"channels_first\","
                  "\"activation\":\"softmax\"}}"),
            UNSUPPORTED, "activation=softmax acts on the last axis"),
    REFUSED("axis_behind_the_last",
            MODEL("{\"class_name\":\"BatchNormalization\",\"config\":{\"batch_input_shape\":["
                  "null,4,4,1],\"axis\":[4]}}"),
            SHAPE, "axis 4 of an input of 4 axes"),
    REFUSED("several_axes_of_batches",
            MODEL("{\"class_name\":\"BatchNormalization\",\"config\":{\"batch_input_shape\":["
                  "null,4,4,1],\"axis\":[1,2]}}"),
            UNSUPPORTED, "2 axes; one is possible"),
    REFUSED("two_layers_of_one_name", MODEL(INPUT "," DENSE("") "," DENSE("")), FORMAT, "'d'"),
    REFUSED("learning_rate_of_no_class",
            COMPILED("\"optimizer\":{\"class_name\":\"Adam\",\"config\":{\"learning_rate\":{"
                     "\"a\":1}}}"),
            UNSUPPORTED, "optimizer = {\"class_name\":\"Adam\""),
    REFUSED("loss_per_example",
            COMPILED("\"loss\":{\"class_name\":\"MeanSquaredError\",\"config\":{\"reduction\":"
                     "null}}"),
            UNSUPPORTED, "loss = {\"class_name\":\"MeanSquaredError\""),
    REFUSED("sum_over_the_batch",
            COMPILED("\"loss\":{\"class_name\":\"MeanSquaredError\",\"config\":{\"reduction\":{"
                     "\"a\":1}}}"),
            UNSUPPORTED, "loss = {"),
    REFUSED("metrics_that_are_numbers", COMPILED("\"metrics\":[true]"), UNSUPPORTED, "metrics = ["),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
