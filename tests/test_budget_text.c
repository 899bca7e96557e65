/* test_budget_text.c: budgets as people write them: sizes, parts of what there is, auto; and how
 * bad ones are refused. The system's files are fakes, so that every machine gives the same. */
#include "support/fake_files.h"
#include "support/support.h"

#include "memory/budget.h"

#include <string.h>

#define MEMINFO                                                                                    \
    { "/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n" }
#define STATUS                                                                                     \
    { "/proc/self/status", "Name: x\nVmHWM: 20480 kB\nVmRSS: 10240 kB\nVmPTE: 64 kB\n" }
#define MIB ((size_t)1 << 20)

static const sn_fake_file machine[] = {MEMINFO, STATUS, {NULL, NULL}};

/* 512 MiB for the group of the job, 1 GiB for the one above it. */
static const sn_fake_file group_2[] = {
    MEMINFO,
    STATUS,
    {"/proc/self/cgroup", "0::/jobs/one\n"},
    {"/sys/fs/cgroup/jobs/one/memory.max", "536870912\n"},
    {"/sys/fs/cgroup/jobs/one/memory.current", "12582912\n"}, /* 12 MiB: 10 are this process's */
    {"/sys/fs/cgroup/jobs/memory.max", "1073741824\n"},
    {NULL, NULL},
};

