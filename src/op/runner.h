/* runner.h: a device with a memory of its own, as the executor drives it. A plug-in
 * (libsnug-cuda.so) exports one function, sn_gpu_plugin, that gives the table below; the core loads
 * it on demand and runs without it.
 *
 *     const sn_gpu_api *api = plugin(sn_gpu_abi());        // abi.h; NULL: of another Snug
 *     api->open(&options, &gpu, err);                      // context made, measured, booked
 *     api->alloc(gpu, bytes, &arena, err);                 // planned bytes: before the first step
 *     api->copy(gpu, SN_GPU_TO, 0, arena, staging, n, err);
 *     api->run(gpu, 0, &family, &call, err);               // enqueued; views are device addresses
 *     api->finish(gpu, err);                               // all queues done; errors come here
 *
 * Rules
 * 1. run and copy only enqueue; a call may wait in the object until another function than run is
 * called, so that several become one launch. Work of one queue is in order; order() makes a queue
 * wait for what another has been given so far. Queues are those of a plan (compute, in, out).
 * 2. Parameters of calls are read on the device, when the kernel runs: call->param is a device
 * address (the executor copies all parameters of a run there first). So a captured run can be
 * replayed with other learning rates, seeds and slice starts.
 * 3. Nothing is allocated on the device by run, copy, order, finish, replay.
 * 4. Kernels that refuse values (MAYFAIL rows) write a word; finish turns it into the error,
 * and forgets it. Those that look enqueued write another, which is no error.
 * 5. A sticky device error poisons this object: every later call returns it, until close. The
 * process stays well.
 * 6. Same inputs, same bits, run to run; a slice of a batch gives the whole's bits with own
 * kernels, and with libraries where the plan pins the engine. */
#ifndef SN_OP_RUNNER_H
#define SN_OP_RUNNER_H

#include "op/kernel_call.h"

#define SN_GPU_ABI     7
#define SN_GPU_QUEUES  3 /* of plan.h: compute, in, out */
#define SN_GPU_MOMENTS 8

typedef struct sn_gpu sn_gpu;

/* What the plug-in asks of the core: host memory on the ledger. */
typedef struct {
    void *ctx;
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *block, size_t bytes);
    /* Asked before device memory or a library handle is taken; true: fail as if there were none. */
    bool (*fault)(void *ctx);
} sn_gpu_host;

typedef struct {
    int index;              /* of the device */
    bool exact;             /* f32 products in f32; false: TF32, as TensorFlow does */
    size_t workspace_bytes; /* cap of one node's scratch; 0: 64 MiB */
    sn_gpu_host host;
} sn_gpu_options;

/* Bytes as the driver's device total counts them. */
typedef struct {
    char name[96];
    char driver[32], runtime[32]; /* versions */
    char blas[32], dnn[32];       /* versions of the libraries, "" where they are missing */
    int capability;               /* 90 */
    int n_multiprocessors;
    size_t total_bytes, free_bytes; /* of the card, now */
    size_t context_bytes; /* that this process took beyond what alloc was asked for: context,
                             modules, libraries, streams */
    size_t held_bytes;    /* by alloc, as the device rounds them */
    size_t granule_bytes; /* sizes are rounded up to this */
    bool watched;         /* by NVML; else context_bytes is what it usually is */
} sn_gpu_facts;

/* What a block of so many bytes takes there. */
static inline size_t sn_gpu_granules(const sn_gpu_facts *f, size_t bytes) {
    const size_t rest = bytes % f->granule_bytes;
    return rest > 0 ? bytes - rest + f->granule_bytes : bytes;
}

typedef enum {
    SN_GPU_TO,
    SN_GPU_FROM,
    SN_GPU_WITHIN
} sn_gpu_copy; /* host to device, back, on it */

#define SN_GPU_CONSTANT 3 /* beside sn_random_kind */
#define SN_GPU_NUMBERS  4

typedef struct sn_gpu_graph sn_gpu_graph; /* a captured run */

