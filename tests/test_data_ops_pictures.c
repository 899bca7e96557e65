/* test_data_ops_pictures.c: what functions on pictures refuse and how they say it; damaged and
 * hostile bytes; every failed request; what is written can be read. */
#include "support/data_call.h"

#include "kernels/cpu/picture_resize.h"
#include "op/picture_attrs.h"
#include "support/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file at path decoded by `name`, and what is said when it cannot be. */
static snug_status decode_path(snug_engine *e, const char *name, const char *path, snug_datum *out,
                               snug_error *err) {
    snug_datum file;
    expect_ok(sn_data_read(e, path, &file, err), err);
    const snug_status status = sn_data_call(e, name, &file, 1, out, err);
    snug_datum_drop(&file);
    return status;
}

/* --- pictures --------------------------------------------------------------------------------- */
enum { H = 40, W = 56 };

static void paint(unsigned char *rgb) {
    for (int i = 0; i < H * W * 3; i++)
        rgb[i] = (unsigned char)(i % 3 * 60 + i / 3 % W + i / 3 / W * 2);
}

static snug_datum encoded(snug_engine *e, const char *name) {
    static unsigned char rgb[H * W * 3];
    paint(rgb);
    const snug_datum in = {
        .type = {.dtype = SNUG_U8, .rank = 3, .dims = {H, W, 3}}, .data = rgb, .bytes = sizeof rgb};
    snug_datum out;
    snug_error err;
    expect_ok(sn_data_call(e, name, &in, 1, &out, &err), &err);
    return out;
}

static void write_text(const snug_datum *d, size_t n, const char *path) {
    const snug_text *t = d->data;
    sn_test_write_file(path, t->data, n < t->bytes ? n : t->bytes);
}

static void expect_near(const snug_datum *picture, int tolerance) {
    unsigned char rgb[H * W * 3];
    paint(rgb);
    assert_int_equal(picture->bytes, sizeof rgb);
    const unsigned char *got = picture->data;
    for (size_t i = 0; i < sizeof rgb; i++)
        if (abs(got[i] - rgb[i]) > tolerance)
            fail_msg("element %zu is %d, not %d", i, got[i], rgb[i]);
}

static void test_pictures_written_are_read(void **state) {
    snug_engine *e = *state;
    snug_error err;
    const char *const write[] = {"tf.io.encode_png", "tf.io.encode_jpeg"};
    for (int i = 0; i < 2; i++) {
        snug_datum file = encoded(e, write[i]), picture;
        expect_ok(sn_data_call(e, "tf.io.decode_image", &file, 1, &picture, &err), &err);
        expect_near(&picture, i == 0 ? 0 : 12);
        snug_datum_drop(&picture);
        snug_datum_drop(&file);
    }
}

static snug_datum smaller(snug_engine *e, const snug_datum *file, const char *fast) {
    snug_error err;
    snug_datum out;
    int n;
    snug_data_op *op = sn_data_make(e, "snug.image.decode_resize",
                                    (const sn_attr_text[]){{"size", "[10,14]"}, {"fast", fast}}, 2);
    expect_ok(snug_data_op_call(op, 0, file, 1, &out, 1, &n, &err), &err);
    snug_data_op_destroy(op);
    return out;
}

/* 40 x 56 at a quarter is exactly what is wanted: the mean of blocks, near a careful resize. */
static void test_fast_pictures_are_near_careful_ones(void **state) {
    snug_engine *e = *state;
    snug_datum file = encoded(e, "tf.io.encode_jpeg"), fast = smaller(e, &file, "True"),
               whole = smaller(e, &file, "False");
    assert_int_equal(fast.bytes, 10 * 14 * 3 * 4);
    for (int i = 0; i < 10 * 14 * 3; i++)
        expect_real((double)((float *)fast.data)[i], (double)((float *)whole.data)[i], 12);
    assert_memory_not_equal(fast.data, whole.data, fast.bytes);
    snug_datum_drop(&whole);
    snug_datum_drop(&fast);
    snug_datum_drop(&file);
}

/* A picture that is resized while it is decoded, row by row, has the numbers of one that was there
 * as a whole: smaller, larger, of many rows each, of a half row. */
