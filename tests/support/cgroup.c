/* cgroup.c: makes the group, starts the child in it, watches it, takes the group away.
 *
 *     parent  mkdir ROOT/.../snug-test-PID-N, limits      wait, looking at /proc/CHILD/status
 *     child   writes itself to cgroup.procs               runs; stops before its end (ptrace),
 *                                                         where the parent reads its VmHWM
 *
 * Page tables and threads have no high-water mark in the kernel: they are looked at every other
 * millisecond. */
#include "support/cgroup.h"

#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 512, TEXT_BYTES = 4096 };

typedef struct {
    bool version_2;
    char path[PATH_BYTES]; /* of the group made */
} group;

/* --- files ------------------------------------------------------------------------------------ */

static bool read_text(const char *path, char *text) {
    text[0] = '\0';
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, TEXT_BYTES - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* A fake tree has no files in a new folder: they are made. */
static bool write_text(const char *dir, const char *name, const char *text) {
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    const bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return close(fd) == 0 && written;
}

static bool has_file(const char *dir, const char *name) {
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* The number behind key in the group's file; key "" for a file that is one number. */
static size_t number_in(const group *g, const char *name, const char *key) {
    char path[PATH_BYTES + 64], text[TEXT_BYTES];
    snprintf(path, sizeof path, "%s/%s", g->path, name);
    read_text(path, text);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) == 0)
            return (size_t)strtoull(line + strlen(key), NULL, 10);
    }
    return 0;
}

/* --- the group -------------------------------------------------------------------------------- */

/* The folder of this process's own group: from the line of /proc/self/cgroup with this start
 * ("4:memory:" or "0::"), where it is visible below the mount, else the mount itself. */
static void own_folder(const char *mount, const char *marker, char *path) {
    char text[TEXT_BYTES];
    read_text("/proc/self/cgroup", text);
    char *at = strstr(text, marker), dir[PATH_BYTES];
    snprintf(path, PATH_BYTES, "%s", mount);
    if (!at)
        return;
    at += strlen(marker);
    at[strcspn(at, "\n")] = '\0';
    const int n = snprintf(dir, sizeof dir, "%s%s", mount, at);
    if (n > 0 && n < PATH_BYTES - 64 && access(dir, F_OK) == 0 && strcmp(at, "/") != 0)
        snprintf(path, PATH_BYTES, "%s", dir);
}

/* The limit, and no swap, which would be memory that nobody counts. memsw is there only where the
 * kernel accounts for swap. */
static bool limit_group(const group *g, size_t bytes) {
    char text[32];
    snprintf(text, sizeof text, "%zu", bytes);
    if (g->version_2)
        return write_text(g->path, "memory.max", text) &&
               write_text(g->path, "memory.swap.max", "0");
    if (!write_text(g->path, "memory.limit_in_bytes", text))
        return false;
    if (has_file(g->path, "memory.memsw.limit_in_bytes"))
        return write_text(g->path, "memory.memsw.limit_in_bytes", text);
    return write_text(g->path, "memory.swappiness", "0");
}

/* From a folder to the one above it, not beyond the mount. */
static bool go_up(const char *mount, char *folder) {
    char *slash = strrchr(folder, '/');
    if (strlen(folder) <= strlen(mount) || !slash)
        return false;
    *slash = '\0';
    return true;
}

/* A limited group below a folder. Version 2 gives no group memory to limit where processes live in
 * the folder itself, as in a session of systemd: then one beside it is made, or above. NULL, or why
 * there is none. */
static const char *make_limited(const char *mount, char *folder, size_t bytes, group *g) {
    static int n_made;
    static char why[PATH_BYTES + 128];
    do {
        const int n = snprintf(g->path, sizeof g->path, "%s/snug-test-%d-%d", folder, (int)getpid(),
                               n_made++);
        if (n < 0 || n >= PATH_BYTES || mkdir(g->path, 0700) != 0) {
            snprintf(why, sizeof why, "no cgroup can be made in %s: %s", folder, strerror(errno));
            return why;
        }
        if (limit_group(g, bytes))
            return NULL;
        const int failed = errno;
        const bool is_of_memory = !g->version_2 || has_file(g->path, "memory.max");
        rmdir(g->path);
        if (is_of_memory)
            fail_msg("%s takes no limit of %zu bytes: %s", g->path, bytes, strerror(failed));
    } while (go_up(mount, folder));
    snprintf(why, sizeof why, "no cgroup below %s has the memory controller", mount);
    return why;
}

