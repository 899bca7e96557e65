/* cost.c: the cost model against the clock: what each kernel call of a training step was expected
 * to take and what it took (least of several steps), summed by operator.
 *
 *     build/bench/cost MODEL.json BATCH [LOSS|predict [THREADS [all|sum [BUDGET]]]]
 *
 * `predict` looks at a prediction instead, which no budget bounds. `all` prints every call, one
 * line each, with what the model knew of it. Within a budget the step is the one planned for it:
 * calls of slices, and those that are repeated. Kernels of the session are replaced by one that
 * looks at the clock around them, so the step is the one that trains. With one thread the thread's
 * own clock counts where it says less: other work on the machine disturbs little. */
#include "exec/inside.h"
#include "train/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CALLS = 100000, STEPS = 5 };

typedef struct {
    uint32_t step;
    sn_kernel kernel;
    double least, expected;
} timed_call;

/* The session's kernels have no room for a pointer of ours, so the bench has one clock. */
static struct {
    sn_session *session;
    timed_call *calls;
    int n, at;
    bool alone;
    double clocks; /* what looking at the clocks takes */
    double whole;  /* least sum of a step's calls */
    double sum;
} watch;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static snug_status timed_kernel(const sn_call *c, snug_error *err) {
    timed_call *t = &watch.calls[watch.at++];
    const double wall = now(CLOCK_MONOTONIC), own = now(CLOCK_THREAD_CPUTIME_ID);
    const snug_status status = t->kernel(c, err);
    const double own_took = now(CLOCK_THREAD_CPUTIME_ID) - own;
    double took = now(CLOCK_MONOTONIC) - wall;
    if (watch.alone && own_took < took)
        took = own_took;
    took -= watch.clocks;
    t->least = took < t->least ? took : t->least;
    watch.sum += took;
    return status;
}

static snug_status no_kernel(const sn_call *c, snug_error *err) {
    (void)c;
    (void)err;
    return SNUG_OK;
}

/* The clocks' own time, from calls that do nothing. */
static void weigh_clocks(void) {
    watch.calls[0] = (timed_call){.kernel = no_kernel, .least = 1e30};
    for (int i = 0; i < 1000; i++) {
        watch.at = 0;
        (void)timed_kernel(NULL, NULL);
    }
    watch.clocks = watch.calls[0].least;
}

static int fail(const snug_error *err) {
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

/* What the model says about step i, run on the slices its views show. */
static snug_status describe_call(const snug_model *m, const sn_bound *b, bool last, sn_opdesc *d,
                                 sn_variant *v, snug_error *err) {
    const sn_bound_shape *shape = last && b->last.views ? &b->last : &b->whole;
    *d = (sn_opdesc){.op = b->call.op, .attrs = *b->call.attrs};
    d->n_in = b->call.n_in;
    d->n_out = b->call.n_out;
    for (int i = 0; i < d->n_in; i++)
        d->in[i] = shape->views[i].type;
    for (int i = 0; i < d->n_out; i++)
        d->out[i] = shape->views[d->n_in + i].type;
    return m->device.device.describe(&m->device.device, d, v, err);
}

static snug_status add_call(const snug_model *m, uint32_t step, bool last, snug_error *err) {
    sn_opdesc d;
    sn_variant v;
    SNUG_TRY(describe_call(m, &watch.session->bound[step], last, &d, &v, err));
    watch.calls[watch.n++] = (timed_call){
        .step = step,
        .kernel = watch.session->bound[step].kernel,
        .least = 1e30,
        .expected = sn_cost_seconds(&m->device.device, &d, &v),
    };
    return SNUG_OK;
}

/* Lists the calls of a step in the order they come: blocks as often as they repeat. */
static snug_status list_calls(const snug_model *m, snug_error *err) {
    const sn_plan *p = watch.session->plan;
    uint32_t block = 0;
    int64_t iteration = 0;
    for (uint32_t i = 0; i < p->n_steps && watch.n < MAX_CALLS; i++) {
        const sn_step *s = &p->steps[i];
        if (s->kind == SN_STEP_REPEAT) {
            block = i;
            iteration = 0;
        } else if (s->kind == SN_STEP_END && ++iteration < p->steps[block].repeat) {
            i = block;
        } else if (s->kind == SN_STEP_RUN) {
            const bool inside = watch.session->bound[i].block != SN_NO_BLOCK;
            SNUG_TRY(add_call(m, i, inside && iteration == p->steps[block].repeat - 1, err));
        }
    }
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kind == SN_STEP_RUN)
            watch.session->bound[i].kernel = timed_kernel;
    return SNUG_OK;
}

