/* test_process.c: every byte of the process has a name. Rows of made-up mappings, to the byte; rows
 * of real runs, whose residual is at most 1 MiB or 0.5 %; and what is booked and predicted before a
 * run against what the run then takes, each in a process of its own. */
#include "support/cgroup.h"
#include "support/fake_files.h"
#include "support/support.h"

#include "base/file.h"
#include "budget/share.h"
#include "memory/private.h"
#include "memory/process.h"
#include "memory/smaps.h"
#include "train/model.h"

#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* --- made-up mappings ------------------------------------------------------------------------- */

/* One mapping as the system writes it; other lines of it must not confuse. */
#define MAPPING(range, rights, path, rss)                                                          \
    range " " rights " 00000000 fe:00 12    " path "\nSize:     999 kB\nRss:      " rss            \
          " kB\nPss:     7 kB\nVmFlags: rd wr\n"

static const sn_fake_file made_up[] = {
    {"/proc/self/status",
     "Name:\tx\nVmHWM:\t  9000 kB\nVmRSS:\t  8000 kB\nRssFile:\t 10 kB\nVmPTE:\t  40 kB\n"
     "Threads:\t3\n"},
    {
        "/proc/self/smaps", MAPPING("1000-2000", "r-xp", "/usr/bin/program", "4")   /* files */
        MAPPING("2000-9000", "rw-p", "[heap]", "100")                               /* heap */
        MAPPING("10000-20000", "r-xp", "/opt/lib with blank/libdnnl.so.2.6", "300") /* oneDNN */
        MAPPING("20000-21000", "rw-p", "/opt/lib with blank/libdnnl.so.2.6", "4")
            MAPPING("21000-22000", "rw-p", "", "8")                   /* its zeroed variables */
        MAPPING("30000-40000", "r--p", "/usr/lib/libgomp.so.1", "20") /* OpenMP */
        MAPPING("50000-60000", "r--p", "/usr/lib/libc.so.6", "700")   /* libraries */
        MAPPING("70000-80000", "rwxp", "", "64")                      /* made code */
        MAPPING("90000-91000", "---p", "", "0")                       /* a guard */
        MAPPING("91000-99000", "rw-p", "", "12")                      /* and its stack */
        MAPPING("a0000-b0000", "rw-p", "", "500")                     /* nobody's */
        MAPPING("8000000-8021000", "rw-p", "", "132")                 /* heap of a thread */
        MAPPING("8021000-c000000", "---p", "", "0")
            MAPPING("7ffd22b0a000-7ffd22b2b000", "rw-p", "[stack]", "16") /* main stack */
        MAPPING("7ffd22bf0000-7ffd22bf2000", "r-xp", "[vdso]", "4")       /* libraries */
    },
    {NULL, NULL},
};

static size_t row(const sn_process_table *t, const char *name) {
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->rows[i].name, name) == 0)
            return t->rows[i].bytes;
    fail_msg("no row '%s'", name);
    return 0;
}

static void test_mappings_go_to_their_rows(void **state) {
    snug_engine *e = *state;
    const snug_io io = sn_fake_io(made_up);
    sn_process_table t;
    sn_process_measure(&io, e, &t);
    assert_int_equal(row(&t, "program and files"), 4 * KIB);
    assert_int_equal(row(&t, "oneDNN"), 312 * KIB);
    assert_int_equal(row(&t, "OpenMP"), 20 * KIB);
    assert_int_equal(row(&t, "C library and others"), 704 * KIB);
    assert_int_equal(row(&t, "code made while running"), 64 * KIB);
    assert_int_equal(row(&t, "stacks of other threads"), 12 * KIB);
    assert_int_equal(row(&t, "main stack"), 16 * KIB);
    assert_int_equal(row(&t, "page tables"), 40 * KIB);
    assert_int_equal(row(&t, "kernel stacks"), 48 * KIB);
    assert_int_equal(row(&t, "snug's code"), 0);
    assert_true(row(&t, "C heap beyond the ledger") >= 232 * KIB); /* and malloc's own mappings */
    assert_int_equal(t.counted_bytes, (8000 + 40 + 48) * KIB);
    int64_t sum = t.residual_bytes;
    for (size_t i = 0; i < t.n; i++)
        sum += (int64_t)t.rows[i].bytes;
    assert_int_equal(sum, t.counted_bytes);
}

