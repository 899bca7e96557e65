/* kernels.cu: GPU families one by one, without the engine: is a kernel right (against its own f64
 * path, which the emulator's tests compare with the processor), and how long does it take?
 *
 *     kernels [--exact] [--cap MIB] [--check] [--f16 | --bf16] [WORD...]
 *
 * Lines are those whose name holds one of the words; with --f16 or --bf16 operands are of halves.
 * One line each: name, implementation, scratch, milliseconds, TFLOP/s, GB/s, and with --check the
 * largest difference over the largest value of each output. */
#include "kernels/cuda/driver.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/lib.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- an object for the families -------------------------------------------------------------- */
struct sn_gpu {
    sn_gpu_options options;
    void *slots[SN_GPU_N_LIBRARIES];
};

static sn_gpu gpu;

const sn_gpu_options *sn_gpu_options_of(const sn_gpu *g) {
    return &g->options;
}
int sn_gpu_multiprocessors(const sn_gpu *g) {
    (void)g;
    return 132;
}
void **sn_gpu_library_slot(const sn_gpu *g, sn_gpu_library which) {
    return (void **)&g->slots[which];
}
size_t sn_gpu_frame(const sn_gpu *g, sn_gpu_enqueue enqueue, void *ctx) {
    (void)g;
    return sn_driver_frame(cudaStreamPerThread, enqueue, ctx);
}
snug_status sn_gpu_enter(const sn_gpu *g, snug_error *err) {
    (void)g, (void)err;
    return SNUG_OK;
}
bool sn_gpu_is_lost(const sn_gpu *g) {
    (void)g;
    return false;
}
bool sn_gpu_pretends(const sn_gpu *g) {
    (void)g;
    return false;
}
void sn_gpu_starve(const sn_gpu *g, const snug_error *why) {
    (void)g, (void)why;
}
static void *take(void *ctx, size_t bytes) {
    (void)ctx;
    return malloc(bytes);
}
static void give(void *ctx, void *block, size_t bytes) {
    (void)ctx, (void)bytes;
    free(block);
}

static void die(const char *what, const char *why) {
    printf("%s: %s\n", what, why);
    exit(1);
}

static void must(cudaError_t e, const char *what) {
    if (e != cudaSuccess)
        die(what, cudaGetErrorString(e));
}

static void *room(size_t bytes) {
    void *p;
    must(cudaMalloc(&p, bytes > 0 ? bytes : 1), "cudaMalloc");
    return p;
}

/* --- values ---------------------------------------------------------------------------------- */
static __device__ float noise(uint64_t i, uint64_t seed) {
    uint64_t h = (i + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xd1342543de82ef95u;
    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 29) * 0x94d049bb133111ebu;
    return (float)((double)(h >> 40) / 8388608.0 - 1.0);
}

/* What floats are of, and what their values were rounded to: those of the check, too. */
static snug_dtype narrow = SNUG_F32;

static __device__ float rounded(float v, snug_dtype to) {
    return to == SNUG_F16 ? (float)(sn_half)v : to == SNUG_BF16 ? (float)(sn_brain)v : v;
}

template <class T>
static __global__ void fill(T *p, int64_t n, uint64_t seed, float low, snug_dtype to) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const float v = noise((uint64_t)i, seed);
        p[i] = (T)rounded(low >= 0 ? low + fabsf(v) : v, to);
    }
}

/* Largest difference, and largest value, as bits of non-negative floats. */
template <class T>
static __global__ void compare(const T *a, const double *b, int64_t n, unsigned *most) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const double apart = fabs((double)a[i] - b[i]);
        const float d = apart == apart ? (float)apart : INFINITY;
        atomicMax(&most[0], __float_as_uint(d));
        atomicMax(&most[1], __float_as_uint((float)fabs(b[i])));
    }
}

/* --- subjects -------------------------------------------------------------------------------- */
typedef struct {
    char name[80];
    sn_opdesc d;
    double params[4];
    int positive; /* bit i: input i has no negative values */
    int same;     /* runs timed in a row */
    int lift;     /* bit i: input i lies around 8 */
} subject;

static bool with_check;

typedef struct {
    void *in[8], *out[4], *workspace, *param, *prepared;
    snug_view views[8], outs[4];
    sn_variant v;
    sn_call call;
} instance;

