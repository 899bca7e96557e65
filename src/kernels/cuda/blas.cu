/* blas.cu: cuBLASLt, found when the first plan names one of its products and never linked: a net
 * that needs no library does not pay for it. Its matrices lie by columns, so a product by rows is
 * asked for with the operands changed: C^T = B^T A^T.
 *
 * 1. A way is what the heuristic names first under the cap; its numbers stand in impl
 * (algorithm.tile.stages.parts of K) and pin it when the product is made, perhaps for fewer rows.
 * 2. All of its reductions are in a fixed order: none adds by atomics.
 * 3. C is also D: adding into C is a beta of 1, given at the run.
 * 4. Products of halves are summed in f32, parts of K too, and rounded once. */
#include "kernels/cuda/lib.h"

#ifndef SN_CUDA_EMULATED /* there tests/support/cuda_libraries.cc poses as it */

#include <cublasLt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* --- the library ----------------------------------------------------------------------------- */
#define SYMBOLS(X)                                                                                 \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtMatmul)                                                                              \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulAlgoConfigGetAttribute)                                                        \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatrixLayoutSetAttribute)                                                            \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)

typedef struct {
    sn_library base; /* first member: an sn_library_kind's table */
    cublasLtHandle_t handle;
#define X(name) decltype(&name) name##_;
    SYMBOLS(X)
#undef X
    sn_answers answers;
    bool starved; /* since this was last looked at */
} library;

static const sn_library_symbol symbols[] = {
#define X(name) {#name, offsetof(library, name##_)},
    SYMBOLS(X)
#undef X
};

/* Whether a call did what it was asked for; one without memory is noted. */
static bool well(library *l, cublasStatus_t status) {
    l->starved = l->starved || status == CUBLAS_STATUS_ALLOC_FAILED;
    return status == CUBLAS_STATUS_SUCCESS;
}

static snug_status start(void *table) {
    library *l = (library *)table;
    if (well(l, l->cublasLtCreate_(&l->handle)))
        return SNUG_OK;
    return l->starved ? SNUG_E_MEMORY : SNUG_E_UNSUPPORTED;
}

static void stop(void *table) {
    (void)((library *)table)->cublasLtDestroy_(((library *)table)->handle);
}

static size_t version(const void *table) {
    return ((const library *)table)->cublasLtGetVersion_();
}

static const sn_library_kind kind = {
    SN_GPU_BLAS,     "cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
    sizeof(library), symbols,    sizeof symbols / sizeof symbols[0],
    start,           stop,       version};

static library *library_of(const sn_gpu *g) {
    return (library *)sn_library_table(g, &kind);
}

static snug_status want(const sn_gpu *g, library **out, snug_error *err) {
    return sn_library_want(g, &kind, (void **)out, err);
}

void sn_blas_version(const sn_gpu *g, char *text, size_t size) {
    sn_library_version(g, &kind, text, size);
}

void sn_blas_close(sn_gpu *g) {
    sn_library_close(g, &kind);
}

/* --- descriptors ----------------------------------------------------------------------------- */
struct sn_blas_plan {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c; /* the library's: a is our B */
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
    bool bias;
};

static void clear(library *l, sn_blas_plan *p) {
    if (p->desc)
        (void)l->cublasLtMatmulDescDestroy_(p->desc);
    cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            (void)l->cublasLtMatrixLayoutDestroy_(layouts[i]);
    memset((void *)p, 0, sizeof *p);
}

