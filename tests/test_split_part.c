/* test_split_part.c: only a part of a step may run in slices: what stands at large values. The rest
 * runs whole, between blocks, and the step is the same: losses, metrics, weights and slots of the
 * unsplit one to 1e-12, for models of tests/golden, parts of three sizes, with and without a limit.
 * Where such a plan is faster than one that slices everything, it is taken. Every third folder,
 * with SNUG_TEST_FULL=1 all of them; SNUG_SPLIT_CASE=mlp_f64 is one. */
#include "support/golden_case.h"
#include "support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 1024, PARTS = 3 };

static size_t n_parts_run;

/* --- models of tests/golden ------------------------------------------------------------------- */
static size_t largest_value(const sn_graph *g) {
    size_t largest = 0;
    for (uint32_t v = 0; v < sn_graph_n_values(g); v++) {
        const snug_type *t = sn_graph_type(g, (sn_value){v});
        size_t bytes = 0;
        snug_error err;
        if (t->dtype == SNUG_OPAQUE || t->rank == 0 || t->dims[0] != GOLDEN_BATCH)
            continue;
        expect_ok(snug_type_bytes(t, &bytes, &err), &err);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* In slices where there is such a part; in all the bytes it likes, and in three quarters of what
 * the whole step needs, as far as that can be. */
static void expect_part(const sn_step_subject *s, size_t bytes, const sn_step_run *whole,
                        const char *name) {
    for (int64_t slices = 2; slices <= 5; slices += 3)
        for (int limited = 0; limited < 2; limited++) {
            const sn_plan_options o = {.slices = slices,
                                       .part_bytes = bytes,
                                       .arena_bytes = limited ? whole->arena_bytes * 3 / 4 : 0};
            sn_step_run run;
            snug_error err;
            const snug_status st = sn_step_run_try(s, &o, &run, &err);
            if (st == SNUG_E_INVALID)
                return;
            expect_ok(st, &err);
            assert_true(run.n_blocks > 0 && run.slices > 1);
            sn_step_run_expect_close(&run, whole, 1e-12, name);
            sn_step_run_clear(&run);
            n_parts_run++;
        }
}

static void is_the_same_in_parts(void **state) {
    const char *name = *state;
    golden_case c;
    sn_step_run whole;
    golden_case_open(&c, SNUG_TEST_DATA "/golden", name);
    c.subject.subject.n_runs = 2;
    sn_step_run_make(&c.subject.subject, &(sn_plan_options){.slices = 0}, &whole);
    const size_t largest = largest_value(c.subject.subject.graph);
    for (int i = 0; i < PARTS; i++)
        expect_part(&c.subject.subject, (largest >> 2 * i) + 1 - (i == 0), &whole, name);
    sn_step_run_clear(&whole);
    golden_case_close(&c);
}

static void test_parts_were_run(void **state) {
    (void)state;
    assert_true(n_parts_run > 0);
}

/* --- where it is faster ----------------------------------------------------------------------- */
enum { ROWS = 64, WIDTH = 16, WIDE = 2048 };

static snug_feed *numbers(snug_engine *e, int64_t columns, double *room, uint64_t key) {
    const snug_type t = {.dtype = SNUG_F64, .rank = 2, .dims = {ROWS, columns}};
    const sn_recipe r = {.kind = SN_RECIPE_UNIFORM, .key = key, .a = -1, .b = 1};
    snug_feed *feed;
    snug_error err;
    expect_ok(sn_recipe_fill(&r, 0, (size_t)(ROWS * columns), SNUG_F64, room, &err), &err);
    expect_ok(snug_feed_from_memory(e, &t, room, NULL, NULL, &feed, &err), &err);
    return feed;
}

/* A wide layer before a narrow net with batch norms: with half the bytes only the wide one is
 * sliced. The norms run whole, so there are no phases: the wide layer's way there and back. */
static void test_a_wide_layer_alone_is_sliced(void **state) {
    const snug_type input = {.dtype = SNUG_F64, .rank = 1, .dims = {WIDTH}};
    const snug_compile how = {.optimizer = "adam", .loss = "mean_squared_error"};
    static double x[ROWS * WIDTH], y[ROWS * 2];
    snug_engine *e = *state;
    snug_feed *feeds[2] = {numbers(e, WIDTH, x, 1), numbers(e, 2, y, 2)};
    snug_model *m;
    snug_error err;
    sn_model_subject s;
    sn_step_run whole, part, all;
    expect_ok(snug_model_create(e, "wide", &input, &m, &err), &err);
    char wide[64];
    snprintf(wide, sizeof wide, "units=%d activation=tanh", WIDE);
    expect_ok(snug_model_add(m, "Dense", wide, &err), &err);
    for (int i = 0; i < 3; i++) {
        expect_ok(snug_model_add(m, "Dense", "units=16 activation=relu", &err), &err);
        expect_ok(snug_model_add(m, "BatchNormalization", "", &err), &err);
    }
    expect_ok(snug_model_add(m, "Dense", "units=2", &err), &err);
    expect_ok(snug_model_compile(m, &how, &err), &err);
    const sn_step_data data = {.x = &feeds[0], .n_x = 1, .y = &feeds[1], .n_y = 1};
    sn_model_subject_make(m, ROWS, &data, &s);
    s.subject.n_runs = 2;
    sn_step_run_make(&s.subject, &(sn_plan_options){.slices = 0}, &whole);
    const size_t limit = whole.arena_bytes * 6 / 10;
    sn_step_run_make(&s.subject, &(sn_plan_options){.arena_bytes = limit}, &part);
    assert_in_range(part.arena_bytes, 1, limit);
    assert_int_equal(part.n_blocks, 2);
    for (int64_t k = 2; k <= ROWS; k += getenv("SNUG_TEST_FULL") ? 1 : (k + 3) / 4) {
        sn_step_run_make(&s.subject, &(sn_plan_options){.slices = k, .arena_bytes = limit}, &all);
        assert_true(all.n_blocks > 2);
        if (all.arena_bytes <= limit)
            assert_true(part.seconds < all.seconds);
        sn_step_run_clear(&all);
    }
    sn_step_run_expect_close(&part, &whole, 1e-12, "wide");
    sn_step_run_clear(&part);
    sn_step_run_clear(&whole);
    snug_model_destroy(m);
    snug_feed_destroy(feeds[0]);
    snug_feed_destroy(feeds[1]);
}

static int is_case(const struct dirent *d) {
    const char *only = getenv("SNUG_SPLIT_CASE");
    return strstr(d->d_name, "_f64") && (!only || strcmp(only, d->d_name) == 0);
}

int main(void) {
    struct dirent **names;
    static struct CMUnitTest tests[MAX_CASES + 2] = {
        engine_test(test_a_wide_layer_alone_is_sliced)};
    const bool all = getenv("SNUG_TEST_FULL") || getenv("SNUG_SPLIT_CASE");
    const int n = scandir(SNUG_TEST_DATA "/golden", &names, is_case, alphasort);
    size_t n_tests = 1;
    for (int i = all ? 0 : 1; i < n && n_tests < MAX_CASES; i += all ? 1 : 3)
        tests[n_tests++] = (struct CMUnitTest){names[i]->d_name, is_the_same_in_parts, NULL, NULL,
                                               names[i]->d_name};
    if (!getenv("SNUG_SPLIT_CASE"))
        tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(test_parts_were_run);
    const int failed = _cmocka_run_group_tests("split_part", tests, n_tests, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return failed;
}
