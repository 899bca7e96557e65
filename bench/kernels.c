/* kernels.c: times the hot kernels alone: milliseconds (least of several runs), GFLOP/s, workspace.
 *
 *     bench_kernels [threads] [part of an operator's name] [part of the types] [type for f32]
 *
 * With one thread the clock is the process' own, so that other work on the machine disturbs
 * little. */
#include "support/kernel_call.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const sn_kernel_case cases[] = {
    /* an MLP 100-64-10 at batch 20,000: forward, weight gradients, dx */
    {"matmul", "act=relu", "f32[20000,100] f32[100,64] f32[64]", .batch = 0},
    {"matmul", "", "f32[20000,64] f32[64,10] f32[10]", .batch = 0},
    {"matmul", "trans_a=1", "f32[20000,64] f32[20000,10]", .batch = 0},
    {"matmul", "trans_b=1", "f32[20000,10] f32[64,10]", .batch = 0},
    {"matmul", "trans_a=1", "f32[20000,100] f32[20000,64]", .batch = 0},
    /* a dense layer behind a flattened image */
    {"matmul", "", "f32[32,127008] f32[127008,10] f32[10]", .batch = 0},
    {"matmul", "trans_b=1", "f32[32,10] f32[127008,10]", .batch = 0},
    {"matmul", "trans_a=1", "f32[32,127008] f32[32,10]", .batch = 0},
    {"matmul_adam", "", "f32[127008,10] f32[127008,10] f32[127008,10] f32[32,127008] f32[32,10]",
     .batch = 0},
    {"matmul", "", "f32[8,1000000] f32[1000000,10] f32[10]", .batch = 0},
    {"matmul", "trans_b=1", "f32[8,10] f32[1000000,10]", .batch = 0},
    {"matmul_adam", "", "f32[1000000,10] f32[1000000,10] f32[1000000,10] f32[8,1000000] f32[8,10]",
     .batch = 0},
    {"matmul", "", "f32[1024,1024] f32[1024,1024]", .batch = 0},
    {"matmul", "trans_a=1", "f32[1024,1024] f32[1024,1024]", .batch = 0},
    {"matmul", "trans_b=1", "f32[1024,1024] f32[1024,1024]", .batch = 0},
    /* a first layer on images */
    {"conv2d", "", "f32[32,128,128,3] f32[3,3,3,32] f32[32]", .batch = 0},
    {"conv2d_dw", "kernel=3,3 bias=1", "f32[32,128,128,3] f32[32,126,126,32]", .batch = 0},
    {"maxpool", "kernel=2,2 stride=2,2", "f32[32,126,126,32]", .batch = 0},
    {"maxpool_grad", "kernel=2,2 stride=2,2 input=126,126", "f32[32,63,63,32] opaque[32,63,63,32]",
     .batch = 0},
    {"conv2d_pool", "codes=1 act=relu pool=2,2,2,2,0,0,0,0",
     "f32[32,128,128,3] f32[3,3,3,32] f32[32]", .batch = 0},
    {"conv2d_pool_dw", "kernel=3,3 bias=1 pool=2,2,2,2,0,0,0,0",
     "f32[32,128,128,3] f32[32,63,63,32] opaque[32,63,63,32]", .batch = 0},
    {"conv2d_pool", "codes=1 act=relu pad=1,1,1,1 pool=2,2,2,2,0,0,0,0",
     "f32[16,56,56,64] f32[3,3,64,64] f32[64]", .batch = 0},
    {"conv2d_pool_dx", "pad=1,1,1,1 input=56,56 pool=2,2,2,2,0,0,0,0",
     "f32[16,28,28,64] f32[3,3,64,64] opaque[16,28,28,64]", .batch = 0},
    {"conv2d_pool_dw", "kernel=3,3 bias=1 pad=1,1,1,1 pool=2,2,2,2,0,0,0,0",
     "f32[16,56,56,64] f32[16,28,28,64] opaque[16,28,28,64]", .batch = 0},
    /* layers further down */
    {"conv2d", "pad=1,1,1,1", "f32[16,56,56,64] f32[3,3,64,64] f32[64]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=56,56", "f32[16,56,56,64] f32[3,3,64,64]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3 bias=1", "f32[16,56,56,64] f32[16,56,56,64]", .batch = 0},
    {"conv2d", "stride=2,2 pad=0,1,0,1", "f32[16,28,28,128] f32[3,3,128,256]", .batch = 0},
    {"conv2d_dx", "stride=2,2 pad=0,1,0,1 input=28,28", "f32[16,14,14,256] f32[3,3,128,256]",
     .batch = 0},
    {"conv2d_dw", "stride=2,2 pad=0,1,0,1 kernel=3,3", "f32[16,28,28,128] f32[16,14,14,256]",
     .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[16,7,7,512] f32[3,3,512,512]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=7,7", "f32[16,7,7,512] f32[3,3,512,512]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[16,7,7,512] f32[16,7,7,512]", .batch = 0},
    {"conv2d", "", "f32[16,28,28,256] f32[1,1,256,128]", .batch = 0},
    {"conv2d", "", "f32[64,1,1,480] f32[1,1,480,32]", .batch = 0},
    {"conv2d", "groups=256 pad=1,1,1,1", "f32[16,28,28,256] f32[3,3,1,256]", .batch = 0},
    {"conv2d_dx", "groups=256 pad=1,1,1,1 input=28,28", "f32[16,28,28,256] f32[3,3,1,256]",
     .batch = 0},
    {"conv2d_dw", "groups=256 pad=1,1,1,1 kernel=3,3", "f32[16,28,28,256] f32[16,28,28,256]",
     .batch = 0},
    /* a VGG-like network and ResNet-20 */
    {"conv2d", "pad=1,1,1,1", "f32[1,128,128,256] f32[3,3,256,256]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=128,128", "f32[1,128,128,256] f32[3,3,256,256]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[1,128,128,256] f32[1,128,128,256]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[2,32,32,1024] f32[3,3,1024,1024]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=32,32", "f32[2,32,32,1024] f32[3,3,1024,1024]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[2,32,32,1024] f32[2,32,32,1024]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[8,62,62,64] f32[3,3,64,128]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[8,62,62,64] f32[8,62,62,128]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[32,32,32,16] f32[3,3,16,16]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=32,32", "f32[32,32,32,16] f32[3,3,16,16]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[32,32,32,16] f32[32,32,32,16]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[32,16,16,32] f32[3,3,32,32]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=16,16", "f32[32,16,16,32] f32[3,3,32,32]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[32,16,16,32] f32[32,16,16,32]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[32,8,8,64] f32[3,3,64,64]", .batch = 0},
    {"conv2d_dx", "pad=1,1,1,1 input=8,8", "f32[32,8,8,64] f32[3,3,64,64]", .batch = 0},
    {"conv2d_dw", "pad=1,1,1,1 kernel=3,3", "f32[32,8,8,64] f32[32,8,8,64]", .batch = 0},
    /* one picture: each weight meets few pixels */
    {"conv2d", "", "f32[1,7,7,960] f32[1,1,960,160]", .batch = 0},
    {"conv2d", "", "f32[1,7,7,320] f32[1,1,320,1280]", .batch = 0},
    {"conv2d", "", "f32[1,14,14,64] f32[1,1,64,384]", .batch = 0},
    {"conv2d", "", "f32[1,14,14,1024] f32[1,1,1024,256]", .batch = 0},
    {"conv2d", "", "f32[1,28,28,512] f32[1,1,512,128]", .batch = 0},
    {"conv2d", "", "f32[1,56,56,64] f32[1,1,64,256]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[1,7,7,512] f32[3,3,512,512]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[1,14,14,256] f32[3,3,256,256]", .batch = 0},
    {"conv2d", "pad=1,1,1,1", "f32[1,28,28,128] f32[3,3,128,128]", .batch = 0},
    /* depthwise layers of MobileNetV2 and EfficientNetB0, one picture */
    {"conv2d", "groups=32 pad=1,1,1,1 act=relu", "f32[1,112,112,32] f32[3,3,1,32] f32[32]",
     .batch = 0},
    {"conv2d", "groups=96 stride=2,2 pad=0,1,0,1", "f32[1,112,112,96] f32[3,3,1,96]", .batch = 0},
    {"conv2d", "groups=144 pad=1,1,1,1", "f32[1,56,56,144] f32[3,3,1,144]", .batch = 0},
    {"conv2d", "groups=384 pad=1,1,1,1", "f32[1,14,14,384] f32[3,3,1,384]", .batch = 0},
    {"conv2d", "groups=960 pad=1,1,1,1", "f32[1,7,7,960] f32[3,3,1,960]", .batch = 0},
    {"conv2d", "groups=240 pad=2,2,2,2", "f32[1,28,28,240] f32[5,5,1,240]", .batch = 0},
    {"conv2d", "groups=1152 pad=2,2,2,2", "f32[1,7,7,1152] f32[5,5,1,1152]", .batch = 0},
    {"conv2d_dx", "groups=96 stride=2,2 pad=0,1,0,1 input=112,112", "f32[8,56,56,96] f32[3,3,1,96]",
     .batch = 0},
    {"conv2d_dw", "groups=96 stride=2,2 pad=0,1,0,1 kernel=3,3",
     "f32[8,112,112,96] f32[8,56,56,96]", .batch = 0},
    {"conv2d_dw", "groups=240 pad=2,2,2,2 kernel=5,5", "f32[8,28,28,240] f32[8,28,28,240]",
     .batch = 0},
    {"attention", "", "f32[8,256,4,64] f32[8,256,4,64] f32[8,256,4,64]", .param = {0.125}},
    {"attention_grad", "",
     "f32[8,256,4,64] f32[8,256,4,64] f32[8,256,4,64] f32[8,256,4,64] f32[8,256,4] f32[8,256,4,64]",
     .param = {0.125}},
    {"avgpool", "kernel=2,2 stride=2,2", "f32[32,56,56,64]", .batch = 0},
    {"avgpool_grad", "kernel=2,2 stride=2,2 input=56,56", "f32[32,28,28,64]", .batch = 0},
    {"moments", "", "f32[32,56,56,64]", .batch = 0},
    {"normalise", "", "f32[32,56,56,64] f32[64] f32[64] f32[64] f32[64]", .param = {2}},
    {"normalise_sums", "", "f32[32,56,56,64] f32[32,56,56,64] f32[64] f32[64]", .param = {2}},
    {"channel_affine", "", "f32[32,56,56,64] f32[32,56,56,64] f32[64] f32[64] f32[64]", .batch = 0},
    {"layernorm", "", "f32[4096,512] f32[512] f32[512]", .param = {1e-3}},
    {"layernorm_dx", "", "f32[4096,512] f32[4096,512] f32[512] f32[4096] f32[4096]", .batch = 0},
    {"layernorm_sums", "", "f32[4096,512] f32[4096,512] f32[4096] f32[4096]", .batch = 0},
    {"sum", "axes=0", "f32[100352,64]", .batch = 0},
    {"sum", "axes=1", "f32[4096,512]", .batch = 0},
    {"sum", "axes=1,2", "f32[32,56,56,64]", .batch = 0},
    {"max", "axes=1", "f32[4096,512]", .batch = 0},
    {"softmax", "", "f32[4096,512]", .batch = 0},
    {"softmax", "", "f32[64,50000]", .batch = 0},
    {"log_softmax", "", "f32[4096,512]", .batch = 0},
    {"softmax_grad", "", "f32[4096,512] f32[4096,512]", .batch = 0},
    {"sparse_xent", "", "f32[20000,10] i32[20000]", .batch = 0},
    {"sparse_xent_grad", "", "f32[20000,10] i32[20000] f32[20000]", .batch = 0},
    {"softmax_xent", "", "f32[20000,10] f32[20000,10]", .batch = 0},
    {"softmax_xent_grad", "", "f32[20000,10] f32[20000,10] f32[20000]", .batch = 0},
};

