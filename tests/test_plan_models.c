/* test_plan_models.c: plans of whole models, with the real device: packed at the bound or within
 * 1 % or one page, which is what an arena is mapped in, whatever the batch. */
#include "support/support.h"

#include <snug/train.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 4096 };

static const int64_t batches[] = {1, 7, 32, 100}, fixed_batch[] = {16};

static void expect_tight(snug_model *m, const char *name) {
    /* A stateful network has states for one batch size. */
    const bool stateful = strncmp(name, "stateful", 8) == 0;
    const int64_t *const planned = stateful ? fixed_batch : batches;
    for (size_t b = 0; b < (stateful ? 1 : sizeof batches / sizeof batches[0]); b++)
        for (int train = 0; train < 2; train++) {
            snug_model_plan_info info;
            snug_error err;
            expect_ok(snug_model_plan(m, &(snug_plan_request){.batch = planned[b], .train = train},
                                      &info, &err),
                      &err);
            const size_t slack = info.lower_bound_bytes / 100;
            if (info.arena_bytes > info.lower_bound_bytes + (slack > PAGE ? slack : PAGE))
                fail_msg("%s, batch %d, train %d: arena %zu, bound %zu", name, (int)planned[b],
                         train, info.arena_bytes, info.lower_bound_bytes);
            const size_t sum = info.input_bytes + info.activation_bytes + info.gradient_bytes +
                               info.workspace_bytes + info.output_bytes;
            assert_int_equal(sum, info.lower_bound_bytes);
        }
}

/* Loads FOLDER/ENTRY (or FOLDER/ENTRY/model.json) for every entry of that kind and checks it. */
static int expect_folder_tight(snug_engine *e, const char *folder, bool of_folders) {
    char path[1024];
    int n = 0;
    snprintf(path, sizeof path, "%s/%s", SNUG_TEST_DATA, folder);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (of_folders ? dot != NULL : !dot || strcmp(dot, ".json") != 0)
            continue;
        snug_model *m;
        snug_error err;
        snprintf(path, sizeof path, "%s/%s/%s%s", SNUG_TEST_DATA, folder, entry->d_name,
                 of_folders ? "/model.json" : "");
        expect_ok(snug_model_load(e, path, &m, &err), &err);
        expect_tight(m, entry->d_name);
        snug_model_destroy(m);
        n++;
    }
    closedir(dir);
    return n;
}

static void test_all_models_from_files_are_packed_within_1_percent(void **state) {
    assert_true(expect_folder_tight(*state, "../examples/models", false) >= 4);
    assert_true(expect_folder_tight(*state, "golden", true) >= 50);
}

static void add(snug_model *m, const char *layer, const char *config) {
    snug_error err;
    expect_ok(snug_model_add(m, layer, config, &err), &err);
}

/* Six blocks of convolution, normalisation and activation with pooling between: many sizes live at
 * once, from the first activation to the last gradient. */
static void test_a_deep_network_is_packed_within_1_percent(void **state) {
    const snug_type image = {.dtype = SNUG_F32, .rank = 3, .dims = {64, 64, 3}};
    snug_model *m;
    snug_error err;
    expect_ok(snug_model_create(*state, "deep", &image, &m, &err), &err);
    for (int block = 0; block < 6; block++) {
        char conv[96];
        snprintf(conv, sizeof conv, "filters=%d kernel_size=3 padding=same", 8 << block / 2);
        add(m, "Conv2D", conv);
        add(m, "BatchNormalization", "");
        add(m, "Activation", "activation=relu");
        if (block % 2 == 1)
            add(m, "MaxPooling2D", "pool_size=2");
    }
    add(m, "Flatten", "");
    add(m, "Dropout", "rate=0.5");
    add(m, "Dense", "units=10 activation=softmax");
    expect_ok(snug_model_compile(m,
                                 &(snug_compile){.optimizer = "adam",
                                                 .loss = "sparse_categorical_crossentropy",
                                                 .metrics = "accuracy"},
                                 &err),
              &err);
    expect_tight(m, "deep");
    snug_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_all_models_from_files_are_packed_within_1_percent),
        engine_test(test_a_deep_network_is_packed_within_1_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
