/* test_source.c: elements that lie in files and in foreign memory: recipes, feeds and homes of
 * them, how long they are held, what is refused, and every failed call. */
#include "support/support.h"

#include "exec/exec.h"
#include "tensor/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1500, HEAD = 3 };

static double number_at(uint64_t i) {
    return (double)(i % 97) - 20;
}

/* HEAD bytes of something else, then N numbers. */
static void write_numbers(const char *path, snug_dtype dtype) {
    char bytes[8 * N];
    snug_error err;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    double numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = number_at((uint64_t)i);
    assert_int_equal(fwrite("abc", 1, HEAD, f), HEAD);
    if (sn_dtype_is_float(dtype)) {
        expect_ok(sn_convert(SNUG_F64, numbers, dtype, bytes, N, &err), &err);
    } else {
        for (int i = 0; i < N; i++)
            ((int32_t *)(void *)bytes)[i] = (int32_t)numbers[i];
    }
    const size_t size = snug_dtype_bytes(dtype);
    assert_int_equal(fwrite(bytes, size, N, f), N);
    fclose(f);
}

static sn_source *open_numbers(snug_engine *e, const char *path, snug_dtype dtype) {
    snug_error err;
    sn_source *s;
    const sn_file_slice slice = {path, HEAD, dtype, N};
    expect_ok(sn_source_from_file(e, &slice, &s, &err), &err);
    return s;
}

/* Parts of all lengths, made alone, in every dtype the elements convert to. */
static void expect_parts(const sn_source *s, const snug_dtype *to, int n_to) {
    snug_error err;
    for (int d = 0; d < n_to; d++)
        for (uint64_t first = 0; first < N; first += 371) {
            const sn_recipe r = sn_source_recipe(s, first / 2);
            const size_t n = N - first;
            char out[8 * N + 8];
            double as_f64[N];
            const size_t end = n * snug_dtype_bytes(to[d]);
            out[end] = 'x';
            expect_ok(sn_recipe_fill(&r, first - first / 2, n, to[d], out, &err), &err);
            assert_int_equal(out[end], 'x');
            expect_ok(sn_convert(to[d], out, SNUG_F64, as_f64, n, &err), &err);
            for (size_t i = 0; i < n; i++)
                assert_true(as_f64[i] == number_at(first + i));
        }
}

static void test_a_part_of_a_file_is_read_alone(void **state) {
    static const snug_dtype reals[] = {SNUG_F32, SNUG_F64, SNUG_F16, SNUG_BF16};
    static const snug_dtype all[] = {SNUG_I32, SNUG_I64, SNUG_I8, SNUG_F32, SNUG_F64};
    sn_test_dir dir;
    char path[512];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "numbers", path);
    for (int d = 0; d < 4; d++) {
        write_numbers(path, reals[d]);
        sn_source *s = open_numbers(*state, path, reals[d]);
        expect_parts(s, reals, 4);
        sn_source_drop(s);
    }
    write_numbers(path, SNUG_I32);
    sn_source *s = open_numbers(*state, path, SNUG_I32);
    expect_parts(s, all, 5);
    sn_source_drop(s);
    sn_test_dir_end(&dir);
}

static void test_a_part_of_foreign_memory_is_read_alone(void **state) {
    static const snug_dtype reals[] = {SNUG_F32, SNUG_F64, SNUG_F16, SNUG_BF16};
    float data[N];
    snug_error err;
    sn_source *s;
    for (int i = 0; i < N; i++)
        data[i] = (float)number_at((uint64_t)i);
    expect_ok(sn_source_from_memory(*state, data, SNUG_F32, N, &s, &err), &err);
    expect_parts(s, reals, 4);
    sn_source_drop(s);
}

static void count_release(void *ctx) {
    ++*(int *)ctx;
}

