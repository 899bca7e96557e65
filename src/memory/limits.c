/* limits.c: how much memory this process may still take before the system refuses it or kills it,
 * and how many processors' time it gets.
 *
 * The files read: /proc/meminfo (MemAvailable, SwapFree); /proc/self/cgroup, which names the group;
 * and below /sys/fs/cgroup the files of the group and all groups above it, in version 2
 * (memory.max, memory.current, cpu.max) and version 1 (memory/memory.limit_in_bytes,
 * memory.usage_in_bytes, cpu/cpu.cfs_quota_us, cpu.cfs_period_us).
 *
 * Invariants:
 * 1. What cannot be read is no limit: the answer is only ever made smaller by a number that was
 *    there.
 * 2. File pages that the kernel can drop (inactive_file, active_file) count as room: usage contains
 *    them. */
#include "memory/limits.h"

#include "base/system.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 8192, PATH_BYTES = 1024 };
/* Version 1 writes "no limit" as the largest count of pages. */
#define NO_LIMIT_FROM ((size_t)1 << 60)

static void tighten(sn_limits *l, size_t room, const char *name, bool in_group) {
    if (room >= l->room_bytes)
        return;
    l->room_bytes = room;
    l->name = name;
    l->in_group = in_group;
}

static void read_machine(const snug_io *io, sn_limits *l) {
    char text[TEXT_BYTES];
    sn_system_text(io, "/proc/meminfo", text, sizeof text);
    const size_t total = sn_system_number(text, "MemTotal:") * 1024;
    l->machine_bytes = total > 0 ? total : SIZE_MAX;
    if (!strstr(text, "MemAvailable:"))
        return;
    l->available_bytes = sn_system_number(text, "MemAvailable:") * 1024;
    tighten(l, l->available_bytes + sn_system_number(text, "SwapFree:") * 1024, "machine", false);
}

/* --- groups ----------------------------------------------------------------------------------- */

enum { VERSION_2, VERSION_1 };

/* One controller: its name and place, and who looks at each group's folder. */
typedef struct {
    const char *name;    /* in version 1 */
    const char *root[2]; /* by version */
    void (*look)(const snug_io *io, int version, const char *dir, void *ctx);
    void *ctx;
} controller;

/* A file of the group in `dir`; "" when it cannot be read. */
static const char *read_file_of(const snug_io *io, const char *dir, const char *name, char *text) {
    char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    text[0] = '\0';
    return n > 0 && n < PATH_BYTES ? sn_system_text(io, path, text, TEXT_BYTES) : text;
}

/* The group `path` below the root and every group above it, root included (in a container the path
 * may not exist below the root, while the root is the container's own group). */
static void look_at_groups(const snug_io *io, const controller *c, int version, const char *path) {
    char dir[PATH_BYTES];
    const size_t root = strlen(c->root[version]);
    const int n = snprintf(dir, sizeof dir, "%s%s", c->root[version], path);
    if (n < 0 || n >= PATH_BYTES)
        return;
    for (;;) {
        c->look(io, version, dir, c->ctx);
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < root)
            return;
        *slash = '\0';
    }
}

/* Whether the list "CONTROLLER,CONTROLLER" has this one. */
static bool has_controller(const char *list, const char *end, const char *name) {
    const size_t n = strlen(name);
    for (const char *p = list; p + n <= end; p++) {
        const bool starts = p == list || p[-1] == ',';
        if (starts && memcmp(p, name, n) == 0 && (p + n == end || p[n] == ','))
            return true;
    }
    return false;
}

/* Lines "ID:CONTROLLERS:PATH"; version 2 has no controllers there. */
static void look_at_cgroups(const snug_io *io, const controller *c) {
    char text[TEXT_BYTES];
    sn_system_text(io, "/proc/self/cgroup", text, sizeof text);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        list++;
        if (path == list)
            look_at_groups(io, c, VERSION_2, path + 1);
        else if (has_controller(list, path, c->name))
            look_at_groups(io, c, VERSION_1, path + 1);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

static void look_at_memory(const snug_io *io, int version, const char *dir, void *ctx) {
    static const struct {
        const char *limit, *usage, *inactive, *active;
    } names[] = {
        [VERSION_2] = {"memory.max", "memory.current", "inactive_file ", "active_file "},
        [VERSION_1] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
                       "total_active_file "},
    };
    char text[TEXT_BYTES];
    read_file_of(io, dir, names[version].limit, text);
    if (text[0] < '0' || text[0] > '9') /* "max" is no limit */
        return;
    const size_t limit = (size_t)strtoull(text, NULL, 10);
    size_t usage = (size_t)strtoull(read_file_of(io, dir, names[version].usage, text), NULL, 10);
    read_file_of(io, dir, "memory.stat", text);
    const size_t droppable = sn_system_number(text, names[version].inactive) +
                             sn_system_number(text, names[version].active);
    usage = droppable < usage ? usage - droppable : 0;
    sn_limits *l = ctx;
    tighten(l, limit > usage ? limit - usage : 0, "cgroup", true);
    if (limit < l->group_bytes && limit < NO_LIMIT_FROM) {
        l->group_bytes = limit;
        l->group_used = usage;
    }
}

sn_limits sn_limits_read(const snug_io *io) {
    sn_limits l = {.room_bytes = SIZE_MAX,
                   .name = "",
                   .group_bytes = SIZE_MAX,
                   .machine_bytes = SIZE_MAX,
                   .available_bytes = SIZE_MAX};
    const controller memory = {
        "memory", {"/sys/fs/cgroup", "/sys/fs/cgroup/memory"}, look_at_memory, &l};
    read_machine(io, &l);
    look_at_cgroups(io, &memory);
    return l;
}

/* --- processors ------------------------------------------------------------------------------- */

/* "QUOTA PERIOD", both in microseconds; "max" and -1 are no limit. */
static void look_at_quota(const snug_io *io, int version, const char *dir, void *ctx) {
    char text[TEXT_BYTES], *end;
    int *n = ctx;
    read_file_of(io, dir, version == VERSION_2 ? "cpu.max" : "cpu.cfs_quota_us", text);
    const long long quota = strtoll(text, &end, 10);
    if (version == VERSION_1)
        end = text, read_file_of(io, dir, "cpu.cfs_period_us", text);
    const long long period = strtoll(end, NULL, 10);
    if (quota <= 0 || period <= 0)
        return;
    const long long whole = quota / period > 1 ? quota / period : 1;
    if (whole < *n)
        *n = (int)whole;
}

int sn_limits_threads(const snug_io *io, int n_cores) {
    int n = n_cores;
    const controller cpu = {"cpu", {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"}, look_at_quota, &n};
    look_at_cgroups(io, &cpu);
    return n;
}