static void count_mapping(void *ctx, const sn_mapping *m) {
    size_t *n = ctx;
    n[0]++;
    n[1] += m->resident_bytes;
}

static void test_mappings_are_read_one_by_one(void **state) {
    (void)state;
    size_t n[2] = {0};
    const snug_io io = sn_fake_io(made_up);
    assert_true(sn_smaps_each(&io, count_mapping, n));
    assert_int_equal(n[0], 15);
    assert_int_equal(n[1], 1864 * KIB);
    const snug_io none = sn_fake_io((sn_fake_file[]){{NULL, NULL}});
    assert_false(sn_smaps_each(&none, count_mapping, n));
}

static void test_a_system_that_says_nothing_gives_zeros(void **state) {
    (void)state;
    const snug_io io = sn_fake_io((sn_fake_file[]){{NULL, NULL}});
    sn_process p;
    sn_process_read(&io, &p);
    assert_int_equal(sn_process_counted(&p), 0);
    assert_int_equal(sn_process_counted_peak(&p), 0);
}

/* --- the ledger's own memory ------------------------------------------------------------------ */

/* Of a block, pages that were touched; of small allocations, all. */
static void test_ledger_rows_are_what_is_resident(void **state) {
    snug_engine *e = *state;
    snug_error err;
    sn_block b = {0};
    void *small, *large;
    sn_process_table t;
    expect_ok(sn_block_init(e, SN_MEM_ARENA, "a", 8 * MIB, NULL, &b, &err), &err);
    madvise(b.data, b.bytes, MADV_NOHUGEPAGE);
    memset(b.data, 1, 3 * MIB);
    expect_ok(sn_alloc(e, SN_MEM_GRAPH, 1000, &small, &err), &err);
    expect_ok(sn_alloc(e, SN_MEM_PLAN, 2 * MIB - 8 * KIB, &large, &err), &err); /* small pages */
    memset(large, 1, MIB);
    sn_process_measure(&sn_io_system, e, &t);
    assert_int_equal(row(&t, "arena"), 3 * MIB);
    assert_int_equal(row(&t, "graph"), 1000);
    assert_in_range(row(&t, "plan"), MIB, MIB + 8 * KIB);
    assert_int_equal(row(&t, "weights"), 0);
    sn_free(e, SN_MEM_PLAN, large, 2 * MIB - 8 * KIB);
    sn_free(e, SN_MEM_GRAPH, small, 1000);
    sn_block_clear(&b);
}

/* A large allocation is zero, aligned, and back with the system when it is freed. */
static void test_large_allocations_come_and_go_at_once(void **state) {
    snug_engine *e = *state;
    snug_error err;
    void *large;
    sn_process before, with, after;
    expect_ok(sn_alloc_zero(e, SN_MEM_PLAN, 64 * MIB, &large, &err), &err);
    assert_int_equal((uintptr_t)large % 64, 0);
    for (size_t i = 0; i < 64 * MIB; i += 4096)
        assert_int_equal(((char *)large)[i], 0);
    sn_process_read(&sn_io_system, &before);
    memset(large, 1, 64 * MIB);
    sn_process_read(&sn_io_system, &with);
    sn_free(e, SN_MEM_PLAN, large, 64 * MIB);
    sn_process_read(&sn_io_system, &after);
    assert_true(with.resident_bytes > 60 * MIB);
    assert_true(after.resident_bytes + 60 * MIB < with.resident_bytes);
    (void)before;
}

/* --- real runs -------------------------------------------------------------------------------- */

typedef struct {
    const char *model, *x, *y;
    int n_threads;
    int64_t batch;
    bool makes_code;
    /* of the child */
    snug_engine *engine;
    int64_t n_steps;
    bool failed;
} real_run;

/* Says what is wrong; cmocka's failures do not leave a child. */
static void want(real_run *r, bool right, const char *what, long long got, long long limit) {
    if (right)
        return;
    fprintf(stderr, "%s, %d threads: %s is %lld, limit %lld\n", r->model, r->n_threads, what, got,
            limit);
    r->failed = true;
}

static size_t most(size_t a, size_t b) {
    return a > b ? a : b;
}

