/* test_fuzz_corpus.c: every file of tests/fuzz/corpus through its target, as it is and damaged in
 * the same few thousand ways in every run: cut off, bytes changed, pieces doubled and taken from
 * other files. The targets say what must be true (tests/fuzz/fuzz.h); what is wrong ends in an
 * abort(), and the line before it says which file. SNUG_TEST_FULL=1 tries 20 times as many. */
#include "base/rng.h"
#include "fuzz/fuzz.h"
#include "support/files.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUZZ(name, most) void fuzz_##name(const uint8_t *bytes, size_t n);
#include "fuzz/targets.def"
#undef FUZZ

typedef struct {
    const char *name;
    fuzz_run run;
    size_t most;
} target;

static const target targets[] = {
#define FUZZ(name, most) {#name, fuzz_##name, most},
#include "fuzz/targets.def"
#undef FUZZ
};
enum {
    N_TARGETS = sizeof targets / sizeof *targets,
    MOST_FILES = 512,
    TRIES = 100,
    CUTS = 60,
    ROOM = 1 << 16
};

typedef struct {
    char name[256];
    unsigned char *bytes;
    size_t n;
} input;

typedef struct {
    input files[MOST_FILES];
    size_t n;
} corpus;

static int by_name(const void *a, const void *b) {
    return strcmp(((const input *)a)->name, ((const input *)b)->name);
}

static void read_corpus(const char *target_name, corpus *c) {
    char path[768];
    const struct dirent *entry;
    snprintf(path, sizeof path, SNUG_TEST_DATA "/fuzz/corpus/%s", target_name);
    DIR *folder = opendir(path);
    c->n = 0;
    if (!folder)
        fail_msg("%s has no corpus: %s", target_name, path);
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        assert_true(c->n < MOST_FILES);
        input *in = &c->files[c->n++];
        snprintf(in->name, sizeof in->name, "%s", entry->d_name);
        snprintf(path, sizeof path, SNUG_TEST_DATA "/fuzz/corpus/%s/%s", target_name, in->name);
        in->bytes = sn_test_read_file(path, &in->n);
    }
    closedir(folder);
    assert_true(c->n > 0);
    qsort(c->files, c->n, sizeof *c->files, by_name);
}

/* --- what runs now, for the line that an abort leaves ----------------------------------------- */
static struct {
    const char *target, *file;
    int change;
    const unsigned char *bytes;
    size_t n;
} now;

static void tell(int number) {
    char line[512];
    const int n = snprintf(line, sizeof line, "%s: corpus file %s, change %d: the input is in %s\n",
                           now.target, now.file, now.change, "fuzz_failed");
    FILE *f = fopen("fuzz_failed", "wb");
    if (f) {
        fwrite(now.bytes, 1, now.n, f);
        fclose(f);
    }
    fwrite(line, 1, (size_t)n, stderr);
    signal(number, SIG_DFL);
    raise(number);
}

static void run(const target *t, const input *in, int change, const unsigned char *bytes,
                size_t n) {
    now.target = t->name, now.file = in->name, now.change = change;
    now.bytes = bytes, now.n = n;
    t->run(bytes, n);
}

/* --- damage ----------------------------------------------------------------------------------- */
typedef struct {
    uint64_t key, next;
} dice;

static size_t roll(dice *d, size_t n) {
    const uint64_t i = d->next++;
    return n ? sn_philox(d->key, 77, i).v[0] % n : 0;
}

static size_t less(size_t a, size_t b) {
    return a < b ? a : b;
}

