/* test_eager_layers.c: layers, losses and optimizers on recorded tensors do what whole models do:
 * the same net, trained a few steps by hand with a tape, has the same weights in f64; and what only
 * eager code can do: infer, freeze, trace. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eager/layer.h"
#include "support/bench.h"

#include <snug/function.h>
#include <snug/layer.h>
#include <snug/model.h>
#include <snug/train.h>

#define MAX_LAYERS 6
#define MAX_VARS   32
#define ROWS       6
#define STEPS      3

typedef struct {
    const char *cls, *text, *json;
} layer_row;

typedef struct {
    snug_type input; /* of an example */
    layer_row layers[MAX_LAYERS];
    const char *loss, *optimizer;
    int64_t classes; /* 0: targets are numbers */
} net;

/* --- data ------------------------------------------------------------------------------------- */
static double noise(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (1 << 24) * 2 - 1;
}

static snug_type with_rows(const snug_type *example) {
    snug_type t = {.dtype = example->dtype, .rank = example->rank + 1, .dims = {ROWS}};
    memcpy(t.dims + 1, example->dims, (size_t)example->rank * sizeof *t.dims);
    return t;
}

static void fill(const snug_type *t, void *data, int64_t classes) {
    uint32_t seed = 7;
    for (int64_t i = 0; i < sn_type_count(t); i++) {
        const double v = noise(&seed);
        if (t->dtype == SNUG_F64)
            ((double *)data)[i] = v;
        else
            ((int32_t *)data)[i] = (int32_t)((v + 1) / 2 * (double)classes);
    }
}

/* --- the whole model -------------------------------------------------------------------------- */
typedef struct {
    double x[4096], y[512];
    snug_type tx, ty;
} data;

static snug_model *make_model(bench *b, const net *n, data *d) {
    snug_model *m;
    expect_ok(snug_model_create(b->e, "net", &n->input, &m, &b->err), &b->err);
    expect_ok(snug_model_set_dtype(m, SNUG_F64, &b->err), &b->err);
    for (int i = 0; i < MAX_LAYERS && n->layers[i].cls; i++)
        expect_ok(snug_model_add(m, n->layers[i].cls, n->layers[i].text, &b->err), &b->err);
    const snug_compile how = {.optimizer = n->optimizer, .loss = n->loss};
    expect_ok(snug_model_compile(m, &how, &b->err), &b->err);
    d->tx = with_rows(&n->input);
    snug_model_target(m, &d->ty);
    d->ty.dims[0] = ROWS;
    fill(&d->tx, d->x, n->classes ? 5 : 0);
    fill(&d->ty, d->y, n->classes);
    return m;
}

static void train_model(bench *b, snug_model *m, data *d) {
    snug_feed *x, *y;
    snug_fit_result result;
    expect_ok(snug_feed_from_memory(b->e, &d->tx, d->x, NULL, NULL, &x, &b->err), &b->err);
    expect_ok(snug_feed_from_memory(b->e, &d->ty, d->y, NULL, NULL, &y, &b->err), &b->err);
    const snug_fit_options fit = {.x = x, .y = y, .epochs = STEPS, .batch = ROWS};
    expect_ok(snug_fit(m, &fit, &result, &b->err), &b->err);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
}

/* --- the same by hand ------------------------------------------------------------------------- */
typedef struct {
    snug_layer *layer[MAX_LAYERS];
    int n;
    snug_variable *vars[MAX_VARS];
    int n_vars;
    snug_optimizer *optimizer;
} hand;

static void make_hand(bench *b, const net *n, hand *h) {
    memset(h, 0, sizeof *h);
    for (; h->n < MAX_LAYERS && n->layers[h->n].cls; h->n++) {
        char json[400];
        snprintf(json, sizeof json, "{\"dtype\": \"float64\"%s%s}",
                 n->layers[h->n].json[0] ? ", " : "", n->layers[h->n].json);
        expect_ok(snug_layer_create(b->r, n->layers[h->n].cls, json, &h->layer[h->n], &b->err),
                  &b->err);
    }
    expect_ok(snug_optimizer_create(b->r, n->optimizer, &h->optimizer, &b->err), &b->err);
}

