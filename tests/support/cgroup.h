/* cgroup.h: a child process inside a memory cgroup of its own whose limit is a budget, swap off.
 *
 *     sn_cgroup_result r;
 *     const char *why = sn_cgroup_run(NULL, limit_bytes, child, ctx, &r);  // int child(void *ctx)
 *     if (why) skip();                        // no group can be made here, and why says so
 *     assert_false(r.killed);
 *     assert_true(r.counted_peak_bytes <= limit_bytes);
 *
 * Version 1 groups are made below this process's own (or the root in a container), version 2 ones
 * likewise, or above it where only there they have memory to limit. Where a group with memory can
 * be made but not used the test fails: a budget that nobody enforces proves nothing. Version 2 has
 * only been tried against a fake tree (tests/test_process_cgroup.c): the machines at hand have
 * version 1. */
#ifndef SN_TESTS_CGROUP_H
#define SN_TESTS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    int exit_code;             /* of a child that ended by itself, else -1 */
    int signal;                /* that ended it, else 0 */
    bool killed;               /* by the group's limit */
    size_t max_usage_bytes;    /* the group's own count with file pages, to look at; 0: unknown */
    size_t counted_peak_bytes; /* VmHWM + page tables + kernel stacks of the child */
} sn_cgroup_result;

/* Runs child(ctx) in a fork, within the limit; its value is the exit code. root: where the groups
 * are mounted; NULL: /sys/fs/cgroup. NULL when it ran, else why no group can be made. */
const char *sn_cgroup_run(const char *root, size_t limit_bytes, int (*child)(void *ctx), void *ctx,
                          sn_cgroup_result *out);

/* A child that becomes the program argv[0]; ctx is argv. Its output goes where this one's goes. */
int sn_cgroup_command(void *argv);

#endif
