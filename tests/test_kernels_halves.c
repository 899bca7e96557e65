/* test_kernels_halves.c: products, convolutions and attention of halves are the f32 kernels on
 * widened numbers, rounded once, bit by bit, on every instruction set and with any threads; or, of
 * bf16 on processors that multiply two of them at once, what plain C says that does. And operands
 * of several types: an f32 factor beside a half is rounded to it as a cast before would, results in
 * f32 are not rounded. (Sweeps compare halves with their references elsewhere.) */
#include "support/call.h"
#include "support/kernel_call.h"

#include "kernels/cpu/conv.h"
#include "kernels/cpu/matrix.h"
#include "tensor/feed.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const sn_kernel_case cases[] = {
    /* pieces, groups of them, groups as tasks; B packed for each block, and for all; few rows */
    {"matmul", "", "f32[7,5] f32[5,3]", .batch = 0},
    {"matmul", "act=relu", "f32[50,100] f32[100,64] f32[64]", .batch = 0},
    {"matmul", "act=tanh", "f32[13,300] f32[300,17] f32[17]", .batch = 0},
    {"matmul", "trans_a=1", "f32[70,300] f32[70,65]", .batch = 0},
    {"matmul", "trans_a=1 trans_b=1", "f32[30,40] f32[90,30]", .batch = 0},
    {"matmul", "trans_b=1", "f32[40,30] f32[90,30]", .batch = 0},
    {"matmul", "act=tanh", "f32[5,4200] f32[4200,100] f32[100]", .batch = 0},
    {"matmul", "", "f32[300,4200] f32[4200,3]", .batch = 0},
    {"matmul", "act=relu6", "f32[600,30] f32[30,300] f32[300]", .batch = 0},
    {"matmul", "", "f32[3,2,9,8] f32[2,8,11]", .batch = 0},
    {"matmul", "act=sigmoid", "f32[4,0] f32[0,3] f32[3]", .batch = 0},
    {"matmul", "", "f32[0,5] f32[5,3]", .batch = 0},
    /* windows, strides, dilation, groups, several images in a block, one pixel, lines of bias */
    {"conv2d", "act=relu", "f32[3,20,21,3] f32[3,3,3,32] f32[32]", .batch = 0},
    {"conv2d", "stride=2,2 pad=0,1,0,1 act=tanh", "f32[2,12,10,6] f32[3,3,6,20] f32[20]",
     .batch = 0},
    {"conv2d", "dilation=2,3 pad=2,1,4,3", "f32[2,11,13,4] f32[3,3,4,18]", .batch = 0},
    {"conv2d", "", "f32[4,7,7,40] f32[1,1,40,70]", .batch = 0},
    {"conv2d", "act=relu6", "f32[2,7,7,300] f32[1,1,300,200] f32[2,200]", .batch = 0},
    {"conv2d", "stride=2,2", "f32[2,8,9,300] f32[1,1,300,33]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[37,3,4,5] f32[3,3,5,18] f32[18]", .batch = 0},
    {"conv2d", "groups=2", "f32[19,2,3,6] f32[1,1,3,8] f32[2,8]", .batch = 0},
    {"conv2d", "groups=2 pad=1,1,0,0", "f32[2,7,7,6] f32[3,2,3,10] f32[2,10]", .batch = 0},
    {"conv2d_dw", "kernel=1,1 bias=1", "f32[20,9,9,6] f32[20,9,9,32]", .batch = 0},
    {"conv2d", "stride=2,2 pad=0,1,0,1 act=relu", "f32[2,13,10,34] f32[3,3,34,20] f32[20]",
     .batch = 0},
    {"conv2d", "", "f32[3,5,7,1030] f32[1,1,1030,70]", .batch = 0},
    {"conv2d", "dilation=2,1 pad=1,1,1,1", "f32[9,5,3,14] f32[3,2,14,33]", .batch = 0},
    {"conv2d_dx", "stride=2,2 pad=0,1,0,1 input=9,8", "f32[2,4,4,96] f32[3,3,18,96]", .batch = 0},
    {"conv2d_dx", "stride=3,3 pad=1,0,1,0 input=9,9", "f32[2,4,4,64] f32[1,1,6,64]", .batch = 0},
    {"conv2d_dx", "input=7,7", "f32[2,7,7,1056] f32[1,1,18,1056]", .batch = 0},
    {"conv2d_dx", "stride=2,2 input=9,9", "f32[2,4,4,20] f32[3,3,6,20]", .batch = 0},
    {"conv2d_dx", "stride=3,3 input=9,9", "f32[2,3,3,20] f32[1,1,6,20]", .batch = 0},
    {"conv2d_dw", "stride=2,2 kernel=3,3 bias=1", "f32[3,9,9,5] f32[3,4,4,20]", .batch = 0},
    {"conv2d_dw", "pad=2,2,2,2 kernel=5,5 bias=1", "f32[2,21,20,70] f32[2,21,20,140]", .batch = 0},
    /* a kernel for each channel: strips of rows, any kernel, thin layers, strides back */
    {"conv2d", "groups=40 pad=1,1,1,1 act=relu6", "f32[2,21,20,40] f32[3,3,1,40] f32[2,40]",
     .batch = 0},
    {"conv2d", "groups=6 pad=1,1,1,1 act=tanh", "f32[2,7,7,6] f32[3,3,1,6] f32[6]", .batch = 0},
    {"conv2d", "groups=20 dilation=2,1 stride=2,3", "f32[2,11,12,20] f32[4,2,1,20]", .batch = 0},
    {"conv2d_dx", "groups=40 pad=1,1,1,1 input=21,20", "f32[2,21,20,40] f32[3,3,1,40]", .batch = 0},
    {"conv2d_dx", "groups=20 dilation=2,1 stride=2,3 input=11,12", "f32[2,3,4,20] f32[4,2,1,20]",
     .batch = 0},
    {"conv2d_dx", "groups=20 stride=3,3 input=9,9", "f32[2,3,3,20] f32[1,1,1,20]", .batch = 0},
    {"conv2d_dw", "groups=40 pad=1,1,1,1 kernel=3,3 bias=1", "f32[3,21,20,40] f32[3,21,20,40]",
     .batch = 0},
    {"conv2d_dw", "groups=20 dilation=2,1 stride=2,3 kernel=4,2", "f32[2,11,12,20] f32[2,3,4,20]",
     .batch = 0},
    /* tiles */
    {"conv2d", "act=relu6", "f32[3,9,6,20] f32[3,3,20,66] f32[2,66]", .batch = 0},
    {"conv2d", "pad=1,1,1,1 act=tanh", "f32[13,3,4,18] f32[3,3,18,5] f32[5]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[2,9,8,130] f32[3,3,130,67]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=9,8", "f32[2,9,8,67] f32[3,3,130,67]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[2,9,8,130] f32[2,9,8,67]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[5,26,26,20] f32[5,26,26,18]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[0,9,8,20] f32[0,9,8,18]", .batch = 0},
    /* pooled */
    {"conv2d_pool", "codes=1 act=relu pool=2,2,2,2,0,0,0,0", "f32[2,9,11,5] f32[3,3,5,24] f32[24]",
     .batch = 0},
    {"conv2d_pool", "codes=1 pad=1,1,1,1 pool=2,2,2,2,0,0,0,0",
     "f32[2,12,12,20] f32[3,3,20,24] f32[2,24]", .batch = 0},
    {"conv2d_pool", "codes=1 pool=3,3,2,2,1,1,1,1", "f32[2,12,12,300] f32[1,1,300,24]", .batch = 0},
    {"conv2d_pool_dx", "input=9,11 pool=2,2,2,2,0,0,0,0",
     "f32[2,3,4,24] f32[3,3,5,24] opaque[2,3,4,24]", .batch = 0},
    {"conv2d_pool_dw", "kernel=3,3 bias=1 pool=2,2,2,2,0,0,0,0",
     "f32[2,9,11,5] f32[2,3,4,24] opaque[2,3,4,24]", .batch = 0},
    {"conv2d_pool_dw", "kernel=3,3 bias=1 pad=1,1,1,1 pool=2,2,2,2,0,0,0,0",
     "f32[2,12,12,20] f32[2,6,6,24] opaque[2,6,6,24]", .batch = 0},
    {"conv2d_pool", "codes=1 act=relu pool=2,2,2,2,0,0,0,0", "f32[2,9,81,3] f32[3,3,3,24] f32[24]",
     .batch = 0},
    {"conv2d_pool", "codes=1 pad=1,1,1,1 pool=2,2,2,2,0,0,0,0", "f32[2,8,80,4] f32[3,3,4,7]",
     .batch = 0},
    {"conv2d_pool_dw", "kernel=3,3 bias=1 pool=2,2,2,2,0,0,0,0",
     "f32[2,9,81,3] f32[2,3,39,24] opaque[2,3,39,24]", .batch = 0},
    /* several blocks of queries and keys, heads that share a key, masks */
    {"attention", "", "f32[2,130,2,20] f32[2,140,1,20] f32[2,140,1,33]", .param = {0.3}},
    {"attention", "causal=1", "f32[1,130,2,16] f32[1,130,2,16] f32[1,130,2,16] f32[1,2,130,130]",
     .param = {0.3}},
    {"attention", "", "f32[2,5,2,3] f32[2,0,1,3] f32[2,0,1,4]", .param = {0.3}},
    {"attention_grad", "",
     "f32[2,130,2,20] f32[2,140,1,20] f32[2,140,1,33] f32[2,130,2,33] f32[2,130,2] f32[2,130,2,33]",
     .param = {0.3}},
    {"attention_grad", "causal=1",
     "f32[1,99,2,16] f32[1,99,2,16] f32[1,99,2,16] f32[1,99,2,16] f32[1,99,2] f32[1,99,2,16] "
     "f32[1,1,1,99]",
     .param = {0.3}},
    {"attention_grad", "",
     "f32[2,5,2,3] f32[2,0,1,3] f32[2,0,1,4] f32[2,5,2,4] f32[2,5,2] f32[2,5,2,4]", .param = {0.3}},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static const snug_dtype halves[] = {SNUG_F16, SNUG_BF16};

