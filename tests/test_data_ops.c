/* test_data_ops.c: what functions on files, texts and pictures refuse and how they say it; damaged
 * and hostile bytes; every failed request; what is written can be read. Values are compared with
 * TensorFlow's in test_data_ops_golden.c. */
#include "support/support.h"

#include "kernels/cpu/picture.h"
#include "op/picture.h"

#include <snug/data_ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name, *value;
} attr;

/* --- calls ------------------------------------------------------------------------------------ */
static snug_data_op *make(snug_engine *e, const char *name, const attr *attrs, int n) {
    snug_data_attr list[8] = {0};
    snug_data_op *op;
    snug_error err;
    for (int i = 0; i < n; i++)
        list[i] = (snug_data_attr){attrs[i].name, {attrs[i].value, strlen(attrs[i].value)}};
    expect_ok(snug_data_op_create(e, name, list, n, &op, &err), &err);
    return op;
}

/* A text that lives as long as the test does. */
static snug_datum lent(snug_text *t) {
    return (snug_datum){
        .type = {.dtype = SNUG_OPAQUE}, .is_text = 1, .data = t, .bytes = sizeof *t};
}

static snug_status call_on(snug_engine *e, const char *name, const snug_datum *in, int n_in,
                           snug_datum *out, snug_error *err) {
    snug_data_op *op = make(e, name, NULL, 0);
    int n;
    const snug_status status = snug_data_op_call(op, 0, in, n_in, out, 1, &n, err);
    snug_data_op_destroy(op);
    return status;
}

static snug_status on_text(snug_engine *e, const char *name, const void *bytes, size_t n,
                           snug_datum *out, snug_error *err) {
    snug_text t = {bytes, n};
    const snug_datum in = lent(&t);
    return call_on(e, name, &in, 1, out, err);
}

static snug_status read_path(snug_engine *e, const char *path, snug_datum *out, snug_error *err) {
    return on_text(e, "tf.io.read_file", path, strlen(path), out, err);
}

/* The file at path decoded by `name`, and what is said when it cannot be. */
static snug_status decode_path(snug_engine *e, const char *name, const char *path, snug_datum *out,
                               snug_error *err) {
    snug_datum file;
    expect_ok(read_path(e, path, &file, err), err);
    const snug_status status = call_on(e, name, &file, 1, out, err);
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
    expect_ok(call_on(e, name, &in, 1, &out, &err), &err);
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
        expect_ok(call_on(e, "tf.io.decode_image", &file, 1, &picture, &err), &err);
        expect_near(&picture, i == 0 ? 0 : 12);
        snug_datum_drop(&picture);
        snug_datum_drop(&file);
    }
}

