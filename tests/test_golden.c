/* test_golden.c: Snug follows Keras. Each folder of tests/golden holds a compiled model and what Keras 3 on TensorFlow
 * 2.21 did with it (record.py): from the same weights the same losses, weights, predictions and metrics must come out.
 *
 * Tolerances, relative to the largest magnitude of the tensor: f32 1e-5 for the first three steps, 1e-3 at step 20; f64
 * 1e-9 throughout; under a policy of halves, and of at least 0.25, HALF_STEPS steps of that type, whose size its bits say, as Keras rounds
 * between operations that are one here, and the other way round.
 *
 * SNUG_TEST_DEVICE=gpu runs them on a GPU; arguments name cases to run; SNUG_TEST_GOLDEN is the folder
 * on a machine that did not build this. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/safetensors.h"
#include "support/support.h"
#include "tensor/feed.h"

#include <dirent.h>
#include <math.h>
#include <snug/device.h>
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, MAX_CASES = 2048, HALF_STEPS = 5 };

typedef struct {
    char name[64];
    bool f64;
    double half; /* the distance from 1 to the next number of a half type, or 0 */
    snug_engine *engine;
    snug_model *model;
    sn_safetensors *file;
} golden;

static const char *cases_folder(void) {
    const char *other = getenv("SNUG_TEST_GOLDEN");
    return other ? other : SNUG_TEST_DATA "/golden";
}

/* A tensor of the case, converted to f64 (or i32 for integers); the caller frees data. */
static snug_view load(golden *g, const char *name) {
    snug_error err;
    const sn_st_entry *t;
    snug_view v = {NULL, 0, {0}};
    expect_ok(sn_safetensors_find(g->file, name, &t, &err), &err);
    v.type = t->type;
    v.type.dtype = sn_dtype_is_int(t->type.dtype) ? SNUG_I32 : SNUG_F64;
    expect_ok(snug_type_bytes(&v.type, &v.bytes, &err), &err);
    v.data = malloc(v.bytes + 1);
    expect_ok(sn_safetensors_read(g->file, t, &v, &err), &err);
    return v;
}

static double tolerance(const golden *g, int64_t step) {
    if (g->half > 0)
        return HALF_STEPS * g->half;
    return g->f64 ? 1e-9 : step < 3 ? 1e-5 : 1e-3;
}

static void compare(const golden *g, const char *what, const double *have, const double *want,
                    int64_t n, double tol) {
    double scale = g->half > 0 ? 0.25 : 1e-3; /* sums cancel: they have their terms' errors */
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(have[i] - want[i]) <= tol * scale))
            fail_msg("%s: %s[%lld] is %.12g, Keras has %.12g (tolerance %.1e of %.3g)", g->name,
                     what, (long long)i, have[i], want[i], tol, scale);
}

static double *as_double(const snug_view *v) {
    snug_error err;
    const int64_t n = sn_type_count(&v->type);
    double *out = malloc((size_t)n * sizeof(double) + 1);
    expect_ok(sn_convert(v->type.dtype, v->data, SNUG_F64, out, (size_t)n, &err), &err);
    return out;
}

static void set_weights(golden *g) {
    snug_error err;
    for (size_t i = 0; i < snug_model_n_weights(g->model); i++) {
        const char *name;
        char full[160];
        const sn_st_entry *t;
        snug_view v;
        expect_ok(snug_model_weight(g->model, i, &name, &v, &err), &err);
        snprintf(full, sizeof full, "before/%s", name);
        expect_ok(sn_safetensors_find(g->file, full, &t, &err), &err);
        assert_string_equal(t->name, full); /* no short form: Keras' names are ours */
        expect_ok(sn_safetensors_read(g->file, t, &v, &err), &err);
    }
}

static void compare_weights(golden *g, double tol) {
    snug_error err;
    for (size_t i = 0; i < snug_model_n_weights(g->model); i++) {
        const char *name;
        char full[160];
        snug_view v;
        expect_ok(snug_model_weight(g->model, i, &name, &v, &err), &err);
        snprintf(full, sizeof full, "after/%s", name);
        snug_view want = load(g, full);
        double *have = as_double(&v);
        compare(g, full, have, want.data, sn_type_count(&want.type), tol);
        free(have);
        free(want.data);
    }
}

/* Rows [first, first + n) of a loaded tensor as a feed. */
static snug_feed *rows_of(golden *g, const snug_view *v, int64_t first, int64_t n) {
    snug_error err;
    snug_feed *feed = NULL;
    snug_type type = v->type;
    const size_t row = v->type.dims[0] ? v->bytes / (size_t)v->type.dims[0] : 0;
    type.dims[0] = n;
    expect_ok(snug_feed_from_memory(g->engine, &type, (char *)v->data + row * (size_t)first, NULL,
                                    NULL, &feed, &err),
              &err);
    return feed;
}

