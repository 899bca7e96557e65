/* test_recurrent.c: recurrent layers and the layers around them: Keras' shapes, names and first
 * values, what dropout draws, how older Keras writes them, and what is refused by name. That they
 * compute what Keras computes is test_golden's. */
#include "support/eval.h"
#include "support/support.h"

#include "model/keras_json.h"
#include "nn/network.h"

#include <snug/train.h>
#include <stdio.h>
#include <string.h>

/* A network on [batch, 3 steps, 2 features]. */
static sn_network *begin(void **state) {
    snug_error err;
    sn_network *n;
    const snug_type t = {.dtype = SNUG_F32, .rank = 3, .dims = {-1, 3, 2}};
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    return n;
}

static void add(sn_network *n, const char *cls, const char *config) {
    snug_error err;
    expect_ok(sn_network_add(n, cls, NULL, sn_conf_fill_text, (void *)(uintptr_t)config, &err),
              &err);
}

static void expect_output(const sn_network *n, uint32_t tensor, const char *wanted) {
    char text[192];
    assert_string_equal(snug_type_print(sn_network_type(n, tensor), text, sizeof text), wanted);
}

/* All weights from `first` on: "name type" each. */
static void expect_vars(const sn_network *n, size_t first, const char *const *wanted) {
    char type[192], text[400];
    size_t i = first;
    for (; *wanted; wanted++, i++) {
        assert_true(i < n->n_vars);
        snprintf(text, sizeof text, "%s %s", n->vars[i].name,
                 snug_type_print(&n->vars[i].type, type, sizeof type));
        assert_string_equal(text, *wanted);
    }
    assert_int_equal(i, n->n_vars);
}

/* --- shapes and names ------------------------------------------------------------------------- */
static void test_recurrent_layers_have_keras_shapes_and_names(void **state) {
    sn_network *n = begin(state);
    add(n, "LSTM", "units=4 return_sequences=true");
    expect_output(n, 1, "f32[?,3,4]");
    add(n, "GRU", "units=5 return_sequences=true go_backwards=true");
    expect_output(n, 2, "f32[?,3,5]");
    add(n, "SimpleRNN", "units=6 use_bias=false");
    expect_output(n, 3, "f32[?,6]");
    expect_vars(n, 0,
                (const char *const[]){
                    "lstm/lstm_cell/kernel f32[2,16]", "lstm/lstm_cell/recurrent_kernel f32[4,16]",
                    "lstm/lstm_cell/bias f32[16]", "gru/gru_cell/kernel f32[4,15]",
                    "gru/gru_cell/recurrent_kernel f32[5,15]", "gru/gru_cell/bias f32[2,15]",
                    "simple_rnn/simple_rnn_cell/kernel f32[5,6]",
                    "simple_rnn/simple_rnn_cell/recurrent_kernel f32[6,6]", NULL});
    sn_network_destroy(n);
}

static void test_layers_inside_are_named_by_where_they_are(void **state) {
    sn_network *n = begin(state);
    add(n, "Bidirectional", "layer=SimpleRNN(units=4 return_sequences=true use_bias=false)");
    expect_output(n, 1, "f32[?,3,8]");
    add(n, "RNN",
        "return_sequences=1 cell=StackedRNNCells(cells=[SimpleRNNCell(units=3 "
        "use_bias=false) GRUCell(units=2 reset_after=false)])");
    expect_output(n, 2, "f32[?,3,2]");
    add(n, "TimeDistributed", "layer=Dense(units=7 use_bias=false)");
    expect_output(n, 3, "f32[?,3,7]");
    expect_vars(n, 0,
                (const char *const[]){
                    "bidirectional/forward_simple_rnn/simple_rnn_cell/kernel f32[2,4]",
                    "bidirectional/forward_simple_rnn/simple_rnn_cell/recurrent_kernel f32[4,4]",
                    "bidirectional/backward_simple_rnn/simple_rnn_cell/kernel f32[2,4]",
                    "bidirectional/backward_simple_rnn/simple_rnn_cell/recurrent_kernel f32[4,4]",
                    "rnn/stacked_rnn_cells/simple_rnn_cell/kernel f32[8,3]",
                    "rnn/stacked_rnn_cells/simple_rnn_cell/recurrent_kernel f32[3,3]",
                    "rnn/stacked_rnn_cells/gru_cell/kernel f32[3,6]",
                    "rnn/stacked_rnn_cells/gru_cell/recurrent_kernel f32[2,6]",
                    "rnn/stacked_rnn_cells/gru_cell/bias f32[6]",
                    "time_distributed/dense/kernel f32[2,7]", NULL});
    sn_network_destroy(n);
}