static cudaDataType_t type_of(snug_dtype dtype) {
    return dtype == SNUG_F16 ? CUDA_R_16F : dtype == SNUG_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* rows by columns as the library counts them. */
static bool lay_out(library *l, cublasLtMatrixLayout_t *out, snug_dtype dtype, int64_t rows,
                    int64_t columns, int64_t pitch, const sn_blas_product *p, int64_t step) {
    const int32_t batch = (int32_t)p->batch;
    return well(l, l->cublasLtMatrixLayoutCreate_(out, type_of(dtype), (uint64_t)rows,
                                                  (uint64_t)columns, pitch)) &&
           well(l, l->cublasLtMatrixLayoutSetAttribute_(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                        &batch, sizeof batch)) &&
           well(l, l->cublasLtMatrixLayoutSetAttribute_(
                       *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
}

static bool set(library *l, cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                const void *value, size_t bytes) {
    return well(l, l->cublasLtMatmulDescSetAttribute_(desc, which, value, bytes));
}

static bool describe(library *l, const sn_blas_product *p, bool exact, sn_blas_plan *out) {
    const cublasOperation_t turn_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                            turn_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = p->bias && p->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                        : p->bias          ? CUBLASLT_EPILOGUE_BIAS
                                        : p->relu          ? CUBLASLT_EPILOGUE_RELU
                                                           : CUBLASLT_EPILOGUE_DEFAULT;
    const cublasComputeType_t type =
        exact || p->dtype != SNUG_F32 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    out->bias = p->bias;
    return well(l, l->cublasLtMatmulDescCreate_(&out->desc, type, CUDA_R_32F)) &&
           set(l, out->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turn_a, sizeof turn_a) &&
           set(l, out->desc, CUBLASLT_MATMUL_DESC_TRANSB, &turn_b, sizeof turn_b) &&
           set(l, out->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
           lay_out(l, &out->a, p->dtype, p->trans_b ? p->K : p->N, p->trans_b ? p->N : p->K,
                   p->b_pitch, p, p->b_step) &&
           lay_out(l, &out->b, p->dtype, p->trans_a ? p->M : p->K, p->trans_a ? p->K : p->M,
                   p->a_pitch, p, p->a_step) &&
           lay_out(l, &out->c, p->out, p->N, p->M, p->c_pitch, p, p->c_step);
}

/* --- the choice ------------------------------------------------------------------------------ */
enum { WAYS = 12 };

/* Rows of a slice begin anywhere: what every row is aligned to, 16 bytes at most. */
static uint32_t alignment(snug_dtype dtype, int64_t pitch, int64_t step) {
    const uint32_t size = (uint32_t)snug_dtype_bytes(dtype);
    const int64_t pack = 16 / (int64_t)size;
    return pitch % pack == 0 && step % pack == 0 ? 16 : size;
}

static bool prefer(library *l, const sn_gpu *g, const sn_blas_product *p,
                   cublasLtMatmulPreference_t pref) {
    const size_t cap = sn_gpu_workspace_cap(g);
    const uint32_t a = alignment(p->dtype, p->b_pitch, p->b_step),
                   b = alignment(p->dtype, p->a_pitch, p->a_step),
                   c = alignment(p->out, p->c_pitch, p->c_step),
                   reductions = p->out == SNUG_F32 ? CUBLASLT_REDUCTION_SCHEME_MASK
                                                   : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        const void *value;
        size_t bytes;
    } wishes[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &cap, sizeof cap},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof c},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof c},
                  {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions}};
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
        if (!well(l, l->cublasLtMatmulPreferenceSetAttribute_(pref, wishes[i].which,
                                                              wishes[i].value, wishes[i].bytes)))
            return false;
    return true;
}

static int list_ways(library *l, const sn_gpu *g, const sn_blas_product *p,
                     const sn_blas_plan *plan, cublasLtMatmulHeuristicResult_t *ways) {
    cublasLtMatmulPreference_t pref;
    int n = 0;
    if (!well(l, l->cublasLtMatmulPreferenceCreate_(&pref)))
        return 0;
    if (!prefer(l, g, p, pref) ||
        !well(l, l->cublasLtMatmulAlgoGetHeuristic_(l->handle, plan->desc, plan->a, plan->b,
                                                    plan->c, plan->c, pref, WAYS, ways, &n)))
        n = 0;
    (void)l->cublasLtMatmulPreferenceDestroy_(pref);
    return n;
}

static int number(library *l, const cublasLtMatmulAlgo_t *algo,
                  cublasLtMatmulAlgoConfigAttributes_t which) {
    uint32_t value = 0;
    size_t written;
    if (l->cublasLtMatmulAlgoConfigGetAttribute_(algo, which, &value, sizeof value, &written) !=
        CUBLAS_STATUS_SUCCESS)
        return -1;
    return (int)value;
}

