/* ops_md.c: prints docs/ops.md from the operator table, so that the page and the code cannot disagree. Words come from
 * ops_words.def, everything else from ops.def. Prints nothing and fails when the words and the table do not match: a
 * row without a meaning, a missing gradient without a reason, an axis rule nobody explains. */
#include "op/op.h"

#include <stdio.h>
#include <string.h>

/* The columns as they are written in the table. */
typedef struct {
    const char *gradient, *inplace, *axes, *effect;
} text_row;

static const text_row rows[SN_N_OPS] = {
#define SNUG_OP(name, n, attrs, shape, grad, read, in_place, axis_rule, eff, acc, build, fuses,    \
                flops, speed, cpu, cuda, chain, cases)                                             \
    [SN_OP_##name] = {#grad, #in_place, #axis_rule, #eff},
#include "op/ops.def"
#undef SNUG_OP
};

#define MEANING(name, text) [SN_OP_##name] = text,
#define NO_GRADIENT(name, why)
#define AXES(rule, can, cannot)
static const char *const meanings[SN_N_OPS] = {
#include "ops_words.def"
};
#undef MEANING
#undef NO_GRADIENT

#define MEANING(name, text)
#define NO_GRADIENT(name, why) [SN_OP_##name] = why,
static const char *const no_gradient[SN_N_OPS] = {
#include "ops_words.def"
};
#undef NO_GRADIENT
#undef AXES

typedef struct {
    const char *rule, *can, *cannot;
} axis_words;

#define NO_GRADIENT(name, why)
#define AXES(rule, can, cannot) {#rule, can, cannot},
static const axis_words axes[] = {
#include "ops_words.def"
};
#undef MEANING
#undef NO_GRADIENT
#undef AXES
#define N_AXES (sizeof axes / sizeof axes[0])

static const axis_words *find_axes(const char *rule) {
    for (size_t i = 0; i < N_AXES; i++) {
        if (strcmp(axes[i].rule, rule) == 0)
            return &axes[i];
    }
    return NULL;
}

static bool has_no_gradient(int op) {
    return strcmp(rows[op].gradient, "none") == 0;
}

/* How many rows and words do not match; names each. */
static int count_mistakes(void) {
    int n = 0;
    for (int op = 0; op < SN_N_OPS; op++) {
        const char *what = NULL;
        if (meanings[op] == NULL)
            what = "has no MEANING";
        else if (has_no_gradient(op) != (no_gradient[op] != NULL))
            what = "needs a NO_GRADIENT exactly when its gradient is none";
        else if (find_axes(rows[op].axes) == NULL)
            what = "has an axis rule without AXES";
        if (what != NULL)
            fprintf(stderr, "ops_words.def: %s %s\n", sn_ops[op].name, what);
        n += what != NULL;
    }
    for (size_t i = 0; i < N_AXES; i++) {
        bool used = false;
        for (int op = 0; op < SN_N_OPS; op++)
            used = used || strcmp(rows[op].axes, axes[i].rule) == 0;
        if (!used)
            fprintf(stderr, "ops_words.def: no row has the axis rule %s\n", axes[i].rule);
        n += !used;
    }
    return n;
}

/* --- the page ---------------------------------------------------------------------------------- */
static void print_lower(const char *text) {
    for (; *text != '\0'; text++)
        putchar(*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text);
}

static void print_inputs(const sn_op_row *row) {
    if (row->min_in == row->max_in)
        printf(" | %d | ", row->min_in);
    else
        printf(" | %d to %d | ", row->min_in, row->max_in);
}

static void print_attributes(const sn_attr_family *family) {
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *f = &family->fields[i];
        const bool is_param = f->kind == SN_FIELD_REAL || f->kind == SN_FIELD_KEY;
        printf("%s%s%s", i ? ", " : "", is_param ? "*" : "`", f->name);
        if (f->n > 1 && f->kind != SN_FIELD_LIST)
            printf("[%d]", f->n);
        printf("%s%s", is_param ? "*" : "`", f->kind == SN_FIELD_LIST ? " list" : "");
    }
}

static void print_reads(uint32_t reads) {
    const char *before = "";
    for (int i = 0; i < 32; i++) {
        if (reads >> i & 1) {
            printf("%s%s %d", before, i < 16 ? "in" : "out", i % 16);
            before = ", ";
        }
    }
}

static void print_row(int op) {
    const sn_op_row *row = &sn_ops[op];
    printf("| %s", row->name);
    print_inputs(row);
    print_attributes(row->attrs);
    printf(" | %s | ", has_no_gradient(op)                      ? "none"
                       : strcmp(rows[op].gradient, "zero") == 0 ? "zero"
                                                                : "yes");
    print_reads(row->reads);
    printf(" | ");
    print_lower(rows[op].inplace);
    printf(" | %s | ", rows[op].axes);
    print_lower(rows[op].effect);
    printf(" | %s | %s |\n", row->accumulates ? "yes" : "", meanings[op]);
}

static const char intro[] =
    "# Operators\n"
    "\n"
    "Made from `src/op/ops.def` by `ops_md` (`./build/ops_md > docs/ops.md`); a test compares the "
    "two. Do not edit.\n"
    "\n"
    "- **inputs**: how many.\n"
    "- **attributes**: `structure` is part of the plan; *parameters* are numbered slots bound at "
    "each run.\n"
    "- **gradient**: yes; zero (the operator is constant almost everywhere); none (reasons "
    "below).\n"
    "- **reads**: the inputs and outputs the gradient needs; nothing else is kept for it.\n"
    "- **in place**: the result may overwrite the first input, the second, or either; alias: a new "
    "shape of the same\n"
    "  bytes; state: the next version of a variable, in its home; state_last: so are all results "
    "but the last, which\n"
    "  may overwrite the input of its number.\n"
    "- **axes**: the rule by which a plan may cut it (below).\n"
    "- **effect**: random draws by key and position; state writes variables; mayfail may refuse "
    "its values at the run.\n"
    "- **adds**: the kernel can add into its outputs.\n"
    "\n"
    "Channels are the last axis. Broadcasting aligns axes at the last; extents are equal or one of "
    "them is 1.\n"
    "\n"
    "| operator | inputs | attributes | gradient | reads | in place | axes | effect | adds | "
    "meaning |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n";

static void print_page(void) {
    fputs(intro, stdout);
    for (int op = 0; op < SN_N_OPS; op++)
        print_row(op);
    fputs("\n## No gradient\n\n| operator | because |\n|---|---|\n", stdout);
    for (int op = 0; op < SN_N_OPS; op++) {
        if (no_gradient[op] != NULL)
            printf("| %s | %s |\n", sn_ops[op].name, no_gradient[op]);
    }
    fputs("\n## Axes\n\nA cut as a sum means that each part gives a part of the result, and the "
          "parts are added.\n\n"
          "| rule | can be cut | needs its whole extent |\n|---|---|---|\n",
          stdout);
    for (size_t i = 0; i < N_AXES; i++)
        printf("| %s | %s | %s |\n", axes[i].rule, axes[i].can, axes[i].cannot);
}

int main(void) {
    if (count_mistakes() > 0)
        return 1;
    print_page();
    return fflush(stdout) == 0 ? 0 : 1;
}
