/* test_data_streams.c: the stream does not depend on workers, depths, limits or interruptions:
 * every stage, alone and with others; positions; figures; nothing left behind. */
#include "support/streams.h"

#include "memory/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY(call) expect_ok(call, &err)

static snug_dataset *pipeline(snug_engine *e, int which, const sn_knobs *k) {
    snug_dataset *d;
    snug_error err = {0};
    TRY(sn_pipeline(e, which, k, &d, &err));
    return d;
}

static const char *text_of(snug_engine *e, int which, const sn_knobs *k) {
    return sn_stream_text(pipeline(e, which, k));
}

static void test_streams_do_not_depend_on_workers_or_depths(void **state) {
    snug_engine *e = *state;
    char want[STREAM_TEXT_BYTES];
    for (int which = 0; which < 9; which++) {
        strcpy(want, text_of(e, which, &(sn_knobs){0}));
        assert_true(strlen(want) > 10);
        for (int workers = SNUG_AUTOTUNE; workers <= 8; workers++) {
            const sn_knobs k = {.workers = workers, .depth = workers % 4};
            assert_string_equal(text_of(e, which, &k), want);
        }
    }
}

static void test_a_stream_can_be_told(void **state) {
    snug_engine *e = *state;
    const sn_knobs k = {.workers = 2, .depth = 2};
    assert_string_equal(text_of(e, 0, &k), "[10,11,12] [13,14,15] [16,17,18] [19,20]");
    assert_string_equal(text_of(e, 3, &k),
                        "([100,101,102,103],[10,12,14,16]) ([104,105,100,101],[18,20,10,12]) "
                        "([102,103,104,105],[14,16,18,20])");
    /* 14 17 20 23 26 29 32 10 11 12 by threes, two further each time */
    assert_string_equal(text_of(e, 4, &k), "[14,17,20] [20,23,26] [26,29,32] [32,10,11] [11,12]");
    assert_string_equal(text_of(e, 5, &k), "(10,50) (11,43) (12,36) (13,29) (14,22) (15,15) "
                                           "(16,8) (17,1)");
}

/* --- shuffle ---------------------------------------------------------------------------------- */
static snug_dataset *shuffled(snug_engine *e, int64_t n, bool by_index, const snug_shuffle *o) {
    snug_error err = {0};
    static const sn_adder same = {0};
    const snug_mapper f = sn_adder_mapper(&same);
    snug_dataset *d = sn_range_of(e, n);
    if (!by_index) /* a map has no random access */
        TRY(snug_dataset_map(d, &f, NULL, &d, &err));
    TRY(snug_dataset_shuffle(d, o, &d, &err));
    return d;
}

static void expect_permutation(const char *text, int64_t n) {
    bool seen[1000] = {false};
    char *end;
    int64_t count = 0;
    for (const char *at = text; *at; at = *end ? end + 1 : end, count++) {
        const long i = strtol(at, &end, 10);
        assert_true(i >= 0 && i < n && !seen[i]);
        seen[i] = true;
    }
    assert_int_equal(count, n);
}

static void test_a_shuffle_is_one_however_elements_are_kept(void **state) {
    snug_engine *e = *state;
    sn_test_dir dir;
    char want[STREAM_TEXT_BYTES];
    sn_test_dir_begin(&dir);
    const int64_t buffers[] = {1, 2, 7, 100, 299, 300, 5000};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        const snug_shuffle o = {.buffer = buffers[i], .seed = 3, .spill_folder = dir.path};
        snug_pipeline_limit(e, 0);
        strcpy(want, sn_stream_text(shuffled(e, 300, true, &o)));
        expect_permutation(want, 300);
        assert_string_equal(sn_stream_text(shuffled(e, 300, false, &o)), want);
        snug_pipeline_limit(e, 4000); /* some in memory, most in the file */
        assert_string_equal(sn_stream_text(shuffled(e, 300, false, &o)), want);
        snug_pipeline_limit(e, 1); /* all in the file */
        assert_string_equal(sn_stream_text(shuffled(e, 300, false, &o)), want);
    }
    snug_pipeline_limit(e, 0);
    assert_int_equal(sn_test_dir_count(&dir), 0);
    sn_test_dir_end(&dir);
}

