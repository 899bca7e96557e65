/* complete.c: completions for bash, zsh and fish. Each knows the commands, the options of each, which of them take a
 * value, and what a value or operand may be. bash's needs no package (bash-completion only loads it by its name). */
#include "words.h"

#include <string.h>

#define MADE_BY "# Completions of snug, made by cli_words from the command's tables. Do not edit.\n"

static void print_commands(FILE *out) {
    for (int i = 0; i < cli_n_commands; i++)
        fprintf(out, "%s%s", i ? " " : "", cli_commands[i].name);
}

/* For single quotes of a POSIX shell; a backslash before each character of `special`. */
static void print_quoted(FILE *out, const char *text, const char *special) {
    for (; *text; text++) {
        const char one[2] = {*text, '\0'};
        if (*text == '\'')
            fputs("'\\''", out);
        else
            print_escaped(out, one, special);
    }
}

/* --- bash ---------------------------------------------------------------------------------------------------------- */
static const char bash_top[] =
    "_snug_words() {\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "# Folders, and files that end in $1.\n"
    "_snug_files() {\n"
    "    compopt -o filenames 2> /dev/null\n"
    "    mapfile -t COMPREPLY < <({ compgen -f -X \"!*$1\" -- \"$cur\"\n"
    "                               compgen -d -- \"$cur\"; } | sort -u)\n"
    "}\n"
    "\n"
    "_snug_dirs() {\n"
    "    compopt -o filenames 2> /dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "}\n"
    "\n"
    "_snug_options() {\n"
    "    case $1 in\n";

/* n counts the operands before the cursor; i ends behind the cursor when it is in the value of an option. */
static const char bash_walk[] =
    "    esac\n"
    "}\n"
    "\n"
    "_snug() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-} option i n=0\n"
    "    COMPREPLY=()\n"
    "    # readline cuts --name=value into three words\n"
    "    [[ $cur == = ]] && cur=\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        option=${COMP_WORDS[i]}\n"
    "        case $option in\n"
    "        ";

static void bash_offer(FILE *out, const char *argument) {
    switch (kind_of(argument)) {
    case KIND_FILE:
        fprintf(out, "_snug_files '%s' ;;\n", suffix_of(argument));
        break;
    case KIND_DIR:
        fputs("_snug_dirs ;;\n", out);
        break;
    case KIND_WORDS:
        fputs("_snug_words '", out);
        print_choices(out, argument);
        fputs("' ;;\n", out);
        break;
    default:
        fputs(";;\n", out);
    }
}

static void bash_options(FILE *out) {
    for (int i = 0; i < cli_n_commands; i++) {
        fprintf(out, "    %s) _snug_words '", cli_commands[i].name);
        for (int o = 0; o < N_OPTIONS; o++)
            if (cli_takes(&cli_commands[i], o))
                fprintf(out, "--%s ", cli_options[o].name);
        fputs("' ;;\n", out);
    }
}

static void bash_operands(FILE *out) {
    for (int i = 0; i < cli_n_commands; i++) {
        char word[MAX_WORD];
        for (int k = 0; operand_at(cli_commands[i].operands, k, word); k++) {
            fprintf(out, "        %s:%d) ", cli_commands[i].name, k);
            bash_offer(out, word);
        }
    }
}

void print_bash(FILE *out) {
    const char *before = "";
    fprintf(out, "%s%s", MADE_BY, bash_top);
    bash_options(out);
    fputs(bash_walk, out);
    for (int o = 0; o < N_OPTIONS; o++) {
        if (!cli_options[o].argument)
            continue;
        fprintf(out, "%s--%s", before, cli_options[o].name);
        before = " | ";
    }
    fputs(")\n"
          "            [[ ${COMP_WORDS[i + 1]} == = ]] && i=$((i + 1))\n"
          "            i=$((i + 1)) ;;\n"
          "        -*) ;;\n"
          "        *) n=$((n + 1)) ;;\n"
          "        esac\n"
          "    done\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        _snug_words '",
          out);
    print_commands(out);
    fputs(" help version --help --version'\n"
          "    elif ((i > COMP_CWORD)); then\n"
          "        case $option in\n",
          out);
    for (int o = 0; o < N_OPTIONS; o++) {
        if (!cli_options[o].argument || kind_of(cli_options[o].argument) == KIND_TEXT)
            continue;
        fprintf(out, "        --%s) ", cli_options[o].name);
        bash_offer(out, cli_options[o].argument);
    }
    fputs("        esac\n"
          "    elif [[ $cur == -* ]]; then\n"
          "        _snug_options \"$command\"\n"
          "    else\n"
          "        case $command:$n in\n",
          out);
    bash_operands(out);
    fputs("        help:0) _snug_words '", out);
    print_commands(out);
    fputs("' ;;\n"
          "        *) _snug_options \"$command\" ;;\n"
          "        esac\n"
          "    fi\n"
          "}\n"
          "\n"
          "complete -F _snug snug\n",
          out);
}

