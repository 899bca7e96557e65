/* test_model_safetensors.c: weights on disk: what is written, what is read back, what is
 * refused. */
#include "model/safetensors.h"
#include "support/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- helpers -------------------------------------------------------------------------------- */

static snug_view view_of(snug_dtype dtype, int rank, const int64_t *dims, void *data) {
    snug_view v = {.data = data, .type = {.dtype = dtype, .rank = rank}};
    snug_error err = {0};
    for (int i = 0; i < rank; i++)
        v.type.dims[i] = dims[i];
    expect_ok(snug_type_bytes(&v.type, &v.bytes, &err), &err);
    return v;
}

#define VIEW(dtype, data, ...)                                                                     \
    view_of(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                      \
            (int64_t[]){__VA_ARGS__}, data)

/* Length, header, n bytes of data. */
static void write_st(const char *path, const char *header, size_t data_bytes) {
    const size_t n = strlen(header), total = 8 + n + data_bytes;
    unsigned char *file = calloc(1, total + 1);
    assert_non_null(file);
    for (size_t i = 0; i < 8; i++)
        file[i] = (unsigned char)((uint64_t)n >> (8 * i));
    memcpy(file + 8, header, n);
    for (size_t i = 0; i < data_bytes; i++)
        file[8 + n + i] = (unsigned char)i;
    sn_test_write_file(path, file, total);
    free(file);
}

/* Opens and reads every tensor as f32 where that is possible. */
static snug_status read_all(snug_engine *e, const char *path, snug_error *err) {
    sn_safetensors *s;
    static float room[1 << 16];
    SNUG_TRY(sn_safetensors_open(e, path, 0, &s, err));
    snug_status status = SNUG_OK;
    for (size_t i = 0; i < sn_safetensors_count(s) && status == SNUG_OK; i++) {
        const sn_st_entry *t = sn_safetensors_at(s, i);
        snug_view v = {.data = room, .type = t->type, .bytes = sizeof room};
        v.type.dtype = SNUG_F32;
        if (t->bytes <= sizeof room / 4)
            status = sn_safetensors_read(s, t, &v, err);
    }
    sn_safetensors_close(s);
    return status;
}

static const char small_header[] =
    "{\"a/kernel\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
    "\"a/bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}";

/* --- writing -------------------------------------------------------------------------------- */

static void test_file_without_tensors_has_the_golden_bytes(void **state) {
    static const unsigned char golden[] = {8,   0,   0,   0,   0,   0,   0,   0,
                                           '{', '}', ' ', ' ', ' ', ' ', ' ', ' '};
    sn_test_dir d;
    char path[256];
    size_t n;
    snug_error err = {0};
    sn_test_dir_begin(&d);
    expect_ok(sn_safetensors_save(*state, sn_test_path(&d, "w", path), NULL, 0, &err), &err);
    unsigned char *bytes = sn_test_read_file(path, &n);
    assert_int_equal(n, sizeof golden);
    assert_memory_equal(bytes, golden, n);
    expect_ok(read_all(*state, path, &err), &err);
    free(bytes);
    sn_test_dir_end(&d);
}

static void test_file_has_the_bytes_of_the_formats_own_library(void **state) {
    /* safetensors.serialize of the same tensors */
    static const char golden[] =
        "{\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
        "\"b\\\"\\\\\":{\"dtype\":\"F32\",\"shape\":[1,0],\"data_offsets\":[16,16]},"
        "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[16,20]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[20,22]},"
        "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[22,25]}}";
    float a[2] = {1, 2}, none[1] = {0};
    int64_t number[1] = {7};
    int32_t i32[1] = {-2};
    uint16_t half[1] = {0x3c00};
    uint8_t u8[3] = {1, 2, 3};
    snug_view scalar = VIEW(SNUG_I64, number, 1);
    scalar.type.rank = 0;
    const sn_st_tensor tensors[] = {
        {"u", VIEW(SNUG_U8, u8, 3)},
        {"b\"\\", VIEW(SNUG_F32, none, 1, 0)},
        {"a", VIEW(SNUG_F32, a, 2)},
        {"h", VIEW(SNUG_F16, half, 1)},
        {"n", scalar},
        {"i", VIEW(SNUG_I32, i32, 1)},
    };
    sn_test_dir d;
    char path[256];
    size_t n;
    snug_error err = {0};
    sn_test_dir_begin(&d);
    expect_ok(sn_safetensors_save(*state, sn_test_path(&d, "w", path), tensors, 6, &err), &err);
    unsigned char *bytes = sn_test_read_file(path, &n);
    const size_t padded = (sizeof golden - 1 + 7) / 8 * 8;
    assert_int_equal(n, 8 + padded + 25);
    assert_int_equal(bytes[0] | bytes[1] << 8, padded);
    assert_memory_equal(bytes + 8, golden, sizeof golden - 1);
    for (size_t i = sizeof golden - 1; i < padded; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded, number, 8);
    assert_memory_equal(bytes + 8 + padded + 8, a, 8);
    assert_memory_equal(bytes + 8 + padded + 22, u8, 3);
    expect_ok(read_all(*state, path, &err), &err);
    assert_int_equal(sn_test_dir_count(&d), 1);
    free(bytes);
    sn_test_dir_end(&d);
}

