/* words.h: the command's completions and man pages, printed from its tables (src/cli/options.def and commands.c), so
 * that they and the command cannot disagree. Each function prints one file. */
#ifndef WORDS_H
#define WORDS_H

#include "cli.h"

/* What stands in an argument's place, told by how the tables write it: "N", "FILE.npy", "f32|f64", "DIR". */
typedef enum {
    KIND_UNKNOWN,
    KIND_TEXT,  /* nothing to offer */
    KIND_FILE,  /* files; those of one suffix when the text has one */
    KIND_DIR,   /* folders */
    KIND_WORDS, /* one of these */
} kind;

#define MAX_WORD 64

kind kind_of(const char *argument);
/* ".npy" of "FILE.npy", "" of "FILE". */
const char *suffix_of(const char *argument);
/* Word i of "shapes|blobs DIR"; false behind the last. */
bool operand_at(const char *operands, int i, char word[MAX_WORD]);
/* "f32|f64" as "f32 f64". */
void print_choices(FILE *out, const char *argument);
/* text with a backslash before each character of `special`. */
void print_escaped(FILE *out, const char *text, const char *special);

void print_bash(FILE *out);
void print_zsh(FILE *out);
void print_fish(FILE *out);
void print_man(FILE *out, const cli_command *command); /* NULL: snug(1) */

#endif
