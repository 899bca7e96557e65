/* test_nn.c: layers, initialisers and optimizers: names, defaults and shapes as in Keras, and
 * settings that are refused by name. Losses and metrics: test_nn_values.c. */
#include "support/support.h"

#include "nn/step.h"

#include <math.h>
#include <string.h>

static sn_network *begin(void **state, int rank, int64_t a, int64_t b, int64_t c) {
    snug_error err;
    sn_network *n;
    const snug_type t = {.dtype = SNUG_F32, .rank = rank + 1, .dims = {-1, a, b, c}};
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    return n;
}

static void add(sn_network *n, const char *cls, const char *config) {
    snug_error err;
    expect_ok(sn_network_add(n, cls, NULL, sn_conf_fill_text, (void *)(uintptr_t)config, &err),
              &err);
}

static void refuse(sn_network *n, const char *cls, const char *config, snug_status wanted,
                   const char *piece) {
    snug_error err;
    const size_t n_layers = n->n_layers, n_vars = n->n_vars;
    expect_status(sn_network_add(n, cls, NULL, sn_conf_fill_text, (void *)(uintptr_t)config, &err),
                  wanted, &err);
    expect_text(err.text, piece);
    assert_int_equal(n->n_layers, n_layers);
    assert_int_equal(n->n_vars, n_vars);
}

static void expect_output(const sn_network *n, const char *wanted) {
    char text[192];
    assert_string_equal(snug_type_print(&n->layers[n->n_layers - 1].output, text, sizeof text),
                        wanted);
}

static void expect_var(const sn_network *n, size_t i, const char *name, const char *type,
                       bool trainable) {
    char text[192];
    assert_true(i < n->n_vars);
    assert_string_equal(n->vars[i].name, name);
    assert_string_equal(snug_type_print(&n->vars[i].type, text, sizeof text), type);
    assert_int_equal(n->vars[i].trainable, trainable);
}

/* --- layers ----------------------------------------------------------------------------------- */
static void test_layers_have_keras_shapes(void **state) {
    sn_network *n = begin(state, 3, 28, 29, 3);
    add(n, "Conv2D", "filters=8 kernel_size=3 activation=relu");
    expect_output(n, "f32[?,26,27,8]");
    add(n, "Conv2D", "filters=4 kernel_size=3,5 strides=2 padding=same use_bias=0");
    expect_output(n, "f32[?,13,14,4]");
    add(n, "MaxPooling2D", "");
    expect_output(n, "f32[?,6,7,4]");
    add(n, "AveragePooling2D", "pool_size=3 strides=2 padding=same");
    expect_output(n, "f32[?,3,4,4]");
    add(n, "BatchNormalization", NULL);
    add(n, "Flatten", "");
    expect_output(n, "f32[?,48]");
    add(n, "Reshape", "target_shape=(4, -1)");
    expect_output(n, "f32[?,4,12]");
    add(n, "Dense", "units=5");
    expect_output(n, "f32[?,4,5]");
    add(n, "Reshape", "target_shape=20");
    expect_output(n, "f32[?,20]");
    sn_network_destroy(n);
}

static void test_layers_without_weights_keep_the_shape(void **state) {
    sn_network *n = begin(state, 3, 6, 6, 2);
    const char *const layers[][2] = {{"Dropout", "rate=0.3"},
                                     {"Activation", "activation=gelu"},
                                     {"ReLU", "negative_slope=0.1"},
                                     {"Softmax", ""},
                                     {"Rescaling", "scale=0.5 offset=-1"}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        add(n, layers[i][0], layers[i][1]);
        expect_output(n, "f32[?,6,6,2]");
    }
    assert_int_equal(n->n_vars, 0);
    add(n, "GlobalAveragePooling2D", "keepdims=true");
    expect_output(n, "f32[?,1,1,2]");
    add(n, "GlobalMaxPooling2D", "");
    expect_output(n, "f32[?,2]");
    sn_network_destroy(n);
}

/* --- graphs of layers ------------------------------------------------------------------------- */
static snug_status add_on(sn_network *n, const char *cls, const char *config, const uint32_t *in,
                          int n_in, uint32_t *tensor, snug_error *err) {
    const sn_layer_spec spec = {.class_name = cls,
                                .fill = sn_conf_fill_text,
                                .ctx = (void *)(uintptr_t)config,
                                .in = in,
                                .n_in = n_in};
    return sn_network_add_on(n, &spec, tensor, err);
}

