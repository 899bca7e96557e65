/* matmul.cu: the family matmul. Large products of f32 and halves are cuBLASLt's; small ones and
 * those it does not know (f64, leading axes spread in part) are made here, by tiles, so that a
 * small net needs no library; those of a dense layer with very many inputs and few outputs are
 * dense.h's.
 *
 * An element of an own product is the sum of its groups of DEPTH terms, in order; a group's terms
 * are added one by one. Where tiles are too few for the card, groups are blocks of their own and a
 * second kernel adds them, in order: the bits are the same. */
#include "kernels/cuda/matmul.h"

#include "kernels/cuda/dense.h"
#include "kernels/cuda/widen.h"

extern "C" {
#include "kernels/cpu/matrix.h"
}

#include <stdio.h>

enum { DEPTH = SN_PRODUCT_DEPTH, STEP = 16 };

typedef sn_product product;
typedef sn_product_operands operands;

/* --- a product as kernels see it ------------------------------------------------------------- */
/* What a step along axis i of the output's leading axes moves an operand; 0 where it is spread. */
static int64_t step_of(const snug_type *out, const snug_type *t, int i) {
    const int at = t->rank - (out->rank - i); /* the same axis of t */
    return at < 0 || t->dims[at] == 1 ? 0 : sn_type_span(t, at + 1, t->rank);
}

static product product_of(const sn_matmul_shape *s) {
    product p = {};
    p.batch = s->batch;
    p.M = s->M;
    p.N = s->N;
    p.K = s->K;
    p.a_row = s->a_row;
    p.a_col = s->a_col;
    p.b_row = s->b_row;
    p.b_col = s->b_col;
    p.n_leading = s->out.rank - 2;
    for (int i = 0; i < p.n_leading; i++) {
        p.extent[i] = s->out.dims[i];
        p.a_step[i] = step_of(&s->out, &s->a, i);
        p.b_step[i] = step_of(&s->out, &s->b, i);
    }
    p.n_groups = (p.K + DEPTH - 1) / DEPTH;
    return p;
}

/* One matrix B for all rows of a plain A: they are the rows of one matrix. */
static void fold_rows(product *p) {
    int64_t a_step = p->M * p->a_row;
    if (p->a_col != 1)
        return;
    for (int i = p->n_leading - 1; i >= 0; i--) {
        if (p->extent[i] != 1 && (p->b_step[i] != 0 || p->a_step[i] != a_step))
            return;
        a_step *= p->extent[i];
    }
    p->M *= p->batch;
    p->batch = 1;
    p->n_leading = 0;
}

/* --- tiles ----------------------------------------------------------------------------------- */
/* What a thread carries of a tile's STEP x SIZE values: the next step's are on their way while this
 * one's are used. */
template <class M, int SIZE, int THREADS> struct product_load {
    typedef sn_computed<M> T;
    enum { EACH = SIZE * STEP / THREADS };
    T value[EACH];

    /* A thread's values lie apart by a fixed step, along k or along i: as memory has them in order,
     * so that neighbouring threads read neighbouring addresses. */
    static __device__ __forceinline__ int first_i(bool along_k) {
        return along_k ? (int)threadIdx.x / STEP : (int)threadIdx.x % SIZE;
    }
    static __device__ __forceinline__ int first_k(bool along_k) {
        return along_k ? (int)threadIdx.x % STEP : (int)threadIdx.x / SIZE;
    }

    /* from(i, k) for STEP values of k and SIZE of i, of which n and terms are there; else zeros. */
    __device__ __forceinline__ void read(const M *from, int64_t n, int64_t i_step, int64_t terms,
                                         int64_t k_step) {
        const bool along_k = k_step == 1;
        const int i = first_i(along_k), q = first_k(along_k);
        const int more_i = along_k ? THREADS / STEP : 0, more_k = along_k ? 0 : THREADS / SIZE;
        const M *at = from + i * i_step + q * k_step;
        const int64_t jump = more_i * i_step + more_k * k_step;
#pragma unroll
        for (int e = 0; e < EACH; e++)
            value[e] = i + e * more_i < n && q + e * more_k < terms ? (T)at[e * jump] : T(0);
    }

    __device__ __forceinline__ void write(T (*to)[SIZE + 4], int64_t k_step) const {
        const bool along_k = k_step == 1;
        const int i = first_i(along_k), q = first_k(along_k);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            to[along_k ? q : q + e * (THREADS / SIZE)][along_k ? i + e * (THREADS / STEP) : i] =
                value[e];
    }
};

