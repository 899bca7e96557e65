/* Rules of the layer kernels: the fast ones agree with the references, and an element's bits depend
 * neither on the threads nor on how many rows the call has. */
#include "support/kernel_call.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

static const sn_kernel_case cases[] = {
    /* matrices: tiles and tails in all three extents, long and empty sums, broadcast and transposed
       operands */
    {"matmul", "", "f32[7,5] f32[5,3]", .batch = 1},
    {"matmul", "act=relu", "f32[50,100] f32[100,64] f32[64]", .batch = 1},
    {"matmul", "act=tanh", "f32[13,300] f32[300,17] f32[17]", .batch = 1},
    {"matmul", "act=sigmoid", "f32[33,20] f32[20,130] f32[130]", .batch = 1},
    {"matmul", "trans_a=1", "f32[5000,20] f32[5000,10]", .tolerance = 1e-4},
    {"matmul", "trans_a=1", "f32[70,300] f32[70,65]", .batch = 0},
    {"matmul", "trans_a=1", "f32[270,300] f32[270,65]", .tolerance = 1e-4},
    {"matmul", "", "f32[48,90] f32[90,100]", .batch = 1},
    {"matmul", "trans_b=1", "f32[40,30] f32[90,30]", .batch = 1},
    {"matmul", "trans_a=1 trans_b=1", "f32[30,40] f32[90,30]", .batch = 0},
    {"matmul", "", "f32[12,4200] f32[4200,10]", .batch = 1, .tolerance = 1e-4},
    {"matmul", "", "f32[300,4200] f32[4200,3]", .batch = 1, .tolerance = 1e-4},
    {"matmul", "act=tanh", "f32[5,4200] f32[4200,100] f32[100]", .batch = 1, .tolerance = 1e-4},
    {"matmul", "", "f32[1,300] f32[300,1000] f32[1000]", .batch = 1},
    {"matmul", "act=relu", "f32[20,520] f32[520,150] f32[150]", .batch = 1, .tolerance = 1e-4},
    {"matmul", "act=relu", "f32[500,30] f32[30,70] f32[70]", .batch = 1},
    {"matmul", "trans_a=1", "f32[20,1030] f32[20,33]", .batch = 0},
    {"matmul", "", "f32[3,2,9,8] f32[2,8,11]", .batch = 1},
    {"matmul", "trans_b=1", "f32[4,9,8] f32[4,11,8]", .batch = 3},
    {"matmul", "", "f32[5,1,6,4] f32[3,4,2]", .batch = 1},
    {"matmul", "", "f32[0,5] f32[5,3]", .batch = 0},
    {"matmul", "act=sigmoid", "f32[4,0] f32[0,3] f32[3]", .batch = 0},
    {"matmul", "", "f32[4,5] f32[5,0]", .batch = 0},
    {"matmul", "", "f64[7,5] f64[5,3] f64[3]", .batch = 1},
    /* convolutions: odd channels, groups, dilation, strides, uneven padding, 1 x 1, wide and tall,
       nothing */
    {"conv2d", "act=relu", "f32[3,20,21,3] f32[3,3,3,32] f32[32]", .batch = 1},
    {"conv2d", "pad=1,1,1,1", "f32[2,9,11,5] f32[3,3,5,7]", .batch = 1},
    {"conv2d", "stride=2,2 pad=0,1,0,1 act=tanh", "f32[2,12,10,6] f32[3,3,6,20] f32[20]",
     .batch = 1},
    {"conv2d", "dilation=2,3 pad=2,1,4,3", "f32[2,11,13,4] f32[3,3,4,18]", .batch = 1},
    {"conv2d", "groups=2 pad=1,1,0,0", "f32[2,7,7,6] f32[3,2,3,10] f32[10]", .batch = 1},
    {"conv2d", "groups=6 pad=1,1,1,1", "f32[2,7,7,6] f32[3,3,1,6]", .batch = 1},
    {"conv2d", "groups=3 stride=2,1", "f32[2,7,7,3] f32[3,3,1,6] f32[6]", .batch = 1},
    {"conv2d", "", "f32[4,7,7,40] f32[1,1,40,70]", .batch = 1},
    {"conv2d", "stride=2,2", "f32[2,8,9,16] f32[1,1,16,33]", .batch = 1},
    {"conv2d", "pad=1,1,1,1", "f32[2,14,14,70] f32[3,3,70,24]", .batch = 1, .tolerance = 1e-4},
    {"conv2d", "pad=3,3,3,3 stride=2,2", "f32[2,40,260,3] f32[7,7,3,16]", .batch = 1},
    {"conv2d", "pad=1,1,1,1", "f32[37,3,4,5] f32[3,3,5,18] f32[18]", .batch = 1},
    {"conv2d", "act=silu", "f32[41,1,1,20] f32[1,1,20,33] f32[2,33]", .batch = 1},
    {"conv2d", "groups=2", "f32[19,2,3,6] f32[1,1,3,8] f32[2,8]", .batch = 1},
    /* a vector and a half of channels; weights as they lie, in several pieces and panels */
    {"conv2d", "act=relu6", "f32[2,13,14,40] f32[1,1,40,24] f32[2,24]", .batch = 1},
    {"conv2d", "act=relu6", "f32[2,7,7,300] f32[1,1,300,200] f32[2,200]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d", "pad=1,1,1,1", "f32[1,7,7,60] f32[3,3,60,150]", .batch = 0, .tolerance = 1e-4},
    {"conv2d", "pad=5,5,5,5", "f32[1,2,3,2] f32[2,2,2,3]", .batch = 0},
    {"conv2d", "act=relu6", "f32[3,9,6,20] f32[3,3,20,66] f32[2,66]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d", "pad=1,1,1,1 act=tanh", "f32[13,3,4,18] f32[3,3,18,5] f32[5]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d", "pad=1,1,1,1", "f32[2,21,20,130] f32[3,3,130,67] f32[67]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d_dx", "pad=1,1,1,1 input=21,20", "f32[2,21,20,67] f32[3,3,130,67]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[9,21,20,130] f32[9,21,20,67]", .batch = 0,
     .tolerance = 1e-4},
    /* weights that serve many blocks, in three columns of them; fewer columns, groups for
     * threads */
    {"conv2d", "pad=1,1,1,1 act=relu", "f32[2,21,30,20] f32[3,3,20,130] f32[130]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d_dx", "pad=1,1,1,1 input=21,30", "f32[2,21,30,20] f32[3,3,130,20]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[2,21,30,18] f32[2,21,30,40]", .batch = 0,
     .tolerance = 1e-4},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[5,26,26,20] f32[5,26,26,18]", .batch = 0,
     .tolerance = 1e-4},
    {"conv2d", "", "f32[0,5,5,2] f32[3,3,2,4]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f64[2,5,6,3] f64[3,3,3,4] f64[4]", .batch = 1},
    {"conv2d_dx", "input=20,21", "f32[3,18,19,32] f32[3,3,3,32]", .batch = 1},
    {"conv2d_dx", "pad=1,1,1,1 input=9,11", "f32[2,9,11,7] f32[3,3,5,7]", .batch = 1},
    {"conv2d_dx", "stride=2,2 pad=0,1,0,1 input=12,10", "f32[2,6,5,20] f32[3,3,6,20]", .batch = 1},
    {"conv2d_dx", "stride=3,2 dilation=2,3 pad=2,1,4,3 input=11,13", "f32[2,4,7,18] f32[3,3,4,18]",
     .batch = 1},
    {"conv2d_dx", "stride=2,2 dilation=2,2 input=11,13", "f32[2,4,5,18] f32[3,3,4,18]", .batch = 1},
    {"conv2d_dx", "stride=2,2 pad=0,1,0,1 input=6,5", "f32[35,3,2,20] f32[3,3,6,20]", .batch = 1},
    {"conv2d_dx", "input=1,1", "f32[41,1,1,33] f32[1,1,20,33]", .batch = 1},
    {"conv2d_dx", "groups=2 pad=1,1,0,0 input=7,7", "f32[2,7,6,10] f32[3,2,3,10]", .batch = 1},
    {"conv2d_dx", "groups=6 pad=1,1,1,1 input=7,7", "f32[2,7,7,6] f32[3,3,1,6]", .batch = 1},
    {"conv2d_dx", "input=7,7", "f32[4,7,7,70] f32[1,1,40,70]", .batch = 1},
    {"conv2d_dx", "stride=2,2 input=8,9", "f32[2,4,5,33] f32[1,1,16,33]", .batch = 1},
    {"conv2d_dx", "stride=3,3 input=8,9", "f32[2,3,3,5] f32[2,2,3,5]", .batch = 1},
    {"conv2d_dx", "pad=1,1,1,1 input=14,14", "f32[2,14,14,70] f32[3,3,24,70]", .batch = 1,
     .tolerance = 1e-4},
    {"conv2d_dx", "input=5,5", "f32[0,3,3,4] f32[3,3,2,4]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=5,6", "f64[2,5,6,4] f64[3,3,3,4]", .batch = 1},
    {"conv2d_dw", "kernel=3,3 bias=1", "f32[3,20,21,3] f32[3,18,19,32]", .tolerance = 1e-4},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[2,9,11,5] f32[2,9,11,7]", .batch = 0},
    {"conv2d_dw", "stride=2,2 pad=0,1,0,1 kernel=3,3 bias=1", "f32[2,12,10,6] f32[2,6,5,20]",
     .batch = 0},
    {"conv2d_dw", "dilation=2,3 pad=2,1,4,3 kernel=3,3 bias=1", "f32[2,11,13,4] f32[2,10,14,18]",
     .batch = 0},
    {"conv2d_dw", "groups=2 pad=1,1,0,0 kernel=3,2 bias=1", "f32[2,7,7,6] f32[2,7,6,10]",
     .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[3,5,6,67] f32[3,5,6,130]", .batch = 0},
    {"conv2d_dw", "stride=2,2 pad=0,1,0,1 kernel=3,3", "f32[2,9,10,70] f32[2,4,5,128]", .batch = 0},
    {"conv2d_dw", "kernel=3,2", "f32[2,21,22,64] f32[2,19,21,144]", .tolerance = 1e-4},
    {"conv2d_dw", "groups=6 pad=1,1,1,1 kernel=3,3 bias=1", "f32[2,7,7,6] f32[2,7,7,6]",
     .batch = 0},
    {"conv2d_dw", "kernel=1,1", "f32[4,7,7,40] f32[4,7,7,160]", .tolerance = 1e-4},
    {"conv2d_dw", "stride=2,2 kernel=1,1 bias=1", "f32[40,9,9,16] f32[40,5,5,33]",
     .tolerance = 1e-4},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[2,14,14,70] f32[2,14,14,24]", .tolerance = 1e-4},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[2,3,600,2] f32[2,3,600,5]",
     .tolerance = 1e-4},
    {"conv2d_dw", "kernel=3,3 bias=1", "f32[0,5,5,2] f32[0,3,3,4]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f64[2,5,6,3] f64[2,5,6,4]", .batch = 0},
    /* pooling */
    {"maxpool", "kernel=2,2 stride=2,2", "f32[3,9,8,5]", .batch = 1},
    {"maxpool", "kernel=2,2 stride=2,2", "f32[2,8,8,96]", .batch = 1},
    {"maxpool", "kernel=3,3 stride=2,2 pad=1,1,0,1", "f32[2,9,8,70]", .batch = 1},
    {"maxpool", "kernel=16,16 stride=1,1", "f32[1,17,17,3]", .batch = 0},
    {"maxpool", "kernel=2,2 stride=2,2", "f32[0,8,8,3]", .batch = 0},
    {"maxpool", "kernel=2,3 stride=1,2", "f64[2,5,6,3]", .batch = 1},
    {"maxpool_grad", "kernel=2,2 stride=2,2 input=9,8", "f32[3,4,4,5] opaque[3,4,4,5]", .batch = 3},
    {"maxpool_grad", "kernel=2,2 stride=2,2 input=8,8", "f32[2,4,4,96] opaque[2,4,4,96]",
     .batch = 3},
    {"maxpool_grad", "kernel=3,3 stride=2,2 pad=1,1,0,1 input=9,8",
     "f32[2,5,4,70] opaque[2,5,4,70]", .batch = 3},
    {"maxpool_grad", "kernel=2,2 stride=3,3 input=8,8", "f32[2,3,3,6] opaque[2,3,3,6]", .batch = 3},
    {"maxpool_grad", "kernel=2,2 stride=2,2 input=8,8", "f64[2,4,4,6] opaque[2,4,4,6]", .batch = 3},
    {"maxpool_pick", "kernel=2,2 stride=2,2 input=9,8", "f32[3,9,8,5] opaque[3,4,4,5]", .batch = 3},
    {"maxpool_pick", "kernel=3,3 stride=2,2 pad=1,1,0,1 input=9,8",
     "f32[2,9,8,70] opaque[2,5,4,70]", .batch = 3},
    {"avgpool", "kernel=2,2 stride=2,2", "f32[3,9,8,5]", .batch = 1},
    {"avgpool", "kernel=3,3 stride=2,2 pad=1,1,0,1", "f32[2,9,8,70]", .batch = 1},
    {"avgpool", "kernel=7,7 stride=1,1", "f32[2,7,7,130]", .batch = 1},
    {"avgpool", "kernel=2,3 stride=1,2", "f64[2,5,6,3]", .batch = 1},
    {"avgpool_grad", "kernel=2,2 stride=2,2 input=9,8", "f32[3,4,4,5]", .batch = 1},
    {"avgpool_grad", "kernel=3,3 stride=2,2 pad=1,1,0,1 input=9,8", "f32[2,5,4,70]", .batch = 1},
    {"avgpool_grad", "kernel=7,7 stride=1,1 input=7,7", "f32[2,1,1,130]", .batch = 1},
    {"avgpool_grad", "kernel=2,2 stride=2,2 input=8,8", "f64[2,4,4,6]", .batch = 1},
    /* normalisation */
    {"moments", "", "f32[3,7,5,18]", .batch = 0},
    {"moments", "", "f32[3000,70]", .batch = 0},
    {"moments", "", "f32[0,7]", .batch = 0},
    {"moments", "", "f64[30,7]", .batch = 0},
    {"normalise", "", "f32[3,7,5,18] f32[18] f32[18] f32[18] f32[18]", .param = {2}, .batch = 1},
    {"normalise", "", "f64[30,7] f64[7] f64[7] f64[7] f64[7]", .param = {2}, .batch = 1},
    {"normalise_sums", "", "f32[3,7,5,18] f32[3,7,5,18] f32[18] f32[18]", .param = {2}},
    {"normalise_sums", "", "f32[3000,70] f32[3000,70] f32[70] f32[70]", .param = {2},
     .tolerance = 1e-4},
    {"normalise_sums", "", "f64[30,7] f64[30,7] f64[7] f64[7]", .param = {2}},
    {"channel_affine", "", "f32[3,7,5,18] f32[3,7,5,18] f32[18] f32[18] f32[18]", .batch = 3},
    {"channel_affine", "", "f64[30,7] f64[30,7] f64[7] f64[7] f64[7]", .batch = 3},
    {"layernorm", "", "f32[3,7,50] f32[50] f32[50]", .param = {1e-3}, .batch = 1},
    {"layernorm", "", "f32[70,3] f32[3] f32[3]", .param = {1e-3}, .batch = 1, .tolerance = 1e-4},
    {"layernorm", "", "f64[7,5] f64[5] f64[5]", .param = {1e-3}, .batch = 1},
    {"layernorm_dx", "", "f32[3,7,50] f32[3,7,50] f32[50] f32[3,7] f32[3,7]", .batch = 27},
    {"layernorm_dx", "", "f64[7,5] f64[7,5] f64[5] f64[7] f64[7]", .batch = 27},
    {"layernorm_sums", "", "f32[3,7,50] f32[3,7,50] f32[3,7] f32[3,7]", .batch = 0},
    {"layernorm_sums", "", "f32[3000,70] f32[3000,70] f32[3000] f32[3000]", .tolerance = 1e-4},
    {"layernorm_sums", "", "f64[7,5] f64[7,5] f64[7] f64[7]", .batch = 0},
    /* rows */
    {"softmax", "", "f32[4,5,10]", .batch = 1},
    {"softmax", "", "f32[7,300]", .batch = 1},
    {"softmax", "", "f32[0,10]", .batch = 0},
    {"softmax", "", "f64[7,5]", .batch = 1},
    {"softmax_grad", "", "f32[4,5,10] f32[4,5,10]", .batch = 3},
    {"softmax_grad", "", "f32[7,300] f32[7,300]", .batch = 3},
    {"log_softmax", "", "f32[4,5,10]", .batch = 1},
    {"log_softmax", "", "f32[7,300]", .batch = 1},
    {"softmax_xent", "", "f32[40,10] f32[40,10]", .batch = 3},
    {"softmax_xent", "", "f32[4,5,70] f32[4,5,70]", .batch = 3},
    {"softmax_xent", "", "f64[4,5] f64[4,5]", .batch = 3},
    {"softmax_xent_grad", "", "f32[40,10] f32[40,10] f32[40]", .batch = 7},
    {"softmax_xent_grad", "", "f32[7,70] f32[7,70] f32[7]", .batch = 7},
    {"sparse_xent", "", "f32[40,10] i32[40]", .batch = 3},
    {"sparse_xent", "", "f32[4,5,70] i64[4,5]", .batch = 3},
    {"sparse_xent", "", "f64[4,5] i32[4]", .batch = 3},
    {"sparse_xent_grad", "", "f32[40,10] i32[40] f32[40]", .batch = 7},
    {"sparse_xent_grad", "", "f32[7,70] i64[7] f32[7]", .batch = 7},
    {"sigmoid_xent", "", "f32[7,30] f32[7,30]", .batch = 3},
    {"sigmoid_xent", "", "f64[7,3] f64[7,3]", .batch = 3},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static double real_at(const snug_view *v, int64_t i) {
    return v->type.dtype == SNUG_F64 ? ((const double *)v->data)[i]
                                     : (double)((const float *)v->data)[i];
}