static size_t bytes_of(const snug_type *t, const sn_variant *v, int out) {
    size_t n = 0;
    if (t->dtype == SNUG_OPAQUE)
        return out >= 0 ? v->opaque_bytes[out] : 0;
    if (snug_type_bytes(t, &n, NULL) != SNUG_OK)
        die("bytes", "too large");
    return n;
}

/* code: what an opaque input is. */
static void set_up(const subject *s, const sn_opdesc *d, void *code, instance *o) {
    snug_error err;
    const sn_cuda_family *f = sn_cuda_family_of(d->op);
    memset((void *)o, 0, sizeof *o);
    o->v.flops = sn_op_flops(d);
    snprintf(o->v.impl, sizeof o->v.impl, "own:cuda");
    if (f->describe && f->describe(&gpu, d, &o->v, &err) != SNUG_OK)
        die(s->name, err.text);
    for (int i = 0; i < d->n_in; i++) {
        const int64_t n = sn_type_count(&d->in[i]);
        o->views[i].type = d->in[i];
        o->views[i].bytes = bytes_of(&d->in[i], &o->v, -1);
        o->in[i] = d->in[i].dtype == SNUG_OPAQUE ? code : room(o->views[i].bytes);
        o->views[i].data = o->in[i];
        const float low = s->lift >> i & 1 ? 8.0f : s->positive >> i & 1 ? 0.01f : -1.0f;
        const uint64_t seed = (uint64_t)i + 1;
        if (d->in[i].dtype == SNUG_F32)
            fill<<<4096, 256>>>((float *)o->in[i], n, seed, low, narrow);
        else if (d->in[i].dtype == SNUG_F64)
            fill<<<4096, 256>>>((double *)o->in[i], n, seed, low, narrow);
        else if (d->in[i].dtype == SNUG_F16)
            fill<<<4096, 256>>>((sn_half *)o->in[i], n, seed, low, narrow);
        else if (d->in[i].dtype == SNUG_BF16)
            fill<<<4096, 256>>>((sn_brain *)o->in[i], n, seed, low, narrow);
    }
    for (int i = 0; i < d->n_out; i++) {
        o->outs[i].type = d->out[i];
        o->outs[i].bytes = bytes_of(&d->out[i], &o->v, i);
        o->outs[i].data = o->out[i] = room(o->outs[i].bytes);
    }
    o->workspace = room(o->v.workspace_bytes);
    sn_scalar p[4];
    for (int i = 0; i < 4; i++)
        p[i].real = s->params[i];
    o->param = room(sizeof p);
    must(cudaMemcpy(o->param, p, sizeof p, cudaMemcpyHostToDevice), "copy");
    if (f->prepare && f->prepare(&gpu, d, o->v.impl, &o->prepared, &err) != SNUG_OK)
        die(s->name, err.text);
    o->call.op = d->op;
    o->call.attrs = &d->attrs;
    o->call.param = (const sn_scalar *)o->param;
    o->call.n_in = d->n_in;
    o->call.n_out = d->n_out;
    o->call.in = o->views;
    o->call.out = o->outs;
    o->call.workspace = o->workspace;
    o->call.workspace_bytes = o->v.workspace_bytes;
    o->call.prepared = o->prepared;
    o->call.n_threads = 1;
    o->call.full = d->out[0].rank > 0 ? d->out[0].dims[0] : 1;
}

static void run_once(const subject *s, const instance *o, cudaStream_t stream) {
    snug_error err;
    const sn_cuda_call c = {&gpu, stream, &o->call, NULL};
    if (sn_cuda_family_of(o->call.op)->run(&c, &err) != SNUG_OK)
        die(s->name, err.text);
}

static void take_down(const sn_opdesc *d, instance *o, bool keep_code) {
    const sn_cuda_family *f = sn_cuda_family_of(d->op);
    if (f->release && o->prepared)
        f->release(&gpu, o->prepared);
    for (int i = 0; i < d->n_in; i++)
        if (d->in[i].dtype != SNUG_OPAQUE)
            cudaFree(o->in[i]);
    for (int i = 0; i < d->n_out; i++)
        if (!keep_code || d->out[i].dtype != SNUG_OPAQUE)
            cudaFree(o->out[i]);
    cudaFree(o->workspace);
    cudaFree(o->param);
}

