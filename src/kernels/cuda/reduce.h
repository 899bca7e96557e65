/* reduce.h: sums and the like over many elements, in an order that the reduced extent alone
 * decides: an output element has the same bits however many outputs there are and wherever they
 * lie.
 *
 * What is combined is a functor F of N values of type F::value per output:
 *
 *     static F::value start();                          // before the first term
 *     static F::value combine(F::value a, F::value b);
 *     void add(int64_t at, int64_t row, int64_t column, F::value *v) const;
 *                                                       // the term of an element
 *     void put(int64_t o, const F::value *v) const;     // the result of output o
 *     void add_pack(int64_t at, int64_t row, int64_t column, F::value v[SN_PACK][N]) const;
 *                                                       // of neighbours, for sn_reduce_packs alone
 *
 * Columns: the input is [outer, extent, inner] with the middle reduced; neighbouring threads have
 * neighbouring columns, or packs of them. Rows: any axes; threads of a warp or block share an
 * output. Extents beyond a chunk are reduced in two stages, with the chunks' values in the
 * workspace. */
#ifndef SN_KERNELS_CUDA_REDUCE_H
#define SN_KERNELS_CUDA_REDUCE_H

#include "kernels/cuda/own.h"

enum {
    SN_FEW = 16,           /* terms of an output that one thread takes alone */
    SN_STRIP = 32,         /* columns of a block */
    SN_DOWN = 8,           /* rows of a block */
    SN_PACK = 4,           /* columns a thread has at most */
    SN_WARP_ROW = 1024,    /* terms that a warp takes; more are a block's */
    SN_COLUMN_CHUNK = 256, /* least terms of a chunk of columns */
    SN_ROW_CHUNK = 4096,   /* least terms of a chunk of a row */
    SN_CHUNKS = 1024,      /* most chunks */
    SN_FEW_TASKS = 512     /* strips: packs of them would leave a card idle */
};

static inline int64_t sn_chunk_of(int64_t extent, int64_t least) {
    const int64_t share = sn_cuda_ceil(extent, SN_CHUNKS);
    return share > least ? share : least;
}
static inline int64_t sn_chunks_of(int64_t extent, int64_t least) {
    return extent > 0 ? sn_cuda_ceil(extent, sn_chunk_of(extent, least)) : 1;
}

/* --- columns -----------------------------------------------------------------------------------*/
typedef struct {
    int64_t outer, extent, inner, chunk, chunks;
    sn_divisor strips, by_chunks;
} sn_columns;

static inline sn_columns sn_columns_of(int64_t outer, int64_t extent, int64_t inner) {
    sn_columns p = {outer,
                    extent,
                    inner,
                    sn_chunk_of(extent, SN_COLUMN_CHUNK),
                    sn_chunks_of(extent, SN_COLUMN_CHUNK),
                    {},
                    {}};
    p.strips = sn_divisor_of(sn_cuda_ceil(inner, SN_STRIP));
    p.by_chunks = sn_divisor_of(p.chunks);
    return p;
}
/* Bytes of scratch for n values an output. */
static inline size_t sn_columns_bytes(const sn_columns *p, int n) {
    return p->chunks > 1 ? (size_t)(p->outer * p->inner * p->chunks * n) * 8 : 0;
}

/* A chunk of the rows of a strip of columns. The last ones go first: what was written last, or will
 * be read again first, is still in the cache. A task after the last is described as the last. */
typedef struct {
    int64_t outer, column, chunk, first, end; /* of the rows */
} sn_columns_task;
static __device__ __forceinline__ sn_columns_task sn_columns_task_at(const sn_columns &p,
                                                                     int64_t task) {
    const int64_t left = p.outer * p.chunks * p.strips.d - 1 - task, at = left > 0 ? left : 0;
    const int64_t rest = sn_div(at, p.strips), outer = sn_div(rest, p.by_chunks);
    const int64_t chunk = rest - outer * p.chunks, first = chunk * p.chunk;
    const sn_columns_task t = {outer, (at - rest * p.strips.d) * SN_STRIP, chunk, first,
                               first + p.chunk < p.extent ? first + p.chunk : p.extent};
    return t;
}

