/* faults.c: the hook that makes the N-th request of memory or the N-th call of the I/O table fail,
 * for tests. The engine's I/O table is always this file's: each function counts, strikes or passes
 * the call on.
 *
 * Invariants:
 * 1. A struck call does not reach the real table, except a short one, which reaches it with half
 *    the bytes.
 * 2. Calls come from the copy threads, too: the counters are atomic. (Arming is for times without
 *    them.)
 * 3. close and unlink always reach the real table (a descriptor must not leak because its close
 *    "failed"). */
#include "memory/private.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>

bool sn_fault_strikes(snug_engine *e, sn_fault_counter *c, const char *what) {
    const int64_t now = atomic_fetch_add(&c->seen, 1);
    if (c->at < 0 || now < c->at || (now > c->at && !c->for_good))
        return false;
    if (now == c->at)
        e->faults.struck = what;
    e->faults.fired = true;
    return true;
}

bool sn_fault_asks(snug_engine *e) {
    return sn_fault_strikes(e, &e->faults.memory, "device");
}

void sn_fault_memory(snug_engine *e, int64_t n, bool for_good) {
    e->faults.memory = (sn_fault_counter){.at = n, .seen = 0, .for_good = for_good};
    if (n >= 0)
        e->faults.fired = false;
}

void sn_fault_io(snug_engine *e, int64_t n, sn_fault_kind kind, bool for_good) {
    e->faults.io = (sn_fault_counter){.at = n, .seen = 0, .for_good = for_good};
    e->faults.io_kind = kind;
    if (n >= 0)
        e->faults.fired = false;
}

bool sn_fault_fired(const snug_engine *e) {
    return e->faults.fired;
}

const char *sn_fault_struck(const snug_engine *e) {
    return e->faults.struck;
}

int64_t sn_fault_memory_requests(const snug_engine *e) {
    return e->faults.memory.seen;
}

int64_t sn_fault_io_requests(const snug_engine *e) {
    return e->faults.io.seen;
}

/* 0: pass the call on. Else -errno, or 1 for "do half". */
static int strike(snug_engine *e, const char *call) {
    static const int codes[] = {[SN_FAULT_EIO] = -EIO,
                                [SN_FAULT_ENOSPC] = -ENOSPC,
                                [SN_FAULT_EROFS] = -EROFS,
                                [SN_FAULT_SHORT] = 1};
    return sn_fault_strikes(e, &e->faults.io, call) ? codes[e->faults.io_kind] : 0;
}

/* For calls that move no bytes, where short means nothing. */
static int strike_whole(snug_engine *e, const char *call) {
    const int s = strike(e, call);
    return s < 0 ? s : 0;
}

/* At least one byte: none would mean the end of the file, which is another fault. Whole blocks stay
 * whole: what goes past the cache comes in no smaller pieces. */
static size_t half(size_t bytes) {
    const size_t unit = bytes % SN_FILE_BLOCK == 0 ? SN_FILE_BLOCK : 1;
    const size_t units = bytes / unit;
    return (units / 2 + units % 2) * unit;
}

/* What a descriptor is for, of the first 64. */
static void note_descriptor(snug_engine *e, int fd, int flags) {
    if (fd < 0 || fd >= 64)
        return;
    const uint64_t bit = (uint64_t)1 << fd;
    const bool folder = flags & O_DIRECTORY, reads = (flags & O_ACCMODE) == O_RDONLY;
    atomic_fetch_and(&e->faults.folders, ~bit);
    atomic_fetch_and(&e->faults.readers, ~bit);
    atomic_fetch_or(folder ? &e->faults.folders : &e->faults.readers, folder || reads ? bit : 0);
}

static bool is_noted(uint64_t set, int fd) {
    return fd >= 0 && fd < 64 && (set >> fd & 1);
}

static int hook_open(void *ctx, const char *path, int flags, int mode) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, flags & O_DIRECTORY ? "open of a folder" : "open");
    if (s < 0)
        return s;
    const int fd = e->io.open(e->io.ctx, path, flags, mode);
    note_descriptor(e, fd, flags);
    return fd;
}