static int up(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float time_it(const subject *s, const instance *o, cudaStream_t stream) {
    enum { TIMES = 9 };
    cudaEvent_t a, b;
    float ms[TIMES];
    must(cudaEventCreate(&a), "event");
    must(cudaEventCreate(&b), "event");
    for (int i = 0; i < TIMES; i++) {
        must(cudaEventRecord(a, stream), "record");
        for (int k = 0; k < s->same; k++)
            run_once(s, o, stream);
        must(cudaEventRecord(b, stream), "record");
        must(cudaEventSynchronize(b), s->name);
        must(cudaEventElapsedTime(&ms[i], a, b), "elapsed");
        ms[i] /= (float)s->same;
    }
    qsort(ms, TIMES, sizeof ms[0], up);
    return ms[TIMES / 2];
}

static void retype(sn_opdesc *d, snug_dtype from, snug_dtype to) {
    for (int i = 0; i < d->n_in; i++)
        if (d->in[i].dtype == from)
            d->in[i].dtype = to;
    for (int i = 0; i < d->n_out; i++)
        if (d->out[i].dtype == from)
            d->out[i].dtype = to;
}

static void compare_output(const void *got, snug_dtype dtype, const double *right, int64_t n,
                           unsigned *most) {
    if (dtype == SNUG_F16)
        compare<<<2048, 256>>>((const sn_half *)got, right, n, most);
    else if (dtype == SNUG_BF16)
        compare<<<2048, 256>>>((const sn_brain *)got, right, n, most);
    else
        compare<<<2048, 256>>>((const float *)got, right, n, most);
}

/* The same in f64, whose result is right; codes are those of the f32 run where it reads some. */
static void check(const subject *s, const instance *o, void *code) {
    sn_opdesc d = s->d;
    instance r;
    unsigned *most = (unsigned *)room(8), said[2];
    retype(&d, narrow, SNUG_F64);
    set_up(s, &d, code, &r);
    run_once(s, &r, 0);
    must(cudaDeviceSynchronize(), "f64");
    printf("  error");
    for (int i = 0; i < d.n_out; i++) {
        if (d.out[i].dtype == SNUG_OPAQUE)
            continue;
        must(cudaMemset(most, 0, 8), "set");
        compare_output(o->out[i], s->d.out[i].dtype, (const double *)r.out[i],
                       sn_type_count(&d.out[i]), most);
        must(cudaMemcpy(said, most, 8, cudaMemcpyDeviceToHost), "copy");
        float apart, value;
        memcpy(&apart, &said[0], 4);
        memcpy(&value, &said[1], 4);
        printf(" %.1e", (double)(apart / value));
    }
    cudaFree(most);
    take_down(&d, &r, false);
}

/* Two runs of the same must give the same bits. */
static bool is_steady(const subject *s, const instance *o, cudaStream_t stream) {
    const size_t n = o->outs[0].bytes < (64u << 20) ? o->outs[0].bytes : (64u << 20);
    char *a = (char *)malloc(n), *b = (char *)malloc(n);
    run_once(s, o, stream);
    must(cudaStreamSynchronize(stream), "sync");
    must(cudaMemcpy(a, o->out[0], n, cudaMemcpyDeviceToHost), "copy");
    run_once(s, o, stream);
    must(cudaStreamSynchronize(stream), "sync");
    must(cudaMemcpy(b, o->out[0], n, cudaMemcpyDeviceToHost), "copy");
    const bool same = memcmp(a, b, n) == 0;
    free(a);
    free(b);
    return same;
}

/* *code: what the one before left, for those that read codes. */
static void show(subject *s, void **code) {
    snug_error err;
    instance o;
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "stream");
    if (s->d.n_out == 0 && sn_op_infer(&s->d, &err) != SNUG_OK)
        die(s->name, err.text);
    retype(&s->d, SNUG_F32, narrow);
    set_up(s, &s->d, *code, &o);
    must(cudaDeviceSynchronize(), "fill");
    run_once(s, &o, stream);
    must(cudaStreamSynchronize(stream), s->name);
    const bool steady = is_steady(s, &o, stream);
    const float ms = time_it(s, &o, stream);
    double bytes = 0;
    for (int i = 0; i < s->d.n_in; i++)
        bytes += (double)o.views[i].bytes;
    for (int i = 0; i < s->d.n_out; i++)
        bytes += (double)o.outs[i].bytes;
    printf("%-44s %-36s ws %7.1f MiB %8.3f ms %7.1f TFLOP/s %6.0f GB/s%s", s->name, o.v.impl,
           (double)o.v.workspace_bytes / 1048576, (double)ms, o.v.flops / (double)ms / 1e9,
           bytes / (double)ms / 1e6, steady ? "" : "  BITS DIFFER");
    if (with_check)
        check(s, &o, *code);
    printf("\n");
    fflush(stdout);
    bool leaves = false;
    for (int i = 0; i < s->d.n_out; i++)
        if (s->d.out[i].dtype == SNUG_OPAQUE) {
            leaves = true;
            cudaFree(*code);
            *code = o.out[i];
        }
    take_down(&s->d, &o, leaves);
    must(cudaStreamDestroy(stream), "stream");
}

