/* move.cu: rows that move elements without looking at them: identity (and reshape), assign, fill,
 * broadcast_to, transpose, concat, slice, slice_grad, pad. Only the bytes of an element matter.
 *
 * All but flat copies are one strided copy: a walk with strides for the destination (operand 0) and
 * the source (operand 1). Neighbours that stay neighbours are moved together, up to 16 bytes at a
 * time. Where the source's dense axis is not the destination's, square tiles turn in shared memory.
 * Where a slice starts is a parameter, read on the device. */
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/own.h"

/* --- strided copies --------------------------------------------------------------------------- */
/* A copy of elements of `size` bytes over w; `step` is how far start[k] of the parameters moves the
 * operand `moved`. */
typedef struct {
    sn_cuda_walk w;
    size_t size;
    char *to;
    const char *from;
    const sn_scalar *start; /* NULL: no starts */
    int moved;
    int64_t step[SNUG_MAX_RANK];
} strided;

/* How far the starts move the operand. */
struct moved_by {
    const sn_scalar *start;
    int64_t step[SNUG_MAX_RANK];
    __device__ __forceinline__ int64_t operator()(void) const {
        int64_t shift = 0;
        for (int k = 0; start && k < SNUG_MAX_RANK; k++)
            if (step[k] != 0)
                shift += start[k].key * step[k];
        return shift;
    }
};

/* WIDE: 16 bytes at once, counted as one, whose neighbours are moved one by one where a slice
 * does not start at a multiple of them. */
template <class W, bool WIDE> struct copy_f {
    enum { N = WIDE ? 16 / sizeof(W) : 1 };
    sn_steps s;
    W *to;
    const W *from;
    moved_by shift;
    int moved;
    __device__ void operator()(int64_t i) const {
        int64_t at[2];
        const int64_t by = shift();
        sn_locate<2>(s, i, at);
        W *const t = to + N * at[0] + (moved == 0 ? by : 0);
        const W *const f = from + N * at[1] + (moved == 1 ? by : 0);
        if (WIDE && by % N == 0) {
            *(int4 *)t = *(const int4 *)f;
            return;
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            t[k] = f[k];
    }
};

template <class W, bool WIDE> static void launch(const sn_cuda_call *c, const strided *m) {
    copy_f<W, WIDE> f = {
        sn_cuda_steps(&m->w), (W *)m->to, (const W *)m->from, {m->start, {}}, m->moved};
    memcpy(f.shift.step, m->step, sizeof f.shift.step);
    sn_each(c, f.s.count, f);
}
template <class W> static void launch_copy(const sn_cuda_call *c, const strided *m) {
    launch<W, false>(c, m);
}
template <class W> static void launch_wide(const sn_cuda_call *c, const strided *m) {
    launch<W, true>(c, m);
}

/* Whether n neighbours can be moved as one, wherever a slice starts. */
static bool joins(const strided *m, int64_t n) {
    const int last = m->w.rank - 1;
    const uintptr_t addresses = (uintptr_t)m->to | (uintptr_t)m->from;
    bool ok = addresses % ((size_t)n * m->size) == 0 && m->w.dims[last] % n == 0 &&
              m->w.stride[0][last] == 1 && m->w.stride[1][last] == 1;
    for (int k = 0; k < last; k++)
        ok = ok && m->w.stride[0][k] % n == 0 && m->w.stride[1][k] % n == 0;
    return ok;
}

static bool pairs_up(const strided *m) {
    bool ok = m->size < 16 && joins(m, 2);
    for (int k = 0; k < SNUG_MAX_RANK; k++)
        ok = ok && m->step[k] % 2 == 0;
    return ok;
}

static void count_by(strided *m, int64_t n) {
    const int last = m->w.rank - 1;
    m->w.dims[last] /= n;
    for (int k = 0; k < last; k++) {
        m->w.stride[0][k] /= n;
        m->w.stride[1][k] /= n;
    }
}

static void pair_up(strided *m) {
    count_by(m, 2);
    m->size *= 2;
    for (int k = 0; k < SNUG_MAX_RANK; k++)
        m->step[k] /= 2;
}

/* --- tiles ------------------------------------------------------------------------------------ */
enum { TILE = 32, TILE_ROWS = 8 };

/* `rows` run along the source's dense axis, columns along the destination's. */
typedef struct {
    sn_steps outer; /* over all other axes */
    int64_t rows, columns, to_step, from_step;
    sn_divisor tiles_down, tiles_across;
    int64_t n_tiles;
} turning;

template <class W>
static __global__ void __launch_bounds__(TILE *TILE_ROWS, 2)
    turn_kernel(const __grid_constant__ turning t, W *to, const W *from) {
    __shared__ W tile[TILE][TILE + 1];
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int64_t i = blockIdx.x; i < t.n_tiles; i += gridDim.x) {
        const int64_t down = sn_div(i, t.tiles_across), outer = sn_div(down, t.tiles_down);
        const int64_t column = (i - down * t.tiles_across.d) * TILE;
        const int64_t row = (down - outer * t.tiles_down.d) * TILE;
        int64_t at[2];
        sn_locate<2>(t.outer, outer, at);
        for (int k = y; k < TILE; k += TILE_ROWS)
            if (row + x < t.rows && column + k < t.columns)
                tile[k][x] = from[at[1] + row + x + (column + k) * t.from_step];
        __syncthreads();
        for (int k = y; k < TILE; k += TILE_ROWS)
            if (row + k < t.rows && column + x < t.columns)
                to[at[0] + (row + k) * t.to_step + column + x] = tile[x][k];
        __syncthreads();
    }
}

