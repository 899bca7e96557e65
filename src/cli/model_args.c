/* model_args.c: from options to a model, feeds and outputs. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static snug_status apply_options(cli *c, snug_model *m, snug_error *err) {
    const snug_compile compile = {c->args.text[OPT_optimizer], c->args.text[OPT_loss],
                                  c->args.text[OPT_metrics]};
    const char *dtype = c->args.text[OPT_dtype];
    int64_t seed = 0;
    snug_status status = cli_integer(c, OPT_seed, 0, INT64_MAX, &seed, err);
    if (status == SNUG_OK)
        status = snug_model_set_seed(m, (uint64_t)seed, err);
    if (status == SNUG_OK && dtype && strcmp(dtype, "f32") && strcmp(dtype, "f64"))
        status = cli_fail(err, SNUG_E_INVALID, "--dtype is f32 or f64, not '%s'", dtype);
    if (status == SNUG_OK && dtype)
        status = snug_model_set_dtype(m, strcmp(dtype, "f64") == 0 ? SNUG_F64 : SNUG_F32, err);
    if (status == SNUG_OK)
        status = snug_model_compile(m, &compile, err);
    if (status == SNUG_OK && cli_given(c, OPT_weights))
        status = snug_model_load_weights(m, c->args.text[OPT_weights], err);
    return status;
}

snug_status cli_load_model(cli *c, snug_model **out, snug_error *err) {
    snug_model *m;
    snug_status status = snug_model_load(c->engine, c->args.operand[0], &m, err);
    if (status != SNUG_OK)
        return status;
    status = apply_options(c, m, err);
    if (status == SNUG_OK)
        *out = m;
    else
        snug_model_destroy(m);
    return status;
}

snug_status cli_open_feed(cli *c, option_id id, snug_feed **out, snug_error *err) {
    *out = NULL;
    return cli_given(c, id) ? snug_feed_open(c->engine, c->args.text[id], out, err) : SNUG_OK;
}

/* The library writes PATH.tmp first; so does this. */
snug_status cli_check_output(const cli *c, option_id id, snug_error *err) {
    const char *path = c->args.text[id];
    char tmp[1100];
    if (!path)
        return SNUG_OK;
    if ((size_t)snprintf(tmp, sizeof tmp, "%s.tmp", path) >= sizeof tmp)
        return cli_fail(err, SNUG_E_IO, "the path %.80s... is too long to write to", path);
    const int fd = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail(err, SNUG_E_IO, "cannot write '%s': %s; choose another path", path,
                        strerror(errno));
    close(fd);
    unlink(tmp);
    return SNUG_OK;
}

snug_status cli_print_memory(const cli *c, snug_error *err) {
    if (!cli_given(c, OPT_memory))
        return SNUG_OK;
    if (cli_given(c, OPT_json))
        printf(",\"memory\":");
    return snug_report_memory(c->engine, c->style, &cli_stdout, err);
}
