/* test_model_fuzz.c: damaged files of every kind, the same ones in every run: no reader crashes,
 * hangs, leaks or fails without saying why. SNUG_TEST_FULL=1 tries 20 times as many. */
#include "model/array_file.h"
#include "model/keras_json.h"
#include "model/safetensors.h"
#include "support/files.h"

#include <snug/model.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 4096 };

/* --- what is done with a file --------------------------------------------------------------- */

static snug_status read_weights(snug_engine *e, const char *path, snug_error *err) {
    static double room[ROOM];
    sn_safetensors *s;
    const sn_st_entry *found;
    SNUG_TRY(sn_safetensors_open(e, path, 0, &s, err));
    snug_status status = SNUG_OK;
    for (size_t i = 0; i < sn_safetensors_count(s) && status == SNUG_OK; i++) {
        const sn_st_entry *t = sn_safetensors_at(s, i);
        snug_view v = {.data = room, .bytes = sizeof room, .type = t->type};
        v.type.dtype = i % 2 ? SNUG_F32 : SNUG_F64;
        if (t->bytes <= ROOM)
            status = sn_safetensors_read(s, t, &v, err);
    }
    if (status == SNUG_OK && sn_safetensors_find(s, "dense/kernel", &found, NULL) == SNUG_OK)
        assert_non_null(found->name);
    sn_safetensors_close(s);
    return status;
}

static snug_status read_array(snug_engine *e, const char *path, snug_error *err) {
    static double room[ROOM];
    snug_feed *feed;
    SNUG_TRY(snug_feed_open(e, path, &feed, err));
    const snug_type type = *snug_feed_type(feed);
    snug_status status = SNUG_OK;
    const int64_t row = sn_type_span(&type, 1, type.rank);
    const int64_t firsts[] = {0, type.dims[0] / 2, type.dims[0] - 1, 1};
    for (int i = 0; i < 4 && status == SNUG_OK && type.dims[0] > 1 && row > 0 && row <= ROOM; i++) {
        snug_view v = {.data = room, .bytes = sizeof room, .type = type};
        v.type.dims[0] = 1;
        v.type.dtype = i % 2 ? SNUG_F64 : SNUG_F32;
        status = snug_feed_fill(feed, firsts[i], 1, &v, err);
    }
    snug_feed_destroy(feed);
    return status;
}

static snug_status read_model(snug_engine *e, const char *path, snug_error *err) {
    sn_network *n;
    sn_keras_compile c;
    SNUG_TRY(sn_keras_load(e, path, NULL, &n, &c, err));
    sn_network_destroy(n);
    return SNUG_OK;
}

static snug_status ignore_text(void *ctx, const char *text, size_t n, snug_error *err) {
    (void)ctx, (void)text, (void)n, (void)err;
    return SNUG_OK;
}

static snug_status inspect_any(snug_engine *e, const char *path, snug_error *err) {
    const snug_writer w = {NULL, ignore_text};
    SNUG_TRY(snug_inspect(e, path, 0, &w, err));
    return snug_inspect(e, path, 1, &w, err);
}

/* --- seeds ---------------------------------------------------------------------------------- */

static sn_test_seed weights_seed(void) {
    float x[12] = {1, 2, 3};
    int32_t i[2] = {7, 8};
    sn_test_dir d;
    char path[256];
    snug_error err = {0};
    size_t n;
    snug_engine *e = sn_test_engine(0);
    const sn_st_tensor tensors[] = {{"dense/kernel", {x, 48, {SNUG_F32, 2, {3, 4}}}},
                                    {"dense/bias", {x, 16, {SNUG_F32, 1, {4}}}},
                                    {"count", {i, 8, {SNUG_I32, 1, {2}}}},
                                    {"none", {x, 0, {SNUG_F32, 2, {0, 3}}}}};
    sn_test_dir_begin(&d);
    expect_ok(sn_safetensors_save(e, sn_test_path(&d, "w", path), tensors, 4, &err), &err);
    const unsigned char *bytes = sn_test_read_file(path, &n);
    sn_test_dir_end(&d);
    sn_test_engine_end(e);
    return (sn_test_seed){bytes, n};
}

static sn_test_seed npy_seed(int version, const char *dict, size_t data_bytes) {
    unsigned char *f = calloc(1, 192 + data_bytes);
    assert_non_null(f);
    const size_t prefix = version == 1 ? 10 : 12;
    memcpy(f, "\x93NUMPY", 6);
    f[6] = (unsigned char)version;
    f[8] = (unsigned char)(128 - prefix);
    memset(f + prefix, ' ', 128 - prefix);
    memcpy(f + prefix, dict, strlen(dict));
    f[127] = '\n';
    for (size_t i = 0; i < data_bytes; i++)
        f[128 + i] = (unsigned char)i;
    return (sn_test_seed){f, 128 + data_bytes};
}

static sn_test_seed file_seed(const char *path) {
    size_t n;
    const unsigned char *bytes = sn_test_read_file(path, &n);
    return (sn_test_seed){bytes, n};
}

