/* chain.h: elementwise calls over one index space as one launch.
 *
 * A chain is a short program: inputs that are loaded, then steps, one per call, each of which takes
 * values of inputs and of steps before it. Threads run it element by element; values lie in shared
 * memory, a place for each. What a step gives is stored where its call says, unless nobody reads it
 * after the chain (sn_call's reach).
 *
 * Of small index spaces f32, f64 and halves may mix; large ones are f32 and halves in packs of
 * four. Operands are as large as the output, or one number for each of the last axis, or one
 * number. */
#ifndef SN_KERNELS_CUDA_CHAIN_H
#define SN_KERNELS_CUDA_CHAIN_H

#include "kernels/cuda/own.h"

enum {
    SN_HELD_VIEWS = 10,
    SN_MOST_UPDATES = 64,
    SN_CHAIN_STEPS = 24,
    SN_CHAIN_SLOTS = 48,   /* inputs and steps of a chain; of packs half as many */
    SN_CHAIN_OPERANDS = 5, /* of a step */
    SN_CHAIN_SMALL = 65536 /* elements */
};

/* A call, kept. */
typedef struct sn_held {
    sn_call call; /* in and out are the views */
    snug_view views[SN_HELD_VIEWS];
} sn_held;
void sn_hold(sn_held *h, const sn_call *call);
sn_call sn_held_call(const sn_held *h);

typedef enum {
    SN_CHAIN_DENSE,   /* as large as the output */
    SN_CHAIN_CHANNEL, /* of the last axis */
    SN_CHAIN_SINGLE,  /* one number */
    SN_CHAIN_PARAM,   /* one real parameter */
    SN_CHAIN_RSTD     /* of the last axis: 1 / sqrt(it + epsilon) */
} sn_chain_kind;

/* Of what lies in memory. */
typedef enum { SN_CHAIN_F32, SN_CHAIN_F64, SN_CHAIN_F16, SN_CHAIN_BF16 } sn_chain_type;

typedef struct {
    const void *data;
    const sn_scalar *epsilon; /* RSTD */
    uint8_t kind, type;
    uint8_t slot;
} sn_chain_input;

typedef struct {
    void *out;                       /* NULL: not stored */
    uint8_t code, type, slot;        /* type: of what it gives */
    uint8_t from[SN_CHAIN_OPERANDS]; /* slots */
} sn_chain_step;

/* What the kernel gets. Loaded once per thread: fixed inputs; for each element: dense ones. */
typedef struct {
    int64_t n;
    sn_divisor period; /* of channels, in what a thread takes at once; of 1 where there are none */
    int n_fixed, n_dense, n_steps;
    sn_chain_input fixed[SN_CHAIN_SLOTS], dense[SN_CHAIN_SLOTS / 2]; /* read in fours */
    sn_chain_step steps[SN_CHAIN_STEPS];
} sn_chain_program;

typedef struct {
    int n; /* calls that wait */
    sn_cuda_call base;
    sn_held first; /* runs by itself where no other joins */
    sn_chain_program program;
    int n_slots;
    bool halves;      /* some operands are */
    int64_t channels; /* of the last axis; 0: no operand is of it */
    uint64_t number[SN_CHAIN_STEPS];
    uint32_t reach[SN_CHAIN_STEPS];
} sn_chain;

static inline bool sn_bytes_meet(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y + b_bytes && y < x + a_bytes;
}

/* Whether the call can be a step of a chain at all. */
bool sn_chain_takes(const sn_call *call);
/* Adds it to the chain, which is empty with n = 0; false: it must not join, nothing is changed.
 * number counts calls, for reach. */
bool sn_chain_add(sn_chain *chain, const sn_cuda_call *c, uint64_t number);
/* Whether the call writes what the chain reads or writes, or reads what it writes. */
bool sn_chain_meets(const sn_chain *chain, const sn_call *call);
/* Runs the chain of n calls as one launch. */
snug_status sn_chain_run(const sn_chain *chain, int n, snug_error *err);

#endif