template <class T, int BM, int BN, int TM, int TN>
static __device__ __forceinline__ void multiply_step(const T (*a)[BM + 4], const T (*b)[BN + 4],
                                                     T sum[TM][TN]) {
    const int row = (int)threadIdx.x / (BN / TN) * TM, column = (int)threadIdx.x % (BN / TN) * TN;
#pragma unroll
    for (int q = 0; q < STEP; q++)
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                sum[i][j] += a[q][row + i] * b[q][column + j];
}

template <class M, int BN, int TM, int TN>
static __device__ __forceinline__ void store_tile(const product &p, const operands &o,
                                                  const sn_product_task &t,
                                                  const sn_computed<M> total[TM][TN]) {
    const int row = (int)threadIdx.x / (BN / TN) * TM, column = (int)threadIdx.x % (BN / TN) * TN;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            sn_product_store<M>(p, o, t, t.m + row + i, t.n + column + j, total[i][j]);
}

/* A thread owns TM x TN sums. */
template <class M, int BM, int BN, int TM, int TN>
static __global__ void __launch_bounds__((BM / TM) * (BN / TN), sizeof(M) == 8   ? 1
                                                                : sizeof(M) == 4 ? 3
                                                                                 : 2)
    multiply(const __grid_constant__ product p, const __grid_constant__ operands o,
             int64_t n_tasks) {
    typedef sn_computed<M> T;
    enum { THREADS = (BM / TM) * (BN / TN) };
    __shared__ T a_tile[STEP][BM + 4], b_tile[STEP][BN + 4];
    for (int64_t i = blockIdx.x; i < n_tasks; i += gridDim.x) {
        const sn_product_task t = sn_product_task_of(p, o.partial != NULL, i, BM, BN);
        int64_t a_at, b_at;
        sn_product_entry(p, t.entry, &a_at, &b_at);
        const M *a = (const M *)o.a + a_at + t.m * p.a_row,
                *b = (const M *)o.b + b_at + t.n * p.b_col;
        product_load<M, BM, THREADS> next_a;
        product_load<M, BN, THREADS> next_b;
        T total[TM][TN] = {}, sum[TM][TN] = {};
        int64_t k = t.first * DEPTH;
        const int64_t end = t.last * DEPTH < p.K ? t.last * DEPTH : p.K;
        next_a.read(a + k * p.a_col, p.M - t.m, p.a_row, end - k, p.a_col);
        next_b.read(b + k * p.b_row, p.N - t.n, p.b_col, end - k, p.b_row);
        for (; k < end; k += STEP) {
            __syncthreads();
            next_a.write(a_tile, p.a_col);
            next_b.write(b_tile, p.b_row);
            __syncthreads();
            const int64_t ahead = k + STEP;
            next_a.read(a + ahead * p.a_col, p.M - t.m, p.a_row, end - ahead, p.a_col);
            next_b.read(b + ahead * p.b_row, p.N - t.n, p.b_col, end - ahead, p.b_row);
            multiply_step<T, BM, BN, TM, TN>(a_tile, b_tile, sum);
            if (ahead % DEPTH != 0 && ahead < end)
                continue;
#pragma unroll
            for (int e = 0; e < TM * TN; e++) {
                total[e / TN][e % TN] = total[e / TN][e % TN] + sum[e / TN][e % TN];
                sum[e / TN][e % TN] = 0;
            }
        }
        store_tile<M, BN, TM, TN>(p, o, t, total);
    }
}

/* A block has SUMS outputs: its threads bring partial sums of them together, a chunk at a time; one
 * row of threads adds them, in order. All of a thread's are asked for before the first is stored:
 * the compiler would wait for each. */