static void test_convolutions_over_steps_have_keras_shapes_and_names(void **state) {
    snug_error err;
    sn_network *n;
    const snug_type t = {.dtype = SNUG_F32, .rank = 5, .dims = {-1, 4, 6, 5, 2}};
    expect_ok(sn_network_create(*state, "net", &t, &n, &err), &err);
    add(n, "ConvLSTM2D", "filters=3 kernel_size=3,2 return_sequences=true return_state=true");
    expect_output(n, 1, "f32[?,4,4,4,3]");
    expect_output(n, 2, "f32[?,4,4,3]");
    expect_output(n, 3, "f32[?,4,4,3]");
    expect_vars(n, 0,
                (const char *const[]){"conv_lstm2d/conv_lstm_cell/kernel f32[3,2,2,12]",
                                      "conv_lstm2d/conv_lstm_cell/recurrent_kernel f32[3,2,3,12]",
                                      "conv_lstm2d/conv_lstm_cell/bias f32[12]", NULL});
    expect_status(sn_network_add(n, "ConvLSTM1D", NULL, sn_conf_fill_text,
                                 (void *)(uintptr_t) "filters=3 kernel_size=2", &err),
                  SNUG_E_SHAPE, &err);
    expect_text(err.text, "[batch, steps, 1 axes, channels]");
    sn_network_destroy(n);
}

/* A backward layer that is made of the forward one has cells of its own. */
static void test_two_ways_share_no_weights(void **state) {
    sn_network *n = begin(state);
    add(n, "Bidirectional", "merge_mode=sum layer=RNN(cell=LSTMCell(units=4))");
    expect_output(n, 1, "f32[?,4]");
    assert_int_equal(n->n_vars, 6);
    assert_string_equal(n->vars[0].name, "bidirectional/forward_rnn/lstm_cell/kernel");
    assert_string_equal(n->vars[3].name, "bidirectional/backward_rnn/lstm_cell/kernel");
    assert_int_not_equal(n->vars[0].init.key, n->vars[3].init.key);
    sn_network_destroy(n);
}

static void test_states_are_outputs_behind_the_first(void **state) {
    sn_network *n = begin(state);
    add(n, "LSTM", "units=4 return_state=true return_sequences=true");
    expect_output(n, 1, "f32[?,3,4]");
    expect_output(n, 2, "f32[?,4]");
    expect_output(n, 3, "f32[?,4]");
    assert_int_equal(n->n_tensors, 4);
    add(n, "Bidirectional", "merge_mode=none layer=GRU(units=2 return_state=true)");
    for (uint32_t i = 4; i < 8; i++)
        expect_output(n, i, "f32[?,2]");
    assert_int_equal(n->n_tensors, 8);
    sn_network_destroy(n);
}

static void test_a_mask_stays_with_a_sequence(void **state) {
    sn_network *n = begin(state);
    char text[192];
    add(n, "Masking", "mask_value=-1");
    add(n, "GRU", "units=4 return_sequences=true");
    add(n, "TimeDistributed", "layer=Dense(units=2)");
    add(n, "Bidirectional", "layer=LSTM(units=2 return_sequences=true)");
    for (uint32_t i = 1; i < 5; i++) {
        assert_true(n->tensors[i].masked);
        assert_string_equal(snug_type_print(&n->tensors[i].mask, text, sizeof text), "bool[?,3]");
    }
    add(n, "LSTM", "units=2");
    assert_false(n->tensors[5].masked);
    sn_network_destroy(n);
}