typedef struct {
    int abi;
    int (*count)(char *why, size_t size); /* devices; 0 with the reason: no driver, too old, ... */
    snug_status (*open)(const sn_gpu_options *o, sn_gpu **out, snug_error *err);
    /* Gives everything back; reset: also what libraries keep (kills their handles in this
     * process). */
    void (*close)(sn_gpu *g, bool reset);
    snug_status (*facts)(sn_gpu *g, sn_gpu_facts *out, snug_error *err);
    /* Fills blas and dnn, and loads the libraries for it: only to print them. */
    void (*libraries)(sn_gpu *g, sn_gpu_facts *out);

    /* The description the planner reads: variants, workspace, rates. SNUG_E_UNSUPPORTED from its
     * describe: the row has no kernel here, and the executor runs it on the host. */
    const sn_device *(*device)(const sn_gpu *g);
    /* While on, describe answers as if missing libraries were there: their impl ends in ":absent".
     * To tell what they are worth; nothing of it runs. */
    void (*pretend)(sn_gpu *g, bool on);

    snug_status (*alloc)(sn_gpu *g, size_t bytes, void **out, snug_error *err);
    void (*free)(sn_gpu *g, void *block);
    snug_status (*pin)(sn_gpu *g, size_t bytes, void **out,
                       snug_error *err); /* host bytes for copies */
    void (*unpin)(sn_gpu *g, void *block, size_t bytes);

    /* Of a node as planned: library plans are made here, each kernel is loaded and run once on
     * scratch where that is what makes it take memory. impl: the plan's text, which pins the
     * engine. */
    snug_status (*prepare)(sn_gpu *g, const sn_opdesc *d, const char *impl, void **prepared,
                           snug_error *err);
    void (*release)(sn_gpu *g, sn_op op, void *prepared);

    snug_status (*run)(sn_gpu *g, int queue, const sn_call *c, snug_error *err);
    /* run, of a MAYFAIL row; objected says whether one so enqueued refused its values, as the last
     * finish saw. */
    snug_status (*look)(sn_gpu *g, int queue, const sn_call *c, snug_error *err);
    bool (*objected)(const sn_gpu *g);
    snug_status (*copy)(sn_gpu *g, sn_gpu_copy kind, int queue, void *to, const void *from,
                        size_t bytes, snug_error *err);
    snug_status (*fill)(sn_gpu *g, int queue, void *to, int byte, size_t bytes, snug_error *err);
    /* Real numbers of an sn_random_kind, or a constant; numbers lie on the device: key, a and b as
     * a recipe has them, and which element of it the first one is. */
    snug_status (*make)(sn_gpu *g, int queue, int kind, const sn_scalar *numbers,
                        const snug_view *to, snug_error *err);
    snug_status (*order)(sn_gpu *g, int earlier, int later, snug_error *err);
    /* Moments of a queue: what it was given before mark is done when await returns. */
    snug_status (*mark)(sn_gpu *g, int queue, int moment, snug_error *err);
    snug_status (*await)(sn_gpu *g, int moment, snug_error *err);
    snug_status (*finish)(sn_gpu *g, snug_error *err);

    /* Everything given to queue 0 between the two (and ordered into it) becomes one object, not
     * run. guard, once in between: what comes after it runs only where no kernel before it refused
     * its values, however it was enqueued, as the device itself sees when it is there; passed says
     * what it saw, once the run is finished. */
    snug_status (*capture)(sn_gpu *g, snug_error *err);
    snug_status (*guard)(sn_gpu *g, snug_error *err);
    bool (*passed)(const sn_gpu *g);
    /* SNUG_E_BUDGET: it would take more than room_bytes on the device, and is not made. */
    snug_status (*captured)(sn_gpu *g, size_t room_bytes, sn_gpu_graph **out, snug_error *err);
    snug_status (*replay)(sn_gpu *g, sn_gpu_graph *graph,
                          snug_error *err); /* enqueued on queue 0 */
    void (*drop)(sn_gpu *g, sn_gpu_graph *graph);
} sn_gpu_api;

typedef const sn_gpu_api *(*sn_gpu_plugin_fn)(int abi);

#endif
