/* test_data_ops.c: what functions on files and texts refuse and how they say it; damaged and
 * hostile bytes; every failed request; what is written can be read. Values are compared with
 * TensorFlow's in test_data_ops_golden.c; pictures have test_data_ops_pictures.c. */
#include "support/data_call.h"

#include <string.h>

/* --- files ----------------------------------------------------------------------------------- */
static void test_missing_file_is_named(void **state) {
    snug_error err;
    snug_datum file;
    expect_status(sn_data_read(*state, "/nowhere/a.jpg", &file, &err), SNUG_E_IO, &err);
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
    const snug_datum in[2] = {sn_lent(&name), sn_lent(&text)};
    snug_data_op *write = sn_data_make(e, "tf.io.write_file", NULL, 0);
    expect_ok(snug_data_op_call(write, 0, in, 2, NULL, 0, &n, &err), &err);
    assert_int_equal(n, 0);
    snug_data_op_destroy(write);
    snug_datum file;
    expect_ok(sn_data_read(e, path, &file, &err), &err);
    const snug_text *t = file.data;
    assert_int_equal(t->bytes, 3);
    assert_memory_equal(t->data, "a\0b", 3);
    snug_datum_drop(&file);
    sn_test_dir_end(&dir);
}

/* --- Examples --------------------------------------------------------------------------------- */
static const char example[] = "\x0a\x2e"                                  /* features */
                              "\x0a\x19\x0a\x01x\x12\x14\x12\x12\x0a\x10" /* x: floats */
                              "\0\0\x80?\0\0\0@\0\0@@\0\0\x80@"           /* 1 2 3 4 */
                              "\x0a\x11\x0a\x05label\x12\x08\x1a\x06\x0a\x04\xac\x02\x01\x02";

static snug_data_op *features(snug_engine *e, const char *lines) {
    return sn_data_make(e, "tf.io.parse_single_example",
                        (const sn_attr_text[]){{"features", lines}}, 1);
}

static snug_status parse(const snug_data_op *op, const void *bytes, size_t n, snug_datum *out,
                         int *n_out, snug_error *err) {
    snug_text t = {bytes, n};
    const snug_datum in = sn_lent(&t);
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
            copy[sn_next_random(&seed) % (sizeof copy - 1)] = (char)sn_next_random(&seed);
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
    sn_attr_text key;
} text_case;
static const text_case sound_case = {"tf.audio.decode_wav", sound, sizeof sound - 1, {NULL, NULL}},
                       steps_case = {"snug.sequence_steps", steps, sizeof steps - 1, {"key", "w"}};

