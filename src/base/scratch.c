/* scratch.c: files that take the place of memory: without a name, past the system's cache where the
 * file system can, on a disk that has the bytes.
 *
 * Invariants:
 * 1. No name stays behind: the file is unlinked before anything else is done with it, and a file
 *    that could not be is an error.
 * 2. A folder whose files are memory themselves is refused: bytes moved there would not be gone.
 * 3. The disk has promised the bytes (reserve) before the first of them is written. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_NAMES = 1000 }; /* of this process in one folder, and of dead ones with its number */

snug_status sn_file_check_folder(const snug_io *io, const char *folder, int64_t bytes,
                                 snug_error *err) {
    snug_io_folder is = {0};
    const int rc = io->folder ? io->folder(io->ctx, folder, &is) : -ENOSYS;
    if (rc < 0)
        return sn_file_fail(folder, "spill to", -1, -rc, err);
    if (is.memory)
        return sn_fail(err, SNUG_E_IO,
                       "cannot spill to '%.240s': it is on %s, whose files are memory; name a "
                       "folder on a disk",
                       folder, is.memory);
    if (bytes == 0 && is.free_bytes == 0) /* /proc and its like, or a full disk */
        return sn_fail_by(err, SNUG_E_IO, SNUG_CAUSE_DISK_FULL,
                          "cannot spill to '%.240s': 0 bytes are free; free space on that disk or "
                          "choose another",
                          folder);
    if (is.free_bytes < bytes)
        return sn_fail_by(err, SNUG_E_IO, SNUG_CAUSE_DISK_FULL,
                          "cannot spill %" PRId64 " bytes to '%.240s': %" PRId64
                          " are free; free space on that disk or choose another",
                          bytes, folder, is.free_bytes);
    return SNUG_OK;
}

/* A name nobody has yet; returns the descriptor or -errno. */
static int open_unused(sn_file *f, const char *folder, int flags) {
    int fd = -EEXIST;
    for (int i = 0; i < MAX_NAMES && (fd == -EEXIST || fd == -EINTR); i++) {
        const int n =
            snprintf(f->path, sizeof f->path, "%s/snug-spill-%ld-%d", folder, (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof f->path)
            return -ENAMETOOLONG;
        fd = f->io->open(f->io->ctx, f->path, flags | O_RDWR | O_CREAT | O_EXCL, 0600);
    }
    return fd;
}

/* The file of f->io, direct as f says; returns -errno. */
static int make(sn_file *f, const char *folder, int64_t bytes) {
    const snug_io *io = f->io;
    f->fd = open_unused(f, folder, f->direct ? O_DIRECT : 0);
    if (f->fd < 0)
        return f->fd;
    int rc = io->unlink(io->ctx, f->path);
    if (rc == 0)
        rc = io->reserve(io->ctx, f->fd, bytes);
    return rc;
}

/* Some file systems take a direct file and refuse its first write. */
static int try_direct(const sn_file *f, int64_t bytes) {
    static _Alignas(SN_FILE_BLOCK) const char nothing[SN_FILE_BLOCK];
    if (!f->direct || bytes < (int64_t)sizeof nothing)
        return 0;
    const int64_t put = f->io->pwrite(f->io->ctx, f->fd, nothing, sizeof nothing, 0);
    return put < 0 && put != -EINTR ? (int)put : 0;
}

snug_status sn_file_scratch(sn_file *f, const snug_io *io, const char *folder, int64_t bytes,
                            snug_error *err) {
    SNUG_TRY(sn_file_check_folder(io, folder, bytes, err));
    sn_file made = {.io = io, .direct = true};
    int rc = make(&made, folder, bytes);
    if (rc == 0)
        rc = try_direct(&made, bytes);
    if (rc == -EINVAL) {
        sn_file_close(&made);
        made = (sn_file){.io = io};
        rc = make(&made, folder, bytes);
    }
    if (rc < 0) {
        sn_file_close(&made);
        return sn_file_fail(folder, "spill to", -1, -rc, err);
    }
    made.size = bytes;
    *f = made;
    return SNUG_OK;
}

snug_status sn_file_reserve(sn_file *f, int64_t bytes, snug_error *err) {
    if (bytes <= f->size)
        return SNUG_OK;
    const int rc = f->io->reserve(f->io->ctx, f->fd, bytes);
    if (rc < 0)
        return sn_file_fail(f->path, "enlarge", bytes, -rc, err);
    f->size = bytes;
    return SNUG_OK;
}

snug_status sn_file_forget(sn_file *f, size_t n, int64_t offset, snug_error *err) {
    if (f->direct)
        return SNUG_OK;
    const int rc = f->io->forget(f->io->ctx, f->fd, offset, (int64_t)n);
    return rc < 0 ? sn_file_fail(f->path, "write", offset, -rc, err) : SNUG_OK;
}