/* --- the list -------------------------------------------------------------------------------- */
static snug_type type_of(int rank, ...) {
    snug_type t = {};
    va_list args;
    t.dtype = SNUG_F32;
    t.rank = rank;
    va_start(args, rank);
    for (int i = 0; i < rank; i++)
        t.dims[i] = va_arg(args, int64_t);
    va_end(args);
    return t;
}

static char **words;
static int n_words;

static bool is_wanted(const char *name) {
    for (int i = 0; i < n_words; i++)
        if (strstr(name, words[i]))
            return true;
    return n_words == 0;
}

static subject start(sn_op op, const char *format, ...) __attribute__((format(printf, 2, 3)));
static subject start(sn_op op, const char *format, ...) {
    subject s = {};
    va_list args;
    va_start(args, format);
    vsnprintf(s.name, sizeof s.name, format, args);
    va_end(args);
    s.d.op = op;
    s.same = 1;
    sn_attrs_default(op, &s.d.attrs);
    return s;
}

static void *last_code;

static void matmul(const char *name, int64_t M, int64_t N, int64_t K, const char *how) {
    subject s = start(SN_OP_matmul, "matmul %s %lldx%lldx%lld %s", name, (long long)M, (long long)N,
                      (long long)K, how);
    const bool ta = strchr(how, 'A') != NULL, tb = strchr(how, 'B') != NULL;
    s.d.attrs.matmul.trans_a = ta;
    s.d.attrs.matmul.trans_b = tb;
    s.d.attrs.matmul.act = strchr(how, 'r') ? SN_ACT_relu : strchr(how, 't') ? SN_ACT_tanh : 0;
    s.d.in[0] = ta ? type_of(2, K, M) : type_of(2, M, K);
    s.d.in[1] = tb ? type_of(2, N, K) : type_of(2, K, N);
    s.d.in[2] = type_of(1, N);
    s.d.n_in = strchr(how, 'b') ? 3 : 2;
    s.same = M * N * K < 1 << 28 ? 20 : 1;
    if (is_wanted(s.name))
        show(&s, &last_code);
}

static void batched(int64_t b, int64_t M, int64_t N, int64_t K, bool tb) {
    subject s = start(SN_OP_matmul, "matmul batch %lld of %lldx%lldx%lld%s", (long long)b,
                      (long long)M, (long long)N, (long long)K, tb ? " B" : "");
    s.d.attrs.matmul.trans_b = tb;
    s.d.in[0] = type_of(3, b, M, K);
    s.d.in[1] = tb ? type_of(3, b, N, K) : type_of(3, b, K, N);
    s.d.n_in = 2;
    if (is_wanted(s.name))
        show(&s, &last_code);
}

typedef struct {
    int64_t N, H, C, O, k, stride, before, after, groups;
} shape;