static void test_a_shuffle_beyond_its_limit_without_a_folder_is_refused(void **state) {
    snug_engine *e = *state;
    const snug_shuffle o = {.buffer = 100, .seed = 3};
    snug_pipeline_limit(e, 4000);
    expect_text(sn_stream_text(shuffled(e, 300, false, &o)), "give a folder to spill to or");
    snug_pipeline_limit(e, 0);
}

static void test_each_iteration_shuffles_anew_unless_told(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    char first[256], second[256];
    for (int keep = 0; keep < 2; keep++) {
        snug_dataset *d = sn_range_of(e, 20), *again;
        TRY(snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 20, .seed = 1, .keep_order = keep},
                                 &d, &err));
        snug_dataset_hold(d);
        strcpy(first, sn_stream_text(d));
        snug_dataset_hold(d);
        strcpy(second, sn_stream_text(d));
        assert_int_equal(strcmp(first, second) == 0, keep);
        TRY(snug_dataset_repeat(d, 2, &again, &err));
        TRY(snug_dataset_batch(again, 20, 0, &again, &err));
        snug_iterator *it;
        TRY(snug_iterator_create(again, &it, &err));
        strcpy(first, sn_next_text(it, 1));
        strcpy(second, sn_next_text(it, 1));
        assert_int_equal(strcmp(first, second) == 0, keep);
        snug_iterator_destroy(it);
        snug_dataset_drop(again);
    }
}

/* --- positions -------------------------------------------------------------------------------- */
static void save(snug_iterator *it, sn_text *bytes) {
    snug_error err = {0};
    const snug_writer w = sn_text_writer(bytes);
    TRY(snug_iterator_save(it, &w, &err));
}

/* Elements [0, at) of one iterator and the rest from another process's are the whole stream. */
static void expect_resumed(snug_engine *e, int which, int64_t at, const char *want,
                           const sn_knobs *k) {
    snug_error err = {0};
    char text[STREAM_TEXT_BYTES];
    sn_text bytes = sn_text_begin();
    snug_dataset *d = pipeline(e, which, k), *same = pipeline(e, which, &(sn_knobs){.workers = 3});
    snug_iterator *it;
    TRY(snug_iterator_create(d, &it, &err));
    strcpy(text, sn_next_text(it, at));
    save(it, &bytes);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    TRY(snug_iterator_create(same, &it, &err));
    TRY(snug_iterator_restore(it, bytes.text, bytes.n, &err));
    const char *rest = sn_next_text(it, 1000);
    if (text[0] && rest[0])
        strcat(text, " ");
    strcat(text, rest);
    if (strcmp(text, want) != 0)
        fail_msg("pipeline %d from %" PRId64 " on: %s, not %s", which, at, text, want);
    snug_iterator_destroy(it);
    snug_dataset_drop(same);
    sn_text_end(&bytes);
}

static void test_positions_go_on_exactly_anywhere(void **state) {
    snug_engine *e = *state;
    char want[STREAM_TEXT_BYTES];
    for (int which = 0; which < 9; which++) {
        const sn_knobs k = {.workers = which % 4, .depth = 2};
        strcpy(want, text_of(e, which, &k));
        for (int64_t at = 0; at < 30; at++)
            expect_resumed(e, which, at, want, &k);
    }
}

