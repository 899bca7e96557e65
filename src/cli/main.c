/* main.c: find the command, make the engine, run, translate the status into an exit code. */
#include "cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_color(const cli *c, int fd) {
    const char *when = c->args.text[OPT_color], *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (when && strcmp(when, "always") == 0)
        return true;
    if ((when && strcmp(when, "never") == 0) || (no_color && *no_color) ||
        (term && strcmp(term, "dumb") == 0))
        return false;
    return isatty(fd) != 0;
}

static snug_status set_host_budget(cli *c, option_id id, snug_error *err) {
    size_t bytes = 0;
    if (!cli_given(c, id))
        return SNUG_OK;
    const snug_status status = snug_budget_parse(c->args.text[id], &bytes, err);
    return status == SNUG_OK ? snug_budget(c->engine, bytes, err) : status;
}

/* "auto", or no budget at all: what is left there when a step is planned. */
static snug_status set_device(cli *c, snug_error *err) {
    const char *text = c->args.text[OPT_budget];
    const snug_device_options o = {.exact = cli_given(c, OPT_exact)};
    snug_device_info card = {.total_bytes = 0};
    size_t bytes = 0;
    snug_status status = snug_device(c->engine, c->args.text[OPT_device], &o, err);
    if (status == SNUG_OK)
        status = snug_device_look(c->engine, &card, err);
    if (status == SNUG_OK && text)
        status = snug_device_budget_parse(text, card.total_bytes, &bytes, err);
    if (status == SNUG_OK)
        status = snug_device_budget(c->engine, bytes, err);
    return status == SNUG_OK ? set_host_budget(c, OPT_host_budget, err) : status;
}

static snug_status set_budget(cli *c, snug_error *err) {
    const char *spill = c->args.text[OPT_spill], *device = c->args.text[OPT_device];
    snug_status status = SNUG_OK;
    if (spill && strcmp(spill, "off") != 0)
        status = snug_spill(c->engine, spill, err);
    if (status != SNUG_OK)
        return status;
    if (device && strcmp(device, "cpu") != 0)
        return set_device(c, err);
    if (cli_given(c, OPT_host_budget))
        return cli_fail(err, SNUG_E_INVALID, "--host-budget goes with --device gpu; use --budget");
    return set_host_budget(c, OPT_budget, err);
}

static snug_status start_and_run(const cli_command *command, cli *c, snug_error *err) {
    int64_t threads = 0;
    const char *when = c->args.text[OPT_color];
    if (when && strcmp(when, "auto") && strcmp(when, "always") && strcmp(when, "never"))
        return cli_fail(err, SNUG_E_INVALID, "--color is auto, always or never, not '%s'", when);
    snug_status status = cli_integer(c, OPT_threads, 1, 1024, &threads, err);
    const snug_engine_options options = {.n_threads = (int)threads};
    if (status == SNUG_OK)
        status = snug_engine_create(&options, &c->engine, err);
    if (status != SNUG_OK)
        return status;
    status = set_budget(c, err);
    if (status != SNUG_OK) {
        snug_engine_destroy(c->engine);
        return status;
    }
    c->color_out = wants_color(c, STDOUT_FILENO);
    c->color_err = wants_color(c, STDERR_FILENO);
    c->style =
        (cli_given(c, OPT_json) ? SNUG_REPORT_JSON : 0) | (c->color_out ? SNUG_REPORT_COLOR : 0);
    cli_load_rates(c);
    progress_tell_passes(c);
    status = command->run(c, err);
    snug_engine_destroy(c->engine);
    return status;
}

/* The words before any command: --help, --version, help COMMAND. False: word is none of them. */
static bool run_word(const char *word, const char *next, snug_status *status, snug_error *err) {
    const char *near;
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("snug %s\n", snug_version());
        return true;
    }
    if (strcmp(word, "--help") != 0 && strcmp(word, "-h") != 0 && strcmp(word, "help") != 0)
        return false;
    const cli_command *command = next ? cli_find_command(next, &near) : NULL;
    if (next && !command)
        *status = cli_fail(err, SNUG_E_INVALID,
                           "there is no command '%s'; `snug --help` lists them", next);
    else
        cli_print_help(command, stdout);
    return true;
}

static snug_status run_command(int argc, char **argv, cli *c, snug_error *err) {
    const char *near;
    const cli_command *command = cli_find_command(argv[1], &near);
    if (!command)
        return cli_fail(err, SNUG_E_INVALID, "there is no command '%s'; %s%s%s", argv[1],
                        near ? "did you mean `snug " : "`snug --help", near ? near : "",
                        near ? "`?" : "` lists them");
    const snug_status status = cli_parse(command, argc - 2, argv + 2, &c->args, err);
    if (status != SNUG_OK)
        return status;
    if (c->args.text[OPT_help]) {
        cli_print_help(command, stdout);
        return SNUG_OK;
    }
    return start_and_run(command, c, err);
}

static int exit_code(snug_status status) {
    const int by = cli_interrupted(NULL);
    return status == SNUG_E_INTERRUPTED && by ? 128 + by : snug_status_exit_code(status);
}

/* The library says what to give; here it is an option. */
static const char *find_option(snug_cause cause) {
    static const struct {
        snug_cause cause;
        const char *option;
    } rows[] = {
        {SNUG_CAUSE_NO_SHAPE, " (--input-shape 96,96,3)"},
        {SNUG_CAUSE_NO_SETTINGS, " (--loss, --optimizer, --metrics)"},
        {SNUG_CAUSE_NO_SPILL_FOLDER, " (--spill DIR)"},
        {SNUG_CAUSE_NO_BUDGET, " (--budget auto)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].cause == cause)
            return rows[i].option;
    return "";
}

int main(int argc, char **argv) {
    signal(SIGXFSZ, SIG_IGN); /* a file that must not grow fails as a full disk does */
    cli_settle_heap();
    cli c = {.engine = NULL};
    snug_error err = {.code = SNUG_OK};
    snug_status status = SNUG_OK;
    if (argc < 2) {
        cli_print_help(NULL, stderr);
        return snug_status_exit_code(SNUG_E_INVALID);
    }
    if (!run_word(argv[1], argc > 2 ? argv[2] : NULL, &status, &err))
        status = run_command(argc, argv, &c, &err);
    if (fflush(stdout) != 0 && status == SNUG_OK)
        status = cli_fail(&err, SNUG_E_IO, "standard output cannot be written");
    if (status != SNUG_OK) {
        fprintf(stderr, "%ssnug:%s ", c.color_err ? "\x1b[31m" : "", c.color_err ? "\x1b[0m" : "");
        cli_print_plain(stderr, err.text[0] ? err.text : snug_status_meaning(status));
        fprintf(stderr, "%s\n", find_option(err.cause));
    }
    return exit_code(status);
}