static snug_datum smaller(snug_engine *e, const snug_datum *file, const char *fast) {
    snug_error err;
    snug_datum out;
    int n;
    snug_data_op *op =
        make(e, "snug.image.decode_resize", (const attr[]){{"size", "[10,14]"}, {"fast", fast}}, 2);
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
    const snug_datum in = lent(&cut);
    int n;
    expect_ok(call_on(e, "tf.io.decode_jpeg", &file, 1, &whole, &err), &err);
    snug_data_op *op =
        make(e, "tf.io.decode_jpeg", (const attr[]){{"try_recover_truncated", "True"}}, 1);
    expect_ok(snug_data_op_call(op, 0, &in, 1, &part, 1, &n, &err), &err);
    assert_memory_equal(part.data, whole.data, (size_t)W * 3 * 8);
    assert_memory_not_equal(part.data, whole.data, whole.bytes);
    snug_data_op_destroy(op);
    snug_datum_drop(&part);
    snug_datum_drop(&whole);
    snug_datum_drop(&file);
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
    expect_status(on_text(small, "tf.io.decode_png", t->data, t->bytes, &picture, &err),
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

static void test_missing_file_is_named(void **state) {
    snug_error err;
    snug_datum file;
    expect_status(read_path(*state, "/nowhere/a.jpg", &file, &err), SNUG_E_IO, &err);
    expect_text(err.text, "/nowhere/a.jpg");
}

static void test_files_written_are_read(void **state) {
    snug_engine *e = *state;
    snug_error err;
    sn_test_dir dir;
    char path[256];
    int n;
    sn_test_dir_begin(&dir);
    sn_test_path(&dir, "out.bin", path);
    snug_text name = {path, strlen(path)}, text = {"a\0b", 3};
    const snug_datum in[2] = {lent(&name), lent(&text)};
    snug_data_op *write = make(e, "tf.io.write_file", NULL, 0);
    expect_ok(snug_data_op_call(write, 0, in, 2, NULL, 0, &n, &err), &err);
    assert_int_equal(n, 0);
    snug_data_op_destroy(write);
    snug_datum file;
    expect_ok(read_path(e, path, &file, &err), &err);
    const snug_text *t = file.data;
    assert_int_equal(t->bytes, 3);
    assert_memory_equal(t->data, "a\0b", 3);
    snug_datum_drop(&file);
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
static uint64_t next_random(uint64_t *s) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

/* Copies with some bytes changed, cut, or repeated; each decodes or says why not. */
static void mangle(snug_engine *e, const char *name, const snug_datum *file, int times) {
    const snug_text *t = file->data;
    unsigned char *copy = malloc(t->bytes);
    uint64_t seed = t->bytes;
    for (int i = 0; i < times; i++) {
        size_t n = t->bytes;
        memcpy(copy, t->data, n);
        for (uint64_t k = next_random(&seed) % 6 + 1; k > 0; k--)
            copy[next_random(&seed) % (i % 2    ? n
                                       : 64 < n ? 64
                                                : n)] = (unsigned char)next_random(&seed);
        if (i % 5 == 0)
            n = next_random(&seed) % n;
        snug_datum out;
        snug_error err;
        const snug_status status = on_text(e, name, copy, n, &out, &err);
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
    const snug_datum file = lent(&t);
    mangle(e, "tf.io.decode_image", &file, times);
}

static void test_damaged_pictures_of_other_kinds_are_messages(void **state) {
    const char *const names[] = {
        "gif_two",          "gif_passes", "bmp_rgb",    "jpeg_progressive_0",
        "png_interlaced_0", "png_mask_0", "png_bits_0", "bmp_grey"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        mangle_case(*state, names[i], 800);
}

/* --- Examples --------------------------------------------------------------------------------- */
static const char example[] = "\x0a\x2e"                                  /* features */
                              "\x0a\x19\x0a\x01x\x12\x14\x12\x12\x0a\x10" /* x: floats */
                              "\0\0\x80?\0\0\0@\0\0@@\0\0\x80@"           /* 1 2 3 4 */
                              "\x0a\x11\x0a\x05label\x12\x08\x1a\x06\x0a\x04\xac\x02\x01\x02";

static snug_data_op *features(snug_engine *e, const char *lines) {
    return make(e, "tf.io.parse_single_example", (const attr[]){{"features", lines}}, 1);
}

static snug_status parse(const snug_data_op *op, const void *bytes, size_t n, snug_datum *out,
                         int *n_out, snug_error *err) {
    snug_text t = {bytes, n};
    const snug_datum in = lent(&t);
    return snug_data_op_call(op, 0, &in, 1, out, SNUG_MAX_PARTS, n_out, err);
}

static void expect_parse_fails(snug_engine *e, const char *lines, const char *say) {
    snug_error err;
    snug_datum out[SNUG_MAX_PARTS];
    int n;
    snug_data_op *op = features(e, lines);
    expect_status(parse(op, example, sizeof example - 1, out, &n, &err), SNUG_E_DATA, &err);
    expect_text(err.text, say);
    snug_data_op_destroy(op);
}

static void test_features_that_do_not_fit_are_named(void **state) {
    expect_parse_fails(*state, "fixed f32 [4] - y", "feature 'y' is missing");
    expect_parse_fails(*state, "fixed f32 [3] - x",
                       "'x' has 4 values in an Example, its shape has 3");
    expect_parse_fails(*state, "fixed i64 [4] - x", "'x' holds floats in an Example, not integers");
    expect_parse_fails(*state, "sequence f32 [3] - x", "3 elements a step");
}

static void test_every_cut_of_an_example_is_refused_or_whole(void **state) {
    snug_engine *e = *state;
    snug_data_op *op = features(e, "fixed f32 [2,2] - x\nvar i64 [] - label");
    snug_datum out[SNUG_MAX_PARTS];
    snug_error err;
    int n, whole = 0;
    for (size_t cut = 0; cut < sizeof example; cut++)
        if (parse(op, example, cut, out, &n, &err) == SNUG_OK) {
            whole++;
            assert_int_equal(n, 4);
            assert_int_equal(((int64_t *)out[2].data)[0], 300);
            for (int i = 0; i < n; i++)
                snug_datum_drop(&out[i]);
        }
    assert_int_equal(whole, 1);
    snug_data_op_destroy(op);
}

static void test_damaged_examples_are_messages(void **state) {
    snug_engine *e = *state;
    snug_data_op *op = features(e, "fixed f32 [2,2] 0 x\nvar i64 [] - label\nvar text [] - z");
    uint64_t seed = 3;
    char copy[sizeof example];
    for (int i = 0; i < 5000; i++) {
        snug_datum out[SNUG_MAX_PARTS];
        int n;
        memcpy(copy, example, sizeof copy);
        for (int k = 0; k < 3; k++)
            copy[next_random(&seed) % (sizeof copy - 1)] = (char)next_random(&seed);
        if (parse(op, copy, sizeof copy - 1, out, &n, NULL) == SNUG_OK)
            while (n > 0)
                snug_datum_drop(&out[--n]);
    }
    snug_data_op_destroy(op);
}

/* --- sound and SequenceExamples --------------------------------------------------------------- */
static const char sound[] = "RIFF\x30\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0@\x1f\0\0\0}\0\0\4\0\x10\0"
                            "LIST\2\0\0\0ab"
                            "data\x08\0\0\0\0@\0\xc0\xff\x7f\0\x80",
                  steps[] = "\x0a\x00\x12\x1b"        /* no context; lists */
                            "\x0a\x19\x0a\1w\x12\x14" /* w: */
                            "\x0a\x08\x0a\6\x0a\1a\x0a\1b"
                            "\x0a\x08\x0a\6\x0a\1c\x0a\1d";

typedef struct {
    const char *op, *bytes;
    size_t n;
    attr key;
} text_case;
static const text_case sound_case = {"tf.audio.decode_wav", sound, sizeof sound - 1, {NULL, NULL}},
                       steps_case = {"snug.sequence_steps", steps, sizeof steps - 1, {"key", "w"}};

static void test_sounds_and_steps_are_read(void **state) {
    snug_datum out[SNUG_MAX_PARTS];
    snug_error err;
    int n;
    snug_data_op *op = make(*state, sound_case.op, NULL, 0);
    expect_ok(parse(op, sound, sizeof sound - 1, out, &n, &err), &err);
    assert_int_equal(n, 2);
    const float want[] = {0.5f, -0.5f, 32767 / 32768.0f, -1};
    assert_memory_equal(out[0].data, want, sizeof want);
    assert_int_equal(*(int32_t *)out[1].data, 8000);
    snug_datum_drop(&out[0]);
    snug_datum_drop(&out[1]);
    expect_status(parse(op, sound, sizeof sound - 2, out, &n, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "truncated");
    expect_status(parse(op, "RIFF", 4, out, &n, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, "does not start with RIFF and WAVE");
    snug_data_op_destroy(op);
    op = make(*state, steps_case.op, &steps_case.key, 1);
    expect_ok(parse(op, steps, sizeof steps - 1, out, &n, &err), &err);
    assert_int_equal(out[0].type.dims[0], 2);
    snug_datum_drop(&out[0]);
    snug_data_op_destroy(op);
    op = make(*state, steps_case.op, (const attr[]){{"key", "v"}}, 1);
    expect_status(parse(op, steps, sizeof steps - 1, out, &n, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "feature list 'v' is missing in a SequenceExample; allow_missing");
    snug_data_op_destroy(op);
}

static void damage(snug_engine *e, const text_case *c) {
    snug_data_op *op = make(e, c->op, &c->key, c->key.name != NULL);
    uint64_t seed = 11;
    char copy[128];
    for (int i = 0; i < 4000; i++) {
        snug_datum out[SNUG_MAX_PARTS];
        int n;
        memcpy(copy, c->bytes, c->n);
        for (int k = 0; k < 3; k++)
            copy[next_random(&seed) % c->n] = (char)next_random(&seed);
        if (parse(op, copy, i % 3 ? c->n : next_random(&seed) % c->n, out, &n, NULL) == SNUG_OK)
            while (n > 0)
                snug_datum_drop(&out[--n]);
    }
    snug_data_op_destroy(op);
}

static void test_damaged_sounds_and_steps_are_messages(void **state) {
    damage(*state, &sound_case);
    damage(*state, &steps_case);
}

static snug_status read_case(snug_engine *e, void *ctx, snug_error *err) {
    const text_case *c = ctx;
    const snug_data_attr a = {c->key.name, {c->key.value, c->key.value ? strlen(c->key.value) : 0}};
    snug_data_op *op;
    snug_datum out[SNUG_MAX_PARTS];
    int n = 0;
    SNUG_TRY(snug_data_op_create(e, c->op, &a, a.name != NULL, &op, err));
    const snug_status status = parse(op, c->bytes, c->n, out, &n, err);
    while (status == SNUG_OK && n > 0)
        snug_datum_drop(&out[--n]);
    snug_data_op_destroy(op);
    return status;
}

static void test_sounds_and_steps_survive_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(read_case, (void *)&sound_case);
    sn_fault_sweep(read_case, (void *)&steps_case);
}

/* --- tensors and CSV ----------------------------------------------------------------------------
 */
static void test_damaged_tensors_are_messages(void **state) {
    snug_engine *e = *state;
    static const char floats[] = "\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01\"\x08"
                                 "\0\0\x80?\0\0\0@",
                      texts[] = "\x08\x07\x12\x04\x12\x02\x08\x02\x42\x03"
                                "abc\x42\x01z";
    uint64_t seed = 5;
    char copy[64];
    snug_error err;
    snug_datum out;
    for (int kind = 0; kind < 2; kind++) {
        const size_t n = (kind ? sizeof texts : sizeof floats) - 1;
        snug_data_op *op = make(e, "tf.io.parse_tensor",
                                (const attr[]){{"out_type", kind ? "string" : "float32"}}, 1);
        for (int i = 0; i < 4000; i++) {
            int n_out;
            memcpy(copy, kind ? texts : floats, n);
            for (int k = 0; i > 0 && k < 2; k++)
                copy[next_random(&seed) % n] = (char)next_random(&seed);
            snug_text t = {copy, i % 3 == 1 ? next_random(&seed) % n : n};
            const snug_datum in = lent(&t);
            const snug_status status = snug_data_op_call(op, 0, &in, 1, &out, 1, &n_out, &err);
            assert_true(i > 0 || status == SNUG_OK);
            if (status == SNUG_OK)
                snug_datum_drop(&out);
        }
        snug_data_op_destroy(op);
    }
}

static void expect_csv_fails(snug_engine *e, const char *record, const char *say) {
    snug_error err;
    snug_datum out[4];
    int n;
    snug_text t = {record, strlen(record)};
    const snug_datum in = lent(&t);
    snug_data_op *op =
        make(e, "tf.io.decode_csv", (const attr[]){{"record_defaults", "i32 -\nf32 0\ntext x"}}, 1);
    expect_status(snug_data_op_call(op, 0, &in, 1, out, 4, &n, &err), SNUG_E_DATA, &err);
    expect_text(err.text, say);
    snug_data_op_destroy(op);
}

static void test_records_that_do_not_fit_their_columns_are_named(void **state) {
    expect_csv_fails(*state, ",1,a", "field 0 is required but missing in record 0");
    expect_csv_fails(*state, "1,x,a", "field 1 in record 0 is no f32: 'x'");
    expect_csv_fails(*state, "1,2", "3 fields are expected, record 0 has 2");
    expect_csv_fails(*state, "1,2,3,4", "3 fields are expected, record 0 has 4");
    expect_csv_fails(*state, "1,2,\"a", "a quote without its end");
    expect_csv_fails(*state, "1,2,\"a\"b", "a quote without its end");
}

/* --- attributes ------------------------------------------------------------------------------- */
static void expect_create_fails(snug_engine *e, const char *name, attr a, const char *say) {
    snug_data_op *op;
    snug_error err;
    const snug_data_attr one = {a.name, {a.value, strlen(a.value)}};
    expect_status(snug_data_op_create(e, name, &one, 1, &op, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, say);
}

static void test_wrong_attributes_are_named(void **state) {
    snug_engine *e = *state;
    expect_create_fails(e, "tf.io.nothing", (attr){"a", "1"}, "no function 'tf.io.nothing'");
    expect_create_fails(e, "tf.io.decode_png", (attr){"ratio", "2"}, "has no attribute 'ratio'");
    expect_create_fails(e, "tf.io.decode_png", (attr){"channels", "many"}, "channels='many'");
    expect_create_fails(e, "tf.image.resize", (attr){"method", "cubic"}, "method 'cubic'");
    expect_create_fails(e, "tf.strings.regex_replace", (attr){"pattern", "a(b"}, "( without )");
    expect_create_fails(e, "tf.strings.regex_replace", (attr){"pattern", "[z-a]"}, "range");
    expect_create_fails(e, "tf.strings.regex_replace", (attr){"pattern", "[\xc3]"}, "no UTF-8");
    expect_create_fails(e, "tf.strings.regex_replace", (attr){"pattern", "(?i)[\xc3\xa9]"}, "(?i)");
    expect_create_fails(e, "tf.strings.regex_replace", (attr){"pattern", "*a"},
                        "nothing to repeat");
    expect_create_fails(e, "tf.strings.regex_replace", (attr){"pattern", "a{1000}{1000}"},
                        "too much");
    expect_create_fails(e, "tf.io.parse_example", (attr){"features", "fixed f64 [] - x"}, "KIND");
    expect_create_fails(e, "tf.io.parse_example", (attr){"features", "fixed f32 [3] 1,2 x"},
                        "2 default values");
}

static void test_patterns_of_any_bytes_end(void **state) {
    snug_engine *e = *state;
    static const char letters[] = "ab(){}[]|*+?.^$\\1,-dwsbQEi:P<>x \xc3\xa9\xe2";
    uint64_t seed = 11;
    for (int i = 0; i < 3000; i++) {
        char pattern[24];
        const size_t n = next_random(&seed) % sizeof pattern;
        for (size_t k = 0; k < n; k++)
            pattern[k] = letters[next_random(&seed) % (sizeof letters - 1)];
        const snug_data_attr attrs[2] = {{"pattern", {pattern, n}}, {"rewrite", {"<\\0>", 4}}};
        snug_data_op *op;
        snug_datum out;
        int n_out;
        snug_text t = {"aab ba\\(\xc3\xa9) 1,x bbbbbbbbbbb\xe2\x82", 29};
        const snug_datum in = lent(&t);
        if (snug_data_op_create(e, "tf.strings.regex_replace", attrs, 2, &op, NULL) != SNUG_OK)
            continue;
        if (snug_data_op_call(op, 0, &in, 1, &out, 1, &n_out, NULL) == SNUG_OK)
            snug_datum_drop(&out);
        snug_data_op_destroy(op);
    }
}

static void test_wrong_parts_are_named(void **state) {
    snug_engine *e = *state;
    snug_error err;
    float x = 1;
    const snug_datum number = {.type = {.dtype = SNUG_F32}, .data = &x, .bytes = sizeof x};
    snug_datum out;
    expect_status(call_on(e, "tf.io.decode_jpeg", &number, 1, &out, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "tf.io.decode_jpeg: part 0 is f32[], not text");
    expect_status(call_on(e, "tf.strings.lower", &number, 0, &out, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "takes 1 parts, not 0");
    snug_text t = {"a", 1};
    const snug_datum text = lent(&t);
    snug_data_op *lower = make(e, "tf.strings.lower", NULL, 0);
    int n;
    expect_status(snug_data_op_call(lower, 0, &text, 1, NULL, 0, &n, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "no room");
    snug_data_op_destroy(lower);
    expect_status(on_text(e, "tf.strings.to_number", "x1", 2, &out, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "'x1' is no f32");
}

/* --- faults ----------------------------------------------------------------------------------- */
static snug_status decode_and_resize(snug_engine *e, void *ctx, snug_error *err) {
    snug_data_op *op = NULL;
    snug_datum picture, small;
    int n;
    const snug_datum in = lent(ctx);
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
        rgb[i] = (unsigned char)next_random(&seed);
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

static snug_status parse_it(snug_engine *e, void *ctx, snug_error *err) {
    static const char lines[] = "fixed f32 [2,2] - x\nvar i64 [] - label\nvar text [] - z";
    (void)ctx;
    const snug_data_attr a = {"features", {lines, sizeof lines - 1}};
    snug_data_op *op;
    snug_datum out[SNUG_MAX_PARTS];
    int n = 0;
    SNUG_TRY(snug_data_op_create(e, "tf.io.parse_single_example", &a, 1, &op, err));
    const snug_status status = parse(op, example, sizeof example - 1, out, &n, err);
    while (status == SNUG_OK && n > 0)
        snug_datum_drop(&out[--n]);
    snug_data_op_destroy(op);
    return status;
}

static void test_examples_survive_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(parse_it, NULL);
}

static snug_status split_it(snug_engine *e, void *ctx, snug_error *err) {
    snug_text t = {"1,2,\"a \"\"b\"\"\"", 13};
    const snug_datum in = lent(&t);
    const snug_data_attr a = {"record_defaults", {"i32 -\nf32 0\ntext x", 18}};
    snug_data_op *op;
    snug_datum out[4];
    int n;
    (void)ctx;
    SNUG_TRY(snug_data_op_create(e, "tf.io.decode_csv", &a, 1, &op, err));
    const snug_status status = snug_data_op_call(op, 0, &in, 1, out, 4, &n, err);
    while (status == SNUG_OK && n > 0)
        snug_datum_drop(&out[--n]);
    snug_data_op_destroy(op);
    return status;
}

static void test_csv_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(split_it, NULL);
}

static snug_status read_it(snug_engine *e, void *ctx, snug_error *err) {
    snug_text t = {ctx, strlen(ctx)};
    const snug_datum in = lent(&t);
    snug_data_op *op;
    snug_datum out;
    int n;
    SNUG_TRY(snug_data_op_create(e, "tf.io.read_file", NULL, 0, &op, err));
    const snug_status status = snug_data_op_call(op, 0, &in, 1, &out, 1, &n, err);
    if (status == SNUG_OK)
        snug_datum_drop(&out);
    snug_data_op_destroy(op);
    return status;
}

static void test_reading_a_file_survives_any_failed_call(void **state) {
    (void)state;
    sn_test_dir dir;
    char path[256];
    sn_test_dir_begin(&dir);
    sn_test_write_file(sn_test_path(&dir, "a", path), "bytes", 5);
    sn_fault_sweep(read_it, path);
    sn_fault_sweep_io(read_it, path);
    sn_test_dir_end(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_pictures_written_are_read),
        engine_test(test_fast_pictures_are_near_careful_ones),
        engine_test(test_truncated_jpeg_names_file_offset_and_reason),
        engine_test(test_recovered_jpeg_has_the_rows_that_are_there),
        engine_test(test_huge_png_header_is_refused_before_memory_is_asked_for),
        engine_test(test_a_png_beyond_the_budget_says_so),
        engine_test(test_text_named_jpg_is_no_picture),
        engine_test(test_missing_file_is_named),
        engine_test(test_files_written_are_read),
        engine_test(test_resizes_of_all_instruction_sets_agree),
        engine_test(test_damaged_pictures_are_messages),
        engine_test(test_damaged_pictures_of_other_kinds_are_messages),
        engine_test(test_features_that_do_not_fit_are_named),
        engine_test(test_every_cut_of_an_example_is_refused_or_whole),
        engine_test(test_damaged_examples_are_messages),
        engine_test(test_sounds_and_steps_are_read),
        engine_test(test_damaged_sounds_and_steps_are_messages),
        engine_test(test_sounds_and_steps_survive_any_failed_request),
        engine_test(test_damaged_tensors_are_messages),
        engine_test(test_records_that_do_not_fit_their_columns_are_named),
        engine_test(test_wrong_attributes_are_named),
        engine_test(test_patterns_of_any_bytes_end),
        engine_test(test_wrong_parts_are_named),
        engine_test(test_pictures_survive_any_failed_request),
        engine_test(test_writing_pictures_survives_any_failed_request),
        engine_test(test_examples_survive_any_failed_request),
        engine_test(test_csv_survives_any_failed_request),
        engine_test(test_reading_a_file_survives_any_failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
