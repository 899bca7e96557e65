/* test_kernels_move.c: rules of the own CPU kernels that move elements, index, draw random numbers,
 * check and update state; and of the device's description. */
#include "support/kernel_call.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- moves --------------------------------------------------------------------------------- */
static void test_transpose_fast_is_reference(void **state) {
    (void)state;
    const struct {
        snug_type t;
        sn_list perm;
    } rows[] = {
        {SHAPE(SNUG_F32, 70, 45), LIST(1, 0)},
        {SHAPE(SNUG_F64, 33, 32), LIST(1, 0)},
        {SHAPE(SNUG_U8, 3, 65, 31), LIST(0, 2, 1)},
        {SHAPE(SNUG_F32, 2, 7, 4, 33), LIST(0, 2, 1, 3)},
        {SHAPE(SNUG_F32, 5, 6, 7), LIST(2, 1, 0)},
        {SHAPE(SNUG_I64, 5, 6, 7), LIST(2, 0, 1)},
        {SHAPE(SNUG_F32, 5, 0, 7), LIST(2, 1, 0)},
        {SHAPE(SNUG_F32, 1, 1), LIST(1, 0)},
        {SHAPE(SNUG_F32, 300, 400), LIST(1, 0)},
        {SHAPE(SNUG_F32, 3, 4, 5, 6, 7), LIST(4, 2, 0, 3, 1)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        sn_test_call k;
        sn_begin(&k, SN_OP_transpose);
        sn_add_in(&k, rows[r].t, 0, 100);
        k.d.attrs.perm.perm = rows[r].perm;
        sn_ready(&k);
        expect_fast_is_reference(&k);
        sn_kernel_close(&k);
    }
}

static void test_transpose_values(void **state) {
    (void)state;
    const int32_t x[6] = {1, 2, 3, 4, 5, 6}, want[6] = {1, 4, 2, 5, 3, 6};
    sn_test_call k;
    sn_begin(&k, SN_OP_transpose);
    sn_add_in(&k, SHAPE(SNUG_I32, 2, 3), 0, 1);
    memcpy(k.in[0].data, x, sizeof x);
    k.d.attrs.perm.perm = LIST(1, 0);
    sn_ready(&k);
    sn_run_reference(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    sn_kernel_close(&k);
}

static void test_broadcast_to_and_fill_are_reference(void **state) {
    (void)state;
    const sn_list shapes[] = {LIST(4, 5, 6), LIST(3, 4, 5, 6), LIST(4, 50, 600)};
    for (int i = 0; i < 3; i++) {
        sn_test_call k;
        sn_begin(&k, SN_OP_broadcast_to);
        sn_add_in(&k, i == 2 ? SHAPE(SNUG_F32, 50, 1) : SHAPE(SNUG_F32, 4, 1, 6), -1, 1);
        k.d.attrs.shape.dims = shapes[i];
        sn_ready(&k);
        expect_fast_is_reference(&k);
        sn_kernel_close(&k);
        sn_begin(&k, SN_OP_fill);
        k.d.attrs.fill.dims = shapes[i];
        k.d.attrs.fill.dtype = i == 0 ? SNUG_F32 : i == 1 ? SNUG_I32 : SNUG_U8;
        k.param[0].real = 7;
        sn_ready(&k);
        expect_fast_is_reference(&k);
        assert_int_equal(((uint8_t *)k.out[0].data)[k.out[0].bytes - 1], i == 0   ? 0x40
                                                                         : i == 1 ? 0
                                                                                  : 7);
        sn_kernel_close(&k);
    }
}

static void test_concat_puts_parts_side_by_side(void **state) {
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        sn_test_call k;
        sn_begin(&k, SN_OP_concat);
        for (int i = 0; i < 3; i++) {
            snug_type t = SHAPE(SNUG_F32, 4, 5, 6);
            t.dims[axis] = i * 3; /* the first has nothing */
            sn_add_in(&k, t, i, i + 1);
        }
        k.d.attrs.axis.axis = axis;
        sn_ready(&k);
        expect_fast_is_reference(&k);
        const int64_t inner = sn_type_span(&k.d.out[0], axis + 1, 3);
        for (int64_t i = 0; i < sn_type_count(&k.d.out[0]); i++)
            assert_int_equal((int)floorf(((float *)k.out[0].data)[i]), i / inner % 9 < 3 ? 1 : 2);
        sn_kernel_close(&k);
    }
}

static void begin_slice(sn_test_call *k, sn_op op, snug_type t, const int64_t *start) {
    sn_begin(k, op);
    sn_add_in(k, t, -1, 1);
    for (int i = 0; i < t.rank; i++)
        k->param[i].key = start[i];
}

static void test_slice_and_its_gradient(void **state) {
    (void)state;
    const int64_t start[3] = {1, 2, 0};
    sn_test_call k, back;
    begin_slice(&k, SN_OP_slice, SHAPE(SNUG_F32, 5, 12, 7), start);
    k.d.attrs.slice.sizes = LIST(3, 4, 7);
    k.d.attrs.slice.strides = LIST(1, 3, 1);
    sn_ready(&k);
    expect_fast_is_reference(&k);
    assert_true(((float *)k.out[0].data)[7] == ((float *)k.in[0].data)[(1 * 12 + 5) * 7]);
    begin_slice(&back, SN_OP_slice_grad, k.d.out[0], start);
    back.d.attrs.slice_grad.dims = LIST(5, 12, 7);
    back.d.attrs.slice_grad.strides = LIST(1, 3, 1);
    sn_ready(&back);
    expect_fast_is_reference(&back);
    double sum_in = 0, sum_out = 0;
    for (int i = 0; i < 3 * 4 * 7; i++)
        sum_in += (double)((float *)back.in[0].data)[i];
    for (int i = 0; i < 5 * 12 * 7; i++)
        sum_out += (double)((float *)back.out[0].data)[i];
    assert_true(fabs(sum_in - sum_out) < 1e-9);
    assert_true(((float *)back.out[0].data)[(1 * 12 + 5) * 7] == ((float *)back.in[0].data)[7]);
    sn_kernel_close(&back);
    k.param[1].key = 3;
    snug_error err;
    expect_status(sn_run_with(&k, sn_cpu_family_of(SN_OP_slice), false, &err), SNUG_E_INVALID,
                  &err);
    expect_text(err.text, "axis 1 of extent 12");
    sn_kernel_close(&k);
}

static void test_pad_surrounds_with_the_value(void **state) {
    (void)state;
    const float want[12] = {9, 9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9};
    sn_test_call k;
    sn_begin(&k, SN_OP_pad);
    sn_add_in(&k, SHAPE(SNUG_F32, 2, 2), 0, 1);
    memcpy(k.in[0].data, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
    k.d.attrs.pad.before = LIST(1, 1);
    k.d.attrs.pad.after = LIST(0, 1);
    k.param[0].real = 9;
    sn_ready(&k);
    expect_fast_is_reference(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    sn_kernel_close(&k);
}

static void test_identity_copies_once_and_leaves_itself(void **state) {
    (void)state;
    sn_test_call k;
    sn_begin(&k, SN_OP_identity);
    sn_add_in(&k, SHAPE(SNUG_F32, 50001), 0, 1);
    sn_ready(&k);
    k.threads = 2;
    sn_run(&k);
    assert_memory_equal(k.out[0].data, k.in[0].data, k.in[0].bytes);
    sn_test_call alias = k;
    alias.out[0].data = k.in[0].data;
    sn_run(&alias);
    assert_memory_equal(k.out[0].data, k.in[0].data, k.in[0].bytes);
    sn_kernel_close(&k);
}

static void test_cast_saturates_and_truncates(void **state) {
    (void)state;
    const float x[6] = {-1.9f, 3.99f, NAN, 1e30f, -1e30f, 0};
    const int32_t i32[6] = {-1, 3, 0, INT32_MAX, INT32_MIN, 0};
    const uint8_t u8[6] = {0, 3, 0, 255, 0, 0}, truth[6] = {1, 1, 1, 1, 1, 0};
    static const snug_dtype to[3] = {SNUG_I32, SNUG_U8, SNUG_BOOL};
    const void *want[3] = {i32, u8, truth};
    for (int i = 0; i < 3; i++) {
        sn_test_call k;
        sn_begin(&k, SN_OP_cast);
        sn_add_in(&k, SHAPE(SNUG_F32, 6), 0, 1);
        memcpy(k.in[0].data, x, sizeof x);
        k.d.attrs.dtype.dtype = to[i];
        sn_ready(&k);
        sn_run(&k);
        expect_bits(&k, want[i], "cast");
        sn_kernel_close(&k);
    }
}

/* --- indices ------------------------------------------------------------------------------- */
static void begin_gather(sn_test_call *k, int64_t extent, int axis, snug_dtype index) {
    snug_type t = SHAPE(SNUG_F32, 3, 4, 5);
    t.dims[axis] = extent;
    sn_begin(k, SN_OP_gather);
    sn_add_in(k, t, -1, 1);
    sn_add_in(k, SHAPE(index, 2, 6), 0, (double)extent);
    k->d.attrs.axis.axis = axis;
    sn_ready(k);
}

static void test_gather_takes_rows_along_any_axis(void **state) {
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        sn_test_call k;
        begin_gather(&k, 9, axis, axis % 2 ? SNUG_I64 : SNUG_I32);
        sn_run(&k);
        const int64_t inner = sn_type_span(&k.d.in[0], axis + 1, 3);
        for (int64_t i = 0; i < sn_type_count(&k.d.out[0]); i++) {
            const int64_t at = i / inner % 12;
            const int64_t index =
                axis % 2 ? ((int64_t *)k.in[1].data)[at] : ((int32_t *)k.in[1].data)[at];
            const int64_t from = (i / inner / 12 * 9 + index) * inner + i % inner;
            assert_true(((float *)k.out[0].data)[i] == ((float *)k.in[0].data)[from]);
        }
        sn_kernel_close(&k);
    }
}

static void test_gather_names_a_bad_index(void **state) {
    (void)state;
    sn_test_call k;
    snug_error err;
    begin_gather(&k, 9, 0, SNUG_I32);
    ((int32_t *)k.in[1].data)[7] = 9;
    expect_status(sn_run_with(&k, sn_cpu_family_of(SN_OP_gather), false, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "index 9 at position 7 is outside [0, 9)");
    ((int32_t *)k.in[1].data)[7] = -1;
    expect_status(sn_run_with(&k, sn_cpu_family_of(SN_OP_gather), false, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "index -1");
    sn_kernel_close(&k);
}

static void test_scatter_add_is_the_same_for_any_threads(void **state) {
    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        sn_test_call k;
        sn_begin(&k, SN_OP_scatter_add);
        sn_add_in(&k, SHAPE(SNUG_I64, 900), 0, 50);
        sn_add_in(&k, axis == 0 ? SHAPE(SNUG_F32, 900, 41) : SHAPE(SNUG_F32, 2, 900, 41), -1, 1);
        k.d.attrs.scatter.axis = axis;
        k.d.attrs.scatter.dims = axis == 0 ? LIST(50, 41) : LIST(2, 50, 41);
        sn_ready(&k);
        expect_fast_is_reference(&k);
        double want = 0;
        for (int i = 0; i < 900; i++)
            if (((int64_t *)k.in[0].data)[i] == 13)
                want += (double)((float *)k.in[1].data)[i * 41 + 7];
        assert_true(fabs((double)((float *)k.out[0].data)[13 * 41 + 7] - want) < 1e-5);
        float *once = sn_copy_out(&k);
        k.accumulate = true;
        sn_run(&k);
        for (int64_t i = 0; i < sn_type_count(&k.d.out[0]); i++)
            assert_true(fabsf(((float *)k.out[0].data)[i] - 2 * once[i]) < 1e-4f);
        free(once);
        sn_kernel_close(&k);
    }
}

static void test_one_hot_has_zeros_outside(void **state) {
    (void)state;
    const float want[9] = {0, 0, 1, 0, 0, 0, 1, 0, 0};
    sn_test_call k;
    sn_begin(&k, SN_OP_one_hot);
    sn_add_in(&k, SHAPE(SNUG_I32, 3), 0, 1);
    memcpy(k.in[0].data, (int32_t[]){2, -1, 0}, 3 * sizeof(int32_t));
    k.d.attrs.one_hot.depth = 3;
    sn_ready(&k);
    sn_run(&k);
    assert_memory_equal(k.out[0].data, want, sizeof want);
    sn_kernel_close(&k);
}

/* --- randomness, checks, updates ----------------------------------------------------------- */
/* Rows [2, 5) of an axis draw what the whole draws there. */
static void test_slices_draw_the_numbers_of_the_whole(void **state) {
    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        sn_test_call whole, part;
        sn_begin(&whole, SN_OP_dropout);
        sn_add_in(&whole, SHAPE(SNUG_F32, 7, 9, 11), 1, 2);
        whole.param[0].real = 0.4;
        whole.param[1].key = 123;
        sn_ready(&whole);
        sn_run(&whole);
        snug_type t = whole.d.in[0];
        t.dims[axis] = 3;
        sn_begin(&part, SN_OP_dropout);
        sn_add_in(&part, t, 1, 2);
        memcpy(part.param, whole.param, sizeof part.param);
        sn_ready(&part);
        part.axis = axis;
        part.first = 2;
        part.full = whole.d.in[0].dims[axis];
        sn_run(&part);
        const int64_t inner = sn_type_span(&t, axis + 1, 3);
        for (int64_t i = 0; i < sn_type_count(&t); i++) {
            const int64_t at = i / (3 * inner) * part.full * inner + 2 * inner + i % (3 * inner);
            const bool kept = ((float *)part.out[0].data)[i] != 0;
            assert_int_equal(kept, ((float *)whole.out[0].data)[at] != 0);
            if (kept)
                assert_true(fabsf(((float *)part.out[0].data)[i] -
                                  ((float *)part.in[0].data)[i] / 0.6f) < 1e-6f);
        }
        sn_kernel_close(&whole), sn_kernel_close(&part);
    }
}

static void test_dropout_keeps_the_right_share(void **state) {
    (void)state;
    static const snug_dtype dtypes[2] = {SNUG_F32, SNUG_F64};
    int64_t kept[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        sn_test_call k;
        sn_begin(&k, SN_OP_dropout);
        sn_add_in(&k, SHAPE(dtypes[i], 40000), 1, 2);
        k.param[0].real = 0.25;
        k.param[1].key = -5;
        sn_ready(&k);
        expect_fast_is_reference(&k);
        for (int j = 0; j < 40000; j++)
            kept[i] +=
                i == 0 ? ((float *)k.out[0].data)[j] != 0 : ((double *)k.out[0].data)[j] != 0;
        sn_kernel_close(&k);
    }
    assert_true(kept[0] > 29500 && kept[0] < 30500);
    assert_true(kept[0] == kept[1]);
}

static void test_random_follows_its_kind(void **state) {
    (void)state;
    for (int kind = SN_RANDOM_UNIFORM; kind <= SN_RANDOM_TRUNCATED; kind++) {
        sn_test_call k;
        sn_begin(&k, SN_OP_random);
        k.d.attrs.random.dims = LIST(200, 200);
        k.d.attrs.random.kind = kind;
        k.param[0].key = 77;
        k.param[1].real = 2;
        k.param[2].real = 5;
        sn_ready(&k);
        expect_fast_is_reference(&k);
        double sum = 0, low = INFINITY;
        for (int i = 0; i < 40000; i++) {
            const double v = (double)((float *)k.out[0].data)[i];
            sum += v;
            low = v < low ? v : low;
        }
        assert_true(fabs(sum / 40000 - (kind == SN_RANDOM_UNIFORM ? 3.5 : 2)) < 0.1);
        assert_true(kind == SN_RANDOM_UNIFORM     ? low >= 2
                    : kind == SN_RANDOM_TRUNCATED ? low >= -8
                                                  : low < -8);
        sn_kernel_close(&k);
    }
}

static void test_check_finite_names_the_first(void **state) {
    (void)state;
    sn_test_call k;
    snug_error err;
    sn_begin(&k, SN_OP_check_finite);
    sn_add_in(&k, SHAPE(SNUG_F32, 50000), -3e38, 3e38);
    sn_ready(&k);
    k.threads = 2;
    sn_run(&k);
    assert_memory_equal(k.out[0].data, k.in[0].data, k.in[0].bytes);
    ((float *)k.in[0].data)[41234] = NAN;
    ((float *)k.in[0].data)[33333] = -INFINITY;
    k.first = 100;
    k.full = 60000;
    expect_status(sn_run_with(&k, sn_cpu_family_of(SN_OP_check_finite), false, &err),
                  SNUG_E_NUMERIC, &err);
    expect_text(err.text, "element 33433 is -inf");
    ((float *)k.in[0].data)[5] = -NAN;
    expect_status(sn_run_with(&k, sn_cpu_family_of(SN_OP_check_finite), false, &err),
                  SNUG_E_NUMERIC, &err);
    expect_text(err.text, "element 105 is nan");
    assert_null(strstr(err.text, "check_finite")); /* the caller names the operator */
    sn_kernel_close(&k);
}

static void test_updates_follow_keras(void **state) {
    (void)state;
    sn_test_call k;
    sn_begin(&k, SN_OP_adam);
    for (int i = 0; i < 4; i++)
        sn_add_in(&k, SHAPE(SNUG_F64, 5), 0.5, 1);
    k.param[0].real = 0.01, k.param[1].real = 0.1, k.param[2].real = 0.001, k.param[3].real = 1e-7;
    sn_ready(&k);
    sn_run(&k);
    const double *w = k.in[0].data, *m = k.in[1].data, *v = k.in[2].data, *g = k.in[3].data;
    for (int i = 0; i < 5; i++) {
        const double mean = m[i] * 0.9 + g[i] * 0.1, square = v[i] * 0.999 + g[i] * g[i] * 0.001;
        assert_true(fabs(((double *)k.out[1].data)[i] - mean) < 1e-14);
        assert_true(fabs(((double *)k.out[2].data)[i] - square) < 1e-14);
        assert_true(fabs(((double *)k.out[0].data)[i] -
                         (w[i] - 0.01 * mean / (sqrt(square) + 1e-7))) < 1e-14);
    }
    sn_kernel_close(&k);
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        sn_begin(&k, SN_OP_sgd_momentum);
        for (int i = 0; i < 3; i++)
            sn_add_in(&k, SHAPE(SNUG_F64, 5), -1, 1);
        k.d.attrs.sgd.nesterov = nesterov;
        k.param[0].real = 0.1, k.param[1].real = 0.9;
        sn_ready(&k);
        w = k.in[0].data, m = k.in[1].data, g = k.in[2].data;
        sn_run(&k);
        for (int i = 0; i < 5; i++) {
            const double moved = 0.9 * m[i] - 0.1 * g[i];
            const double step = nesterov ? 0.9 * moved - 0.1 * g[i] : moved;
            assert_true(fabs(((double *)k.out[1].data)[i] - moved) < 1e-15);
            assert_true(fabs(((double *)k.out[0].data)[i] - (w[i] + step)) < 1e-15);
        }
        sn_kernel_close(&k);
    }
}

/* In their homes, f32, any threads: near the reference, the same bits. */
static void test_updates_in_place_are_the_same(void **state) {
    (void)state;
    static const struct {
        sn_op op;
        int n_in;
    } rows[] = {{SN_OP_sgd, 2},        {SN_OP_sgd_momentum, 3},
                {SN_OP_adam, 4},       {SN_OP_moving_average, 2},
                {SN_OP_assign_add, 2}, {SN_OP_assign, 2},
                {SN_OP_amsgrad, 5},    {SN_OP_rmsprop, 4},
                {SN_OP_adagrad, 3},    {SN_OP_adadelta, 4},
                {SN_OP_adamax, 4},     {SN_OP_nadam, 4},
                {SN_OP_lion, 3},       {SN_OP_weight_decay, 1}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sn_test_call k;
        sn_begin(&k, rows[r].op);
        for (int i = 0; i < rows[r].n_in; i++)
            sn_add_in(&k, SHAPE(SNUG_F32, 33001), 0.5, 1);
        for (int i = 0; i < 4; i++)
            k.param[i].real = 0.1;
        sn_ready(&k);
        sn_run_reference(&k);
        float *want = sn_copy_out(&k);
        sn_run(&k);
        float *got = sn_copy_out(&k);
        for (int i = 0; i < 33001; i++)
            assert_true(fabsf(got[i] - want[i]) <= 2e-7f);
        sn_test_call home = k;
        for (int i = 0; i < k.d.n_out; i++)
            home.out[i].data = k.in[i].data;
        home.threads = 2;
        sn_run(&home);
        expect_bits(&home, got, "in place differs");
        free(want);
        free(got);
        sn_kernel_close(&k);
    }
}

static void test_device_describes_and_refuses(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_variant v;
    snug_error err;
    sn_test_call k;
    sn_begin(&k, SN_OP_sum);
    sn_add_in(&k, SHAPE(SNUG_F32, 40000, 3), -1, 1);
    k.d.attrs.axes.axes = LIST(0);
    sn_ready(&k);
    sn_cpu_device_init(&cpu, 2, false);
    expect_ok(cpu.device.describe(&cpu.device, &k.d, &v, &err), &err);
    assert_int_equal(v.workspace_bytes, 3 * 10 * 8);
    assert_true(v.bytes == 40000 * 3 * 4 + 3 * 4);
    expect_text(v.impl, "own:");
    expect_text(v.impl, sn_cpu_isa());
    sn_cpu_device_init(&cpu, 2, true);
    expect_ok(cpu.device.describe(&cpu.device, &k.d, &v, &err), &err);
    assert_string_equal(v.impl, "reference");
    assert_int_equal(v.workspace_bytes, 0);
    k.d.in[0].dtype = k.d.out[0].dtype = SNUG_BF16;
    expect_ok(cpu.device.describe(&cpu.device, &k.d, &v, &err), &err);
    assert_true(v.bytes == 40000 * 3 * 2 + 3 * 2);
    sn_opdesc factors = {.op = SN_OP_cholesky, .n_in = 1, .in = {SHAPE(SNUG_BF16, 3, 3)}};
    expect_ok(sn_op_infer(&factors, &err), &err);
    expect_status(cpu.device.describe(&cpu.device, &factors, &v, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "bf16 operands");
    sn_kernel_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose_fast_is_reference),
        cmocka_unit_test(test_transpose_values),
        cmocka_unit_test(test_broadcast_to_and_fill_are_reference),
        cmocka_unit_test(test_concat_puts_parts_side_by_side),
        cmocka_unit_test(test_slice_and_its_gradient),
        cmocka_unit_test(test_pad_surrounds_with_the_value),
        cmocka_unit_test(test_identity_copies_once_and_leaves_itself),
        cmocka_unit_test(test_cast_saturates_and_truncates),
        cmocka_unit_test(test_gather_takes_rows_along_any_axis),
        cmocka_unit_test(test_gather_names_a_bad_index),
        cmocka_unit_test(test_scatter_add_is_the_same_for_any_threads),
        cmocka_unit_test(test_one_hot_has_zeros_outside),
        cmocka_unit_test(test_slices_draw_the_numbers_of_the_whole),
        cmocka_unit_test(test_dropout_keeps_the_right_share),
        cmocka_unit_test(test_random_follows_its_kind),
        cmocka_unit_test(test_check_finite_names_the_first),
        cmocka_unit_test(test_updates_follow_keras),
        cmocka_unit_test(test_updates_in_place_are_the_same),
        cmocka_unit_test(test_device_describes_and_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