/* to, from and the sizes fit. */
static void convert(const snug_view *from, const snug_view *to) {
    const int64_t n = sn_type_count(&from->type);
    if (from->type.dtype == SNUG_OPAQUE)
        memcpy(to->data, from->data, from->bytes);
    else
        expect_ok(
            sn_convert(from->type.dtype, from->data, to->type.dtype, to->data, (size_t)n, NULL),
            NULL);
}

/* Input or output i becomes one of this type, with the numbers it had. */
static void retype(snug_type *t, snug_view *v, snug_dtype dtype) {
    snug_view other;
    t->dtype = dtype;
    other = sn_view_make(t, 0, 0);
    convert(v, &other);
    sn_views_free(v, 1);
    *v = other;
}

/* Every operand that is f32. */
static void retype_all(sn_test_call *k, snug_dtype dtype) {
    for (int i = 0; i < k->d.n_in; i++)
        if (k->d.in[i].dtype == SNUG_F32)
            retype(&k->d.in[i], &k->in[i], dtype);
    for (int i = 0; i < k->d.n_out; i++)
        if (k->d.out[i].dtype == SNUG_F32)
            retype(&k->d.out[i], &k->out[i], dtype);
}

static void expect_same(const sn_test_call *got, const sn_test_call *want, const sn_kernel_case *c,
                        const char *what) {
    for (int i = 0; i < got->d.n_out; i++) {
        snug_view rounded = sn_view_make(&got->d.out[i], want->out[i].bytes, 0);
        convert(&want->out[i], &rounded);
        if (memcmp(got->out[i].data, rounded.data, got->out[i].bytes) != 0)
            fail_msg("output %d of %s {%s | %s} in %s with %s", i, c->op, c->attrs, c->types,
                     snug_dtype_name(got->d.out[i].dtype), what);
        sn_views_free(&rounded, 1);
    }
}

