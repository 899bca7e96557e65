/* data_args.c: from options to a pipeline:
 *
 *     source -> shuffle -> functions of --map -> pictures, augmented -> batch -> prefetch */
#include "cli.h"

#include <snug/data_files.h>
#include <snug/data_ops.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

snug_status cli_size_pipeline(const cli *c, const snug_model *m, cli_pipeline *p, snug_error *err) {
    const snug_type *input = snug_model_input_at(m, 0);
    p->sources = c->args.all[OPT_data];
    p->n_sources = c->args.n_all[OPT_data];
    if (input->rank != 4 && (cli_is_folder(p->sources[0]) || cli_given(c, OPT_augment)))
        return cli_fail(err, SNUG_E_SHAPE,
                        "the model's input is no picture (height, width, channels), which a folder "
                        "and --augment give");
    for (int i = 0; i < 3 && input->rank == 4; i++)
        p->size[i] = input->dims[i + 1];
    return SNUG_OK;
}

/* --- sources ---------------------------------------------------------------------------------- */
static int interrupted(void *ctx, int64_t files) {
    (void)files;
    return cli_interrupted(ctx);
}

/* A folder of make-data holds arrays and no pictures: those have names. What else went wrong stands
 * as it was said. */
static snug_status name_arrays(const char *folder, snug_status status, snug_error *err) {
    char path[1100];
    snprintf(path, sizeof path, "%s/x_train.npy", folder);
    if (status != SNUG_E_DATA || err->cause != SNUG_CAUSE_NO_PICTURES || access(path, R_OK) != 0)
        return status;
    return cli_fail(err, status,
                    "'%.200s' holds arrays, not pictures; name them: %.200s/x_train.npy and "
                    "y_train.npy, as --x and --y or as --data each",
                    folder, folder);
}

static snug_status open_folder(cli *c, const cli_pipeline *p, snug_dataset **out, snug_error *err) {
    snug_folder_info info = {0};
    int64_t seed = 0;
    snug_status status = cli_integer(c, OPT_seed, 0, INT64_MAX, &seed, err);
    if (status != SNUG_OK)
        return status;
    const snug_folder folder = {
        .path = p->sources[0],
        .kind = p->unlabelled ? SNUG_LABELS_NONE : SNUG_LABELS_CLASSES,
        .shuffle = p->validation_split > 0, /* or whole classes would be split off */
        .seed = (uint32_t)seed,
        .validation_split = p->validation_split,
        .subset = p->validation_split == 0 ? SNUG_SUBSET_ALL
                  : p->validation          ? SNUG_SUBSET_VALIDATION
                                           : SNUG_SUBSET_TRAINING,
        .progress = interrupted,
    };
    status = snug_dataset_from_folder(c->engine, &folder, out, &info, err);
    if (status == SNUG_OK)
        snug_datum_drop(&info.classes);
    return name_arrays(p->sources[0], status, err);
}

static snug_status open_records(cli *c, const cli_pipeline *p, snug_dataset **out,
                                snug_error *err) {
    snug_text names[CLI_MAX_REPEAT];
    snug_dataset *files;
    const bool packed = ends_with(p->sources[0], ".gz");
    for (int i = 0; i < p->n_sources; i++)
        names[i] = (snug_text){p->sources[i], strlen(p->sources[i])};
    const snug_status status = snug_dataset_list_files(c->engine, names, p->n_sources, &files, err);
    if (status != SNUG_OK)
        return status;
    return snug_dataset_records(files, SNUG_RECORDS, packed ? SNUG_GZIP : SNUG_PLAIN, out, err);
}

static snug_status name_maker(const char *name, snug_status status, snug_error *err) {
    if ((strcmp(name, "blobs") != 0 && strcmp(name, "shapes") != 0) || access(name, F_OK) == 0)
        return status;
    return cli_fail(err, status, "there is no file '%s'; `snug make-data %s DIR` makes such data",
                    name, name);
}

static snug_status open_rows(cli *c, const cli_pipeline *p, snug_dataset **out, snug_error *err) {
    snug_feed *feeds[CLI_MAX_REPEAT];
    for (int i = 0; i < p->n_sources; i++) {
        const snug_status status = snug_feed_open(c->engine, p->sources[i], &feeds[i], err);
        if (status == SNUG_OK)
            continue;
        const char *name = p->sources[i];
        while (i > 0)
            snug_feed_destroy(feeds[--i]);
        return status == SNUG_E_IO ? name_maker(name, status, err) : status;
    }
    return snug_dataset_from_feeds(c->engine, feeds, p->n_sources, out, err);
}

snug_status cli_open_source(cli *c, const cli_pipeline *p, snug_dataset **out, snug_error *err) {
    const char *first = p->sources[0];
    if (cli_is_folder(first) && p->n_sources > 1)
        return cli_fail(err, SNUG_E_INVALID, "one folder of pictures at a time, not %d",
                        p->n_sources);
    if (cli_is_folder(first))
        return open_folder(c, p, out, err);
    if (p->validation_split > 0)
        return cli_fail(err, SNUG_E_INVALID,
                        "--validation-split goes with a folder, or with --x and --y");
    if (ends_with(first, ".tfrecord") || ends_with(first, ".tfrecords") ||
        ends_with(first, ".tfrecord.gz"))
        return open_records(c, p, out, err);
    return open_rows(c, p, out, err);
}

