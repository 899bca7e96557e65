/* test_eager_golden.c: the layers of every Sequential model among the golden cases, made one by one
 * from their own configurations and applied by hand to recorded tensors, predict what the whole
 * model predicts. So every setting that a golden case has works on recorded tensors, too. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "support/support.h"
#include "tensor/type.h"

#include <snug/layer.h>
#include <snug/model.h>
#include <snug/train.h>

#define ROWS       3
#define MAX_LAYERS 40
#define MAX_VARS   200
#define MAX_BYTES  (1 << 20)

typedef struct {
    snug_engine *e;
    snug_recorder *r;
    snug_error err;
    const char *name;
    snug_model *model;
    snug_layer *layer[MAX_LAYERS];
    int n_layers;
    snug_variable *vars[MAX_VARS];
    int n_vars;
    snug_type type; /* of the input */
    void *input, *wanted;
    size_t n_wanted;
} subject;

static const char *class_of(const json_t *layer) {
    return json_string_value(json_object_get(layer, "class_name"));
}

static bool is_model(const char *cls) {
    return strcmp(cls, "Sequential") == 0 || strcmp(cls, "Functional") == 0;
}

/* Models of plain layers, without state between batches. */
static bool is_plain(json_t *root) {
    const char *cls = class_of(root);
    json_t *layers = json_object_get(json_object_get(root, "config"), "layers");
    if (!cls || strcmp(cls, "Sequential") != 0 || json_array_size(layers) > MAX_LAYERS)
        return false;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i), *config = json_object_get(layer, "config");
        const char *const inner = class_of(json_object_get(config, "layer"));
        if (is_model(class_of(layer)) || (inner && is_model(inner)) ||
            json_is_true(json_object_get(config, "stateful")))
            return false;
    }
    return true;
}

/* --- the model -------------------------------------------------------------------------------- */
static void fill_input(subject *s) {
    uint32_t seed = 5;
    for (int64_t i = 0; i < sn_type_count(&s->type); i++) {
        seed = seed * 1664525u + 1013904223u;
        const double v = (double)(seed >> 8) / (1 << 24);
        if (s->type.dtype == SNUG_F64)
            ((double *)s->input)[i] = 2 * v - 1;
        else
            ((int32_t *)s->input)[i] = v > 0.5;
    }
}

static snug_status keep_rows(void *ctx, int64_t first, const snug_view *view, snug_error *err) {
    subject *const s = ctx;
    (void)first, (void)err;
    assert_true(s->n_wanted + view->bytes <= MAX_BYTES);
    memcpy((char *)s->wanted + s->n_wanted, view->data, view->bytes);
    s->n_wanted += view->bytes;
    return SNUG_OK;
}

static void predict_model(subject *s) {
    snug_feed *x;
    expect_ok(snug_feed_from_memory(s->e, &s->type, s->input, NULL, NULL, &x, &s->err), &s->err);
    const snug_run_options o = {.x = x, .batch = ROWS};
    expect_ok(snug_predict(s->model, &o, keep_rows, s, &s->err), &s->err);
    snug_feed_destroy(x);
}

/* --- the layers by hand ----------------------------------------------------------------------- */
static void make_layers(subject *s, json_t *root) {
    json_t *const layers = json_object_get(json_object_get(root, "config"), "layers");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        if (strcmp(class_of(layer), "InputLayer") == 0)
            continue;
        char *const config = json_dumps(json_object_get(layer, "config"), 0);
        const snug_status status =
            snug_layer_create(s->r, class_of(layer), config, &s->layer[s->n_layers], &s->err);
        free(config);
        if (status != SNUG_OK)
            fail_msg("%s: %s", s->name, s->err.text);
        s->n_layers++;
    }
}

static void find_variables(subject *s) {
    snug_type at = s->type, next;
    int n;
    for (int i = 0; i < s->n_layers; i++) {
        if (snug_layer_infer(s->layer[i], &at, 1, &next, 1, &n, &s->err) != SNUG_OK)
            fail_msg("%s: %s", s->name, s->err.text);
        for (int k = 0; k < snug_layer_n_variables(s->layer[i]); k++)
            s->vars[s->n_vars++] = snug_layer_variable(s->layer[i], k);
        at = next;
    }
}