/* One change in place; the new length. */
static size_t damage(unsigned char *b, size_t n, const input *other, dice *d) {
    const size_t at = roll(d, n);
    size_t k = less(1 + roll(d, 12), n - at);
    const size_t from = roll(d, other->n), piece = less(less(k, other->n - from), n - at);
    switch (n ? roll(d, 6) : 6) {
    case 0: /* a bit */
        b[at] = (unsigned char)(b[at] ^ 1u << roll(d, 8));
        return n;
    case 1: /* the ends of what a byte can say */
        b[at] = (unsigned char[]){0, 1, 0x7f, 0x80, 0xff, '9', '-', '\n'}[roll(d, 8)];
        return n;
    case 2: /* cut out */
        memmove(b + at, b + at + k, n - at - k);
        return n - k;
    case 3: /* doubled */
        k = less(k, ROOM - n);
        memmove(b + at + k, b + at, n - at);
        return n + k;
    case 4: /* from another file */
        memcpy(b + at, other->bytes + from, piece);
        return n;
    case 5:
        return at;
    default:
        return n;
    }
}

static void run_damaged(const target *t, const corpus *c, int tries) {
    static unsigned char room[ROOM];
    for (int i = 0; i < tries; i++) {
        dice d = {.key = (uint64_t)i};
        const input *in = &c->files[(size_t)i % c->n], *other = &c->files[roll(&d, c->n)];
        size_t n = less(in->n, ROOM);
        memcpy(room, in->bytes, n);
        for (size_t k = 1 + roll(&d, 3); k > 0; k--)
            n = damage(room, n, other, &d);
        unsigned char *exact = malloc(n ? n : 1); /* so that reading on is seen */
        assert_non_null(exact);
        memcpy(exact, room, n);
        run(t, in, i, exact, n);
        free(exact);
    }
}

/* Cut off after each byte; of longer files after some. */
static void run_cut(const target *t, const input *in, size_t cuts) {
    for (size_t i = 0; i < less(cuts, in->n); i++) {
        const size_t n = in->n <= cuts ? i : i * in->n / cuts;
        unsigned char *exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, in->bytes, n);
        run(t, in, -1 - (int)n, exact, n);
        free(exact);
    }
}

/* --- the tests -------------------------------------------------------------------------------- */
static void test_target(void **state) {
    static corpus c;
    const target *t = *state;
    const size_t more = getenv("SNUG_TEST_FULL") ? 20 : 1;
    signal(SIGABRT, tell);
    read_corpus(t->name, &c);
    for (size_t i = 0; i < c.n; i++)
        run(t, &c.files[i], 0, c.files[i].bytes, c.files[i].n);
    for (size_t i = 0; i < c.n; i++)
        run_cut(t, &c.files[i], more * (CUTS / c.n + 1));
    run_damaged(t, &c, (int)more * TRIES);
    for (size_t i = 0; i < c.n; i++)
        free(c.files[i].bytes);
}

/* A folder that no target reads would be forgotten. */
static void test_every_corpus_has_a_target(void **state) {
    const struct dirent *entry;
    DIR *folder = opendir(SNUG_TEST_DATA "/fuzz/corpus");
    int n = 0;
    (void)state;
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        n += entry->d_name[0] != '.';
    closedir(folder);
    assert_int_equal(n, N_TARGETS);
}

/* --- times, for bench/hostile.py ---------------------------------------------------------------- */
static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* A line for each file as it is: target, name, milliseconds of the processor, the least of three. */
static int print_times(void) {
    static corpus c;
    for (int k = 0; k < N_TARGETS; k++) {
        read_corpus(targets[k].name, &c);
        for (size_t i = 0; i < c.n; i++) {
            double least = INFINITY;
            for (int round = 0; round < 3; round++) {
                const double begin = cpu_ms();
                run(&targets[k], &c.files[i], 0, c.files[i].bytes, c.files[i].n);
                least = fmin(least, cpu_ms() - begin);
            }
            printf("%s\t%s\t%.3f\n", targets[k].name, c.files[i].name, least);
            free(c.files[i].bytes);
        }
    }
    return 0;
}

/* argv: the name of a target; none: all; --times: see above. */
int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--times") == 0)
        return print_times();
    struct CMUnitTest tests[N_TARGETS + 1] = {cmocka_unit_test(test_every_corpus_has_a_target)};
    for (int i = 0; i < N_TARGETS; i++)
        tests[i + 1] = (struct CMUnitTest)row_test(targets[i].name, test_target, &targets[i]);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
