/* test_graph_model.c: models that are graphs instead of layers. What layers build, taken as a graph,
 * trains bit by bit as the layers do, whole and in slices; and graphs that no model can be are
 * refused with what is wrong. */
#include "support/blobs.h"
#include "support/golden_case.h"
#include "support/graph_of_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the same model, made two ways ------------------------------------------------------------ */
static snug_model *twin_of(snug_model *m, int64_t batch) {
    sn_graph *graph = graph_of_network(m->network, batch, false);
    sn_graph *training = graph_of_network(m->network, batch, true);
    snug_model *twin;
    snug_error err;
    expect_ok(snug_model_from_graph(graph, training, snug_model_name(m), &twin, &err), &err);
    sn_graph_destroy(graph);
    sn_graph_destroy(training);
    return twin;
}

static void copy_all_weights(snug_model *from, snug_model *to) {
    snug_view a, b;
    snug_error err;
    const char *name, *other;
    assert_int_equal(snug_model_n_weights(from), snug_model_n_weights(to));
    for (size_t i = 0; i < snug_model_n_weights(from); i++) {
        expect_ok(snug_model_weight(from, i, &name, &a, &err), &err);
        expect_ok(snug_model_weight(to, i, &other, &b, &err), &err);
        assert_string_equal(name, other);
        assert_int_equal(a.bytes, b.bytes);
        memcpy(b.data, a.data, a.bytes);
    }
}

/* The graph of a step as text, without its list of owners: a model of layers lists those without
 * nodes, too. */
static char *text_of(const sn_graph *g) {
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    snug_error err;
    expect_ok(sn_graph_print(g, &w, &err), &err);
    for (char *at = t.text; (at = strstr(at, "\nowner "));) {
        const char *const end = strchr(at + 1, '\n');
        memmove(at, end, strlen(end) + 1);
    }
    return t.text;
}

static void expect_same_graphs(const sn_graph *a, const sn_graph *b, const char *what) {
    char *const have = text_of(a), *const want = text_of(b);
    if (strcmp(have, want) != 0)
        fail_msg("%s: the step is\n%s\nof layers, and of the graph\n%s", what, want, have);
    free(have), free(want);
}

/* --- recorded networks ------------------------------------------------------------------------ */
static const char *const recorded[] = {
    "mlp_f64",           "model_transformer_f64", "graph_branches_f64",
    "cnn_f64",           "batchnorm_dense_f64",   "model_resnet20_f64",
    "model_lstm_f64",    "model_unet_f64",        "io_named_f64",
    "weight_sample_f64", "embedding_twice_f64",   "opt_clipnorm_f64",
};
enum { N_RECORDED = sizeof recorded / sizeof recorded[0] };

/* Returns the bytes of the arena; 0: there is no such plan. */
static size_t run_both(const sn_model_subject *graph, const sn_model_subject *layers,
                       const sn_plan_options *how, const char *what) {
    sn_step_run have, want;
    snug_error err;
    if (sn_step_run_try(&layers->subject, how, &want, &err) != SNUG_OK)
        return 0;
    sn_step_run_make(&graph->subject, how, &have);
    const size_t bytes = have.arena_bytes;
    assert_int_equal(have.slices, want.slices);
    assert_int_equal(have.n_recomputed, want.n_recomputed);
    assert_int_equal(bytes, want.arena_bytes);
    sn_step_run_expect_equal(&have, &want, what);
    sn_step_run_clear(&have);
    sn_step_run_clear(&want);
    return bytes;
}

/* Whole, in slices, and in less memory: in slices or with values that are computed again. */
static void run_plans(const sn_model_subject *graph, const sn_model_subject *layers,
                      const char *what) {
    expect_same_graphs(graph->subject.graph, layers->subject.graph, what);
    const size_t whole = run_both(graph, layers, &(sn_plan_options){.slices = 0}, what);
    assert_true(whole > 0);
    assert_true(run_both(graph, layers, &(sn_plan_options){.slices = 3}, what) > 0);
    for (size_t part = 9; part > 4; part--)
        run_both(graph, layers, &(sn_plan_options){.arena_bytes = whole / 10 * part}, what);
}

