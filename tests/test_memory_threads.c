/* test_memory_threads.c: one engine, several threads: no byte is lost or counted twice. */
#include "support/support.h"

#include "memory/engine.h"
#include "memory/idle.h"
#include "memory/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_THREADS = 4, N_ROUNDS = 400 };

static const size_t budget_bytes = (size_t)1 << 20;

typedef struct {
    snug_engine *engine;
    uint32_t seed;
    atomic_int *wrong; /* what the main thread asserts: cmocka's jumps are not for others */
} user;

static uint32_t draw(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void check(user *u, bool right) {
    if (!right)
        atomic_fetch_add(u->wrong, 1);
}

/* Small ones, mapped ones and ones that the budget refuses. */
static void take_and_give(user *u) {
    void *p;
    const size_t sizes[] = {64, 3000, 140000, 400000};
    const size_t n = sizes[draw(&u->seed) % 4];
    if (sn_alloc(u->engine, SN_MEM_INPUT, n, &p, NULL) == SNUG_OK) {
        memset(p, (int)(u->seed & 0xff), n);
        check(u, ((unsigned char *)p)[n - 1] == (u->seed & 0xff));
        sn_free(u->engine, SN_MEM_INPUT, p, n);
    }
}

static void *use_engine(void *ctx) {
    user *u = ctx;
    for (int i = 0; i < N_ROUNDS; i++) {
        sn_block b = {0};
        snug_memory_row rows[16];
        take_and_give(u);
        if (sn_claim(u->engine, SN_MEM_KERNELS, 100, NULL) == SNUG_OK)
            sn_unclaim(u->engine, SN_MEM_KERNELS, 100);
        if (i % 8 == 0 &&
            sn_block_init(u->engine, SN_MEM_PLAN, "a block", 5000, NULL, &b, NULL) == SNUG_OK)
            sn_block_clear(&b);
        if (i % 16 == 0)
            (void)snug_engine_memory(u->engine, rows, 16);
        check(u, snug_engine_bytes(u->engine) <= budget_bytes);
    }
    return NULL;
}

static void run_users(snug_engine *e, void *(*work)(void *), user *users) {
    pthread_t threads[N_THREADS];
    atomic_int wrong = 0;
    for (uint32_t i = 0; i < N_THREADS; i++) {
        users[i] = (user){.engine = e, .seed = i + 1, .wrong = &wrong};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &users[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
}

static void test_threads_share_the_ledger_and_its_budget(void **state) {
    (void)state;
    snug_engine *e;
    snug_error err;
    user users[N_THREADS];
    expect_ok(snug_engine_create(&(snug_engine_options){.budget_bytes = budget_bytes}, &e, &err),
              &err);
    void *kept;
    expect_ok(sn_alloc(e, SN_MEM_WEIGHTS, budget_bytes / 2, &kept, &err), &err);
    run_users(e, use_engine, users);
    assert_int_equal(snug_engine_bytes(e), budget_bytes / 2);
    assert_true(snug_engine_peak_bytes(e) <= budget_bytes);
    snug_memory_row rows[16];
    const size_t n = snug_engine_memory(e, rows, 16);
    for (size_t i = 0; i < n; i++)
        assert_true(rows[i].bytes == (strcmp(rows[i].category, "weights") ? 0 : budget_bytes / 2));
    sn_free(e, SN_MEM_WEIGHTS, kept, budget_bytes / 2);
    snug_engine_destroy(e);
}

/* A refused request must leave no trace while others book and release. */
static void *ask_too_much(void *ctx) {
    user *u = ctx;
    void *p;
    for (int i = 0; i < N_ROUNDS; i++) {
        check(u, sn_alloc(u->engine, SN_MEM_GRAPH, budget_bytes + 1, &p, NULL) == SNUG_E_BUDGET);
        take_and_give(u);
    }
    return NULL;
}

static void test_refused_requests_of_threads_change_no_peak(void **state) {
    (void)state;
    snug_engine *e;
    snug_error err;
    user users[N_THREADS];
    expect_ok(snug_engine_create(&(snug_engine_options){.budget_bytes = budget_bytes}, &e, &err),
              &err);
    run_users(e, ask_too_much, users);
    snug_memory_row rows[16];
    assert_int_equal(snug_engine_memory(e, rows, 16), 1);
    assert_string_equal(rows[0].category, "input");
    assert_int_equal(snug_engine_bytes(e), 0);
    snug_engine_destroy(e);
}

/* An allocator that is not safe for threads by itself: the engine asks it from one at a time. */
static void *plain_alloc(void *ctx, size_t bytes, size_t align) {
    void *p = NULL;
    ++*(int64_t *)ctx;
    return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}

static void plain_free(void *ctx, void *block, size_t bytes) {
    (void)bytes;
    --*(int64_t *)ctx;
    free(block);
}

static void *only_take(void *ctx) {
    for (int i = 0; i < N_ROUNDS; i++)
        take_and_give(ctx);
    return NULL;
}

static void test_a_callers_allocator_is_asked_by_one_thread_at_a_time(void **state) {
    (void)state;
    int64_t n_live = 0;
    const snug_allocator a = {&n_live, plain_alloc, plain_free};
    snug_engine *e;
    snug_error err;
    user users[N_THREADS];
    expect_ok(snug_engine_create(&(snug_engine_options){.allocator = &a}, &e, &err), &err);
    run_users(e, only_take, users);
    snug_engine_destroy(e);
    assert_int_equal(n_live, 0);
}

static void *hold_and_drop(void *ctx) {
    user *u = ctx;
    for (int i = 0; i < 20; i++) {
        sn_team *t;
        if (sn_team_hold(u->engine, &t, NULL) == SNUG_OK) {
            check(u, sn_team_of(u->engine) == t);
            sn_team_drop(u->engine);
        }
    }
    return NULL;
}

static void test_threads_share_the_engines_team(void **state) {
    (void)state;
    snug_engine *e;
    snug_error err;
    user users[N_THREADS];
    expect_ok(snug_engine_create(&(snug_engine_options){.n_threads = 2}, &e, &err), &err);
    run_users(e, hold_and_drop, users);
    assert_int_equal(snug_engine_bytes(e), 0);
    snug_engine_destroy(e);
}

/* --- idle memory ------------------------------------------------------------------------------ */
/* Memory that another thread begins to use while it is given. */
typedef struct {
    sn_idle idle; /* first member */
    snug_engine *engine;
    pthread_t user;
    atomic_bool begun, used;
    bool used_while_given;
} wanted;

static void *use(void *ctx) {
    wanted *w = ctx;
    atomic_store(&w->begun, true);
    sn_idle_use(w->engine, &w->idle, 1);
    atomic_store(&w->used, true);
    return NULL;
}

static size_t one_byte(const sn_idle *i) {
    (void)i;
    return 1;
}

static void give_slowly(sn_idle *i) {
    wanted *w = (wanted *)i;
    assert_int_equal(pthread_create(&w->user, NULL, use, w), 0);
    while (!atomic_load(&w->begun))
        sched_yield();
    nanosleep(&(struct timespec){0, 5000000}, NULL); /* who does not wait is done by then */
    w->used_while_given = atomic_load(&w->used);
}

static void test_nobody_uses_what_is_being_given(void **state) {
    (void)state;
    snug_error err;
    wanted w = {.idle = {.bytes = one_byte, .give = give_slowly}};
    expect_ok(snug_engine_create(NULL, &w.engine, &err), &err);
    sn_idle_join(w.engine, &w.idle);
    assert_true(sn_idle_give(w.engine, NULL));
    assert_int_equal(pthread_join(w.user, NULL), 0);
    assert_true(w.used && !w.used_while_given);
    sn_idle_use(w.engine, &w.idle, -1);
    assert_int_equal(sn_idle_bytes(w.engine, NULL), 1); /* this thread's again */
    sn_idle_leave(w.engine, &w.idle);
    snug_engine_destroy(w.engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_share_the_ledger_and_its_budget),
        cmocka_unit_test(test_refused_requests_of_threads_change_no_peak),
        cmocka_unit_test(test_a_callers_allocator_is_asked_by_one_thread_at_a_time),
        cmocka_unit_test(test_threads_share_the_engines_team),
        cmocka_unit_test(test_nobody_uses_what_is_being_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
