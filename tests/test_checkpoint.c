/* test_checkpoint.c: checkpoints come back as they were written, or are refused; any byte that is
 * not as it was written is noticed. */
#include "model/checkpoint_format.h"
#include "support/files.h"
#include "support/support.h"

#include <snug/checkpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const snug_type f32_3 = {.dtype = SNUG_F32, .rank = 1, .dims = {3}},
                       i64_none = {.dtype = SNUG_I64, .rank = 0},
                       u8_empty = {.dtype = SNUG_U8, .rank = 2, .dims = {0, 5}};
static const float some[3] = {1.5f, -2, 3};
static const int64_t number = -7;

static snug_status add(snug_checkpoint_writer *w, const char *name, const snug_type *type,
                       const void *bytes, size_t n, snug_error *err) {
    const snug_status status = snug_checkpoint_begin(w, name, type, err);
    return status == SNUG_OK ? snug_checkpoint_append(w, bytes, n, err) : status;
}

/* Three arrays; used by the sweeps as well. */
static snug_status write_some(snug_engine *e, void *path, snug_error *err) {
    snug_checkpoint_writer *w = NULL;
    snug_status status = snug_checkpoint_create(e, path, &w, err);
    if (status == SNUG_OK)
        status = add(w, "layers/dense/kernel", &f32_3, some, sizeof some, err);
    if (status == SNUG_OK)
        status = add(w, "step", &i64_none, &number, sizeof number, err);
    if (status == SNUG_OK)
        status = add(w, "nothing", &u8_empty, NULL, 0, err);
    if (status == SNUG_OK)
        status = snug_checkpoint_commit(w, err);
    snug_checkpoint_writer_destroy(w);
    return status;
}

static snug_status read_some(snug_engine *e, void *path, snug_error *err) {
    snug_checkpoint *c = NULL;
    float to[3];
    const snug_view view = {.data = to, .bytes = sizeof to, .type = f32_3};
    size_t i = 9;
    snug_status status = snug_checkpoint_open(e, path, 0, &c, err);
    if (status == SNUG_OK)
        status = snug_checkpoint_find(c, "layers/dense/kernel", &i, err);
    if (status == SNUG_OK)
        status = snug_checkpoint_read(c, i, &view, err);
    snug_checkpoint_close(c);
    if (status == SNUG_OK)
        assert_memory_equal(to, some, sizeof some);
    return status;
}

