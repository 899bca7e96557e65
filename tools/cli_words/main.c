/* main.c: writes all files into folders that are there: bash, zsh, fish and man1, in the layout of share/. Writes
 * nothing and fails when the tables have an argument of no known kind: completions would silently know too little.
 * usage: cli_words SHARE */
#include "words.h"

#include <ctype.h>
#include <string.h>

/* --- the tables' small language ------------------------------------------------------------------------------------ */
typedef struct {
    const char *name;
    kind is;
} kind_row;

static const kind_row kinds[] = {
    {"FILE", KIND_FILE}, {"MODEL", KIND_FILE}, {"W", KIND_FILE},    {"DIR", KIND_DIR},
    {"N", KIND_TEXT},    {"F", KIND_TEXT},     {"NAME", KIND_TEXT}, {"BYTES", KIND_TEXT},
};

kind kind_of(const char *argument) {
    size_t n = 0;
    while (isupper((unsigned char)argument[n]))
        n++;
    if (n == 0)
        return strchr(argument, '|') ? KIND_WORDS : KIND_UNKNOWN;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == n && strncmp(kinds[i].name, argument, n) == 0)
            return kinds[i].is;
    return KIND_UNKNOWN;
}

const char *suffix_of(const char *argument) {
    const char *dot = strchr(argument, '.');
    return dot ? dot : "";
}

bool operand_at(const char *operands, int i, char word[MAX_WORD]) {
    size_t n = strcspn(operands, " ");
    while (i > 0 && operands[n]) {
        operands += n + 1;
        n = strcspn(operands, " ");
        i--;
    }
    if (i > 0 || n == 0 || n >= MAX_WORD)
        return false;
    memcpy(word, operands, n);
    word[n] = '\0';
    return true;
}

void print_choices(FILE *out, const char *argument) {
    for (; *argument; argument++)
        fputc(*argument == '|' ? ' ' : *argument, out);
}

void print_escaped(FILE *out, const char *text, const char *special) {
    for (; *text; text++) {
        if (strchr(special, *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

static int count_mistakes(void) {
    int n = 0;
    for (int i = 0; i < N_OPTIONS; i++) {
        const cli_option *o = &cli_options[i];
        if (!o->argument || kind_of(o->argument) != KIND_UNKNOWN)
            continue;
        fprintf(stderr, "cli_words: --%s: no kind for %s; add it to kinds[]\n", o->name,
                o->argument);
        n++;
    }
    for (int i = 0; i < cli_n_commands; i++) {
        char word[MAX_WORD];
        int k = 0;
        while (operand_at(cli_commands[i].operands, k, word) && kind_of(word) != KIND_UNKNOWN)
            k++;
        if (k == cli_commands[i].max_operands)
            continue;
        fprintf(stderr,
                "cli_words: %s: operands '%s' are not %d of known kinds; add them to kinds[]\n",
                cli_commands[i].name, cli_commands[i].operands, cli_commands[i].max_operands);
        n++;
    }
    return n;
}

/* --- files --------------------------------------------------------------------------------------------------------- */
static FILE *open_in(const char *share, const char *name) {
    char path[4096];
    FILE *out = NULL;
    const int n = snprintf(path, sizeof path, "%s/%s", share, name);
    if (n > 0 && (size_t)n < sizeof path)
        out = fopen(path, "w");
    if (!out)
        fprintf(stderr, "cli_words: cannot write %s/%s\n", share, name);
    return out;
}

static bool close_all_right(FILE *out) {
    const bool wrong = ferror(out) != 0;
    return fclose(out) == 0 && !wrong;
}

static bool write_completion(const char *share, const char *name, void (*print)(FILE *out)) {
    FILE *out = open_in(share, name);
    if (!out)
        return false;
    print(out);
    return close_all_right(out);
}

static bool write_page(const char *share, const cli_command *command) {
    char name[128];
    snprintf(name, sizeof name, "man/man1/snug%s%s.1", command ? "-" : "",
             command ? command->name : "");
    FILE *out = open_in(share, name);
    if (!out)
        return false;
    print_man(out, command);
    return close_all_right(out);
}

int main(int argc, char **argv) {
    if (argc != 2 || count_mistakes() > 0)
        return 1;
    bool ok = write_completion(argv[1], "bash-completion/completions/snug", print_bash) &&
              write_completion(argv[1], "zsh/site-functions/_snug", print_zsh) &&
              write_completion(argv[1], "fish/vendor_completions.d/snug.fish", print_fish);
    for (int i = 0; ok && i < cli_n_commands; i++)
        ok = write_page(argv[1], &cli_commands[i]);
    return ok && write_page(argv[1], NULL) ? 0 : 1;
}
