/* test_model_arrays.c: .npy and idx files, plain and packed, as feeds: every row range equals the
 * whole, hostile files are refused before anything of their size is requested; and the .npy writer,
 * to the byte. */
#include "base/rng.h"
#include "support/array_image.h"

#include <snug/dataset.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- reading -------------------------------------------------------------------------------- */

static void test_all_npy_versions_are_read(void **state) {
    const float data[6] = {1, 2, 3, 4, 5, 6};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    for (int version = 1; version <= 3; version++) {
        snug_feed *feed;
        float back[6];
        write_image(sn_test_path(&d, "a.npy", path),
                    npy(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
                        data, sizeof data));
        expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
        assert_int_equal(snug_feed_type(feed)->rank, 2);
        fill_all(feed, SNUG_F32, back, sizeof back);
        assert_memory_equal(back, data, sizeof data);
        snug_feed_destroy(feed);
    }
    sn_test_dir_end(&d);
}

/* One array of each element type, values 1, 0 (and 2 where it fits). */
static void test_all_element_types_are_read(void **state) {
    static const struct {
        const char *descr;
        snug_dtype dtype;
        const char *bytes;
        size_t n;
        float first;
    } rows[] = {
        {"<f4", SNUG_F32, "\0\0\200\077\0\0\0\0", 8, 1},
        {">f4", SNUG_F32, "\077\200\0\0\0\0\0\0", 8, 1},
        {"<f8", SNUG_F64, "\0\0\0\0\0\0\360\077\0\0\0\0\0\0\0\0", 16, 1},
        {">f8", SNUG_F64, "\077\360\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 1},
        {"<f2", SNUG_F16, "\0\074\0\0", 4, 1},
        {"|i1", SNUG_I8, "\376\0", 2, -2},
        {"<i1", SNUG_I8, "\376\0", 2, -2},
        {"|u1", SNUG_U8, "\376\0", 2, 254},
        {"<i4", SNUG_I32, "\376\377\377\377\0\0\0\0", 8, -2},
        {">i4", SNUG_I32, "\377\377\377\376\0\0\0\0", 8, -2},
        {"<i8", SNUG_I64, "\376\377\377\377\377\377\377\377\0\0\0\0\0\0\0\0", 16, -2},
        {"|b1", SNUG_BOOL, "\1\0", 2, 1},
    };
    sn_test_dir d;
    char path[256], dict[128];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_feed *feed;
        float back[2];
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }",
                 rows[i].descr);
        write_image(sn_test_path(&d, "a.npy", path), npy(1, dict, rows[i].bytes, rows[i].n));
        expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
        assert_int_equal(snug_feed_type(feed)->dtype, rows[i].dtype);
        fill_all(feed, SNUG_F32, back, sizeof back);
        assert_true(back[0] == rows[i].first && back[1] == 0);
        snug_feed_destroy(feed);
    }
    sn_test_dir_end(&d);
}

static void test_dictionary_is_read_as_python_reads_it(void **state) {
    static const char *const dicts[] = {
        "{'shape': (2, 2), 'fortran_order': False, 'descr': '<f4'}",
        "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2, 2)}",
        "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 2 , ) , }",
        "{'descr':'<f4','fortran_order':False,'shape':(2,2)}",
    };
    const float data[4] = {1, 2, 3, 4};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        write_image(sn_test_path(&d, "a.npy", path), npy(1, dicts[i], data, sizeof data));
        expect_ok(read_all(*state, path, &err), &err);
    }
    /* a list is the same in both orders */
    write_image(path, npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (4,), }", data,
                          sizeof data));
    expect_ok(read_all(*state, path, &err), &err);
    sn_test_dir_end(&d);
}

static void test_arrays_without_elements_are_legal(void **state) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_feed *feed;
    sn_test_dir_begin(&d);
    write_image(sn_test_path(&d, "a.npy", path),
                npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", NULL, 0));
    expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
    assert_int_equal(snug_feed_type(feed)->dims[0], 0);
    snug_feed_destroy(feed);
    write_image(path,
                npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 0), }", NULL, 0));
    expect_ok(read_all(*state, path, &err), &err);
    sn_test_dir_end(&d);
}