static void end_hand(hand *h) {
    for (int i = 0; i < h->n; i++)
        snug_layer_destroy(h->layer[i]);
    snug_optimizer_destroy(h->optimizer);
}

static snug_tensor *forward(bench *b, const hand *h, snug_tensor *x, int training) {
    snug_tensor *at = x, *mask = NULL;
    snug_tensor_hold(x);
    for (int i = 0; i < h->n; i++) {
        snug_tensor *y, *next;
        int count;
        const snug_layer_arguments a = {
            .inputs = &at, .n_inputs = 1, .masks = &mask, .training = training};
        expect_ok(snug_layer_call(h->layer[i], &a, &y, 1, &count, &next, &b->err), &b->err);
        assert_int_equal(count, 1);
        snug_tensor_drop(at);
        snug_tensor_drop(mask);
        at = y;
        mask = next;
    }
    snug_tensor_drop(mask);
    return at;
}

static void find_variables(hand *h) {
    h->n_vars = 0;
    for (int i = 0; i < h->n; i++)
        for (int k = 0; k < snug_layer_n_variables(h->layer[i]); k++)
            h->vars[h->n_vars++] = snug_layer_variable(h->layer[i], k);
}

/* The penalties of all layers on top of the loss. */
static snug_tensor *with_penalties(bench *b, hand *h, snug_tensor *loss) {
    for (int i = 0; i < h->n; i++) {
        snug_tensor *more[8];
        int n;
        expect_ok(snug_layer_losses(h->layer[i], more, 8, &n, &b->err), &b->err);
        for (int k = 0; k < n; k++) {
            snug_tensor *in[2] = {loss, more[k]}, *sum;
            expect_ok(snug_record_op(b->r, "add", "", in, 2, &sum, 1, &b->err), &b->err);
            snug_tensor_drop(loss);
            snug_tensor_drop(more[k]);
            loss = sum;
        }
    }
    return loss;
}

static void step(bench *b, const net *n, hand *h, snug_tensor *x, snug_tensor *y) {
    snug_tape *tape;
    snug_tensor *loss, *grads[MAX_VARS] = {NULL};
    snug_source sources[MAX_VARS];
    expect_ok(snug_tape_create(b->r, NULL, &tape, &b->err), &b->err);
    snug_tensor *const out = forward(b, h, x, 1);
    expect_ok(snug_loss_call(b->r, n->loss, y, out, NULL, 1, &loss, &b->err), &b->err);
    loss = with_penalties(b, h, loss);
    snug_tape_stop(tape);
    for (int i = 0; i < h->n_vars; i++)
        sources[i] = (snug_source){NULL, h->vars[i]};
    expect_ok(snug_tape_gradient(tape, &loss, NULL, 1, sources, h->n_vars, grads, &b->err),
              &b->err);
    for (int i = 0; i < h->n_vars; i++)
        if (!snug_variable_is_trainable(h->vars[i])) {
            snug_tensor_drop(grads[i]);
            grads[i] = NULL;
        }
    expect_ok(snug_optimizer_apply(h->optimizer, grads, h->vars, h->n_vars, -1, &b->err), &b->err);
    for (int i = 0; i < h->n; i++)
        expect_ok(snug_layer_constrain(h->layer[i], &b->err), &b->err);
    for (int i = 0; i < h->n_vars; i++)
        snug_tensor_drop(grads[i]);
    snug_tape_drop(tape);
    snug_tensor_drop(out);
    snug_tensor_drop(loss);
}

/* --- both ------------------------------------------------------------------------------------- */
static void copy_weights(bench *b, snug_model *m, const hand *h) {
    assert_int_equal(snug_model_n_weights(m), h->n_vars);
    for (int i = 0; i < h->n_vars; i++) {
        const char *name;
        snug_view v;
        snug_tensor *t;
        expect_ok(snug_model_weight(m, (size_t)i, &name, &v, &b->err), &b->err);
        assert_true(sn_type_equal(&v.type, snug_variable_type(h->vars[i])));
        expect_ok(snug_tensor_copy(b->r, &v.type, v.data, &t, &b->err), &b->err);
        expect_ok(snug_variable_assign(h->vars[i], t, &b->err), &b->err);
        snug_tensor_drop(t);
    }
}

