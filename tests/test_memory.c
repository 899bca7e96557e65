/* Rules of room memory: the ledger, the budget, small requests, zones, blocks, faults. */
#include "support/support.h"

#include "base/file.h"
#include "memory/engine.h"
#include "memory/limits.h"
#include "memory/private.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* --- small requests ------------------------------------------------------------------------- */

static void test_alloc_is_aligned_and_counted_by_category(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    void *a, *b;
    expect_ok(sn_alloc(e, SN_MEM_GRAPH, 100, &a, &err), &err);
    expect_ok(sn_alloc(e, SN_MEM_PLAN, 7, &b, &err), &err);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b % 64, 0);
    assert_int_equal(snug_engine_bytes(e), 107);
    snug_memory_row rows[4];
    assert_int_equal(snug_engine_memory(e, rows, 4), 2);
    assert_string_equal(rows[0].category, "graph");
    assert_string_equal(rows[0].owner, "");
    assert_int_equal(rows[0].bytes, 100);
    assert_string_equal(rows[1].category, "plan");
    sn_free(e, SN_MEM_GRAPH, a, 100);
    assert_int_equal(snug_engine_bytes(e), 7);
    assert_int_equal(snug_engine_peak_bytes(e), 107);
    assert_int_equal(snug_engine_memory(e, rows, 4), 2);
    assert_int_equal(rows[0].bytes, 0);
    assert_int_equal(rows[0].peak_bytes, 100);
    sn_free(e, SN_MEM_PLAN, b, 7);
    sn_free(e, SN_MEM_PLAN, NULL, 7);
}

static void test_zero_bytes_give_valid_unique_pointers(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    void *a = NULL, *b = NULL;
    expect_ok(sn_alloc(e, SN_MEM_OTHER, 0, &a, &err), &err);
    expect_ok(sn_alloc_zero(e, SN_MEM_OTHER, 0, &b, &err), &err);
    assert_true(a && b && a != b);
    assert_int_equal(snug_engine_bytes(e), 0);
    sn_free(e, SN_MEM_OTHER, a, 0);
    sn_free(e, SN_MEM_OTHER, b, 0);
}

static void test_alloc_zero_clears_memory_used_before(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    void *a;
    expect_ok(sn_alloc(e, SN_MEM_OTHER, 256, &a, &err), &err);
    memset(a, 0xab, 256);
    sn_free(e, SN_MEM_OTHER, a, 256);
    expect_ok(sn_alloc_zero(e, SN_MEM_OTHER, 256, &a, &err), &err);
    static const char zeros[256];
    assert_memory_equal(a, zeros, 256);
    sn_free(e, SN_MEM_OTHER, a, 256);
}

static void test_impossible_sizes_are_refused(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    int here;
    void *p = &here;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, (size_t)PTRDIFF_MAX + 1,
                                   (size_t)1 << 60};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        expect_status(sn_alloc(e, SN_MEM_OTHER, sizes[i], &p, &err), SNUG_E_MEMORY, &err);
        assert_ptr_equal(p, &here);
        sn_block b;
        const snug_status status = sn_block_init(e, SN_MEM_ARENA, "x", sizes[i], NULL, &b, &err);
        assert_true(status == SNUG_E_MEMORY || status == SNUG_E_OVERFLOW);
        sn_zone *z;
        expect_ok(sn_zone_create(e, SN_MEM_OTHER, &z, &err), &err);
        const snug_status in_zone = sn_zone_alloc(z, sizes[i], &p, &err);
        assert_true(in_zone == SNUG_E_MEMORY || in_zone == SNUG_E_OVERFLOW);
        sn_zone_destroy(z);
        assert_int_equal(snug_engine_bytes(e), 0);
    }
}

