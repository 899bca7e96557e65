/* dnn.cu: cuDNN's backend interface, found when the first plan names one of its engines and never
 * linked. A convolution is a small graph of descriptors (convolution, then bias, then relu); the
 * heuristic names engines for it, in the order it believes in.
 *
 * 1. Never an engine that is not deterministic, that wants more scratch than the cap, or that
 * would compile code at run time (half a second each). With exact arithmetic none that uses tensor
 * cores or transforms; halves may use tensor cores, which add their products in f32.
 * 2. impl names engine and knobs (a hash of them), and pins them.
 * 3. Filters are KRSC: others are taken without complaint and give wrong numbers.
 * 4. Never one whose kernels have large stack frames: the driver keeps a frame for every thread the
 * card can hold, 264 MiB for a KiB, and keeps it until the context ends. (Engines that fill memory
 * first cannot be asked: their addresses would have to be real.)
 * 5. Bias and relu ride along where an engine takes them; choose says which do.
 * 6. A choice is of the convolution, the card and the library's version alone: nothing that was
 * asked before counts, and a call that failed for want of memory makes no choice at all. */
#include "kernels/cuda/lib.h"

#ifndef SN_CUDA_EMULATED /* there tests/support/cuda_libraries.cc poses as it */

#include <cudnn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* --- the library ----------------------------------------------------------------------------- */
#define SYMBOLS(X)                                                                                 \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnGetVersion)                                                                             \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

enum { MOST_FRAME = 128 };

typedef struct {
    sn_library base; /* first member: an sn_library_kind's table */
    cudnnHandle_t handle;
#define X(name) decltype(&name) name##_;
    SYMBOLS(X)
#undef X
    sn_answers answers;
    bool starved, failed; /* since this was last looked at */
} library;

static const sn_library_symbol symbols[] = {
#define X(name) {#name, offsetof(library, name##_)},
    SYMBOLS(X)
#undef X
};

/* Whether a call did what it was asked for; one without memory, or that CUDA failed, is noted. */
static bool well(library *l, cudnnStatus_t status) {
    l->failed = l->failed || status == CUDNN_STATUS_EXECUTION_FAILED ||
                status == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER ||
                status == CUDNN_STATUS_EXECUTION_FAILED_CUDART;
    l->starved = l->starved || status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                 status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    return status == CUDNN_STATUS_SUCCESS;
}

static snug_status start(void *table) {
    library *l = (library *)table;
    if (well(l, l->cudnnCreate_(&l->handle)))
        return SNUG_OK;
    return l->starved ? SNUG_E_MEMORY : SNUG_E_UNSUPPORTED;
}

static void stop(void *table) {
    (void)((library *)table)->cudnnDestroy_(((library *)table)->handle);
}

static size_t version(const void *table) {
    return ((const library *)table)->cudnnGetVersion_();
}

static const sn_library_kind kind = {SN_GPU_DNN,      "cuDNN", {"libcudnn.so.9"},
                                     sizeof(library), symbols, sizeof symbols / sizeof symbols[0],
                                     start,           stop,    version};

static library *library_of(const sn_gpu *g) {
    return (library *)sn_library_table(g, &kind);
}

static snug_status want(const sn_gpu *g, library **out, snug_error *err) {
    return sn_library_want(g, &kind, (void **)out, err);
}

void sn_dnn_version(const sn_gpu *g, char *text, size_t size) {
    sn_library_version(g, &kind, text, size);
}

void sn_dnn_close(sn_gpu *g) {
    sn_library_close(g, &kind);
}

/* --- descriptors ----------------------------------------------------------------------------- */
enum { MOST_PARTS = 16 };
enum { ID_X = 1, ID_W, ID_Y, ID_BIAS, ID_SUM, ID_RAW };

/* All descriptors of a plan, destroyed last first. `well`: nothing was refused so far. */
struct sn_dnn_plan {
    int n;
    cudnnBackendDescriptor_t part[MOST_PARTS];
    cudnnBackendDescriptor_t graph, plan;
    bool well, bias, relu;
    size_t workspace_bytes;
};

