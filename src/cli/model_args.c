/* model_args.c: from options to a model, feeds and outputs. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static snug_compile compile_of(const cli *c) {
    return (snug_compile){.optimizer = c->args.text[OPT_optimizer],
                          .loss = c->args.text[OPT_loss],
                          .metrics = c->args.text[OPT_metrics],
                          .loss_weights = c->args.text[OPT_loss_weights],
                          .weighted_metrics = c->args.text[OPT_weighted_metrics],
                          .precision = c->args.text[OPT_precision]};
}

/* A name that the library does not know is, in an option, a wrong argument. */
static snug_status apply_compile(const cli *c, snug_model *m, snug_error *err) {
    const snug_compile compile = compile_of(c);
    const snug_status status = snug_model_compile(m, &compile, err);
    return status == SNUG_E_UNSUPPORTED ? SNUG_E_INVALID : status;
}

static snug_status apply_options(cli *c, snug_model *m, snug_error *err) {
    const char *dtype = c->args.text[OPT_dtype], *precision = c->args.text[OPT_precision];
    int64_t seed = 0;
    snug_status status = cli_integer(c, OPT_seed, 0, INT64_MAX, &seed, err);
    if (status == SNUG_OK)
        status = snug_model_set_seed(m, (uint64_t)seed, err);
    if (status == SNUG_OK && dtype && strcmp(dtype, "f32") && strcmp(dtype, "f64"))
        status = cli_fail(err, SNUG_E_INVALID, "--dtype is f32 or f64, not '%s'", dtype);
    if (status == SNUG_OK && dtype)
        status = snug_model_set_dtype(m, strcmp(dtype, "f64") == 0 ? SNUG_F64 : SNUG_F32, err);
    if (status == SNUG_OK && dtype && precision)
        status = cli_fail(err, SNUG_E_INVALID, "--dtype and --precision say the same; give one");
    if (status == SNUG_OK)
        status = apply_compile(c, m, err);
    if (status == SNUG_OK && cli_given(c, OPT_weights))
        status = snug_model_load_weights(m, c->args.text[OPT_weights], err);
    return status;
}

snug_status cli_load_model(cli *c, bool asks, snug_model **out, snug_error *err) {
    static const snug_compile unused = {.optimizer = "sgd",
                                        .loss = "mse",
                                        .metrics = "",
                                        .loss_weights = "",
                                        .weighted_metrics = ""};
    snug_compile given = compile_of(c);
    given.precision = NULL; /* apply_options sets it */
    snug_model *m;
    snug_status status =
        snug_model_load_with(c->engine, c->args.operand[0], c->args.text[OPT_input_shape],
                             asks ? &given : &unused, &m, err);
    if (status != SNUG_OK)
        return status;
    status = apply_options(c, m, err);
    if (status == SNUG_OK)
        *out = m;
    else
        snug_model_destroy(m);
    return status;
}

void cli_note_weights(const cli *c, const snug_model *m) {
    if (!cli_given(c, OPT_weights) && snug_model_n_weights(m) > 0)
        fprintf(stderr,
                "note: without --weights the model has new weights, which nobody trained\n");
}

/* --- feeds ------------------------------------------------------------------------------------ */
int cli_named(const snug_model *m, bool input, const char *argument, const char **value) {
    const size_t n = strcspn(argument, "=");
    const size_t count = input ? snug_model_n_inputs(m) : snug_model_n_outputs(m);
    *value = argument;
    for (size_t i = 0; i < count && argument[n]; i++) {
        const char *name = input ? snug_model_input_name(m, i) : snug_model_output_name(m, i);
        if (strlen(name) == n && n > 0 && strncmp(name, argument, n) == 0) {
            *value = argument + n + 1;
            return (int)i;
        }
    }
    return -1;
}

/* An output that asks for nothing is passed over: no y is read for it. */
static bool wants_feed(const snug_model *m, bool input, size_t i) {
    snug_type target;
    return input || snug_model_target_at(m, i, &target);
}