static double now_ms(int n_threads) {
    struct timespec t;
    clock_gettime(n_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double least_ms(const sn_test_call *r, const sn_call *call) {
    double least = 1e30, total = 0;
    for (int i = 0; i < 30 && total < 300; i++) {
        const double start = now_ms(call->n_threads);
        if (r->family->run(call, NULL) != SNUG_OK)
            exit(1);
        const double took = now_ms(call->n_threads) - start;
        total += took;
        least = took < least ? took : least;
    }
    return least;
}

/* The types with this one in the place of f32. */
static void retype(const char *types, const char *dtype, char *out) {
    for (const char *at; (at = strstr(types, "f32[")) != NULL; types = at + 3)
        out += sprintf(out, "%.*s%s", (int)(at - types), types, dtype);
    strcpy(out, types);
}

static void bench(const sn_kernel_case *c, int n_threads) {
    sn_test_call r;
    sn_cpu_device cpu;
    sn_variant v;
    sn_kernel_open(&r, c, 1);
    sn_cpu_device_init(&cpu, n_threads, false);
    expect_ok(cpu.device.describe(&cpu.device, &r.d, &v, NULL), NULL);
    void *workspace = aligned_alloc(64, (v.workspace_bytes + 127) / 64 * 64);
    sn_call call = {
        .op = r.d.op, .attrs = &r.d.attrs, .param = r.param, .n_in = r.d.n_in, .n_out = r.d.n_out};
    call.in = r.in;
    call.out = r.out;
    call.workspace = workspace;
    call.workspace_bytes = v.workspace_bytes;
    call.n_threads = n_threads;
    snug_engine *engine = sn_test_engine(0);
    expect_ok(sn_team_create(engine, n_threads, &call.team, NULL), NULL);
    if (r.family->prepare)
        expect_ok(r.family->prepare(engine, &r.d, n_threads, &call.prepared, NULL), NULL);
    const double ms = least_ms(&r, &call);
    if (r.family->release)
        r.family->release(engine, call.prepared);
    sn_team_destroy(call.team);
    sn_test_engine_end(engine);
    printf("%9.3f ms %7.1f GFLOP/s %7.1f GB/s %8zu KiB  %s %s %s\n", ms, v.flops / ms * 1e-6,
           v.bytes / ms * 1e-6, v.workspace_bytes / 1024, c->op, c->attrs, c->types);
    free(workspace);
    sn_kernel_close(&r);
}

int main(int argc, char **argv) {
    const int n_threads = argc > 1 ? atoi(argv[1]) : 2;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if ((argc < 3 || strstr(cases[i].op, argv[2])) &&
            (argc < 4 || strstr(cases[i].types, argv[3]))) {
            sn_kernel_case c = cases[i];
            char types[256];
            retype(c.types, argc < 5 ? "f32" : argv[4], types);
            c.types = types;
            bench(&c, n_threads);
        }
    return 0;
}