static int64_t hook_pread(void *ctx, int fd, void *buffer, size_t bytes, int64_t offset) {
    snug_engine *e = ctx;
    const int s = strike(e, "pread");
    return s < 0 ? s : e->io.pread(e->io.ctx, fd, buffer, s > 0 ? half(bytes) : bytes, offset);
}

static int64_t hook_pwrite(void *ctx, int fd, const void *buffer, size_t bytes, int64_t offset) {
    snug_engine *e = ctx;
    const int s = strike(e, "pwrite");
    return s < 0 ? s : e->io.pwrite(e->io.ctx, fd, buffer, s > 0 ? half(bytes) : bytes, offset);
}

static int64_t hook_size(void *ctx, int fd) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "size");
    return s < 0 ? s : e->io.size(e->io.ctx, fd);
}

static int hook_sync(void *ctx, int fd) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, is_noted(e->faults.folders, fd) ? "sync of a folder" : "sync");
    return s < 0 ? s : e->io.sync(e->io.ctx, fd);
}

static int hook_close(void *ctx, int fd) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, is_noted(e->faults.folders, fd)   ? "close of a folder"
                                  : is_noted(e->faults.readers, fd) ? "close of a file only read"
                                                                    : "close");
    const int real = e->io.close(e->io.ctx, fd);
    return s < 0 ? s : real;
}

static int hook_rename(void *ctx, const char *from, const char *to) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "rename");
    return s < 0 ? s : e->io.rename(e->io.ctx, from, to);
}

static int hook_unlink(void *ctx, const char *path) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "unlink");
    const int real = e->io.unlink(e->io.ctx, path);
    return s < 0 ? s : real;
}

static int hook_mkdir(void *ctx, const char *path, int mode) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "mkdir");
    return s < 0 ? s : e->io.mkdir(e->io.ctx, path, mode);
}

static int hook_folder(void *ctx, const char *path, snug_io_folder *out) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "folder");
    return s < 0 ? s : e->io.folder(e->io.ctx, path, out);
}

static int hook_reserve(void *ctx, int fd, int64_t bytes) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "reserve");
    return s < 0 ? s : e->io.reserve(e->io.ctx, fd, bytes);
}

static int hook_forget(void *ctx, int fd, int64_t offset, int64_t bytes) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "forget");
    return s < 0 ? s : e->io.forget(e->io.ctx, fd, offset, bytes);
}

static int hook_list(void *ctx, const char *path, int (*each)(void *to, const char *name, int kind),
                     void *to) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "list");
    return s < 0 ? s : e->io.list(e->io.ctx, path, each, to);
}

static int hook_kind(void *ctx, const char *path) {
    snug_engine *e = ctx;
    const int s = strike_whole(e, "kind");
    return s < 0 ? s : e->io.kind(e->io.ctx, path);
}

void sn_fault_wrap_io(snug_engine *e) {
    e->guarded_io = (snug_io){e,         hook_open,  hook_pread,  hook_pwrite, hook_size,
                              hook_sync, hook_close, hook_rename, hook_unlink, hook_mkdir,
                              NULL,      NULL,       NULL,        NULL,        NULL};
    if (e->io.folder) {
        e->guarded_io.folder = hook_folder;
        e->guarded_io.reserve = hook_reserve;
        e->guarded_io.forget = hook_forget;
    }
    if (e->io.list) {
        e->guarded_io.list = hook_list;
        e->guarded_io.kind = hook_kind;
    }
    e->faults = (sn_faults){.memory = {.at = -1}, .io = {.at = -1}};
}

int snug_engine_refuse(snug_engine *e, int64_t n, int for_good) {
    if (!e)
        return 0;
    const bool fired = sn_fault_fired(e);
    e->faults.fired = false;
    sn_fault_memory(e, n, for_good != 0);
    return fired;
}
