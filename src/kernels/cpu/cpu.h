/* cpu.h: the CPU as a device. A kernel sees views and scratch, never a graph or a plan, and
 * allocates nothing.
 *
 * Each operator names a family. A family describes what a call will need, may prepare an object per
 * planned step (a oneDNN primitive), and runs. `reference` is the plain loop kept as the oracle,
 * for f32 and f64 (and the integer and bool types that make sense); `run` is the fast one, or the
 * same.
 *
 * Rules (each is a test):
 * 1. Same inputs, same thread count, same bits. Partial sums are added in a fixed order.
 * 2. An element's bits do not depend on its position or on how many rows the call has: a slice of a
 * batch gives the whole's bits (own kernels; oneDNN's choice is named in the plan).
 * 3. out may be in where the table allows it; otherwise they do not overlap. Outputs may hold any
 * bytes before.
 * 4. Size-0 operands are legal.
 * 5. The workspace is what the kernel needs, to the byte: its last byte is written, whichever
 * threads do the work (a thread that comes late has work of its own to do, or no scratch).
 * 6. A message says what is wrong, not where: the caller puts layer and operator before it.
 *
 * All files of this folder but onednn*.c, lapack*.c, speed.c and cpu_device.c are compiled once per
 * instruction set (SN_ISA: base, avx2, avx512) with SN_CPU(name) giving the symbol of that build;
 * cpu_device.c picks a table by the processor. */
#ifndef SN_KERNELS_CPU_CPU_H
#define SN_KERNELS_CPU_CPU_H

#include "op/kernel_call.h"

typedef struct {
    sn_kernel reference;
    sn_kernel run;
    /* Which of SN_STORED_DTYPES its operands may have; of all others it takes what the shape rules
     * of its rows admit. */
    uint32_t takes_stored;
    /* NULL: no workspace, no code, flops and bytes from types. Fills what differs from the default.
     * The workspace is run's: reference kernels need none. */
    snug_status (*describe)(const sn_opdesc *d, int n_threads, sn_variant *out, snug_error *err);
    /* NULL: nothing to prepare. The object's memory is the library's or the engine's (category
     * KERNELS). */
    snug_status (*prepare)(snug_engine *e, const sn_opdesc *d, int n_threads, void **prepared,
                           snug_error *err);
    void (*release)(snug_engine *e, void *prepared);
    /* NULL: takes any parameters. What a call would refuse by its parameters and types alone, asked
     * before the first step of a run: views have no data yet. So such a row need not be MAYFAIL. */
    snug_status (*check)(const sn_call *c, snug_error *err);
    /* NULL: takes any data, or only a run can tell. What a call would refuse by the whole numbers
     * among its inputs alone; inputs that nobody has yet, and outputs, have no data. */
    snug_status (*check_data)(const sn_call *c, snug_error *err);
} sn_cpu_family;

/* The family of each operator for the running machine. */
const sn_cpu_family *sn_cpu_family_of(sn_op op);
const char *sn_cpu_isa(void); /* "avx512", "avx2" or "base" */
/* The same for a named instruction set; NULL when it is not built or this machine lacks it
 * (tests). */
const sn_cpu_family *sn_cpu_family_for(const char *isa, sn_op op);

/* The description the planner reads. `reference_only`: every variant is the reference kernel (impl
 * "reference"). */
typedef struct {
    sn_device device; /* first member: a sn_cpu_device is a sn_device */
    bool reference_only;
} sn_cpu_device;
void sn_cpu_device_init(sn_cpu_device *d, int n_threads, bool reference_only);
/* The engine's threads, the fast kernels, and its measured rates where it has some. */
void sn_cpu_device_of(const snug_engine *e, sn_cpu_device *d);

/* Fills bytes, speed and efficiency, unless a family's describe says more. */
void sn_cpu_speed(const sn_opdesc *d, sn_variant *v);

/* Brings in all code that may run here, once for good, and gives that of builds for other
 * processors back: from then on the process does not grow by its own code (memory/code.h). */
void sn_cpu_settle_code(void);
/* The same of oneDNN, for plans that make kernels by it (onednn_warm.c). */
SNUG_CHECKED snug_status sn_onednn_warm(snug_engine *e, int n_threads, snug_error *err);
/* And of LAPACK, for the problems that plans made so far have (lapack_warm.c). Cold: there are some
 * that it was not asked for yet. */
SNUG_CHECKED snug_status sn_lapack_warm(snug_engine *e, snug_error *err);
bool sn_lapack_is_cold(void);

/* oneDNN's version as text, for doctor. */
const char *sn_cpu_library_version(char *text, size_t size);

#endif
