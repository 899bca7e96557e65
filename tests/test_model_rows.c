/* test_model_rows.c: any rows of an array file are those of the whole, packed or not; packed files
 * that are damaged, longer or shorter than they say are refused. */
#include "base/rng.h"
#include "support/array_image.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- ranges --------------------------------------------------------------------------------- */

enum { ROWS = 700, ROW = 401 }; /* 1.1 MB as f32: several windows, none a multiple of a row */

static float value_at(int64_t i) {
    return (float)(i % 251) - 17;
}

/* ROWS x ROW of the element type, as .npy (little or big endian) or idx. */
static image big_file(const char *kind) {
    const size_t n = ROWS * ROW;
    float *data = malloc(n * sizeof *data);
    unsigned char *swapped = malloc(n * 4 + 12);
    assert_true(data && swapped);
    for (size_t i = 0; i < n; i++)
        data[i] = value_at((int64_t)i);
    for (size_t i = 0; i < n * 4; i++)
        swapped[12 + i] = ((unsigned char *)data)[i / 4 * 4 + 3 - i % 4];
    image f = {NULL, 0};
    if (strcmp(kind, "npy") == 0)
        f = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (700, 401), }", data, n * 4);
    else if (strcmp(kind, "npy big endian") == 0)
        f = npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (700, 401), }", swapped + 12,
                n * 4);
    else {
        const unsigned char head[12] = {0,         0,          0x0d, 2, 0,        0,
                                        ROWS >> 8, ROWS & 255, 0,    0, ROW >> 8, ROW & 255};
        memcpy(swapped, head, 12);
        f = (image){swapped, n * 4 + 12};
        swapped = NULL;
    }
    free(data);
    free(swapped);
    return f;
}

static void expect_range(snug_feed *feed, int64_t first, int64_t n, snug_dtype dtype) {
    static double room[ROWS * ROW + 1];
    snug_error err = {0};
    snug_view v = {.data = room, .bytes = sizeof room, .type = *snug_feed_type(feed)};
    v.type.dims[0] = n;
    v.type.dtype = dtype;
    memset(room, 0xff, sizeof room);
    expect_ok(snug_feed_fill(feed, first, n, &v, &err), &err);
    for (int64_t i = 0; i < n * ROW; i++) {
        const double got = dtype == SNUG_F64 ? room[i] : (double)((float *)room)[i];
        if (got != (double)value_at(first * ROW + i))
            fail_msg("row %lld, element %lld is %g", (long long)(first + i / ROW),
                     (long long)(i % ROW), got);
    }
    const unsigned char *behind =
        (unsigned char *)room + (size_t)(n * ROW) * snug_dtype_bytes(dtype);
    assert_int_equal(*behind, 0xff); /* nothing is written behind the view */
}

static void ranges(void **state) {
    const char *kind = *state;
    const bool packed = strncmp(kind, "gz ", 3) == 0;
    snug_engine *e = sn_test_engine(0);
    snug_feed *feed;
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    image f = big_file(packed ? kind + 3 : kind);
    if (packed) {
        image p = {NULL, 0};
        p.bytes = sn_test_gzip(f.bytes, f.n, &p.n);
        free(f.bytes);
        f = p;
    }
    write_image(sn_test_path(&d, "a", path), f);
    expect_ok(snug_feed_open(e, path, &feed, &err), &err);
    expect_range(feed, 0, ROWS, SNUG_F32); /* larger than the window */
    expect_range(feed, ROWS - 1, 1, SNUG_F64);
    expect_range(feed, 0, 1, SNUG_F32); /* backward */
    expect_range(feed, 1, 5, SNUG_F64); /* forward */
    expect_range(feed, ROWS, 0, SNUG_F32);
    for (uint64_t i = 0; i < 40; i++) {
        const sn_philox_block r = sn_philox(5, 0, i);
        const int64_t first = r.v[0] % ROWS, n = r.v[1] % (uint32_t)(ROWS - first + 1);
        expect_range(feed, first, i % 2 ? n : n % 4, i % 3 ? SNUG_F32 : SNUG_F64);
    }
    assert_true(snug_engine_peak_bytes(e) < 512 << 10); /* windows, never whole */
    snug_feed_destroy(feed);
    sn_test_dir_end(&d);
    sn_test_engine_end(e);
}

