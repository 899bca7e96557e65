/* Rules of room base, of files: whole or not there, links and devices, messages, failed calls. */
#include "support/files.h"
#include "support/support.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    sn_test_dir dir;
    char path[256];
} file_fixture;

static int file_setup(void **state) {
    file_fixture *f = malloc(sizeof *f);
    assert_non_null(f);
    sn_test_dir_begin(&f->dir);
    sn_test_path(&f->dir, "file.bin", f->path);
    *state = f;
    return 0;
}

static int file_teardown(void **state) {
    file_fixture *f = *state;
    sn_test_dir_end(&f->dir);
    free(f);
    return 0;
}
#define file_test(f) cmocka_unit_test_setup_teardown(f, file_setup, file_teardown)

static void test_file_comes_back_as_written(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_file f;
    expect_ok(sn_file_create(&f, &sn_io_system, x->path, &err), &err);
    expect_ok(sn_file_write(&f, "world", 5, 6, &err), &err);
    expect_ok(sn_file_write(&f, "hello ", 6, 0, &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
    assert_int_equal(sn_test_dir_count(&x->dir), 1);
    expect_ok(sn_file_open(&f, &sn_io_system, x->path, &err), &err);
    assert_int_equal(f.size, 11);
    char text[12] = {0};
    expect_ok(sn_file_read(&f, text, 11, 0, &err), &err);
    assert_string_equal(text, "hello world");
    sn_file_close(&f);
    sn_file_close(&f);
}

typedef struct {
    snug_io io;
    int fails; /* what forgetting answers; 0: as the system does */
    int64_t written, waiting, most;
} slow_disk;

static int64_t slow_pwrite(void *ctx, int fd, const void *bytes, size_t n, int64_t at) {
    slow_disk *d = ctx;
    const int64_t put = sn_io_system.pwrite(NULL, fd, bytes, n, at);
    d->written += put;
    d->waiting += put;
    d->most = d->waiting > d->most ? d->waiting : d->most;
    return put;
}

static int slow_forget(void *ctx, int fd, int64_t offset, int64_t bytes) {
    slow_disk *d = ctx;
    assert_int_equal(offset, 0);
    assert_int_equal(bytes, d->written);
    d->waiting = 0;
    return d->fails ? d->fails : sn_io_system.forget(NULL, fd, offset, bytes);
}

/* Of what is written little waits in the cache, be it written at once or in pieces. */
static void test_a_large_file_does_not_wait_in_the_cache(void **state) {
    const file_fixture *x = *state;
    enum { MIB = 1 << 20, ALL = 22 * MIB + 5 };
    snug_error err = {0};
    slow_disk d = {.io = sn_io_system};
    d.io.ctx = &d;
    d.io.pwrite = slow_pwrite;
    d.io.forget = slow_forget;
    char *bytes = calloc(1, ALL);
    sn_file f;
    for (size_t piece = ALL; piece >= 1 << 16; piece /= 7) {
        d.written = d.waiting = d.most = 0;
        expect_ok(sn_file_create(&f, &d.io, x->path, &err), &err);
        for (size_t at = 0; at < ALL; at += piece)
            expect_ok(
                sn_file_write(&f, bytes, piece < ALL - at ? piece : ALL - at, (int64_t)at, &err),
                &err);
        expect_ok(sn_file_commit(&f, &err), &err);
        assert_int_equal(d.written, ALL);
        assert_in_range(d.most, 1, 8 * MIB);
    }
    const struct {
        int fails;
        snug_status status;
    } disks[] = {{-EIO, SNUG_E_IO}, {-EINVAL, SNUG_OK}, {-ENOSYS, SNUG_OK}};
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        d.fails = disks[i].fails;
        d.written = 0;
        expect_ok(sn_file_create(&f, &d.io, x->path, &err), &err);
        expect_status(sn_file_write(&f, bytes, ALL, 0, &err), disks[i].status, &err);
        sn_file_close(&f);
    }
    free(bytes);
}

static void test_file_that_is_not_committed_leaves_nothing(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_test_write_file(x->path, "old", 3);
    sn_file f;
    expect_ok(sn_file_create(&f, &sn_io_system, x->path, &err), &err);
    expect_ok(sn_file_write(&f, "newer", 5, 0, &err), &err);
    assert_int_equal(sn_test_dir_count(&x->dir), 2);
    sn_file_close(&f);
    assert_int_equal(sn_test_dir_count(&x->dir), 1);
    expect_ok(sn_file_open(&f, &sn_io_system, x->path, &err), &err);
    assert_int_equal(f.size, 3);
    sn_file_close(&f);
}

static void expect_contents(const char *path, const char *text) {
    size_t n;
    unsigned char *found = sn_test_read_file(path, &n);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(found, text, n);
    free(found);
}

static void test_two_writers_of_one_path_share_no_file(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_file one, two;
    char a[SN_FILE_NAME_BYTES], b[SN_FILE_NAME_BYTES];
    expect_ok(sn_file_create(&one, &sn_io_system, x->path, &err), &err);
    expect_ok(sn_file_create(&two, &sn_io_system, x->path, &err), &err);
    assert_string_not_equal(sn_file_name(&one, a), sn_file_name(&two, b));
    assert_memory_equal(a, x->path, strlen(x->path)); /* beside it: a rename can be atomic */
    expect_ok(sn_file_write(&one, "first", 5, 0, &err), &err);
    expect_ok(sn_file_write(&two, "second one", 10, 0, &err), &err);
    expect_ok(sn_file_commit(&two, &err), &err);
    expect_contents(x->path, "second one");
    expect_ok(sn_file_write(&one, "FIRST", 5, 0, &err), &err);
    expect_contents(x->path, "second one");
    expect_ok(sn_file_commit(&one, &err), &err);
    expect_contents(x->path, "FIRST");
    assert_int_equal(sn_test_dir_count(&x->dir), 1);
}

/* What a killed writer left: a file of such a name, an hour old, that nobody holds. */
static void test_what_killed_writers_left_is_removed(void **state) {
    const file_fixture *x = *state;
    static const char *const names[] = {
        "file.bin.0123456789abcdef.tmp",  "file.bin.fedcba9876543210.tmp", /* held */
        "file.bin.0000000000000000.tmp",                                   /* young */
        "file.bin.0123456789abcdef.tmp2", "other.bin.0123456789abcdef.tmp", "file.bin.tmp"};
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    snug_error err = {0};
    sn_file f;
    char path[256];
    int held = -1;
    for (int i = 0; i < 6; i++) {
        sn_test_write_file(sn_test_path(&x->dir, names[i], path), "left", 4);
        if (i == 1)
            held = open(path, O_RDONLY);
        if (i != 2)
            assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    }
    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
    expect_ok(sn_file_create(&f, &sn_io_system, x->path, &err), &err);
    for (int i = 0; i < 6; i++)
        assert_int_equal(access(sn_test_path(&x->dir, names[i], path), F_OK), i == 0 ? -1 : 0);
    sn_file_close(&f);
    close(held);
}

static void test_a_writer_holds_its_file(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_file f;
    char name[SN_FILE_NAME_BYTES];
    expect_ok(sn_file_create(&f, &sn_io_system, x->path, &err), &err);
    const int fd = open(sn_file_name(&f, name), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    sn_file_close(&f);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
}

static void test_a_name_of_all_its_letters_has_room_for_a_temporary_one(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    char name[256] = {0}, path[600];
    sn_file f;
    memset(name, 'n', 255);
    snprintf(path, sizeof path, "%s/%s", x->dir.path, name);
    expect_ok(sn_file_create(&f, &sn_io_system, path, &err), &err);
    expect_ok(sn_file_write(&f, "long", 4, 0, &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
    expect_contents(path, "long");
}

static void test_missing_file_and_directory_are_refused_by_name(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_file f;
    expect_status(sn_file_open(&f, &sn_io_system, x->path, &err), SNUG_E_IO, &err);
    expect_text(err.text, x->path);
    expect_text(err.text, "check the path");
    expect_status(sn_file_open(&f, &sn_io_system, x->dir.path, &err), SNUG_E_IO, &err);
    expect_text(err.text, "not a directory");
    expect_status(sn_file_open(&f, &sn_io_system, "/dev/null", &err), SNUG_E_IO, &err);
    expect_text(err.text, "regular file");
}

static void test_pipe_is_refused_and_not_waited_for(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_file f;
    assert_int_equal(mkfifo(x->path, 0600), 0);
    expect_status(sn_file_open(&f, &sn_io_system, x->path, &err), SNUG_E_IO, &err);
    expect_text(err.text, "regular file");
}

static void write_to(const char *path, const char *text) {
    snug_error err = {0};
    sn_file f;
    expect_ok(sn_file_create(&f, &sn_io_system, path, &err), &err);
    expect_ok(sn_file_write(&f, text, strlen(text), 0, &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
}

static void test_link_stays_and_what_it_leads_to_is_replaced(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    struct stat st;
    sn_file f;
    char link[1100];
    snprintf(link, sizeof link, "%s/link", x->dir.path);
    assert_int_equal(symlink("link", link), 0); /* to itself */
    expect_status(sn_file_create(&f, &sn_io_system, link, &err), SNUG_E_IO, &err);
    expect_text(err.text, "where its links lead to");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(strrchr(x->path, '/') + 1, link), 0);
    write_to(link, "into nothing"); /* the first makes it */
    write_to(link, "again");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(x->path, &st), 0);
    assert_true(S_ISREG(st.st_mode) && st.st_size == 5);
    assert_int_equal(sn_test_dir_count(&x->dir), 2);
}

static void test_pipes_and_devices_are_written_to(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    struct stat st;
    sn_file f;
    char text[8] = {0};
    assert_int_equal(mkfifo(x->path, 0600), 0);
    alarm(10); /* nobody reads it: that is refused, and does not wait */
    expect_status(sn_file_create(&f, &sn_io_system, x->path, &err), SNUG_E_IO, &err);
    expect_text(err.text, "read that pipe");
    alarm(0);
    const int reader = open(x->path, O_RDONLY | O_NONBLOCK);
    expect_ok(sn_file_create(&f, &sn_io_system, x->path, &err), &err);
    assert_false(fcntl(f.fd, F_GETFL) & O_NONBLOCK);
    expect_ok(sn_file_write(&f, "abc", 3, 0, &err), &err);
    expect_ok(sn_file_write(&f, "def", 3, 3, &err), &err);
    expect_status(sn_file_write(&f, "A", 1, 0, &err), SNUG_E_IO, &err); /* gone for good */
    expect_ok(sn_file_commit(&f, &err), &err);
    assert_int_equal(read(reader, text, 7), 6);
    assert_string_equal(text, "abcdef");
    close(reader);
    assert_int_equal(sn_test_dir_count(&x->dir), 1);
    write_to("/dev/null", "nothing");
    assert_int_equal(lstat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void test_read_past_the_end_is_truncation(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_test_write_file(x->path, "12345678", 8);
    sn_file f;
    expect_ok(sn_file_open(&f, &sn_io_system, x->path, &err), &err);
    char text[16];
    expect_status(sn_file_read(&f, text, 10, 4, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "truncated: it ends at byte 8, 6 more");
    expect_ok(sn_file_read(&f, text, 0, 100, &err), &err);
    sn_file_close(&f);
}

static void test_path_too_long_to_rename_is_refused(void **state) {
    (void)state;
    char path[2000];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    snug_error err = {0};
    sn_file f;
    expect_status(sn_file_create(&f, &sn_io_system, path, &err), SNUG_E_IO, &err);
    expect_text(err.text, "shorter path");
}

static void test_close_is_legal_on_a_zeroed_file(void **state) {
    (void)state;
    sn_file f = {0};
    sn_file_close(&f); /* and descriptor 0 stays open: */
    struct stat st;
    assert_int_equal(fstat(0, &st), 0);
}

/* A table that answers EINTR to every second call and moves one byte at a time. */
typedef struct {
    int calls;
} nagging;

static int64_t nagging_pread(void *ctx, int fd, void *buffer, size_t bytes, int64_t offset) {
    nagging *n = ctx;
    if (n->calls++ % 2 == 0)
        return -EINTR;
    return sn_io_system.pread(NULL, fd, buffer, bytes > 0 ? 1 : 0, offset);
}

static int64_t nagging_pwrite(void *ctx, int fd, const void *buffer, size_t bytes, int64_t offset) {
    nagging *n = ctx;
    if (n->calls++ % 2 == 0)
        return -EINTR;
    return sn_io_system.pwrite(NULL, fd, buffer, bytes > 0 ? 1 : 0, offset);
}

static void test_interrupted_and_short_calls_are_repeated(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    nagging n = {0};
    snug_io io = sn_io_system;
    io.ctx = &n;
    io.pread = nagging_pread;
    io.pwrite = nagging_pwrite;
    sn_file f;
    expect_ok(sn_file_create(&f, &io, x->path, &err), &err);
    expect_ok(sn_file_write(&f, "abcdef", 6, 0, &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
    char text[7] = {0};
    expect_ok(sn_file_open(&f, &io, x->path, &err), &err);
    expect_ok(sn_file_read(&f, text, 6, 0, &err), &err);
    sn_file_close(&f);
    assert_string_equal(text, "abcdef");
    assert_int_equal(n.calls, 24);
}

/* The library's calls of fsync come here: a disk may fail them. */
static int sync_errno;

__attribute__((visibility("default"))) int fsync(int fd) {
    if (sync_errno == 0)
        return (int)syscall(SYS_fsync, fd);
    errno = sync_errno;
    return -1;
}

/* The new bytes may not be on the disk: the old file stays, and nothing beside it. */
static void test_a_file_that_cannot_be_synced_is_not_saved(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    sn_file f;
    for (int once_more = 0; once_more < 2; once_more++) {
        expect_ok(sn_file_create(&f, &sn_io_system, x->path, &err), &err);
        expect_ok(sn_file_write(&f, once_more ? "new" : "old", 3, 0, &err), &err);
        sync_errno = once_more ? EIO : 0;
        const snug_status status = sn_file_commit(&f, &err);
        sync_errno = 0;
        assert_int_equal(status, once_more ? SNUG_E_IO : SNUG_OK);
    }
    expect_text(err.text, "cannot sync");
    char text[4] = "";
    expect_ok(sn_file_open(&f, &sn_io_system, x->path, &err), &err);
    assert_int_equal(f.size, 3);
    expect_ok(sn_file_read(&f, text, 3, 0, &err), &err);
    sn_file_close(&f);
    assert_string_equal(text, "old");
    assert_int_equal(sn_test_dir_count(&x->dir), 1);
    sync_errno = EINVAL; /* a file system that has nothing to sync */
    expect_ok(sn_file_create(&f, &sn_io_system, x->path, &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
    sync_errno = 0;
}

/* A table that writes down the calls of a commit and answers a folder with `folder_code`. */
typedef struct {
    char calls[64];
    char folder[1100];
    int folder_code, folder_fd;
    int sync_code; /* of the folder */
} diary;

static int diary_open(void *ctx, const char *path, int flags, int mode) {
    diary *d = ctx;
    if (!(flags & O_DIRECTORY))
        return sn_io_system.open(NULL, path, flags, mode);
    strcat(d->calls, "open ");
    snprintf(d->folder, sizeof d->folder, "%s", path);
    if (d->folder_code != 0)
        return d->folder_code;
    return d->folder_fd = sn_io_system.open(NULL, path, flags, mode);
}

static int diary_sync(void *ctx, int fd) {
    diary *d = ctx;
    strcat(d->calls, fd == d->folder_fd ? "sync-folder " : "sync ");
    return fd == d->folder_fd && d->sync_code ? d->sync_code : sn_io_system.sync(NULL, fd);
}

static int diary_rename(void *ctx, const char *from, const char *to) {
    diary *d = ctx;
    strcat(d->calls, "rename ");
    return sn_io_system.rename(NULL, from, to);
}

static snug_io diary_table(diary *d) {
    snug_io io = sn_io_system;
    io.ctx = d;
    io.open = diary_open;
    io.sync = diary_sync;
    io.rename = diary_rename;
    return io;
}

static void test_commit_syncs_the_folder_behind_the_rename(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    diary d = {.folder_fd = -1};
    const snug_io io = diary_table(&d);
    sn_file f;
    expect_ok(sn_file_create(&f, &io, x->path, &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
    assert_string_equal(d.calls, "sync rename open sync-folder ");
    assert_string_equal(d.folder, x->dir.path);
    assert_int_equal(fcntl(d.folder_fd, F_GETFD), -1); /* closed */
}

static void test_folder_that_cannot_be_opened_is_not_synced(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    diary d = {.folder_fd = -1, .folder_code = -EACCES};
    const snug_io io = diary_table(&d);
    sn_file f;
    expect_ok(sn_file_create(&f, &io, x->path, &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
    assert_string_equal(d.calls, "sync rename open ");
    assert_int_equal(sn_test_dir_count(&x->dir), 1);
}

/* A power cut could undo the save: it is told. The new file is there, and whole. */
static void test_folder_that_cannot_be_synced_is_told(void **state) {
    const file_fixture *x = *state;
    snug_error err = {0};
    diary d = {.folder_fd = -1, .sync_code = -EIO};
    const snug_io io = diary_table(&d);
    sn_file f;
    expect_ok(sn_file_create(&f, &io, x->path, &err), &err);
    expect_ok(sn_file_write(&f, "new", 3, 0, &err), &err);
    expect_status(sn_file_commit(&f, &err), SNUG_E_IO, &err);
    expect_text(err.text, "cannot sync the folder of");
    expect_text(err.text, x->path);
    expect_ok(sn_file_open(&f, &sn_io_system, x->path, &err), &err);
    assert_int_equal(f.size, 3);
    sn_file_close(&f);
    assert_int_equal(sn_test_dir_count(&x->dir), 1);
    assert_int_equal(fcntl(d.folder_fd, F_GETFD), -1); /* closed */
}

static void test_folder_of_a_bare_name_is_here(void **state) {
    (void)state;
    diary d = {.folder_fd = -1};
    const snug_io io = diary_table(&d);
    snug_error err = {0};
    sn_file f;
    expect_ok(sn_file_create(&f, &io, "snug-test-bare-name", &err), &err);
    expect_ok(sn_file_commit(&f, &err), &err);
    assert_int_equal(unlink("snug-test-bare-name"), 0);
    assert_string_equal(d.folder, ".");
}

/* Writes, commits, reads back; used by the sweep. */
static snug_status write_and_read(snug_engine *e, void *ctx, snug_error *err) {
    const file_fixture *x = ctx;
    sn_file f = {0};
    char text[6] = {0};
    snug_status status = sn_file_create(&f, sn_engine_io(e), x->path, err);
    if (status == SNUG_OK)
        status = sn_file_write(&f, "abcde", 5, 0, err);
    if (status == SNUG_OK)
        status = sn_file_commit(&f, err);
    sn_file_close(&f);
    if (status == SNUG_OK)
        status = sn_file_open(&f, sn_engine_io(e), x->path, err);
    if (status == SNUG_OK)
        status = sn_file_read(&f, text, 5, 0, err);
    sn_file_close(&f);
    if (status == SNUG_OK)
        assert_string_equal(text, "abcde");
    const int files = sn_test_dir_count(&x->dir);
    if (files > 1) /* the .tmp must be gone, whatever failed */
        fail_msg("%d files left after: %s", files, err->text);
    return status;
}

static void test_file_survives_any_failed_call(void **state) {
    sn_fault_sweep_io(write_and_read, *state);
}

static void test_full_and_read_only_disks_are_named(void **state) {
    const file_fixture *x = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    sn_file f;
    sn_fault_io(e, 0, SN_FAULT_EROFS, false);
    expect_status(sn_file_create(&f, sn_engine_io(e), x->path, &err), SNUG_E_IO, &err);
    expect_text(err.text, "writable disk");
    sn_fault_io(e, 3, SN_FAULT_ENOSPC, false);
    expect_ok(sn_file_create(&f, sn_engine_io(e), x->path, &err), &err);
    expect_ok(sn_file_write(&f, "abcde", 5, 0, &err), &err);
    expect_status(sn_file_write(&f, "fghij", 5, 5, &err), SNUG_E_IO, &err);
    expect_text(err.text, "at byte 5");
    expect_text(err.text, "free space");
    sn_file_close(&f);
    sn_test_engine_end(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        file_test(test_file_comes_back_as_written),
        file_test(test_a_large_file_does_not_wait_in_the_cache),
        file_test(test_file_that_is_not_committed_leaves_nothing),
        file_test(test_two_writers_of_one_path_share_no_file),
        file_test(test_what_killed_writers_left_is_removed),
        file_test(test_a_writer_holds_its_file),
        file_test(test_a_name_of_all_its_letters_has_room_for_a_temporary_one),
        file_test(test_missing_file_and_directory_are_refused_by_name),
        file_test(test_pipe_is_refused_and_not_waited_for),
        file_test(test_link_stays_and_what_it_leads_to_is_replaced),
        file_test(test_pipes_and_devices_are_written_to),
        file_test(test_a_file_that_cannot_be_synced_is_not_saved),
        file_test(test_commit_syncs_the_folder_behind_the_rename),
        file_test(test_folder_that_cannot_be_opened_is_not_synced),
        file_test(test_folder_that_cannot_be_synced_is_told),
        cmocka_unit_test(test_folder_of_a_bare_name_is_here),
        file_test(test_read_past_the_end_is_truncation),
        cmocka_unit_test(test_path_too_long_to_rename_is_refused),
        cmocka_unit_test(test_close_is_legal_on_a_zeroed_file),
        file_test(test_interrupted_and_short_calls_are_repeated),
        file_test(test_file_survives_any_failed_call),
        file_test(test_full_and_read_only_disks_are_named),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