static void test_grow_doubles_and_keeps_the_contents(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    void *array = NULL;
    size_t cap = 0;
    for (size_t i = 0; i < 1000; i++) {
        const size_t before = cap;
        expect_ok(sn_grow(e, SN_MEM_GRAPH, &array, sizeof(uint32_t), &cap, i + 1, &err), &err);
        assert_true(cap == before || cap >= 2 * before);
        ((uint32_t *)array)[i] = (uint32_t)i;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(((uint32_t *)array)[i], i);
    assert_int_equal(snug_engine_bytes(e), cap * sizeof(uint32_t));
    expect_status(sn_grow(e, SN_MEM_GRAPH, &array, sizeof(uint32_t), &cap, SIZE_MAX / 2, &err),
                  SNUG_E_OVERFLOW, &err);
    assert_int_equal(((uint32_t *)array)[999], 999);
    sn_free(e, SN_MEM_GRAPH, array, cap * sizeof(uint32_t));
}

/* --- the budget ----------------------------------------------------------------------------- */

/* From small to large, within large, and back: contents stay, the ledger has the new size, and what
 * is moved in pages was never there twice. */
static void test_resize_keeps_the_contents_and_asks_for_the_difference(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const size_t sizes[] = {1000, 1 << 20, 5 << 20, 40 << 20, 3 << 20, 200 << 10, 100};
    size_t now = sizes[0];
    void *p, *neighbour;
    expect_ok(snug_take(e, now, &p, &err), &err);
    memset(p, 7, 100);
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
        expect_ok(snug_resize(e, now, sizes[i], &p, &err), &err);
        expect_ok(snug_take(e, 1 << 20, &neighbour, &err), &err); /* the list is whole */
        now = sizes[i];
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_int_equal(snug_engine_bytes(e), now + (1 << 20));
        for (size_t k = 0; k < 100; k++)
            assert_int_equal(((char *)p)[k], 7);
        ((char *)p)[now - 1] = now > 100 ? 1 : 7;
        snug_give(e, neighbour, 1 << 20);
    }
    assert_int_equal(snug_engine_peak_bytes(e), 41 << 20);
    snug_give(e, p, now);
    assert_int_equal(snug_engine_bytes(e), 0);
}

static void test_resize_that_is_refused_changes_nothing(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    void *p, *before;
    expect_ok(snug_take(e, 1 << 20, &p, &err), &err);
    before = p;
    memset(p, 3, 1 << 20);
    assert_int_equal(snug_resize(e, 1 << 20, SIZE_MAX / 2, &p, &err), SNUG_E_MEMORY);
    assert_int_equal(snug_resize(e, 1 << 20, SIZE_MAX, &p, &err), SNUG_E_MEMORY);
    assert_ptr_equal(p, before);
    assert_int_equal(((char *)p)[(1 << 20) - 1], 3);
    assert_int_equal(snug_engine_bytes(e), 1 << 20);
    snug_give(e, p, 1 << 20);
}

static void test_request_over_budget_changes_nothing(void **state) {
    (void)state;
    snug_engine *e = sn_test_engine(10000);
    snug_error err = {0};
    void *a, *b = NULL;
    expect_ok(sn_alloc(e, SN_MEM_WEIGHTS, 6000, &a, &err), &err);
    expect_status(sn_alloc(e, SN_MEM_GRAPH, 4001, &b, &err), SNUG_E_BUDGET, &err);
    assert_null(b);
    assert_int_equal(snug_engine_bytes(e), 6000);
    assert_int_equal(snug_engine_peak_bytes(e), 6000);
    snug_memory_row rows[4];
    assert_int_equal(snug_engine_memory(e, rows, 4), 1);
    expect_text(err.text, "asked 4001 bytes for graph, held 6000, budget 10000");
    expect_text(err.text, "largest holder: weights with 6000");
    expect_text(err.text, "at least 10001");
    expect_ok(sn_alloc(e, SN_MEM_GRAPH, 4000, &b, &err), &err);
    sn_free(e, SN_MEM_GRAPH, b, 4000);
    sn_free(e, SN_MEM_WEIGHTS, a, 6000);
    sn_test_engine_end(e);
}

static void test_block_over_budget_changes_nothing_and_names_the_largest(void **state) {
    (void)state;
    const size_t page = page_bytes();
    snug_engine *e = sn_test_engine(4 * page);
    snug_error err = {0};
    sn_block a, b = {0}, c = {0};
    expect_ok(sn_block_init(e, SN_MEM_WEIGHTS, "dense/kernel", 2 * page, NULL, &a, &err), &err);
    expect_ok(sn_block_init(e, SN_MEM_WEIGHTS, "dense/bias", 10, NULL, &b, &err), &err);
    expect_status(sn_block_init(e, SN_MEM_ARENA, "plan 1", page + 1, NULL, &c, &err), SNUG_E_BUDGET,
                  &err);
    assert_null(c.data);
    expect_text(err.text, "for arena plan 1");
    expect_text(err.text, "largest holder: weights dense/kernel");
    assert_int_equal(snug_engine_bytes(e), 3 * page);
    expect_ok(sn_block_init(e, SN_MEM_ARENA, "plan 1", page, NULL, &c, &err), &err);
    sn_block_clear(&a);
    sn_block_clear(&b);
    sn_block_clear(&c);
    sn_block_clear(&c);
    sn_test_engine_end(e);
}

