/* test_spill.c: files that take the place of memory: what is written comes back from any address
 * and of any length, past the cache or not; no name, descriptor or cached page stays; folders that
 * cannot do it are refused before anything is written. Byte limit: 4 MiB. */
#include "support/support.h"

#include "memory/spill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK ((size_t)SN_FILE_BLOCK)
#define STAGE SN_SPILL_STAGE_BYTES

/* --- tables with a character ------------------------------------------------------------------ */

typedef enum { AS_IT_IS, NO_DIRECT_OPEN, NO_DIRECT_WRITE } refusal;

typedef struct {
    snug_io io;
    refusal refuses;
    int fd;    /* opened last */
    int flags; /* it was opened with */
    int n_open, n_forget;
} table;

static int table_open(void *ctx, const char *path, int flags, int mode) {
    table *t = ctx;
    if (t->refuses == NO_DIRECT_OPEN && (flags & O_DIRECT))
        return -EINVAL;
    t->fd = sn_io_system.open(NULL, path, flags, mode);
    t->flags = flags;
    t->n_open += t->fd >= 0;
    return t->fd;
}

/* As strict as a disk: what is not in whole blocks is refused. */
static int64_t table_pwrite(void *ctx, int fd, const void *buffer, size_t bytes, int64_t offset) {
    const table *t = ctx;
    const bool whole =
        (uintptr_t)buffer % BLOCK == 0 && bytes % BLOCK == 0 && (size_t)offset % BLOCK == 0;
    if (!whole || (t->refuses == NO_DIRECT_WRITE && (t->flags & O_DIRECT)))
        return -EINVAL;
    return sn_io_system.pwrite(NULL, fd, buffer, bytes, offset);
}

static int64_t table_pread(void *ctx, int fd, void *buffer, size_t bytes, int64_t offset) {
    (void)ctx;
    if ((uintptr_t)buffer % BLOCK != 0 || bytes % BLOCK != 0 || (size_t)offset % BLOCK != 0)
        return -EINVAL;
    return sn_io_system.pread(NULL, fd, buffer, bytes, offset);
}

static int table_forget(void *ctx, int fd, int64_t offset, int64_t bytes) {
    table *t = ctx;
    t->n_forget++;
    return sn_io_system.forget(NULL, fd, offset, bytes);
}

static snug_engine *engine_with(table *t, refusal refuses) {
    *t = (table){.io = sn_io_system, .refuses = refuses, .fd = -1};
    t->io.ctx = t;
    t->io.open = table_open;
    t->io.pwrite = table_pwrite;
    t->io.pread = table_pread;
    t->io.forget = table_forget;
    snug_engine *e = NULL;
    snug_error err = {0};
    expect_ok(snug_engine_create(&(snug_engine_options){.io = &t->io}, &e, &err), &err);
    return e;
}

/* --- fixture ---------------------------------------------------------------------------------- */

typedef struct {
    sn_test_dir dir;
    int n_descriptors;
} fixture;

static int setup(void **state) {
    fixture *f = malloc(sizeof *f);
    assert_non_null(f);
    sn_test_dir_begin(&f->dir);
    f->n_descriptors = sn_test_entries("/proc/self/fd");
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    assert_int_equal(sn_test_entries("/proc/self/fd"), f->n_descriptors);
    assert_int_equal(sn_test_dir_count(&f->dir), 0);
    sn_test_dir_end(&f->dir);
    free(f);
    return 0;
}
#define spill_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void fill(unsigned char *bytes, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(seed >> 24);
    }
}

/* --- round trips ------------------------------------------------------------------------------ */

static const size_t lengths[] = {0,
                                 1,
                                 BLOCK - 1,
                                 BLOCK,
                                 BLOCK + 1,
                                 STAGE - 1,
                                 STAGE,
                                 STAGE + BLOCK,
                                 STAGE + BLOCK + 5,
                                 2 * STAGE,
                                 2 * STAGE + 1};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* All lengths one behind the other, from and to addresses that are `shift` past a block. */
