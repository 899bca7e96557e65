/* held.c: models trained from C, one or several on one engine, in turns; for tests/cli/test_held.py.
 *
 *     held BUDGET THREADS BATCH[=PLAN] MODEL[=PRECISION] X Y [MODEL[=PRECISION] X Y ...]
 *
 * X and Y as `snug fit` takes them. With a PLAN the model trains by that one, in a process that is as
 * large as a budget makes it (code and libraries are brought in), without validation: nothing is
 * booked for what is to come, so that the smallest budget in which it runs can be found. One line of JSON: status, error, the largest predicted peak. The
 * exit code is 0 also where a budget is refused. */
#include <snug/train.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4, ROUNDS = 2 };

typedef struct {
    snug_model *model;
    snug_feed *x, *y;
} job;

static snug_status open_job(snug_engine *e, char **words, job *j, snug_error *err) {
    char *precision = strrchr(words[0], '=');
    if (precision)
        *precision++ = '\0';
    const snug_compile how = {.precision = precision};
    snug_status status = snug_model_load_with(e, words[0], NULL, &how, &j->model, err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, words[1], &j->x, err);
    if (status == SNUG_OK)
        status = snug_feed_open(e, words[2], &j->y, err);
    return status;
}

static void close_job(job *j) {
    snug_model_destroy(j->model);
    snug_feed_destroy(j->x);
    snug_feed_destroy(j->y);
}

/* All that is asked for comes in: the plan that it is asked for is refused. */
static snug_status pin(snug_model *m, int64_t batch, const char *plan, snug_error *err) {
    const snug_plan_request request = {.batch = batch, .train = 1, .quick = 1, .budget_bytes = 1};
    snug_model_plan_info info;
    const snug_status status = snug_model_plan(m, &request, &info, err);
    return status == SNUG_OK ? snug_model_pin_plan(m, batch, plan, err) : status;
}

/* Each model in turn, so that all but the first find the arenas of others. */
static snug_status train(job *jobs, int n, int64_t batch, double validation, size_t *predicted,
                         snug_error *err) {
    snug_status status = SNUG_OK;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n && status == SNUG_OK; i++) {
            const snug_fit_options o = {
                .x = jobs[i].x, .y = jobs[i].y, .batch = batch, .validation_split = validation};
            snug_fit_result r = {.epochs = 0};
            status = snug_fit(jobs[i].model, &o, &r, err);
            *predicted = r.predicted_bytes > *predicted ? r.predicted_bytes : *predicted;
        }
    return status;
}

static snug_status run(char **argv, int n, snug_engine *e, job *jobs, size_t *predicted,
                       snug_error *err) {
    char *plan;
    const int64_t batch = strtoll(argv[3], &plan, 10);
    const bool is_whole = *plan == '=';
    size_t budget;
    snug_status status = snug_bytes_parse(argv[1], &budget, err);
    if (status == SNUG_OK && !is_whole)
        status = snug_budget(e, budget, err);
    for (int i = 0; i < n && status == SNUG_OK; i++)
        status = open_job(e, argv + 4 + 3 * i, &jobs[i], err);
    if (status == SNUG_OK && is_whole && plan[1])
        status = pin(jobs[0].model, batch, plan + 1, err);
    if (status == SNUG_OK && is_whole)
        status = snug_budget(e, budget, err);
    return status == SNUG_OK ? train(jobs, n, batch, is_whole ? 0 : 0.25, predicted, err) : status;
}

int main(int argc, char **argv) {
    const int n = (argc - 4) / 3;
    job jobs[MOST] = {{NULL}};
    snug_engine *e;
    snug_error err = {.code = SNUG_OK};
    size_t predicted = 0;
    if (n < 1 || n > MOST || (argc - 4) % 3 != 0) {
        fprintf(stderr, "usage: held BUDGET THREADS BATCH[=PLAN] MODEL[=PRECISION] X Y "
                        "[MODEL[=PRECISION] X Y ...]\n");
        return 2;
    }
    const snug_engine_options o = {.n_threads = atoi(argv[2])};
    if (snug_engine_create(&o, &e, &err) != SNUG_OK)
        return 2;
    const snug_status status = run(argv, n, e, jobs, &predicted, &err);
    for (int i = 0; i < n; i++)
        close_job(&jobs[i]);
    snug_engine_destroy(e);
    printf("{\"status\": %d, \"predicted_peak_bytes\": %zu, \"error\": \"%s\"}\n", (int)status,
           predicted, status == SNUG_OK ? "" : err.text);
    return status == SNUG_OK || status == SNUG_E_BUDGET ? 0 : 1;
}