static void test_sum_that_wraps_is_no_way_around_the_budget(void **state) {
    (void)state;
    snug_engine *e = sn_test_engine(10000);
    snug_error err = {0};
    void *a, *b = NULL;
    expect_ok(sn_alloc(e, SN_MEM_OTHER, 100, &a, &err), &err);
    expect_status(sn_alloc(e, SN_MEM_OTHER, SIZE_MAX - 50, &b, &err), SNUG_E_MEMORY, &err);
    assert_null(b);
    sn_free(e, SN_MEM_OTHER, a, 100);
    sn_test_engine_end(e);
}

/* --- rows ----------------------------------------------------------------------------------- */

static void test_rows_are_sums_then_owners_largest_first(void **state) {
    snug_engine *e = *state;
    const size_t page = page_bytes();
    snug_error err = {0};
    sn_block blocks[4];
    static const char *const owners[4] = {"small", "b", "a", "large"};
    static const size_t pages[4] = {1, 2, 2, 3};
    for (int i = 0; i < 4; i++)
        expect_ok(
            sn_block_init(e, SN_MEM_SLOTS, owners[i], pages[i] * page, NULL, &blocks[i], &err),
            &err);
    snug_memory_row rows[8];
    assert_int_equal(snug_engine_memory(e, rows, 8), 5);
    static const char *const want[5] = {"", "large", "a", "b", "small"};
    for (int i = 0; i < 5; i++)
        assert_string_equal(rows[i].owner, want[i]);
    assert_int_equal(rows[0].bytes, 8 * page);
    assert_int_equal(rows[1].peak_bytes, 3 * page);
    /* Fewer rows than there are: the count is whole, the rows are the first ones. */
    memset(rows, 0x7f, sizeof rows);
    assert_int_equal(snug_engine_memory(e, rows, 3), 5);
    for (int i = 0; i < 3; i++)
        assert_string_equal(rows[i].owner, want[i]);
    assert_int_equal(rows[3].bytes, 0x7f7f7f7f7f7f7f7f);
    assert_int_equal(snug_engine_memory(e, NULL, 0), 5);
    for (int i = 0; i < 4; i++)
        sn_block_clear(&blocks[(i + 2) % 4]);
}

/* --- zones ---------------------------------------------------------------------------------- */

static void test_zone_objects_are_zeroed_aligned_and_stay(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    sn_zone *z;
    expect_ok(sn_zone_create(e, SN_MEM_GRAPH, &z, &err), &err);
    assert_ptr_equal(sn_zone_engine(z), e);
    unsigned char *objects[500];
    static const unsigned char zeros[600];
    for (size_t i = 0; i < 500; i++) {
        void *p;
        expect_ok(sn_zone_alloc(z, i, &p, &err), &err);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_memory_equal(p, zeros, i);
        memset(p, (int)(i & 0xff), i);
        objects[i] = p;
        assert_true(i == 0 || objects[i] != objects[i - 1]);
    }
    for (size_t i = 0; i < 500; i++) {
        for (size_t k = 0; k < i; k++)
            assert_int_equal(objects[i][k], i & 0xff);
    }
    assert_int_equal(sn_zone_bytes(z), snug_engine_bytes(e));
    sn_zone_destroy(z);
    sn_zone_destroy(NULL);
}

static void test_zone_copies_text_and_takes_large_objects(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    sn_zone *z;
    expect_ok(sn_zone_create(e, SN_MEM_MODEL, &z, &err), &err);
    char text[] = "conv2d/kernel";
    const char *copy;
    expect_ok(sn_zone_text(z, text, &copy, &err), &err);
    text[0] = 'X';
    assert_string_equal(copy, "conv2d/kernel");
    void *large;
    expect_ok(sn_zone_alloc(z, 1000000, &large, &err), &err);
    memset(large, 1, 1000000);
    assert_string_equal(copy, "conv2d/kernel");
    sn_zone_destroy(z);
}