static snug_status open_feeds(cli *c, const snug_model *m, option_id id, bool input,
                              snug_feed **feeds, snug_error *err) {
    const size_t count = input ? snug_model_n_inputs(m) : snug_model_n_outputs(m);
    const int n = id == N_OPTIONS ? 0 : c->args.n_all[id];
    size_t next = 0;
    for (int k = 0; k < n; k++) {
        const char *path;
        const int named = cli_named(m, input, c->args.all[id][k], &path);
        while (named < 0 && next < count && (feeds[next] || !wants_feed(m, input, next)))
            next++;
        const size_t at = named < 0 ? next : (size_t)named;
        if (at >= count || feeds[at])
            return cli_fail(err, SNUG_E_INVALID, "--%s %s is one too many; the model has %zu %s",
                            cli_options[id].name, c->args.all[id][k], count,
                            input ? "inputs" : "outputs");
        const snug_status status = snug_feed_open(c->engine, path, &feeds[at], err);
        if (status != SNUG_OK)
            return status;
    }
    return SNUG_OK;
}

snug_status cli_open_data(cli *c, const snug_model *m, cli_data_options ids, cli_data *d,
                          snug_error *err) {
    const int n_weights = ids.weight == N_OPTIONS ? 0 : c->args.n_all[ids.weight];
    const int n_y = ids.y == N_OPTIONS ? 0 : c->args.n_all[ids.y];
    snug_status status = open_feeds(c, m, ids.x, true, d->x, err);
    if (status == SNUG_OK)
        status = open_feeds(c, m, ids.y, false, d->y, err);
    if (status == SNUG_OK)
        status = open_feeds(c, m, ids.weight, false, d->weight, err);
    d->data = (snug_data){.x = d->x,
                          .n_x = (int)snug_model_n_inputs(m),
                          .y = d->y,
                          .n_y = n_y ? (int)snug_model_n_outputs(m) : 0,
                          .sample_weight = d->weight,
                          .n_sample_weights = n_weights};
    return status;
}

void cli_close_data(cli_data *d) {
    for (int i = 0; i < CLI_MAX_REPEAT; i++) {
        snug_feed_destroy(d->weight[i]);
        snug_feed_destroy(d->y[i]);
        snug_feed_destroy(d->x[i]);
    }
}

/* A file there now is replaced only when the new one is complete: it gives no room. */
static snug_status check_room(int fd, const char *path, size_t bytes, snug_error *err) {
    struct statvfs fs;
    char needs[32], room[32];
    if (fstatvfs(fd, &fs) != 0 || fs.f_frsize == 0 || fs.f_bavail > SIZE_MAX / fs.f_frsize ||
        bytes <= (size_t)fs.f_bavail * fs.f_frsize)
        return SNUG_OK;
    return cli_fail(err, SNUG_E_IO,
                    "cannot write '%s': it will have %s and that disk has %s left; free space "
                    "there or choose another path",
                    path, snug_bytes_print(bytes, needs, sizeof needs),
                    snug_bytes_print((size_t)fs.f_bavail * fs.f_frsize, room, sizeof room));
}

static snug_status fail_output(const char *path, snug_error *err) {
    return cli_fail(err, SNUG_E_IO, "cannot write '%s': %s; choose another path", path,
                    strerror(errno));
}

/* Makes the file as the library will, beside the path or where its link leads to, and removes it
 * again. Devices and pipes are written to themselves; to open a pipe would wait for its reader. */
snug_status cli_check_file(const cli *c, const char *path, size_t bytes, snug_error *err) {
    struct stat there;
    snug_file *file;
    if (cli_is_folder(path))
        return cli_fail(err, SNUG_E_IO, "cannot write '%s': it is a folder; name a file", path);
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return access(path, W_OK) == 0 ? SNUG_OK : fail_output(path, err);
    if (snug_file_create(c->engine, path, &file, err) != SNUG_OK)
        return err->code;
    const int fd = open(snug_file_name(file), O_RDONLY | O_CLOEXEC);
    const snug_status status = fd < 0 ? fail_output(path, err) : check_room(fd, path, bytes, err);
    if (fd >= 0)
        close(fd);
    snug_file_destroy(file);
    return status;
}

snug_status cli_check_output(const cli *c, option_id id, size_t bytes, snug_error *err) {
    return cli_given(c, id) ? cli_check_file(c, c->args.text[id], bytes, err) : SNUG_OK;
}

snug_status cli_print_memory(const cli *c, snug_error *err) {
    if (!cli_given(c, OPT_memory))
        return SNUG_OK;
    if (cli_given(c, OPT_json))
        printf(",\"memory\":");
    return snug_report_memory(c->engine, c->style, &cli_stdout, err);
}