/* --- words of two bf16 ------------------------------------------------------------------------ */
static bool has_pairs(const sn_test_call *k) {
    return strcmp(k->variant.impl, "own:avx512bf16") == 0;
}

static float flushed(float v) {
    return fabsf(v) < FLT_MIN ? copysignf(0, v) : v;
}

/* The instruction: the second product first, each sum rounded, nothing below the least normal
 * number. */
static float add_pair(float sum, const float *a, const float *b) {
    sum = flushed(fmaf(flushed(a[1]), flushed(b[1]), flushed(sum)));
    return flushed(fmaf(flushed(a[0]), flushed(b[0]), sum));
}

/* Element (m, n) of a product of f32 views whose numbers are bf16: pieces of 512 terms at most, all
 * but the last as long, in one group. */
static float pair_product(const sn_test_call *wide, const sn_matmul_shape *s, int64_t m,
                          int64_t n) {
    const float *a = wide->in[0].data, *b = wide->in[1].data;
    const int64_t words = (s->K + 1) / 2, pieces = (words + 255) / 256;
    const int64_t depth = pieces > 0 ? (words + pieces - 1) / pieces : 1;
    float sum = 0, piece = 0;
    for (int64_t w = 0; w < words; w++) {
        float x[2] = {0}, y[2] = {0};
        for (int i = 0; i < 2 && 2 * w + i < s->K; i++) {
            x[i] = a[m * s->a_row + (2 * w + i) * s->a_col];
            y[i] = b[(2 * w + i) * s->b_row + n * s->b_col];
        }
        piece = add_pair(w % depth == 0 ? 0 : piece, x, y);
        if (w % depth == depth - 1 || w == words - 1)
            sum = w < depth ? piece : sum + piece;
    }
    return sum;
}