/* Recipes are values; who keeps one holds the source. */
static void test_memory_is_released_once_with_its_last_holder(void **state) {
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    const snug_type rows = {SNUG_F32, 2, {2, 2}}, flat = {SNUG_F32, 1, {3}};
    int released = 0;
    snug_error err;
    sn_source *s;
    snug_feed *feeds[2];
    sn_state *homes;
    uint32_t id;
    snug_view view;
    expect_ok(sn_source_from_memory(*state, data, SNUG_F32, 6, &s, &err), &err);
    sn_source_give(s, count_release, &released);
    const sn_recipe from_2 = sn_source_recipe(s, 2), from_3 = sn_source_recipe(s, 3);
    for (int i = 0; i < 2; i++)
        expect_ok(sn_feed_from_recipe(*state, &rows, &from_2, &feeds[i], &err), &err);
    expect_ok(sn_state_create(*state, &homes, &err), &err);
    const sn_home home = {.name = "w", .type = flat, .init = from_3};
    expect_ok(sn_state_add(homes, &home, &id, &err), &err);
    sn_source_drop(s);
    snug_feed_destroy(feeds[0]);
    float out[4];
    const snug_view dst = {out, sizeof out, rows};
    expect_ok(snug_feed_fill(feeds[1], 0, 2, &dst, &err), &err);
    assert_memory_equal(out, data + 2, sizeof out);
    snug_feed_destroy(feeds[1]);
    expect_ok(sn_state_view(homes, id, &view, &err), &err);
    assert_memory_equal(view.data, data + 3, 3 * sizeof *data);
    memset(view.data, 0, view.bytes);
    expect_ok(sn_state_restart(homes, id, &err), &err);
    assert_memory_equal(view.data, data + 3, 3 * sizeof *data);
    assert_int_equal(released, 0);
    sn_state_destroy(homes);
    assert_int_equal(released, 1);
}