static void compare_weights(bench *b, snug_model *m, const hand *h) {
    for (int i = 0; i < h->n_vars; i++) {
        const char *name;
        snug_view v, own;
        snug_tensor *t;
        expect_ok(snug_model_weight(m, (size_t)i, &name, &v, &b->err), &b->err);
        expect_ok(snug_variable_read(h->vars[i], &t, &b->err), &b->err);
        expect_ok(snug_tensor_pin(t, &own, &b->err), &b->err);
        const double *want = v.data, *have = own.data;
        for (int64_t k = 0; k < sn_type_count(&v.type); k++)
            if (!(fabs(want[k] - have[k]) <= 1e-11 * (1 + fabs(want[k]))))
                fail_msg("%s[%lld]: %.17g by hand, %.17g in the model", name, (long long)k, have[k],
                         want[k]);
        snug_tensor_unpin(t);
        snug_tensor_drop(t);
    }
}

static void train_both(void **state, const net *n) {
    static data d;
    bench b = open_bench(state);
    hand h;
    snug_tensor *x, *y;
    snug_model *m = make_model(&b, n, &d);
    make_hand(&b, n, &h);
    expect_ok(snug_tensor_copy(b.r, &d.tx, d.x, &x, &b.err), &b.err);
    expect_ok(snug_tensor_copy(b.r, &d.ty, d.y, &y, &b.err), &b.err);
    snug_tensor_drop(forward(&b, &h, x, 0));
    find_variables(&h);
    copy_weights(&b, m, &h);
    train_model(&b, m, &d);
    snug_recorder_info before, after;
    for (int i = 0; i < STEPS; i++) {
        step(&b, n, &h, x, y);
        expect_ok(snug_boundary(b.r, &b.err), &b.err);
        if (i == 1)
            snug_recorder_tell(b.r, &before);
    }
    snug_recorder_tell(b.r, &after);
    assert_int_equal(before.n_misses, after.n_misses); /* steps count, plans stay */
    assert_int_equal(snug_optimizer_steps(h.optimizer), STEPS);
    compare_weights(&b, m, &h);
    snug_tensor_drop(x);
    snug_tensor_drop(y);
    end_hand(&h);
    snug_model_destroy(m);
    snug_recorder_destroy(b.r);
}

static void test_dense_layers_train_by_hand_as_in_a_model(void **state) {
    train_both(state,
               &(net){.input = {SNUG_F64, 1, {5}},
                      .layers = {{"Dense", "units=4 activation=relu kernel_regularizer=l2:l2=0.01",
                                  "\"units\": 4, \"activation\": \"relu\", \"kernel_regularizer\": "
                                  "{\"class_name\": \"L2\", \"config\": {\"l2\": 0.01}}"},
                                 {"Dense", "units=3", "\"units\": 3"}},
                      .loss = "sparse_categorical_crossentropy:from_logits=true",
                      .optimizer = "adam:learning_rate=0.01",
                      .classes = 3});
}

static void test_convolutions_train_by_hand_as_in_a_model(void **state) {
    train_both(
        state,
        &(net){.input = {SNUG_F64, 3, {6, 6, 2}},
               .layers = {{"Conv2D", "filters=3 kernel_size=3 activation=relu",
                           "\"filters\": 3, \"kernel_size\": [3, 3], \"activation\": \"relu\""},
                          {"BatchNormalization", "", ""},
                          {"MaxPooling2D", "", ""},
                          {"Flatten", "", ""},
                          {"Dense", "units=2 kernel_constraint=max_norm:max_value=0.5",
                           "\"units\": 2, \"kernel_constraint\": {\"class_name\": \"MaxNorm\", "
                           "\"config\": {\"max_value\": 0.5, \"axis\": 0}}"}},
               .loss = "mse",
               .optimizer = "sgd:learning_rate=0.05,momentum=0.9"});
}

