/* step.c: milliseconds of one training step or one prediction of a model file, for bench/run.py and
 * bench/budget.py. Data are one batch in memory, which a step reads there where it can, or copies.
 *
 *     bench_step train|fit|predict MODEL.json BATCH LOSS STEPS [BUDGET [DEVICE [PRECISION]]]
 *         ->  {"ms": median, "least_ms": ..., "least_cpu_ms": of all threads, "peak_kib": VmHWM,
 *              "gflops": ...}
 *
 * BUDGET is bytes of the whole process, "512MiB", or part of the transient arena, "25%": about the
 * largest budget whose plan has an arena of that part; then data are computed where they are
 * needed. "0": none, and data in memory. With either the line says what the plan promised, too.
 * DEVICE is "cpu", "gpu" or "gpu:1"; of a GPU BUDGET is that of its memory, in bytes, and the line
 * has "device_mib", all that the process has there. PRECISION is what snug_compile takes.
 * fit: a training step where each has a batch of its own, all in memory (which makes no difference
 * but on a GPU: train has one there that it makes itself). */
#include <snug/device.h>
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_STEPS = 10000 };

/* Steps that are not counted; one where a step takes minutes. */
static int warm_up(int steps) {
    return steps < 3 ? 1 : 3;
}

typedef struct {
    double ends[MAX_STEPS], cpu_ends[MAX_STEPS]; /* the second: of all threads */
    int n;
} clock_marks;

static clock_marks marks;

static double now_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void mark_now(void) {
    if (marks.n == MAX_STEPS)
        return;
    marks.ends[marks.n] = now_ms(CLOCK_MONOTONIC);
    marks.cpu_ends[marks.n++] = now_ms(CLOCK_PROCESS_CPUTIME_ID);
}

static snug_status mark_step(void *ctx, const snug_progress *p, snug_error *err) {
    (void)ctx;
    (void)p;
    (void)err;
    mark_now();
    return SNUG_OK;
}

