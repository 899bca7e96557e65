/* file.c: whole reads and writes over the I/O table, and the operating system's own table.
 *
 * Invariants:
 * 1. A message names the path, the offset where there is one, the system's reason and one remedy.
 * 2. A file appears under its name only when complete: it is written under a name of its own beside
 *    PATH ("PATH.0123456789abcdef.tmp", made by nobody else: O_EXCL), synced, then renamed; then
 *    its folder is synced, so that the new name lasts. Two writers of one PATH never share a file:
 *    the last to finish wins whole. Where PATH is a link, this happens where it leads to. A device
 *    or a pipe is written to and stays.
 * 3. A failed create or commit leaves no file behind, what was at PATH untouched, and *f closed.
 *    Only where the folder's sync failed does the new file lie there, whole. */
#include "base/file.h"

#include "base/leftovers.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* --- the operating system's table ------------------------------------------------------------- */

/* What is there already is no file where it is opened to write: to open a pipe that nobody reads
 * would wait for ever, not be refused. To write to one that is full waits again. */
static int open_written(const char *path, int flags) {
    const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, flags);
    return fd;
}

static int system_open(void *ctx, const char *path, int flags, int mode) {
    (void)ctx;
    const int fd =
        flags == O_WRONLY ? open_written(path, flags) : open(path, flags | O_CLOEXEC, (mode_t)mode);
    if (fd >= 0 && flags & O_EXCL)
        sn_leftover_hold(fd);
    return fd >= 0 ? fd : -errno;
}

static int64_t system_pread(void *ctx, int fd, void *buffer, size_t bytes, int64_t offset) {
    (void)ctx;
    const ssize_t n = pread(fd, buffer, bytes, (off_t)offset);
    return n >= 0 ? (int64_t)n : -errno;
}

static int64_t system_pwrite(void *ctx, int fd, const void *buffer, size_t bytes, int64_t offset) {
    (void)ctx;
    const ssize_t n =
        offset < 0 ? write(fd, buffer, bytes) : pwrite(fd, buffer, bytes, (off_t)offset);
    return n >= 0 ? (int64_t)n : -errno;
}

/* Only regular files have a size to plan with. */
static int64_t system_size(void *ctx, int fd) {
    (void)ctx;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) ? (int64_t)st.st_size : -ESPIPE;
}

/* EINVAL: the file system has nothing to sync (some pseudo and network ones). */
static int system_sync(void *ctx, int fd) {
    (void)ctx;
    return fsync(fd) == 0 || errno == EINVAL ? 0 : -errno;
}

/* EINTR: Linux has closed the descriptor all the same; closing again could hit another thread's. */
static int system_close(void *ctx, int fd) {
    (void)ctx;
    return close(fd) == 0 || errno == EINTR ? 0 : -errno;
}

static int system_rename(void *ctx, const char *from, const char *to) {
    (void)ctx;
    return rename(from, to) == 0 ? 0 : -errno;
}

static int system_unlink(void *ctx, const char *path) {
    (void)ctx;
    return unlink(path) == 0 ? 0 : -errno;
}

static int system_mkdir(void *ctx, const char *path, int mode) {
    (void)ctx;
    return mkdir(path, (mode_t)mode) == 0 ? 0 : -errno;
}

/* File systems whose files are memory, by the numbers statfs knows them under. */
typedef struct {
    unsigned long magic;
    const char *name;
} memory_row;

static const memory_row memory_rows[] = {
    {0x01021994, "tmpfs"},
    {0x858458f6, "ramfs"},
    {0x958458f6, "hugetlbfs"},
};

/* A folder that takes no files is refused before a plan counts on it. */
static int check_writable(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    return access(path, W_OK | X_OK) != 0 ? -errno : 0;
}

static int system_folder(void *ctx, const char *path, snug_io_folder *out) {
    (void)ctx;
    struct statfs st;
    int rc;
    do {
        rc = statfs(path, &st);
    } while (rc != 0 && errno == EINTR);
    rc = rc != 0 ? -errno : check_writable(path);
    if (rc != 0)
        return rc;
    const uint64_t unit = (uint64_t)st.f_frsize, room = (uint64_t)st.f_bavail;
    const bool countless = unit > 0 && room > (uint64_t)INT64_MAX / unit;
    *out = (snug_io_folder){.free_bytes = countless ? INT64_MAX : (int64_t)(room * unit)};
    for (size_t i = 0; i < sizeof memory_rows / sizeof memory_rows[0]; i++)
        if (memory_rows[i].magic == ((unsigned long)st.f_type & 0xffffffff))
            out->memory = memory_rows[i].name;
    return 0;
}