static void check_rows(real_run *r) {
    sn_process_table t;
    sn_process_measure(&sn_io_system, r->engine, &t);
    const int64_t limit = (int64_t)most(MIB, t.counted_bytes / 200);
    const int64_t residual = t.residual_bytes < 0 ? -t.residual_bytes : t.residual_bytes;
    want(r, residual <= limit, "the residual", (long long)t.residual_bytes, limit);
    const size_t code = row(&t, "code made while running");
    want(r, (code > 0) == r->makes_code, "made code", (long long)code, r->makes_code);
    want(r, row(&t, "snug's code") > 500 * KIB, "snug's code", (long long)row(&t, "snug's code"),
         500 << 10);
    want(r, row(&t, "arena") > 0, "the arena", 0, 1);
    want(r, (row(&t, "stacks") > 0) == (r->n_threads > 1), "stacks", (long long)row(&t, "stacks"),
         r->n_threads);
}

static snug_status check_in_step_3(void *ctx, const snug_progress *p, snug_error *err) {
    (void)p, (void)err;
    real_run *r = ctx;
    if (++r->n_steps == 3)
        check_rows(r);
    return SNUG_OK;
}

/* Variables have pages of their own. */
static size_t state_bytes(const snug_model *m) {
    size_t sum = 0;
    for (size_t i = 0; i < m->network->n_vars; i++) {
        size_t bytes = 0;
        expect_ok(snug_type_bytes(&m->network->vars[i].type, &bytes, NULL), NULL);
        sum += (bytes + 4095) / 4096 * 4096;
    }
    return sum;
}

/* Beside the booking: what the ledger holds, state and arena, and the session of the plan. */
static void check_peak(real_run *r, const sn_process_booking *b, size_t ledger) {
    sn_process p;
    sn_process_read(&sn_io_system, &p);
    const size_t peak = sn_process_counted_peak(&p);
    const size_t predicted = b->predicted_bytes + ledger, limit = most(peak / 50, MIB);
    const size_t off = predicted > peak ? predicted - peak : peak - predicted;
    want(r, off <= limit, "the error of the prediction", (long long)predicted - (long long)peak,
         (long long)limit);
    want(r, peak <= b->booked_bytes + ledger, "the peak", (long long)peak,
         (long long)(b->booked_bytes + ledger));
}

static int run_child(void *ctx) {
    real_run *r = ctx;
    snug_error err;
    snug_model *m;
    sn_model_step *step;
    snug_feed *x, *y;
    sn_process_booking b;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", SNUG_TEST_DATA, r->model);
    expect_ok(
        snug_engine_create(&(snug_engine_options){.n_threads = r->n_threads}, &r->engine, &err),
        &err);
    expect_ok(snug_model_load(r->engine, path, &m, &err), &err);
    const sn_weighting none = {.n_weights = 0};
    expect_ok(sn_model_step_weighted(m, SN_STEP_TRAIN, r->batch, &none, &step, &err), &err);
    const size_t to_map = state_bytes(m) + step->plan->memories[SN_MEM_FIRST_ARENA].bytes;
    const sn_process_need need = {.map_bytes = to_map, .code_bytes = step->plan->code_bytes};
    sn_share share;
    expect_ok(
        sn_share_find(r->engine, 0, &(sn_share_need){.code_bytes = need.code_bytes}, &share, &err),
        &err); /* what runs is there before it is measured */
    expect_ok(sn_process_book(r->engine, &need, &b, &err), &err);
    const size_t ledger = snug_engine_bytes(r->engine) + to_map + sn_session_bytes(step->plan);
    expect_ok(snug_feed_open(r->engine, r->x, &x, &err), &err);
    expect_ok(snug_feed_open(r->engine, r->y, &y, &err), &err);
    const snug_callback watch = {.ctx = r, .on_step_end = check_in_step_3};
    const snug_fit_options fit = {
        .x = x, .y = y, .batch = r->batch, .callbacks = &watch, .n_callbacks = 1};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    want(r, r->n_steps >= 3, "steps", r->n_steps, 3);
    check_peak(r, &b, ledger);
    snug_model_destroy(m);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_engine_destroy(r->engine);
    return r->failed;
}