static snug_status mark_rows(void *ctx, int64_t first, const snug_view *view, snug_error *err) {
    (void)ctx;
    (void)first;
    (void)view;
    (void)err;
    mark_now();
    return SNUG_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_step(const double *ends, int steps_wanted, double *least) {
    static double steps[MAX_STEPS];
    int n = 0;
    for (int i = warm_up(steps_wanted); i < marks.n; i++)
        steps[n++] = ends[i] - ends[i - 1];
    qsort(steps, (size_t)n, sizeof *steps, by_value);
    *least = n ? steps[0] : 0;
    return n ? steps[n / 2] : 0;
}

/* What a batch of this type holds: `numbers`, or labels below `classes`. */
static snug_status open_recipe(snug_engine *e, const char *numbers, const snug_type *type,
                               int64_t rows, int64_t classes, snug_feed **out, snug_error *err) {
    const int labels = type->dtype == SNUG_I32 || type->dtype == SNUG_I64;
    char recipe[160];
    int n =
        snprintf(recipe, sizeof recipe, "%s:%lld", labels ? "labels" : numbers, (long long)rows);
    for (int i = 1; i < type->rank; i++)
        n += snprintf(recipe + n, sizeof recipe - (size_t)n, "x%lld", (long long)type->dims[i]);
    if (labels)
        snprintf(recipe + n, sizeof recipe - (size_t)n, "@1@%lld", (long long)classes);
    else
        snprintf(recipe + n, sizeof recipe - (size_t)n, "@1");
    return snug_feed_open(e, recipe, out, err);
}

static int is_on_gpu(snug_engine *e) {
    snug_device_info d;
    return snug_device_look(e, &d, NULL) == SNUG_OK && strncmp(d.name, "gpu", 3) == 0;
}

static snug_status open_rows(snug_engine *e, const char *numbers, const snug_type *type,
                             int64_t rows, int64_t classes, snug_feed **out, snug_error *err) {
    snug_feed *source;
    snug_view v;
    snug_status status = open_recipe(e, numbers, type, rows, classes, &source, err);
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

/* A batch of this type in memory; under a budget, which it would not fit, one that costs little to
 * compute. */
static snug_status open_batch(snug_engine *e, const snug_type *type, int64_t rows, int64_t classes,
                              snug_feed **out, snug_error *err) {
    if (snug_budget_bytes(e) > 0)
        return open_recipe(e, "constant", type, rows, classes, out, err);
    if (is_on_gpu(e)) /* which makes them itself */
        return open_recipe(e, "normal", type, rows, classes, out, err);
    return open_rows(e, "normal", type, rows, classes, out, err);
}

static snug_status open_all(snug_engine *e, const snug_type *type, int64_t rows, int64_t classes,
                            snug_feed **out, snug_error *err) {
    return open_rows(e, "constant", type, rows, classes, out, err);
}

/* One epoch is one step; or all of them are one, each with rows of its own. */
static snug_status train(snug_model *m, int64_t batch, int steps, int own_rows, snug_error *err) {
    snug_engine *const e = snug_model_engine(m);
    const snug_callback callback = {.on_step_end = mark_step};
    const int n = steps + warm_up(steps);
    const int64_t rows = own_rows ? n * batch : batch;
    snug_status (*const open)(snug_engine *, const snug_type *, int64_t, int64_t, snug_feed **,
                              snug_error *) = own_rows ? open_all : open_batch;
    snug_fit_options o = {
        .epochs = own_rows ? 1 : n, .batch = batch, .callbacks = &callback, .n_callbacks = 1};
    const snug_type *out = snug_model_output(m);
    const int64_t classes = out->dims[out->rank - 1];
    snug_type target;
    snug_fit_result result;
    snug_model_target(m, &target);
    snug_status status = open(e, snug_model_input(m), rows, classes, &o.x, err);
    if (status == SNUG_OK)
        status = open(e, &target, rows, classes, &o.y, err);
    if (status == SNUG_OK)
        status = snug_fit(m, &o, &result, err);
    snug_feed_destroy(o.y);
    snug_feed_destroy(o.x);
    return status;
}

static snug_status predict(snug_model *m, int64_t batch, int steps, snug_error *err) {
    snug_run_options o = {.batch = batch};
    snug_status status = open_batch(snug_model_engine(m), snug_model_input(m), batch, 2, &o.x, err);
    for (int i = 0; i < steps + warm_up(steps) && status == SNUG_OK; i++)
        status = snug_predict(m, &o, mark_rows, NULL, err);
    snug_feed_destroy(o.x);
    return status;
}

static snug_status plan_within(snug_model *m, const snug_plan_request *request, size_t budget,
                               snug_model_plan_info *info, snug_error *err) {
    const snug_status status = snug_budget(snug_model_engine(m), budget, err);
    return status == SNUG_OK ? snug_model_plan(m, request, info, err) : status;
}

/* The plan of the largest budget that gives the arena no more than this part of the one in *info;
 * found by halving, to 1 % of that. */
static snug_status plan_part(snug_model *m, const snug_plan_request *request, double part,
                             snug_model_plan_info *info, snug_error *err) {
    const size_t most = (size_t)(part * (double)info->arena_bytes);
    size_t high = info->peak_bytes + info->reserve_bytes, low = high - info->arena_bytes + most;
    snug_status status = SNUG_OK;
    for (int i = 0; i < 7 && status == SNUG_OK; i++) {
        const size_t middle = low + (high - low) / 2;
        status = plan_within(m, request, middle, info, err);
        *(info->fits && info->arena_bytes > most ? &high : &low) = middle;
    }
    return status == SNUG_OK ? plan_within(m, request, low, info, err) : status;
}

/* Plans the step; with a budget (text, or NULL) again, for a part is one of the plan without. */
static snug_status plan(snug_model *m, snug_plan_request request, const char *budget,
                        snug_model_plan_info *info, snug_error *err) {
    size_t bytes;
    snug_status status = snug_model_plan(m, &request, info, err);
    if (status != SNUG_OK || !budget || is_on_gpu(snug_model_engine(m)))
        return status;
    if (strchr(budget, '%'))
        return plan_part(m, &request, atof(budget) / 100, info, err);
    status = snug_bytes_parse(budget, &bytes, err);
    return status == SNUG_OK ? plan_within(m, &request, bytes, info, err) : status;
}

static void print_plan(const snug_model_plan_info *i) {
    printf("\"fits\": %d, \"budget_bytes\": %zu, \"floor_bytes\": %zu, \"arena_bytes\": %zu, "
           "\"plain_arena_bytes\": %zu, \"state_bytes\": %zu, \"slices\": %lld, \"recomputed\": "
           "%zu, \"spilled_bytes\": %zu, \"expected_ms\": %.4f, \"plain_expected_ms\": %.4f, ",
           i->fits, i->budget_bytes, i->floor_bytes, i->arena_bytes, i->plain_arena_bytes,
           i->weights_bytes + i->optimizer_bytes, (long long)i->slices, i->recomputed,
           i->spilled_bytes, i->step_seconds * 1e3, i->plain_seconds * 1e3);
}

typedef struct {
    const char *path, *loss, *budget, *device, *precision; /* the last three may be NULL */
    int training, steps, own_rows;
    int64_t batch;
} wish;

static snug_status choose_device(snug_engine *e, const wish *w, snug_error *err) {
    snug_device_options o = {.budget_bytes = 0};
    snug_status status = snug_bytes_parse(w->budget, &o.budget_bytes, err);
    return status == SNUG_OK ? snug_device(e, w->device, &o, err) : status;
}

static snug_status measure(snug_engine *e, const wish *w, snug_model_plan_info *info,
                           snug_device_info *device, snug_error *err) {
    const snug_compile compile = {
        .optimizer = "adam", .loss = w->loss, .metrics = "", .precision = w->precision};
    const snug_plan_request request = {.batch = w->batch, .train = w->training, .quick = 1};
    snug_model *m = NULL;
    snug_status status = snug_model_load(e, w->path, &m, err);
    if (status == SNUG_OK)
        status = snug_model_compile(m, &compile, err);
    if (status == SNUG_OK)
        status = plan(m, request, w->budget, info, err);
    if (status == SNUG_OK && info->fits)
        status = w->training ? train(m, w->batch, w->steps, w->own_rows, err)
                             : predict(m, w->batch, w->steps, err);
    if (status == SNUG_OK)
        status = snug_device_look(e, device, err); /* while the model holds its memory */
    snug_model_destroy(m);
    return status;
}

static snug_status run(const wish *w, snug_model_plan_info *info, snug_device_info *device,
                       snug_error *err) {
    snug_engine *e;
    snug_status status = snug_engine_create(NULL, &e, err);
    if (status != SNUG_OK)
        return status;
    if (w->device)
        status = choose_device(e, w, err);
    if (status == SNUG_OK)
        status = measure(e, w, info, device, err);
    snug_engine_destroy(e);
    return status;
}

int main(int argc, char **argv) {
    snug_error err;
    struct rusage usage;
    snug_model_plan_info info;
    snug_device_info device;
    if (argc < 6 || argc > 9) {
        fprintf(stderr, "usage: bench_step train|fit|predict MODEL.json BATCH LOSS STEPS [BUDGET "
                        "[DEVICE [PRECISION]]]\n");
        return 2;
    }
    const int has_budget = argc > 6 && strcmp(argv[6], "0") != 0;
    const char *device_name = argc > 7 && strcmp(argv[7], "cpu") != 0 ? argv[7] : NULL;
    const wish w = {.training = strcmp(argv[1], "predict") != 0,
                    .own_rows = strcmp(argv[1], "fit") == 0,
                    .path = argv[2],
                    .batch = atoll(argv[3]),
                    .loss = argv[4],
                    .steps = atoi(argv[5]),
                    .budget = has_budget || device_name ? argv[6] : NULL,
                    .device = device_name,
                    .precision = argc > 8 ? argv[8] : NULL};
    if (run(&w, &info, &device, &err) != SNUG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double least, cpu_least;
    const double ms = median_step(marks.ends, w.steps, &least);
    (void)median_step(marks.cpu_ends, w.steps, &cpu_least);
    getrusage(RUSAGE_SELF, &usage);
    printf("{");
    if (argc > 6)
        print_plan(&info);
    if (w.device)
        printf("\"device_mib\": %zu, ", (device.context_bytes + device.held_bytes) >> 20);
    printf("\"ms\": %.4f, \"least_ms\": %.4f, \"least_cpu_ms\": %.4f, \"peak_kib\": %ld, "
           "\"gflops\": %.1f}\n",
           ms, least, cpu_least, usage.ru_maxrss, ms > 0 ? info.flops / ms * 1e-6 : 0);
    return 0;
}