enum { SUMS = 32, BRING = 16 };
template <class M>
static __global__ void __launch_bounds__(SUMS *BRING)
    add_groups(const __grid_constant__ product p, const __grid_constant__ operands o) {
    typedef sn_computed<M> T;
    enum { CHUNK = 1024 / sizeof(T), EACH = CHUNK / BRING };
    __shared__ T part[CHUNK][SUMS];
    const int x = (int)threadIdx.x % SUMS, y = (int)threadIdx.x / SUMS;
    const int64_t count = p.batch * p.M * p.N;
    const T *partial = (const T *)o.partial;
    for (int64_t base = (int64_t)blockIdx.x * SUMS; base < count;
         base += (int64_t)gridDim.x * SUMS) {
        const int64_t at = base + x;
        T total = 0;
        for (int64_t first = 0; first < p.n_groups; first += CHUNK) {
            const int n = (int)(p.n_groups - first < CHUNK ? p.n_groups - first : (int64_t)CHUNK);
            T brought[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const int k = y + e * BRING;
                brought[e] = at < count && k < n ? partial[(first + k) * count + at] : T(0);
            }
#pragma unroll
            for (int e = 0; e < EACH; e++)
                part[y + e * BRING][x] = brought[e];
            __syncthreads();
#pragma unroll 8
            for (int k = 0; k < n; k++)
                if (y == 0)
                    total = total + part[k][x];
            __syncthreads();
        }
        if (y == 0 && at < count)
            sn_product_put<M>(p, o, at, at % p.N, total);
    }
}

/* In place over what the library stored. */
template <class L> static __global__ void activate(L c, int64_t n, int act) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        c.put(i, sn_act_of(act, c[i]));
}

/* --- launching them -------------------------------------------------------------------------- */
/* Tiles by the product's form: few columns, few rows, or neither. */
typedef struct {
    int rows, columns;
} tiling;

static tiling tiling_of(const product *p) {
    enum { MANY = 1 << 16 }; /* rows: blocks enough for any card */
    if (p->N <= 16)
        return (tiling){p->batch * p->M < MANY ? 64 : 128, 16};
    if (p->M <= 16)
        return (tiling){16, 128};
    return (tiling){64, 64};
}

static int64_t count_tiles(const product *p) {
    const tiling t = tiling_of(p);
    return p->batch * ((p->M + t.rows - 1) / t.rows) * ((p->N + t.columns - 1) / t.columns);
}

/* Bytes of the sums that wait; 0: tiles make whole sums. */
static size_t partial_bytes(const sn_gpu *g, const product *p, size_t element) {
    const int64_t wanted = 2 * (int64_t)sn_gpu_multiprocessors(g);
    const double bytes =
        (double)p->n_groups * (double)p->batch * (double)p->M * (double)p->N * (double)element;
    if (p->n_groups < 2 || count_tiles(p) >= wanted || bytes > (double)sn_gpu_workspace_cap(g))
        return 0;
    return (size_t)(p->n_groups * p->batch * p->M * p->N) * element;
}

static unsigned grid_of(int64_t n) {
    const int64_t most = 1 << 20;
    return (unsigned)(n < most ? n : most);
}

template <class M>
static void run_tiles(const product *p, const operands *o, bool mma, cudaStream_t stream) {
    const int64_t n_tasks = count_tiles(p) * (o->partial ? p->n_groups : 1);
    const tiling t = tiling_of(p);
    const unsigned grid = grid_of(n_tasks);
    if (mma && t.columns == 64)
        sn_product_mma(p, o, n_tasks, stream);
    else if (t.columns == 16 && t.rows == 64)
        SN_LAUNCH((multiply<M, 64, 16, 2, 4>), grid, 128, 0, stream, *p, *o, n_tasks);
    else if (t.columns == 16)
        SN_LAUNCH((multiply<M, 128, 16, 4, 4>), grid, 128, 0, stream, *p, *o, n_tasks);
    else if (t.rows == 16)
        SN_LAUNCH((multiply<M, 16, 128, 4, 4>), grid, 128, 0, stream, *p, *o, n_tasks);
    else
        SN_LAUNCH((multiply<M, 64, 64, 4, 4>), grid, 256, 0, stream, *p, *o, n_tasks);
    if (o->partial)
        SN_LAUNCH((add_groups<M>), grid_of((p->batch * p->M * p->N + SUMS - 1) / SUMS),
                  SUMS * BRING, 0, stream, *p, *o);
}