/* how: y forward, b bias, r relu, l line, x dx, w dw */
static void conv(shape v, const char *how) {
    const int64_t oh = (v.H + v.before + v.after - v.k) / v.stride + 1;
    subject s =
        start(SN_OP_conv2d, "conv %s %lldx%lld^2x%lld->%lld k%lld s%lld p%lld,%lld g%lld", how,
              (long long)v.N, (long long)v.H, (long long)v.C, (long long)v.O, (long long)v.k,
              (long long)v.stride, (long long)v.before, (long long)v.after, (long long)v.groups);
    const snug_type x = type_of(4, v.N, v.H, v.H, v.C),
                    w = type_of(4, v.k, v.k, v.C / v.groups, v.O), y = type_of(4, v.N, oh, oh, v.O);
    if (strchr(how, 'x') || strchr(how, 'w')) {
        s.d.op = strchr(how, 'x') ? SN_OP_conv2d_dx : SN_OP_conv2d_dw;
        sn_attrs_default(s.d.op, &s.d.attrs);
    }
    sn_attrs_conv *a = &s.d.attrs.conv; /* all three begin alike */
    a->stride[0] = a->stride[1] = v.stride;
    a->pad[0] = a->pad[2] = v.before;
    a->pad[1] = a->pad[3] = v.after;
    a->groups = v.groups;
    s.d.n_in = 2;
    s.d.in[0] = x;
    s.d.in[1] = w;
    if (s.d.op == SN_OP_conv2d) {
        a->act = strchr(how, 'r') ? SN_ACT_relu : 0;
        s.d.in[2] = strchr(how, 'l') ? type_of(2, (int64_t)2, v.O) : type_of(1, v.O);
        s.d.n_in = strchr(how, 'b') || strchr(how, 'l') ? 3 : 2;
    } else if (s.d.op == SN_OP_conv2d_dx) {
        s.d.in[0] = y;
        s.d.attrs.conv_dx.input[0] = s.d.attrs.conv_dx.input[1] = v.H;
    } else {
        s.d.in[1] = y;
        s.d.attrs.conv_dw.kernel[0] = s.d.attrs.conv_dw.kernel[1] = v.k;
        s.d.attrs.conv_dw.bias = strchr(how, 'b') != NULL;
    }
    if (is_wanted(s.name))
        show(&s, &last_code);
}

/* relu and 2 x 2 pooling behind it; the gradients use its codes. */
static void conv_pool(int64_t N, int64_t H, int64_t C, int64_t O, int64_t pad, bool back) {
    const int64_t big = H + 2 * pad - 2, small = big / 2;
    const snug_type x = type_of(4, N, H, H, C), w = type_of(4, (int64_t)3, (int64_t)3, C, O);
    snug_type y = type_of(4, N, small, small, O);
    const int64_t pool[8] = {2, 2, 2, 2, 0, 0, 0, 0}, pads[4] = {pad, pad, pad, pad};
    for (int kind = 0; kind < (back ? 3 : 2); kind++) {
        static const sn_op ops[] = {SN_OP_conv2d_pool, SN_OP_conv2d_pool_dw, SN_OP_conv2d_pool_dx};
        static const char *const names[] = {"y", "dw", "dx"};
        subject s = start(ops[kind], "convpool %s %lldx%lld^2x%lld->%lld p%lld", names[kind],
                          (long long)N, (long long)H, (long long)C, (long long)O, (long long)pad);
        memcpy(s.d.attrs.conv.pad, pads, sizeof pads); /* all three begin alike */
        s.d.n_in = 3;
        s.d.in[0] = kind == 2 ? y : x;
        s.d.in[1] = kind == 1 ? y : w;
        s.d.in[2] = y;
        s.d.in[2].dtype = SNUG_OPAQUE;
        if (kind == 0) {
            s.d.in[2] = type_of(1, O);
            s.d.attrs.conv_pool.act = SN_ACT_relu;
            s.d.attrs.conv_pool.codes = 1;
            memcpy(s.d.attrs.conv_pool.pool, pool, sizeof pool);
        } else if (kind == 1) {
            s.d.attrs.conv_pool_dw.kernel[0] = s.d.attrs.conv_pool_dw.kernel[1] = 3;
            s.d.attrs.conv_pool_dw.bias = 1;
            memcpy(s.d.attrs.conv_pool_dw.pool, pool, sizeof pool);
        } else {
            s.d.attrs.conv_pool_dx.input[0] = s.d.attrs.conv_pool_dx.input[1] = H;
            memcpy(s.d.attrs.conv_pool_dx.pool, pool, sizeof pool);
        }
        if (is_wanted(s.name))
            show(&s, &last_code);
    }
}

