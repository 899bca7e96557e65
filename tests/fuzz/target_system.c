/* Files of the system's, which a kernel or a container may write in other ways than we know:
 * limits, mappings, processors. Whatever they say, the answers are numbers that can be used. */
#include "base/system.h"
#include "fuzz/fuzz.h"
#include "memory/budget.h"
#include "memory/limits.h"
#include "memory/process.h"
#include "memory/smaps.h"

#include <string.h>

static void count(void *ctx, const sn_mapping *m) {
    *(size_t *)ctx += 1;
    fuzz_true(memchr(m->name, 0, sizeof m->name) != NULL, "a name without an end");
}

FUZZ_TARGET(system) {
    static const char *const paths[] = {
        "/proc/meminfo",    "/proc/self/cgroup",     "/sys/fs/cgroup/memory.max",
        "/proc/self/smaps", "/proc/self/status",     "/sys/fs/cgroup/memory.current",
        "/proc/cpuinfo",    "/sys/fs/cgroup/cpu.max"};
    static const char *const budgets[] = {"50%", "auto", "12.5 %", "1KiB"};
    size_t n_mappings = 0, bytes_of;
    sn_process process;
    fuzz f;
    fuzz_begin_files(&f, bytes, n, paths, 8);
    const sn_limits limits = sn_limits_read(&f.io);
    fuzz_true(limits.name != NULL, "a name of the limit");
    fuzz_true(sn_limits_threads(&f.io, 8) >= 1, "at least one thread");
    for (int i = 0; i < 4; i++)
        if (fuzz_ok(&f, sn_budget_parse(&f.io, budgets[i], &bytes_of, &f.err)))
            fuzz_true(bytes_of > 0, "a budget of nothing");
    (void)sn_smaps_each(&f.io, count, &n_mappings);
    sn_process_read(&f.io, &process);
    fuzz_end(&f, FUZZ_MIB);
}