/* --- which kernel ---------------------------------------------------------------------------- */
/* As the library sees it; false: its leading axes move the operands in no even steps. */
static bool library_product(const product *p, const sn_attrs_matmul *attrs, bool bias,
                            snug_dtype dtype, snug_dtype result, sn_blas_product *out) {
    int64_t a_step = 0, b_step = 0, a_even = p->M * p->K, b_even = p->K * p->N;
    bool even = true;
    for (int i = p->n_leading - 1; i >= 0; i--) {
        if (p->extent[i] == 1)
            continue;
        const bool inner = a_step == 0 && b_step == 0;
        if (inner) {
            a_step = p->a_step[i];
            b_step = p->b_step[i];
        }
        even = even && (p->a_step[i] == (a_step ? a_even : 0)) &&
               (p->b_step[i] == (b_step ? b_even : 0));
        a_even *= p->extent[i];
        b_even *= p->extent[i];
    }
    out->batch = p->batch;
    out->M = p->M;
    out->N = p->N;
    out->K = p->K;
    out->trans_a = attrs->trans_a != 0;
    out->trans_b = attrs->trans_b != 0;
    out->a_pitch = out->trans_a ? p->M : p->K;
    out->b_pitch = out->trans_b ? p->K : p->N;
    out->c_pitch = p->N;
    out->a_step = a_step;
    out->b_step = b_step;
    out->c_step = p->M * p->N;
    out->bias = bias;
    out->relu = attrs->act == SN_ACT_relu;
    out->dtype = dtype;
    out->out = result;
    return even;
}

/* By what a batch's extent does not change: the weights of a layer, or its two widths where the
 * sum is over the batch; of many products, one. */
static bool is_small(const product *p, const sn_attrs_matmul *attrs) {
    const int64_t most = 1 << 16;
    if (p->batch > 1)
        return p->M * p->K * p->N <= 16 * most;
    return (attrs->trans_a ? p->M : p->K) * p->N <= most || p->K == 0;
}

static product of_types(const sn_attrs_matmul *attrs, const snug_type *a, const snug_type *b,
                        const snug_type *out) {
    const sn_matmul_shape s = sn_matmul_shape_of(attrs, a, b, out);
    product p = product_of(&s);
    fold_rows(&p);
    p.act = (int)attrs->act;
    return p;
}

static sn_dense_product dense_of(const product *p) {
    return (sn_dense_product){p->M, p->N, p->K};
}

/* Long rows of A, a plain B of few columns. */
static bool is_dense(const product *p, snug_dtype dtype) {
    const sn_dense_product d = dense_of(p);
    return dtype != SNUG_F64 && p->batch == 1 && p->a_col == 1 && p->b_col == 1 &&
           sn_dense_takes(&d);
}

/* The gradient of a long B of few columns, from plain A and B; the gradient behind it, of A's
 * type. */
static bool is_long(const product *p, const sn_attrs_matmul *attrs, snug_dtype dtype,
                    snug_dtype result, bool bias) {
    const bool plain = dtype != SNUG_F64 && (attrs->trans_a || result == dtype) && p->batch == 1 &&
                       !bias && p->act == SN_ACT_none;
    if (!plain || p->K == 0)
        return false;
    return attrs->trans_a ? !attrs->trans_b && sn_dense_is_long(p->M, p->N)
                          : attrs->trans_b && sn_dense_is_long(p->N, p->K);
}

static sn_dense_operands dense_operands(const product *p, const operands *o, snug_dtype b_type) {
    return (sn_dense_operands){o->a,   o->b,         o->bias,   o->c,   o->dtype,
                               b_type, o->bias_type, o->c_type, p->add, p->act};
}

static void run_long(const sn_cuda_call *c, const product *p, const operands *o) {
    const bool gradient = p->a_col != 1; /* A is turned */
    const sn_dense_product d = {gradient ? p->M : p->N, gradient ? p->N : p->K,
                                gradient ? p->K : p->M};
    const sn_dense_operands e = dense_operands(p, o, sn_dtype_in(c, 1));
    if (gradient)
        sn_dense_gradient(c, &d, &e);
    else
        sn_dense_back(c, &d, &e);
}

/* --- halves ---------------------------------------------------------------------------------- */
/* What stands in front of a call's scratch: B as halves, where it is f32 beside them; and the bias
 * as the library wants it, in the output's type. */