static void a_graph_trains_as_its_layers(void **state) {
    const char *folder = *state;
    golden_case c;
    sn_model_subject s;
    golden_case_open(&c, SNUG_TEST_DATA "/golden", folder);
    snug_model *const twin = twin_of(c.model, GOLDEN_BATCH);
    const sn_step_data data = {
        .x = c.x.feed, .n_x = c.x.n, .y = c.y.feed, .n_y = c.y.n, .w = c.w.feed, .n_w = c.w.n};
    twin->compiled = c.model->compiled;
    for (size_t i = 0; i < snug_model_n_weights(twin); i++) /* which are layers' settings */
        twin->network->vars[i].regularizer = c.model->network->vars[i].regularizer;
    copy_all_weights(c.model, twin);
    sn_model_subject_make(twin, GOLDEN_BATCH, &data, &s);
    run_plans(&s, &c.subject, folder);
    snug_model_destroy(twin);
    golden_case_close(&c);
}

/* --- fit, evaluate, predict, files ------------------------------------------------------------ */
static void add(snug_model *m, const char *layer, const char *config) {
    snug_error err;
    expect_ok(snug_model_add(m, layer, config, &err), &err);
}

/* With what differs between training and prediction. */
static snug_model *layers_for_blobs(snug_engine *e) {
    snug_model *m;
    snug_error err;
    expect_ok(snug_model_create(e, "blobs", &(snug_type){SNUG_F32, 1, {BLOB_DIM}}, &m, &err), &err);
    add(m, "Dense", "units=16 activation=relu");
    add(m, "BatchNormalization", "");
    add(m, "Dropout", "rate=0.25");
    add(m, "Dense", "units=3 activation=softmax");
    return m;
}

static void compile_for_blobs(snug_model *m) {
    snug_error err;
    expect_ok(snug_model_compile(m,
                                 &(snug_compile){.optimizer = "adam:lr=0.02",
                                                 .loss = "sparse_categorical_crossentropy",
                                                 .metrics = "accuracy"},
                                 &err),
              &err);
}

typedef struct {
    float y[BLOB_ROWS][BLOB_CLASSES];
} predicted;

static snug_status collect(void *ctx, int64_t first_row, const snug_view *view, snug_error *err) {
    predicted *p = ctx;
    (void)err;
    memcpy(p->y[first_row], view->data, view->bytes);
    return SNUG_OK;
}

static void predict(snug_model *m, const blobs *b, predicted *out) {
    snug_error err;
    memset(out, 0, sizeof *out);
    expect_ok(snug_predict(m, &(snug_run_options){.x = b->fx, .batch = 16}, collect, out, &err),
              &err);
}

static void test_fit_and_predict_as_layers_do(void **state) {
    snug_error err;
    blobs b;
    snug_fit_result r[2];
    predicted p[2];
    double v[2][3];
    int n;
    blobs_begin(*state, &b);
    snug_model *m[2] = {layers_for_blobs(*state)};
    m[1] = twin_of(m[0], -1);
    const snug_fit_options fit = {
        .x = b.fx, .y = b.fy, .batch = 16, .epochs = 12, .shuffle = 1, .validation_split = 0.2};
    for (int i = 0; i < 2; i++) {
        compile_for_blobs(m[i]);
        expect_ok(snug_fit(m[i], &fit, &r[i], &err), &err);
        predict(m[i], &b, &p[i]);
        expect_ok(snug_evaluate(m[i], &(snug_run_options){.x = b.fx, .y = b.fy, .batch = 16}, v[i],
                                &n, &err),
                  &err);
    }
    assert_memory_equal(&p[0], &p[1], sizeof p[0]);
    assert_memory_equal(v[0], v[1], 2 * sizeof(double));
    assert_true(r[0].values[0] == r[1].values[0] && r[0].val_values[1] == r[1].val_values[1]);
    assert_true(v[1][1] > 0.9); /* it learns */
    snug_model_destroy(m[0]);
    snug_model_destroy(m[1]);
    blobs_end(&b);
}

