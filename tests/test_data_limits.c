/* test_data_limits.c: pipelines within their bytes: buffers follow the limit, a shuffle larger than
 * the memory there is gives its order in a small cgroup; and sources that block. */
#include "support/cgroup.h"
#include "support/streams.h"

#include "base/status.h"
#include "base/file.h"
#include "memory/pool.h"
#include "memory/process.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TRY(call) expect_ok(call, &err)
#define MIB       ((size_t)1 << 20)
#define KIB       ((size_t)1 << 10)

/* --- elements of some KiB, numbered ----------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    int64_t n, words;
    int64_t says; /* how many there are; 0: nothing */
    sem_t *gate;  /* each element waits for it; NULL: none does */
} source;

typedef struct {
    const source *of;
    int64_t at;
} reader;

static snug_status open_source(void *ctx, void **cursor, snug_error *err) {
    (void)err;
    reader *r = malloc(sizeof *r);
    *r = (reader){ctx, 0};
    *cursor = r;
    return SNUG_OK;
}

static snug_status next_wide(void *cursor, snug_element *out, snug_error *err) {
    reader *r = cursor;
    const int64_t i = r->at;
    if (i >= r->of->n)
        return SNUG_E_END;
    if (r->of->gate)
        sem_wait(r->of->gate);
    const snug_type type = {SNUG_I64, 1, {r->of->words}};
    const snug_status status = snug_datum_create(r->of->engine, &type, &out->part[0], err);
    if (status != SNUG_OK)
        return status;
    for (int64_t k = 0; k < r->of->words; k++)
        ((int64_t *)out->part[0].data)[k] = i;
    out->n = 1;
    r->at++;
    return SNUG_OK;
}

static snug_dataset *wide(const source *s) {
    snug_error err = {0};
    snug_dataset *d;
    const snug_generator g = {.ctx = (void *)(uintptr_t)s,
                              .spec = {.n = 1, .type = {{SNUG_I64, 1, {s->words}}}},
                              .cardinality = s->says > 0 ? s->says : SNUG_UNKNOWN,
                              .open = open_source,
                              .next = next_wide,
                              .close = free};
    TRY(snug_dataset_from_generator(s->engine, &g, &d, &err));
    return d;
}

static snug_status same(void *ctx, void *worker, const snug_element *in, snug_element *out,
                        snug_error *err) {
    (void)worker;
    SNUG_TRY(snug_datum_create(ctx, &in->part[0].type, &out->part[0], err));
    memcpy(out->part[0].data, in->part[0].data, in->part[0].bytes);
    out->n = 1;
    return SNUG_OK;
}

/* --- buffers ---------------------------------------------------------------------------------- */
/* The most that pipelines took, over all elements of a map and a prefetch behind it. */
static size_t most_taken(snug_engine *e, size_t limit) {
    snug_error err = {0};
    const source s = {.engine = e, .n = 60, .words = 8 * 1024}; /* 64 KiB each */
    snug_dataset *d = wide(&s);
    snug_iterator *it;
    snug_element out;
    size_t most = 0;
    int64_t n = 0;
    snug_pipeline_limit(e, limit);
    TRY(snug_dataset_map(d, &(snug_mapper){.ctx = e, .call = same},
                         &(snug_map_options){.workers = 4}, &d, &err));
    TRY(snug_dataset_prefetch(d, 32, &d, &err));
    TRY(snug_iterator_create(d, &it, &err));
    while (snug_iterator_next(it, &out, &err) == SNUG_OK) {
        assert_int_equal(*(int64_t *)out.part[0].data, n++);
        const size_t taken = sn_pool_taken(e);
        most = taken > most ? taken : most;
        snug_element_drop(&out);
    }
    assert_int_equal(n, 60);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    snug_pipeline_limit(e, 0);
    return most;
}

static void test_buffers_follow_the_limit(void **state) {
    snug_engine *e = *state;
    /* Beyond what the limit leaves to buffers: what is at work, four elements and their results. */
    assert_true(most_taken(e, 512 * KIB) <= 512 * KIB + 8 * 66 * KIB);
    (void)most_taken(e, 1); /* one at a time, but it goes on */
    (void)most_taken(e, 0);
}

/* Batches of 64 elements of 4 KiB to the end, all kept: what was taken at once. */
static size_t most_of_batches(snug_engine *e, int64_t says, int64_t size) {
    snug_error err = {0};
    const source s = {.engine = e, .n = 64, .words = 512, .says = says};
    snug_dataset *d = wide(&s);
    snug_iterator *it;
    snug_element all[8];
    snug_status status;
    int64_t n = 0;
    int n_all = 0;
    TRY(snug_dataset_batch(d, size, 0, &d, &err));
    TRY(snug_iterator_create(d, &it, &err));
    while ((status = snug_iterator_next(it, &all[n_all], &err)) == SNUG_OK) {
        const snug_datum *p = &all[n_all++].part[0];
        for (int64_t i = 0; i < p->type.dims[0]; i++)
            assert_int_equal(((int64_t *)p->data)[512 * i + 511], n++);
        assert_true(p->type.dims[0] == size || n == 64);
    }
    expect_status(status, SNUG_E_END, &err);
    assert_int_equal(n, 64);
    const size_t most = sn_pool_peak(e);
    while (n_all > 0)
        snug_element_drop(&all[--n_all]);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    return most;
}

