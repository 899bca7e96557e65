/* cuda_emulator.cc: grids run thread by thread (cuda_emulator.h). A fiber is a context with a stack
 * of its own; the scheduler goes round the fibers of a block and resumes those that may go on:
 *
 *     READY           runs
 *     AT_BLOCK        goes on when every living fiber of the block is AT_BLOCK
 *     AT_WARP         goes on when every living fiber of its warp is AT_WARP
 *     ENDED
 *
 * A round in which nobody could run is a deadlock of the kernel. Contexts are only for a fiber's
 * start: switches after that are jumps, which ask the system for nothing. */
#include "cuda_emulator.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
unsigned char *sn_emulated_shared;
int64_t sn_emulated_launches;

enum { MAX_THREADS = 1024, STACK = 64 * 1024, MAX_SHARED = 228 * 1024, RUBBISH = 0xa7 };
typedef enum { READY, AT_BLOCK, AT_WARP, ENDED } fiber_state;

typedef jmp_buf place; /* where a jump goes */

typedef struct {
    ucontext_t context;
    place resume;
    bool started;
    fiber_state state;
} fiber;

static fiber fibers[MAX_THREADS];
static unsigned char *stacks, *shared_memory;
static place scheduler;
static int n_fibers, current; /* n_fibers 0: threads run apart */
static sn_emulated_body run_body;
static void *run_ctx;
/* By parity of the warp's exchanges, so that a lane may begin the next before all have read. */
static uint64_t given[2][MAX_THREADS];
static unsigned turn[MAX_THREADS];

static void die(const char *what) {
    fprintf(stderr, "cuda emulator: %s (block %u,%u,%u thread %d)\n", what, blockIdx.x, blockIdx.y,
            blockIdx.z, current);
    abort();
}

static void place_thread(int i) {
    current = i;
    threadIdx.x = (unsigned)i % blockDim.x;
    threadIdx.y = (unsigned)i / blockDim.x % blockDim.y;
    threadIdx.z = (unsigned)i / blockDim.x / blockDim.y;
}

static void fiber_main(void) {
    run_body(run_ctx);
    fibers[current].state = ENDED;
    _longjmp(scheduler, 1);
}

/* Callers must not trust registers across a jump. */
#if defined(__clang__)
#define NO_INLINE __attribute__((noinline))
#else
#define NO_INLINE __attribute__((noipa))
#endif

/* Runs a fiber until it waits or ends. */
static void NO_INLINE resume(fiber *f) {
    if (_setjmp(scheduler))
        return;
    if (f->started)
        _longjmp(f->resume, 1);
    f->started = true;
    setcontext(&f->context);
}

/* Back to the scheduler, until it resumes this fiber. */
static void NO_INLINE leave(fiber *f) {
    if (!_setjmp(f->resume))
        _longjmp(scheduler, 1);
}

static void wait_as(fiber_state state) {
    if (n_fibers == 0)
        die("a kernel launched apart waits");
    fibers[current].state = state;
    leave(&fibers[current]);
}

void __syncthreads(void) {
    wait_as(AT_BLOCK);
}

void __syncwarp(unsigned mask) {
    (void)mask;
    wait_as(AT_WARP);
}

unsigned sn_emulated_lane(void) {
    return (unsigned)current % 32;
}

uint64_t sn_emulated_exchange(uint64_t value, int from) {
    const unsigned parity = turn[current]++ % 2;
    given[parity][current] = value;
    wait_as(AT_WARP);
    return given[parity][current / 32 * 32 + (from & 31)];
}

unsigned __ballot_sync(unsigned mask, int yes) {
    (void)mask;
    const unsigned parity = turn[current]++ % 2;
    given[parity][current] = yes != 0;
    wait_as(AT_WARP);
    const int first = current / 32 * 32;
    unsigned votes = 0;
    for (int i = 0; i < 32 && first + i < n_fibers; i++)
        if (fibers[first + i].state != ENDED && given[parity][first + i] == 1)
            votes |= 1u << i;
    return votes;
}

/* Wakes [first, end) when all that live wait as `state`. */
static bool release(int first, int end, fiber_state state) {
    bool any = false;
    for (int i = first; i < end; i++) {
        if (fibers[i].state != state && fibers[i].state != ENDED)
            return false;
        any = any || fibers[i].state == state;
    }
    for (int i = first; i < end; i++)
        if (fibers[i].state == state)
            fibers[i].state = READY;
    return any;
}

static void run_fibers(void) {
    for (int alive = n_fibers; alive > 0;) {
        bool moved = false;
        alive = 0;
        for (int i = 0; i < n_fibers; i++) {
            if (fibers[i].state == READY) {
                place_thread(i);
                resume(&fibers[i]);
                moved = true;
            }
            alive += fibers[i].state != ENDED;
        }
        for (int i = 0; i < n_fibers; i += 32)
            moved |= release(i, i + 32 < n_fibers ? i + 32 : n_fibers, AT_WARP);
        moved |= release(0, n_fibers, AT_BLOCK);
        if (alive > 0 && !moved)
            die("a block hangs: its threads wait for different things");
    }
}

static void run_block(int n_threads, bool apart) {
    n_fibers = apart ? 0 : n_threads;
    for (int i = 0; apart && i < n_threads; i++) {
        place_thread(i);
        run_body(run_ctx);
    }
    if (apart)
        return;
    memset(shared_memory, RUBBISH, MAX_SHARED);
    memset(given, RUBBISH, sizeof given);
    for (int i = 0; i < n_threads; i++) {
        fiber *f = &fibers[i];
        f->state = READY;
        f->started = false;
        turn[i] = 0;
        getcontext(&f->context);
        f->context.uc_stack.ss_sp = stacks + (size_t)i * STACK;
        f->context.uc_stack.ss_size = STACK;
        f->context.uc_link = NULL;
        makecontext(&f->context, fiber_main, 0);
    }
    run_fibers();
}

void sn_emulate(dim3 grid, dim3 block, size_t shared_bytes, bool apart, sn_emulated_body body,
                void *ctx) {
    const unsigned n_threads = block.x * block.y * block.z;
    if (n_threads == 0 || n_threads > MAX_THREADS || shared_bytes > MAX_SHARED || grid.x == 0 ||
        grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        die("a grid that no GPU launches");
    if (!stacks) {
        stacks = (unsigned char *)malloc((size_t)MAX_THREADS * STACK);
        shared_memory = (unsigned char *)aligned_alloc(256, MAX_SHARED);
        if (!stacks || !shared_memory)
            die("no memory for stacks");
    }
    sn_emulated_launches++;
    sn_emulated_shared = shared_memory;
    run_body = body;
    run_ctx = ctx;
    gridDim = grid;
    blockDim = block;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                run_block((int)n_threads, apart);
            }
}