static sn_test_seed packed_seed(sn_test_seed s) {
    size_t n;
    const unsigned char *bytes = sn_test_gzip(s.bytes, s.n, &n);
    return (sn_test_seed){bytes, n};
}

static void end_seeds(sn_test_seed *seeds, size_t n) {
    for (size_t i = 0; i < n; i++)
        free((void *)seeds[i].bytes);
}

/* --- the tests ------------------------------------------------------------------------------ */

static void test_damaged_weights_are_survived(void **state) {
    (void)state;
    sn_test_seed seeds[] = {weights_seed()};
    sn_test_mutations(read_weights, seeds, 1, 20000);
    end_seeds(seeds, 1);
}

static void test_damaged_arrays_are_survived(void **state) {
    (void)state;
    const unsigned char idx[] = {0, 0, 0x0d, 2, 0, 0, 0, 3, 0, 0,  0,  1,
                                 1, 2, 3,    4, 5, 6, 7, 8, 9, 10, 11, 12};
    sn_test_seed seeds[6] = {
        npy_seed(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 24),
        npy_seed(2, "{'descr': '>i8', 'fortran_order': False, 'shape': (5,), }", 40),
        npy_seed(3, "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 2), }", 16)};
    unsigned char *copy = malloc(sizeof idx);
    assert_non_null(copy);
    memcpy(copy, idx, sizeof idx);
    seeds[3] = (sn_test_seed){copy, sizeof idx};
    seeds[4] = packed_seed(seeds[0]);
    seeds[5] = packed_seed(seeds[3]);
    sn_test_mutations(read_array, seeds, 6, 20000);
    end_seeds(seeds, 6);
}

static void test_damaged_models_are_survived(void **state) {
    (void)state;
    sn_test_seed seeds[] = {file_seed(SNUG_TEST_DATA "/data/tfkeras2_cnn.json"),
                            file_seed(SNUG_TEST_DATA "/data/keras2_list.json"),
                            file_seed(SNUG_TEST_DATA "/golden/graph_nested_f32/model.json"),
                            file_seed(SNUG_TEST_DATA "/data/keras3_cnn.json")};
    sn_test_mutations(read_model, seeds, 4, 8000);
    end_seeds(seeds, 4);
}

static sn_test_seed text_seed(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    return (sn_test_seed){(const unsigned char *)copy, strlen(copy)};
}

/* Several inputs and outputs, operations, arrays, brackets, in both dialects. */
static void test_damaged_graphs_are_survived(void **state) {
    (void)state;
    sn_test_seed seeds[] = {
        file_seed(SNUG_TEST_DATA "/golden/ops_shapes_f32/model.json"),
        file_seed(SNUG_TEST_DATA "/golden/ops_arrays_f32/model.json"),
        file_seed(SNUG_TEST_DATA "/golden/io_named_f32/model.json"),
        text_seed(
            "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[{"
            "\"class_name\":\"InputLayer\",\"config\":{\"batch_input_shape\":[null,6],"
            "\"name\":\"x\"},\"name\":\"x\",\"inbound_nodes\":[]},{\"class_name\":"
            "\"TFOpLambda\",\"config\":{\"name\":\"s\",\"function\":\"split\"},\"name\":"
            "\"s\",\"inbound_nodes\":[[\"x\",0,0,{\"num_or_size_splits\":[1,2,3],\"axis\":"
            "-1}]]},{\"class_name\":\"TFOpLambda\",\"config\":{\"name\":\"a\",\"function\":"
            "\"math.add\"},\"name\":\"a\",\"inbound_nodes\":[[\"_CONSTANT_VALUE\",-1,2.5,{"
            "\"y\":[\"s\",0,1]}]]},{\"class_name\":\"SlicingOpLambda\",\"config\":{\"name\":"
            "\"g\",\"function\":\"__operators__.getitem\"},\"name\":\"g\",\"inbound_nodes\":[["
            "\"a\",0,0,{\"slice_spec\":[{\"start\":null,\"stop\":null,\"step\":null},{"
            "\"start\":-2,\"stop\":9,\"step\":1}]}]]}],\"input_layers\":[[\"x\",0,0]],"
            "\"output_layers\":[[\"g\",0,0],[\"s\",0,0],[\"s\",0,2]]}}")};
    sn_test_mutations(read_model, seeds, 4, 3000);
    end_seeds(seeds, 4);
}

static void test_inspect_survives_any_file(void **state) {
    (void)state;
    sn_test_seed seeds[] = {
        weights_seed(), file_seed(SNUG_TEST_DATA "/data/keras2_list.json"),
        npy_seed(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 24)};
    sn_test_mutations(inspect_any, seeds, 3, 4000);
    end_seeds(seeds, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_weights_are_survived),
        cmocka_unit_test(test_damaged_arrays_are_survived),
        cmocka_unit_test(test_damaged_models_are_survived),
        cmocka_unit_test(test_damaged_graphs_are_survived),
        cmocka_unit_test(test_inspect_survives_any_file),
    };
    if (access("/dev/shm", W_OK) == 0) /* tens of thousands of files */
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