/* To find the end takes no batch more, be the last one whole, cut or the only one; and who says too
 * few or too many of his elements loses none. */
static void test_the_end_takes_no_batch(void **state) {
    snug_engine *e = *state;
    const size_t row = 4 * KIB;
    assert_in_range(most_of_batches(e, 64, 32), 64 * row, 67 * row);
    assert_in_range(most_of_batches(e, 64, 36), 72 * row, 75 * row);
    assert_in_range(most_of_batches(e, 64, 64), 64 * row, 67 * row);
    assert_in_range(most_of_batches(e, 64, 100), 64 * row, 67 * row);
    assert_in_range(most_of_batches(e, 64, 1 << 20), 64 * row, 67 * row);
    (void)most_of_batches(e, 10, 36);
    (void)most_of_batches(e, 1, 100);
    (void)most_of_batches(e, 200, 36);
    (void)most_of_batches(e, 0, 36);
}

/* --- larger than memory ----------------------------------------------------------------------- */
enum { ROWS = 6000, WORDS = 1024 }; /* 48 MiB */

typedef struct {
    int64_t order[ROWS];
    int64_t n;
} result;

typedef struct {
    const char *folder;
    result *to; /* shared with the child */
} shuffled_run;

static int run_shuffled(void *ctx) {
    const shuffled_run *run = ctx;
    snug_engine *e;
    snug_error err = {0};
    if (snug_engine_create(&(snug_engine_options){.n_threads = 2}, &e, &err) != SNUG_OK)
        return 1;
    const source s = {.engine = e, .n = ROWS, .words = WORDS};
    snug_dataset *d = wide(&s);
    snug_iterator *it;
    snug_element out;
    snug_status status = snug_dataset_shuffle(
        d, &(snug_shuffle){.buffer = 5000, .seed = 9, .spill_folder = run->folder}, &d, &err);
    snug_pipeline_limit(e, 4 * MIB);
    if (status == SNUG_OK)
        status = snug_dataset_prefetch(d, 2, &d, &err);
    if (status == SNUG_OK)
        status = snug_iterator_create(d, &it, &err);
    if (status != SNUG_OK)
        return 2;
    while ((status = snug_iterator_next(it, &out, &err)) == SNUG_OK) {
        const int64_t *values = out.part[0].data;
        run->to->order[run->to->n++] = values[0] == values[WORDS - 1] ? values[0] : -1;
        snug_element_drop(&out);
    }
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    snug_engine_destroy(e);
    return status == SNUG_E_END ? 0 : 3;
}

static void test_a_shuffle_larger_than_memory_keeps_its_order(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
#ifdef SN_REDZONES
    skip(); /* a sanitizer's own memory would be what is limited */
#endif
    char folder[] = "/var/tmp/snug-shuffle-XXXXXX";
    result *to = mmap(NULL, sizeof *to, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_non_null(mkdtemp(folder));
    shuffled_run run = {folder, to};
    sn_cgroup_result r;
    const char *why = sn_cgroup_run(NULL, 24 * MIB, run_shuffled, &run, &r);
    rmdir(folder);
    if (why) {
        munmap(to, sizeof *to);
        print_message("%s\n", why);
        skip();
    }
    assert_false(r.killed);
    assert_int_equal(r.exit_code, 0);
    assert_int_equal(to->n, ROWS);
    snug_dataset *d = sn_range_of(e, ROWS); /* by index, all in memory */
    snug_iterator *it;
    snug_element out;
    TRY(snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 5000, .seed = 9}, &d, &err));
    TRY(snug_iterator_create(d, &it, &err));
    for (int64_t i = 0; i < ROWS; i++) {
        TRY(snug_iterator_next(it, &out, &err));
        assert_int_equal(to->order[i], *(int64_t *)out.part[0].data);
        snug_element_drop(&out);
    }
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    munmap(to, sizeof *to);
}

/* --- a budget of the process ------------------------------------------------------------------ */
typedef struct {
    snug_engine *engine;
    size_t bytes; /* that a call takes for its work */
} greedy;

static snug_status take_much(void *ctx, void *worker, const snug_element *in, snug_element *out,
                             snug_error *err) {
    const greedy *g = ctx;
    const snug_type type = {SNUG_U8, 1, {(int64_t)g->bytes}};
    snug_datum work;
    (void)worker;
    SNUG_TRY(snug_datum_create(g->engine, &type, &work, err));
    memset(work.data, 1, work.bytes);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    snug_datum_drop(&work);
    out->part[0] = in->part[0];
    snug_datum_hold(&in->part[0]);
    out->n = 1;
    return SNUG_OK;
}

