/* test_team.c: every item of a loop once, whoever is there to do it. */
#include "support/support.h"

#include "memory/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1000 };

typedef struct {
    sn_team *team;
    atomic_int done[MOST]; /* how often each item was done */
    atomic_long sum;
} job;

static sn_team *team_of(snug_engine *e, int n_threads) {
    sn_team *t;
    snug_error err;
    expect_ok(sn_team_create(e, n_threads, &t, &err), &err);
    return t;
}

static void count_items(const void *ctx, int64_t first, int64_t end) {
    job *j = (job *)(uintptr_t)ctx;
    for (int64_t i = first; i < end; i++)
        atomic_fetch_add(&j->done[i], 1);
}

static void expect_each_once(const job *j, int64_t n) {
    for (int64_t i = 0; i < MOST; i++)
        if (j->done[i] != (i < n))
            fail_msg("item %lld of %lld was done %d times", (long long)i, (long long)n, j->done[i]);
}

static void test_every_item_is_done_once(void **state) {
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 12, 13, 64, 999, MOST};
    for (int n_threads = 0; n_threads <= 5; n_threads++) {
        sn_team *t = team_of(*state, n_threads);
        assert_int_equal(t == NULL, n_threads < 2);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            job j = {.team = t};
            sn_team_run(t, counts[k], count_items, &j);
            expect_each_once(&j, counts[k]);
        }
        sn_team_destroy(t);
    }
}

/* Plain memory, written by whoever takes the item: the caller must see all of it. */
static void fill_numbers(const void *ctx, int64_t first, int64_t end) {
    int64_t *numbers = (int64_t *)(uintptr_t)ctx;
    for (int64_t i = first; i < end; i++)
        numbers[i] += i;
}

static void test_bytes_are_copied_to_the_last(void **state) {
    static const size_t sizes[] = {0, 1, 4096, (1 << 18) - 1, 1 << 18, (1 << 20) + 4095};
    static unsigned char from[(1 << 20) + 4096], to[sizeof from];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7 % 251 + 1);
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        sn_team *t = team_of(*state, n_threads);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            memset(to, 0, sizeof to);
            sn_team_copy(t, to, from, sizes[k]);
            assert_memory_equal(to, from, sizes[k]);
            assert_int_equal(to[sizes[k]], 0);
        }
        sn_team_destroy(t);
    }
}

static void test_the_caller_sees_what_was_written(void **state) {
    int64_t numbers[MOST] = {0};
    sn_team *t = team_of(*state, 3);
    for (int round = 0; round < 50; round++)
        sn_team_run(t, MOST, fill_numbers, numbers);
    for (int64_t i = 0; i < MOST; i++)
        assert_int_equal(numbers[i], 50 * i);
    sn_team_destroy(t);
}

/* The last items cost most; one of them lets workers and caller fall asleep. */
static void uneven_items(const void *ctx, int64_t first, int64_t end) {
    job *j = (job *)(uintptr_t)ctx;
    for (int64_t i = first; i < end; i++) {
        if (i == 0 || i == 39)
            usleep(2000);
        for (volatile int64_t k = 0; k < i * 50; k++) {
        }
        atomic_fetch_add(&j->done[i], 1);
    }
}

static void test_uneven_items_are_all_waited_for(void **state) {
    sn_team *t = team_of(*state, 3);
    for (int round = 0; round < 20; round++) {
        job j = {.team = t};
        sn_team_run(t, 40, uneven_items, &j);
        expect_each_once(&j, 40);
    }
    sn_team_destroy(t);
}

static void run_inside(const void *ctx, int64_t first, int64_t end) {
    job *j = (job *)(uintptr_t)ctx;
    for (int64_t i = first; i < end; i++) {
        job inner = {.team = j->team};
        sn_team_run(j->team, 20, count_items, &inner);
        expect_each_once(&inner, 20);
        atomic_fetch_add(&j->done[i], 1);
    }
}

static void test_a_loop_inside_a_loop_is_done_by_its_caller(void **state) {
    job j = {.team = team_of(*state, 3)};
    sn_team_run(j.team, 30, run_inside, &j);
    expect_each_once(&j, 30);
    sn_team_destroy(j.team);
}

static void add_items(const void *ctx, int64_t first, int64_t end) {
    job *j = (job *)(uintptr_t)ctx;
    for (int64_t i = first; i < end; i++)
        atomic_fetch_add(&j->sum, (long)i);
}