static bool is_real(const snug_view *v) {
    return v->type.dtype == SNUG_F32 || v->type.dtype == SNUG_F64;
}

/* Variances and the like stand under a root: inputs that mean them are made positive by a shift. */
static void expect_close(const sn_kernel_case *c, const sn_test_call *got,
                         const sn_test_call *wanted) {
    for (int k = 0; k < got->d.n_out; k++) {
        const snug_view *a = &got->out[k], *b = &wanted->out[k];
        if (!is_real(a)) {
            assert_memory_equal(a->data, b->data, a->bytes);
            continue;
        }
        const double usual =
            a->type.dtype == SNUG_F64 && got->d.in[0].dtype == SNUG_F64 ? 1e-13 : 2e-5;
        const double tolerance = c->tolerance > 0 ? c->tolerance : usual;
        for (int64_t i = 0; i < sn_type_count(&a->type); i++) {
            const double x = real_at(a, i), y = real_at(b, i);
            if (!(fabs(x - y) <= tolerance * (1 + fabs(y))))
                fail_msg("%s %s %s: output %d [%lld] is %.9g, the reference says %.9g", c->op,
                         c->attrs, c->types, k, (long long)i, x, y);
        }
    }
}

static void expect_same_bits(const sn_kernel_case *c, const sn_test_call *a,
                             const sn_test_call *b) {
    for (int k = 0; k < a->d.n_out; k++)
        if (memcmp(a->out[k].data, b->out[k].data, a->out[k].bytes) != 0)
            fail_msg("%s %s %s: output %d has other bits", c->op, c->attrs, c->types, k);
}