static void round_trip(sn_spill *s, size_t shift) {
    unsigned char *a = aligned_alloc(BLOCK, 3 * STAGE), *b = aligned_alloc(BLOCK, 3 * STAGE);
    assert_true(a && b);
    snug_error err = {0};
    size_t at = 0;
    for (int i = 0; i < N_LENGTHS; i++) {
        fill(a + shift, lengths[i], (uint32_t)i + 1);
        expect_ok(sn_spill_write(s, a + shift, lengths[i], at, &err), &err);
        at += (lengths[i] + BLOCK - 1) / BLOCK * BLOCK;
    }
    at = 0;
    for (int i = 0; i < N_LENGTHS; i++) {
        fill(a, lengths[i], (uint32_t)i + 1);
        b[shift + lengths[i]] = 0x5a;
        expect_ok(sn_spill_read(s, b + shift, lengths[i], at, &err), &err);
        assert_memory_equal(a, b + shift, lengths[i]);
        assert_int_equal(b[shift + lengths[i]], 0x5a); /* not a byte more */
        at += (lengths[i] + BLOCK - 1) / BLOCK * BLOCK;
    }
    free(a);
    free(b);
}

static void test_bytes_come_back_from_any_address(void **state) {
    const fixture *f = *state;
    for (int refuses = AS_IT_IS; refuses <= NO_DIRECT_WRITE; refuses++) {
        table t;
        snug_engine *e = engine_with(&t, (refusal)refuses);
        snug_error err = {0};
        sn_spill *s;
        expect_ok(sn_spill_create(e, f->dir.path, 16 * STAGE, &s, &err), &err);
        assert_int_equal(sn_test_dir_count(&f->dir), 0);
        assert_int_equal(sn_spill_is_direct(s), (t.flags & O_DIRECT) != 0);
        if (refuses != AS_IT_IS)
            assert_false(sn_spill_is_direct(s));
        round_trip(s, 0);
        round_trip(s, 64);
        round_trip(s, 1);
        assert_int_equal(t.n_forget > 0, !sn_spill_is_direct(s));
        sn_spill_destroy(s);
        sn_test_engine_end(e);
    }
}

/* The point of it all: a file that is not direct must not live on in the system's cache. */
static void test_the_cache_keeps_no_page(void **state) {
    const fixture *f = *state;
    table t;
    snug_engine *e = engine_with(&t, NO_DIRECT_OPEN);
    snug_error err = {0};
    sn_spill *s;
    expect_ok(sn_spill_create(e, f->dir.path, 16 * STAGE, &s, &err), &err);
    round_trip(s, 1);
    void *map = mmap(NULL, 4 * STAGE, PROT_READ, MAP_SHARED, t.fd, 0);
    assert_true(map != MAP_FAILED);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 4 * STAGE / page;
    unsigned char *resident = calloc(n, 1);
    assert_non_null(resident);
    assert_int_equal(mincore(map, 4 * STAGE, resident), 0);
    size_t n_resident = 0;
    for (size_t i = 0; i < n; i++)
        n_resident += resident[i] & 1u;
    assert_int_equal(n_resident, 0);
    munmap(map, 4 * STAGE);
    free(resident);
    sn_spill_destroy(s);
    sn_test_engine_end(e);
}

static void test_stages_are_on_the_ledger(void **state) {
    const fixture *f = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    sn_spill *s;
    expect_ok(sn_spill_create(e, f->dir.path, 1, &s, &err), &err);
    assert_true(snug_engine_bytes(e) >= SN_SPILL_MEMORY_BYTES);
    assert_true(snug_engine_bytes(e) < SN_SPILL_MEMORY_BYTES + 8192);
    assert_int_equal(sn_spill_bytes(s), BLOCK);
    sn_spill_destroy(s);
    sn_test_engine_end(e);
}