static void test_recurrent_layers_train_by_hand_as_in_a_model(void **state) {
    train_both(
        state,
        &(net){.input = {SNUG_F64, 2, {5, 3}},
               .layers = {{"Bidirectional", "layer=LSTM(units=4 return_sequences=true)",
                           "\"layer\": {\"class_name\": \"LSTM\", \"config\": {\"units\": 4, "
                           "\"return_sequences\": true}}"},
                          {"GRU", "units=3", "\"units\": 3"},
                          {"Dense", "units=1", "\"units\": 1"}},
               .loss = "mse",
               .optimizer = "rmsprop:learning_rate=0.01"});
}

static void test_masks_go_from_layer_to_layer(void **state) {
    train_both(state,
               &(net){.input = {SNUG_I32, 1, {5}},
                      .layers = {{"Embedding", "input_dim=5 output_dim=3 mask_zero=true",
                                  "\"input_dim\": 5, \"output_dim\": 3, \"mask_zero\": true"},
                                 {"LSTM", "units=4", "\"units\": 4"},
                                 {"Dense", "units=4", "\"units\": 4"}},
                      .loss = "sparse_categorical_crossentropy:from_logits=true",
                      .optimizer = "adam:learning_rate=0.01",
                      .classes = 4});
}

static void test_every_optimizer_trains_by_hand_as_in_a_model(void **state) {
    static const char *const all[] = {
        "sgd:learning_rate=0.1,momentum=0.9,nesterov=true,clipnorm=0.5",
        "adam:learning_rate=0.01,amsgrad=true,global_clipnorm=0.3",
        "adamw:learning_rate=0.01,weight_decay=0.1",
        "rmsprop:learning_rate=0.01,centered=true,momentum=0.5",
        "adagrad:learning_rate=0.1",
        "adadelta:learning_rate=1",
        "adamax:learning_rate=0.01",
        "nadam:learning_rate=0.01",
        "ftrl:learning_rate=0.1",
        "lion:learning_rate=0.001",
        "adafactor:learning_rate=0.01",
        "lamb:learning_rate=0.01",
        ("adam:learning_rate=exponential_decay(initial_learning_rate=0.1,decay_steps=1,decay_rate="
         "0.5)"),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        train_both(state, &(net){.input = {SNUG_F64, 1, {3}},
                                 .layers = {{"Dense", "units=2 activation=tanh",
                                             "\"units\": 2, \"activation\": \"tanh\""},
                                            {"Dense", "units=1", "\"units\": 1"}},
                                 .loss = "mse",
                                 .optimizer = all[i]});
}

/* --- what only eager code does ---------------------------------------------------------------- */
static snug_tensor *numbers(bench *b, snug_dtype dtype, int64_t n, int64_t columns) {
    static double v[1024];
    const snug_type t = {dtype, 2, {n, columns}};
    snug_tensor *x;
    assert_true(n * columns <= 1024);
    if (dtype == SNUG_F32)
        for (int64_t i = 0; i < n * columns; i++)
            ((float *)v)[i] = (float)(i % 7) - 3;
    else
        for (int64_t i = 0; i < n * columns; i++)
            ((int32_t *)v)[i] = (int32_t)(i % 3);
    expect_ok(snug_tensor_copy(b->r, &t, v, &x, &b->err), &b->err);
    return x;
}

static snug_layer *make_layer(bench *b, const char *cls, const char *json) {
    snug_layer *l;
    expect_ok(snug_layer_create(b->r, cls, json, &l, &b->err), &b->err);
    return l;
}

static snug_tensor *apply(bench *b, snug_layer *l, snug_tensor *x, int training) {
    snug_tensor *y;
    int n;
    const snug_layer_arguments a = {.inputs = &x, .n_inputs = 1, .training = training};
    expect_ok(snug_layer_call(l, &a, &y, 1, &n, NULL, &b->err), &b->err);
    return y;
}

static void read_all(bench *b, snug_tensor *t, void *to, size_t bytes) {
    expect_ok(snug_tensor_read(t, to, bytes, &b->err), &b->err);
    snug_tensor_drop(t);
}

static void test_dropout_draws_anew_and_keeps_its_plan(void **state) {
    bench b = open_bench(state);
    snug_layer *l = make_layer(&b, "Dropout", "{\"rate\": 0.5}");
    snug_tensor *x = numbers(&b, SNUG_F32, 4, 8);
    float one[32], two[32], still[32];
    snug_recorder_info first, second;
    read_all(&b, apply(&b, l, x, 1), one, sizeof one);
    snug_recorder_tell(b.r, &first);
    read_all(&b, apply(&b, l, x, 1), two, sizeof two);
    snug_recorder_tell(b.r, &second);
    assert_memory_not_equal(one, two, sizeof one);
    assert_int_equal(first.n_misses, second.n_misses);
    read_all(&b, apply(&b, l, x, 0), still, sizeof still);
    for (int i = 0; i < 32; i++) {
        assert_true(still[i] == (float)(i % 7) - 3);
        assert_true(one[i] == 0 || one[i] == 2 * still[i]);
    }
    snug_tensor_drop(x);
    snug_layer_destroy(l);
    snug_recorder_destroy(b.r);
}

static void test_a_layer_with_a_seed_draws_on_from_any_place(void **state) {
    bench b = open_bench(state);
    snug_layer *l = make_layer(&b, "Dropout", "{\"rate\": 0.5, \"seed\": 7}"),
               *other = make_layer(&b, "Dropout", "{\"rate\": 0.5, \"seed\": 7}");
    snug_tensor *x = numbers(&b, SNUG_F32, 4, 8), *y;
    float one[32], two[32], again[32];
    int n;
    assert_int_equal(snug_layer_draws(l), 0);
    read_all(&b, apply(&b, l, x, 1), one, sizeof one);
    const snug_layer_arguments a = {.inputs = &x, .n_inputs = 1, .training = 1};
    expect_status(snug_layer_call(l, &a, &y, 0, &n, NULL, &b.err), SNUG_E_INVALID, &b.err);
    assert_int_equal(snug_layer_draws(l), 1); /* what failed drew nothing */
    read_all(&b, apply(&b, l, x, 1), two, sizeof two);
    assert_memory_not_equal(one, two, sizeof one);
    expect_ok(snug_layer_set_draws(other, 1, &b.err), &b.err);
    read_all(&b, apply(&b, other, x, 1), again, sizeof again);
    assert_memory_equal(two, again, sizeof two);
    assert_int_equal(snug_layer_draws(other), 2);
    snug_tensor_drop(x);
    snug_layer_destroy(l);
    snug_layer_destroy(other);
    snug_recorder_destroy(b.r);
}

static void test_types_are_inferred_without_recording(void **state) {
    bench b = open_bench(state);
    snug_layer *l = make_layer(&b, "Conv2D", "{\"filters\": 5, \"kernel_size\": [3, 3]}");
    const snug_type x = {SNUG_F32, 4, {-1, 8, 8, 2}};
    snug_type y;
    int n;
    snug_recorder_info info;
    expect_ok(snug_layer_infer(l, &x, 1, &y, 1, &n, &b.err), &b.err);
    assert_int_equal(n, 1);
    assert_int_equal(y.dims[0], -1);
    assert_int_equal(y.dims[1], 6);
    assert_int_equal(y.dims[3], 5);
    assert_int_equal(snug_layer_n_variables(l), 2);
    assert_string_equal(snug_variable_name(snug_layer_variable(l, 0)), "conv2d/kernel");
    snug_recorder_tell(b.r, &info);
    assert_int_equal(info.n_nodes, 0);
    snug_layer_destroy(l);
    snug_recorder_destroy(b.r);
}

static void test_whole_numbers_are_cast_where_a_layer_needs_it(void **state) {
    bench b = open_bench(state);
    snug_layer *l = make_layer(&b, "Dense", "{\"units\": 2, \"kernel_initializer\": \"ones\"}");
    snug_tensor *x = numbers(&b, SNUG_I32, 2, 3);
    float y[4];
    read_all(&b, apply(&b, l, x, 0), y, sizeof y);
    assert_true(y[0] == 3 && y[3] == 3);
    snug_tensor_drop(x);
    snug_layer_destroy(l);
    snug_recorder_destroy(b.r);
}

static void test_a_frozen_batch_normalisation_keeps_its_statistics(void **state) {
    bench b = open_bench(state);
    snug_layer *l = make_layer(&b, "BatchNormalization", "{}");
    snug_tensor *x = numbers(&b, SNUG_F32, 5, 4), *t;
    float mean[4], y[20];
    snug_tensor_drop(apply(&b, l, x, 1));
    snug_layer_set_trainable(l, 0);
    assert_false(snug_variable_is_trainable(snug_layer_variable(l, 0)));
    expect_ok(snug_variable_read(snug_layer_variable(l, 2), &t, &b.err), &b.err);
    read_all(&b, t, mean, sizeof mean);
    assert_true(mean[0] != 0);
    read_all(&b, apply(&b, l, x, 1), y, sizeof y);
    float again[4];
    expect_ok(snug_variable_read(snug_layer_variable(l, 2), &t, &b.err), &b.err);
    read_all(&b, t, again, sizeof again);
    assert_memory_equal(mean, again, sizeof mean);
    snug_tensor_drop(x);
    snug_layer_destroy(l);
    snug_recorder_destroy(b.r);
}

static void test_what_layers_add_to_the_loss_is_given_once(void **state) {
    bench b = open_bench(state);
    snug_layer *l = make_layer(&b, "ActivityRegularization", "{\"l2\": 0.5}");
    snug_tensor *x = numbers(&b, SNUG_F32, 2, 2), *losses[4];
    int n;
    float v;
    snug_tensor_drop(apply(&b, l, x, 1));
    expect_ok(snug_layer_losses(l, losses, 4, &n, &b.err), &b.err);
    assert_int_equal(n, 1);
    read_all(&b, losses[0], &v, sizeof v); /* 0.5 * (9 + 4 + 1 + 0) / 2 rows */
    assert_true(fabsf(v - 3.5f) < 1e-5f);
    expect_ok(snug_layer_losses(l, losses, 4, &n, &b.err), &b.err);
    assert_int_equal(n, 0);
    snug_tensor_drop(x);
    snug_layer_destroy(l);
    snug_recorder_destroy(b.r);
}

/* The same three steps by a trace: rates by step are asked for at each call. */
static void test_a_traced_step_trains_like_a_plain_one(void **state) {
    static const net n = {.input = {SNUG_F64, 1, {3}},
                          .layers = {{"Dense", "units=1", "\"units\": 1"}},
                          .loss = "mse",
                          .optimizer = "nadam:learning_rate=0.05"};
    static data d;
    bench b = open_bench(state);
    hand h[2];
    snug_tensor *x, *y, *arguments[2];
    snug_trace *trace;
    snug_model *m = make_model(&b, &n, &d);
    expect_ok(snug_tensor_copy(b.r, &d.tx, d.x, &x, &b.err), &b.err);
    expect_ok(snug_tensor_copy(b.r, &d.ty, d.y, &y, &b.err), &b.err);
    for (int k = 0; k < 2; k++) {
        make_hand(&b, &n, &h[k]);
        snug_tensor_drop(forward(&b, &h[k], x, 0));
        find_variables(&h[k]);
        copy_weights(&b, m, &h[k]);
    }
    expect_ok(snug_trace_begin(b.r, (const snug_type[]){d.tx, d.ty}, 2, arguments, &trace, &b.err),
              &b.err);
    step(&b, &n, &h[0], arguments[0], arguments[1]);
    expect_ok(snug_trace_end(trace, NULL, 0, &b.err), &b.err);
    assert_true(snug_trace_has_effects(trace));
    assert_int_equal(snug_optimizer_steps(h[0].optimizer), 0);
    for (int i = 0; i < STEPS; i++) {
        expect_ok(snug_trace_call(trace, (snug_tensor *[]){x, y}, 2, NULL, 0, &b.err), &b.err);
        step(&b, &n, &h[1], x, y);
        expect_ok(snug_boundary(b.r, &b.err), &b.err);
    }
    assert_int_equal(snug_optimizer_steps(h[0].optimizer), STEPS);
    train_model(&b, m, &d);
    compare_weights(&b, m, &h[0]);
    compare_weights(&b, m, &h[1]);
    snug_tensor_drop(arguments[0]);
    snug_tensor_drop(arguments[1]);
    snug_trace_drop(trace);
    snug_tensor_drop(x);
    snug_tensor_drop(y);
    end_hand(&h[0]);
    end_hand(&h[1]);
    snug_model_destroy(m);
    snug_recorder_destroy(b.r);
}

static void test_a_new_rate_needs_no_new_plan(void **state) {
    static const net n = {.input = {SNUG_F64, 1, {3}},
                          .layers = {{"Dense", "units=1", "\"units\": 1"}},
                          .loss = "mse",
                          .optimizer = "adam"};
    static data d;
    bench b = open_bench(state);
    hand h;
    snug_tensor *x, *y;
    snug_recorder_info info[2];
    snug_model *m = make_model(&b, &n, &d);
    expect_ok(snug_tensor_copy(b.r, &d.tx, d.x, &x, &b.err), &b.err);
    expect_ok(snug_tensor_copy(b.r, &d.ty, d.y, &y, &b.err), &b.err);
    make_hand(&b, &n, &h);
    snug_tensor_drop(forward(&b, &h, x, 0));
    find_variables(&h);
    for (int i = 0; i < 12; i++) {
        snug_optimizer_set_rate(h.optimizer, 0.1 / (i + 1));
        assert_true(snug_optimizer_rate(h.optimizer) == 0.1 / (i + 1));
        step(&b, &n, &h, x, y);
        expect_ok(snug_boundary(b.r, &b.err), &b.err);
        snug_recorder_tell(b.r, &info[i > 1]);
    }
    assert_int_equal(info[0].n_misses, info[1].n_misses);
    assert_int_equal(snug_optimizer_n_slots(h.optimizer), 4);
    assert_string_equal(snug_variable_name(snug_optimizer_slot(h.optimizer, 1)),
                        "adam/dense_kernel_velocity");
    snug_tensor_drop(x);
    snug_tensor_drop(y);
    end_hand(&h);
    snug_model_destroy(m);
    snug_recorder_destroy(b.r);
}

static double metric_after(bench *b, const char *name, snug_tensor *y_true, snug_tensor *y_pred,
                           int times) {
    snug_metric *m;
    double v;
    expect_ok(snug_metric_create(b->r, name, NULL, &m, &b->err), &b->err);
    for (int i = 0; i < times; i++)
        expect_ok(snug_metric_update(m, y_true, y_pred, NULL, &b->err), &b->err);
    expect_ok(snug_metric_result(m, &v, &b->err), &b->err);
    double none;
    expect_ok(snug_metric_reset(m, &b->err), &b->err);
    expect_ok(snug_metric_result(m, &none, &b->err), &b->err);
    assert_true(none == 0);
    snug_metric_destroy(m);
    return v;
}

static void test_metrics_add_up_over_batches(void **state) {
    bench b = open_bench(state);
    const float scores[8] = {0.1f, 0.9f, 0.8f, 0.2f, 0.4f, 0.6f, 0.7f, 0.3f};
    const int32_t classes[4] = {1, 0, 0, 0};
    const float column[4] = {0.9f, 0.2f, 0.6f, 0.4f}, truth[4] = {1, 0, 0, 1};
    snug_tensor *p, *c, *one, *t;
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_F32, 2, {4, 2}}, scores, &p, &b.err), &b.err);
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_I32, 1, {4}}, classes, &c, &b.err), &b.err);
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_F32, 2, {4, 1}}, column, &one, &b.err),
              &b.err);
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_F32, 2, {4, 1}}, truth, &t, &b.err), &b.err);
    assert_true(fabs(metric_after(&b, "accuracy", c, p, 3) - 0.75) < 1e-6);
    assert_true(fabs(metric_after(&b, "sparse_categorical_accuracy", c, p, 1) - 0.75) < 1e-6);
    assert_true(fabs(metric_after(&b, "accuracy", t, one, 2) - 0.5) < 1e-6);
    assert_true(fabs(metric_after(&b, "mean_absolute_error", t, one, 2) - 0.375) < 1e-6);
    assert_true(fabs(metric_after(&b, "precision", t, one, 1) - 0.5) < 1e-6);
    assert_true(fabs(metric_after(&b, "auc", t, one, 1) - 0.75) < 1e-2);
    snug_tensor *all[] = {p, c, one, t};
    for (size_t i = 0; i < 4; i++)
        snug_tensor_drop(all[i]);
    snug_recorder_destroy(b.r);
}

