/* test_model_npz.c: arrays of .npz files read in place, and CIFAR's binary files, as feeds: their
 * values, what is refused, damaged files, every failed request. */
#include "support/support.h"

#include <snug/tensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TWO SNUG_TEST_DATA "/data/two.npz"

static snug_status read_rows(snug_engine *e, const char *source, int64_t first, snug_view *to,
                             snug_error *err) {
    snug_feed *feed;
    SNUG_TRY(snug_feed_open(e, source, &feed, err));
    const snug_status status = snug_feed_fill(feed, first, to->type.dims[0], to, err);
    snug_feed_destroy(feed);
    return status;
}

static void test_arrays_of_npz_files_are_read_in_place(void **state) {
    snug_error err;
    float x[6];
    int64_t y[4];
    snug_view to = {x, sizeof x, {SNUG_F32, 2, {2, 3}}};
    expect_ok(read_rows(*state, TWO ":x", 1, &to, &err), &err);
    for (int i = 0; i < 6; i++)
        expect_real((double)x[i], i + 3, 0);
    to = (snug_view){y, sizeof y, {SNUG_I64, 1, {4}}};
    expect_ok(read_rows(*state, TWO ":y", 0, &to, &err), &err);
    assert_int_equal(y[0], 3);
    assert_int_equal(y[3], 0);
}

static void expect_refused(snug_engine *e, const char *source, snug_status wanted,
                           const char *say) {
    snug_error err;
    snug_feed *feed;
    expect_status(snug_feed_open(e, source, &feed, &err), wanted, &err);
    expect_text(err.text, say);
}

static void test_what_is_not_there_is_named(void **state) {
    expect_refused(*state, TWO ":z", SNUG_E_DATA, "no array 'z'; it has: x, y");
    expect_refused(*state, SNUG_TEST_DATA "/data/packed.npz:x", SNUG_E_UNSUPPORTED,
                   "savez_compressed");
    expect_refused(*state, SNUG_TEST_DATA "/data/none.npz:x", SNUG_E_IO, "none.npz");
}

static size_t load(const char *path, unsigned char *bytes, size_t size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, size, f);
    fclose(f);
    return n;
}

/* Every cut, and every byte changed: a message or the array, whose length is checked. */
static void test_damaged_npz_files_are_messages(void **state) {
    unsigned char bytes[2048];
    sn_test_dir d;
    char path[256], source[264];
    snug_error err;
    float x[12];
    sn_test_dir_begin(&d);
    sn_test_path(&d, "a.npz", path);
    snprintf(source, sizeof source, "%s:x", path);
    const size_t n = load(TWO, bytes, sizeof bytes);
    for (size_t i = 0; i < n; i++) {
        snug_view to = {x, sizeof x, {SNUG_F32, 2, {4, 3}}};
        sn_test_write_file(path, bytes, i);
        assert_int_not_equal(read_rows(*state, source, 0, &to, &err), SNUG_OK);
        bytes[i] ^= 0x55;
        sn_test_write_file(path, bytes, n);
        (void)!read_rows(*state, source, 0, &to, &err);
        bytes[i] ^= 0x55;
    }
    sn_test_dir_end(&d);
}

static void put_cifar(const char *path, int labels, int n) {
    static unsigned char bytes[4 * 3074];
    unsigned char *at = bytes;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < labels; k++)
            *at++ = (unsigned char)(10 * k + i);
        for (int p = 0; p < 3072; p++)
            *at++ = (unsigned char)(p / 1024 * 80 + p % 32 + i);
    }
    sn_test_write_file(path, bytes, (size_t)(at - bytes));
}

static void test_cifar_pictures_have_their_colours_last(void **state) {
    sn_test_dir d;
    char path[256], source[300];
    snug_error err;
    static float pictures[2 * 3072];
    int32_t labels[3];
    sn_test_dir_begin(&d);
    put_cifar(sn_test_path(&d, "c.bin", path), 2, 3);
    snug_view to = {pictures, sizeof pictures, {SNUG_F32, 4, {2, 32, 32, 3}}};
    snprintf(source, sizeof source, "cifar100:%s", path);
    expect_ok(read_rows(*state, source, 1, &to, &err), &err);
    for (int c = 0; c < 3; c++) {
        expect_real((double)pictures[c], 80 * c + 1, 0);
        expect_real((double)pictures[3072 + 3 * 37 + c], 80 * c + 5 + 2, 0);
    }
    to = (snug_view){labels, sizeof labels, {SNUG_I32, 1, {3}}};
    snprintf(source, sizeof source, "cifar100-labels:%s", path);
    expect_ok(read_rows(*state, source, 0, &to, &err), &err);
    assert_int_equal(labels[2], 12);
    snprintf(source, sizeof source, "cifar100-coarse:%s", path);
    expect_ok(read_rows(*state, source, 0, &to, &err), &err);
    assert_int_equal(labels[2], 2);
    snprintf(source, sizeof source, "cifar10:%s", path);
    expect_refused(*state, source, SNUG_E_FORMAT, "records of 3073: truncated, or not CIFAR-10's");
    sn_test_dir_end(&d);
}

static snug_status read_source(snug_engine *e, void *ctx, snug_error *err) {
    static float x[3072];
    const bool picture = strncmp(ctx, "cifar", 5) == 0;
    snug_view to = {x, sizeof x, {SNUG_F32, 4, {1, 32, 32, 3}}};
    if (!picture)
        to = (snug_view){x, 12, {SNUG_F32, 2, {1, 3}}};
    return read_rows(e, ctx, 0, &to, err);
}

static void test_feeds_survive_any_failed_request(void **state) {
    sn_test_dir d;
    char path[256], source[300];
    (void)state;
    sn_test_dir_begin(&d);
    put_cifar(sn_test_path(&d, "c.bin", path), 1, 2);
    snprintf(source, sizeof source, "cifar10:%s", path);
    sn_fault_sweep(read_source, source);
    sn_fault_sweep_io(read_source, source);
    sn_fault_sweep(read_source, (char[]){TWO ":x"});
    sn_fault_sweep_io(read_source, (char[]){TWO ":x"});
    sn_test_dir_end(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_arrays_of_npz_files_are_read_in_place),
        engine_test(test_what_is_not_there_is_named),
        engine_test(test_damaged_npz_files_are_messages),
        engine_test(test_cifar_pictures_have_their_colours_last),
        engine_test(test_feeds_survive_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