static const sn_fake_file group_1[] = {
    MEMINFO,
    STATUS,
    {"/proc/self/cgroup", "4:memory:/box/inner\n"},
    {"/sys/fs/cgroup/memory/box/inner/memory.limit_in_bytes", "9223372036854771712\n"},
    {"/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "268435456\n"},
    {"/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "73400320\n"}, /* 70 MiB */
    {"/sys/fs/cgroup/memory/box/memory.stat", "total_inactive_file 20971520\n"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
    {NULL, NULL},
};

static size_t parsed(const sn_fake_file *files, const char *text) {
    const snug_io io = sn_fake_io(files);
    snug_error err = {0};
    size_t bytes = 0;
    expect_ok(sn_budget_parse(&io, text, &bytes, &err), &err);
    return bytes;
}

static void test_sizes_are_bytes(void **state) {
    (void)state;
    assert_int_equal(parsed(machine, "512MiB"), 512 * MIB);
    assert_int_equal(parsed(machine, " 2GB "), 2000000000);
    assert_int_equal(parsed(machine, "8GiB"), 8192 * MIB); /* all there is */
    assert_int_equal(parsed(group_2, "512MiB"), 512 * MIB);
}

static void test_percentages_are_of_the_machine_or_the_tightest_group(void **state) {
    (void)state;
    assert_int_equal(parsed(machine, "50%"), 4096 * MIB);
    assert_int_equal(parsed(machine, "100 %"), 8192 * MIB);
    assert_int_equal(parsed(machine, "12.5%"), 1024 * MIB);
    assert_int_equal(parsed(group_2, "50%"), 256 * MIB);
    assert_int_equal(parsed(group_1, "25%"), 64 * MIB);
}

static void test_auto_takes_the_limit_of_the_group(void **state) {
    (void)state;
    assert_int_equal(parsed(group_2, "auto"), 512 * MIB);
}

/* 70 MiB, less 20 that can be dropped and 10 that are this process's own: 40 in bands of 8. */
static void test_auto_leaves_the_others_of_the_group_what_they_hold(void **state) {
    (void)state;
    assert_int_equal(parsed(group_1, "auto"), (256 - 40) * MIB);
}

/* 4 GiB are free; 15/16 of them and the 10 MiB of the process, in steps of 128 MiB. */
static void test_auto_takes_what_is_free_less_a_margin(void **state) {
    (void)state;
    assert_int_equal(parsed(machine, "auto"), 3840 * MIB);
}

/* A group may have more than a machine that others have filled. */
static void test_auto_in_a_wide_group_takes_what_is_free(void **state) {
    (void)state;
    const sn_fake_file files[] = {
        MEMINFO,
        STATUS,
        {"/proc/self/cgroup", "0::/jobs\n"},
        {"/sys/fs/cgroup/jobs/memory.max", "7516192768\n"},
        {NULL, NULL},
    };
    assert_int_equal(parsed(files, "auto"), 3840 * MIB);
    assert_int_equal(parsed(files, "50%"), 3584 * MIB);
}

typedef struct {
    const sn_fake_file *files;
    const char *text;
    snug_status status;
    const char *pieces[3];
} refusal;

static void test_bad_budgets_are_refused_with_numbers_and_a_remedy(void **state) {
    (void)state;
    static const sn_fake_file nothing[] = {{NULL, NULL}};
    static const refusal cases[] = {
        {machine, "0", SNUG_E_INVALID, {"budget 0", "8589934592", "give a size like 512MiB"}},
        {machine, "0%", SNUG_E_INVALID, {"budget 0%", "8.0 GiB", "give a size like 512MiB"}},
        {machine, "0.00000000001%", SNUG_E_INVALID, {"no byte", "8.0 GiB", "512MiB"}},
        {machine, "-1", SNUG_E_INVALID, {"budget: '-1'", "negative", "give a size like 512MiB"}},
        {machine, "-5%", SNUG_E_INVALID, {"'-5%'", "negative", "give a size like 512MiB"}},
        {machine, "lots", SNUG_E_INVALID, {"'lots'", "not a number of bytes", "512MiB"}},
        {machine, "", SNUG_E_INVALID, {"budget", "not a number of bytes", "512MiB"}},
        {machine, "AUTO", SNUG_E_INVALID, {"'AUTO'", "not a number of bytes", "512MiB"}},
        {machine, "%", SNUG_E_INVALID, {"'%'", "not a number of bytes", "512MiB"}},
        {machine, "5 bananas", SNUG_E_INVALID, {"'bananas'", "not a unit", "MiB"}},
        {machine, "50%%", SNUG_E_INVALID, {"'%%'", "not a unit", "MiB"}},
        {machine, "99999999999999999999", SNUG_E_INVALID, {"budget", "more than", "address"}},
        {machine, "8589934593", SNUG_E_INVALID, {"8589934592", "8.0 GiB", "this machine has"}},
        {machine, "1TiB", SNUG_E_INVALID, {"budget 1TiB", "this machine has", "at most that"}},
        {machine, "101%", SNUG_E_INVALID, {"101%", "this machine has", "at most that, or auto"}},
        {machine, "100.5%", SNUG_E_INVALID, {"100.5%", "8589934592 bytes", "at most that"}},
        {machine, "99999999999999999999%", SNUG_E_INVALID, {"more than", "8.0 GiB", "at most"}},
        {group_2, "513MiB", SNUG_E_INVALID, {"512.0 MiB", "this cgroup may use", "or auto"}},
        {nothing, "auto", SNUG_E_INVALID, {"does not say", "MemAvailable", "512MiB"}},
        {nothing, "50%", SNUG_E_INVALID, {"budget 50%", "does not say", "512MiB"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const refusal *c = &cases[i];
        const snug_io io = sn_fake_io(c->files);
        snug_error err = {0};
        size_t bytes = 77;
        expect_status(sn_budget_parse(&io, c->text, &bytes, &err), c->status, &err);
        assert_int_equal(bytes, 77);
        for (int k = 0; k < 3; k++)
            expect_text(err.text, c->pieces[k]);
    }
}

static void test_this_machine_answers(void **state) {
    (void)state;
    snug_error err = {0};
    size_t all = 0, half = 0, free_bytes = 0;
    expect_ok(snug_budget_parse("100%", &all, &err), &err);
    expect_ok(snug_budget_parse("50%", &half, &err), &err);
    expect_ok(snug_budget_parse("auto", &free_bytes, &err), &err);
    assert_int_equal(half, all / 2);
    assert_true(free_bytes > 0 && free_bytes <= all);
    expect_status(snug_budget_parse(NULL, &all, &err), SNUG_E_INVALID, &err);
    expect_status(snug_budget_parse("1", NULL, &err), SNUG_E_INVALID, &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_bytes),
        cmocka_unit_test(test_percentages_are_of_the_machine_or_the_tightest_group),
        cmocka_unit_test(test_auto_takes_the_limit_of_the_group),
        cmocka_unit_test(test_auto_leaves_the_others_of_the_group_what_they_hold),
        cmocka_unit_test(test_auto_takes_what_is_free_less_a_margin),
        cmocka_unit_test(test_auto_in_a_wide_group_takes_what_is_free),
        cmocka_unit_test(test_bad_budgets_are_refused_with_numbers_and_a_remedy),
        cmocka_unit_test(test_this_machine_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