/* Element (n, i, j, o) of a convolution, whose terms are the channels of tap after tap; its pieces
 * are whole vectors of words. */
static float pair_window(const sn_test_call *wide, const sn_conv *v, const int64_t at[4]) {
    const float *x = wide->in[0].data, *w = wide->in[1].data;
    const int64_t words = v->kh * v->kw * v->C / 2, pieces = (words + 255) / 256;
    const int64_t depth = ((words + pieces - 1) / pieces + 15) / 16 * 16;
    float sum = 0, piece = 0;
    for (int64_t k = 0; k < words; k++) {
        const int64_t tap = 2 * k / v->C, c = 2 * k % v->C;
        const int64_t row = sn_conv_at(v, 0, at[1], tap / v->kw);
        const int64_t col = sn_conv_at(v, 1, at[2], tap % v->kw);
        const bool inside = row >= 0 && row < v->H && col >= 0 && col < v->W;
        const float *from = x + ((at[0] * v->H + row) * v->W + col) * v->C + c, none[2] = {0};
        const float y[2] = {w[2 * k * v->O + at[3]], w[(2 * k + 1) * v->O + at[3]]};
        piece = add_pair(k % depth == 0 ? 0 : piece, inside ? from : none, y);
        if (k % depth == depth - 1 || k == words - 1)
            sum = k < depth ? piece : sum + piece;
    }
    return sum;
}

static void convolve_pairs(const sn_test_call *wide) {
    const snug_type *in[] = {&wide->d.in[0], &wide->d.in[1], NULL};
    const sn_conv v = sn_conv_forward(&wide->d.attrs.conv, in, &wide->d.out[0], 2);
    for (int64_t i = 0; i < v.N * v.oh * v.ow * v.O; i++) {
        const int64_t at[4] = {i / (v.oh * v.ow * v.O), i / (v.ow * v.O) % v.oh, i / v.O % v.ow,
                               i % v.O};
        ((float *)wide->out[0].data)[i] = pair_window(wide, &v, at);
    }
}

/* Outputs of `wide`, of which no batch, bias or activation is asked. */
static void multiply_pairs(const sn_test_call *wide) {
    const sn_matmul_shape s =
        sn_matmul_shape_of(&wide->d.attrs.matmul, &wide->d.in[0], &wide->d.in[1], &wide->d.out[0]);
    for (int64_t i = 0; i < s.M * s.N; i++)
        ((float *)wide->out[0].data)[i] = pair_product(wide, &s, i / s.N, i % s.N);
}

