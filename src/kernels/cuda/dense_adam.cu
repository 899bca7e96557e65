/* dense_adam.cu: the family matmul_adam: Adam's update of weights w [M, N] by the gradient x^T
 * dy of x [K, M] and dy [K, N], which is in memory only where it is an output; in the row
 * matmul_adam_dx also dx = dy w^T with the weights as they were, which may lie over x.
 *
 * Few columns: a block owns SPAN rows of w, a thread 1 or 2 neighbours of them, of halves 4,
 * with all columns. It goes through x once, STAGED images at a time: first all of them are read,
 * then overwritten by dx, since the compiler may move no load over a store (256 images: 5.5 ms;
 * 12.6 where 8 images at a time took turns). The gradients then go through shared memory to the
 * update, whose reads and writes are in order. Sums are added in the order of the images.
 *
 * Many columns: the gradient is a product of cuBLASLt into scratch, dx another, and the update a
 * pass over them. Otherwise: three plain kernels, of the averages, dx, and the weights.
 *
 * The same without the update, for a batch that goes in slices and for halves: the gradient
 * alone, dx alone. */
#include "kernels/cuda/dense.h"

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/lib.h"

#include <stdio.h>
#include <string.h>

enum { WEIGHTS, MEAN, SQUARE, X, DY, DX = X };
enum { THREADS = 128, CHUNK = 8, STAGED = 64, RESIDENT = 5 };

typedef struct {
    int64_t M, N, K;
    const void *w, *m, *v, *x, *dy;
    void *w_out, *m_out, *v_out, *dx; /* dx may be x, or NULL */
    void *gradient;                   /* NULL: no output */
    const sn_scalar *param;
    bool wide; /* float4s may be read and written */
} update;

/* As the weights' type has them. */
template <class T> struct rates { T rate, toward1, toward2, epsilon; };

template <class T> static __device__ rates<T> rates_of(const sn_scalar *p) {
    return rates<T>{(T)p[0].real, (T)p[1].real, (T)p[2].real, (T)p[3].real};
}

static inline __device__ float root(float x) {
    return sqrtf(x);
}
static inline __device__ double root(double x) {
    return sqrt(x);
}

/* --- few columns ----------------------------------------------------------------------------- */
template <class T, int N> struct span_of {
    enum { rows = N > 10 ? 1 : sizeof(T) < 4 ? 4 : 2, value = THREADS * rows };
};

/* dy of images [k, k + STAGED), as M's, zeros behind the last. */
template <class M, int N>
static __device__ void stage(const sn_line<M> &dy, int64_t k, int64_t K, float *to) {
    __syncthreads();
    for (int e = (int)threadIdx.x; e < STAGED * N; e += THREADS)
        to[e] = k + e / N < K ? (float)(M)dy[k * N + e] : 0.0f;
    __syncthreads();
}

template <class M, int R> struct __align__(R * sizeof(M)) rows_of {
    M v[R];
};

/* R neighbouring rows of one image, of `left` there are, which R divides where they go at ONCE. */
template <int R, bool ONCE, class M>
static __device__ __forceinline__ void load_rows(const M *x, int64_t left, float v[R]) {
    rows_of<M, R> rows = {};
    if (ONCE && left > 0)
        rows = *(const rows_of<M, R> *)x;
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (!ONCE && r < left)
            rows.v[r] = x[r];
        v[r] = (float)rows.v[r];
    }
}

template <int R, bool ONCE, class M>
static __device__ __forceinline__ void store_rows(M *x, int64_t left, const float v[R]) {
    rows_of<M, R> rows;
#pragma unroll
    for (int r = 0; r < R; r++) {
        rows.v[r] = (M)v[r];
        if (!ONCE && r < left)
            x[r] = rows.v[r];
    }
    if (ONCE && left > 0)
        *(rows_of<M, R> *)x = rows;
}