static const char *const builds[] = {"base", "avx2", "avx512"};

static void test_fast_kernels_of_every_build_agree_with_references(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        sn_test_call fast, reference;
        sn_kernel_open(&fast, &cases[i], 7);
        sn_kernel_open(&reference, &cases[i], 7);
        sn_kernel_call(&reference, reference.family->reference, 1, false);
        for (int k = 0; k < 3; k++) {
            fast.family = sn_cpu_family_for(builds[k], fast.d.op);
            if (!fast.family) /* not compiled in, or not for this machine */
                continue;
            sn_kernel_call(&fast, fast.family->run, 2, false);
            expect_close(&cases[i], &fast, &reference);
        }
        sn_kernel_close(&fast);
        sn_kernel_close(&reference);
    }
}

static bool is_own(const sn_test_call *r) {
    return strncmp(r->variant.impl, "onednn", 6) != 0;
}

/* The library's sums may depend on the threads; then the same bits come for the same number. */
static void test_bits_do_not_depend_on_threads(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        sn_test_call one, many;
        sn_kernel_open(&one, &cases[i], 8);
        sn_kernel_open(&many, &cases[i], 8);
        for (int n_threads = 2; n_threads <= 5; n_threads += 3) {
            sn_kernel_call(&one, one.family->run, is_own(&one) ? 1 : n_threads, false);
            sn_kernel_call(&many, many.family->run, n_threads, false);
            expect_same_bits(&cases[i], &many, &one);
        }
        sn_kernel_close(&one);
        sn_kernel_close(&many);
    }
}