/* One column of a task from the sums of its SN_DOWN rows, which lie SN_STRIP apart. Partial values
 * of output o lie at (o * chunks + chunk) * N. */
template <class F>
static __device__ __forceinline__ void
sn_columns_put(const F &f, const sn_columns &p, const sn_columns_task &t, int64_t column,
               const typename F::value *const down[F::N], typename F::value *partial) {
    const int64_t o = t.outer * p.inner + column;
    typename F::value v[F::N];
#pragma unroll
    for (int k = 0; k < F::N; k++) {
        v[k] = down[k][0];
#pragma unroll
        for (int i = 1; i < SN_DOWN; i++)
            v[k] = F::combine(v[k], down[k][i * SN_STRIP]);
    }
    if (p.chunks == 1)
        f.put(o, v);
#pragma unroll
    for (int k = 0; k < F::N; k++)
        if (p.chunks > 1)
            partial[(o * p.chunks + t.chunk) * F::N + k] = v[k];
}

/* A thread has W neighbouring columns, a block W tasks: the order of an element's terms is the same
 * for every W. */
template <class F, int W>
static __global__ void __launch_bounds__(SN_STRIP *SN_DOWN, W == 1 ? 2 : 3)
    sn_columns_kernel(const __grid_constant__ F f, const __grid_constant__ sn_columns p,
                      typename F::value *partial) {
    typedef typename F::value V;
    enum { LANES = SN_STRIP / W };
    __shared__ V shared[F::N][W][SN_DOWN][SN_STRIP];
    const int x = (int)threadIdx.x % LANES * W, y = (int)threadIdx.x / LANES % SN_DOWN;
    const int z = (int)threadIdx.x / (LANES * SN_DOWN), mine = (int)threadIdx.x / SN_STRIP,
              below = (int)threadIdx.x % SN_STRIP;
    const int64_t tasks = p.outer * p.chunks * p.strips.d;
    for (int64_t task = (int64_t)blockIdx.x * W; task < tasks; task += (int64_t)gridDim.x * W) {
        sn_columns_task t = sn_columns_task_at(p, task + z);
        V v[W][F::N];
#pragma unroll
        for (int e = 0; e < W * F::N; e++)
            v[e / F::N][e % F::N] = F::start();
        if (task + z < tasks && t.column + x < p.inner) {
            const int64_t at = t.outer * p.extent * p.inner + t.column + x;
#pragma unroll(W == 1 ? 8 : 4)
            for (int64_t row = t.first + y; row < t.end; row += SN_DOWN)
                if constexpr (W == 1)
                    f.add(at + row * p.inner, row, t.column + x, v[0]);
                else
                    f.add_pack(at + row * p.inner, row, t.column + x, v);
        }
#pragma unroll
        for (int e = 0; e < W * F::N; e++)
            shared[e % F::N][z][y][x + e / F::N] = v[e / F::N][e % F::N];
        __syncthreads();
        t = sn_columns_task_at(p, task + mine);
        if (mine < W && task + mine < tasks && t.column + below < p.inner) {
            const V *down[F::N];
#pragma unroll
            for (int k = 0; k < F::N; k++)
                down[k] = &shared[k][mine][0][below];
            sn_columns_put(f, p, t, t.column + below, down, partial);
        }
        __syncthreads();
    }
}

/* A warp's values; every lane gets them. */
template <class F> static __device__ __forceinline__ void sn_warp_fold(typename F::value *v) {
#pragma unroll
    for (int k = 0; k < F::N; k++)
#pragma unroll
        for (int by = 16; by > 0; by /= 2)
            v[k] = F::combine(v[k], __shfl_down_sync(0xffffffffu, v[k], by));
}