static void test_weights_of_layers_are_those_of_the_graph(void **state) {
    snug_error err;
    blobs b;
    predicted before, after;
    sn_test_dir dir;
    char path[256];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "w.safetensors", path);
    blobs_begin(*state, &b);
    snug_model *layers = layers_for_blobs(*state), *graph = twin_of(layers, -1);
    compile_for_blobs(graph);
    expect_ok(snug_fit(graph, &(snug_fit_options){.x = b.fx, .y = b.fy, .batch = 35}, NULL, &err),
              &err);
    predict(graph, &b, &before);
    expect_ok(snug_model_save_weights(graph, path, &err), &err);
    expect_ok(snug_model_load_weights(layers, path, &err), &err);
    predict(layers, &b, &after);
    assert_memory_equal(&before, &after, sizeof before);
    snug_model_destroy(layers);
    snug_model_destroy(graph);
    blobs_end(&b);
    sn_test_dir_end(&dir);
}

static void test_the_text_is_the_model(void **state) {
    snug_error err;
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    sn_test_dir dir;
    char path[256];
    blobs b;
    predicted p[2];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "blobs.v2.graph", path);
    blobs_begin(*state, &b);
    snug_model *layers = layers_for_blobs(*state), *m[2] = {twin_of(layers, -1)};
    expect_ok(sn_graph_print(m[0]->network->graph, &w, &err), &err);
    expect_ok(sn_graph_print(m[0]->network->training, &w, &err), &err);
    sn_test_write_file(path, t.text, t.n);
    expect_ok(snug_model_load(*state, path, &m[1], &err), &err);
    assert_string_equal(snug_model_name(m[1]), "blobs.v2");
    assert_string_equal(snug_model_input_name(m[1], 0), "x");
    assert_string_equal(snug_model_output_name(m[1], 0), "dense_1");
    assert_int_equal(snug_model_n_layers(m[1]), 4 - 1); /* dropout has no node to predict with */
    for (int i = 0; i < 2; i++) {
        compile_for_blobs(m[i]);
        const snug_fit_options fit = {.x = b.fx, .y = b.fy, .batch = 16, .epochs = 2};
        expect_ok(snug_fit(m[i], &fit, NULL, &err), &err);
        predict(m[i], &b, &p[i]);
        snug_model_destroy(m[i]);
    }
    assert_memory_equal(&p[0], &p[1], sizeof p[0]);
    snug_model_destroy(layers);
    blobs_end(&b);
    sn_text_end(&t);
    sn_test_dir_end(&dir);
}

/* --- a graph from the builder ----------------------------------------------------------------- */
typedef struct {
    int64_t batch; /* -1: open */
    snug_variable_options start;
    const char *key; /* of dropout; NULL: there is none */
} recipe;

/* y = dropout(x w) of a row of four numbers. */
static snug_graph *line_graph(snug_engine *e, const recipe *r) {
    snug_graph *g;
    snug_value x, w, y;
    snug_error err;
    expect_ok(snug_graph_create(e, &g, &err), &err);
    expect_ok(snug_graph_input(g, "row", &(snug_type){SNUG_F32, 2, {r->batch, BLOB_DIM}}, &x, &err),
              &err);
    expect_ok(
        snug_graph_variable(g, "w", &(snug_type){SNUG_F32, 2, {BLOB_DIM, 3}}, &r->start, &w, &err),
        &err);
    expect_ok(snug_graph_op(g, "matmul", "", (snug_value[]){x, w}, 2, &y, 1, &err), &err);
    if (r->key) {
        char attributes[64];
        snprintf(attributes, sizeof attributes, "rate=0.5 key=p:%s", r->key);
        expect_ok(snug_graph_key(g, r->key, 0, &err), &err);
        expect_ok(snug_graph_op(g, "dropout", attributes, &y, 1, &y, 1, &err), &err);
    }
    expect_ok(snug_graph_output(g, "y", y, &err), &err);
    return g;
}

