/* sort.cu: rows in order, or the first k of them, and where each element came from.
 *
 * The order is total: by value, NaN above all numbers, equal ones by their place. Short rows of up
 * to 32 bits are sorted by a block each, in shared memory, as numbers (key, place). Others are
 * sorted all at once, by value and then by row; both sorts keep the order of equals, so each row
 * comes out sorted. */
#include "kernels/cuda/radix.h"
#include "kernels/cuda/widen.h"

/* Numbers in the order of the values; both zeros are one, all NaNs are one. */
static __device__ __forceinline__ uint64_t key_of(float x) {
    const uint32_t u = __float_as_uint(x + 0.0f);
    return x != x ? 0xffffffffu : u >> 31 ? ~u : u | 0x80000000u;
}
static __device__ __forceinline__ uint64_t key_of(double x) {
    const uint64_t u = (uint64_t)__double_as_longlong(x + 0.0), top = (uint64_t)1 << 63;
    return x != x ? ~(uint64_t)0 : u >> 63 ? ~u : u | top;
}
static __device__ __forceinline__ uint64_t key_of(int8_t x) {
    return (uint8_t)x ^ 0x80u;
}
static __device__ __forceinline__ uint64_t key_of(uint8_t x) {
    return x;
}
static __device__ __forceinline__ uint64_t key_of(int32_t x) {
    return (uint32_t)x ^ 0x80000000u;
}
static __device__ __forceinline__ uint64_t key_of(int64_t x) {
    return (uint64_t)x ^ (uint64_t)1 << 63;
}

/* --- short rows ------------------------------------------------------------------------------- */
enum { SHORT = 2048, THREADS = 256 };

static bool is_short(const snug_type *t) {
    return t->dims[t->rank - 1] <= SHORT && snug_dtype_bytes(t->dtype) <= 4;
}

/* Compares and swaps of Batcher's bitonic network over `size` numbers, a power of two. */
static __device__ void sort_shared(uint64_t *x, int size) {
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int i = (int)threadIdx.x; i < size / 2; i += THREADS) {
                const int low = 2 * i - (i & (step - 1)), high = low + step;
                const uint64_t a = x[low], b = x[high];
                if ((a > b) == ((low & run) == 0)) {
                    x[low] = b;
                    x[high] = a;
                }
            }
        }
    __syncthreads();
}

typedef struct {
    int64_t rows, n, k;
    int size; /* the power of two that holds n */
    bool descending, wide;
} short_rows;

template <class T>
static __global__ void __launch_bounds__(THREADS, 2)
    short_kernel(const __grid_constant__ short_rows s, const T *x, T *values, void *places) {
    __shared__ uint64_t numbers[SHORT];
    const uint32_t turn = s.descending ? 0xffffffffu : 0;
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        for (int i = (int)threadIdx.x; i < s.size; i += THREADS)
            numbers[i] =
                i < s.n
                    ? ((uint64_t)((uint32_t)key_of(x[row * s.n + i]) ^ turn) << 32 | (uint32_t)i)
                    : ~(uint64_t)0;
        sort_shared(numbers, s.size);
        for (int64_t i = threadIdx.x; i < s.k; i += THREADS) {
            const int64_t from = (uint32_t)numbers[i];
            values[row * s.k + i] = x[row * s.n + from];
            if (s.wide)
                ((int64_t *)places)[row * s.k + i] = from;
            else
                ((int32_t *)places)[row * s.k + i] = (int32_t)from;
        }
        __syncthreads();
    }
}

template <class T> static snug_status sort_short(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type, *out = &c->call->out[0].type;
    short_rows s = {sn_cuda_count(t, 0, t->rank - 1),
                    t->dims[t->rank - 1],
                    out->dims[out->rank - 1],
                    2,
                    c->call->attrs->sort.descending != 0,
                    c->call->out[1].type.dtype == SNUG_I64};
    while (s.size < s.n)
        s.size *= 2;
    if (s.rows > 0 && s.k > 0)
        SN_LAUNCH((short_kernel<T>), sn_blocks(s.rows, 1), THREADS, 0, c->stream, s, sn_in<T>(c, 0),
                  sn_out<T>(c, 0), c->call->out[1].data);
    return SNUG_OK;
}