/* --- first values ----------------------------------------------------------------------------- */
static void test_the_forget_gate_begins_open(void **state) {
    snug_error err;
    sn_network *n = begin(state);
    float bias[8];
    add(n, "LSTM", "units=2 return_sequences=1 bias_initializer=constant:value=0.25");
    add(n, "LSTM", "units=2 unit_forget_bias=false");
    expect_ok(sn_recipe_fill(&n->vars[2].init, 0, 8, SNUG_F32, bias, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_true(bias[i] == (i == 2 || i == 3 ? 1.0f : 0.25f));
    expect_ok(sn_recipe_fill(&n->vars[5].init, 0, 8, SNUG_F32, bias, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_true(bias[i] == 0.0f);
    /* a part of it is that part */
    expect_ok(sn_recipe_fill(&n->vars[2].init, 3, 2, SNUG_F32, bias, &err), &err);
    assert_true(bias[0] == 1.0f && bias[1] == 0.25f);
    sn_network_destroy(n);
}

/* --- dropout ---------------------------------------------------------------------------------- */
enum { EXAMPLES = 40 };

/* The output of the network in training on ones. */
static sn_test_arrays train_on_ones(snug_engine *e, sn_network *n) {
    snug_error err;
    sn_graph *g;
    sn_value x;
    sn_network_result y;
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 3, {EXAMPLES, 3, 2}}, &x, &err), &err);
    expect_ok(sn_network_build(n, g, &x, true, &y, &err), &err);
    expect_ok(sn_graph_output(g, "y", y.y[0], &err), &err);
    sn_test_arrays in = sn_test_inputs(g, 1, 1);
    const sn_test_arrays out = sn_test_eval(e, g, &in);
    sn_test_arrays_clear(&in);
    sn_graph_destroy(g);
    return out;
}

/* h = the sum of what is left of two ones, in every step; each is 0 or 2. */
static void test_dropout_of_inputs_is_drawn_once_for_all_steps(void **state) {
    sn_network *n = begin(state);
    int seen[5] = {0};
    add(n, "SimpleRNN",
        "units=1 activation=linear dropout=0.5 return_sequences=true "
        "kernel_initializer=ones recurrent_initializer=zeros");
    sn_test_arrays y = train_on_ones(*state, n);
    assert_int_equal(y.count[0], EXAMPLES * 3);
    for (int b = 0; b < EXAMPLES; b++) {
        const double *h = &y.data[0][b * 3];
        assert_true(h[0] == h[1] && h[1] == h[2]);
        assert_true(h[0] == 0 || h[0] == 2 || h[0] == 4);
        seen[(int)h[0]]++;
    }
    assert_true(seen[0] > 0 && seen[2] > 0 && seen[4] > 0);
    sn_test_arrays_clear(&y);
    sn_network_destroy(n);
}

/* h' = 2 + m h with m 0 or 2 for all steps: behind three steps 2, or 2 + 2 (2 + 2 * 2) = 14. */
static void test_dropout_of_states_is_drawn_once_for_all_steps(void **state) {
    sn_network *n = begin(state);
    int kept = 0, dropped = 0;
    add(n, "SimpleRNN",
        "units=1 activation=linear recurrent_dropout=0.5 kernel_initializer=ones "
        "recurrent_initializer=ones");
    sn_test_arrays y = train_on_ones(*state, n);
    for (int b = 0; b < EXAMPLES; b++) {
        assert_true(y.data[0][b] == 2 || y.data[0][b] == 14);
        kept += y.data[0][b] == 14;
        dropped += y.data[0][b] == 2;
    }
    assert_true(kept > 0 && dropped > 0);
    sn_test_arrays_clear(&y);
    sn_network_destroy(n);
}

/* Gates of an LSTM see states with masks of their own: four units, four gates, 16 factors. */
static void test_dropout_has_a_draw_for_inputs_and_one_for_states(void **state) {
    snug_error err;
    sn_network *n = begin(state);
    sn_graph *g;
    sn_value x;
    sn_network_result y;
    sn_param p;
    bool factors = false;
    add(n, "LSTM", "units=4 dropout=0.2 recurrent_dropout=0.3");
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 3, {5, 3, 2}}, &x, &err), &err);
    expect_ok(sn_network_build(n, g, &x, true, &y, &err), &err);
    expect_ok(sn_graph_find_param(g, "dropout/lstm/inputs/0/key", &p, &err), &err);
    expect_ok(sn_graph_find_param(g, "dropout/lstm/states/0/key", &p, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        factors = factors || (node->op == SN_OP_lstm && node->n_in == 5 &&
                              sn_graph_type(g, node->in[4])->dims[1] == 16);
    }
    assert_true(factors);
    sn_graph_destroy(g);
    sn_network_destroy(n);
}