static void test_what_a_source_does_not_have_is_refused(void **state) {
    sn_test_dir dir;
    char path[512];
    snug_error err;
    sn_source *s = NULL;
    snug_feed *feed;
    float x;
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "numbers", path);
    write_numbers(path, SNUG_F32);
    const struct {
        sn_file_slice slice;
        snug_status status;
    } cases[] = {
        {{path, HEAD + 1, SNUG_F32, N}, SNUG_E_FORMAT},
        {{path, HEAD, SNUG_F32, N + 1}, SNUG_E_FORMAT},
        {{path, -1, SNUG_F32, 1}, SNUG_E_FORMAT},
        {{path, INT64_MAX, SNUG_F32, 1}, SNUG_E_FORMAT},
        {{path, 0, SNUG_F32, UINT64_MAX / 2}, SNUG_E_OVERFLOW},
        {{path, 0, SNUG_F64, (uint64_t)INT64_MAX / 4}, SNUG_E_OVERFLOW},
        {{path, 0, SNUG_OPAQUE, 1}, SNUG_E_SHAPE},
        {{dir.path, 0, SNUG_F32, 1}, SNUG_E_IO},
        {{"nowhere/numbers", 0, SNUG_F32, 1}, SNUG_E_IO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_status(sn_source_from_file(*state, &cases[i].slice, &s, &err), cases[i].status,
                      &err);
    assert_null(s);
    expect_status(sn_source_from_memory(*state, NULL, SNUG_F32, 1, &s, &err), SNUG_E_INVALID, &err);
    s = open_numbers(*state, path, SNUG_F32);
    const sn_recipe last = sn_source_recipe(s, N - 1), behind = sn_source_recipe(s, N + 1);
    expect_ok(sn_recipe_fill(&last, 0, 1, SNUG_F32, &x, &err), &err);
    expect_status(sn_recipe_fill(&last, 1, 1, SNUG_F32, &x, &err), SNUG_E_INVALID, &err);
    expect_status(sn_recipe_fill(&behind, 0, 0, SNUG_F32, &x, &err), SNUG_E_INVALID, &err);
    expect_status(sn_recipe_fill(&last, 0, 1, SNUG_I32, &x, &err), SNUG_E_DATA, &err);
    const snug_type two = {SNUG_F32, 1, {2}};
    expect_status(sn_feed_from_recipe(*state, &two, &last, &feed, &err), SNUG_E_SHAPE, &err);
    sn_source_drop(s);
    sn_test_dir_end(&dir);
}

static void test_a_file_that_became_shorter_is_truncated(void **state) {
    sn_test_dir dir;
    char path[512];
    snug_error err;
    float out[N];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "numbers", path);
    write_numbers(path, SNUG_F32);
    sn_source *s = open_numbers(*state, path, SNUG_F32);
    FILE *f = fopen(path, "wb"); /* empty */
    assert_non_null(f);
    fclose(f);
    const sn_recipe r = sn_source_recipe(s, 0);
    expect_status(sn_recipe_fill(&r, 0, N, SNUG_F32, out, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "truncated");
    sn_source_drop(s);
    sn_test_dir_end(&dir);
}

/* A graph prints; bytes elsewhere do not. */
static void test_a_graph_variable_does_not_start_from_a_source(void **state) {
    static const float data[2] = {1, 2};
    snug_error err;
    sn_source *s;
    sn_graph *g;
    sn_value v;
    expect_ok(sn_source_from_memory(*state, data, SNUG_F32, 2, &s, &err), &err);
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    const sn_variable var = {
        .name = "w", .type = {SNUG_F32, 1, {2}}, .init = sn_source_recipe(s, 0)};
    expect_status(sn_graph_variable(g, &var, &v, &err), SNUG_E_UNSUPPORTED, &err);
    sn_graph_destroy(g);
    sn_source_drop(s);
}

/* Opens, feeds as f64 and as f32, and closes; the memory of the other source is released in the
 * end, whatever failed. */
static snug_status use_sources(snug_engine *e, void *ctx, snug_error *err) {
    static float data[N];
    const snug_type type = {SNUG_F64, 1, {N}};
    const sn_file_slice slice = {ctx, HEAD, SNUG_F64, N};
    const snug_view as_f32 = {data, sizeof data, {SNUG_F32, 1, {N}}};
    int released = 0;
    sn_source *memory = NULL, *file = NULL;
    snug_feed *feeds[2] = {NULL, NULL};
    snug_status status = sn_source_from_memory(e, data, SNUG_F32, N, &memory, err);
    if (status == SNUG_OK) {
        sn_source_give(memory, count_release, &released);
        status = sn_source_from_file(e, &slice, &file, err);
    }
    for (int i = 0; i < 2 && status == SNUG_OK; i++) {
        const sn_recipe r = sn_source_recipe(i ? file : memory, 0);
        status = sn_feed_from_recipe(e, &type, &r, &feeds[i], err);
    }
    if (status == SNUG_OK)
        status = snug_feed_fill(feeds[1], 0, N, &as_f32, err);
    const bool made = memory != NULL;
    snug_feed_destroy(feeds[0]);
    snug_feed_destroy(feeds[1]);
    sn_source_drop(memory);
    sn_source_drop(file);
    assert_int_equal(released, made);
    return status;
}

static void sweep(void (*faults)(const char *, const char *, sn_scenario, void *)) {
    sn_test_dir dir;
    char path[512];
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "numbers", path);
    write_numbers(path, SNUG_F64);
    faults(__FILE_NAME__, "use_sources", use_sources, path);
    sn_test_dir_end(&dir);
}

static void test_sources_survive_any_failed_request(void **state) {
    (void)state;
    sweep(sn_fault_sweep_memory_of);
}

static void test_sources_survive_any_failed_call(void **state) {
    (void)state;
    sweep(sn_fault_sweep_io_of);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_a_part_of_a_file_is_read_alone),
        engine_test(test_a_part_of_foreign_memory_is_read_alone),
        engine_test(test_memory_is_released_once_with_its_last_holder),
        engine_test(test_what_a_source_does_not_have_is_refused),
        engine_test(test_a_file_that_became_shorter_is_truncated),
        engine_test(test_a_graph_variable_does_not_start_from_a_source),
        cmocka_unit_test(test_sources_survive_any_failed_request),
        cmocka_unit_test(test_sources_survive_any_failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
