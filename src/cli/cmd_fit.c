/* cmd_fit.c: train. Ctrl-C stops after the step under way, saves and exits with 130; a NaN loss
 * stops before the first state write and the layer that made it is looked for. */
#include "cli.h"

#include <snug/device.h>
#include <string.h>

#define MAX_CALLBACKS 5

typedef struct {
    snug_fit_options options;
    cli_data data, val_data;
    snug_callback callbacks[MAX_CALLBACKS];
    progress bar;
    int64_t seed, epochs, patience, reduce_rate;
} fit_job;

static snug_status read_numbers(cli *c, fit_job *j, snug_error *err) {
    snug_status status = cli_integer(c, OPT_batch, 1, INT64_MAX, &j->options.batch, err);
    if (status == SNUG_OK)
        status = cli_integer(c, OPT_epochs, 1, INT32_MAX, &j->epochs, err);
    if (status == SNUG_OK)
        status = cli_integer(c, OPT_seed, 0, INT64_MAX, &j->seed, err);
    if (status == SNUG_OK)
        status = cli_integer(c, OPT_patience, 1, INT32_MAX, &j->patience, err);
    if (status == SNUG_OK)
        status = cli_integer(c, OPT_reduce_rate, 1, INT32_MAX, &j->reduce_rate, err);
    if (status == SNUG_OK)
        status = cli_real(c, OPT_validation_split, 0, 0.999, &j->options.validation_split, err);
    j->options.epochs = (int)j->epochs;
    j->options.seed = (uint64_t)j->seed;
    j->options.shuffle = cli_given(c, OPT_shuffle);
    return status;
}

static snug_status check_given(const cli *c, snug_error *err) {
    static const option_id with_data[] = {OPT_map, OPT_augment, OPT_buffer};
    if (cli_given(c, OPT_data) && (cli_given(c, OPT_x) || cli_given(c, OPT_y)))
        return cli_fail(err, SNUG_E_INVALID, "give --data, or --x and --y");
    for (size_t i = 0; i < sizeof with_data / sizeof *with_data; i++)
        if (cli_given(c, with_data[i]) && !cli_given(c, OPT_data))
            return cli_fail(err, SNUG_E_INVALID, "--%s goes with --data",
                            cli_options[with_data[i]].name);
    if (cli_given(c, OPT_data))
        return SNUG_OK;
    if (!cli_given(c, OPT_x) || !cli_given(c, OPT_y))
        return cli_fail(err, SNUG_E_INVALID,
                        "fit needs --x and --y, e.g. --x x_train.npy --y y_train.npy");
    if (cli_given(c, OPT_val_x) != cli_given(c, OPT_val_y))
        return cli_fail(err, SNUG_E_INVALID, "--val-x and --val-y go together; --val-%c is missing",
                        cli_given(c, OPT_val_x) ? 'y' : 'x');
    return SNUG_OK;
}

static snug_status open_feeds(cli *c, const snug_model *m, fit_job *j, snug_error *err) {
    static const cli_data_options ids = {OPT_x, OPT_y, OPT_sample_weight},
                                  val = {OPT_val_x, OPT_val_y, OPT_val_sample_weight};
    snug_status status = cli_open_data(c, m, ids, &j->data, err);
    j->options.data = &j->data.data;
    j->options.class_weight = c->args.text[OPT_class_weight];
    if (status != SNUG_OK || !cli_given(c, OPT_val_x))
        return status;
    j->options.val_data = &j->val_data.data;
    return cli_open_data(c, m, val, &j->val_data, err);
}

static snug_status open_pipelines(cli *c, const snug_model *m, fit_job *j, snug_error *err) {
    cli_pipeline p = {.batch = j->options.batch, .validation_split = j->options.validation_split};
    j->options.class_weight = c->args.text[OPT_class_weight];
    j->options.validation_split = 0;
    snug_status status = cli_size_pipeline(c, m, &p, err);
    if (status == SNUG_OK)
        status = cli_open_pipeline(c, &p, &j->options.dataset, err);
    if (status != SNUG_OK || p.validation_split == 0)
        return status;
    p.validation = true;
    return cli_open_pipeline(c, &p, &j->options.val_dataset, err);
}

