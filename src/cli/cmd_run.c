/* cmd_run.c: evaluate and predict. */
#include "cli.h"

#include <string.h>

typedef struct {
    bool predicts;
    snug_run_options options;
    cli_data data;
    snug_callback callback;
    progress bar;
    snug_npy_writer *out[CLI_MAX_REPEAT]; /* one per output of the model */
    char path[CLI_MAX_REPEAT][1024];
    int64_t rows; /* predicted */
} run_job;

static snug_status open_pipeline(cli *c, const snug_model *m, run_job *j, snug_error *err) {
    cli_pipeline p = {.batch = j->options.batch, .validation = true, .unlabelled = j->predicts};
    const snug_status status = cli_size_pipeline(c, m, &p, err);
    return status == SNUG_OK ? cli_open_pipeline(c, &p, &j->options.dataset, err) : status;
}

static snug_status open_job(cli *c, run_job *j, snug_model **m, snug_error *err) {
    static const cli_data_options ids = {OPT_x, OPT_y, OPT_sample_weight};
    snug_status status = cli_integer(c, OPT_batch, 1, INT64_MAX, &j->options.batch, err);
    if (status == SNUG_OK)
        status = cli_load_model(c, !j->predicts, m, err);
    if (status == SNUG_OK && cli_given(c, OPT_data))
        status = open_pipeline(c, *m, j, err);
    else if (status == SNUG_OK)
        status = cli_open_data(c, *m, ids, &j->data, err);
    if (status == SNUG_OK)
        cli_note_weights(c, *m);
    j->options.data = cli_given(c, OPT_data) ? NULL : &j->data.data;
    cli_catch_interrupt();
    progress_init(&j->bar, c, NULL);
    j->callback = progress_callback(&j->bar);
    j->options.callbacks = &j->callback;
    j->options.n_callbacks = j->bar.terminal;
    j->options.interrupted = cli_interrupted;
    return status;
}

static void close_job(run_job *j, snug_model *m) {
    for (int i = 0; i < CLI_MAX_REPEAT; i++)
        snug_npy_destroy(j->out[i]);
    snug_model_destroy(m);
    snug_dataset_drop(j->options.dataset);
    cli_close_data(&j->data);
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
    if (cli_given(c, OPT_data) && (cli_given(c, OPT_x) || cli_given(c, OPT_y)))
        return cli_fail(err, SNUG_E_INVALID, "give --data, or --x and --y");
    if (!cli_given(c, OPT_data) && (!cli_given(c, OPT_x) || !cli_given(c, OPT_y)))
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

/* --- predict ---------------------------------------------------------------------------------- */
/* .npy has no bf16: its bits are the upper half of an f32's. */
static snug_status append_widened(snug_npy_writer *to, const snug_view *view, snug_error *err) {
    const uint16_t *const from = view->data;
    const size_t n = view->bytes / sizeof *from;
    uint32_t wide[1024];
    snug_status status = SNUG_OK;
    for (size_t at = 0; at < n && status == SNUG_OK;) {
        size_t k = 0;
        for (; k < sizeof wide / sizeof *wide && at < n; k++)
            wide[k] = (uint32_t)from[at++] << 16;
        status = snug_npy_append(to, wide, k * sizeof *wide, err);
    }
    return status;
}

static snug_status append_rows(void *ctx, int output, int64_t first_row, const snug_view *view,
                               snug_error *err) {
    run_job *j = ctx;
    (void)first_row;
    j->rows += output == 0 ? view->type.dims[0] : 0;
    if (view->type.dtype == SNUG_BF16)
        return append_widened(j->out[output], view, err);
    return snug_npy_append(j->out[output], view->data, view->bytes, err);
}

/* "out.npy" of output "a/b" is "out_a_b.npy". */
static bool insert_name(const char *path, const char *name, char *out, size_t size) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const size_t stem = dot && dot > (slash ? slash : path) ? (size_t)(dot - path) : strlen(path);
    const int n = snprintf(out, size, "%.*s_%s%s", (int)stem, path, name, path + stem);
    for (size_t i = stem; i < strlen(out) && n < (int)size; i++)
        if (out[i] == '/')
            out[i] = '_';
    return n < (int)size;
}