/* One warp per output adds its chunks. */
template <class F>
static __global__ void __launch_bounds__(256, 2)
    sn_finish_kernel(const __grid_constant__ F f, int64_t outputs, int64_t chunks,
                     const typename F::value *partial) {
    typedef typename F::value V;
    const int lane = (int)threadIdx.x % 32;
    for (int64_t o = sn_thread() / 32; o < outputs; o += sn_all_threads() / 32) {
        V v[F::N];
#pragma unroll
        for (int k = 0; k < F::N; k++)
            v[k] = F::start();
#pragma unroll 4
        for (int64_t i = lane; i < chunks; i += 32)
#pragma unroll
            for (int k = 0; k < F::N; k++)
                v[k] = F::combine(v[k], partial[(o * chunks + i) * F::N + k]);
        sn_warp_fold<F>(v);
        if (lane == 0)
            f.put(o, v);
    }
}

template <class F>
static void sn_finish(const sn_cuda_call *c, F f, int64_t outputs, int64_t chunks,
                      const void *partial) {
    SN_LAUNCH((sn_finish_kernel<F>), sn_blocks(outputs, 8), 256, 0, c->stream, f, outputs, chunks,
              (const typename F::value *)partial);
}

/* Few terms: one thread per output. */
template <class F> struct sn_few_columns {
    F f;
    int64_t extent;
    sn_divisor inner;
    __device__ void operator()(int64_t o) const {
        const int64_t outer = sn_div(o, inner), column = o - outer * inner.d;
        typename F::value v[F::N];
#pragma unroll
        for (int k = 0; k < F::N; k++)
            v[k] = F::start();
        for (int64_t row = 0; row < extent; row++)
            f.add((outer * extent + row) * inner.d + column, row, column, v);
        f.put(o, v);
    }
};

template <class F, int W>
static void sn_reduce_by(const sn_cuda_call *c, F f, const sn_columns *p, void *partial) {
    const int64_t outputs = p->outer * p->inner;
    if (outputs == 0)
        return;
    if (p->extent <= SN_FEW) {
        sn_each(c, outputs, sn_few_columns<F>{f, p->extent, sn_divisor_of(p->inner)});
        return;
    }
    SN_LAUNCH((sn_columns_kernel<F, W>), sn_blocks(p->outer * p->chunks * p->strips.d, W),
              SN_STRIP * SN_DOWN, 0, c->stream, f, *p, (typename F::value *)partial);
    if (p->chunks > 1)
        sn_finish(c, f, outputs, p->chunks, partial);
}

template <class F>
static void sn_reduce_columns(const sn_cuda_call *c, F f, const sn_columns *p, void *partial) {
    sn_reduce_by<F, 1>(c, f, p, partial);
}
/* The same bits; where the columns divide by SN_PACK, and what F reads is aligned. */
template <class F>
static void sn_reduce_packs(const sn_cuda_call *c, F f, const sn_columns *p, void *partial) {
    if (p->outer * p->chunks * p->strips.d < SN_FEW_TASKS)
        sn_reduce_by<F, 1>(c, f, p, partial);
    else
        sn_reduce_by<F, SN_PACK>(c, f, p, partial);
}

/* --- rows --------------------------------------------------------------------------------------*/
/* Any axes: where an output starts in the input, and where its terms lie behind that. */
typedef struct {
    sn_steps kept, reduced; /* operand 0: the input */
    int64_t chunk, chunks;
    sn_divisor by_chunks;
} sn_rows;

static inline sn_rows sn_rows_of(const sn_steps &kept, const sn_steps &reduced) {
    sn_rows p = {kept,
                 reduced,
                 sn_chunk_of(reduced.count, SN_ROW_CHUNK),
                 sn_chunks_of(reduced.count, SN_ROW_CHUNK),
                 {}};
    p.by_chunks = sn_divisor_of(p.chunks);
    return p;
}
static inline size_t sn_rows_bytes(const sn_rows *p, int n) {
    return p->chunks > 1 ? (size_t)(p->kept.count * p->chunks * n) * 8 : 0;
}