static void test_a_zone_that_is_reset_has_its_bytes_and_new_objects(void **state) {
    enum { MANY = 300, BYTES = 1000 };
    static const unsigned char zeros[BYTES];
    snug_engine *e = *state;
    snug_error err = {0};
    sn_zone *z;
    size_t bytes = 0;
    expect_ok(sn_zone_create(e, SN_MEM_PLAN, &z, &err), &err);
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < MANY; i++) {
            void *p;
            expect_ok(sn_zone_alloc(z, BYTES, &p, &err), &err);
            assert_memory_equal(p, zeros, BYTES);
            memset(p, 0xff, BYTES);
        }
        assert_int_equal(sn_zone_bytes(z), snug_engine_bytes(e));
        assert_true(turn < 2 || sn_zone_bytes(z) == bytes); /* no more than the second time */
        bytes = sn_zone_bytes(z);
        expect_ok(sn_zone_reset(z, &err), &err);
    }
    sn_zone_destroy(z);
    assert_int_equal(snug_engine_bytes(e), 0);
}

#ifdef SN_REDZONES
/* AddressSanitizer ends a child that steps over the end; without redzones there is nothing to see.
 * */
static void step_over_zone_object(void) {
    snug_engine *e;
    sn_zone *z;
    void *p;
    if (snug_engine_create(NULL, &e, NULL) || sn_zone_create(e, SN_MEM_OTHER, &z, NULL) ||
        sn_zone_alloc(z, 24, &p, NULL))
        _exit(9);
    ((volatile char *)p)[24] = 1;
    _exit(0);
}

static void free_with_other_size(void) {
    snug_engine *e;
    void *p;
    if (snug_engine_create(NULL, &e, NULL) || sn_alloc(e, SN_MEM_OTHER, 24, &p, NULL))
        _exit(9);
    sn_free(e, SN_MEM_OTHER, p, 20);
    _exit(0);
}

static int run_child(void (*f)(void)) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        assert_non_null(freopen("/dev/null", "w", stderr));
        signal(SIGABRT, SIG_DFL);
        f();
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_redzones_catch_steps_over_the_end_and_wrong_sizes(void **state) {
    (void)state;
    assert_int_not_equal(run_child(step_over_zone_object), 0);
    const int status = run_child(free_with_other_size);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
#endif

/* --- blocks --------------------------------------------------------------------------------- */

static void test_block_counts_whole_pages_and_holds_what_was_asked(void **state) {
    snug_engine *e = *state;
    const size_t page = page_bytes();
    snug_error err = {0};
    static const size_t sizes[] = {0, 1, 64, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int guard = 0; guard < 2; guard++) {
            sn_block b;
            const sn_block_options o = {.guard = guard, .populate = true};
            expect_ok(sn_block_init(e, SN_MEM_ARENA, "plan 1", sizes[i], &o, &b, &err), &err);
            assert_non_null(b.data);
            assert_int_equal((uintptr_t)b.data % 64, 0);
            assert_true(guard || (uintptr_t)b.data % page == 0);
            assert_int_equal(b.guarded, guard);
            assert_int_equal(b.bytes, sizes[i]);
            const size_t pages = (sizes[i] > 0 ? sizes[i] : 1) + page - 1;
            assert_int_equal(b.mapped_bytes, pages / page * page);
            assert_int_equal(snug_engine_bytes(e), b.mapped_bytes);
            memset(b.data, 0x5a, sizes[i]);
            sn_block_clear(&b);
            assert_null(b.data);
            assert_int_equal(snug_engine_bytes(e), 0);
        }
    }
}

/* Writes one byte at data + offset in a child; gives back the signal that ended it, 0 if none did.
 * */
static int signal_of_write(const sn_block *b, size_t offset) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka and sanitizers catch it */
        /* Through the kernel first: no sanitizer stands between. */
        ((volatile char *)b->data)[offset] = 1;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_write_past_a_guarded_block_dies(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    sn_block b;
    const sn_block_options o = {.guard = true};
    expect_ok(sn_block_init(e, SN_MEM_ARENA, "plan 1", 5 * 64, &o, &b, &err), &err);
    assert_int_equal(signal_of_write(&b, 5 * 64 - 1), 0);
    assert_int_equal(signal_of_write(&b, 5 * 64), SIGSEGV);
    sn_block_clear(&b);
}