/* The axis along which the source is dense, when the innermost one is not; -1: no use for tiles. */
static int tile_axis(const strided *m) {
    const int last = m->w.rank - 1;
    if (m->start || m->w.stride[0][last] != 1 || m->w.stride[1][last] <= 1)
        return -1;
    for (int k = 0; k < last; k++)
        if (m->w.stride[1][k] == 1 && m->w.dims[k] > 1)
            return k;
    return -1;
}

template <class W> static void launch_turn(const sn_cuda_call *c, const strided *m, int axis) {
    const int last = m->w.rank - 1;
    sn_cuda_walk outer = m->w;
    outer.dims[axis] = outer.dims[last] = 1;
    sn_cuda_walk_merge(&outer);
    const int64_t down = sn_cuda_ceil(m->w.dims[axis], TILE),
                  across = sn_cuda_ceil(m->w.dims[last], TILE);
    turning t = {
        sn_cuda_steps(&outer), m->w.dims[axis],     m->w.dims[last],       m->w.stride[0][axis],
        m->w.stride[1][last],  sn_divisor_of(down), sn_divisor_of(across), 0};
    t.n_tiles = t.outer.count * down * across;
    if (t.n_tiles > 0)
        SN_LAUNCH((turn_kernel<W>), sn_blocks(t.n_tiles, 1), TILE * TILE_ROWS, 0, c->stream, t,
                  (W *)m->to, (const W *)m->from);
}

#define BY_SIZE(size, f, ...)                                                                      \
    ((size) == 1   ? f<uint8_t>(__VA_ARGS__)                                                       \
     : (size) == 2 ? f<uint16_t>(__VA_ARGS__)                                                      \
     : (size) == 4 ? f<uint32_t>(__VA_ARGS__)                                                      \
                   : f<uint64_t>(__VA_ARGS__))

static void copy_strided(const sn_cuda_call *c, strided m) {
    sn_cuda_walk_merge(&m.w);
    const int axis = tile_axis(&m);
    if (axis >= 0) {
        BY_SIZE(m.size, launch_turn, c, &m, axis);
        return;
    }
    while (pairs_up(&m))
        pair_up(&m);
    const int64_t wide = 16 / (int64_t)m.size;
    if (m.size == 16) {
        launch_copy<int4>(c, &m);
    } else if (joins(&m, wide)) {
        count_by(&m, wide);
        BY_SIZE(m.size, launch_wide, c, &m);
    } else {
        BY_SIZE(m.size, launch_copy, c, &m);
    }
}

/* A copy of dense `from` into `to` as its walk says; more is filled in by the caller. */
static strided strided_of(const snug_view *to, const snug_view *from, const snug_type *over) {
    strided m = {};
    m.w = sn_cuda_walk_over(over);
    m.w.n = 2;
    memcpy(m.w.stride[1], m.w.stride[0], sizeof m.w.stride[1]);
    m.size = snug_dtype_bytes(to->type.dtype);
    m.to = (char *)to->data;
    m.from = (const char *)from->data;
    return m;
}

/* --- flat: copies and constants --------------------------------------------------------------- */
static snug_status run_identity(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const snug_view *from = &c->call->in[0];
    sn_cuda_copy(c, c->call->out[0].data, from->data,
                 sn_cuda_elements(from) * (int64_t)snug_dtype_bytes(from->type.dtype));
    return SNUG_OK;
}

