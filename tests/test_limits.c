/* test_limits.c: what this process may use, by the machine and by its cgroups: fake ones of both
 * versions, and a real one. */
#include "support/fake_files.h"
#include "support/support.h"

#include "memory/engine.h"
#include "memory/limits.h"
#include "memory/private.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- limits --------------------------------------------------------------------------------- */

static sn_limits limits_of(const sn_fake_file *files) {
    const snug_io io = sn_fake_io(files);
    return sn_limits_read(&io);
}

#define MEMINFO                                                                                    \
    { "/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    5000 kB\nSwapFree: 1000 kB\n" }

static void test_limits_are_the_machine_without_cgroups(void **state) {
    (void)state;
    const sn_limits none = limits_of((sn_fake_file[]){{NULL, NULL}});
    assert_true(none.room_bytes == SIZE_MAX);
    const sn_limits machine = limits_of((sn_fake_file[]){MEMINFO, {NULL, NULL}});
    assert_int_equal(machine.room_bytes, 6000 * 1024);
    assert_string_equal(machine.name, "machine");
}

static void test_limits_of_cgroup_2_take_the_tightest_ancestor(void **state) {
    (void)state;
    const sn_limits l = limits_of((sn_fake_file[]){
        MEMINFO,
        {"/proc/self/cgroup", "0::/jobs/one\n"},
        {"/sys/fs/cgroup/jobs/one/memory.max", "max\n"},
        {"/sys/fs/cgroup/jobs/one/memory.current", "10\n"},
        {"/sys/fs/cgroup/jobs/memory.max", "1000000\n"},
        {"/sys/fs/cgroup/jobs/memory.current", "400000\n"},
        {"/sys/fs/cgroup/jobs/memory.stat",
         "anon 5\ninactive_anon 7\ninactive_file 30000\nactive_file 20000\n"},
        {NULL, NULL},
    });
    assert_int_equal(l.room_bytes, 1000000 - (400000 - 50000));
    assert_string_equal(l.name, "cgroup");
}