static void list_pools(void) {
    conv_pool(3, 70, 3, 32, 0, true);
    conv_pool(2, 66, 3, 64, 1, true);
    conv_pool(2, 69, 3, 32, 1, true);
    conv_pool(4, 32, 64, 96, 1, true);
    conv_pool(32, 1024, 3, 32, 0, false);
    conv_pool(32, 128, 256, 256, 1, true);
    conv_pool(32, 64, 512, 512, 1, true);
    conv_pool(32, 32, 1024, 1024, 1, true);
}

static void adam(int64_t M, int64_t N, int64_t K, bool dx) {
    subject s = start(dx ? SN_OP_matmul_adam_dx : SN_OP_matmul_adam, "adam%s %lldx%lld of %lld",
                      dx ? " dx" : "", (long long)M, (long long)N, (long long)K);
    const double params[4] = {1e-3, 0.1, 1e-3, 1e-7};
    memcpy(s.params, params, sizeof params);
    s.positive = 4;
    for (int i = 0; i < 3; i++)
        s.d.in[i] = type_of(2, M, N);
    s.d.in[3] = type_of(2, K, M);
    s.d.in[4] = type_of(2, K, N);
    s.d.n_in = 5;
    if (is_wanted(s.name))
        show(&s, &last_code);
}

static void attention(int64_t B, int64_t T, int64_t H, int64_t G, int64_t D, bool causal) {
    for (int back = 0; back < 2; back++) {
        subject s =
            start(back ? SN_OP_attention_grad : SN_OP_attention,
                  "attention%s %lldx%lldx%lld/%lldx%lld%s", back ? " grad" : "", (long long)B,
                  (long long)T, (long long)H, (long long)G, (long long)D, causal ? " causal" : "");
        const snug_type q = type_of(4, B, T, H, D), k = type_of(4, B, T, G, D);
        s.d.attrs.attention.causal = causal;
        s.params[0] = 1 / sqrt((double)D);
        s.d.n_in = back ? 6 : 3;
        s.d.in[0] = s.d.in[3] = s.d.in[5] = q;
        s.d.in[1] = s.d.in[2] = k;
        s.d.in[4] = type_of(3, B, T, H);
        s.positive = 16; /* lse is large enough for weights below 1 */
        s.lift = 16;
        if (is_wanted(s.name))
            show(&s, &last_code);
    }
}

static void list_products(void) {
    attention(2, 100, 4, 4, 64, false);
    attention(2, 100, 4, 2, 64, true);
    attention(1, 77, 3, 1, 32, true);
    attention(1, 45, 2, 2, 48, true);
    attention(8, 1024, 12, 12, 64, false);
    attention(8, 1024, 12, 12, 64, true);
    matmul("odd", 301, 70, 53, "br");
    matmul("odd", 301, 7, 1300, "Ab");
    matmul("odd", 5, 333, 129, "Bt");
    matmul("odd", 1000, 1001, 1003, "bt");
    matmul("square", 4096, 4096, 4096, "");
    matmul("square", 4096, 4096, 4096, "A");
    matmul("square", 4096, 4096, 4096, "B");
    matmul("mlp1", 20000, 64, 100, "br");
    matmul("mlp2", 20000, 10, 64, "b");
    matmul("mlp dw1", 100, 64, 20000, "A");
    matmul("mlp dw2", 64, 10, 20000, "A");
    matmul("mlp dx", 20000, 64, 10, "B");
    matmul("fc", 64, 1000, 2048, "b");
    matmul("qkv", 8192, 2304, 768, "b");
    matmul("up", 8192, 3072, 768, "b");
    matmul("down", 8192, 768, 3072, "b");
    matmul("down dw", 3072, 768, 8192, "A");
    matmul("down dx", 8192, 3072, 768, "B");
    batched(96, 1024, 64, 1024, false);
    batched(96, 1024, 1024, 64, true);
    matmul("dense", 32, 10, 8355872, "b");
    matmul("dense", 37, 10, 300001, "b");
    matmul("dense", 5, 16, 100003, "");
    matmul("long dw", 8355872, 10, 32, "A");
    matmul("long dx", 32, 8355872, 10, "B");
    matmul("long dw", 100003, 10, 37, "A");
    matmul("long dx", 37, 100003, 5, "B");
    adam(8355872, 10, 32, false);
    adam(8355872, 10, 32, true);
    adam(8355872, 10, 256, true);
    adam(100003, 10, 37, true);
    adam(5001, 16, 70, true);
    adam(768, 3072, 8192, false);
    adam(3072, 768, 8192, true);
    adam(300, 200, 77, true);
}