static void test_sounds_and_steps_are_read(void **state) {
    snug_datum out[SNUG_MAX_PARTS];
    snug_error err;
    int n;
    snug_data_op *op = sn_data_make(*state, sound_case.op, NULL, 0);
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
    op = sn_data_make(*state, steps_case.op, &steps_case.key, 1);
    expect_ok(parse(op, steps, sizeof steps - 1, out, &n, &err), &err);
    assert_int_equal(out[0].type.dims[0], 2);
    snug_datum_drop(&out[0]);
    snug_data_op_destroy(op);
    op = sn_data_make(*state, steps_case.op, (const sn_attr_text[]){{"key", "v"}}, 1);
    expect_status(parse(op, steps, sizeof steps - 1, out, &n, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "feature list 'v' is missing in a SequenceExample; allow_missing");
    snug_data_op_destroy(op);
}

static void damage(snug_engine *e, const text_case *c) {
    snug_data_op *op = sn_data_make(e, c->op, &c->key, c->key.name != NULL);
    uint64_t seed = 11;
    char copy[128];
    for (int i = 0; i < 4000; i++) {
        snug_datum out[SNUG_MAX_PARTS];
        int n;
        memcpy(copy, c->bytes, c->n);
        for (int k = 0; k < 3; k++)
            copy[sn_next_random(&seed) % c->n] = (char)sn_next_random(&seed);
        if (parse(op, copy, i % 3 ? c->n : sn_next_random(&seed) % c->n, out, &n, NULL) == SNUG_OK)
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

/* --- tensors and CSV -------------------------------------------------------------------------- */
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
        snug_data_op *op =
            sn_data_make(e, "tf.io.parse_tensor",
                         (const sn_attr_text[]){{"out_type", kind ? "string" : "float32"}}, 1);
        for (int i = 0; i < 4000; i++) {
            int n_out;
            memcpy(copy, kind ? texts : floats, n);
            for (int k = 0; i > 0 && k < 2; k++)
                copy[sn_next_random(&seed) % n] = (char)sn_next_random(&seed);
            snug_text t = {copy, i % 3 == 1 ? sn_next_random(&seed) % n : n};
            const snug_datum in = sn_lent(&t);
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
    const snug_datum in = sn_lent(&t);
    snug_data_op *op =
        sn_data_make(e, "tf.io.decode_csv",
                     (const sn_attr_text[]){{"record_defaults", "i32 -\nf32 0\ntext x"}}, 1);
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
static void expect_create_fails(snug_engine *e, const char *name, sn_attr_text a, const char *say) {
    snug_data_op *op;
    snug_error err;
    const snug_data_attr one = {a.name, {a.value, strlen(a.value)}};
    expect_status(snug_data_op_create(e, name, &one, 1, &op, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, say);
}

static void test_wrong_attributes_are_named(void **state) {
    snug_engine *e = *state;
    expect_create_fails(e, "tf.io.nothing", (sn_attr_text){"a", "1"},
                        "no function 'tf.io.nothing'");
    expect_create_fails(e, "tf.io.decode_png", (sn_attr_text){"ratio", "2"},
                        "has no attribute 'ratio'");
    expect_create_fails(e, "tf.io.decode_png", (sn_attr_text){"channels", "many"},
                        "channels='many'");
    expect_create_fails(e, "tf.image.resize", (sn_attr_text){"method", "cubic"}, "method 'cubic'");
    expect_create_fails(e, "tf.strings.regex_replace", (sn_attr_text){"pattern", "a(b"},
                        "( without )");
    expect_create_fails(e, "tf.strings.regex_replace", (sn_attr_text){"pattern", "[z-a]"}, "range");
    expect_create_fails(e, "tf.strings.regex_replace", (sn_attr_text){"pattern", "[\xc3]"},
                        "no UTF-8");
    expect_create_fails(e, "tf.strings.regex_replace", (sn_attr_text){"pattern", "(?i)[\xc3\xa9]"},
                        "(?i)");
    expect_create_fails(e, "tf.strings.regex_replace", (sn_attr_text){"pattern", "*a"},
                        "nothing to repeat");
    expect_create_fails(e, "tf.strings.regex_replace", (sn_attr_text){"pattern", "a{1000}{1000}"},
                        "too much");
    expect_create_fails(e, "tf.io.parse_example", (sn_attr_text){"features", "fixed f64 [] - x"},
                        "KIND");
    expect_create_fails(e, "tf.io.parse_example", (sn_attr_text){"features", "fixed f32 [3] 1,2 x"},
                        "2 default values");
}

static void test_patterns_of_any_bytes_end(void **state) {
    snug_engine *e = *state;
    static const char letters[] = "ab(){}[]|*+?.^$\\1,-dwsbQEi:P<>x \xc3\xa9\xe2";
    uint64_t seed = 11;
    for (int i = 0; i < 3000; i++) {
        char pattern[24];
        const size_t n = sn_next_random(&seed) % sizeof pattern;
        for (size_t k = 0; k < n; k++)
            pattern[k] = letters[sn_next_random(&seed) % (sizeof letters - 1)];
        const snug_data_attr attrs[2] = {{"pattern", {pattern, n}}, {"rewrite", {"<\\0>", 4}}};
        snug_data_op *op;
        snug_datum out;
        int n_out;
        snug_text t = {"aab ba\\(\xc3\xa9) 1,x bbbbbbbbbbb\xe2\x82", 29};
        const snug_datum in = sn_lent(&t);
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
    expect_status(sn_data_call(e, "tf.io.decode_jpeg", &number, 1, &out, &err), SNUG_E_INVALID,
                  &err);
    expect_text(err.text, "tf.io.decode_jpeg: part 0 is f32[], not text");
    expect_status(sn_data_call(e, "tf.strings.lower", &number, 0, &out, &err), SNUG_E_INVALID,
                  &err);
    expect_text(err.text, "takes 1 parts, not 0");
    snug_text t = {"a", 1};
    const snug_datum text = sn_lent(&t);
    snug_data_op *lower = sn_data_make(e, "tf.strings.lower", NULL, 0);
    int n;
    expect_status(snug_data_op_call(lower, 0, &text, 1, NULL, 0, &n, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "no room");
    snug_data_op_destroy(lower);
    expect_status(sn_data_on_text(e, "tf.strings.to_number", "x1", 2, &out, &err), SNUG_E_DATA,
                  &err);
    expect_text(err.text, "'x1' is no f32");
}

/* --- faults ----------------------------------------------------------------------------------- */
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
    const snug_datum in = sn_lent(&t);
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
    const snug_datum in = sn_lent(&t);
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
        engine_test(test_missing_file_is_named),
        engine_test(test_files_written_are_read),
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
        engine_test(test_examples_survive_any_failed_request),
        engine_test(test_csv_survives_any_failed_request),
        engine_test(test_reading_a_file_survives_any_failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