/* --- data of any number of ends ------------------------------------------------------------------------------------ */
enum { MAX_ENDS = 4 };
typedef struct {
    snug_view v[MAX_ENDS];
    int n;
} views;
typedef struct {
    views x, y, w;
    char class_weight[200];
} all_data;
typedef struct {
    snug_feed *x[MAX_ENDS], *y[MAX_ENDS], *w[MAX_ENDS];
    snug_data data;
} all_feeds;

static bool has(golden *g, const char *name) {
    for (size_t i = 0; i < sn_safetensors_count(g->file); i++)
        if (strcmp(sn_safetensors_at(g->file, i)->name, name) == 0)
            return true;
    return false;
}

/* "x", or "x_0", "x_1", ... */
static views load_all(golden *g, const char *name) {
    views all = {.n = 0};
    char full[32];
    if (has(g, name))
        all.v[all.n++] = load(g, name);
    for (int i = 0; i < MAX_ENDS; i++) {
        snprintf(full, sizeof full, "%s_%d", name, i);
        if (has(g, full))
            all.v[all.n++] = load(g, full);
    }
    return all;
}

static void free_all(views *all) {
    for (int i = 0; i < all->n; i++)
        free(all->v[i].data);
}

/* "0=0.5,2=3.5" from rows of a label and its weight. */
static void load_class_weight(golden *g, all_data *d) {
    size_t n = 0;
    if (!has(g, "class_weight"))
        return;
    snug_view v = load(g, "class_weight");
    for (int64_t i = 0; i < v.type.dims[0]; i++)
        n += (size_t)snprintf(d->class_weight + n, sizeof d->class_weight - n, "%s%g=%.17g",
                              i ? "," : "", ((double *)v.data)[2 * i],
                              ((double *)v.data)[2 * i + 1]);
    free(v.data);
}

static all_feeds feeds_of(golden *g, const all_data *d, int64_t first, int64_t n) {
    all_feeds f = {.data = {.n_x = d->x.n, .n_y = d->y.n, .n_sample_weights = d->w.n}};
    for (int i = 0; i < d->x.n; i++)
        f.x[i] = rows_of(g, &d->x.v[i], first, n);
    for (int i = 0; i < d->y.n; i++)
        f.y[i] = rows_of(g, &d->y.v[i], first, n);
    for (int i = 0; i < d->w.n; i++)
        f.w[i] = rows_of(g, &d->w.v[i], first, n);
    return f;
}

/* Where the feeds lie now. */
static const snug_data *point(all_feeds *f) {
    f->data.x = f->x;
    f->data.y = f->y;
    f->data.sample_weight = f->w;
    return &f->data;
}

static void free_feeds(all_feeds *f) {
    for (int i = 0; i < MAX_ENDS; i++) {
        snug_feed_destroy(f->w[i]);
        snug_feed_destroy(f->y[i]);
        snug_feed_destroy(f->x[i]);
    }
}

/* --- what Keras did ------------------------------------------------------------------------------------------------- */
static void train_steps(golden *g, const all_data *d) {
    snug_view losses = load(g, "losses");
    const int64_t n_batches = d->x.v[0].type.dims[0] / BATCH;
    for (int64_t t = 0; t < losses.type.dims[0]; t++) {
        snug_error err;
        char what[48];
        snug_fit_result result;
        all_feeds f = feeds_of(g, d, t % n_batches * BATCH, BATCH);
        snug_fit_options o = {.epochs = 1, .batch = BATCH, .data = point(&f)};
        o.class_weight = d->class_weight[0] ? d->class_weight : NULL;
        expect_ok(snug_fit(g->model, &o, &result, &err), &err);
        snprintf(what, sizeof what, "loss at step %lld", (long long)t);
        compare(g, what, result.values, (double *)losses.data + t, 1, tolerance(g, t));
        free_feeds(&f);
    }
    compare_weights(g, tolerance(g, losses.type.dims[0] - 1));
    free(losses.data);
}

typedef struct {
    double *out[MAX_ENDS];
    int64_t n[MAX_ENDS];
} collected;

static snug_status collect(void *ctx, int output, int64_t first_row, const snug_view *view,
                           snug_error *err) {
    collected *c = ctx;
    (void)err;
    (void)first_row;
    double *part = as_double(view);
    const int64_t n = sn_type_count(&view->type);
    memcpy(c->out[output] + c->n[output], part, (size_t)n * sizeof(double));
    c->n[output] += n;
    free(part);
    return SNUG_OK;
}