static void test_losses_are_of_examples_or_one_number(void **state) {
    bench b = open_bench(state);
    const float p[4] = {1, 2, 3, 5}, y[4] = {0, 2, 1, 1}, w[2] = {1, 3};
    snug_tensor *tp, *ty, *tw, *loss;
    float each[2], all;
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_F32, 2, {2, 2}}, p, &tp, &b.err), &b.err);
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_F32, 2, {2, 2}}, y, &ty, &b.err), &b.err);
    expect_ok(snug_tensor_copy(b.r, &(snug_type){SNUG_F32, 1, {2}}, w, &tw, &b.err), &b.err);
    expect_ok(snug_loss_call(b.r, "mse", ty, tp, NULL, 0, &loss, &b.err), &b.err);
    read_all(&b, loss, each, sizeof each);
    assert_true(each[0] == 0.5f && each[1] == 10);
    expect_ok(snug_loss_call(b.r, "mse", ty, tp, tw, 1, &loss, &b.err), &b.err);
    read_all(&b, loss, &all, sizeof all);
    assert_true(fabsf(all - (0.5f + 30) / 2) < 1e-5f);
    expect_status(snug_loss_call(b.r, "no_loss", ty, tp, NULL, 0, &loss, &b.err),
                  SNUG_E_UNSUPPORTED, &b.err);
    snug_tensor_drop(tp);
    snug_tensor_drop(ty);
    snug_tensor_drop(tw);
    snug_recorder_destroy(b.r);
}