static void *run_many(void *ctx) {
    sn_team *t = ctx;
    job *j = calloc(1, sizeof *j);
    for (int i = 0; i < 2000; i++)
        sn_team_run(t, 8, add_items, j);
    return j;
}

static void test_two_threads_may_use_one_team(void **state) {
    sn_team *t = team_of(*state, 3);
    pthread_t other;
    void *theirs;
    assert_int_equal(pthread_create(&other, NULL, run_many, t), 0);
    job *mine = run_many(t);
    assert_int_equal(pthread_join(other, &theirs), 0);
    assert_int_equal(mine->sum, 2000 * 28);
    assert_int_equal(((job *)theirs)->sum, 2000 * 28);
    free(mine);
    free(theirs);
    sn_team_destroy(t);
}

static void test_ten_thousand_small_loops(void **state) {
    sn_team *t = team_of(*state, 3);
    job j = {.team = t};
    for (int i = 0; i < 10000; i++) {
        sn_team_run(t, 2 + i % 7, add_items, &j);
        if (i % 1000 == 0)
            usleep(200); /* longer than anyone spins: the next loop finds sleepers */
    }
    long want = 0;
    for (int i = 0; i < 10000; i++)
        want += (2 + i % 7) * (1 + i % 7) / 2;
    assert_int_equal(j.sum, want);
    sn_team_destroy(t);
}

static void test_a_team_without_work_ends(void **state) {
    for (int i = 0; i < 50; i++)
        sn_team_destroy(team_of(*state, 2 + i % 3));
    sn_team *t = team_of(*state, 3);
    usleep(2000); /* asleep by now */
    sn_team_destroy(t);
    sn_team_destroy(NULL);
}

static void test_stacks_are_on_the_ledger(void **state) {
    snug_engine *e = *state;
    snug_memory_row rows[16];
    sn_team *t = team_of(e, 4);
    const size_t n = snug_engine_memory(e, rows, 16);
    int stacks = 0;
    for (size_t i = 0; i < n && i < 16; i++)
        stacks += strncmp(rows[i].owner, "thread ", 7) == 0;
    assert_int_equal(stacks, 3);
    sn_team_destroy(t);
    assert_int_equal(snug_engine_bytes(e), 0);
}

static void test_the_child_of_a_fork_works_alone(void **state) {
    sn_team *t = team_of(*state, 3);
    job j = {.team = t};
    sn_team_run(t, 40, count_items, &j);
    const pid_t child = fork();
    if (child == 0) {
        job mine = {.team = t};
        sn_team_run(t, 40, count_items, &mine);
        int wrong = 0;
        for (int i = 0; i < 40; i++)
            wrong |= mine.done[i] != 1;
        sn_team_destroy(t);
        _exit(wrong || snug_engine_bytes(*state) != 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    job after = {.team = t};
    sn_team_run(t, 40, count_items, &after);
    expect_each_once(&after, 40);
    sn_team_destroy(t);
}

static void test_the_engines_team_lives_while_it_is_held(void **state) {
    (void)state;
    snug_engine *e;
    snug_error err;
    sn_team *one, *two;
    expect_ok(snug_engine_create(&(snug_engine_options){.n_threads = 2}, &e, &err), &err);
    assert_null(sn_team_of(e));
    expect_ok(sn_team_hold(e, &one, &err), &err);
    expect_ok(sn_team_hold(e, &two, &err), &err);
    assert_non_null(one);
    assert_ptr_equal(one, two);
    sn_team_drop(e);
    assert_ptr_equal(sn_team_of(e), one);
    sn_team_drop(e);
    assert_null(sn_team_of(e));
    sn_test_engine_end(e);
}

static snug_status make_and_end(snug_engine *e, void *ctx, snug_error *err) {
    (void)ctx;
    sn_team *t;
    const snug_status status = sn_team_create(e, 4, &t, err);
    if (status == SNUG_OK)
        sn_team_destroy(t);
    return status;
}

static void test_creation_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(make_and_end, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_item_is_done_once, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_bytes_are_copied_to_the_last, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_the_caller_sees_what_was_written, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_uneven_items_are_all_waited_for, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_a_loop_inside_a_loop_is_done_by_its_caller,
                                        sn_engine_setup, sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_two_threads_may_use_one_team, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_ten_thousand_small_loops, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_a_team_without_work_ends, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_stacks_are_on_the_ledger, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test_setup_teardown(test_the_child_of_a_fork_works_alone, sn_engine_setup,
                                        sn_engine_teardown),
        cmocka_unit_test(test_the_engines_team_lives_while_it_is_held),
        cmocka_unit_test(test_creation_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