/* --- stateful --------------------------------------------------------------------------------- */
static snug_status take_rows(void *ctx, int64_t first, const snug_view *view, snug_error *err) {
    (void)err;
    memcpy((float *)ctx + first, view->data, view->bytes);
    return SNUG_OK;
}

/* A sum that goes on: h' = h + x over all steps of all batches; 4 examples, batches of `batch`. */
static snug_status sum_up(snug_model *m, int64_t batch, float *sums, snug_error *err) {
    static const float x[4][3][2] = {{{1, 0}, {1, 0}, {1, 0}},
                                     {{0, 2}, {0, 2}, {0, 2}},
                                     {{4, 0}, {0, 0}, {0, 0}},
                                     {{0, 0}, {0, 0}, {0, 5}}};
    const snug_type t = {SNUG_F32, 3, {4, 3, 2}};
    snug_feed *feed;
    SNUG_TRY(snug_feed_from_memory(snug_model_engine(m), &t, x, NULL, NULL, &feed, err));
    const snug_run_options o = {.x = feed, .batch = batch};
    const snug_status status = snug_predict(m, &o, take_rows, sums, err);
    snug_feed_destroy(feed);
    return status;
}

static void test_a_stateful_layer_goes_on_where_it_was(void **state) {
    snug_error err;
    snug_model *m;
    float sums[4];
    expect_ok(snug_model_create(*state, "m", &(snug_type){SNUG_F32, 2, {3, 2}}, &m, &err), &err);
    expect_ok(snug_model_add(m, "SimpleRNN",
                             "units=1 stateful=true activation=linear kernel_initializer=ones "
                             "recurrent_initializer=ones",
                             &err),
              &err);
    assert_int_equal(snug_model_n_weights(m), 3); /* the state is none of them */
    for (int round = 0; round < 2; round++) {
        expect_ok(sum_up(m, 2, sums, &err), &err);
        assert_true(sums[0] == 3 && sums[1] == 6 && sums[2] == 7 && sums[3] == 11);
        expect_ok(sum_up(m, 2, sums, &err), &err);
        assert_true(sums[0] == 10 && sums[1] == 17 && sums[2] == 14 && sums[3] == 22);
        expect_ok(snug_model_reset_states(m, &err), &err);
    }
    expect_status(sum_up(m, 4, sums, &err), SNUG_E_SHAPE, &err);
    expect_text(err.text, "of a batch of 2, this one has 4");
    expect_status(snug_model_reset_states(NULL, &err), SNUG_E_INVALID, &err);
    snug_model_destroy(m);
}

/* --- older files ------------------------------------------------------------------------------ */
#define OLD_LSTM                                                                                   \
    "{\"class_name\":\"LSTM\",\"config\":{\"name\":\"lstm_9\",\"trainable\":true,"                 \
    "\"return_sequences\":true,\"return_state\":false,\"go_backwards\":false,"                     \
    "\"stateful\":false,\"unroll\":false,\"time_major\":false,\"units\":4,"                        \
    "\"activation\":\"tanh\",\"recurrent_activation\":\"hard_sigmoid\",\"use_bias\":true,"         \
    "\"recurrent_initializer\":{\"class_name\":\"Orthogonal\",\"config\":{\"gain\":1.0,"           \
    "\"seed\":null}},\"unit_forget_bias\":true,\"dropout\":0.0,\"recurrent_dropout\":0.0,"         \
    "\"implementation\":1}}"