static const sn_kernel_case pair_cases[] = {
    {"matmul", "", "f32[7,5] f32[5,3]", .batch = 0},
    {"matmul", "", "f32[70,1030] f32[1030,130]", .batch = 0},
    {"matmul", "", "f32[700,47] f32[47,33]", .batch = 0},
    {"matmul", "trans_a=1", "f32[515,37] f32[515,65]", .batch = 0},
    {"matmul", "trans_b=1", "f32[40,66] f32[90,66]", .batch = 0},
    {"matmul", "trans_a=1 trans_b=1", "f32[33,40] f32[90,33]", .batch = 0},
    {"matmul", "", "f32[9,1] f32[1,20]", .batch = 0},
    {"matmul", "trans_b=1", "f32[1,77] f32[1,77]", .batch = 0},
    {"conv2d", "", "f32[3,5,7,1030] f32[1,1,1030,70]", .batch = 0},
    {"conv2d", "dilation=2,1 pad=1,1,1,1 stride=1,2", "f32[9,5,3,14] f32[3,2,14,33]", .batch = 0},
    {"conv2d", "stride=2,2 pad=0,1,0,1", "f32[2,13,10,66] f32[3,3,66,20]", .batch = 0},
};

/* Some numbers so small that their products, or they, are not normal. */
static void shrink_some(const snug_view *v) {
    for (int64_t i = 0; i < sn_type_count(&v->type); i += 3)
        sn_view_put(v, i, sn_view_get(v, i) * (i % 2 ? 0x1p-70 : 0x1p-130));
}

/* narrow: the only factor that is bf16; 2: both are, and the result. */
static void run_pairs(const sn_kernel_case *c, int narrow) {
    sn_test_call wide, k;
    sn_kernel_open(&wide, c, 5);
    sn_kernel_open(&k, c, 5);
    for (int i = 0; i < 2; i++) {
        shrink_some(&wide.in[i]);
        convert(&wide.in[i], &k.in[i]);
        retype(&wide.d.in[i], &wide.in[i], SNUG_BF16);
        retype(&wide.d.in[i], &wide.in[i], SNUG_F32);
    }
    if (narrow == 2)
        retype_all(&k, SNUG_BF16);
    else
        retype(&k.d.in[narrow], &k.in[narrow], SNUG_BF16);
    (wide.d.op == SN_OP_matmul ? multiply_pairs : convolve_pairs)(&wide);
    for (int threads = 1; threads < 4; threads++) {
        sn_kernel_call(&k, k.family->run, threads, false);
        if (has_pairs(&k))
            expect_same(&k, &wide, c, "pairs");
        assert_true(k.needs_all);
    }
    sn_kernel_close(&wide);
    sn_kernel_close(&k);
}

static void test_words_of_two_bf16_are_added_as_plain_c_does(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pair_cases / sizeof pair_cases[0]; i++)
        for (int narrow = 0; narrow < 3; narrow++)
            run_pairs(&pair_cases[i], narrow);
}

/* What words give is near the f32 kernel's, as near as bf16 is. */
static void expect_close(const sn_test_call *got, const sn_test_call *want,
                         const sn_kernel_case *c) {
    const snug_view *a = &got->out[0], *b = &want->out[0];
    double largest = 0;
    for (int64_t i = 0; i < sn_type_count(&b->type); i++)
        largest = fmax(largest, fabs(sn_view_get(b, i)));
    for (int64_t i = 0; i < sn_type_count(&b->type); i++) {
        const double x = sn_view_get(a, i), y = sn_view_get(b, i);
        if (!(fabs(x - y) <= 0x1p-7 * fabs(y) + 1e-5 * largest))
            fail_msg("element %lld of %s {%s | %s} is %g, not %g", (long long)i, c->op, c->attrs,
                     c->types, x, y);
    }
}