/* Where the file system cannot keep bytes free, the file is at least so long: a full disk then
 * shows at a write. (glibc's posix_fallocate would write to every block, in pieces that a direct
 * file refuses.) Nothing is read ahead: it would stay in the cache. */
static int system_reserve(void *ctx, int fd, int64_t bytes) {
    (void)ctx;
    int rc;
    do {
        rc = fallocate(fd, 0, 0, (off_t)bytes);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno == EOPNOTSUPP)
        rc = ftruncate(fd, (off_t)bytes);
    return rc == 0 ? -posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) : -errno;
}

static int system_forget(void *ctx, int fd, int64_t offset, int64_t bytes) {
    (void)ctx;
    const unsigned all =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (sync_file_range(fd, (off_t)offset, (off_t)bytes, all) != 0)
        return -errno;
    return -posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

static int kind_of(mode_t mode) {
    return S_ISREG(mode)   ? SNUG_IO_FILE
           : S_ISDIR(mode) ? SNUG_IO_FOLDER
           : S_ISLNK(mode) ? SNUG_IO_LINK
                           : SNUG_IO_OTHER;
}

static int system_kind(void *ctx, const char *path) {
    (void)ctx;
    struct stat st;
    return stat(path, &st) == 0 ? kind_of(st.st_mode) : -errno;
}

/* Not every file system says in the list what an entry is. */
static int entry_kind(int folder, const struct dirent *entry) {
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return kind_of((mode_t)DTTOIF(entry->d_type));
    return fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? kind_of(st.st_mode)
                                                                         : SNUG_IO_OTHER;
}

static int system_list(void *ctx, const char *path,
                       int (*each)(void *to, const char *name, int kind), void *to) {
    (void)ctx;
    DIR *d = opendir(path);
    if (!d)
        return -errno;
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (errno = 0, entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = each(to, entry->d_name, entry_kind(dirfd(d), entry));
    if (rc == 0 && errno != 0)
        rc = -errno;
    closedir(d);
    return rc;
}

const snug_io sn_io_system = {NULL,          system_open,  system_pread,  system_pwrite,
                              system_size,   system_sync,  system_close,  system_rename,
                              system_unlink, system_mkdir, system_folder, system_reserve,
                              system_forget, system_list,  system_kind};

/* --- messages --------------------------------------------------------------------------------- */

typedef struct {
    int code;
    snug_cause cause;
    const char *remedy;
} remedy_row;

static const remedy_row remedies[] = {
    {ENOENT, SNUG_CAUSE_MISSING, "check the path"},
    {ENOTDIR, SNUG_CAUSE_MISSING, "check the path"},
    {EACCES, SNUG_CAUSE_DENIED, "check its permissions"},
    {EPERM, SNUG_CAUSE_DENIED, "check its permissions"},
    {EISDIR, SNUG_CAUSE_FOLDER, "name a file, not a directory"},
    {ESPIPE, SNUG_CAUSE_NONE, "name a regular file; copy pipes and devices to one first"},
    {ENOSPC, SNUG_CAUSE_DISK_FULL, "free space on that disk or choose another"},
    {EDQUOT, SNUG_CAUSE_DISK_FULL, "free space on that disk or choose another"},
    {EFBIG, SNUG_CAUSE_NONE, "choose a disk that can hold larger files"},
    {EROFS, SNUG_CAUSE_DENIED, "choose a path on a writable disk"},
    {ELOOP, SNUG_CAUSE_NONE, "check where its links lead to"},
    {ENXIO, SNUG_CAUSE_NONE, "let somebody read that pipe first, or name a file"},
    {EMFILE, SNUG_CAUSE_NONE, "close files or raise ulimit -n"},
    {ENAMETOOLONG, SNUG_CAUSE_NONE, "use a shorter path"},
    {EIO, SNUG_CAUSE_NONE, "check the disk and its connection"},
    {ENOSYS, SNUG_CAUSE_NONE, "use an I/O table with folder, reserve and forget"},
};

static const remedy_row *find_remedy(int code) {
    static const remedy_row other = {0, SNUG_CAUSE_NONE, "check the disk and try again"};
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++) {
        if (remedies[i].code == code)
            return &remedies[i];
    }
    return &other;
}

snug_cause sn_file_cause(int code) {
    return find_remedy(code)->cause;
}

snug_status sn_file_fail(const char *path, const char *verb, int64_t offset, int code,
                         snug_error *err) {
    char where[48] = "";
    if (offset >= 0)
        snprintf(where, sizeof where, " at byte %" PRId64, offset);
    char reason[128];
    return sn_fail_by(err, SNUG_E_IO, sn_file_cause(code), "cannot %s '%.240s'%s: %s; %s", verb,
                      path, where, strerror_r(code, reason, sizeof reason),
                      find_remedy(code)->remedy);
}

/* --- files ------------------------------------------------------------------------------------ */

enum { MAX_IDLE = 8, MAX_NAME = 200 };

/* A number that no other writer has: random, else of process, time and address. */
static uint64_t draw_tag(const void *address) {
    uint64_t tag = 0;
    struct timespec now = {0};
    if (getrandom(&tag, sizeof tag, GRND_NONBLOCK) == (ssize_t)sizeof tag)
        return tag;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)getpid() << 40) ^ ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec ^
           (uint64_t)(uintptr_t)address;
}