static void test_idx_is_big_endian(void **state) {
    static const struct {
        unsigned char code;
        snug_dtype dtype;
        const char *bytes;
        size_t n;
        float first;
    } rows[] = {
        {0x08, SNUG_U8, "\376\0", 2, 254},
        {0x09, SNUG_I8, "\376\0", 2, -2},
        {0x0c, SNUG_I32, "\377\377\377\376\0\0\0\0", 8, -2},
        {0x0d, SNUG_F32, "\077\200\0\0\0\0\0\0", 8, 1},
        {0x0e, SNUG_F64, "\077\360\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 1},
    };
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "a-idx", path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char file[64] = {0, 0, rows[i].code, 2, 0, 0, 0, 2, 0, 0, 0, 1};
        snug_feed *feed;
        float back[2];
        memcpy(file + 12, rows[i].bytes, rows[i].n);
        sn_test_write_file(path, file, 12 + rows[i].n);
        expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
        assert_int_equal(snug_feed_type(feed)->dtype, rows[i].dtype);
        assert_int_equal(snug_feed_type(feed)->rank, 2);
        fill_all(feed, SNUG_F32, back, sizeof back);
        assert_true(back[0] == rows[i].first && back[1] == 0);
        snug_feed_destroy(feed);
    }
    sn_test_dir_end(&d);
}

/* --- what is refused ------------------------------------------------------------------------ */

typedef struct {
    const char *dict; /* NULL: `file` is the whole file */
    size_t data_bytes;
    const char *piece;
    const char *file;
    size_t file_bytes;
    snug_status status; /* 0: SNUG_E_FORMAT */
} refused_row;

static void refuses(void **state) {
    const refused_row *row = *state;
    unsigned char data[4096] = {0};
    snug_engine *e = sn_test_engine(0);
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "a.npy", path);
    write_image(path, row->dict ? npy(1, row->dict, data, row->data_bytes)
                                : copy_of(row->file, row->file_bytes));
    expect_status(read_all(e, path, &err), row->status ? row->status : SNUG_E_FORMAT, &err);
    expect_text(err.text, path);
    expect_text(err.text, row->piece);
    assert_true(snug_engine_peak_bytes(e) <
                512 << 10); /* no memory for what the file merely claims */
    sn_test_dir_end(&d);
    sn_test_engine_end(e);
}

#define REFUSED(name, dict, data, piece)                                                           \
    row_test("test_refuses_" name, refuses, (&(refused_row){dict, data, piece, NULL, 0, 0}))
#define REFUSED_FILE(name, bytes, piece)                                                           \
    row_test("test_refuses_" name, refuses,                                                        \
             (&(refused_row){NULL, 0, piece, bytes, sizeof bytes - 1, 0}))
#define REFUSED_SIZE(name, shape)                                                                  \
    row_test("test_refuses_" name, refuses,                                                        \
             (&(refused_row){"{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }", 0,  \
                             "f32[", NULL, 0, SNUG_E_OVERFLOW}))
#define F4(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

static void test_truncation_at_every_byte_is_a_format_error(void **state) {
    (void)state;
    const unsigned char idx[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2, 3, 4};
    const image plain = small_npy(), gz = packed(small_npy());
    sn_test_truncations(read_all, plain.bytes, plain.n);
    sn_test_truncations(read_all, gz.bytes, gz.n);
    sn_test_truncations(read_all, idx, sizeof idx);
    free(plain.bytes);
    free(gz.bytes);
}