static void copy_weights(subject *s) {
    if (snug_model_n_weights(s->model) != (size_t)s->n_vars)
        fail_msg("%s: %d variables by hand, %zu in the model", s->name, s->n_vars,
                 snug_model_n_weights(s->model));
    for (int i = 0; i < s->n_vars; i++) {
        const char *name;
        snug_view v;
        snug_tensor *t;
        expect_ok(snug_model_weight(s->model, (size_t)i, &name, &v, &s->err), &s->err);
        expect_ok(snug_tensor_copy(s->r, &v.type, v.data, &t, &s->err), &s->err);
        expect_ok(snug_variable_assign(s->vars[i], t, &s->err), &s->err);
        snug_tensor_drop(t);
    }
}

static snug_tensor *apply_layers(subject *s) {
    snug_tensor *at, *mask = NULL;
    expect_ok(snug_tensor_copy(s->r, &s->type, s->input, &at, &s->err), &s->err);
    for (int i = 0; i < s->n_layers; i++) {
        snug_tensor *next, *next_mask;
        int n;
        const snug_layer_arguments a = {.inputs = &at, .n_inputs = 1, .masks = &mask};
        if (snug_layer_call(s->layer[i], &a, &next, 1, &n, &next_mask, &s->err) != SNUG_OK)
            fail_msg("%s: %s", s->name, s->err.text);
        snug_tensor_drop(at);
        snug_tensor_drop(mask);
        at = next;
        mask = next_mask;
    }
    snug_tensor_drop(mask);
    return at;
}

static void compare(subject *s, snug_tensor *out) {
    snug_view v;
    if (snug_tensor_pin(out, &v, &s->err) != SNUG_OK)
        fail_msg("%s: %s", s->name, s->err.text);
    assert_int_equal(v.bytes, s->n_wanted);
    const double *have = v.data, *want = s->wanted;
    for (size_t i = 0; i < v.bytes / sizeof *want; i++)
        if (!(fabs(have[i] - want[i]) <= 1e-10 * (1 + fabs(want[i]))) &&
            !(isnan(have[i]) && isnan(want[i])))
            fail_msg("%s[%zu]: %.17g by hand, %.17g by the model", s->name, i, have[i], want[i]);
    snug_tensor_unpin(out);
}

static void run_case(subject *s, json_t *root) {
    expect_ok(snug_recorder_create(s->e, &s->r, &s->err), &s->err);
    s->type = *snug_model_input(s->model);
    s->type.dims[0] = ROWS;
    s->n_wanted = 0;
    s->n_layers = s->n_vars = 0;
    fill_input(s);
    predict_model(s);
    make_layers(s, root);
    find_variables(s);
    copy_weights(s);
    snug_tensor *const out = apply_layers(s);
    compare(s, out);
    snug_tensor_drop(out);
    for (int i = 0; i < s->n_layers; i++)
        snug_layer_destroy(s->layer[i]);
    snug_recorder_destroy(s->r);
}

/* Cases by name, of f64; every `of`-th from `first` on. */
static void run_cases(snug_engine *e, int first, int of) {
    subject s = {.e = e, .input = malloc(MAX_BYTES), .wanted = malloc(MAX_BYTES)};
    struct dirent **names;
    int seen = 0, ran = 0;
    assert_non_null(s.input);
    assert_non_null(s.wanted);
    const int n = scandir(SNUG_TEST_DATA "/golden", &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(names[i]->d_name);
        char path[600];
        snprintf(path, sizeof path, "%s/golden/%s/model.json", SNUG_TEST_DATA, names[i]->d_name);
        s.name = names[i]->d_name;
        json_t *root = length > 4 && strcmp(s.name + length - 4, "_f64") == 0
                           ? json_load_file(path, 0, NULL)
                           : NULL;
        if (root && is_plain(root) && seen++ % of == first &&
            snug_model_load(e, path, &s.model, &s.err) == SNUG_OK) {
            run_case(&s, root);
            snug_model_destroy(s.model);
            ran++;
        }
        json_decref(root);
        free(names[i]);
    }
    free(names);
    free(s.input);
    free(s.wanted);
    assert_true(ran > 50);
}

static void test_layers_by_hand_predict_as_models_do_1(void **state) {
    run_cases(*state, 0, 3);
}
static void test_layers_by_hand_predict_as_models_do_2(void **state) {
    run_cases(*state, 1, 3);
}
static void test_layers_by_hand_predict_as_models_do_3(void **state) {
    run_cases(*state, 2, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_layers_by_hand_predict_as_models_do_1),
        engine_test(test_layers_by_hand_predict_as_models_do_2),
        engine_test(test_layers_by_hand_predict_as_models_do_3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
