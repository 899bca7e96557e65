/* pack.c: the packer on its own, for files of buffers.
 *
 *     pack FILE.csv [--capacity N] [--seconds S]
 *
 * Columns id,lower,upper,size (half-open lifetimes; further columns are not read). Prints the same
 * lines with an offset column; the height reached, the bound and the seconds go to stderr. Exit
 * code 3 when a capacity was given and not reached. Seconds are turned into a number of operations
 * beforehand, so that the answer does not depend on the machine's mood. */
#include "memory/engine.h"
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORK_PER_SECOND 215e6 /* on the slow side */

typedef struct {
    unsigned long long *ids;
    sn_pack_item *items;
    uint32_t n, cap;
} buffers;

/* The lines of a file with their ends cut off: spaces, and the carriage return of some systems. */
static int next_line(FILE *f, char *line, int size) {
    if (!fgets(line, size, f))
        return 0;
    line[strcspn(line, "\r\n")] = 0;
    return 1;
}

/* A number of digits alone, and the comma behind it (or the line's end: *rest is then NULL). */
static const char *read_number(const char *text, unsigned long long *out, const char **rest) {
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9')
        return "a number of digits is missing";
    *out = strtoull(text, &end, 10);
    if (errno == ERANGE)
        return "a number does not fit 64 bits";
    while (*end == ' ')
        end++;
    if (*end != 0 && *end != ',')
        return "a number has something behind it";
    *rest = *end == ',' ? end + 1 : NULL;
    return NULL;
}

/* id,lower,upper,size; NULL, or what is wrong. Columns behind those four are not read. */
static const char *read_buffer(const char *line, unsigned long long *field) {
    const char *at = line, *wrong = NULL;
    for (int k = 0; k < 4 && !wrong; k++)
        wrong = at ? read_number(at, &field[k], &at) : "want four columns: id,lower,upper,size";
    if (wrong)
        return wrong;
    if (field[1] >= field[2])
        return "a lifetime is empty: want lower < upper";
    if (field[2] > UINT32_MAX)
        return "times are at most 4294967295";
    return NULL;
}

static const char *add_buffer(buffers *b, const char *line) {
    unsigned long long field[4];
    const char *wrong = read_buffer(line, field);
    if (wrong)
        return wrong;
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 256;
        b->ids = realloc(b->ids, b->cap * sizeof *b->ids);
        b->items = realloc(b->items, b->cap * sizeof *b->items);
        if (!b->ids || !b->items)
            return "out of memory";
    }
    b->ids[b->n] = field[0];
    b->items[b->n++] = (sn_pack_item){(uint32_t)field[1], (uint32_t)field[2], (size_t)field[3], 0};
    return NULL;
}

static int read_file(buffers *b, const char *path) {
    static const char head[] = "id,lower,upper,size";
    char line[1024];
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 0;
    }
    int number = 1;
    const char *wrong = next_line(f, line, sizeof line) && strncmp(line, head, sizeof head - 1) == 0
                            ? NULL
                            : "the first line is not id,lower,upper,size";
    while (!wrong && next_line(f, line, sizeof line)) {
        number++;
        if (line[0] != 0)
            wrong = add_buffer(b, line);
    }
    if (wrong)
        fprintf(stderr, "%s, line %d: %s\n", path, number, wrong);
    fclose(f);
    return !wrong;
}

static int run(buffers *b, const sn_pack_limits *limits) {
    snug_engine *e = NULL;
    snug_error err;
    size_t height, bound;
    const clock_t start = clock();
    snug_status status = snug_engine_create(NULL, &e, &err);
    if (status == SNUG_OK)
        status = sn_pack_to(e, b->items, b->n, limits, &height, &bound, &err);
    snug_engine_destroy(e);
    if (status != SNUG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("id,lower,upper,size,offset\n");
    for (uint32_t i = 0; i < b->n; i++)
        printf("%llu,%u,%u,%zu,%zu\n", b->ids[i], b->items[i].lower, b->items[i].upper,
               b->items[i].size, b->items[i].offset);
    fprintf(stderr, "height %zu, bound %zu, %u buffers, %.2f s\n", height, bound, b->n,
            (double)(clock() - start) / CLOCKS_PER_SEC);
    return limits->capacity > 0 && height > limits->capacity ? 3 : 0;
}

/* Whole numbers above 0, and seconds up to a day. */
static int read_capacity(const char *text, size_t *out) {
    unsigned long long n;
    const char *rest;
    if (read_number(text, &n, &rest) || rest || n == 0)
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
    const int code = read_file(&b, path) ? run(&b, &limits) : 1;
    free(b.ids);
    free(b.items);
    return code;
}