static void test_arrays_come_back_as_written(void **state) {
    sn_test_dir d;
    char path[256];
    const char *name;
    snug_type type;
    int64_t to = 0;
    snug_error err = {0};
    snug_checkpoint *c;
    sn_test_dir_begin(&d);
    sn_test_path(&d, "c", path);
    expect_ok(write_some(*state, path, &err), &err);
    assert_int_equal(sn_test_dir_count(&d), 1);
    expect_ok(read_some(*state, path, &err), &err);
    expect_ok(snug_checkpoint_open(*state, path, 0, &c, &err), &err);
    assert_int_equal(snug_checkpoint_count(c), 3);
    expect_ok(snug_checkpoint_at(c, 1, &name, &type, &err), &err);
    assert_string_equal(name, "step");
    assert_int_equal(type.dtype, SNUG_I64);
    snug_view view = {.data = &to, .bytes = sizeof to, .type = type};
    expect_ok(snug_checkpoint_read(c, 1, &view, &err), &err);
    assert_int_equal(to, number);
    expect_status(snug_checkpoint_read(c, 0, &view, &err), SNUG_E_SHAPE, &err);
    expect_status(snug_checkpoint_read(c, 3, &view, &err), SNUG_E_INVALID, &err);
    expect_status(snug_checkpoint_read(c, 1, NULL, &err), SNUG_E_INVALID, &err);
    size_t i;
    expect_status(snug_checkpoint_find(c, "bias", &i, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "it holds 3, first 'layers/dense/kernel'");
    snug_checkpoint_close(c);
    snug_checkpoint_close(NULL);
    sn_test_dir_end(&d);
}

static void test_a_writer_says_what_is_missing(void **state) {
    sn_test_dir d;
    char path[256], long_name[1100] = {0};
    snug_error err = {0};
    snug_checkpoint_writer *w;
    sn_test_dir_begin(&d);
    sn_test_path(&d, "c", path);
    memset(long_name, 'n', 1001);
    expect_ok(snug_checkpoint_create(*state, path, &w, &err), &err);
    expect_status(snug_checkpoint_append(w, some, 4, &err), SNUG_E_INVALID, &err);
    expect_ok(snug_checkpoint_begin(w, "a", &f32_3, &err), &err);
    expect_ok(snug_checkpoint_append(w, some, 8, &err), &err);
    expect_status(snug_checkpoint_begin(w, "b", &f32_3, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "4 bytes are missing");
    expect_status(snug_checkpoint_commit(w, &err), SNUG_E_INVALID, &err);
    expect_status(snug_checkpoint_append(w, some, 8, &err), SNUG_E_INVALID, &err);
    expect_ok(snug_checkpoint_append(w, some + 2, 4, &err), &err);
    expect_status(snug_checkpoint_begin(w, "", &f32_3, &err), SNUG_E_INVALID, &err);
    expect_status(snug_checkpoint_begin(w, long_name, &f32_3, &err), SNUG_E_INVALID, &err);
    expect_status(snug_checkpoint_begin(w, NULL, &f32_3, &err), SNUG_E_INVALID, &err);
    const snug_type open_type = {.dtype = SNUG_F32, .rank = 1, .dims = {-1}};
    expect_status(snug_checkpoint_begin(w, "b", &open_type, &err), SNUG_E_SHAPE, &err);
    expect_ok(add(w, "a", &f32_3, some, sizeof some, &err), &err);
    expect_status(snug_checkpoint_commit(w, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "two arrays are named 'a'");
    snug_checkpoint_writer_destroy(w);
    assert_int_equal(sn_test_dir_count(&d), 0);
    expect_status(snug_checkpoint_begin(NULL, "a", &f32_3, &err), SNUG_E_INVALID, &err);
    expect_status(snug_checkpoint_commit(NULL, &err), SNUG_E_INVALID, &err);
    sn_test_dir_end(&d);
}

static void test_every_changed_or_missing_byte_is_noticed(void **state) {
    sn_test_dir d;
    char path[256];
    size_t n;
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "c", path);
    expect_ok(write_some(*state, path, &err), &err);
    unsigned char *raw = sn_test_read_file(path, &n);
    for (size_t i = 0; i < n; i++) {
        raw[i] ^= (unsigned char)(1u << i % 8);
        sn_test_write_file(path, raw, n);
        expect_status(read_some(*state, path, &err), SNUG_E_FORMAT, &err);
        expect_text(err.text, path);
        raw[i] ^= (unsigned char)(1u << i % 8);
        sn_test_write_file(path, raw, i);
        expect_status(read_some(*state, path, &err), SNUG_E_FORMAT, &err);
    }
    free(raw);
    sn_test_dir_end(&d);
}

/* Rows of the index that lie, with all checksums right. */
static void test_an_index_that_lies_is_refused(void **state) {
    static const struct {
        size_t at; /* in the first row */
        uint64_t value;
        int bytes;
        const char *piece;
    } lies[] = {{0, 0, 4, "a row of its index"},
                {0, 1u << 31, 4, "a row of its index"},
                {4, 200, 4, "no type"},
                {4, SNUG_OPAQUE, 4, "no type"},
                {8, 9, 4, "a row of its index"},
                {12, 1, 4, "the checksum of 'layers/dense/kernel'"},
                {16, 128, 8, "not where"},
                {24, UINT64_MAX, 8, "no type"},
                {32, UINT64_C(1) << 62, 8, "no type"},
                {32, UINT64_MAX, 8, "no type"}};
    sn_test_dir d;
    char path[256];
    size_t n;
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "c", path);
    expect_ok(write_some(*state, path, &err), &err);
    unsigned char *raw = sn_test_read_file(path, &n);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        unsigned char *foot = raw + n - SN_CKPT_FOOT_BYTES, *row = raw + sn_ckpt_get(foot, 8);
        const uint64_t bytes = sn_ckpt_get(foot + 8, 8);
        const uint64_t before = sn_ckpt_get(row + lies[i].at, lies[i].bytes);
        sn_ckpt_put(row + lies[i].at, lies[i].value, lies[i].bytes);
        sn_ckpt_put(foot + 24, crc32(0, row, (uInt)bytes), 4);
        sn_ckpt_put(foot + 28, crc32(0, foot, 28), 4);
        sn_test_write_file(path, raw, n);
        expect_status(read_some(*state, path, &err), SNUG_E_FORMAT, &err);
        expect_text(err.text, lies[i].piece);
        sn_ckpt_put(row + lies[i].at, before, lies[i].bytes);
    }
    free(raw);
    sn_test_dir_end(&d);
}