static snug_status run_assign(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const snug_view *from = &c->call->in[1];
    sn_cuda_copy(c, c->call->out[0].data, from->data,
                 sn_cuda_elements(from) * (int64_t)snug_dtype_bytes(from->type.dtype));
    return SNUG_OK;
}

/* The element that holds a value; integers saturate, NaN gives 0 there. */
template <class T> static __device__ __forceinline__ T element_of(double v) {
    const bool counts = (T)-1 > (T)0;
    const double limit = sizeof(T) == 8   ? 9223372036854774784.0
                         : sizeof(T) == 4 ? (counts ? 4294967295.0 : 2147483647.0)
                         : sizeof(T) == 2 ? (counts ? 65535.0 : 32767.0)
                         : counts         ? 255.0
                                          : 127.0;
    const double low = counts ? 0 : sizeof(T) == 8 ? -0x1p63 : -limit - 1;
    const double inside = v > limit ? limit : v < low ? low : v == v ? v : 0;
    return (T)inside;
}
template <> __device__ __forceinline__ float element_of<float>(double v) {
    return (float)v;
}
template <> __device__ __forceinline__ double element_of<double>(double v) {
    return v;
}
template <> __device__ __forceinline__ bool element_of<bool>(double v) {
    return v != 0;
}

template <> __device__ __forceinline__ sn_half element_of<sn_half>(double v) {
    return (sn_half)v;
}
template <> __device__ __forceinline__ sn_brain element_of<sn_brain>(double v) {
    return (sn_brain)v;
}

/* Packs of elements, then the rest. value NULL: zero. */
template <class T, int N> struct __align__(sizeof(T) * N) pack_of {
    T v[N];
};
template <class T, int N> struct fill_f {
    pack_of<T, N> *to;
    const sn_scalar *value;
    __device__ void operator()(int64_t i) const {
        const T e = element_of<T>(value ? value->real : 0);
        pack_of<T, N> p;
#pragma unroll
        for (int k = 0; k < N; k++)
            p.v[k] = e;
        to[i] = p;
    }
};

template <class T> static void launch_fill(const sn_cuda_call *c, const sn_scalar *value) {
    enum { N = 16 / sizeof(T) };
    T *to = sn_out<T>(c, 0);
    const int64_t n = sn_cuda_elements(&c->call->out[0]), packs = sn_aligned(to) ? n / N : 0;
    sn_each(c, packs, fill_f<T, N>{(pack_of<T, N> *)to, value});
    sn_each(c, n - packs * N, fill_f<T, 1>{(pack_of<T, 1> *)(to + packs * N), value});
}

typedef void (*fill_run)(const sn_cuda_call *c, const sn_scalar *value);
static fill_run fill_of(snug_dtype dtype) {
    return dtype == SNUG_F32    ? launch_fill<float>
           : dtype == SNUG_F64  ? launch_fill<double>
           : dtype == SNUG_F16  ? launch_fill<sn_half>
           : dtype == SNUG_BF16 ? launch_fill<sn_brain>
           : dtype == SNUG_I8   ? launch_fill<int8_t>
           : dtype == SNUG_U8   ? launch_fill<uint8_t>
           : dtype == SNUG_I16  ? launch_fill<int16_t>
           : dtype == SNUG_U16  ? launch_fill<uint16_t>
           : dtype == SNUG_I32  ? launch_fill<int32_t>
           : dtype == SNUG_U32  ? launch_fill<uint32_t>
           : dtype == SNUG_I64  ? launch_fill<int64_t>
           : dtype == SNUG_BOOL ? launch_fill<bool>
                                : (fill_run)NULL;
}

static snug_status fill_output(const sn_cuda_call *c, const sn_scalar *value, snug_error *err) {
    const fill_run run = fill_of(c->call->out[0].type.dtype);
    if (!run)
        return sn_cuda_no_kernel(c->call->out[0].type.dtype, err);
    run(c, value);
    return SNUG_OK;
}

/* Of rows whose output is filled, at first. */
static snug_status describe_filled(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                   snug_error *err) {
    (void)g, (void)out;
    return fill_of(d->out[0].dtype) ? SNUG_OK : sn_cuda_no_kernel(d->out[0].dtype, err);
}

static snug_status run_fill(const sn_cuda_call *c, snug_error *err) {
    return fill_output(c, &c->call->param[0], err);
}

