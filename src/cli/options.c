/* options.c: --name VALUE, --name=VALUE, and help, from the two tables. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name, *argument, *help;
} option_row;

static const option_row rows[N_OPTIONS] = {
#define OPTION(id, name, argument, help) [OPT_##id] = {name, argument, help},
#include "options.def"
#undef OPTION
};

#define COMMON (1ull << OPT_help | 1ull << OPT_json | 1ull << OPT_color | 1ull << OPT_threads)

static snug_status fail(snug_error *err, const char *format, const char *a, const char *b) {
    err->code = SNUG_E_INVALID;
    snprintf(err->text, sizeof err->text, format, a, b);
    return SNUG_E_INVALID;
}

static int find_option(const char *name, size_t n) {
    for (int i = 0; i < N_OPTIONS; i++)
        if (strlen(rows[i].name) == n && strncmp(rows[i].name, name, n) == 0)
            return i;
    return -1;
}

/* One "--..." word; *used is set when the next word was its value. */
static snug_status parse_option(const cli_command *command, const char *word, const char *next,
                                cli_args *out, bool *used, snug_error *err) {
    const char *name = strcmp(word, "-v") == 0   ? "verbose"
                       : strcmp(word, "-h") == 0 ? "help"
                                                 : word + 2;
    const size_t n = strcspn(name, "=");
    const int id = find_option(name, n);
    if (id < 0 || !((command->options | COMMON) >> id & 1))
        return fail(err, "snug %s has no option %s; see --help", command->name, word);
    if (!rows[id].argument && name[n])
        return fail(err, "--%s takes no value%s", rows[id].name, "");
    *used = rows[id].argument && !name[n];
    if (*used && !next)
        return fail(err, "--%s needs a value: %s", rows[id].name, rows[id].argument);
    out->text[id] = !rows[id].argument ? "" : name[n] ? name + n + 1 : next;
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
            return fail(err, "snug %s: what is '%s'? see --help", command->name, argv[i]);
        } else {
            out->operand[out->n_operands++] = argv[i];
        }
    }
    if (out->n_operands < command->min_operands && !out->text[OPT_help])
        return fail(err, "snug %s needs %s; see --help", command->name, command->operands);
    return SNUG_OK;
}

bool cli_given(const cli *c, option_id id) {
    return c->args.text[id] != NULL;
}

snug_status cli_integer(const cli *c, option_id id, int64_t low, int64_t high, int64_t *inout,
                        snug_error *err) {
    char *end;
    if (!cli_given(c, id))
        return SNUG_OK;
    errno = 0;
    const long long v = strtoll(c->args.text[id], &end, 10);
    if (errno || *end || end == c->args.text[id] || v < low || v > high) {
        err->code = SNUG_E_INVALID;
        snprintf(err->text, sizeof err->text, "--%s %s: a whole number from %lld to %lld is needed",
                 rows[id].name, c->args.text[id], (long long)low, (long long)high);
        return SNUG_E_INVALID;
    }
    *inout = v;
    return SNUG_OK;
}

snug_status cli_real(const cli *c, option_id id, double low, double high, double *inout,
                     snug_error *err) {
    char *end;
    if (!cli_given(c, id))
        return SNUG_OK;
    const double v = strtod(c->args.text[id], &end);
    if (*end || end == c->args.text[id] || !(v >= low && v <= high)) {
        err->code = SNUG_E_INVALID;
        snprintf(err->text, sizeof err->text, "--%s %s: a number from %g to %g is needed",
                 rows[id].name, c->args.text[id], low, high);
        return SNUG_E_INVALID;
    }
    *inout = v;
    return SNUG_OK;
}

static void print_overview(FILE *out) {
    fprintf(out,
            "snug %s: train and run neural networks inside a number of bytes\n\nusage: snug "
            "COMMAND ...\n\n",
            SNUG_VERSION_TEXT);
    for (int i = 0; i < cli_n_commands; i++)
        fprintf(out, "  %-10s %-14s %s\n", cli_commands[i].name, cli_commands[i].operands,
                cli_commands[i].help);
    fprintf(out, "\n`snug COMMAND --help` tells the options. `snug --version` the version.\n"
                 "Exit codes: 0 ok, 1 failed, 2 usage, 3 does not fit, 4 bad input file, 5 NaN or "
                 "infinity,\n"
                 "6 file or disk, 70 a bug in Snug, 130 stopped by Ctrl-C (weights saved).\n");
}

void cli_print_help(const cli_command *command, FILE *out) {
    if (!command) {
        print_overview(out);
        return;
    }
    fprintf(out, "usage: snug %s %s [options]\n\n%s\n\n", command->name, command->operands,
            command->help);
    for (int i = 0; i < N_OPTIONS; i++) {
        char left[64];
        if (!((command->options | COMMON) >> i & 1))
            continue;
        snprintf(left, sizeof left, "--%s %s", rows[i].name,
                 rows[i].argument ? rows[i].argument : "");
        fprintf(out, "  %-30s %s\n", left, rows[i].help);
    }
}
