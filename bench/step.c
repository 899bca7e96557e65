/* step.c: milliseconds of one training step, for bench/run.py. Data are one batch in memory; the
 * step includes bringing it into the arena.
 *
 *     bench_step mlp|conv STEPS     ->  {"ms": median, "peak_kib": VmHWM}
 */
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_STEPS = 10000, WARM_UP = 3 };

typedef struct {
    const char *name;
    int64_t batch;
    snug_type input;
    int64_t outputs;
    const char *layers[4][2];
} bench_case;

static const bench_case cases[] = {
    {"mlp",
     20000,
     {SNUG_F32, 1, {100}},
     10,
     {{"Dense", "units=64 activation=relu"}, {"Dense", "units=10"}}},
    {"conv",
     32,
     {SNUG_F32, 3, {128, 128, 3}},
     10,
     {{"Conv2D", "filters=32 kernel_size=3,3 activation=relu"},
      {"MaxPooling2D", ""},
      {"Flatten", ""},
      {"Dense", "units=10"}}},
};

typedef struct {
    double ends[MAX_STEPS];
    int n;
} clock_marks;

static snug_status mark(void *ctx, const snug_progress *p, snug_error *err) {
    clock_marks *m = ctx;
    struct timespec t;
    (void)p;
    (void)err;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (m->n < MAX_STEPS)
        m->ends[m->n++] = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    return SNUG_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_step(const clock_marks *m) {
    static double steps[MAX_STEPS];
    int n = 0;
    for (int i = WARM_UP; i < m->n; i++)
        steps[n++] = m->ends[i] - m->ends[i - 1];
    qsort(steps, (size_t)n, sizeof *steps, by_value);
    return n ? steps[n / 2] : 0;
}

/* A batch of normal numbers in memory. */
static snug_status batch_in_memory(snug_engine *e, const char *recipe, snug_feed **out,
                                   snug_error *err) {
    snug_feed *source;
    snug_view v;
    snug_status status = snug_feed_open(e, recipe, &source, err);
    if (status != SNUG_OK)
        return status;
    v.type = *snug_feed_type(source);
    status = snug_type_bytes(&v.type, &v.bytes, err);
    v.data = malloc(v.bytes);
    if (status == SNUG_OK)
        status = snug_feed_fill(source, 0, v.type.dims[0], &v, err);
    snug_feed_destroy(source);
    if (status == SNUG_OK)
        status = snug_feed_from_memory(e, &v.type, v.data, free, v.data, out, err);
    return status;
}

static snug_status build(snug_engine *e, const bench_case *c, snug_model **out, snug_error *err) {
    const snug_compile compile = {"adam", "mse", ""};
    snug_status status = snug_model_create(e, c->name, &c->input, out, err);
    for (int i = 0; i < 4 && status == SNUG_OK && c->layers[i][0]; i++)
        status = snug_model_add(*out, c->layers[i][0], c->layers[i][1], err);
    return status == SNUG_OK ? snug_model_compile(*out, &compile, err) : status;
}

static snug_status run(const bench_case *c, int steps, double *ms, snug_error *err) {
    static clock_marks marks;
    snug_engine *e;
    snug_model *m = NULL;
    char x[96], y[96];
    int n = snprintf(x, sizeof x, "normal:%lld", (long long)c->batch);
    for (int i = 0; i < c->input.rank; i++)
        n += snprintf(x + n, sizeof x - (size_t)n, "x%lld", (long long)c->input.dims[i]);
    snprintf(x + n, sizeof x - (size_t)n, "@1");
    snprintf(y, sizeof y, "normal:%lldx%lld@2", (long long)c->batch, (long long)c->outputs);
    snug_status status = snug_engine_create(NULL, &e, err);
    if (status != SNUG_OK)
        return status;
    const snug_callback callback = {.ctx = &marks, .on_step_end = mark};
    snug_fit_options o = {
        .epochs = steps + WARM_UP, .batch = c->batch, .callbacks = &callback, .n_callbacks = 1};
    snug_fit_result result;
    status = batch_in_memory(e, x, &o.x, err);
    if (status == SNUG_OK)
        status = batch_in_memory(e, y, &o.y, err);
    if (status == SNUG_OK)
        status = build(e, c, &m, err);
    if (status == SNUG_OK)
        status = snug_fit(m, &o, &result, err);
    *ms = median_step(&marks);
    snug_model_destroy(m);
    snug_feed_destroy(o.y);
    snug_feed_destroy(o.x);
    snug_engine_destroy(e);
    return status;
}

int main(int argc, char **argv) {
    snug_error err;
    struct rusage usage;
    double ms = 0;
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]))
            continue;
        if (run(&cases[i], atoi(argv[2]), &ms, &err) != SNUG_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"ms\": %.4f, \"peak_kib\": %ld}\n", ms, usage.ru_maxrss);
        return 0;
    }
    fprintf(stderr, "usage: bench_step mlp|conv STEPS\n");
    return 2;
}
