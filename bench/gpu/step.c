/* step.c: milliseconds of one training step of a model file on the GPU, for bench/gpu/table.py. The
 * batch is a recipe, which the device makes itself; the step ends when its loss is known.
 *
 *     bench_gpu_step MODEL.json BATCH LOSS STEPS [BUDGET [PLUGIN]]
 *         ->  {"ms": median, "device_mib": context and memory there, "arena_mib": .., "slices": ..}
 *
 * BUDGET is the device's, "4GiB"; "0": what is free. */
#include <snug/device.h>
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST_STEPS = 1000, WARM_UP = 4 };

typedef struct {
    double at[MOST_STEPS];
    int n;
} marks;

static snug_status mark(void *ctx, const snug_progress *p, snug_error *err) {
    marks *m = ctx;
    struct timespec t;
    (void)p, (void)err;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (m->n < MOST_STEPS)
        m->at[m->n++] = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    return SNUG_OK;
}

static int up(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(marks *m) {
    int n = 0;
    for (int i = WARM_UP; i < m->n; i++, n++)
        m->at[n] = m->at[i] - m->at[i - 1];
    qsort(m->at, (size_t)n, sizeof m->at[0], up);
    return n > 0 ? m->at[n / 2] : 0;
}

/* Numbers, or labels below `classes`; `n` steps' rows are the same ones again. */
static snug_status open_batch(snug_engine *e, const snug_type *type, int64_t rows, int64_t classes,
                              snug_feed **out, snug_error *err) {
    const int labels = type->dtype == SNUG_I32 || type->dtype == SNUG_I64;
    char recipe[160];
    int n =
        snprintf(recipe, sizeof recipe, "%s:%lld", labels ? "labels" : "normal", (long long)rows);
    for (int i = 1; i < type->rank; i++)
        n += snprintf(recipe + n, sizeof recipe - (size_t)n, "x%lld", (long long)type->dims[i]);
    n += snprintf(recipe + n, sizeof recipe - (size_t)n, "@1");
    if (labels)
        snprintf(recipe + n, sizeof recipe - (size_t)n, "@%lld", (long long)classes);
    return snug_feed_open(e, recipe, out, err);
}

/* One epoch is one step. */
static snug_status train(snug_model *m, int64_t batch, int steps, marks *out, snug_error *err) {
    const snug_callback callback = {.on_step_end = mark, .ctx = out};
    snug_fit_options o = {
        .epochs = steps + WARM_UP, .batch = batch, .callbacks = &callback, .n_callbacks = 1};
    const snug_type *y = snug_model_output(m);
    const int64_t classes = y->dims[y->rank - 1];
    snug_engine *e = snug_model_engine(m);
    snug_type target;
    snug_fit_result result;
    snug_model_target(m, &target);
    snug_status status = open_batch(e, snug_model_input(m), batch, classes, &o.x, err);
    if (status == SNUG_OK)
        status = open_batch(e, &target, batch, classes, &o.y, err);
    if (status == SNUG_OK)
        status = snug_fit(m, &o, &result, err);
    snug_feed_destroy(o.y);
    snug_feed_destroy(o.x);
    return status;
}

static snug_status run(snug_engine *e, int argc, char **argv, snug_error *err) {
    static marks m;
    const snug_compile compile = {.optimizer = "adam", .loss = argv[3], .metrics = ""};
    snug_device_options o = {.plugin = argc > 6 ? argv[6] : NULL};
    snug_plan_request request = {.batch = atoll(argv[2]), .train = 1};
    snug_model_plan_info plan;
    snug_device_info device;
    struct rusage usage;
    snug_model *model = NULL;
    snug_status status = SNUG_OK;
    if (argc > 5 && strcmp(argv[5], "0") != 0)
        status = snug_bytes_parse(argv[5], &o.budget_bytes, err);
    if (status == SNUG_OK)
        status = snug_device(e, "gpu", &o, err);
    if (status == SNUG_OK)
        status = snug_model_load(e, argv[1], &model, err);
    if (status == SNUG_OK)
        status = snug_model_compile(model, &compile, err);
    if (status == SNUG_OK)
        status = snug_model_plan(model, &request, &plan, err);
    if (status == SNUG_OK)
        status = train(model, request.batch, atoi(argv[4]), &m, err);
    if (status == SNUG_OK)
        status = snug_device_look(e, &device, err);
    if (status == SNUG_OK) {
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"ms\": %.4f, \"device_mib\": %zu, \"arena_mib\": %zu, \"slices\": %lld, "
               "\"recomputed\": %zu, \"expected_ms\": %.4f, \"host_mib\": %ld}\n",
               median(&m), (device.context_bytes + device.held_bytes) >> 20, plan.arena_bytes >> 20,
               (long long)plan.slices, plan.recomputed, plan.step_seconds * 1e3,
               usage.ru_maxrss >> 10);
    }
    snug_model_destroy(model);
    return status;
}

int main(int argc, char **argv) {
    snug_error err;
    snug_engine *e;
    if (argc < 5) {
        fprintf(stderr, "usage: bench_gpu_step MODEL.json BATCH LOSS STEPS [BUDGET [PLUGIN]]\n");
        return 2;
    }
    snug_status status = snug_engine_create(NULL, &e, &err);
    if (status == SNUG_OK) {
        status = run(e, argc, argv, &err);
        snug_engine_destroy(e);
    }
    if (status != SNUG_OK)
        fprintf(stderr, "%s\n", err.text);
    return status == SNUG_OK ? 0 : 1;
}
