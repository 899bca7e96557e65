/* rows.c: how fast the GPU's own rows are: bytes of all operands over the time of a call.
 *
 *     rows PLUGIN [WORD...]        lines whose operator holds one of the words
 *
 * One line each: operator, attributes, types, microseconds, GB/s. Floats are uniform in [0.1, 1),
 * integers below 1000 (labels below their width). */
#include "base/rng.h"
#include "op/runner.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 20, LABELS = 1000 };

static const struct {
    const char *op, *attrs, *types;
} lines[] = {
    {"relu", "", "f32[67108864]"},
    {"exp", "", "f32[67108864]"},
    {"tanh", "", "f32[67108864]"},
    {"gelu", "", "f32[67108864]"},
    {"sin", "", "f32[67108864]"},
    {"relu_grad", "", "f32[67108864] f32[67108864]"},
    {"add", "", "f32[67108864] f32[67108864]"},
    {"add", "", "f32[65536,1024] f32[1024]"},
    {"mul", "", "f32[64,64,64,256] f32[64,1,1,256]"},
    {"add", "", "f32[262144,255] f32[255]"},
    {"greater", "", "f32[67108864] f32[67108864]"},
    {"cast", "dtype=f32", "u8[67108864]"},
    {"transpose", "perm=0,2,1", "f32[64,1024,1024]"},
    {"transpose", "perm=0,2,1,3", "f32[32,512,16,64]"},
    {"concat", "axis=3", "f32[32,128,128,64] f32[32,128,128,64]"},
    {"slice", "sizes=64,1000,1000 start=0,3,5", "f32[64,1024,1024]"},
    {"pad", "before=0,1,1,0 after=0,1,1,0 value=0", "f32[64,128,128,64]"},
    {"broadcast_to", "dims=65536,1024", "f32[1024]"},
    {"sum", "axes=0", "f32[65536,1024]"},
    {"sum", "axes=0,1,2", "f32[256,64,64,64]"},
    {"sum", "axes=1", "f32[65536,1024]"},
    {"sum", "", "f32[67108864]"},
    {"max", "axes=1", "f32[8192,8192]"},
    {"argmax", "axis=1 dtype=i32", "f32[8192,8192]"},
    {"cumsum", "axis=1", "f32[8192,1024]"},
    {"softmax", "", "f32[65536,1024]"},
    {"softmax", "", "f32[1048576,64]"},
    {"softmax_grad", "", "f32[65536,1024] f32[65536,1024]"},
    {"sparse_xent", "", "f32[8192,32000] i32[8192]"},
    {"sparse_xent_grad", "", "f32[8192,32000] i32[8192] f32[8192]"},
    {"sparse_xent", "", "f32[20000,10] i32[20000]"},
    {"layernorm", "epsilon=1e-5", "f32[65536,768] f32[768] f32[768]"},
    {"layernorm_dx", "", "f32[65536,768] f32[65536,768] f32[768] f32[65536] f32[65536]"},
    {"layernorm_sums", "", "f32[65536,768] f32[65536,768] f32[65536] f32[65536]"},
    {"moments", "", "f32[64,56,56,256]"},
    {"normalise", "epsilon=1e-3", "f32[64,56,56,256] f32[256] f32[256] f32[256] f32[256]"},
    {"normalise_sums", "epsilon=1e-3", "f32[64,56,56,256] f32[64,56,56,256] f32[256] f32[256]"},
    {"channel_affine", "", "f32[64,56,56,256] f32[64,56,56,256] f32[256] f32[256] f32[256]"},
    {"maxpool", "kernel=2,2 stride=2,2", "f32[32,128,128,256]"},
    {"maxpool", "kernel=3,3 stride=2,2 pad=0,1,0,1", "f32[64,112,112,64]"},
    {"avgpool", "kernel=7,7 stride=7,7", "f32[64,56,56,256]"},
    {"gather", "axis=0", "f32[50000,768] i32[8192]"},
    {"scatter_add", "dims=50000,768 axis=0", "i32[8192] f32[8192,768]"},
    {"one_hot", "depth=1000 dtype=f32", "i32[65536]"},
    {"sort", "k=1024 dtype=i32", "f32[4096,1024]"},
    {"random", "dims=67108864 kind=0 key=7 low=0 high=1", ""},
    {"random", "dims=67108864 kind=1 key=7 low=0 high=1", ""},
    {"dropout", "rate=0.5 key=7", "f32[67108864]"},
    {"sgd", "rate=0.1 momentum=0", "f32[67108864] f32[67108864]"},
    {"adam", "rate=0.1 one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7",
     "f32[67108864] f32[67108864] f32[67108864] f32[67108864]"},
    {"fill", "dims=67108864 dtype=f32 value=1", ""},
    {"identity", "", "f32[67108864]"},
    {"resize", "size=256,256 method=1", "f32[32,128,128,64]"},
    {"lstm", "act=tanh gate_act=sigmoid", "f32[64,128,1024] f32[256,1024] f32[64,256] f32[64,256]"},
};

static const sn_gpu_api *api;
static sn_gpu *gpu;
static snug_error err;

static void must(snug_status status) {
    if (status != SNUG_OK) {
        printf("%s\n", err.text);
        exit(1);
    }
}

static void *host_alloc(void *ctx, size_t bytes) {
    (void)ctx;
    return malloc(bytes);
}
static void host_free(void *ctx, void *block, size_t bytes) {
    (void)ctx, (void)bytes;
    free(block);
}
static bool no_fault(void *ctx) {
    (void)ctx;
    return false;
}

typedef struct {
    int n;
    sn_scalar value[16];
} slots;

static snug_status add_slot(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                            snug_error *e) {
    slots *all = ctx;
    (void)e;
    all->value[all->n] = is_key ? (sn_scalar){.key = key} : (sn_scalar){.real = real};
    *slot = all->n++;
    return SNUG_OK;
}

