/* test_eager_layers.c: layers, losses and optimizers on recorded tensors do what whole models do:
 * the same net, trained a few steps by hand with a tape, has the same weights in f64; and what only
 * eager code can do: infer, freeze, trace, run out of memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eager/layer.h"
#include "support/support.h"

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

typedef struct {
    snug_engine *e;
    snug_recorder *r;
    snug_error err;
} bench;

static bench open_bench(void **state) {
    bench b = {.e = *state};
    expect_ok(snug_recorder_create(b.e, &b.r, &b.err), &b.err);
    return b;
}

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
        expect_ok(
            snug_layer_create(b->r, n->layers[h->n].cls, json, &h->layer[h->n], &b->err), &b->err);
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
    train_both(state, &(net){.input = {SNUG_I32, 1, {5}},
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
        "adam:learning_rate=exponential_decay(initial_learning_rate=0.1,decay_steps=1,decay_rate="
        "0.5)",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        train_both(state, &(net){.input = {SNUG_F64, 1, {3}},
                                 .layers = {{"Dense", "units=2 activation=tanh",
                                             "\"units\": 2, \"activation\": \"tanh\""},
                                            {"Dense", "units=1", "\"units\": 1"}},
                                 .loss = "mse",
                                 .optimizer = all[i]});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_dense_layers_train_by_hand_as_in_a_model),
        engine_test(test_convolutions_train_by_hand_as_in_a_model),
        engine_test(test_recurrent_layers_train_by_hand_as_in_a_model),
        engine_test(test_masks_go_from_layer_to_layer),
        engine_test(test_every_optimizer_trains_by_hand_as_in_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
