/* kernel_case.h: one call of a CPU kernel from a line of text, with its operands in guarded memory
 * of the test's own.
 *
 *     sn_kernel_case c = {"conv2d", "stride=2,2 pad=0,1,0,1", "f32[2,7,8,3] f32[3,3,3,5] f32[5]"};
 *     sn_kernel_run r;
 *     sn_kernel_open(&r, &c, 1);
 *     sn_kernel_call(&r, r.family->run, 2, false);    // outputs and workspace hold rubbish before
 *     ... r.out[0].data ...
 *     sn_kernel_close(&r);
 */
#ifndef SN_TESTS_KERNEL_CASE_H
#define SN_TESTS_KERNEL_CASE_H

#include "kernels/cpu/cpu.h"

typedef struct {
    const char *op, *attrs, *types;
    double param[4];
    unsigned batch;   /* bit i: input i carries the batch as axis 0 (for slices) */
    double tolerance; /* 0: the usual one */
} sn_kernel_case;

typedef struct {
    sn_opdesc d;
    sn_scalar param[SN_MAX_PARAMS];
    const sn_cpu_family *family; /* the machine's best build; a test may set another's */
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    int poison;         /* fills workspace and outputs before a call */
    sn_variant variant; /* of the last call */
    bool needs_all;     /* the last call took no workspace, or wrote its last byte */
} sn_kernel_run;

/* Infers the output types and fills the inputs with numbers that follow from the seed: reals in
 * [-1, 1], class numbers and codes in range. Fails the test when the line is wrong. */
void sn_kernel_open(sn_kernel_run *r, const sn_kernel_case *c, uint64_t seed);
/* Describes for n_threads, takes exactly that workspace, poisons it and the outputs (not when
 * accumulating), prepares, calls, releases; fails the test when a byte behind an output or the
 * workspace changed. */
snug_status sn_kernel_try(sn_kernel_run *r, sn_kernel kernel, int n_threads, bool accumulate,
                          snug_error *err);
void sn_kernel_call(sn_kernel_run *r, sn_kernel kernel, int n_threads, bool accumulate);
/* The same operator on the same inputs' rows [first, first + n) of the batch. */
void sn_kernel_slice(sn_kernel_run *slice, const sn_kernel_run *whole, unsigned batch,
                     int64_t first, int64_t n);
void sn_kernel_close(sn_kernel_run *r);

#endif