static size_t whole(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static size_t copied_b(const snug_type *a, const snug_type *b) {
    return a->dtype == b->dtype
               ? 0
               : whole((size_t)sn_cuda_count(b, 0, b->rank) * snug_dtype_bytes(a->dtype));
}

static size_t copied_bias(const snug_type *bias, const snug_type *out) {
    return !bias || bias->dtype == out->dtype
               ? 0
               : whole((size_t)sn_cuda_count(bias, 0, bias->rank) * snug_dtype_bytes(out->dtype));
}

/* Sums of halves are f32. */
static size_t sum_bytes(snug_dtype dtype) {
    return dtype == SNUG_F64 ? sizeof(double) : sizeof(float);
}

static snug_status describe(const sn_gpu *g, const sn_opdesc *d, sn_variant *out, snug_error *err) {
    const snug_dtype dtype = d->in[0].dtype;
    const size_t b = copied_b(&d->in[0], &d->in[1]);
    const size_t bias = copied_bias(d->n_in > 2 ? &d->in[2] : NULL, &d->out[0]);
    if (dtype != SNUG_F32 && dtype != SNUG_F64 && !sn_dtype_is_half(dtype))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "no CUDA product of %s", snug_dtype_name(dtype));
    const product p = of_types(&d->attrs.matmul, &d->in[0], &d->in[1], &d->out[0]);
    sn_blas_product q;
    sn_choice choice;
    out->speed = SN_SPEED_PRODUCT;
    if (is_dense(&p, dtype)) {
        const sn_dense_product e = dense_of(&p);
        out->workspace_bytes = sn_dense_workspace(g, &e);
        snprintf(out->impl, sizeof out->impl, "own:dense");
        return SNUG_OK;
    }
    if (is_long(&p, &d->attrs.matmul, dtype, d->out[0].dtype, d->n_in > 2)) {
        snprintf(out->impl, sizeof out->impl, "own:spans");
        return SNUG_OK;
    }
    if (dtype != SNUG_F64 && !is_small(&p, &d->attrs.matmul) && p.batch * p.M * p.N > 0 &&
        library_product(&p, &d->attrs.matmul, d->n_in > 2, d->in[0].dtype, d->out[0].dtype, &q) &&
        sn_blas_choose(g, &q, &choice, NULL) == SNUG_OK) {
        out->efficiency = sn_library_efficiency(dtype);
        out->workspace_bytes = b + bias + choice.workspace_bytes;
        snprintf(out->impl, sizeof out->impl, "%s", choice.impl);
        return SNUG_OK;
    }
    out->efficiency = 0.05; /* no tensor cores */
    out->workspace_bytes = b + partial_bytes(g, &p, sum_bytes(dtype));
    snprintf(out->impl, sizeof out->impl,
             "own:tiles"); /* in parts or whole: a call finds that out */
    return SNUG_OK;
}

static snug_status prepare(sn_gpu *g, const sn_opdesc *d, const char *impl, void **prepared,
                           snug_error *err) {
    *prepared = NULL;
    if (sn_impl_kind_of(impl) != SN_IMPL_BLAS)
        return SNUG_OK;
    const product p = of_types(&d->attrs.matmul, &d->in[0], &d->in[1], &d->out[0]);
    sn_blas_product q;
    sn_blas_plan *plan;
    if (!library_product(&p, &d->attrs.matmul, d->n_in > 2, d->in[0].dtype, d->out[0].dtype, &q))
        return sn_fail(err, SNUG_E_INTERNAL, "'%s' does not take this product", impl);
    SNUG_TRY(sn_blas_make(g, &q, impl, &plan, err));
    *prepared = plan;
    return SNUG_OK;
}

static void release(sn_gpu *g, void *prepared) {
    sn_blas_drop(g, (sn_blas_plan *)prepared);
}

