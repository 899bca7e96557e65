/* kernel_call.h: one kernel call with operands in guarded memory of its own, for tests of kernels.
 *
 *     sn_test_call k;
 *     sn_begin(&k, SN_OP_add);
 *     sn_add_in(&k, SHAPE(SNUG_F32, 2, 3), -1, 1);      // numbers in [-1, 1)
 *     sn_add_in(&k, SHAPE(SNUG_F32, 3), -1, 1);
 *     sn_ready(&k);                                     // infers the outputs
 *     sn_run(&k);                                       // the fast kernel of this machine
 *     sn_kernel_close(&k);
 *
 * The same from a line of text, for tables of cases:
 *
 *     sn_kernel_case c = {"conv2d", "stride=2,2 pad=0,1,0,1", "f32[2,7,8,3] f32[3,3,3,5] f32[5]"};
 *     sn_kernel_open(&k, &c, 1);
 *     sn_kernel_call(&k, k.family->run, 2, false);      // outputs hold rubbish before
 *
 * A call describes, takes exactly that workspace, poisons it, prepares, runs and releases; it fails
 * the test when a byte beside the workspace or an output of the call's own was written. */
#ifndef SN_TESTS_KERNEL_CALL_H
#define SN_TESTS_KERNEL_CALL_H

#include "support/support.h"

#include "kernels/cpu/cpu.h"

#define SCALAR(d) ((snug_type){.dtype = (d)})
#define SHAPE(d, ...)                                                                              \
    ((snug_type){.dtype = (d),                                                                     \
                 .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                \
                 .dims = {__VA_ARGS__}})
#define LIST(...)                                                                                  \
    ((sn_list){.n = (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                 \
               .v = {__VA_ARGS__}})

typedef struct {
    sn_opdesc d;
    sn_scalar param[SN_MAX_PARAMS];
    const sn_cpu_family *family; /* of sn_kernel_try: the best build, or what a test sets */
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    bool accumulate;
    int threads, axis;
    int64_t first, full;
    int poison;         /* fills the workspace before a call */
    sn_variant variant; /* of the last call */
    bool needs_all;     /* the last call took no workspace, or wrote its last byte */
} sn_test_call;

/* --- built -------------------------------------------------------------------------------------*/
/* param, accumulate, threads (1), axis, first and full (a whole value) may be set after
 * sn_ready. */
void sn_begin(sn_test_call *k, sn_op op);
void sn_add_in(sn_test_call *k, snug_type t, double low, double high);
void sn_ready(sn_test_call *k);
/* Gives the outputs back; another sn_ready may follow. */
void sn_unready(sn_test_call *k);
void sn_kernel_close(sn_test_call *k);

/* --- from text ---------------------------------------------------------------------------------*/
typedef struct {
    const char *op, *attrs, *types;
    double param[4];
    unsigned batch;   /* bit i: input i carries the batch as axis 0 (for slices) */
    double tolerance; /* 0: the usual one */
} sn_kernel_case;

/* Inputs are numbers that follow from the seed: reals in [-1, 1], class numbers and codes in range.
 * Fails the test when the line is wrong. End it with sn_kernel_close. */
void sn_kernel_open(sn_test_call *k, const sn_kernel_case *c, uint64_t seed);
/* The same operator on the same inputs' rows [first, first + n) of the batch. */
void sn_kernel_slice(sn_test_call *slice, const sn_test_call *whole, unsigned batch, int64_t first,
                     int64_t n);

/* --- run ---------------------------------------------------------------------------------------*/
snug_status sn_run_with(sn_test_call *k, const sn_cpu_family *family, bool reference,
                        snug_error *err);
/* This machine's kernel of k->d.op, which a test may change meanwhile. */
void sn_run(sn_test_call *k);
void sn_run_reference(sn_test_call *k);
/* The same for a kernel of k->family, with outputs poisoned before (not when accumulating). */
snug_status sn_kernel_try(sn_test_call *k, sn_kernel kernel, int n_threads, bool accumulate,
                          snug_error *err);
void sn_kernel_call(sn_test_call *k, sn_kernel kernel, int n_threads, bool accumulate);

/* --- compared ----------------------------------------------------------------------------------*/
/* What output 0 holds, to be freed. */
void *sn_copy_out(const sn_test_call *k);
/* Output 0 has these bytes; `what` is said when it has not. */
void expect_bits(const sn_test_call *k, const void *want, const char *what);
/* The fast kernel's bits are the reference's, with one thread and with two. */
void expect_fast_is_reference(sn_test_call *k);

#endif