/* sum += the gradient of n images, x and dy from the first of them on. */
template <int N, int R, bool ONCE, class M>
static __device__ __forceinline__ void add_images(const M *x, int64_t pitch, int64_t left, int n,
                                                  const float *dy, float sum[R][N]) {
#pragma unroll 1
    for (int i = 0; i < n; i += CHUNK) {
        float value[CHUNK][R];
#pragma unroll
        for (int c = 0; c < CHUNK; c++)
            load_rows<R, ONCE>(x + (i + c) * pitch, i + c < n ? left : 0, value[c]);
#pragma unroll
        for (int c = 0; c < CHUNK; c++)
#pragma unroll
            for (int j = 0; j < N; j++)
#pragma unroll
                for (int r = 0; r < R; r++)
                    sum[r][j] += value[c][r] * dy[(i + c) * N + j];
    }
}

/* dx (+)= dy w^T of n images. */
template <int N, int R, bool ONCE, class M>
static __device__ __forceinline__ void back_images(M *dx, int64_t pitch, int64_t left, int n,
                                                   const float *dy, const float w[R][N], bool add) {
#pragma unroll 4
    for (int i = 0; i < n; i++) {
        float back[R] = {}, before[R] = {};
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int r = 0; r < R; r++)
                back[r] += dy[i * N + j] * w[r][j];
        if (add)
            load_rows<R, ONCE>(dx + i * pitch, left, before);
#pragma unroll
        for (int r = 0; r < R; r++)
            back[r] = add ? before[r] + back[r] : back[r];
        store_rows<R, ONCE>(dx + i * pitch, left, back);
    }
}

/* The weights of a thread's rows, by way of shared memory; and what it has of them back there. */
template <class M, int N, int R>
static __device__ void load_weights(const sn_line<M> &from, int64_t first, int n, float *tile,
                                    float w[R][N]) {
    for (int e = (int)threadIdx.x; e < n; e += THREADS)
        tile[e] = (float)(M)from[first + e];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < N; j++)
            w[r][j] = tile[((int)threadIdx.x * R + r) * N + j];
}

template <int N, int R> static __device__ void gather_sums(const float sum[R][N], float *tile) {
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int j = 0; j < N; j++)
            tile[((int)threadIdx.x * R + r) * N + j] = sum[r][j];
    __syncthreads();
}

/* One element's update. */
static __device__ __forceinline__ void step_one(const rates<float> &p, float d, float *w, float *m,
                                                float *v) {
    *m = *m + (d - *m) * p.toward1;
    *v = *v + (d * d - *v) * p.toward2;
    *w = *w - p.rate * *m / (root(*v) + p.epsilon);
}

/* Elements [first, first + n) of the weights, by the gradients g in shared memory; a thread has the
 * loads of several on their way. */
static __device__ void step(const update &u, int64_t first, int n, const float *g) {
    const rates<float> p = rates_of<float>(u.param);
    const float *w_in = (const float *)u.w + first, *m_in = (const float *)u.m + first,
                *v_in = (const float *)u.v + first;
    float *w_out = (float *)u.w_out + first, *m_out = (float *)u.m_out + first,
          *v_out = (float *)u.v_out + first;
    if (u.gradient)
        for (int e = (int)threadIdx.x; e < n; e += THREADS)
            ((float *)u.gradient)[first + e] = g[e];
    const int whole = u.wide && first % 4 == 0 ? n / 4 : 0;
#pragma unroll 5
    for (int e = (int)threadIdx.x; e < whole; e += THREADS) {
        float4 w = ((const float4 *)w_in)[e], m = ((const float4 *)m_in)[e],
               v = ((const float4 *)v_in)[e];
        const float4 d = ((const float4 *)g)[e];
        step_one(p, d.x, &w.x, &m.x, &v.x);
        step_one(p, d.y, &w.y, &m.y, &v.y);
        step_one(p, d.z, &w.z, &m.z, &v.z);
        step_one(p, d.w, &w.w, &m.w, &v.w);
        ((float4 *)w_out)[e] = w;
        ((float4 *)m_out)[e] = m;
        ((float4 *)v_out)[e] = v;
    }
    for (int e = 4 * whole + (int)threadIdx.x; e < n; e += THREADS) {
        float w = w_in[e], m = m_in[e], v = v_in[e];
        step_one(p, g[e], &w, &m, &v);
        w_out[e] = w;
        m_out[e] = m;
        v_out[e] = v;
    }
}