/* --- others ----------------------------------------------------------------------------------- */
template <class T> struct value_keys_f {
    const T *x;
    uint64_t *key;
    uint32_t *at;
    bool descending;
    __device__ void operator()(int64_t i) const {
        const uint64_t k = key_of(x[i]);
        key[i] = descending ? ~k : k;
        at[i] = (uint32_t)i;
    }
};

struct row_keys_f {
    uint64_t *key;
    const uint32_t *at;
    sn_divisor width;
    __device__ void operator()(int64_t i) const { key[i] = (uint64_t)sn_div(at[i], width); }
};

template <class T> struct take_f {
    const T *x;
    const uint32_t *at;
    T *values;
    void *places;
    bool wide;
    int64_t n;
    sn_divisor k;
    __device__ void operator()(int64_t i) const {
        const int64_t row = sn_div(i, k), from = at[row * n + i - row * k.d];
        values[i] = x[from];
        if (wide)
            ((int64_t *)places)[i] = from - row * n;
        else
            ((int32_t *)places)[i] = (int32_t)(from - row * n);
    }
};

template <class T> static snug_status sort_as(const sn_cuda_call *c) {
    const snug_type *t = &c->call->in[0].type, *out = &c->call->out[0].type;
    const int64_t count = sn_cuda_elements(&c->call->in[0]), n = t->dims[t->rank - 1],
                  k = out->dims[out->rank - 1];
    sn_radix r = sn_radix_in(c->call->workspace, count);
    if (count == 0 || k == 0)
        return SNUG_OK;
    sn_each(
        c, count,
        value_keys_f<T>{sn_in<T>(c, 0), r.key[0], r.at[0], c->call->attrs->sort.descending != 0});
    sn_radix_sort(c, &r, 8 * (int)sizeof(T));
    sn_each(c, count, row_keys_f{r.key[r.now], r.at[r.now], sn_divisor_of(n)});
    sn_radix_sort(c, &r, sn_bits_below(count / n));
    sn_each(c, sn_cuda_elements(&c->call->out[0]),
            take_f<T>{sn_in<T>(c, 0), r.at[r.now], sn_out<T>(c, 0), c->call->out[1].data,
                      c->call->out[1].type.dtype == SNUG_I64, n, sn_divisor_of(k)});
    return SNUG_OK;
}

static snug_status run_sort(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = sn_dtype_in(c, 0);
    if (is_short(&c->call->in[0].type) && dtype != SNUG_F16 && dtype != SNUG_BF16 &&
        dtype != SNUG_BOOL)
        return dtype == SNUG_F32   ? sort_short<float>(c)
               : dtype == SNUG_I32 ? sort_short<int32_t>(c)
               : dtype == SNUG_I8  ? sort_short<int8_t>(c)
                                   : sort_short<uint8_t>(c);
    return dtype == SNUG_F32   ? sort_as<float>(c)
           : dtype == SNUG_F64 ? sort_as<double>(c)
           : dtype == SNUG_I8  ? sort_as<int8_t>(c)
           : dtype == SNUG_U8  ? sort_as<uint8_t>(c)
           : dtype == SNUG_I32 ? sort_as<int32_t>(c)
           : dtype == SNUG_I64 ? sort_as<int64_t>(c)
                               : sn_cuda_no_kernel(dtype, err);
}

static snug_status describe_sort(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                 snug_error *err) {
    (void)g;
    const int64_t count = sn_cuda_count(&d->in[0], 0, d->in[0].rank);
    if (count >> 32 != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the GPU sorts fewer than 2^32 numbers, not %lld",
                       (long long)count);
    out->workspace_bytes = is_short(&d->in[0]) ? 0 : sn_radix_bytes(count);
    return SNUG_OK;
}
SN_CUDA_WIDENED(sort, run_sort, describe_sort)