/* --- a call ---------------------------------------------------------------------------------- */
static snug_status run_library(const sn_cuda_call *c, const product *p, snug_error *err) {
    const sn_call *k = c->call;
    const sn_blas_plan *plan = (const sn_blas_plan *)k->prepared;
    const snug_view *out = &k->out[0], *bias = k->n_in > 2 ? &k->in[2] : NULL;
    const size_t b_bytes = copied_b(&k->in[0].type, &k->in[1].type);
    const size_t bias_bytes = copied_bias(bias ? &bias->type : NULL, &out->type);
    char *const b_copy = (char *)k->workspace, *const bias_copy = b_copy + b_bytes;
    const sn_blas_operands o = {k->in[0].data,
                                b_bytes > 0 ? b_copy : k->in[1].data,
                                bias_bytes > 0 ? bias_copy
                                : bias         ? bias->data
                                               : NULL,
                                out->data,
                                k->accumulate,
                                bias_copy + bias_bytes};
    SNUG_TRY(sn_scratch_check(k, b_bytes + bias_bytes + sn_blas_workspace(plan), err));
    if (b_bytes > 0)
        sn_convert_to(c, &k->in[1], k->in[0].type.dtype, b_copy);
    if (bias_bytes > 0)
        sn_convert_to(c, bias, out->type.dtype, bias_copy);
    SNUG_TRY(sn_blas_run(c->gpu, plan, &o, c->stream, err));
    const int64_t count = p->batch * p->M * p->N;
    const bool left = p->act != SN_ACT_none && p->act != SN_ACT_relu;
    if (left && out->type.dtype == SNUG_F32)
        SN_LAUNCH((activate<sn_plain_line<float>>), grid_of((count + 255) / 256), 256, 0, c->stream,
                  sn_plain_line<float>{(float *)o.c}, count, p->act);
    else if (left)
        SN_LAUNCH((activate<sn_mixed_line>), grid_of((count + 255) / 256), 256, 0, c->stream,
                  sn_line_of<sn_half>(out), count, p->act);
    return SNUG_OK;
}

static snug_status run_own(const sn_cuda_call *c, const product *p, operands o, snug_error *err) {
    const sn_call *k = c->call;
    const snug_dtype dtype = k->in[0].type.dtype;
    const size_t copied = copied_b(&k->in[0].type, &k->in[1].type);
    const size_t bytes = partial_bytes(c->gpu, p, sum_bytes(dtype));
    SNUG_TRY(sn_scratch_check(k, copied, err));
    if (copied > 0) {
        sn_convert_to(c, &k->in[1], dtype, k->workspace);
        o.b = k->workspace;
    }
    const bool in_parts = bytes > 0 && copied + bytes <= k->workspace_bytes;
    const bool mma = dtype != SNUG_F64 && sn_product_mma_takes(c->gpu, p);
    o.partial = in_parts ? (char *)k->workspace + copied : NULL;
    if (dtype == SNUG_F32)
        run_tiles<float>(p, &o, mma, c->stream);
    else if (dtype == SNUG_F64)
        run_tiles<double>(p, &o, mma, c->stream);
    else if (dtype == SNUG_F16)
        run_tiles<sn_half>(p, &o, mma, c->stream);
    else
        run_tiles<sn_brain>(p, &o, mma, c->stream);
    return SNUG_OK;
}

static snug_status run(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    const snug_dtype dtype = k->in[0].type.dtype;
    product p = of_types(&k->attrs->matmul, &k->in[0].type, &k->in[1].type, &k->out[0].type);
    p.add = k->accumulate;
    if (p.add && (k->n_in > 2 || p.act != SN_ACT_none))
        return sn_fail(err, SNUG_E_INTERNAL,
                       "adds into its output only without bias and activation");
    if (p.batch * p.M * p.N == 0)
        return SNUG_OK;
    if (k->prepared)
        return run_library(c, &p, err);
    operands o = {k->in[0].data,  k->in[1].data, k->n_in > 2 ? k->in[2].data : NULL,
                  k->out[0].data, NULL,          dtype,
                  dtype,          dtype};
    o.bias_type = k->n_in > 2 ? k->in[2].type.dtype : dtype;
    o.c_type = k->out[0].type.dtype;
    if (is_dense(&p, dtype)) {
        const sn_dense_product e = dense_of(&p);
        const sn_dense_operands d = dense_operands(&p, &o, k->in[1].type.dtype);
        sn_dense_run(c, &e, &d);
        return SNUG_OK;
    }
    if (is_long(&p, &k->attrs->matmul, dtype, o.c_type, k->n_in > 2)) {
        run_long(c, &p, &o);
        return SNUG_OK;
    }
    return run_own(c, &p, o, err);
}

extern const sn_cuda_family sn_cuda_matmul;
const sn_cuda_family sn_cuda_matmul = {
    run, describe, prepare, release, NULL, SN_HALF_DTYPES, 1u << 1 | 1u << 2 | SN_CUDA_OUT(0)};