/* What a block owns: rows of w from `row` on, and what a thread has of them. */
template <class T, int N> struct span_at {
    enum { R = span_of<T, N>::rows, SPAN = span_of<T, N>::value };
    int64_t row, first, left; /* left: rows from the thread's first on */
    int n;                    /* weights */
    __device__ span_at(int64_t rows, int64_t span) {
        row = span * SPAN;
        first = row + threadIdx.x * R;
        left = rows - first;
        n = (rows - row < SPAN ? (int)(rows - row) : (int)SPAN) * N;
    }
};

template <int N, bool BACK, bool ONCE>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    update_spans(const __grid_constant__ update u) {
    enum { R = span_of<float, N>::rows, SPAN = span_of<float, N>::value };
    __shared__ __align__(16) float tile[SPAN * N], staged[STAGED * N];
    const int64_t spans = (u.M + SPAN - 1) / SPAN;
    const sn_plain_line<float> dy = {(float *)u.dy}, weights = {(float *)u.w};
    for (int64_t span = blockIdx.x; span < spans; span += gridDim.x) {
        const span_at<float, N> at(u.M, span);
        float sum[R][N] = {}, w[R][N] = {};
        if (BACK)
            load_weights<float, N, R>(weights, at.row * N, at.n, tile, w);
        for (int64_t k = 0; k < u.K; k += STAGED) {
            const int n = u.K - k < STAGED ? (int)(u.K - k) : (int)STAGED;
            const int64_t place = k * u.M + at.first;
            stage<float, N>(dy, k, u.K, staged);
            add_images<N, R, ONCE>((const float *)u.x + place, u.M, at.left, n, staged, sum);
            if (BACK)
                back_images<N, R, ONCE>((float *)u.dx + place, u.M, at.left, n, staged, w, false);
        }
        gather_sums<N, R>(sum, tile);
        step(u, at.row * N, at.n, tile);
        __syncthreads();
    }
}

/* --- its two parts ---------------------------------------------------------------------------- */
template <class T> struct span_job {
    int64_t M, N, K;
    const T *x;
    T *dx;
    sn_line<T> dy, w; /* w: read, or where the gradient goes */
    bool add;
};

/* w (+)= x^T dy */
template <class T, int N, bool ONCE>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    sum_spans(const __grid_constant__ span_job<T> u) {
    enum { R = span_of<T, N>::rows, SPAN = span_of<T, N>::value };
    __shared__ __align__(16) float tile[SPAN * N], staged[STAGED * N];
    const span_at<T, N> at(u.M, blockIdx.x);
    float sum[R][N] = {};
    for (int64_t k = 0; k < u.K; k += STAGED) {
        const int n = u.K - k < STAGED ? (int)(u.K - k) : (int)STAGED;
        stage<T, N>(u.dy, k, u.K, staged);
        add_images<N, R, ONCE>(u.x + k * u.M + at.first, u.M, at.left, n, staged, sum);
    }
    gather_sums<N, R>(sum, tile);
    const int64_t first = at.row * N;
#pragma unroll 5
    for (int e = (int)threadIdx.x; e < at.n; e += THREADS)
        u.w.put(first + e, u.add ? u.w[first + e] + tile[e] : tile[e]);
}