static void check_predictions(golden *g, const all_data *d, double tol) {
    snug_error err;
    views want = load_all(g, "pred");
    collected c = {.n = {0}};
    assert_int_equal(want.n, snug_model_n_outputs(g->model));
    for (int i = 0; i < want.n; i++)
        c.out[i] = malloc((size_t)sn_type_count(&want.v[i].type) * sizeof(double) + 1);
    all_feeds f = feeds_of(g, d, 0, BATCH);
    snug_run_options o = {.data = point(&f), .batch = BATCH};
    expect_ok(snug_predict_outputs(g->model, &o, collect, &c, &err), &err);
    for (int i = 0; i < want.n; i++) {
        assert_int_equal(c.n[i], sn_type_count(&want.v[i].type));
        compare(g, "pred", c.out[i], want.v[i].data, c.n[i], tol);
        free(c.out[i]);
    }
    free_feeds(&f);
    free_all(&want);
}

/* Values by name where Keras gave them so; else in its order. Each on its own scale. */
static void check_evaluation(golden *g, const all_data *d, double tol) {
    snug_error err;
    const bool named = !has(g, "evaluated");
    double values[1 + SNUG_MAX_METRICS];
    int n = 0;
    all_feeds f = feeds_of(g, d, 0, d->x.v[0].type.dims[0]);
    snug_run_options o = {.data = point(&f), .batch = BATCH};
    expect_ok(snug_evaluate(g->model, &o, values, &n, &err), &err);
    for (int i = 0; i < n; i++) {
        const char *name = i ? snug_model_metric_name(g->model, (size_t)i - 1) : "loss";
        char full[128];
        snprintf(full, sizeof full, named ? "evaluated/%s" : "evaluated", name);
        snug_view want = load(g, full);
        if (!named)
            assert_int_equal(n, want.type.dims[0]);
        compare(g, full, values + i, (double *)want.data + (named ? 0 : i), 1,
                tol < 1e-6 ? 1e-6 : tol);
        free(want.data);
    }
    free_feeds(&f);
}

static void follows_keras(void **state) {
    snug_error err;
    golden g = {.engine = NULL};
    char path[512];
    snprintf(g.name, sizeof g.name, "%s", (const char *)*state);
    g.f64 = strstr(g.name, "_f64") != NULL;
    g.half = strstr(g.name, "_bf16") ? 0x1p-7 : strstr(g.name, "_f16") ? 0x1p-10 : 0;
    expect_ok(snug_engine_create(NULL, &g.engine, &err), &err);
    const char *device = getenv("SNUG_TEST_DEVICE");
    if (device)
        expect_ok(snug_device(g.engine, device, &(snug_device_options){.exact = 1}, &err), &err);
    snprintf(path, sizeof path, "%s/%s/model.json", cases_folder(), g.name);
    expect_ok(snug_model_load(g.engine, path, &g.model, &err), &err);
    snprintf(path, sizeof path, "%s/%s/case.safetensors", cases_folder(), g.name);
    expect_ok(sn_safetensors_open(g.engine, path, 0, &g.file, &err), &err);
    set_weights(&g);
    all_data d = {load_all(&g, "x"), load_all(&g, "y"), load_all(&g, "w"), ""};
    load_class_weight(&g, &d);
    snug_view losses = load(&g, "losses");
    const double tol = tolerance(&g, losses.type.dims[0] - 1);
    train_steps(&g, &d);
    check_predictions(&g, &d, tol);
    check_evaluation(&g, &d, tol);
    free(losses.data);
    free_all(&d.w);
    free_all(&d.y);
    free_all(&d.x);
    sn_safetensors_close(g.file);
    snug_model_destroy(g.model);
    expect_ok(snug_device(g.engine, "cpu", NULL, &err), &err);
    assert_int_equal(snug_engine_bytes(g.engine), 0);
    snug_engine_destroy(g.engine);
}

static int is_case(const struct dirent *d) {
    static const char *const ends[] = {"_f32", "_f64", "_bf16", "_f16"};
    bool found = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        found = found || strstr(d->d_name, ends[i]);
    return found;
}

static bool is_wanted(const char *name, int n, char **wanted) {
    bool found = n == 0;
    for (int i = 0; i < n && !found; i++)
        found = strcmp(name, wanted[i]) == 0;
    return found;
}

int main(int argc, char **argv) {
    struct dirent **names;
    struct CMUnitTest tests[MAX_CASES];
    size_t n_tests = 0;
    const int n = scandir(cases_folder(), &names, is_case, alphasort);
    if (n < 40 || n > MAX_CASES) {
        fprintf(stderr, "expected at least 40 golden cases, found %d\n", n);
        return 1;
    }
    for (int i = 0; i < n; i++)
        if (is_wanted(names[i]->d_name, argc - 1, argv + 1))
            tests[n_tests++] =
                (struct CMUnitTest){names[i]->d_name, follows_keras, NULL, NULL, names[i]->d_name};
    const int failed =
        n_tests > 0 ? _cmocka_run_group_tests("golden", tests, n_tests, NULL, NULL) : 1;
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return failed;
}