/* --- one type --------------------------------------------------------------------------------- */
static void run_as_f32(const sn_kernel_case *c, snug_dtype half, const char *isa) {
    sn_test_call wide, k;
    sn_kernel_open(&k, c, 5);
    retype_all(&k, half);
    sn_kernel_open(&wide, c, 5);
    for (int i = 0; i < k.d.n_in; i++)
        convert(&k.in[i], &wide.in[i]);
    k.family = wide.family = sn_cpu_family_for(isa, k.d.op);
    sn_kernel_call(&wide, wide.family->run, 1, false);
    for (int threads = 1; threads < 4; threads++) {
        sn_kernel_call(&k, k.family->run, threads, false);
        if (has_pairs(&k))
            expect_close(&k, &wide, c);
        else
            expect_same(&k, &wide, c, isa);
        assert_true(k.needs_all);
        assert_string_not_equal(k.variant.impl, "reference");
    }
    sn_kernel_close(&wide);
    sn_kernel_close(&k);
}

static void test_halves_are_the_f32_kernels_rounded_once(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++)
        for (int half = 0; half < 2; half++)
            for (int isa = 0; sn_isa_at(isa); isa++)
                run_as_f32(&cases[i], halves[half], sn_isa_at(isa));
}

/* --- several types ---------------------------------------------------------------------------- */
/* Factor `narrow` is a half and the other f32; all else is f32, which is then accumulated in. */
static void run_mixed(const sn_kernel_case *c, snug_dtype half, int narrow, bool accumulate) {
    sn_test_call rounded, k;
    sn_kernel_open(&rounded, c, 5);
    sn_kernel_open(&k, c, 5);
    for (int i = 0; i < 2; i++) { /* to the half and back */
        retype(&rounded.d.in[i], &rounded.in[i], half);
        retype(&rounded.d.in[i], &rounded.in[i], SNUG_F32);
    }
    retype(&k.d.in[narrow], &k.in[narrow], half);
    for (int i = 0; i < k.d.n_out; i++) {
        memset(rounded.out[i].data, 0, rounded.out[i].bytes);
        memset(k.out[i].data, 0, k.out[i].bytes);
    }
    sn_kernel_call(&rounded, k.family->run, 2, accumulate);
    sn_kernel_call(&k, k.family->run, 2, accumulate);
    if (has_pairs(&k))
        expect_close(&k, &rounded, c);
    else
        expect_same(&k, &rounded, c, "a factor of f32");
    sn_kernel_call(&rounded, k.family->reference, 1, false);
    sn_kernel_call(&k, k.family->reference, 1, false);
    expect_same(&k, &rounded, c, "the reference");
    sn_kernel_close(&rounded);
    sn_kernel_close(&k);
}

static void test_f32_beside_a_half_is_rounded_as_by_a_cast(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++)
        for (int half = 0; half < 2 && strncmp(cases[i].op, "attention", 9) != 0; half++)
            for (int narrow = 0; narrow < 2; narrow++)
                run_mixed(&cases[i], halves[half], narrow, false);
}

/* Numbers that rounding treats apart: below the least normal one, some of which become that; ties;
 * the largest, which becomes infinite; infinities and NaN. least: of the first alone, or nothing is
 * seen of them. */
static void fill_apart(const snug_view *v, bool least) {
    static const uint32_t bits[] = {0x007fffff, 0x007f8000, 0x007f7fff, 0x807fc000, 0x00000001,
                                    0x80000000, 0x3f808000, 0x3f818000, 0x3f808001, 0xbf80ffff,
                                    0x7f7fffff, 0x7f800000, 0x7f800001, 0xffc12345};
    enum { N = sizeof bits / sizeof bits[0], LEAST = 5, RARE = 10 };
    for (int64_t i = 0; i < sn_view_count(v); i++) {
        const int64_t usual = i % 97 == 0 ? i / 97 % N : i / 3 % RARE;
        if (least || i % 3 == 0)
            memcpy((float *)v->data + i, &bits[least ? i % LEAST : usual], sizeof *bits);
    }
}