/* `wide`: a block per output and chunk, else a warp per output. */
template <class F, bool wide>
static __global__ void __launch_bounds__(256, 2)
    sn_rows_kernel(const __grid_constant__ F f, const __grid_constant__ sn_rows p,
                   typename F::value *partial) {
    typedef typename F::value V;
    __shared__ V shared[F::N][8];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t tasks = p.kept.count * p.chunks;
    for (int64_t task = wide ? blockIdx.x : sn_thread() / 32; task < tasks;
         task += wide ? gridDim.x : sn_all_threads() / 32) {
        const int64_t o = sn_div(task, p.by_chunks), chunk = task - o * p.chunks;
        const int64_t first = chunk * p.chunk, limit = first + p.chunk;
        const int64_t end = limit < p.reduced.count ? limit : p.reduced.count;
        int64_t base[1], at[1];
        V v[F::N];
        sn_locate<1>(p.kept, o, base);
#pragma unroll
        for (int k = 0; k < F::N; k++)
            v[k] = F::start();
        const int64_t from = first + (wide ? (int)threadIdx.x : lane), by = wide ? 256 : 32;
        const int64_t step = p.reduced.stride[0][0];
        if (p.reduced.rank == 1) {
#pragma unroll 8
            for (int64_t i = from; i < end; i += by)
                f.add(base[0] + i * step, i, o, v);
        } else {
            for (int64_t i = from; i < end; i += by) {
                sn_locate<1>(p.reduced, i, at);
                f.add(base[0] + at[0], i, o, v);
            }
        }
        sn_warp_fold<F>(v);
        if (wide) {
#pragma unroll
            for (int k = 0; k < F::N; k++)
                if (lane == 0)
                    shared[k][warp] = v[k];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < F::N; k++) {
                v[k] = shared[k][0];
                for (int i = 1; i < 8; i++)
                    v[k] = F::combine(v[k], shared[k][i]);
            }
            __syncthreads();
        }
        if ((wide ? (int)threadIdx.x : lane) != 0)
            continue;
        if (p.chunks == 1)
            f.put(o, v);
#pragma unroll
        for (int k = 0; k < F::N; k++)
            if (p.chunks > 1)
                partial[task * F::N + k] = v[k];
    }
}

template <class F> struct sn_few_rows {
    F f;
    sn_rows p;
    __device__ void operator()(int64_t o) const {
        int64_t base[1], at[1];
        typename F::value v[F::N];
        sn_locate<1>(p.kept, o, base);
#pragma unroll
        for (int k = 0; k < F::N; k++)
            v[k] = F::start();
        for (int64_t i = 0; i < p.reduced.count; i++) {
            sn_locate<1>(p.reduced, i, at);
            f.add(base[0] + at[0], i, o, v);
        }
        f.put(o, v);
    }
};

template <class F>
static void sn_reduce_rows(const sn_cuda_call *c, F f, const sn_rows *p, void *partial) {
    typedef typename F::value V;
    if (p->kept.count == 0)
        return;
    if (p->reduced.count <= SN_FEW)
        sn_each(c, p->kept.count, sn_few_rows<F>{f, *p});
    else if (p->reduced.count <= SN_WARP_ROW)
        SN_LAUNCH((sn_rows_kernel<F, false>), sn_blocks(p->kept.count, 8), 256, 0, c->stream, f, *p,
                  (V *)partial);
    else
        SN_LAUNCH((sn_rows_kernel<F, true>), sn_blocks(p->kept.count * p->chunks, 1), 256, 0,
                  c->stream, f, *p, (V *)partial);
    if (p->chunks > 1)
        sn_finish(c, f, p->kept.count, p->chunks, partial);
}

#endif