/* With two poisons, since a kernel may write what was there. */
static void expect_all_needed(sn_test_call *r, const sn_kernel_case *c, int n_threads) {
    bool needed = false;
    for (int k = 0; k < 2 && !needed; k++) {
        r->poison = k ? 0xa5 : 0x5a;
        sn_kernel_call(r, r->family->run, n_threads, false);
        needed = r->needs_all;
    }
    if (!needed)
        fail_msg("%s %s %s: %d threads leave the last of %zu bytes of workspace", c->op, c->attrs,
                 c->types, n_threads, r->variant.workspace_bytes);
}

static void test_workspaces_are_needed_to_the_last_byte(void **state) {
    (void)state;
    for (int i = 0; i < 3 * N_CASES; i++) {
        const sn_kernel_case *c = &cases[i / 3];
        sn_test_call r;
        sn_kernel_open(&r, c, 12);
        r.family = sn_cpu_family_for(builds[i % 3], r.d.op);
        for (int n_threads = 1; n_threads <= 4 && r.family; n_threads++)
            expect_all_needed(&r, c, n_threads);
        sn_kernel_close(&r);
    }
}

static size_t floats_of(const char *attrs, const char *types, int n_threads) {
    const sn_kernel_case c = {"matmul", attrs, types, .batch = 0};
    sn_test_call r;
    sn_cpu_device cpu;
    sn_variant v;
    sn_kernel_open(&r, &c, 1);
    sn_cpu_device_init(&cpu, n_threads, false);
    expect_ok(cpu.device.describe(&cpu.device, &r.d, &v, NULL), NULL);
    sn_kernel_close(&r);
    return v.workspace_bytes / sizeof(float);
}

