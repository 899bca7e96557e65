/* fake_files.c: files in memory; the descriptor is the index. Reads give at most 1,000 bytes, as
 * files of the system give less than was asked for. */
#include "support/fake_files.h"

#include <errno.h>
#include <string.h>

static int fake_open(void *ctx, const char *path, int flags, int mode) {
    (void)flags, (void)mode;
    const sn_fake_file *files = ctx;
    for (int i = 0; files[i].path; i++) {
        if (strcmp(files[i].path, path) == 0)
            return i;
    }
    return -ENOENT;
}

static int64_t fake_pread(void *ctx, int fd, void *buffer, size_t bytes, int64_t offset) {
    const char *text = ((const sn_fake_file *)ctx)[fd].text;
    const size_t n = strlen(text);
    if ((size_t)offset >= n)
        return 0;
    size_t some = n - (size_t)offset;
    if (some > bytes)
        some = bytes;
    if (some > 1000)
        some = 1000;
    memcpy(buffer, text + offset, some);
    return (int64_t)some;
}

static int fake_close(void *ctx, int fd) {
    (void)ctx, (void)fd;
    return 0;
}

snug_io sn_fake_io(const sn_fake_file *files) {
    return (snug_io){.ctx = (void *)(uintptr_t)files,
                     .open = fake_open,
                     .pread = fake_pread,
                     .close = fake_close};
}