/* NULL, or why there is none. */
static const char *make_group(const char *root, size_t bytes, group *g) {
    char mount[PATH_BYTES], own[PATH_BYTES];
    snprintf(mount, sizeof mount, "%s/memory", root);
    g->version_2 = !has_file(mount, "memory.limit_in_bytes");
    if (g->version_2 && !has_file(root, "cgroup.controllers"))
        return "no memory cgroups are mounted";
    if (g->version_2)
        snprintf(mount, sizeof mount, "%s", root);
    own_folder(mount, g->version_2 ? "0::" : ":memory:", own);
    if (g->version_2)
        (void)!write_text(own, "cgroup.subtree_control", "+memory");
    return make_limited(mount, own, bytes, g);
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void remove_group(const group *g) {
    for (int i = 0; i < 100 && rmdir(g->path) != 0 && errno == EBUSY; i++)
        nap();
}

/* --- the child -------------------------------------------------------------------------------- */

enum { NOT_IN_GROUP = 126 };

static void begin_child(const group *g, int (*child)(void *ctx), void *ctx) {
    char text[32];
    snprintf(text, sizeof text, "%d", (int)getpid());
    if (!write_text(g->path, "cgroup.procs", text))
        _exit(NOT_IN_GROUP);
    /* Stopped here, the parent can ask to be shown the end. */
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
        raise(SIGSTOP);
    _exit(child(ctx));
}

typedef struct {
    size_t peak_kib, tables_kib, threads;
} watched;

static void look(pid_t pid, watched *w) {
    static const struct {
        const char *key;
        size_t offset;
    } keys[] = {{"VmHWM:", offsetof(watched, peak_kib)},
                {"VmPTE:", offsetof(watched, tables_kib)},
                {"Threads:", offsetof(watched, threads)}};
    char path[64], text[TEXT_BYTES];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (!read_text(path, text))
        return;
    for (size_t i = 0; i < 3; i++) {
        const char *at = strstr(text, keys[i].key);
        const size_t n = at ? (size_t)strtoull(at + strlen(keys[i].key), NULL, 10) : 0;
        size_t *most = (size_t *)(void *)((char *)w + keys[i].offset);
        if (n > *most)
            *most = n;
    }
}

/* Signals go on to the child, but those that only ptrace made. */
static void go_on(pid_t pid, int status, watched *w) {
    const int signal_number = WSTOPSIG(status);
    const bool end = status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXIT << 8));
    const bool made = end || signal_number == SIGSTOP || signal_number == SIGTRAP;
    look(pid, w);
    if (signal_number == SIGSTOP)
        ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXIT);
    ptrace(PTRACE_CONT, pid, NULL, (void *)(uintptr_t)(made ? 0 : signal_number));
}

static int watch(pid_t pid, watched *w) {
    int status = 0;
    bool on = true;
    while (on) {
        const pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == 0) {
            look(pid, w);
            nap();
        } else if (got == pid && WIFSTOPPED(status)) {
            go_on(pid, status, w);
        } else {
            on = got < 0 && errno == EINTR;
        }
    }
    return status;
}

const char *sn_cgroup_run(const char *root, size_t limit_bytes, int (*child)(void *ctx), void *ctx,
                          sn_cgroup_result *out) {
    group g;
    const char *why = make_group(root ? root : "/sys/fs/cgroup", limit_bytes, &g);
    if (why)
        return why;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        begin_child(&g, child, ctx);
    watched w = {0};
    const int status = pid > 0 ? watch(pid, &w) : 0;
    const size_t n_kills = g.version_2 ? number_in(&g, "memory.events", "oom_kill ")
                                       : number_in(&g, "memory.oom_control", "oom_kill ");
    *out = (sn_cgroup_result){
        .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .max_usage_bytes =
            number_in(&g, g.version_2 ? "memory.peak" : "memory.max_usage_in_bytes", ""),
        .counted_peak_bytes = (w.peak_kib + w.tables_kib + 16 * w.threads) * 1024};
    out->killed = n_kills > 0 || out->signal == SIGKILL;
    remove_group(&g);
    if (pid < 0 || out->exit_code == NOT_IN_GROUP)
        fail_msg("no child could be started in %s", g.path);
    return NULL;
}

int sn_cgroup_command(void *argv) {
    char *const *words = argv;
    execvp(words[0], words);
    return 127;
}
