/* driver.h: the few things the GPU object asks of a driver: a context, memory, streams, events,
 * captured runs. Two implementations: driver.cu over CUDA's runtime, and one in tests/support that
 * has host memory and runs everything at once, so that the plug-in is whole where there is no GPU.
 *
 * A failing call says what it was for: SNUG_E_MEMORY where device memory ran out, SNUG_E_DEVICE
 * else. */
#ifndef SN_KERNELS_CUDA_DRIVER_H
#define SN_KERNELS_CUDA_DRIVER_H

#include "kernels/cuda/cuda.h"

/* One device; zeroed, then sn_driver_attach. */
typedef struct {
    int index;
    int ordinal;             /* the driver's own name for it */
    void *context;           /* NULL: not attached */
    void *monitor, *watched; /* NVML and its handle of the device, or NULL */
    size_t before_bytes;     /* of the card in use before this process touched it */
    size_t beside_bytes;     /* of this process that NVML's figure of it leaves out */
} sn_driver;

typedef struct {
    char name[96];
    char driver[32], runtime[32];
    int capability, n_multiprocessors;
    size_t granule_bytes; /* memory is given in multiples of this */
    bool watches;         /* NVML is there: used bytes are the card's */
} sn_driver_facts;

typedef void *sn_driver_event; /* a moment of a stream */
typedef void *sn_driver_graph;

/* Devices; 0 with the reason. */
int sn_driver_count(char *why, size_t size);
/* Makes the context, with a stack limit of 0. */
snug_status sn_driver_attach(sn_driver *d, int index, sn_driver_facts *out, snug_error *err);
/* reset: also what libraries hold on to. Not attached: nothing to do. */
void sn_driver_detach(sn_driver *d, bool reset);
/* The context becomes the calling thread's. */
snug_status sn_driver_enter(const sn_driver *d, snug_error *err);

/* Of the card, and what this process has of it: by NVML's figure of it, or where there is none
 * (`shared`) what the card has more in use than before attach, which may be others', too. Without
 * NVML the latter is the context, as large as it usually is. */
typedef struct {
    size_t total_bytes, free_bytes, ours_bytes;
    bool shared;
} sn_driver_memory;
snug_status sn_driver_look(const sn_driver *d, sn_driver_memory *out, snug_error *err);

snug_status sn_driver_alloc(size_t bytes, void **out, snug_error *err);
void sn_driver_free(void *block);
/* Pages that copies may use directly. */
snug_status sn_driver_pin(void *pages, size_t bytes, snug_error *err);
void sn_driver_unpin(void *pages);

snug_status sn_driver_make_stream(cudaStream_t *out, snug_error *err);
void sn_driver_drop_stream(cudaStream_t s);
snug_status sn_driver_make_event(sn_driver_event *out, snug_error *err);
void sn_driver_drop_event(sn_driver_event e);

snug_status sn_driver_copy(sn_gpu_copy kind, void *to, const void *from, size_t bytes,
                           cudaStream_t s, snug_error *err);
snug_status sn_driver_fill(void *to, int byte, size_t bytes, cudaStream_t s, snug_error *err);
snug_status sn_driver_mark(sn_driver_event e, cudaStream_t s, snug_error *err);
snug_status sn_driver_follow(cudaStream_t s, sn_driver_event e, snug_error *err);
snug_status sn_driver_await(sn_driver_event e, snug_error *err);
snug_status sn_driver_finish(cudaStream_t s, snug_error *err);
/* What launches since the last call came to. */
snug_status sn_driver_launched(snug_error *err);
/* The largest stack frame of the kernels that enqueue gives to a stream, which are not run; 0:
 * none, or nobody knows. The driver keeps such bytes for every thread the card can hold. */
typedef void (*sn_driver_enqueue)(void *ctx, cudaStream_t s);
size_t sn_driver_frame(cudaStream_t s, sn_driver_enqueue enqueue, void *ctx);
/* Whether the context has met an error it does not survive. */
bool sn_driver_is_lost(void);

/* A graph takes memory on the device, measured on an H200: 104 MiB for 42,118 kernels in a row, 302
 * MiB for 2,178 kernels and 5,247 copies. */
#define SN_DRIVER_NODE_BYTES ((size_t)2560)
#define SN_DRIVER_COPY_BYTES ((size_t)60 << 10)

typedef struct {
    void *whole;       /* of a guard; NULL: there was none */
    size_t n_copies;   /* of its nodes, at most */
    size_t room_bytes; /* that the graph may take */
} sn_driver_kept;

/* What is given to s, and to streams that follow it, until make_graph is not run but kept. guard:
 * what follows runs only where words REFUSED and OBJECTED are 0 by then; OPENED becomes whether it
 * does. *whole is handed to make_graph, which ends it. SNUG_E_BUDGET: there is no room for the
 * graph. */
enum { SN_WORD_REFUSED, SN_WORD_OPENED, SN_WORD_OBJECTED, SN_N_WORDS };
snug_status sn_driver_capture(cudaStream_t s, snug_error *err);
snug_status sn_driver_guard(cudaStream_t s, uint32_t *words, void **whole, snug_error *err);
snug_status sn_driver_make_graph(cudaStream_t s, const sn_driver_kept *kept, sn_driver_graph *out,
                                 snug_error *err);
snug_status sn_driver_replay(sn_driver_graph graph, cudaStream_t s, snug_error *err);
void sn_driver_drop_graph(sn_driver_graph graph);

#endif