/* x (+)= dy w^T */
template <class T, int N, bool ONCE>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    back_spans(const __grid_constant__ span_job<T> u) {
    enum { R = span_of<T, N>::rows, SPAN = span_of<T, N>::value };
    __shared__ __align__(16) float tile[SPAN * N], staged[STAGED * N];
    const span_at<T, N> at(u.M, blockIdx.x);
    float w[R][N];
    load_weights<T, N, R>(u.w, at.row * N, at.n, tile, w);
    for (int64_t k = 0; k < u.K; k += STAGED) {
        const int n = u.K - k < STAGED ? (int)(u.K - k) : (int)STAGED;
        stage<T, N>(u.dy, k, u.K, staged);
        back_images<N, R, ONCE>(u.dx + k * u.M + at.first, u.M, at.left, n, staged, w, u.add);
    }
}

/* --- any columns ----------------------------------------------------------------------------- */
template <class T> static __global__ void average(const __grid_constant__ update u) {
    const rates<T> p = rates_of<T>(u.param);
    const T *x = (const T *)u.x, *dy = (const T *)u.dy;
    const int64_t count = u.M * u.N;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = i / u.N, column = i % u.N;
        T sum = 0;
        for (int64_t k = 0; k < u.K; k++)
            sum += x[k * u.M + row] * dy[k * u.N + column];
        const T m = ((const T *)u.m)[i], v = ((const T *)u.v)[i];
        ((T *)u.m_out)[i] = m + (sum - m) * p.toward1;
        ((T *)u.v_out)[i] = v + (sum * sum - v) * p.toward2;
        if (u.gradient)
            ((T *)u.gradient)[i] = sum;
    }
}

template <class T> static __global__ void make_dx(const __grid_constant__ update u) {
    const T *w = (const T *)u.w, *dy = (const T *)u.dy;
    const int64_t count = u.K * u.M;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const T *a = dy + i / u.M * u.N, *b = w + i % u.M * u.N;
        T sum = 0;
        for (int64_t n = 0; n < u.N; n++)
            sum += a[n] * b[n];
        ((T *)u.dx)[i] = sum;
    }
}

template <class T> static __global__ void step_weights(const __grid_constant__ update u) {
    const rates<T> p = rates_of<T>(u.param);
    const int64_t count = u.M * u.N;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const T mean = ((const T *)u.m_out)[i], square = ((const T *)u.v_out)[i];
        ((T *)u.w_out)[i] = ((const T *)u.w)[i] - p.rate * mean / (root(square) + p.epsilon);
    }
}

static unsigned grid_of(int64_t n) {
    const int64_t blocks = (n + THREADS - 1) / THREADS, most = 1 << 20;
    return (unsigned)(blocks < most ? blocks : most);
}

template <class T> static void run_plain(const update *u, cudaStream_t stream) {
    const int64_t count = u->M * u->N;
    if (count > 0)
        SN_LAUNCH(average<T>, grid_of(count), THREADS, 0, stream, *u);
    if (u->dx && u->K * u->M > 0)
        SN_LAUNCH(make_dx<T>, grid_of(u->K * u->M), THREADS, 0, stream, *u);
    if (count > 0)
        SN_LAUNCH(step_weights<T>, grid_of(count), THREADS, 0, stream, *u);
}

/* --- the family ------------------------------------------------------------------------------ */
/* Whether a thread may read and write its rows at once. */
static bool at_once(int64_t M, const void *x, const void *dx, int rows, size_t element) {
    const size_t bytes = (size_t)rows * element;
    return M % rows == 0 && (uintptr_t)x % bytes == 0 && (uintptr_t)dx % bytes == 0;
}