/* AddressSanitizer's own memory has no rows. */
static void test_real_runs_add_up_and_were_foreseen(void **state) {
    (void)state;
    static const real_run runs[] = {
        {"../examples/models/mnist_mlp.json", "normal:384x28x28@1", "labels:384@2@10",
         .batch = 128},
        {"../examples/models/shapes_cnn.json", "normal:96x32x32x3@1", "labels:96@2@8", .batch = 32},
        {"../examples/models/resnet20.json", "normal:24x32x32x3@1", "labels:24@2@10", .batch = 8},
        {"golden/conv_groups_f32/model.json", "normal:24x7x6x3@1", "normal:24x3@2", .batch = 8,
         .makes_code = true},
    };
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (int n_threads = 1; n_threads <= 4; n_threads *= 2) {
            real_run r = runs[i];
            sn_cgroup_result result;
            r.n_threads = n_threads;
            const char *why = sn_cgroup_run(NULL, 256 * MIB, run_child, &r, &result);
            if (why) {
                print_message("%s\n", why);
                skip();
            }
            assert_int_equal(result.exit_code, 0);
        }
}

/* --- many steps ------------------------------------------------------------------------------- */

typedef struct {
    snug_engine *engine;
    int64_t n, last;
    size_t counted[2], heap[2]; /* in step 50 and in the last */
} flat_run;

static snug_status look_at_memory(void *ctx, const snug_progress *progress, snug_error *err) {
    (void)progress, (void)err;
    flat_run *f = ctx;
    f->n++;
    if (f->n != 50 && f->n != f->last)
        return SNUG_OK;
    sn_process p;
    sn_process_read(&sn_io_system, &p);
    f->counted[f->n == f->last] = sn_process_counted(&p);
    f->heap[f->n == f->last] = mallinfo2().uordblks;
    return SNUG_OK;
}

/* 1,000 steps, and 10,000 where all tests are run. Nothing may grow: neither what the C heap holds
 * nor what the system counts. */
static int run_many_steps(void *ctx) {
    flat_run f = {.last = *(const int64_t *)ctx};
    snug_error err;
    snug_model *m;
    snug_feed *x, *y;
    char path[512];
    snprintf(path, sizeof path, "%s/golden/conv_groups_f32/model.json", SNUG_TEST_DATA);
    expect_ok(snug_engine_create(&(snug_engine_options){.n_threads = 1}, &f.engine, &err), &err);
    expect_ok(snug_model_load(f.engine, path, &m, &err), &err);
    expect_ok(snug_feed_open(f.engine, "normal:40x7x6x3@1", &x, &err), &err);
    expect_ok(snug_feed_open(f.engine, "normal:40x3@2", &y, &err), &err);
    const snug_callback watch = {.ctx = &f, .on_step_end = look_at_memory};
    const snug_fit_options fit = {.x = x,
                                  .y = y,
                                  .batch = 4,
                                  .epochs = (int)(f.last / 10),
                                  .shuffle = 1,
                                  .callbacks = &watch,
                                  .n_callbacks = 1};
    expect_ok(snug_fit(m, &fit, NULL, &err), &err);
    snug_model_destroy(m);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_engine_destroy(f.engine);
    const bool flat =
        f.n == f.last && f.heap[1] == f.heap[0] && f.counted[1] <= f.counted[0] + 64 * KIB;
    if (!flat)
        fprintf(stderr, "after 50 steps %zu bytes, after %lld %zu; C heap %zu, %zu\n", f.counted[0],
                (long long)f.n, f.counted[1], f.heap[0], f.heap[1]);
    return flat ? 0 : 1;
}

static void test_many_steps_leave_memory_flat(void **state) {
    (void)state;
    int64_t n_steps = getenv("SNUG_TEST_FULL") ? 10000 : 1000;
    sn_cgroup_result result;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    const char *why = sn_cgroup_run(NULL, 64 * MIB, run_many_steps, &n_steps, &result);
    if (why) {
        print_message("%s\n", why);
        skip();
    }
    assert_int_equal(result.exit_code, 0);
    assert_false(result.killed);
}

/* --- page tables ------------------------------------------------------------------------------ */