#define OLD_MODEL(layer)                                                                           \
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":[{\"class_name\":"       \
    "\"InputLayer\",\"config\":{\"batch_input_shape\":[null,3,2]}}," layer "]},"                   \
    "\"keras_version\":\"2.12.0\"}"

static sn_network *load_text(snug_engine *e, const char *text) {
    snug_error err;
    sn_network *n;
    sn_keras_compile c;
    sn_test_dir d;
    char path[256];
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "m.json", path), text, strlen(text));
    expect_ok(sn_keras_load(e, path, NULL, &n, &c, &err), &err);
    sn_test_dir_end(&d);
    return n;
}

/* tf.keras 2 names the layer inside without its side and writes no second one. */
static void test_tf_keras_2_files_have_one_layer_for_two_ways(void **state) {
    sn_network *n = load_text(
        *state, OLD_MODEL("{\"class_name\":\"Bidirectional\",\"config\":{\"name\":\"b\","
                          "\"trainable\":true,\"layer\":" OLD_LSTM ",\"merge_mode\":\"ave\"}}"));
    expect_output(n, 1, "f32[?,3,4]");
    assert_int_equal(n->n_vars, 6);
    assert_string_equal(n->vars[0].name, "b/forward_lstm_9/lstm_cell/kernel");
    assert_string_equal(n->vars[5].name, "b/backward_lstm_9/lstm_cell/bias");
    sn_network_destroy(n);
}

/* --- a model for every step ------------------------------------------------------------------- */
#define NORMALISED(trainable)                                                                      \
    OLD_MODEL("{\"class_name\":\"TimeDistributed\",\"config\":{\"name\":\"td\",\"layer\":"         \
              "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"in\",\"layers\":["            \
              "{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":4}},"                \
              "{\"class_name\":\"BatchNormalization\",\"config\":{\"name\":\"bn\","                \
              "\"trainable\":" trainable "}}]}}}}")

static void test_a_model_for_every_step_normalises_step_by_step(void **state) {
    static const char *const texts[2] = {NORMALISED("false"), NORMALISED("true")};
    for (int trainable = 0; trainable < 2; trainable++) {
        snug_error err = {.code = SNUG_OK};
        sn_network *n = load_text(*state, texts[trainable]);
        sn_graph *g;
        sn_value x;
        sn_network_result y;
        expect_output(n, (uint32_t)n->n_tensors - 1, "f32[?,3,4]");
        assert_string_equal(n->vars[0].name, "td/in/d/kernel");
        expect_ok(sn_graph_create(*state, &g, &err), &err);
        expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 3, {5, 3, 2}}, &x, &err), &err);
        expect_ok(sn_network_build(n, g, &x, true, &y, &err), &err);
        assert_int_equal(n->n_pending, trainable ? 3 * 2 : 0); /* a mean and a variance each */
        sn_graph_destroy(g);
        sn_network_destroy(n);
    }
}