static void list_convolutions(void) {
    const shape vgg[] = {{32, 128, 256, 256, 3, 1, 1, 1, 1},
                         {32, 64, 256, 512, 3, 1, 1, 1, 1},
                         {32, 64, 512, 512, 3, 1, 1, 1, 1},
                         {32, 32, 512, 1024, 3, 1, 1, 1, 1},
                         {32, 32, 1024, 1024, 3, 1, 1, 1, 1}};
    const shape small[] = {{2, 16, 64, 64, 3, 1, 1, 1, 1},  {4, 17, 32, 48, 3, 2, 0, 1, 1},
                           {4, 18, 32, 48, 3, 2, 1, 0, 1},  {4, 16, 32, 32, 3, 1, 1, 1, 4},
                           {4, 16, 96, 96, 3, 1, 1, 1, 96}, {4, 15, 3, 5, 5, 1, 2, 2, 1},
                           {4, 16, 256, 512, 3, 1, 1, 1, 1}};
    const shape resnet[] = {{64, 230, 3, 64, 7, 2, 0, 0, 1},   {64, 56, 64, 64, 3, 1, 1, 1, 1},
                            {64, 56, 64, 256, 1, 1, 0, 0, 1},  {64, 56, 256, 64, 1, 1, 0, 0, 1},
                            {64, 56, 256, 512, 1, 2, 0, 0, 1}, {64, 14, 256, 256, 3, 1, 1, 1, 1},
                            {64, 7, 512, 2048, 1, 1, 0, 0, 1}, {64, 112, 96, 96, 3, 1, 1, 1, 96}};
    conv({2, 70, 3, 64, 7, 2, 3, 3, 1}, "patch wb");
    conv({2, 70, 3, 8, 3, 1, 1, 1, 1}, "patch wb");
    conv({32, 128, 3, 256, 3, 1, 1, 1, 1}, "patch wb");
    for (int i = 0; i < 7; i++) {
        conv(small[i], "small br");
        conv(small[i], "small b");
        conv(small[i], "small l");
        conv(small[i], "small x");
        conv(small[i], "small wb");
    }
    for (int i = 0; i < 5; i++) {
        conv(vgg[i], "vgg br");
        conv(vgg[i], "vgg x");
        conv(vgg[i], "vgg wb");
    }
    for (int i = 0; i < 8; i++) {
        conv(resnet[i], "res y");
        conv(resnet[i], "res b");
        conv(resnet[i], "res x");
        conv(resnet[i], "res wb");
    }
}

int main(int argc, char **argv) {
    char blas[32], dnn[32];
    words = argv + 1;
    gpu.options.host.alloc = take;
    gpu.options.host.free = give;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--exact") == 0)
            gpu.options.exact = true;
        else if (strcmp(argv[i], "--check") == 0)
            with_check = true;
        else if (strcmp(argv[i], "--f16") == 0 || strcmp(argv[i], "--bf16") == 0)
            narrow = argv[i][2] == 'f' ? SNUG_F16 : SNUG_BF16;
        else if (strcmp(argv[i], "--cap") == 0 && i + 1 < argc)
            gpu.options.workspace_bytes = (size_t)atoi(argv[++i]) << 20;
        else
            words[n_words++] = argv[i];
    }
    sn_blas_version(&gpu, blas, sizeof blas);
    sn_dnn_version(&gpu, dnn, sizeof dnn);
    printf("cuBLASLt %s, cuDNN %s%s\n", blas, dnn, gpu.options.exact ? ", exact" : "");
    list_products();
    list_convolutions();
    list_pools();
    return 0;
}
