/* test_model_tools.c: inspect and make-data, files for callers. */
#include "model/safetensors.h"
#include "support/files.h"

#include <jansson.h>
#include <snug/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA(name) SNUG_TEST_DATA "/data/" name

/* --- inspect -------------------------------------------------------------------------------- */

static void expect_inspected(snug_engine *e, const char *path, int json, const char *golden) {
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    snug_error err = {0};
    expect_ok(snug_inspect(e, path, json, &w, &err), &err);
    assert_string_equal(t.text, golden);
    sn_text_end(&t);
}

static void test_inspect_shows_a_model(void **state) {
    expect_inspected(*state, DATA("keras2_list.json"), 0,
                     "Keras model \"sequential\", input f32[?,20]\n"
                     "  dense_1                      Dense                    f32[?,7]\n"
                     "  dense_2                      Dense                    f32[?,1]\n"
                     "no compile settings in the file\n");
    expect_inspected(*state, DATA("keras2_list.json"), 1,
                     "{\"kind\":\"model\",\"name\":\"sequential\",\"input\":[null,20],\"layers\":["
                     "{\"name\":\"dense_1\",\"type\":\"Dense\",\"output\":[null,7]},"
                     "{\"name\":\"dense_2\",\"type\":\"Dense\",\"output\":[null,1]}],"
                     "\"inputs\":[{\"name\":\"\",\"shape\":[null,20]}],"
                     "\"outputs\":[{\"name\":\"dense_2\",\"shape\":[null,1]}],"
                     "\"optimizer\":\"\",\"loss\":\"\",\"metrics\":\"\"}\n");
}

static void test_inspect_shows_arrays(void **state) {
    static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    sn_test_dir d;
    char path[256];
    size_t n;
    sn_test_dir_begin(&d);
    sn_test_write_file(sn_test_path(&d, "a", path), idx, sizeof idx);
    expect_inspected(*state, path, 0, "idx array, u8[2,3], 2 rows, 6 B\n");
    unsigned char *gz = sn_test_gzip(idx, sizeof idx, &n);
    sn_test_write_file(path, gz, n);
    expect_inspected(*state, path, 0, "idx array (gzip), u8[2,3], 2 rows, 6 B\n");
    expect_inspected(*state, path, 1,
                     "{\"kind\":\"array\",\"format\":\"idx\",\"dtype\":\"u8\",\"shape\":[2,3],"
                     "\"bytes\":6,\"packed\":true}\n");
    free(gz);
    sn_test_dir_end(&d);
}

/* A name with all that must not reach a terminal or break JSON. */
static void test_inspect_shows_weights_and_tames_names(void **state) {
    char name[1400];
    float x[2] = {1, 2};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    sn_test_path(&d, "w", path);
    const snug_view v = {.data = x, .bytes = 8, .type = {SNUG_F32, 1, {2}}};
    const sn_st_tensor plain[] = {{"dense/bias", v}, {"a\x1b[2J\"\\\n", v}};
    expect_ok(sn_safetensors_save(*state, path, plain, 2, &err), &err);
    expect_inspected(
        *state, path, 0,
        "a?[2J\"\\?                                 f32[2]                            8 B\n"
        "dense/bias                               f32[2]                            8 B\n"
        "safetensors, 2 tensors, 16 B\n");
    expect_inspected(
        *state, path, 1,
        "{\"kind\":\"safetensors\",\"tensors\":["
        "{\"name\":\"a\\u001b[2J\\\"\\\\\\n\",\"dtype\":\"f32\",\"shape\":[2],\"bytes\":8},"
        "{\"name\":\"dense/bias\",\"dtype\":\"f32\",\"shape\":[2],\"bytes\":8}],\"bytes\":16}\n");
    memset(name, 'n', sizeof name - 1); /* longer than a piece of text */
    name[sizeof name - 1] = 0;
    const sn_st_tensor longer[] = {{name, v}};
    expect_ok(sn_safetensors_save(*state, path, longer, 1, &err), &err);
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    expect_ok(snug_inspect(*state, path, 1, &w, &err), &err);
    json_t *root = json_loads(t.text, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(root, "tensors"), 0), "name")),
                        name);
    json_decref(root);
    sn_text_end(&t);
    sn_test_dir_end(&d);
}