static cudnnBackendDescriptor_t add(library *l, sn_dnn_plan *p, cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t d = NULL;
    p->well = p->well && p->n < MOST_PARTS && well(l, l->cudnnBackendCreateDescriptor_(type, &d));
    if (p->well)
        p->part[p->n++] = d;
    return d;
}

static void set(library *l, sn_dnn_plan *p, cudnnBackendDescriptor_t d,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                const void *values) {
    p->well = p->well && well(l, l->cudnnBackendSetAttribute_(d, name, type, n, values));
}

static void finish(library *l, sn_dnn_plan *p, cudnnBackendDescriptor_t d) {
    p->well = p->well && well(l, l->cudnnBackendFinalize_(d));
}

static void drop_from(library *l, sn_dnn_plan *p, int first) {
    while (p->n > first)
        (void)l->cudnnBackendDestroyDescriptor_(p->part[--p->n]);
}

static void clear(library *l, sn_dnn_plan *p) {
    drop_from(l, p, 0);
    memset((void *)p, 0, sizeof *p);
}

static cudnnDataType_t type_of(snug_dtype dtype) {
    return dtype == SNUG_F16    ? CUDNN_DATA_HALF
           : dtype == SNUG_BF16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_FLOAT;
}

/* Bytes that every image is aligned to; filters and biases of halves lie in scratch. */
static int64_t alignment(int64_t id, snug_dtype dtype, int64_t stride) {
    const int64_t size = (int64_t)snug_dtype_bytes(dtype);
    const bool whole = dtype != SNUG_F32 && (id == ID_W || id == ID_BIAS);
    return whole || stride * size % 16 == 0 ? 16 : size;
}

