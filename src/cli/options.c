/* options.c: --name VALUE, --name=VALUE, and help, from the two tables. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const cli_option cli_options[N_OPTIONS] = {
#define OPTION(id, name, argument, help) [OPT_##id] = {name, argument, help},
#include "options.def"
#undef OPTION
};

#define COMMON (1ull << OPT_help | 1ull << OPT_json | 1ull << OPT_color | 1ull << OPT_threads)

bool cli_takes(const cli_command *command, int option) {
    const uint64_t options = command ? command->options | COMMON : COMMON;
    return (options >> option & 1) != 0;
}

static int find_option(const char *name, size_t n) {
    for (int i = 0; i < N_OPTIONS; i++)
        if (strlen(cli_options[i].name) == n && strncmp(cli_options[i].name, name, n) == 0)
            return i;
    return -1;
}

static snug_status unknown_option(const cli_command *command, const char *word, const char *name,
                                  snug_error *err) {
    const char *near = NULL;
    int best = cli_near(name);
    for (int i = 0; i < N_OPTIONS; i++) {
        const int d = cli_takes(command, i) ? cli_distance(name, cli_options[i].name) : best;
        if (d < best) {
            best = d;
            near = cli_options[i].name;
        }
    }
    return cli_fail(err, SNUG_E_INVALID, "snug %s has no option %s; %s%s%s", command->name, word,
                    near ? "did you mean --" : "`snug ", near ? near : command->name,
                    near ? "?" : " --help` lists them");
}

/* One "--..." word; *used is set when the next word was its value. */
static snug_status parse_option(const cli_command *command, const char *word, const char *next,
                                cli_args *out, bool *used, snug_error *err) {
    const char *name = strcmp(word, "-v") == 0       ? "verbose"
                       : strcmp(word, "-h") == 0     ? "help"
                       : strncmp(word, "--", 2) == 0 ? word + 2
                                                     : "";
    const size_t n = strcspn(name, "=");
    const int id = find_option(name, n);
    if (id < 0 || !cli_takes(command, id))
        return unknown_option(command, word, name, err);
    if (!cli_options[id].argument && name[n])
        return cli_fail(err, SNUG_E_INVALID, "--%s takes no value", cli_options[id].name);
    *used = cli_options[id].argument && !name[n];
    if (*used && !next)
        return cli_fail(err, SNUG_E_INVALID, "--%s needs a value: %s", cli_options[id].name,
                        cli_options[id].argument);
    out->text[id] = !cli_options[id].argument ? "" : name[n] ? name + n + 1 : next;
    if (out->n_all[id] == CLI_MAX_REPEAT)
        return cli_fail(err, SNUG_E_INVALID, "--%s is given more than %d times",
                        cli_options[id].name, CLI_MAX_REPEAT);
    out->all[id][out->n_all[id]++] = out->text[id];
    if (cli_options[id].argument && !out->text[id][0])
        return cli_fail(err, SNUG_E_INVALID, "--%s has an empty value; it needs %s",
                        cli_options[id].name, cli_options[id].argument);
    return SNUG_OK;
}

snug_status cli_parse(const cli_command *command, int argc, char **argv, cli_args *out,
                      snug_error *err) {
    for (int i = 0; i < argc; i++) {
        bool used = false;
        if (argv[i][0] == '-' && argv[i][1]) {
            const char *next = i + 1 < argc ? argv[i + 1] : NULL;
            if (parse_option(command, argv[i], next, out, &used, err) != SNUG_OK)
                return err->code;
            i += used;
        } else if (out->n_operands == command->max_operands) {
            return cli_fail(err, SNUG_E_INVALID, "snug %s: '%s' is one too many; it takes %s",
                            command->name, argv[i],
                            command->operands[0] ? command->operands : "options only");
        } else {
            out->operand[out->n_operands++] = argv[i];
        }
    }
    if (out->n_operands < command->min_operands && !out->text[OPT_help])
        return cli_fail(err, SNUG_E_INVALID, "snug %s needs %s; see `snug %s --help`",
                        command->name, command->operands, command->name);
    return SNUG_OK;
}

bool cli_given(const cli *c, option_id id) {
    return c->args.text[id] != NULL;
}

snug_status cli_integer(const cli *c, option_id id, int64_t low, int64_t high, int64_t *inout,
                        snug_error *err) {
    const char *text = c->args.text[id];
    char *end;
    if (!text)
        return SNUG_OK;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (errno == 0 && !*end && end != text && v >= low && v <= high) {
        *inout = v;
        return SNUG_OK;
    }
    if (high >= INT32_MAX && (errno || v > high))
        return cli_fail(err, SNUG_E_INVALID, "--%s %s: a whole number of at most %lld is needed",
                        cli_options[id].name, text, (long long)high);
    if (high >= INT32_MAX)
        return cli_fail(err, SNUG_E_INVALID, "--%s %s: a whole number of at least %lld is needed",
                        cli_options[id].name, text, (long long)low);
    return cli_fail(err, SNUG_E_INVALID, "--%s %s: a whole number from %lld to %lld is needed",
                    cli_options[id].name, text, (long long)low, (long long)high);
}

snug_status cli_real(const cli *c, option_id id, double low, double high, double *inout,
                     snug_error *err) {
    const char *text = c->args.text[id];
    char *end;
    if (!text)
        return SNUG_OK;
    const double v = strtod(text, &end);
    if (*end || end == text || !(v >= low && v <= high))
        return cli_fail(err, SNUG_E_INVALID, "--%s %s: a number from %g to %g is needed",
                        cli_options[id].name, text, low, high);
    *inout = v;
    return SNUG_OK;
}

static void print_overview(FILE *out) {
    fprintf(out,
            "snug %s: train and run neural networks inside a number of bytes\n\n"
            "usage: snug COMMAND ...\n\n",
            snug_version());
    for (int i = 0; i < cli_n_commands; i++)
        fprintf(out, "  %-10s %-17s %s\n", cli_commands[i].name, cli_commands[i].operands,
                cli_commands[i].help);
    fprintf(
        out,
        "\n`snug COMMAND --help` lists the options, `snug --version` the version.\n"
        "Data go to stdout, messages to stderr; --json makes the data JSON.\n"
        "Exit codes: 0 ok, 1 not built or no memory, 2 usage, 3 does not fit, 4 bad input file or\n"
        "data, 5 NaN or infinity, 6 file or disk, 70 a bug in Snug, 130 stopped by Ctrl-C "
        "(weights\n"
        "saved).\n");
}

void cli_print_help(const cli_command *command, FILE *out) {
    if (!command) {
        print_overview(out);
        return;
    }
    fprintf(out, "usage: snug %s %s%s[options]\n\n%s\n", command->name, command->operands,
            command->operands[0] ? " " : "", command->help);
    fprintf(out, "%sExample: snug %s\n\n", command->more, command->example);
    for (int i = 0; i < N_OPTIONS; i++) {
        char left[64];
        if (!cli_takes(command, i))
            continue;
        snprintf(left, sizeof left, "--%s %s", cli_options[i].name,
                 cli_options[i].argument ? cli_options[i].argument : "");
        fprintf(out, "  %-30s %s\n", left, cli_options[i].help);
    }
}