const char *sn_file_name(const sn_file *f, char out[SN_FILE_NAME_BYTES]) {
    const char *slash = strrchr(f->path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - f->path) : 0;
    /* A name of up to 255 letters has room for no more: the file's own is cut. */
    if (f->temporary)
        snprintf(out, SN_FILE_NAME_BYTES, "%.*s%.*s.%016" PRIx64 ".tmp", (int)folder, f->path,
                 MAX_NAME, f->path + folder, f->tag);
    else
        snprintf(out, SN_FILE_NAME_BYTES, "%s", f->path);
    return out;
}

static int open_retrying(const snug_io *io, const char *path, int flags) {
    int fd;
    do {
        fd = io->open(io->ctx, path, flags, 0666);
    } while (fd == -EINTR);
    return fd;
}

/* Looked for by the system's own calls: no table has others' files. */
static void remove_leftovers(const sn_file *f) {
    char folder[sizeof f->path];
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    const size_t n = strlen(name) < MAX_NAME ? strlen(name) : MAX_NAME;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - f->path) : 1,
             slash ? f->path : ".");
    sn_leftover_remove(folder, name, n);
}

/* Under a name that nobody has. */
static int open_new(sn_file *f) {
    enum { MAX_TRIES = 16 };
    char name[SN_FILE_NAME_BYTES];
    int fd = -EEXIST;
    remove_leftovers(f);
    for (int i = 0; i < MAX_TRIES && fd == -EEXIST; i++) {
        f->tag = draw_tag(f) + (uint64_t)i;
        fd = open_retrying(f->io, sn_file_name(f, name), O_RDWR | O_CREAT | O_EXCL);
    }
    return fd;
}