/* Of weights in a file, without its header; f32 at least. */
static size_t weight_bytes(const snug_model *m) {
    size_t sum = 0;
    for (size_t i = 0; i < snug_model_n_layers(m); i++) {
        snug_layer_info l;
        snug_model_layer(m, i, &l);
        sum += (size_t)l.n_params * sizeof(float);
    }
    return sum;
}

/* Weights are safetensors, whatever the file is called: so not by the name of another format. */
static snug_status check_weights(const cli *c, option_id id, size_t bytes, snug_error *err) {
    static const char *const others[] = {".npz", ".npy", ".h5", ".hdf5", ".keras"};
    const char *path = cli_given(c, id) ? c->args.text[id] : "", *end = strrchr(path, '.');
    for (size_t i = 0; i < sizeof others / sizeof *others && end; i++)
        if (strcmp(end, others[i]) == 0)
            return cli_fail(err, SNUG_E_INVALID,
                            "--%s %s: the command writes safetensors; name it %.*s.safetensors "
                            "(Python's model.save_weights writes .npz and .weights.h5)",
                            cli_options[id].name, path, (int)(end - path), path);
    return cli_check_output(c, id, bytes, err);
}

/* Before anything is trained. */
static snug_status check_outputs(const cli *c, const snug_model *m, snug_error *err) {
    snug_status status = cli_check_output(c, OPT_csv, 0, err);
    if (status == SNUG_OK)
        status = check_weights(c, OPT_save, weight_bytes(m), err);
    return status == SNUG_OK ? check_weights(c, OPT_save_best, weight_bytes(m), err) : status;
}

static snug_status add_callbacks(cli *c, fit_job *j, snug_error *err) {
    const bool validates =
        j->options.val_data || j->options.val_dataset || j->options.validation_split > 0;
    const char *quantity = validates ? "val_loss" : "loss";
    size_t *n = &j->options.n_callbacks;
    snug_status status = SNUG_OK;
    progress_init(&j->bar, c, "Epoch");
    j->callbacks[(*n)++] = progress_callback(&j->bar);
    if (cli_given(c, OPT_save_best)) {
        status = snug_callback_best_weights(c->engine, quantity, c->args.text[OPT_save_best],
                                            &j->callbacks[*n], err);
        *n += status == SNUG_OK;
    }
    if (status == SNUG_OK && j->patience) {
        status = snug_callback_early_stopping(c->engine, quantity, (int)j->patience, 0,
                                              &j->callbacks[*n], err);
        *n += status == SNUG_OK;
    }
    if (status == SNUG_OK && j->reduce_rate) {
        const snug_plateau_options o = {.patience = (int)j->reduce_rate};
        status = snug_callback_reduce_on_plateau(c->engine, quantity, &o, &j->callbacks[*n], err);
        *n += status == SNUG_OK;
    }
    if (status == SNUG_OK && cli_given(c, OPT_csv)) {
        status = snug_callback_csv(c->engine, c->args.text[OPT_csv], &j->callbacks[*n], err);
        *n += status == SNUG_OK;
    }
    j->options.callbacks = j->callbacks;
    return status;
}

/* An epoch that was stopped in its middle has values, but no validation. */
static snug_status print_result(const cli *c, const snug_model *m, const fit_job *j,
                                const snug_fit_result *r, snug_error *err) {
    const bool validated =
        (j->options.val_data || j->options.val_dataset || j->options.validation_split > 0) &&
        r->epochs > 0;
    if (!cli_given(c, OPT_json))
        return cli_print_memory(c, err);
    printf("{\"epochs\":%d,\"steps\":%lld,\"stopped\":%s,\"arena_bytes\":%zu,"
           "\"predicted_peak_bytes\":%zu",
           r->epochs, (long long)r->steps, r->stopped ? "true" : "false", r->arena_bytes,
           r->predicted_bytes);
    if (j->options.dataset) {
        printf(",\"input_seconds\":");
        cli_print_json_number(stdout, r->input_seconds);
    }
    for (int i = 0; i < r->n_values; i++) {
        const char *name = i ? snug_model_metric_name(m, (size_t)i - 1) : "loss";
        printf(",\"%s\":", name);
        cli_print_json_number(stdout, r->values[i]);
        if (validated) {
            printf(",\"val_%s\":", name);
            cli_print_json_number(stdout, r->val_values[i]);
        }
    }
    const snug_status status = cli_print_memory(c, err);
    printf("}\n");
    return status;
}