/* After the first step the kernels are taken over; each later step is one measurement. */
static snug_status step_end(void *ctx, const snug_progress *p, snug_error *err) {
    const snug_model *m = ctx;
    (void)p;
    if (!watch.session) {
        watch.session = m->steps[0].session;
        SNUG_TRY(list_calls(m, err));
    } else if (watch.sum < watch.whole) {
        watch.whole = watch.sum;
    }
    watch.at = 0;
    watch.sum = 0;
    return SNUG_OK;
}

static void print_call(const snug_model *m, const timed_call *t) {
    sn_opdesc d;
    sn_variant v;
    char text[256];
    if (describe_call(m, &watch.session->bound[t->step], false, &d, &v, NULL) != SNUG_OK)
        return;
    printf("%10.2f us %10.2f us %6.2f  speed %d flops %.4g bytes %.4g eff %.3g  %s %s",
           t->least * 1e6, t->expected * 1e6, t->expected / t->least, (int)v.speed, v.flops,
           v.bytes, v.efficiency, sn_ops[d.op].name,
           sn_attrs_print(d.op, &d.attrs, text, sizeof text));
    for (int i = 0; i < d.n_in + d.n_out; i++)
        printf("%s%s", i == d.n_in ? " -> " : " ",
               snug_type_print(i < d.n_in ? &d.in[i] : &d.out[i - d.n_in], text, sizeof text));
    printf("\n");
}

static int by_time(const void *a, const void *b) {
    const timed_call *x = a, *y = b;
    return x->least > y->least ? -1 : x->least < y->least;
}

static void print_operators(void) {
    timed_call sums[SN_N_OPS] = {{0}};
    for (int i = 0; i < watch.n; i++) {
        const sn_op op = watch.session->bound[watch.calls[i].step].call.op;
        sums[op].step = op;
        sums[op].least += watch.calls[i].least;
        sums[op].expected += watch.calls[i].expected;
    }
    qsort(sums, SN_N_OPS, sizeof *sums, by_time);
    for (int i = 0; i < SN_N_OPS && sums[i].least > 0; i++)
        printf("%10.3f ms %10.3f ms %6.2f  %s\n", sums[i].least * 1e3, sums[i].expected * 1e3,
               sums[i].expected / sums[i].least, sn_ops[sums[i].step].name);
}

static void report(const snug_model *m, bool all) {
    double expected = 0, least = 0;
    for (int i = 0; i < watch.n; i++) {
        expected += watch.calls[i].expected;
        least += watch.calls[i].least;
    }
    printf("  measured      expected   e/m\n");
    if (all)
        for (int i = 0; i < watch.n; i++)
            print_call(m, &watch.calls[i]);
    else
        print_operators();
    printf("step: %d calls, measured %.3f ms (least sum %.3f), expected %.3f ms, ratio %.3f\n",
           watch.n, watch.whole * 1e3, least * 1e3, expected * 1e3, expected / watch.whole);
}

static snug_status open_rows(snug_engine *e, const snug_type *t, int64_t rows, int64_t classes,
                             snug_feed **out, snug_error *err) {
    const bool labels = t->dtype == SNUG_I32 || t->dtype == SNUG_I64;
    char recipe[160];
    int n =
        snprintf(recipe, sizeof recipe, "%s:%lld", labels ? "labels" : "normal", (long long)rows);
    for (int i = 1; i < t->rank; i++)
        n += snprintf(recipe + n, sizeof recipe - (size_t)n, "x%lld", (long long)t->dims[i]);
    snprintf(recipe + n, sizeof recipe - (size_t)n, labels ? "@1@%lld" : "@1", (long long)classes);
    return snug_feed_open(e, recipe, out, err);
}