static void test_what_was_written_reads_back(void **state) {
    enum { N = 200 * 1000 }; /* more than one window */
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    double back[3] = {0, 0, 0};
    float bias[3] = {1.5f, -2, 0.25f};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_safetensors *s;
    const sn_st_entry *t;
    assert_true(a && b);
    for (int i = 0; i < N; i++)
        a[i] = (float)i * 0.5f - 7;
    const sn_st_tensor tensors[] = {{"dense/kernel", VIEW(SNUG_F32, a, 1000, N / 1000)},
                                    {"dense/bias", VIEW(SNUG_F32, bias, 3)}};
    sn_test_dir_begin(&d);
    expect_ok(sn_safetensors_save(*state, sn_test_path(&d, "w", path), tensors, 2, &err), &err);
    expect_ok(sn_safetensors_open(*state, path, 0, &s, &err), &err);
    assert_int_equal(sn_safetensors_count(s), 2);
    expect_ok(sn_safetensors_find(s, "dense/kernel", &t, &err), &err);
    const snug_view to = VIEW(SNUG_F32, b, 1000, N / 1000);
    expect_ok(sn_safetensors_read(s, t, &to, &err), &err);
    assert_memory_equal(a, b, N * sizeof *a);
    expect_ok(sn_safetensors_find(s, "dense/bias", &t, &err), &err);
    const snug_view wide = VIEW(SNUG_F64, back, 3);
    expect_ok(sn_safetensors_read(s, t, &wide, &err), &err);
    assert_true(back[0] == 1.5 && back[1] == -2 && back[2] == 0.25);
    const snug_view wrong = VIEW(SNUG_F64, back, 3, 1);
    expect_status(sn_safetensors_read(s, t, &wrong, &err), SNUG_E_SHAPE, &err);
    expect_text(err.text, "'dense/bias' is f32[3]");
    expect_text(err.text, "f64[3,1]");
    sn_safetensors_close(s);
    sn_test_dir_end(&d);
    free(a);
    free(b);
}