template <int N> static void run_spans(const update *u, cudaStream_t stream) {
    enum { R = span_of<float, N>::rows, SOME = R > 1 };
    const int64_t spans = (u->M + span_of<float, N>::value - 1) / span_of<float, N>::value;
    const unsigned grid = (unsigned)(spans < (1 << 20) ? spans : 1 << 20);
    const bool once = SOME && at_once(u->M, u->x, u->dx, R, sizeof(float));
    if (grid > 0 && u->dx && once)
        SN_LAUNCH((update_spans<N, true, SOME>), grid, THREADS, 0, stream, *u);
    else if (grid > 0 && u->dx)
        SN_LAUNCH((update_spans<N, true, false>), grid, THREADS, 0, stream, *u);
    else if (grid > 0 && once)
        SN_LAUNCH((update_spans<N, false, SOME>), grid, THREADS, 0, stream, *u);
    else if (grid > 0)
        SN_LAUNCH((update_spans<N, false, false>), grid, THREADS, 0, stream, *u);
}

/* False: no kernel for so many columns. */
static bool run_few(const update *u, cudaStream_t stream) {
#define RUN(n)                                                                                     \
    if (u->N == n) {                                                                               \
        run_spans<n>(u, stream);                                                                   \
        return true;                                                                               \
    }
    SN_DENSE_WIDTHS(RUN)
#undef RUN
    return false;
}

static bool is_few(int64_t n) {
#define SAME(width)                                                                                \
    if (n == width)                                                                                \
        return true;
    SN_DENSE_WIDTHS(SAME)
#undef SAME
    return false;
}

bool sn_dense_is_long(int64_t M, int64_t N) {
    enum { LEAST = 1 << 16 };
    return M >= LEAST && M < (int64_t)INT32_MAX * THREADS && is_few(N);
}

static unsigned spans_of(int64_t M, int64_t span) {
    return (unsigned)((M + span - 1) / span);
}

template <class T, int N>
static void run_job(const sn_cuda_call *c, const span_job<T> *u, bool back) {
    enum { R = span_of<T, N>::rows, SOME = R > 1 };
    const unsigned grid = spans_of(u->M, span_of<T, N>::value);
    const bool once = SOME && at_once(u->M, u->x, u->dx, R, sizeof(T));
    if (back && once)
        SN_LAUNCH((back_spans<T, N, SOME>), grid, THREADS, 0, c->stream, *u);
    else if (back)
        SN_LAUNCH((back_spans<T, N, false>), grid, THREADS, 0, c->stream, *u);
    else if (once)
        SN_LAUNCH((sum_spans<T, N, SOME>), grid, THREADS, 0, c->stream, *u);
    else
        SN_LAUNCH((sum_spans<T, N, false>), grid, THREADS, 0, c->stream, *u);
}

template <class T> static void run_job_of(const sn_cuda_call *c, const span_job<T> *u, bool back) {
#define RUN(n)                                                                                     \
    if (u->N == n)                                                                                 \
        run_job<T, n>(c, u, back);
    SN_DENSE_WIDTHS(RUN)
#undef RUN
}

template <class T>
static void gradient_of(const sn_cuda_call *c, const sn_dense_product *p,
                        const sn_dense_operands *o) {
    const span_job<T> u = {p->M,
                           p->N,
                           p->K,
                           (const T *)o->a,
                           NULL,
                           sn_line_at<T>(o->b, o->b_type),
                           sn_line_at<T>(o->c, o->c_type),
                           o->add};
    run_job_of(c, &u, false);
}

template <class T>
static void back_of(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o) {
    const span_job<T> u = {p->M,
                           p->N,
                           p->K,
                           NULL,
                           (T *)o->c,
                           sn_line_at<T>(o->a, o->dtype),
                           sn_line_at<T>(o->b, o->b_type),
                           o->add};
    run_job_of(c, &u, true);
}

void sn_dense_gradient(const sn_cuda_call *c, const sn_dense_product *p,
                       const sn_dense_operands *o) {
    if (o->dtype == SNUG_F32)
        gradient_of<float>(c, p, o);
    else if (o->dtype == SNUG_F16)
        gradient_of<sn_half>(c, p, o);
    else
        gradient_of<sn_brain>(c, p, o);
}