static void test_a_later_iterators_position_goes_on_too(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    char want[STREAM_TEXT_BYTES], text[STREAM_TEXT_BYTES];
    sn_text bytes = sn_text_begin();
    snug_dataset *d = pipeline(e, 1, &(sn_knobs){.workers = 2, .depth = 3});
    snug_iterator *it;
    snug_dataset_hold(d);
    (void)sn_stream_text(d);
    TRY(snug_iterator_create(d, &it, &err));
    (void)sn_next_text(it, 6);
    save(it, &bytes);
    strcpy(want, sn_next_text(it, 1000));
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    d = pipeline(e, 1, &(sn_knobs){0});
    TRY(snug_iterator_create(d, &it, &err));
    TRY(snug_iterator_restore(it, bytes.text, bytes.n, &err));
    strcpy(text, sn_next_text(it, 1000));
    assert_string_equal(text, want);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    sn_text_end(&bytes);
}

static void test_positions_of_other_datasets_are_refused(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    sn_text bytes = sn_text_begin();
    snug_dataset *a = pipeline(e, 0, &(sn_knobs){0}), *b = pipeline(e, 3, &(sn_knobs){0});
    snug_iterator *it;
    TRY(snug_iterator_create(a, &it, &err));
    (void)sn_next_text(it, 1);
    save(it, &bytes);
    for (size_t n = 0; n < bytes.n; n++)
        expect_status(snug_iterator_restore(it, bytes.text, n, &err), SNUG_E_FORMAT, &err);
    assert_string_equal(sn_next_text(it, 1), "[13,14,15]"); /* nothing happened */
    snug_iterator_destroy(it);
    TRY(snug_iterator_create(b, &it, &err));
    expect_status(snug_iterator_restore(it, bytes.text, bytes.n, &err), SNUG_E_FORMAT, &err);
    snug_iterator_destroy(it);
    snug_dataset_drop(a);
    snug_dataset_drop(b);
    sn_text_end(&bytes);
}

/* --- caches ----------------------------------------------------------------------------------- */
static snug_dataset *cached_file(snug_engine *e, int64_t n, const char *path) {
    snug_error err = {0};
    snug_dataset *d = sn_range_of(e, n);
    TRY(snug_dataset_batch(d, 2, 0, &d, &err));
    TRY(snug_dataset_cache(d, path, &d, &err));
    return d;
}

static void test_a_cache_file_is_whole_or_not_there(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    sn_test_dir dir;
    char path[256];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "cache", path);
    snug_dataset *d = cached_file(e, 5, path);
    snug_iterator *it;
    TRY(snug_iterator_create(d, &it, &err));
    assert_string_equal(sn_next_text(it, 2), "[0,1] [2,3]");
    snug_iterator_destroy(it); /* half a pass */
    snug_dataset_drop(d);
    assert_int_equal(sn_test_dir_count(&dir), 0);
    assert_string_equal(sn_stream_text(cached_file(e, 5, path)), "[0,1] [2,3] [4]");
    assert_int_equal(sn_test_dir_count(&dir), 1);
    assert_string_equal(sn_stream_text(cached_file(e, 500, path)), "[0,1] [2,3] [4]");
    d = cached_file(e, 5, path);
    TRY(snug_dataset_skip(d, 1, &d, &err));
    assert_string_equal(sn_stream_text(d), "[2,3] [4]");
    d = sn_range_of(e, 5);
    TRY(snug_dataset_cache(d, path, &d, &err));
    expect_text(sn_stream_text(d), "the cache file gave element 0 with i64[2]");
    sn_test_write_file(path, "something else altogether", 25);
    expect_text(sn_stream_text(cached_file(e, 5, path)), "is no cache of this version");
    sn_test_dir_end(&dir);
}

/* Two that fill one file at once, as two processes do: each gives its own elements, and the file of
 * the one that ended first stays, whole. */