static size_t resident_pages(const void *data, size_t bytes) {
    const size_t n = bytes / page_bytes();
    unsigned char *in_core = malloc(n);
    assert_non_null(in_core);
    assert_int_equal(mincore((void *)(uintptr_t)data, bytes, in_core), 0);
    size_t resident = 0;
    for (size_t i = 0; i < n; i++)
        resident += in_core[i] & 1u;
    free(in_core);
    return resident;
}

static void test_populated_block_is_resident_at_once(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const size_t bytes = (size_t)5 << 20;
    sn_block b;
    expect_ok(sn_block_init(e, SN_MEM_ARENA, "plan 1", bytes, NULL, &b, &err), &err);
    assert_int_equal(resident_pages(b.data, bytes), 0);
    sn_block_clear(&b);
    const sn_block_options o = {.populate = true};
    expect_ok(sn_block_init(e, SN_MEM_ARENA, "plan 1", bytes, &o, &b, &err), &err);
    assert_int_equal(resident_pages(b.data, bytes), bytes / page_bytes());
    sn_block_clear(&b);
}

static void test_block_beyond_the_machine_is_refused_not_killed(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    const sn_limits limits = sn_limits_read(&sn_io_system);
    if (limits.room_bytes > ((size_t)1 << 46))
        skip();
    sn_block b = {0};
    const sn_block_options o = {.populate = true};
    const size_t bytes = limits.room_bytes + ((size_t)4 << 30);
    expect_status(sn_block_init(e, SN_MEM_ARENA, "plan 1", bytes, &o, &b, &err), SNUG_E_MEMORY,
                  &err);
    expect_text(err.text, limits.name);
    assert_null(b.data);
    assert_int_equal(snug_engine_bytes(e), 0);
}

