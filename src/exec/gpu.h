/* gpu.h: a GPU as the device of plans: the plug-in, loaded and opened, and what the executor keeps
 * for it.
 *
 * To the planner it is an sn_device. A row that has no kernel there is described by the host's: its
 * impl (op/impl.h) says so, and the executor runs it on the processor between two copies.
 *
 * All steps of a run are enqueued by the calling thread, in the order of the plan: queue q of the
 * plan is queue q of the device. A run that can be captured (its feeds are staged whole, no row
 * runs on the host) is captured the second time and replayed from then on. Before its first state
 * write stands a guard: what comes after it runs only where no kernel refused its values. So a run
 * that fails there leaves all variables as they were, and nobody has to ask in the middle of it.
 * Where only a check of the update refused its values, and the session passes updates over, the
 * steps of such a run are given once more, one by one, without the update. */
#ifndef SN_EXEC_GPU_H
#define SN_EXEC_GPU_H

#include "kernels/cpu/cpu.h"
#include "op/impl.h"
#include "op/runner.h"

#include <snug/device.h>

/* What kernels of a card may take for granted of the address of an operand. */
#define SN_GPU_ALIGN 256

typedef struct sn_gpu_device {
    sn_device device; /* first member: an sn_gpu_device is an sn_device */
    sn_cpu_device host;
    snug_engine *engine;
    void *library;
    const sn_gpu_api *api;
    sn_gpu *gpu;
    bool exact;               /* products of f32 in f32 */
    size_t budget_bytes;      /* of device memory, all of it; 0: no limit */
    bool reset;               /* closing takes from libraries what they hold on to */
    int64_t n_users;          /* states, executors and recorders on it */
    struct sn_gpu_pool *pool; /* of recorded code; NULL: none yet */
    void *pieces;             /* pinned, for sn_gpu_send_beside; NULL: none yet */
    bool one_by_one;          /* no run is captured: SNUG_CUDA_GRAPHS=0 */
    bool has_guard;           /* a run with a guard was captured: what that takes once is taken */
    size_t first_context;     /* bytes, when it was opened */
    size_t loaded_bytes;      /* that it grew by since, but for captured runs: libraries' code */
    size_t captured_bytes;    /* that captured runs took, now or before */
    sn_gpu_facts facts;       /* as the driver last said; asking it takes as long as a small run */
    size_t room_bytes;        /* of them, and of the budget */
    int64_t room_ms;          /* when; 0: something was taken or given since */
} sn_gpu_device;

/* A GPU for a list of devices; that of snug_device is one that the engine closes itself. Close it
 * before the engine, when nothing uses it. */
SNUG_CHECKED snug_status sn_gpu_open(snug_engine *e, int index, const snug_device_options *o,
                                     sn_gpu_device **out, snug_error *err);
void sn_gpu_close(sn_gpu_device *d);
/* NULL: the device is the host. */
sn_gpu_device *sn_gpu_of(const sn_device *d);
/* That of snug_device; NULL: models of the engine run on the host. */
sn_gpu_device *sn_engine_gpu(const snug_engine *e);
/* The device that things made with the engine run on: *cpu, filled, or the GPU's. */
const sn_device *sn_engine_device(const snug_engine *e, sn_cpu_device *cpu);

/* Device memory within the budget: SNUG_E_BUDGET names both. `what` is for the message. */
SNUG_CHECKED snug_status sn_gpu_take(sn_gpu_device *d, const char *what, size_t bytes, void **out,
                                     snug_error *err);
void sn_gpu_give(sn_gpu_device *d, void *block); /* NULL is legal */
/* d->facts, but for the granule, are not older than what was taken or given last. */
SNUG_CHECKED snug_status sn_gpu_look(sn_gpu_device *d, snug_error *err);
/* What sn_gpu_take may still give: of the budget, and of what is free; free chunks of the pool
 * count, and go where they are wanted. */
SNUG_CHECKED snug_status sn_gpu_room(sn_gpu_device *d, size_t *bytes, snug_error *err);
/* Whether so many are free for the driver and libraries to take themselves. The pool gives its free
 * chunks back where that makes it so. */
bool sn_gpu_has_beside(sn_gpu_device *d, size_t bytes);
/* To the device or within it, before all that is run later; `from` on the host is ordinary memory
 * and may change once this returns. */
SNUG_CHECKED snug_status sn_gpu_send(sn_gpu_device *d, sn_gpu_copy kind, void *to, const void *from,
                                     size_t bytes, snug_error *err);
/* The same, beside what runs now: by a queue of its own, through two pinned pieces. It is there
 * when the device has next been waited for. */
SNUG_CHECKED snug_status sn_gpu_send_beside(sn_gpu_device *d, void *to, const void *from,
                                            size_t bytes, snug_error *err);
/* Copies now, and waits. */
SNUG_CHECKED snug_status sn_gpu_move(sn_gpu_device *d, sn_gpu_copy kind, void *to, const void *from,
                                     size_t bytes, snug_error *err);

#endif