static void test_unknown_layers_and_settings_are_refused(void **state) {
    bench b = open_bench(state);
    snug_layer *l;
    snug_optimizer *o;
    expect_status(snug_layer_create(b.r, "Dens", "{}", &l, &b.err), SNUG_E_UNSUPPORTED, &b.err);
    expect_status(snug_layer_create(b.r, "Dense", "{\"units\": 3, \"unit\": 4}", &l, &b.err),
                  SNUG_E_UNSUPPORTED, &b.err);
    expect_status(snug_layer_create(b.r, "Dense", "{\"units\"", &l, &b.err), SNUG_E_FORMAT, &b.err);
    expect_status(snug_optimizer_create(b.r, "adamm", &o, &b.err), SNUG_E_UNSUPPORTED, &b.err);
    snug_recorder_destroy(b.r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_dense_layers_train_by_hand_as_in_a_model),
        engine_test(test_convolutions_train_by_hand_as_in_a_model),
        engine_test(test_recurrent_layers_train_by_hand_as_in_a_model),
        engine_test(test_masks_go_from_layer_to_layer),
        engine_test(test_every_optimizer_trains_by_hand_as_in_a_model),
        engine_test(test_dropout_draws_anew_and_keeps_its_plan),
        engine_test(test_a_layer_with_a_seed_draws_on_from_any_place),
        engine_test(test_types_are_inferred_without_recording),
        engine_test(test_whole_numbers_are_cast_where_a_layer_needs_it),
        engine_test(test_a_frozen_batch_normalisation_keeps_its_statistics),
        engine_test(test_what_layers_add_to_the_loss_is_given_once),
        engine_test(test_a_traced_step_trains_like_a_plain_one),
        engine_test(test_a_new_rate_needs_no_new_plan),
        engine_test(test_metrics_add_up_over_batches),
        engine_test(test_losses_are_of_examples_or_one_number),
        engine_test(test_unknown_layers_and_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
