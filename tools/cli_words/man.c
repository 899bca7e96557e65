/* man.c: the pages snug(1) and snug-COMMAND(1), in the man macros. The pages carry no date: the same source gives the
 * same bytes. */
#include "words.h"

#include <ctype.h>
#include <string.h>

/* Text for the body: '-' and '\' as themselves, no line taken for a request. */
static void print_text(FILE *out, const char *text) {
    bool at_start = true;
    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        at_start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
    }
}

/* A help text of the tables as a sentence. */
static void print_sentence(FILE *out, const char *text) {
    fputc(toupper((unsigned char)*text), out);
    print_text(out, text + 1);
    fputs(".\n", out);
}

static void print_operands(FILE *out, const cli_command *command) {
    char word[MAX_WORD];
    for (int k = 0; operand_at(command->operands, k, word); k++) {
        fputs(kind_of(word) == KIND_WORDS ? "\\fB" : "\\fI", out);
        print_text(out, word);
        fputs("\\fR ", out);
    }
}

static void print_option(FILE *out, const cli_option *o) {
    fputs(".TP\n\\fB\\-\\-", out);
    print_text(out, o->name);
    fputs("\\fR", out);
    if (o->argument) {
        fputs(" \\fI", out);
        print_text(out, o->argument);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    print_text(out, o->help);
    fputs("\n", out);
}

static void print_options(FILE *out, const cli_command *command) {
    fputs(".SH OPTIONS\n", out);
    if (!command)
        fputs("Every command takes these; \\fB\\-\\-version\\fR without a command tells the "
              "version.\n",
              out);
    else
        fputs("A value follows its option as the next word or after an equals sign.\n", out);
    for (int o = 0; o < N_OPTIONS; o++)
        if (cli_takes(command, o))
            print_option(out, &cli_options[o]);
}

#define MAX_CODE 128

/* One entry per exit code, from the statuses; those that signals stand behind are said in words. */
static void print_exit_status(FILE *out) {
#define STATUS_ROW(name, exit_code, meaning) SNUG_##name,
    static const snug_status statuses[] = {SNUG_STATUS_MAP(STATUS_ROW)};
#undef STATUS_ROW
    fputs(".SH EXIT STATUS\n", out);
    for (int code = 0; code < MAX_CODE; code++) {
        bool any = false;
        for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
            if (snug_status_exit_code(statuses[i]) != code)
                continue;
            if (any)
                fputs("\n.br\n", out);
            else
                fprintf(out, ".TP\n.B %d\n", code);
            print_text(out, snug_status_meaning(statuses[i]));
            any = true;
        }
        if (any)
            fputc('\n', out);
    }
    fputs(".TP\n.B 128 + n\nended by signal n; 130 is Ctrl\\-C, after which \\fBfit\\fR has "
          "written the weights where\n"
          "\\fB\\-\\-save\\fR was given\n",
          out);
}

static void print_example(FILE *out, const char *line) {
    fputs("snug ", out);
    print_text(out, line);
    fputc('\n', out);
}

static void print_examples(FILE *out, const cli_command *command) {
    fputs(".SH EXAMPLES\n.EX\n", out);
    for (int i = 0; i < cli_n_commands; i++)
        if (!command || command == &cli_commands[i])
            print_example(out, cli_commands[i].example);
    fputs(".EE\n", out);
}

static void print_see_also(FILE *out, const cli_command *command) {
    fputs(".SH SEE ALSO\n", out);
    if (command)
        fputs(".BR snug (1)", out);
    for (int i = 0; i < cli_n_commands; i++) {
        if (command == &cli_commands[i])
            continue;
        fputs(command || i ? ",\n.BR snug\\-" : ".BR snug\\-", out);
        print_text(out, cli_commands[i].name);
        fputs(" (1)", out);
    }
    fputc('\n', out);
}

static void print_head(FILE *out, const cli_command *command) {
    const char *name = command ? command->name : "";
    fputs(".\\\" Made by cli_words from the command's tables. Do not edit.\n.TH SNUG", out);
    if (command)
        fputs("\\-", out);
    for (const char *c = name; *c; c++) {
        const char upper[2] = {(char)toupper((unsigned char)*c), '\0'};
        print_text(out, upper);
    }
    fprintf(out, " 1 \"\" \"snug %s\" \"Snug\"\n.nh\n.ad l\n.SH NAME\nsnug%s", snug_version(),
            command ? "\\-" : "");
    print_text(out, name);
    fputs(" \\- ", out);
    print_text(out,
               command ? command->help : "train and run neural networks inside a number of bytes");
    fputs("\n.SH SYNOPSIS\n", out);
    if (!command) {
        fputs("\\fBsnug\\fR \\fICOMMAND\\fR ...\n.br\n"
              "\\fBsnug help\\fR [\\fICOMMAND\\fR]\n.br\n\\fBsnug \\-\\-version\\fR\n",
              out);
        return;
    }
    fputs("\\fBsnug ", out);
    print_text(out, name);
    fputs("\\fR ", out);
    print_operands(out, command);
    fputs("[\\fIoption\\fR ...]\n", out);
}

static void print_commands(FILE *out) {
    fputs("Data go to stdout, messages and progress to stderr; \\fB\\-\\-json\\fR makes the data "
          "JSON.\n"
          ".SH COMMANDS\n",
          out);
    for (int i = 0; i < cli_n_commands; i++) {
        fputs(".TP\n\\fB", out);
        print_text(out, cli_commands[i].name);
        fputs("\\fR ", out);
        print_operands(out, &cli_commands[i]);
        fputc('\n', out);
        print_text(out, cli_commands[i].help);
        fputs("; see \\fBsnug\\-", out);
        print_text(out, cli_commands[i].name);
        fputs("\\fR(1)\n", out);
    }
}

static const char environment[] = ".SH ENVIRONMENT\n"
                                  ".TP\n.BR NO_COLOR \", \" TERM\nno colours when the first is set "
                                  "and not empty or the second is \"dumb\", unless\n"
                                  "\\fB\\-\\-color\\fR=always is given\n"
                                  ".TP\n.B TMPDIR\nwhere a packed array whose rows are wanted in "
                                  "another order is unpacked (default /tmp)\n";

void print_man(FILE *out, const cli_command *command) {
    print_head(out, command);
    fputs(".SH DESCRIPTION\n", out);
    if (command) {
        print_sentence(out, command->help);
        print_text(out, command->more);
    } else {
        print_commands(out);
    }
    print_options(out, command);
    print_exit_status(out);
    if (!command)
        fputs(environment, out);
    print_examples(out, command);
    print_see_also(out, command);
}