#ifndef __SANITIZE_ADDRESS__ /* whose shadow does not live within an address space limit */
static void test_block_beyond_the_resource_limit_is_refused(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    const struct rlimit small = {.rlim_cur = (rlim_t)1 << 30, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    sn_block b = {0};
    const snug_status status =
        sn_block_init(e, SN_MEM_ARENA, "plan 1", (size_t)2 << 30, NULL, &b, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    expect_status(status, SNUG_E_MEMORY, &err);
    assert_null(b.data);
}
#endif

/* --- the caller's allocator ----------------------------------------------------------------- */

enum { MOST_LIVE = 64 };

typedef struct {
    void *block[MOST_LIVE];
    size_t bytes[MOST_LIVE];
    size_t n_live, live_bytes, n_requests;
    size_t last_bytes, last_align;
    bool refuse;
} recorder;

static void *record_alloc(void *ctx, size_t bytes, size_t align) {
    recorder *r = ctx;
    void *p = NULL;
    if (r->refuse || r->n_live == MOST_LIVE || posix_memalign(&p, align, bytes) != 0)
        return NULL;
    r->block[r->n_live] = p;
    r->bytes[r->n_live++] = bytes;
    r->live_bytes += bytes;
    r->n_requests++;
    r->last_bytes = bytes;
    r->last_align = align;
    return p;
}

static void record_free(void *ctx, void *block, size_t bytes) {
    recorder *r = ctx;
    size_t i = 0;
    while (i < r->n_live && r->block[i] != block)
        i++;
    assert_true(i < r->n_live);
    assert_int_equal(r->bytes[i], bytes);
    r->live_bytes -= bytes;
    r->n_live--;
    r->block[i] = r->block[r->n_live];
    r->bytes[i] = r->bytes[r->n_live];
    free(block);
}

static void test_allocator_hook_sees_exact_sizes(void **state) {
    (void)state;
    recorder r = {.n_live = 0};
    const snug_allocator allocator = {&r, record_alloc, record_free};
    const snug_engine_options options = {.allocator = &allocator};
    snug_engine *e;
    snug_error err = {0};
    expect_ok(snug_engine_create(&options, &e, &err), &err);
    const size_t own = r.live_bytes;
    void *a, *nothing;
    expect_ok(sn_alloc(e, SN_MEM_OTHER, 100, &a, &err), &err);
    assert_int_equal(r.last_bytes, 100);
    assert_int_equal(r.last_align, 64);
    expect_ok(sn_alloc(e, SN_MEM_OTHER, 0, &nothing, &err), &err);
    sn_block b;
    const sn_block_options o = {.guard = true, .populate = true};
    expect_ok(sn_block_init(e, SN_MEM_ARENA, "plan 1", 5000, &o, &b, &err), &err);
    assert_int_equal(r.last_bytes, b.mapped_bytes);
    assert_int_equal(r.last_align, page_bytes());
    assert_false(b.guarded);
    memset(b.data, 1, 5000);
    sn_zone *z;
    expect_ok(sn_zone_create(e, SN_MEM_GRAPH, &z, &err), &err);
    assert_int_equal(r.live_bytes - own,
                     snug_engine_bytes(e) + 1); /* one byte stands for the empty request */
    sn_zone_destroy(z);
    sn_block_clear(&b);
    sn_free(e, SN_MEM_OTHER, nothing, 0);
    sn_free(e, SN_MEM_OTHER, a, 100);
    assert_int_equal(snug_engine_bytes(e), 0);
    snug_engine_destroy(e);
    assert_int_equal(r.n_live, 0);
}

static void test_allocator_that_refuses_is_an_ordinary_error(void **state) {
    (void)state;
    recorder r = {.refuse = true};
    const snug_allocator allocator = {&r, record_alloc, record_free};
    const snug_engine_options options = {.allocator = &allocator};
    snug_engine *e = NULL;
    snug_error err = {0};
    expect_status(snug_engine_create(&options, &e, &err), SNUG_E_MEMORY, &err);
    assert_null(e);
    r.refuse = false;
    expect_ok(snug_engine_create(&options, &e, &err), &err);
    r.refuse = true;
    void *p;
    expect_status(sn_alloc(e, SN_MEM_OTHER, 10, &p, &err), SNUG_E_MEMORY, &err);
    sn_block b;
    expect_status(sn_block_init(e, SN_MEM_ARENA, "x", 10, NULL, &b, &err), SNUG_E_MEMORY, &err);
    assert_int_equal(snug_engine_bytes(e), 0);
    snug_engine_destroy(e);
    assert_int_equal(r.n_live, 0);
}

/* --- engines -------------------------------------------------------------------------------- */

static void test_threads_default_to_the_cores_this_process_may_use(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++) {
        if (CPU_ISSET(c, &all))
            CPU_SET(c, &one);
    }
    snug_engine *e;
    snug_error err = {0};
    expect_ok(snug_engine_create(NULL, &e, &err), &err);
    assert_int_equal(snug_engine_threads(e), CPU_COUNT(&all));
    snug_engine_destroy(e);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const snug_status status = snug_engine_create(NULL, &e, &err);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    expect_ok(status, &err);
    assert_int_equal(snug_engine_threads(e), 1);
    snug_engine_destroy(e);
    snug_engine_destroy(NULL);
}

static void test_incomplete_options_are_refused(void **state) {
    (void)state;
    snug_engine *e = NULL;
    snug_error err = {0};
    const snug_allocator allocator = {NULL, record_alloc, NULL};
    snug_io io = sn_io_system;
    io.rename = NULL;
    expect_status(snug_engine_create(&(snug_engine_options){.allocator = &allocator}, &e, &err),
                  SNUG_E_INVALID, &err);
    expect_status(snug_engine_create(&(snug_engine_options){.io = &io}, &e, &err), SNUG_E_INVALID,
                  &err);
    expect_status(snug_engine_create(&(snug_engine_options){.n_threads = -1}, &e, &err),
                  SNUG_E_INVALID, &err);
    assert_null(e);
}

/* --- faults --------------------------------------------------------------------------------- */

static void test_fault_strikes_the_nth_request_once_or_for_good(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    for (int good = 0; good < 2; good++) {
        sn_fault_memory(e, 2, good);
        assert_false(sn_fault_fired(e));
        for (int i = 0; i < 5; i++) {
            void *p = NULL;
            const bool fails = i == 2 || (good && i > 2);
            expect_status(sn_alloc(e, SN_MEM_OTHER, 8, &p, &err), fails ? SNUG_E_MEMORY : SNUG_OK,
                          &err);
            assert_int_equal(sn_fault_fired(e), i >= 2);
            sn_free(e, SN_MEM_OTHER, p, 8);
        }
        assert_int_equal(sn_fault_memory_requests(e), 5);
        sn_fault_memory(e, -1, false);
        assert_true(sn_fault_fired(e));
    }
}

static void test_io_fault_never_leaks_a_descriptor(void **state) {
    snug_engine *e = *state;
    const snug_io *io = sn_engine_io(e);
    const int fd = io->open(io->ctx, "/proc/self/status", 0, 0);
    assert_true(fd >= 0);
    char c[8];
    sn_fault_io(e, 0, SN_FAULT_SHORT, false);
    assert_int_equal(io->pread(io->ctx, fd, c, 8, 0), 4);
    assert_int_equal(io->pread(io->ctx, fd, c, 8, 0), 8);
    sn_fault_io(e, 0, SN_FAULT_EIO, true);
    assert_int_equal(io->pread(io->ctx, fd, c, 8, 0), -EIO);
    assert_int_equal(io->close(io->ctx, fd), -EIO);
    sn_fault_io(e, -1, SN_FAULT_EIO, false);
    assert_int_equal(io->pread(io->ctx, fd, c, 8, 0), -EBADF);
    assert_int_equal(sn_fault_io_requests(e), 1);
}

/* One of each kind of request. */
static snug_status one_of_each(snug_engine *e, void *ctx, snug_error *err) {
    (void)ctx;
    void *array = NULL, *object;
    size_t cap = 0;
    sn_zone *z = NULL;
    sn_block b = {0};
    const sn_block_options o = {.guard = true, .populate = true};
    snug_status status = sn_grow(e, SN_MEM_PLAN, &array, 16, &cap, 5, err);
    if (status == SNUG_OK)
        status = sn_grow(e, SN_MEM_PLAN, &array, 16, &cap, 50, err);
    if (status == SNUG_OK)
        status = sn_zone_create(e, SN_MEM_GRAPH, &z, err);
    if (status == SNUG_OK)
        status = sn_zone_alloc(z, 5000, &object, err);
    if (status == SNUG_OK)
        status = sn_block_init(e, SN_MEM_ARENA, "plan 1", 10000, &o, &b, err);
    sn_block_clear(&b);
    sn_zone_destroy(z);
    sn_free(e, SN_MEM_PLAN, array, cap * 16);
    return status;
}

static void test_room_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(one_of_each, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_alloc_is_aligned_and_counted_by_category),
        engine_test(test_zero_bytes_give_valid_unique_pointers),
        engine_test(test_alloc_zero_clears_memory_used_before),
        engine_test(test_impossible_sizes_are_refused),
        engine_test(test_grow_doubles_and_keeps_the_contents),
        engine_test(test_resize_keeps_the_contents_and_asks_for_the_difference),
        engine_test(test_resize_that_is_refused_changes_nothing),
        cmocka_unit_test(test_request_over_budget_changes_nothing),
        cmocka_unit_test(test_block_over_budget_changes_nothing_and_names_the_largest),
        cmocka_unit_test(test_sum_that_wraps_is_no_way_around_the_budget),
        engine_test(test_rows_are_sums_then_owners_largest_first),
        engine_test(test_zone_objects_are_zeroed_aligned_and_stay),
        engine_test(test_zone_copies_text_and_takes_large_objects),
        engine_test(test_a_zone_that_is_reset_has_its_bytes_and_new_objects),
#ifdef SN_REDZONES
        cmocka_unit_test(test_redzones_catch_steps_over_the_end_and_wrong_sizes),
#endif
        engine_test(test_block_counts_whole_pages_and_holds_what_was_asked),
        engine_test(test_write_past_a_guarded_block_dies),
        engine_test(test_populated_block_is_resident_at_once),
        engine_test(test_block_beyond_the_machine_is_refused_not_killed),
#ifndef __SANITIZE_ADDRESS__
        engine_test(test_block_beyond_the_resource_limit_is_refused),
#endif
        cmocka_unit_test(test_allocator_hook_sees_exact_sizes),
        cmocka_unit_test(test_allocator_that_refuses_is_an_ordinary_error),
        cmocka_unit_test(test_threads_default_to_the_cores_this_process_may_use),
        cmocka_unit_test(test_incomplete_options_are_refused),
        engine_test(test_fault_strikes_the_nth_request_once_or_for_good),
        engine_test(test_io_fault_never_leaks_a_descriptor),
        cmocka_unit_test(test_room_survives_any_failed_request),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
