/* test_split_golden.c: slices change nothing. The f64 models of tests/golden and those of mixed
 * policies, trained for two steps in 2 slices, in 5 (which do not divide the batch) and row by row,
 * give what the unsplit step gives: losses, metrics, weights and slots. So does the smallest plan,
 * and one between it and the unlimited one. All of them can be sliced. All 457 folders (under
 * sanitizers every twelfth, with SNUG_TEST_FULL=1 all); SNUG_SPLIT_CASE=mlp_f64 is one. */
#include "support/golden_case.h"
#include "support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 1024 };

/* Sums of slices are added in another order, in f32 of halves, whose last bit is another then. */
static double tolerance_of(const char *name) {
    return strstr(name, "_bf16") ? 0x1p-6 : strstr(name, "_f16") ? 0x1p-9 : 1e-12;
}

/* The smallest plan there is, and one in the middle. */
static void is_the_same_within_budgets(const sn_step_subject *s, const sn_step_run *whole,
                                       const char *name) {
    sn_plan_floor floor = {0};
    sn_step_run run;
    snug_error err;
    expect_status(
        sn_step_run_try(s, &(sn_plan_options){.arena_bytes = 1, .floor = &floor}, &run, &err),
        SNUG_E_BUDGET, &err);
    for (size_t i = 0; i < 2; i++) {
        const size_t bytes = floor.bytes + i * (whole->arena_bytes - floor.bytes) / 2;
        sn_step_run_make(s, &(sn_plan_options){.arena_bytes = bytes}, &run);
        assert_true(run.arena_bytes <= bytes);
        if (run.slices > 1)
            sn_step_run_expect_close(&run, whole, tolerance_of(name), name);
        else
            sn_step_run_expect_equal(&run, whole, name);
        sn_step_run_clear(&run);
    }
}

static void is_the_same_in_slices(void **state) {
    static const int64_t slices[] = {2, 5, GOLDEN_BATCH};
    const char *name = *state;
    golden_case c;
    sn_step_run whole, sliced;
    golden_case_open(&c, SNUG_TEST_DATA "/golden", name);
    c.subject.subject.n_runs = 2;
    sn_step_run_make(&c.subject.subject, &(sn_plan_options){.slices = 0}, &whole);
    for (int i = 0; i < 3; i++) {
        sn_step_run_make(&c.subject.subject, &(sn_plan_options){.slices = slices[i]}, &sliced);
        assert_true(sliced.n_blocks > 0 && sliced.slices > 1);
        sn_step_run_expect_close(&sliced, &whole, tolerance_of(name), name);
        sn_step_run_clear(&sliced);
    }
    is_the_same_within_budgets(&c.subject.subject, &whole, name);
    sn_step_run_clear(&whole);
    golden_case_close(&c);
}

static int is_case(const struct dirent *d) {
    const char *only = getenv("SNUG_SPLIT_CASE");
    const bool fits = strstr(d->d_name, "_f64") || strstr(d->d_name, "_mixed_");
    return fits && (!only || strcmp(only, d->d_name) == 0);
}

int main(void) {
    struct dirent **names;
    static struct CMUnitTest tests[MAX_CASES];
#ifdef SN_REDZONES
    const bool all = getenv("SNUG_TEST_FULL") || getenv("SNUG_SPLIT_CASE");
#else
    const bool all = true;
#endif
    const int n = scandir(SNUG_TEST_DATA "/golden", &names, is_case, alphasort);
    size_t n_tests = 0;
    for (int i = 0; i < n && n_tests < MAX_CASES; i += all ? 1 : 12)
        tests[n_tests++] = (struct CMUnitTest){names[i]->d_name, is_the_same_in_slices, NULL, NULL,
                                               names[i]->d_name};
    const int failed = _cmocka_run_group_tests("split_golden", tests, n_tests, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return failed;
}
