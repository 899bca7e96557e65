/* process.c: reads /proc/self/status and its like through the engine's I/O table. */
#include "report/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

const char *sn_system_text(const snug_io *io, const char *path, char *text, size_t size) {
    const int fd = io->open(io->ctx, path, O_RDONLY | O_CLOEXEC, 0);
    size_t n = 0;
    while (fd >= 0 && n < size - 1) {
        const int64_t got = io->pread(io->ctx, fd, text + n, size - 1 - n, (int64_t)n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (fd >= 0)
        (void)io->close(io->ctx, fd);
    text[n] = 0;
    return text;
}

static size_t kib_behind(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? (size_t)strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

void sn_process_read(const snug_io *io, sn_process *out) {
    char text[4096];
    sn_system_text(io, "/proc/self/status", text, sizeof text);
    out->resident_bytes = kib_behind(text, "VmRSS:");
    out->peak_bytes = kib_behind(text, "VmHWM:");
}
