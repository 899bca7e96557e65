/* cmd_run.c: evaluate and predict. */
#include "cli.h"

typedef struct {
    snug_run_options options;
    snug_callback callback;
    progress bar;
    snug_npy_writer *out;
} run_job;

static snug_status open_job(cli *c, run_job *j, snug_model **m, snug_error *err) {
    snug_status status = cli_integer(c, OPT_batch, 1, INT64_MAX, &j->options.batch, err);
    if (status == SNUG_OK)
        status = cli_open_feed(c, OPT_x, &j->options.x, err);
    if (status == SNUG_OK)
        status = cli_open_feed(c, OPT_y, &j->options.y, err);
    if (status == SNUG_OK)
        status = cli_load_model(c, m, err);
    cli_catch_interrupt();
    progress_init(&j->bar, c, NULL);
    j->callback = progress_callback(&j->bar);
    j->options.callbacks = &j->callback;
    j->options.n_callbacks = j->bar.terminal;
    j->options.interrupted = cli_interrupted;
    return status;
}

static void close_job(run_job *j, snug_model *m) {
    snug_npy_destroy(j->out);
    snug_model_destroy(m);
    snug_feed_destroy(j->options.y);
    snug_feed_destroy(j->options.x);
}

static void print_values(const cli *c, const snug_model *m, const double *values, int n) {
    const bool json = cli_given(c, OPT_json);
    for (int i = 0; i < n; i++) {
        const char *name = i ? snug_model_metric_name(m, (size_t)i - 1) : "loss";
        if (json) {
            putchar(i ? ',' : '{');
            cli_print_json_string(stdout, name);
            putchar(':');
            cli_print_json_number(stdout, values[i]);
        } else {
            printf("%s%s: %.6g", i ? " - " : "", name, cli_shown(values[i]));
        }
    }
    if (!json)
        putchar('\n');
}

snug_status cmd_evaluate(cli *c, snug_error *err) {
    run_job j = {.options = {.batch = 32}};
    snug_model *m = NULL;
    double values[1 + SNUG_MAX_METRICS];
    int n = 0;
    if (!cli_given(c, OPT_x) || !cli_given(c, OPT_y))
        return cli_fail(err, SNUG_E_INVALID,
                        "evaluate needs --x and --y, e.g. --x x_test.npy --y y_test.npy");
    snug_status status = open_job(c, &j, &m, err);
    if (status == SNUG_OK)
        status = snug_evaluate(m, &j.options, values, &n, err);
    progress_end(&j.bar);
    if (status == SNUG_OK) {
        print_values(c, m, values, n);
        status = cli_print_memory(c, err);
        if (cli_given(c, OPT_json))
            printf("}\n");
    }
    close_job(&j, m);
    return status;
}

static snug_status append_rows(void *ctx, int64_t first_row, const snug_view *view,
                               snug_error *err) {
    (void)first_row;
    return snug_npy_append(ctx, view->data, view->bytes, err);
}

static snug_status predict_all(cli *c, run_job *j, snug_model *m, snug_type *type,
                               snug_error *err) {
    *type = *snug_model_output(m);
    type->dims[0] = snug_feed_type(j->options.x)->dims[0];
    snug_status status = snug_npy_create(c->engine, c->args.text[OPT_out], type, &j->out, err);
    if (status == SNUG_OK)
        status = snug_predict(m, &j->options, append_rows, j->out, err);
    progress_end(&j->bar);
    return status == SNUG_OK ? snug_npy_commit(j->out, err) : status;
}

static void print_written(const cli *c, const snug_type *type) {
    char text[192];
    if (!cli_given(c, OPT_json)) {
        fprintf(stderr, "wrote %s to %s\n", snug_type_print(type, text, sizeof text),
                c->args.text[OPT_out]);
        return;
    }
    printf("{\"rows\":%lld,\"dtype\":\"%s\",\"shape\":[", (long long)type->dims[0],
           snug_dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++)
        printf("%s%lld", i ? "," : "", (long long)type->dims[i]);
    printf("],\"out\":");
    cli_print_json_string(stdout, c->args.text[OPT_out]);
}

snug_status cmd_predict(cli *c, snug_error *err) {
    run_job j = {.options = {.batch = 32}};
    snug_model *m = NULL;
    snug_type type;
    if (!cli_given(c, OPT_x) || !cli_given(c, OPT_out))
        return cli_fail(err, SNUG_E_INVALID,
                        "predict needs --x and --out, e.g. --x x_test.npy --out y.npy");
    snug_status status = open_job(c, &j, &m, err);
    if (status == SNUG_OK)
        status = predict_all(c, &j, m, &type, err);
    if (status == SNUG_OK) {
        print_written(c, &type);
        status = cli_print_memory(c, err);
        if (cli_given(c, OPT_json))
            printf("}\n");
    }
    close_job(&j, m);
    return status;
}