/* Its workspace tells how a product is cut. 171 tiles of rows are 9 blocks, for two threads 10 that
 * are as many for each; 256 rows are one block, which packs each column of B once and reads
 * a transposed A where it lies; more share B. Few rows go by groups; by columns, where the sums of
 * 7 x 5 groups are too many to wait. */
static void test_slices_of_a_product_are_cut_for_the_threads(void **state) {
    (void)state;
    assert_int_equal(floats_of("trans_a=1", "f32[64,1024] f32[64,64]", 1), 64 * 64 + 64 * 114);
    assert_int_equal(floats_of("trans_a=1", "f32[64,1024] f32[64,64]", 2), 64 * 64 + 2 * 64 * 108);
    assert_int_equal(floats_of("", "f32[256,256] f32[256,1024]", 2), 2 * 256 * 128);
    assert_int_equal(floats_of("trans_a=1", "f32[256,256] f32[256,1024]", 2), 2 * 256 * 128);
    assert_int_equal(floats_of("", "f32[1024,1024] f32[1024,256]", 2), 1024 * 256);
    assert_int_equal(floats_of("", "f32[5,4200] f32[4200,100]", 2), 2 * 512 + 5 * 100);
    assert_int_equal(floats_of("", "f32[7,32,8200] f32[8200,256]", 2), 2 * 32 * 32);
}