void sn_dense_back(const sn_cuda_call *c, const sn_dense_product *p, const sn_dense_operands *o) {
    if (o->dtype == SNUG_F32)
        back_of<float>(c, p, o);
    else if (o->dtype == SNUG_F16)
        back_of<sn_half>(c, p, o);
    else
        back_of<sn_brain>(c, p, o);
}

/* --- many columns ---------------------------------------------------------------------------- */
typedef struct {
    sn_blas_plan *gradient, *back; /* back: with dx */
} products;

/* x^T dy, and dy w^T. */
static sn_blas_product product_of(int64_t M, int64_t N, int64_t K, bool back) {
    sn_blas_product p = {};
    p.batch = 1;
    p.M = back ? K : M;
    p.N = back ? M : N;
    p.K = back ? N : K;
    p.trans_a = !back;
    p.trans_b = back;
    p.a_pitch = back ? N : M;
    p.b_pitch = N;
    p.c_pitch = back ? M : N;
    return p;
}

static size_t gradient_bytes(int64_t M, int64_t N) {
    return ((size_t)(M * N) * sizeof(float) + 255) / 256 * 256;
}

static bool makes_dx(int n_out, const sn_attrs *a) {
    return n_out - (int)a->matmul_adam.gradient > DX;
}

/* Scratch of the library's way: the gradient, then its own; 0: it has none. */
static size_t library_bytes(const sn_gpu *g, const sn_opdesc *d) {
    const int64_t M = d->in[WEIGHTS].dims[0], N = d->in[WEIGHTS].dims[1], K = d->in[X].dims[0];
    const sn_blas_product p = product_of(M, N, K, false), q = product_of(M, N, K, true);
    sn_choice first, second = {};
    if (M * N * K == 0 || gradient_bytes(M, N) > sn_gpu_layout_cap(g) ||
        sn_blas_choose(g, &p, &first, NULL) != SNUG_OK ||
        (makes_dx(d->n_out, &d->attrs) && sn_blas_choose(g, &q, &second, NULL) != SNUG_OK))
        return 0;
    const size_t more = first.workspace_bytes > second.workspace_bytes ? first.workspace_bytes
                                                                       : second.workspace_bytes;
    return gradient_bytes(M, N) + more;
}

static void release(sn_gpu *g, void *prepared) {
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    products *p = (products *)prepared;
    if (!p)
        return;
    sn_blas_drop(g, p->gradient);
    sn_blas_drop(g, p->back);
    host->free(host->ctx, p, sizeof *p);
}

static snug_status prepare(sn_gpu *g, const sn_opdesc *d, const char *impl, void **prepared,
                           snug_error *err) {
    *prepared = NULL;
    if (sn_impl_kind_of(impl) != SN_IMPL_BLAS)
        return SNUG_OK;
    const sn_gpu_host *host = &sn_gpu_options_of(g)->host;
    const int64_t M = d->in[WEIGHTS].dims[0], N = d->in[WEIGHTS].dims[1], K = d->in[X].dims[0];
    const sn_blas_product p = product_of(M, N, K, false), q = product_of(M, N, K, true);
    products *made = (products *)host->alloc(host->ctx, sizeof *made);
    if (!made)
        return sn_fail(err, SNUG_E_MEMORY, "no host memory for a dense layer's plan");
    memset((void *)made, 0, sizeof *made);
    snug_status status = sn_blas_make(g, &p, NULL, &made->gradient, err);
    if (status == SNUG_OK && makes_dx(d->n_out, &d->attrs))
        status = sn_blas_make(g, &q, NULL, &made->back, err);
    if (status == SNUG_OK)
        *prepared = made;
    else
        release(g, made);
    return status;
}