/* Pieces that share blocks, written in any order, from memory that lies as they do or otherwise. */
static void test_neighbours_in_a_block_are_left_alone(void **state) {
    const fixture *f = *state;
    enum { N = 11 };
    const size_t cuts[N + 1] = {
        0,     1,          100,       BLOCK - 1,         BLOCK,         BLOCK + 7,
        20000, 24 * BLOCK, STAGE - 3, STAGE + BLOCK + 9, 2 * STAGE - 1, 2 * STAGE + 77};
    table t;
    snug_engine *e = engine_with(&t, AS_IT_IS);
    snug_error err = {0};
    sn_spill *s;
    unsigned char *a = aligned_alloc(BLOCK, 3 * STAGE), *b = aligned_alloc(BLOCK, 3 * STAGE);
    assert_true(a && b);
    expect_ok(sn_spill_create(e, f->dir.path, 3 * STAGE, &s, &err), &err);
    for (uint32_t round = 0; round < 4; round++) {
        fill(a, cuts[N], round + 1);
        for (uint32_t i = 0; i < N; i++) {
            const uint32_t k = (i * 7 + round) % N;
            unsigned char *from = b + (round % 2 ? 5 : cuts[k] % BLOCK);
            memcpy(from, a + cuts[k], cuts[k + 1] - cuts[k]);
            expect_ok(sn_spill_write(s, from, cuts[k + 1] - cuts[k], cuts[k], &err), &err);
        }
        memset(b, 0, 3 * STAGE);
        expect_ok(sn_spill_read(s, b, cuts[N], 0, &err), &err);
        assert_memory_equal(a, b, cuts[N]);
        for (uint32_t k = 0; k < N; k++) {
            expect_ok(sn_spill_read(s, b + 3, cuts[k + 1] - cuts[k], cuts[k], &err), &err);
            assert_memory_equal(a + cuts[k], b + 3, cuts[k + 1] - cuts[k]);
        }
    }
    free(a);
    free(b);
    sn_spill_destroy(s);
    sn_test_engine_end(e);
}