static snug_model *line_model(snug_engine *e, const recipe *r) {
    snug_graph *g = line_graph(e, r);
    snug_model *m;
    snug_error err;
    expect_ok(snug_model_from_graph(g, NULL, NULL, &m, &err), &err);
    snug_graph_destroy(g);
    return m;
}

static const recipe plain_line = {.batch = -1, .start = {.kind = SNUG_INIT_NORMAL, .b = 1}};

static void weight_of(snug_model *m, float out[BLOB_DIM * 3]) {
    snug_view v;
    snug_error err;
    expect_ok(snug_model_weight(m, 0, NULL, &v, &err), &err);
    assert_int_equal(v.bytes, BLOB_DIM * 3 * sizeof(float));
    memcpy(out, v.data, v.bytes);
}

static const snug_compile sparse = {.optimizer = "sgd:lr=0.1",
                                    .loss = "sparse_categorical_crossentropy"};

static void fit_once(snug_model *m, const blobs *b, int64_t batch, float weight[BLOB_DIM * 3]) {
    snug_error err;
    expect_ok(snug_model_compile(m, &sparse, &err), &err);
    expect_ok(snug_fit(m, &(snug_fit_options){.x = b->fx, .y = b->fy, .batch = batch}, NULL, &err),
              &err);
    weight_of(m, weight);
}

static void test_starts_follow_the_graph_and_the_seed(void **state) {
    float a[BLOB_DIM * 3], b[BLOB_DIM * 3], c[BLOB_DIM * 3];
    snug_error err;
    const recipe other = {.batch = -1, .start = {.kind = SNUG_INIT_NORMAL, .b = 1, .seed = 1}};
    snug_model *m[3] = {line_model(*state, &plain_line), line_model(*state, &plain_line),
                        line_model(*state, &other)};
    expect_ok(snug_model_set_seed(m[1], 5, &err), &err);
    weight_of(m[0], a), weight_of(m[1], b), weight_of(m[2], c);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    snug_model_destroy(m[1]);
    m[1] = line_model(*state, &plain_line);
    expect_ok(snug_model_set_seed(m[1], 0, &err), &err);
    weight_of(m[1], b);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < 3; i++)
        snug_model_destroy(m[i]);
}

static void test_frozen_variables_stay(void **state) {
    float before[BLOB_DIM * 3], after[BLOB_DIM * 3];
    snug_error err;
    blobs b;
    blobs_begin(*state, &b);
    recipe r = plain_line;
    snug_model *free = line_model(*state, &r);
    weight_of(free, before);
    fit_once(free, &b, 35, after);
    assert_memory_not_equal(before, after, sizeof before);
    r.start.is_frozen = 1;
    snug_model *frozen = line_model(*state, &r);
    expect_ok(snug_model_compile(frozen, &sparse, &err), &err);
    expect_status(
        snug_fit(frozen, &(snug_fit_options){.x = b.fx, .y = b.fy, .batch = 35}, NULL, &err),
        SNUG_E_INVALID, &err);
    expect_text(err.text, "nothing to train");
    snug_model_destroy(free);
    snug_model_destroy(frozen);
    blobs_end(&b);
}

