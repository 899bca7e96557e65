/* test_process_cgroup.c: the helper that holds children to a memory limit, held to its own word:
 * who stays within is not killed, who does not is, and version 2 is written as its manual says (in
 * a fake tree: no machine at hand has it). */
#include "support/cgroup.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* Touches so many bytes; answers 7. */
static int touch(void *ctx) {
    const size_t bytes = *(const size_t *)ctx;
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < bytes; i += 4096)
        ((volatile char *)p)[i] = 1;
    return 7;
}

static void run(size_t limit, size_t bytes, sn_cgroup_result *out) {
    const char *why = sn_cgroup_run(NULL, limit, touch, &bytes, out);
    if (why) {
        print_message("%s\n", why);
        skip();
    }
}

static void test_a_child_within_its_limit_is_measured(void **state) {
    (void)state;
    sn_cgroup_result small, r;
    run(64 * MIB, 0, &small);
    run(64 * MIB, 40 * MIB, &r);
    assert_false(r.killed);
    assert_int_equal(r.exit_code, 7);
    assert_int_equal(r.signal, 0);
    const size_t more = r.counted_peak_bytes - small.counted_peak_bytes;
    assert_in_range(more, 40 * MIB - 128 * 1024, 40 * MIB + 512 * 1024); /* tables: 80 KiB */
    assert_in_range(r.max_usage_bytes, 40 * MIB, 64 * MIB);
}

static void test_a_child_beyond_its_limit_is_killed(void **state) {
    (void)state;
    sn_cgroup_result r;
    run(32 * MIB, 80 * MIB, &r);
    assert_true(r.killed);
    assert_int_equal(r.exit_code, -1);
    assert_int_equal(r.signal, 9);
    assert_true(r.max_usage_bytes <= 32 * MIB);
}

static void test_a_command_becomes_the_child(void **state) {
    (void)state;
    char *const argv[] = {"sh", "-c", "exit 5", NULL};
    sn_cgroup_result r;
    const char *why = sn_cgroup_run(NULL, 64 * MIB, sn_cgroup_command, (void *)(uintptr_t)argv, &r);
    if (why)
        skip();
    assert_int_equal(r.exit_code, 5);
    assert_false(r.killed);
    assert_true(r.counted_peak_bytes > 512 * 1024);
}

/* --- version 2, as files of a fake tree ------------------------------------------------------ */

/* What the child finds in the group it was put in. */
static int look_around(void *ctx) {
    char command[512];
    const char *root = ctx;
    snprintf(command, sizeof command,
             "cd %s/snug-test-* && test \"$(cat memory.max)\" = 1048576 && "
             "test \"$(cat memory.swap.max)\" = 0 && test \"$(cat cgroup.procs)\" = %d && "
             "echo 'oom_kill 3' > memory.events && echo 4321 > memory.peak",
             root, (int)getpid());
    return system(command) == 0 ? 0 : 1;
}

static void test_version_2_gets_its_own_files_in_a_fake_tree(void **state) {
    (void)state;
    char root[] = "/tmp/snug-cgroup-XXXXXX", path[256], command[300];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/cgroup.controllers", root);
    sn_test_write_file(path, "memory\n", 7);
    sn_cgroup_result r;
    assert_null(sn_cgroup_run(root, MIB, look_around, root, &r));
    assert_int_equal(r.exit_code, 0);
    assert_true(r.killed); /* the events say so */
    assert_int_equal(r.max_usage_bytes, 4321);
    snprintf(command, sizeof command,
             "test \"$(cat %s/cgroup.subtree_control)\" = +memory && rm -r %s", root, root);
    assert_int_equal(system(command), 0);
}

static void test_a_machine_without_groups_says_so(void **state) {
    (void)state;
    sn_cgroup_result r;
    const char *why = sn_cgroup_run("/nowhere", MIB, touch, NULL, &r);
    assert_non_null(why);
    expect_text(why, "no memory cgroups are mounted");
}

/* Version 2 beside version 1, which has the memory: groups can be made, none can be limited. */
static void test_groups_without_memory_are_none(void **state) {
    (void)state;
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < 2; i++) {
        char path[64], text[256] = "";
        sn_cgroup_result r;
        snprintf(path, sizeof path, "%s/cgroup.controllers", mounts[i]);
        FILE *f = fopen(path, "r");
        if (!f)
            continue;
        (void)!fgets(text, sizeof text, f);
        fclose(f);
        if (strstr(text, "memory"))
            continue;
        const char *why = sn_cgroup_run(mounts[i], MIB, touch, NULL, &r);
        assert_non_null(why);
        expect_text(why, "cgroup");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_within_its_limit_is_measured),
        cmocka_unit_test(test_a_child_beyond_its_limit_is_killed),
        cmocka_unit_test(test_a_command_becomes_the_child),
        cmocka_unit_test(test_version_2_gets_its_own_files_in_a_fake_tree),
        cmocka_unit_test(test_a_machine_without_groups_says_so),
        cmocka_unit_test(test_groups_without_memory_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