/* --- zsh ----------------------------------------------------------------------------------------------------------- */
/* ":message:action" of _arguments. */
static void zsh_offer(FILE *out, const char *argument) {
    fputc(':', out);
    print_quoted(out, argument, "\\:");
    fputc(':', out);
    switch (kind_of(argument)) {
    case KIND_FILE:
        fputs("_files", out);
        if (*suffix_of(argument))
            fprintf(out, " -g \"*%s\"", suffix_of(argument));
        break;
    case KIND_DIR:
        fputs("_files -/", out);
        break;
    case KIND_WORDS:
        fputc('(', out);
        print_choices(out, argument);
        fputc(')', out);
        break;
    default:
        fputc(' ', out);
    }
}

static void zsh_command(FILE *out, const cli_command *command) {
    char word[MAX_WORD];
    fprintf(out, "    %s)\n        _arguments", command->name);
    for (int o = 0; o < N_OPTIONS; o++) {
        if (!cli_takes(command, o))
            continue;
        fprintf(out, " \\\n            '--%s%s[", cli_options[o].name,
                cli_options[o].argument ? "=" : "");
        print_quoted(out, cli_options[o].help, "\\[]");
        fputc(']', out);
        if (cli_options[o].argument)
            zsh_offer(out, cli_options[o].argument);
        fputc('\'', out);
    }
    for (int k = 0; operand_at(command->operands, k, word); k++) {
        fprintf(out, " \\\n            '%d", k + 1);
        zsh_offer(out, word);
        fputc('\'', out);
    }
    fputs("\n        ;;\n", out);
}

void print_zsh(FILE *out) {
    fputs("#compdef snug\n" MADE_BY "local -a commands\ncommands=(\n", out);
    for (int i = 0; i < cli_n_commands; i++) {
        fprintf(out, "    '%s:", cli_commands[i].name);
        print_quoted(out, cli_commands[i].help, "\\:");
        fputs("'\n", out);
    }
    fputs("    'help:what a command does, and its options'\n"
          "    'version:the version'\n"
          ")\n"
          "if ((CURRENT == 2)); then\n"
          "    _describe -t commands 'command' commands\n"
          "else\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $words[1] in\n",
          out);
    for (int i = 0; i < cli_n_commands; i++)
        zsh_command(out, &cli_commands[i]);
    fputs("    help)\n"
          "        ((CURRENT == 2)) && _describe -t commands 'command' commands\n"
          "        ;;\n"
          "    esac\n"
          "fi\n",
          out);
}

/* --- fish ---------------------------------------------------------------------------------------------------------- */
static void fish_offer(FILE *out, const char *argument) {
    switch (kind_of(argument)) {
    case KIND_FILE:
        if (*suffix_of(argument))
            fprintf(out, " -k -a '(__fish_complete_suffix %s)'", suffix_of(argument));
        else
            fputs(" -F", out);
        break;
    case KIND_DIR:
        fputs(" -a '(__fish_complete_directories)'", out);
        break;
    case KIND_WORDS:
        fputs(" -a '", out);
        print_choices(out, argument);
        fputc('\'', out);
        break;
    default:
        break;
    }
}

static void fish_command(FILE *out, const cli_command *command) {
    char word[MAX_WORD];
    for (int k = 0; operand_at(command->operands, k, word); k++) {
        fprintf(out, "complete -c snug -n '__fish_seen_subcommand_from %s'", command->name);
        fish_offer(out, word);
        fputc('\n', out);
    }
    for (int o = 0; o < N_OPTIONS; o++) {
        if (!cli_takes(command, o))
            continue;
        fprintf(out, "complete -c snug -n '__fish_seen_subcommand_from %s' -l %s", command->name,
                cli_options[o].name);
        if (cli_options[o].argument) {
            fputs(" -r", out);
            fish_offer(out, cli_options[o].argument);
        }
        fputs(" -d '", out);
        print_escaped(out, cli_options[o].help, "\\'");
        fputs("'\n", out);
    }
}

void print_fish(FILE *out) {
    fputs(MADE_BY "complete -c snug -f\n", out);
    fputs("complete -c snug -n __fish_use_subcommand -l help -d 'the commands'\n"
          "complete -c snug -n __fish_use_subcommand -l version -d 'the version'\n"
          "complete -c snug -n __fish_use_subcommand -a help -d 'what a command does, and its "
          "options'\n"
          "complete -c snug -n __fish_use_subcommand -a version -d 'the version'\n"
          "complete -c snug -n '__fish_seen_subcommand_from help' -a '",
          out);
    print_commands(out);
    fputs("'\n", out);
    for (int i = 0; i < cli_n_commands; i++) {
        fprintf(out, "complete -c snug -n __fish_use_subcommand -a %s -d '", cli_commands[i].name);
        print_escaped(out, cli_commands[i].help, "\\'");
        fputs("'\n", out);
    }
    for (int i = 0; i < cli_n_commands; i++)
        fish_command(out, &cli_commands[i]);
}