/* A path for each output: those that are named or given in order; or one for all, with names. */
static snug_status choose_paths(const cli *c, const snug_model *m, run_job *j, snug_error *err) {
    const int n = (int)snug_model_n_outputs(m), given = c->args.n_all[OPT_out];
    int next = 0;
    bool any_named = false;
    for (int k = 0; k < given; k++) {
        const char *path;
        const int named = cli_named(m, false, c->args.all[OPT_out][k], &path);
        any_named = any_named || named >= 0;
        while (named < 0 && next < n && j->path[next][0])
            next++;
        const int at = named < 0 ? next : named;
        if (at >= n || strlen(path) >= sizeof *j->path)
            return cli_fail(err, SNUG_E_INVALID, "--out %s is one too many, or too long", path);
        snprintf(j->path[at], sizeof *j->path, "%s", path);
    }
    for (int i = 0; i < n && given == 1 && n > 1 && !any_named; i++)
        if (!insert_name(c->args.text[OPT_out], snug_model_output_name(m, (size_t)i), j->path[i],
                         sizeof *j->path))
            return cli_fail(err, SNUG_E_INVALID, "--out %.80s... is too long",
                            c->args.text[OPT_out]);
    for (int i = 0; i < n; i++)
        if (!j->path[i][0])
            return cli_fail(err, SNUG_E_INVALID,
                            "the model has %d outputs; --out is missing for '%s'", n,
                            snug_model_output_name(m, (size_t)i));
    return SNUG_OK;
}

/* As it is written, with this many rows; SNUG_UNKNOWN: as many as will come. */
static snug_type output_type(const snug_model *m, size_t i, int64_t rows) {
    snug_type type = *snug_model_output_at(m, i);
    type.dims[0] = rows;
    if (type.dtype == SNUG_BF16)
        type.dtype = SNUG_F32;
    return type;
}

/* A pipe takes the head of an array once, before the rows. */
static int64_t known_rows(const run_job *j) {
    const snug_type *x = j->data.x[0] ? snug_feed_type(j->data.x[0]) : NULL;
    return x && x->rank > 0 && x->dims[0] > 0 ? x->dims[0] : SNUG_UNKNOWN;
}

static snug_status predict_all(cli *c, run_job *j, snug_model *m, snug_error *err) {
    const size_t n = snug_model_n_outputs(m);
    snug_status status = choose_paths(c, m, j, err);
    for (size_t i = 0; i < n && status == SNUG_OK; i++) {
        const snug_type type = output_type(m, i, known_rows(j));
        status = cli_check_file(c, j->path[i], 0, err);
        if (status == SNUG_OK)
            status = snug_npy_create(c->engine, j->path[i], &type, &j->out[i], err);
    }
    if (status == SNUG_OK)
        status = snug_predict_outputs(m, &j->options, append_rows, j, err);
    progress_end(&j->bar);
    if (status == SNUG_E_INTERRUPTED)
        status = cli_fail(err, status, "stopped by the user; '%s' was not written", j->path[0]);
    for (size_t i = 0; i < n && status == SNUG_OK; i++)
        status = snug_npy_commit(j->out[i], err);
    return status;
}

static void print_written(const cli *c, const run_job *j, const snug_model *m, size_t i) {
    char text[192];
    const snug_type type = output_type(m, i, j->rows);
    if (!cli_given(c, OPT_json)) {
        fprintf(stderr, "wrote %s to %s\n", snug_type_print(&type, text, sizeof text), j->path[i]);
        return;
    }
    printf("\"rows\":%lld,\"dtype\":\"%s\",\"shape\":[", (long long)type.dims[0],
           snug_dtype_name(type.dtype));
    for (int k = 0; k < type.rank; k++)
        printf("%s%lld", k ? "," : "", (long long)type.dims[k]);
    printf("],\"out\":");
    cli_print_json_string(stdout, j->path[i]);
}

/* One output's facts are the object's members; several are a list of such objects. */
static void print_all_written(const cli *c, const run_job *j, const snug_model *m) {
    const size_t n = snug_model_n_outputs(m);
    const bool json = cli_given(c, OPT_json);
    if (json)
        printf(n > 1 ? "{\"outputs\":[" : "{");
    for (size_t i = 0; i < n; i++) {
        if (json && n > 1) {
            printf("%s{\"name\":", i ? "," : "");
            cli_print_json_string(stdout, snug_model_output_name(m, i));
            putchar(',');
        }
        print_written(c, j, m, i);
        if (json && n > 1)
            putchar('}');
    }
    if (json && n > 1)
        putchar(']');
}

snug_status cmd_predict(cli *c, snug_error *err) {
    run_job j = {.options = {.batch = 32}, .predicts = true};
    snug_model *m = NULL;
    if (cli_given(c, OPT_data) && cli_given(c, OPT_x))
        return cli_fail(err, SNUG_E_INVALID, "give --data, or --x");
    if ((!cli_given(c, OPT_x) && !cli_given(c, OPT_data)) || !cli_given(c, OPT_out))
        return cli_fail(err, SNUG_E_INVALID,
                        "predict needs --x and --out, e.g. --x x_test.npy --out y.npy");
    snug_status status = open_job(c, &j, &m, err);
    if (status == SNUG_OK)
        status = predict_all(c, &j, m, err);
    if (status == SNUG_OK) {
        print_all_written(c, &j, m);
        status = cli_print_memory(c, err);
        if (cli_given(c, OPT_json))
            printf("}\n");
    }
    close_job(&j, m);
    return status;
}