static void test_a_finished_cache_file_is_not_written_over(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    sn_test_dir dir;
    char path[256];
    snug_iterator *slow, *fast;
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "cache", path);
    snug_dataset *one = cached_file(e, 7, path), *two = cached_file(e, 5, path);
    TRY(snug_iterator_create(one, &slow, &err));
    TRY(snug_iterator_create(two, &fast, &err));
    assert_string_equal(sn_next_text(slow, 2), "[0,1] [2,3]");
    assert_string_equal(sn_next_text(fast, 4), "[0,1] [2,3] [4]");
    assert_string_equal(sn_next_text(slow, 3), "[4,5] [6]");
    assert_int_equal(sn_test_dir_count(&dir), 1);
    assert_string_equal(sn_stream_text(cached_file(e, 9, path)), "[0,1] [2,3] [4]");
    snug_iterator_destroy(slow);
    snug_iterator_destroy(fast);
    snug_dataset_drop(one);
    snug_dataset_drop(two);
    sn_test_dir_end(&dir);
}

static void test_a_full_disk_is_told_and_leaves_no_cache(void **state) {
    snug_engine *e = *state;
    sn_test_dir dir;
    char path[256];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "cache", path);
    snug_dataset *d = cached_file(e, 300000, path);
    snug_iterator *it;
    snug_error err = {0};
    snug_element out;
    snug_status status = SNUG_OK;
    TRY(snug_iterator_create(d, &it, &err));
    sn_fault_io(e, 4, SN_FAULT_ENOSPC, true);
    while (status == SNUG_OK) {
        status = snug_iterator_next(it, &out, &err);
        if (status == SNUG_OK)
            snug_element_drop(&out);
    }
    sn_fault_io(e, -1, SN_FAULT_ENOSPC, false);
    assert_int_equal(status, SNUG_E_IO);
    expect_text(err.text, "No space left");
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    assert_int_equal(sn_test_dir_count(&dir), 0);
    sn_test_dir_end(&dir);
}

/* --- memory and threads ----------------------------------------------------------------------- */
static void test_iterators_leave_no_thread_and_no_file(void **state) {
    snug_engine *e = *state;
    const int threads = sn_test_entries("/proc/self/task"),
              files = sn_test_entries("/proc/self/fd");
    snug_error err = {0};
    for (int which = 0; which < 9; which++)
        for (int64_t n = 0; n < 4; n++) {
            snug_dataset *d = pipeline(e, which, &(sn_knobs){.workers = 3, .depth = 2});
            snug_iterator *it;
            TRY(snug_iterator_create(d, &it, &err));
            (void)sn_next_text(it, n);
            snug_iterator_destroy(it);
            snug_dataset_drop(d);
        }
    assert_int_equal(sn_test_entries("/proc/self/task"), threads);
    assert_int_equal(sn_test_entries("/proc/self/fd"), files);
    assert_int_equal(sn_pool_taken(e), 0);
}

static snug_status run_pipeline(snug_engine *e, void *ctx, snug_error *err) {
    snug_dataset *d = NULL;
    snug_iterator *it = NULL;
    snug_element out;
    snug_status status = sn_pipeline(e, *(int *)ctx, &(sn_knobs){.depth = 0}, &d, err);
    if (status == SNUG_OK)
        status = snug_iterator_create(d, &it, err);
    while (status == SNUG_OK) {
        status = snug_iterator_next(it, &out, err);
        if (status == SNUG_OK)
            snug_element_drop(&out);
    }
    snug_iterator_destroy(it);
    if (d)
        snug_dataset_drop(d);
    return status == SNUG_E_END ? SNUG_OK : status;
}

static void test_pipelines_survive_any_failed_request(void **state) {
    (void)state;
    for (int which = 0; which < 9; which++)
        sn_fault_sweep(run_pipeline, &which);
}

