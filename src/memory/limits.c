/* limits.c: how much memory this process may still take before the system refuses it or kills it.
 *
 * The files read: /proc/meminfo (MemAvailable, SwapFree); /proc/self/cgroup, which names the group;
 * and below /sys/fs/cgroup the limit, usage and statistics of the group and all groups above it, in
 * version 2 (memory.max, memory.current) and version 1 (memory/memory.limit_in_bytes,
 * memory.usage_in_bytes).
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

static void tighten(sn_limits *l, size_t room, const char *name) {
    if (room < l->room_bytes)
        *l = (sn_limits){room, name};
}

static void read_machine(const snug_io *io, sn_limits *l) {
    char text[TEXT_BYTES];
    sn_system_text(io, "/proc/meminfo", text, sizeof text);
    if (!strstr(text, "MemAvailable:"))
        return;
    const size_t kib =
        sn_system_number(text, "MemAvailable:") + sn_system_number(text, "SwapFree:");
    tighten(l, kib * 1024, "machine");
}

/* The names of one version of cgroups. */
typedef struct {
    const char *root, *limit, *usage, *inactive, *active;
} version;

static const version versions[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ", "active_file "},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file ", "total_active_file "},
};

/* A file of the group in `dir`; "" when it cannot be read. */
static const char *read_file_of(const snug_io *io, const char *dir, const char *name, char *text) {
    char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    text[0] = '\0';
    return n > 0 && n < PATH_BYTES ? sn_system_text(io, path, text, TEXT_BYTES) : text;
}

static void read_group(const snug_io *io, const version *v, const char *dir, sn_limits *l) {
    char text[TEXT_BYTES];
    read_file_of(io, dir, v->limit, text);
    if (text[0] < '0' || text[0] > '9') /* "max" is no limit */
        return;
    const size_t limit = (size_t)strtoull(text, NULL, 10);
    size_t usage = (size_t)strtoull(read_file_of(io, dir, v->usage, text), NULL, 10);
    read_file_of(io, dir, "memory.stat", text);
    const size_t droppable =
        sn_system_number(text, v->inactive) + sn_system_number(text, v->active);
    usage = droppable < usage ? usage - droppable : 0;
    tighten(l, limit > usage ? limit - usage : 0, "cgroup");
}

/* The group `path` below the root and every group above it, root included (in a container the path
 * may not exist below the root, while the root is the container's own group). */
static void read_groups(const snug_io *io, const version *v, const char *path, sn_limits *l) {
    char dir[PATH_BYTES];
    const size_t root = strlen(v->root);
    const int n = snprintf(dir, sizeof dir, "%s%s", v->root, path);
    if (n < 0 || n >= PATH_BYTES)
        return;
    for (;;) {
        read_group(io, v, dir, l);
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < root)
            return;
        *slash = '\0';
    }
}

/* Whether the line "ID:CONTROLLERS:PATH" has the memory controller of version 1. */
static bool has_memory(const char *controllers, const char *end) {
    static const char name[] = "memory";
    const size_t n = sizeof name - 1;
    for (const char *p = controllers; p + n <= end; p++) {
        const bool starts = p == controllers || p[-1] == ',';
        if (starts && memcmp(p, name, n) == 0 && (p + n == end || p[n] == ','))
            return true;
    }
    return false;
}

static void read_cgroups(const snug_io *io, sn_limits *l) {
    char text[TEXT_BYTES];
    sn_system_text(io, "/proc/self/cgroup", text, sizeof text);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        controllers++;
        if (path == controllers)
            read_groups(io, &versions[0], path + 1, l);
        else if (has_memory(controllers, path))
            read_groups(io, &versions[1], path + 1, l);
    }
}

sn_limits sn_limits_read(const snug_io *io) {
    sn_limits l = {SIZE_MAX, ""};
    read_machine(io, &l);
    read_cgroups(io, &l);
    return l;
}