/* --- refused ---------------------------------------------------------------------------------- */
static void test_bad_settings_are_refused_and_change_nothing(void **state) {
    static const struct {
        const char *cls, *config;
        snug_status status;
        const char *says;
    } rows[] = {
        {"LSTM", "units=0", SNUG_E_INVALID, "units=0 must be at least 1"},
        {"GRU", "units=3 activation=elu", SNUG_E_UNSUPPORTED, "activation 'elu'"},
        {"LSTM", "units=3 recurrent_activation=softmax", SNUG_E_UNSUPPORTED, "hard_sigmoid"},
        {"LSTM", "units=3 bias_initializer=uniform", SNUG_E_UNSUPPORTED, "unit_forget_bias=false"},
        {"SimpleRNN", "units=3 time_major=true", SNUG_E_UNSUPPORTED, "put the batch first"},
        {"LSTMCell", "units=3", SNUG_E_UNSUPPORTED, "inside an RNN layer"},
        {"RNN", "", SNUG_E_INVALID, "there is no cell"},
        {"RNN", "cell=Dense(units=2)", SNUG_E_UNSUPPORTED, "is no cell; there are LSTMCell"},
        {"RNN", "cell=StackedRNNCells()", SNUG_E_INVALID, "there are no cells"},
        {"Bidirectional", "layer=Dense(units=2)", SNUG_E_UNSUPPORTED, "must be LSTM, GRU"},
        {"Bidirectional", "layer=GRU(units=2) merge_mode=max", SNUG_E_INVALID, "merge_mode=max"},
        {"Bidirectional", "layer=GRU(units=2) backward_layer=GRU(units=2)", SNUG_E_INVALID,
         "must differ in go_backwards"},
        {"TimeDistributed", "", SNUG_E_INVALID, "there is no layer"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_error err;
        sn_network *n = begin(state);
        expect_status(sn_network_add(n, rows[i].cls, NULL, sn_conf_fill_text,
                                     (void *)(uintptr_t)rows[i].config, &err),
                      rows[i].status, &err);
        expect_text(err.text, rows[i].says);
        assert_int_equal(n->n_layers, 0);
        assert_int_equal(n->n_vars, 0);
        sn_network_destroy(n);
    }
}

static void test_inputs_without_steps_are_refused(void **state) {
    static const char *const rows[][2] = {{"LSTM", "units=3"},
                                          {"Masking", ""},
                                          {"TimeDistributed", "layer=Dense(units=2)"},
                                          {"Bidirectional", "layer=GRU(units=2)"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_error err;
        sn_network *n = begin(state);
        add(n, "Flatten", "");
        expect_status(sn_network_add(n, rows[i][0], NULL, sn_conf_fill_text,
                                     (void *)(uintptr_t)rows[i][1], &err),
                      SNUG_E_SHAPE, &err);
        expect_text(err.text, "the input must be [batch, steps, ");
        sn_network_destroy(n);
    }
}

/* An LSTM has two states: one of them alone is not silently joined by zeros. */
static void test_initial_states_are_counted(void **state) {
    static const char *const role[3] = {NULL, "initial_state", "initial_state"};
    snug_error err;
    uint32_t h, y;
    sn_network *n = begin(state);
    const sn_layer_spec mean = {
        .class_name = "GlobalAveragePooling1D", .in = (const uint32_t[]){0}, .n_in = 1};
    expect_ok(sn_network_add_on(n, &mean, &h, &err), &err);
    char units[32];
    snprintf(units, sizeof units, "units=%d", (int)sn_network_type(n, h)->dims[1]);
    sn_layer_spec lstm = {.class_name = "LSTM",
                          .fill = sn_conf_fill_text,
                          .ctx = units,
                          .in = (const uint32_t[]){0, h, h},
                          .role = role,
                          .n_in = 2};
    expect_status(sn_network_add_on(n, &lstm, &y, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "it has 2 states, initial_state gives 1");
    lstm.n_in = 3;
    expect_ok(sn_network_add_on(n, &lstm, &y, &err), &err);
    sn_network_destroy(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_recurrent_layers_have_keras_shapes_and_names),
        engine_test(test_layers_inside_are_named_by_where_they_are),
        engine_test(test_convolutions_over_steps_have_keras_shapes_and_names),
        engine_test(test_two_ways_share_no_weights),
        engine_test(test_states_are_outputs_behind_the_first),
        engine_test(test_a_mask_stays_with_a_sequence),
        engine_test(test_the_forget_gate_begins_open),
        engine_test(test_dropout_of_inputs_is_drawn_once_for_all_steps),
        engine_test(test_dropout_of_states_is_drawn_once_for_all_steps),
        engine_test(test_dropout_has_a_draw_for_inputs_and_one_for_states),
        engine_test(test_a_stateful_layer_goes_on_where_it_was),
        engine_test(test_tf_keras_2_files_have_one_layer_for_two_ways),
        engine_test(test_a_model_for_every_step_normalises_step_by_step),
        engine_test(test_bad_settings_are_refused_and_change_nothing),
        engine_test(test_inputs_without_steps_are_refused),
        engine_test(test_initial_states_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
