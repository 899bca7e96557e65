/* in_cgroup.c: a command inside a memory cgroup of its own, for tests that are scripts.
 *
 *     in_cgroup LIMIT REPORT.json COMMAND [ARGUMENT...]
 *
 * LIMIT as in "512MiB". REPORT gets one line of JSON: limit_bytes, exit_code, signal, killed,
 * max_usage_bytes, counted_peak_bytes. The exit code is the command's, 137 where it was killed, and
 * 77 where no group can be made. */
#include "support/cgroup.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t limit;
    snug_error err;
    sn_cgroup_result r;
    /* REPORT is overwritten: a command in its place must not be. */
    const char *dot = argc < 4 ? NULL : strrchr(argv[2], '.');
    if (!dot || strcmp(dot, ".json") != 0 || snug_bytes_parse(argv[1], &limit, &err) != SNUG_OK) {
        fprintf(stderr, "usage: in_cgroup LIMIT REPORT.json COMMAND [ARGUMENT...]\n");
        return 2;
    }
    const char *why = sn_cgroup_run(NULL, limit, sn_cgroup_command, argv + 3, &r);
    if (why) {
        fprintf(stderr, "in_cgroup: %s\n", why);
        return 77;
    }
    FILE *report = fopen(argv[2], "w");
    if (!report)
        return 2;
    fprintf(report,
            "{\"limit_bytes\":%zu,\"exit_code\":%d,\"signal\":%d,\"killed\":%s,"
            "\"max_usage_bytes\":%zu,\"counted_peak_bytes\":%zu}\n",
            limit, r.exit_code, r.signal, r.killed ? "true" : "false", r.max_usage_bytes,
            r.counted_peak_bytes);
    if (fclose(report) != 0)
        return 2;
    return r.killed ? 137 : r.exit_code < 0 ? 128 + r.signal : r.exit_code;
}