static size_t counted(void) {
    sn_process p;
    sn_process_read(&sn_io_system, &p);
    return sn_process_counted(&p);
}

static snug_dataset *greedy_map(greedy *g, int64_t n) {
    snug_error err = {0};
    snug_dataset *d = sn_range_of(g->engine, n);
    TRY(snug_dataset_map(d, &(snug_mapper){.ctx = g, .call = take_much},
                         &(snug_map_options){.workers = 4}, &d, &err));
    TRY(snug_dataset_prefetch(d, 4, &d, &err));
    return d;
}

/* Four workers of 24 MiB each in 40 MiB: those for whom there is nothing come later, all come. */
static void test_calls_that_do_not_fit_together_come_one_after_another(void **state) {
    greedy g = {*state, 24 * MIB};
    snug_error err = {0};
    snug_iterator *it;
    snug_element out;
    snug_dataset *d = greedy_map(&g, 40);
    TRY(snug_budget(g.engine, counted() + 40 * MIB, &err));
    TRY(snug_iterator_create(d, &it, &err));
    for (int64_t i = 0; i < 40; i++) {
        TRY(snug_iterator_next(it, &out, &err));
        assert_int_equal(*(int64_t *)out.part[0].data, i);
        snug_element_drop(&out);
    }
    snug_iterator_destroy(it);
    TRY(snug_budget(g.engine, 0, &err));
    snug_dataset_drop(d);
}

/* What fails for want of memory leaves nothing: not on the ledger, not in the process. */
static void test_a_thousand_failures_leave_nothing(void **state) {
    greedy g = {*state, 1024 * MIB};
    snug_error err = {0};
    size_t held = 0, start = 0;
    TRY(snug_budget(g.engine, counted() + 40 * MIB, &err));
    for (int i = 0; i < 1000; i++) {
        snug_dataset *d = greedy_map(&g, 1 + i % 3);
        snug_iterator *it;
        snug_element out;
        TRY(snug_iterator_create(d, &it, &err));
        expect_status(snug_iterator_next(it, &out, &err), SNUG_E_BUDGET, &err);
        snug_iterator_destroy(it);
        snug_dataset_drop(d);
        if (i == 100) {
            held = snug_engine_bytes(g.engine);
            start = counted();
        }
    }
    expect_text(err.text, "1.0 GiB more for input");
    assert_int_equal(snug_engine_bytes(g.engine), held);
    assert_true(counted() <= start + 512 * KIB);
    TRY(snug_budget(g.engine, 0, &err));
}

/* --- sources that block ----------------------------------------------------------------------- */
static int after_some(void *ctx) {
    return ++*(int *)ctx > 3;
}

static void test_a_source_that_blocks_can_be_interrupted(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    sem_t gate;
    int asked = 0;
    sem_init(&gate, 0, 1);
    const source s = {.engine = e, .n = 3, .words = 1, .gate = &gate};
    snug_dataset *d = wide(&s);
    snug_iterator *it;
    snug_element out;
    TRY(snug_dataset_prefetch(d, 1, &d, &err));
    TRY(snug_iterator_create(d, &it, &err));
    assert_string_equal(sn_next_text(it, 1), "[0]");
    snug_iterator_set_interrupt(it, after_some, &asked);
    expect_status(snug_iterator_next(it, &out, &err), SNUG_E_INTERRUPTED, &err);
    snug_iterator_set_interrupt(it, NULL, NULL);
    sem_post(&gate);
    assert_string_equal(sn_next_text(it, 1), "[1]"); /* nothing is lost */
    sem_post(&gate);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    sem_destroy(&gate);
}

static void test_random_numbers_of_workers_give_one_stream(void **state) {
    snug_engine *e = *state;
    char want[STREAM_TEXT_BYTES];
    snug_error err = {0};
    unsigned seed = 5;
    for (int round = 0; round < 24; round++) {
        snug_dataset *d;
        const sn_knobs k = {.workers = rand_r(&seed) % 9, .depth = rand_r(&seed) % 5};
        snug_pipeline_limit(e, rand_r(&seed) % 2 ? 0 : 3000);
        TRY(sn_pipeline(e, round % 2 ? 1 : 7, &k, &d, &err));
        const char *text = sn_stream_text(d);
        if (round > 1 && round % 2 == 1)
            assert_string_equal(text, want);
        if (round == 1)
            strcpy(want, text);
    }
    snug_pipeline_limit(e, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_buffers_follow_the_limit),
        engine_test(test_the_end_takes_no_batch),
#ifndef __SANITIZE_THREAD__ /* its own memory is more than the group's */
        engine_test(test_a_shuffle_larger_than_memory_keeps_its_order),
#endif
#if !defined SN_REDZONES && !defined __SANITIZE_THREAD__ /* their memory counts with the process */
        engine_test(test_calls_that_do_not_fit_together_come_one_after_another),
        engine_test(test_a_thousand_failures_leave_nothing),
#endif
        engine_test(test_a_source_that_blocks_can_be_interrupted),
        engine_test(test_random_numbers_of_workers_give_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
