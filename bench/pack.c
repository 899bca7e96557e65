/* pack.c: the packer on its own, for files of buffers.
 *
 *     pack FILE.csv [--capacity N] [--seconds S]
 *
 * The first line names the columns: id, lower, upper and size, in any order; others are not read.
 * Lifetimes are half open. Prints the same lines with a column offset behind (or with other numbers
 * in it, where there is one); the height reached, the bound and the seconds go to stderr. Exit code
 * 3 when a capacity was given and not reached. Seconds are turned into a number of operations
 * beforehand, so that the answer does not depend on the machine's mood. */
#include "memory/engine.h"
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORK_PER_SECOND 215e6 /* on the slow side */

enum { ID, LOWER, UPPER, SIZE, OFFSET, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {"id", "lower", "upper", "size", "offset"};

typedef struct {
    char **lines; /* the first one names the columns */
    unsigned long long (*fields)[N_COLUMNS];
    uint32_t n_lines, cap;
    int column[N_COLUMNS]; /* -1: not there */
    sn_pack_item *items;   /* one for each line but the first */
} buffers;

/* --- reading --------------------------------------------------------------------------------- */
/* The k-th field of a line without the spaces around it, and its length; NULL: there is none. */
static const char *field_of(const char *line, int k, size_t *length) {
    for (; k > 0 && line; k--) {
        line = strchr(line, ',');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return NULL;
    line += strspn(line, " \t");
    *length = strcspn(line, ",");
    while (*length > 0 && (line[*length - 1] == ' ' || line[*length - 1] == '\t'))
        --*length;
    return line;
}

static const char *read_columns(buffers *b) {
    for (int c = 0; c < N_COLUMNS; c++) {
        const size_t want = strlen(column_names[c]);
        const char *name;
        size_t length;
        b->column[c] = -1;
        for (int k = 0; (name = field_of(b->lines[0], k, &length)) && b->column[c] < 0; k++)
            if (length == want && strncmp(name, column_names[c], want) == 0)
                b->column[c] = k;
        if (b->column[c] < 0 && c != OFFSET)
            return "the first line does not name the columns id, lower, upper and size";
    }
    return NULL;
}

/* A number of digits alone. */
static const char *read_number(const char *text, size_t length, unsigned long long *out) {
    char *end;
    errno = 0;
    if (length == 0 || *text < '0' || *text > '9')
        return "a number of digits is missing";
    *out = strtoull(text, &end, 10);
    if (errno == ERANGE)
        return "a number does not fit 64 bits";
    return end == text + length ? NULL : "a number has something behind it";
}

/* NULL, or what is wrong. Any text is an id. */
static const char *read_buffer(const buffers *b, const char *line, unsigned long long *field) {
    for (int c = ID; c <= SIZE; c++) {
        size_t length;
        const char *text = field_of(line, b->column[c], &length);
        if (!text)
            return "want four columns: id, lower, upper and size";
        const char *wrong = c == ID ? NULL : read_number(text, length, &field[c]);
        if (wrong)
            return wrong;
    }
    return field[LOWER] < field[UPPER] ? NULL : "a lifetime is empty: want lower < upper";
}

static const char *add_line(buffers *b, const char *line) {
    if (b->n_lines == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 256;
        void *lines = realloc(b->lines, b->cap * sizeof *b->lines);
        b->lines = lines ? lines : b->lines;
        void *fields = realloc(b->fields, b->cap * sizeof *b->fields);
        b->fields = fields ? fields : b->fields;
        if (!lines || !fields)
            return "out of memory";
    }
    char *copy = strdup(line);
    if (!copy)
        return "out of memory";
    b->lines[b->n_lines++] = copy;
    return b->n_lines == 1 ? read_columns(b) : read_buffer(b, line, b->fields[b->n_lines - 1]);
}

static int read_file(buffers *b, const char *path) {
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 0;
    }
    int number = 1;
    const char *wrong = NULL;
    for (; !wrong && getline(&line, &room, f) >= 0; number += !wrong) {
        line[strcspn(line, "\r\n")] = 0;
        /* some systems begin a file with a mark of its encoding */
        const char *text = number == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0 ? line + 3 : line;
        wrong = *text ? add_line(b, text) : NULL;
    }
    if (!wrong && ferror(f))
        wrong = strerror(errno);
    if (!wrong && b->n_lines == 0)
        wrong = "the file is empty: want a line id,lower,upper,size";
    if (wrong)
        fprintf(stderr, "%s, line %d: %s\n", path, number, wrong);
    free(line);
    fclose(f);
    return !wrong;
}

/* --- packing --------------------------------------------------------------------------------- */
static int compare_times(const void *a, const void *b) {
    const unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;
    return (x > y) - (x < y);
}

static uint32_t rank_of(const unsigned long long *times, size_t n, unsigned long long t) {
    const unsigned long long *at = bsearch(&t, times, n, sizeof *times, compare_times);
    return (uint32_t)(at - times);
}

/* Only the order of times counts: they are numbered. */
static int make_items(buffers *b) {
    const size_t n = b->n_lines - 1;
    unsigned long long *times = malloc((2 * n + 1) * sizeof *times);
    b->items = calloc(n + 1, sizeof *b->items);
    if (!times || !b->items) {
        fprintf(stderr, "out of memory\n");
        free(times);
        return 0;
    }
    size_t n_times = 0;
    for (size_t i = 0; i < 2 * n; i++)
        times[i] = b->fields[i / 2 + 1][i % 2 == 0 ? LOWER : UPPER];
    qsort(times, 2 * n, sizeof *times, compare_times);
    for (size_t i = 0; i < 2 * n; i++)
        if (n_times == 0 || times[i] != times[n_times - 1])
            times[n_times++] = times[i];
    for (size_t i = 0; i < n; i++) {
        const unsigned long long *f = b->fields[i + 1];
        b->items[i] = (sn_pack_item){rank_of(times, n_times, f[LOWER]),
                                     rank_of(times, n_times, f[UPPER]), (size_t)f[SIZE], 0};
    }
    free(times);
    return 1;
}

/* A line with its offset: behind it, or where the file has that column. */
static void print_line(const buffers *b, const char *line, const char *offset) {
    if (b->column[OFFSET] < 0) {
        printf("%s,%s\n", line, offset);
        return;
    }
    size_t length = 0;
    const char *field = line;
    for (int k = 0; field || k <= b->column[OFFSET]; k++) {
        field = field_of(line, k, &length);
        if (k == b->column[OFFSET])
            printf("%s%s", k > 0 ? "," : "", offset);
        else if (field || k < b->column[OFFSET]) /* a line may be short */
            printf("%s%.*s", k > 0 ? "," : "", field ? (int)length : 0, field ? field : "");
    }
    printf("\n");
}

static void print_packing(const buffers *b) {
    print_line(b, b->lines[0], column_names[OFFSET]);
    for (uint32_t i = 1; i < b->n_lines; i++) {
        char offset[32];
        snprintf(offset, sizeof offset, "%zu", b->items[i - 1].offset);
        print_line(b, b->lines[i], offset);
    }
}

static int run(buffers *b, const sn_pack_limits *limits) {
    const uint32_t n = b->n_lines - 1;
    snug_engine *e = NULL;
    snug_error err;
    size_t height, bound;
    const clock_t start = clock();
    snug_status status = snug_engine_create(NULL, &e, &err);
    if (status == SNUG_OK)
        status = sn_pack_to(e, b->items, n, limits, &height, &bound, &err);
    snug_engine_destroy(e);
    if (status != SNUG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    print_packing(b);
    fprintf(stderr, "height %zu, bound %zu, %u buffers, %.2f s\n", height, bound, n,
            (double)(clock() - start) / CLOCKS_PER_SEC);
    if (limits->capacity == 0 || height <= limits->capacity)
        return 0;
    fprintf(stderr, "capacity %zu is not reached: %s\n", limits->capacity,
            bound > limits->capacity ? "the bound is above it, so no packing is as low"
                                     : "none was found in the seconds given");
    return 3;
}

/* Whole numbers above 0, and seconds up to a day. */
static int read_capacity(const char *text, size_t *out) {
    unsigned long long n;
    if (read_number(text, strlen(text), &n) || n == 0)
        return 0;
    *out = (size_t)n;
    return 1;
}

static int read_seconds(const char *text, uint64_t *work) {
    char *end;
    const double seconds = strtod(text, &end);
    if (end == text || *end != 0 || !(seconds > 0) || seconds > 86400)
        return 0;
    *work = (uint64_t)(seconds * WORK_PER_SECOND) + 1;
    return 1;
}

static int read_options(int argc, char **argv, const char **path, sn_pack_limits *limits) {
    for (int i = 1; i < argc; i++) {
        int ok = 1;
        if (strcmp(argv[i], "--capacity") == 0 && i + 1 < argc)
            ok = read_capacity(argv[++i], &limits->capacity);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            ok = read_seconds(argv[++i], &limits->work);
        else if (!*path && argv[i][0] != '-')
            *path = argv[i];
        else
            ok = 0;
        if (!ok)
            return 0;
    }
    return *path != NULL;
}

int main(int argc, char **argv) {
    sn_pack_limits limits = {0, (uint64_t)(10 * WORK_PER_SECOND)};
    const char *path = NULL;
    buffers b = {0};
    if (!read_options(argc, argv, &path, &limits)) {
        fprintf(stderr, "usage: pack FILE.csv [--capacity N] [--seconds S]\n");
        return 2;
    }
    const int code = read_file(&b, path) && make_items(&b) ? run(&b, &limits) : 1;
    for (uint32_t i = 0; i < b.n_lines; i++)
        free(b.lines[i]);
    free(b.lines);
    free(b.fields);
    free(b.items);
    return code;
}