/* Rows [1, last) of the batch alone give the bits they have in the whole. */
static void test_a_slice_of_a_batch_gives_the_bits_of_the_whole(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        sn_test_call whole, slice;
        if (!cases[i].batch)
            continue;
        sn_kernel_open(&whole, &cases[i], 9);
        const int64_t rows = whole.d.out[0].dims[0], n = rows - 1;
        sn_kernel_call(&whole, whole.family->run, 2, false);
        sn_kernel_slice(&slice, &whole, cases[i].batch, 1, n);
        sn_kernel_call(&slice, slice.family->run, 2, false);
        for (int k = 0; k < whole.d.n_out; k++) {
            const size_t row = whole.out[k].bytes / (size_t)rows;
            assert_int_equal(slice.out[k].bytes, row * (size_t)n);
            if (memcmp(slice.out[k].data, (const char *)whole.out[k].data + row,
                       slice.out[k].bytes) != 0)
                fail_msg("%s %s %s: a slice has other bits", cases[i].op, cases[i].attrs,
                         cases[i].types);
        }
        sn_kernel_close(&whole);
        sn_kernel_close(&slice);
    }
}

static void test_accumulating_adds_to_what_is_there(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        sn_test_call fast, reference;
        sn_kernel_open(&fast, &cases[i], 10);
        sn_kernel_open(&reference, &cases[i], 10);
        const bool plain =
            fast.d.op != SN_OP_matmul || (fast.d.n_in == 2 && !fast.d.attrs.matmul.act);
        if (sn_ops[fast.d.op].accumulates && plain) {
            sn_kernel_call(&reference, reference.family->reference, 1, false);
            sn_kernel_call(&reference, reference.family->reference, 1, true);
            sn_kernel_call(&fast, fast.family->run, 2, false);
            sn_kernel_call(&fast, fast.family->run, 2, true);
            expect_close(&cases[i], &fast, &reference);
        }
        sn_kernel_close(&fast);
        sn_kernel_close(&reference);
    }
}

/* Runs with output 0 in the place of input `at`. */
static void run_in_place(sn_test_call *r, int at) {
    void *const own = r->out[0].data, *const input = r->in[at].data;
    void *copy = test_malloc(r->in[at].bytes + 64);
    memcpy(copy, input, r->in[at].bytes);
    memset((char *)copy + r->in[at].bytes, 0xa5, 64);
    r->in[at].data = r->out[0].data = copy;
    sn_call call = {.op = r->d.op,
                    .attrs = &r->d.attrs,
                    .param = r->param,
                    .n_in = r->d.n_in,
                    .n_out = r->d.n_out};
    call.in = r->in;
    call.out = r->out;
    call.n_threads = 2;
    call.workspace = test_malloc(r->variant.workspace_bytes + 1);
    expect_ok(r->family->run(&call, NULL), NULL);
    test_free(call.workspace);
    memcpy(own, copy, r->out[0].bytes);
    r->out[0].data = own;
    r->in[at].data = input;
    test_free(copy);
}

static void test_in_place_gives_the_same_bits(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        sn_test_call apart, same;
        sn_kernel_open(&apart, &cases[i], 11);
        sn_kernel_open(&same, &cases[i], 11);
        sn_kernel_call(&apart, apart.family->run, 2, false);
        same.variant = apart.variant;
        for (int at = 0; at < 2; at++)
            if (sn_ops[apart.d.op].inplace >> at & 1 && same.in[at].bytes == same.out[0].bytes) {
                run_in_place(&same, at);
                expect_same_bits(&cases[i], &same, &apart);
            }
        sn_kernel_close(&apart);
        sn_kernel_close(&same);
    }
}