/* A tensor of channels last; dims are N, C, H, W. What lies nowhere is f32. */
static cudnnBackendDescriptor_t tensor(library *l, sn_dnn_plan *p, int64_t id, snug_dtype dtype,
                                       const int64_t dims[4], bool is_virtual) {
    const int64_t strides[4] = {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
    const int64_t align = alignment(id, dtype, strides[0]);
    const cudnnDataType_t type = type_of(is_virtual ? SNUG_F32 : dtype);
    cudnnBackendDescriptor_t d = add(l, p, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(l, p, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(l, p, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(l, p, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(l, p, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(l, p, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    if (is_virtual)
        set(l, p, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    finish(l, p, d);
    return d;
}

static cudnnBackendDescriptor_t window(library *l, sn_dnn_plan *p, const sn_dnn_conv *v) {
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t rank = 2, before[2] = {v->pad[0], v->pad[2]}, after[2] = {v->pad[1], v->pad[3]};
    cudnnBackendDescriptor_t d = add(l, p, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(l, p, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(l, p, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(l, p, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &rank);
    set(l, p, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, v->dilation);
    set(l, p, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, v->stride);
    set(l, p, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    set(l, p, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    finish(l, p, d);
    return d;
}

/* What the three operations call their parts. */
typedef struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
} operation;

static const operation operations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnnBackendDescriptor_t pointwise(library *l, sn_dnn_plan *p, cudnnPointwiseMode_t mode,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                          cudnnBackendDescriptor_t y) {
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = add(l, p, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(l, p, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(l, p, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    finish(l, p, how);
    cudnnBackendDescriptor_t d = add(l, p, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    const cudnnBackendAttributeType_t part = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    set(l, p, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, part, 1, &how);
    set(l, p, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, part, 1, &x);
    if (b)
        set(l, p, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, part, 1, &b);
    set(l, p, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, part, 1, &y);
    finish(l, p, d);
    return d;
}

/* The graph: convolution, and after it what p says it takes along. */
static void build_graph(library *l, sn_dnn_plan *p, const sn_dnn_conv *v) {
    const operation *o = &operations[v->kind];
    const int64_t xd[4] = {v->N, v->C, v->H, v->W}, wd[4] = {v->O, v->C, v->kh, v->kw},
                  yd[4] = {v->N, v->O, v->oh, v->ow}, bd[4] = {1, v->O, 1, 1};
    const float one = 1, zero = 0;
    const cudnnBackendAttributeType_t part = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    cudnnBackendDescriptor_t ops[3], x = tensor(l, p, ID_X, v->dtype, xd, false),
                                     w = tensor(l, p, ID_W, v->dtype, wd, false),
                                     y = tensor(l, p, ID_Y, v->dtype, yd, false), raw = y, sum = y;
    int64_t n = 0;
    if (p->bias)
        raw = tensor(l, p, ID_RAW, v->dtype, yd, true);
    if (p->relu)
        sum = tensor(l, p, ID_SUM, v->dtype, yd, true);
    cudnnBackendDescriptor_t how = window(l, p, v), conv = add(l, p, o->type);
    set(l, p, conv, o->x, part, 1, &x);
    set(l, p, conv, o->w, part, 1, &w);
    set(l, p, conv, o->y, part, 1, p->bias ? &raw : &sum);
    set(l, p, conv, o->window, part, 1, &how);
    set(l, p, conv, o->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(l, p, conv, o->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish(l, p, conv);
    ops[n++] = conv;
    if (p->bias)
        ops[n++] = pointwise(l, p, CUDNN_POINTWISE_ADD, raw,
                             tensor(l, p, ID_BIAS, v->dtype, bd, false), sum);
    if (p->relu)
        ops[n++] = pointwise(l, p, CUDNN_POINTWISE_RELU_FWD, sum, NULL, y);
    p->graph = add(l, p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(l, p, p->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &l->handle);
    set(l, p, p->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, part, n, ops);
    finish(l, p, p->graph);
}

/* --- engines --------------------------------------------------------------------------------- */
enum { MOST_WAYS = 32 };

/* The configurations a heuristic named. */
typedef struct {
    int n;
    cudnnBackendDescriptor_t heuristic, way[MOST_WAYS];
} ways;

static void drop_ways(library *l, ways *s) {
    for (int i = 0; i < MOST_WAYS; i++)
        if (s->way[i])
            (void)l->cudnnBackendDestroyDescriptor_(s->way[i]);
    if (s->heuristic)
        (void)l->cudnnBackendDestroyDescriptor_(s->heuristic);
}

static void list_ways(library *l, const sn_dnn_plan *p, ways *s) {
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t n = 0;
    memset((void *)s, 0, sizeof *s);
    bool ok =
        well(l, l->cudnnBackendCreateDescriptor_(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                                                 &s->heuristic)) &&
        well(l, l->cudnnBackendSetAttribute_(s->heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->graph)) &&
        well(l, l->cudnnBackendSetAttribute_(s->heuristic, CUDNN_ATTR_ENGINEHEUR_MODE,
                                             CUDNN_TYPE_HEUR_MODE, 1, &mode)) &&
        well(l, l->cudnnBackendFinalize_(s->heuristic));
    for (int i = 0; ok && i < MOST_WAYS; i++)
        ok = well(l,
                  l->cudnnBackendCreateDescriptor_(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &s->way[i]));
    if (ok &&
        well(l, l->cudnnBackendGetAttribute_(s->heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_WAYS, &n, s->way)))
        s->n = n < MOST_WAYS ? (int)n : (int)MOST_WAYS;
}

/* What an engine says of itself. */
typedef struct {
    int64_t index;
    uint32_t numerical, behavior; /* bits of its notes */
    int64_t workspace;
} facts;

static uint32_t notes(library *l, cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type) {
    int values[16];
    int64_t n = 0;
    uint32_t bits = 0;
    if (!well(l, l->cudnnBackendGetAttribute_(engine, name, type, 16, &n, values)))
        return 0;
    for (int64_t i = 0; i < n && i < 16; i++)
        bits |= 1u << (values[i] & 31);
    return bits;
}

static uint32_t hash_knobs(library *l, cudnnBackendDescriptor_t way) {
    enum { MOST = 32 };
    cudnnBackendDescriptor_t knob[MOST] = {};
    int64_t n = 0, one;
    uint32_t h = 2166136261u;
    for (int i = 0; i < MOST; i++)
        if (!well(l,
                  l->cudnnBackendCreateDescriptor_(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knob[i])))
            knob[i] = NULL;
    if (!knob[MOST - 1] ||
        !well(l, l->cudnnBackendGetAttribute_(way, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &n, knob)))
        n = 0;
    for (int64_t i = 0; i < n && i < MOST; i++) {
        cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)0;
        int64_t value = 0;
        (void)l->cudnnBackendGetAttribute_(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                           CUDNN_TYPE_KNOB_TYPE, 1, &one, &type);
        (void)l->cudnnBackendGetAttribute_(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                           CUDNN_TYPE_INT64, 1, &one, &value);
        h = (h ^ ((uint32_t)type * 1000003u + (uint32_t)value)) * 16777619u;
    }
    for (int i = 0; i < MOST; i++)
        if (knob[i])
            (void)l->cudnnBackendDestroyDescriptor_(knob[i]);
    return h >> 16;
}

static bool read_facts(library *l, cudnnBackendDescriptor_t way, facts *out) {
    cudnnBackendDescriptor_t engine = NULL;
    int64_t n = 0;
    if (!well(l, l->cudnnBackendCreateDescriptor_(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)))
        return false;
    const bool ok =
        well(l, l->cudnnBackendGetAttribute_(way, CUDNN_ATTR_ENGINECFG_ENGINE,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine)) &&
        well(l, l->cudnnBackendGetAttribute_(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                             CUDNN_TYPE_INT64, 1, &n, &out->index)) &&
        well(l, l->cudnnBackendGetAttribute_(way, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
                                             CUDNN_TYPE_INT64, 1, &n, &out->workspace));
    if (ok) {
        out->numerical =
            notes(l, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
        out->behavior = notes(l, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
    }
    (void)l->cudnnBackendDestroyDescriptor_(engine);
    return ok;
}

static bool is_welcome(const sn_gpu *g, snug_dtype dtype, const facts *f) {
    uint32_t never = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC | 1u << CUDNN_NUMERICAL_NOTE_FFT;
    if (dtype != SNUG_F32)
        never |= 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION |
                 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD;
    else if (sn_gpu_is_exact(g))
        never |= 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE |
                 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD;
    return (f->numerical & never) == 0 &&
           (f->behavior & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == 0 &&
           f->workspace >= 0 && (size_t)f->workspace <= sn_gpu_workspace_cap(g);
}

static void name_way(library *l, const facts *f, cudnnBackendDescriptor_t way, char *text,
                     size_t size) {
    snprintf(text, size, SN_BY_DNN "eng%d.%04x", (int)f->index, hash_knobs(l, way) & 0xffff);
}

/* The plan of one way, which it keeps; it may be refused even now. */
static bool build_plan(library *l, sn_dnn_plan *p, cudnnBackendDescriptor_t *way, size_t bytes) {
    const int before = p->n;
    p->plan = add(l, p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(l, p, p->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &l->handle);
    set(l, p, p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        way);
    finish(l, p, p->plan);
    p->workspace_bytes = bytes;
    if (p->well && p->n < MOST_PARTS) {
        p->part[p->n++] = *way;
        *way = NULL;
        return true;
    }
    drop_from(l, p, before);
    p->well = true;
    return false;
}

static cudnnStatus_t execute(library *l, const sn_dnn_plan *plan, const sn_dnn_operands *o,
                             cudaStream_t stream) {
    const int64_t ids[4] = {ID_X, ID_W, ID_Y, ID_BIAS}, n = plan->bias ? 4 : 3;
    void *const data[4] = {o->x, o->w, o->y, (void *)o->bias};
    sn_dnn_plan pack = {}; /* its only part: the addresses */
    pack.well = well(l, l->cudnnSetStream_(l->handle, stream));
    cudnnBackendDescriptor_t d = add(l, &pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(l, &pack, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    set(l, &pack, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data);
    set(l, &pack, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &o->workspace);
    finish(l, &pack, d);
    const cudnnStatus_t status =
        pack.well ? l->cudnnBackendExecute_(l->handle, plan->plan, d) : CUDNN_STATUS_BAD_PARAM;
    clear(l, &pack);
    return status;
}

/* --- frames ---------------------------------------------------------------------------------- */
typedef struct {
    library *l;
    const sn_dnn_plan *plan;
} look;

/* The addresses are nobody's: what is enqueued is not run. */
static void enqueue(void *ctx, cudaStream_t s) {
    const look *k = (const look *)ctx;
    char *const nowhere = (char *)((uintptr_t)1 << 40);
    const sn_dnn_operands o = {nowhere, nowhere, nowhere, nowhere, nowhere};
    (void)well(k->l, execute(k->l, k->plan, &o, s));
}

/* An engine may not start here, and the next one is asked; but nothing goes on where the context
 * went with it. */
static bool is_lost(const library *l, const sn_gpu *g) {
    return l->failed && sn_gpu_is_lost(g);
}

static bool is_frugal(library *l, const sn_gpu *g, const sn_dnn_plan *p) {
    look k = {l, p};
    return sn_gpu_frame(g, enqueue, &k) <= MOST_FRAME;
}

/* --- the choice ------------------------------------------------------------------------------ */
/* The welcome way that impl names, else the first, for the graph p has. False: none. */
static bool pick(library *l, const sn_gpu *g, snug_dtype dtype, sn_dnn_plan *p, const char *impl,
                 char *name, size_t size) {
    ways s;
    list_ways(l, p, &s);
    bool found = false;
    for (int pass = impl ? 0 : 1; pass < 2 && !found; pass++)
        for (int i = 0; i < s.n && !found && !is_lost(l, g); i++) {
            facts f = {};
            if (!read_facts(l, s.way[i], &f) || !is_welcome(g, dtype, &f))
                continue;
            name_way(l, &f, s.way[i], name, size);
            if (pass == 0 && strncmp(impl, name, strlen(name)) != 0)
                continue;
            const int before = p->n;
            found = build_plan(l, p, &s.way[i], (size_t)f.workspace);
            if (found && pass == 1 && !is_frugal(l, g, p)) {
                drop_from(l, p, before);
                found = false;
            }
        }
    drop_ways(l, &s);
    return found;
}

static snug_status refuse(const library *l, const sn_gpu *g, const sn_dnn_conv *v,
                          snug_error *err) {
    if (is_lost(l, g))
        return sn_fail(
            err, SNUG_E_DEVICE,
            "the GPU failed while cuDNN looked for an engine for a convolution of %lld x "
            "%lld x %lld x %lld",
            (long long)v->N, (long long)v->H, (long long)v->W, (long long)v->C);
    if (l->starved)
        return sn_fail(err, SNUG_E_MEMORY,
                       "cuDNN has no memory to look for an engine for a convolution of %lld x %lld "
                       "x %lld x %lld; give the GPU or the host more room",
                       (long long)v->N, (long long)v->H, (long long)v->W, (long long)v->C);
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "cuDNN has no engine for a convolution of %lld x %lld x %lld x %lld by %lld x "
                   "%lld to %lld channels in %zu bytes of scratch",
                   (long long)v->N, (long long)v->H, (long long)v->W, (long long)v->C,
                   (long long)v->kh, (long long)v->kw, (long long)v->O, sn_gpu_workspace_cap(g));
}

static sn_answer_key key_of(const sn_dnn_conv *v) {
    return sn_answer_key{{(int64_t)v->kind + ((int64_t)v->dtype << 8),
                          v->N,
                          v->H,
                          v->W,
                          v->C,
                          v->kh,
                          v->kw,
                          v->O,
                          v->oh,
                          v->ow,
                          v->stride[0],
                          v->stride[1],
                          v->pad[0],
                          v->pad[1],
                          v->pad[2],
                          v->pad[3],
                          v->dilation[0],
                          v->dilation[1],
                          v->bias,
                          v->relu}};
}

/* With as much behind the convolution as an engine takes along. */
static snug_status prepare(library *l, const sn_gpu *g, const sn_dnn_conv *v, const char *impl,
                           sn_dnn_plan *out, char *name, size_t size, snug_error *err) {
    const bool tries[3][2] = {{v->bias, v->relu}, {v->bias, false}, {false, false}};
    l->starved = l->failed = false;
    for (int i = 0; i < 3 && !l->starved && !is_lost(l, g); i++) {
        if (i < 2 && tries[i][0] == tries[i + 1][0] && tries[i][1] == tries[i + 1][1])
            continue;
        memset((void *)out, 0, sizeof *out);
        out->well = true;
        out->bias = tries[i][0];
        out->relu = tries[i][1];
        build_graph(l, out, v);
        if (out->well && pick(l, g, v->dtype, out, impl, name, size) && !l->starved)
            return SNUG_OK;
        clear(l, out);
    }
    return refuse(l, g, v, err);
}

/* --- what others call ------------------------------------------------------------------------ */
static snug_status ask(const sn_gpu *g, void *table, const void *what, sn_choice *out,
                       snug_error *err) {
    library *l = (library *)table;
    sn_dnn_plan plan;
    char name[24];
    SNUG_TRY(prepare(l, g, (const sn_dnn_conv *)what, NULL, &plan, name, sizeof name, err));
    const unsigned mib = (unsigned)((plan.workspace_bytes + 0xfffff) >> 20) % 10000;
    snprintf(out->impl, sizeof out->impl, "%s ws %uMiB", name, mib);
    out->workspace_bytes = plan.workspace_bytes;
    out->bias = plan.bias;
    out->relu = plan.relu;
    clear(l, &plan);
    return SNUG_OK;
}

snug_status sn_dnn_choose(const sn_gpu *g, const sn_dnn_conv *v, sn_choice *out, snug_error *err) {
    library *l;
    const snug_status there = want(g, &l, err);
    if (there != SNUG_OK)
        return sn_choice_absent(g, SN_BY_DNN SN_IMPL_ABSENT, there, out);
    l->starved = l->failed = false;
    const sn_answer_key key = key_of(v);
    const snug_status status = sn_answers_get(g, &l->answers, &key, ask, l, v, out, err);
    return status == SNUG_E_UNSUPPORTED ? refuse(l, g, v, err) : status;
}

snug_status sn_dnn_make(sn_gpu *g, const sn_dnn_conv *v, const char *impl, sn_dnn_plan **out,
                        snug_error *err) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    char name[24];
    library *l;
    SNUG_TRY(want(g, &l, err));
    sn_dnn_plan *plan = (sn_dnn_plan *)host->alloc(host->ctx, sizeof *plan);
    if (!plan)
        return sn_fail(err, SNUG_E_MEMORY, "no host memory for a convolution's plan");
    const snug_status status = prepare(l, g, v, impl, plan, name, sizeof name, err);
    if (status == SNUG_OK)
        *out = plan;
    else
        host->free(host->ctx, plan, sizeof *plan);
    return status;
}

void sn_dnn_drop(sn_gpu *g, sn_dnn_plan *plan) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    if (!plan)
        return;
    clear(library_of(g), plan);
    host->free(host->ctx, plan, sizeof *plan);
}

size_t sn_dnn_workspace(const sn_dnn_plan *plan) {
    return plan->workspace_bytes;
}

bool sn_dnn_takes_bias(const sn_dnn_plan *plan) {
    return plan->bias;
}

bool sn_dnn_takes_relu(const sn_dnn_plan *plan) {
    return plan->relu;
}

snug_status sn_dnn_run(const sn_gpu *g, const sn_dnn_plan *plan, const sn_dnn_operands *o,
                       cudaStream_t stream, snug_error *err) {
    library *l = library_of(g);
    l->failed = false;
    const cudnnStatus_t status = execute(l, plan, o, stream);
    if (well(l, status))
        return SNUG_OK;
    return sn_fail(err, l->failed ? SNUG_E_DEVICE : SNUG_E_INTERNAL,
                   "cuDNN refuses a convolution it named an engine for (%d)", (int)status);
}

#endif