static void test_rows_resize_as_whole_pictures_do(void **state) {
    static const char *const files[] = {"tf.io.encode_jpeg", "tf.io.encode_png"};
    static const sn_attr_text ways[][4] = {
        {{"size", "[10,14]"}, {"method", "bilinear"}},
        {{"size", "[10,14]"}, {"method", "bilinear"}, {"antialias", "True"}},
        {{"size", "[77,91]"}, {"method", "bicubic"}},
        {{"size", "[1,1]"}, {"method", "area"}},
        {{"size", "[39,200]"}, {"method", "lanczos3"}, {"preserve_aspect_ratio", "True"}},
        {{"size", "[17,9]"}, {"method", "nearest"}}};
    snug_engine *e = *state;
    for (size_t k = 0; k < 2 * sizeof ways / sizeof *ways; k++) {
        const sn_attr_text *way = ways[k / 2];
        const int n_attrs = way[2].name ? 3 : 2;
        snug_error err;
        snug_datum file = encoded(e, files[k % 2]), picture, whole, rows;
        int n;
        snug_data_op *resize = sn_data_make(e, "tf.image.resize", way, n_attrs),
                     *both = sn_data_make(e, "snug.image.decode_resize", way, n_attrs);
        expect_ok(sn_data_call(e, "tf.io.decode_image", &file, 1, &picture, &err), &err);
        expect_ok(snug_data_op_call(resize, 0, &picture, 1, &whole, 1, &n, &err), &err);
        expect_ok(snug_data_op_call(both, 0, &file, 1, &rows, 1, &n, &err), &err);
        assert_int_equal(rows.bytes, whole.bytes);
        assert_memory_equal(rows.data, whole.data, whole.bytes);
        snug_data_op_destroy(both);
        snug_data_op_destroy(resize);
        snug_datum_drop(&rows);
        snug_datum_drop(&whole);
        snug_datum_drop(&picture);
        snug_datum_drop(&file);
    }
}