/* Factor `wide` in f32 gives the bits that it gives as a half. */
static void run_apart(const sn_kernel_case *c, snug_dtype half, int wide, const char *isa,
                      bool least) {
    sn_test_call k, rounded;
    sn_kernel_open(&k, c, 5);
    sn_kernel_open(&rounded, c, 5);
    fill_apart(&k.in[wide], least);
    fill_apart(&rounded.in[wide], least);
    for (int64_t i = 0; i < sn_view_count(&k.in[1 - wide]); i++) /* so that the least are seen */
        ((float *)k.in[1 - wide].data)[i] *= half == SNUG_BF16 ? 0x1p120F : 0x1p14F;
    memcpy(rounded.in[1 - wide].data, k.in[1 - wide].data, k.in[1 - wide].bytes);
    retype(&k.d.in[1 - wide], &k.in[1 - wide], half);
    for (int i = 0; i < 2; i++)
        retype(&rounded.d.in[i], &rounded.in[i], half);
    k.family = rounded.family = sn_cpu_family_for(isa, k.d.op);
    sn_kernel_call(&k, k.family->run, 2, false);
    sn_kernel_call(&rounded, k.family->run, 2, false);
    for (int64_t i = 0; i < sn_view_count(&k.out[0]); i++) { /* which NaN it is does not matter */
        float *const got = (float *)k.out[0].data + i, *const want =
                                                           (float *)rounded.out[0].data + i;
        *got = isnan(*got) ? 0 : *got;
        *want = isnan(*want) ? 0 : *want;
    }
    expect_same(&k, &rounded, c, isa);
    sn_kernel_close(&k);
    sn_kernel_close(&rounded);
}

static void test_numbers_that_rounding_treats_apart(void **state) {
    (void)state;
    static const sn_kernel_case products[] = {
        {"matmul", "", "f32[33,90] f32[90,10]", .batch = 0},
        {"matmul", "", "f32[5,41] f32[41,70]", .batch = 0},
        {"matmul", "trans_b=1", "f32[7,90] f32[35,90]", .batch = 0},
        {"matmul", "trans_a=1", "f32[61,40] f32[61,12]", .batch = 0},
    };
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++)
            for (int isa = 0; sn_isa_at(isa); isa++)
                for (int way = 0; way < 4; way++)
                    run_apart(&products[i], halves[half], way % 2, sn_isa_at(isa), way / 2);
}

/* What is there has no bits to lose: whole numbers. */
static void test_f32_sums_of_halves_add_to_what_is_there(void **state) {
    (void)state;
    static const sn_kernel_case sums[] = {
        {"matmul", "trans_a=1", "f32[70,300] f32[70,65]", .batch = 0},
        {"conv2d_dw", "stride=2,2 kernel=3,3 bias=1", "f32[3,9,9,5] f32[3,4,4,20]", .batch = 0},
        {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[2,9,8,130] f32[2,9,8,67]", .batch = 0},
    };
    for (int i = 0; i < 3; i++) {
        sn_test_call once, twice;
        sn_kernel_open(&once, &sums[i], 5);
        sn_kernel_open(&twice, &sums[i], 5);
        for (int k = 0; k < 2; k++) {
            retype(&once.d.in[k], &once.in[k], SNUG_BF16);
            retype(&twice.d.in[k], &twice.in[k], SNUG_BF16);
        }
        sn_kernel_call(&once, once.family->run, 2, false);
        sn_kernel_call(&twice, once.family->run, 2, false);
        sn_kernel_call(&twice, once.family->run, 2, true);
        for (int k = 0; k < once.d.n_out; k++)
            for (int64_t j = 0; j < sn_type_count(&once.d.out[k]); j++)
                if (((float *)twice.out[k].data)[j] != 2 * ((float *)once.out[k].data)[j])
                    fail_msg("output %d of %s is not twice as much", k, sums[i].op);
        sn_kernel_close(&once);
        sn_kernel_close(&twice);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_of_two_bf16_are_added_as_plain_c_does),
        cmocka_unit_test(test_halves_are_the_f32_kernels_rounded_once),
        cmocka_unit_test(test_f32_beside_a_half_is_rounded_as_by_a_cast),
        cmocka_unit_test(test_numbers_that_rounding_treats_apart),
        cmocka_unit_test(test_f32_sums_of_halves_add_to_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