static void test_a_label_out_of_range_is_named_with_its_row(void **state) {
    (void)state;
    const sn_kernel_case c = {"sparse_xent", "", "f32[5,10] i32[5]", .batch = 0};
    sn_test_call r;
    snug_error err;
    sn_kernel_open(&r, &c, 1);
    ((int32_t *)r.in[1].data)[3] = 12;
    expect_status(sn_kernel_try(&r, r.family->run, 2, false, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "label 12 at row 3 is outside 0..9");
    ((int32_t *)r.in[1].data)[3] = -1;
    expect_status(sn_kernel_try(&r, r.family->reference, 1, false, &err), SNUG_E_DATA, &err);
    expect_text(err.text, "label -1 at row 3");
    sn_kernel_close(&r);
}

static void test_a_nan_wins_a_max_pool_and_the_first_maximum_wins(void **state) {
    (void)state;
    const sn_kernel_case c = {"maxpool", "kernel=2,2 stride=2,2", "f32[1,2,4,1]", .batch = 0};
    const float x[8] = {3, 7, 5, 5, 7, NAN, 5, 5};
    sn_test_call r;
    sn_kernel_open(&r, &c, 1);
    memcpy(r.in[0].data, x, sizeof x);
    for (int k = 0; k < 2; k++) {
        sn_kernel_call(&r, k ? r.family->run : r.family->reference, 1, false);
        const float *y = r.out[0].data;
        const uint8_t *code = r.out[1].data;
        assert_true(isnan(y[0]));
        assert_int_equal(code[0], 3);
        assert_true(y[1] == 5.0f);
        assert_int_equal(code[1], 0);
    }
    sn_kernel_close(&r);
}

static void test_a_window_of_more_than_256_places_is_refused(void **state) {
    (void)state;
    sn_opdesc d = {.op = SN_OP_maxpool, .n_in = 1, .in = {{SNUG_F32, 4, {1, 20, 20, 1}}}};
    sn_cpu_device cpu;
    sn_variant v;
    snug_error err;
    sn_attrs_default(d.op, &d.attrs);
    d.attrs.pool.kernel[0] = 16;
    d.attrs.pool.kernel[1] = 17;
    d.attrs.pool.stride[0] = d.attrs.pool.stride[1] = 1;
    expect_ok(sn_op_infer(&d, &err), &err);
    sn_cpu_device_init(&cpu, 1, false);
    expect_status(cpu.device.describe(&cpu.device, &d, &v, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "256");
}

static void test_groups_are_the_library_s_depthwise_and_dense_layers_ours(void **state) {
    (void)state;
    const sn_kernel_case groups = {"conv2d", "groups=2", "f32[2,9,9,32] f32[3,3,16,32]",
                                   .batch = 0};
    const sn_kernel_case own[] = {
        {"conv2d", "", "f32[2,9,9,32] f32[3,3,32,32]", .batch = 0},
        {"conv2d", "groups=32", "f32[2,9,9,32] f32[3,3,1,32]", .batch = 0},
    };
    sn_test_call r;
    sn_kernel_open(&r, &groups, 1);
    expect_text(r.variant.impl, "onednn:");
    assert_true(r.variant.code_bytes > 0);
    sn_kernel_close(&r);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        sn_kernel_open(&r, &own[i], 1);
        expect_text(r.variant.impl, "own:");
        assert_int_equal(r.variant.code_bytes, 0);
        sn_kernel_close(&r);
    }
}

static snug_status prepare_and_release(snug_engine *e, void *ctx, snug_error *err) {
    sn_test_call *r = ctx;
    void *prepared = NULL;
    SNUG_TRY(r->family->prepare(e, &r->d, 2, &prepared, err));
    r->family->release(e, prepared);
    return SNUG_OK;
}

static void test_preparing_survives_a_failed_request(void **state) {
    (void)state;
    const sn_kernel_case c = {"conv2d_dw", "groups=2 kernel=3,3 bias=1",
                              "f32[2,9,9,32] f32[2,7,7,32]", .batch = 0};
    sn_test_call r;
    sn_kernel_open(&r, &c, 1);
    sn_fault_sweep(prepare_and_release, &r);
    sn_kernel_close(&r);
}

static void test_a_convolution_with_a_huge_stride_is_refused(void **state) {
    (void)state;
    sn_opdesc d = {.op = SN_OP_conv2d,
                   .n_in = 2,
                   .in = {{SNUG_F32, 4, {1, 9, 9, 1}}, {SNUG_F32, 4, {3, 3, 1, 1}}}};
    sn_cpu_device cpu;
    sn_variant v;
    snug_error err;
    sn_attrs_default(d.op, &d.attrs);
    d.attrs.conv.stride[1] = 1 << 20;
    expect_ok(sn_op_infer(&d, &err), &err);
    sn_cpu_device_init(&cpu, 1, false);
    expect_status(cpu.device.describe(&cpu.device, &d, &v, &err), SNUG_E_UNSUPPORTED, &err);
    expect_text(err.text, "1048576");
}

/* Bytes per thread of y, dx or dw of a 3 x 3 convolution between so many channels. */
static size_t workspace_of_3x3(sn_op op, int64_t images, int64_t channels) {
    enum { THREADS = 2 };
    const snug_type map = {SNUG_F32, 4, {images, 16, 16, channels}};
    sn_opdesc d = {.op = op, .n_in = 2, .in = {map, {SNUG_F32, 4, {3, 3, channels, channels}}}};
    sn_cpu_device cpu;
    sn_variant v;
    snug_error err;
    sn_attrs_default(op, &d.attrs);
    int64_t *pad = d.attrs.conv.pad;
    if (op == SN_OP_conv2d_dx) {
        pad = d.attrs.conv_dx.pad;
        d.attrs.conv_dx.input[0] = d.attrs.conv_dx.input[1] = 16;
    } else if (op == SN_OP_conv2d_dw) {
        pad = d.attrs.conv_dw.pad;
        d.in[1] = map;
        d.attrs.conv_dw.kernel[0] = d.attrs.conv_dw.kernel[1] = 3;
    }
    for (int i = 0; i < 4; i++)
        pad[i] = 1;
    expect_ok(sn_op_infer(&d, &err), &err);
    sn_cpu_device_init(&cpu, THREADS, false);
    expect_ok(cpu.device.describe(&cpu.device, &d, &v, &err), &err);
    return v.workspace_bytes / THREADS;
}

/* Not even one copy of the weights of a wide layer (9 and 36 MiB), and nothing per image. */
static void test_3x3_convolutions_need_little_workspace_whatever_the_layer(void **state) {
    (void)state;
    static const sn_op ops[] = {SN_OP_conv2d, SN_OP_conv2d_dx, SN_OP_conv2d_dw};
    static const int64_t sizes[][2] = {{1, 512}, {64, 1024}, {4096, 512}};
    for (int i = 0; i < 9; i++) {
        const size_t bytes = workspace_of_3x3(ops[i % 3], sizes[i / 3][0], sizes[i / 3][1]);
        assert_in_range(bytes, 1, (size_t)3 << 19);
    }
}

static void test_large_logits_do_not_overflow(void **state) {
    (void)state;
    static const char *const ops[] = {"softmax", "log_softmax"};
    for (int k = 0; k < 4; k++) {
        const sn_kernel_case c = {ops[k / 2], "", "f32[1,3]", .batch = 0};
        const float x[3] = {1000, 1001, -INFINITY};
        sn_test_call r;
        sn_kernel_open(&r, &c, 1);
        memcpy(r.in[0].data, x, sizeof x);
        sn_kernel_call(&r, k % 2 ? r.family->run : r.family->reference, 1, false);
        const float *y = r.out[0].data;
        const double p = 1 / (1 + exp(1));
        assert_true(fabs(y[0] - (k / 2 ? log(p) : p)) < 1e-6);
        assert_true(k / 2 ? isinf(y[2]) && y[2] < 0 : y[2] == 0.0f);
        sn_kernel_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_kernels_of_every_build_agree_with_references),
        cmocka_unit_test(test_bits_do_not_depend_on_threads),
        cmocka_unit_test(test_workspaces_are_needed_to_the_last_byte),
        cmocka_unit_test(test_slices_of_a_product_are_cut_for_the_threads),
        cmocka_unit_test(test_a_slice_of_a_batch_gives_the_bits_of_the_whole),
        cmocka_unit_test(test_accumulating_adds_to_what_is_there),
        cmocka_unit_test(test_in_place_gives_the_same_bits),
        cmocka_unit_test(test_a_label_out_of_range_is_named_with_its_row),
        cmocka_unit_test(test_a_nan_wins_a_max_pool_and_the_first_maximum_wins),
        cmocka_unit_test(test_a_window_of_more_than_256_places_is_refused),
        cmocka_unit_test(test_3x3_convolutions_need_little_workspace_whatever_the_layer),
        cmocka_unit_test(test_large_logits_do_not_overflow),
        cmocka_unit_test(test_groups_are_the_library_s_depthwise_and_dense_layers_ours),
        cmocka_unit_test(test_preparing_survives_a_failed_request),
        cmocka_unit_test(test_a_convolution_with_a_huge_stride_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