static void test_more_tensors_than_expected_are_refused(void **state) {
    sn_test_dir d;
    char path[256], header[600];
    snug_error err = {0};
    sn_safetensors *s;
    sn_test_dir_begin(&d);
    write_st(sn_test_path(&d, "w", path), small_header, 24);
    expect_status(sn_safetensors_open(*state, path, 1, &s, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "holds 2 tensors; at most 1");
    expect_ok(sn_safetensors_open(*state, path, 2, &s, &err), &err);
    sn_safetensors_close(s);
    snprintf(header, sizeof header, "%-*s", (int)sizeof header - 1, small_header); /* blanks */
    write_st(path, header, 24);
    expect_status(sn_safetensors_open(*state, path, 2, &s, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "a header of 599 bytes, too long for the 2 tensors");
    expect_ok(sn_safetensors_open(*state, path, 0, &s, &err), &err);
    sn_safetensors_close(s);
    sn_test_dir_end(&d);
}

static void test_writer_refuses_equal_names_and_opaque_bytes(void **state) {
    float x[2] = {1, 2};
    int32_t i[1] = {3};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    const sn_st_tensor twice[] = {
        {"a", VIEW(SNUG_F32, x, 2)}, {"b", VIEW(SNUG_F32, x, 2)}, {"a", VIEW(SNUG_I32, i, 1)}};
    const sn_st_tensor opaque[] = {
        {"codes", {.data = x, .bytes = 8, .type = {SNUG_OPAQUE, 1, {8}}}}};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "w", path);
    expect_status(sn_safetensors_save(*state, path, twice, 3, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "two tensors are named 'a'");
    expect_status(sn_safetensors_save(*state, path, opaque, 1, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "'codes' is opaque");
    assert_int_equal(sn_test_dir_count(&d), 0);
    sn_test_dir_end(&d);
}

static void test_failed_save_keeps_the_old_file(void **state) {
    float x[2] = {1, 2}, y[2] = {3, 4};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    size_t n, n2;
    const sn_st_tensor old[] = {{"a", VIEW(SNUG_F32, x, 2)}},
                       fresh[] = {{"a", VIEW(SNUG_F32, y, 2)}};
    sn_test_dir_begin(&d);
    expect_ok(sn_safetensors_save(*state, sn_test_path(&d, "w", path), old, 1, &err), &err);
    unsigned char *before = sn_test_read_file(path, &n);
    for (int64_t k = 0;; k++) {
        sn_fault_io(*state, k, SN_FAULT_ENOSPC, true);
        const snug_status status = sn_safetensors_save(*state, path, fresh, 1, &err);
        sn_fault_expect_told(*state, "sn_safetensors_save", status);
        sn_fault_io(*state, -1, SN_FAULT_ENOSPC, false);
        if (status == SNUG_OK) {
            assert_true(k >=
                        4); /* open, header, data, sync, close, rename: some must have been hit */
            break;
        }
        assert_int_equal(status, SNUG_E_IO);
        unsigned char *after = sn_test_read_file(path, &n2);
        assert_int_equal(n, n2);
        assert_memory_equal(before, after, n);
        free(after);
    }
    free(before);
    sn_test_dir_end(&d);
}

/* --- finding -------------------------------------------------------------------------------- */

static void open_small(snug_engine *e, const sn_test_dir *d, const char *header, size_t n,
                       sn_safetensors **s) {
    char path[256];
    snug_error err = {0};
    write_st(sn_test_path(d, "w", path), header, n);
    expect_ok(sn_safetensors_open(e, path, 0, s, &err), &err);
}

static void test_short_names_find_when_unique(void **state) {
    static const char header[] =
        "{\"lstm/lstm_cell/kernel\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"net/a/kernel\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
        "\"net/b/kernel\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
        "\"b/kernel\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}";
    sn_test_dir d;
    sn_safetensors *s;
    const sn_st_entry *t;
    snug_error err = {0};
    sn_test_dir_begin(&d);
    open_small(*state, &d, header, 4, &s);
    expect_ok(sn_safetensors_find(s, "lstm/kernel", &t, &err), &err);
    assert_string_equal(t->name, "lstm/lstm_cell/kernel");
    expect_ok(sn_safetensors_find(s, "a/kernel", &t, &err), &err);
    assert_string_equal(t->name, "net/a/kernel");
    expect_ok(sn_safetensors_find(s, "model/net/a/kernel", &t, &err),
              &err); /* the file has the short form */
    assert_string_equal(t->name, "net/a/kernel");
    expect_ok(sn_safetensors_find(s, "b/kernel", &t, &err), &err); /* exact beats short */
    assert_string_equal(t->name, "b/kernel");
    expect_status(sn_safetensors_find(s, "kernel", &t, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "use the full name");
    expect_status(sn_safetensors_find(s, "a/bias", &t, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "no tensor 'a/bias' (it holds 4");
    expect_status(sn_safetensors_find(s, "a/kerne", &t, &err), SNUG_E_FORMAT,
                  &err); /* steps, not letters */
    sn_safetensors_close(s);
    sn_test_dir_end(&d);
}

static void test_scalars_and_empty_tensors_are_legal(void **state) {
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[4,4]},"
        "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
        "\"y\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[0,0]}}   ";
    sn_test_dir d;
    sn_safetensors *s;
    sn_test_dir_begin(&d);
    open_small(*state, &d, header, 4, &s);
    assert_int_equal(sn_safetensors_count(s), 3);
    assert_string_equal(sn_safetensors_at(s, 0)->name, "y"); /* in order of position */
    assert_string_equal(sn_safetensors_at(s, 1)->name, "s");
    assert_int_equal(sn_safetensors_at(s, 1)->type.rank, 0);
    assert_string_equal(sn_safetensors_at(s, 2)->name, "z");
    sn_safetensors_close(s);
    sn_test_dir_end(&d);
}

static void test_float_tensor_is_no_integer_weight(void **state) {
    sn_test_dir d;
    sn_safetensors *s;
    snug_error err = {0};
    int32_t room[4];
    sn_test_dir_begin(&d);
    open_small(*state, &d, small_header, 24, &s);
    const snug_view v = VIEW(SNUG_I32, room, 2, 2);
    expect_status(sn_safetensors_read(s, sn_safetensors_at(s, 0), &v, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "tensor 'a/kernel'");
    sn_safetensors_close(s);
    sn_test_dir_end(&d);
}

/* --- what is refused ------------------------------------------------------------------------ */

typedef struct {
    const char *header; /* the JSON; NULL: `file` is the whole file */
    size_t data_bytes;
    const char *piece; /* of the message */
    const char *file;
    size_t file_bytes;
    snug_status status; /* 0: SNUG_E_FORMAT */
} refused_row;

static void refuses(void **state) {
    const refused_row *row = *state;
    snug_engine *e = sn_test_engine(0);
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "w", path);
    if (row->header)
        write_st(path, row->header, row->data_bytes);
    else
        sn_test_write_file(path, row->file, row->file_bytes);
    expect_status(read_all(e, path, &err), row->status ? row->status : SNUG_E_FORMAT, &err);
    expect_text(err.text, path);
    expect_text(err.text, row->piece);
    sn_test_dir_end(&d);
    sn_test_engine_end(e);
}

#define T(dtype, shape, begin, end)                                                                \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
#define REFUSED(name, header, data, piece)                                                         \
    row_test("test_refuses_" name, refuses, (&(refused_row){header, data, piece, NULL, 0, 0}))
#define REFUSED_FILE(name, bytes, piece)                                                           \
    row_test("test_refuses_" name, refuses,                                                        \
             (&(refused_row){NULL, 0, piece, bytes, sizeof bytes - 1, 0}))

static void test_refuses_header_nested_10000_deep(void **state) {
    const size_t n = 10000;
    char *header = malloc(2 * n + 16);
    assert_non_null(header);
    strcpy(header, "{\"a\":");
    memset(header + 5, '[', n);
    memset(header + 5 + n, ']', n);
    strcpy(header + 5 + 2 * n, "}");
    refused_row row = {header, 0, "nested deeper than 64", NULL, 0, 0};
    *state = &row;
    refuses(state);
    free(header);
}

/* The file is sparse: the header would be 100 MB. */
static void test_refuses_header_longer_than_the_cap(void **state) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "w", path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    const uint64_t n = 100000001;
    assert_int_equal(fwrite(&n, 1, 8, f), 8);
    assert_int_equal(fseek(f, (long)n + 7, SEEK_SET), 0);
    assert_int_equal(fputc('}', f), '}');
    fclose(f);
    expect_status(read_all(*state, path, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "100000001 bytes (2 to 100000000");
    assert_true(snug_engine_peak_bytes(*state) < 1 << 20);
    sn_test_dir_end(&d);
}

static void test_refuses_too_many_values(void **state) {
    const size_t n = 2 * SNUG_MAX_RANK * 1000 * 130;
    char *header = malloc(2 * n + 16);
    assert_non_null(header);
    strcpy(header, "{\"a\":[1");
    for (size_t i = 0; i < n; i++)
        memcpy(header + 7 + 2 * i, ",1", 2);
    strcpy(header + 7 + 2 * n, "]}");
    refused_row row = {header, 0, "more than 2000000 values", NULL, 0, 0};
    *state = &row;
    refuses(state);
    free(header);
}

static void test_truncation_at_every_byte_is_a_format_error(void **state) {
    (void)state;
    sn_test_dir d;
    char path[256];
    size_t n;
    sn_test_dir_begin(&d);
    write_st(sn_test_path(&d, "w", path), small_header, 24);
    unsigned char *bytes = sn_test_read_file(path, &n);
    sn_test_truncations(read_all, bytes, n);
    free(bytes);
    sn_test_dir_end(&d);
}

static void test_missing_file_is_named(void **state) {
    snug_error err = {0};
    expect_status(read_all(*state, "no/such/weights.safetensors", &err), SNUG_E_IO, &err);
    expect_text(err.text, "no/such/weights.safetensors");
}

/* --- faults --------------------------------------------------------------------------------- */

static snug_status read_scenario(snug_engine *e, void *ctx, snug_error *err) {
    return read_all(e, ctx, err);
}

static snug_status save_scenario(snug_engine *e, void *ctx, snug_error *err) {
    float x[4] = {1, 2, 3, 4};
    const sn_st_tensor tensors[] = {{"a", VIEW(SNUG_F32, x, 4)}, {"b", VIEW(SNUG_F32, x, 2, 2)}};
    return sn_safetensors_save(e, ctx, tensors, 2, err);
}

static void test_reading_and_writing_survive_any_fault(void **state) {
    (void)state;
    sn_test_dir d;
    char path[256], out[256];
    sn_test_dir_begin(&d);
    write_st(sn_test_path(&d, "w", path), small_header, 24);
    sn_test_path(&d, "out", out);
    sn_fault_sweep(read_scenario, path);
    sn_fault_sweep_io(read_scenario, path);
    sn_fault_sweep(save_scenario, out);
    sn_fault_sweep_io(save_scenario, out);
    sn_test_dir_end(&d);
}

static const struct CMUnitTest tests[] = {
    engine_test(test_file_without_tensors_has_the_golden_bytes),
    engine_test(test_file_has_the_bytes_of_the_formats_own_library),
    engine_test(test_what_was_written_reads_back),
    engine_test(test_more_tensors_than_expected_are_refused),
    engine_test(test_writer_refuses_equal_names_and_opaque_bytes),
    engine_test(test_failed_save_keeps_the_old_file),
    engine_test(test_short_names_find_when_unique),
    engine_test(test_scalars_and_empty_tensors_are_legal),
    engine_test(test_float_tensor_is_no_integer_weight),
    engine_test(test_missing_file_is_named),
    REFUSED_FILE("empty_file", "", "shorter than 8 bytes"),
    REFUSED_FILE("seven_bytes", "\2\0\0\0\0\0\0", "shorter than 8 bytes"),
    REFUSED_FILE("length_beyond_the_file", "\3\0\0\0\0\0\0\0{}", "claims 3 bytes, 2 follow"),
    REFUSED_FILE("length_of_2_to_the_64", "\377\377\377\377\377\377\377\377{}",
                 "claims 18446744073709551615 bytes"),
    REFUSED_FILE("length_of_2_to_the_63", "\0\0\0\0\0\0\0\200{}",
                 "claims 9223372036854775808 bytes"),
    REFUSED_FILE("header_of_length_0", "\0\0\0\0\0\0\0\0{}", "a header of 0 bytes"),
    REFUSED("header_not_beginning_with_a_brace", " {}", 0, "does not begin with {"),
    REFUSED("header_that_is_a_list", "[1]", 0, "does not begin with {"),
    REFUSED("text_behind_the_header", "{} x", 0, "not valid JSON"),
    REFUSED("header_cut_in_the_middle", "{\"a\":", 0, "not valid JSON"),
    REFUSED("bad_utf8", "{\"\xff\xfe\":" T("U8", "[1]", "0", "1") "}", 1, "not valid JSON"),
    REFUSED("overlong_utf8", "{\"\xc0\xaf\":" T("U8", "[1]", "0", "1") "}", 1, "not valid JSON"),
    REFUSED("lone_surrogate", "{\"\\ud800\":" T("U8", "[1]", "0", "1") "}", 1, "not valid JSON"),
    REFUSED("zero_byte_in_a_name", "{\"a\\u0000b\":" T("U8", "[1]", "0", "1") "}", 1,
            "not valid JSON"),
    REFUSED("number_beyond_double", "{\"a\":" T("U8", "[1e400]", "0", "1") "}", 1,
            "not valid JSON"),
    REFUSED("number_beyond_int64", "{\"a\":" T("U8", "[9223372036854775808]", "0", "1") "}", 1,
            "not valid JSON"),
    REFUSED("duplicate_names",
            "{\"a\":" T("U8", "[1]", "0", "1") ",\"a\":" T("U8", "[1]", "1", "2") "}", 2,
            "not valid JSON"),
    REFUSED("duplicate_keys_in_a_tensor",
            "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
            "not valid JSON"),
    REFUSED("first_tensor_not_at_0", "{\"a\":" T("U8", "[1]", "1", "2") "}", 2,
            "'a' begins at 1 where 0"),
    REFUSED("gap", "{\"a\":" T("U8", "[1]", "0", "1") ",\"b\":" T("U8", "[1]", "2", "3") "}", 3,
            "'b' begins at 2 where 1"),
    REFUSED("overlap", "{\"a\":" T("U8", "[2]", "0", "2") ",\"b\":" T("U8", "[2]", "1", "3") "}", 3,
            "'b' begins at 1 where 2"),
    REFUSED("two_tensors_on_the_same_bytes",
            "{\"a\":" T("U8", "[2]", "0", "2") ",\"b\":" T("U8", "[2]", "0", "2") "}", 2,
            "gap or overlap"),
    REFUSED("trailing_bytes", "{\"a\":" T("U8", "[1]", "0", "1") "}", 2,
            "truncated or trailing data"),
    REFUSED("missing_data", "{\"a\":" T("U8", "[4]", "0", "4") "}", 3,
            "truncated or trailing data"),
    REFUSED("end_before_begin", "{\"a\":" T("U8", "[0]", "1", "0") "}", 1, "not two counts"),
    REFUSED("negative_offset", "{\"a\":" T("U8", "[1]", "-1", "0") "}", 0, "not two counts"),
    REFUSED("fractional_offset", "{\"a\":" T("U8", "[1]", "0", "1.0") "}", 1, "not two counts"),
    REFUSED("three_offsets", "{\"a\":" T("U8", "[1]", "0,1", "1") "}", 1, "not two counts"),
    REFUSED("no_offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "not two counts"),
    REFUSED("span_that_differs_from_the_shape", "{\"a\":" T("F32", "[2]", "0", "4") "}", 4,
            "4 bytes by its data_offsets, 8 by"),
    REFUSED("rank_9", "{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, "has 9 axes"),
    REFUSED("negative_extent", "{\"a\":" T("U8", "[-1]", "0", "1") "}", 1, "axis 0 is not a count"),
    REFUSED("extent_that_is_text", "{\"a\":" T("U8", "[\"1\"]", "0", "1") "}", 1,
            "axis 0 is not a count"),
    REFUSED("shape_that_is_no_list", "{\"a\":" T("U8", "3", "0", "1") "}", 1, "has no shape"),
    REFUSED("unknown_dtype", "{\"a\":" T("F8_E4M3", "[1]", "0", "1") "}", 1,
            "dtype F8_E4M3, which Snug does not read"),
    REFUSED("missing_dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "has no dtype"),
    REFUSED("tensor_that_is_no_object", "{\"a\":[1]}", 1, "has no dtype"),
    REFUSED("metadata_that_is_no_object", "{\"__metadata__\":[]}", 0, "__metadata__"),
    REFUSED("metadata_with_numbers", "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"),
    row_test("test_refuses_shape_times_size_overflow", refuses,
             (&(refused_row){"{\"a\":" T("F32", "[4611686018427387904,4]", "0", "1") "}", 1,
                             "tensor 'a' has more bytes", NULL, 0, SNUG_E_FORMAT})),
    row_test(
        "test_refuses_tensor_of_2_to_the_62_bytes", refuses,
        (&(refused_row){"{\"a\":" T("U8", "[4611686018427387904]", "0", "4611686018427387904") "}",
                        1, "its header describes 4611686018427388001", NULL, 0, 0})),
    cmocka_unit_test(test_refuses_header_nested_10000_deep),
    engine_test(test_refuses_header_longer_than_the_cap),
    cmocka_unit_test(test_refuses_too_many_values),
    cmocka_unit_test(test_truncation_at_every_byte_is_a_format_error),
    cmocka_unit_test(test_reading_and_writing_survive_any_fault),
};

int main(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