/* Parameters in the order of a call, on the device. */
static sn_scalar *params_of(const sn_opdesc *d, const slots *all) {
    const sn_attr_family *f = sn_ops[d->op].attrs;
    sn_scalar values[SN_MAX_PARAMS] = {{0}};
    void *block;
    int n = 0;
    for (int k = 0; k < f->n_fields; k++)
        for (int i = 0; sn_field_is_param(&f->fields[k]) && i < f->fields[k].n; i++) {
            const int64_t slot = d->attrs.word[f->fields[k].word + i];
            values[n++] = slot < 0 ? (sn_scalar){.key = 0} : all->value[slot];
        }
    must(api->alloc(gpu, sizeof values, &block, &err));
    must(api->copy(gpu, SN_GPU_TO, 0, block, values, sizeof values, &err));
    must(api->finish(gpu, &err));
    return block;
}

static size_t bytes_of(const snug_type *t, size_t opaque) {
    size_t bytes = opaque;
    if (t->dtype != SNUG_OPAQUE)
        must(snug_type_bytes(t, &bytes, &err));
    return bytes;
}

static snug_view view_of(const snug_type *t, size_t opaque, uint64_t key) {
    snug_view v = {.bytes = bytes_of(t, opaque), .type = *t};
    void *host = malloc(v.bytes + 1);
    const size_t n = v.bytes / 4;
    if (t->dtype == SNUG_F32)
        sn_random_fill_f32(SN_RANDOM_UNIFORM, key, 0, n < 1 << 20 ? n : 1 << 20, host);
    for (size_t i = 0; i < n && t->dtype == SNUG_F32; i++)
        ((float *)host)[i] =
            i < 1 << 20 ? 0.1f + 0.9f * ((float *)host)[i] : ((float *)host)[i & ((1 << 20) - 1)];
    for (size_t i = 0; i < n && t->dtype == SNUG_I32; i++)
        ((int32_t *)host)[i] = (int32_t)(sn_philox(key, 0, i).v[0] % (n > 20000 ? LABELS : 10));
    must(api->alloc(gpu, v.bytes, &v.data, &err));
    must(api->copy(gpu, SN_GPU_TO, 0, v.data, host, v.bytes, &err));
    must(api->finish(gpu, &err));
    free(host);
    return v;
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void time_line(int line) {
    sn_opdesc d = {0};
    slots all = {0};
    sn_variant v = {0};
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    const sn_param_maker maker = {&all, add_slot};
    size_t bytes = 0;
    must(sn_op_find(lines[line].op, &d.op, &err));
    must(sn_attrs_parse(d.op, lines[line].attrs, &maker, &d.attrs, &err));
    for (const char *at = lines[line].types; *at; at += strspn(at, " "))
        must(sn_type_parse(at, &at, &d.in[d.n_in++], &err));
    must(sn_op_infer(&d, &err));
    const sn_device *device = api->device(gpu);
    if (device->describe(device, &d, &v, &err) != SNUG_OK) {
        printf("%-18s %s\n", lines[line].op, err.text);
        return;
    }
    for (int i = 0; i < d.n_in; i++, bytes += in[i - 1].bytes)
        in[i] = view_of(&d.in[i], 0, (uint64_t)i);
    for (int i = 0; i < d.n_out; i++, bytes += out[i - 1].bytes)
        out[i] = view_of(&d.out[i], v.opaque_bytes[i], 9);
    sn_call c = {.op = d.op,
                 .attrs = &d.attrs,
                 .n_in = d.n_in,
                 .n_out = d.n_out,
                 .in = in,
                 .out = out,
                 .workspace_bytes = v.workspace_bytes,
                 .full = d.out[0].rank > 0 ? d.out[0].dims[0] : 1};
    sn_scalar *param = params_of(&d, &all);
    c.param = param;
    must(api->alloc(gpu, v.workspace_bytes + 1, &c.workspace, &err));
    must(api->prepare(gpu, &d, v.impl, &c.prepared, &err));
    must(api->run(gpu, 0, &c, &err));
    must(api->finish(gpu, &err));
    const double start = now_us();
    for (int i = 0; i < RUNS; i++)
        must(api->run(gpu, 0, &c, &err));
    must(api->finish(gpu, &err));
    const double us = (now_us() - start) / RUNS;
    printf("%-18s %-28.28s %-46.46s %9.1f us %7.0f GB/s\n", lines[line].op, lines[line].attrs,
           lines[line].types, us, (double)bytes / us * 1e-3);
    fflush(stdout);
    api->release(gpu, d.op, c.prepared);
    for (int i = 0; i < d.n_in; i++)
        api->free(gpu, in[i].data);
    for (int i = 0; i < d.n_out; i++)
        api->free(gpu, out[i].data);
    api->free(gpu, c.workspace);
    api->free(gpu, param);
}

int main(int argc, char **argv) {
    const sn_gpu_options options = {.host = {NULL, host_alloc, host_free, no_fault}};
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "sn_gpu_plugin") : NULL;
    sn_gpu_plugin_fn plugin;
    memcpy(&plugin, &symbol, sizeof plugin);
    if (!symbol || !(api = plugin(SN_GPU_ABI))) {
        printf("no plug-in: %s\n", argc > 1 ? dlerror() : "usage: rows PLUGIN [WORD...]");
        return 1;
    }
    must(api->open(&options, &gpu, &err));
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        bool wanted = argc == 2;
        for (int k = 2; k < argc; k++)
            wanted = wanted || strstr(lines[i].op, argv[k]);
        if (wanted)
            time_line((int)i);
    }
    api->close(gpu, false);
    return 0;
}