static void test_merge_layers_broadcast_and_join(void **state) {
    snug_error err;
    const char *const rows[][3] = {{"Add", "", "f32[?,4,6]"},        {"Subtract", "", "f32[?,4,6]"},
                                   {"Multiply", "", "f32[?,4,6]"},   {"Average", "", "f32[?,4,6]"},
                                   {"Maximum", "", "f32[?,4,6]"},    {"Minimum", "", "f32[?,4,6]"},
                                   {"Concatenate", "", "f32[?,4,7]"}};
    sn_network *n = begin(state, 2, 4, 6, 0);
    uint32_t t[2] = {0}, out;
    expect_ok(add_on(n, "Dense", "units=1", t, 1, &t[1], &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[192];
        expect_ok(add_on(n, rows[i][0], rows[i][1], t, 2, &out, &err), &err);
        assert_int_equal(out, i + 2);
        snug_type_print(sn_network_type(n, out), text, sizeof text);
        assert_string_equal(text, rows[i][2]);
    }
    sn_network_destroy(n);
}

/* Batches may be put together on the way, but outputs have the rows of the inputs. */
static void test_outputs_have_the_rows_of_the_inputs(void **state) {
    snug_error err;
    sn_graph *g = NULL;
    sn_network *n = begin(state, 1, 6, 0, 0);
    uint32_t t[2] = {0, 0}, both;
    const sn_step_spec spec = {.network = n};
    expect_ok(add_on(n, "Concatenate", "axis=0", t, 2, &both, &err), &err);
    expect_output(n, "f32[?,6]");
    expect_status(sn_step_build(&spec, SN_STEP_PREDICT, 4, &g, &err), SNUG_E_SHAPE, &err);
    expect_text(err.text, "is f32[8,6] for a batch of 4");
    assert_null(g);
    sn_network_destroy(n);
}

/* The padded picture is not made: the convolution has the zeros itself. */
static void test_padding_joins_the_convolution(void **state) {
    snug_error err;
    sn_graph *g;
    sn_network *n = begin(state, 3, 5, 6, 2);
    const sn_step_spec spec = {.network = n};
    add(n, "ZeroPadding2D", "padding=(1,2,0,1)");
    add(n, "Conv2D", "filters=3 kernel_size=3 strides=2");
    expect_output(n, "f32[?,3,3,3]");
    expect_ok(sn_step_build(&spec, SN_STEP_PREDICT, 4, &g, &err), &err);
    int convolutions = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        const int64_t want[4] = {1, 2, 0, 1};
        assert_int_not_equal(node->op, SN_OP_pad);
        if (node->op != SN_OP_conv2d)
            continue;
        assert_memory_equal(node->attrs.conv.pad, want, sizeof want);
        convolutions++;
    }
    assert_int_equal(convolutions, 1);
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

static void test_merges_of_wrong_inputs_are_refused(void **state) {
    snug_error err;
    sn_network *n = begin(state, 2, 4, 6, 0);
    uint32_t t[3] = {0}, out = 99;
    expect_ok(add_on(n, "Flatten", "", t, 1, &t[1], &err), &err);
    const size_t before = n->n_applications;
    expect_status(add_on(n, "Add", "", t, 2, &out, &err), SNUG_E_SHAPE, &err);
    expect_text(err.text, "input 0 is f32[?,4,6], input 1 is f32[?,24]");
    expect_status(add_on(n, "Subtract", "", t, 3, &out, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "applied to 3 tensors, it takes 2");
    expect_status(add_on(n, "Concatenate", "axis=3", t, 1, &out, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "axis=3 is not one of the axes 0 to 2");
    expect_status(add_on(n, "Concatenate", "axis=-4", t, 1, &out, &err), SNUG_E_INVALID, &err);
    expect_status(add_on(n, "Add", "", t, 0, &out, &err), SNUG_E_INVALID, &err);
    assert_int_equal(out, 99);
    assert_int_equal(n->n_applications, before);
    assert_int_equal(n->outputs[0], t[1]);
    sn_network_destroy(n);
}

static void test_padding_and_permutation_have_keras_shapes(void **state) {
    sn_network *n = begin(state, 3, 4, 5, 2);
    add(n, "ZeroPadding2D", "");
    expect_output(n, "f32[?,6,7,2]");
    add(n, "ZeroPadding2D", "padding=2,0");
    expect_output(n, "f32[?,10,7,2]");
    add(n, "ZeroPadding2D", "padding=0,1,2,3");
    expect_output(n, "f32[?,11,12,2]");
    add(n, "Permute", "dims=3,1,2");
    expect_output(n, "f32[?,2,11,12]");
    refuse(n, "Permute", "dims=1,2", SNUG_E_SHAPE, "each of the axes 1 to 3 once");
    refuse(n, "Permute", "dims=1,1,2", SNUG_E_SHAPE, "each of the axes 1 to 3 once");
    refuse(n, "Permute", "dims=1,2,4", SNUG_E_SHAPE, "each of the axes 1 to 3 once");
    refuse(n, "ZeroPadding2D", "padding=1,2,3", SNUG_E_INVALID,
           "padding has 3 entries, not 2 or 4");
    sn_network_destroy(n);
}

/* Two applications of one Dropout must not drop the same elements. */
static void test_shared_dropout_has_a_key_per_application(void **state) {
    snug_error err;
    sn_network *n = begin(state, 1, 4, 0, 0);
    sn_graph *g;
    sn_value x;
    sn_network_result y;
    uint32_t t, keys = 0;
    add(n, "Dropout", "rate=0.5");
    expect_ok(
        sn_network_apply(n, 0, &(sn_layer_spec){.in = (const uint32_t[]){1}, .n_in = 1}, &t, &err),
        &err);
    assert_int_equal(n->n_layers, 1);
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 2, {3, 4}}, &x, &err), &err);
    expect_ok(sn_network_build(n, g, &x, true, &y, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_params(g); i++)
        keys += sn_graph_param_at(g, (sn_param){i})->kind == SN_PARAM_KEY;
    assert_int_equal(keys, 2);
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

static void test_a_network_has_several_inputs_and_outputs(void **state) {
    snug_error err;
    sn_network *n = begin(state, 1, 4, 0, 0);
    uint32_t t[2] = {0}, a, sum;
    const snug_type other = {SNUG_F32, 2, {-1, 3}};
    expect_ok(sn_network_add_input(n, "other", &other, &t[1], &err), &err);
    expect_ok(add_on(n, "Dense", "units=3", t, 1, &a, &err), &err);
    expect_ok(add_on(n, "Add", "", (const uint32_t[]){a, t[1]}, 2, &sum, &err), &err);
    expect_status(sn_network_add_input(n, "late", &other, &t[1], &err), SNUG_E_INVALID, &err);
    sn_network_set_outputs(n, (const uint32_t[]){sum, a}, 2);
    assert_string_equal(sn_network_output_name(n, 0), "add");
    assert_string_equal(sn_network_output_name(n, 1), "dense");
    sn_graph *g;
    sn_value x[2];
    sn_network_result y;
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 2, {5, 4}}, &x[0], &err), &err);
    expect_ok(sn_graph_input(g, "z", &(snug_type){SNUG_F32, 2, {5, 3}}, &x[1], &err), &err);
    expect_ok(sn_network_build(n, g, x, false, &y, &err), &err);
    assert_int_equal(sn_graph_type(g, y.y[0])->dims[1], 3);
    assert_int_not_equal(y.y[0].i, y.y[1].i);
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