snug_status sn_file_open(sn_file *f, const snug_io *io, const char *path, snug_error *err) {
    /* O_NONBLOCK: to open a pipe that nobody writes to would wait for ever, not be refused. */
    const int fd = open_retrying(io, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return sn_file_fail(path, "open", -1, -fd, err);
    const int64_t size = io->size(io->ctx, fd);
    if (size < 0) {
        (void)io->close(io->ctx, fd);
        return sn_file_fail(path, "open", -1, (int)-size, err);
    }
    *f = (sn_file){.io = io, .fd = fd, .size = size};
    snprintf(f->path, sizeof f->path, "%s", path);
    return SNUG_OK;
}

/* What the link at `path` says, seen from the folder it lies in. */
static int follow(char *path, size_t size) {
    char to[1024];
    const ssize_t n = readlink(path, to, sizeof to);
    if (n < 0)
        return -errno;
    const char *slash = strrchr(path, '/');
    const size_t kept = slash && to[0] != '/' ? (size_t)(slash + 1 - path) : 0;
    if ((size_t)n == sizeof to || kept + (size_t)n >= size)
        return -ENAMETOOLONG;
    memcpy(path + kept, to, (size_t)n);
    path[kept + (size_t)n] = '\0';
    return 0;
}

/* Where a file of this name goes: its links are followed (the table has no call for them), up to a
 * descriptor (/dev/stdout), behind which may lie a file that others write to as well. */
static int find_place(const snug_io *io, char *path, size_t size) {
    enum { MAX_LINKS = 40 };
    struct stat st;
    const int kind = io->kind ? io->kind(io->ctx, path) : SNUG_IO_FILE;
    if (kind != SNUG_IO_FILE && kind != -ENOENT)
        return kind == SNUG_IO_FOLDER ? -EISDIR : kind;
    for (int i = 0; i < MAX_LINKS; i++) {
        if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode))
            return SNUG_IO_FILE;
        if (strncmp(path, "/proc/", 6) == 0)
            return SNUG_IO_OTHER;
        const int rc = follow(path, size);
        if (rc < 0)
            return rc;
    }
    return -ELOOP;
}

snug_status sn_file_create(sn_file *f, const snug_io *io, const char *path, snug_error *err) {
    sn_file made = {.io = io, .fd = -1};
    /* The whole path is needed again for the rename. */
    if (strlen(path) >= sizeof made.path)
        return sn_file_fail(path, "create", -1, ENAMETOOLONG, err);
    memcpy(made.path, path, strlen(path) + 1);
    const int kind = find_place(io, made.path, sizeof made.path);
    if (kind < 0)
        return sn_file_fail(path, "create", -1, -kind, err);
    made.temporary = kind == SNUG_IO_FILE;
    made.fd = made.temporary ? open_new(&made) : open_retrying(io, made.path, O_WRONLY);
    if (made.fd < 0)
        return sn_file_fail(path, "create", -1, -made.fd, err);
    *f = made;
    return SNUG_OK;
}

static int sync_retrying(const snug_io *io, int fd) {
    int rc;
    do {
        rc = io->sync(io->ctx, fd);
    } while (rc == -EINTR);
    return rc;
}

/* Makes the new name last through a power cut. A folder that cannot be opened (no right to read, a
 * table without folders) is none that could be synced: nothing is said. */