static snug_status train(snug_model *m, int64_t batch, snug_error *err) {
    snug_engine *const e = snug_model_engine(m);
    const snug_callback callback = {.ctx = m, .on_step_end = step_end};
    snug_fit_options o = {
        .epochs = 1 + STEPS, .batch = batch, .callbacks = &callback, .n_callbacks = 1};
    const snug_type *out = snug_model_output(m);
    const int64_t classes = out->dims[out->rank - 1];
    snug_type target;
    snug_fit_result result;
    snug_model_target(m, &target);
    snug_status status = open_rows(e, snug_model_input(m), batch, classes, &o.x, err);
    if (status == SNUG_OK)
        status = open_rows(e, &target, batch, classes, &o.y, err);
    if (status == SNUG_OK)
        status = snug_fit(m, &o, &result, err);
    snug_feed_destroy(o.y);
    snug_feed_destroy(o.x);
    return status;
}

static snug_status rows_end(void *ctx, int64_t first, const snug_view *view, snug_error *err) {
    (void)first;
    (void)view;
    return step_end(ctx, NULL, err);
}

static snug_status predict(snug_model *m, int64_t batch, snug_error *err) {
    enum { TIMES = 20 };
    snug_run_options o = {.batch = batch};
    snug_status status = open_rows(m->engine, snug_model_input(m), batch, 2, &o.x, err);
    for (int i = 0; i < 1 + TIMES && status == SNUG_OK; i++)
        status = snug_predict(m, &o, rows_end, m, err);
    snug_feed_destroy(o.x);
    return status;
}

/* "512MiB", or "25%" of the arena that a step without a limit takes; NULL: none. */
static snug_status set_budget(snug_model *m, int64_t batch, const char *text, snug_error *err) {
    size_t bytes = 0;
    snug_model_plan_info info;
    if (!text)
        return SNUG_OK;
    if (!strchr(text, '%')) {
        SNUG_TRY(snug_bytes_parse(text, &bytes, err));
    } else {
        SNUG_TRY(snug_model_plan(m, &(snug_plan_request){.batch = batch, .train = 1}, &info, err));
        bytes = info.peak_bytes + info.reserve_bytes -
                (size_t)((1 - atof(text) / 100) * (double)info.arena_bytes);
    }
    SNUG_TRY(snug_budget(m->engine, bytes, err));
    SNUG_TRY(snug_model_plan(m, &(snug_plan_request){.batch = batch, .train = 1}, &info, err));
    printf("budget %zu: %lld slices, %zu recomputed, %zu spilled, arena %zu; promised %.3f times\n",
           bytes, (long long)info.slices, info.recomputed, info.spilled_bytes, info.arena_bytes,
           info.step_seconds / info.plain_seconds);
    return SNUG_OK;
}

int main(int argc, char **argv) {
    snug_error err;
    snug_engine *e;
    snug_model *m = NULL;
    if (argc < 3) {
        fprintf(stderr,
                "usage: cost MODEL.json BATCH [LOSS|predict [THREADS [all|sum [BUDGET]]]]\n");
        return 2;
    }
    const snug_engine_options o = {.n_threads = argc > 4 ? atoi(argv[4]) : 0};
    const bool training = argc < 4 || strcmp(argv[3], "predict") != 0;
    const snug_compile compile = {
        .optimizer = "adam", .loss = argc > 3 && training ? argv[3] : "mse", .metrics = ""};
    if (snug_engine_create(&o, &e, &err) != SNUG_OK)
        return fail(&err);
    watch.alone = snug_engine_threads(e) == 1;
    watch.whole = 1e30;
    watch.calls = malloc(MAX_CALLS * sizeof *watch.calls);
    weigh_clocks();
    snug_status status = snug_model_load(e, argv[1], &m, &err);
    if (status == SNUG_OK)
        status = snug_model_compile(m, &compile, &err);
    if (status == SNUG_OK)
        status = set_budget(m, atoll(argv[2]), argc > 6 && training ? argv[6] : NULL, &err);
    if (status == SNUG_OK)
        status = (training ? train : predict)(m, atoll(argv[2]), &err);
    if (status == SNUG_OK)
        report(m, argc > 5 && strcmp(argv[5], "all") == 0);
    snug_model_destroy(m);
    snug_engine_destroy(e);
    free(watch.calls);
    return status == SNUG_OK ? 0 : fail(&err);
}
