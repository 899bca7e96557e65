/* main.c: find the command, make the engine, run, translate the status into an exit code. */
#include "cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t
    interrupts; /* the one global: a signal handler has no other way to speak */

static void on_interrupt(int signal_number) {
    (void)signal_number;
    interrupts = 1;
}

void cli_catch_interrupt(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int cli_interrupted(void *ctx) {
    (void)ctx;
    return interrupts;
}

static snug_status write_stdout(void *ctx, const char *text, size_t n, snug_error *err) {
    (void)ctx;
    if (fwrite(text, 1, n, stdout) == n)
        return SNUG_OK;
    if (err) {
        err->code = SNUG_E_IO;
        snprintf(err->text, sizeof err->text, "standard output cannot be written");
    }
    return SNUG_E_IO;
}

const snug_writer cli_stdout = {NULL, write_stdout};

static bool wants_color(const cli *c, int fd) {
    const char *when = c->args.text[OPT_color], *no_color = getenv("NO_COLOR"),
               *term = getenv("TERM");
    if (when && strcmp(when, "always") == 0)
        return true;
    if ((when && strcmp(when, "never") == 0) || (no_color && *no_color) ||
        (term && strcmp(term, "dumb") == 0))
        return false;
    return isatty(fd) != 0;
}

static snug_status start_and_run(const cli_command *command, cli *c, snug_error *err) {
    int64_t threads = 0;
    const char *when = c->args.text[OPT_color];
    if (when && strcmp(when, "auto") && strcmp(when, "always") && strcmp(when, "never")) {
        err->code = SNUG_E_INVALID;
        snprintf(err->text, sizeof err->text, "--color is auto, always or never, not '%s'", when);
        return SNUG_E_INVALID;
    }
    snug_status status = cli_integer(c, OPT_threads, 1, 1024, &threads, err);
    const snug_engine_options options = {.n_threads = (int)threads};
    if (status == SNUG_OK)
        status = snug_engine_create(&options, &c->engine, err);
    if (status != SNUG_OK)
        return status;
    c->color_out = wants_color(c, STDOUT_FILENO);
    c->color_err = wants_color(c, STDERR_FILENO);
    c->style =
        (cli_given(c, OPT_json) ? SNUG_REPORT_JSON : 0) | (c->color_out ? SNUG_REPORT_COLOR : 0);
    status = command->run(c, err);
    snug_engine_destroy(c->engine);
    if (fflush(stdout) != 0 && status == SNUG_OK) {
        snprintf(err->text, sizeof err->text, "standard output cannot be written");
        status = SNUG_E_IO;
    }
    return status;
}

static const cli_command *find_command(const char *name) {
    for (int i = 0; i < cli_n_commands; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}

int main(int argc, char **argv) {
    cli c = {.engine = NULL};
    snug_error err = {SNUG_OK, ""};
    const char *word = argc > 1 ? argv[1] : "--help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("snug %s\n", snug_version());
        return 0;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        cli_print_help(argc > 2 ? find_command(argv[2]) : NULL, stdout);
        return argc > 1 ? 0 : 2;
    }
    const cli_command *command = find_command(word);
    if (!command) {
        fprintf(stderr, "snug: there is no command '%s'; `snug --help` lists them\n", word);
        return 2;
    }
    snug_status status = cli_parse(command, argc - 2, argv + 2, &c.args, &err);
    if (status == SNUG_OK && c.args.text[OPT_help]) {
        cli_print_help(command, stdout);
        return 0;
    }
    if (status == SNUG_OK)
        status = start_and_run(command, &c, &err);
    if (status != SNUG_OK && err.text[0])
        fprintf(stderr, "%ssnug:%s %s\n", c.color_err ? "\x1b[31m" : "",
                c.color_err ? "\x1b[0m" : "", err.text);
    return snug_status_exit_code(status);
}
