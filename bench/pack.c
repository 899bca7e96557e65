/* pack.c: the packer on its own, for files of buffers.
 *
 *     pack FILE.csv [--capacity N] [--seconds S]
 *
 * Columns id,lower,upper,size (half-open lifetimes). Prints the same lines with an offset column; the height reached, the
 * bound and the seconds go to stderr. Exit code 3 when a capacity was given and not reached. Seconds are turned into a
 * number of operations beforehand, so that the answer does not depend on the machine's mood. */
#include "memory/engine.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORK_PER_SECOND 215e6 /* on the slow side */

typedef struct {
    long long *ids;
    sn_pack_item *items;
    uint32_t n, cap;
} buffers;

/* Times may be large numbers: any order-preserving 32-bit form will do, and theirs fits as it is. */
static int read_line(buffers *b, const char *line) {
    long long id, lower, upper, size;
    char rest;
    if (sscanf(line, "%lld,%lld,%lld,%lld %c", &id, &lower, &upper, &size, &rest) != 4)
        return 0;
    if (lower < 0 || upper <= lower || upper > UINT32_MAX || size < 0)
        return 0;
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 256;
        b->ids = realloc(b->ids, b->cap * sizeof *b->ids);
        b->items = realloc(b->items, b->cap * sizeof *b->items);
        if (!b->ids || !b->items)
            return 0;
    }
    b->ids[b->n] = id;
    b->items[b->n++] = (sn_pack_item){(uint32_t)lower, (uint32_t)upper, (size_t)size, 0};
    return 1;
}

static int read_file(buffers *b, const char *path) {
    char line[256];
    FILE *f = fopen(path, "r");
    int number = 1, ok = f && fgets(line, sizeof line, f) && strncmp(line, "id,lower,upper,size", 19) == 0;
    while (ok && fgets(line, sizeof line, f)) {
        number++;
        ok = read_line(b, line);
    }
    if (!ok)
        fprintf(stderr, "%s, line %d: want a file of id,lower,upper,size with 0 <= lower < upper\n", path, f ? number : 0);
    if (f)
        fclose(f);
    return ok;
}

static int run(buffers *b, const sn_pack_limits *limits) {
    snug_engine *e;
    snug_error err;
    size_t height, bound;
    const clock_t start = clock();
    if (snug_engine_create(NULL, &e, &err) != SNUG_OK ||
        sn_pack_to(e, b->items, b->n, limits, &height, &bound, &err) != SNUG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    snug_engine_destroy(e);
    printf("id,lower,upper,size,offset\n");
    for (uint32_t i = 0; i < b->n; i++)
        printf("%lld,%u,%u,%zu,%zu\n", b->ids[i], b->items[i].lower, b->items[i].upper, b->items[i].size, b->items[i].offset);
    fprintf(stderr, "height %zu, bound %zu, %u buffers, %.2f s\n", height, bound, b->n, (double)(clock() - start) / CLOCKS_PER_SEC);
    return limits->capacity > 0 && height > limits->capacity ? 3 : 0;
}

int main(int argc, char **argv) {
    sn_pack_limits limits = {0, (uint64_t)(10 * WORK_PER_SECOND)};
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--capacity") == 0 && i + 1 < argc)
            limits.capacity = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            limits.work = (uint64_t)(strtod(argv[++i], NULL) * WORK_PER_SECOND) + 1;
        else if (!path && argv[i][0] != '-')
            path = argv[i];
        else
            path = NULL, i = argc;
    }
    if (!path) {
        fprintf(stderr, "usage: pack FILE.csv [--capacity N] [--seconds S]\n");
        return 2;
    }
    buffers b = {0};
    return read_file(&b, path) ? run(&b, &limits) : 1;
}