static image joined(image a, image b) {
    image f = {malloc(a.n + b.n + 1), a.n + b.n};
    assert_non_null(f.bytes);
    memcpy(f.bytes, a.bytes, a.n);
    memcpy(f.bytes + a.n, b.bytes, b.n);
    free(a.bytes);
    free(b.bytes);
    return f;
}

static void test_several_gzip_members_are_one_stream(void **state) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    for (size_t cut = 1; cut < 152; cut += 50) {
        image whole = small_npy();
        const image a = packed(copy_of(whole.bytes, cut)),
                    b = packed(copy_of(whole.bytes + cut, whole.n - cut));
        free(whole.bytes);
        write_image(sn_test_path(&d, "a.gz", path), joined(a, b));
        expect_ok(read_all(*state, path, &err), &err);
    }
    sn_test_dir_end(&d);
}

static snug_status read_image(snug_engine *e, image f, snug_error *err) {
    sn_test_dir d;
    char path[256];
    sn_test_dir_begin(&d);
    write_image(sn_test_path(&d, "a.gz", path), f);
    const snug_status status = read_all(e, path, err);
    sn_test_dir_end(&d);
    return status;
}

static void test_refuses_bytes_behind_gzip_data(void **state) {
    snug_error err = {0};
    expect_status(read_image(*state, joined(packed(small_npy()), copy_of("garbage", 7)), &err),
                  SNUG_E_FORMAT, &err);
    expect_text(err.text, "bytes behind its gzip data");
    expect_status(read_image(*state, joined(packed(small_npy()), copy_of("\x1f\x8b", 2)), &err),
                  SNUG_E_FORMAT, &err);
    expect_text(err.text, "truncated");
}

static void test_refuses_unpacked_data_longer_or_shorter_than_the_shape(void **state) {
    snug_error err = {0};
    expect_status(read_image(*state, packed(joined(small_npy(), copy_of("x", 1))), &err),
                  SNUG_E_FORMAT, &err);
    expect_text(err.text, "too long");
    image f = small_npy();
    f.n--;
    expect_status(read_image(*state, packed(f), &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "truncated: its header describes 24 bytes of data, 23 are there");
}

/* Longer than what opening looks at, so that reading the last rows must find it. */
static void test_refuses_long_unpacked_data_of_another_length(void **state) {
    static float data[5001];
    snug_error err = {0};
    const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (5000,), }";
    expect_status(read_image(*state, packed(npy(1, dict, data, 5001 * 4)), &err), SNUG_E_FORMAT,
                  &err);
    expect_text(err.text, "too long");
    expect_status(read_image(*state, packed(npy(1, dict, data, 4999 * 4)), &err), SNUG_E_FORMAT,
                  &err);
    expect_text(err.text, "truncated: its header describes 20000 bytes of data, 19996 are there");
}

