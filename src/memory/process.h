/* process.h: this process as the system counts it, row by row, and what must be reserved for it
 * beside the tensors.
 *
 *     sn_process_table t;
 *     sn_process_measure(&sn_io_system, engine, &t);   // every row measured on its own
 *     for (size_t i = 0; i < t.n; i++) ... t.rows[i].name, t.rows[i].bytes
 *
 *     sn_process_booking b;
 *     const sn_process_need need = {.map_bytes = budget, .code_bytes = plan->code_bytes};
 *     sn_process_book(engine, &need, &b, err);
 *     arena_and_state = budget - b.booked_bytes - graph_and_plan;
 *
 * Counted bytes are what a budget is held against: resident pages (VmRSS), page tables (VmPTE) and
 * kernel stacks. Nothing here requests memory. */
#ifndef SN_MEMORY_PROCESS_H
#define SN_MEMORY_PROCESS_H

#include "memory/engine.h"

#include <stdint.h>

/* --- sums ------------------------------------------------------------------------------------- */
/* Zeros where the system does not say. */
typedef struct {
    size_t resident_bytes; /* VmRSS */
    size_t peak_bytes;     /* VmHWM */
    size_t file_bytes;     /* RssFile: of the resident ones, pages of files */
    size_t table_bytes;    /* VmPTE */
    size_t stack_bytes;    /* kernel stacks of all threads */
} sn_process;

void sn_process_read(const snug_io *io, sn_process *out);
size_t sn_process_counted(const sn_process *p);      /* now */
size_t sn_process_counted_peak(const sn_process *p); /* the tables and stacks of now */

/* What is set aside (snug_set_aside) is lent to one planner more (n = 1) or fewer (-1): while there
 * is any it does not count. */
void sn_aside_lend(snug_engine *e, int n);

/* By how much equal processes differ: stacks and heaps begin elsewhere, and of libraries that are
 * not brought in (memory/code.h) the system maps what of their files happens to be in memory.
 * Measured: 70 KiB; 340 KiB once in thousands of runs where others make bytes, too (Python), or a
 * large library was loaded. */
size_t sn_process_differ(const snug_engine *e);

/* --- rows ------------------------------------------------------------------------------------- */
/*      id        name in reports             what is measured */
#define SN_PROCESS_MAP(X)                                                                          \
    X(SNUG, "snug's code")               /* the file this function is in, resident */              \
    X(ONEDNN, "oneDNN")                  /* libdnnl */                                             \
    X(LAPACK, "LAPACK")                  /* liblapack, libblas, the Fortran library */             \
    X(OPENMP, "OpenMP")                  /* libgomp, libomp, libiomp */                            \
    X(LIBRARIES, "C library and others") /* libc, libm, ld.so, zlib, jansson, ... */               \
    X(FILES, "program and files")        /* mapped files that are no shared libraries */           \
    X(HEAP, "C heap beyond the ledger")  /* of the libraries; free chunks and overhead */          \
    X(STACK, "main stack")                                                                         \
    X(STACKS, "stacks of other threads") /* beside those on the ledger */                          \
    X(CODE, "code made while running")   /* JIT: executable pages of no file */                    \
    X(TABLES, "page tables")                                                                       \
    X(KERNEL, "kernel stacks")

typedef enum {
#define SN_PROCESS_ENUM(id, name) SN_PROCESS_##id,
    SN_PROCESS_MAP(SN_PROCESS_ENUM)
#undef SN_PROCESS_ENUM
        SN_N_PROCESS
} sn_process_part;

typedef struct {
    const char *name;
    size_t bytes;
} sn_process_row;

/* rows[sn_process_part], then rows of the ledger's categories: what of them is resident. */
typedef struct {
    sn_process_row rows[SN_N_PROCESS + SN_N_CATEGORIES];
    size_t n;
    size_t counted_bytes;
    int64_t residual_bytes; /* counted less all rows: bytes without a name */
} sn_process_table;

void sn_process_measure(const snug_io *io, const snug_engine *e, sn_process_table *out);

/* --- booking ---------------------------------------------------------------------------------- */
/* What is still to come. */
typedef struct {
    size_t map_bytes;  /* of state and arena, to be mapped: at most the budget */
    size_t code_bytes; /* of the plans: a bound of the code kernels will make */
} sn_process_need;

typedef struct {
    size_t now_bytes;       /* counted now beside the ledger */
    size_t predicted_bytes; /* expected beside the ledger at the end of a run */
    size_t booked_bytes;    /* the most to expect: to be taken off a budget */
} sn_process_booking;

/* By how much the system's own peak (VmHWM) may be above what there was. Linux adds up what the
 * processors have counted only when one has counted a batch of pages: pages that came on one and
 * went on another are still in the sum. */
size_t sn_process_inexact(const snug_engine *e);
/* The page tables of so many bytes: at most. */
size_t sn_process_tables(size_t mapped_bytes);
/* Gives free chunks of the C heap back to the system first. */
SNUG_CHECKED snug_status sn_process_book(snug_engine *e, const sn_process_need *need,
                                         sn_process_booking *out, snug_error *err);
/* The most that was on the ledger since the last restart: what it took to plan something. */
void sn_peak_restart(snug_engine *e);
size_t sn_peak_since(const snug_engine *e);
/* From now on, or no longer: nothing will run, only the budget that would do is looked for.
 * Requests pass as long as the system has room. */
void sn_gate_tell(snug_engine *e, bool tells);
/* What is brought in once, before the process is measured, so that it cannot come later: the code
 * of kernels, and of the library that makes some (kernels/cpu/cpu.h). Whether it was; from now on
 * it is. */
typedef enum { SN_SETTLED_CODE, SN_SETTLED_LIBRARY, SN_SETTLED_LAPACK, SN_N_SETTLED } sn_settled;
bool sn_process_is_settled(snug_engine *e, sn_settled what);

#endif