/* The layer is looked for by a checked second forward pass. */
static void add_place_of_nan(snug_model *m, snug_error *err) {
    char where[384];
    const size_t n = strlen(err->text);
    if (snug_model_find_nan(m, where, sizeof where, NULL) == SNUG_OK)
        snprintf(err->text + n, sizeof err->text - n, "\n      %s", where);
}

static snug_status save(const cli *c, snug_model *m, snug_error *err) {
    if (!cli_given(c, OPT_save))
        return SNUG_OK;
    const snug_status status = snug_model_save_weights(m, c->args.text[OPT_save], err);
    if (status == SNUG_OK)
        fprintf(stderr, "saved %s\n", c->args.text[OPT_save]);
    return status;
}

static snug_status train(cli *c, snug_model *m, fit_job *j, snug_error *err) {
    snug_fit_result result = {.epochs = 0};
    cli_catch_interrupt();
    j->options.interrupted = cli_interrupted;
    snug_status status = snug_fit(m, &j->options, &result, err);
    progress_end(&j->bar);
    if (status == SNUG_E_NUMERIC)
        add_place_of_nan(m, err);
    if (status == SNUG_OK)
        status = save(c, m, err);
    if (status == SNUG_OK)
        status = print_result(c, m, j, &result, err);
    if (status == SNUG_OK && cli_interrupted(NULL))
        status = cli_fail(err, SNUG_E_INTERRUPTED, "stopped by the user after %lld step%s; %s",
                          (long long)result.steps, result.steps == 1 ? "" : "s",
                          cli_given(c, OPT_save) ? "the weights are saved"
                                                 : "--save would have kept the weights");
    return status;
}

/* Before data are opened: weights are taken for one number per example. */
static snug_status check_budget(cli *c, snug_model *m, const fit_job *j, snug_error *err) {
    const snug_plan_request request = {.batch = j->options.batch,
                                       .train = 1,
                                       .class_weight = c->args.text[OPT_class_weight],
                                       .n_sample_weights = c->args.n_all[OPT_sample_weight]};
    return snug_fit_check(m, &request, err);
}

/* Before the first step, which is planned here; where that does not fit, training says so. */
static void warn_missing(cli *c, snug_model *m, const fit_job *j) {
    snug_device_info device;
    char missing[96];
    if (snug_device_look(c->engine, &device, NULL) == SNUG_OK && device.total_bytes > 0 &&
        check_budget(c, m, j, NULL) == SNUG_OK &&
        snug_model_missing(m, missing, sizeof missing, NULL) == SNUG_OK && missing[0])
        fprintf(stderr, "warning: %s\n", missing);
}

snug_status cmd_fit(cli *c, snug_error *err) {
    snug_model *m = NULL;
    fit_job j = {.options = {.batch = 32}, .epochs = 1};
    snug_status status = read_numbers(c, &j, err);
    if (status == SNUG_OK)
        status = check_given(c, err);
    if (status == SNUG_OK)
        status = cli_load_model(c, true, &m, err);
    if (status == SNUG_OK)
        status = check_outputs(c, m, err);
    if (status == SNUG_OK && cli_given(c, OPT_plan))
        status = snug_model_pin_plan(m, j.options.batch, c->args.text[OPT_plan], err);
    if (status == SNUG_OK && (cli_given(c, OPT_budget) || cli_given(c, OPT_plan)))
        status = check_budget(c, m, &j, err);
    if (status == SNUG_OK)
        warn_missing(c, m, &j);
    if (status == SNUG_OK)
        status = (cli_given(c, OPT_data) ? open_pipelines : open_feeds)(c, m, &j, err);
    if (status == SNUG_OK)
        status = add_callbacks(c, &j, err);
    if (status == SNUG_OK)
        status = train(c, m, &j, err);
    for (size_t i = 0; i < j.options.n_callbacks; i++)
        if (j.callbacks[i].destroy)
            j.callbacks[i].destroy(j.callbacks[i].ctx);
    snug_model_destroy(m);
    snug_dataset_drop(j.options.dataset);
    snug_dataset_drop(j.options.val_dataset);
    cli_close_data(&j.val_data);
    cli_close_data(&j.data);
    return status;
}