static snug_status sync_folder(const sn_file *f, snug_error *err) {
    char folder[sizeof f->path];
    memcpy(folder, f->path, sizeof folder);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0'; /* "/file" lies in "/" */
    const int fd = open_retrying(f->io, slash ? folder : ".", O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return SNUG_OK;
    const int rc = sync_retrying(f->io, fd);
    (void)f->io->close(f->io->ctx, fd);
    return rc < 0 ? sn_file_fail(f->path, "sync the folder of", -1, -rc, err) : SNUG_OK;
}

/* The steps of a commit, up to the first that fails; returns -errno and which step. */
static int finish(sn_file *f, const char **verb) {
    const snug_io *io = f->io;
    *verb = "sync";
    int rc = sync_retrying(io, f->fd);
    if (rc < 0)
        return rc;
    *verb = "close";
    rc = io->close(io->ctx, f->fd);
    f->fd = -1;
    if (rc < 0 || !f->temporary)
        return rc;
    *verb = "rename to";
    char name[SN_FILE_NAME_BYTES];
    return io->rename(io->ctx, sn_file_name(f, name), f->path);
}

snug_status sn_file_commit(sn_file *f, snug_error *err) {
    const char *verb;
    const int rc = finish(f, &verb);
    snug_status status = SNUG_OK;
    if (rc < 0) {
        status = sn_file_fail(f->path, verb, -1, -rc, err);
    } else if (f->temporary) {
        f->temporary = false;
        status = sync_folder(f, err);
    }
    sn_file_close(f);
    return status;
}

/* Where to go on after `moved` more bytes. A direct file goes on at a block's start; one that
 * stands still, call after call, is broken. */
static bool advance(const sn_file *f, size_t *done, int64_t moved, int *n_idle) {
    size_t now = *done + (size_t)moved;
    if (f->direct)
        now -= now % SN_FILE_BLOCK;
    *n_idle = now > *done ? 0 : *n_idle + 1;
    *done = now;
    return *n_idle < MAX_IDLE;
}

snug_status sn_file_read(sn_file *f, void *buffer, size_t n, int64_t offset, snug_error *err) {
    assert(!f->direct || (n % SN_FILE_BLOCK == 0 && offset % SN_FILE_BLOCK == 0));
    size_t done = 0;
    int n_idle = 0;
    while (done < n) {
        const int64_t at = offset + (int64_t)done;
        const int64_t got = f->io->pread(f->io->ctx, f->fd, (char *)buffer + done, n - done, at);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return sn_file_fail(f->path, "read", at, (int)-got, err);
        if (got == 0)
            return sn_fail(err, SNUG_E_FORMAT,
                           "'%.240s' is truncated: it ends at byte %" PRId64
                           ", %zu more are needed; get a whole copy",
                           f->path, at, n - done);
        if (!advance(f, &done, got, &n_idle))
            return sn_file_fail(f->path, "read", at, EIO, err);
    }
    return SNUG_OK;
}

/* A pipe has no offsets: it takes what comes next, and `size` is how much it has. */
static int64_t put_bytes(sn_file *f, const void *bytes, size_t n, int64_t at) {
    const int64_t put = f->io->pwrite(f->io->ctx, f->fd, bytes, n, at);
    if (put != -ESPIPE || at != f->size)
        return put;
    const int64_t more = f->io->pwrite(f->io->ctx, f->fd, bytes, n, -1);
    f->size += more > 0 ? more : 0;
    return more;
}

/* Written bytes wait in the system's cache, which counts with the process where the memory of a
 * group is limited, and cannot be taken back before the disk has them: with a large file a group
 * has no room for more, and the process is killed. So no more than some wait. What a file system
 * has no call for waits as it likes. */
#define WAITING_MOST ((int64_t)4 << 20)

static int wait_for_disk(sn_file *f, int64_t put, int64_t end) {
    f->waiting += put;
    if (!f->temporary || !f->io->forget || f->waiting < WAITING_MOST)
        return 0;
    f->waiting = 0;
    int rc;
    do {
        rc = f->io->forget(f->io->ctx, f->fd, 0, end);
    } while (rc == -EINTR);
    return rc == -EINVAL || rc == -ENOSYS || rc == -EOPNOTSUPP ? 0 : rc;
}

static size_t at_once(const sn_file *f, size_t n) {
    return f->temporary && n > (size_t)WAITING_MOST ? (size_t)WAITING_MOST : n;
}

snug_status sn_file_write(sn_file *f, const void *buffer, size_t n, int64_t offset,
                          snug_error *err) {
    assert(!f->direct || (n % SN_FILE_BLOCK == 0 && offset % SN_FILE_BLOCK == 0));
    size_t done = 0;
    int n_idle = 0;
    while (done < n) {
        const int64_t at = offset + (int64_t)done;
        const int64_t put = put_bytes(f, (const char *)buffer + done, at_once(f, n - done), at);
        if (put == -EINTR)
            continue;
        /* A write of nothing would be tried for ever; no system has a reason for it but a full
         * disk. */
        if (put <= 0)
            return sn_file_fail(f->path, "write", at, put < 0 ? (int)-put : ENOSPC, err);
        const int rc = wait_for_disk(f, put, at + put);
        if (rc < 0)
            return sn_file_fail(f->path, "write", at, -rc, err);
        if (!advance(f, &done, put, &n_idle))
            return sn_file_fail(f->path, "write", at, EIO, err);
    }
    return SNUG_OK;
}

void sn_file_close(sn_file *f) {
    if (!f || !f->io)
        return;
    /* Nothing useful can be said about a failure here: what mattered was synced by commit. */
    if (f->fd >= 0)
        (void)f->io->close(f->io->ctx, f->fd);
    if (f->temporary) {
        char name[SN_FILE_NAME_BYTES];
        (void)f->io->unlink(f->io->ctx, sn_file_name(f, name));
    }
    *f = (sn_file){.fd = -1};
}