/* Nothing is read of an array that the file cannot hold, however well it is packed. */
static void test_a_packed_array_is_no_longer_than_what_can_follow(void **state) {
    const unsigned char idx[] = {0, 0, 8, 2, 1, 0, 0, 0, 0, 0, 1, 0}; /* 2^24 rows of 256 bytes */
    unsigned char bytes[sizeof idx + 60000];
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_feed *feed;
    uint32_t draw = 1;
    memcpy(bytes, idx, sizeof idx);
    for (size_t i = sizeof idx; i < sizeof bytes; i++) {
        draw = draw * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(draw >> 24);
    }
    sn_test_dir_begin(&d);
    write_image(sn_test_path(&d, "a.gz", path), packed(copy_of(bytes, sizeof bytes)));
    expect_status(snug_feed_open(*state, path, &feed, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "its header describes 4294967296 bytes of data");
    expect_text(err.text, "packed ones unpack to");
    sn_test_dir_end(&d);
}

static void test_missing_file_is_named(void **state) {
    snug_error err = {0};
    expect_status(read_all(*state, "no/such/x.npy", &err), SNUG_E_IO, &err);
    expect_text(err.text, "no/such/x.npy");
    expect_status(read_all(*state, "/", &err), SNUG_E_IO, &err);
}

static void test_float_file_is_no_integer_feed(void **state) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_feed *feed;
    int32_t room[6];
    sn_test_dir_begin(&d);
    write_image(sn_test_path(&d, "a.npy", path), small_npy());
    expect_ok(snug_feed_open(*state, path, &feed, &err), &err);
    snug_view v = {.data = room, .bytes = sizeof room, .type = {SNUG_I32, 2, {3, 2}}};
    expect_status(snug_feed_fill(feed, 0, 3, &v, &err), SNUG_E_DATA, &err);
    expect_text(err.text, path);
    expect_status(snug_feed_fill(feed, 1, 3, &v, &err), SNUG_E_INVALID, &err); /* a row too many */
    snug_feed_destroy(feed);
    sn_test_dir_end(&d);
}

/* --- writing -------------------------------------------------------------------------------- */

static void expect_written(snug_engine *e, const snug_type *type, const void *data,
                           const char *header, size_t header_bytes) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_npy_writer *w;
    size_t n, data_bytes;
    expect_ok(snug_type_bytes(type, &data_bytes, &err), &err);
    sn_test_dir_begin(&d);
    expect_ok(snug_npy_create(e, sn_test_path(&d, "a.npy", path), type, &w, &err), &err);
    expect_ok(snug_npy_append(w, data, data_bytes / 2, &err), &err);
    expect_ok(
        snug_npy_append(w, (const char *)data + data_bytes / 2, data_bytes - data_bytes / 2, &err),
        &err);
    assert_int_equal(access(path, 0), -1); /* not there before commit */
    expect_ok(snug_npy_commit(w, &err), &err);
    expect_status(snug_npy_commit(w, &err), SNUG_E_INVALID, &err);
    snug_npy_destroy(w);
    unsigned char *bytes = sn_test_read_file(path, &n);
    assert_int_equal(n, header_bytes + data_bytes);
    assert_memory_equal(bytes, header, strlen(header + 10) + 10);
    for (size_t i = strlen(header + 10) + 10; i < header_bytes - 1; i++)
        assert_int_equal(bytes[i], ' ');
    assert_int_equal(bytes[header_bytes - 1], '\n');
    assert_memory_equal(bytes + header_bytes, data, data_bytes);
    free(bytes);
    sn_test_dir_end(&d);
}