/* The first byte of a safetensors file is a length, which may be '{' or a space. */
static void test_inspect_tells_weights_from_models(void **state) {
    sn_test_dir d;
    char path[256];
    sn_test_dir_begin(&d);
    sn_test_path(&d, "w", path);
    for (int n = 2; n < 200; n++) {
        unsigned char file[256];
        memset(file, ' ', sizeof file);
        memset(file, 0, 8);
        file[0] = (unsigned char)n;
        memcpy(file + 8, "{}", 2);
        sn_test_write_file(path, file, 8 + (size_t)n);
        expect_inspected(*state, path, 0, "safetensors, 0 tensors, 0 B\n");
    }
    sn_test_dir_end(&d);
}

static void test_inspect_refuses_other_files(void **state) {
    static const struct {
        const char *bytes, *piece;
        size_t n;
    } rows[] = {{"", "it is empty", 0},
                {"hello", "neither .npy nor idx", 5},
                {"PK\3\4....", ".keras archive", 8},
                {"{\"a\":1}", "no class_name", 7},
                {" \n{", "not valid JSON", 3}};
    sn_test_dir d;
    char path[256];
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    sn_test_dir_begin(&d);
    sn_test_path(&d, "f", path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snug_error err = {0};
        sn_test_write_file(path, rows[i].bytes, rows[i].n);
        assert_int_not_equal(snug_inspect(*state, path, 0, &w, &err), SNUG_OK);
        expect_text(err.text, rows[i].piece);
        expect_text(err.text, path);
    }
    assert_int_equal(t.n, 0);
    sn_text_end(&t);
    sn_test_dir_end(&d);
}

static snug_status inspect_scenario(snug_engine *e, void *ctx, snug_error *err) {
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    const snug_status status = snug_inspect(e, ctx, 1, &w, err);
    sn_text_end(&t);
    return status;
}

static snug_status refuse_text(void *ctx, const char *text, size_t n, snug_error *err) {
    int *left = ctx;
    (void)text, (void)n;
    if ((*left)-- > 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_IO, "no room for text");
}

static void test_inspect_survives_any_fault(void **state) {
    sn_fault_sweep(inspect_scenario, DATA("keras3_cnn.json"));
    sn_fault_sweep_io(inspect_scenario, DATA("keras3_cnn.json"));
    for (int n = 0; n < 30; n++) { /* a writer that fails, too */
        int left = n;
        const snug_writer w = {&left, refuse_text};
        snug_error err = {0};
        expect_status(snug_inspect(*state, DATA("keras3_cnn.json"), 1, &w, &err), SNUG_E_IO, &err);
    }
}

/* --- make-data ------------------------------------------------------------------------------ */

static uint64_t hash_of(const sn_test_dir *d, const char *name) {
    char path[256];
    size_t n;
    unsigned char *bytes = sn_test_read_file(sn_test_path(d, name, path), &n);
    const uint64_t h = sn_test_hash(bytes, n);
    free(bytes);
    return h;
}

/* The first 200 pictures and 50 to test with, and 300 points, by seed. */
static void test_same_seed_same_bytes(void **state) {
    sn_test_dir d;
    snug_error err = {0};
    sn_test_dir_begin(&d);
    expect_ok(snug_make_data(*state, "shapes", d.path, &(snug_make_data_options){200, 50, 1}, &err),
              &err);
    assert_int_equal(sn_test_dir_count(&d), 4);
    assert_int_equal(hash_of(&d, "x_train.npy"), 0x9fe964d24b589f96u);
    assert_int_equal(hash_of(&d, "y_train.npy"), 0xd37ea65b398ebfeeu);
    const uint64_t test = hash_of(&d, "x_test.npy");
    expect_ok(snug_make_data(*state, "shapes", d.path, &(snug_make_data_options){50, 50, 2}, &err),
              &err);
    assert_true(hash_of(&d, "x_test.npy") != test);
    assert_true(hash_of(&d, "x_test.npy") !=
                hash_of(&d, "x_train.npy")); /* the test set is another one */
    expect_ok(snug_make_data(*state, "blobs", d.path, &(snug_make_data_options){300, 50, 1}, &err),
              &err);
    assert_int_equal(hash_of(&d, "x_train.npy"), 0x2817d8c55a5cd50du);
    sn_test_dir_end(&d);
}

