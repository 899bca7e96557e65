/* radix.cu: a stable sort by digits of 4 bits (radix.h). A block has CHUNK numbers, a thread EACH
 * neighbours of them. A pass counts each block's digits, makes of the counts where each block puts
 * its first number of a digit, and puts the numbers: within a block in the order of threads, within
 * a thread in order. */
#include "kernels/cuda/radix.h"

enum { DIGITS = 16, BITS = 4, THREADS = 256, EACH = 16, CHUNK = THREADS * EACH };

size_t sn_radix_bytes(int64_t n) {
    const size_t blocks = (size_t)sn_cuda_ceil(n, CHUNK);
    return (size_t)n * 2 * (sizeof(uint64_t) + sizeof(uint32_t)) +
           blocks * DIGITS * sizeof(uint32_t);
}

sn_radix sn_radix_in(void *workspace, int64_t n) {
    sn_radix r = {};
    r.n = n;
    r.key[0] = (uint64_t *)workspace;
    r.key[1] = r.key[0] + n;
    r.at[0] = (uint32_t *)(r.key[1] + n);
    r.at[1] = r.at[0] + n;
    r.counts = r.at[1] + n;
    r.blocks = sn_cuda_ceil(n, CHUNK);
    return r;
}

static __device__ __forceinline__ int digit_of(uint64_t key, int shift) {
    return (int)(key >> shift) & (DIGITS - 1);
}

/* How many numbers of each digit a thread has: its column of `seen`. */
static __device__ __forceinline__ void count_own(const uint64_t *key, int64_t n, int shift,
                                                 uint16_t (*seen)[THREADS]) {
    const int64_t first = (int64_t)blockIdx.x * CHUNK + (int64_t)threadIdx.x * EACH;
    for (int d = 0; d < DIGITS; d++)
        seen[d][threadIdx.x] = 0;
    for (int64_t i = first; i < first + EACH && i < n; i++)
        seen[digit_of(key[i], shift)][threadIdx.x]++;
    __syncthreads();
}

static __global__ void __launch_bounds__(THREADS, 2)
    count_kernel(const uint64_t *key, int64_t n, int shift, uint32_t *counts) {
    __shared__ uint16_t seen[DIGITS][THREADS];
    count_own(key, n, shift, seen);
    if (threadIdx.x >= DIGITS)
        return;
    uint32_t sum = 0;
    for (int i = 0; i < THREADS; i++)
        sum += seen[threadIdx.x][i];
    counts[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

/* Counts become the sums of those before them; one block, a warp's lanes at a time. */
static __global__ void __launch_bounds__(32, 2) sums_kernel(uint32_t *counts, int64_t n) {
    uint32_t before = 0;
    for (int64_t first = 0; first < n; first += 32) {
        const int64_t i = first + threadIdx.x;
        const uint32_t own = i < n ? counts[i] : 0;
        uint32_t sum = own;
#pragma unroll
        for (int by = 1; by < 32; by *= 2) {
            const uint32_t left = __shfl_up_sync(0xffffffffu, sum, by);
            sum += (int)threadIdx.x >= by ? left : 0;
        }
        if (i < n)
            counts[i] = before + sum - own;
        before += __shfl_sync(0xffffffffu, sum, 31);
    }
}

static __global__ void __launch_bounds__(THREADS, 2)
    put_kernel(const uint64_t *key, const uint32_t *at, uint64_t *key_to, uint32_t *at_to,
               int64_t n, int shift, const uint32_t *starts) {
    __shared__ uint16_t seen[DIGITS][THREADS];
    count_own(key, n, shift, seen);
    /* A thread per digit: what comes before each thread's own in this block. */
    if (threadIdx.x < DIGITS) {
        uint16_t sum = 0;
        for (int i = 0; i < THREADS; i++) {
            const uint16_t own = seen[threadIdx.x][i];
            seen[threadIdx.x][i] = sum;
            sum = (uint16_t)(sum + own);
        }
    }
    __syncthreads();
    const int64_t first = (int64_t)blockIdx.x * CHUNK + (int64_t)threadIdx.x * EACH;
    for (int64_t i = first; i < first + EACH && i < n; i++) {
        const int d = digit_of(key[i], shift);
        const uint32_t to = starts[d * gridDim.x + blockIdx.x] + seen[d][threadIdx.x]++;
        key_to[to] = key[i];
        at_to[to] = at[i];
    }
}

void sn_radix_sort(const sn_cuda_call *c, sn_radix *r, int bits) {
    if (r->n < 2)
        return;
    for (int shift = 0; shift < bits; shift += BITS) {
        const int from = r->now, to = 1 - from;
        SN_LAUNCH(count_kernel, (unsigned)r->blocks, THREADS, 0, c->stream, r->key[from], r->n,
                  shift, r->counts);
        SN_LAUNCH(sums_kernel, 1, 32, 0, c->stream, r->counts, r->blocks * DIGITS);
        SN_LAUNCH(put_kernel, (unsigned)r->blocks, THREADS, 0, c->stream, r->key[from], r->at[from],
                  r->key[to], r->at[to], r->n, shift, r->counts);
        r->now = to;
    }
}