static void test_limits_of_cgroup_1_find_the_memory_controller(void **state) {
    (void)state;
    const sn_limits l = limits_of((sn_fake_file[]){
        MEMINFO,
        {"/proc/self/cgroup", "9:name=systemd:/\n5:memoryx,cpu:/wrong\n4:cpu,memory:/box\n0::/\n"},
        {"/sys/fs/cgroup/memory/wrong/memory.limit_in_bytes", "1\n"},
        {"/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "500000\n"},
        {"/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "100000\n"},
        {"/sys/fs/cgroup/memory/box/memory.stat",
         "inactive_file 1\ntotal_inactive_file 10000\ntotal_active_file 5\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "4\n"},
        {NULL, NULL},
    });
    assert_int_equal(l.room_bytes, 500000 - (100000 - 10005));
}

static void test_limits_of_a_container_are_at_its_root(void **state) {
    (void)state;
    const sn_limits l = limits_of((sn_fake_file[]){
        {"/proc/self/cgroup", "4:memory:/docker/not/visible/here\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "70000\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "80000\n"},
        {NULL, NULL},
    });
    assert_int_equal(l.room_bytes, 0);
}

static void expect_threads(const char *group, const sn_fake_file *quota, int n_cores, int wanted) {
    sn_fake_file files[8] = {{"/proc/self/cgroup", group}};
    for (int i = 1; quota[i - 1].path; i++)
        files[i] = quota[i - 1];
    const snug_io io = sn_fake_io(files);
    assert_int_equal(sn_limits_threads(&io, n_cores), wanted);
}

static void test_threads_of_cgroup_2_keep_the_quota(void **state) {
    (void)state;
    static const struct {
        const char *one, *jobs, *root;
        int wanted; /* of 8 cores */
    } cases[] = {
        {"max 100000\n", "max 100000\n", "", 8},
        {"300000 100000\n", "max 100000\n", "", 3},
        {"max 100000\n", "250000 100000\n", "", 2},
        {"10000 100000\n", "800000 100000\n", "", 1},
        {"", "", "150000 50000\n", 3},
        {"900000 100000\n", "", "", 8},
        {"400000\n", "", "", 8},
        {"0 100000\n", "rubbish", "5 0\n", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sn_fake_file quota[] = {{"/sys/fs/cgroup/jobs/one/cpu.max", cases[i].one},
                                      {"/sys/fs/cgroup/jobs/cpu.max", cases[i].jobs},
                                      {"/sys/fs/cgroup/cpu.max", cases[i].root},
                                      {NULL, NULL}};
        expect_threads("0::/jobs/one\n", quota, 8, cases[i].wanted);
    }
}

static void test_threads_of_cgroup_1_keep_the_quota(void **state) {
    (void)state;
    const sn_fake_file quota[] = {{"/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n"},
                                  {"/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"},
                                  {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "399999\n"},
                                  {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
                                  {NULL, NULL}};
    expect_threads("4:cpu,cpuacct:/box\n3:cpuset:/wrong\n", quota, 8, 3);
    expect_threads("4:cpu,cpuacct:/box\n", quota, 2, 2);
    expect_threads("3:cpuset:/box\n", quota, 8, 8);
    expect_threads("4:cpu,cpuacct:/box\n", (sn_fake_file[]){quota[0], quota[1], {NULL, NULL}}, 8,
                   8);
}

/* --- a real group --------------------------------------------------------------------------- */

enum { GROUP_BYTES = 64 << 20, CANNOT_ENTER = 77 };

static bool write_text(const char *dir, const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    const bool put = fputs(text, f) >= 0;
    return fclose(f) == 0 && put;
}

/* Makes a group of GROUP_BYTES below this process's own; false where that is not allowed. */
static bool make_group(char dir[512]) {
    char line[400], limit[32];
    FILE *f = fopen("/proc/self/cgroup", "r");
    bool made = false;
    snprintf(limit, sizeof limit, "%d\n", GROUP_BYTES);
    while (f && !made && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        const char *v1 = strstr(line, ":memory:"), *v2 = strncmp(line, "0::", 3) == 0 ? line : NULL;
        if (!v1 && !v2)
            continue;
        snprintf(dir, 512, "/sys/fs/cgroup%s%s/snug-test-%d", v1 ? "/memory" : "",
                 v1 ? v1 + strlen(":memory:") : v2 + 3, (int)getpid());
        if (mkdir(dir, 0755) != 0)
            continue;
        made = write_text(dir, v1 ? "memory.limit_in_bytes" : "memory.max", limit);
        if (!made)
            rmdir(dir);
    }
    if (f)
        fclose(f);
    return made;
}

/* In a process of its own, which a missing check would cost its life. Exit code 0: as it should
 * be. */
static int ask_inside(const char *dir) {
    snug_engine *e;
    snug_error err = {0};
    sn_block b = {0};
    const sn_block_options now = {.populate = true};
    if (!write_text(dir, "cgroup.procs", "0\n"))
        return CANNOT_ENTER;
    if (snug_engine_create(NULL, &e, &err) != SNUG_OK)
        return 1;
    const size_t limit = GROUP_BYTES;
    if (sn_block_init(e, SN_MEM_ARENA, "plan 1", 2 * limit, &now, &b, &err) != SNUG_E_MEMORY)
        return 2;
    if (!strstr(err.text, "cgroup") || snug_engine_bytes(e) != 0)
        return 3;
    if (sn_block_init(e, SN_MEM_ARENA, "plan 1", limit / 4, &now, &b, &err) != SNUG_OK)
        return 4;
    sn_block_clear(&b);
    snug_engine_destroy(e);
    return 0;
}

static void test_block_beyond_a_real_cgroup_is_refused_not_killed(void **state) {
    (void)state;
    char dir[512];
    if (!make_group(dir)) {
        print_message("skipped: no cgroup with a memory limit can be made here\n");
        skip();
    }
    const pid_t child = fork();
    if (child == 0)
        _exit(ask_inside(dir));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(rmdir(dir), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_ENTER) {
        print_message("skipped: no process can be moved to a cgroup here\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_are_the_machine_without_cgroups),
        cmocka_unit_test(test_limits_of_cgroup_2_take_the_tightest_ancestor),
        cmocka_unit_test(test_limits_of_cgroup_1_find_the_memory_controller),
        cmocka_unit_test(test_limits_of_a_container_are_at_its_root),
        cmocka_unit_test(test_threads_of_cgroup_2_keep_the_quota),
        cmocka_unit_test(test_threads_of_cgroup_1_keep_the_quota),
        cmocka_unit_test(test_block_beyond_a_real_cgroup_is_refused_not_killed),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