static void test_a_larger_set_begins_with_the_smaller(void **state) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    size_t n, n2;
    sn_test_dir_begin(&d);
    sn_test_path(&d, "x_train.npy", path);
    expect_ok(snug_make_data(*state, "shapes", d.path, &(snug_make_data_options){20, 1, 5}, &err),
              &err);
    unsigned char *few = sn_test_read_file(path, &n);
    expect_ok(snug_make_data(*state, "shapes", d.path, &(snug_make_data_options){30, 1, 5}, &err),
              &err);
    unsigned char *more = sn_test_read_file(path, &n2);
    assert_int_equal(n2 - n, 10 * 32 * 32 * 3);
    assert_memory_equal(few + 128, more + 128, n - 128);
    free(few);
    free(more);
    sn_test_dir_end(&d);
}

static void expect_balanced(snug_engine *e, const char *kind, int classes) {
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    snug_feed *feed;
    static int32_t labels[2400];
    int counts[16] = {0};
    sn_test_dir_begin(&d);
    expect_ok(snug_make_data(e, kind, d.path, &(snug_make_data_options){2400, 1, 3}, &err), &err);
    expect_ok(snug_feed_open(e, sn_test_path(&d, "y_train.npy", path), &feed, &err), &err);
    snug_view v = {.data = labels, .bytes = sizeof labels, .type = *snug_feed_type(feed)};
    assert_int_equal(v.type.dtype, SNUG_I32);
    expect_ok(snug_feed_fill(feed, 0, 2400, &v, &err), &err);
    for (int i = 0; i < 2400; i++) {
        assert_true(labels[i] >= 0 && labels[i] < classes);
        counts[labels[i]]++;
    }
    for (int i = 0; i < classes; i++)
        assert_true(counts[i] > 2400 / classes * 3 / 4 && counts[i] < 2400 / classes * 5 / 4);
    snug_feed_destroy(feed);
    sn_test_dir_end(&d);
}

static void test_labels_are_balanced(void **state) {
    expect_balanced(*state, "shapes", 8);
    expect_balanced(*state, "blobs", 6);
}