static void test_threads_survive_a_failed_request(void **state) {
    (void)state;
    for (int which = 0; which < 9; which++)
        for (int64_t n = 0; n < 60; n += 7) {
            snug_engine *e = sn_test_engine(0);
            snug_error err = {0};
            snug_dataset *d = pipeline(e, which, &(sn_knobs){.workers = 2, .depth = 2});
            snug_iterator *it = NULL;
            snug_element out;
            sn_fault_memory(e, n, false);
            snug_status status = snug_iterator_create(d, &it, &err);
            while (status == SNUG_OK) {
                status = snug_iterator_next(it, &out, &err);
                if (status == SNUG_OK)
                    snug_element_drop(&out);
            }
            assert_true(status == SNUG_E_END || status == SNUG_E_MEMORY);
            sn_fault_expect_told(e, "threads", status == SNUG_E_END ? SNUG_OK : status);
            snug_iterator_destroy(it);
            sn_fault_memory(e, -1, false);
            snug_dataset_drop(d);
            sn_test_engine_end(e);
        }
}

static void test_figures_name_the_stages(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    snug_stage_row rows[8];
    snug_dataset *d = pipeline(e, 0, &(sn_knobs){.workers = 2, .depth = 2});
    snug_iterator *it;
    TRY(snug_iterator_create(d, &it, &err));
    (void)sn_next_text(it, 100);
    assert_int_equal(snug_iterator_stages(it, rows, 8), 4);
    assert_string_equal(rows[0].stage, "range");
    assert_int_equal(rows[0].elements, 11);
    assert_string_equal(rows[1].stage, "map");
    assert_int_equal(rows[1].workers, 2);
    assert_true(rows[1].busy_seconds > 0);
    assert_int_equal(rows[2].elements, 4);
    assert_string_equal(rows[3].stage, "prefetch");
    assert_int_equal(rows[3].depth, 2);
    assert_true(rows[3].peak_bytes >= 24);
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
}

static void test_batches_fill_the_callers_buffers(void **state) {
    snug_engine *e = *state;
    snug_error err = {0};
    for (int64_t depth = -2; depth <= 2; depth += 2) { /* -2: no prefetch */
        snug_dataset *d = sn_range_of(e, 7);
        snug_iterator *it;
        int32_t x[3] = {0};
        int64_t rows;
        const snug_view view = {x, sizeof x, {.dtype = SNUG_I32, .rank = 1, .dims = {3}}};
        TRY(snug_dataset_shuffle(d, &(snug_shuffle){.buffer = 1}, &d, &err));
        TRY(snug_dataset_batch(d, 3, 0, &d, &err));
        if (depth >= 0)
            TRY(snug_dataset_prefetch(d, depth, &d, &err));
        TRY(snug_iterator_create(d, &it, &err));
        for (int32_t first = 0; first < 9; first += 3) {
            TRY(snug_iterator_fill(it, &view, 1, &rows, &err));
            assert_int_equal(rows, first < 6 ? 3 : 1);
            for (int32_t i = 0; i < rows; i++)
                assert_int_equal(x[i], first + i);
        }
        TRY(snug_iterator_fill(it, &view, 1, &rows, &err));
        assert_int_equal(rows, 0);
        snug_iterator_destroy(it);
        snug_dataset_drop(d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_streams_do_not_depend_on_workers_or_depths),
        engine_test(test_a_stream_can_be_told),
        engine_test(test_a_shuffle_is_one_however_elements_are_kept),
        engine_test(test_a_shuffle_beyond_its_limit_without_a_folder_is_refused),
        engine_test(test_each_iteration_shuffles_anew_unless_told),
        engine_test(test_positions_go_on_exactly_anywhere),
        engine_test(test_a_later_iterators_position_goes_on_too),
        engine_test(test_positions_of_other_datasets_are_refused),
        engine_test(test_a_cache_file_is_whole_or_not_there),
        engine_test(test_a_finished_cache_file_is_not_written_over),
        engine_test(test_a_full_disk_is_told_and_leaves_no_cache),
        engine_test(test_iterators_leave_no_thread_and_no_file),
        cmocka_unit_test(test_pipelines_survive_any_failed_request),
        cmocka_unit_test(test_threads_survive_a_failed_request),
        engine_test(test_figures_name_the_stages),
        engine_test(test_batches_fill_the_callers_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