static void test_dropout_is_what_training_does(void **state) {
    float plain[BLOB_DIM * 3], dropped[BLOB_DIM * 3], again[BLOB_DIM * 3];
    blobs b;
    predicted p, q;
    blobs_begin(*state, &b);
    recipe r = plain_line;
    snug_model *without = line_model(*state, &r);
    r.key = "draw";
    snug_model *with = line_model(*state, &r), *other = line_model(*state, &r);
    predict(without, &b, &p);
    predict(with, &b, &q);
    assert_memory_equal(&p, &q, sizeof p);
    fit_once(without, &b, 35, plain);
    fit_once(with, &b, 35, dropped);
    fit_once(other, &b, 35, again);
    assert_memory_not_equal(plain, dropped, sizeof plain);
    assert_memory_equal(dropped, again, sizeof dropped);
    snug_model_destroy(without);
    snug_model_destroy(with);
    snug_model_destroy(other);
    blobs_end(&b);
}

/* As graphs say it, where there is one for training. */
static void test_with_a_training_graph_each_does_what_it_says(void **state) {
    snug_error err;
    blobs b;
    predicted p, q;
    blobs_begin(*state, &b);
    recipe r = plain_line;
    snug_graph *plain = line_graph(*state, &r);
    r.key = "draw";
    snug_graph *drops = line_graph(*state, &r);
    snug_model *m, *always;
    expect_ok(snug_model_from_graph(plain, drops, "a", &m, &err), &err);
    expect_ok(snug_model_from_graph(drops, drops, "b", &always, &err), &err);
    predict(m, &b, &p);
    predict(always, &b, &q);
    assert_memory_not_equal(&p, &q, sizeof p);
    snug_model_destroy(m);
    snug_model_destroy(always);
    snug_graph_destroy(plain);
    snug_graph_destroy(drops);
    blobs_end(&b);
}

static void test_a_fixed_batch_is_the_only_one(void **state) {
    float weight[BLOB_DIM * 3];
    snug_error err;
    snug_model_plan_info info;
    blobs b;
    blobs_begin(*state, &b);
    recipe r = plain_line;
    r.batch = 35;
    snug_model *m = line_model(*state, &r);
    assert_int_equal(snug_model_input(m)->dims[0], -1);
    assert_int_equal(snug_model_output(m)->dims[0], -1);
    fit_once(m, &b, 35, weight);
    expect_status(snug_fit(m, &(snug_fit_options){.x = b.fx, .y = b.fy, .batch = 16}, NULL, &err),
                  SNUG_E_SHAPE, &err);
    expect_text(err.text, "fixes a batch of 35 rows (input 'row'), 16 are asked for");
    expect_status(snug_model_plan(m, &(snug_plan_request){.batch = 70, .train = 1}, &info, &err),
                  SNUG_E_SHAPE, &err);
    expect_text(err.text, "leave the first axis open");
    snug_model_destroy(m);
    blobs_end(&b);
}