/* Embedding makes the mask, Dense keeps it, Flatten drops it; two masks are valid where both
 * are. */
static void test_masks_follow_the_layers(void **state) {
    snug_error err;
    sn_network *n = begin(state, 1, 5, 0, 0);
    uint32_t ids[2] = {0}, e[2], sum, flat;
    expect_ok(sn_network_add_input(n, "other", sn_network_type(n, 0), &ids[1], &err), &err);
    for (int i = 0; i < 2; i++)
        expect_ok(add_on(n, "Embedding", "input_dim=9 output_dim=4 mask_zero=true", &ids[i], 1,
                         &e[i], &err),
                  &err);
    expect_ok(add_on(n, "Add", "", e, 2, &sum, &err), &err);
    expect_ok(add_on(n, "Flatten", "", &sum, 1, &flat, &err), &err);
    assert_int_equal(sn_network_type(n, ids[1])->dtype, SNUG_I32);
    assert_true(n->tensors[e[0]].masked && n->tensors[sum].masked);
    assert_false(n->tensors[flat].masked);
    char text[192];
    assert_string_equal(snug_type_print(&n->tensors[sum].mask, text, sizeof text), "bool[?,5]");
    sn_network_set_outputs(n, (const uint32_t[]){sum}, 1);
    sn_graph *g;
    sn_value x[2];
    sn_network_result y;
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    for (int i = 0; i < 2; i++)
        expect_ok(sn_graph_input(g, i ? "b" : "a", &(snug_type){SNUG_I32, 2, {5, 5}}, &x[i], &err),
                  &err);
    expect_ok(sn_network_build(n, g, x, false, &y, &err), &err);
    assert_true(sn_value_ok(y.mask[0]));
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

static void test_weights_have_keras_names_and_order(void **state) {
    sn_network *n = begin(state, 3, 8, 8, 3);
    add(n, "Conv2D", "filters=4 kernel_size=3 groups=1");
    add(n, "BatchNormalization", "");
    add(n, "Flatten", "");
    add(n, "Dense", "units=2 name=head");
    add(n, "LayerNormalization", "scale=0");
    add(n, "Dense", "units=2");
    add(n, "Dense", "units=2");
    expect_var(n, 0, "conv2d/kernel", "f32[3,3,3,4]", true);
    expect_var(n, 1, "conv2d/bias", "f32[4]", true);
    expect_var(n, 2, "batch_normalization/gamma", "f32[4]", true);
    expect_var(n, 3, "batch_normalization/beta", "f32[4]", true);
    expect_var(n, 4, "batch_normalization/moving_mean", "f32[4]", false);
    expect_var(n, 5, "batch_normalization/moving_variance", "f32[4]", false);
    /* a name in the text is the caller's business (snug_model_add); without one the automatic names
     * count up */
    expect_var(n, 6, "dense/kernel", "f32[144,2]", true);
    expect_var(n, 8, "layer_normalization/beta", "f32[2]", true);
    expect_var(n, 9, "dense_1/kernel", "f32[2,2]", true);
    expect_var(n, 11, "dense_2/kernel", "f32[2,2]", true);
    sn_network_destroy(n);
}

static void test_embedding_first_reads_integers(void **state) {
    sn_network *n = begin(state, 1, 7, 0, 0);
    add(n, "Embedding", "input_dim=100 output_dim=6");
    assert_int_equal(sn_network_type(n, 0)->dtype, SNUG_I32);
    expect_output(n, "f32[?,7,6]");
    expect_var(n, 0, "embedding/embeddings", "f32[100,6]", true);
    assert_int_equal(n->vars[0].init.kind, SN_RECIPE_UNIFORM);
    expect_real(n->vars[0].init.b, 0.05, 1e-15);
    sn_network_destroy(n);
}

static void test_bad_settings_are_refused_and_change_nothing(void **state) {
    sn_network *n = begin(state, 3, 8, 8, 3);
    refuse(n, "Conv4D", "", SNUG_E_UNSUPPORTED, "Conv2D, Conv1D");
    refuse(n, "Dense", "", SNUG_E_INVALID, "units=0");
    refuse(n, "Dense", "unit=3", SNUG_E_INVALID, "no setting 'unit'; it has units");
    refuse(n, "Dense", "units=abc", SNUG_E_INVALID, "'abc' is not a number");
    refuse(n, "Dense", "units=1.5", SNUG_E_INVALID, "not a whole number");
    refuse(n, "Dense", "units", SNUG_E_INVALID, "key=value");
    refuse(n, "Dense", "units=3 activation=rilu", SNUG_E_UNSUPPORTED,
           "'rilu' is not known; did you mean relu? There are linear, relu");
    refuse(n, "Dense", "units=3 bias_initializer=orthogonal", SNUG_E_SHAPE, "makes matrices");
    refuse(n, "Dense", "units=3 kernel_regularizer=l3", SNUG_E_UNSUPPORTED, "l1, l2, l1_l2");
    refuse(n, "Dense", "units=3 kernel_regularizer=l2:l1=1", SNUG_E_INVALID, "it has l2");
    refuse(n, "Dense", "units=3 kernel_regularizer=l2:l2=-1", SNUG_E_INVALID, "negative");
    refuse(n, "Dense", "units=3 bias_regularizer=orthogonal_regularizer", SNUG_E_SHAPE, "2 axes");
    refuse(n, "Dense", "units=3 kernel_constraint=max_norm:axis=[0,2]", SNUG_E_INVALID, "2 axes");
    refuse(n, "Dense", "units=3 kernel_constraint=tight", SNUG_E_UNSUPPORTED, "max_norm");
    refuse(n, "Dense", "units=3 use_bias=maybe", SNUG_E_INVALID, "use_bias");
    refuse(n, "Conv2D", "filters=4 kernel_size=3,3,3", SNUG_E_INVALID, "more than 2");
    refuse(n, "Conv2D", "filters=4 kernel_size=9", SNUG_E_SHAPE, "kernel");
    refuse(n, "Conv2D", "filters=4 kernel_size=3 padding=full", SNUG_E_INVALID, "valid and same");
    refuse(n, "Conv2D", "filters=4 kernel_size=3 groups=2", SNUG_E_INVALID, "divide into groups");
    refuse(n, "Reshape", "target_shape=5,5", SNUG_E_SHAPE, "192 elements");
    refuse(n, "Dropout", "rate=1.5", SNUG_E_INVALID, "rate=1.5");
    refuse(n, "Conv2D", "filters=4 kernel_size=3 strides=[2]", SNUG_E_INVALID,
           "strides has 1 entries, not 2");
    refuse(n, "SpectralNormalization", "", SNUG_E_INVALID, "no layer in it");
    refuse(n, "SpectralNormalization", "layer=Flatten()", SNUG_E_INVALID,
           "Flatten has neither a kernel");
    refuse(n, "SpectralNormalization", "layer=Dense(units=2) power_iterations=0", SNUG_E_INVALID,
           "power_iterations=0");
    refuse(n, "CategoryEncoding", "", SNUG_E_INVALID, "num_tokens=0");
    refuse(n, "CategoryEncoding", "num_tokens=3 output_mode=int", SNUG_E_INVALID,
           "output_mode=int");
    refuse(n, "Discretization", "", SNUG_E_INVALID, "adapt the layer");
    refuse(n, "Discretization", "bin_boundaries=1,0", SNUG_E_INVALID, "must rise");
    snug_error err;
    expect_ok(sn_network_add(n, "Flatten", "f", NULL, NULL, &err), &err);
    expect_status(sn_network_add(n, "Flatten", "f", NULL, NULL, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "'f' already");
    sn_network_destroy(n);
}

static void test_input_types_that_cannot_be_fed_are_refused(void **state) {
    snug_error err;
    sn_network *n;
    expect_status(sn_network_create(*state, "n", &(snug_type){SNUG_U8, 2, {-1, 4}}, &n, &err),
                  SNUG_E_UNSUPPORTED, &err);
    expect_status(sn_network_create(*state, "n", &(snug_type){SNUG_F32, 2, {-1, -1}}, &n, &err),
                  SNUG_E_SHAPE, &err);
    expect_status(sn_network_create(*state, "n", &(snug_type){SNUG_F32, 2, {3, 4}}, &n, &err),
                  SNUG_E_SHAPE, &err);
}

/* --- initialisers ----------------------------------------------------------------------------- */
static sn_recipe recipe_of(const char *text, int rank, const int64_t *dims) {
    snug_error err;
    sn_init init;
    sn_recipe r;
    snug_type t = {.dtype = SNUG_F32, .rank = rank};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    expect_ok(sn_init_parse(text, &init, &err), &err);
    expect_ok(sn_init_recipe(&init, &t, 77, &r, &err), &err);
    return r;
}

static void expect_recipe(sn_recipe r, sn_recipe_kind kind, double a, double b) {
    assert_int_equal(r.kind, kind);
    assert_true(fabs(r.a - a) <= 1e-12 * fabs(a));
    assert_true(fabs(r.b - b) <= 1e-12 * fabs(b));
}

static void test_initialisers_follow_keras(void **state) {
    (void)state;
    const int64_t matrix[2] = {30, 50}, kernel[4] = {3, 5, 4, 8};
    const double cut = 0.87962566103423978;
    expect_recipe(recipe_of("zeros", 2, matrix), SN_RECIPE_CONSTANT, 0, 0);
    expect_recipe(recipe_of("Ones", 2, matrix), SN_RECIPE_CONSTANT, 1, 0);
    expect_recipe(recipe_of("constant:value=2.5", 2, matrix), SN_RECIPE_CONSTANT, 2.5, 0);
    expect_recipe(recipe_of("uniform", 2, matrix), SN_RECIPE_UNIFORM, -0.05, 0.05);
    expect_recipe(recipe_of("RandomNormal", 2, matrix), SN_RECIPE_NORMAL, 0, 0.05);
    expect_recipe(recipe_of("truncated_normal:mean=1,stddev=0.5", 2, matrix), SN_RECIPE_TRUNCATED,
                  1, 0.5);
    expect_recipe(recipe_of("glorot_uniform", 2, matrix), SN_RECIPE_UNIFORM, -sqrt(3.0 / 40),
                  sqrt(3.0 / 40));
    expect_recipe(recipe_of("GlorotNormal", 2, matrix), SN_RECIPE_TRUNCATED, 0,
                  sqrt(1.0 / 40) / cut);
    expect_recipe(recipe_of("he_uniform", 4, kernel), SN_RECIPE_UNIFORM, -sqrt(6.0 / 60),
                  sqrt(6.0 / 60));
    expect_recipe(recipe_of("he_normal", 4, kernel), SN_RECIPE_TRUNCATED, 0, sqrt(2.0 / 60) / cut);
    expect_recipe(recipe_of("lecun_normal", 2, matrix), SN_RECIPE_TRUNCATED, 0,
                  sqrt(1.0 / 30) / cut);
    expect_recipe(recipe_of("variance_scaling:scale=3,mode=fan_out,distribution=untruncated_normal",
                            4, kernel),
                  SN_RECIPE_NORMAL, 0, sqrt(3.0 / 120));
    expect_recipe(recipe_of("Orthogonal:gain=2", 4, kernel), SN_RECIPE_ORTHOGONAL, 2, 8);
    expect_recipe(recipe_of("orthogonal", 2, matrix), SN_RECIPE_ORTHOGONAL, 1, 50);
    expect_recipe(recipe_of("identity:gain=0.5", 2, matrix), SN_RECIPE_EYE, 0.5, 50);
    assert_int_equal(recipe_of("he_normal", 2, matrix).key, 77);
    assert_int_equal(recipe_of("he_normal:seed=5", 2, matrix).key, 5);
}

static void test_bad_initialisers_are_refused(void **state) {
    (void)state;
    snug_error err;
    sn_init init;
    expect_status(sn_init_parse("identity:scale=2", &init, &err), SNUG_E_INVALID, &err);
    expect_status(sn_init_parse("xavier", &init, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "glorot_uniform");
    expect_status(sn_init_parse("zeros:value=1", &init, &err), SNUG_E_INVALID, &err);
    expect_status(sn_init_parse("random_normal:stddev=-1", &init, &err), SNUG_E_INVALID, &err);
    expect_status(sn_init_parse("random_normal:seed=1.5", &init, &err), SNUG_E_INVALID, &err);
    expect_status(sn_init_parse("variance_scaling:mode=fan_up", &init, &err), SNUG_E_INVALID, &err);
}

static void test_initial_values_depend_on_seed_and_name_only(void **state) {
    sn_network *a = begin(state, 1, 4, 0, 0), *b = begin(state, 1, 4, 0, 0);
    add(a, "Dense", "units=4");
    add(a, "Dense", "units=4 kernel_initializer=he_normal:seed=9");
    add(b, "Dense", "units=4");
    sn_network_set_seed(b, 1);
    assert_int_not_equal(a->vars[0].init.key, b->vars[0].init.key);
    assert_int_not_equal(a->vars[0].init.key, a->vars[1].init.key);
    sn_network_set_seed(b, 0);
    assert_int_equal(a->vars[0].init.key, b->vars[0].init.key);
    sn_network_set_seed(a, 3);
    assert_int_equal(a->vars[2].init.key, 9);
    sn_network_destroy(a);
    sn_network_destroy(b);
}

/* --- optimizers and whole steps --------------------------------------------------------------- */
static void test_optimizer_texts_round_trip(void **state) {
    (void)state;
    snug_error err;
    sn_optimizer o;
    char text[200];
    const char *const cases[][2] = {
        {"adam", "adam:learning_rate=0.001"},
        {"Adam:lr=1e-4,beta_1=0.8,epsilon=1e-5",
         "adam:learning_rate=0.0001,beta_1=0.8,epsilon=1e-05"},
        {"SGD", "sgd:learning_rate=0.01"},
        {"sgd:learning_rate=0.1,momentum=0.9,nesterov=true",
         "sgd:learning_rate=0.1,momentum=0.9,nesterov=1"},
        {"adam:weight_decay=0,amsgrad=false,use_ema=False", "adam:learning_rate=0.001"},
        {"adam:weight_decay=0.1,amsgrad=true",
         "adam:learning_rate=0.001,amsgrad=1,weight_decay=0.1"},
        {"AdamW:weight_decay=none", "adamw:learning_rate=0.001,weight_decay=0"},
        {"RMSprop:rho=0.5,momentum=0.9,centered=true,clipnorm=None",
         "rmsprop:learning_rate=0.001,momentum=0.9,rho=0.5,centered=1"},
        {"Adagrad:initial_accumulator_value=0.2,clipvalue=3",
         "adagrad:learning_rate=0.001,initial_accumulator_value=0.2,clipvalue=3"},
        {"ftrl:learning_rate_power=-1,l2_shrinkage_regularization_strength=0.5",
         "ftrl:learning_rate=0.001,learning_rate_power=-1,l2_shrinkage_regularization_strength=0."
         "5"},
        {"lion:global_clipnorm=1", "lion:learning_rate=0.001,global_clipnorm=1"},
        {"sgd:use_ema=true,ema_momentum=0.5,ema_overwrite_frequency=3",
         "sgd:learning_rate=0.01,use_ema=1,ema_momentum=0.5,ema_overwrite_frequency=3"},
        {"adam:gradient_accumulation_steps=4,ema_overwrite_frequency=None",
         "adam:learning_rate=0.001,gradient_accumulation_steps=4"},
        {"adafactor:clip_threshold=2", "adafactor:learning_rate=0.001,clip_threshold=2"},
        {"sgd:lr=cosine_decay(initial_learning_rate=0.5,decay_steps=9),momentum=0.5",
         "sgd:learning_rate=cosine_decay(initial_learning_rate=0.5,decay_steps=9),momentum=0.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(sn_optimizer_parse(cases[i][0], &o, &err), &err);
        assert_string_equal(sn_optimizer_print(&o, text, sizeof text), cases[i][1]);
        expect_ok(sn_optimizer_parse(text, &o, &err), &err);
    }
    expect_status(sn_optimizer_parse("sparkle", &o, &err), SNUG_E_UNSUPPORTED, &err);
    assert_non_null(strstr(err.text, "sgd, adam, adamw, rmsprop, adagrad, adadelta, adamax, nadam, "
                                     "lion, ftrl"));
    expect_status(sn_optimizer_parse("sgd:clipnorm=1,clipvalue=1", &o, &err), SNUG_E_INVALID, &err);
    expect_status(sn_optimizer_parse("sgd:amsgrad=true", &o, &err), SNUG_E_INVALID, &err);
    expect_status(sn_optimizer_parse("lion:epsilon=1", &o, &err), SNUG_E_INVALID, &err);
    expect_status(sn_optimizer_parse("ftrl:learning_rate_power=1", &o, &err), SNUG_E_INVALID, &err);
    expect_status(sn_optimizer_parse("adam:momentum=0.9", &o, &err), SNUG_E_INVALID, &err);
    expect_status(sn_optimizer_parse("adam:loss_scale_factor=2", &o, &err), SNUG_E_UNSUPPORTED,
                  &err);
    expect_status(sn_optimizer_parse("adam:gradient_accumulation_steps=1", &o, &err),
                  SNUG_E_INVALID, &err);
    expect_status(sn_optimizer_parse("adam:ema_overwrite_frequency=2.5", &o, &err), SNUG_E_INVALID,
                  &err);
    expect_status(sn_optimizer_parse("sgd:lr=-1", &o, &err), SNUG_E_INVALID, &err);
    expect_status(sn_optimizer_parse("adam:beta_1=1", &o, &err), SNUG_E_INVALID, &err);
}

static void test_adam_rate_has_the_bias_correction(void **state) {
    (void)state;
    snug_error err;
    sn_optimizer o;
    sn_named_real p;
    expect_ok(sn_optimizer_parse("adam:learning_rate=0.5", &o, &err), &err);
    assert_int_equal(sn_optimizer_params(&o, 3, &p, 1), 1);
    assert_string_equal(p.name, "optimizer/rate");
    expect_real(p.value, 0.5 * sqrt(1 - pow(0.999f, 3)) / (1 - pow(0.9f, 3)), 1e-15);
}

/* Shares from step 1000 on are beta_1: the product goes on as its power, and numbers stay
 * finite. */
static void test_nadam_has_its_numbers_at_any_step(void **state) {
    (void)state;
    snug_error err;
    sn_optimizer o;
    sn_named_real p[8];
    expect_ok(sn_optimizer_parse("nadam:learning_rate=1,beta_1=0.9999", &o, &err), &err);
    for (int64_t step = 999; step < 1004; step++) {
        double product = 1;
        for (int64_t t = 1; t <= step; t++)
            product *= 0.9999 * (1 - 0.5 * pow(0.96, (double)t));
        const double beta_1 = 0.9999f, beta_2 = 0.999f;
        assert_int_equal(sn_optimizer_params(&o, step, p, 6), 6);
        assert_string_equal(p[3].name, "optimizer/mean_rate");
        expect_real(p[3].value, beta_1 / (1 - product * beta_1), 1e-12);
        assert_string_equal(p[4].name, "optimizer/now_rate");
        expect_real(p[4].value, (1 - beta_1) / (1 - product), 1e-12);
        assert_string_equal(p[5].name, "optimizer/square_part");
        expect_real(p[5].value, 1 / (1 - pow(beta_2, (double)step)), 1e-12);
    }
}

static sn_graph *build_step(sn_network *n, const char *loss_text, const char *optimizer_text,
                            sn_step_mode mode, int64_t batch) {
    snug_error err;
    sn_loss loss;
    sn_optimizer optimizer;
    sn_metric metric;
    sn_graph *g;
    expect_ok(sn_loss_parse(loss_text, &loss, &err), &err);
    expect_ok(sn_optimizer_parse(optimizer_text, &optimizer, &err), &err);
    expect_ok(sn_metric_parse("accuracy", &loss, &n->layers[n->n_layers - 1].output, &metric, &err),
              &err);
    const sn_objective objective = {true, loss, 1};
    const sn_step_spec spec = {.network = n,
                               .objectives = &objective,
                               .optimizer = &optimizer,
                               .metrics = &metric,
                               .n_metrics = 1};
    expect_ok(sn_step_build(&spec, mode, batch, &g, &err), &err);
    return g;
}

static void test_training_step_writes_state_behind_every_check(void **state) {
    sn_network *n = begin(state, 3, 8, 8, 3);
    add(n, "Conv2D", "filters=4 kernel_size=3 activation=relu");
    add(n, "BatchNormalization", "");
    add(n, "Dropout", "rate=0.25");
    add(n, "Flatten", "");
    add(n, "Dense", "units=3 activation=softmax");
    sn_graph *g = build_step(n, "sparse_categorical_crossentropy", "adam", SN_STEP_TRAIN, 5);
    uint32_t last_check = 0, first_write = UINT32_MAX, n_averages = 0, n_adam = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        if (sn_ops[node->op].effect == SN_MAYFAIL)
            last_check = i;
        if (sn_ops[node->op].effect == SN_STATE && first_write == UINT32_MAX)
            first_write = i;
        n_averages += node->op == SN_OP_moving_average;
        n_adam += node->op == SN_OP_adam;
    }
    assert_true(last_check < first_write && first_write != UINT32_MAX);
    assert_int_equal(n_averages, 2);
    assert_int_equal(n_adam, 6);
    assert_int_equal(n->n_vars, 8 + 12); /* two slots for each of the six trained weights */
    assert_int_equal(sn_network_n_weights(n), 8);
    assert_string_equal(n->vars[8].name, "adam/conv2d/kernel/momentum");
    assert_string_equal(n->vars[9].name, "adam/conv2d/kernel/velocity");
    snug_error err;
    sn_param key;
    uint32_t output;
    expect_ok(sn_graph_find_param(g, "dropout/dropout/key", &key, &err), &err);
    expect_ok(sn_graph_find_output(g, "loss", &output, &err), &err);
    expect_ok(sn_graph_find_output(g, "metric_0", &output, &err), &err);
    sn_graph_destroy(g);
    g = build_step(n, "sparse_categorical_crossentropy", "adam", SN_STEP_PREDICT, 5);
    assert_int_equal(sn_graph_n_inputs(g), 1);
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        assert_true(sn_graph_node_at(g, (sn_node){i})->op != SN_OP_dropout);
        assert_true(sn_graph_node_at(g, (sn_node){i})->op != SN_OP_moments);
    }
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

static void test_frozen_layers_are_not_updated(void **state) {
    sn_network *n = begin(state, 1, 6, 0, 0);
    add(n, "Dense", "units=4");
    add(n, "BatchNormalization", "");
    add(n, "Dense", "units=2");
    sn_network_set_trainable(n, 0, false);
    sn_network_set_trainable(n, 1, false);
    sn_graph *g = build_step(n, "mse", "sgd:momentum=0.9", SN_STEP_TRAIN, 3);
    uint32_t n_writes = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++)
        n_writes += sn_ops[sn_graph_node_at(g, (sn_node){i})->op].effect == SN_STATE;
    assert_int_equal(n_writes, 2); /* kernel and bias of the last layer; no moving statistics */
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

static snug_status build_and_destroy(snug_engine *e, void *ctx, snug_error *err) {
    (void)ctx;
    sn_network *n;
    sn_graph *g = NULL;
    sn_loss loss;
    sn_optimizer optimizer;
    SNUG_TRY(sn_loss_parse("mse", &loss, err));
    SNUG_TRY(sn_optimizer_parse("sgd:momentum=0.5", &optimizer, err));
    SNUG_TRY(sn_network_create(e, "n", &(snug_type){SNUG_F32, 2, {-1, 6}}, &n, err));
    snug_status status =
        sn_network_add(n, "Dense", NULL, sn_conf_fill_text, (void *)(uintptr_t) "units=4", err);
    if (status == SNUG_OK)
        status = sn_network_add(n, "BatchNormalization", NULL, NULL, NULL, err);
    const sn_objective objective = {true, loss, 1};
    const sn_step_spec spec = {.network = n, .objectives = &objective, .optimizer = &optimizer};
    if (status == SNUG_OK)
        status = sn_step_build(&spec, SN_STEP_TRAIN, 3, &g, err);
    sn_graph_destroy(g);
    sn_network_destroy(n);
    return status;
}

static void test_building_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(build_and_destroy, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_layers_have_keras_shapes),
        engine_test(test_merge_layers_broadcast_and_join),
        engine_test(test_outputs_have_the_rows_of_the_inputs),
        engine_test(test_padding_joins_the_convolution),
        engine_test(test_merges_of_wrong_inputs_are_refused),
        engine_test(test_padding_and_permutation_have_keras_shapes),
        engine_test(test_shared_dropout_has_a_key_per_application),
        engine_test(test_a_network_has_several_inputs_and_outputs),
        engine_test(test_masks_follow_the_layers),
        engine_test(test_layers_without_weights_keep_the_shape),
        engine_test(test_weights_have_keras_names_and_order),
        engine_test(test_embedding_first_reads_integers),
        engine_test(test_bad_settings_are_refused_and_change_nothing),
        engine_test(test_input_types_that_cannot_be_fed_are_refused),
        engine_test(test_initialisers_follow_keras),
        engine_test(test_bad_initialisers_are_refused),
        engine_test(test_initial_values_depend_on_seed_and_name_only),
        engine_test(test_optimizer_texts_round_trip),
        engine_test(test_adam_rate_has_the_bias_correction),
        engine_test(test_nadam_has_its_numbers_at_any_step),
        engine_test(test_training_step_writes_state_behind_every_check),
        engine_test(test_frozen_layers_are_not_updated),
        engine_test(test_building_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