static void test_truncated_jpeg_names_file_offset_and_reason(void **state) {
    snug_engine *e = *state;
    snug_error err;
    sn_test_dir dir;
    char path[256];
    snug_datum file = encoded(e, "tf.io.encode_jpeg"), picture;
    sn_test_dir_begin(&dir);
    write_text(&file, 900, sn_test_path(&dir, "cut.jpg", path));
    expect_status(decode_path(e, "tf.io.decode_jpeg", path, &picture, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "cut.jpg' (900 bytes)");
    expect_text(err.text, "at byte 900");
    expect_text(err.text, "truncated");
    snug_datum_drop(&file);
    sn_test_dir_end(&dir);
}

static void test_recovered_jpeg_has_the_rows_that_are_there(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_datum file = encoded(e, "tf.io.encode_jpeg"), whole, part;
    const snug_text *t = file.data;
    snug_text cut = {t->data, t->bytes - 30};
    const snug_datum in = sn_lent(&cut);
    int n;
    expect_ok(sn_data_call(e, "tf.io.decode_jpeg", &file, 1, &whole, &err), &err);
    snug_data_op *op = sn_data_make(e, "tf.io.decode_jpeg",
                                    (const sn_attr_text[]){{"try_recover_truncated", "True"}}, 1);
    expect_ok(snug_data_op_call(op, 0, &in, 1, &part, 1, &n, &err), &err);
    assert_memory_equal(part.data, whole.data, (size_t)W * 3 * 8);
    assert_memory_not_equal(part.data, whole.data, whole.bytes);
    snug_data_op_destroy(op);
    snug_datum_drop(&part);
    snug_datum_drop(&whole);
    snug_datum_drop(&file);
}

/* 721 bytes that say 65500 x 65500 and have an end: all of them would be made up. */
static void test_a_huge_jpeg_is_refused_where_an_eighth_of_it_would_do(void **state) {
    const sn_attr_text attrs[] = {{"size", "[7,5]"}, {"fast", "True"}};
    snug_error err;
    snug_datum picture;
    size_t n;
    int n_out;
    unsigned char *bytes = sn_test_read_file(SNUG_TEST_DATA "/fuzz/corpus/jpeg/65500x65500", &n);
    snug_text text = {(const char *)bytes, n};
    const snug_datum in = sn_lent(&text);
    snug_data_op *op = sn_data_make(*state, "snug.image.decode_resize", attrs, 2);
    expect_status(snug_data_op_call(op, 0, &in, 1, &picture, 1, &n_out, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "65500 x 65500");
    snug_data_op_destroy(op);
    free(bytes);
}

static void test_huge_png_header_is_refused_before_memory_is_asked_for(void **state) {
    snug_engine *e = *state;
    static const unsigned char head[] =
        "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0\x0f\xb0\xe2\x15"
        "\0\0\0\0IDAT\x35\xaf\x06\x1e";
    snug_error err;
    snug_datum picture;
    sn_test_dir dir;
    char path[256];
    sn_test_dir_begin(&dir);
    sn_test_write_file(sn_test_path(&dir, "huge.png", path), head, sizeof head - 1);
    const size_t before = snug_engine_peak_bytes(e);
    expect_status(decode_path(e, "tf.io.decode_image", path, &picture, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "huge.png");
    expect_text(err.text, "60000 x 60000");
    expect_text(err.text, "268435456");
    assert_true(snug_engine_peak_bytes(e) - before < 1 << 20);
    sn_test_dir_end(&dir);
}

/* libpng's own memory is asked of the engine, too. */
static void test_a_png_beyond_the_budget_says_so(void **state) {
    snug_datum file = encoded(*state, "tf.io.encode_png");
    snug_engine *small = sn_test_engine(16 << 10);
    snug_datum picture;
    snug_error err;
    const snug_text *t = file.data;
    expect_status(sn_data_on_text(small, "tf.io.decode_png", t->data, t->bytes, &picture, &err),
                  SNUG_E_BUDGET, &err);
    expect_text(err.text, "cannot be decoded: ");
    expect_text(err.text, "budget");
    snug_engine_destroy(small);
    snug_datum_drop(&file);
}

static void test_text_named_jpg_is_no_picture(void **state) {
    snug_engine *e = *state;
    snug_error err;
    snug_datum picture;
    sn_test_dir dir;
    char path[256];
    sn_test_dir_begin(&dir);
    sn_test_write_file(sn_test_path(&dir, "a.jpg", path), "no picture", 10);
    expect_status(decode_path(e, "tf.io.decode_jpeg", path, &picture, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "a.jpg' (10 bytes) is no JPEG picture");
    expect_status(decode_path(e, "tf.io.decode_image", path, &picture, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "none of JPEG, PNG, GIF or BMP");
    sn_test_dir_end(&dir);
}

/* Every build of the kernel that runs here, from bytes and from floats, near the plain build. */
static void test_resizes_of_all_instruction_sets_agree(void **state) {
    (void)state;
    enum { TO_H = 17, TO_W = 23 };
    static unsigned char rgb[H * W * 3];
    static float floats[H * W * 3], out[2][TO_H * TO_W * 3];
    const char *const isas[] = {"avx2", "avx512"};
    paint(rgb);
    for (int i = 0; i < H * W * 3; i++)
        floats[i] = rgb[i];
    for (int method = 0; method < SN_N_RESIZE; method++)
        for (int k = 0; k < 3; k++) {
            sn_picture_resize p = {.from = rgb,
                                   .n = 1,
                                   .h = H,
                                   .w = W,
                                   .c = 3,
                                   .to_h = TO_H,
                                   .to_w = TO_W,
                                   .method = method,
                                   .antialias = method % 2 == 0};
            const sn_cpu_picture *plain = sn_cpu_picture_for("base"),
                                 *other = k < 2 ? sn_cpu_picture_for(isas[k]) : plain;
            size_t bytes;
            if (!other)
                continue;
            assert_true(plain->work(&p, &bytes));
            void *work = malloc(bytes);
            p.to = out[0];
            plain->resize(&p, work);
            p.to = out[1];
            p.from = k == 2 ? (const void *)floats : rgb;
            p.is_f32 = k == 2;
            other->resize(&p, work);
            for (int i = 0; i < TO_H * TO_W * 3; i++)
                expect_real((double)out[1][i], (double)out[0][i], 1e-3);
            free(work);
        }
}

/* --- hostile bytes ---------------------------------------------------------------------------- */
/* Copies with some bytes changed, cut, or repeated; each decodes or says why not. */
static void mangle(snug_engine *e, const char *name, const snug_datum *file, int times) {
    const snug_text *t = file->data;
    unsigned char *copy = malloc(t->bytes);
    uint64_t seed = t->bytes;
    for (int i = 0; i < times; i++) {
        size_t n = t->bytes;
        memcpy(copy, t->data, n);
        for (uint64_t k = sn_next_random(&seed) % 6 + 1; k > 0; k--)
            copy[sn_next_random(&seed) % (i % 2    ? n
                                          : 64 < n ? 64
                                                   : n)] = (unsigned char)sn_next_random(&seed);
        if (i % 5 == 0)
            n = sn_next_random(&seed) % n;
        snug_datum out;
        snug_error err;
        const snug_status status = sn_data_on_text(e, name, copy, n, &out, &err);
        if (status == SNUG_OK)
            snug_datum_drop(&out);
        else if (status != SNUG_E_FORMAT && status != SNUG_E_INVALID)
            fail_msg("%s: %s", snug_status_name(status), err.text);
    }
    free(copy);
}

static void test_damaged_pictures_are_messages(void **state) {
    snug_engine *e = *state;
    const char *const write[] = {"tf.io.encode_png", "tf.io.encode_jpeg"};
    for (int i = 0; i < 2; i++) {
        snug_datum file = encoded(e, write[i]);
        mangle(e, "tf.io.decode_image", &file, 1500);
        snug_datum_drop(&file);
    }
}

/* The one input of a recorded case: files that no encoder here writes. */
static void mangle_case(snug_engine *e, const char *name, int times) {
    char path[512];
    static char bytes[1 << 16];
    snprintf(path, sizeof path, SNUG_TEST_DATA "/data_ops/%s.case", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    const char *in = memmem(bytes, n, "in text 0 0 \n", 13);
    assert_non_null(in);
    uint32_t length;
    memcpy(&length, in + 13, 4);
    snug_text t = {in + 17, length};
    const snug_datum file = sn_lent(&t);
    mangle(e, "tf.io.decode_image", &file, times);
}

static void test_damaged_pictures_of_other_kinds_are_messages(void **state) {
    const char *const names[] = {
        "gif_two",          "gif_passes", "bmp_rgb",    "jpeg_progressive_0",
        "png_interlaced_0", "png_mask_0", "png_bits_0", "bmp_grey"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        mangle_case(*state, names[i], 800);
}

/* --- faults ----------------------------------------------------------------------------------- */
static snug_status decode_and_resize(snug_engine *e, void *ctx, snug_error *err) {
    snug_data_op *op = NULL;
    snug_datum picture, small;
    int n;
    const snug_datum in = sn_lent(ctx);
    const snug_data_attr size = {"size", {"[8,9]", 5}};
    snug_status status = snug_data_op_create(e, "tf.io.decode_image", NULL, 0, &op, err);
    if (status == SNUG_OK)
        status = snug_data_op_call(op, 0, &in, 1, &picture, 1, &n, err);
    snug_data_op_destroy(op);
    if (status != SNUG_OK)
        return status;
    status = snug_data_op_create(e, "tf.image.resize", &size, 1, &op, err);
    if (status == SNUG_OK) {
        status = snug_data_op_call(op, 0, &picture, 1, &small, 1, &n, err);
        if (status == SNUG_OK)
            snug_datum_drop(&small);
        snug_data_op_destroy(op);
    }
    snug_datum_drop(&picture);
    return status;
}

static void test_pictures_survive_any_failed_request(void **state) {
    const char *const write[] = {"tf.io.encode_png", "tf.io.encode_jpeg"};
    for (int i = 0; i < 2; i++) {
        snug_datum file = encoded(*state, write[i]);
        sn_fault_sweep(decode_and_resize, file.data);
        snug_datum_drop(&file);
    }
}

static snug_status encode_it(snug_engine *e, void *ctx, snug_error *err) {
    static unsigned char rgb[H * W * 3];
    const snug_datum in = {
        .type = {.dtype = SNUG_U8, .rank = 3, .dims = {H, W, 3}}, .data = rgb, .bytes = sizeof rgb};
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof rgb; i++) /* noise: the bytes have to grow */
        rgb[i] = (unsigned char)sn_next_random(&seed);
    snug_data_op *op;
    snug_datum out;
    int n;
    SNUG_TRY(snug_data_op_create(e, ctx, NULL, 0, &op, err));
    const snug_status status = snug_data_op_call(op, 0, &in, 1, &out, 1, &n, err);
    if (status == SNUG_OK)
        snug_datum_drop(&out);
    snug_data_op_destroy(op);
    return status;
}

static void test_writing_pictures_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(encode_it, (char[]){"tf.io.encode_png"});
    sn_fault_sweep(encode_it, (char[]){"tf.io.encode_jpeg"});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_pictures_written_are_read),
        engine_test(test_fast_pictures_are_near_careful_ones),
        engine_test(test_rows_resize_as_whole_pictures_do),
        engine_test(test_truncated_jpeg_names_file_offset_and_reason),
        engine_test(test_recovered_jpeg_has_the_rows_that_are_there),
        engine_test(test_a_huge_jpeg_is_refused_where_an_eighth_of_it_would_do),
        engine_test(test_huge_png_header_is_refused_before_memory_is_asked_for),
        engine_test(test_a_png_beyond_the_budget_says_so),
        engine_test(test_text_named_jpg_is_no_picture),
        engine_test(test_resizes_of_all_instruction_sets_agree),
        engine_test(test_damaged_pictures_are_messages),
        engine_test(test_damaged_pictures_of_other_kinds_are_messages),
        engine_test(test_pictures_survive_any_failed_request),
        engine_test(test_writing_pictures_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