static void test_make_data_refuses_what_it_cannot_make(void **state) {
    sn_test_dir d;
    char path[256], below[300];
    snug_error err = {0};
    sn_test_dir_begin(&d);
    expect_status(snug_make_data(*state, "spirals", d.path, NULL, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "there is no data set 'spirals'; there are: shapes, blobs");
    expect_status(
        snug_make_data(*state, "blobs", d.path, &(snug_make_data_options){-5, 1, 0}, &err),
        SNUG_E_INVALID, &err);
    expect_text(err.text, "-5 examples");
    sn_test_write_file(sn_test_path(&d, "file", path), "x", 1);
    snprintf(below, sizeof below, "%s/below", path);
    expect_status(snug_make_data(*state, "blobs", below, NULL, &err), SNUG_E_IO, &err);
    expect_text(err.text, below);
    expect_status(snug_make_data(*state, "blobs", path, NULL, &err), SNUG_E_IO,
                  &err); /* a file where a folder should be */
    expect_text(err.text, path);
    assert_int_equal(sn_test_dir_count(&d), 1);
    sn_test_dir_end(&d);
}

static snug_status make_scenario(snug_engine *e, void *ctx, snug_error *err) {
    return snug_make_data(e, "blobs", ctx, &(snug_make_data_options){3, 2, 0}, err);
}

static void test_make_data_survives_any_fault(void **state) {
    (void)state;
    sn_test_dir d;
    sn_test_dir_begin(&d);
    sn_fault_sweep(make_scenario, d.path);
    sn_fault_sweep_io(make_scenario, d.path);
    sn_test_dir_end(&d);
}

/* --- files for callers ---------------------------------------------------------------------- */
static void test_a_callers_file_is_whole_or_not_there(void **state) {
    sn_test_dir d;
    char path[256];
    size_t n;
    snug_error err = {0};
    snug_file *one, *two;
    sn_test_dir_begin(&d);
    sn_test_path(&d, "file", path);
    expect_ok(snug_file_create(*state, path, &one, &err), &err);
    expect_ok(snug_file_create(*state, path, &two, &err), &err);
    assert_string_not_equal(snug_file_name(one), snug_file_name(two));
    sn_test_write_file(snug_file_name(one), "one", 3);
    sn_test_write_file(snug_file_name(two), "two", 3);
    assert_int_not_equal(access(path, F_OK), 0);
    expect_ok(snug_file_commit(one, &err), &err);
    expect_status(snug_file_commit(one, &err), SNUG_E_INVALID, &err);
    snug_file_destroy(two);
    snug_file_destroy(one);
    snug_file_destroy(NULL);
    unsigned char *found = sn_test_read_file(path, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(found, "one", 3);
    free(found);
    assert_int_equal(sn_test_dir_count(&d), 1);
    sn_test_dir_end(&d);
    expect_status(snug_file_create(*state, "/nowhere/file", &one, &err), SNUG_E_IO, &err);
    expect_status(snug_file_create(*state, NULL, &one, &err), SNUG_E_INVALID, &err);
    expect_status(snug_file_commit(NULL, &err), SNUG_E_INVALID, &err);
}

static void test_callers_read_safetensors_by_number(void **state) {
    float x[3] = {1, 2, 3}, y[3] = {0};
    sn_test_dir d;
    char path[256];
    const char *name;
    snug_error err = {0};
    snug_type type;
    snug_safetensors *file;
    const snug_view view = {
        .type = {.dtype = SNUG_F32, .rank = 1, .dims = {3}}, .data = x, .bytes = 12};
    const sn_st_tensor tensors[] = {{"a/kernel", view}};
    sn_test_dir_begin(&d);
    expect_ok(sn_safetensors_save(*state, sn_test_path(&d, "w", path), tensors, 1, &err), &err);
    expect_ok(snug_safetensors_open(*state, path, 0, &file, &err), &err);
    assert_int_equal(snug_safetensors_count(file), 1);
    expect_ok(snug_safetensors_at(file, 0, &name, &type, &err), &err);
    assert_string_equal(name, "a/kernel");
    assert_int_equal(type.dims[0], 3);
    snug_view to = {.type = type, .data = y};
    expect_ok(snug_safetensors_read(file, 0, &to, &err), &err);
    assert_memory_equal(x, y, sizeof x);
    expect_status(snug_safetensors_at(file, 1, &name, &type, &err), SNUG_E_INVALID, &err);
    expect_status(snug_safetensors_read(file, SIZE_MAX, &to, &err), SNUG_E_INVALID, &err);
    expect_status(snug_safetensors_read(file, 0, NULL, &err), SNUG_E_INVALID, &err);
    to.type.dims[0] = 2;
    expect_status(snug_safetensors_read(file, 0, &to, &err), SNUG_E_SHAPE, &err);
    snug_safetensors_close(file);
    snug_safetensors_close(NULL);
    expect_status(snug_safetensors_at(NULL, 0, &name, &type, &err), SNUG_E_INVALID, &err);
    sn_test_dir_end(&d);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) /* the sweep of make-data syncs hundreds of files */
        setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        engine_test(test_inspect_shows_a_model),
        engine_test(test_inspect_shows_arrays),
        engine_test(test_inspect_shows_weights_and_tames_names),
        engine_test(test_inspect_tells_weights_from_models),
        engine_test(test_inspect_refuses_other_files),
        engine_test(test_inspect_survives_any_fault),
        engine_test(test_same_seed_same_bytes),
        engine_test(test_a_larger_set_begins_with_the_smaller),
        engine_test(test_labels_are_balanced),
        engine_test(test_make_data_refuses_what_it_cannot_make),
        cmocka_unit_test(test_make_data_survives_any_fault),
        engine_test(test_a_callers_file_is_whole_or_not_there),
        engine_test(test_callers_read_safetensors_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