static void test_layers_and_types_are_the_graphs(void **state) {
    snug_error err;
    snug_layer_info l;
    snug_model *m = line_model(*state, &plain_line);
    assert_string_equal(snug_model_name(m), "graph");
    assert_int_equal(snug_model_n_layers(m), 1);
    snug_model_layer(m, 0, &l);
    assert_string_equal(l.name, "graph");
    assert_string_equal(l.type, "Graph");
    assert_int_equal(l.n_trainable, BLOB_DIM * 3);
    expect_status(snug_model_add(m, "Dense", "units=2", &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "add to the graph");
    expect_ok(snug_model_set_dtype(m, SNUG_F32, &err), &err);
    expect_status(snug_model_set_dtype(m, SNUG_F64, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "whose types say f32");
    snug_model_destroy(m);
}

/* --- refusals --------------------------------------------------------------------------------- */
#define HEAD   "snug graph 1\n"
#define X      "%0 input x f32[?,4]\n"
#define RELU_X HEAD X "%1 = relu(%0) | forward -> f32[?,4]\n"
#define W      "%1 variable w f32[4] home 0 trainable init constant 0 1 0\n"

static const struct {
    const char *text, *training; /* NULL: none */
    const char *says;
} refused[] = {
    {HEAD, NULL, "it has no input"},
    {RELU_X, NULL, "it has no output; name a value"},
    {HEAD X "output y %0\n", NULL, "it has no operator"},
    {HEAD "%0 input x f32[]\n%1 = relu(%0) | forward -> f32[]\noutput y %1\n", NULL,
     "input 'x': the input f32[] does not start with an open batch axis"},
    {HEAD "%0 input x f32[?,?]\n%1 = relu(%0) | forward -> f32[?,?]\noutput y %1\n", NULL,
     "input 'x': axis 1 of the input f32[?,?] must be known"},
    {HEAD "%0 input x u8[?,4]\n%1 = cast(%0) dtype=f32 | forward -> f32[?,4]\noutput y %1\n", NULL,
     "input 'x': the input is u8[?,4]; it may be f32"},
    {RELU_X "%2 = sum(%1) axes=0,1 | forward -> f32[]\noutput y %2\n", NULL,
     "output 'y' is f32[] for a batch of 2; its first axis must be the batch"},
    {RELU_X "%2 = concat(%1 %1) axis=0 | forward -> f32[?,4]\noutput y %2\n", NULL,
     "output 'y' is f32[4,4] for a batch of 2"},
    {RELU_X "%2 = cast(%1) dtype=f64 | forward -> f64[?,4]\noutput a %1\noutput b %2\n", NULL,
     "output 'b' is f64, others before it are f32; cast it"},
    {HEAD X "%1 variable w f32[4] home 0 slot init constant 0 1 0\n"
            "%2 = add(%0 %1) | forward -> f32[?,4]\noutput y %2\n",
     NULL, "variable 'w' is a slot of an optimizer; a model's optimizer makes its own"},
    {HEAD X "%1 variable w i32[4] home 0 init constant 0 0.5 0\n"
            "%2 = cast(%1) dtype=f32 | forward -> f32[4]\n"
            "%3 = add(%0 %2) | forward -> f32[?,4]\noutput y %3\n",
     NULL, "variable 'w': the constant 0.5 is not an integer"},
    {HEAD X W "p0 real 0.1\np1 real 0\n%2 = sgd(%1 %1) rate=p0 momentum=p1 | update -> f32[4]\n"
              "output y %0\n",
     NULL, "sgd writes a variable; in a model's graph only assign and moving_average may"},
    {HEAD X W "%2 = relu(%1) | forward -> f32[4]\n%3 = assign(%1 %2) | update -> f32[4]\n"
              "%4 = add(%0 %3) | forward -> f32[?,4]\noutput y %4\n",
     NULL, "variable 'w' is read after it was written"},
    {RELU_X "output y %1\n",
     HEAD "%0 input z f32[?,4]\n%1 = relu(%0) | forward -> f32[?,4]\n"
          "output y %1\n",
     "the training graph of 'm': input 'z' is f32[?,4], where the other graph has 'x'"},
    {RELU_X "output y %1\n", RELU_X "output a %1\noutput y %1\n",
     "it has 1 inputs and 2 outputs, the other graph 1 and 1"},
    {RELU_X "output y %1\n",
     RELU_X "%2 = concat(%1 %1) axis=1 | forward -> f32[?,8]\n"
            "output y %2\n",
     "output 'y' is f32[2,8], where the other graph has 'y', f32[2,4]"},
    {RELU_X "output y %1\n", HEAD X W "%2 = add(%0 %1) | forward -> f32[?,4]\noutput y %2\n",
     "variable 'w' is not in the other graph; make it there, too"},
    {HEAD X W "%2 = add(%0 %1) | forward -> f32[?,4]\noutput y %2\n",
     HEAD X "%1 variable w f32[1] home 0 init constant 0 1 0\n"
            "%2 = add(%0 %1) | forward -> f32[?,4]\noutput y %2\n",
     "variable 'w' is f32[1], where the other graph has 'w', f32[4]"},
};

static void test_what_no_model_can_be_is_refused(void **state) {
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snug_graph *g, *training = NULL;
        snug_model *m;
        snug_error err;
        expect_ok(snug_graph_parse(*state, refused[i].text, &g, &err), &err);
        if (refused[i].training)
            expect_ok(snug_graph_parse(*state, refused[i].training, &training, &err), &err);
        if (snug_model_from_graph(g, training, "m", &m, &err) == SNUG_OK)
            fail_msg("a model was made of\n%s\nthough %s", refused[i].text, refused[i].says);
        expect_text(err.text, refused[i].says);
        expect_text(err.text, "'m'");
        snug_graph_destroy(g);
        snug_graph_destroy(training);
    }
}

/* How many numbers train of w[4], which both graphs add to x and one of them writes. */
static int64_t trained_numbers(snug_engine *e, const char *text, const char *training) {
    snug_graph *g, *t = NULL;
    snug_model *m;
    snug_layer_info l;
    snug_error err;
    expect_ok(snug_graph_parse(e, text, &g, &err), &err);
    if (training)
        expect_ok(snug_graph_parse(e, training, &t, &err), &err);
    expect_ok(snug_model_from_graph(g, t, "m", &m, &err), &err);
    snug_model_layer(m, 0, &l);
    assert_int_equal(l.n_params, 4);
    snug_model_destroy(m);
    snug_graph_destroy(g);
    snug_graph_destroy(t);
    return l.n_trainable;
}

static void test_what_a_graph_writes_is_not_trained(void **state) {
    static const char *const reads =
        HEAD X W "%2 = add(%0 %1) | forward -> f32[?,4]\noutput y %2\n";
    static const char *const writes =
        HEAD X W "%2 = add(%0 %1) | forward -> f32[?,4]\n"
                 "%3 = relu(%1) | forward -> f32[4]\n"
                 "%4 = assign(%1 %3) | update -> f32[4]\noutput y %2\n";
    assert_int_equal(trained_numbers(*state, reads, NULL), 4);
    assert_int_equal(trained_numbers(*state, writes, NULL), 0);
    assert_int_equal(trained_numbers(*state, reads, writes), 0);
}

/* What is written here is the most of each column. */
static void test_writes_happen_in_steps_that_train(void **state) {
    static const char *const text =
        HEAD X "%1 variable seen f32[4] home 0 init constant 0 7 0\n"
               "%2 variable w f32[4,3] home 1 trainable init normal 0 0 1\n"
               "%3 = matmul(%0 %2) | forward -> f32[?,3]\n"
               "%4 = max(%0) axes=0 | forward -> f32[4]\n"
               "%5 = assign(%1 %4) | update -> f32[4]\noutput y %3\n";
    float most[BLOB_DIM] = {-1e9f, -1e9f, -1e9f, -1e9f};
    snug_error err;
    snug_graph *g;
    snug_model *m;
    snug_view seen;
    blobs b;
    predicted p;
    blobs_begin(*state, &b);
    for (int i = 0; i < BLOB_ROWS * BLOB_DIM; i++)
        if (b.x[i / BLOB_DIM][i % BLOB_DIM] > most[i % BLOB_DIM])
            most[i % BLOB_DIM] = b.x[i / BLOB_DIM][i % BLOB_DIM];
    expect_ok(snug_graph_parse(*state, text, &g, &err), &err);
    expect_ok(snug_model_from_graph(g, NULL, NULL, &m, &err), &err);
    expect_ok(snug_model_compile(m, &sparse, &err), &err);
    predict(m, &b, &p);
    expect_ok(snug_model_weight(m, 0, NULL, &seen, &err), &err);
    assert_true(((const float *)seen.data)[0] == 7);
    expect_ok(
        snug_fit(m, &(snug_fit_options){.x = b.fx, .y = b.fy, .batch = BLOB_ROWS}, NULL, &err),
        &err);
    expect_ok(snug_model_weight(m, 0, NULL, &seen, &err), &err);
    assert_memory_equal(seen.data, most, sizeof most);
    snug_model_destroy(m);
    snug_graph_destroy(g);
    blobs_end(&b);
}

static void expect_file(snug_engine *e, const char *path, const char *text, size_t n,
                        const char *says) {
    snug_model *m;
    snug_error err;
    sn_test_write_file(path, text, n);
    expect_status(snug_model_load(e, path, &m, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, says);
}

static void test_files_that_are_wrong_are_refused(void **state) {
    static const char good[] = RELU_X "output y %1\n", zero[] = RELU_X "output y %1\n\0more";
    sn_test_dir dir;
    char path[256], shaped[256];
    snug_model *m;
    snug_error err;
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "m.graph", path);
    sn_test_path(&dir, "good.graph", shaped);
    sn_test_write_file(shaped, good, sizeof good - 1);
    expect_ok(snug_model_load(*state, shaped, &m, &err), &err);
    snug_model_destroy(m);
    expect_file(*state, path, zero, sizeof zero - 1, "has a zero byte at");
    expect_file(*state, path, RELU_X, sizeof RELU_X - 1, "it has no output");
    expect_file(*state, path, HEAD "%0 inpt x\n", sizeof HEAD "%0 inpt x\n" - 1,
                "graph text, line 2");
    expect_file(*state, path, RELU_X "output y %1\n" HEAD "?\n",
                sizeof RELU_X "output y %1\n" HEAD "?\n" - 1,
                "the second graph: graph text, line 2");
    expect_status(snug_model_load_shaped(*state, shaped, "4", &m, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "says the shapes of its inputs itself");
    sn_test_dir_end(&dir);
}

/* --- failures --------------------------------------------------------------------------------- */
static snug_status make_and_plan(snug_engine *e, void *ctx, snug_error *err) {
    const char *text = ctx;
    snug_graph *g = NULL;
    snug_model *m = NULL;
    snug_model_plan_info info;
    snug_status status = snug_graph_parse(e, text, &g, err);
    if (status == SNUG_OK)
        status = snug_model_from_graph(g, g, "m", &m, err);
    if (status == SNUG_OK)
        status = snug_model_plan(m, &(snug_plan_request){.batch = 4, .quick = 1}, &info, err);
    snug_model_destroy(m);
    snug_graph_destroy(g);
    return status;
}

static void test_any_request_may_fail(void **state) {
    (void)state;
    sn_fault_sweep(make_and_plan,
                   (void *)(uintptr_t)(HEAD X W
                                       "p0 real 0.9\n%2 = add(%0 %1) | forward -> f32[?,4]\n"
                                       "%3 = moving_average(%1 %1) momentum=p0 | "
                                       "update -> f32[4]\noutput y %2\n"));
}

int main(void) {
    static struct CMUnitTest networks[N_RECORDED];
    const struct CMUnitTest tests[] = {
        engine_test(test_fit_and_predict_as_layers_do),
        engine_test(test_weights_of_layers_are_those_of_the_graph),
        engine_test(test_the_text_is_the_model),
        engine_test(test_starts_follow_the_graph_and_the_seed),
        engine_test(test_frozen_variables_stay),
        engine_test(test_dropout_is_what_training_does),
        engine_test(test_with_a_training_graph_each_does_what_it_says),
        engine_test(test_a_fixed_batch_is_the_only_one),
        engine_test(test_layers_and_types_are_the_graphs),
        engine_test(test_what_no_model_can_be_is_refused),
        engine_test(test_what_a_graph_writes_is_not_trained),
        engine_test(test_writes_happen_in_steps_that_train),
        engine_test(test_files_that_are_wrong_are_refused),
        cmocka_unit_test(test_any_request_may_fail),
    };
    for (int i = 0; i < N_RECORDED; i++)
        networks[i] = (struct CMUnitTest){.name = recorded[i],
                                          .test_func = a_graph_trains_as_its_layers,
                                          .initial_state = (void *)(uintptr_t)recorded[i]};
    const int failed = cmocka_run_group_tests_name("recorded networks", networks, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