static void test_writing_and_reading_survive_any_fault(void **state) {
    (void)state;
    sn_test_dir d;
    char path[256], out[256];
    snug_error err = {0};
    snug_engine *e = sn_test_engine(0);
    sn_test_dir_begin(&d);
    sn_test_path(&d, "c", path);
    sn_test_path(&d, "out", out);
    expect_ok(write_some(e, path, &err), &err);
    sn_test_engine_end(e);
    sn_fault_sweep(read_some, path);
    sn_fault_sweep_io(read_some, path);
    sn_fault_sweep(write_some, out);
    sn_fault_sweep_io(write_some, out);
    sn_test_dir_end(&d);
}

static snug_status read_file(snug_engine *e, const char *path, snug_error *err) {
    snug_checkpoint *c = NULL;
    const snug_status status = snug_checkpoint_open(e, path, 0, &c, err);
    snug_checkpoint_close(c);
    return status;
}

static void test_more_arrays_than_expected_are_refused(void **state) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_checkpoint *c;
    sn_test_dir_begin(&d);
    sn_test_path(&d, "c", path);
    expect_ok(write_some(*state, path, &err), &err);
    expect_status(snug_checkpoint_open(*state, path, 2, &c, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "holds 3 arrays; at most 2");
    expect_ok(snug_checkpoint_open(*state, path, 3, &c, &err), &err);
    snug_checkpoint_close(c);
    sn_test_dir_end(&d);
}

/* Its memory would be asked for before a row is read. */
static void test_an_index_too_long_for_its_rows_is_refused(void **state) {
    enum { INDEX = SN_CKPT_MAX_ROW + 1, N = SN_CKPT_HEAD_BYTES + INDEX + SN_CKPT_FOOT_BYTES };
    static unsigned char raw[N];
    unsigned char *foot = raw + SN_CKPT_HEAD_BYTES + INDEX;
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_ckpt_head(raw);
    sn_ckpt_put(foot, SN_CKPT_HEAD_BYTES, 8);
    sn_ckpt_put(foot + 8, INDEX, 8);
    sn_ckpt_put(foot + 16, 1, 8);
    sn_ckpt_put(foot + 24, crc32(0, raw + SN_CKPT_HEAD_BYTES, INDEX), 4);
    sn_ckpt_put(foot + 28, crc32(0, foot, 28), 4);
    memcpy(foot + 32, SN_CKPT_FOOT, 8);
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "c", path), raw, N);
    expect_status(read_file(*state, path, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "not where its end says");
    sn_test_dir_end(&d);
}

static void test_damaged_checkpoints_are_refused(void **state) {
    sn_test_dir d;
    char path[256];
    size_t n;
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "c", path);
    expect_ok(write_some(*state, path, &err), &err);
    unsigned char *raw = sn_test_read_file(path, &n);
    sn_test_mutations(read_file, &(sn_test_seed){raw, n}, 1, 2000);
    free(raw);
    sn_test_dir_end(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_arrays_come_back_as_written),
        engine_test(test_a_writer_says_what_is_missing),
        engine_test(test_every_changed_or_missing_byte_is_noticed),
        engine_test(test_an_index_that_lies_is_refused),
        engine_test(test_more_arrays_than_expected_are_refused),
        engine_test(test_an_index_too_long_for_its_rows_is_refused),
        engine_test(test_damaged_checkpoints_are_refused),
        cmocka_unit_test(test_writing_and_reading_survive_any_fault),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
