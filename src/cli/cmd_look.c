/* cmd_look.c: the commands that only look: plan, summary, inspect, ops, layers,
 * doctor; and make-data. */
#include "cli.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Of a plan: up to here the sizes of most models are numbers that can be printed. */
#define MAX_BATCH (INT64_C(1) << 40)

typedef struct {
    FILE *file;
    const char *path;
} page_file;

static snug_status fail_page(const char *path, snug_error *err) {
    return cli_fail(err, SNUG_E_IO, "cannot write '%s': %s; choose another path", path,
                    strerror(errno));
}

static snug_status write_file(void *ctx, const char *text, size_t n, snug_error *err) {
    const page_file *f = ctx;
    return fwrite(text, 1, n, f->file) == n ? SNUG_OK : fail_page(f->path, err);
}

typedef snug_status (*page_fn)(snug_model *m, const snug_plan_request *request,
                               const snug_writer *out, snug_error *err);

/* A link, a pipe or a device (/dev/stdout): what is there stays, and is written to. */
static bool is_passage(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

static snug_status fill_page(snug_model *m, const snug_plan_request *request, page_fn say,
                             page_file *f, snug_error *err) {
    const snug_writer writer = {f, write_file};
    snug_status status = say(m, request, &writer, err);
    if (status == SNUG_OK && fflush(f->file) != 0)
        status = fail_page(f->path, err);
    if (fclose(f->file) != 0 && status == SNUG_OK)
        status = fail_page(f->path, err);
    return status;
}

/* As all outputs: whole under its name or not there. */
static snug_status write_page(const cli *c, snug_model *m, const snug_plan_request *request,
                              page_fn say, const char *path, snug_error *err) {
    snug_file *whole = NULL;
    if (!is_passage(path) && snug_file_create(c->engine, path, &whole, err) != SNUG_OK)
        return err->code;
    page_file f = {fopen(whole ? snug_file_name(whole) : path, "w"), path};
    snug_status status = f.file ? fill_page(m, request, say, &f, err) : fail_page(path, err);
    if (status == SNUG_OK && whole)
        status = snug_file_commit(whole, err);
    snug_file_destroy(whole);
    if (status == SNUG_OK)
        fprintf(stderr, "wrote %s\n", path);
    return status;
}

/* Only the shapes of the weights are looked at. */
static snug_status find_weights(cli *c, const snug_model *m, snug_type *types,
                                snug_plan_request *request, snug_error *err) {
    static const cli_data_options ids = {N_OPTIONS, N_OPTIONS, OPT_sample_weight};
    cli_data data = {.data = {.n_x = 0}};
    snug_status status = cli_open_data(c, m, ids, &data, err);
    for (int i = 0; i < data.data.n_sample_weights && status == SNUG_OK; i++) {
        if (data.weight[i])
            types[i] = *snug_feed_type(data.weight[i]);
        else
            status = cli_fail(err, SNUG_E_INVALID, "sample_weight %d is missing", i);
    }
    request->sample_weights = types;
    request->n_sample_weights = data.data.n_sample_weights;
    cli_close_data(&data);
    return status;
}

/* As fit opens it. */
static snug_status open_pipeline(cli *c, const snug_model *m, snug_plan_request *request,
                                 snug_error *err) {
    cli_pipeline p = {.batch = request->batch, .unlabelled = !request->train};
    const snug_status status = cli_size_pipeline(c, m, &p, err);
    return status == SNUG_OK ? cli_open_pipeline(c, &p, &request->dataset, err) : status;
}

typedef snug_status (*plan_report)(snug_model *, const snug_plan_request *, int,
                                   const snug_writer *, snug_error *);
static plan_report report_of(const cli *c) {
    return cli_given(c, OPT_curve)        ? snug_report_curve
           : cli_given(c, OPT_precisions) ? snug_report_precisions
                                          : snug_report_plan;
}

snug_status cmd_plan(cli *c, snug_error *err) {
    snug_model *m = NULL;
    snug_type weights[CLI_MAX_REPEAT];
    snug_plan_request request = {.batch = 32,
                                 .train = cli_given(c, OPT_train),
                                 .best = cli_given(c, OPT_best),
                                 .quick = cli_given(c, OPT_quick),
                                 .class_weight = c->args.text[OPT_class_weight]};
    const int style = c->style | (cli_given(c, OPT_verbose) ? SNUG_REPORT_STEPS : 0);
    snug_status status = cli_integer(c, OPT_batch, 1, MAX_BATCH, &request.batch, err);
    if (status == SNUG_OK && cli_given(c, OPT_curve) && cli_given(c, OPT_precisions))
        status = cli_fail(err, SNUG_E_INVALID,
                          "--curve is of one precision, --precisions of all: give one of the two");
    if (status == SNUG_OK && cli_given(c, OPT_weights) && cli_given(c, OPT_precisions))
        status = cli_fail(err, SNUG_E_INVALID,
                          "--precisions changes the type of weights: leave --weights out");
    if (status == SNUG_OK)
        status = cli_load_model(c, request.train, &m, err);
    if (status == SNUG_OK)
        status = find_weights(c, m, weights, &request, err);
    if (status == SNUG_OK && cli_given(c, OPT_data))
        status = open_pipeline(c, m, &request, err);
    if (status == SNUG_OK && cli_given(c, OPT_html))
        status = write_page(c, m, &request, snug_report_page, c->args.text[OPT_html], err);
    if (status == SNUG_OK && cli_given(c, OPT_save_plan))
        status = write_page(c, m, &request, snug_model_plan_text, c->args.text[OPT_save_plan], err);
    if (status == SNUG_OK)
        status = report_of(c)(m, &request, style, &cli_stdout, err);
    snug_model_destroy(m);
    snug_dataset_drop(request.dataset);
    return status;
}

snug_status cmd_summary(cli *c, snug_error *err) {
    snug_model *m = NULL;
    snug_status status = cli_load_model(c, false, &m, err);
    if (status == SNUG_OK)
        status = snug_report_summary(m, c->style, &cli_stdout, err);
    snug_model_destroy(m);
    return status;
}

snug_status cmd_inspect(cli *c, snug_error *err) {
    return snug_inspect(c->engine, c->args.operand[0], cli_given(c, OPT_json), &cli_stdout, err);
}

snug_status cmd_ops(cli *c, snug_error *err) {
    return snug_report_ops(c->style, &cli_stdout, err);
}

snug_status cmd_layers(cli *c, snug_error *err) {
    return snug_report_layers(c->style, &cli_stdout, err);
}

/* In JSON the measurements are progress, and the report follows. */
snug_status cmd_doctor(cli *c, snug_error *err) {
    const bool json = cli_given(c, OPT_json);
    if (cli_given(c, OPT_calibrate)) {
        char folder[1024];
        if (!cli_cache_folder(folder, sizeof folder))
            return cli_fail(err, SNUG_E_INVALID,
                            "there is no place for the rates; set XDG_CACHE_HOME or HOME");
        const snug_status status =
            snug_calibrate(c->engine, folder, json ? &cli_stderr : &cli_stdout, err);
        if (status != SNUG_OK || !json)
            return status;
    }
    return snug_report_doctor(c->engine, c->style, &cli_stdout, err);
}

snug_status cmd_make_data(cli *c, snug_error *err) {
    snug_make_data_options o = {0, 0, 0};
    int64_t seed = 0;
    snug_status status = cli_integer(c, OPT_train_rows, 1, INT32_MAX, &o.n_train, err);
    if (status == SNUG_OK)
        status = cli_integer(c, OPT_test_rows, 1, INT32_MAX, &o.n_test, err);
    if (status == SNUG_OK)
        status = cli_integer(c, OPT_seed, 0, INT64_MAX, &seed, err);
    o.seed = (uint64_t)seed;
    if (status == SNUG_OK)
        status = snug_make_data(c->engine, c->args.operand[0], c->args.operand[1], &o, err);
    if (status != SNUG_OK)
        return status;
    if (!cli_given(c, OPT_json)) {
        fprintf(stderr, "wrote x_train.npy, y_train.npy, x_test.npy and y_test.npy to %s\n",
                c->args.operand[1]);
        return SNUG_OK;
    }
    printf("{\"kind\":\"%s\",\"folder\":", c->args.operand[0]);
    cli_print_json_string(stdout, c->args.operand[1]);
    printf(",\"files\":[\"x_train.npy\",\"y_train.npy\",\"x_test.npy\",\"y_test.npy\"]}\n");
    return SNUG_OK;
}