/* --- broadcast_to, transpose, concat ---------------------------------------------------------- */
static snug_status run_broadcast(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const snug_view *to = &c->call->out[0], *from = &c->call->in[0];
    strided m = strided_of(to, from, &to->type);
    m.w.n = 1;
    sn_cuda_walk_broadcast(&m.w, &from->type);
    copy_strided(c, m);
    return SNUG_OK;
}

static snug_status run_transpose(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const snug_view *to = &c->call->out[0], *from = &c->call->in[0];
    int64_t dense[SNUG_MAX_RANK] = {0};
    strided m = strided_of(to, from, &to->type);
    sn_cuda_dense(&from->type, dense);
    for (int k = 0; k < m.w.rank; k++)
        m.w.stride[1][k] = dense[c->call->attrs->perm.perm.v[k]];
    copy_strided(c, m);
    return SNUG_OK;
}

/* Input i into a part of the output that starts at element `at`. */
static strided into_part(const sn_cuda_call *c, int i, int64_t at) {
    const snug_view *to = &c->call->out[0], *from = &c->call->in[i];
    strided m = strided_of(to, from, &from->type);
    sn_cuda_dense(&to->type, m.w.stride[0]);
    m.to += at * (int64_t)m.size;
    return m;
}

static snug_status run_concat(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const int64_t axis = c->call->attrs->axis.axis;
    int64_t dense[SNUG_MAX_RANK] = {0}, at = 0;
    sn_cuda_dense(&c->call->out[0].type, dense);
    for (int i = 0; i < c->call->n_in; i++) {
        copy_strided(c, into_part(c, i, at));
        at += c->call->in[i].type.dims[axis] * dense[axis];
    }
    return SNUG_OK;
}

/* --- slice, slice_grad, pad ------------------------------------------------------------------- */
/* Operand `moved` steps over every strides-th element of `whole`, from start[k] on. An axis that is
 * taken whole starts at 0. */
static void cut_out(const sn_cuda_call *c, strided *m, int moved, const snug_type *whole,
                    const sn_list *strides) {
    const snug_type *part = moved == 1 ? &c->call->out[0].type : &c->call->in[0].type;
    int64_t dense[SNUG_MAX_RANK] = {0};
    sn_cuda_dense(whole, dense);
    m->start = c->call->param;
    m->moved = moved;
    for (int k = 0; k < whole->rank; k++) {
        const int64_t by = strides->n > 0 ? strides->v[k] : 1;
        m->w.stride[moved][k] = by * dense[k];
        m->step[k] = part->dims[k] == whole->dims[k] && by == 1 ? 0 : dense[k];
    }
}

static snug_status run_slice(const sn_cuda_call *c, snug_error *err) {
    (void)err;
    const snug_view *to = &c->call->out[0], *from = &c->call->in[0];
    strided m = strided_of(to, from, &to->type);
    cut_out(c, &m, 1, &from->type, &c->call->attrs->slice.strides);
    copy_strided(c, m);
    return SNUG_OK;
}

static snug_status run_slice_grad(const sn_cuda_call *c, snug_error *err) {
    const snug_view *to = &c->call->out[0], *from = &c->call->in[0];
    strided m = strided_of(to, from, &from->type);
    cut_out(c, &m, 0, &to->type, &c->call->attrs->slice_grad.strides);
    SNUG_TRY(fill_output(c, NULL, err));
    copy_strided(c, m);
    return SNUG_OK;
}

static snug_status run_pad(const sn_cuda_call *c, snug_error *err) {
    int64_t dense[SNUG_MAX_RANK] = {0}, at = 0;
    sn_cuda_dense(&c->call->out[0].type, dense);
    for (int k = 0; k < c->call->out[0].type.rank; k++)
        at += c->call->attrs->pad.before.v[k] * dense[k];
    SNUG_TRY(fill_output(c, &c->call->param[0], err));
    if (sn_cuda_elements(&c->call->in[0]) > 0)
        copy_strided(c, into_part(c, 0, at));
    return SNUG_OK;
}

SN_CUDA_FAMILY(identity, run_identity, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(assign, run_assign, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(fill, run_fill, describe_filled, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(broadcast_to, run_broadcast, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(transpose, run_transpose, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(concat, run_concat, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(slice, run_slice, NULL, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(slice_grad, run_slice_grad, describe_filled, NULL, NULL, NULL, SN_STORED_DTYPES)
SN_CUDA_FAMILY(pad, run_pad, describe_filled, NULL, NULL, NULL, SN_STORED_DTYPES)