static void test_growing_keeps_what_is_there(void **state) {
    const fixture *f = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    sn_spill *s;
    char text[8] = "resides";
    expect_ok(sn_spill_create(e, f->dir.path, BLOCK, &s, &err), &err);
    expect_ok(sn_spill_write(s, text, 8, 0, &err), &err);
    expect_ok(sn_spill_grow(s, 3 * BLOCK + 1, &err), &err);
    assert_int_equal(sn_spill_bytes(s), 4 * BLOCK);
    expect_ok(sn_spill_write(s, "another", 8, 3 * BLOCK, &err), &err);
    expect_ok(sn_spill_grow(s, 1, &err), &err);
    assert_int_equal(sn_spill_bytes(s), 4 * BLOCK);
    memset(text, 0, sizeof text);
    expect_ok(sn_spill_read(s, text, 8, 0, &err), &err);
    assert_string_equal(text, "resides");
    expect_ok(sn_spill_read(s, text, 8, 3 * BLOCK, &err), &err);
    assert_string_equal(text, "another");
    sn_spill_destroy(s);
    sn_test_engine_end(e);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void refused(snug_engine *e, const char *folder, size_t bytes, const char *text) {
    snug_error err = {0};
    sn_spill *s = NULL;
    expect_status(sn_spill_create(e, folder, bytes, &s, &err), SNUG_E_IO, &err);
    assert_null(s);
    expect_text(err.text, text);
    expect_text(err.text, "cannot spill");
    expect_text(err.text, folder);
    assert_int_equal(snug_engine_bytes(e), 0);
}

static void test_folders_that_cannot_are_refused_by_name(void **state) {
    const fixture *f = *state;
    char path[256];
    snug_engine *e = sn_test_engine(0);
    refused(e, sn_test_path(&f->dir, "nowhere", path), 1,
            "No such file or directory; check the path");
    refused(e, "/dev/shm", 1, "it is on tmpfs, whose files are memory; name a folder on a disk");
    refused(e, "/proc/self/status", 1, "cannot spill");
    refused(e, f->dir.path, (size_t)1 << 60, "are free; free space on that disk or choose another");
    refused(e, f->dir.path, (size_t)1 << 60, "cannot spill 1152921504606846976 bytes");
    sn_test_engine_end(e);
}

/* Root may write to any folder: a child tries it as nobody. */
static void test_folder_without_the_right_to_write_is_refused(void **state) {
    const fixture *f = *state;
    assert_int_equal(chmod(f->dir.path, 0555), 0);
    const pid_t child = fork();
    if (child == 0) {
        const bool plain = geteuid() != 0 || setuid(65534) == 0;
        snug_engine *e = sn_test_engine(0);
        refused(e, f->dir.path, 1, "Permission denied; check its permissions");
        sn_test_engine_end(e);
        _exit(plain ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(chmod(f->dir.path, 0700), 0);
}

/* Calls: folder 0, open 1, unlink 2, reserve 3. */
static void test_full_and_read_only_disks_are_named_before_a_write(void **state) {
    const fixture *f = *state;
    snug_engine *e = sn_test_engine(0);
    sn_fault_io(e, 1, SN_FAULT_EROFS, false);
    refused(e, f->dir.path, 1, "choose a path on a writable disk");
    sn_fault_io(e, 3, SN_FAULT_ENOSPC, false);
    refused(e, f->dir.path, 1, "free space on that disk or choose another");
    sn_test_engine_end(e);
}

static void test_disk_that_fills_later_is_an_error_with_the_byte(void **state) {
    const fixture *f = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    sn_spill *s;
    expect_ok(sn_spill_create(e, f->dir.path, 4 * BLOCK, &s, &err), &err);
    sn_fault_io(e, 0, SN_FAULT_ENOSPC, false);
    expect_status(sn_spill_write(s, "x", 1, 2 * BLOCK, &err), SNUG_E_IO, &err);
    expect_text(err.text, "at byte 8192");
    expect_text(err.text, "free space on that disk or choose another");
    sn_spill_destroy(s);
    sn_test_engine_end(e);
}

static void test_table_without_the_calls_spills_nothing(void **state) {
    const fixture *f = *state;
    snug_io io = sn_io_system;
    snug_error err = {0};
    snug_engine *e = NULL;
    io.folder = NULL;
    expect_status(snug_engine_create(&(snug_engine_options){.io = &io}, &e, &err), SNUG_E_INVALID,
                  &err);
    expect_text(err.text, "folder, reserve and forget");
    io.reserve = NULL;
    io.forget = NULL;
    expect_ok(snug_engine_create(&(snug_engine_options){.io = &io}, &e, &err), &err);
    refused(e, f->dir.path, 1, "use an I/O table with folder, reserve and forget");
    sn_test_engine_end(e);
}

/* The file is shared with the parent: what the child wrote would be the parent's bytes. */
static void test_the_child_of_a_fork_is_refused(void **state) {
    const fixture *f = *state;
    snug_engine *e = sn_test_engine(0);
    snug_error err = {0};
    sn_spill *s;
    expect_ok(sn_spill_create(e, f->dir.path, BLOCK, &s, &err), &err);
    const pid_t child = fork();
    if (child == 0) {
        char c = 0;
        const bool ok = sn_spill_write(s, "x", 1, 0, &err) == SNUG_E_INVALID &&
                        sn_spill_read(s, &c, 1, 0, &err) == SNUG_E_INVALID &&
                        strstr(err.text, "child of a fork");
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sn_spill_destroy(s);
    sn_test_engine_end(e);
}

/* --- faults ----------------------------------------------------------------------------------- */

static snug_status use_a_file(snug_engine *e, void *ctx, snug_error *err) {
    const fixture *f = ctx;
    static unsigned char a[3 * BLOCK], b[3 * BLOCK];
    sn_spill *s = NULL;
    fill(a, sizeof a, 7);
    memset(b, 0, sizeof b);
    snug_status status = sn_spill_create(e, f->dir.path, BLOCK, &s, err);
    if (status == SNUG_OK)
        status = sn_spill_grow(s, 4 * BLOCK, err);
    if (status == SNUG_OK)
        status = sn_spill_write(s, a + 1, sizeof a - 1, BLOCK, err);
    if (status == SNUG_OK)
        status = sn_spill_read(s, b + 1, sizeof a - 1, BLOCK, err);
    if (status == SNUG_OK)
        assert_memory_equal(a + 1, b + 1, sizeof a - 1);
    sn_spill_destroy(s);
    assert_int_equal(sn_test_entries("/proc/self/fd"), f->n_descriptors);
    assert_int_equal(sn_test_dir_count(&f->dir), 0);
    return status;
}

static void test_file_survives_any_failed_call(void **state) {
    sn_fault_sweep(use_a_file, *state);
    sn_fault_sweep_io(use_a_file, *state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spill_test(test_bytes_come_back_from_any_address),
        spill_test(test_the_cache_keeps_no_page),
        spill_test(test_stages_are_on_the_ledger),
        spill_test(test_neighbours_in_a_block_are_left_alone),
        spill_test(test_growing_keeps_what_is_there),
        spill_test(test_folders_that_cannot_are_refused_by_name),
        spill_test(test_folder_without_the_right_to_write_is_refused),
        spill_test(test_full_and_read_only_disks_are_named_before_a_write),
        spill_test(test_disk_that_fills_later_is_an_error_with_the_byte),
        spill_test(test_table_without_the_calls_spills_nothing),
        spill_test(test_the_child_of_a_fork_is_refused),
        spill_test(test_file_survives_any_failed_call),
    };
    return cmocka_run_group_tests_name("spill", tests, NULL, NULL);
}