static void test_wrong_gzip_checksum_is_found(void **state) {
    snug_error err = {0};
    image f = packed(small_npy());
    f.bytes[f.n - 6] ^= 1; /* CRC32 of the trailer */
    expect_status(read_image(*state, f, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "damaged gzip data");
}

static void test_damaged_gzip_never_reads_as_other_numbers(void **state) {
    image f = packed(small_npy());
    int caught = 0;
    for (size_t i = 10; i < f.n;
         i++) { /* behind the gzip header, whose name and time may be anything */
        image g = copy_of(f.bytes, f.n);
        snug_error err = {0};
        g.bytes[i] ^= 0x10;
        const snug_status status = read_image(*state, g, &err);
        if (status != SNUG_E_FORMAT)
            fail_msg("damage at byte %zu: %s", i, snug_status_name(status));
        caught++;
    }
    assert_true(caught > 60);
    free(f.bytes);
}

static void test_packed_file_in_random_order_is_unpacked_once(void **state) {
    snug_feed *feed;
    sn_test_dir d, tmp;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_dir_begin(&tmp);
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", tmp.path, 1);
    write_image(sn_test_path(&d, "a.gz", path), packed(big_file("npy")));
    expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
    expect_range(feed, 0, ROWS, SNUG_F32);
    expect_range(feed, 0, ROWS, SNUG_F32); /* from the start again: the next epoch */
    expect_range(feed, 300, 1, SNUG_F32);
    sn_fault_io(*state, INT64_MAX, SN_FAULT_EIO, false); /* counts from here */
    for (int64_t i = 0; i < 200; i++)
        expect_range(feed, i * 37 % ROWS, 1, SNUG_F32);
    assert_int_equal(sn_fault_io_requests(*state), 200);
    sn_fault_io(*state, -1, SN_FAULT_EIO, false);
    assert_int_equal(sn_test_dir_count(&tmp), 0); /* the temporary file has no name */
    snug_feed_destroy(feed);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    sn_test_dir_end(&tmp);
    sn_test_dir_end(&d);
}

static void test_packed_file_without_room_to_unpack_says_so(void **state) {
    snug_feed *feed;
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    static float room[ROWS * ROW];
    sn_test_dir_begin(&d);
    write_image(sn_test_path(&d, "a.gz", path), packed(big_file("npy")));
    expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
    expect_range(feed, 0, ROWS, SNUG_F32);
    snug_view v = {.data = room, .bytes = sizeof room, .type = *snug_feed_type(feed)};
    v.type.dims[0] = 1;
    sn_fault_io(*state, 0, SN_FAULT_ENOSPC, true);
    expect_status(snug_feed_fill(feed, 5, 1, &v, &err), SNUG_E_IO, &err);
    sn_fault_io(*state, -1, SN_FAULT_EIO, false);
    expect_text(err.text, path);
    expect_text(err.text, "set TMPDIR, or unpack it with gunzip");
    expect_range(feed, 5, 1, SNUG_F32); /* when there is room again */
    snug_feed_destroy(feed);
    sn_test_dir_end(&d);
}

/* A read that fails leaves the stream where it was: the next one gives the right rows. */
static void test_rows_are_right_after_a_fault_that_passed(void **state) {
    snug_feed *feed;
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    write_image(sn_test_path(&d, "a.gz", path), packed(big_file("npy")));
    expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
    static float room[ROWS * ROW];
    for (int64_t k = 0; k < 3; k++) {
        snug_view v = {.data = room, .bytes = sizeof room, .type = *snug_feed_type(feed)};
        sn_fault_io(*state, k, SN_FAULT_EIO, false);
        const snug_status status = snug_feed_fill(feed, 0, ROWS, &v, &err);
        assert_true(!sn_fault_fired(*state) || status == SNUG_E_IO);
        sn_fault_io(*state, -1, SN_FAULT_EIO, false);
        expect_range(feed, 600, 3, SNUG_F32);
    }
    snug_feed_destroy(feed);
    sn_test_dir_end(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        row_test("test_any_rows_of_npy_equal_the_whole", ranges, "npy"),
        row_test("test_any_rows_of_big_endian_npy_equal_the_whole", ranges, "npy big endian"),
        row_test("test_any_rows_of_idx_equal_the_whole", ranges, "idx"),
        row_test("test_any_rows_of_packed_npy_equal_the_whole", ranges, "gz npy"),
        row_test("test_any_rows_of_packed_idx_equal_the_whole", ranges, "gz idx"),
        engine_test(test_several_gzip_members_are_one_stream),
        engine_test(test_refuses_bytes_behind_gzip_data),
        engine_test(test_refuses_unpacked_data_longer_or_shorter_than_the_shape),
        engine_test(test_refuses_long_unpacked_data_of_another_length),
        engine_test(test_wrong_gzip_checksum_is_found),
        engine_test(test_damaged_gzip_never_reads_as_other_numbers),
        engine_test(test_packed_file_in_random_order_is_unpacked_once),
        engine_test(test_packed_file_without_room_to_unpack_says_so),
        engine_test(test_rows_are_right_after_a_fault_that_passed),
    };
    return cmocka_run_group_tests_name("model_rows", tests, NULL, NULL);
}
