/* test_pictures.c: resize and warp do what TensorFlow's operators do: the calls recorded in
 * tests/data/pictures.safetensors (golden/record_pictures.py) by the fast kernels and the
 * references. */
#include "support/kernel_call.h"

#include "model/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OUTSIDE 0.5 /* the constant of recorded warps */

typedef struct {
    snug_engine *engine;
    sn_safetensors *file;
} recorded;

static recorded open_file(void) {
    snug_error err;
    char path[256];
    recorded r = {.engine = sn_test_engine(0)};
    snprintf(path, sizeof path, "%s/data/pictures.safetensors", SNUG_TEST_DATA);
    expect_ok(sn_safetensors_open(r.engine, path, 0, &r.file, &err), &err);
    return r;
}

static void close_file(recorded *r) {
    sn_safetensors_close(r->file);
    sn_test_engine_end(r->engine);
}

static void add_recorded(const recorded *r, sn_test_call *k, const char *name) {
    snug_error err;
    const sn_st_entry *t;
    const int i = k->d.n_in;
    expect_ok(sn_safetensors_find(r->file, name, &t, &err), &err);
    sn_add_in(k, t->type, 0, 1);
    expect_ok(sn_safetensors_read(r->file, t, &k->in[i], &err), &err);
}

static void expect_near(const sn_test_call *k, const char *name, const float *want,
                        bool reference) {
    const float *have = k->out[0].data;
    const size_t n = k->out[0].bytes / sizeof(float);
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(have[i] - want[i]) <= 2e-6f * (1 + fabsf(want[i]))))
            fail_msg("%s%s: element %zu is %.9g, TensorFlow has %.9g", name,
                     reference ? " by the reference" : "", i, (double)have[i], (double)want[i]);
}

/* "resize method=1 size=8,6": that call on the recorded inputs gives the recorded tensor. */
static void check_call(const recorded *r, const sn_st_entry *t) {
    snug_error err;
    char op_name[32], dy[32];
    sn_op op;
    const char *attrs = strchr(t->name, ' ') + 1;
    snprintf(op_name, sizeof op_name, "%.*s", (int)(attrs - 1 - t->name), t->name);
    expect_ok(sn_op_find(op_name, &op, &err), &err);
    sn_test_call k;
    sn_begin(&k, op);
    expect_ok(sn_attrs_parse(op, attrs, NULL, &k.d.attrs, &err), &err);
    snprintf(dy, sizeof dy, "dy of %.8s", attrs);
    add_recorded(r, &k, op == SN_OP_resize_grad ? dy : "x");
    if (op == SN_OP_warp)
        add_recorded(r, &k, "transforms");
    sn_ready(&k);
    k.param[0].real = OUTSIDE;
    assert_true(sn_type_equal(&k.d.out[0], &t->type));
    snug_view want = {test_malloc(t->bytes), t->bytes, t->type};
    expect_ok(sn_safetensors_read(r->file, t, &want, &err), &err);
    sn_run(&k);
    expect_near(&k, t->name, want.data, false);
    sn_run_reference(&k);
    expect_near(&k, t->name, want.data, true);
    test_free(want.data);
    sn_kernel_close(&k);
}

static void check_all(const char *prefix, int at_least) {
    recorded r = open_file();
    int n = 0;
    for (size_t i = 0; i < sn_safetensors_count(r.file); i++) {
        const sn_st_entry *t = sn_safetensors_at(r.file, i);
        if (strncmp(t->name, prefix, strlen(prefix)) != 0)
            continue;
        check_call(&r, t);
        n++;
    }
    assert_true(n >= at_least);
    close_file(&r);
}

static void test_resize_follows_tensorflow(void **state) {
    (void)state;
    check_all("resize ", 60);
}

static void test_resize_grad_follows_tensorflow(void **state) {
    (void)state;
    check_all("resize_grad ", 2);
}

static void test_warp_follows_tensorflow(void **state) {
    (void)state;
    check_all("warp ", 8);
}

/* A shift by whole pixels copies, whatever the neighbours hold. */
static void test_warp_by_whole_pixels_copies(void **state) {
    (void)state;
    const float shift[8] = {1, 0, 2, 0, 1, 1, 0, 0};
    sn_test_call k;
    sn_begin(&k, SN_OP_warp);
    sn_add_in(&k, SHAPE(SNUG_F32, 1, 4, 5, 1), 0, 1);
    sn_add_in(&k, SHAPE(SNUG_F32, 1, 8), 0, 1);
    k.d.attrs.warp.size[0] = 2;
    k.d.attrs.warp.size[1] = 3;
    memcpy(k.in[1].data, shift, sizeof shift);
    float *x = k.in[0].data;
    x[3 * 5 + 4] = NAN; /* beside what is copied */
    sn_ready(&k);
    sn_run(&k);
    for (int i = 0; i < 2; i++)
        assert_memory_equal((float *)k.out[0].data + 3 * i, x + (1 + i) * 5 + 2, 3 * sizeof *x);
    sn_kernel_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize_follows_tensorflow),
        cmocka_unit_test(test_resize_grad_follows_tensorflow),
        cmocka_unit_test(test_warp_follows_tensorflow),
        cmocka_unit_test(test_warp_by_whole_pixels_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