static __global__ void step_all(const __grid_constant__ update u, const float *g) {
    const rates<float> p = rates_of<float>(u.param);
    const int64_t count = u.M * u.N;
#pragma unroll 4
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        float w = ((const float *)u.w)[i], m = ((const float *)u.m)[i], v = ((const float *)u.v)[i];
        step_one(p, g[i], &w, &m, &v);
        ((float *)u.w_out)[i] = w;
        ((float *)u.m_out)[i] = m;
        ((float *)u.v_out)[i] = v;
    }
}

/* First what needs x, then what needs w and may overwrite x, then w. */
static snug_status run_products(const sn_cuda_call *c, const update *u, snug_error *err) {
    const products *p = (const products *)c->call->prepared;
    float *gradient = (float *)(u->gradient ? u->gradient : c->call->workspace);
    void *rest = (char *)c->call->workspace + gradient_bytes(u->M, u->N);
    const sn_blas_operands first = {
        (const float *)u->x, (const float *)u->dy, NULL, gradient, false, rest};
    const sn_blas_operands second = {
        (const float *)u->dy, (const float *)u->w, NULL, (float *)u->dx, false, rest};
    SNUG_TRY(sn_blas_run(c->gpu, p->gradient, &first, c->stream, err));
    if (u->dx)
        SNUG_TRY(sn_blas_run(c->gpu, p->back, &second, c->stream, err));
    SN_LAUNCH(step_all, grid_of(u->M * u->N), THREADS, 0, c->stream, *u, gradient);
    return SNUG_OK;
}

/* --- which ----------------------------------------------------------------------------------- */
static snug_status describe(const sn_gpu *g, const sn_opdesc *d, sn_variant *out, snug_error *err) {
    const snug_dtype dtype = d->in[WEIGHTS].dtype;
    if (dtype != SNUG_F32 && dtype != SNUG_F64)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "no CUDA update of %s", snug_dtype_name(dtype));
    const bool few = dtype == SNUG_F32 && is_few(d->in[WEIGHTS].dims[1]);
    const size_t bytes = dtype == SNUG_F32 && !few ? library_bytes(g, d) : 0;
    out->workspace_bytes = bytes;
    out->speed = SN_SPEED_PRODUCT;
    snprintf(out->impl, sizeof out->impl, "%s",
             few         ? "own:spans"
             : bytes > 0 ? SN_BY_BLAS "products"
                         : "own:plain");
    out->efficiency = few ? 0.4 : bytes > 0 ? 0.6 : 0.005;
    return SNUG_OK;
}

static bool is_aligned(const sn_call *k) {
    bool aligned = true;
    for (int i = 0; i < X; i++)
        aligned =
            aligned && (uintptr_t)k->in[i].data % 16 == 0 && (uintptr_t)k->out[i].data % 16 == 0;
    return aligned;
}

static snug_status run(const sn_cuda_call *c, snug_error *err) {
    const sn_call *k = c->call;
    const int64_t *dims = k->in[WEIGHTS].type.dims;
    const update u = {dims[0],
                      dims[1],
                      k->in[X].type.dims[0],
                      k->in[WEIGHTS].data,
                      k->in[MEAN].data,
                      k->in[SQUARE].data,
                      k->in[X].data,
                      k->in[DY].data,
                      k->out[WEIGHTS].data,
                      k->out[MEAN].data,
                      k->out[SQUARE].data,
                      makes_dx(k->n_out, k->attrs) ? k->out[DX].data : NULL,
                      k->attrs->matmul_adam.gradient ? k->out[k->n_out - 1].data : NULL,
                      k->param,
                      is_aligned(k)};
    if (k->prepared)
        return run_products(c, &u, err);
    if (k->in[WEIGHTS].type.dtype == SNUG_F64)
        run_plain<double>(&u, c->stream);
    else if (!run_few(&u, c->stream))
        run_plain<float>(&u, c->stream);
    return SNUG_OK;
}

extern const sn_cuda_family sn_cuda_matmul_adam;
const sn_cuda_family sn_cuda_matmul_adam = {run, describe, prepare, release};