/* --- functions of --map ----------------------------------------------------------------------- */
static void release_function(void *op) {
    snug_data_op_destroy(op);
}

/* "NAME:K=V;K=V" */
static snug_status make_function(cli *c, const char *text, snug_data_op **out, snug_error *err) {
    snug_data_attr attrs[16];
    char copy[2048], *rest = NULL;
    int n = 0;
    if (strlen(text) >= sizeof copy)
        return cli_fail(err, SNUG_E_INVALID, "--map %.40s... is too long", text);
    strcpy(copy, text);
    char *colon = strchr(copy, ':');
    if (colon)
        *colon = '\0';
    for (char *word = colon ? strtok_r(colon + 1, ";", &rest) : NULL; word && n < 16;
         word = strtok_r(NULL, ";", &rest)) {
        char *equal = strchr(word, '=');
        if (!equal)
            return cli_fail(err, SNUG_E_INVALID, "--map %s: '%s' is no K=V", text, word);
        *equal = '\0';
        attrs[n++] = (snug_data_attr){word, {equal + 1, strlen(equal + 1)}};
    }
    return snug_data_op_create(c->engine, copy, attrs, n, out, err);
}

/* What the function gives of the first part takes its place. */
static snug_status call_function(void *op, void *worker, const snug_element *in, snug_element *out,
                                 snug_error *err) {
    int n = 0;
    (void)worker;
    const snug_status status = snug_data_op_call(op, (uint64_t)in->index, in->part, 1, out->part,
                                                 SNUG_MAX_PARTS - in->n, &n, err);
    if (status != SNUG_OK)
        return status;
    out->n = n + in->n - 1;
    for (int i = 1; i < in->n; i++) {
        out->part[n + i - 1] = in->part[i];
        snug_datum_hold(&in->part[i]);
    }
    return SNUG_OK;
}
static snug_status spec_of_function(void *op, const snug_spec *in, snug_spec *out,
                                    snug_error *err) {
    const snug_spec first = {.n = 1, .type = {in->type[0]}, .is_text = {in->is_text[0]}};
    snug_spec now = {0};
    const snug_status status = snug_data_op_spec(op, &first, &now, err);
    if (status != SNUG_OK)
        return status;
    for (int i = 1; i < in->n && now.n < SNUG_MAX_PARTS; i++, now.n++) {
        now.type[now.n] = in->type[i];
        now.is_text[now.n] = in->is_text[i];
    }
    *out = now;
    return SNUG_OK;
}

/* d is taken over. */
static snug_status add_function(cli *c, const char *text, snug_dataset *d, snug_dataset **out,
                                snug_error *err) {
    snug_data_op *op;
    snug_status status = make_function(c, text, &op, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    const snug_mapper mapper = {
        .ctx = op, .release = release_function, .spec = spec_of_function, .call = call_function};
    status = snug_dataset_map(d, &mapper, &(snug_map_options){.workers = SNUG_AUTOTUNE}, out, err);
    if (status != SNUG_OK)
        release_function(op);
    return status;
}

/* --- stages ----------------------------------------------------------------------------------- */
static snug_status add_shuffle(cli *c, const cli_pipeline *p, snug_dataset *d, snug_dataset **out,
                               snug_error *err) {
    const int64_t all = snug_dataset_cardinality(d);
    int64_t seed = 0, buffer = cli_is_folder(p->sources[0]) && all > 0 ? all : 10000;
    snug_status status = cli_integer(c, OPT_seed, 0, INT64_MAX, &seed, err);
    if (status == SNUG_OK)
        status = cli_integer(c, OPT_buffer, 1, INT64_MAX, &buffer, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    return snug_dataset_shuffle(d, &(snug_shuffle){.buffer = buffer, .seed = (uint64_t)seed}, out,
                                err);
}

static snug_status add_pictures(cli *c, const cli_pipeline *p, snug_dataset *d, snug_dataset **out,
                                snug_error *err) {
    int64_t seed = 0;
    const snug_status status = cli_integer(c, OPT_seed, 0, INT64_MAX, &seed, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    const snug_pictures o = {.height = p->size[0],
                             .width = p->size[1],
                             .channels = p->size[2],
                             .augment = p->validation ? NULL : c->args.text[OPT_augment],
                             .seed = (uint64_t)seed,
                             .map = {.workers = SNUG_AUTOTUNE}};
    return snug_dataset_pictures(d, &o, out, err);
}

snug_status cli_open_pipeline(cli *c, const cli_pipeline *p, snug_dataset **out, snug_error *err) {
    snug_dataset *d;
    snug_status status = cli_open_source(c, p, &d, err);
    if (status == SNUG_OK && cli_given(c, OPT_shuffle) && !p->validation)
        status = add_shuffle(c, p, d, &d, err);
    for (int i = 0; i < c->args.n_all[OPT_map] && status == SNUG_OK; i++)
        status = add_function(c, c->args.all[OPT_map][i], d, &d, err);
    if (status == SNUG_OK && (cli_is_folder(p->sources[0]) || cli_given(c, OPT_augment)))
        status = add_pictures(c, p, d, &d, err);
    if (status == SNUG_OK)
        status = snug_dataset_batch(d, p->batch, 0, &d, err);
    if (status == SNUG_OK)
        status = snug_dataset_prefetch(d, SNUG_AUTOTUNE, out, err);
    return status;
}