/* How much page tables grow when bytes that begin `offset` behind a boundary of 2 MiB, in small
 * pages, are touched: up to 64 MiB written, beyond that read, which takes the same tables and no
 * memory. */
static size_t tables_grow_by(size_t bytes, size_t offset) {
    sn_process before, after;
    const size_t room = bytes + 4 * MIB;
    char *base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_int_equal(madvise(base, room, MADV_NOHUGEPAGE), 0);
    volatile char *at = base + (2 * MIB - (uintptr_t)base % (2 * MIB)) + offset;
    sn_process_read(&sn_io_system, &before);
    for (size_t i = 0; i < bytes; i += 4096)
        if (bytes <= 64 * MIB)
            at[i] = 1;
        else
            (void)at[i];
    sn_process_read(&sn_io_system, &after);
    munmap(base, room);
    return after.table_bytes - before.table_bytes;
}

/* At most what is booked for them, and nearly that much: the tables above the last may be there. */
static void test_page_tables_are_what_was_booked_for_them(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its own memory comes and goes */
#endif
    (void)state;
    static const size_t sizes[] = {1, 4, 16, 64, 100, 256, 1024};
    static const size_t offsets[] = {0, 4 * KIB, MIB, 2 * MIB - 4 * KIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
            const size_t bytes = sizes[i] * MIB, booked = sn_process_tables(bytes);
            const size_t grown = tables_grow_by(bytes, offsets[k]);
            if (grown > booked || booked > grown + 16 * KIB)
                fail_msg("%zu MiB at %zu KiB: tables grow by %zu bytes, %zu are booked", sizes[i],
                         offsets[k] / KIB, grown, booked);
        }
}

/* They are part of a booking. */
static void test_bookings_have_the_tables_of_what_is_mapped(void **state) {
    snug_error err;
    sn_process_booking none, much;
    const sn_process_need need = {.map_bytes = 1024 * MIB};
    for (int i = 0; i < 2; i++) /* the first look touches pages */
        expect_ok(sn_process_book(*state, &(sn_process_need){0}, &none, &err), &err);
    expect_ok(sn_process_book(*state, &need, &much, &err), &err);
    assert_in_range(much.booked_bytes - none.booked_bytes, 2 * MIB, 2 * MIB + 16 * KIB);
    assert_in_range(much.predicted_bytes - none.predicted_bytes, 2 * MIB - 64 * KIB,
                    2 * MIB + 64 * KIB);
}

/* --- booking ---------------------------------------------------------------------------------- */

/* The same process books the same again, whatever was freed in between. */
static void test_bookings_follow_the_process(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its own memory comes and goes */
#endif
    snug_engine *e = *state;
    snug_error err;
    sn_process_booking first, again, more;
    const sn_process_need need = {.map_bytes = 512 * MIB};
    void *small[200];
    expect_ok(sn_process_book(e, &need, &first, &err), &err);
    for (size_t i = 0; i < 200; i++)
        expect_ok(sn_alloc(e, SN_MEM_GRAPH, 3000, &small[i], &err), &err);
    for (size_t i = 0; i < 200; i++)
        sn_free(e, SN_MEM_GRAPH, small[i], 3000);
    expect_ok(sn_process_book(e, &need, &again, &err), &err);
    assert_in_range(again.booked_bytes, first.booked_bytes - 64 * KIB,
                    first.booked_bytes + 64 * KIB);
    assert_true(first.booked_bytes >= first.predicted_bytes);
    assert_true(first.predicted_bytes >= first.now_bytes + MIB); /* the tables of 512 MiB */
    char *foreign = malloc(20 * MIB);
    assert_non_null(foreign);
    memset(foreign, 1, 20 * MIB); /* the program around it grew */
    expect_ok(sn_process_book(e, &need, &more, &err), &err);
    assert_in_range(more.booked_bytes, first.booked_bytes + 19 * MIB,
                    first.booked_bytes + 21 * MIB);
    free(foreign);
}

/* --- how exact the system's own peak is ------------------------------------------------------- */

static void run_on(int processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)processor, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static size_t resident_now(void) {
    sn_process p;
    sn_process_read(&sn_io_system, &p);
    return p.resident_bytes;
}

/* Pages come on one processor and go on another, 1 to 31 at a time. The child's exit code: by how
 * many KiB the peak that is told is above the largest there was, at most 255. */