/* Lengths and texts recorded from numpy 2.4. */
static void test_written_bytes_are_numpys(void **state) {
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const int64_t i8[2] = {1, -1};
    expect_written(
        *state, &(snug_type){SNUG_F32, 2, {2, 3}}, data,
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        128);
    expect_written(
        *state, &(snug_type){SNUG_I64, 1, {2}}, i8,
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", 128);
    expect_written(
        *state, &(snug_type){SNUG_U8, 3, {0, 4, 1}}, "",
        "\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4, 1), }",
        128);
    expect_written(*state, &(snug_type){SNUG_F32, 8, {0, 1000000000, 1000000000, 1, 1, 1, 1, 1}},
                   "",
                   "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
                   "(0, 1000000000, 1000000000, 1, 1, 1, 1, 1), }",
                   128);
}

static void test_writer_refuses_too_many_too_few_and_bf16(void **state) {
    const float data[6] = {1, 2, 3, 4, 5, 6};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_npy_writer *w;
    sn_test_dir_begin(&d);
    sn_test_path(&d, "a.npy", path);
    expect_ok(snug_npy_create(*state, path, &(snug_type){SNUG_F32, 1, {5}}, &w, &err), &err);
    expect_status(snug_npy_append(w, data, 24, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "4 bytes more than its shape holds");
    expect_ok(snug_npy_append(w, data, 16, &err), &err);
    expect_status(snug_npy_commit(w, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "4 bytes of its shape were not written");
    snug_npy_destroy(w);
    assert_int_equal(sn_test_dir_count(&d), 0); /* without commit nothing is left */
    expect_status(snug_npy_create(*state, path, &(snug_type){SNUG_BF16, 1, {5}}, &w, &err),
                  SNUG_E_UNSUPPORTED, &err);
    expect_status(snug_npy_create(*state, path, &(snug_type){SNUG_F32, 1, {-1}}, &w, &err),
                  SNUG_E_SHAPE, &err);
    sn_test_dir_end(&d);
}

static void test_rows_are_counted_where_nobody_knew_them(void **state) {
    const float data[6] = {1, 2, 3, 4, 5, 6};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_npy_writer *w;
    size_t n;
    sn_test_dir_begin(&d);
    sn_test_path(&d, "a.npy", path);
    const snug_type open = {SNUG_F32, 2, {SNUG_UNKNOWN, 3}};
    expect_ok(snug_npy_create(*state, path, &open, &w, &err), &err);
    expect_ok(snug_npy_append(w, data, 12, &err), &err);
    expect_ok(snug_npy_append(w, data + 3, 8, &err), &err);
    expect_status(snug_npy_commit(w, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "20 bytes are no rows of 12");
    expect_ok(snug_npy_append(w, data + 5, 4, &err), &err);
    expect_ok(snug_npy_commit(w, &err), &err);
    snug_npy_destroy(w);
    unsigned char *bytes = sn_test_read_file(path, &n);
    assert_int_equal(n, 128 + 24);
    assert_non_null(strstr((const char *)bytes + 10, "'shape': (2, 3), }"));
    assert_memory_equal(bytes + 128, data, 24);
    free(bytes);
    sn_test_dir_end(&d);
}

/* --- recipes -------------------------------------------------------------------------------- */

static void slices_of_a_recipe(void **state) {
    snug_engine *e = sn_test_engine(0);
    snug_feed *feed;
    snug_error err = {0};
    static float whole[97 * 13], part[97 * 13];
    expect_ok(snug_feed_open(e, *state, &feed, &err), &err);
    fill_all(feed, SNUG_F32, whole, sizeof whole);
    for (uint64_t i = 0; i < 60; i++) {
        const sn_philox_block r = sn_philox(8, 0, i);
        const int64_t first = r.v[0] % 97, n = r.v[1] % (uint32_t)(97 - first + 1);
        snug_view v = {.data = part, .bytes = sizeof part, .type = {SNUG_F32, 2, {n, 13}}};
        expect_ok(snug_feed_fill(feed, first, n, &v, &err), &err);
        assert_memory_equal(part, whole + first * 13, (size_t)n * 13 * sizeof(float));
    }
    snug_feed_destroy(feed);
    assert_true(snug_engine_peak_bytes(e) < 4096);
    sn_test_engine_end(e);
}

static void test_recipes_make_what_they_say(void **state) {
    snug_feed *feed;
    snug_error err = {0};
    static float x[10000];
    static int32_t labels[10000];
    int counts[10] = {0};
    double sum = 0, squares = 0;
    expect_ok(snug_feed_open(*state, "constant:100x100@-2.5", &feed, &err), &err);
    fill_all(feed, SNUG_F32, x, sizeof x);
    assert_true(x[0] == -2.5f && x[9999] == -2.5f);
    snug_feed_destroy(feed);
    expect_ok(snug_feed_open(*state, "normal:100x100@7", &feed, &err), &err);
    fill_all(feed, SNUG_F32, x, sizeof x);
    snug_feed_destroy(feed);
    for (int i = 0; i < 10000; i++)
        sum += (double)x[i], squares += (double)x[i] * (double)x[i];
    assert_true(sum / 10000 > -0.04 && sum / 10000 < 0.04 && squares / 10000 > 0.95 &&
                squares / 10000 < 1.05);
    expect_ok(snug_feed_open(*state, "labels:10000@7@10", &feed, &err), &err);
    assert_int_equal(snug_feed_type(feed)->dtype, SNUG_I32);
    fill_all(feed, SNUG_I32, labels, sizeof labels);
    snug_feed_destroy(feed);
    for (int i = 0; i < 10000; i++) {
        assert_true(labels[i] >= 0 && labels[i] < 10);
        counts[labels[i]]++;
    }
    for (int i = 0; i < 10; i++)
        assert_true(counts[i] > 850 && counts[i] < 1150);
    expect_ok(snug_feed_open(*state, "normal:256x1024x1024x3@7", &feed, &err),
              &err); /* 3 GiB, in a few bytes */
    snug_feed_destroy(feed);
}

static void test_bad_recipes_are_refused_with_the_form(void **state) {
    static const char *const bad[] = {
        "zeros:",
        "zeros:3x",
        "zeros:x3",
        "zeros:3@1",
        "zeros:-3",
        "zeros:+3",
        "zeros: 3",
        "zeros:3 ",
        "zeros:3X4",
        "normal:3x4",
        "normal:3x4@",
        "normal:3x4@x",
        "normal:3x4@-1",
        "normal:3x4@1.5",
        "normal:3x4@1e3",
        "normal:3x4@nan",
        "normal:3x4@1@2",
        "normal:@1",
        "labels:3@1",
        "labels:3@1@0",
        "labels:3@1@-2",
        "labels:3@1@nan",
        "labels:3@1@1e9",
        "labels:3@1@2147483648",
        "constant:3@",
        "constant:3@x",
        "constant:3@1x",
        "constant:3@ 1",
        "constant:3",
        "truncated:2x2@99999999999999999999",
        "zeros:1x1x1x1x1x1x1x1x1",
        "zeros:9223372036854775808",
        "uniform:3x@4",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snug_feed *feed;
        snug_error err = {0};
        if (snug_feed_open(*state, bad[i], &feed, &err) != SNUG_E_INVALID)
            fail_msg("'%s' gave %s: %s", bad[i], snug_status_name(err.code), err.text);
        expect_text(err.text, "is not of the form");
        expect_text(err.text, bad[i]);
    }
    snug_feed *feed;
    snug_error err = {0};
    expect_status(snug_feed_open(*state, "zeros:4611686018427387904x4", &feed, &err),
                  SNUG_E_OVERFLOW, &err);
    expect_text(err.text, "zeros:4611686018427387904x4");
    expect_status(snug_feed_open(*state, "nothing:3x4", &feed, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "neither a file nor a recipe; there are zeros:SHAPE, ");
    expect_status(snug_feed_open(*state, "./nothing:3x4", &feed, &err), SNUG_E_IO,
                  &err); /* a file of that name */
}

/* --- faults --------------------------------------------------------------------------------- */

static snug_status read_scenario(snug_engine *e, void *ctx, snug_error *err) {
    return read_all(e, ctx, err);
}

/* The last row, then the second: a packed file is unpacked on the way. */
static snug_status read_backward(snug_engine *e, void *ctx, snug_error *err) {
    snug_feed *feed;
    float room[2];
    snug_view v = {.data = room, .bytes = sizeof room, .type = {SNUG_F32, 2, {1, 2}}};
    SNUG_TRY(snug_feed_open(e, ctx, &feed, err));
    snug_status status = snug_feed_fill(feed, 2, 1, &v, err);
    if (status == SNUG_OK)
        status = snug_feed_fill(feed, 1, 1, &v, err);
    if (status == SNUG_OK && (room[0] != 3 || room[1] != 4))
        status = sn_fail(err, SNUG_E_INTERNAL, "row 1 is %g, %g", (double)room[0], (double)room[1]);
    snug_feed_destroy(feed);
    return status;
}

static snug_status write_scenario(snug_engine *e, void *ctx, snug_error *err) {
    const float data[4] = {1, 2, 3, 4};
    snug_npy_writer *w;
    SNUG_TRY(snug_npy_create(e, ctx, &(snug_type){SNUG_F32, 1, {4}}, &w, err));
    snug_status status = snug_npy_append(w, data, 16, err);
    if (status == SNUG_OK)
        status = snug_npy_commit(w, err);
    snug_npy_destroy(w);
    return status;
}

static void test_reading_and_writing_survive_any_fault(void **state) {
    (void)state;
    sn_test_dir d;
    char plain[256], gz[256], out[256];
    sn_test_dir_begin(&d);
    write_image(sn_test_path(&d, "a.npy", plain), small_npy());
    write_image(sn_test_path(&d, "a.gz", gz), packed(small_npy()));
    sn_test_path(&d, "out", out);
    sn_fault_sweep(read_scenario, plain);
    sn_fault_sweep_io(read_scenario, plain);
    sn_fault_sweep(read_scenario, gz);
    sn_fault_sweep_io(read_scenario, gz);
    sn_fault_sweep(read_backward, gz);
    sn_fault_sweep_io(read_backward, gz);
    sn_fault_sweep(write_scenario, out);
    sn_fault_sweep_io(write_scenario, out);
    sn_fault_sweep(read_scenario, "normal:5x3@1");
    sn_test_dir_end(&d);
}

static const struct CMUnitTest tests[] = {
    engine_test(test_all_npy_versions_are_read),
    engine_test(test_all_element_types_are_read),
    engine_test(test_dictionary_is_read_as_python_reads_it),
    engine_test(test_arrays_without_elements_are_legal),
    engine_test(test_idx_is_big_endian),
    engine_test(test_missing_file_is_named),
    engine_test(test_float_file_is_no_integer_feed),
    cmocka_unit_test(test_truncation_at_every_byte_is_a_format_error),
    engine_test(test_a_packed_array_is_no_longer_than_what_can_follow),
    REFUSED_FILE("empty_file", "", "it is empty"),
    REFUSED_FILE("text", "1,2,3\n4,5,6\n", "neither .npy nor idx"),
    REFUSED_FILE("npy_version_4", "\x93NUMPY\x04\x00\x00\x00\x00\x00", "version 4.0"),
    REFUSED_FILE("npy_version_1_1", "\x93NUMPY\x01\x01\x00\x00\x00\x00", "version 1.1"),
    REFUSED_FILE("npy_header_of_4_gib", "\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
                 "truncated, or longer than 8,000"),
    REFUSED_FILE("npy_header_without_dictionary", "\x93NUMPY\x01\x00\x00\x00", "no dictionary"),
    REFUSED_FILE("zero_byte_in_npy_header", "\x93NUMPY\x01\x00\x04\x00{\0}\n", "zero byte"),
    REFUSED("missing_key", "{'descr': '<f4', 'shape': (1,), }", 4, "no dictionary with"),
    REFUSED("unknown_key", "{'descr': '<f4', 'fortran_order': False, 'shapes': (1,), }", 4,
            "unknown or comes twice"),
    REFUSED("key_given_twice", "{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", 4,
            "unknown or comes twice"),
    REFUSED("fourth_key", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4,
            "more in it"),
    REFUSED("text_behind_the_dictionary", F4("(1,)") " x", 4, "text behind the dictionary"),
    REFUSED("unclosed_dictionary", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ", 4,
            "more in it"),
    REFUSED("record_type", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4,
            "records"),
    REFUSED("objects", "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8,
            "holds elements '|O'"),
    REFUSED("complex_numbers", "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8,
            "holds elements '<c8'"),
    REFUSED("long_type_name",
            "{'descr': '<f44444444444444444', 'fortran_order': False, 'shape': (1,), }", 8,
            "'descr'"),
    REFUSED("fortran_order", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16,
            "ascontiguousarray"),
    REFUSED("order_that_is_no_flag", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2), }", 16,
            "neither True nor False"),
    REFUSED("shape_without_parentheses", F4("3"), 12, "no tuple"),
    REFUSED("number_in_parentheses", F4("(3)"), 12, "no tuple"),
    REFUSED("negative_extent", F4("(-1, 3)"), 12, "no count"),
    REFUSED("extent_of_2_to_the_63", F4("(9223372036854775808,)"), 12, "no count below 2^63"),
    REFUSED("extent_with_letters", F4("(3L,)"), 12, "no count"),
    REFUSED("two_commas", F4("(3,,4)"), 48, "no count"),
    REFUSED("missing_comma", F4("(3 4)"), 48, "no count"),
    REFUSED("rank_9", F4("(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, "more than 8 axes"),
    REFUSED("single_number", F4("()"), 4, "single number"),
    REFUSED("65536_by_65536_in_a_small_file", F4("(65536, 65536)"), 80,
            "describes 17179869184 bytes of data, 80 are there"),
    REFUSED("2_to_the_62_bytes",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904,), }", 80,
            "describes 4611686018427387904 bytes"),
    REFUSED("one_byte_missing", F4("(3, 2)"), 23, "truncated"),
    REFUSED("one_byte_too_many", F4("(3, 2)"), 25, "too long"),
    REFUSED_SIZE("2_to_the_64_bytes", "(4294967296, 4294967296)"),
    REFUSED_SIZE("overflow_hidden_by_a_zero", "(0, 4294967296, 4294967296)"),
    row_test("test_refuses_data_ending_beyond_2_to_the_63", refuses,
             (&(refused_row){
                 "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,), }", 0,
                 "beyond 2^63", NULL, 0, SNUG_E_OVERFLOW})),
    REFUSED_FILE("idx_of_unknown_elements", "\0\0\x0a\1\0\0\0\1x", "element code 0x0a"),
    REFUSED_FILE("idx_of_rank_0", "\0\0\x08\0x", "0 axes"),
    REFUSED_FILE("idx_of_rank_9", "\0\0\x08\x09\0\0\0\1\0\0\0\1", "9 axes"),
    REFUSED_FILE("idx_with_trailing_bytes", "\0\0\x08\1\0\0\0\1xy", "too long"),
    REFUSED_FILE("idx_claiming_2_to_the_62_bytes", "\0\0\x08\2\177\377\377\377\177\377\377\377xy",
                 "truncated"),
    engine_test(test_written_bytes_are_numpys),
    engine_test(test_writer_refuses_too_many_too_few_and_bf16),
    engine_test(test_rows_are_counted_where_nobody_knew_them),
    row_test("test_any_slice_of_normal_equals_the_whole", slices_of_a_recipe, "normal:97x13@7"),
    row_test("test_any_slice_of_uniform_equals_the_whole", slices_of_a_recipe, "uniform:97x13@0"),
    row_test("test_any_slice_of_truncated_equals_the_whole", slices_of_a_recipe,
             "truncated:97x13@1"),
    row_test("test_any_slice_of_labels_equals_the_whole", slices_of_a_recipe, "labels:97x13@3@10"),
    row_test("test_any_slice_of_zeros_equals_the_whole", slices_of_a_recipe, "zeros:97x13"),
    engine_test(test_recipes_make_what_they_say),
    engine_test(test_bad_recipes_are_refused_with_the_form),
    cmocka_unit_test(test_reading_and_writing_survive_any_fault),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
