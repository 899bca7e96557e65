/* smaps.c: reads /proc/self/smaps through a small window on the stack: a process with thousands of
 * mappings has megabytes of it, and what measures memory must not need any.
 *
 *     7f85497e0000-7f85497e3000 r--p 00000000 fe:00 1234   /usr/lib/libgcc_s.so.1   <- a mapping
 *     Size:                 12 kB                                                   <- its lines
 *     Rss:                  12 kB
 *
 * Invariants:
 * 1. A mapping is shown when its last line has been read, so that it is whole.
 * 2. A line longer than the window of lines is cut at its end: only paths are that long. */
#include "memory/smaps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 4096, LINE_BYTES = 512 };

typedef struct {
    void (*visit)(void *ctx, const sn_mapping *m);
    void *ctx;
    sn_mapping mapping; /* being read */
    bool has_mapping;
} reader;

static void show(reader *r) {
    if (r->has_mapping)
        r->visit(r->ctx, &r->mapping);
    r->has_mapping = false;
}

/* The field behind the next blanks. */
static const char *next_field(const char *p) {
    while (*p && *p != ' ')
        p++;
    while (*p == ' ')
        p++;
    return p;
}

/* "START-END rwxp OFFSET DEVICE INODE PATH"; false for any other line. */
static bool read_head(const char *line, sn_mapping *m) {
    char *at;
    const uintptr_t start = (uintptr_t)strtoull(line, &at, 16);
    if (at == line || *at != '-')
        return false;
    const char *p = at + 1;
    const uintptr_t end = (uintptr_t)strtoull(p, &at, 16);
    if (at == p || *at != ' ' || end < start)
        return false;
    const char *rights = at + 1;
    if (strlen(rights) < 4)
        return false;
    const char *path = rights;
    for (int i = 0; i < 4; i++)
        path = next_field(path);
    const char *slash = *path == '/' ? strrchr(path, '/') : NULL;
    *m = (sn_mapping){.start = start,
                      .end = end,
                      .readable = rights[0] == 'r',
                      .writable = rights[1] == 'w',
                      .executable = rights[2] == 'x',
                      .file = slash != NULL};
    const char *name = slash ? slash + 1 : path;
    const size_t n = strlen(name);
    memcpy(m->name, name, n < sizeof m->name ? n : sizeof m->name - 1);
    return true;
}

static void take_line(reader *r, const char *line) {
    sn_mapping m;
    if (read_head(line, &m)) {
        show(r);
        r->mapping = m;
        r->has_mapping = true;
    } else if (r->has_mapping && strncmp(line, "Rss:", 4) == 0) {
        r->mapping.resident_bytes = (size_t)strtoull(line + 4, NULL, 10) * 1024;
    }
}

bool sn_smaps_each(const snug_io *io, void (*visit)(void *ctx, const sn_mapping *m), void *ctx) {
    char window[WINDOW_BYTES], line[LINE_BYTES];
    size_t n_line = 0;
    int64_t offset = 0, got;
    reader r = {.visit = visit, .ctx = ctx};
    const int fd = io->open(io->ctx, "/proc/self/smaps", O_RDONLY, 0);
    if (fd < 0)
        return false;
    while ((got = io->pread(io->ctx, fd, window, sizeof window, offset)) > 0) {
        for (int64_t i = 0; i < got; i++) {
            if (window[i] != '\n') {
                if (n_line < sizeof line - 1)
                    line[n_line++] = window[i];
                continue;
            }
            line[n_line] = '\0';
            take_line(&r, line);
            n_line = 0;
        }
        offset += got;
    }
    show(&r);
    (void)io->close(io->ctx, fd);
    return got == 0 && offset > 0;
}