static int peak_is_above_by(void) {
    char *pages =
        mmap(NULL, 128 * 4 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t most = resident_now();
    for (size_t k = 0; pages != MAP_FAILED && k < 200; k++) {
        const size_t n = k % 31 + 1;
        run_on(0);
        memset(pages, 1, 33 * 4 * KIB);
        most = resident_now() > most ? resident_now() : most;
        run_on(1);
        madvise(pages, n * 4 * KIB, MADV_DONTNEED);
        run_on(0);
        memset(pages + 64 * 4 * KIB, 1, n * 4 * KIB);
        most = resident_now() > most ? resident_now() : most;
        madvise(pages + 64 * 4 * KIB, n * 4 * KIB, MADV_DONTNEED);
    }
    sn_process p;
    sn_process_read(&sn_io_system, &p);
    const size_t above = p.peak_bytes > most ? (p.peak_bytes - most) / KIB : 0;
    return above < 255 ? (int)above : 255;
}

static void test_a_peak_is_told_too_large_by_no_more_than_is_left_for_it(void **state) {
    snug_engine *e = *state;
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(peak_is_above_by());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_true((size_t)WEXITSTATUS(status) * KIB <= sn_process_inexact(e));
}

static void test_a_request_leaves_room_for_what_the_count_is_off(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its own memory comes and goes */
#endif
    snug_engine *e = *state;
    snug_error err;
    void *block;
    expect_ok(snug_budget(e, 512 * MIB, &err), &err);
    const size_t room = snug_room(e), off = sn_process_inexact(e);
    sn_process p;
    sn_process_read(&sn_io_system, &p);
    assert_in_range(off, 128 * KIB, MIB);
    assert_true(sn_process_counted(&p) + room + off <= 512 * MIB + 64 * KIB);
    expect_status(sn_alloc(e, SN_MEM_GRAPH, room + off / 2, &block, &err), SNUG_E_BUDGET, &err);
}

static size_t counted_beside(snug_engine *e) {
    snug_error err;
    sn_process_booking b;
    expect_ok(sn_process_book(e, &(sn_process_need){0}, &b, &err), &err);
    return b.now_bytes;
}

/* Planners of several threads come and go in any order, and the caller says another number
 * meanwhile: behind the last of them that number counts. */
static void test_what_is_set_aside_counts_again_behind_the_last_planner(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its own memory comes and goes */
#endif
    snug_engine *e = *state;
    const size_t pages = 512 * KIB; /* that the process may differ by from look to look */
    const size_t nothing = counted_beside(e);
    assert_int_equal(snug_set_aside(e, 64 * MIB), 0);
    assert_in_range(counted_beside(e), nothing + 64 * MIB - pages, nothing + 64 * MIB + pages);
    sn_aside_lend(e, 1);
    sn_aside_lend(e, 1);
    assert_in_range(counted_beside(e), nothing - pages, nothing + pages);
    sn_aside_lend(e, -1); /* that of the first one */
    assert_int_equal(snug_set_aside(e, 32 * MIB), 64 * MIB);
    assert_in_range(counted_beside(e), nothing - pages, nothing + pages);
    sn_aside_lend(e, -1);
    assert_in_range(counted_beside(e), nothing + 32 * MIB - pages, nothing + 32 * MIB + pages);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_runs_add_up_and_were_foreseen),
        cmocka_unit_test(test_many_steps_leave_memory_flat),
        engine_test(test_mappings_go_to_their_rows),
        cmocka_unit_test(test_mappings_are_read_one_by_one),
        cmocka_unit_test(test_a_system_that_says_nothing_gives_zeros),
        engine_test(test_ledger_rows_are_what_is_resident),
        engine_test(test_large_allocations_come_and_go_at_once),
        cmocka_unit_test(test_page_tables_are_what_was_booked_for_them),
        engine_test(test_bookings_have_the_tables_of_what_is_mapped),
        engine_test(test_bookings_follow_the_process),
        engine_test(test_a_peak_is_told_too_large_by_no_more_than_is_left_for_it),
        engine_test(test_a_request_leaves_room_for_what_the_count_is_off),
        engine_test(test_what_is_set_aside_counts_again_behind_the_last_planner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