/* "cublaslt:algo66.20.7.1": what decides the order of a sum, and a little more. */
static void name_way(library *l, const cublasLtMatmulAlgo_t *algo, char *text, size_t size) {
    snprintf(text, size, SN_BY_BLAS "algo%d.%d.%d.%d", number(l, algo, CUBLASLT_ALGO_CONFIG_ID),
             number(l, algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
             number(l, algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
             number(l, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

/* The way that impl names, or the first; -1 where there is none. */
static int pick(library *l, const cublasLtMatmulHeuristicResult_t *ways, int n, const char *impl) {
    char text[40];
    int first = -1;
    for (int i = 0; i < n; i++) {
        if (!well(l, ways[i].state))
            continue;
        if (first < 0)
            first = i;
        name_way(l, &ways[i].algo, text, sizeof text);
        const size_t length = strlen(text);
        if (impl && strncmp(impl, text, length) == 0 && (impl[length] == ' ' || !impl[length]))
            return i;
    }
    return first;
}

static snug_status refuse(const library *l, const sn_blas_product *p, snug_error *err) {
    if (l->starved)
        return sn_fail(err, SNUG_E_MEMORY,
                       "cuBLASLt has no memory to look for a product of %lld x %lld x %lld; give "
                       "the GPU or the host more room",
                       (long long)p->M, (long long)p->N, (long long)p->K);
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "cuBLASLt has no way for a product of %lld x %lld x %lld, %lld times",
                   (long long)p->M, (long long)p->N, (long long)p->K, (long long)p->batch);
}

static snug_status prepare(library *l, const sn_gpu *g, const sn_blas_product *p, const char *impl,
                           sn_blas_plan *out, snug_error *err) {
    cublasLtMatmulHeuristicResult_t ways[WAYS];
    memset((void *)out, 0, sizeof *out);
    int n = 0, at = -1;
    if (p->batch <= INT32_MAX && describe(l, p, sn_gpu_is_exact(g), out)) {
        n = list_ways(l, g, p, out, ways);
        at = pick(l, ways, n, impl);
    }
    if (at < 0 || l->starved) {
        clear(l, out);
        return refuse(l, p, err);
    }
    out->algo = ways[at].algo;
    out->workspace_bytes = ways[at].workspaceSize;
    return SNUG_OK;
}

static sn_answer_key key_of(const sn_blas_product *p) {
    return sn_answer_key{{p->batch, p->M, p->N, p->K, p->trans_a, p->trans_b, p->a_pitch,
                          p->b_pitch, p->c_pitch, p->a_step, p->b_step, p->c_step, p->bias, p->relu,
                          (int64_t)p->dtype, (int64_t)p->out}};
}

static snug_status ask(const sn_gpu *g, void *table, const void *what, sn_choice *out,
                       snug_error *err) {
    library *l = (library *)table;
    sn_blas_plan plan;
    char name[26];
    SNUG_TRY(prepare(l, g, (const sn_blas_product *)what, NULL, &plan, err));
    name_way(l, &plan.algo, name, sizeof name);
    const unsigned mib = (unsigned)((plan.workspace_bytes + 0xfffff) >> 20) % 10000;
    snprintf(out->impl, sizeof out->impl, "%s ws %uMiB", name, mib);
    out->workspace_bytes = plan.workspace_bytes;
    clear(l, &plan);
    return SNUG_OK;
}

snug_status sn_blas_choose(const sn_gpu *g, const sn_blas_product *p, sn_choice *out,
                           snug_error *err) {
    library *l;
    const snug_status there = want(g, &l, err);
    if (there != SNUG_OK)
        return sn_choice_absent(g, SN_BY_BLAS SN_IMPL_ABSENT, there, out);
    l->starved = false;
    const sn_answer_key key = key_of(p);
    const snug_status status = sn_answers_get(g, &l->answers, &key, ask, l, p, out, err);
    return status == SNUG_E_UNSUPPORTED ? refuse(l, p, err) : status;
}

snug_status sn_blas_make(sn_gpu *g, const sn_blas_product *p, const char *impl, sn_blas_plan **out,
                         snug_error *err) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    library *l;
    SNUG_TRY(want(g, &l, err));
    l->starved = false;
    sn_blas_plan *plan = (sn_blas_plan *)host->alloc(host->ctx, sizeof *plan);
    if (!plan)
        return sn_fail(err, SNUG_E_MEMORY, "no host memory for a product's plan");
    const snug_status status = prepare(l, g, p, impl, plan, err);
    if (status == SNUG_OK)
        *out = plan;
    else
        host->free(host->ctx, plan, sizeof *plan);
    return status;
}

void sn_blas_drop(sn_gpu *g, sn_blas_plan *plan) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    if (!plan)
        return;
    clear(library_of(g), plan);
    host->free(host->ctx, plan, sizeof *plan);
}

size_t sn_blas_workspace(const sn_blas_plan *plan) {
    return plan->workspace_bytes;
}

snug_status sn_blas_run(const sn_gpu *g, const sn_blas_plan *plan, const sn_blas_operands *o,
                        cudaStream_t stream, snug_error *err) {
    library *l = library_of(g);
    const float one = 1, beta = o->add ? 1.0f : 0.0f;
    if (plan->bias &&
        !set(l, plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &o->bias, sizeof o->bias))
        return sn_fail(err, SNUG_E_INTERNAL, "cuBLASLt takes no bias here");
    const cublasStatus_t status = l->cublasLtMatmul_(
        l->handle, plan->desc, &one, o->b, plan->a, o->a, plan->b, &beta, o->c, plan->c, o->c,
        plan->c, &plan->algo, o->workspace, plan->workspace_bytes, stream);
    if (status != CUBLAS_STATUS_SUCCESS)
        return sn_fail(err,
                       status == CUBLAS_STATUS_EXECUTION_FAILED ? SNUG_E_DEVICE : SNUG_E_INTERNAL,
                       "cuBLASLt refuses a product it named a way for (%d)", (int)status);
    return SNUG_OK;
}

#endif
