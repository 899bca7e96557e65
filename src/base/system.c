/* system.c: small system files as text, read through an I/O table. They have no size to ask for, so
 * they are read until they end or the text is full. */
#include "base/system.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

const char *sn_system_text(const snug_io *io, const char *path, char *text, size_t size) {
    text[0] = '\0';
    const int fd = io->open(io->ctx, path, O_RDONLY, 0);
    if (fd < 0)
        return text;
    size_t n = 0;
    while (n < size - 1) {
        const int64_t got = io->pread(io->ctx, fd, text + n, size - 1 - n, (int64_t)n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    (void)io->close(io->ctx, fd);
    text[n] = '\0';
    return text;
}

size_t sn_system_number(const char *text, const char *key) {
    const size_t n = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0)
            return (size_t)strtoull(line + n, NULL, 10);
    }
    return 0;
}
